"""How a mean changes within people who answered twice. Numpy alone; next to `bandit.estimators`.

Of the people who answered on both occasions, the mean of each occasion is a ratio of sums over people, and the change
is the difference of the two ratios. Its variance is that of the people's linearised totals (Särndal, Swensson and
Wretman, Model Assisted Survey Sampling, 1992, section 5.6): each person's two answers stand in one term, so that what
a person has in common on both occasions falls out, as in a paired comparison.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bandit.clustered import clustered_variance
from bandit.errors import DesignError
from bandit.estimate import ROUNDING, Estimate, EstimateSample, estimate_of, satterthwaite


@dataclass(frozen=True, eq=False)
class Occasions:
    """The answers of people on two occasions, as `paired_change` takes them."""

    first: ArrayLike
    first_weight: ArrayLike
    first_person: ArrayLike
    second: ArrayLike
    second_weight: ArrayLike
    second_person: ArrayLike
    first_per: ArrayLike | None = None
    second_per: ArrayLike | None = None


@dataclass(frozen=True, eq=False)
class _Linearised:
    """A change, with the linearised total of each of its people, in their order; and the weights, each with a mean of
    1 on its occasion."""

    value: float
    people: NDArray[np.int64]
    totals: NDArray[np.float64]
    weights: NDArray[np.float64]
    scale: float

    @property
    def variance(self) -> float:
        return clustered_variance(self.totals, self.people)


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
    linearised = _linearised(
        Occasions(first, first_weight, first_person, second, second_weight, second_person, first_per, second_per)
    )
    if linearised is None:
        return None
    sample = EstimateSample.of(linearised.weights, n_clusters=linearised.people.size)
    freedom = float(max(linearised.people.size - 1, 1))
    value = _without_rounding(linearised.value, linearised.scale)
    return estimate_of(sample, value=value, variance=linearised.variance, degrees_of_freedom=freedom)


def paired_change_difference(low: Occasions, high: Occasions) -> Estimate | None:
    """The change within the people of one group minus that within the people of another: `high` minus `low`.

    The groups may share people, as where each answered some items under either level: then a person's totals of both
    stand in one term. Groups without a person in common are independent.

    Returns:
        The difference in the units of the answers. Student's t interval, of people - 1 degrees of freedom where the
        groups share people, else of Welch's. None where either change is None. The standard error is NaN where a
        group has one person.

    Raises:
        DesignError: as `paired_change`.

    Source: as `paired_change`; Welch (1947), Biometrika 34, 28-35, for the degrees of freedom.
    """
    linearised, other = _linearised(low), _linearised(high)
    if linearised is None or other is None:
        return None
    everybody = np.union1d(linearised.people, other.people)
    if everybody.size == linearised.people.size + other.people.size:
        variance = linearised.variance + other.variance
        freedom = satterthwaite(
            [part.variance for part in (linearised, other)],
            [max(part.people.size - 1, 1) for part in (linearised, other)],
        )
    else:
        totals = np.zeros(everybody.size)
        totals[np.searchsorted(everybody, other.people)] += other.totals
        totals[np.searchsorted(everybody, linearised.people)] -= linearised.totals
        few = min(linearised.people.size, other.people.size) < 2
        variance = math.nan if few else clustered_variance(totals, everybody)
        freedom = float(max(everybody.size - 1, 1))
    sample = EstimateSample.of(np.concatenate([linearised.weights, other.weights]), n_clusters=everybody.size)
    value = _without_rounding(other.value - linearised.value, max(linearised.scale, other.scale))
    return estimate_of(sample, value=value, variance=variance, degrees_of_freedom=freedom)


def _without_rounding(value: float, scale: float) -> float:
    """0 for what is only the rounding of floats."""
    return 0.0 if abs(value) <= ROUNDING * scale else value


def _linearised(occasions: Occasions) -> _Linearised | None:
    occasion, other = (
        _occasion(occasions.first, occasions.first_weight, occasions.first_person, occasions.first_per),
        _occasion(occasions.second, occasions.second_weight, occasions.second_person, occasions.second_per),
    )
    both = np.intersect1d(occasion[3], other[3])
    if not both.size:
        return None
    totals = np.zeros(both.size)
    means, used = [], []
    for sign, (values, weight, per, person) in ((-1.0, occasion), (1.0, other)):
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
    scale = max(1.0, *map(abs, means))
    return _Linearised(means[1] - means[0], both, totals, np.concatenate(used), scale)


def _occasion(
    values: ArrayLike, weight: ArrayLike, person: ArrayLike, per: ArrayLike | None
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    answers = np.asarray(values, dtype=np.float64)
    weights = np.asarray(weight, dtype=np.float64)
    below = np.ones_like(answers) if per is None else np.asarray(per, dtype=np.float64)
    people = np.asarray(person, dtype=np.int64)
    if answers.ndim != 1 or not answers.shape == weights.shape == below.shape == people.shape:
        raise DesignError("answers, weights and people of an occasion must be lists of the same length")
    if not (np.isfinite(answers).all() and np.isfinite(weights).all() and np.isfinite(below).all()):
        raise DesignError("answers and weights must be finite numbers")
    if (weights < 0).any():
        raise DesignError("weights must be 0 or more")
    return answers, weights, below, people
