"""The audit's chain is checked each day from where the last check ended, and what is wrong is told."""

from datetime import timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from survey import tasks
from survey.models import Alert, AuditEntry, AuditSeal
from survey.operation import audit_checks, doctor, watch
from survey.services.base import audit_chain
from survey.services.base.auditing import record
from tests import databases
from tests.operation.test_metrics import figures, token

__all__ = ["token"]
pytestmark = pytest.mark.django_db
DAY = timedelta(days=1, minutes=1)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of the seals that were checked since the list was cleared."""
    numbers: list[int] = []
    check = audit_chain._check_seal

    def noted(seal: AuditSeal, *rest: Any) -> None:
        numbers.append(seal.number)
        check(seal, *rest)

    monkeypatch.setattr(audit_chain, "_check_seal", noted)
    return numbers


def sealed(count: int) -> None:
    for number in range(count):
        record("open_stage", f"small stage {number}")
    audit_chain.seal_entries()


def diagnosis() -> tuple[str, str]:
    (finding,) = doctor.LOOKS["audit"]("audit")
    return finding.grade.value, finding.what


def change(subject: str) -> None:
    with databases.unguarded():
        AuditEntry.objects.filter(pk=AuditSeal.objects.get(number=2).entry_id).update(subject=subject)


def test_a_day_is_checked_from_where_the_last_check_ended_and_a_week_from_the_beginning(read: list[int]) -> None:
    start = timezone.now()
    sealed(3)
    assert tasks.check_audit() and not tasks.check_audit()
    assert read == [1, 2, 3]
    sealed(2)  # The check is an entry of its own.
    assert not audit_checks.check_if_due(now=start + timedelta(hours=23))
    assert audit_checks.check_if_due(now=start + DAY)
    assert read[3:] == [4, 5, 6]
    last = audit_checks.last_check()
    assert last is not None and last.detail == {
        "number": 6,
        "sha256": audit_chain.head().sha256,
        "faults": 0,
        "whole": False,
    }
    read.clear()
    assert audit_checks.check_if_due(now=start + timedelta(days=7, minutes=1))
    assert read == [1, 2, 3, 4, 5, 6]


@pytest.mark.slow
def test_a_fault_is_told_until_a_check_finds_none(
    read: list[int], client: Client, token: dict[str, str], broken: dict[str, str], outside: Any
) -> None:
    start = timezone.now()
    assert diagnosis() == ("warning", "its chain was never checked")
    assert not {name for name, _labels in figures(client, token)} & {
        "hunch_audit_faults",
        "hunch_audit_check_age_seconds",
    }
    sealed(3)
    audit_checks.check()
    assert diagnosis()[0] == "ok"
    change("another")
    assert audit_checks.check_if_due(now=start + timedelta(days=8))
    assert diagnosis()[0] == "broken" and figures(client, token)["hunch_audit_faults", ()] == 1
    beat = watch.Watch()
    beat.look(now=start)
    beat.look(now=start + timedelta(minutes=3))
    alert = Alert.objects.get()
    assert (alert.cause, alert.subject) == ("unhealthy", "audit") and "faults in its chain: 1" in alert.message
    read.clear()
    assert audit_checks.check_if_due(now=start + DAY)
    assert read[:3] == [1, 2, 3]  # The whole chain, as long as there is a fault.
    assert audit_checks.check(whole=False).fault_count == 1, "whoever asks for the newest entries alone gets all"
    change("small stage 1")
    call_command("verify_audit")
    assert diagnosis()[0] == "ok" and figures(client, token)["hunch_audit_faults", ()] == 0
    beat.look(now=start + timedelta(minutes=9))
    alert.refresh_from_db()
    assert alert.resolved_at is not None


def test_a_chain_that_lacks_what_was_checked_before_is_a_fault(read: list[int]) -> None:
    sealed(3)
    audit_checks.check()
    with databases.unguarded():
        AuditSeal.objects.filter(number=3).delete()
        AuditEntry.objects.filter(pk=AuditEntry.objects.order_by("pk")[2].pk).delete()
    report = audit_checks.check(whole=False)
    assert report.faults == ["seal 3 is not the one that was checked before: the chain was cut or made anew"]
    assert read == [1, 2, 3, 1, 2]


def test_a_check_that_is_overdue_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    audit_checks.check()
    monkeypatch.setattr(audit_checks, "OVERDUE", timedelta(0))
    assert diagnosis()[0] == "warning"


def test_checks_of_a_part_do_not_put_off_that_of_the_whole(read: list[int]) -> None:
    sealed(2)
    audit_checks.check()
    with databases.unguarded():  # It is not sealed yet, so this is no fault.
        AuditEntry.objects.filter(action="verify_audit").update(at=timezone.now() - timedelta(days=7))
    sealed(1)
    audit_checks.check(whole=False)
    read.clear()
    assert audit_checks.check_if_due(now=timezone.now() + DAY)
    assert read[0] == 1
