"""The report `calibration`: people, models, judges and predictors on one scale of stated chances."""

import math
from typing import Any

from survey.contracts.reports import Argument, Findings, Given, Picture, Report
from survey.figures import Column, Table, TableView
from survey.figures.words import short
from survey.models import Study
from survey.services.results.forest_chart import ForestRow, forest
from survey.services.results.line_chart import Axes, Line, line_chart

from .calibrating import ALL, ForecasterCalibration, calibrations
from .common import ARGUMENTS, asked_of, figure_column, in_words, picture
from .errors import UNDEFINED
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
    figure_column("bias", "number", "The mean chance less how often the event happened.", style="percent"),
    Column("why", "text", "Why figures are missing; empty if none is."),
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
        table, reliability = _table(by_event), _reliability(by_event)
        missing = [f"{event}, {_name(one)}: {one.why}" for event, one in lines if one.why]
        return Findings(
            title=f"Calibration of people and models: {study.title}",
            lines=[
                *in_words([one.event for one in found.found]),
                f"Chances are kept from {short(floor)} to {short(1 - floor)}.",
            ],
            tables=[table, reliability],
            pictures=[made for event, several in by_event.items() for made in _pictures(event, several)],
            notes=[*found.notes, *dict.fromkeys(missing)],
            data={
                "floor": floor,
                "calibration": table.records(),
                "reliability": reliability.records(),
            },
        )


def _name(one: ForecasterCalibration) -> str:
    return f"{one.forecaster}, about {one.about}" if one.about else one.forecaster


def _row(event: str, one: ForecasterCalibration) -> list[Any]:
    return [
        *(event, one.forecaster, one.kind, one.about, one.answers, one.items, one.people),
        *(one.bits, one.saved, one.stated, one.infinite, one.chance, one.happened, one.bias, one.why),
    ]


def _table(by_event: dict[str, list[ForecasterCalibration]]) -> Table:
    return Table(
        "calibration",
        "Calibration",
        COLUMNS,
        [_row(event, one) for event, several in by_event.items() for one in several],
        note=NOTE,
        views=[
            TableView(
                [
                    *("forecaster", "about", "bits", "saved", "bits_as_stated", "infinite", "bias"),
                    *("answers", "people"),
                ],
                title=f"Calibration: {event}" if len(by_event) > 1 else "",
                where={"event": event},
            )
            for event in by_event
        ],
    )


def _bins(by_event: dict[str, list[ForecasterCalibration]]) -> list[list[Any]]:
    return [
        [event, one.forecaster, one.about, place, part.answers, part.chance, part.happened]
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
        views=[
            TableView(
                ["chance", "happened", "answers"],
                title=f"Reliability: {event}, {_name(one)}",
                where={"event": event, "forecaster": one.forecaster, "about": one.about},
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
            picture(
                f"bits_{event}",
                f"Log score: {event}",
                "The log score of everybody who gave chances, in bits; less is better, a coin costs 1. Bars are 95 % "
                "intervals.",
                lambda: forest(
                    name=f"bits-{event.replace('_', '-')}",
                    title=f"Log score: {event}",
                    axis="bits an answer; a coin costs 1",
                    series=series,
                    rows=rows,
                    mark_at=1.0,
                ),
            )
        )
    if binned:
        chart = [
            Line("perfectly calibrated", [(0.0, 0.0), (1.0, 1.0)], marked=False),
            *(
                Line(
                    _name(one),
                    [(part.chance, part.happened.or_nan) for part in one.bins],
                    [part.happened.interval or (math.nan, math.nan) for part in one.bins],
                )
                for one in binned[: MOST_LINES - 1]
            ),
        ]
        ticks = [(share / 5, f"{20 * share} %") for share in range(6)]
        found.append(
            picture(
                f"reliability_{event}",
                f"Reliability: {event}",
                "How often the event happened by the chance that was given, with 95 % bands; on the diagonal the two "
                "are equal.",
                lambda: line_chart(
                    name=f"reliability-{event.replace('_', '-')}",
                    title=f"Reliability: {event}",
                    axes=Axes("chance that was given", "how often it happened", ticks, from_zero=True),
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
