"""What every predictor reads: evidence, target and outcome as plain data. Needs numpy alone."""

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


class TrainingData(NamedTuple):
    """Checked training rows: n pairs, n float64 labels in [0, 1], n positive float64 weights of mean 1."""

    pairs: list[Pair]
    labels: NDArray[np.float64]
    weights: NDArray[np.float64]


def as_columns(pairs: Iterable[Sequence[object]]) -> Columns:
    """Turn pairs (or plain tuples in the same order) into columns.

    Raises:
        PredictorError: a row does not have five fields, or an outcome is neither 0 nor 1.
    """
    rows = list(pairs)
    for number, row in enumerate(rows):
        if len(row) != len(Pair._fields):
            raise PredictorError(f"pairs: row {number} has {len(row)} fields; give the five of Pair: {Pair._fields}.")
        if row[4] not in (0, 1):
            raise PredictorError(f"pairs: row {number} has outcome {row[4]!r}; use 1 for correct and 0 for incorrect.")
    evidence_text, target_text, evidence_task, target_task = ([str(row[field]) for row in rows] for field in range(4))
    outcome = np.array([int(row[4]) for row in rows], dtype=np.int64)  # type: ignore[call-overload]
    return Columns(evidence_text, target_text, evidence_task, target_task, outcome)


def as_pairs(pairs: Iterable[Sequence[object]]) -> list[Pair]:
    """Checked `Pair` rows from pairs or plain tuples in the same order; errors as in `as_columns`."""
    columns = as_columns(pairs)
    return [Pair(*row[:4], int(row[4])) for row in zip(*columns, strict=True)]


def check_training_data(
    pairs: Iterable[Sequence[object]], labels: Sequence[float], sample_weight: Sequence[float] | None
) -> TrainingData:
    """Check and normalise what `fit` was given. Rows of weight 0 are left out.

    A label may be a fraction f: it stands for two rows, one labelled 1 with weight f and one labelled 0 with 1 - f.

    Raises:
        PredictorError: nothing to learn from, lengths that differ, values that are not numbers or out of range, or
            labels that are all of one class.
    """
    rows = as_pairs(pairs)
    values = np.asarray(labels, dtype=np.float64)
    weights = np.ones(len(rows)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if not rows:
        raise PredictorError("pairs: there are none; training needs at least one pair of each class.")
    for name, column in (("labels", values), ("sample_weight", weights)):
        if column.shape != (len(rows),):
            raise PredictorError(f"{name}: shape {column.shape} for {len(rows)} pairs; give one number a pair.")
        if not np.isfinite(column).all():
            first = int(np.flatnonzero(~np.isfinite(column))[0])
            raise PredictorError(f"{name}: row {first} is {column[first]}; leave such rows out or fill them.")
    if (values < 0).any() or (values > 1).any():
        raise PredictorError("labels: must lie between 0 (belief kept) and 1 (belief changed).")
    if (weights < 0).any():
        raise PredictorError("sample_weight: must not be negative.")
    if not weights.any():
        raise PredictorError("sample_weight: every weight is 0; at least one row must count.")
    kept = np.flatnonzero(weights)
    values, weights = values[kept], weights[kept]
    for constant in (0, 1):
        if (values == constant).all():
            raise PredictorError(
                f"labels: all {len(values)} are {constant}; training needs rows of the class {1 - constant} too."
            )
    return TrainingData([rows[index] for index in kept], values, weights / weights.mean())


def report(progress: Progress | None, done: int, total: int, text: str) -> None:
    """Tell `progress` where the work stands.

    Raises:
        Stopped: the callback returned False.
    """
    if progress is not None and progress(done, total, text) is False:
        raise Stopped(f"stopped at {done} of {total}: {text}")
