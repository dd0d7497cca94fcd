"""Locks researchers out for a while after many failed log-ins. The settings name these parts to django-axes.

A stranger must not be able to keep a researcher out: one address is locked out of one name soon, and all addresses are
locked out of a name only after many failures. django-axes stores neither the names that were typed, which may be
passwords, nor forms and query strings.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from axes.handlers.database import AxesDatabaseHandler
from axes.models import AccessAttempt
from django.conf import settings
from django.db import transaction
from django.db.models import Max, QuerySet, Sum
from django.db.models.signals import pre_save
from django.dispatch import receiver
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext as _

from survey.services.base import auditing
from survey.services.base.hashing import keyed_digest
from survey.web.client_address import UNKNOWN, client_address


class Lockout(AxesDatabaseHandler):
    """Counts the failures of a name from one address, and those from all addresses as a part of that limit."""

    def get_failures(self, request: HttpRequest, credentials: dict[str, Any] | None = None) -> int:
        here, everywhere = (
            attempts.aggregate(failures=Sum("failures_since_start"))["failures"] or 0
            for attempts in self.get_user_attempts(request, credentials)
        )
        return max(here, everywhere * settings.AXES_FAILURE_LIMIT // settings.HUNCH_FAILURES_OF_A_NAME)


@receiver(pre_save, sender=AccessAttempt)
def store_no_contents(instance: AccessAttempt, **_signal: Any) -> None:
    instance.get_data = instance.post_data = instance.http_accept = ""


def counted_address(request: HttpRequest) -> str | None:
    address = client_address(request).partition("/")[0]
    return None if address == UNKNOWN else address


def counted_name(request: HttpRequest, credentials: dict[str, Any] | None = None) -> str:
    return _hashed_name((credentials or request.POST).get("username") or "")


def _hashed_name(name: str) -> str:
    return keyed_digest(name, purpose="log-in")


def logged_as(*_client: Any) -> str:
    """In django-axes' own lines of the log, which would name the client."""
    return "a client"


@transaction.atomic
def unlock(user: Any, *, by: Any = None, via: str = "command") -> bool:
    """Forget the failures of a name. Returns whether there were any."""
    failures = AccessAttempt.objects.filter(username=_hashed_name(user.get_username())).delete()[0]
    if failures:
        auditing.record("unlock", user, by=by, via=via)
    return bool(failures)


def forget_ended() -> None:
    """Delete the failures that no longer count, with their addresses."""
    AccessAttempt.objects.filter(attempt_time__lt=timezone.now() - settings.AXES_COOLOFF_TIME).delete()


def locked_out(request: HttpRequest, _response: HttpResponse, credentials: dict[str, Any] | None) -> HttpResponse:
    """The page in place of the log-in: when to try again."""
    until = _locked_until(request, credentials)
    seconds = max(1, int((until - timezone.now()).total_seconds()) + 1)
    minutes = -(-seconds // 60)
    page = {
        "title": _("Too many failed log-ins"),
        "message": _("This account cannot be logged in to from here for now. Please try again in %(minutes)d min.")
        % {"minutes": minutes},
        "help": _("If you have forgotten your password, ask a superuser, who can unlock the account at once."),
    }
    response = render(request, "admin/survey/locked_out.html", page, status=429)
    response.headers["Retry-After"] = str(seconds)
    return response


def _locked_until(request: HttpRequest, credentials: dict[str, Any] | None) -> datetime:
    """When the newest failure that counts is old enough: those from this address, if they suffice to lock it out."""
    now, waits = timezone.now(), settings.AXES_COOLOFF_TIME
    attempts: Sequence[QuerySet[AccessAttempt]] = Lockout().get_user_attempts(request, credentials)
    for attempt in attempts:
        facts = attempt.aggregate(failures=Sum("failures_since_start"), newest=Max("attempt_time"))
        if (facts["failures"] or 0) >= settings.AXES_FAILURE_LIMIT:
            return facts["newest"] + waits
    return now + waits
