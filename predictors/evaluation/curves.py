"""Where predictions are good: by group, by size and by rank. Needs numpy; scikit-learn comes with the first curve."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from statistics import NormalDist
from typing import NamedTuple, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

from predictors.errors import PredictorError
from predictors.evaluation.metrics import area_under_curve, checked
from predictors.features import two_rows


class GroupArea(TypedDict):
    """The area under the curve within one group of `n` rows."""

    n: int
    auc: float


class GroupAreas(TypedDict):
    """Groups by falling area, and how many were left out because they are small or of one class."""

    groups: dict[Hashable, GroupArea]
    too_small: int
    one_class: int


class Bin(TypedDict):
    """`n` rows: means of prediction and label, and the Wilson interval of the latter."""

    n: int
    predicted: float
    observed: float
    interval: list[float]


class Calibration(TypedDict):
    """Bins by rising prediction; the expected calibration error is the mean of |observed - predicted| over rows."""

    bins: list[Bin]
    expected_calibration_error: float | None


class RankPoint(TypedDict):
    """`rank` is the share of rows that are predicted lower, 0 to 1, at the middle of the point's `n` rows."""

    n: int
    rank: float
    observed: float
    interval: list[float]


class RocCurve(NamedTuple):
    """From (0, 0) to (1, 1), a point for each distinct prediction; two arrays of one length."""

    false_positive_rate: NDArray[np.float64]
    true_positive_rate: NDArray[np.float64]


def auc_by_group(
    labels: ArrayLike,
    probabilities: ArrayLike,
    groups: Sequence[Hashable],
    *,
    sample_weight: ArrayLike | None = None,
    least: int = 5,
) -> GroupAreas:
    """The area under the curve within each group of rows: by task, or by pair of tasks (tables 3 and 4).

    Groups of fewer than `least` rows with weight, and groups of one class, are left out and counted.

    Raises:
        PredictorError: lengths differ, or values are not numbers or out of range.
    """
    rows = checked(labels, probabilities, sample_weight)
    if len(groups) != len(rows.labels):
        raise PredictorError(f"groups: {len(groups)} for {len(rows.labels)} labels; give one group a row.")
    members: dict[Hashable, list[int]] = {}
    for index in np.flatnonzero(rows.weights).tolist():
        members.setdefault(groups[index], []).append(index)
    areas: dict[Hashable, GroupArea] = {}
    too_small = one_class = 0
    for group, inside in members.items():
        if len(inside) < least:
            too_small += 1
            continue
        auc = area_under_curve(rows.labels[inside], rows.predictions[inside], rows.weights[inside])
        if auc is None:
            one_class += 1
        else:
            areas[group] = GroupArea(n=len(inside), auc=auc)
    best_first = sorted(areas.items(), key=lambda item: (-item[1]["auc"], -item[1]["n"], str(item[0])))
    return GroupAreas(groups=dict(best_first), too_small=too_small, one_class=one_class)


def calibration(
    labels: ArrayLike, probabilities: ArrayLike, *, bins: int = 10, sample_weight: ArrayLike | None = None
) -> Calibration:
    """Predicted against observed share of changes, in at most `bins` bins of about equal weight.

    Equal predictions are never parted, so a predictor with two values has two bins. The 95 % Wilson intervals use the
    effective number of rows, (sum of weights) squared over the sum of squares (Kish).

    Raises:
        PredictorError: lengths differ, values out of range, or bins below 1.
    """
    y, p, w = checked(labels, probabilities, sample_weight)
    sets = _by_rank(p, w, bins, "bins")
    curve_bins = [
        Bin(
            n=len(inside),
            predicted=float(np.average(p[inside], weights=w[inside])),
            observed=float(np.average(y[inside], weights=w[inside])),
            interval=_wilson(y[inside], w[inside]),
        )
        for inside in sets
    ]
    if not curve_bins:
        return Calibration(bins=[], expected_calibration_error=None)
    gaps = [abs(entry["observed"] - entry["predicted"]) for entry in curve_bins]
    error = float(np.average(gaps, weights=[w[inside].sum() for inside in sets]))
    return Calibration(bins=curve_bins, expected_calibration_error=error)


def rank_curve(
    labels: ArrayLike, probabilities: ArrayLike, *, sample_weight: ArrayLike | None = None, points: int = 10
) -> list[RankPoint]:
    """Rank of the prediction against the fraction of beliefs that changed (figure 3, right), at most `points` points.

    Each point stands for an equal share of the rows; equal predictions are never parted.

    Raises:
        PredictorError: lengths differ, values out of range, or points below 1.
    """
    y, p, w = checked(labels, probabilities, sample_weight)
    curve = []
    below = 0.0
    for inside in rows_by_rank(p, w, points):
        share = float(w[inside].sum() / w.sum())
        curve.append(
            RankPoint(
                n=len(inside),
                rank=below + share / 2,
                observed=float(np.average(y[inside], weights=w[inside])),
                interval=_wilson(y[inside], w[inside]),
            )
        )
        below += share
    return curve


def roc_curve(labels: ArrayLike, probabilities: ArrayLike, *, sample_weight: ArrayLike | None = None) -> RocCurve:
    """Share of kept beliefs against share of changed ones above each threshold; no points where a class is missing.

    The area under it is `area_under_curve`.

    Raises:
        PredictorError: lengths differ, or values are not numbers or out of range.
    """
    from sklearn import metrics

    y, p, w = checked(labels, probabilities, sample_weight)
    if not (w * y).any() or not (w * (1 - y)).any():
        return RocCurve(np.empty(0), np.empty(0))
    rows, classes, weights = two_rows(y, w)
    false, true, _ = metrics.roc_curve(classes, p[rows], sample_weight=weights, drop_intermediate=False)
    return RocCurve(false, true)


def rows_by_rank(
    probabilities: NDArray[np.float64], weights: NDArray[np.float64], points: int = 10
) -> list[NDArray[np.int64]]:
    """The rows behind each point of `rank_curve`, as indices by rising prediction; rows of weight 0 are in none.

    Raises:
        PredictorError: points below 1.
    """
    return _by_rank(probabilities, weights, points, "points")


def _by_rank(p: NDArray[np.float64], w: NDArray[np.float64], count: int, name: str) -> list[NDArray[np.int64]]:
    """Rows with weight in at most `count` sets of about equal weight, by rising prediction; ties stay together."""
    if count < 1:
        raise PredictorError(f"{name}: {count} is not 1 or more.")
    weighted = np.flatnonzero(w)
    if not len(weighted):
        return []
    _, group = np.unique(p[weighted], return_inverse=True)
    weight_at = np.bincount(group, weights=w[weighted])
    middle = (np.cumsum(weight_at) - weight_at / 2) / weight_at.sum()
    bin_of_row = np.minimum((middle * count).astype(np.int64), count - 1)[group]
    return [weighted[bin_of_row == index] for index in np.unique(bin_of_row)]


def _wilson(y: NDArray[np.float64], w: NDArray[np.float64], level: float = 0.95) -> list[float]:
    """Wilson's score interval of a weighted share."""
    z = NormalDist().inv_cdf((1 + level) / 2)
    n = w.sum() ** 2 / np.square(w).sum()
    share = float(np.average(y, weights=w))
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return [float(max(0.0, middle - half)), float(min(1.0, middle + half))]
