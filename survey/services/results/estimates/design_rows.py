"""What every figure of `estimate` is computed from, as rows: the sampling design, and what each answer says.

`check.R` computes all figures again from these rows alone. Imports models and below.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from survey.contracts import instruments
from survey.contracts.measures import Estimands
from survey.contracts.tables import Column, ExtraFile, ValueColumn
from survey.models import Question, Respondent, Study
from survey.services.answers.blinding import shown_conditions
from survey.services.plans.planning import anytime_rho
from survey.study_file import WeightingConfig

from .people_groups import people_questions
from .population import groups_in_margins
from .stage_rows import StageRows
from .study_estimates import ReadStudy, _Reading, own_divisions, read_study
from .study_figures import StagePart

ANSWERED, UNANSWERED, EXCLUDED, PLANNED = "answered", "unanswered", "excluded", "planned"
DESIGN, FIGURES, MARGINS = "design.csv", "figures.csv", "margins.csv"


class DesignRow(NamedTuple):
    """An answer, an item that somebody was given and did not answer, or a slot that has no answer. `own`: the values of
    the columns that depend on the study."""

    part: StagePart
    wave: int
    rho: float
    state: str
    stratum: int
    chance: float | None
    slot: int | None = None
    respondent: str | None = None
    position: int | None = None
    item: str | None = None
    questions: Sequence[str | None] = (None, None)
    staying: float | None = None
    weight_leaving: float | None = None
    prediction: float | None = None
    prediction_mean: float | None = None
    own: Mapping[str, Any] = {}


COLUMNS = (
    ValueColumn("stage", "number", "The stage, from 1.", whole=True, value="part.stage"),
    ValueColumn("role", "text", "sampled or holdout: a part is the slots of one role of a stage.", value="part.role"),
    ValueColumn("wave", "number", "1 for the person's first pass.", whole=True),
    ValueColumn(
        "state",
        "text",
        "answered: an answer that counts. unanswered: an item that its person was given, and to which they can give no "
        "answer that counts any more. excluded: an item of a person whom a rule leaves out. planned: a slot without an "
        "answer that counts. Slots of the plan are the rows answered and planned.",
    ),
    ValueColumn("slot", "number", "The slot, as in answers.csv; empty for unanswered and excluded items.", whole=True),
    ValueColumn("respondent", "text", "Pseudonym of the respondent."),
    ValueColumn("position", "number", "Place of the answer in its sitting, from 1.", whole=True),
    ValueColumn("item", "text", "The item's key, as in answers.csv."),
    ValueColumn("question_1", "text", "A question that the item is about.", value=lambda row: row.questions[0]),
    ValueColumn("question_2", "text", "The other one, where there is one.", value=lambda row: row.questions[1]),
    ValueColumn(
        "stratum",
        "text",
        "The part of the candidates that the slot was drawn from.",
        value=lambda row: row.part.names[row.stratum],
    ),
    ValueColumn(
        "candidates",
        "number",
        "N_h: the candidates of the stratum.",
        whole=True,
        value=lambda row: row.part.sizes[row.stratum],
    ),
    ValueColumn(
        "universe",
        "number",
        "U: of how many items the part's candidates are a uniform draw (the first phase); empty where they are all.",
        whole=True,
        value="part.universe_size",
    ),
    ValueColumn(
        "dealt_to", "number", "P: to how many people the plan deals the part's slots.", whole=True, value="part.people"
    ),
    ValueColumn(
        "several",
        "0 or 1",
        "1: several people answer each item of the part, so that errors are by respondent and by item.",
        value=lambda row: row.part.item is not None,
    ),
    ValueColumn("chance", "0 to 1", "pi: the slot's inclusion probability."),
    ValueColumn("rho", "number", "Of the stage's intervals that hold at any time, fixed by the plan."),
    ValueColumn(
        "staying",
        "0 to 1",
        "The chance that the person was still there to answer; empty where too few people left, or while conditions "
        "are hidden.",
    ),
    ValueColumn(
        "weight_leaving",
        "number",
        "The answer's weight in the figures weighted for leaving, 1 on average: a mean of answers with these weights "
        "is the figure of all stages. Empty where the answer enters none.",
    ),
    ValueColumn(
        "prediction",
        "number",
        "What assisted figures take for the item, by a predictor that has not seen the answer; empty without one.",
    ),
    ValueColumn("prediction_mean", "number", "The mean of these over the candidates of the stratum."),
)
FIGURE_COLUMNS = (
    Column("figure", "text", "The figure's name: its column in design.csv. Its NAME__per is what a ratio divides by."),
    Column("kind", "text", "share (of 0 and 1), mean, ratio, or check: NAME__side 2 minus NAME__side 1."),
    Column("is_part", "0 or 1", "1: it is about some of the answers alone; stages are pooled before they are divided."),
    Column("lowest", "number", "The lowest value that an answer can have; intervals are cut there. Empty: not known."),
    Column("highest", "number", "The highest value that an answer can have."),
    Column("odds_ratio", "number", "Of the bounds: between unanswered and answered items."),
)
MARGIN_COLUMNS = (
    Column("margin", "text", "The column of design.csv that has people's groups."),
    Column("group", "text", "A group of [weighting], or a cell."),
    Column("share", "0 to 1", "The population's share of it."),
    Column("trim", "number", "No person weighs more than so many people do on average."),
)


def design_files(
    study: Study,
    *,
    levels: Mapping[str, str],
    thresholds: Sequence[int] = (),
    by: Sequence[str] = (),
    weighting: WeightingConfig | None = None,
) -> tuple[ExtraFile, ...]:
    """design.csv, figures.csv and, of a study that is weighted to a population, margins.csv. Answers are read while the
    rows of design.csv are iterated.

    Args:
        weighting: the population, in place of the study file's.
    """
    estimates = instruments.of_study(study).estimates
    if estimates is None:
        return ExtraFile(DESIGN, COLUMNS, ()), ExtraFile(FIGURES, FIGURE_COLUMNS, ())
    estimands = estimates.estimands([], thresholds=tuple(thresholds) or tuple(estimates.default_thresholds()))
    weighting = study.config.weighting if weighting is None else weighting
    own = [*_own_columns(study, estimands, by), *_margin_columns(weighting)]
    columns: list[Column] = [*COLUMNS, *own]
    read = (value.read for value in COLUMNS)
    readers: list[Callable[[DesignRow], Any]] = [*read, *(_reads(column.name) for column in own)]

    def rows() -> Iterator[list[Any]]:
        for row in _rows(read_study(study, levels, thresholds, by), weighting):
            yield [reader(row) for reader in readers]

    files = [
        ExtraFile(DESIGN, columns, rows()),
        ExtraFile(FIGURES, FIGURE_COLUMNS, _figure_rows(study, estimands)),
    ]
    if weighting is not None:
        files.append(ExtraFile(MARGINS, MARGIN_COLUMNS, _margin_rows(weighting)))
    return tuple(files)


def _reads(name: str) -> Callable[[DesignRow], Any]:
    return lambda row: row.own.get(name)


def _own_columns(study: Study, estimands: Estimands, by: Sequence[str]) -> list[Column]:
    factors = [condition.factor for condition in shown_conditions(study)]
    columns = [Column(f"level__{factor}", "text", f"The level of {factor}.") for factor in factors]
    of_people = people_questions(study, own_divisions(study))
    for name in by:
        if name in of_people:
            columns.append(Column(f"group__{name}", "text", f"The group of {name} that the person is in."))
        elif name not in factors:
            columns.append(Column(f"by__{name}", "text", f"The part of {name} that the item is in."))
    for measure in estimands.measures:
        about = f"What the answer says of: {measure.title}. Empty: nothing."
        columns.append(Column(measure.name, "number", about))
        if measure.per is not None:
            columns.append(Column(f"{measure.name}__per", "number", f"What the sum of {measure.name} is divided by."))
    for check in estimands.checks:
        columns.append(Column(check.name, "number", f"What the answer says of: {check.title}."))
        columns.append(Column(f"{check.name}__side", "number", "2: taken from this side, 1: taken off.", whole=True))
    return columns


def _margin_columns(weighting: WeightingConfig | None) -> list[Column]:
    return [
        Column(_margin(number), "text", f"The person's group of {margin.title}; empty: in no weighted figure.")
        for number, margin in enumerate(() if weighting is None else weighting.margins)
    ]


def _margin(number: int) -> str:
    return f"margin__{number + 1}"


def _margin_rows(weighting: WeightingConfig) -> Iterator[list[Any]]:
    for number, margin in enumerate(weighting.margins):
        total = sum(margin.shares.values())
        for group, share in margin.shares.items():
            yield [_margin(number), group, share / total, weighting.trim]


def _figure_rows(study: Study, estimands: Estimands) -> Iterator[list[Any]]:
    for measure in estimands.measures:
        kind = "share" if measure.is_share else "mean" if measure.per is None else "ratio"
        is_part = measure.where is not None
        yield [measure.name, kind, is_part, *(measure.range or (None, None)), study.config.estimates.odds_ratio]
    for check in estimands.checks:
        yield [check.name, "check", True, None, None, None]


def _rows(read: ReadStudy, weighting: WeightingConfig | None) -> Iterator[DesignRow]:
    weighted = [reading.part for reading in read.readings if reading.part.staying is not None and reading.part.weighs]
    total = sum(part.plan_weight for part in weighted)
    about = [reading.part.subjects for reading in read.readings if reading.part.subjects is not None]
    keys = np.unique(np.concatenate(about)).tolist() if about else []
    people = {int(person) for reading in read.readings for person in reading.part.cluster}
    known = _Known(
        divisions=read.divisions,
        people=dict(Respondent.objects.filter(study=read.study).order_by().values_list("pk", "pseudonym")),
        questions=dict(Question.objects.filter(pk__in=keys).order_by().values_list("pk", "external_id")),
        scale=sum(part.stratum.size for part in weighted) / total if total else 0.0,
        margins={} if weighting is None else groups_in_margins(read.study, weighting, people),
    )
    for stage_rows in read.rows:
        for reading in read.readings:
            if reading.part.stage == stage_rows.stage.index:
                yield from _PartRows(known, stage_rows, reading).all()


@dataclass(frozen=True)
class _Known:
    """What all parts share. `people`, `questions`: names by key; `scale` makes weights for leaving 1 on average.
    `margins`: each person's group in every margin of the population."""

    divisions: Mapping[str, str]
    people: Mapping[int, str]
    questions: Mapping[int, str]
    scale: float
    margins: Mapping[int, Sequence[str | None]]


