"""An alert is stored once, told once, told again after hours, and told once more when it is over."""

import hashlib
import hmac
import logging
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core import mail
from django.db import IntegrityError, transaction

from survey.models import Alert, Study
from survey.operation import alerting, channels
from survey.operation.alerting import Cause, Trouble

from .conftest import HOOK, PING, Outside

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DISK = Trouble(Cause.DISK_LOW, "the disk", "10 MB are left.")
FULL = Trouble(Cause.STAGE_FULL, "demo stage 1", "All booklets are taken.")


def look(*troubles: Trouble, at: datetime) -> int:
    alerting.store(troubles, now=at)
    return alerting.tell(now=at)


def test_it_is_stored_and_told_once_while_it_lasts(outside: Outside) -> None:
    assert [look(DISK, at=NOON + n * MINUTE) for n in range(4)] == [1, 0, 0, 0]
    row = Alert.objects.get()
    assert (row.opened_at, row.seen_at, row.sent_at) == (NOON, NOON + 3 * MINUTE, NOON)
    (letter,) = mail.outbox
    assert letter.to == ["operator@example.org"] and letter.subject == "Hunch: disk nearly full: the disk"
    assert "10 MB are left." in letter.body and "/admin/survey/alert/" in letter.body
    assert [alert["state"] for alert in outside.posted[0]["alerts"]] == ["open"] and len(outside.posted) == 1


@pytest.mark.slow
def test_it_is_told_again_after_hours_but_not_for_ever(outside: Outside, settings: Any) -> None:
    settings.HUNCH_ALERT_REPEAT_HOURS = 6
    told = [look(DISK, at=NOON + hour * HOUR) for hour in range(60)]
    assert [hour for hour, count in enumerate(told) if count] == [0, 7, 14, 21, 28, 35, 42]


def test_news_is_told_once(outside: Outside) -> None:
    assert [look(FULL, at=NOON + n * HOUR) for n in range(30)].count(1) == 1


def test_what_comes_and_goes_is_one_alert_and_what_is_over_is_told(outside: Outside) -> None:
    look(DISK, at=NOON)
    look(at=NOON + 2 * MINUTE)
    look(DISK, at=NOON + 3 * MINUTE)
    assert len(mail.outbox) == 1 and Alert.objects.get().resolved_at is None
    assert look(at=NOON + 9 * MINUTE) == 1
    assert Alert.objects.get().resolved_at == NOON + 9 * MINUTE
    assert mail.outbox[-1].subject == "Hunch: over: disk nearly full: the disk"
    assert look(at=NOON + 10 * MINUTE) == 0
    look(DISK, at=NOON + 20 * MINUTE)
    assert Alert.objects.count() == 2


def test_what_is_over_before_anybody_was_told_is_told_to_nobody(outside: Outside) -> None:
    alerting.store([DISK], now=NOON)
    assert look(at=NOON + 6 * MINUTE) == 0
    assert Alert.objects.get().resolved_at is not None and mail.outbox == []


def test_what_could_not_be_looked_at_stays_open(outside: Outside) -> None:
    look(DISK, at=NOON)
    alerting.store([], now=NOON + HOUR, not_looked_at={Cause.DISK_LOW.value})
    assert Alert.objects.get().resolved_at is None


def test_several_are_one_message(outside: Outside) -> None:
    assert look(DISK, FULL, at=NOON) == 2
    assert len(mail.outbox) == len(outside.posted) == 1
    assert mail.outbox[0].subject.endswith(", and 1 more")


def test_there_is_one_open_alert_for_a_cause_and_what_it_is_about() -> None:
    alerting.add([DISK], now=NOON)
    with pytest.raises(IntegrityError, match=r"alert_open_once|UNIQUE"), transaction.atomic():
        Alert.objects.create(cause=Cause.DISK_LOW, subject="the disk", message="again", opened_at=NOON, seen_at=NOON)


def test_of_two_that_tell_at_once_one_does(outside: Outside) -> None:
    alerting.store([DISK], now=NOON)
    row = Alert.objects.get()
    assert alerting._claim(row, NOON) and not alerting._claim(row, NOON + MINUTE)
    assert alerting.tell(now=NOON + MINUTE) == 0
    assert alerting.tell(now=NOON + 10 * MINUTE) == 1  # The one that began has died.


def test_it_is_told_again_soon_if_nobody_took_it(
    outside: Outside, settings: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_args: Any) -> int:
        raise OSError("smtp://user:password@mail.example")

    monkeypatch.setattr(channels, "send_mail", fail)
    for outside.status in (0, 302, 500):
        assert look(DISK, at=NOON) == 0
        assert Alert.objects.get().sent_at is None
    assert len(outside.requests) == 3  # No redirect was followed.
    outside.status = 200
    assert look(DISK, at=NOON + MINUTE) == 1
    assert "token" not in caplog.text and "password" not in caplog.text and caplog.records


def test_nothing_is_told_where_nobody_is_named() -> None:
    assert look(DISK, at=NOON) == 0
    assert Alert.objects.get().sent_at is None and mail.outbox == []


def test_the_webhook_is_signed(outside: Outside, settings: Any) -> None:
    look(DISK, at=NOON)
    (request,) = outside.requests
    assert str(request.url) == HOOK
    at, signature = (part.partition("=")[2] for part in request.headers[channels.SIGNATURE_HEADER].split(","))
    expected = hmac.new(b"s" * 32, at.encode() + b"." + request.content, hashlib.sha256).hexdigest()
    assert hmac.compare_digest(signature, expected)


@pytest.mark.parametrize(("is_well", "url"), [(True, PING), (False, f"{PING}/fail")])
def test_the_ping_says_whether_the_site_is_well(outside: Outside, is_well: bool, url: str) -> None:
    channels.ping(is_well=is_well)
    assert outside.pinged == [url]


@pytest.mark.parametrize("status", [0, 500])
def test_a_ping_that_fails_breaks_nothing_and_names_no_address(
    status: int, outside: Outside, caplog: pytest.LogCaptureFixture
) -> None:
    outside.status = status
    with caplog.at_level(logging.WARNING):
        channels.ping(is_well=True)
    assert "ping" in caplog.text and "token" not in caplog.text and "example" not in caplog.text


def test_programs_read_whether_it_is_over_and_whose_it_is() -> None:
    study = Study(slug="cast")
    row = Alert(cause="stage_full", subject="s", message="m", study=study, opened_at=NOON)
    said = {"cause": "stage_full", "subject": "s", "message": "m", "study": "cast", "opened_at": NOON.isoformat()}
    assert alerting._for_programs(row) == {**said, "state": "open"}
    row.resolved_at = NOON
    assert alerting._for_programs(row) == {**said, "state": "resolved"}
    row.study, row.opened_at = None, None
    assert alerting._for_programs(row) == {**said, "state": "resolved", "study": None, "opened_at": None}
