"""How much people change between waves: the same people in two waves that follow each other. Imports models and below.

Of a factor of the study file: the same of the people who answered at a level in both waves, and how much more it is at
one of two levels than at the other.

An answer weighs as in the figures of its wave's stages, where every answer of both waves that counts has such a weight;
else all weigh the same.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

import bandit
from bandit import Estimate
from survey.contracts.measures import Measure
from survey.models import Assignment, Sitting, Study

from .study_figures import StagePart

DIFFERENCE = "How much more the figure changed within people at the first of the two levels than at the second."


@dataclass(frozen=True)
class WavePart:
    """A part of the estimates with its wave, its answers' people and its measures. `levels`: by factor, each answer's
    level. `kept`: which answers are looked at; all, where it is None."""

    wave: int
    part: StagePart
    measures: Sequence[Measure]
    answers: Sequence[Assignment]
    levels: Mapping[str, np.ndarray] = field(default_factory=dict)
    kept: np.ndarray | None = None


@dataclass(frozen=True)
class WaveChange:
    """One measure in `wave` minus the same in the wave before, of the people who answered in both.

    `people`: how many they are; `not_back`: how many finished the wave before and have not finished this one, or have
    no answer to the measure that counts in it. `weighted`: whether answers have the design's weights. `estimate` is
    None where nobody answered in both. `under`: the level at which they answered in both waves, or the two that are
    compared; empty where all answers are taken.
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
    under: str = ""

    @property
    def label(self) -> str:
        waves = f"wave {self.wave} - wave {self.wave - 1}"
        return f"{waves}, {self.under}" if self.under else waves


def attrition_sentence(people: int, not_back: int, under: str) -> str:
    """What everybody who reads a change must know."""
    if under:
        return (
            f"Of {under}: the change is of the {people} people who answered under it in both waves. {not_back} who "
            "finished the wave before under it have no such answer in this one, or not yet, and what changed in them "
            "is not known."
        )
    if not not_back:
        return f"Everybody who finished the wave before came back: {people} people."
    return (
        f"The change is of the {people} people who answered in both waves. {not_back} who finished the wave before did "
        "not come back, or not yet, and what changed in them is not known."
    )


def changes_between_waves(
    study: Study,
    parts: Sequence[WavePart],
    *,
    under: Mapping[str, str],
    by: Mapping[str, Sequence[str]],
) -> tuple[WaveChange, ...]:
    """A row for each measure and each wave after the first in which answers count; empty for a study of one wave.

    Args:
        under: the levels under which all the parts' answers were given, by factor.
        by: factors with their levels, which each get rows of their own, and two levels a row of their difference.
    """
    last = len(study.config.waves) + 1
    changes: list[WaveChange] = []
    for wave in range(2, last + 1):
        before, here = ([part for part in parts if part.wave == number] for number in (wave - 1, wave))
        if before and here:
            of = _Waves(study, wave, before, here)
            changes += of.rows(dict(under), said=_in_words(under))
            for factor, levels in by.items():
                at = {level: of.at(factor, level) for level in levels}
                for level in levels:
                    changes += at[level].rows({**under, factor: level}, said=f"{factor}={level}")
                if len(levels) == 2:
                    low, high = sorted(levels)
                    changes += at[low].difference_of_changes(at[high], f"{factor}: {high} - {low}")
    return tuple(changes)


def _in_words(levels: Mapping[str, str]) -> str:
    return ", ".join(f"{factor}={level}" for factor, level in levels.items())


