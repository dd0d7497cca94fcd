"""Studies whose questions are a sample themselves: made up, estimated as a study's are, with the truth next to it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

import bandit
from bandit import Estimate
from survey.services.results.estimates import study_figures
from survey.services.results.estimates.study_figures import StagePart

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
    parts: list[StagePart] = []
    values, first = [], []
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
        values.append((rng.random(at.size) < 1 / (1 + np.exp(-(logit[at] + ready[person])))).astype(np.float64))
        first.append(task[target[at]] == 0)
        parts.append(
            StagePart(
                stage=number + 1,
                role="sampled",
                names=tuple(stratum.name for stratum in drawn.strata),
                sizes=tuple(stratum.size for stratum in drawn.strata),
                slots=tuple(stratum.n for stratum in drawn.strata),
                universe_size=universe,
                stratum=drawn.stratum.astype(np.int64),
                cluster=person + number * people,
                probability=drawn.inclusion_probability,
                planned_probability=drawn.inclusion_probability,
                people=people,
                subjects=np.column_stack([target[at], evidence[at]]),
            )
        )
    made = {}
    for name, inside in (("all", None), ("task", first)):
        masks: list[NDArray[np.bool_] | None] = [None] * stages if inside is None else [*inside]
        rows = list(zip(parts, values, masks, strict=True))
        figure = study_figures.combine(
            parts,
            [study_figures.estimate(part, own, where=mask, share=True) for part, own, mask in rows],
            name="",
            title="",
            unit="share",
            naive=None,
            pooled=[part.stage_answers(own, inside=mask) for part, own, mask in rows] if inside is not None else (),
            share=True,
        )
        such = study_figures.superpopulation(figure, parts, values, masks, [None] * stages)
        assert figure.combined is not None and such is not None
        made[name] = Both(figure.combined, such)
    return made
