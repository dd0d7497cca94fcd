"""Figures of people who are weighted to a population, next to the plain ones: `[weighting]` of the study file.

Each person gets a weight by `bandit.rake`, over all stages that count together. An answer's weight is that of the plain
figure times its person's, inside a stratum in proportion, and stages are put together with the plain figure's weights.
The error is that of what the margins do not explain (`bandit.unexplained`).
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

import bandit
from bandit import DesignError, Estimate
from survey.contracts.measures import Measure
from survey.exceptions import FileErrors, Problem
from survey.figures.words import counted, percent, short
from survey.models import Study
from survey.services.base.toml_files import checked, read_toml
from survey.study_file import (
    BETWEEN,
    MarginConfig,
    WeightingConfig,
    WrongKey,
    dotted,
    grouping_questions,
    refuse_unknown_groups,
)

from . import study_figures as analysis
from .people_groups import NO_ANSWER, groups_of, people_questions
from .study_figures import StagePart, StudyFigure


@dataclass(frozen=True)
class PopulationGroup:
    """A group of a margin. `people`: how many were in it. `share` of those who could be weighted, `in_population`, and
    `weighted` as the weights make it: another number than the population's only where weights are trimmed."""

    margin: str
    group: str
    people: int
    share: float
    in_population: float
    weighted: float


