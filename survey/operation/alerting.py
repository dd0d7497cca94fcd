"""Alerts: each is stored once, sent, sent again after hours, and sent once more when it is over.

What is found is compared with the open rows, so the code that finds something need not know whether it is new.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import Q
from django.urls import reverse

from survey.figures.words import date_and_time
from survey.models import Alert
from survey.panels.addresses import public_root

from . import channels

Cause = Alert.Cause

# What comes and goes within this time is one alert.
QUIET = timedelta(minutes=5)
# These are sent once. All others are sent again until they are over, for a limited time.
SENT_ONCE = (Cause.STAGE_FULL, Cause.CAP_NEAR)
REPEATED_FOR = timedelta(days=2)
# After this long, the process that began to send it has died.
LONGEST_SENDING = timedelta(minutes=5)
MAX_AT_ONCE = 50


@dataclass(frozen=True)
class Trouble:
    """One thing that is wrong, with a sentence that says what to do. It holds no id of a person."""

    cause: Alert.Cause
    subject: str
    message: str
    study_id: int | None = None

    @property
    def key(self) -> tuple[str, str]:
        return self.cause.value, self.subject[:120]


def store(troubles: Iterable[Trouble], *, now: datetime, not_looked_at: Collection[str] = ()) -> None:
    """Open an alert for what is new, keep those that are found again, and resolve those that are over.

    Args:
        not_looked_at: causes that could not be looked at. Their alerts stay as they are.
    """
    keys = add(troubles, now=now)
    for row in Alert.objects.filter(resolved_at__isnull=True, seen_at__lte=now - QUIET):
        if (row.cause, row.subject) not in keys and row.cause not in not_looked_at:
            Alert.objects.filter(pk=row.pk, resolved_at__isnull=True).update(resolved_at=now)


def add(troubles: Iterable[Trouble], *, now: datetime) -> set[tuple[str, str]]:
    """Open an alert for what is new and keep those that are found again; return the keys of all that was found."""
    keys = set()
    for trouble in troubles:
        cause, subject = trouble.key
        keys.add(trouble.key)
        same = Alert.objects.filter(cause=cause, subject=subject, resolved_at__isnull=True)
        if not same.update(seen_at=now, message=trouble.message):
            Alert.objects.bulk_create([_row(trouble, now)], ignore_conflicts=True)
    return keys


def _row(trouble: Trouble, now: datetime) -> Alert:
    cause, subject = trouble.key
    facts: dict[str, Any] = {"message": trouble.message, "study_id": trouble.study_id, "opened_at": now, "seen_at": now}
    return Alert(cause=cause, subject=subject, **facts)


def tell(*, now: datetime) -> int:
    """Send what is due, in one message; return how many alerts it named. What no channel took is due again."""
    if not channels.are_configured():
        return 0
    due = [row for row in _due(now)[:MAX_AT_ONCE] if _claim(row, now)]
    if not due:
        return 0
    pks = [row.pk for row in due]
    if not channels.send(_title(due), [*map(_line, due), _where()], [_for_programs(row) for row in due]):
        Alert.objects.filter(pk__in=pks, sending_at=now).update(sending_at=None)
        return 0
    sent = Alert.objects.filter(pk__in=pks, sending_at=now)
    sent.filter(pk__in=[row.pk for row in due if row.resolved_at]).update(over_sent_at=now)
    sent.update(sending_at=None, sent_at=now)
    return len(due)


def tell_unstored(troubles: Iterable[Trouble]) -> bool:
    """Send what cannot be stored, since the database is away."""
    rows = [Alert(cause=trouble.cause, subject=trouble.subject, message=trouble.message) for trouble in troubles]
    return bool(rows) and channels.send(_title(rows), [*map(_line, rows), _where()], [_for_programs(r) for r in rows])


def _due(now: datetime) -> Any:
    again = Q(sent_at__lt=now - timedelta(hours=settings.HUNCH_ALERT_REPEAT_HOURS))
    again &= Q(opened_at__gt=now - REPEATED_FOR) & ~Q(cause__in=SENT_ONCE)
    is_open = Q(resolved_at__isnull=True) & (Q(sent_at__isnull=True) | again)
    is_over = Q(resolved_at__isnull=False, sent_at__isnull=False, over_sent_at__isnull=True)
    free = Q(sending_at__isnull=True) | Q(sending_at__lt=now - LONGEST_SENDING)
    return Alert.objects.filter(free, is_open | is_over).select_related("study").order_by("opened_at", "pk")


def _claim(row: Alert, now: datetime) -> bool:
    """Of two that would send it at once, one does."""
    unchanged = Alert.objects.filter(pk=row.pk, sending_at=row.sending_at, sent_at=row.sent_at)
    return bool(unchanged.update(sending_at=now))


def _title(rows: list[Alert]) -> str:
    first = f"{'over: ' if rows[0].resolved_at else ''}{rows[0]}"
    return first if len(rows) == 1 else f"{first}, and {len(rows) - 1} more"


def _line(row: Alert) -> str:
    if row.resolved_at:
        return f"Over since {date_and_time(row.resolved_at)}: {row}."
    return f"{row}.\n{row.message}"


def _where() -> str:
    return f"All alerts: {public_root()}{reverse('admin:survey_alert_changelist')}"


def _for_programs(row: Alert) -> dict[str, Any]:
    return {
        "cause": row.cause,
        "subject": row.subject,
        "message": row.message,
        "study": row.study.slug if row.study else None,
        "state": "resolved" if row.resolved_at else "open",
        "opened_at": row.opened_at.isoformat() if row.opened_at else None,
    }
