"""What a page of an item costs: at most 7 statements a POST and 4 a GET, however large the study is."""

from functools import partial
from typing import Any

import pytest
from django.test import Client

from survey.models import Bank, QuestionReport, Score, Study
from survey.services.studies.amending import amend
from tests import cast
from tests.frontend.pages import Page, arrive, fields_for, get, read
from tests.statements import counted

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
MOST = {"GET": 4, "POST": 7, "POST that ends an item": 8}
CHECK = {"name": "read", "kind": "nonsense", "text": "Have you been on the moon?", "options": ["No", "Yes"]}
BLOCKS = [
    {"kind": "consent", "text": "We ask for your consent."},
    {"kind": "items"},
    {"kind": "debriefing", "text": "It was about expectations."},
    {"kind": "end", "text": "Thanks."},
]
MODES = ("direction", "blank", "keep_button", "prefilled")
CONDITIONS = [
    {"factor": "framing", "levels": ["plain", "warm"]},
    {
        "factor": "mode",
        "levels": list(MODES),
        "per": "item",
        "options": {mode: {"answer_mode": mode} for mode in MODES},
    },
    {"factor": "sound", "levels": ["on", "off"], "per": "item"},
]
OWN = {"kind": "own_answers"}
LANGUAGES = {"languages": ["en", "de"], "welcome": {"en": "Welcome.", "de": "Willkommen."}, "minutes": 3}
IN_TWO = [
    {**block, "text": {"en": block["text"], "de": block["text"]}} if "text" in block else block for block in BLOCKS
]
STUDIES: dict[str, dict[str, Any]] = {
    "plain": {},
    "conditions": {"conditions": CONDITIONS},
    "attention": {"conditions": CONDITIONS, "checks": 2},
    "reasons": {"instrument": {"kind": "belief_update", "options": {"explanation": "all", "own_answer": True}}},
    "steps": {"instrument": {"kind": "belief_update", "options": {"evidence_questions": 3, "answer_mode": "blank"}}},
    "languages": {"texts": LANGUAGES, "blocks": IN_TWO, "title": {"en": "A study", "de": "Eine Studie"}},
    "score": {"instrument": OWN},
    "cloze": {"instrument": {"kind": "cloze"}},
}


def open_study(items: int, *, checks: int = 0, **overrides: Any) -> Study:
    asked = [{**CHECK, "name": f"read_{number}", "after_item": number} for number in range(1, checks + 1)]
    sitting = {"items": items, **({"attention_checks": asked} if asked else {})}
    if not Bank.objects.exists():
        cast.bank(400)
    options = {"blocks": BLOCKS, "sitting": sitting, "stages": [{"sittings": 8}], "candidates": {"size": 400}}
    return cast.open_study(**{**options, **overrides})


def answers(page: Page) -> dict[str, Any]:
    if page.main["data-kind"] == "attention":
        (name,) = {field["name"] for field in page.inputs}
        return {**page.hidden, name: page.value_of("No")}
    fields = fields_for(page) if page.main["data-kind"] == "item" else dict(page.hidden)
    if page.form.get("data-screen") in ("answer", "own_answer"):
        fields |= {"answer": "A", "confidence": "50", "value": ""}
    if page.form.get("data-screen") == "word":
        fields |= {"word": "somewhere"}
    return {**fields, "explanation": "So it seemed."}


def walk(client: Client, *, slug: str = "cast", remark: str = "", exchange: bool = False) -> dict[str, set[int]]:
    """Answer a whole sitting; the statements that its items took, by what was sent."""
    address, headers = f"/s/{slug}/sitting", {"X-Hunch-Exchange": "1"} if exchange else {}
    counts: dict[str, set[int]] = {"GET": set(), "POST": set(), "POST that ends an item": set()}
    page = get(client, address)
    while page.main["data-kind"] != "end":
        fields = {**answers(page), "report": remark}
        response, posted = counted(partial(client.post, address, fields, headers=headers))
        assert response.status_code == (200 if exchange else 303), response.content.decode()
        if exchange:
            following = read(response.content.decode())
        else:
            response, got = counted(partial(client.get, address))
            following = read(response.content.decode())
            if following.main["data-kind"] == "item":
                counts["GET"].add(len(got))
        if page.main["data-kind"] == "item":
            ended = following.text.split(" of ")[0] != page.text.split(" of ")[0]
            counts["POST that ends an item" if ended else "POST"].add(len(posted))
        page = following
    return counts


def most(counts: dict[str, set[int]], *, more: int = 0) -> None:
    for what, limit in MOST.items():
        assert max(counts[what], default=0) <= limit + (more if what != "GET" else 0), counts


@pytest.mark.thorough
@pytest.mark.parametrize("kind", STUDIES)
def test_an_items_pages_take_as_few_statements_with_six_items_as_with_two(kind: str) -> None:
    """And an exchange takes fewer than a POST and a GET."""
    counts = []
    for items, slug in ((2, "short"), (6, "long")):
        open_study(items, **STUDIES[kind], slug=slug)
        client = Client()
        arrive(client, slug)
        counts.append(walk(client, slug=slug))
        most(counts[-1], more=1 if kind == "score" else 0)
    short, long = counts
    for what in ("GET", "POST that ends an item"):
        assert max(short[what]) == max(long[what])
    assert Score.objects.exists() == (kind == "score")
    arrive(client := Client(), "short")
    exchanged = walk(client, slug="short", exchange=True)
    for what in ("POST", "POST that ends an item"):
        assert not exchanged[what] or max(exchanged[what]) < max(short[what]) + max(short["GET"])


def test_amendments_cost_nothing(client: Client) -> None:
    study = open_study(2)
    arrive(client)
    texts = cast.BASE["texts"]
    for number in range(3):
        changed = {"blocks": BLOCKS, "sitting": {"items": 2}, "stages": [{"sittings": 8}], "candidates": {"size": 400}}
        text = cast.study_text(**changed, texts={**texts, "welcome": f"Welcome {number}."})
        amend(study, text=text, source_name="cast.toml", reason="A better word.")
        study = Study.objects.get(pk=study.pk)
    most(walk(client))


def test_a_remark_costs_two(client: Client) -> None:
    open_study(2)
    arrive(client)
    most(walk(client, remark="It is cut off."), more=2)
    assert QuestionReport.objects.count() == 4
