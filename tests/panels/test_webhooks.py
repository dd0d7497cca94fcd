"""Events from the panel: accepted only with a signature, once, in any order; a lost one does no harm."""

import base64
import hashlib
import hmac
import json
import random
import time
from contextlib import nullcontext
from datetime import timedelta
from io import StringIO
from types import SimpleNamespace
from typing import Any
from unittest import mock

import httpx
import pytest
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from survey.contracts.panels import EventRefused, EventSubject, PanelRefused, PanelUnreachable
from survey.exceptions import HunchError
from survey.models import Posting, Sitting, Submission, WebhookEvent
from survey.panels import postings, reconciliation, submissions, webhooks
from survey.panels.prolific import events
from survey.panels.prolific.account import ProlificAccount
from survey.panels.prolific.fake import FakeProlific, Webhook, deliver
from survey.panels.submissions import read_posting
from survey.services.stages import lifecycle
from tests import cast

from .world import arrives, begins, posted, stored_posting

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
BODY = (
    b'{"event_type": "submission.status.change", "resource_id": "somebody",  '
    b'"participant_id": "a person", "status": "X"}'
)


def post(client: Client, event: Webhook, **headers: str) -> int:
    sent = {name: value for name, value in {**event.headers, **headers}.items() if name != "Content-Type"}
    response = client.post("/hooks/prolific", data=event.body, content_type="application/json", headers=sent)
    return response.status_code


@pytest.fixture
def posting(fake: FakeProlific) -> Posting:
    return posted()


def test_a_signed_event_is_kept_once_and_its_ids_are_encrypted(client: Client, fake: FakeProlific) -> None:
    event = fake.sign_webhook(BODY, event_id="e1")
    assert [post(client, event) for _ in range(3)] == [204] * 3
    row = WebhookEvent.objects.get()
    assert b"somebody" not in bytes(row.body_encrypted) and b"a person" not in bytes(row.body_encrypted)


@pytest.mark.parametrize(
    "change",
    [
        lambda fake, event: Webhook(event.headers, event.body.replace(b"  ", b" ")),  # the very bytes, not their JSON
        lambda fake, event: Webhook({**event.headers, "X-Prolific-Request-Signature": "AAAA"}, event.body),
        lambda fake, event: Webhook({**event.headers, "X-Prolific-Request-Signature": "é"}, event.body),
        lambda fake, event: Webhook({**event.headers, "X-Prolific-Request-Timestamp": "1"}, event.body),
        lambda fake, event: Webhook({}, event.body),
    ],
)
def test_anything_else_is_refused(client: Client, fake: FakeProlific, change: Any) -> None:
    assert post(client, change(fake, fake.sign_webhook(BODY, event_id="e1"))) == 403
    assert not WebhookEvent.objects.exists()


@pytest.mark.parametrize(("age", "status"), [(0, 204), (250, 204), (350, 403), (-350, 403)])
def test_an_old_event_is_not_played_again(client: Client, fake: FakeProlific, age: int, status: int) -> None:
    fake.clock = lambda: time.time() - age
    assert post(client, fake.sign_webhook(BODY, event_id="e1")) == status


def test_another_secret_is_no_secret(client: Client, fake: FakeProlific, settings: Any) -> None:
    event = fake.sign_webhook(BODY, event_id="e1")
    settings.HUNCH_PROLIFIC_WEBHOOK_SECRET = "another"
    assert post(client, event) == 403
    settings.HUNCH_PROLIFIC_WEBHOOK_SECRET = ""
    assert post(client, event) == 404
    assert client.get("/hooks/prolific").status_code == 405


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b"\xff", b'"x"', b"null"])
def test_what_is_signed_and_no_event_is_refused(client: Client, fake: FakeProlific, body: bytes) -> None:
    assert post(client, fake.sign_webhook(body, event_id="e1")) == 400


DEEP = b"[" * 3000 + b"]" * 3000


@pytest.mark.parametrize(
    "body",
    [
        DEEP,
        b'{"event_type": ' + DEEP + b"}",
        BODY.replace(b'"somebody"', DEEP),
        BODY.replace(b'"somebody"', b'["somebody"]'),
        BODY.replace(b'"somebody"', b"7"),
        BODY.replace(b'"submission.status.change"', b'{"submission": 1}'),
        BODY.replace(b"submission.status", b"a\\u0000b"),
        BODY.replace(b"submission.status", b"a\\ud800b"),
        BODY.replace(b"somebody", b"\\u0000"),
        BODY.replace(b"somebody", b"\\udfff"),
        BODY.replace(b"a person", b"\\u0000"),
        BODY.replace(b"a person", b"\\ud800"),
    ],
)
def test_signed_nonsense_is_refused(client: Client, fake: FakeProlific, body: bytes) -> None:
    assert post(client, fake.sign_webhook(body, event_id="e1")) == 400
    assert not WebhookEvent.objects.exists()


