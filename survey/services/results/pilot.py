"""The report on a pilot: the results of `piloting` in tables."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from survey.contracts.reports import Findings, Given, Layout, Report, Table
from survey.contracts.tables import Column
from survey.models import Sitting, Study

from .piloting import CheckLine, PilotReport, ScreenLine, ShareLine, pilot_report

if TYPE_CHECKING:
    from collections.abc import Iterator

SCREENS = (
    Column("kind", "text", "What the page was: instructions, checks, practice, item, form, ..."),
    Column("name", "text", "The block's name in the study file, or the screen's."),
    Column("times", "number", "How often it was taken."),
    Column("median_seconds", "seconds", "The median time on it."),
    Column("lower_seconds", "seconds", "The lower quartile."),
    Column("upper_seconds", "seconds", "The upper quartile."),
    Column("left", "number", "How many people left there for good."),
)
CHECKS = (
    Column("name", "text", "The check's name in the study file."),
    Column("question", "text", "What it asks."),
    Column("shown", "number", "How many people saw it."),
    Column("failed", "number", "How many failed it the first time."),
    Column("failed_again", "number", "How many failed it again; empty where there is one attempt."),
)
OUTCOMES = (
    Column("figure", "text", "What the mean is of, or the answer whose share it is."),
    Column("mean", "number", "A mean, or a share between 0 and 1."),
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
        yield f"minutes: median {spread.median:.1f}, quartiles {spread.lower:.1f} and {spread.upper:.1f}"
    if found.pay:
        yield f"pay: {found.pay}" + (" (too low)" if found.pay.is_too_low else "")


def _tables(found: PilotReport) -> "Iterator[Table]":
    yield Table(
        "screens",
        "Screens",
        SCREENS,
        [_screen_row(line) for line in found.screens],
        layouts=[
            Layout(
                ["screen", "times", "median s", "quartiles", "left here"],
                [_screen_cells(line) for line in found.screens],
            )
        ],
    )
    yield Table(
        "checks",
        "Checks",
        CHECKS,
        [[line.name, line.question, line.shown, line.failed, line.failed_again] for line in found.checks],
        layouts=[
            Layout(
                ["check", "people", "failed", "failed again", "question"], [_check_cells(line) for line in found.checks]
            )
        ],
    )
    yield Table(
        "outcomes",
        "Answers",
        OUTCOMES,
        [
            *found.outcomes,
            *([_share_name(line), line.share, line.n] for line in found.shares),
        ],
        layouts=[
            Layout(
                ["figure", "mean or share", "answers"],
                [
                    *([name, f"{mean:.3f}", str(n)] for name, mean, n in found.outcomes),
                    *([_share_name(line), f"{100 * line.share:.1f} %", str(line.n)] for line in found.shares),
                ],
            )
        ],
    )
    yield Table(
        "remarks", "What people wrote", REMARKS, [[one.where, one.text] for one in found.remarks], verbatim=True
    )


def _screen_row(line: ScreenLine) -> list[Any]:
    spread = line.seconds
    times = (0, None, None, None) if spread is None else (spread.n, spread.median, spread.lower, spread.upper)
    return [line.kind, line.name, *times, line.left]


def _screen_cells(line: ScreenLine) -> list[str]:
    name, spread = f"{line.kind} {line.name}".strip(), line.seconds
    if spread is None:
        return [name, "0", "–", "–", str(line.left)]
    return [name, str(spread.n), f"{spread.median:.1f}", f"{spread.lower:.1f}, {spread.upper:.1f}", str(line.left)]


def _check_cells(line: CheckLine) -> list[str]:
    again = "–" if line.failed_again is None else str(line.failed_again)
    return [line.name, str(line.shown), str(line.failed), again, " ".join(line.question.split())]


def _share_name(line: ShareLine) -> str:
    return f"{line.what} is exactly {line.value}"


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
