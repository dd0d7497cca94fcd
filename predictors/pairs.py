"""The belief update's rows: evidence, target and outcome as plain data; and progress. Imports nothing heavy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

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


def as_pairs(pairs: Iterable[object]) -> list[Pair]:
    """Checked `Pair` rows from pairs or plain tuples in the same order.

    Raises:
        PredictorError: a row does not have five fields, or an outcome is neither 0 nor 1.
    """
    checked = []
    for number, row in enumerate(pairs):
        if not isinstance(row, Sequence) or len(row) != len(Pair._fields):
            what = f"has {len(row)} fields" if isinstance(row, Sequence) else f"is of the type {type(row).__name__}"
            raise PredictorError(f"pairs: row {number} {what}; give the five fields of Pair: {Pair._fields}.")
        evidence_text, target_text, evidence_task, target_task, outcome = row
        if outcome not in (0, 1):
            raise PredictorError(f"pairs: row {number} has outcome {outcome!r}; use 1 for correct and 0 for incorrect.")
        texts = (str(evidence_text), str(target_text), str(evidence_task), str(target_task))
        checked.append(Pair(*texts, int(outcome)))
    return checked


def report(progress: Progress | None, done: int, total: int, text: str) -> None:
    """Pass on to `progress` where the work stands.

    Raises:
        Stopped: the callback returned False.
    """
    if progress is not None and progress(done, total, text) is False:
        raise Stopped(f"stopped at {done} of {total}: {text}")
