"""The report `calibration`: people, models, judges and predictors on one scale of stated chances."""

import math
from typing import Any

from predictors.evaluation.scoring import finite
from predictors.evaluation.scoring import in_words as number
from survey.contracts.reports import Argument, Findings, Given, Layout, Picture, Report, Table
from survey.contracts.tables import Column
from survey.figures.charts import Axis, ForestChart, ForestRow, Line, LineChart
from survey.models import Study

from .calibrating import ALL, ForecasterCalibration, calibrations
from .common import ARGUMENTS, asked_of, cells, columns_of, in_words, with_interval
from .errors import UNDEFINED, Bounded
from .reading import read

MOST_LINES = 6
MOST_SERIES = 3
COLUMNS = (
    Column("event", "text", "What was forecast."),
    Column("forecaster", "text", "Who gave the chances. the other people: the others’ answers to the same item."),
    Column("kind", "text", "people, model, judge or predictor."),
    Column("about", "text", "Where people forecast: whose doing. Empty elsewhere."),
    Column("answers", "number", "Answers that judge it.", whole=True),
    Column("items", "number", "Items of these.", whole=True),
    Column("people", "number", "Who gave them.", whole=True),
    *columns_of("bits", "number", "The log score in bits at the floor: mean of -log2 of the chance of what happened."),
    *columns_of("saved", "number", "Bits that it costs less than the best constant chance, on the same answers."),
    Column("bits_as_stated", "number", "The log score without a floor; empty where it is infinite."),
    Column("infinite", "share", "How often what happened had been given chance 0."),
    *columns_of("chance", "share", "The mean chance."),
    *columns_of("happened", "share", "How often the event happened."),
    *columns_of("bias", "number", "The mean chance less how often the event happened."),
    Column("why", "text", "Why figures are missing; empty if none is."),
)
BINS = (
    Column("event", "text", "What was forecast."),
    Column("forecaster", "text", "Who gave the chances."),
    Column("about", "text", "Where people forecast: whose doing. Empty elsewhere."),
    Column("bin", "number", "From 1, by rising chance.", whole=True),
    Column("answers", "number", "Answers in it.", whole=True),
    Column("chance", "share", "Their mean chance."),
    *columns_of("happened", "share", "How often the event happened."),
)
NOTE = (
    "Bits: what happened costs -log2 of the chance that it got; a coin costs 1 and certainty that is right 0. Saved: "
    "less than the best constant chance, which knows nothing of the items. In brackets: 95 % intervals, by person "
    "and item."
)


class ChancesReport(Report):
    """Log score, bias and reliability of everybody who gave chances."""

    arguments = (
        *ARGUMENTS,
        Argument("floor", "no chance counts as less than this, or as more than 1 less this", default="0.01"),
        Argument("bins", "points of the reliability diagram", default="10"),
    )
    exported = {"calibration": COLUMNS, "reliability": BINS}

    def make(self, study: Study, given: Given) -> Findings:
        floor = given.number("floor", lowest=1e-6, highest=0.2)
        bins = given.whole("bins", lowest=2, highest=100)
        found = read(study, asked_of(given))
        by_event = {one.event.name: calibrations(one, floor=floor, bins=bins) for one in found.found}
        lines = [(event, one) for event, several in by_event.items() for one in several]
        missing = [f"{event}, {_name(one)}: {one.why}" for event, one in lines if one.why]
        return Findings(
            title=f"Calibration of people and models: {study.title}",
            lines=[*in_words([one.event for one in found.found]), f"Chances are kept from {floor:g} to {1 - floor:g}."],
            tables=[_table(by_event, floor), _reliability(by_event)],
            pictures=[made for event, several in by_event.items() for made in _pictures(event, several)],
            notes=[*found.notes, *dict.fromkeys(missing)],
            data={
                "floor": floor,
                "calibration": [dict(zip((c.name for c in COLUMNS), _row(*line), strict=True)) for line in lines],
                "reliability": [dict(zip((c.name for c in BINS), row, strict=True)) for row in _bins(by_event)],
            },
        )


def _name(one: ForecasterCalibration) -> str:
    return f"{one.forecaster}, about {one.about}" if one.about else one.forecaster


def _row(event: str, one: ForecasterCalibration) -> list[Any]:
    return [
        *(event, one.forecaster, one.kind, one.about, one.answers, one.items, one.people),
        *cells(one.bits),
        *cells(one.saved),
        finite(one.stated),
        finite(one.infinite),
        *cells(one.chance),
        *cells(one.happened),
        *cells(one.bias),
        one.why,
    ]


