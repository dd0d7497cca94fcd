"""`receivers`: a study's alert receivers from the shell, as the pages have them."""

import io
from typing import Any

import pytest
from django.core.management import call_command

from survey.models import AuditEntry, Delivery, Receiver, Study
from survey.operation import receivers
from tests import cast

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


@pytest.fixture
def study(settings: Any) -> Study:
    settings.HUNCH_WEBHOOKS_INSIDE = True
    return cast.open_study()


def said(*words: str) -> str:
    out = io.StringIO()
    call_command("receivers", "cast", *words, stdout=out, stderr=io.StringIO())
    return out.getvalue()


def refused(*words: str) -> str:
    err = io.StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("receivers", "cast", *words, stdout=io.StringIO(), stderr=err)
    assert ended.value.code == 1
    return err.getvalue()


def test_one_is_added_tried_switched_and_removed(study: Study) -> None:
    assert said() == "there is no receiver\n"
    added = said("add", "http://127.0.0.1:9/hook?token=abc", "--cause", "stage_full", "--cause", "cap_near")
    receiver = Receiver.objects.get()
    _address, secret = receivers.opened(receiver)
    assert f"secret: {secret}" in added and receiver.causes == ["stage_full", "cap_near"]
    number = str(receiver.pk)
    listed = said("list")
    assert number in listed and "webhook to 127.0.0.1" in listed and "token" not in listed and secret not in listed
    assert said("sent", number) == "nothing was sent yet\n"
    assert "within some seconds" in said("test", number)
    assert Delivery.objects.get().event == "test" and "waiting" in said("sent", number)
    assert said("off", number) == f"{number} is off\n" and "off: by a person" in said()
    assert "switch it on first" in refused("test", number) and "is off already" in refused("off", number)
    assert said("on", number) == f"{number} is on\n"
    assert said("remove", number).startswith(f"removed {number}: webhook") and not Receiver.objects.exists()
    actions = AuditEntry.objects.filter(via="command", action__endswith="receiver").order_by("pk")
    assert [entry.action.removesuffix("_receiver") for entry in actions] == [
        "add",
        "test",
        "switch",
        "switch",
        "remove",
    ]


def test_without_causes_it_gets_every_alert_of_the_study(study: Study, settings: Any) -> None:
    settings.EMAIL_HOST = "mail.example.org"
    assert "secret" not in said("add", "ada@example.org")
    receiver = Receiver.objects.get()
    assert (receiver.kind, receiver.shown) == ("email", "ada@example.org")
    assert receiver.causes == [cause.value for cause in receivers.OFFERED]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("add", "https://127.0.0.1/hook"), "address: 127.0.0.1 leads into a private network"),
        (("add", "ada at example.org"), "address: "),
        (("add", "https://127.0.0.1/hook", "--cause", "rain"), "causes: Choose at least one of: stage_full"),
        (("test", "7"), "cast has no receiver 7; `receivers cast` lists them"),
    ],
)
def test_what_cannot_be_is_refused_with_its_field(
    study: Study, settings: Any, words: tuple[str, ...], says: str
) -> None:
    settings.HUNCH_WEBHOOKS_INSIDE = "rain" in words
    assert says in refused(*words)
    assert not Receiver.objects.exists()


def test_a_receiver_of_another_study_is_not_there(study: Study) -> None:
    other, _secret = receivers.add(
        cast.open_study(slug="other"), kind="webhook", address="http://127.0.0.1:9/", causes=["stage_full"]
    )
    assert "has no receiver" in refused("remove", str(other.pk)) and Receiver.objects.exists()
