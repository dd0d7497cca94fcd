"""A study's alerts reach who wants to know: once, signed, again where nobody took them, and nobody waits for others."""

import hashlib
import hmac
import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.utils import timezone

from survey.exceptions import FieldErrors, StateRefused
from survey.models import Alert, AuditEntry, Delivery, Receiver, Study, Submission
from survey.operation import alerting, causes, channels, deliveries, outbound, receivers
from survey.operation.alerting import Cause, Trouble
from survey.operation.watch import Watch
from tests import cast
from tests.operation.test_watch import posted
from tests.panels.conftest import fake as fake
from tests.panels.conftest import signing_key as signing_key

from .receiving import Receiving, receiving

pytestmark = pytest.mark.django_db
MINUTE = timedelta(minutes=1)
ALL = [cause.value for cause in receivers.OFFERED]


@pytest.fixture(autouse=True)
def inside(settings: Any) -> None:
    settings.HUNCH_WEBHOOKS_INSIDE = True
    settings.EMAIL_HOST = "mail.example"


@pytest.fixture
def there() -> Iterator[Receiving]:
    with receiving() as receiver:
        yield receiver


@pytest.fixture
def study() -> Study:
    return cast.open_study()


def receiver_of(study: Study, there: Receiving, *chosen: str) -> tuple[Receiver, str]:
    return receivers.add(study, kind="webhook", address=there.address, causes=chosen or ALL)


def full(study: Study) -> Trouble:
    return Trouble(Cause.STAGE_FULL, f"{study.slug} stage 1", "All booklets are taken.", study.pk)


def happen(*troubles: Trouble, after: timedelta = timedelta(0)) -> None:
    now = timezone.now() + after
    alerting.store(troubles, now=now)
    deliveries.queue_events(now=now)


def test_an_event_is_sent_once_and_signed(study: Study, there: Receiving) -> None:
    _receiver, secret = receiver_of(study, there)
    for _look in range(3):
        happen(full(study))
        deliveries.send_due()
    assert len(there.requests) == 1
    body = json.loads(there.body())
    assert (body["type"], body["study"], body["state"]) == ("stage_full", "cast", "open")
    assert body["id"] == there.headers()["x-hunch-event"] and f"/admin/survey/study/{study.pk}/" in body["text"]
    at, signature = (part.partition("=")[2] for part in there.headers()[channels.SIGNATURE_HEADER.lower()].split(","))
    expected = hmac.new(secret.encode(), at.encode() + b"." + there.body(), hashlib.sha256).hexdigest()
    assert hmac.compare_digest(signature, expected)
    row = Delivery.objects.get()
    assert (row.state, row.tries, row.answer) == ("done", 1, "answered 204")


def test_what_is_over_is_told_to_who_was_told_of_it(study: Study, there: Receiving) -> None:
    receiver_of(study, there)
    happen(full(study))
    deliveries.send_due()
    happen(after=10 * MINUTE)
    deliveries.send_due(now=timezone.now() + 11 * MINUTE)
    assert [json.loads(there.body(n))["state"] for n in range(2)] == ["open", "over"]
    assert len({json.loads(there.body(n))["id"] for n in range(2)}) == 2


def test_only_the_chosen_alerts_of_this_study_are_sent(study: Study, there: Receiving) -> None:
    other = cast.open_study(slug="other")
    receiver_of(study, there, "cap_near")
    happen(full(study), full(other), Trouble(Cause.CAP_NEAR, "other", "Near.", other.pk))
    assert not Delivery.objects.exists()
    happen(Trouble(Cause.CAP_NEAR, "cast", "Near.", study.pk))
    assert [row.event for row in Delivery.objects.all()] == ["cap_near"]


def test_what_happened_before_it_was_added_is_not_sent(study: Study, there: Receiving) -> None:
    happen(full(study), after=-MINUTE)
    receiver_of(study, there)
    happen(full(study))
    assert not Delivery.objects.exists()


