"""The statements of every respondent's page, as query_counts.json has them: at most 8 each."""

from functools import partial
from typing import Any

import pytest
from django.test import Client

from frontend import urls, urls_root
from tests import cast
from tests.frontend.pages import Page, fields_for, read
from tests.frontend.test_statements import CHECK, CONDITIONS
from tests.statements import QueryCounts

pytestmark = [pytest.mark.django_db, pytest.mark.query_counts("pages"), pytest.mark.slow]
MOST = 8
# An answer and the page of the first item in one: 8 for the answer, which claims a booklet, and the item's own.
MORE = {"POST sitting by exchange: checks, right": 9}
BLOCKS: list[dict[str, Any]] = [
    *cast.BASE["blocks"][:2],
    {
        "kind": "practice",
        "text": "Try it.",
        "example": {"target": "Which is heavier?", "evidence": "How long?", "outcome": "correct"},
    },
    *cast.BASE["blocks"][2:],
]


def name_of(page: Page) -> str:
    return ", ".join(filter(None, [page.main["data-kind"], page.form.get("data-screen", "")]))


def answers(page: Page, *, wrong: bool = False) -> dict[str, Any]:
    kind = page.main["data-kind"]
    if kind == "attention":
        return {**page.hidden, "read": page.value_of("No")}
    if kind == "practice":
        return {**page.hidden, "value": "60", "direction": "same"}
    fields = fields_for(page)
    return {**fields, "first_check": page.value_of("wrong one")} if kind == "checks" and wrong else fields


def walk(client: Client, counts: QueryCounts, *, exchange: bool) -> None:
    address, how = "/s/cast/sitting", " by exchange" if exchange else ""
    headers = {"X-Hunch-Exchange": "1"} if exchange else {}
    page, was_wrong = read(client.get(address).content.decode()), False
    while page.main["data-kind"] != "end":
        wrong = page.main["data-kind"] == "checks" and not was_wrong
        was_wrong = was_wrong or wrong
        rest = f", {'wrong' if wrong else 'right'}" if page.main["data-kind"] == "checks" else ""
        send = partial(client.post, address, answers(page, wrong=wrong), headers=headers)
        response = counts.count(f"POST sitting{how}: {name_of(page)}{rest}", send)
        assert response.status_code == (200 if exchange else 303)
        response = client.get(address)
        page = read(response.content.decode())
        if not exchange:
            again = counts.count(f"GET sitting: {name_of(page)}", partial(client.get, address))
            assert read(again.content.decode()).main == page.main


def test_every_page_takes_as_many_statements_as_are_committed(query_counts: QueryCounts) -> None:
    cast.open_study(
        blocks=BLOCKS, conditions=CONDITIONS, sitting={"items": 3, "attention_checks": [{**CHECK, "after_item": 1}]}
    )
    count, client = query_counts.count, Client()
    client.get("/s/cast/")  # Once, so that this process keeps the study's file.
    count("GET root", partial(client.get, "/"))
    count("GET tokens, unknown", partial(client.get, "/tokens/unknown"))
    count("GET logo, unknown", partial(client.get, "/logo/unknown.png"))
    count("GET welcome, newcomer", partial(Client().get, "/s/cast/"))
    count("GET consent", partial(client.get, "/s/cast/consent"))
    count("POST consent, no", partial(client.post, "/s/cast/consent", {"consent": "no"}))
    count("GET consent, no", partial(client.get, "/s/cast/consent?again=declined"))
    count("POST consent", partial(client.post, "/s/cast/consent", {"consent": "yes"}))
    count("GET welcome, again", partial(client.get, "/s/cast/"))
    count("POST resume", partial(client.post, "/s/cast/resume"))
    count("GET sitting: unknown", partial(Client().get, "/s/cast/sitting"))
    walk(client, query_counts, exchange=False)
    count("GET back", partial(client.get, "/s/cast/back"))
    other = Client()
    other.get("/s/cast/")
    other.post("/s/cast/consent", {"consent": "yes"})
    walk(other, query_counts, exchange=True)
    third = Client()
    third.get("/s/cast/")
    third.post("/s/cast/consent", {"consent": "yes"})
    page = read(third.get("/s/cast/sitting").content.decode())
    while page.main["data-kind"] != "item":
        page = read(third.post("/s/cast/sitting", answers(page), follow=True).content.decode())
    count("POST beacon", partial(third.post, "/s/cast/beacon", {"step": page.hidden["step"]}))
    remark = {**page.hidden, "position": "1", "report": "It is cut off."}
    count("POST report", partial(third.post, "/s/cast/report", remark))
    for name, number in query_counts.rows.items():
        assert number <= MORE.get(name, MOST), (name, number)
    everything = " ".join(query_counts.rows)
    for pattern in [*urls.urlpatterns, *urls_root.urlpatterns]:
        assert pattern.name in everything, f"{pattern.name} has no row"
