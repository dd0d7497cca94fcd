"""An interval for a mean or ratio that a few answers decide, such as a log loss. Numpy alone.

Student's t supposes that the variance between people is known as well as that of normal contributions is. Where a few
answers are far out, as a log loss of beliefs near certainty has them, it is known much less well, and most samples
have it too small: the interval then holds too seldom.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from bandit.errors import DesignError
from bandit.estimate import Estimate

MIN_FREEDOM = 3.0


def widen_for_far_answers(
    estimate: Estimate, *, contributions: ArrayLike, shares: ArrayLike, cluster: ArrayLike
) -> Estimate:
    """The same mean with an interval that allows for a few answers that decide it.

    `estimate`: of all stages together, between people. `contributions` (n,): what each answer of all stages adds to its
    error, and `shares` (n,), its share of the mean (`bandit.error_contributions`, each times the stage's weight).
    `cluster` (n,): the people, alike only where they are the same person.

    Degrees of freedom are Satterthwaite's with the fourth moments that the people's sums d of contributions have: 2
    (sum of d^2)^2 / (sum of d^4 - (sum of d^2)^2 / P), P people, at least 3, and never more than those of the estimate.
    For normal sums that is about P. The standard error grows by the ratio of the jackknife's to the linearised one, the
    root of sum of (d / (1 - h))^2 over sum of d^2, h a person's share: each person pulls the mean towards
    themselves (Bell and McCaffrey, Survey Methodology 28, 2002). The same estimate where nothing varies. Raises
    DesignError where arrays have different lengths, or one person has everything.
    """
    own, part = np.asarray(contributions, dtype=np.float64), np.asarray(shares, dtype=np.float64)
    who = np.asarray(cluster)
    if not own.shape == part.shape == who.shape or own.ndim != 1:
        raise DesignError(
            f"contributions, shares, cluster: need one number of each for every answer, not {own.shape}, {part.shape} "
            f"and {who.shape}"
        )
    used = part != 0
    _, person = np.unique(who[used], return_inverse=True)
    sums, pull = np.bincount(person, weights=own[used]), np.bincount(person, weights=part[used])
    if sums.size < 2:
        raise DesignError(f"cluster: answers of {sums.size} people; an interval needs at least 2")
    second, fourth = float((sums**2).sum()), float((sums**4).sum())
    if not second > 0 or not estimate.standard_error > 0:
        return estimate
    grown = math.sqrt(float(((sums / (1 - pull)) ** 2).sum()) / second)
    excess = fourth - second**2 / sums.size
    freedom = max(2 * second**2 / excess, MIN_FREEDOM) if excess > 0 else math.inf
    return estimate.with_error(grown * estimate.standard_error, min(estimate.degrees_of_freedom, freedom))
