"""Weights from the people who answered to a population whose make-up is known. Numpy alone.

Post-stratification and raking give each person a weight, so that weighted people are made up like the population: every
group of a margin has its share. With one margin this is post-stratification; with several it is raking, which fits one
margin after the other until all hold (Deming and Stephan, Annals of Mathematical Statistics 11, 1940). A figure with
such weights is a calibrated estimator: to first order its error is that of what the margins do not explain (Deville
and Särndal, JASA 87, 1992), so that `unexplained` gives the values that a variance is computed from.

It makes people comparable on what the margins name and on nothing else: people who answer out of interest still do.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bandit.errors import DesignError

Floats = NDArray[np.float64]

ROUNDS = 1000
TOLERANCE = 1e-10  # of the largest weight
MOST_APART = 1e-6  # a group's share and its target, where they are called equal


@dataclass(frozen=True, eq=False)
class PopulationWeights:
    """A weight for each person, shape (n,), with mean 1.

    `design_effect`: Kish's, the factor by which unequal weights widen a variance of values that have nothing to do with
    them. `trimmed`: how many people have the largest weight that was allowed. `furthest`: the largest difference
    between a group's weighted share and its share of the population; above 0 only where weights are trimmed.
    """

    weights: Floats
    design_effect: float
    trimmed: int
    furthest: float


def rake(
    groups: Sequence[ArrayLike],
    shares: Sequence[ArrayLike],
    *,
    base: ArrayLike | None = None,
    trim: float | None = None,
) -> PopulationWeights:
    """
    Args:
        groups: for each margin the group of every person, as its place among the margin's groups, shape (n,).
        shares: for each margin the population's share of every group, above 0; they sum to 1.
        base: weights to begin with, above 0, shape (n,); without them all are 1.
        trim: no weight is above so many mean weights; above 1. The margins then hold as nearly as that allows.

    Raises:
        DesignError: shapes that do not fit, shares that do not sum to 1, a group with nobody in it, or margins that
            contradict each other.
    """
    placed = [np.asarray(group, dtype=np.int64) for group in groups]
    targets = [np.asarray(share, dtype=np.float64) for share in shares]
    if not placed or len(placed) != len(targets) or any(group.shape != placed[0].shape for group in placed):
        raise DesignError("groups, shares: give both for each margin, and a group for every person")
    n = placed[0].size
    for margin, (group, target) in enumerate(zip(placed, targets, strict=True)):
        _check(margin, group, target)
    weights = np.ones(n) if base is None else np.asarray(base, dtype=np.float64).copy()
    if weights.shape != (n,) or not (np.isfinite(weights).all() and (weights > 0).all()):
        raise DesignError("base: give every person a weight above 0")
    if trim is not None and not trim > 1:
        raise DesignError(f"trim: {trim:g} mean weights leave nobody room; take a number above 1")
    weights = _raked(weights * n / weights.sum(), placed, targets, None)
    if _furthest(weights, placed, targets) > MOST_APART:  # Before anything is trimmed, which moves shares too.
        raise DesignError(
            "shares: no weights give all margins their shares; groups of people are missing where they meet"
        )
    if trim is not None and weights.max() > trim:
        weights = _raked(weights, placed, targets, trim)
    furthest = _furthest(weights, placed, targets)
    return PopulationWeights(
        weights=weights,
        design_effect=float(n * np.dot(weights, weights) / weights.sum() ** 2),
        trimmed=0 if trim is None else int((weights >= trim * (1 - 1e-6)).sum()),
        furthest=furthest if furthest > MOST_APART else 0.0,
    )


def _raked(
    weights: Floats, groups: Sequence[NDArray[np.int64]], targets: Sequence[Floats], trim: float | None
) -> Floats:
    """One margin after the other, until nothing changes any more."""
    for _round in range(ROUNDS):
        before = weights
        for group, target in zip(groups, targets, strict=True):
            sums = np.bincount(group, weights=weights, minlength=target.size)
            weights = weights * (weights.size * target / sums)[group]
        if trim is not None:
            weights = _trimmed(weights, trim)
        if np.abs(weights - before).max() <= TOLERANCE * max(weights.max(), 1.0):
            break
    return weights


def _furthest(weights: Floats, groups: Sequence[NDArray[np.int64]], targets: Sequence[Floats]) -> float:
    """The largest difference between a group's weighted share and its share of the population."""
    return max(
        float(np.abs(np.bincount(group, weights=weights, minlength=target.size) / weights.size - target).max())
        for group, target in zip(groups, targets, strict=True)
    )


def _check(margin: int, group: NDArray[np.int64], target: Floats) -> None:
    if target.ndim != 1 or not (np.isfinite(target).all() and (target > 0).all()):
        raise DesignError(f"shares: margin {margin + 1} needs shares above 0")
    if abs(target.sum() - 1) > 1e-6:
        raise DesignError(f"shares: those of margin {margin + 1} sum to {target.sum():g} and not to 1")
    if group.size and (group.min() < 0 or group.max() >= target.size):
        raise DesignError(f"groups: margin {margin + 1} has {target.size} groups, numbered from 0")
    empty = np.flatnonzero(np.bincount(group, minlength=target.size) == 0)
    if empty.size:
        raise DesignError(f"groups: nobody is in group {empty[0]} of margin {margin + 1}, which has a share")


def _trimmed(weights: Floats, trim: float) -> Floats:
    """What is above the limit goes to all others in proportion, until nothing is above it."""
    for _round in range(weights.size):
        above = weights > trim * (1 + TOLERANCE)
        if not above.any():
            break
        below = weights < trim
        rest = weights.size - trim * (~below).sum()
        weights = np.where(below, weights * (rest / weights[below].sum()), trim)
    return weights


def unexplained(values: ArrayLike, groups: Sequence[ArrayLike], weights: ArrayLike) -> Floats:
    """What the margins do not explain of n values, by a weighted regression on their groups; shape (n,).

    Args:
        values: the values whose mean is the figure, or what each adds to it where it is a ratio; shape (n,).
        groups: of every value the group of its person in each margin, shape (n,).
        weights: of the values in the figure, above 0, shape (n,).
    """
    value, weight = np.asarray(values, dtype=np.float64), np.asarray(weights, dtype=np.float64)
    dummies = np.column_stack(
        [np.asarray(group)[:, None] == np.arange(np.max(group, initial=0) + 1)[None, :] for group in groups]
    ).astype(np.float64)
    root = np.sqrt(weight)
    coefficients, *_rest = np.linalg.lstsq(dummies * root[:, None], value * root, rcond=None)
    return np.asarray(value - dummies @ coefficients, dtype=np.float64)
