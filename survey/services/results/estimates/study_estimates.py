"""What a study's answers say: read from rows, estimated by `estimators`, returned as one report.

The answers that count are complete, in time, to sampled and holdout slots, and from sittings that no rule excludes;
of each slot the first. Controls and repeats show how noisy the answers are.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import numpy as np

import bandit
from bandit import AucLimit, Bounds, DesignError, Estimate, Retest
from survey.contracts import instruments
from survey.contracts.instruments import ANOTHER_PERSON, Instrument
from survey.contracts.measures import SHARE, Estimands, Measure
from survey.exceptions import HunchError, StateRefused
from survey.figures.words import short
from survey.models import Assignment, CandidateSet, Slot, Stage, Stratum, Study
from survey.services.answers.blinding import shown_conditions
from survey.services.answers.conditions import in_words, read_condition
from survey.services.answers.counting import ESTIMATED
from survey.services.answers.majorities import majorities_of
from survey.services.base import files
from survey.services.base.garbage import collector_paused
from survey.services.base.seeds import generator
from survey.services.plans.candidates import (
    DISAGREEMENT,
    SCORE,
    candidate_questions,
    drawing_scores,
    plain_rows,
)
from survey.services.plans.planning import anytime_rho
from survey.study_file import DesignConfig, WeightingConfig

from . import dropout as leavers
from . import item_noise
from . import study_figures as analysis
from .dropout import Leaving
from .people_groups import (
    MIN_PEOPLE,
    NO_ANSWER,
    PeopleGroups,
    groups_of,
    people_questions,
    too_few,
)
from .population import PersonWeights, Weighting, weigh_people, weighted_figure
from .stage_rows import STATES, SlotRow, StageRows, read_stage
from .study_figures import (
    Assisted,
    DivisionFigures,
    ItemPredictions,
    StagePart,
    StudyFigure,
    Unanswered,
)
from .wave_changes import WaveChange, WavePart, changes_between_waves
from .weights import people_of

ASSUMPTIONS = (
    "The questions are fixed and the people are not: a figure and its interval are about these questions. The interval "
    "for such questions next to it takes the bank's as a random draw from questions like them. What the answers that "
    "people who left did not give may do to a figure is shown next to it too.",
    "Slots without an answer in time, or with one that a rule of the study file leaves out, are taken to be missing at "
    "random within their stage and stratum.",
    "An answer is taken not to depend on the items that its person saw before: in an adaptive stage these are others "
    "than in a uniform one. Sampled minus holdout, and the figures from first items, stand next to it for that.",
    "Standard errors are between respondents, and never below what as many answers of different people would have. "
    "Weights over the stages come from the plans alone, with an assumed correlation of 0.2 between a person's answers.",
)
# With fewer labelled items a share says nothing.
MIN_LABELLED = 2
OTHERS = "\x00others"  # All levels but one; no level is called so.


@dataclass(frozen=True)
class StratumLine:
    """One stratum of a part: its candidates, its slots by outcome, and its first figure unweighted."""

    name: str
    size: int
    planned: int
    answered: int
    excluded: int
    withdrawn: int
    late: int
    lost: int
    open: int
    mean: float | None


@dataclass(frozen=True)
class PartLine:
    """One part of the estimates: a stage's sampled or holdout slots. `weight` is in slots of equal weight."""

    stage: int
    role: str
    state: str
    design: str
    candidates: int
    universe_size: int
    weight: float
    strata: tuple[StratumLine, ...]
    predictions: str


@dataclass(frozen=True)
class SlotLine:
    """Slots by what became of them, in one part of a division (such as an outcome or a position)."""

    label: str
    planned: int
    answered: int
    excluded: int
    withdrawn: int
    late: int
    lost: int
    open: int


@dataclass(frozen=True)
class Noise:
    """What the controls show: changes without reason, and how similar two answers to one item are.

    `auc_limit` is an upper limit of the AUC that predictors of items can reach, from items that several people
    answered; without one, `no_limit` says why.
    """

    false_changes: Mapping[str, Estimate]
    retests: Mapping[str, Retest]
    auc_limit: AucLimit | None
    no_limit: str = ""


@dataclass(frozen=True)
class MajorityLine:
    """The majority labels of a frozen test stage, in one stratum or, with an empty name, in all of them.

    `share` is that of label 1 among the labelled items, `low` and `high` its 95 % interval over such draws of items;
    None where fewer than `MIN_LABELLED` items have a label.
    """

    stage: int
    stratum: str
    items: int
    label_1: int
    label_0: int
    tied: int
    left_out: int
    fewest_answers: int
    most_answers: int
    share: float | None
    low: float | None
    high: float | None
    notes: str

    @property
    def in_words(self) -> str:
        """How many items there are, with how many answers each and which labels."""
        least, most = self.fewest_answers, self.most_answers
        answers = f"{least}" if least == most else f"{least} to {most}"
        labels = f"label 1: {self.label_1}, label 0: {self.label_0}, ties: {self.tied}"
        return f"{self.items} items of {answers} answers; {labels}"


@dataclass(frozen=True)
class CarryOver:
    """What is known of whether answers depend on the items that a person saw before.

    `differences`: by measure, the mean by the sampled slots of adaptive stages minus that by their holdouts, whose
    booklets are uniform; empty where `no_difference` says why. `first_items`: by measure, the mean from people's first
    items alone, which nothing came before.
    """

    differences: tuple[StudyFigure, ...]
    first_items: tuple[StudyFigure, ...]
    no_difference: str = ""


@dataclass(frozen=True)
class AnytimeLine:
    """The first figure of a stage's sampled slots alone, with a 95 % interval that holds at any time, however often one
    looks: over all candidates, or with a `factor` the difference between its levels (`label`).

    `width` of the stopping rule that is about this line; None without one. `looks` that the rule took, and whether one
    of them ended the stage (`stopped`).
    """

    stage: int
    factor: str
    label: str
    title: str
    unit: str
    people: int
    value: float
    standard_error: float
    low: float
    high: float
    rule_width: float | None
    looks: int
    stopped: bool
    notes: str


@dataclass(frozen=True)
class StudyEstimates:
    """All estimates of a study at this moment."""

    study: str
    title: str
    estimand: str
    assumptions: tuple[str, ...]
    thresholds: tuple[int, ...]
    answers: int
    respondents: int
    provisional: bool
    parts: tuple[PartLine, ...]
    figures: tuple[StudyFigure, ...]
    assisted: StudyFigure | None
    checks: tuple[StudyFigure, ...]
    divisions: tuple[DivisionFigures, ...]
    slots: Mapping[str, tuple[SlotLine, ...]] = field(repr=False)
    noise: Noise
    majorities: tuple[MajorityLine, ...] = ()
    leaving: Leaving | None = None
    anytime: tuple[AnytimeLine, ...] = ()
    waves: tuple[WaveChange, ...] = ()
    carry_over: CarryOver | None = None
    weighting: Weighting | None = None

    def as_json(self) -> dict[str, Any]:
        row: dict[str, Any] = analysis.as_json(self)
        return row


@dataclass(frozen=True, eq=False)
class _Reading:
    """A part with what its answers estimate."""

    part: StagePart
    line: PartLine
    answers: list[Assignment]
    estimands: Estimands
    divisions: dict[str, np.ndarray]
    odds_ratio: float


def division_names(study: Study) -> list[str]:
    """How the estimates of a study can be divided: by the instrument's divisions, the study's conditions, and what
    people answered in forms."""
    known = own_divisions(study)
    return [*known, *people_questions(study, known)]


def own_divisions(study: Study) -> list[str]:
    """The instrument's divisions and the study's conditions."""
    conditions = [condition.factor for condition in shown_conditions(study)]
    estimates = instruments.of_study(study).estimates
    return [*(estimates.divisions([]) if estimates is not None else {}), *conditions]


