"""How far one has come: a bar on every page of a sitting, and a number on each question, attention checks included."""

import re
from typing import Any

import pytest
from django.test import Client

from tests import cast
from tests.frontend.pages import get, send

pytestmark = [pytest.mark.django_db, pytest.mark.any_database, pytest.mark.slow]
CHECK: dict[str, Any] = {"kind": "instruction", "text": "Choose “one” here.", "options": ["one", "two"]}
CHECKS = [{**CHECK, "name": "early", "after_item": 1}, {**CHECK, "name": "late", "after_item": 3}]


def percent_of(html: str) -> int:
    (percent,) = re.findall(r'<progress class="progress-bar" value="(\d+)" max="100"', html)
    return int(percent)


@pytest.mark.thorough
def test_the_bar_grows_with_every_page_and_every_question_has_its_number(client: Client) -> None:
    cast.open_study(sitting={"items": 3, "attention_checks": CHECKS})
    client.get("/s/cast/")
    percents = [percent_of(client.get("/s/cast/consent").content.decode())]
    client.post("/s/cast/consent", {"consent": "yes"})
    numbers, told = [], []
    page = get(client, "/s/cast/sitting")
    while page.main["data-kind"] != "end":
        percents.append(percent_of(client.get("/s/cast/sitting").content.decode()))
        numbers += re.findall(r"Question (\d+) of 3", page.text)
        token = client.cookies["hunch_sitting"].value
        step = client.get("/api/v1/sitting/", headers={"X-Sitting-Token": token}).json()
        told.append(step["progress"]["percent"])
        numbered = page.main["data-kind"] in ("item", "attention")
        assert (step["progress"]["question"] > 0) == numbered == ("Question " in page.text)
        answers = dict.fromkeys(("early", "late"), "1") if page.main["data-kind"] == "attention" else {}
        page = send(client, page, **answers)
    assert percents[0] == 0 and percents == sorted(set(percents)) and percents[-1] < 100
    assert told == percents[1:]
    # An item has two pages, a check has one and the number of the item behind it, or of the last one.
    assert numbers == ["1", "1", "2", "2", "2", "3", "3", "3"]
    assert percent_of(client.get("/s/cast/sitting").content.decode()) == 100


def test_who_did_not_finish_is_not_told_that_all_is_done(client: Client) -> None:
    cast.open_study()
    client.get("/s/cast/")
    client.post("/s/cast/consent", {"consent": "yes"})
    page = send(client, get(client, "/s/cast/sitting"))
    for _attempt in range(2):
        wrong = {
            field["name"]: field["value"]
            for field in page.inputs
            if page.labels[field["id"]] not in ("right", "right one")
        }
        page = send(client, page, **wrong)
    assert page.main["data-outcome"] == "failed_checks" and "progress" not in page.tags
