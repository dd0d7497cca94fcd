"""Bootstrap intervals of both metrics, and the paired difference between two predictors. Needs numpy alone.

Rows are resampled, or whole clusters of rows: all answers of a respondent, or of a pair. With two kinds of cluster at
once each is resampled by itself and a row counts the product of both counts (the pigeonhole bootstrap of Owen, "The
pigeonhole bootstrap", Annals of Applied Statistics 1(2), 2007, which errs on the wide side). Every cell of a table is
computed from the same resamples.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

from predictors.errors import PredictorError
from predictors.evaluation.metrics import (
    METRICS,
    ByPart,
    Metric,
    Parts,
    checked,
    checked_parts,
    evaluate,
    losses_of,
)

Interval = list[float] | None
Cluster = ArrayLike | tuple[ArrayLike, ...]

# Resamples worked on at once hold so many numbers: 1 MiB, which stays in a processor's cache.
_NUMBERS_AT_ONCE = 2**17


class Intervals(TypedDict):
    """[low, high] of each metric and part; None where the metric is not defined in at least half of the resamples."""

    nll: dict[str, Interval]
    auc: dict[str, Interval]


class PartMetricsWithIntervals(TypedDict):
    """As `Evaluation`, with intervals."""

    n: int
    nll: ByPart
    auc: ByPart
    intervals: Intervals


class Difference(TypedDict):
    """First predictor less second; None where not defined. `p` is two-sided."""

    difference: float | None
    interval: Interval
    p: float | None


def evaluate_with_intervals(
    labels: ArrayLike,
    probabilities: ArrayLike,
    parts: Parts | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    cluster: Cluster | None = None,
    rng: np.random.Generator,
    samples: int = 1000,
    level: float = 0.95,
) -> PartMetricsWithIntervals:
    """`evaluate` with percentile bootstrap intervals of coverage `level` for both metrics in each part.

    Args:
        parts: as in `evaluate`. What the parts are does not change the resamples.
        cluster: (n,) labels of any kind, or a tuple of two such arrays (respondents and pairs); None resamples rows.
        samples: number of resamples. The same `rng` state gives the same resamples, so two predictors can share them.

    Raises:
        PredictorError: as `evaluate`; a cluster of another length; samples below 1 or level outside (0, 1).
    """
    scores = evaluate(labels, probabilities, parts, sample_weight)
    resampled = _resampled(labels, [probabilities], parts, sample_weight, cluster, rng, samples, level)
    intervals: dict[Metric, dict[str, Interval]] = {
        metric: {
            part: None if value is None else _ends(resampled[metric][part][0], level)
            for part, value in scores[metric].items()
        }
        for metric in METRICS
    }
    return PartMetricsWithIntervals(
        n=scores["n"],
        nll=scores["nll"],
        auc=scores["auc"],
        intervals=Intervals(nll=intervals["nll"], auc=intervals["auc"]),
    )


def paired_difference(
    labels: ArrayLike,
    first: ArrayLike,
    second: ArrayLike,
    parts: Parts | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    cluster: Cluster | None = None,
    rng: np.random.Generator,
    samples: int = 1000,
    level: float = 0.95,
) -> dict[Metric, dict[str, Difference]]:
    """How much `first` differs from `second`, two arrays of probabilities for the same n rows.

    Both are measured on the same resamples, so what makes a row hard for both cancels out. `p` is twice the share of
    resamples on the other side of 0, the observed sample counted in (Davison and Hinkley, Bootstrap Methods and their
    Application, section 4.4): it is never below 2 / (samples + 1).

    Raises:
        PredictorError: as `evaluate_with_intervals`.
    """
    first_scores, other = (evaluate(labels, column, parts, sample_weight) for column in (first, second))
    resampled = _resampled(labels, [first, second], parts, sample_weight, cluster, rng, samples, level)
    table: dict[Metric, dict[str, Difference]] = {}
    for metric in METRICS:
        table[metric] = {}
        for part, a in first_scores[metric].items():
            b = other[metric][part]
            if a is None or b is None:
                table[metric][part] = Difference(difference=None, interval=None, p=None)
                continue
            differences = resampled[metric][part][0] - resampled[metric][part][1]
            table[metric][part] = Difference(
                difference=a - b, interval=_ends(differences, level), p=bootstrap_p(differences)
            )
    return table


def _resampled(
    labels: ArrayLike,
    columns: Sequence[ArrayLike],
    parts: Parts | None,
    sample_weight: ArrayLike | None,
    cluster: Cluster | None,
    rng: np.random.Generator,
    samples: int,
    level: float,
) -> dict[Metric, dict[str, NDArray[np.float64]]]:
    """Each metric in each part for every column of probabilities: (columns, samples), NaN where not defined."""
    _check_resampling(samples, level)
    rows = [checked(labels, column, sample_weight) for column in columns]
    n = len(rows[0].labels)
    codes = _codes(cluster, n)
    masks = checked_parts(parts, n)
    weighted = np.flatnonzero(rows[0].weights)  # A row without weight must not take part in the draw either.
    cells = {
        part: [
            _Cell(row.labels[weighted], row.predictions[weighted], row.weights[weighted], mask[weighted])
            for row in rows
        ]
        for part, mask in masks.items()
    }
    resampled: dict[Metric, dict[str, NDArray[np.float64]]] = {
        metric: {part: np.full((len(columns), samples), np.nan) for part in masks} for metric in METRICS
    }
    if not len(weighted):
        return resampled
    done = 0
    for counts in _counts([_renumbered(code[weighted]) for code in codes], len(weighted), rng, samples):
        block = slice(done, done + len(counts))
        for part, measured in cells.items():
            for index, cell in enumerate(measured):
                for metric, values in cell.measured(counts).items():
                    resampled[metric][part][index, block] = values
        done += len(counts)
    return resampled


class _Cell:
    """The rows of one part, sorted by score once, so that a whole block of resamples is a few matrix operations."""

    def __init__(
        self,
        labels: NDArray[np.float64],
        probabilities: NDArray[np.float64],
        weights: NDArray[np.float64],
        part: NDArray[np.bool_],
    ) -> None:
        rows = np.flatnonzero(part)
        self.rows = rows[np.argsort(probabilities[rows], kind="stable")]
        y, p, w = labels[self.rows], probabilities[self.rows], weights[self.rows]
        self.weights = w
        self.losses = w * losses_of(y, p)
        self.positive, self.negative = w * y, w * (1 - y)
        self.tie_starts = np.flatnonzero(np.concatenate([[True], p[1:] != p[:-1]])) if len(p) else np.empty(0, int)

    def measured(self, counts: NDArray[np.float64]) -> dict[Metric, NDArray[np.float64]]:
        """Both metrics in b resamples, from the (b, n) counts of all rows: two arrays of (b,)."""
        undefined = np.full(len(counts), np.nan)
        if not len(self.rows):
            return {"nll": undefined, "auc": undefined}
        inside = np.take(counts, self.rows, axis=1)
        return {
            "nll": _ratio(inside @ self.losses, inside @ self.weights),
            "auc": self._areas_under_curve(inside),
        }

    def _areas_under_curve(self, inside: NDArray[np.float64]) -> NDArray[np.float64]:
        positive, negative = inside * self.positive, inside * self.negative
        if len(self.tie_starts) < len(self.rows):
            positive = np.add.reduceat(positive, self.tie_starts, axis=1)
            negative = np.add.reduceat(negative, self.tie_starts, axis=1)
        below = np.cumsum(negative, axis=1)
        all_negative = below[:, -1].copy()
        negative /= 2  # Ties count one half.
        below -= negative
        wins = np.einsum("ij,ij->i", positive, below)
        return _ratio(wins, positive.sum(axis=1) * all_negative)


def resampled_counts(
    cluster: Cluster | None, n: int, rng: np.random.Generator, samples: int, level: float = 0.95
) -> Iterator[NDArray[np.float64]]:
    """How often each of n rows is in each resample, in blocks (b, n); clusters as in `evaluate_with_intervals`.

    Raises:
        PredictorError: a cluster of another length; samples below 1 or level outside (0, 1).
    """
    _check_resampling(samples, level)
    if n:
        yield from _counts(_codes(cluster, n), n, rng, samples)


def _check_resampling(samples: int, level: float) -> None:
    if samples < 1:
        raise PredictorError(f"samples: {samples} is not 1 or more.")
    if not 0 < level < 1:
        raise PredictorError(f"level: {level} is not between 0 and 1; use 0.95 for 95 %.")


def _codes(cluster: Cluster | None, n: int) -> list[NDArray[np.int64]]:
    """The clusters of n rows as whole numbers: none, one or two arrays."""
    if cluster is None:
        return []
    codes = []
    for column in cluster if isinstance(cluster, tuple) else (cluster,):
        values = np.asarray(column)
        if values.shape != (n,):
            raise PredictorError(f"cluster: shape {values.shape} for {n} labels; give one cluster a row.")
        codes.append(_renumbered(values))
    return codes


def _renumbered(values: NDArray) -> NDArray[np.int64]:
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


def _counts(
    codes: list[NDArray[np.int64]], n: int, rng: np.random.Generator, samples: int
) -> Iterator[NDArray[np.float64]]:
    """How often each of n rows is in each resample, in blocks (b, n) of resamples."""
    at_once = max(1, _NUMBERS_AT_ONCE // n)
    for start in range(0, samples, at_once):
        block = min(at_once, samples - start)
        if not codes:
            yield _drawn(n, block, rng)
            continue
        counts = np.ones((block, n))
        for code in codes:
            counts *= _drawn(int(code.max()) + 1, block, rng)[:, code]
        yield counts


def _drawn(units: int, samples: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """How often each unit comes up when as many are drawn with replacement: (samples, units)."""
    drawn = rng.integers(units, size=(samples, units))
    drawn += np.arange(samples)[:, None] * units
    return np.bincount(drawn.ravel(), minlength=samples * units).reshape(samples, units).astype(np.float64)


def _ratio(numerator: NDArray[np.float64], denominator: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.divide(numerator, denominator, out=np.full(len(numerator), np.nan), where=denominator > 0)


def _ends(values: NDArray[np.float64], level: float) -> Interval:
    ends = percentile_interval(np.where(np.isfinite(values), values, np.nan), level)
    return None if ends is None else list(ends)


def percentile_interval(
    values: ArrayLike, level: float = 0.95, *, method: Literal["linear", "nearest"] = "linear"
) -> tuple[float, float] | None:
    """The middle share `level` of resampled values (samples,), NaN where the figure is not defined; None where it is
    not in at least half of them, or there is none.

    Args:
        method: between two values, or the nearer one of them, which is needed where values may be infinite: between an
            infinite value and another one there is nothing to interpolate.
    """
    resampled = np.asarray(values, dtype=np.float64)
    defined = resampled[~np.isnan(resampled)]
    if not len(defined) or 2 * len(defined) < len(resampled):
        return None
    low, high = np.quantile(defined, [(1 - level) / 2, (1 + level) / 2], method=method)
    return float(low), float(high)


def bootstrap_p(differences: ArrayLike) -> float | None:
    """Two-sided p of resampled differences (samples,), NaN where one is not defined: twice the smaller share of them on
    either side of 0, the observed sample counted in (Davison and Hinkley, Bootstrap Methods and their Application,
    section 4.4). None where they are not defined in at least half of the resamples."""
    resampled = np.asarray(differences, dtype=np.float64)
    defined = resampled[np.isfinite(resampled)]
    if not len(defined) or 2 * len(defined) < len(resampled):
        return None
    smaller = min(np.count_nonzero(defined <= 0), np.count_nonzero(defined >= 0))
    return float(min(1.0, 2 * (smaller + 1) / (len(defined) + 1)))