def check_question(study: Study, by: Sequence[str], condition: Sequence[str]) -> None:
    """
    Raises:
        HunchError: an unknown division or condition.
    """
    read_condition(study, condition)
    known = division_names(study)
    for name in by:
        if name not in known:
            raise HunchError(f"--by: {name} is not one of {', '.join(known)}", code="invalid")


def estimate(
    study: Study,
    *,
    thresholds: Sequence[int] = (),
    by: Sequence[str] = (),
    condition: Sequence[str] = (),
    weighting: WeightingConfig | None = None,
) -> StudyEstimates:
    """Everything that the study's counted answers say so far.

    Args:
        thresholds: changes up to this size count as none; by default the instrument's own.
        by: names from `division_names`.
        condition: FACTOR=LEVEL, any number of times, to take only the answers under these levels.
        weighting: the population that figures are weighted to as well, in place of the study file's.

    Raises:
        StateRefused: no answer counts yet, or the instrument names nothing to estimate.
        HunchError: an unknown division or condition.
    """
    check_question(study, by, condition)
    levels = read_condition(study, condition)
    with collector_paused():
        return _estimate(study, levels, thresholds, by, weighting)


def _estimate(
    study: Study,
    levels: Mapping[str, str],
    thresholds: Sequence[int],
    by: Sequence[str],
    weighting: WeightingConfig | None,
) -> StudyEstimates:
    instrument = instruments.of_study(study)
    estimates = instruments.estimates_of(instrument)
    wanted = tuple(thresholds) or estimates.default_thresholds()
    rows_of_all_waves, read, later = _read_stages(study, instrument, wanted, levels)
    stages, of_all_waves = [of_stage.stage for of_stage in rows_of_all_waves], [*read, *later]
    slots = [slot for of_stage in rows_of_all_waves for slot in of_stage.slots]
    rows = [of_stage for of_stage in rows_of_all_waves if of_stage.stage.wave == 1]
    if not read:
        under = f" under {in_words(levels)}" if levels else ""
        raise StateRefused(f"{study.slug}: no answer{under} counts yet, so there is nothing to estimate")
    if not read[0].estimands.measures:
        raise StateRefused(f"{study.slug}: {instrument.name} names no outcome to estimate")
    _check_same_figures(of_all_waves, instrument)
    read = _with_predictions(study, read, instrument)
    read, leaving = _with_leaving(study, rows, read, instrument, wanted, levels)
    groups = _groups(study, read, by)
    read = [_with_groups(stage_read, groups) for stage_read in read]
    figures = tuple(_assisted(read, index) for index in range(len(read[0].estimands.measures)))
    weighting = study.config.weighting if weighting is None else weighting
    people = None if weighting is None else weigh_people(study, weighting, sorted(_people_of(read, None)))
    if people is not None:
        figures = tuple(
            replace(figure, population=_weighted(figure, read, index, people)) for index, figure in enumerate(figures)
        )
    factors = {condition.factor for condition in shown_conditions(study)}
    universe = max(stage_read.line.universe_size for stage_read in read)
    n_questions = max((stage.manifest.get("questions", {}).get("count", 0) for stage in stages), default=0)
    return StudyEstimates(
        study=study.slug,
        title=study.title,
        estimand=estimates.estimand(universe_size=universe, n_questions=n_questions),
        assumptions=(
            *ASSUMPTIONS,
            *_items_notes(read),
            *_assistance_notes(read),
            *_waves_notes(study),
            *_stops_notes(stages),
            *_levels_notes(study, levels),
        ),
        thresholds=wanted,
        answers=sum(len(stage_read.answers) for stage_read in read),
        respondents=len({answer.sitting.respondent_id for stage_read in read for answer in stage_read.answers}),
        provisional=any(stage_read.line.state != Stage.State.FROZEN for stage_read in read),
        parts=tuple(stage_read.line for stage_read in read),
        figures=figures,
        assisted=figures[0].assisted,
        checks=tuple(_check(read, index) for index in range(len(read[0].estimands.checks))),
        divisions=tuple(
            _by_level(read, name, groups.get(name)) if name in factors or name in groups else _divided(read, name)
            for name in by
        ),
        slots=_slot_tables(slots, next(iter(estimates.divisions([])), None)),
        noise=_noise(rows, read, instrument, wanted, figures[0]),
        # A majority is of all levels together.
        majorities=() if levels else tuple(line for stage in stages for line in _majority_lines(stage)),
        leaving=leaving,
        # A rule is about the answers under all levels.
        anytime=() if levels else tuple(_anytime_lines(stages, of_all_waves)),
        waves=_wave_changes(study, stages, of_all_waves, levels, by),
        carry_over=_carry_over(read),
        weighting=None if people is None else people.weighting,
    )


def _weighted(figure: StudyFigure, read: Sequence[_Reading], index: int, people: PersonWeights) -> Estimate | None:
    measures = [reading.estimands.measures[index] for reading in read]
    return weighted_figure(figure, [reading.part for reading in read], measures, people)


def _read_stages(
    study: Study, instrument: Instrument, thresholds: Sequence[int], levels: Mapping[str, str]
) -> tuple[list[StageRows], list[_Reading], list[_Reading]]:
    """The rows of each stage that is no draft, and their parts: of the first wave, and of later ones. The same people
    answer in those: counted together, their answers would seem to be of twice as many people."""
    stages = list(study.main_stages().exclude(state=Stage.State.DRAFT))
    for stage in stages:
        stage.study = study
    rows = [read_stage(stage, instrument, levels) for stage in stages]
    parts = [
        (of_stage, _read(of_stage, role, instrument, thresholds, levels)) for of_stage in rows for role in ESTIMATED
    ]
    first = [part for of_stage, part in parts if part is not None and of_stage.stage.wave == 1]
    return rows, first, [part for of_stage, part in parts if part is not None and of_stage.stage.wave > 1]


@dataclass(frozen=True, eq=False)
class ReadStudy:
    """What the figures of a study are computed from: the rows of each stage that is no draft, and its parts, those of
    later waves among them. `divisions`: the names of the parts' divisions that are wanted, each with what it is:
    "level" of a factor or of people, or "by" for a division of the items."""

    study: Study
    rows: Sequence[StageRows]
    readings: Sequence[_Reading]
    divisions: Mapping[str, str]


def read_study(
    study: Study, levels: Mapping[str, str], thresholds: Sequence[int] = (), by: Sequence[str] = ()
) -> ReadStudy:
    """The answers as `estimate` takes them, with their chances of staying unless the study is blind: these depend on
    levels."""
    instrument = instruments.of_study(study)
    wanted = tuple(thresholds) or instruments.estimates_of(instrument).default_thresholds()
    rows, first, later = _read_stages(study, instrument, wanted, levels)
    if first and first[0].estimands.measures and not study.is_blind:
        of_first = [of_stage for of_stage in rows if of_stage.stage.wave == 1]
        first, _leaving = _with_leaving(study, of_first, first, instrument, wanted, levels)
    groups = _groups(study, first, by)
    factors = [condition.factor for condition in shown_conditions(study)]
    divisions = {
        name: "level" if name in factors or name in groups else "by" for name in dict.fromkeys([*factors, *by])
    }
    return ReadStudy(study, rows, [_with_groups(part, groups) for part in [*first, *later]], divisions)


@dataclass(frozen=True)
class LevelFigures:
    """Figures by the levels of one factor. `figures`: by level, then measure. `differences`: by level after the first,
    then measure, each level minus the first one. `answers` and `people`: by level."""

    factor: str
    levels: tuple[str, ...]
    answers: tuple[int, ...]
    people: tuple[int, ...]
    figures: tuple[tuple[StudyFigure, ...], ...]
    differences: tuple[tuple[StudyFigure, ...], ...]


