"""Events from the panel: accepted only with a signature, once, in any order; a lost one does no harm."""

import json
import time
from io import StringIO
from typing import Any

import httpx
import pytest
from django.core.management import call_command
from django.test import Client

from survey.models import Posting, Submission, WebhookEvent
from survey.panels import submissions, webhooks
from survey.panels.prolific.fake import FakeProlific, Webhook, deliver
from survey.services.stages import lifecycle

from .world import arrives, begins, posted

pytestmark = pytest.mark.django_db
BODY = b'{"event_type": "submission.status.change", "resource_id": "abc",  "participant_id": "def", "status": "X"}'


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
    assert b"abc" not in bytes(row.body_encrypted) and b"def" not in bytes(row.body_encrypted)


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


def test_it_gives_up_in_the_end_since_polling_finds_it_anyway(
    client: Client, fake: FakeProlific, posting: Posting
) -> None:
    arrives(fake, posting)
    post(client, fake.webhooks()[0])
    fake.busy_every = 1
    for _ in range(webhooks.MOST_TRIES):
        WebhookEvent.objects.update(due_at=posting.created_at)
        webhooks.work_on_events()
    assert WebhookEvent.objects.get().state == "failed"
    fake.busy_every = 0
    assert submissions.read_all() == 1
    assert Submission.objects.get().status == "ACTIVE"


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
    subscriptions = {(one["event_type"], one["target_url"], one["is_enabled"]) for one in fake.subscriptions.values()}
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