@pytest.mark.parametrize("stamp", ["9" * 5000, "1" * 13, "\u0661\u0662", "-1", "1.5", "soon", ""])
def test_a_signed_stamp_that_is_no_time_is_refused(
    client: Client, settings: Any, fake: FakeProlific, stamp: str
) -> None:
    signature = hmac.new(fake.secret.encode(), stamp.encode() + BODY, hashlib.sha256).digest()
    headers = {
        "X-Prolific-Request-Timestamp": stamp,
        "X-Prolific-Request-Signature": base64.b64encode(signature).decode(),
    }
    with pytest.raises(EventRefused) as refused:
        webhooks.take("prolific", headers=headers, body=BODY)
    assert refused.value.status == 400 and not WebhookEvent.objects.exists()


def test_events_in_no_order_end_where_the_panel_stands(client: Client, fake: FakeProlific, posting: Posting) -> None:
    places = [arrives(fake, posting) for _ in range(3)]
    for place in places:
        begins(posting.study, place)
        fake.submit(place["id"], posting.study.completion_code("completed"))
    fake.give_up(places[0]["id"])
    events = fake.webhooks()
    assert len(events) == 2 * 7
    assert {post(client, event) for event in events} == {204}
    assert WebhookEvent.objects.count() == 7
    assert webhooks.work_on_events() == 7
    assert sorted(Submission.objects.values_list("status", flat=True)) == [
        "AWAITING REVIEW",
        "AWAITING REVIEW",
        "RETURNED",
    ]
    assert webhooks.work_on_events() == 0
    assert {bytes(body) for body in WebhookEvent.objects.values_list("body_encrypted", flat=True)} == {b""}


def test_an_event_that_is_faster_than_the_person_becomes_theirs(
    client: Client, fake: FakeProlific, posting: Posting
) -> None:
    place = arrives(fake, posting)
    assert {post(client, event) for event in fake.webhooks()} == {204} and webhooks.work_on_events() > 0
    before = Submission.objects.get()
    assert before.respondent is None
    (waiting,) = reconciliation.reconcile(posting).findings
    assert waiting.judgement.action == reconciliation.Action.WAIT
    sitting = begins(posting.study, place)
    fake.submit(place["id"], posting.study.completion_code("completed"))
    assert {post(client, event) for event in fake.webhooks()} == {204} and webhooks.work_on_events() > 0
    after = Submission.objects.get()
    assert (after.pk, after.respondent, after.status) == (before.pk, sitting.respondent, "AWAITING REVIEW")


def test_what_was_signed_is_taken_once_whatever_stands_around_it(client: Client, fake: FakeProlific) -> None:
    """The header with the event's id is not signed."""
    event = fake.sign_webhook(BODY, event_id="e1")
    assert [post(client, event, **{"X-Event-ID": f"made up {number}"}) for number in range(20)] == [204] * 20
    assert WebhookEvent.objects.count() == 1


def test_nobody_uses_up_the_id_of_an_event_that_is_still_to_come(client: Client, fake: FakeProlific) -> None:
    replayed = fake.sign_webhook(BODY, event_id="e1")
    assert post(client, replayed, **{"X-Event-ID": "e2"}) == 204
    assert post(client, fake.sign_webhook(BODY.replace(b"somebody", b"xyz"), event_id="e2")) == 204
    assert WebhookEvent.objects.count() == 2


def test_two_panels_may_give_two_events_one_id(db: None) -> None:
    def event(panel: str, name: str, signed: str) -> WebhookEvent:
        return WebhookEvent(
            panel=panel, event_id=name, signed_sha256=signed, event_type="x", body_encrypted=b"x", due_at=timezone.now()
        )

    event("prolific", "1", "a").save()
    event("prolific", "unsigned", "").save()
    came = [("prolific", "1", "b"), ("prolific", "2", "a"), ("other", "1", "a"), ("prolific", "3", "")]
    assert [webhooks._came_before(event(*delivery)) for delivery in came] == [True, True, False, False]


