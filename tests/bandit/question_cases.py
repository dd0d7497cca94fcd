"""Studies whose questions are a sample themselves: made up, estimated with `bandit`, with the truth beside."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

import bandit
from bandit import Estimate

ITEMS, POOL, PAIR_SD, PERSON_SD = 15, 12_000, 0.5, 1.0
# By task of the target; questions are spread evenly over the tasks.
TASKS = (-0.9, -0.6, -0.3, 0.0)


@cache
def truth(target_sd: float, evidence_sd: float, task: int | None = None) -> float:
    """The share that changes over all questions like these, all their pairs, and all people."""
    grid = np.linspace(-6, 6, 2001)
    weight = np.exp(-(grid**2) / 2)
    spread = float(np.sqrt(target_sd**2 + evidence_sd**2 + PAIR_SD**2 + PERSON_SD**2))
    wanted = TASKS if task is None else (TASKS[task],)
    return float(
        np.mean([np.average(1 / (1 + np.exp(-(middle + spread * grid))), weights=weight) for middle in wanted])
    )


@dataclass(frozen=True)
class Both:
    """The estimate for these questions, and the same for such questions."""

    these: Estimate
    such: Estimate


def study(
    rng: np.random.Generator,
    *,
    questions: int,
    target_sd: float = 0.8,
    evidence_sd: float = 0.6,
    people: int = 88,
    stages: int = 4,
) -> dict[str, Both]:
    """One study with a bank of its own: overall, and by the target's first task."""
    task = np.arange(questions) % len(TASKS)
    as_target = target_sd * rng.normal(size=questions) + np.array(TASKS)[task]
    as_evidence = evidence_sd * rng.normal(size=questions)
    found: dict[str, list[Estimate]] = {"all": [], "task": []}
    weights: list[float] = []
    own: dict[str, list[tuple[NDArray[np.float64], NDArray[np.float64]]]] = {"all": [], "task": []}
    who, about = [], []
    for number in range(stages):
        universe = 2 * questions * (questions - 1)
        pool = min(POOL, universe)
        pairs = rng.choice(universe, pool, replace=False) // 2
        target = pairs // (questions - 1)
        evidence = (target + 1 + pairs % (questions - 1)) % questions
        logit = as_target[target] + as_evidence[evidence] + PAIR_SD * rng.normal(size=pool)
        score = logit + rng.normal(size=pool)
        design = bandit.EpsilonGreedy(epsilon=0.1, top_fraction=0.1) if number else bandit.Uniform()
        drawn = bandit.draw(
            design=design, n=people * ITEMS, scores=score if number else None, n_candidates=pool, rng=rng
        )
        person = np.repeat(np.arange(people), ITEMS)
        ready = PERSON_SD * rng.normal(size=people)
        at = drawn.selected
        changed = (rng.random(at.size) < 1 / (1 + np.exp(-(logit[at] + ready[person])))).astype(np.float64)
        sizes = [stratum.size for stratum in drawn.strata]
        weights.append(bandit.plan_weight(sizes=sizes, slots=[stratum.n for stratum in drawn.strata]))
        weight = (np.array(sizes) / np.bincount(drawn.stratum))[drawn.stratum]
        first = task[target[at]] == 0
        for name, domain in (("all", None), ("task", first)):
            found[name].append(
                bandit.stratified_mean(
                    values=changed,
                    stratum=drawn.stratum,
                    sizes=sizes,
                    cluster=person,
                    domain=domain,
                    universe_size=universe,
                    share=True,
                )
            )
            own[name].append(bandit.error_contributions(values=changed, weight=weight, domain=domain))
        who.append(person + number * people)
        about.append(np.column_stack([target[at], evidence[at]]))
    made = {}
    for name, estimates in found.items():
        combined = bandit.combine_stages(estimates=estimates, plan_weights=weights)
        errors, shares = (
            np.concatenate([one[part] * weight for one, weight in zip(own[name], combined.weights, strict=True)])
            for part in (0, 1)
        )
        such = bandit.for_such_questions(
            combined.estimate,
            contributions=errors,
            shares=shares,
            cluster=np.concatenate(who),
            subjects=np.concatenate(about),
        )
        made[name] = Both(combined.estimate, such)
    return made
