"""Several stages' estimates of one figure made into one. Numpy alone.

The weights are fixed by the designs and never by the answers: later probabilities depend on earlier answers, so one
weight from the sum of the stages' probabilities would be biased, and so would weights from estimated variances. Every
stage's own estimate is right on average given all that came before it; a fixed-weight mean of them is too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from bandit.errors import DesignError
from bandit.estimators import Estimate, interval_of
from bandit.student import fisher_f_upper_tail


@dataclass(frozen=True)
class Agreement:
    """Welch's test that all stages estimate the same: `p` is the chance of means at least this far apart if they do."""

    f: float
    degrees_of_freedom: tuple[float, float]
    p: float


@dataclass(frozen=True)
class Combined:
    """The mean over stages, each stage's weight in it (0 for those left out), and whether the stages agree.

    `left_out`: places (from 0) of stages that say nothing about some pairs, since they give those pairs probability 0.
    `agreement` is None for a single stage and where a stage's answers do not vary.
    """

    estimate: Estimate
    weights: tuple[float, ...]
    left_out: tuple[int, ...]
    agreement: Agreement | None


def plan_weight(*, sizes: Sequence[int], slots: Sequence[int]) -> float:
    """The effective size of a stratified stage's plan: its slots divided by Kish's design effect.

    That is N^2 / (sum of N_h^2 / n_h).

    `sizes`, `slots`: candidates and planned slots of each stratum. 0 if a stratum with candidates gets no slot.
    """
    if len(sizes) != len(slots) or not sizes or sum(sizes) < 1:
        raise DesignError(f"slots: {len(slots)} for {len(sizes)} strata with candidates; give one for each stratum")
    if any(n == 0 < size for size, n in zip(sizes, slots, strict=True)):
        return 0.0
    return sum(sizes) ** 2 / sum(size**2 / n for size, n in zip(sizes, slots, strict=True) if size)


def kish_size(inclusion_probability: ArrayLike) -> float:
    """The same for a plan in which every slot has its own chance, shape (n,): Kish's effective size of all slots."""
    chance = np.asarray(inclusion_probability, dtype=np.float64)
    if chance.ndim != 1 or not chance.size or not ((chance > 0) & (chance <= 1)).all():
        raise DesignError("inclusion_probability: needs chances above 0 and at most 1, one for each slot")
    weight = 1 / chance
    return float(weight.sum() ** 2 / np.dot(weight, weight))


def combine_stages(*, estimates: Sequence[Estimate | None], plan_weights: Sequence[float]) -> Combined:
    """The mean of the stages' estimates with weights in proportion to `plan_weights`, which the plans fix.

    An estimate may be None for a stage with weight 0. Respondents take part in one stage only, so variances add; the
    degrees of freedom are Welch and Satterthwaite's. Raises DesignError if no stage is left, if a stage with a weight
    has no estimate, or has answers of one respondent only.
    """
    if len(estimates) != len(plan_weights):
        raise DesignError(f"plan_weights: {len(plan_weights)} for {len(estimates)} stages; give one for each stage")
    if any(not (weight >= 0 and math.isfinite(weight)) for weight in plan_weights):
        raise DesignError("plan_weights: must be numbers of at least 0")
    kept: list[tuple[float, Estimate]] = []
    for place, (estimate, weight) in enumerate(zip(estimates, plan_weights, strict=True), start=1):
        if weight == 0:
            continue
        if estimate is None or math.isnan(estimate.standard_error):
            raise DesignError(f"estimates: stage {place} of those given has no standard error; leave it out")
        kept.append((weight, estimate))
    total = sum(weight for weight, _ in kept)
    if not kept:
        raise DesignError(
            "plan_weights: every stage gives some pair probability 0; no estimate for all of them is possible"
        )
    parts = [(weight / total, estimate) for weight, estimate in kept]
    return Combined(
        estimate=_mean(parts),
        weights=tuple(weight / total for weight in plan_weights),
        left_out=tuple(place for place, weight in enumerate(plan_weights) if weight == 0),
        agreement=_agreement([estimate for _, estimate in parts]),
    )


def _mean(parts: Sequence[tuple[float, Estimate]]) -> Estimate:
    value = sum(part * estimate.value for part, estimate in parts)
    variances = [(part * estimate.standard_error) ** 2 for part, estimate in parts]
    error = math.sqrt(sum(variances))
    freedom = float(sum(estimate.degrees_of_freedom for _, estimate in parts))
    if error > 0:
        freedom = sum(variances) ** 2 / sum(
            variance**2 / estimate.degrees_of_freedom for variance, (_, estimate) in zip(variances, parts, strict=True)
        )
    kish = 1 / sum(part**2 / estimate.effective_sample_size for part, estimate in parts)
    rarer = [estimate.rarer for _, estimate in parts]
    share = all(count is not None for count in rarer)
    interval, method = interval_of(
        value=value, standard_error=error, degrees_of_freedom=freedom, kish=kish, share=share
    )
    return Estimate(
        value=value,
        standard_error=error,
        degrees_of_freedom=freedom,
        interval=interval,
        n=sum(estimate.n for _, estimate in parts),
        n_clusters=sum(estimate.n_clusters for _, estimate in parts),
        effective_sample_size=kish,
        weight_range=(
            min(estimate.weight_range[0] for _, estimate in parts),
            max(estimate.weight_range[1] for _, estimate in parts),
        ),
        rarer=sum(count for count in rarer if count is not None) if share else None,
        method=method,
    )


def _agreement(estimates: Sequence[Estimate]) -> Agreement | None:
    """Welch's one-way analysis for unequal variances (Biometrika 38, 1951), on the stages' estimates."""
    k = len(estimates)
    if k < 2 or any(estimate.standard_error == 0 for estimate in estimates):
        return None
    precision = np.array([estimate.standard_error**-2 for estimate in estimates])
    value = np.array([estimate.value for estimate in estimates])
    freedom = np.array([estimate.degrees_of_freedom for estimate in estimates])
    middle = np.dot(precision, value) / precision.sum()
    between = float(np.dot(precision, (value - middle) ** 2)) / (k - 1)
    looseness = float(((1 - precision / precision.sum()) ** 2 / freedom).sum())
    f = between / (1 + 2 * (k - 2) / (k * k - 1) * looseness)
    freedoms = (k - 1.0, (k * k - 1) / (3 * looseness))
    return Agreement(f=f, degrees_of_freedom=freedoms, p=fisher_f_upper_tail(f, *freedoms))
