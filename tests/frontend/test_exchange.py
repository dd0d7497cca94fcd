"""An answer and the next page in one exchange: the same pages, the same rows, in one request instead of two."""

import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from survey.instruments.belief_update.models import Belief
from survey.models import QuestionReport, Sitting, Study
from tests import cast
from tests.api.everything import STUDY
from tests.frontend.pages import arrive, fields_for, get, go_to, read

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
SITTING = "/s/cast/sitting"
HEADER = {"X-Hunch-Exchange": "1"}
# What differs from page to page by design.
MASKED = re.compile(r'name="csrfmiddlewaretoken" value="[^"]*"')


@pytest.fixture
def study() -> Study:
    return cast.open_study(panel=cast.WITH_CODE)


def exchange(client: Client, data: dict[str, Any], **headers: str) -> Any:
    return client.post(SITTING, data, headers={**HEADER, **headers})


def body(response: Any) -> str:
    return MASKED.sub("", response.content.decode())


def test_a_whole_sitting_by_exchange_shows_the_pages_that_a_get_shows(client: Client, study: Study) -> None:
    page, seen = arrive(client), []
    while page.main["data-kind"] != "end":
        seen.append(page.form.get("data-screen", page.main["data-kind"]))
        response = exchange(client, fields_for(page))
        assert response.status_code == 200
        loaded = client.get(SITTING)
        assert body(response) == body(loaded)
        for header in ("Content-Language", "Cache-Control", "Content-Security-Policy"):
            assert response.headers[header] == loaded.headers[header]
        page = read(response.content.decode())
    assert seen == ["instructions", "checks", *["prior", "posterior"] * 3, "form", "debriefing"]
    assert page.code.strip() == study.completion_code("completed")
    assert list(Belief.objects.order_by("pk").values_list("kind", "value")) == [("prior", 60), ("posterior", 70)] * 3


def test_a_sitting_with_everything_by_exchange_shows_the_pages_that_a_get_shows(client: Client) -> None:
    """Conditions, attention checks, practice, reasons, an own answer, in the second language."""
    cast.open_study(**STUDY)
    client.get("/s/cast/?language=de")
    client.get("/s/cast/")
    page = read(client.post("/s/cast/consent", {"consent": "yes"}, follow=True).content.decode())
    kinds = []
    for _page in range(60):
        kinds.append(page.main["data-kind"])
        if kinds[-1] == "end":
            break
        response = exchange(client, answers_in_german(page))
        assert response.status_code == 200, response.content.decode()
        assert body(response) == body(client.get(SITTING))
        assert response.headers["Content-Language"] == "de" and '<html lang="de">' in response.content.decode()
        page = read(response.content.decode())
    assert page.main["data-outcome"] == "completed"
    assert {"practice", "checks", "item", "attention", "form", "debriefing"} <= set(kinds)


def answers_in_german(page: Any) -> dict[str, Any]:
    fields: dict[str, Any] = dict(page.hidden)
    right = ("Ja", "Sprachmodelle.", "Das habe ich gelesen.", "Einen Stift", "völlig", "Nein")
    for field in page.inputs:
        if field["type"] in ("radio", "checkbox") and field["name"] not in fields:
            options = [i for i in page.inputs if i["name"] == field["name"]]
            chosen = [i for i in options if page.labels[i["id"]].strip() in right] or options[-1:]
            same = [i for i in options if i.get("value") == "same"]
            fields[field["name"]] = (same or chosen)[0]["value"]
        elif field["type"] in ("text", "textarea") and field["name"] != "report":
            fields.setdefault(field["name"], "" if "direction" in fields else "30")
    return {**fields, "my_data": "use"}


def test_any_other_value_of_the_header_gets_a_redirect(client: Client, study: Study) -> None:
    page = arrive(client)
    for value in ("", "0", "yes"):
        response = client.post(SITTING, fields_for(page), headers={"X-Hunch-Exchange": value})
        assert (response.status_code, response.headers["Location"]) == (303, SITTING)


def test_an_answer_that_is_refused_comes_back_with_what_was_entered(client: Client, study: Study) -> None:
    page = go_to(client, "item", screen="prior")
    response = exchange(client, {**fields_for(page), "value": "101"})
    again = read(response.content.decode())
    assert response.status_code == 422
    assert again.hidden["step"] == page.hidden["step"]
    (entered,) = [i for i in again.inputs if i["name"] == "value"]
    assert entered["value"] == "101" and not Belief.objects.exists()