def test_the_same_words_at_another_time_are_another_event(client: Client, fake: FakeProlific) -> None:
    """A study that is paused, started and paused again."""
    now = time.time()
    for number in range(3):
        fake.clock = lambda number=number: now + number
        post(client, fake.sign_webhook(BODY, event_id=f"e{number}"))
    assert WebhookEvent.objects.count() == 3


def test_thirteen_deliveries_in_two_days_in_any_order_have_one_effect(
    client: Client, fake: FakeProlific, posting: Posting, time_machine: Any
) -> None:
    """The panel tries each event up to 12 times more, with longer and longer waits, and signs each delivery anew."""
    place = arrives(fake, posting)
    begins(posting.study, place)
    fake.submit(place["id"], posting.study.completion_code("completed"))
    said = {event.headers["X-Event-ID"]: event.body for event in fake.webhooks()}
    start, fake.calls = time.time(), []
    hours = [0, 0.01, 0.02, 0.05, 0.1, 0.5, 1, 3, 6, 12, 24, 36, 48]
    deliveries = [(hour, name) for hour in hours for name in said]
    random.Random(3).shuffle(deliveries)
    for hour, name in sorted(deliveries, key=lambda delivery: delivery[0]):
        time_machine.move_to(start + hour * 3600)
        fake.clock = time.time
        assert post(client, fake.sign_webhook(said[name], event_id=name)) == 204
        webhooks.work_on_events()
    assert len(said) == 2 and WebhookEvent.objects.filter(state="done").count() == WebhookEvent.objects.count() == 2
    assert Submission.objects.get().status == "AWAITING REVIEW"
    assert len(fake.calls) == 2, "the panel is asked once for each event"


def test_an_event_about_what_is_not_ours_is_put_aside(client: Client, fake: FakeProlific) -> None:
    post(client, fake.sign_webhook(BODY, event_id="e1"))
    other = json.dumps({"event_type": "study.progress.change", "resource_id": "other"}).encode()
    post(client, fake.sign_webhook(other, event_id="e2"))
    webhooks.work_on_events()
    assert set(WebhookEvent.objects.values_list("state", flat=True)) == {"ignored"}


def test_a_silent_panel_is_asked_again_later(client: Client, fake: FakeProlific, posting: Posting) -> None:
    arrives(fake, posting)
    post(client, fake.webhooks()[0])
    fake.busy_every = 1
    assert webhooks.work_on_events() == 0
    row = WebhookEvent.objects.get()
    assert (row.state, row.tries) == ("waiting", 1) and "too many requests" in row.error
    fake.busy_every = 0
    assert webhooks.work_on_events() == 0, "not at once"
    WebhookEvent.objects.update(due_at=row.received_at)
    assert webhooks.work_on_events() == 1


@pytest.mark.parametrize(
    ("kind", "subject"),
    [
        ("submission.status.change", EventSubject.SUBMISSION), ("study.status.change", EventSubject.POSTING),
        ("submission.other", EventSubject.NOTHING_OF_OURS), ("studying", EventSubject.NOTHING_OF_OURS),
    ],
)  # fmt: skip
def test_what_an_event_is_about_and_how_long_it_counts(settings: Any, kind: str, subject: EventSubject) -> None:
    settings.HUNCH_PROLIFIC_WEBHOOK_SECRET = "s"
    body = json.dumps({"event_type": kind, "resource_id": "r", "participant_id": "p"}).encode()

    def read(*, at: int, named: str = "e1", stamp: str = "1700000000") -> Any:
        right = base64.b64encode(hmac.new(b"s", stamp.encode() + body, hashlib.sha256).digest()).decode()
        headers = {events.STAMP: stamp, events.SIGNATURE: right, events.EVENT_ID: named}
        return ProlificAccount.read_event(headers=headers, body=body, now=1_700_000_000 + at)

    event = read(at=events.WINDOW)
    assert (event.kind, event.resource, event.person) == (kind, "r", "p")
    assert ProlificAccount.event_subject(event.kind) == subject
    assert read(at=-events.WINDOW) == event
    for at in (events.WINDOW + 1, -events.WINDOW - 1):
        with pytest.raises(EventRefused, match="too old"):
            read(at=at)
    other_id, other_time = read(at=0, named="e2"), read(at=0, stamp="1700000001")
    assert (other_id.event_id != event.event_id, other_id.signed == event.signed) == (True, True)
    assert (other_time.event_id == event.event_id, other_time.signed != event.signed) == (True, True)