@dataclass(frozen=True)
class _Waves:
    """The parts of two waves that follow each other."""

    study: Study
    wave: int
    before: Sequence[WavePart]
    here: Sequence[WavePart]

    def at(self, factor: str, level: str) -> "_Waves":
        """The answers at one level alone."""

        def only(parts: Sequence[WavePart]) -> list[WavePart]:
            return [replace(part, kept=part.levels[factor] == level) for part in parts]

        return replace(self, before=only(self.before), here=only(self.here))

    @property
    def weighted(self) -> bool:
        return all(wave_part.part.weighs for wave_part in (*self.before, *self.here))

    def occasions(self, index: int) -> bandit.Occasions:
        first, second = (_pooled(parts, index, self.weighted) for parts in (self.before, self.here))
        return bandit.Occasions(
            first=first[0],
            first_weight=first[1],
            first_per=first[2],
            first_person=first[3],
            second=second[0],
            second_weight=second[1],
            second_per=second[2],
            second_person=second[3],
        )

    def rows(self, levels: Mapping[str, str], *, said: str) -> Iterator[WaveChange]:
        finished = _finished(self.study, self.wave - 1, levels)

        def change(occasions: bandit.Occasions) -> tuple[Estimate | None, set[int], set[int], str]:
            both = _in_both(occasions)
            about = attrition_sentence(len(both), len(finished - both), said)
            return bandit.paired_change(**vars(occasions)), both, finished, about

        return self._rows(change, said)

    def difference_of_changes(self, other: "_Waves", said: str) -> Iterator[WaveChange]:
        """How much more the change is in `other`."""
        places = iter(range(len(self.here[0].measures)))

        def difference(occasions: bandit.Occasions) -> tuple[Estimate | None, set[int], set[int], str]:
            more = other.occasions(next(places))
            both = _in_both(occasions) | _in_both(more)
            return bandit.paired_change_difference(occasions, more), both, both, DIFFERENCE

        return self._rows(difference, said, times=2.0)

    def _rows(
        self,
        change: Callable[[bandit.Occasions], tuple[Estimate | None, set[int], set[int], str]],
        said: str,
        times: float = 1.0,
    ) -> Iterator[WaveChange]:
        """`times`: how much wider the range of what is compared is than that of a difference of two figures."""
        for index, measure in enumerate(self.here[0].measures):
            estimate, both, finished, about = change(self.occasions(index))
            if estimate is not None and (span := measure.range_of_difference) is not None:
                possible = (times * span[0], times * span[1])
                estimate = replace(estimate, interval=bandit.cut_to_span(estimate.interval, possible))
            notes = [] if estimate is None or not estimate.too_few else [f"too few: {estimate.too_few}"]
            if estimate is None:
                notes.append("nobody answered in both waves")
            if not self.weighted:
                notes.append("unweighted: not every stage of the two waves has weights")
            yield WaveChange(
                wave=self.wave,
                name=measure.name,
                title=measure.title,
                unit=measure.unit,
                people=len(both),
                not_back=len(finished - both),
                weighted=self.weighted,
                estimate=estimate,
                notes="; ".join(notes),
                sentence=about,
                under=said,
            )


def _in_both(occasions: bandit.Occasions) -> set[int]:
    return set(np.intersect1d(occasions.first_person, occasions.second_person).tolist())


def _finished(study: Study, wave: int, levels: Mapping[str, str]) -> set[int]:
    """Who finished a wave: of factors that are drawn for each sitting, under these levels."""
    rows = Sitting.objects.filter(
        respondent__study=study, wave=wave, state=Sitting.State.COMPLETE, withdrawn_at=None
    ).order_by()
    for condition in study.config.conditions:
        if condition.per == "sitting" and condition.factor in levels:
            had = {"conditions__factor": condition.factor, "conditions__level": levels[condition.factor]}
            rows = rows.filter(**had)
    return set(rows.values_list("respondent", flat=True))


def _pooled(
    parts: Sequence[WavePart], index: int, weighted: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The answers of a wave to one measure: values, weights, what the sum is divided by, and people."""
    columns: list[list[np.ndarray]] = [[], [], [], []]
    for part in parts:
        measure = part.measures[index]
        mask = np.ones(len(measure.values), dtype=bool) if measure.where is None else np.asarray(measure.where, bool)
        mask = mask & np.isfinite(measure.values)
        if part.kept is not None:
            mask = mask & part.kept
        weight = part.part.plan_weight * part.part.answer_weights if weighted else np.ones(len(measure.values))
        per = np.ones(len(measure.values)) if measure.per is None else np.asarray(measure.per, dtype=np.float64)
        people = np.array([answer.sitting.respondent_id for answer in part.answers], dtype=np.int64)
        for column, values in zip(columns, (measure.values, weight, per, people), strict=True):
            column.append(np.asarray(values)[mask])
    values, weights, pers, who = (np.concatenate(column) for column in columns)
    return values.astype(np.float64), weights, pers, who