@dataclass(frozen=True)
class _PartRows:
    """The rows of one part: its answers, the items without one, the slots without one."""

    known: _Known
    rows: StageRows
    reading: _Reading

    def all(self) -> Iterator[DesignRow]:
        yield from self.answered()
        yield from self.lost()
        yield from self.planned()

    def _row(self, **facts: Any) -> DesignRow:
        stage = self.rows.stage
        rule = stage.manifest.get("stop")
        rho = rule["rho"] if rule else anytime_rho(stage.manifest.get("sittings", stage.config.sittings))
        return DesignRow(part=self.reading.part, wave=stage.wave, rho=float(rho), **facts)

    def answered(self) -> Iterator[DesignRow]:
        part, known, weights = self.reading.part, self.known, None
        if part.staying is not None and part.weighs:
            weights = known.scale * part.plan_weight * part.stayed_weights
        predictions = None if isinstance(part.predictions, str) else part.predictions
        for place, (answer, own) in enumerate(zip(self.reading.answers, self._own_values(), strict=True)):
            subjects = () if part.subjects is None else part.subjects[place].tolist()
            yield self._row(
                state=ANSWERED,
                stratum=int(part.stratum[place]),
                chance=float(part.probability[place]),
                slot=answer.slot.number,
                respondent=known.people[answer.sitting.respondent_id],
                position=answer.position,
                item=answer.slot.item.key,
                questions=[*(known.questions.get(key) for key in subjects), None, None],
                staying=None if part.staying is None else float(part.staying[place]),
                weight_leaving=None if weights is None else float(weights[place]),
                prediction=None if predictions is None else _known_number(predictions.values[place]),
                prediction_mean=None if predictions is None else _known_number(predictions.means[part.stratum[place]]),
                own=own,
            )

    def lost(self) -> Iterator[DesignRow]:
        lost = self.reading.part.unanswered
        if lost is None:
            return
        out = np.zeros(lost.stratum.size, dtype=bool) if lost.is_excluded is None else lost.is_excluded
        for place, is_out in enumerate(out.tolist()):
            yield self._row(
                state=EXCLUDED if is_out else UNANSWERED,
                stratum=int(lost.stratum[place]),
                chance=float(lost.probability[place]),
                respondent=self.known.people[int(lost.cluster[place])],
                own={
                    f"{kind}__{name}": str(lost.divisions[name][place]) or None
                    for name, kind in self.known.divisions.items()
                },
            )

    def planned(self) -> Iterator[DesignRow]:
        part = self.reading.part
        answered = {answer.slot_id for answer in self.reading.answers}
        strata = {name: place for place, name in enumerate(part.names)}
        for row in self.rows.slots:
            slot = row.slot
            if slot.role == part.role and slot.pk not in answered and slot.stratum is not None:
                chance = slot.inclusion_probability
                yield self._row(state=PLANNED, stratum=strata[slot.stratum.name], chance=chance, slot=slot.number)
        for stratum, count in enumerate(part.slots):
            if not count:  # Its candidates can never be answered.
                yield self._row(state=PLANNED, stratum=stratum, chance=None)

    def _own_values(self) -> Iterator[dict[str, Any]]:
        """By the names of the columns that depend on the study."""
        reading, columns = self.reading, dict[str, Sequence[Any]]()
        for name, kind in self.known.divisions.items():
            columns[f"{kind}__{name}"] = [str(label) or None for label in reading.divisions[name]]
        of_people = [self.known.margins.get(answer.sitting.respondent_id) for answer in reading.answers]
        for number in range(max((len(own) for own in of_people if own is not None), default=0)):
            columns[_margin(number)] = [None if own is None else own[number] for own in of_people]
        for measure in reading.estimands.measures:
            where = np.ones(len(reading.answers), dtype=bool) if measure.where is None else measure.where
            for name, values in ((measure.name, measure.values), (f"{measure.name}__per", measure.per)):
                if values is not None:
                    columns[name] = [float(value) if said else None for value, said in zip(values, where, strict=True)]
        for check in reading.estimands.checks:
            columns[check.name] = check.values.tolist()
            sides = zip(check.first, check.second, strict=True)
            columns[f"{check.name}__side"] = [2 if second else 1 if first else None for first, second in sides]
        for place in range(len(reading.answers)):
            yield {name: values[place] for name, values in columns.items()}


def _known_number(number: float) -> float | None:
    return None if np.isnan(number) else float(number)
