"""What is wrong now, for the admin's first page."""

from datetime import timedelta

from django import template
from django.contrib.auth import get_user_model
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.formats import date_format

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
def silent_since() -> str:
    """A sentence if the watch does not look; empty if it does."""
    row = WatchRecord.objects.first()
    if row is None:
        return "Nobody has looked after the site yet: no alert is raised until beat runs."
    if timezone.now() - row.looked_at < SILENT_AFTER:
        return ""
    at = date_format(timezone.localtime(row.looked_at), "DATETIME_FORMAT")
    return f"Nobody has looked after the site since {at}: check whether beat runs, and at its log."
