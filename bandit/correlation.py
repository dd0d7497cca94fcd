"""Pearson's and Spearman's correlation, weighted, also from sums that can be resampled. Numpy alone; a leaf."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def weighted_correlation(x: ArrayLike, y: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Pearson's correlation of x and y, shapes (n,), with weights (n,) of 0 or more; NaN where one does not vary."""
    one, other = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    mass = np.ones(one.size) if weight is None else np.asarray(weight, dtype=np.float64)
    if not mass.sum() > 0:
        return float("nan")
    # Centred, so that sums of squares lose no digits; a correlation does not depend on where 0 lies.
    from_one, from_other = (values - np.average(values, weights=mass) for values in (one, other))
    return float(correlation_of_sums(moments(from_one, from_other, mass).sum(axis=0)))


def moments(x: Floats, y: Floats, weight: Floats, y_square: Floats | None = None) -> Floats:
    """(n, 6) what each place adds to the sums of w, wx, wy, wxx, wyy and wxy, of arrays (n,).

    y_square: the mean of y squared at each place, where y itself is a mean.
    """
    square = y * y if y_square is None else y_square
    return np.stack([weight, weight * x, weight * y, weight * x * x, weight * square, weight * x * y], axis=1)


def correlation_of_sums(sums: ArrayLike) -> Floats:
    """Pearson's correlations (...) from sums of `moments` (..., 6); NaN where one of the two does not vary."""
    total, x, y, xx, yy, xy = np.moveaxis(np.asarray(sums, dtype=np.float64), -1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        of_x, of_y = xx / total - (x / total) ** 2, yy / total - (y / total) ** 2
        tiny = 1e-12 * (1 + np.abs(xx / total) + np.abs(yy / total))
        coefficient = (xy / total - x / total * (y / total)) / np.sqrt(of_x * of_y)
        return np.asarray(np.where((of_x > tiny) & (of_y > tiny), np.clip(coefficient, -1, 1), np.nan))


def ranks(values: ArrayLike) -> Floats:
    """Ranks from 1 of values (n,), the mean of those that are equal; their correlation is Spearman's."""
    _known, place, count = np.unique(np.asarray(values), return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    return np.asarray((last - (count - 1) / 2)[place.reshape(-1)], dtype=np.float64)


def correlation_interval(coefficient: float, n: float) -> tuple[float, float] | None:
    """A 95 % interval of Pearson's correlation of n pairs, by Fisher's z (Metron 1, 1921); None of fewer than 4 pairs,
    or of a correlation of -1 or 1."""
    if not n > 3 or not abs(coefficient) < 1:
        return None
    z, error = np.arctanh(coefficient), 1.959964 / np.sqrt(n - 3)
    return float(np.tanh(z - error)), float(np.tanh(z + error))
