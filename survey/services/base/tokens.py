"""Tokens for the API: made, which shows them once, and revoked. The audit records both."""

from collections.abc import Iterable
from typing import Any

from django.db import transaction
from django.utils import timezone

from survey.models import ApiToken, Study

from .auditing import actor_of, record


@transaction.atomic
def issue_token(
    *,
    user: Any,
    name: str,
    scope: str,
    studies: Iterable[Study] | None,
    days: int,
    by: Any = None,
    via: str = "command",
) -> tuple[ApiToken, str]:
    """A token and its secret, which is stored nowhere. `studies`: these alone; None: all of its user's."""
    token, secret = ApiToken.issue(user=user, name=name, scope=scope, studies=studies, days=days)
    record(
        "create_token",
        token.name_in_audit,
        by=by,
        via=via,
        token_user=actor_of(user),
        scope=scope,
        studies="all" if studies is None else sorted(study.slug for study in studies),
        days=days,
    )
    return token, secret


@transaction.atomic
def revoke_token(token: ApiToken, *, by: Any = None, via: str = "command") -> bool:
    """False if it was revoked before: the first time counts."""
    if not ApiToken.objects.filter(pk=token.pk, revoked_at__isnull=True).update(revoked_at=timezone.now()):
        return False
    record("revoke_token", token.name_in_audit, by=by, via=via, token_user=actor_of(token.user))
    return True