def figures_by_level(
    study: Study,
    factor: str,
    measures_of: Callable[[Sequence[Assignment]], Sequence[Measure]],
    *,
    condition: Sequence[str],
) -> LevelFigures:
    """A report's own measures by the levels of a factor, estimated as `estimate` does, with the differences.

    Args:
        measures_of: the measures of n complete answers, in the same order whatever the answers are.
        condition: FACTOR=LEVEL of other factors, any number of times.

    Raises:
        StateRefused: fewer than two levels have answers that count.
        HunchError: an unknown factor or condition.
    """
    levels = read_condition(study, condition)
    conditions = {shown_condition.factor: shown_condition for shown_condition in shown_conditions(study)}
    if factor not in conditions:
        raise HunchError(f"by: {factor} is not one of {', '.join(conditions) or 'none'}", code="invalid")
    if factor in levels:
        raise HunchError(f"condition: {factor} is what is compared; name levels of other factors", code="invalid")
    instrument = instruments.of_study(study)
    stages = list(study.main_stages().exclude(state=Stage.State.DRAFT))
    read = []
    with collector_paused():
        for stage in (stage for stage in stages if stage.wave == 1):
            stage.study = study
            rows = read_stage(stage, instrument, levels)
            readings = (_read(rows, role, instrument, (), levels) for role in ESTIMATED)
            read += [
                replace(reading, estimands=Estimands(measures_of(reading.answers)))
                for reading in readings
                if reading is not None
            ]
    parts = [reading.divisions[factor] for reading in read]
    known = {str(label) for part in parts for label in part}
    labels = [label for label in conditions[factor].levels if label in known]
    if len(labels) < 2:
        raise StateRefused(f"{study.slug}: fewer than two levels of {factor} have answers that count")
    return level_figures(factor, labels, read)


def level_figures(factor: str, labels: Sequence[str], read: Sequence[_Reading]) -> LevelFigures:
    """`figures_by_level` of parts that have been read, at least two levels of which have answers."""
    parts = [reading.divisions[factor] for reading in read]
    measures = range(len(read[0].estimands.measures))
    first, *others = labels
    under = {label: [_under(reading, factor, label) for reading in read] for label in labels}
    people = [{int(person) for reading in under[label] for person in reading.part.cluster} for label in labels]
    return LevelFigures(
        factor=factor,
        levels=tuple(labels),
        answers=tuple(sum(int((part == label).sum()) for part in parts) for label in labels),
        people=tuple(map(len, people)),
        figures=tuple(tuple(_figure(under[label], index) for index in measures) for label in labels),
        differences=tuple(
            tuple(_effect(read, factor, (first, label), index, (under[first], under[label])) for index in measures)
            for label in others
        ),
    )


def _wave_changes(
    study: Study, stages: Sequence[Stage], read: Sequence[_Reading], levels: Mapping[str, str], by: Sequence[str]
) -> tuple[WaveChange, ...]:
    if not study.config.waves:
        return ()
    waves = {stage.index: stage.wave for stage in stages}
    factors = {
        shown_condition.factor: shown_condition.levels
        for shown_condition in shown_conditions(study)
        if shown_condition.factor in by
    }
    parts = [
        WavePart(
            waves[reading.part.stage], reading.part, reading.estimands.measures, reading.answers, reading.divisions
        )
        for reading in read
    ]
    return changes_between_waves(study, parts, under=levels, by=factors)


def _check_same_figures(read: Sequence[_Reading], instrument: Instrument) -> None:
    """
    Raises:
        HunchError: the instrument names other figures for one part than for another, so that they cannot be combined.
    """
    first = read[0]
    for other in read[1:]:
        for kind in ("measures", "checks"):
            names, other_names = ([figure.name for figure in getattr(part.estimands, kind)] for part in (first, other))
            if names != other_names:
                raise HunchError(
                    f"{instrument.name}: its {kind} are {', '.join(names) or 'none'} for {first.part.title} and "
                    f"{', '.join(other_names) or 'none'} for {other.part.title}, so they cannot be combined; "
                    "its author must "
                    "name the same ones whatever the answers are"
                )


def _items_notes(read: Sequence[_Reading]) -> Iterator[str]:
    if several := [str(reading.line.stage) for reading in read if reading.part.item is not None]:
        yield (
            f"Several people answered each item of stage {', '.join(several)}: standard errors there are between "
            "respondents and between items."
        )


def _assistance_notes(read: Sequence[_Reading]) -> Iterator[str]:
    if any(not isinstance(reading.part.predictions, str) for reading in read):
        yield (
            "Assisted figures take off the answers what the draw has too much of the predictions, times a coefficient "
            "that is fitted without the answers of the same person and shrunk to 0 where little is known."
        )


def _waves_notes(study: Study) -> Iterator[str]:
    if study.config.waves:
        yield (
            "The figures are of wave 1. The same people answered in the later waves, so that those answers do not "
            "enter them; they are compared with the wave before, within people."
        )


def _stops_notes(stages: Sequence[Stage]) -> Iterator[str]:
    if stopped := [str(stage.index) for stage in stages if "stopped" in stage.manifest]:
        yield (
            f"Stage {', '.join(stopped)} was ended by its stopping rule. The interval that holds at any time allows "
            "for that; the others are computed as if the number of people had been fixed before."
        )


def _levels_notes(study: Study, levels: Mapping[str, str]) -> Iterator[str]:
    if levels:
        yield (
            f"Only answers under {in_words(levels)}. Levels are drawn at random, so that these answers stand for all: "
            "weights are a stratum's candidates over its answers under these levels."
        )
    if others := [
        shown_condition.factor for shown_condition in shown_conditions(study) if shown_condition.factor not in levels
    ]:
        yield f"Answers under all levels of {', '.join(others)} together, each as often as it was drawn."


# Carry-over


def _carry_over(read: Sequence[_Reading]) -> CarryOver:
    by_stage: dict[int, dict[str, _Reading]] = {}
    for reading in read:
        by_stage.setdefault(reading.part.stage, {})[reading.part.role] = reading
    adaptive = [
        by_role
        for by_role in by_stage.values()
        if Slot.Role.SAMPLED in by_role and _is_adaptive(by_role[Slot.Role.SAMPLED])
    ]
    both = [
        (by_role[Slot.Role.SAMPLED], by_role[Slot.Role.HOLDOUT]) for by_role in adaptive if Slot.Role.HOLDOUT in by_role
    ]
    measures = range(len(read[0].estimands.measures))
    reason = "" if both else "no adaptive stage has answers to a holdout" if adaptive else "no stage is adaptive"
    first = [
        _only(stage_read, np.array([answer.position == 1 for answer in stage_read.answers], dtype=bool), None)
        for stage_read in read
    ]
    return CarryOver(
        differences=tuple(_sampled_minus_holdout(both, index) for index in measures) if both else (),
        first_items=tuple(
            replace(_figure(first, index, is_part=True), naive=None, superpopulation=None) for index in measures
        ),
        no_difference=reason,
    )


def _is_adaptive(read: _Reading) -> bool:
    return len(read.part.names) > 1 or read.part.is_unequal


def _sampled_minus_holdout(both: Sequence[tuple[_Reading, _Reading]], index: int) -> StudyFigure:
    """By the weights of the holdouts' plans: they have fewer answers than the sampled slots, and decide the error."""
    estimates = []
    for pair in both:
        means = []
        for reading in pair:
            measure = reading.estimands.measures[index]
            means.append(
                analysis.estimate(
                    reading.part, measure.values, where=measure.where, per=measure.per, share=measure.is_share
                )
            )
        estimates.append(analysis.sampled_minus_holdout(*means))
    holdouts = [holdout for _sampled, holdout in both]
    measure = holdouts[0].estimands.measures[index]
    return analysis.cut(_combined(holdouts, estimates, measure, None), measure.range_of_difference)


# At any time


@dataclass(frozen=True, eq=False)
class InterimLook:
    """What a look at a stage finds: the estimate, or the reason why there is none."""

    estimate: Estimate | None
    reason: str
    answers: int


