"""Studies in which people leave: made up, estimated as a study's are, with the truth next to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import bandit
from bandit import Estimate, GivenItems
from survey.services.results.estimates import study_figures
from survey.services.results.estimates.study_figures import StagePart, StudyFigure, Unanswered

ITEMS, SIZES = 15, (1200, 10_800)
# A top tenth that beliefs change after more often, as a predictor finds it, and the rest: mean and spread in logits.
LOGITS = ((0.6, 0.7), (-0.7, 0.9))
# How much of the top and of the rest is of one task. It changes beliefs as often as the others of its stratum.
TASK = (0.6, 0.15)
PERSON_SD = 1.0


@dataclass(frozen=True)
class Leaving:
    """When people leave: the hazard after (or instead of) a change, and otherwise; or `by_trait` that of people who
    change more easily than most, whatever they have just answered, and that of the others."""

    changed: float = 0.02
    otherwise: float = 0.02
    instead: bool = False
    by_trait: bool = False


NOBODY_MORE = Leaving(0.05, 0.05)
AFTER_A_CHANGE = Leaving(0.15, 0.02)
INSTEAD = Leaving(0.15, 0.02, instead=True)
BY_TRAIT = Leaving(0.15, 0.02, by_trait=True)


def truth(*, of_task: bool = False) -> float:
    """The share that changes, of all items or of the task's, and all people."""
    grid = np.linspace(-6, 6, 2001)
    weight = np.exp(-(grid**2) / 2)
    shares = [
        float(np.average(1 / (1 + np.exp(-(m + np.hypot(s, PERSON_SD) * grid))), weights=weight)) for m, s in LOGITS
    ]
    sizes = np.array(SIZES) * (np.array(TASK) if of_task else 1)
    return float(np.average(shares, weights=sizes))


@dataclass(frozen=True, eq=False)
class Stage:
    """What a stage's people were given, by person and item (people, ITEMS), and how many items each answered."""

    stratum: NDArray[np.int64]
    of_task: NDArray[np.bool_]
    changed: NDArray[np.float64]
    answered: NDArray[np.int64]
    slots: tuple[int, int]


def stage(rng: np.random.Generator, people: int, leaving: Leaving, *, uniform: bool) -> Stage:
    n = people * ITEMS
    rest = round(n * (0.9 if uniform else 0.1))
    label = rng.permutation(np.repeat([0, 1], [n - rest, rest])).reshape(people, ITEMS)
    middle, spread = (np.array([logit[at] for logit in LOGITS])[label] for at in (0, 1))
    logit = middle + spread * rng.normal(size=label.shape)
    readiness = PERSON_SD * rng.normal(size=(people, 1))
    logit += readiness
    changed = (rng.random(label.shape) < 1 / (1 + np.exp(-logit))).astype(np.float64)
    more = np.broadcast_to(readiness > 0, label.shape) if leaving.by_trait else changed > 0
    leaves = rng.random(label.shape) < np.where(more, leaving.changed, leaving.otherwise)
    first = np.where(leaves.any(axis=1), leaves.argmax(axis=1), ITEMS)
    answered = first if leaving.instead else np.minimum(first + 1, ITEMS)
    of_task = rng.random(label.shape) < np.array(TASK)[label]
    return Stage(label, of_task, changed, answered, (n - rest, rest))


@dataclass(frozen=True)
class Study:
    """The estimates of one study, over all items and inside one task. `test` has the p of leaving on the last answer,
    None where it is withheld."""

    everything: StudyFigure
    task: StudyFigure
    test: float | None


