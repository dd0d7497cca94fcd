"""Several stages' estimates of one figure made into one. Numpy alone.

The weights are fixed by the designs and never by the answers: later probabilities depend on earlier answers, so one
weight from the sum of the stages' probabilities would be biased, and so would weights from estimated variances. Every
stage's own estimate is right on average given all that came before it; a fixed-weight mean of them is too.

A plan's weight is its information: slots divided by the design effects of unequal chances (Kish's) and of several
answers per person (Kish, Survey Sampling, 1965, section 8.2). How much a person's answers hang together is not known
when the plan is made, so that a fixed correlation is assumed; a wrong one costs width and never adds bias.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from bandit.effective import effective_size
from bandit.errors import DesignError
from bandit.estimate import Estimate, EstimateSample, estimate_of, satterthwaite
from bandit.student import fisher_f_upper_tail

CLUSTERING = 0.2  # assumed correlation of two answers of one person
MIN_TESTED = 30  # effective answers of a stage, below which it is not compared with others
MIN_PEOPLE = 10  # the same in people


@dataclass(frozen=True)
class Agreement:
    """Welch's test that all stages estimate the same: `p` is the chance of means at least this far apart if they do.

    `untested`: places (from 0) of the stages that are too small for it; the others are compared.
    """

    f: float
    degrees_of_freedom: tuple[float, float]
    p: float
    untested: tuple[int, ...] = ()


@dataclass(frozen=True)
class Combined:
    """The mean over stages, each stage's weight in it (0 for those left out), and whether the stages agree.

    `left_out`: places (from 0) of stages that say nothing about some pairs, since they give those pairs probability 0.
    `agreement` is None for a single stage, and where it is withheld; `withheld` then says why.
    """

    estimate: Estimate
    weights: tuple[float, ...]
    left_out: tuple[int, ...]
    agreement: Agreement | None
    withheld: str = ""


def plan_weight(
    *, sizes: Sequence[int], slots: Sequence[int], people: int | None = None, clustering: float = CLUSTERING
) -> float:
    """The effective size of a stratified stage's plan: its slots divided by their design effects.

    For different people that is N^2 / (sum of N_h^2 / n_h), Kish's. `people`: given if so many answer the slots, each
    an equal number of each stratum's as far as whole slots allow; their answers then correlate by `clustering`.

    `sizes`, `slots`: candidates and planned slots of each stratum. 0 if a stratum with candidates gets no slot.
    """
    if len(sizes) != len(slots) or not sizes or sum(sizes) < 1:
        raise DesignError(f"slots: {len(slots)} for {len(sizes)} strata with candidates; give one for each stratum")
    if any(n == 0 < size for size, n in zip(sizes, slots, strict=True)):
        return 0.0
    alone = sum(size**2 / n for size, n in zip(sizes, slots, strict=True) if size) / sum(sizes) ** 2
    if people is None:
        return 1 / alone
    _check_people(people, clustering)
    # The sum of squares of people's shares of the weight: 1 / people, and more where a stratum's slots do not go
    # round evenly.
    uneven = (
        sum(
            (size / n) ** 2 * (n / people % 1) * (1 - n / people % 1)
            for size, n in zip(sizes, slots, strict=True)
            if size
        )
        / sum(sizes) ** 2
    )
    shared = 1 / people + people * uneven
    return 1 / ((1 - clustering) * alone + clustering * max(shared, alone))


def kish_size(inclusion_probability: ArrayLike, *, people: int | None = None, clustering: float = CLUSTERING) -> float:
    """The same for a plan in which every slot has its own chance, shape (n,): Kish's effective size of all slots.

    With `people`, slots are dealt to so many people at random.
    """
    chance = np.asarray(inclusion_probability, dtype=np.float64)
    if chance.ndim != 1 or not chance.size or not ((chance > 0) & (chance <= 1)).all():
        raise DesignError("inclusion_probability: needs chances above 0 and at most 1, one for each slot")
    alone = 1 / effective_size(1 / chance)
    if people is None:
        return 1 / alone
    _check_people(people, clustering)
    shared = alone + (1 - alone) / people
    return 1 / ((1 - clustering) * alone + clustering * shared)


def _check_people(people: int, clustering: float) -> None:
    if people < 1 or not 0 <= clustering <= 1:
        raise DesignError(f"people, clustering: must be at least 1, and in 0..1, not {people} and {clustering}")


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
    weighted_estimates: list[tuple[float, Estimate]] = []
    for place, (estimate, weight) in enumerate(zip(estimates, plan_weights, strict=True), start=1):
        if weight == 0:
            continue
        if estimate is None or math.isnan(estimate.standard_error):
            raise DesignError(f"estimates: stage {place} of those given has no standard error; leave it out")
        weighted_estimates.append((weight, estimate))
    total = sum(weight for weight, _ in weighted_estimates)
    if not weighted_estimates:
        raise DesignError(
            "plan_weights: every stage gives some pair probability 0; no estimate for all of them is possible"
        )
    parts = [(weight / total, estimate) for weight, estimate in weighted_estimates]
    agreement, withheld = agreement_of(
        [estimate if weight else None for estimate, weight in zip(estimates, plan_weights, strict=True)]
    )
    return Combined(
        estimate=_mean(parts),
        weights=tuple(weight / total for weight in plan_weights),
        left_out=tuple(place for place, weight in enumerate(plan_weights) if weight == 0),
        agreement=agreement,
        withheld=withheld,
    )


def agreement_of(estimates: Sequence[Estimate | None]) -> tuple[Agreement | None, str]:
    """Whether the stages agree, by Welch's test; or why that cannot be said ("" for fewer than two stages).

    Only stages with an effective sample of `MIN_TESTED` and `MIN_PEOPLE` people are compared: the standard errors
    of smaller ones are too rough for the test to keep its level. None stands for a stage without an estimate.
    """
    places = [place for place, estimate in enumerate(estimates) if estimate is not None]
    if len(places) < 2:
        return None, ""
    large = [
        (place, estimate)
        for place, estimate in enumerate(estimates)
        if estimate is not None and estimate.effective_sample_size >= MIN_TESTED and estimate.n_clusters >= MIN_PEOPLE
    ]
    if len(large) < 2:
        return None, (
            f"{len(large)} of {len(places)} stages have an effective sample of {MIN_TESTED} and {MIN_PEOPLE} people"
        )
    if any(estimate.standard_error == 0 for _, estimate in large):
        return None, "in a stage nothing varies between the answers"
    untested = tuple(sorted({*places} - {place for place, _ in large}))
    return _welch([estimate for _, estimate in large], untested), ""


def _mean(parts: Sequence[tuple[float, Estimate]]) -> Estimate:
    variances = _variances(parts)
    rarer = [estimate.rarer for _, estimate in parts]
    sample = EstimateSample(
        n=sum(estimate.n for _, estimate in parts),
        n_clusters=sum(estimate.n_clusters for _, estimate in parts),
        effective_sample_size=1 / sum(part**2 / estimate.effective_sample_size for part, estimate in parts),
        weight_range=(
            min(estimate.weight_range[0] for _, estimate in parts),
            max(estimate.weight_range[1] for _, estimate in parts),
        ),
        rarer=None if None in rarer else sum(count for count in rarer if count is not None),
    )
    return estimate_of(
        sample,
        value=sum(part * estimate.value for part, estimate in parts),
        variance=sum(variances),
        degrees_of_freedom=satterthwaite(variances, [estimate.degrees_of_freedom for _, estimate in parts]),
    )


def _variances(parts: Sequence[tuple[float, Estimate]]) -> list[float]:
    """What each stage adds to the variance. A stage in which all answers are alike has the spread of the others'."""
    own = [estimate.standard_error**2 for _, estimate in parts]
    spread = [
        variance * estimate.effective_sample_size
        for variance, (_, estimate) in zip(own, parts, strict=True)
        if variance > 0
    ]
    if spread:
        least = min(spread)
        own = [
            variance or least / estimate.effective_sample_size
            for variance, (_, estimate) in zip(own, parts, strict=True)
        ]
    return [part**2 * variance for variance, (part, _) in zip(own, parts, strict=True)]


def _welch(estimates: Sequence[Estimate], untested: tuple[int, ...]) -> Agreement:
    """Welch's one-way analysis for unequal variances (Biometrika 38, 1951), on the stages' estimates."""
    k = len(estimates)
    precision = np.array([estimate.standard_error**-2 for estimate in estimates])
    value = np.array([estimate.value for estimate in estimates])
    freedom = np.array([estimate.degrees_of_freedom for estimate in estimates])
    middle = np.dot(precision, value) / precision.sum()
    between = float(np.dot(precision, (value - middle) ** 2)) / (k - 1)
    looseness = float(((1 - precision / precision.sum()) ** 2 / freedom).sum())
    f = between / (1 + 2 * (k - 2) / (k * k - 1) * looseness)
    freedoms = (k - 1.0, (k * k - 1) / (3 * looseness))
    return Agreement(f=f, degrees_of_freedom=freedoms, p=fisher_f_upper_tail(f, *freedoms), untested=untested)