def _table(by_event: dict[str, list[ForecasterCalibration]], floor: float) -> Table:
    return Table(
        "calibration",
        "Calibration",
        COLUMNS,
        [_row(event, one) for event, several in by_event.items() for one in several],
        note=NOTE,
        layouts=[_layout(event, several, floor, len(by_event) > 1) for event, several in by_event.items()],
    )


def _layout(event: str, lines: list[ForecasterCalibration], floor: float, titled: bool) -> Layout:
    header = ["who", "bits", "saved", "as stated", "chance 0", "bias", "answers", "people"]
    rows = [
        [
            _name(one),
            with_interval(one.bits, digits=3),
            with_interval(one.saved, digits=3),
            number(one.stated, 3),
            _percent(one.infinite),
            with_interval(one.bias, digits=1, percent=True),
            f"{one.answers:,}",
            f"{one.people:,}",
        ]
        for one in lines
    ]
    return Layout(header, rows, title=f"Calibration: {event}" if titled else "")


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %" if math.isfinite(share) else "-"


def _bins(by_event: dict[str, list[ForecasterCalibration]]) -> list[list[Any]]:
    return [
        [event, one.forecaster, one.about, place, part.answers, part.chance, *cells(part.happened)]
        for event, several in by_event.items()
        for one in several
        for place, part in enumerate(one.bins, start=1)
    ]


def _reliability(by_event: dict[str, list[ForecasterCalibration]]) -> Table:
    lines = [(event, one) for event, several in by_event.items() for one in several if one.bins]
    shown = [(event, one) for event, one in lines if one.about in ("", ALL)] or lines[:MOST_LINES]
    return Table(
        "reliability",
        "Reliability: how often it happened, by the chance that was given",
        BINS,
        _bins(by_event),
        note="" if len(shown) == len(lines) else "reliability.csv has the others too.",
        layouts=[
            Layout(
                ["chance", "happened", "answers"],
                [
                    [_percent(part.chance), with_interval(part.happened, digits=0, percent=True), f"{part.answers:,}"]
                    for part in one.bins
                ],
                title=f"Reliability: {event}, {_name(one)}",
            )
            for event, one in shown
        ],
    )


def _pictures(event: str, lines: list[ForecasterCalibration]) -> list[Picture]:
    scored = [one for one in lines if one.bits.is_defined]
    binned = [one for one in lines if one.bins and one.about in ("", ALL)] or [one for one in lines if one.bins]
    found = []
    if scored:
        series, rows = _bits_rows(scored)
        found.append(
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
            Line("perfectly calibrated", [(0.0, 0.0), (1.0, 1.0)], marked=False, reference=True),
            *(
                Line(
                    _name(one),
                    [(part.chance, part.happened.value) for part in one.bins],
                    [_ends(part.happened) for part in one.bins],
                )
                for one in binned[: MOST_LINES - 1]
            ),
        ]
        found.append(
            Picture.of(
                f"reliability_{event}",
                f"Reliability: {event}",
                "How often the event happened by the chance that was given, with 95 % bands; on the diagonal the two "
                "are equal.",
                LineChart(
                    title=f"Reliability: {event}",
                    x=Axis("chance that was given", share=True, includes=(0.0, 1.0)),
                    y=Axis("how often it happened", share=True, includes=(0.0,)),
                    lines=chart,
                ),
            )
        )
    return found


def _bits_rows(lines: list[ForecasterCalibration]) -> tuple[list[str], list[ForestRow]]:
    """A row a forecaster; where people forecast, a row for each model, with what they said first and later side by
    side."""
    if not all(one.about for one in lines):
        return ["bits"], [ForestRow(_name(one), (one.bits,)) for one in lines]
    forecasters = list(dict.fromkeys(one.forecaster for one in lines))[:MOST_SERIES]
    bits = {(one.about, one.forecaster): one.bits for one in lines}
    abouts = list(dict.fromkeys(one.about for one in lines))
    return forecasters, [ForestRow(name, [bits.get((name, who), UNDEFINED) for who in forecasters]) for name in abouts]


def _ends(figure: Bounded) -> tuple[float, float]:
    return (figure.low, figure.high) if figure.low is not None and figure.high is not None else (math.nan, math.nan)