def study(
    rng: np.random.Generator, leaving: Leaving, *, people: int = 88, stages: int = 4, odds_ratio: float = 2.0
) -> Study:
    made = [stage(rng, people, leaving, uniform=number == 0) for number in range(stages)]
    there = [np.arange(ITEMS) < stage.answered[:, None] for stage in made]
    person = [
        np.broadcast_to(np.arange(people)[:, None] + place * people, mask.shape) for place, mask in enumerate(there)
    ]
    number = [np.broadcast_to(np.arange(1, ITEMS + 1), mask.shape) for mask in there]
    left = [(at == stage.answered[:, None]) & (at < ITEMS) for stage, at in zip(made, number, strict=True)]

    def flat(arrays: Sequence[NDArray]) -> NDArray:
        return np.concatenate([array[mask] for array, mask in zip(arrays, there, strict=True)])

    value, who, at, gone = (flat(array) for array in ([stage.changed for stage in made], person, number, left))
    of_stage = np.repeat(np.arange(stages), [mask.sum() for mask in there])
    risk = at < ITEMS
    test = bandit.leaving_test(left=gone[risk], value=value[risk], stratum=(of_stage * ITEMS + at)[risk])
    chance = bandit.staying_chances(
        value=value, sitting=who, number=at, left=gone, known=risk, cluster=who, rng=np.random.default_rng(1)
    )
    parts = [
        StagePart(
            stage=place + 1,
            role="sampled",
            names=("top", "rest"),
            sizes=SIZES,
            slots=stage.slots,
            universe_size=None,
            stratum=stage.stratum[mask],
            cluster=person[place][mask],
            probability=np.ones(mask.sum()),
            planned_probability=np.ones(1),
            people=people,
            staying=chance[of_stage == place],
            unanswered=Unanswered(
                stratum=stage.stratum[~mask],
                cluster=person[place][~mask],
                probability=np.ones((~mask).sum()),
                divisions={},
            ),
        )
        for place, (stage, mask) in enumerate(zip(made, there, strict=True))
    ]
    values = [stage.changed[mask] for stage, mask in zip(made, there, strict=True)]
    inside = [stage.of_task[mask] for stage, mask in zip(made, there, strict=True)]
    lost = [stage.of_task[~mask] for stage, mask in zip(made, there, strict=True)]
    return Study(
        everything=_figure(parts, values, None, None, odds_ratio),
        task=_figure(parts, values, inside, lost, odds_ratio),
        test=test.p,
    )


def plain_of(stages: Sequence[GivenItems], plan_weights: Sequence[float] = (1.0,), *, share: bool = False) -> Estimate:
    """The estimate from the answers alone, of what bounds are to be made for."""
    answers = [
        bandit.StageAnswers(
            values=stage.values,
            stratum=stage.stratum,
            sizes=stage.sizes,
            cluster=stage.cluster,
            inside=None if stage.domain is None else np.asarray(stage.domain, dtype=bool),
            universe_size=stage.universe_size,
            item=stage.item,
            probability=None if stage.weight is None else 1 / np.asarray(stage.weight, dtype=np.float64),
        )
        for stage in stages
    ]
    return bandit.pooled_mean(stages=answers, plan_weights=plan_weights, share=share)


def bounds(*, stages: Sequence[GivenItems], **options: Any) -> bandit.Bounds:
    """`bandit.bounds` next to that estimate."""
    known = {name: options[name] for name in ("plan_weights", "share") if name in options}
    return bandit.bounds(stages=stages, plain=plain_of(stages, **known), **options)


