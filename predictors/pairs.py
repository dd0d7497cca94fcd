"""The belief update's rows: evidence, target and outcome as plain data; and reports of progress. Needs numpy alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from predictors.errors import PredictorError, Stopped

Progress = Callable[[int, int, str], bool | None]
"""Called as progress(done, total, text); `total` is 0 where it is not known. Returning False stops the work."""


class Pair(NamedTuple):
    """One item to predict: does seeing the evidence question answered change the belief about the target question?

    Texts are plain text (no markup). `outcome` is 1 where the evidence question was answered correctly, else 0.
    """

    evidence_text: str
    target_text: str
    evidence_task: str
    target_task: str
    outcome: int


class Columns(NamedTuple):
    """The same pairs by column: four lists of n texts and an int64 array of n outcomes."""

    evidence_text: list[str]
    target_text: list[str]
    evidence_task: list[str]
    target_task: list[str]
    outcome: NDArray[np.int64]


def as_columns(pairs: Iterable[Sequence[object]]) -> Columns:
    """Turn pairs (or plain tuples in the same order) into columns.

    Raises:
        PredictorError: a row does not have five fields, or an outcome is neither 0 nor 1.
    """
    rows = list(pairs)
    for number, row in enumerate(rows):
        if not isinstance(row, Sequence) or len(row) != len(Pair._fields):
            what = f"has {len(row)} fields" if isinstance(row, Sequence) else f"is of the type {type(row).__name__}"
            raise PredictorError(f"pairs: row {number} {what}; give the five fields of Pair: {Pair._fields}.")
        if row[4] not in (0, 1):
            raise PredictorError(f"pairs: row {number} has outcome {row[4]!r}; use 1 for correct and 0 for incorrect.")
    evidence_text, target_text, evidence_task, target_task = ([str(row[field]) for row in rows] for field in range(4))
    outcome = np.array([int(row[4]) for row in rows], dtype=np.int64)  # type: ignore[call-overload]
    return Columns(evidence_text, target_text, evidence_task, target_task, outcome)


def as_pairs(pairs: Iterable[Sequence[object]]) -> list[Pair]:
    """Checked `Pair` rows from pairs or plain tuples in the same order; errors as in `as_columns`."""
    columns = as_columns(pairs)
    return [Pair(*row[:4], int(row[4])) for row in zip(*columns, strict=True)]


def report(progress: Progress | None, done: int, total: int, text: str) -> None:
    """Pass on to `progress` where the work stands.

    Raises:
        Stopped: the callback returned False.
    """
    if progress is not None and progress(done, total, text) is False:
        raise Stopped(f"stopped at {done} of {total}: {text}")
