"""The audit: recording who did what. `audit_chain` seals the entries afterwards, so that no writer waits."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from django.contrib.auth.models import AbstractBaseUser

from survey.models import AuditEntry, Study
from survey.services.base.hashing import keyed_digest

COMMAND = "command"
_asker: ContextVar[tuple[Any, str]] = ContextVar("asker", default=(None, COMMAND))


@contextmanager
def asked_by(user: Any, *, via: str) -> Iterator[None]:
    """Around a function that takes no user, as a demonstration's that loads its bank: its entries name this one."""
    before = _asker.set((user, via))
    try:
        yield
    finally:
        _asker.reset(before)


def record(action: str, subject: Any, *, by: Any = None, via: str = COMMAND, **detail: Any) -> AuditEntry:
    """Append an entry. It must name nobody: users and respondents stand in it by their pseudonyms."""
    if by is None and via == COMMAND:
        by, via = _asker.get()
    return AuditEntry.objects.create(
        actor=actor_of(by),
        via=via,
        action=action,
        subject=_name_of(subject)[:200],
        study=detail.get("study") or _study_of(subject),
        detail=detail,
    )


def _name_of(subject: Any) -> str:
    return actor_of(subject) if isinstance(subject, AbstractBaseUser) else str(subject)


def actor_of(user: Any) -> str:
    """The audit name of a user, which the user's page in the admin shows; empty for nobody.

    Keyed, so that who has a copy of the entries cannot count users up and compare.
    """
    if not getattr(user, "is_authenticated", False):
        return ""
    return f"u-{keyed_digest(user.pk, purpose='audit actor')[:16]}"


def _study_of(subject: Any) -> str:
    """The short name of the study that a row belongs to; empty if it belongs to none."""
    if isinstance(subject, Study):
        return subject.slug
    for name in ("study", "stage", "posting"):
        if (owner := getattr(subject, name, None)) is not None:
            return _study_of(owner)
    return ""
