"""The report `calibration`: people, models, judges and predictors on one scale of stated chances."""

from predictors.evaluation.scoring import finite
from survey.contracts.reports import Argument, Picture, Report, ReportArguments, ReportResult
from survey.figures import Column, Table, TableView
from survey.figures.charts import Axis, ForestChart, ForestRow, Line, LineChart
from survey.figures.words import short
from survey.models import Study

from .calibrating import ALL, ForecasterCalibration, calibrations
from .common import ARGUMENTS, asked_of, figure_column, in_words
from .errors import UNDEFINED
from .load import read

MAX_LINES = 6
MAX_SERIES = 3
COLUMNS = (
    Column("event", "text", "What was forecast."),
    Column("forecaster", "text", "Who gave the chances. the other people: the others’ answers to the same item."),
    Column("kind", "text", "people, model, judge or predictor."),
    Column("about", "text", "Where people forecast: whose doing. Empty elsewhere."),
    Column("answers", "number", "Answers that judge it.", whole=True),
    Column("items", "number", "Items of these.", whole=True),
    Column("people", "number", "Who gave them.", whole=True),
    figure_column(
        "bits", "number", "The log score in bits at the floor: mean of -log2 of the chance of what happened.", digits=3
    ),
    figure_column(
        "saved", "number", "Bits that it costs less than the best constant chance, on the same answers.", digits=3
    ),
    Column(
        "bits_as_stated",
        "number",
        "The log score without a floor; empty where it is infinite.",
        heading="as stated",
        digits=3,
    ),
    Column("infinite", "share", "How often what happened had been given chance 0.", heading="chance 0"),
    figure_column("chance", "share", "The mean chance."),
    figure_column("happened", "share", "How often the event happened."),
    figure_column("bias", "number", "The mean chance less how often the event happened.", style="points"),
    Column("why", "text", "Why figures are missing; empty if none is."),
    Column("who", "text", "Who gave the chances, and about whom.", in_file=False),
)
BINS = (
    Column("event", "text", "What was forecast."),
    Column("forecaster", "text", "Who gave the chances."),
    Column("about", "text", "Where people forecast: whose doing. Empty elsewhere."),
    Column("bin", "number", "From 1, by rising chance.", whole=True),
    Column("answers", "number", "Answers in it.", whole=True),
    Column("chance", "share", "Their mean chance."),
    figure_column("happened", "share", "How often the event happened.", digits=0),
)
NOTE = (
    "Bits: what happened costs -log2 of the chance that it got; a coin costs 1 and certainty that is right 0. Saved: "
    "less than the best constant chance, which knows nothing of the items. Intervals are by person and "
    "item."
)


class ChancesReport(Report):
    """Log score, bias and reliability of everybody who gave chances."""

    arguments = (
        *ARGUMENTS,
        Argument(
            "floor",
            "no chance counts as less than this, or as more than 1 less this",
            default="0.01",
            label="Lowest chance (0 to 1)",
        ),
        Argument("bins", "of the reliability diagram", default="10", label="Points"),
    )
    exported = {"calibration": COLUMNS, "reliability": BINS}

    def make(self, study: Study, arguments: ReportArguments) -> ReportResult:
        floor = arguments.number("floor", lowest=1e-6, highest=0.2)
        bins = arguments.whole("bins", lowest=2, highest=100)
        reading = read(study, asked_of(arguments))
        by_event = {
            expectations.event.name: calibrations(expectations, floor=floor, bins=bins)
            for expectations in reading.found
        }
        lines = [(event, calibration) for event, several in by_event.items() for calibration in several]
        missing = [
            f"{event}, {_name(calibration)}: {calibration.why}" for event, calibration in lines if calibration.why
        ]
        table, reliability = _table(by_event), _reliability(by_event)
        return ReportResult(
            title=f"Calibration of people and models: {study.title}",
            headline=next(
                (
                    f"Of the event “{event}”, {_name(line)}: {line.bits} bits an answer; tossing a coin costs 1."
                    for event, line in lines
                    if line.bits.is_defined
                ),
                "",
            ),
            lines=[
                *in_words([calibration.event for calibration in reading.found]),
                f"Chances are kept from {short(floor)} to {short(1 - floor)}.",
            ],
            tables=[table, reliability],
            pictures=[made for event, several in by_event.items() for made in _pictures(event, several)],
            notes=[*reading.notes, *dict.fromkeys(missing)],
            data={"floor": floor, "calibration": table.records(), "reliability": reliability.records()},
        )