def difference_of_levels(rng: np.random.Generator, first: Leaving, second: Leaving, *, people: int) -> StudyFigure:
    """One uniform stage whose people have one of two levels, under which they leave in different ways and change
    beliefs alike: the second level minus the first."""
    made = [stage(rng, people // 2, leaving, uniform=True) for leaving in (first, second)]
    there = np.concatenate([np.arange(ITEMS) < stage.answered[:, None] for stage in made])
    person = np.broadcast_to(np.arange(people)[:, None], there.shape)
    number = np.broadcast_to(np.arange(1, ITEMS + 1), there.shape)
    left = number == np.concatenate([stage.answered for stage in made])[:, None]
    level = person >= people // 2
    values, label = (np.concatenate([getattr(stage, name) for stage in made]) for name in ("changed", "stratum"))
    chance = bandit.staying_chances(
        value=values[there],
        sitting=person[there],
        number=number[there],
        left=(left & (number < ITEMS))[there],
        known=number[there] < ITEMS,
        cluster=person[there],
        rng=np.random.default_rng(1),
        levels=level[there][:, None],
    )
    part = StagePart(
        stage=1,
        role="sampled",
        names=("top", "rest"),
        sizes=SIZES,
        slots=(sum(stage.slots[0] for stage in made), sum(stage.slots[1] for stage in made)),
        universe_size=None,
        stratum=label[there],
        cluster=person[there],
        probability=np.ones(there.sum()),
        planned_probability=np.ones(1),
        people=people,
        staying=chance,
        unanswered=Unanswered(
            stratum=label[~there],
            cluster=person[~there],
            probability=np.ones((~there).sum()),
            divisions={},
        ),
    )
    sides = [level[there] == side for side in (False, True)]
    lost = [level[~there] == side for side in (False, True)]
    figure, with_weights = (
        study_figures.combine(
            [part],
            [
                study_figures.effect(
                    part, values[there], first=sides[0], second=sides[1], weighted_for_leaving=weighted_for_leaving
                )
            ],
            name="",
            title="",
            unit="",
            naive=None,
        )
        for weighted_for_leaving in (False, True)
    )
    ends = {}
    for name, odds_ratio in (("bounds", 2.0), ("worst_case", np.inf)):
        first_bounds, other = (
            study_figures.bounds_of(
                figure,
                [part.under(side, gone)],
                [values[there][side]],
                where=[None],
                inside=None,
                lost=None,
                odds_ratio=odds_ratio,
                span=None,
                share=True,
                is_side=True,
            )
            for side, gone in zip(sides, lost, strict=True)
        )
        assert first_bounds is not None and other is not None and figure.combined is not None
        ends[name] = bandit.difference_of_bounds(first_bounds, other, same_people=False, plain=figure.combined)
    return replace(figure, stayed=with_weights.combined, **ends)


def _figure(
    parts: Sequence[StagePart],
    values: Sequence[NDArray[np.float64]],
    inside: Sequence[NDArray[np.bool_]] | None,
    lost: Sequence[NDArray[np.bool_]] | None,
    odds_ratio: float,
) -> StudyFigure:
    masks: Sequence[NDArray[np.bool_] | None] = [None] * len(parts) if inside is None else inside
    rows = list(zip(parts, values, masks, strict=True))
    estimates = [study_figures.estimate(part, own, where=mask, share=True) for part, own, mask in rows]
    figure = study_figures.combine(
        parts,
        estimates,
        name="",
        title="",
        unit="share",
        naive=None,
        pooled=[part.stage_answers(own, inside=mask) for part, own, mask in rows] if inside else (),
        share=True,
    )
    weighted = [part.stage_answers(own, inside=mask, weighted_for_leaving=True) for part, own, mask in rows]
    common = {"where": [None] * len(parts), "inside": inside, "lost": lost, "span": None, "share": True}
    figure = replace(
        figure,
        stayed=study_figures.stayed_of(
            figure,
            parts,
            [study_figures.stayed(part, own, where=mask, share=True) for part, own, mask in rows],
            pooled=weighted if inside else (),
            share=True,
        ),
        bounds=study_figures.bounds_of(figure, parts, values, odds_ratio=odds_ratio, **common),
        worst_case=study_figures.bounds_of(figure, parts, values, odds_ratio=np.inf, **common),
    )
    return study_figures.widen_for_heavy_people(figure, parts, values, masks, [None] * len(parts))


def three_ways(figure: StudyFigure) -> tuple[Estimate, Estimate, tuple[float, float], tuple[float, float]]:
    """The plain estimate, the one weighted for leaving, and the intervals of the bounds and of the worst case."""
    assert figure.combined and figure.stayed and figure.bounds and figure.worst_case
    return figure.combined, figure.stayed, figure.bounds.interval, figure.worst_case.interval
