"""Which rows an increment holds: what was stored since a moment. Imports Django and errors."""

from datetime import UTC, datetime

from django.db.models import Q
from django.utils import timezone
from django.utils.dateparse import parse_date, parse_datetime

from survey.exceptions import HunchError


def read_since(text: str) -> datetime | None:
    """A moment as people and programs write it; None for an empty text. Without a zone it is UTC.

    Raises:
        HunchError: it is no date or time, or lies in the future.
    """
    if not text:
        return None
    try:
        moment = parse_datetime(text)
        day = None if moment is not None else parse_date(text)
    except ValueError:
        moment = day = None
    if day is not None:
        moment = datetime(day.year, day.month, day.day, tzinfo=UTC)
    if moment is None:
        raise HunchError(f"since: {text!r} is no time; write it as 2030-01-31 or 2030-01-31T09:00:00Z", code="invalid")
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    if moment > timezone.now():
        raise HunchError(f"since: {text} lies in the future; give the time of your last export", code="invalid")
    return moment


def changed_since(since: datetime | None, path: str = "") -> Q:
    """Rows of sittings in which anything was stored since; all without it.

    Args:
        path: the lookup that leads from a row to its sitting, with the underscores.
    """
    if since is None:
        return Q()
    times = ("last_seen_at", "expired_at", "ended_at", "withdrawn_at", "exclusion__decided_at")
    q = Q()
    for name in times:
        q |= Q(**{f"{path}{name}__gte": since})
    return q
