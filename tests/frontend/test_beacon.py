"""The browser's report of a screen that was left unfinished: it is stored and never disturbs the sitting."""

from typing import Any

import pytest
from django.test import Client

from survey.models import ScreenTiming, Sitting, Study, UnfinishedScreen
from tests import cast
from tests.frontend.pages import get, go_to, read, send

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
BEACON = "/s/cast/beacon"


@pytest.fixture
def study() -> Study:
    return cast.open_study()


def test_a_word_is_stored_with_its_numbers_and_moves_nothing(client: Client, study: Study) -> None:
    page = go_to(client, "item", screen="prior")
    before = Sitting.objects.values().get()
    response = client.post(BEACON, {"step": page.hidden["step"], "client_shown_ms": "40", "value": "77"})
    assert (response.status_code, response.content) == (204, b"")
    left = UnfinishedScreen.objects.get()
    assert (left.kind, left.name, left.client) == ("item", "prior", {"shown_ms": 40})
    assert Sitting.objects.values().get() == before
    assert send(client, page).form["data-screen"] == "posterior"


def test_a_window_that_opens_another_step_learns_so(client: Client, study: Study) -> None:
    step = int(go_to(client, "item", screen="prior").hidden["step"])
    answers = [client.post(BEACON, {"step": str(step + more), "opened": "a" * 32}) for more in (1, 0)]
    assert [(answer.status_code, answer.content) for answer in answers] == [(409, b""), (204, b"")]


@pytest.mark.parametrize(
    "data", [{}, {"step": "x"}, {"step": "999"}, {"step": "-1"}, {"step": "\x00"}, {"step": ["1", "2"]}]
)
def test_nonsense_gets_the_same_empty_answer_and_is_not_stored(client: Client, study: Study, data: Any) -> None:
    go_to(client, "item", screen="prior")
    response = client.post(BEACON, data)
    assert (response.status_code, response.content) == (204, b"")
    assert not UnfinishedScreen.objects.exists()


def test_without_a_sitting_or_with_another_studys_it_is_dropped(client: Client, study: Study) -> None:
    assert client.post(BEACON, {"step": "1"}).status_code == 204
    assert client.post("/s/nobody/beacon", {"step": "1"}).status_code == 204
    go_to(client, "item", screen="prior")
    thief = Client()
    cast.open_study(slug="other")
    thief.cookies["hunch_sitting"] = client.cookies["hunch_sitting"].value
    step = str(Sitting.objects.get().step)
    assert thief.post("/s/other/beacon", {"step": step}).status_code == 204
    assert not UnfinishedScreen.objects.exists()


def test_another_front_end_tells_it_by_api(client: Client, study: Study) -> None:
    address = "/api/v1/sitting/left/"
    sitting = cast.begin(study)
    header = {"X-Sitting-Token": sitting.token}
    body = {"step": 1, "client_hidden_ms": 20, "other": [1]}
    reply = client.post(address, body, content_type="application/json", headers=header)
    assert (reply.status_code, reply.content) == (204, b"")
    assert UnfinishedScreen.objects.get().client == {"hidden_ms": 20}
    assert client.post(address, {"step": 5}, content_type="application/json", headers=header).status_code == 204
    for wrong in ({}, {"step": 1, "client_shown_ms": "x"}, {"step": 1, "client_pastes": -1}, [1]):
        assert client.post(address, wrong, content_type="application/json", headers=header).status_code == 400
    assert client.post(address, body, content_type="application/json").status_code == 403
    assert UnfinishedScreen.objects.count() == 1


def test_looking_at_its_address_does_nothing(client: Client, study: Study) -> None:
    go_to(client, "item", screen="prior")
    assert client.get(BEACON).status_code == 405
    assert not UnfinishedScreen.objects.exists()


def test_it_needs_the_token_of_the_page(study: Study) -> None:
    client = Client(enforce_csrf_checks=True)
    get(client, "/s/cast/")
    page = get(client, "/s/cast/consent")
    page = read(client.post("/s/cast/consent", {**page.hidden, "consent": "yes"}, follow=True).content.decode())
    assert client.post(BEACON, {"step": page.hidden["step"]}).status_code == 403
    token = page.hidden["csrfmiddlewaretoken"]
    reply = client.post(BEACON, {"step": page.hidden["step"], "csrfmiddlewaretoken": token})
    assert reply.status_code == 204
    assert UnfinishedScreen.objects.count() == 1


def test_every_page_with_a_form_measures_and_says_where_to_tell(client: Client, study: Study) -> None:
    page = go_to(client, "instructions")
    kinds = []
    while page.main["data-kind"] != "end":
        assert page.form["data-beacon"] == BEACON
        assert {"client_shown_ms", "client_copies", "client_pastes", "client_hidden_ms"} <= set(page.hidden)
        kinds.append(page.main["data-kind"])
        page = send(client, page, client_shown_ms="5", client_pastes="1")
    assert ScreenTiming.objects.count() == sum(kind != "item" for kind in kinds)
    assert all(row.client == {"shown_ms": 5, "pastes": 1} for row in ScreenTiming.objects.all())
