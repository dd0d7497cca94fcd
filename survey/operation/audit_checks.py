"""The audit's chain is checked once a day. What was found is an entry of the audit itself.

A check goes on where the last one that found no fault ended. The whole chain is checked once a week, by the command,
and for as long as there is a fault.
"""

from datetime import datetime, timedelta
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone

from survey.models import AuditEntry, AuditSeal
from survey.services.base import audit_chain
from survey.services.base.audit_chain import ChainCheck
from survey.services.base.auditing import record

ACTION, SUBJECT = "verify_audit", "audit"
EVERY = timedelta(days=1)
WHOLE_EVERY = timedelta(days=7)
OVERDUE = timedelta(days=2)


def last_check() -> AuditEntry | None:
    return _checks().first()


def check_if_due(*, now: datetime | None = None) -> bool:
    """Check the chain if that was not done for a day; whether it was done now."""
    now = now or timezone.now()
    last = last_check()
    if last is not None and now - last.at < EVERY:
        return False
    without_fault = _checks().filter(detail__faults=0)
    is_whole = not without_fault.filter(detail__whole=True, at__gt=now - WHOLE_EVERY).exists()
    check(whole=is_whole or last is None)
    return True


def has_found_faults() -> bool:
    """Whether the last check found any."""
    last = last_check()
    return last is not None and last.detail["faults"] > 0


def check(*, whole: bool = True, expected: str = "", by: Any = None, via: str = "worker") -> ChainCheck:
    """Check the chain, and record what was found, with the first faults by name. For as long as there is a fault, all
    entries are checked: newer ones alone would not find it again.

    Args:
        expected: as for `audit_chain.verify`; whether it was seen is not recorded.
    """
    whole = whole or has_found_faults()
    last = _checks().filter(detail__faults=0, detail__number__gt=0).first()
    checked = None
    if last is not None:
        checked = AuditSeal.objects.filter(number=last.detail["number"], sha256=last.detail["sha256"]).first()
    chain_check = audit_chain.verify(expected, after=None if whole else checked)
    if last is not None and checked is None:
        chain_check.add(
            f"seal {last.detail['number']} is not the one that was checked before: the chain was cut or made anew"
        )
    record(
        ACTION,
        SUBJECT,
        by=by,
        via=via,
        number=chain_check.number,
        sha256=chain_check.sha256,
        faults=chain_check.fault_count,
        whole=whole or checked is None,
        **({"named": chain_check.faults} if chain_check.faults else {}),
    )
    return chain_check


def _checks() -> QuerySet[AuditEntry]:
    """The newest one first. Entries of no study are few, and found by an index: the watch asks each minute."""
    return AuditEntry.objects.filter(study="", action=ACTION, subject=SUBJECT).order_by("-pk")
