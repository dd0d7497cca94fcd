"""Who logged in and out, and who could not: in the audit, with the address. Of names that no account has, nothing is
kept: people type passwords into the wrong field."""

from typing import Any

from axes.signals import user_locked_out
from django.contrib.auth import get_user_model
from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.dispatch import receiver
from django.http import HttpRequest

from survey.services.base import auditing, second_factor
from survey.web.client_address import client_address


@receiver(user_logged_in)
def record_log_in(request: HttpRequest, user: Any, **_signal: Any) -> None:
    proof = getattr(user, "proved_by", "")
    if proof:
        second_factor.mark(request.session)
    auditing.record(
        "log_in", user, by=user, via="admin", address=client_address(request), second_factor=proof or "none"
    )


@receiver(user_logged_out)
def record_log_out(user: Any, **_signal: Any) -> None:
    if user is not None:
        auditing.record("log_out", user, by=user, via="admin")


@receiver(user_login_failed)
def record_failure(credentials: dict[str, Any], request: HttpRequest | None = None, **_signal: Any) -> None:
    if request is not None and not _was_locked_out(request):
        _record("fail_to_log_in", request, credentials)


@receiver(user_locked_out)
def record_lockout(request: HttpRequest, **_signal: Any) -> None:
    if not _was_locked_out(request):
        _record("lock_out", request, request.axes_credentials)  # type: ignore[attr-defined]


def _was_locked_out(request: HttpRequest) -> bool:
    """Whether it was so before this attempt: then nothing was tried. django-axes counts only what was tried."""
    is_locked_out = getattr(request, "axes_locked_out", False)
    return bool(is_locked_out) and getattr(request, "axes_failures_since_start", None) is None


def _record(action: str, request: HttpRequest, credentials: dict[str, Any]) -> None:
    user = get_user_model().objects.filter(username=credentials.get("username") or "").first()
    if user is not None:
        auditing.record(action, user, via="admin", address=client_address(request))