def take_interim_look(stage: Stage, *, factor: str, until: datetime) -> InterimLook:
    """The first figure from a stage's sampled slots alone, by the answers that count and were complete before `until`.

    Args:
        factor: the difference between this factor's two levels instead.
    """
    instrument = instruments.of_study(stage.study)
    rows = read_stage(stage, instrument, {})
    answers = [answer for answer in rows.answers if answer.completed_at is not None and answer.completed_at < until]
    thresholds = tuple(instruments.estimates_of(instrument).default_thresholds())
    read = _read(replace(rows, answers=answers), Slot.Role.SAMPLED, instrument, thresholds, {})
    if read is None:
        return InterimLook(None, "no answers", 0)
    estimate, reason = _first_figure(read, factor)
    return InterimLook(estimate, reason, len(read.answers))


def _first_figure(read: _Reading, factor: str) -> tuple[Estimate | None, str]:
    measure = read.estimands.measures[0]
    if not factor:
        return analysis.estimate(
            read.part, measure.values, where=measure.where, per=measure.per, share=measure.is_share
        )
    first, second = (read.divisions[factor] == level for level in _levels_of(read, factor))
    return analysis.effect(read.part, measure.values, first=first, second=second, where=measure.where, per=measure.per)


def _levels_of(read: _Reading, factor: str) -> list[str]:
    """A factor's two levels in the order in which the estimates compare them: the second minus the first."""
    conditions = read.answers[0].slot.stage.study.config.conditions
    return sorted(next(condition.levels for condition in conditions if condition.factor == factor))


def interval_by(rule: Mapping[str, Any]) -> dict[str, Any]:
    """How a stopping rule lays its intervals around an estimate, as `bandit.anytime_interval` takes it."""
    return {name: rule[name] for name in ("rho", "alpha", "span", "scale")}


def _anytime_lines(stages: Sequence[Stage], read: Sequence[_Reading]) -> Iterator[AnytimeLine]:
    """Of each stage whose people come one after the other: its first figure, and the difference by each factor with
    two levels."""
    by_index = {stage.index: stage for stage in stages}
    for reading in read:
        stage, first = by_index[reading.part.stage], reading.estimands.measures[0]
        if reading.part.role != Slot.Role.SAMPLED or reading.part.item is not None or reading.part.obstacle:
            continue
        rule = stage.manifest.get("stop")
        rho = rule["rho"] if rule else anytime_rho(stage.manifest.get("sittings", stage.config.sittings))
        looks = list(stage.looks.values_list("reached", flat=True)) if rule else []
        factors = [
            shown_condition.factor
            for shown_condition in shown_conditions(stage.study)
            if len(shown_condition.levels) == 2
        ]
        for factor in ("", *factors):
            estimate, _reason = _first_figure(reading, factor)
            if estimate is None or not estimate.standard_error > 0:
                continue
            is_ruled = rule is not None and (rule["factor"] or "") == factor
            if rule is not None and is_ruled:
                how = interval_by(rule)
            elif factor:
                how = {"rho": rho, "span": first.range_of_difference}
            else:
                how = {"rho": rho, "span": first.range, "scale": first.scale}
            seen = bandit.anytime_interval(estimate, **how)
            yield AnytimeLine(
                stage=stage.index,
                factor=factor,
                label=" - ".join(reversed(_levels_of(reading, factor))) if factor else "",
                title=first.title,
                unit=first.unit,
                people=seen.people,
                value=seen.value,
                standard_error=seen.standard_error,
                low=seen.interval[0],
                high=seen.interval[1],
                rule_width=rule["width"] if rule is not None and is_ruled else None,
                looks=len(looks) if is_ruled else 0,
                stopped=is_ruled and any(looks),
                notes=f"too few: {estimate.too_few}" if estimate.too_few else "",
            )


def rule_in_words(line: AnytimeLine) -> str:
    """The stopping rule that is about this line, and how far it is; empty without one."""
    if line.rule_width is None:
        return ""
    width = f"{short(100 * line.rule_width)} points" if line.unit == SHARE else short(line.rule_width)
    state = "ended the stage" if line.stopped else "not reached"
    return f"until narrower than {width}: {state}, {line.looks} {'look' if line.looks == 1 else 'looks'}"


# The test stage


def _majority_lines(stage: Stage) -> Iterator[MajorityLine]:
    """Each stratum of a test stage that has items, and all of them together."""
    majorities = majorities_of(stage)
    if not majorities:
        return
    strata = list(dict.fromkeys(majority.stratum for majority in majorities))
    for name in [*(strata if len(strata) > 1 else ()), ""]:
        inside = [majority for majority in majorities if name in ("", majority.stratum)]
        labels = [majority.label for majority in inside if majority.label is not None]
        notes = []
        if name == "" and len(strata) > 1:
            notes.append("a mixture of the ends of the scores, no share of all items")
        if len(labels) < len(inside):
            notes.append(f"{len(inside) - len(labels)} items with a tie are left out")
        if 0 < len(labels) < MIN_LABELLED:
            notes.append(f"fewer than {MIN_LABELLED} labelled items: no share")
        found_share = _share_of(labels) if len(labels) >= MIN_LABELLED else None
        yield MajorityLine(
            stage=stage.index,
            stratum=name,
            items=len(inside),
            label_1=labels.count(1),
            label_0=labels.count(0),
            tied=sum(majority.tied for majority in inside),
            left_out=len(inside) - len(labels),
            fewest_answers=min(majority.answered for majority in inside),
            most_answers=max(majority.answered for majority in inside),
            share=found_share.value if found_share else None,
            low=found_share.interval[0] if found_share else None,
            high=found_share.interval[1] if found_share else None,
            notes="; ".join(notes),
        )


def _share_of(labels: Sequence[int]) -> Estimate:
    """The share of label 1, each item counted once."""
    return bandit.hajek(values=labels, probability=np.ones(len(labels)), cluster=np.arange(len(labels)), share=True)


# Reading


def _read(
    rows: StageRows,
    role: str,
    instrument: Instrument,
    thresholds: Sequence[int],
    levels: Mapping[str, str],
) -> _Reading | None:
    """One part; None if the stage has no such slots or no answers to them."""
    stage = rows.stage
    planned = [row for row in rows.slots if row.slot.role == role]
    answers = rows.answers_to(role)
    if not planned or not answers:
        return None
    pool = planned[0].slot.pool_probability or 1.0
    strata: dict[int, Stratum] = {row.slot.stratum_id: row.slot.stratum for row in planned if row.slot.stratum}  # type: ignore[misc]
    if role == Slot.Role.SAMPLED:
        # A stratum without slots is included: its candidates can never be answered.
        used = set(
            stage.slots.exclude(role=Slot.Role.SAMPLED).filter(stratum__isnull=False).values_list("stratum", flat=True)
        )
        strata |= {stratum.pk: stratum for stratum in stage.strata.all() if stratum.pk not in used}
    ordered = sorted(strata.values(), key=lambda stratum: stratum.pk)
    place = {stratum.pk: index for index, stratum in enumerate(ordered)}
    sizes = tuple(stratum.size for stratum in ordered)
    counts = Counter(row.slot.stratum_id for row in planned)
    candidates = sum(sizes)
    part = StagePart(
        stage=stage.index,
        role=role,
        names=tuple(stratum.name for stratum in ordered),
        sizes=sizes,
        slots=tuple(counts[stratum.pk] for stratum in ordered),
        universe_size=None if pool >= 1 else max(candidates, round(candidates / pool)),
        stratum=np.array([place[int(answer.slot.stratum_id or 0)] for answer in answers], dtype=np.int64),
        cluster=np.array([answer.sitting.respondent_id for answer in answers], dtype=np.int64),
        probability=np.array([answer.slot.inclusion_probability for answer in answers], dtype=np.float64),
        planned_probability=np.array([row.slot.inclusion_probability for row in planned], dtype=np.float64),
        item=np.array([answer.slot.item_id for answer in answers], dtype=np.int64)
        if any(row.slot.replicate > 1 for row in planned)
        else None,
        people=people_of(stage, len(planned)),
        unanswered=_unanswered(rows, role, place, levels),
        subjects=subjects_of(answers, instrument),
    )
    estimates = instruments.estimates_of(instrument)
    estimands = estimates.estimands(answers, thresholds=thresholds)
    divisions = rows.divisions_of(answers)
    if conditions := stage.study.config.conditions:
        under = [answer.levels() for answer in answers]
        for condition in conditions:
            divisions[condition.factor] = np.array(
                [own_levels.get(condition.factor, "") for own_levels in under], dtype=str
            )
    line = PartLine(
        stage=stage.index,
        role=role,
        state=stage.state,
        design=str(stage.manifest.get("design", {}).get("kind", "")) if role == Slot.Role.SAMPLED else "uniform",
        candidates=candidates,
        universe_size=part.universe_size or candidates,
        weight=part.plan_weight,
        strata=tuple(
            _stratum_line(
                stratum, [row for row in planned if row.slot.stratum_id == stratum.pk], part, index, estimands
            )
            for index, stratum in enumerate(ordered)
        ),
        predictions="",
    )
    return _Reading(part, line, answers, estimands, divisions, stage.study.config.estimates.odds_ratio)