def test_a_page_sent_twice_is_stored_once_and_shows_the_same_next_page(client: Client, study: Study) -> None:
    page = go_to(client, "item", screen="prior")
    first = exchange(client, fields_for(page))
    second = exchange(client, {**fields_for(page), "value": "99"})
    assert body(first) == body(second)
    assert list(Belief.objects.values_list("value", flat=True)) == [60]


def test_an_outdated_tab_gets_the_page_at_which_the_sitting_is(client: Client, study: Study) -> None:
    old_tab = go_to(client, "item", screen="prior")
    page = read(exchange(client, fields_for(old_tab)).content.decode())
    page = read(exchange(client, fields_for(page)).content.decode())
    shown_page = read(exchange(client, {**fields_for(old_tab), "value": "1"}).content.decode())
    assert (shown_page.main, shown_page.form["data-screen"]) == (page.main, "prior")
    assert Belief.objects.count() == 2


def test_a_step_that_was_not_reached_and_a_stranger_are_refused_as_ever(client: Client, study: Study) -> None:
    page = go_to(client, "item", screen="prior")
    ahead = exchange(client, {**fields_for(page), "step": int(page.hidden["step"]) + 1})
    assert ahead.status_code == 409 and 'data-refused="out_of_order"' in ahead.content.decode()
    assert exchange(client, {**fields_for(page), "step": "x"}).status_code == 400
    assert exchange(Client(), fields_for(page)).status_code == 403
    assert Client().post("/s/nowhere/sitting", {}, headers=HEADER).status_code == 404
    assert not Belief.objects.exists()


def test_without_the_token_of_the_form_nothing_is_taken(study: Study) -> None:
    client = Client(enforce_csrf_checks=True)
    client.get("/s/cast/")
    consent = read(client.get("/s/cast/consent").content.decode())
    client.post("/s/cast/consent", {**consent.hidden, "consent": "yes"})
    page = get(client, SITTING)
    step = Sitting.objects.get().step
    refused = exchange(client, {**fields_for(page), "csrfmiddlewaretoken": "x"})
    assert refused.status_code == 403 and Sitting.objects.get().step == step
    assert exchange(client, fields_for(page)).status_code == 200 and Sitting.objects.get().step == step + 1


def test_a_remark_stays_even_if_the_answer_beside_it_is_refused(client: Client, study: Study) -> None:
    page = go_to(client, "item", screen="prior")
    response = exchange(client, {**fields_for(page), "value": "x", "report": "The picture is missing."})
    assert response.status_code == 422
    assert QuestionReport.objects.get().text == "The picture is missing." and not Belief.objects.exists()
    again = read(response.content.decode())
    assert exchange(client, {**fields_for(again), "report": "The picture is missing."}).status_code == 200
    assert QuestionReport.objects.count() == 1 and Belief.objects.count() == 1


def test_a_remark_that_cannot_be_stored_keeps_the_answer_back_too(client: Client, study: Study) -> None:
    page = go_to(client, "item", screen="prior")
    response = exchange(client, {**fields_for(page), "report": "x" * 501})
    assert response.status_code == 422 and "at most 500" in response.content.decode()
    assert not QuestionReport.objects.exists() and not Belief.objects.exists()


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["prior", "posterior"])
def test_an_exchange_takes_fewer_statements_than_a_post_and_a_get(study: Study, kind: str) -> None:
    sent: list[int] = []
    for headers in ({}, HEADER):
        browser = Client()
        page = go_to(browser, "item", screen=kind)
        with CaptureQueriesContext(connection) as queries:
            browser.post(SITTING, fields_for(page), headers=headers, follow=True)
        sent.append(len(queries))
    in_two, in_one = sent
    assert in_one < in_two


def test_the_pages_of_a_sitting_bring_the_script_and_those_before_it_do_not(client: Client, study: Study) -> None:
    for path in ("/s/cast/", "/s/cast/consent"):
        assert "exchange.js" not in client.get(path).content.decode()
    assert "data-exchange" in arrive(client).form
    assert "exchange.js" in client.get(SITTING).content.decode()
