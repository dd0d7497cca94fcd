"""The files of an export about time: steps that are no items, and screens that were left. Imports models and below.

Rows are read while they are written. The items' own times are in answers.csv.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any

from survey.contracts.tables import ExtraFile, ValueColumn
from survey.models import ScreenTiming, Study, UnfinishedScreen
from survey.services.sittings.timing import CLIENT_FIELDS

from .common_columns import WHO, file_of_study, rows_of_sittings, text, time

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


def _measured(name: str) -> Callable[[Any], Any]:
    return lambda row: row.client.get(name)


CLIENT = tuple(ValueColumn(name, *MEANINGS[name], whole=True, value=_measured(name)) for name in CLIENT_FIELDS)
STEP = (
    *WHO,
    ValueColumn("step", "number", "How many pages the sitting had sent before.", whole=True),
    ValueColumn("kind", "text", "What the page was: instructions, checks, practice, attention, form or debriefing."),
    ValueColumn(
        "name",
        "text",
        "The block's name in the study file, or the screen's; empty where it has none.",
        value=text("name"),
    ),
)
STEPS = (
    *STEP,
    ValueColumn("taken_at", "time, UTC", "When it was accepted.", value=time("taken_at")),
    ValueColumn("server_ms", "milliseconds", "Since the sitting's previous accepted page."),
    *CLIENT,
)
UNFINISHED = (
    *STEP,
    ValueColumn("number", "number", "1 for the first time that this page was left, up to 5.", whole=True),
    ValueColumn("left_at", "time, UTC", "When it was left; the person may have come back.", value=time("left_at")),
    *CLIENT,
)


def timing_files(study: Study, *, since: datetime | None) -> Iterator[ExtraFile]:
    steps = rows_of_sittings(ScreenTiming.objects.all(), study, since, by="step")
    unfinished = rows_of_sittings(UnfinishedScreen.objects.all(), study, since, by="step")
    yield file_of_study(study, "steps.csv", STEPS, steps)
    yield file_of_study(study, "unfinished_screens.csv", UNFINISHED, unfinished)
