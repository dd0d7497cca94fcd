"""The report `agreement`: how far people and models agree on the same items, next to the ceiling that people set."""

from survey.contracts.reports import Picture, Report, ReportArguments, ReportResult
from survey.figures import Column, Table, TableView
from survey.figures.charts import Axis, ForestChart, ForestRow
from survey.models import Study

from .agreeing import ReaderAgreement, agreement
from .common import ARGUMENTS, asked_of, figure_column, in_words
from .load import read

COLUMNS = (
    Column("event", "text", "What people and the reader both speak about."),
    Column("reader", "text", "The model, judge or predictor."),
    Column("kind", "text", "model, judge or predictor."),
    Column("items", "number", "Items that both people and the reader answered.", whole=True),
    Column("several", "number", "Of these, answered by two people or more.", whole=True, heading="by 2 people"),
    Column("answers", "number", "People’s answers to these items.", whole=True),
    Column("people", "number", "Who gave them.", whole=True),
    figure_column(
        "correlation",
        "number",
        "Correlation of the items’ mean answers with the reader, by the design.",
        heading="agreement",
    ),
    figure_column("ceiling", "number", "The correlation that a perfect reader would have: people’s noise sets it."),
    figure_column("corrected", "number", "Correlation of what all people would say with the reader."),
    figure_column("same", "share", "How often an answer is what the reader holds for more likely.", digits=0),
    figure_column("two_people", "share", "How often two people give the same answer to an item.", digits=0),
    Column("why", "text", "Why figures are missing; empty if none is."),
)
NOTE = (
    "Agreement is a correlation over items, which count by the design. Few people answer an item, and so the ceiling "
    "is below 1; corrected is agreement divided by the ceiling. Intervals are by person and item."
)


class AgreementReport(Report):
    """Agreement of people with every reader, with its ceiling."""

    arguments = ARGUMENTS
    exported = {"agreement": COLUMNS}

    def make(self, study: Study, arguments: ReportArguments) -> ReportResult:
        reading = read(study, asked_of(arguments))
        lines = [
            (expectations.event.name, agreement(expectations, reader))
            for expectations in reading.found
            for reader in expectations.readers
        ]
        missing = [
            f"{event}, {reader_agreement.reader}: {reader_agreement.why}"
            for event, reader_agreement in lines
            if reader_agreement.why
        ]
        table = _table(lines)
        return ReportResult(
            title=f"Agreement of people and models: {study.title}",
            headline=_headline(lines),
            lines=in_words([expectations.event for expectations in reading.found]),
            tables=[table],
            pictures=[
                made
                for expectations in reading.found
                if (
                    made := _picture(
                        expectations.event.name, [line for event, line in lines if event == expectations.event.name]
                    )
                )
            ],
            notes=[*reading.notes, *missing],
            data={"agreement": table.records()},
        )


def _headline(lines: list[tuple[str, ReaderAgreement]]) -> str:
    """Who agrees most closely with people on the first event of which that is known."""
    known = [(event, line) for event, line in lines if line.correlation.is_defined]
    if not known:
        return ""
    event = known[0][0]
    several = [line for of, line in known if of == event]
    best = max(several, key=lambda line: line.correlation.number)
    closest = f", the closest of {len(several)}" if len(several) > 1 else ""
    ceiling = f"; {best.ceiling} is the most to be expected" if best.ceiling.is_defined else ""
    return (
        f"Of the event “{event}”, the agreement of {best.reader} with people is {best.correlation}{closest}{ceiling}."
    )


def _table(lines: list[tuple[str, ReaderAgreement]]) -> Table:
    events = list(dict.fromkeys(event for event, _one in lines))
    names = [column.name for column in COLUMNS]
    shown = ["reader", "correlation", "ceiling", "corrected", "same", "two_people", "items", "several", "people"]
    return Table(
        "agreement",
        "Agreement",
        COLUMNS,
        [{name: event if name == "event" else getattr(line, name) for name in names} for event, line in lines],
        note=NOTE,
        views=[
            TableView(shown, title=f"Agreement: {event}" if len(events) > 1 else "", where={"event": event})
            for event in events
        ],
    )


def _picture(event: str, lines: list[ReaderAgreement]) -> Picture | None:
    if not any(line.correlation.is_defined for line in lines):
        return None
    rows = [ForestRow(line.reader, (line.correlation, line.corrected, line.ceiling)) for line in lines]
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