@pytest.mark.parametrize(("tries", "seconds"), [(0, 15), (1, 30), (7, 15 * 128), (8, 15 * 256), (12, 15 * 256)])
def test_each_wait_is_twice_as_long_and_a_panel_that_cannot_be_asked_uses_up_no_try(
    db: None, monkeypatch: pytest.MonkeyPatch, tries: int, seconds: int
) -> None:
    due_at = timezone.now() - timedelta(minutes=1)
    for panel in ("prolific", "another"):
        WebhookEvent.objects.create(
            panel=panel, event_id="1", event_type="x", body_encrypted=b"", due_at=due_at, tries=tries
        )
    monkeypatch.setattr(webhooks, "can_ask", lambda panel: panel == "prolific")
    monkeypatch.setattr(webhooks, "client_of", lambda _panel: nullcontext())
    monkeypatch.setattr(webhooks, "_work_on", lambda event, client: False)
    before = timezone.now()
    assert webhooks.work_on_events() == 0
    asked, waiting = (WebhookEvent.objects.get(panel=panel) for panel in ("prolific", "another"))
    assert (waiting.tries, waiting.due_at) == (tries, due_at)
    assert asked.tries == tries + 1
    assert before + timedelta(seconds=seconds) <= asked.due_at <= timezone.now() + timedelta(seconds=seconds)


def test_it_gives_up_in_the_end_since_polling_finds_it_anyway(
    client: Client, fake: FakeProlific, posting: Posting
) -> None:
    arrives(fake, posting)
    post(client, fake.webhooks()[0])
    fake.busy_every = 1
    for _ in range(webhooks.MAX_TRIES):
        WebhookEvent.objects.update(due_at=posting.created_at)
        webhooks.work_on_events()
    assert WebhookEvent.objects.get().state == "failed"
    fake.busy_every = 0
    assert submissions.read_all() == 1
    assert Submission.objects.get().status == "ACTIVE"


