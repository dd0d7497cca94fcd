"""How much people change between waves: the same people in two waves that follow each other. Imports models and below.

An answer weighs as in the figures of its wave's stages, where every answer of both waves that counts has such a weight;
else all weigh the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import bandit
from bandit import Estimate
from survey.contracts.measures import Measure
from survey.models import Assignment, Sitting, Study

from .estimators import StagePart


@dataclass(frozen=True)
class WavePart:
    """A part of the estimates with its wave, its answers' people and its measures."""

    wave: int
    part: StagePart
    measures: Sequence[Measure]
    answers: Sequence[Assignment]


@dataclass(frozen=True)
class WaveChange:
    """One measure in `wave` minus the same in the wave before, of the people who answered in both.

    `people`: how many they are; `not_back`: how many finished the wave before and have not finished this one, or have
    no answer to the measure that counts in it. `weighted`: whether answers have the design's weights. `estimate` is
    None where nobody answered in both.
    """

    wave: int
    name: str
    title: str
    unit: str
    people: int
    not_back: int
    weighted: bool
    estimate: Estimate | None
    notes: str
    sentence: str

    @property
    def label(self) -> str:
        return f"wave {self.wave} - wave {self.wave - 1}"


def about_those_who_stayed_away(people: int, not_back: int) -> str:
    """What everybody who reads a change must know."""
    if not not_back:
        return f"Everybody who finished the wave before came back: {people} people."
    return (
        f"The change is of the {people} people who answered in both waves. {not_back} who finished the wave before did "
        "not come back, or not yet, and what changed in them is not known."
    )


def changes_between_waves(study: Study, parts: Sequence[WavePart]) -> tuple[WaveChange, ...]:
    """A row for each measure and each wave after the first in which answers count; empty for a study of one wave."""
    last = len(study.config.waves) + 1
    found = []
    for wave in range(2, last + 1):
        before, here = ([one for one in parts if one.wave == number] for number in (wave - 1, wave))
        if before and here:
            finished = _finished(study, wave - 1)
            weighted = all(one.part.weighs for one in (*before, *here))
            found += [_change(wave, before, here, index, finished, weighted) for index in range(len(here[0].measures))]
    return tuple(found)


def _finished(study: Study, wave: int) -> set[int]:
    rows = Sitting.objects.filter(
        respondent__study=study, wave=wave, state=Sitting.State.COMPLETE, withdrawn_at=None
    ).order_by()
    return set(rows.values_list("respondent", flat=True))


def _change(
    wave: int,
    before: Sequence[WavePart],
    here: Sequence[WavePart],
    index: int,
    finished: set[int],
    weighted: bool,
) -> WaveChange:
    one, other = (_pooled(parts, index, weighted) for parts in (before, here))
    estimate = bandit.paired_change(
        first=one[0],
        first_weight=one[1],
        first_per=one[2],
        first_person=one[3],
        second=other[0],
        second_weight=other[1],
        second_per=other[2],
        second_person=other[3],
    )
    both = set(one[3].tolist()) & set(other[3].tolist())
    measure = here[0].measures[index]
    notes = [] if estimate is None or not estimate.too_few else [f"too few: {estimate.too_few}"]
    if estimate is None:
        notes.append("nobody answered in both waves")
    if not weighted:
        notes.append("unweighted: not every stage of the two waves has weights")
    return WaveChange(
        wave=wave,
        name=measure.name,
        title=measure.title,
        unit=measure.unit,
        people=len(both),
        not_back=len(finished - both),
        weighted=weighted,
        estimate=estimate,
        notes="; ".join(notes),
        sentence=about_those_who_stayed_away(len(both), len(finished - both)),
    )


def _pooled(
    parts: Sequence[WavePart], index: int, weighted: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The answers of a wave to one measure: values, weights, what the sum is divided by, and people."""
    columns: list[list[np.ndarray]] = [[], [], [], []]
    for one in parts:
        measure = one.measures[index]
        kept = np.ones(len(measure.values), dtype=bool) if measure.where is None else np.asarray(measure.where, bool)
        kept = kept & np.isfinite(measure.values)
        weight = one.part.plan_weight * one.part.answer_weights if weighted else np.ones(len(measure.values))
        per = np.ones(len(measure.values)) if measure.per is None else np.asarray(measure.per, dtype=np.float64)
        people = np.array([answer.sitting.respondent_id for answer in one.answers], dtype=np.int64)
        for column, values in zip(columns, (measure.values, weight, per, people), strict=True):
            column.append(np.asarray(values)[kept])
    values, weights, pers, who = (np.concatenate(column) for column in columns)
    return values.astype(np.float64), weights, pers, who