def subjects_of(answers: Sequence[Assignment], instrument: Instrument) -> np.ndarray | None:
    """The questions of each answer's item (n, 2), -1 for none; None unless every item is about one or two."""
    keys = instrument.rows.question_keys_of([answer.slot.item for answer in answers])
    if not all(1 <= len(own) <= bandit.MAX_SUBJECTS for own in keys):
        return None
    return np.array([(*own, *(-1,) * (bandit.MAX_SUBJECTS - len(own))) for own in keys], dtype=np.int64)


def _unanswered(rows: StageRows, role: str, place: Mapping[int, int], levels: Mapping[str, str]) -> Unanswered:
    """The items that people of this part, under these levels, were given and have no answer to that counts."""
    lost = [
        item
        for item in [*filter(leavers.is_lost, rows.given), *rows.excluded]
        if item.slot.role == role and all(item.levels.get(factor) == level for factor, level in levels.items())
    ]
    out = {id(item) for item in rows.excluded}
    divisions = rows.divisions_of(lost)
    for condition in rows.stage.study.config.conditions:
        divisions[condition.factor] = np.array([item.levels.get(condition.factor, "") for item in lost], dtype=str)
    return Unanswered(
        stratum=np.array([place[int(item.slot.stratum_id or 0)] for item in lost], dtype=np.int64),
        cluster=np.array([item.sitting.respondent_id for item in lost], dtype=np.int64),
        probability=np.array([item.slot.inclusion_probability for item in lost], dtype=np.float64),
        divisions=divisions,
        is_excluded=np.array([id(item) in out for item in lost], dtype=bool),
    )


def _with_leaving(
    study: Study,
    rows: Sequence[StageRows],
    read: Sequence[_Reading],
    instrument: Instrument,
    thresholds: Sequence[int],
    levels: Mapping[str, str],
) -> tuple[list[_Reading], Leaving]:
    """The parts with each answer's chance that its person was still there, and what is known of people who left."""
    first = read[0].estimands.measures[0]
    if levels:  # What somebody answered under another level counts for whether they left.
        answers = [item.answer for of_stage in rows for item in of_stage.given if item.answer is not None]
        own = [(answers, instruments.estimates_of(instrument).estimands(answers, thresholds=thresholds).measures[0])]
    else:
        own = [(reading.answers, reading.estimands.measures[0]) for reading in read]
    values = {
        answer.pk: float(value)
        for answers, measure in own
        for answer, value in zip(answers, _of_each(measure), strict=True)
        if np.isfinite(value)
    }
    answered = leavers.read_answered(rows, values, [condition.factor for condition in study.config.conditions])
    chances, problem = leavers.staying_chances(answered, study.config.seed)
    if chances:
        read = [
            replace(
                reading, part=replace(reading.part, staying=np.array([chances.get(a.pk, 1.0) for a in reading.answers]))
            )
            for reading in read
        ]
    factors = [condition.factor for condition in shown_conditions(study)]
    return list(read), Leaving(
        outcome=first.title,
        odds_ratio=read[0].odds_ratio,
        no_weights=problem,
        lines=tuple(leavers.lines(rows, answered, factors, levels)),
        excluded=tuple(leavers.excluded_lines(rows, factors, levels)),
        finished_late=leavers.finished_late(rows, levels),
    )


def _stratum_line(
    stratum: Stratum, rows: Sequence[SlotRow], part: StagePart, index: int, estimands: Estimands
) -> StratumLine:
    first = estimands.measures[0] if estimands.measures else None
    inside = part.stratum == index
    values = np.empty(0) if first is None else first.values[inside]
    below = float(values.size if first is None or first.per is None else first.per[inside].sum())
    return StratumLine(
        name=stratum.name,
        size=stratum.size,
        planned=len(rows),
        **_by_state(rows),
        mean=float(values.sum() / below) if below else None,
    )


def _by_state(rows: Sequence[SlotRow]) -> dict[str, int]:
    counts = Counter(row.state for row in rows)
    return {state: counts[state] for state in STATES}


def _slot_tables(slots: Sequence[SlotRow], division: str | None) -> dict[str, tuple[SlotLine, ...]]:
    """By the instrument's first division, if it has one, and by position."""
    by_part = {} if division is None or not slots else {division: _slot_lines(slots, [row.part for row in slots])}
    return {**by_part, "position": _slot_lines(slots, [row.position or 0 for row in slots])}


def _slot_lines(slots: Sequence[SlotRow], labels: Sequence[Any]) -> tuple[SlotLine, ...]:
    groups: dict[Any, list[SlotRow]] = {}
    for row, label in zip(slots, labels, strict=True):
        groups.setdefault(label, []).append(row)
    return tuple(
        SlotLine(label="none yet" if label == 0 else str(label), planned=len(rows), **_by_state(rows))
        for label, rows in sorted(groups.items())
    )


# Estimating


def _combined(
    read: Sequence[_Reading], estimates: Any, measure: Any, naive: Estimate | None, **pooled: Any
) -> StudyFigure:
    return analysis.combine(
        [part.part for part in read],
        estimates,
        name=measure.name,
        title=measure.title,
        unit=measure.unit,
        naive=naive,
        **pooled,
    )


def _figure(
    read: Sequence[_Reading],
    index: int,
    inside: Sequence[np.ndarray] | None = None,
    lost: Sequence[np.ndarray] | None = None,
    *,
    is_part: bool = False,
) -> StudyFigure:
    """One measure, over all candidates or, with `inside` (a mask of the answers of each part) and `lost` (a mask of its
    unanswered items), over some of them. `is_part`: it is the figure of a part of the items or people, of several."""
    measures = [part.estimands.measures[index] for part in read]
    masks = [
        analysis.in_both(measure.where, None if inside is None else inside[place])
        for place, measure in enumerate(measures)
    ]
    estimates = [
        analysis.estimate(part.part, measure.values, where=mask, per=measure.per, share=measure.is_share)
        for part, measure, mask in zip(read, measures, masks, strict=True)
    ]
    below = [measure.per for measure in measures if measure.per is not None]
    plain = analysis.naive(
        [part.part for part in read],
        [measure.values for measure in measures],
        masks,
        measures[0].is_share,
        below if len(below) == len(measures) else None,
    )
    parts = [part.part for part in read]
    values = [measure.values for measure in measures]
    share = measures[0].is_share
    pooled, with_weights = (
        [
            part.stage_answers(own, inside=mask, per=measure.per, weighted_for_leaving=weighted)
            for part, own, measure, mask in zip(parts, values, measures, masks, strict=True)
        ]
        if below or any(mask is not None for mask in masks)
        else []
        for weighted in (False, True)
    )
    figure = _combined(read, estimates, measures[0], plain, pooled=pooled, share=share)
    figure = _widened(figure, parts, measures, values, masks, is_part=is_part)
    weighted = [
        analysis.stayed(part, own, where=mask, per=measure.per, share=share)
        for part, own, measure, mask in zip(parts, values, measures, masks, strict=True)
    ]
    bounds, worst, with_excluded = (
        None
        if below or (excluded and not _excludes(parts))
        else analysis.with_losses(
            analysis.bounds_of(
                figure,
                parts,
                values,
                where=[measure.where for measure in measures],
                inside=inside,
                lost=lost,
                odds_ratio=odds_ratio,
                span=measures[0].span,
                share=share,
                with_excluded=excluded,
            )
        )
        for odds_ratio, excluded in ((read[0].odds_ratio, False), (np.inf, False), (read[0].odds_ratio, True))
    )
    figure = replace(
        figure,
        superpopulation=analysis.superpopulation(figure, parts, values, masks, [measure.per for measure in measures]),
        stayed=analysis.stayed_of(figure, parts, weighted, pooled=with_weights, share=share),
        bounds=bounds,
        worst_case=worst,
        with_excluded=with_excluded,
    )
    figure = analysis.widen_for_heavy_people(figure, parts, values, masks, [measure.per for measure in measures])
    return analysis.cut(figure, measures[0].range)


