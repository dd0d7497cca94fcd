"""What every predictor reads: rows of texts and numbers by name, from any instrument. Needs numpy alone.

A `Pair` is the belief update's own short row, and reads as features too: the texts "evidence" and "target", and the
numbers "previous_correct" and "same_task".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from predictors.errors import PredictorError
from predictors.pairs import Pair, as_pairs


@dataclass(frozen=True)
class Features:
    """One item to predict a label of. All rows of a table have the same names.

    texts: plain text (no markup) by name. The first is the one that the others are read after.
    numbers: finite numbers by name.

    Raises:
        PredictorError: a text is none, or a number is not finite.
    """

    texts: Mapping[str, str] = field(default_factory=dict)
    numbers: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, text in self.texts.items():
            if not isinstance(text, str):
                raise PredictorError(f"texts: {name!r} is {text!r}, which is no text.")
        for name, value in self.numbers.items():
            if not _is_finite(value):
                raise PredictorError(
                    f"numbers: {name!r} is {value!r}, which is no finite number; leave such items out or fill them."
                )


Row = Pair | Features

PAIR_TEXTS: dict[str, Callable[[Pair], str]] = {
    "evidence": lambda pair: pair.evidence_text,
    "target": lambda pair: pair.target_text,
}
PAIR_NUMBERS: dict[str, Callable[[Pair], float]] = {
    "previous_correct": lambda pair: pair.outcome,
    "same_task": lambda pair: pair.evidence_task == pair.target_task,
}


class TrainingData(NamedTuple):
    """Checked training rows: n rows of one kind, n float64 labels in [0, 1], n positive float64 weights of mean 1."""

    rows: list[Any]
    labels: NDArray[np.float64]
    weights: NDArray[np.float64]


def features_of(pair: Pair) -> Features:
    """A pair as features, with the same content for every predictor that reads features."""
    return Features(
        texts={name: read(pair) for name, read in PAIR_TEXTS.items()},
        numbers={name: float(read(pair)) for name, read in PAIR_NUMBERS.items()},
    )


def as_rows(rows: Iterable[Any]) -> list[Any]:
    """Checked rows of one kind: a list of `Features`, or of `Pair` from pairs or plain tuples in the same order.

    Raises:
        PredictorError: rows of both kinds, or features with other names than those of the first row; or as `as_pairs`.
    """
    listed = list(rows)
    kinds = [isinstance(row, Features) for row in listed]
    if not any(kinds):
        return as_pairs(listed)
    if not all(kinds):
        number = kinds.index(not kinds[0])
        words = {True: "features", False: "a pair"}
        raise PredictorError(
            f"rows: row {number} is {words[kinds[number]]} and row 0 is {words[kinds[0]]}; give rows of one kind."
        )
    first: Features = listed[0]
    for number, row in enumerate(listed):
        for what, mine, wanted in (("texts", row.texts, first.texts), ("numbers", row.numbers, first.numbers)):
            if mine.keys() != wanted.keys():
                raise PredictorError(
                    f"{what}: row {number} has {_listed(mine)} and row 0 has {_listed(wanted)}; "
                    "give every row the same names."
                )
    return listed


def check_training_data(
    rows: Iterable[Any], labels: Sequence[float], sample_weight: Sequence[float] | None
) -> TrainingData:
    """Check and normalise what `fit` was given. Rows of weight 0 are left out.

    A label may be a fraction f: it stands for two rows, one labelled 1 with weight f and one labelled 0 with 1 - f.

    Raises:
        PredictorError: nothing to learn from, lengths that differ, values that are not numbers or out of range,
            labels that are all of one class, or rows as in `as_rows`.
    """
    checked = as_rows(rows)
    values = np.asarray(labels, dtype=np.float64)
    weights = np.ones(len(checked)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if not checked:
        raise PredictorError("rows: there are none; training needs at least one row of each class.")
    for name, column in (("labels", values), ("sample_weight", weights)):
        if column.shape != (len(checked),):
            raise PredictorError(f"{name}: shape {column.shape} for {len(checked)} rows; give one number a row.")
        if not np.isfinite(column).all():
            first = int(np.flatnonzero(~np.isfinite(column))[0])
            raise PredictorError(f"{name}: row {first} is {column[first]}; leave such rows out or fill them.")
    if (values < 0).any() or (values > 1).any():
        raise PredictorError("labels: must lie between 0 and 1.")
    if (weights < 0).any():
        raise PredictorError("sample_weight: must not be negative.")
    if not weights.any():
        raise PredictorError("sample_weight: every weight is 0; at least one row must count.")
    weighted = np.flatnonzero(weights)
    values, weights = values[weighted], weights[weighted]
    for constant in (0, 1):
        if (values == constant).all():
            raise PredictorError(
                f"labels: all {len(values)} are {constant}; training needs rows of the class {1 - constant} too."
            )
    return TrainingData([checked[index] for index in weighted], values, weights / weights.mean())


def two_rows(
    labels: NDArray[np.float64], weights: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Labels that may be fractions as rows of whole classes, for learners that know no others.

    Returns:
        Row numbers, classes and weights, (m,) each: class 1 with weight f * w where a label f is above 0, then class 0
        with the rest of the weight where it is below 1.
    """
    ones, zeros = np.flatnonzero(labels > 0), np.flatnonzero(labels < 1)
    of_ones = weights * labels
    classes = np.concatenate([np.ones(len(ones), dtype=np.int64), np.zeros(len(zeros), dtype=np.int64)])
    return np.concatenate([ones, zeros]), classes, np.concatenate([of_ones[ones], (weights - of_ones)[zeros]])


def text_names(rows: Sequence[Row]) -> tuple[str, ...]:
    """The names of the texts of checked rows, in the first row's order."""
    return tuple(rows[0].texts if isinstance(rows[0], Features) else PAIR_TEXTS)


def number_names(rows: Sequence[Row]) -> tuple[str, ...]:
    """The names of the numbers of checked rows, in the first row's order."""
    return tuple(rows[0].numbers if isinstance(rows[0], Features) else PAIR_NUMBERS)


def text_column(rows: Sequence[Row], name: str) -> list[str]:
    """One text of n checked rows.

    Raises:
        PredictorError: the rows have no such text.
    """
    if rows and name not in text_names(rows):
        raise PredictorError(f"texts: the rows have no {name!r}; they have {_listed(text_names(rows))}.")
    return [row.texts[name] if isinstance(row, Features) else PAIR_TEXTS[name](row) for row in rows]


def number_columns(rows: Sequence[Row], names: Sequence[str]) -> NDArray[np.float64]:
    """The named numbers of n checked rows, float64 (n, len(names)).

    Raises:
        PredictorError: the rows have no such number.
    """
    values = np.empty((len(rows), len(names)))
    for place, name in enumerate(names):
        if rows and name not in number_names(rows):
            raise PredictorError(f"numbers: the rows have no {name!r}; they have {_listed(number_names(rows))}.")
        values[:, place] = [row.numbers[name] if isinstance(row, Features) else PAIR_NUMBERS[name](row) for row in rows]
    return values


def _is_finite(value: object) -> bool:
    try:
        return isfinite(value)  # type: ignore[arg-type]
    except (TypeError, OverflowError):
        return False


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names)) or "none"