def _name(calibration: ForecasterCalibration) -> str:
    return f"{calibration.forecaster}, about {calibration.about}" if calibration.about else calibration.forecaster


def _table(by_event: dict[str, list[ForecasterCalibration]]) -> Table:
    same = [column.name for column in COLUMNS if column.name not in ("event", "bits_as_stated", "infinite", "who")]
    rows = [
        {
            **{name: getattr(line, name) for name in same},
            "event": event,
            "bits_as_stated": line.stated,
            "infinite": finite(line.infinite),
            "who": _name(line),
        }
        for event, lines in by_event.items()
        for line in lines
    ]
    shown = ["who", "bits", "saved", "bits_as_stated", "infinite", "bias", "answers", "people"]
    views = [
        TableView(shown, title=f"Calibration: {event}" if len(by_event) > 1 else "", where={"event": event})
        for event in by_event
    ]
    return Table("calibration", "Calibration", COLUMNS, rows, note=NOTE, views=views)


def _reliability(by_event: dict[str, list[ForecasterCalibration]]) -> Table:
    lines = [(event, calibration) for event, several in by_event.items() for calibration in several if calibration.bins]
    shown_lines = [(event, calibration) for event, calibration in lines if calibration.about in ("", ALL)] or lines[
        :MAX_LINES
    ]
    return Table(
        "reliability",
        "Reliability: how often it happened, by the chance that was given",
        BINS,
        [
            [event, line.forecaster, line.about, place, part.answers, part.chance, part.happened]
            for event, line in lines
            for place, part in enumerate(line.bins, start=1)
        ],
        note="" if len(shown_lines) == len(lines) else "reliability.csv has the others too.",
        views=[
            TableView(
                ["chance", "happened", "answers"],
                title=f"Reliability: {event}, {_name(line)}",
                where={"event": event, "forecaster": line.forecaster, "about": line.about},
            )
            for event, line in shown_lines
        ]
        or [TableView(rows=[])],
    )


def _pictures(event: str, lines: list[ForecasterCalibration]) -> list[Picture]:
    scored = [line for line in lines if line.bits.is_defined]
    binned = [line for line in lines if line.bins and line.about in ("", ALL)] or [line for line in lines if line.bins]
    pictures = []
    if scored:
        series, rows = _bits_rows(scored)
        pictures.append(
            Picture.of(
                f"bits_{event}",
                f"Log score: {event}",
                "The log score of everybody who gave chances, in bits; less is better, a coin costs 1. Bars are 95 % "
                "intervals.",
                ForestChart(
                    title=f"Log score: {event}",
                    x=Axis("bits per answer; a coin costs 1"),
                    series=series,
                    rows=rows,
                    mark_at=1.0,
                ),
            )
        )
    if binned:
        chart = [
            Line.diagonal("perfectly calibrated"),
            *(
                Line.of(_name(calibration), [(part.chance, part.happened) for part in calibration.bins])
                for calibration in binned[: MAX_LINES - 1]
            ),
        ]
        pictures.append(
            Picture.of(
                f"reliability_{event}",
                f"Reliability: {event}",
                "How often the event happened by the chance that was given, with 95 % intervals; on the diagonal the "
                "two are equal.",
                LineChart(
                    title=f"Reliability: {event}",
                    x=Axis("chance that was given", share=True, includes=(0.0, 1.0)),
                    y=Axis("how often it happened", share=True, includes=(0.0,)),
                    lines=chart,
                ),
            )
        )
    return pictures


def _bits_rows(lines: list[ForecasterCalibration]) -> tuple[list[str], list[ForestRow]]:
    """A row a forecaster; where people forecast, a row for each model, with what they said first and later side by
    side."""
    if not all(line.about for line in lines):
        return ["bits"], [ForestRow(_name(line), (line.bits,)) for line in lines]
    forecasters = list(dict.fromkeys(line.forecaster for line in lines))[:MAX_SERIES]
    bits = {(line.about, line.forecaster): line.bits for line in lines}
    abouts = list(dict.fromkeys(line.about for line in lines))
    return forecasters, [ForestRow(name, [bits.get((name, who), UNDEFINED) for who in forecasters]) for name in abouts]
