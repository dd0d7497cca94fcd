"""The report on a pilot: the results of `piloting` in tables."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from survey.contracts.reports import Findings, Given, Report
from survey.figures import Column, Figure, FigureColumn, Table, TableView
from survey.figures.words import number
from survey.models import Sitting, Study

from .piloting import PilotReport, ScreenLine, pilot_report

if TYPE_CHECKING:
    from collections.abc import Iterator

SCREENS = (
    Column("kind", "text", "What the page was: instructions, checks, practice, item, form, ..."),
    Column("name", "text", "The block's name in the study file, or the screen's.", heading="screen"),
    Column("times", "number", "How often it was taken."),
    Column("median_seconds", "seconds", "The median time on it.", heading="median s", digits=1),
    Column("lower_seconds", "seconds", "The lower quartile.", heading="quartile s", digits=1),
    Column("upper_seconds", "seconds", "The upper quartile.", heading="upper s", digits=1),
    Column("left", "number", "How many people left there for good.", heading="left here"),
)
CHECKS = (
    Column("name", "text", "The check's name in the study file.", heading="check"),
    Column("question", "text", "What it asks."),
    Column("shown", "number", "How many people saw it.", heading="people"),
    Column("failed", "number", "How many failed it the first time."),
    Column("failed_again", "number", "How many failed it again; empty where there is one attempt."),
)
OUTCOMES = (
    Column("figure", "text", "What the mean is of, or the answer whose share it is."),
    FigureColumn("mean", "number", "A mean, or a share between 0 and 1.", heading="mean or share", parts={}),
    Column("answers", "number", "How many answers it rests on."),
)
REMARKS = (Column("where", "text", "The form's question, or the item."), Column("text", "text", "What was written."))


class Pilot(Report):
    """Minutes, losses by screen, checks, answers and remarks of all pilots together."""

    def obstacle(self, study: Study) -> str:
        if not study.config.pilots:
            return f"{study.slug} has no pilot: set pilot = true in its first stage"
        if not Sitting.objects.filter(stage__study=study, stage__index__lte=study.config.pilots).exists():
            return f"{study.slug}: nobody has begun the pilot yet"
        return ""

    def make(self, study: Study, given: Given) -> Findings:
        found = pilot_report(study)
        too_low = found.pay is not None and found.pay.is_too_low
        return Findings(
            title=f"Pilot of {study.slug}",
            lines=tuple(_lines(found)),
            tables=[table for table in _tables(found) if table.rows],
            notes=(f"Too little would be paid: {found.pay}. The first main stage does not open so.",)
            if too_low
            else (),
            data=_data(found),
        )


def _lines(found: PilotReport) -> "Iterator[str]":
    states = ", ".join(f"{count} {state}" for state, count in found.by_state.items())
    yield f"{found.study.slug}: {found.begun} people began the pilot, {found.finished} finished ({states})"
    if found.withdrawn:
        yield f"{found.withdrawn} withdrew their answers and are left out"
    if found.minutes:
        spread = found.minutes
        median, lower, upper = (number(minutes, 1) for minutes in (spread.median, spread.lower, spread.upper))
        yield f"minutes: median {median}, quartiles {lower} and {upper}"
    if found.pay:
        yield f"pay: {found.pay}" + (" (too low)" if found.pay.is_too_low else "")


def _tables(found: PilotReport) -> "Iterator[Table]":
    checks = [[line.name, line.question, line.shown, line.failed, line.failed_again] for line in found.checks]
    outcomes = [
        *([name, Figure(mean), answers] for name, mean, answers in found.outcomes),
        *([f"{line.what} is exactly {line.value}", Figure(line.share, unit="share"), line.n] for line in found.shares),
    ]
    yield Table("screens", "Screens", SCREENS, [_screen_row(line) for line in found.screens])
    yield Table(
        "checks",
        "Checks",
        CHECKS,
        checks,
        views=[TableView(["name", "shown", "failed", "failed_again", "question"])],
    )
    yield Table("outcomes", "Answers", OUTCOMES, outcomes)
    yield Table(
        "remarks", "What people wrote", REMARKS, [[one.where, one.text] for one in found.remarks], verbatim=True
    )


def _screen_row(line: ScreenLine) -> list[Any]:
    spread = line.seconds
    times = (0, None, None, None) if spread is None else (spread.n, spread.median, spread.lower, spread.upper)
    return [line.kind, line.name, *times, line.left]


def _data(found: PilotReport) -> dict[str, Any]:
    return {
        "begun": found.begun,
        "finished": found.finished,
        "by_state": found.by_state,
        "withdrawn": found.withdrawn,
        "minutes": asdict(found.minutes) if found.minutes else None,
        "screens": [asdict(line) for line in found.screens],
        "checks": [asdict(line) for line in found.checks],
        "outcomes": [{"name": name, "mean": mean, "n": n} for name, mean, n in found.outcomes],
        "shares": [asdict(line) for line in found.shares],
        "remarks": [asdict(remark) for remark in found.remarks],
        "pay": asdict(found.pay) if found.pay else None,
    }
