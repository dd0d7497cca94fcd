"""Receivers of alerts over the API: the same as on the pages and by command."""

from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.utils import timezone

from survey.api import receivers as receivers_api
from survey.models import AuditEntry, Delivery, Receiver, Study
from survey.operation import receivers
from tests import cast
from tests.api.documented import call
from tests.api.test_jobs import token

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
HOOK = {"kind": "webhook", "address": "http://127.0.0.1:9/hook?token=abc", "causes": ["stage_full"]}


@pytest.fixture
def study(settings: Any) -> Study:
    settings.HUNCH_WEBHOOKS_INSIDE = True
    return cast.open_study()


def ask(name: str, *, scope: str = "run", body: Any = None, **path: Any) -> Any:
    headers = {"Authorization": f"Token {token('runner', scope)}"}
    User.objects.get(username="runner").user_permissions.add(Permission.objects.get(codename="run_study"))
    arguments = {} if body is None else {"body": body}
    return call(name, path={"slug": "cast", **path}, headers=headers, **arguments)


def test_one_is_added_tried_switched_and_removed(study: Study) -> None:
    made = ask("receiver_add", body=HOOK)
    receiver = Receiver.objects.get()
    assert made.status_code == 201 and made.json()["secret"] == receivers.opened(receiver)[1]
    (listed,) = ask("receivers").json()
    assert (listed["number"], listed["shown"], listed["causes"]) == (receiver.pk, "127.0.0.1", ["stage_full"])
    assert "secret" not in listed and "token" not in str(listed)
    tried = ask("receiver_test", receiver=receiver.pk)
    assert tried.status_code == 202 and [event["event"] for event in tried.json()["events"]] == ["test"]
    off = ask("receiver_switch", receiver=receiver.pk, body={"is_active": False}).json()
    assert (off["is_active"], off["off_because"], off["events"][0]["state"]) == (False, "by a person", "failed")
    assert ask("receiver_test", receiver=receiver.pk).status_code == 409
    assert ask("receiver_switch", receiver=receiver.pk, body={"is_active": True}).json()["is_active"]
    assert ask("receiver_remove", receiver=receiver.pk).status_code == 204
    assert not Receiver.objects.exists() and not Delivery.objects.exists()
    done = AuditEntry.objects.filter(action__contains="receiver").order_by("pk")
    assert [entry.action for entry in done] == [
        *("add_receiver", "test_receiver", "switch_receiver", "switch_receiver", "remove_receiver")
    ]
    assert {entry.via for entry in done} == {"api"} and "token=abc" not in str([entry.detail for entry in done])


def test_without_causes_it_is_told_of_all(study: Study) -> None:
    made = ask("receiver_add", body={key: HOOK[key] for key in ("kind", "address")}).json()
    assert made["causes"] == [cause.value for cause in receivers.OFFERED]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"kind": "pigeon"}, "kind"),
        ({"address": "ftp://example.org/"}, "address"),
        ({"address": 7}, "address"),
        ({"causes": []}, "causes"),
        ({"causes": ["nothing_known"]}, "causes"),
    ],
)
def test_what_cannot_be_used_is_refused_by_field(study: Study, changed: dict[str, Any], field: str) -> None:
    refused = ask("receiver_add", body={**HOOK, **changed})
    assert refused.status_code in (400, 422) and field in {
        name.partition(".")[0] for name in refused.json()["error"]["fields"]
    }
    assert not Receiver.objects.exists()


def test_our_own_network_is_refused(study: Study, settings: Any) -> None:
    settings.HUNCH_WEBHOOKS_INSIDE = False
    refused = ask("receiver_add", body=HOOK)
    assert refused.status_code == 422 and "address" in refused.json()["error"]["fields"]


def test_it_needs_the_scope_run_and_a_receiver_of_this_study(study: Study) -> None:
    assert ask("receivers", scope="read").json() == []
    assert ask("receiver_add", scope="read", body=HOOK).status_code == 403
    other, _secret = receivers.add(
        cast.open_study(slug="other"), kind="webhook", address=HOOK["address"], causes=["stage_full"]
    )
    assert ask("receiver", receiver=other.pk).status_code == 404
    assert ask("receiver_remove", receiver=other.pk).status_code == 404 and Receiver.objects.exists()


def test_receivers_are_listed_in_order_with_who_made_them_and_one_shows_its_newest_events(
    study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receivers_api, "NEWEST", 1)
    ask("receiver_add", body=HOOK)
    by_command, _secret = receivers.add(study, kind="webhook", address="http://127.0.0.2/", causes=["stage_full"])
    listed = ask("receivers").json()
    assert [(row["shown"], row["created_by"], row["events"]) for row in listed] == [
        ("127.0.0.1", "runner", []),
        ("127.0.0.2", "", []),
    ]
    for event in ("first", "second"):
        Delivery.objects.create(receiver=by_command, event_id=event, event=event, body={}, due_at=timezone.now())
    assert [event["event"] for event in ask("receiver", receiver=by_command.pk).json()["events"]] == ["second"]
    assert ask("receiver", receiver=listed[0]["number"]).json()["events"] == []
