"""The negative log-likelihood and the area under the ROC curve, as in table 1 of the paper. Needs numpy alone.

Labels may be fractions: a label f counts as a row of class 1 with weight f and one of class 0 with weight 1 - f.
Both metrics agree with scikit-learn's `log_loss` and `roc_auc_score` to 1e-12; they are written here because web
processes import this module and may not load scikit-learn.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal, NamedTuple, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

from predictors.errors import PredictorError

Metric = Literal["nll", "auc"]
METRICS: tuple[Metric, ...] = ("nll", "auc")
METRIC_TITLES: dict[Metric, str] = {"nll": "Negative log likelihood", "auc": "Area under the ROC curve"}
OVERALL = "overall"
# What `parts_by_outcome` gives, in this order.
PARTS_BY_OUTCOME = (OVERALL, "previous_correct", "previous_incorrect")

Parts = Mapping[str, ArrayLike]
"""Parts of n rows that metrics are computed in, by name: booleans (n,) each, true for the rows that belong to it."""
ByPart = dict[str, float | None]
"""One metric in each part; None where it is not defined."""


class PartMetrics(TypedDict):
    """`n` rows of positive weight, with both metrics in each part."""

    n: int
    nll: ByPart
    auc: ByPart


class CountLikelihood(TypedDict):
    """`log_likelihood` in nats, with the binomial coefficients; `nll_per_answer` without them, so that it equals the
    negative log-likelihood of the single answers (None where there are no answers)."""

    answers: int
    log_likelihood: float
    nll_per_answer: float | None


class CheckedRows(NamedTuple):
    """Labels in [0, 1], predictions and weights of 0 or more: three float64 arrays of n numbers."""

    labels: NDArray[np.float64]
    predictions: NDArray[np.float64]
    weights: NDArray[np.float64]


def negative_log_likelihood(
    labels: ArrayLike, probabilities: ArrayLike, sample_weight: ArrayLike | None = None
) -> float | None:
    """Mean of -log p(label) in nats over n rows, weighted; None where no row has weight.

    Probabilities are kept 2.2e-16 away from 0 and 1, as scikit-learn does, so one sure mistake costs 36 nats.

    Raises:
        PredictorError: lengths differ, or values are not numbers or out of range.
    """
    y, p, w = checked(labels, probabilities, sample_weight)
    if not w.any():
        return None
    return float(np.average(losses_of(y, p), weights=w))


def area_under_curve(labels: ArrayLike, scores: ArrayLike, sample_weight: ArrayLike | None = None) -> float | None:
    """Probability that a row of class 1 scores above one of class 0, ties counting one half; weighted.

    None where one of the classes has no weight. `scores` may be any finite numbers.

    Raises:
        PredictorError: lengths differ, or values are not numbers or out of range.
    """
    y, s, w = checked(labels, scores, sample_weight, in_unit_interval=False)
    positive, negative = w * y, w * (1 - y)
    if not positive.sum() > 0 or not negative.sum() > 0:
        return None
    _, group = np.unique(s, return_inverse=True)
    positive_at = np.bincount(group, weights=positive)
    negative_at = np.bincount(group, weights=negative)
    negative_below = np.cumsum(negative_at) - negative_at
    wins = np.sum(positive_at * (negative_below + 0.5 * negative_at))
    return float(wins / (positive.sum() * negative.sum()))


def evaluate(
    labels: ArrayLike,
    probabilities: ArrayLike,
    parts: Parts | None = None,
    sample_weight: ArrayLike | None = None,
) -> PartMetrics:
    """Both metrics over all n rows ("overall") and in each of the caller's parts.

    Values are None where undefined: no rows, or for the area under the curve one class only.

    Args:
        labels, probabilities, sample_weight: (n,) each, in [0, 1], in [0, 1] and 0 or more.
        parts: as in `checked_parts`; without them "overall" is the only part.

    Raises:
        PredictorError: lengths differ, values are not numbers or out of range, or a part is no mask of n rows.
    """
    y, p, w = checked(labels, probabilities, sample_weight)
    masks = checked_parts(parts, len(y))
    nll = {name: negative_log_likelihood(y[part], p[part], w[part]) for name, part in masks.items()}
    auc = {name: area_under_curve(y[part], p[part], w[part]) for name, part in masks.items()}
    return PartMetrics(n=int(np.count_nonzero(w)), nll=nll, auc=auc)


def count_log_likelihood(changed: ArrayLike, answers: ArrayLike, probabilities: ArrayLike) -> CountLikelihood:
    """Binomial likelihood of counts: `changed` of `answers` people changed their belief about each of n pairs.

    Raises:
        PredictorError: lengths differ, counts that are not whole numbers, or more changes than answers.
    """
    k, n = (np.asarray(column, dtype=np.float64) for column in (changed, answers))
    _, p, _ = checked(np.zeros_like(k), probabilities, None)
    for name, column in (("changed", k), ("answers", n)):
        if column.shape != p.shape:
            raise PredictorError(f"{name}: shape {column.shape} for {p.size} probabilities; give one number a pair.")
        if not np.isfinite(column).all() or (column < 0).any() or (column != np.rint(column)).any():
            raise PredictorError(f"{name}: must be whole numbers of 0 or more.")
    if (k > n).any():
        raise PredictorError(f"changed: row {int(np.argmax(k > n))} has more changes than answers.")
    total = int(n.sum())
    of_answers = float(-(n * losses_of(k / np.maximum(n, 1), p)).sum())
    arrangements = sum(
        math.lgamma(of + 1) - math.lgamma(some + 1) - math.lgamma(of - some + 1)
        for some, of in zip(k.tolist(), n.tolist(), strict=True)
    )
    return CountLikelihood(
        answers=total,
        log_likelihood=of_answers + arrangements,
        nll_per_answer=-of_answers / total if total else None,
    )


def losses_of(labels: NDArray[np.float64], probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    """-log p(label) of each row in nats, probabilities kept 2.2e-16 away from 0 and 1."""
    eps = np.finfo(np.float64).eps
    p = np.clip(probabilities, eps, 1 - eps)
    return -(labels * np.log(p) + (1 - labels) * np.log(1 - p))


def parts_by_outcome(outcomes: ArrayLike) -> dict[str, NDArray[np.bool_]]:
    """The three parts of table 1 of the paper: all n rows, those after a correct answer, those after an incorrect one.

    Args:
        outcomes: (n,), 1 where the evidence question was answered correctly and 0 where it was not.

    Raises:
        PredictorError: not one column, or an outcome is neither 0 nor 1.
    """
    outcome = np.asarray(outcomes)
    if outcome.ndim != 1:
        raise PredictorError(f"outcomes: shape {outcome.shape}; give one outcome a row.")
    if not np.isin(outcome, (0, 1)).all():
        raise PredictorError("outcomes: use 1 for correct and 0 for incorrect.")
    masks = (np.ones(len(outcome), dtype=bool), outcome == 1, outcome == 0)
    return dict(zip(PARTS_BY_OUTCOME, masks, strict=True))


def checked_parts(parts: Parts | None, n: int) -> dict[str, NDArray[np.bool_]]:
    """The parts of n rows as boolean arrays, "overall" (all rows) first; it need not be given.

    Raises:
        PredictorError: a part is not n booleans, or "overall" leaves out a row.
    """
    if not isinstance(parts, Mapping | None):
        raise PredictorError(f"parts: a {type(parts).__name__}; give a mapping from names to one True or False a row.")
    masks = {OVERALL: np.ones(n, dtype=bool)}
    for name, mask in (parts or {}).items():
        values = np.asarray(mask)
        if values.size == 0:
            values = values.astype(bool)
        if values.shape != (n,) or values.dtype != np.bool_:
            raise PredictorError(
                f"parts: {name!r} has shape {values.shape} and type {values.dtype} for {n} labels; "
                "give one True or False a row."
            )
        masks[name] = values
    if not masks[OVERALL].all():
        raise PredictorError(f"parts: {OVERALL!r} leaves out rows; it means all of them, so choose another name.")
    return masks


def checked(
    labels: ArrayLike, values: ArrayLike, sample_weight: ArrayLike | None, *, in_unit_interval: bool = True
) -> CheckedRows:
    """Labels, predictions and weights as float64 arrays of one length.

    Raises:
        PredictorError: lengths differ, or values are not numbers or out of range.
    """
    y = np.asarray(labels, dtype=np.float64)
    v = np.asarray(values, dtype=np.float64)
    w = np.ones_like(y) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    for name, column in (("labels", y), ("probabilities", v), ("sample_weight", w)):
        if column.ndim != 1 or column.shape != y.shape:
            raise PredictorError(f"{name}: shape {column.shape} for {y.size} labels; give one number a row.")
        if not np.isfinite(column).all():
            raise PredictorError(f"{name}: holds values that are not finite numbers.")
    if ((y < 0) | (y > 1)).any():
        raise PredictorError("labels: must lie between 0 and 1.")
    if in_unit_interval and ((v < 0) | (v > 1)).any():
        raise PredictorError("probabilities: must lie between 0 and 1.")
    if (w < 0).any():
        raise PredictorError("sample_weight: must not be negative.")
    return CheckedRows(y, v, w)
