"""The first account of an empty server: an address that works once, for a day, and only while there is no account."""

import hashlib
import secrets
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.db import transaction
from django.utils import timezone

from survey.exceptions import NotFound
from survey.models import FirstAccountLink

from .auditing import record

LINK_HOLDS = timedelta(hours=24)
# The demo's own researcher, whose password the demo prints. It administers nothing, so it is not the first account.
DEMO_EMAIL = "researcher@demo.invalid"
GONE = (
    "This address was used, is over, or an account exists already. Log in, or ask the person who runs this server: "
    "while there is no account, `hunch first_account` makes a new address."
)


def somebody_has_an_account() -> bool:
    return get_user_model().objects.exclude(email=DEMO_EMAIL, is_superuser=False).exists()


@transaction.atomic
def offer(*, now: datetime | None = None, via: str = "command") -> str | None:
    """The secret of a new address, which is stored nowhere; None where there is an account. Earlier addresses end."""
    if somebody_has_an_account():
        return None
    now = now or timezone.now()
    FirstAccountLink.objects.all().delete()
    secret = secrets.token_urlsafe(32)
    FirstAccountLink.objects.create(token_hash=_hashed(secret), created_at=now, expires_at=now + LINK_HOLDS)
    record("offer_first_account", "accounts", via=via, expires_at=(now + LINK_HOLDS).isoformat())
    return secret


def path(secret: str) -> str:
    """Where the page is, as `reverse` says too. That would load all pages, a second of work for a command."""
    return f"/admin/first-account/?secret={secret}"


def is_open(secret: str, *, now: datetime) -> bool:
    return _open_links(secret, now).exists() and not somebody_has_an_account()


@transaction.atomic
def make(secret: str, *, username: str, password: str, now: datetime, via: str = "admin") -> Any:
    """The first account, a superuser. Of two who use the address at the same time, one makes it.

    Raises:
        NotFound: the address was used, is over, or somebody has an account.
    """
    link = _open_links(secret, now).select_for_update().first()
    if link is None or somebody_has_an_account():
        raise NotFound(GONE)
    if not FirstAccountLink.objects.filter(pk=link.pk, used_at__isnull=True).update(used_at=now):
        raise NotFound(GONE)
    user = get_user_model().objects.create_superuser(username, password=password)
    record("make_first_account", user, by=user, via=via)
    return user


def _open_links(secret: str, now: datetime) -> Any:
    return FirstAccountLink.objects.filter(token_hash=_hashed(secret), used_at__isnull=True, expires_at__gt=now)


def _hashed(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()  # 32 random bytes cannot be guessed: a fast hash is enough.
