"""What is wrong now, for the admin's first page."""

from datetime import timedelta
from typing import Any

from django import template
from django.contrib.auth import get_user_model
from django.db.models import QuerySet
from django.utils import timezone

from survey.figures.words import date_and_time
from survey.models import Alert, WatchRecord

register = template.Library()
MAX_ALERTS = 20
SILENT_AFTER = timedelta(minutes=5)


@register.simple_tag
def open_alerts() -> QuerySet[Alert]:
    return Alert.objects.filter(resolved_at__isnull=True)[:MAX_ALERTS]


@register.simple_tag
def is_without_accounts() -> bool:
    return not get_user_model().objects.exists()


@register.simple_tag
def silent_since(user: Any) -> str:
    """A sentence for this user if the watch does not look; empty if it does."""
    row, now = WatchRecord.objects.first(), timezone.now()
    if row is None:
        if now - user.date_joined < SILENT_AFTER:
            return ""  # Who has just made the first account has just started the server.
        return "Nothing watches the site yet: no alert is raised. `hunch doctor` says what does not run."
    if now - row.looked_at < SILENT_AFTER:
        return ""
    at = date_and_time(row.looked_at)
    return f"Nothing has watched the site since {at}: no alert is raised. `hunch doctor` says what does not run."
