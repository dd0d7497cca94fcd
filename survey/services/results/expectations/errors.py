"""Standard errors and intervals of figures whose answers hang together by person and by item. Numpy and bandit alone.

A figure's error is the sum of what each answer adds to it, to first order. The variance is clustered by person and by
item at once: the two are added, and what both share is taken off (Cameron, Gelbach and Miller, "Robust inference with
multiway clustering", Journal of Business & Economic Statistics 29, 2011). People and items both count as a sample.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

import bandit
from survey.figures import Figure as Bounded

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FEWEST = 2  # people, and items, without which there is no interval
LEVEL = 0.975
Z = 1.959963984540054


UNDEFINED = Bounded()


def two_way_variance(added: Floats, person: Ints, item: Ints) -> float:
    """The variance of a figure from what each of n answers adds to its error; NaN with one person or one item.

    By chance the sum can be too small, even below 0: it is at least the smaller of that by person and that by item. The
    larger of the two would err on the wide side where answers of one person hardly hang together.
    """
    people, things = _sums(added, person), _sums(added, item)
    if len(people) < FEWEST or len(things) < FEWEST:
        return math.nan
    both = _sums(added, person * (int(item.max()) + 1) + item)
    by_person, by_item = _corrected(people), _corrected(things)
    return max(by_person + by_item - _corrected(both), min(by_person, by_item))


def freedom(share: Floats, person: Ints, item: Ints) -> float:
    """Degrees of freedom of such a variance: the effective number of people, or of items if there are fewer, less 1.

    share: (n,) of 0 or more, the share of each answer in the figure.
    """
    return max(min(bandit.effective_size(_sums(share, person)), bandit.effective_size(_sums(share, item))) - 1, 1.0)


def interval(value: float, variance: float, degrees: float, *, within: tuple[float, float] | None = None) -> Bounded:
    """The figure with Student's interval, cut to `within`; without one where the variance is not known or is 0."""
    if not math.isfinite(value) or not math.isfinite(variance) or variance <= 0:
        return Bounded(value)
    error = math.sqrt(variance)
    half = bandit.student_t_quantile(LEVEL, degrees) * error
    low, high = value - half, value + half
    if within is not None:
        low, high = max(low, within[0]), min(high, within[1])
    return Bounded(value, low, high, error)


def share_interval(share: float, variance: float, size: float) -> Bounded:
    """Wilson's interval of a share, by its effective number of answers: what its variance says, and `size` at most."""
    if not math.isfinite(share):
        return UNDEFINED
    share = min(1.0, max(0.0, share))  # Sums of weights are rounded.
    spread = share * (1 - share)
    n = size
    if math.isfinite(variance) and variance > 0 and spread > 0:
        n = min(size, spread / variance)
    if not n > 1:
        return Bounded(share)
    z = Z
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(spread / n + z * z / (4 * n * n))
    return Bounded(share, max(0.0, middle - half), min(1.0, middle + half), math.sqrt(spread / n))


def mean(values: Floats, weight: Floats, person: Ints, item: Ints) -> Bounded:
    """The weighted mean of n values with its interval by person and item."""
    total = float(weight.sum())
    if not len(values) or not total > 0:
        return UNDEFINED
    share = weight / total
    found = float(share @ values)
    added = share * (values - found)
    return interval(found, two_way_variance(added, person, item), freedom(share, person, item))


def kish(weight: Floats, group: Ints | None = None) -> float:
    """The effective number of answers with these weights, or of the groups that they make up."""
    return bandit.effective_size(weight if group is None else _sums(weight, group))


def _sums(values: Floats, group: Ints) -> Floats:
    _names, place = np.unique(group, return_inverse=True)
    return np.bincount(place.reshape(-1), weights=values).astype(np.float64)


def _corrected(sums: Floats) -> float:
    return float(len(sums) / (len(sums) - 1) * np.square(sums).sum()) if len(sums) > 1 else 0.0
