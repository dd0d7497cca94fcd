"""The report on a pilot: the results of `pilot_data` in tables."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from survey.contracts.reports import Report, ReportArguments, ReportResult
from survey.figures import Column, Figure, FigureColumn, Table, TableView
from survey.figures.words import number
from survey.models import Sitting, Study
from survey.services.results.pilots.pilot_data import PilotReport, ScreenLine, pilot_report

if TYPE_CHECKING:
    from collections.abc import Iterator

SCREENS = (
    Column("kind", "text", "What the page was: instructions, checks, practice, item, form, ...", style="words"),
    Column("name", "text", "The block's name in the study file, or the screen's.", heading="screen", style="words"),
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

    def make(self, study: Study, arguments: ReportArguments) -> ReportResult:
        report = pilot_report(study)
        too_low = report.pay is not None and report.pay.is_too_low
        return ReportResult(
            title=f"Pilot of {study.slug}",
            lines=tuple(_lines(report)),
            tables=[table for table in _tables(report) if table.rows],
            notes=(f"Too little would be paid: {report.pay}. The first main stage does not open so.",)
            if too_low
            else (),
            data=_data(report),
        )


def _lines(report: PilotReport) -> "Iterator[str]":
    states = ", ".join(f"{count} {state}" for state, count in report.by_state.items())
    yield f"{report.study.slug}: {report.begun} people began the pilot, {report.finished} finished ({states})"
    if report.withdrawn:
        yield f"{report.withdrawn} withdrew their answers and are left out"
    if report.minutes:
        spread = report.minutes
        median, lower, upper = (number(minutes, 1) for minutes in (spread.median, spread.lower, spread.upper))
        yield f"minutes: median {median}, quartiles {lower} and {upper}"
    if report.pay:
        yield f"pay: {report.pay}" + (" (too low)" if report.pay.is_too_low else "")


def _tables(report: PilotReport) -> "Iterator[Table]":
    checks = [[line.name, line.question, line.shown, line.failed, line.failed_again] for line in report.checks]
    outcomes = [
        *([name, Figure(mean), answers] for name, mean, answers in report.outcomes),
        *([f"{line.what} is exactly {line.value}", Figure(line.share, unit="share"), line.n] for line in report.shares),
    ]
    yield Table("screens", "Screens", SCREENS, [_screen_row(line) for line in report.screens])
    yield Table(
        "checks",
        "Checks",
        CHECKS,
        checks,
        views=[TableView(["name", "shown", "failed", "failed_again", "question"])],
    )
    yield Table("outcomes", "Answers", OUTCOMES, outcomes)
    yield Table(
        "remarks",
        "What people wrote",
        REMARKS,
        [[remark.where, remark.text] for remark in report.remarks],
        verbatim=True,
    )


def _screen_row(line: ScreenLine) -> list[Any]:
    spread = line.seconds
    times = (0, None, None, None) if spread is None else (spread.n, spread.median, spread.lower, spread.upper)
    return [line.kind, line.name, *times, line.left]


def _data(report: PilotReport) -> dict[str, Any]:
    return {
        "begun": report.begun,
        "finished": report.finished,
        "by_state": report.by_state,
        "withdrawn": report.withdrawn,
        "minutes": asdict(report.minutes) if report.minutes else None,
        "screens": [asdict(line) for line in report.screens],
        "checks": [asdict(line) for line in report.checks],
        "outcomes": [{"name": name, "mean": mean, "n": n} for name, mean, n in report.outcomes],
        "shares": [asdict(line) for line in report.shares],
        "remarks": [asdict(remark) for remark in report.remarks],
        "pay": asdict(report.pay) if report.pay else None,
    }