@dataclass(frozen=True)
class Weighting:
    """How people are weighted to the population. `reason` says why they are not; empty where they are.

    `unplaced` people did not say what a margin asks, and are in no weighted figure. `design_effect` is Kish's.
    `trimmed` people have the largest weight, `highest` in mean weights.
    """

    groups: tuple[PopulationGroup, ...]
    people: int
    unplaced: int
    design_effect: float = 1.0
    highest: float = 1.0
    trimmed: int = 0
    reason: str = ""

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know about the weights, in sentences."""
        if self.reason:
            return (f"No figures are weighted to the population: {self.reason}.",)
        sentences = [
            f"{counted(self.people, 'person', 'people')} weighted to the population: the weights alone multiply a "
            f"variance by {short(self.design_effect)} (design effect), and the largest is {short(self.highest)} mean "
            "weights. This makes people comparable on what the margins name and on nothing else."
        ]
        if self.unplaced:
            sentences.append(
                f"{counted(self.unplaced, 'person', 'people')} in no weighted figure: without an answer that a margin "
                "asks for, or in a group without a share."
            )
        if self.trimmed:
            furthest = max(abs(group.weighted - group.in_population) for group in self.groups)
            sentences.append(
                f"{counted(self.trimmed, 'weight')} above the limit, and cut to it (trim): a group's share may "
                f"differ from the population's by up to {percent(furthest)}."
            )
        return tuple(sentences)


def read_weighting(path: Path, study: Study) -> WeightingConfig:
    """The population of a TOML file, which has the keys of `[weighting]`.

    Raises:
        FileErrors: it cannot be read, or its values do not fit the study's forms; lists every problem.
    """
    content = read_toml(path)
    weighting = checked(WeightingConfig, content.get("weighting", content), path)
    try:
        refuse_unknown_groups(weighting, grouping_questions(study.config.blocks))
    except WrongKey as exc:
        raise FileErrors([Problem(str(path), None, dotted(exc.place), exc.message)]) from exc
    return weighting


class PersonWeights(NamedTuple):
    """`weights`: by respondent, 1 on average. `groups`: by respondent, the place of their group in each margin."""

    weighting: Weighting
    weights: Mapping[int, float]
    groups: Mapping[int, tuple[int, ...]]


def weigh_people(study: Study, wanted: WeightingConfig, people: Sequence[int]) -> PersonWeights:
    """The weights of these people (keys of respondents)."""
    names = [[*margin.shares] for margin in wanted.margins]
    placed = {
        person: tuple(groups.index(group) for groups, group in zip(names, own, strict=True) if group is not None)
        for person, own in groups_in_margins(study, wanted, people).items()
        if None not in own
    }
    columns = [np.array([own[number] for own in placed.values()], dtype=int) for number in range(len(wanted.margins))]
    unplaced = len(people) - len(placed)
    lines = _groups(wanted, columns)
    for line in lines:
        if not line.people:
            reason = (
                f"nobody is in the group {line.group} of {line.margin}, which is {percent(line.in_population)} of the "
                "population; put it together with another"
            )
            return PersonWeights(Weighting(lines, len(placed), unplaced, reason=reason), {}, {})
    shares = [np.array([*margin.shares.values()]) for margin in wanted.margins]
    try:
        raked = bandit.rake(columns, [share / share.sum() for share in shares], trim=wanted.trim)
    except DesignError as exc:
        return PersonWeights(Weighting(lines, len(placed), unplaced, reason=str(exc)), {}, {})
    weighting = Weighting(
        _groups(wanted, columns, raked.weights),
        len(placed),
        unplaced,
        raked.design_effect,
        float(raked.weights.max()),
        raked.trimmed,
    )
    return PersonWeights(weighting, dict(zip(placed, raked.weights.tolist(), strict=True)), placed)


def groups_in_margins(
    study: Study, wanted: WeightingConfig, people: Collection[int]
) -> dict[int, tuple[str | None, ...]]:
    """By person (key of a respondent): their group in each margin; None where they did not say, or it has no share."""
    questions = people_questions(study)
    said = {
        name: groups_of(study, questions[name], people).of_person
        for name in sorted({name for margin in wanted.margins for name in margin.by})
    }

    def group(margin: MarginConfig, person: int) -> str | None:
        cell = BETWEEN.join(said[name].get(person, NO_ANSWER) for name in margin.by)
        return cell if cell in margin.shares else None

    return {person: tuple(group(margin, person) for margin in wanted.margins) for person in people}


def _groups(
    wanted: WeightingConfig, columns: Sequence[np.ndarray], weights: np.ndarray | None = None
) -> tuple[PopulationGroup, ...]:
    lines = []
    for margin, column in zip(wanted.margins, columns, strict=True):
        people = np.bincount(column, minlength=len(margin.shares))
        weighted = np.bincount(column, weights=weights, minlength=len(margin.shares))
        total, n = sum(margin.shares.values()), max(column.size, 1)
        lines += [
            PopulationGroup(margin.title, group, int(count), float(count) / n, share / total, float(heavy) / n)
            for (group, share), count, heavy in zip(margin.shares.items(), people, weighted, strict=True)
        ]
    return tuple(lines)


def weighted_figure(
    figure: StudyFigure, parts: Sequence[StagePart], measures: Sequence[Measure], people: PersonWeights
) -> Estimate | None:
    """The figure with people weighted to the population: of the same stages with the same weights. None without a
    figure, or where a stage of it has too few people who could be weighted."""
    used = [place for place, stage in enumerate(figure.stages) if stage.weight]
    if figure.combined is None or not people.weights or not used:
        return None
    weights = [figure.stages[place].weight for place in used]
    sides = [_Side.of(parts[place], measures[place], people) for place in used]
    known = [side for side in sides if side is not None]
    if len(known) < len(sides):
        return None
    own_groups = np.concatenate([side.groups for side in known])
    unexplained = bandit.unexplained(
        np.concatenate([side.deviations for side in known]),
        [*own_groups.T],
        np.concatenate([side.part.answer_weights * weight for side, weight in zip(known, weights, strict=True)]),
    )
    pieces = np.split(unexplained, np.cumsum([len(side.deviations) for side in known])[:-1])
    estimates = [side.estimate(piece) for side, piece in zip(known, pieces, strict=True)]
    if any(estimate is None for estimate in estimates):
        return None
    combined = bandit.combine_stages(estimates=estimates, plan_weights=weights).estimate
    span = measures[0].range
    return combined if span is None else replace(combined, interval=bandit.cut_to_span(combined.interval, span))


@dataclass(frozen=True, eq=False)
class _Side:
    """The answers of a part whose people could be weighted. `deviations`: what each answer adds to the figure's error,
    in its unit, before its weight; `groups`, (n, margins): of each answer's person."""

    part: StagePart
    value: float
    deviations: np.ndarray
    groups: np.ndarray

    @classmethod
    def of(cls, part: StagePart, measure: Measure, people: PersonWeights) -> "_Side | None":
        mask = np.array([person in people.weights for person in part.cluster.tolist()])
        own = part.under(mask)
        if own.obstacle or not mask.any():
            return None
        weight = np.array([people.weights[person] for person in own.cluster.tolist()])
        own = replace(own, staying=weight.min() / weight)  # An answer counts for 1 / staying, as a person does here.
        inside = np.ones(len(weight), dtype=bool) if measure.where is None else measure.where[mask]
        below = np.ones(len(weight)) if measure.per is None else np.asarray(measure.per, dtype=float)[mask]
        below = below * inside
        total = float(np.dot(own.stayed_weights, below))
        if not total > 0:
            return None
        above = np.where(inside, np.nan_to_num(measure.values[mask]), 0.0)
        value = float(np.dot(own.stayed_weights, above)) / total
        groups = np.array([people.groups[person] for person in own.cluster.tolist()])
        return cls(own, value, (above - value * below) / total, groups)

    def estimate(self, unexplained: np.ndarray) -> Estimate | None:
        """The part's figure, with the error of what the margins do not explain."""
        around = self.value + unexplained - float(np.dot(self.part.stayed_weights, unexplained))
        estimate, _reason = analysis.stayed(self.part, around, where=None, per=None, share=False)
        return estimate