def test_what_opened_days_ago_is_no_news(study: Study, there: Receiving) -> None:
    receiver_of(study, there)
    now = timezone.now()
    Receiver.objects.update(since=now - timedelta(days=9))
    for days in (1, 3):
        opened_at = now - timedelta(days=days)
        facts = {"subject": f"{days} days", "message": "Full.", "opened_at": opened_at, "seen_at": now}
        Alert.objects.create(cause="stage_full", study=study, **facts)
    facts = {"message": "Full.", "opened_at": now, "seen_at": now, "resolved_at": now}
    Alert.objects.create(cause="stage_full", study=study, subject="over by now", **facts)
    deliveries.queue_events(now=now)
    assert [row.body["subject"] for row in Delivery.objects.all()] == ["1 days"]


def test_an_event_of_another_installation_has_another_id() -> None:
    """Two may send to one receiver, and count their alerts from 1."""
    now = timezone.now()
    here, elsewhere = (Alert(pk=1, opened_at=at) for at in (now, now + MINUTE))
    ids = [deliveries._id_of(alert, state) for alert in (here, elsewhere) for state in ("open", "over")]
    assert len(set(ids)) == 4 and deliveries._id_of(Alert(pk=2, opened_at=now), "open") not in ids


def test_it_is_tried_again_with_growing_pauses_and_the_same_id_and_then_given_up(
    study: Study, there: Receiving
) -> None:
    receiver_of(study, there)
    there.answer = b"HTTP/1.1 500 Oops\r\n\r\n"
    happen(full(study))
    now, pauses = timezone.now() + MINUTE, []
    for _try in range(20):
        deliveries.send_due(now=now)
        row = Delivery.objects.get()
        if row.state == "failed":
            break
        assert deliveries.send_due(now=row.due_at - MINUTE / 60) == 0
        pauses.append(round((row.due_at - timezone.now()).total_seconds() / 60))
        now = row.due_at + MINUTE / 60
    assert pauses == [1, 5, 15, 60, 180, 360, 720, 1440] and row.answer == "answered 500"
    assert len({there.headers(n)["x-hunch-event"] for n in range(9)}) == 1
    assert len(there.requests) == 9


def test_a_receiver_gets_one_event_at_a_time(study: Study, there: Receiving) -> None:
    receiver_of(study, there)
    happen(full(study), Trouble(Cause.CAP_NEAR, "cast", "Near.", study.pk))
    now = timezone.now() + MINUTE
    (held,) = deliveries._claim_due(now)
    assert list(Delivery.objects.filter(state="running")) == [held.row] and Delivery.objects.count() == 2
    assert deliveries._claim_due(now) == [], "it may be the one that hangs"


def test_who_hangs_keeps_nobody_waiting(study: Study, there: Receiving, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbound, "LONGEST", 0.5)
    with receiving() as hanging:
        hanging.answer = None
        receiver_of(study, hanging)
        receiver_of(study, there)
        happen(full(study))
        assert deliveries.send_due(now=timezone.now() + MINUTE) == 1
    first, second = Delivery.objects.order_by("receiver")
    assert (first.state, second.state) == ("queued", "done")
    assert first.due_at > timezone.now() and first.tries == 1


