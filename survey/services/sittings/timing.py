"""Times that a browser reports about a screen: with its answer, or without one if the screen was left unfinished.

Nothing checks what the browser says: numbers within limits are stored as they came, anything else is dropped.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from survey.models import ScreenTiming, Sitting, UnfinishedScreen
from survey.models.screen_timing import MAX_UNFINISHED

from .flow import Step, current_step

# What a browser may report about a screen, and the largest number allowed. Anything else is dropped.
CLIENT_FIELDS = (
    "shown_ms",
    "first_touch_ms",
    "submitted_ms",
    "hidden_ms",
    "focus_losses",
    "copies",
    "pastes",
    "changes",
    "first_value",
)
CLIENT_LIMIT = 10**12


def client_facts(data: Mapping[str, Any]) -> dict[str, int]:
    facts = {}
    for name in CLIENT_FIELDS:
        try:
            value = int(str(data.get(f"client_{name}", "")))
        except ValueError:
            continue
        if 0 <= value <= CLIENT_LIMIT:
            facts[name] = value
    return facts


def milliseconds_since(before: datetime, now: datetime) -> int:
    return max(0, int((now - before).total_seconds() * 1000))


def record_step(sitting: Sitting, step: Step, data: Mapping[str, Any], now: datetime) -> None:
    """Store the times of an answered step. An item's times are stored with its response. Needs the sitting's lock."""
    if step.kind == "item":
        return
    ScreenTiming.objects.create(
        sitting=sitting,
        step=step.number,
        kind=step.kind,
        name=_name(step),
        taken_at=now,
        server_ms=milliseconds_since(sitting.last_seen_at, now),
        client=client_facts(data),
    )


@transaction.atomic
def record_unfinished(*, sitting: Sitting, step: str, data: Mapping[str, Any]) -> bool:
    """Store that a page was left without being sent; False if nothing is stored.

    The sitting stays at its step, and its time still runs out. A few rows are stored for each step, and none for a step
    that was answered meanwhile. The browser's report may come late, twice, or never.
    """
    # Locked, so that nothing is stored about a person who withdraws at this moment. We do not wait for the lock.
    held = Sitting.objects.select_for_update(of=("self",), skip_locked=True, no_key=True)
    if sitting.is_over or step != str(sitting.step) or not held.filter(pk=sitting.pk, withdrawn_at=None).exists():
        return False
    current = current_step(sitting)
    left = UnfinishedScreen.objects.filter(sitting=sitting, step=sitting.step)
    number = (left.aggregate(last=Max("number"))["last"] or 0) + 1
    if number > MAX_UNFINISHED:
        return False
    # Two reports at once take the same number, and the second one is dropped: it is not worth a wait.
    UnfinishedScreen.objects.bulk_create(
        [
            UnfinishedScreen(
                sitting=sitting,
                step=current.number,
                number=number,
                kind=current.kind,
                name=_name(current),
                left_at=timezone.now(),
                client=client_facts(data),
            )
        ],
        ignore_conflicts=True,
    )
    return True


def _name(step: Step) -> str:
    if step.kind == "attention":
        return step.checks[0].name
    return (step.screen.name if step.screen else step.block.name or "")[:60]


# Words of a consent text that says that pages are timed, by language.
NAMED_BY = {
    "en": ("how long", "how much time", "timing", "time spent", "measure"),
    "de": ("wie lange", "wie viel zeit", "dauer", "messen", "gemessen"),
}


def is_named_in(consent: str, language: str) -> bool:
    """Whether a consent text seems to say that times are measured. Only a search for words: a person should read it."""
    return any(word in consent.lower() for word in NAMED_BY.get(language, ()))