def _widened(
    figure: StudyFigure,
    parts: Sequence[StagePart],
    measures: Sequence[Measure],
    values: Sequence[np.ndarray],
    masks: Sequence[np.ndarray | None],
    *,
    is_part: bool,
) -> StudyFigure:
    """The figure with an interval that allows for a few answers that decide it, where there may be such."""
    below = [measure.per for measure in measures]
    if measures[0].has_far_answers:
        return analysis.widen_for_far_answers(figure, parts, values, masks, below)
    if is_part and not measures[0].is_share and all(per is None for per in below):
        return analysis.for_a_part(figure, parts, values, masks, below)
    return figure


def _excludes(parts: Iterable[StagePart]) -> bool:
    """Whether a rule leaves out somebody who was given items of these parts."""
    return any(part.unanswered is not None and part.unanswered.excludes for part in parts)


def _check(read: Sequence[_Reading], index: int) -> StudyFigure:
    checks = [part.estimands.checks[index] for part in read]
    differences = [
        analysis.difference(part.part, check.values, first=check.first, second=check.second)
        for part, check in zip(read, checks, strict=True)
    ]
    pooled = [
        part.part.stage_answers(check.values, first=check.first, inside=check.second)
        for part, check in zip(read, checks, strict=True)
    ]
    return _combined(read, differences, checks[0], None, pooled=pooled)


def _by_level(read: Sequence[_Reading], name: str, groups: PeopleGroups | None = None) -> DivisionFigures:
    """Estimates by the levels of a factor, or by `groups` of people. Levels are drawn at random, and items are dealt to
    people no matter who they are, so each level's answers represent all candidates: r_h counts the answers under that
    level.
    """
    parts = [part.divisions[name] for part in read]
    known = {str(label) for part in parts for label in part} - {""}
    labels = sorted(known) if groups is None else [label for label in groups.labels if label in known]
    measures = range(len(read[0].estimands.measures))
    people, withheld = _people_in(read, parts, labels) if groups is not None else ((), ())
    shown_labels = [label for place, label in enumerate(labels) if not withheld or not withheld[place]]
    under = {label: [_under(reading, name, label) for reading in read] for label in shown_labels}
    with_rest = {
        label
        for label in shown_labels
        if (len(labels) > 2 if groups is None else sum(people) - people[labels.index(label)] >= MIN_PEOPLE)
    }
    others = {label: [_under(reading, name, OTHERS, against=label) for reading in read] for label in with_rest}
    return DivisionFigures(
        name=name,
        labels=tuple(labels),
        figures=tuple(
            tuple(_assisted(under[label], index, is_part=True) for index in measures) if label in under else ()
            for label in labels
        ),
        differences=tuple(_effect(read, name, labels, index, [under[label] for label in labels]) for index in measures)
        if groups is None and len(labels) == 2
        else (),
        note="Levels are drawn at random: each level's answers stand for all candidates, weighted by themselves."
        if groups is None
        else groups.note + _said_by_nobody(groups, known),
        people=people,
        withheld=withheld,
        rest=tuple(
            tuple(_effect(read, name, (OTHERS, label), index, (others[label], under[label])) for index in measures)
            if label in with_rest
            else ()
            for label in labels
        )
        if with_rest
        else (),
    )


def _said_by_nobody(groups: PeopleGroups, known: Collection[str]) -> str:
    unsaid = [label for label in groups.labels if label not in known and label != NO_ANSWER]
    return f" Nobody whose answers count said: {', '.join(unsaid)}." if unsaid else ""


def _groups(study: Study, read: Sequence[_Reading], by: Sequence[str]) -> dict[str, PeopleGroups]:
    """By name: the groups of people that were asked for."""
    asked = people_questions(study, own_divisions(study))
    people = {int(person) for reading in read for person in reading.part.cluster}
    return {name: groups_of(study, asked[name], people) for name in by if name in asked}


def _with_groups(read: _Reading, groups: Mapping[str, PeopleGroups]) -> _Reading:
    """The part with each answer's, and each unanswered item's, group of people among its divisions."""
    if not groups:
        return read
    divisions = read.divisions | {name: people_groups.of(read.part.cluster) for name, people_groups in groups.items()}
    lost = read.part.unanswered
    if lost is not None:
        own = {name: people_groups.of(lost.cluster) for name, people_groups in groups.items()}
        lost = replace(lost, divisions={**lost.divisions, **own})
    return replace(read, part=replace(read.part, unanswered=lost), divisions=divisions)


