"""The files of an export about time: steps that are no items, and screens that were left. Imports models and below.

Rows are read while they are written. The items' own times are in answers.csv.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from survey.contracts.tables import Column, ExtraFile
from survey.models import ScreenTiming, Study, UnfinishedScreen
from survey.services.results.export.columns import in_utc
from survey.services.results.export.increments import changed_since
from survey.services.sittings.timing import CLIENT_FIELDS

from .sitting_files import CHUNK, WHO

MEANINGS: Mapping[str, tuple[str, str]] = {
    "shown_ms": ("milliseconds", "When the page was ready, since the browser began to load it."),
    "first_touch_ms": ("milliseconds", "When an input was first touched, on the same clock."),
    "submitted_ms": ("milliseconds", "When it was sent, on the same clock."),
    "hidden_ms": ("milliseconds", "How long it was in the background."),
    "focus_losses": ("number", "How often another window was gone to."),
    "copies": ("number", "How often something was copied or cut."),
    "pastes": ("number", "How often something was pasted."),
    "changes": ("number", "How often an input was changed."),
    "first_value": ("number", "The first number that was entered."),
}
CLIENT = tuple(Column(name, *MEANINGS[name], whole=True) for name in CLIENT_FIELDS)
STEP = (
    *WHO,
    Column("step", "number", "How many pages the sitting had sent before.", whole=True),
    Column("kind", "text", "What the page was: instructions, checks, practice, attention, form or debriefing."),
    Column("name", "text", "The block's name in the study file, or the screen's; empty where it has none."),
)
STEPS = (
    *STEP,
    Column("taken_at", "time, UTC", "When it was accepted."),
    Column("server_ms", "milliseconds", "Since the sitting's previous accepted page."),
    *CLIENT,
)
UNFINISHED = (
    *STEP,
    Column("number", "number", "1 for the first time that this page was left, up to 5.", whole=True),
    Column("left_at", "time, UTC", "When it was left; the person may have come back."),
    *CLIENT,
)


def timing_files(study: Study, *, since: datetime | None) -> Iterator[ExtraFile]:
    yield ExtraFile("steps.csv", STEPS, _steps(study, since))
    yield ExtraFile("unfinished_screens.csv", UNFINISHED, _unfinished(study, since))


def _steps(study: Study, since: datetime | None) -> Iterator[Sequence[Any]]:
    for row in _of_study(ScreenTiming.objects.all(), study, since):
        yield [*_step(row, study), in_utc(row.taken_at), row.server_ms, *_client(row)]


def _unfinished(study: Study, since: datetime | None) -> Iterator[Sequence[Any]]:
    for row in _of_study(UnfinishedScreen.objects.all(), study, since):
        yield [*_step(row, study), row.number, in_utc(row.left_at), *_client(row)]


def _of_study(rows: QuerySet[Any], study: Study, since: datetime | None) -> Iterator[Any]:
    selected = rows.filter(changed_since(since, "sitting__"), sitting__stage__study=study).select_related(
        "sitting__respondent", "sitting__stage"
    )
    return selected.order_by("sitting__stage__index", "sitting", "step", "pk").iterator(CHUNK)


def _step(row: ScreenTiming | UnfinishedScreen, study: Study) -> list[Any]:
    sitting = row.sitting
    who = [study.slug, sitting.stage.index, sitting.respondent.pseudonym, sitting.respondent.is_simulated]
    return [*who, row.step, row.kind, row.name or None]


def _client(row: ScreenTiming | UnfinishedScreen) -> list[int | None]:
    return [row.client.get(name) for name in CLIENT_FIELDS]
