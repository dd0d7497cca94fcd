"""The audit: recording who did what."""

from typing import Any

from survey.models import AuditEntry


def record(action: str, subject: Any, *, by: Any = None, via: str = "command", **detail: Any) -> AuditEntry:
    actor = by if getattr(by, "is_authenticated", False) else None
    return AuditEntry.objects.create(actor=actor, via=via, action=action, subject=str(subject)[:200], detail=detail)
