"""What a design learns from earlier stages, if it does: their answers, the figures that they are about, and what was
predicted before each answer."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import bandit
from bandit.designs import Design
from bandit.errors import DesignError
from survey.contracts import instruments
from survey.contracts.measures import Measure
from survey.models import Assignment, Stage
from survey.services.answers.counting import frozen_answers, frozen_stages
from survey.services.base.seeds import generator

from .candidates import Everything, ListedPool, drawing_scores
from .drafting import Recipe


def figures_of(instrument: instruments.Instrument, design: Design) -> list[str]:
    """The names of the figures that a design is drawn for, as the instrument estimates them.

    Raises:
        DesignError: the instrument has no such figure; the message has those that there are.
    """
    if instrument.estimates is None:
        raise DesignError(f"for: {instrument.name} names nothing to estimate: use another design")
    thresholds = tuple(instrument.estimates.default_thresholds())
    measures = instrument.estimates.estimands([], thresholds=thresholds).measures
    if not measures:
        raise DesignError(f"for: {instrument.name} names nothing to estimate: use another design")
    return list(dict.fromkeys(_measure_called(name, measures, instrument.name).name for name in design.estimated)) or [
        measures[0].name
    ]


def _measure_called(name: str, measures: Sequence[Measure], instrument: str) -> Measure:
    """By its name or title, whole or without a threshold: the first threshold is the study's own."""
    for measure in measures:
        if name in (measure.name, measure.title, _plain_name(measure), measure.title.partition(", ")[0]):
            return measure
    known = ", ".join(dict.fromkeys(map(_plain_name, measures)))
    raise DesignError(f'for: "{name}" is no figure of {instrument}; it has {known}')


def _plain_name(measure: Measure) -> str:
    return measure.name.partition("_over_")[0]


def with_what_it_learns(recipe: Recipe, stage: Stage, source: ListedPool | Everything) -> Recipe:
    """The recipe with what its design learns from the frozen answers before the stage; itself if it does not learn.

    Raises:
        DesignError: a figure that the instrument does not have.
    """
    design = recipe.design.build()
    if not design.learns:
        return recipe
    scores = drawing_scores(source.rows) if isinstance(source, ListedPool) else None
    learned = design.learn(evidence_before(stage, design), scores)
    return replace(recipe, learned=learned.facts())


def evidence_before(stage: Stage, design: Design) -> bandit.Evidence | None:
    """What the frozen answers of earlier stages say of the design's figures; None without answers."""
    instrument = instruments.of_study(stage.study)
    estimates = instruments.estimates_of(instrument)
    names = figures_of(instrument, design)
    thresholds = tuple(estimates.default_thresholds())
    answers: list[Assignment] = []
    scores: list[np.ndarray] = []
    for earlier in frozen_stages(stage.study, through=stage.index - 1):
        if earlier.config.teaches and (own := frozen_answers(earlier)):
            answers += own
            scores.append(_predictions(earlier, own, estimates, thresholds))
    if not answers:
        return None
    measures = {measure.name: measure for measure in estimates.estimands(answers, thresholds=thresholds).measures}
    return bandit.Evidence.of(
        values={name: measures[name].values for name in names},
        where={name: _where(measures[name], len(answers)) for name in names},
        per=_ratios(measures, names),
        scores=np.concatenate(scores),
        chance=np.array([answer.slot.inclusion_probability for answer in answers], dtype=np.float64),
        stage=np.array([answer.slot.stage_id for answer in answers]),
        cluster=np.array([answer.sitting.respondent_id for answer in answers]),
        item=np.array([answer.slot.item_id for answer in answers])
        if any(answer.slot.replicate > 1 for answer in answers)
        else None,
    )


def _where(measure: Measure, n: int) -> np.ndarray:
    return np.ones(n, dtype=bool) if measure.where is None else np.asarray(measure.where, dtype=bool)


def _ratios(measures: Mapping[str, Measure], names: Sequence[str]) -> dict[str, Any]:
    return {name: measures[name].per for name in names if measures[name].per is not None}


def _predictions(
    stage: Stage, answers: Sequence[Assignment], estimates: instruments.Estimates, thresholds: Sequence[int]
) -> np.ndarray:
    """What was predicted of each answer's item before it was given, NaN where nothing was: the scores that planned the
    stage; in a first stage what a small logistic regression says, by folds of people and items."""
    scores = np.array([np.nan if answer.slot.score is None else answer.slot.score for answer in answers])
    first = estimates.estimands(answers, thresholds=thresholds).measures[0]
    features = estimates.item_features([answer.slot.item for answer in answers])
    if np.isfinite(scores).any() or not first.is_share or not features.shape[1]:
        return scores
    return bandit.cross_fitted_chances(
        columns=features,
        label=first.values,
        cluster=np.array([answer.sitting.respondent_id for answer in answers]),
        item=np.array([answer.slot.item_id for answer in answers]),
        rng=generator(stage.seed, "folds"),
    )
