"""The page of a study's alert receivers: added with a secret shown once, tried, switched off, removed."""

import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from survey.admin import receivers as receiver_pages
from survey.models import Delivery, Receiver, Study
from survey.operation import receivers
from tests import cast

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
CAUSES = [cause.value for cause in receivers.OFFERED]


@pytest.fixture
def study(settings: Any) -> Study:
    settings.HUNCH_WEBHOOKS_INSIDE = True
    return cast.open_study()


def page(study: Study) -> str:
    return reverse("admin:survey_study_receivers", args=[study.pk])


def action(receiver: Receiver, name: str) -> str:
    return reverse("admin:survey_study_receiver_action", args=[receiver.study_id, receiver.pk, name])


def test_a_webhook_is_added_and_its_secret_shown_once(admin_client: Client, study: Study) -> None:
    fields = {"kind": "webhook", "address": "http://127.0.0.1:9/hook?token=abc", "causes": CAUSES}
    body = admin_client.post(page(study), fields).content.decode()
    receiver = Receiver.objects.get()
    _address, secret = receivers.opened(receiver)
    assert secret in body
    again = admin_client.get(page(study)).content.decode()
    assert secret not in again and "hook?" not in again and "webhook to 127.0.0.1" in again


def test_an_address_of_our_own_network_is_refused_at_its_field(
    admin_client: Client, study: Study, settings: Any
) -> None:
    settings.HUNCH_WEBHOOKS_INSIDE = False
    fields = {"kind": "webhook", "address": "https://127.0.0.1/hook", "causes": CAUSES}
    body = admin_client.post(page(study), fields).content.decode()
    assert re.search(r'<ul class="errorlist"[^>]*><li>127.0.0.1 leads into a private network', body), body
    assert not Receiver.objects.exists()


def test_it_is_tried_switched_off_and_removed(admin_client: Client, study: Study) -> None:
    receiver, _secret = receivers.add(study, kind="webhook", address="http://127.0.0.1:9/", causes=CAUSES)
    own = reverse("admin:survey_study_receiver", args=[study.pk, receiver.pk])
    assert "within some seconds" in admin_client.post(action(receiver, "test"), follow=True).content.decode()
    assert Delivery.objects.get().event == "test"
    assert "given up" not in admin_client.get(own).content.decode().split("<tbody>")[1]
    assert "switched off" in admin_client.post(action(receiver, "off"), follow=True).content.decode()
    assert "given up" in admin_client.get(own).content.decode().split("<tbody>")[1]
    assert Receiver.objects.get().off_because == "by a person"
    admin_client.post(action(receiver, "on"))
    assert Receiver.objects.get().is_active
    admin_client.post(action(receiver, "remove"))
    assert not Receiver.objects.exists()


def test_opening_an_action_changes_nothing(admin_client: Client, study: Study) -> None:
    receiver, _secret = receivers.add(study, kind="webhook", address="http://127.0.0.1:9/", causes=CAUSES)
    assert admin_client.get(action(receiver, "remove")).status_code == 405
    assert admin_client.post(action(receiver, "explode")).status_code == 404


def test_a_receiver_of_another_study_is_not_there(admin_client: Client, study: Study) -> None:
    receiver, _secret = receivers.add(study, kind="webhook", address="http://127.0.0.1:9/", causes=CAUSES)
    other = cast.open_study(slug="other")
    address = reverse("admin:survey_study_receiver_action", args=[other.pk, receiver.pk, "remove"])
    assert admin_client.post(address).status_code == 404
    assert Receiver.objects.exists()


def test_a_page_lists_the_receivers_of_its_study_and_the_newest_of_what_one_was_sent(
    admin_client: Client, study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receiver_pages, "SHOWN", 2)
    other = cast.open_study(slug="other")
    mine, theirs = (
        receivers.add(of, kind="webhook", address="http://127.0.0.1:9/", causes=["stage_full"])[0]
        for of in (study, other)
    )
    for receiver in (mine, theirs):
        for number in range(3):
            event = f"{receiver.pk}-{number}"
            Delivery.objects.create(receiver=receiver, event_id=event, event="test", body={}, due_at=timezone.now())
    assert list(admin_client.get(page(study)).context["rows"]) == [mine]
    own = admin_client.get(reverse("admin:survey_study_receiver", args=[study.pk, mine.pk]))
    assert [row.event_id for row in own.context["rows"]] == [f"{mine.pk}-2", f"{mine.pk}-1"]
    assert own.context["causes"] == [receivers.Cause("stage_full").label]
    assert admin_client.get(reverse("admin:survey_study_receiver", args=[study.pk, theirs.pk])).status_code == 404
    assert admin_client.post(reverse("admin:survey_study_receiver", args=[study.pk, mine.pk])).status_code == 405