def test_who_never_comes_back_is_given_up_with_the_round(
    study: Study, there: Receiving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lookup of a name that nothing ends."""
    receiver_of(study, there)
    happen(full(study))
    monkeypatch.setattr(deliveries, "LONGEST_ROUND", 0.2)
    monkeypatch.setattr(deliveries, "_send", lambda *_given: there.over.wait())
    assert deliveries.send_due(now=timezone.now() + MINUTE) == 0
    assert Delivery.objects.get().answer.startswith("no answer within")


def test_a_worker_that_died_while_sending_is_replaced(study: Study, there: Receiving) -> None:
    receiver_of(study, there)
    happen(full(study))
    now = timezone.now() + MINUTE
    assert len(deliveries._claim_due(now)) == 1  # And the worker dies.
    assert deliveries.send_due(now=now) == 0
    assert deliveries.send_due(now=now + 5 * MINUTE) == 1


def test_an_address_that_leads_inside_later_gets_nothing(
    study: Study, there: Receiving, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.HUNCH_WEBHOOKS_INSIDE = False
    addresses = ["8.8.8.8"]
    monkeypatch.setattr(
        outbound.socket, "getaddrinfo", lambda host, port, **_given: [(2, 1, 6, "", (addresses[0], port))]
    )
    receivers.add(study, kind="webhook", address=f"https://hook.example:{there.port}/", causes=ALL)
    addresses[0] = "127.0.0.1"
    happen(full(study))
    deliveries.send_due(now=timezone.now() + MINUTE)
    assert "private network" in Delivery.objects.get().answer and there.requests == []


def test_who_answers_gone_is_switched_off(study: Study, there: Receiving) -> None:
    receiver, _secret = receiver_of(study, there)
    there.answer = b"HTTP/1.1 410 Gone\r\n\r\n"
    happen(full(study))
    deliveries.send_due(now=timezone.now() + MINUTE)
    receiver.refresh_from_db()
    assert (receiver.is_active, receiver.off_because) == (False, "it answered 410 (gone)")
    assert Delivery.objects.get().state == "failed"


def test_a_test_event_is_queued_and_sent_by_a_worker(study: Study, there: Receiving) -> None:
    receiver, _secret = receiver_of(study, there)
    deliveries.send_test(receiver)
    assert there.requests == []  # Nothing is sent in the request.
    deliveries.send_due()
    assert json.loads(there.body())["type"] == "test"
    receivers.switch(receiver, on=False)
    receiver.refresh_from_db()
    with pytest.raises(StateRefused, match="switched off"):
        deliveries.send_test(receiver)


def test_who_is_switched_off_gets_nothing_and_not_later_either(study: Study, there: Receiving) -> None:
    receiver, _secret = receiver_of(study, there)
    happen(full(study))
    assert receivers.switch(receiver, on=False) and not receivers.switch(receiver, on=False)
    assert Delivery.objects.get().state == "failed"
    happen(Trouble(Cause.CAP_NEAR, "cast", "Near.", study.pk))
    receivers.switch(receiver, on=True)
    happen(full(study), Trouble(Cause.CAP_NEAR, "cast", "Near.", study.pk))
    deliveries.send_due(now=timezone.now() + MINUTE)
    assert there.requests == []


def test_the_same_events_come_by_e_mail(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    receivers.add(study, kind="email", address="ada@example.org", causes=ALL)
    happen(full(study))
    assert deliveries.send_due(now=timezone.now() + MINUTE) == 1
    (letter,) = mail.outbox
    assert letter.to == ["ada@example.org"] and letter.subject == "Hunch: stage full: cast stage 1"
    assert "All booklets are taken." in letter.body


def test_a_mail_server_that_is_away_is_tried_again(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_given: Any, **_named: Any) -> int:
        raise ConnectionRefusedError

    monkeypatch.setattr(deliveries, "send_mail", away)
    receivers.add(study, kind="email", address="ada@example.org", causes=ALL)
    happen(full(study))
    deliveries.send_due(now=timezone.now() + MINUTE)
    assert Delivery.objects.get().answer == "the mail server did not take it (ConnectionRefusedError)"


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"address": "http://10.0.0.1/"}, "address"),
        ({"address": "https://127.0.0.1/"}, "address"),
        ({"kind": "email", "address": "nobody"}, "address"),
        ({"kind": "pigeon"}, "kind"),
        ({"causes": []}, "causes"),
        ({"causes": ["disk_low"]}, "causes"),
    ],
)
def test_what_cannot_be_told_is_refused_and_nothing_is_stored(
    study: Study, settings: Any, given: dict[str, Any], field: str
) -> None:
    settings.HUNCH_WEBHOOKS_INSIDE = False
    with pytest.raises(FieldErrors) as refused:
        receivers.add(study, **{"kind": "webhook", "address": "https://8.8.8.8/", "causes": ALL, **given})
    assert list(refused.value.errors) == [field] and not Receiver.objects.exists()


def test_no_e_mail_receiver_without_a_mail_server(study: Study, settings: Any) -> None:
    settings.EMAIL_HOST = ""
    with pytest.raises(FieldErrors, match="HUNCH_EMAIL_URL"):
        receivers.add(study, kind="email", address="ada@example.org", causes=ALL)


def test_a_study_has_only_so_many(study: Study, there: Receiving) -> None:
    for _one in range(receivers.MAX_RECEIVERS):
        receiver_of(study, there)
    with pytest.raises(StateRefused, match="remove one"):
        receiver_of(study, there)


def test_address_and_secret_are_stored_encrypted_and_in_no_entry_of_the_audit(study: Study, there: Receiving) -> None:
    receiver, secret = receiver_of(study, there)
    assert receiver.shown == "127.0.0.1" and b"token" not in bytes(receiver.sealed)
    assert receivers.opened(Receiver.objects.get()) == (there.address, secret)
    entry = AuditEntry.objects.get(action="add_receiver")
    assert "token" not in json.dumps(entry.detail) and secret not in json.dumps(entry.detail)


def test_after_another_identity_key_it_says_what_to_do(study: Study, there: Receiving, settings: Any) -> None:
    receiver_of(study, there)
    happen(full(study))
    settings.HUNCH_IDENTITY_KEY = "another-key-" * 4
    deliveries.send_due(now=timezone.now() + MINUTE)
    assert "add it again" in Delivery.objects.get().answer


def test_what_ended_long_ago_is_forgotten(study: Study, there: Receiving) -> None:
    receiver_of(study, there)
    happen(full(study))
    deliveries.send_due(now=timezone.now() + MINUTE)
    assert deliveries.forget_old(now=timezone.now() + 29 * timedelta(days=1)) == 0
    assert deliveries.forget_old(now=timezone.now() + 31 * timedelta(days=1)) == 1
    assert Alert.objects.exists()


@pytest.mark.slow
def test_the_watch_queues_what_it_finds(study: Study, there: Receiving, monkeypatch: pytest.MonkeyPatch) -> None:
    receiver_of(study, there)
    monkeypatch.setitem(causes.LOOKS, Cause.STAGE_FULL, lambda _now: iter([full(study)]))
    Watch().look()
    assert [row.event for row in Delivery.objects.all()] == ["stage_full"]


@pytest.mark.slow
@pytest.mark.parametrize(("returned", "found"), [(2, 0), (3, 1), (9, 1)])
def test_many_returns_are_an_alert(fake: Any, returned: int, found: int) -> None:
    """Of ten people whose participation ended; two more are still inside."""
    posting = posted()
    words = ["RETURNED"] * (returned - 1) + ["TIMED-OUT"] + ["APPROVED"] * (10 - returned) + ["ACTIVE"] * 2
    Submission.objects.bulk_create(
        Submission(posting=posting, submission_hash=f"{n:064}", ids_encrypted=b"", status=word, read_at=timezone.now())
        for n, word in enumerate(words)
    )
    assert len(list(causes.high_returns(timezone.now()))) == found


def test_few_returns_of_few_people_are_none(fake: Any) -> None:
    posting = posted()
    Submission.objects.create(
        posting=posting, submission_hash="0" * 64, ids_encrypted=b"", status="RETURNED", read_at=timezone.now()
    )
    assert list(causes.high_returns(timezone.now())) == []


@pytest.mark.parametrize(("state", "head"), [("open", "Hunch: "), ("over", "Hunch: over: ")])
def test_the_text_repeats_the_rest_for_people(study: Study, state: str, head: str) -> None:
    at = timezone.now()
    body = deliveries._body("e1", "stage_full", study, subject="stage 1", message="Full.", at=at, state=state)
    text = body.pop("text").splitlines()
    assert text[0] == f"{head}{Alert.Cause('stage_full').label}: stage 1" and text[1] == "Full."
    assert text[2].endswith(f"/admin/survey/study/{study.pk}/change/") and len(text) == 3
    assert body == {
        "id": "e1", "type": "stage_full", "state": state, "study": "cast", "subject": "stage 1", "message": "Full.",
        "at": at.isoformat(),
    }  # fmt: skip