def test_an_error_of_a_plug_in_stops_no_other_event(
    client: Client, fake: FakeProlific, posting: Posting, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = [arrives(fake, posting) for _person in range(3)]
    for event in fake.webhooks():
        post(client, event)
    read = ProlificAccount.submission

    def sometimes(account: ProlificAccount, submission: str) -> Any:
        if submission == places[0]["id"]:
            raise KeyError(submission)
        return read(account, submission)

    monkeypatch.setattr(ProlificAccount, "submission", sometimes)
    assert webhooks.work_on_events() == 2
    (failed,) = WebhookEvent.objects.filter(state="waiting")
    assert failed.error.startswith("KeyError") and places[0]["id"] not in failed.error
    assert Submission.objects.count() == 2


def test_a_panel_that_cannot_be_opened_stops_no_other(
    client: Client, fake: FakeProlific, posting: Posting, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrives(fake, posting)
    for event in fake.webhooks():
        post(client, event)
    WebhookEvent.objects.create(
        panel="another", event_id="1", event_type="x", body_encrypted=b"", due_at=posting.created_at
    )
    opened = webhooks.client_of

    def open_panel(panel: str) -> Any:
        if panel == "another":
            raise HunchError("ANOTHER_TOKEN is not set")
        return opened(panel)

    monkeypatch.setattr(webhooks, "client_of", open_panel)
    monkeypatch.setattr(webhooks, "can_ask", lambda panel: True)
    assert webhooks.work_on_events() == 1
    assert WebhookEvent.objects.get(panel="another").error == "ANOTHER_TOKEN is not set"


def test_a_slow_worker_leaves_an_event_alone_that_another_has_taken_up(
    client: Client, fake: FakeProlific, posting: Posting, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrives(fake, posting)
    post(client, fake.webhooks()[0])

    def fails_when_another_is_through(*_args: Any) -> Any:
        monkeypatch.undo()
        WebhookEvent.objects.update(due_at=posting.created_at)
        assert webhooks.work_on_events() == 1
        raise PanelUnreachable("no answer")

    monkeypatch.setattr(webhooks, "_read_what_it_is_about", fails_when_another_is_through)
    assert webhooks.work_on_events() == 0
    row = WebhookEvent.objects.get()
    assert (row.state, row.error) == ("done", "")


def test_one_posting_that_cannot_be_read_stops_no_other(
    fake: FakeProlific, posting: Posting, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = postings.draft(posting.stage, places=1, root="http://testserver")
    third = postings.publish(postings.draft(posting.stage, places=1, root="http://testserver"))
    read = ProlificAccount.posting

    def sometimes(account: ProlificAccount, external_id: str) -> Any:
        if external_id == posting.external_id:
            raise KeyError("somebody")
        if external_id == other.external_id:
            raise HunchError("A_SETTING is not set")
        return read(account, external_id)

    monkeypatch.setattr(ProlificAccount, "posting", sometimes)
    lifecycle.pause_stage(posting.stage)
    assert submissions.read_all() == 1
    errors = dict(Posting.objects.values_list("pk", "error"))
    assert errors[posting.pk].startswith("KeyError, which is no error of the panel") and not errors[third.pk]
    assert errors[other.pk] == "A_SETTING is not set"
    assert fake.studies[third.external_id]["status"] == "PAUSED", "nobody is sent to a closed door"


def test_a_posting_that_cannot_be_paused_says_so(
    fake: FakeProlific, posting: Posting, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_args: Any) -> None:
        raise PanelRefused("it may not be paused")

    monkeypatch.setattr(ProlificAccount, "pause", refuse)
    lifecycle.pause_stage(posting.stage)
    assert submissions.read_all() == 0
    assert Posting.objects.get().error == "it may not be paused"


def test_a_sitting_that_cannot_expire_keeps_no_other_submission_from_being_read(
    fake: FakeProlific, posting: Posting, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = [arrives(fake, posting) for _person in range(2)]
    sittings = [begins(posting.study, place, until="item") for place in places]
    for place in places:
        fake.give_up(place["id"])
    expire = submissions.expire_sitting

    def sometimes(pk: int, **more: Any) -> bool:
        if pk == sittings[0].pk:
            raise KeyError("an instrument's own error")
        return expire(pk, **more)

    monkeypatch.setattr(submissions, "expire_sitting", sometimes)
    assert read_posting(posting) == 2
    assert [Sitting.objects.get(pk=sitting.pk).state for sitting in sittings] == ["live", "expired"]
    assert set(Submission.objects.values_list("status", flat=True)) == {"RETURNED"}


def test_reading_that_fails_says_so_on_the_posting_until_it_works(fake: FakeProlific, posting: Posting) -> None:
    fake.busy_every = 1
    assert submissions.read_all() == 0
    posting.refresh_from_db()
    assert "too many requests" in posting.error and posting.read_at is None
    fake.busy_every = 0
    assert submissions.read_all() == 1
    posting.refresh_from_db()
    assert posting.error == "" and posting.read_at is not None


def test_without_a_token_nothing_is_asked(settings: Any, fake: FakeProlific, posting: Posting) -> None:
    settings.HUNCH_PROLIFIC_TOKEN = ""
    fake.calls.clear()
    assert (submissions.read_all(), webhooks.work_on_events(), fake.calls) == (0, 0, [])


def test_one_command_makes_the_secret_and_confirms_the_subscriptions(fake: FakeProlific) -> None:
    out = StringIO()
    call_command("subscribe_webhooks", "--workspace", "w1", "--url", "https://study.example/hooks/prolific", stdout=out)
    assert f"HUNCH_PROLIFIC_WEBHOOK_SECRET={fake.secret}\n" in out.getvalue()
    subscriptions = {
        (subscription["event_type"], subscription["target_url"], subscription["is_enabled"])
        for subscription in fake.subscriptions.values()
    }
    assert subscriptions == {
        ("submission.status.change", "https://study.example/hooks/prolific", True),
        ("study.status.change", "https://study.example/hooks/prolific", True),
    }


def test_a_webhook_address_without_tls_is_refused(fake: FakeProlific) -> None:
    before = fake.secret
    with pytest.raises(SystemExit):
        call_command("subscribe_webhooks", "--workspace", "w1", "--url", "http://study.example/", stderr=StringIO())
    assert fake.secret == before


def test_a_posting_is_paused_behind_a_closed_door(fake: FakeProlific, posting: Posting) -> None:
    submissions.read_all()
    assert fake.studies[posting.external_id]["status"] == "ACTIVE"
    lifecycle.close_stage(posting.stage)
    assert submissions.read_all() == 1
    assert fake.studies[posting.external_id]["status"] == "PAUSED"
    fake.calls.clear()
    submissions.read_all()
    assert not [path for method, path in fake.calls if method == "POST"], "once"


def test_postings_of_a_stage_that_has_just_been_closed_are_paused_at_once(
    fake: FakeProlific, posting: Posting, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert submissions.pause_postings(posting.stage) == 0
    lifecycle.close_stage(posting.stage)
    real = ProlificAccount.pause

    def refuse(*_args: Any) -> None:
        raise PanelRefused("it may not be paused")

    monkeypatch.setattr(ProlificAccount, "pause", refuse)
    assert submissions.pause_postings(posting.stage) == 0
    assert Posting.objects.get().error == "it may not be paused"
    monkeypatch.setattr(ProlificAccount, "pause", real)
    assert submissions.pause_postings(posting.stage) == 1
    assert fake.studies[posting.external_id]["status"] == "PAUSED"
    assert submissions.pause_postings(posting.stage) == 0


def test_a_posting_that_is_not_paused_holds_up_no_other_of_its_stage(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    study = cast.study(panel=cast.PROLIFIC)
    first, broken, paused, last = [stored_posting(study) for _number in range(4)]
    monkeypatch.setattr(submissions, "can_ask", lambda _panel: True)
    monkeypatch.setattr(submissions, "leads_to_a_closed_door", lambda posting: posting not in (first, last))
    asked: list[Posting] = []

    def change(posting: Posting, move: Any, *, via: str) -> None:
        asked.append(posting)
        if posting == broken:
            raise PanelRefused("it may not be paused")
        assert (move, via) == (submissions.Move.PAUSE, "worker")

    monkeypatch.setattr(submissions, "change", change)
    assert submissions.pause_postings(cast.stage_of(study)) == 1
    assert {*asked} == {broken, paused}
    assert [*Posting.objects.exclude(error="")] == [broken]


# The fake panel itself


@pytest.mark.django_db(transaction=True)
def test_the_pretended_panel_posts_what_waits(live_server: Any, fake: FakeProlific, posting: Posting) -> None:
    arrives(fake, posting)
    assert deliver(fake, f"{live_server.url}/hooks/prolific") == 2
    assert WebhookEvent.objects.count() == 1
    arrives(fake, posting)
    assert deliver(fake, "http://127.0.0.1:9/hooks/prolific") == 0, "lost"


def test_the_pretended_panel_posts_to_this_machine_alone() -> None:
    err = StringIO()
    with pytest.raises(SystemExit):
        call_command("fake_prolific", "--webhooks", "https://study.example/hooks/prolific", stderr=err)
    assert "--webhooks" in err.getvalue()


def test_a_person_takes_part_on_its_page_and_comes_back_with_a_code(fake: FakeProlific, posting: Posting) -> None:
    with httpx.Client(base_url=fake.url) as browser:
        assert f"/take/{posting.external_id}" in browser.get("/").text
        entry = browser.get(f"/take/{posting.external_id}")
        assert entry.headers["Location"].startswith("http://testserver/s/cast/?PROLIFIC_PID=")
        code = posting.study.completion_code("completed")
        assert "AWAITING REVIEW" in browser.get(f"/submissions/complete?cc={code}").text
        assert "RETURNED" in browser.get("/leave").text
        assert "No place is free" in browser.get("/take/unheard-of").text


def test_a_submission_of_a_part_is_read_for_the_posting_it_is_part_of(monkeypatch: pytest.MonkeyPatch) -> None:
    submission = SimpleNamespace(posting="part", parent="whole")
    client: Any = SimpleNamespace(
        event_subject=lambda _type: EventSubject.SUBMISSION, submission={"SUB1": submission}.__getitem__
    )
    event: Any = SimpleNamespace(body_encrypted=b"", panel="p", event_type="t")
    stored = mock.Mock()
    monkeypatch.setattr(webhooks, "unseal", lambda _text: SimpleNamespace(submission="SUB1"))
    monkeypatch.setattr(webhooks, "_posting", lambda _panel, key: "our posting" if key == "whole" else None)
    monkeypatch.setattr(webhooks, "store", stored)
    assert webhooks._read_what_it_is_about(event, client) == WebhookEvent.State.DONE
    assert stored.call_args.args == ("our posting", [submission])


def test_an_event_is_about_a_posting_of_the_panel_that_sent_it() -> None:
    """Two panels may call their postings alike."""
    study = cast.small_study("alike", panel=cast.PROLIFIC)
    other, mine = stored_posting(study, external_id="same"), stored_posting(study, external_id="same-too")
    Posting.objects.filter(pk=other.pk).update(panel="toypanel")
    Posting.objects.filter(pk=mine.pk).update(external_id="same")
    assert webhooks._posting("prolific", "same") == mine and webhooks._posting("toypanel", "same") == other
    assert webhooks._posting("generic", "same") is None and webhooks._posting("prolific", "") is None
