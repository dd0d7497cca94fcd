"""The report `two_studies`: a study's figures less another's, such as a year later or of other people."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import bandit
from survey.contracts import instruments
from survey.contracts.reports import Argument, Picture, Report, ReportArguments, ReportResult
from survey.exceptions import HunchError
from survey.figures import Column, Figure, FigureColumn, Table, TableView
from survey.figures.charts import Axis, ForestChart, ForestRow
from survey.figures.words import is_share
from survey.models import Study
from survey.services.results.estimates import stored_estimates
from survey.services.results.estimates.study_estimates import StudyEstimates, own_divisions
from survey.services.results.estimates.study_figures import StudyFigure
from survey.services.results.reports import CONDITION
from survey.services.studies.lookup import find_study

OTHER_PEOPLE, SAME_PEOPLE = "other", "same"

TWO_STUDIES = (
    Column("figure", "text", "The figure's name."),
    Column("title", "text", "The figure in words.", heading="figure"),
    Column("division", "text", "How items or people are divided; empty for all of them."),
    Column("label", "text", "The part of that division.", heading="part"),
    Column("unit", "text", "share (0 to 1), or the unit of the answers."),
    FigureColumn("this", "number", "The estimate in this study.", heading="this study"),
    FigureColumn("other", "number", "The same in the other study.", heading="other study"),
    FigureColumn("difference", "number", "This study less the other one."),
    Column("p", "number", "How often chance alone would take the two so far apart.", style="p"),
    Column("notes", "text", "What to know about the row.", heading="to know"),
)


@dataclass(frozen=True)
class Compared:
    """One figure of both studies; `difference` is this study's less the other's, None where one of them has none."""

    division: str
    label: str
    this: StudyFigure
    other: StudyFigure
    difference: bandit.Estimate | None

    @property
    def cells(self) -> list[object]:
        this, other, difference = self.this, self.other, self.difference
        notes = [f"{name}: {figure.notes}" for name, figure in (("this", this), ("other", other)) if figure.notes]
        return [
            this.name,
            this.title,
            self.division,
            self.label,
            this.unit,
            Figure.of(this.combined, this.unit),
            Figure.of(other.combined, this.unit),
            Figure.of(difference, this.unit),
            None if difference is None else difference.p_two_sided(),
            "; ".join(notes),
        ]


def compared(this: StudyEstimates, other: StudyEstimates, *, same_people: bool) -> Iterator[Compared]:
    """The figures that both have, over all items and inside each part of the divisions that both have."""
    yield from _pairs("", "", this.figures, other.figures, same_people)
    divisions = {division.name: division for division in other.divisions}
    for division in this.divisions:
        beside = divisions.get(division.name)
        if beside is None:
            continue
        by_label = dict(zip(beside.labels, beside.figures, strict=True))
        for label, figures in zip(division.labels, division.figures, strict=True):
            yield from _pairs(division.name, label, figures, by_label.get(label, ()), same_people)


def _pairs(
    division: str, label: str, these: Sequence[StudyFigure], others: Sequence[StudyFigure], same_people: bool
) -> Iterator[Compared]:
    by_name = {figure.name: figure for figure in others}
    for figure in these:
        other = by_name.get(figure.name)
        if other is None or other.unit != figure.unit:
            continue
        difference = None
        if figure.combined is not None and other.combined is not None:
            difference = bandit.minus(figure.combined, other.combined, same_people=same_people)
        yield Compared(division, label, figure, other, difference)


def studies_like(study: Study) -> list[str]:
    """Other studies of the same instrument, those on the same bank first."""
    others = Study.objects.filter(instrument=study.instrument).exclude(pk=study.pk).order_by("slug")
    return [other.slug for other in sorted(others, key=lambda other: other.bank_id != study.bank_id)]


class TwoStudies(Report):
    """Every figure of the estimates that two studies share, side by side, and their difference."""

    arguments = (
        Argument(
            "other",
            "the study that this one is compared with",
            label="Other study",
            required=True,
            choices=studies_like,
            names_studies=True,
        ),
        Argument(
            "people",
            "whether other people answered it, or some of the same",
            label="Its people are",
            default=OTHER_PEOPLE,
            choices=lambda study: {
                OTHER_PEOPLE: "other people",
                SAME_PEOPLE: "some of the same people: wider intervals",
            },
        ),
        Argument(
            "by",
            "also inside each part of a division of items, or level of a condition, that both have",
            label="Inside each",
            many=True,
            choices=own_divisions,
        ),
        CONDITION,
    )

    def obstacle(self, study: Study) -> str:
        if instruments.of_study(study).estimates is None:
            return f"{study.slug}: its instrument names nothing to estimate"
        if not studies_like(study):
            return f"{study.slug}: there is no other study of this kind"
        return ""

    def make(self, study: Study, arguments: ReportArguments) -> ReportResult:
        other = find_study(arguments.one("other"))
        if other.pk == study.pk:
            raise HunchError(f"other: {other.slug} is this study; name another one", code="invalid")
        if other.instrument != study.instrument:
            raise HunchError(
                f"other: {other.slug} is of the kind {other.instrument}, and {study.slug} of {study.instrument}; their "
                "figures are not about the same",
                code="invalid",
            )
        if arguments.one("people") not in (OTHER_PEOPLE, SAME_PEOPLE):
            raise HunchError(f"people: {arguments.one('people')!r} is none of: {OTHER_PEOPLE}, {SAME_PEOPLE}")
        this, beside = (
            stored_estimates.current_estimates(each, by=arguments["by"], condition=arguments["condition"])
            for each in (study, other)
        )
        rows = list(compared(this, beside, same_people=arguments.one("people") == SAME_PEOPLE))
        table = Table(
            "two_studies",
            f"{study.slug} less {other.slug}",
            TWO_STUDIES,
            [row.cells for row in rows],
            note=_note(arguments.one("people")),
            views=[TableView(["title", "division", "label", "this", "other", "difference", "p", "notes"])],
        )
        whole = [row for row in rows if not row.division]
        return ReportResult(
            title=f"{study.title}, and {other.title}",
            headline=_headline(study, other, whole),
            lines=[
                f"This study: {this.answers} answers of {this.respondents} people, over {this.estimand}.",
                f"Other study, {other.slug}: {beside.answers} answers of {beside.respondents} people, over "
                f"{beside.estimand}.",
            ],
            tables=[table],
            pictures=[picture] if (picture := _picture(whole)) else [],
            notes=list(_warnings(study, other, whole)),
            data={"other": other.slug, "figures": table.records()},
        )


def _note(people: str) -> str:
    if people == SAME_PEOPLE:
        return (
            "Some people may have answered both: the error of a difference is the sum of both errors, which no "
            "correlation exceeds."
        )
    return "Other people answered each study. Intervals and p are Student's with the degrees of freedom of Welch."


def _headline(study: Study, other: Study, rows: Sequence[Compared]) -> str:
    first = next((row for row in rows if row.difference is not None), None)
    if first is None:
        return ""
    words = Figure.of(first.difference, first.this.unit).in_words(signed=True)
    return f"{first.this.title[:1].upper()}{first.this.title[1:]}: {study.slug} less {other.slug} is {words}."


def _picture(rows: Sequence[Compared]) -> Picture | None:
    """The differences of the unit that the first figure has."""
    drawn = [row for row in rows if row.difference is not None and row.this.unit == rows[0].this.unit]
    if not drawn:
        return None
    unit = drawn[0].this.unit
    share = is_share(unit)
    chart = ForestChart(
        title="Differences, with 95 % intervals",
        x=Axis("difference of shares" if share else f"difference, {unit}", share=share),
        rows=[ForestRow(row.this.title, [Figure.of(row.difference, unit)]) for row in drawn],
        mark_at=0.0,
    )
    described = "; ".join(f"{row.this.title}: {Figure.of(row.difference, unit).in_words(signed=True)}" for row in drawn)
    return Picture.of("two_studies", chart.title, f"{described}.", chart)


def _warnings(study: Study, other: Study, rows: Sequence[Compared]) -> Iterator[str]:
    if study.bank_id != other.bank_id:
        yield (
            f"{study.slug} asks questions of {study.bank} and {other.slug} of {other.bank}: a difference may be one of "
            "the questions"
        )
    if not rows:
        yield "the two studies have no figure of the same name and unit"
    yield (
        "nobody was drawn into one or the other study at random: a difference may come from the people, the time, the "
        "pay or the texts as well"
    )
