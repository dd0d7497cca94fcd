"""Studies in which people leave: made up, estimated with `bandit`, with the truth beside. For laws and benchmarks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import bandit
from bandit import Estimate

ITEMS, SIZES = 15, (1200, 10_800)
# A top tenth that beliefs change after more often, as a predictor finds it, and the rest: mean and spread in logits.
LOGITS = ((0.6, 0.7), (-0.7, 0.9))
PERSON_SD = 1.0


@dataclass(frozen=True)
class Leaving:
    """When people leave: the hazard after (or instead of) a change, and otherwise."""

    changed: float = 0.02
    otherwise: float = 0.02
    instead: bool = False


NOBODY_MORE = Leaving(0.05, 0.05)
AFTER_A_CHANGE = Leaving(0.15, 0.02)
INSTEAD = Leaving(0.15, 0.02, instead=True)


def truth() -> float:
    """The share of all items and all people that changes."""
    grid = np.linspace(-6, 6, 2001)
    weight = np.exp(-(grid**2) / 2)
    shares = [
        float(np.average(1 / (1 + np.exp(-(m + np.hypot(s, PERSON_SD) * grid))), weights=weight)) for m, s in LOGITS
    ]
    return float(np.average(shares, weights=SIZES))


@dataclass(frozen=True, eq=False)
class Stage:
    """What a stage's people were given, by person and item (people, ITEMS), and how many items each answered."""

    stratum: NDArray[np.int64]
    changed: NDArray[np.float64]
    answered: NDArray[np.int64]
    slots: tuple[int, int]


def stage(rng: np.random.Generator, people: int, leaving: Leaving, *, uniform: bool) -> Stage:
    n = people * ITEMS
    rest = round(n * (0.9 if uniform else 0.1))
    label = rng.permutation(np.repeat([0, 1], [n - rest, rest])).reshape(people, ITEMS)
    middle, spread = (np.array([one[at] for one in LOGITS])[label] for at in (0, 1))
    logit = middle + spread * rng.normal(size=label.shape) + PERSON_SD * rng.normal(size=(people, 1))
    changed = (rng.random(label.shape) < 1 / (1 + np.exp(-logit))).astype(np.float64)
    leaves = rng.random(label.shape) < np.where(changed > 0, leaving.changed, leaving.otherwise)
    first = np.where(leaves.any(axis=1), leaves.argmax(axis=1), ITEMS)
    answered = first if leaving.instead else np.minimum(first + 1, ITEMS)
    return Stage(label, changed, answered, (n - rest, rest))


@dataclass(frozen=True)
class Study:
    """The estimates of one study. `test` has the p of leaving on the last answer."""

    plain: Estimate
    stayed: Estimate
    bounds: tuple[float, float]
    worst: tuple[float, float]
    test: float | None


def study(
    rng: np.random.Generator, leaving: Leaving, *, people: int = 88, stages: int = 4, odds_ratio: float = 2.0
) -> Study:
    made = [stage(rng, people, leaving, uniform=number == 0) for number in range(stages)]
    there = [np.arange(ITEMS) < one.answered[:, None] for one in made]
    person = [
        np.broadcast_to(np.arange(people)[:, None] + place * people, one.shape) for place, one in enumerate(there)
    ]
    number = [np.broadcast_to(np.arange(1, ITEMS + 1), one.shape) for one in there]
    left = [(at == one.answered[:, None]) & (at < ITEMS) for one, at in zip(made, number, strict=True)]

    def flat(arrays: Sequence[NDArray]) -> NDArray:
        return np.concatenate([one[mask] for one, mask in zip(arrays, there, strict=True)])

    value, who, at, gone = (flat(one) for one in ([one.changed for one in made], person, number, left))
    of_stage = np.repeat(np.arange(stages), [one.sum() for one in there])
    risk = at < ITEMS
    test = bandit.leaving_test(left=gone[risk], value=value[risk], stratum=(of_stage * ITEMS + at)[risk])
    chance = bandit.staying_chances(
        value=value, sitting=who, number=at, left=gone, known=risk, cluster=who, rng=np.random.default_rng(1)
    )
    found: dict[str, list[Estimate]] = {}
    for place, (one, mask) in enumerate(zip(made, there, strict=True)):
        common = {
            "values": one.changed[mask],
            "stratum": one.stratum[mask],
            "sizes": SIZES,
            "cluster": person[place][mask],
            "share": True,
        }
        lost = {"missing_stratum": one.stratum[~mask], "missing_cluster": person[place][~mask]}
        near = bandit.bounds(**common, **lost, odds_ratio=odds_ratio)
        far = bandit.bounds(**common, **lost, odds_ratio=np.inf)
        for name, estimate in (
            ("plain", bandit.stratified_mean(**common)),
            ("stayed", bandit.stratified_mean(**common, staying=chance[of_stage == place])),
            ("lower", near.lower),
            ("upper", near.upper),
            ("lowest", far.lower),
            ("highest", far.upper),
        ):
            found.setdefault(name, []).append(estimate)
    weights = [bandit.plan_weight(sizes=SIZES, slots=one.slots) for one in made]
    whole = {
        name: bandit.combine_stages(estimates=estimates, plan_weights=weights).estimate
        for name, estimates in found.items()
    }
    return Study(
        plain=whole["plain"],
        stayed=whole["stayed"],
        bounds=(whole["lower"].interval[0], whole["upper"].interval[1]),
        worst=(whole["lowest"].interval[0], whole["highest"].interval[1]),
        test=test.p,
    )
