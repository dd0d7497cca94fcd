"""How a mean changes within people who answered twice. Numpy alone; beside `bandit.estimators`.

Of the people who answered on both occasions, the mean of each occasion is a ratio of sums over people, and the change
is the difference of the two ratios. Its variance is that of the people's linearised totals (Särndal, Swensson and
Wretman, Model Assisted Survey Sampling, 1992, section 5.6): each person's two answers stand in one term, so that what
a person has in common on both occasions falls out, as in a paired comparison.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bandit.errors import DesignError
from bandit.estimate import ROUNDING, Estimate, EstimateSample, estimate_of


def paired_change(
    *,
    first: ArrayLike,
    first_weight: ArrayLike,
    first_person: ArrayLike,
    second: ArrayLike,
    second_weight: ArrayLike,
    second_person: ArrayLike,
    first_per: ArrayLike | None = None,
    second_per: ArrayLike | None = None,
) -> Estimate | None:
    """The mean of the second occasion minus that of the first, over the people who answered on both.

    Args:
        first, second: the answers of the two occasions, shapes (n,) and (m,).
        first_weight, second_weight: their weights, at least 0, in any unit; the design's, or ones. Same shapes.
        first_person, second_person: whose each answer is, as numbers. Same shapes. Who is in one alone is left out.
        first_per, second_per: make each mean the ratio of the sum of the answers to the sum of these.

    Returns:
        The change in the units of the answers, with Student's t interval of people - 1 degrees of freedom. `n` counts
        the answers of both occasions, `n_clusters` the people. None where nobody answered on both, or a mean would be
        divided by 0. With one person the standard error is NaN.

    Raises:
        DesignError: shapes that do not fit, answers that are not finite, or negative weights.

    Source: Särndal, Swensson and Wretman (1992), section 5.6, equation 5.6.10, for a difference of two ratios.
    """
    one, other = (
        _occasion(first, first_weight, first_person, first_per),
        _occasion(second, second_weight, second_person, second_per),
    )
    both = np.intersect1d(one[3], other[3])
    if not both.size:
        return None
    totals = np.zeros(both.size)
    means, used = [], []
    for sign, (values, weight, per, person) in ((-1.0, one), (1.0, other)):
        inside = np.isin(person, both)
        place = np.searchsorted(both, person[inside])
        above = np.bincount(place, weights=(weight * values)[inside], minlength=both.size)
        below = np.bincount(place, weights=(weight * per)[inside], minlength=both.size)
        if not below.sum() > 0:
            return None
        mean = above.sum() / below.sum()
        totals += sign * (above - mean * below) / below.sum()
        means.append(float(mean))
        used.append(weight[inside] / weight[inside].mean())
    people = both.size
    variance = float(people / (people - 1) * np.dot(totals, totals)) if people > 1 else math.nan
    value = means[1] - means[0]
    if abs(value) <= ROUNDING * max(1.0, *map(abs, means)):
        value = 0.0  # Only the rounding of floats.
    sample = EstimateSample.of(np.concatenate(used), n_clusters=people)
    return estimate_of(sample, value=value, variance=variance, degrees_of_freedom=float(max(people - 1, 1)))


def _occasion(
    values: ArrayLike, weight: ArrayLike, person: ArrayLike, per: ArrayLike | None
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    given = np.asarray(values, dtype=np.float64)
    weights = np.asarray(weight, dtype=np.float64)
    below = np.ones_like(given) if per is None else np.asarray(per, dtype=np.float64)
    people = np.asarray(person, dtype=np.int64)
    if given.ndim != 1 or not given.shape == weights.shape == below.shape == people.shape:
        raise DesignError("answers, weights and people of an occasion must be lists of the same length")
    if not (np.isfinite(given).all() and np.isfinite(weights).all() and np.isfinite(below).all()):
        raise DesignError("answers and weights must be finite numbers")
    if (weights < 0).any():
        raise DesignError("weights must be 0 or more")
    return given, weights, below, people
