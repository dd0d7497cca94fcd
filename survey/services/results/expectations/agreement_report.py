"""The report `agreement`: how far people and models agree on the same items, beside the ceiling that people set."""

from typing import Any

from survey.contracts.reports import Findings, Given, Layout, Picture, Report, Table
from survey.contracts.tables import Column
from survey.figures.charts import Axis, ForestChart, ForestRow
from survey.models import Study

from .agreeing import ReaderAgreement, agreement
from .common import ARGUMENTS, asked_of, cells, columns_of, in_words, with_interval
from .reading import read

COLUMNS = (
    Column("event", "text", "What people and the reader both speak about."),
    Column("reader", "text", "The model, judge or predictor."),
    Column("kind", "text", "model, judge or predictor."),
    Column("items", "number", "Items that both people and the reader answered.", whole=True),
    Column("several", "number", "Of these, answered by two people or more.", whole=True),
    Column("answers", "number", "People’s answers to these items.", whole=True),
    Column("people", "number", "Who gave them.", whole=True),
    *columns_of("correlation", "number", "Correlation of the items’ mean answers with the reader, by the design."),
    *columns_of("ceiling", "number", "The correlation that a perfect reader would have: people’s noise sets it."),
    *columns_of("corrected", "number", "Correlation of what all people would say with the reader."),
    *columns_of("same", "share", "How often an answer is what the reader holds for more likely."),
    *columns_of("two_people", "share", "How often two people give the same answer to an item."),
    Column("why", "text", "Why figures are missing; empty if none is."),
)
NOTE = (
    "Agreement is a correlation over items, which count by the design. Few people answer an item, and so the ceiling "
    "is below 1; corrected is agreement divided by the ceiling. In brackets: 95 % intervals by person and item."
)


class AgreementReport(Report):
    """Agreement of people with every reader, with its ceiling."""

    arguments = ARGUMENTS
    exported = {"agreement": COLUMNS}

    def make(self, study: Study, given: Given) -> Findings:
        found = read(study, asked_of(given))
        lines = [(one.event.name, agreement(one, reader)) for one in found.found for reader in one.readers]
        missing = [f"{event}, {one.reader}: {one.why}" for event, one in lines if one.why]
        return Findings(
            title=f"Agreement of people and models: {study.title}",
            lines=in_words([one.event for one in found.found]),
            tables=[_table(lines)],
            pictures=[
                made
                for one in found.found
                if (made := _picture(one.event.name, [line for event, line in lines if event == one.event.name]))
            ],
            notes=[*found.notes, *missing],
            data={"agreement": [dict(zip((c.name for c in COLUMNS), _row(*line), strict=True)) for line in lines]},
        )


def _row(event: str, one: ReaderAgreement) -> list[Any]:
    facts: list[Any] = [event, one.reader, one.kind, one.items, one.several, one.answers, one.people]
    figures = (one.correlation, one.ceiling, one.corrected, one.same, one.two_people)
    return [*facts, *(cell for figure in figures for cell in cells(figure)), one.why]


def _table(lines: list[tuple[str, ReaderAgreement]]) -> Table:
    events = list(dict.fromkeys(event for event, _one in lines))
    return Table(
        "agreement",
        "Agreement",
        COLUMNS,
        [_row(*line) for line in lines],
        note=NOTE,
        layouts=[_layout(event, [one for name, one in lines if name == event], len(events) > 1) for event in events],
    )


def _layout(event: str, lines: list[ReaderAgreement], titled: bool) -> Layout:
    choices = any(one.same.is_defined for one in lines)
    header = ["reader", "agreement", "ceiling", "corrected", *(["same answer", "two people"] if choices else [])]
    rows = []
    for one in lines:
        figures = [with_interval(figure) for figure in (one.correlation, one.ceiling, one.corrected)]
        if choices:
            figures += [with_interval(figure, digits=0, percent=True) for figure in (one.same, one.two_people)]
        rows.append([one.reader, *figures, f"{one.items:,} ({one.several:,})", f"{one.people:,}"])
    return Layout([*header, "items (by 2 people)", "people"], rows, title=f"Agreement: {event}" if titled else "")


def _picture(event: str, lines: list[ReaderAgreement]) -> Picture | None:
    if not any(one.correlation.is_defined for one in lines):
        return None
    rows = [ForestRow(one.reader, (one.correlation, one.corrected, one.ceiling)) for one in lines]
    title = f"Agreement with people: {event}"
    return Picture.of(
        f"agreement_{event}",
        title,
        "Each reader’s correlation with people’s mean answers, as measured and corrected for people’s noise, and the "
        "ceiling; bars are 95 % intervals.",
        ForestChart(
            title=title,
            x=Axis("correlation over items", includes=(0.0, 1.0)),
            series=("as measured", "corrected", "ceiling"),
            rows=rows,
            mark_at=0.0,
        ),
    )
