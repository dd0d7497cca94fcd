"""What a browser tells about a screen: with its answer, or alone when the screen was left unfinished.

All of it is the browser's own word: numbers in their limits are kept as they came, anything else is dropped.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from survey.models import ScreenTiming, Sitting, UnfinishedScreen
from survey.models.timing import MOST_UNFINISHED

from .flow import Step, current_step

# What a browser may tell about a screen, and the largest number it may tell. Anything else is dropped, not stored.
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


def record_step(sitting: Sitting, shown: Step, data: Mapping[str, Any], now: datetime) -> None:
    """The times of a step that was taken. An item's are with its response. Needs the sitting's lock."""
    if shown.kind == "item":
        return
    ScreenTiming.objects.create(
        sitting=sitting,
        step=shown.number,
        kind=shown.kind,
        name=_name(shown),
        taken_at=now,
        server_ms=milliseconds_since(sitting.last_seen_at, now),
        client=client_facts(data),
    )


@transaction.atomic
def record_unfinished(*, sitting: Sitting, step: str, data: Mapping[str, Any]) -> bool:
    """A page of the sitting was left without being sent; False where nothing is kept of it.

    Moves nothing and keeps no sitting alive. A few rows a step are kept and none for a step that was taken meanwhile:
    the browser's word may come late, twice, or never.
    """
    # Locked, so that nothing is kept of a person who withdraws at this moment; not waited for.
    held = Sitting.objects.select_for_update(of=("self",), skip_locked=True, no_key=True)
    if sitting.is_over or step != str(sitting.step) or not held.filter(pk=sitting.pk, withdrawn_at=None).exists():
        return False
    shown = current_step(sitting)
    left = UnfinishedScreen.objects.filter(sitting=sitting, step=sitting.step)
    number = (left.aggregate(last=Max("number"))["last"] or 0) + 1
    if number > MOST_UNFINISHED:
        return False
    # Two at once take the same number, and the second one is let go: nobody waits for what is only told in passing.
    UnfinishedScreen.objects.bulk_create(
        [
            UnfinishedScreen(
                sitting=sitting,
                step=shown.number,
                number=number,
                kind=shown.kind,
                name=_name(shown),
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


# Words of a consent that says that pages are timed; by language.
NAMED_BY = {
    "en": ("how long", "how much time", "timing", "time spent", "measure"),
    "de": ("wie lange", "wie viel zeit", "dauer", "messen", "gemessen"),
}


def is_named_in(consent: str, language: str) -> bool:
    """Whether a consent text seems to say that times are measured: by its words, which a person should read."""
    return any(word in consent.lower() for word in NAMED_BY.get(language, ()))