def _people_in(
    read: Sequence[_Reading], parts: Sequence[np.ndarray], labels: Sequence[str]
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """By label: how many people, and why there are no figures of them ("" where there are)."""
    people = tuple(
        len(
            {
                person
                for reading, part in zip(read, parts, strict=True)
                for person in reading.part.cluster[part == label]
            }
        )
        for label in labels
    )
    return people, tuple("" if count >= MIN_PEOPLE else too_few(count) for count in people)


def _under(read: _Reading, factor: str, label: str, *, against: str = "") -> _Reading:
    """The part with the answers under one level alone; with the label `OTHERS`, under all but the one it is compared
    with (`against`)."""
    unanswered = read.part.unanswered
    lost = None if unanswered is None else _is_under(unanswered.divisions[factor], label, against)
    return _only(read, _is_under(read.divisions[factor], label, against), lost)


def _only(read: _Reading, mask: np.ndarray, lost: np.ndarray | None) -> _Reading:
    """The part with some of its answers and of its unanswered items (None: without these) alone, weighted by
    themselves."""
    measures = [
        replace(
            measure,
            values=measure.values[mask],
            where=None if measure.where is None else measure.where[mask],
            per=None if measure.per is None else measure.per[mask],
        )
        for measure in read.estimands.measures
    ]
    return replace(
        read, part=read.part.under(mask, lost), estimands=replace(read.estimands, measures=measures, checks=())
    )


def _is_under(levels: np.ndarray, label: str, against: str) -> np.ndarray:
    mask: np.ndarray = (levels != "") & (levels != against) if label == OTHERS else levels == label
    return mask


def _effect(
    read: Sequence[_Reading], factor: str, labels: Sequence[str], index: int, sides: Sequence[Sequence[_Reading]]
) -> StudyFigure:
    """One measure under the second level minus that under the first, or under all others (`OTHERS`), over the
    candidates that the measure is over; weighted for leaving, and with bounds, next to it. `sides`: the parts under
    these two, by `_under`, which are the same for each measure."""
    measures = [reading.estimands.measures[index] for reading in read]
    first = [_is_under(reading.divisions[factor], labels[0], labels[1]) for reading in read]
    second = [_is_under(reading.divisions[factor], labels[1], "") for reading in read]

    def found(*, weighted_for_leaving: bool) -> list[tuple[Estimate | None, str]]:
        return [
            analysis.effect(
                reading.part,
                measure.values,
                first=under,
                second=other,
                where=measure.where,
                per=measure.per,
                weighted_for_leaving=weighted_for_leaving,
            )
            for reading, measure, under, other in zip(read, measures, first, second, strict=True)
        ]

    figure = _combined(read, found(weighted_for_leaving=False), measures[0], None)
    if figure.combined is None:
        return figure
    stayed = analysis.stayed_of(figure, [reading.part for reading in read], found(weighted_for_leaving=True))
    span = measures[0].range_of_difference
    figure = analysis.cut(_with_bounds(replace(figure, stayed=stayed), sides, index), span)
    if not _has_predictions(read, measures[0]):
        return figure
    results = [
        analysis.assisted_effect(reading.part, measure.values, first=under, second=other, per=measure.per)
        for reading, measure, under, other in zip(read, measures, first, second, strict=True)
    ]
    helped = _combined(read, [(result.estimate, result.reason) for result in results], measures[0], None)
    return replace(figure, assisted=analysis.cut(_with_coefficients(helped, results), span))


def _with_bounds(
    figure: StudyFigure,
    sides: Sequence[Sequence[_Reading]],
    index: int,
    masks: Sequence[tuple[Sequence[np.ndarray] | None, Sequence[np.ndarray] | None]] = ((None, None), (None, None)),
) -> StudyFigure:
    """A difference with its bounds: those of the means of its two sides, from its own stages with their weights.

    Args:
        sides: the parts of the first and of the second side.
        masks: of each side the answers and the unanswered items that it is about; None for all.
    """
    if sides[0][0].estimands.measures[index].per is not None:
        return figure
    people = [_people_of(side, inside) for side, (inside, _lost) in zip(sides, masks, strict=True)]

    def bounds(odds_ratio: float, *, with_excluded: bool = False) -> Bounds | None:
        first_side, other = (
            _bounds_of_side(
                figure, side, index, inside=inside, lost=lost, odds_ratio=odds_ratio, with_excluded=with_excluded
            )
            for side, (inside, lost) in zip(sides, masks, strict=True)
        )
        if first_side is None or other is None or figure.combined is None:
            return None
        same_people = not people[0].isdisjoint(people[1])
        return analysis.with_losses(
            bandit.difference_of_bounds(first_side, other, same_people=same_people, plain=figure.combined)
        )

    odds_ratio = sides[0][0].odds_ratio
    excluded = _excludes(reading.part for side in sides for reading in side)
    return replace(
        figure,
        bounds=bounds(odds_ratio),
        worst_case=bounds(np.inf),
        with_excluded=bounds(odds_ratio, with_excluded=True) if excluded else None,
    )


def _people_of(side: Sequence[_Reading], inside: Sequence[np.ndarray] | None) -> set[int]:
    clusters = [reading.part.cluster for reading in side]
    if inside is not None:
        clusters = [own[mask] for own, mask in zip(clusters, inside, strict=True)]
    return set(np.concatenate(clusters).tolist())


def _bounds_of_side(
    figure: StudyFigure,
    side: Sequence[_Reading],
    index: int,
    *,
    inside: Sequence[np.ndarray] | None,
    lost: Sequence[np.ndarray] | None,
    odds_ratio: float,
    with_excluded: bool,
) -> Bounds | None:
    measures = [reading.estimands.measures[index] for reading in side]
    return analysis.bounds_of(
        figure,
        [reading.part for reading in side],
        [measure.values for measure in measures],
        where=[measure.where for measure in measures],
        inside=inside,
        lost=lost,
        odds_ratio=odds_ratio,
        span=measures[0].span,
        share=measures[0].is_share,
        is_side=True,
        with_excluded=with_excluded,
    )


def _divided(read: Sequence[_Reading], name: str) -> DivisionFigures:
    parts = [part.divisions[name] for part in read]
    labels = sorted({str(label) for part in parts for label in part} - {""})
    measures = range(len(read[0].estimands.measures))
    differences = []
    if len(labels) == 2:
        for index in measures:
            own = [part.estimands.measures[index] for part in read]
            if any(measure.where is not None for measure in own):
                continue
            estimates = [
                analysis.difference(
                    reading.part, measure.values, first=part == labels[0], second=part == labels[1], per=measure.per
                )
                for reading, measure, part in zip(read, own, parts, strict=True)
            ]
            pooled, with_weights = (
                [
                    reading.part.stage_answers(
                        measure.values,
                        first=part == labels[0],
                        inside=part == labels[1],
                        per=measure.per,
                        weighted_for_leaving=weighted,
                    )
                    for reading, measure, part in zip(read, own, parts, strict=True)
                ]
                for weighted in (False, True)
            )
            figure = _combined(read, estimates, own[0], None, pooled=pooled)
            if figure.combined is not None:
                weighted = [
                    analysis.difference(
                        reading.part,
                        measure.values,
                        first=part == labels[0],
                        second=part == labels[1],
                        per=measure.per,
                        weighted_for_leaving=True,
                    )
                    for reading, measure, part in zip(read, own, parts, strict=True)
                ]
                masks = [([part == label for part in parts], _lost(read, name, label)) for label in labels]
                stayed = analysis.stayed_of(figure, [reading.part for reading in read], weighted, pooled=with_weights)
                figure = _with_bounds(replace(figure, stayed=stayed), (read, read), index, masks)
            differences.append(analysis.cut(figure, own[0].range_of_difference))
    return DivisionFigures(
        name=name,
        labels=tuple(labels),
        figures=tuple(
            tuple(
                _figure(read, index, [part == label for part in parts], _lost(read, name, label), is_part=True)
                for index in measures
            )
            for label in labels
        ),
        differences=tuple(differences),
    )


def _lost(read: Sequence[_Reading], name: str, label: str) -> list[np.ndarray]:
    """Which unanswered items of each part are in a part of a division."""
    return [reading.part.unanswered.divisions[name] == label for reading in read if reading.part.unanswered is not None]


# Model assistance


def _with_predictions(study: Study, read: Sequence[_Reading], instrument: Instrument) -> list[_Reading]:
    readings = []
    for reading in read:
        predictions = _predictions(study, reading, instrument)
        source = f"none: {predictions}" if isinstance(predictions, str) else predictions.source
        readings.append(
            replace(
                reading,
                part=replace(reading.part, predictions=predictions),
                line=replace(reading.line, predictions=source),
            )
        )
    return readings


def _predictions(study: Study, read: _Reading, instrument: Instrument) -> ItemPredictions | str:
    """Predictions of one part's items, or why there are none: then the plain estimate is used."""
    part = read.part
    if part.obstacle or part.role != Slot.Role.SAMPLED:
        return part.obstacle or analysis.NO_PREDICTIONS
    stage = read.answers[0].slot.stage
    stored = CandidateSet.objects.filter(stage=stage).select_related("predictor_run").first()
    if stored is None:
        return analysis.NO_PREDICTIONS
    stored.stage = stage
    stage.study = study
    if stored.kind == CandidateSet.Kind.EXHAUSTIVE:
        return _predictions_of_everything(read, instrument, stored)
    rows = files.load_array(stored.file_sha256)
    if SCORE in (rows.dtype.names or ()):
        scores = np.array([np.nan if a.slot.score is None else a.slot.score for a in read.answers])
        means = _mean_scores(stage, part, rows)
        if means is None:
            return "the strata of the plan cannot be made again from its scores"
        run, missing = stored.predictor_run, int(np.isnan(scores).sum())
        if missing == scores.size:
            return "none of these answers has a prediction"
        source = f"{run.name}, trained on earlier answers" if run else "scores"
        if missing:
            source += f"; {missing} of {scores.size} answers have none, and nothing is taken off these"
        return ItemPredictions(scores, means, source=source)
    estimates = instruments.estimates_of(instrument)
    features = estimates.item_features([answer.slot.item for answer in read.answers])
    if not features.shape[1]:
        return "nothing is known of these items that could predict answers"
    questions = candidate_questions(stored)
    if questions is None:
        return "the questions are no longer those of the plan"
    return analysis.folded_predictions(
        part,
        read.estimands.measures[0].values,
        item=np.array([answer.slot.item_id for answer in read.answers], dtype=np.int64),
        features=features,
        candidates=estimates.candidate_features(rows=plain_rows(rows), questions=questions),
        rng=generator(stage.seed, "folds"),
    )


def _predictions_of_everything(read: _Reading, instrument: Instrument, stored: CandidateSet) -> ItemPredictions | str:
    """Predictions of the fast scorer that cut all items: its means over strata are stored. None with a shortlist."""
    stage = read.answers[0].slot.stage
    means = {stratum.name: stratum.mean_score for stratum in stage.strata.all()}
    own = [mean for name in read.part.names if (mean := means[name]) is not None]
    if not stored.file_sha256:
        return "no predictor planned this stage"
    if stored.shortlist_sha256 or len(own) < len(read.part.names):
        return "the mean prediction of all items was not stored"
    questions = candidate_questions(stored)
    if questions is None:
        return "the questions are no longer those of the plan"
    keys = {answer.slot.item.key for answer in read.answers}
    pairing = instruments.pairing_of(instrument)
    ranks = pairing.ranks_of(keys, questions)
    scores = pairing.scores_at(files.load_array(stored.file_sha256), ranks)
    of_key = {
        instrument.item_key(row, questions): float(score)
        for row, score in zip(pairing.rows_at(ranks, questions), scores, strict=True)
    }
    predicted = np.array([of_key[answer.slot.item.key] for answer in read.answers])
    return ItemPredictions(predicted, tuple(own), source="the scorer that planned the stage")


def _mean_scores(stage: Stage, part: StagePart, rows: np.ndarray) -> tuple[float, ...] | None:
    """The mean score of each stratum's candidates, cut as the plan was: by the same numbers, ties by the same seed."""
    scores = rows[SCORE].astype(np.float64)
    design = DesignConfig.model_validate(stage.manifest["design"]).build()
    disagreement = rows[DISAGREEMENT] if DISAGREEMENT in (rows.dtype.names or ()) else None
    try:
        cut = design.strata(
            drawing_scores(rows),
            generator(stage.manifest["seed"], "draw"),
            n_candidates=len(rows),
            disagreement=disagreement,
        )
    except DesignError:
        return None
    if dict(zip(cut.names, cut.sizes, strict=True)) != dict(zip(part.names, part.sizes, strict=True)):
        return None
    return tuple(float(scores[cut.label == cut.names.index(name)].mean()) for name in part.names)


def _assisted(read: Sequence[_Reading], index: int, *, is_part: bool = False) -> StudyFigure:
    """A measure over all items, with the same measure with the help of predictions next to it."""
    figure, measures = _figure(read, index, is_part=is_part), [reading.estimands.measures[index] for reading in read]
    first, parts = measures[0], [reading.part for reading in read]
    if not _has_predictions(read, first):
        return figure
    results = [
        analysis.assisted(part, own.values, per=own.per, share=own.is_share)
        for part, own in zip(parts, measures, strict=True)
    ]
    values = [result.adjusted(own.values) for own, result in zip(measures, results, strict=True)]
    pooled = [
        part.stage_answers(value, inside=None, per=own.per)
        for part, own, value in zip(parts, measures, values, strict=True)
        if own.per is not None
    ]
    helped = _combined(read, [(result.estimate, result.reason) for result in results], first, None, pooled=pooled)
    helped = _widened(helped, parts, measures, values, [None] * len(parts), is_part=is_part)
    return replace(figure, assisted=analysis.cut(_with_coefficients(helped, results), first.range))


def _has_predictions(read: Sequence[_Reading], measure: Measure) -> bool:
    """Whether there are predictions of all the items that a measure is over, in some part."""
    return measure.where is None and any(not isinstance(reading.part.predictions, str) for reading in read)


def _with_coefficients(figure: StudyFigure, results: Sequence[Assisted]) -> StudyFigure:
    pairs = zip(figure.stages, results, strict=True)
    return replace(figure, stages=tuple(replace(stage, coefficient=result.coefficient) for stage, result in pairs))


# Controls


def _noise(
    rows: Sequence[StageRows],
    read: Sequence[_Reading],
    instrument: Instrument,
    thresholds: Sequence[int],
    first_figure: StudyFigure,
) -> Noise:
    """From control and repeat slots: false changes by kind, retests by measure, and the limit of the AUC."""
    controls: list[Assignment] = []
    again: list[Assignment] = []
    firsts, repeats = [], []
    for of_stage in rows:
        for answer in of_stage.answers_to(Slot.Role.CONTROL):
            (again if answer.slot.control_kind == ANOTHER_PERSON else controls).append(answer)
        first: dict[tuple[int, int | None], Assignment] = {
            (answer.sitting_id, answer.slot_id): answer for answer in of_stage.answers if answer.slot.role in ESTIMATED
        }
        for answer in of_stage.answers_to(Slot.Role.REPEAT):
            before = first.get((answer.sitting_id, answer.slot.repeat_of_id))
            if before is not None:  # Otherwise the item was lost, or went to somebody else.
                firsts.append(before)
                repeats.append(answer)
    is_share = read[0].estimands.measures[0].is_share
    false_changes = {}
    if not is_share:  # Only a 0/1 measure can be a false change.
        controls = []
    kinds = sorted({answer.slot.control_kind for answer in controls})
    for kind in kinds:
        of_kind = [answer for answer in controls if answer.slot.control_kind == kind]
        false_changes[kind] = _false_change(of_kind, instrument, thresholds)
    if len(kinds) > 1:
        false_changes["all kinds"] = _false_change(controls, instrument, thresholds)
    retests = {}
    if repeats:
        first_estimands, other = (
            instruments.estimates_of(instrument).estimands(part, thresholds=thresholds) for part in (firsts, repeats)
        )
        cluster = [answer.sitting.respondent_id for answer in repeats]
        weight = item_noise.stage_weights(firsts)
        for name in first_estimands.retested:
            values = [
                _of_each(next(measure for measure in part.measures if measure.name == name))
                for part in (first_estimands, other)
            ]
            both = np.isfinite(values[0]) & np.isfinite(values[1])
            if both.any():
                retests[name] = bandit.retest_correlation(
                    first=values[0][both],
                    second=values[1][both],
                    cluster=np.asarray(cluster)[both],
                    weight=weight[both],
                )
    first_of = instruments.estimates_of(instrument).estimands(again, thresholds=thresholds).measures[0]
    limit, reason = item_noise.auc_limit(
        [(reading.part, reading.answers, reading.estimands.measures[0].values) for reading in read],
        list(zip(again, first_of.values, strict=True)),
        share=first_figure.combined if is_share else None,
        title=first_figure.title,
    )
    return Noise(false_changes, retests, limit, reason)


def _of_each(measure: Measure) -> np.ndarray:
    """The measure of each single answer; NaN if it would divide by 0."""
    if measure.per is None:
        return measure.values
    return np.divide(
        measure.values, measure.per, out=np.full(len(measure.values), np.nan), where=np.asarray(measure.per) > 0
    )


def _false_change(answers: Sequence[Assignment], instrument: Instrument, thresholds: Sequence[int]) -> Estimate:
    first = instruments.estimates_of(instrument).estimands(answers, thresholds=thresholds).measures[0]
    return bandit.false_change_rate(changed=first.values, cluster=[answer.sitting.respondent_id for answer in answers])
