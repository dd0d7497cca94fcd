"""The page of two replies: every layout and axe's findings, in English and German, by the keyboard with and without
script."""

import csv
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from survey.instruments.preference.models import ReplyJudgement
from tests import cast
from tests.browser.visitor import CONTINUE, IN_TWO_LANGUAGES, Visitor

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
REPLIES = {
    "owl": [
        "First line.\n\n  - an <b>item</b> & more\n  - another one\n\ndef f(x):\n    return {'a': x}",
        "שלום עולם.\nThis line is English.\nوهذا سطر عربي مع 123.",
    ],
    "raven": ["x" * 400, "e\u0301\u0301\u0301 कि नमस्ते 👩‍👩‍👧‍👦 and a word"],
}


@pytest.fixture
def study(tmp_path: Path) -> Any:
    (tmp_path / "prompts.csv").write_text("id,source,text\np0,talk,Write a <list> & say why.\np1,talk,כתוב משהו.\n")
    call_command("import_questions", str(tmp_path / "prompts.csv"), bank="prompts", format="prompts")
    with (tmp_path / "replies.csv").open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["llm", "question_id", "response"])
        rows.writerows([name, f"p{number}", text] for name, own in REPLIES.items() for number, text in enumerate(own))
    call_command("import_replies", str(tmp_path / "replies.csv"), bank="prompts")
    return cast.open_study(
        bank="prompts",
        instrument={"kind": "preference", "options": {"models": list(REPLIES), "reason": 1}},
        candidates={"size": 10},
        sitting={"items": 2},
        stages=[{"sittings": 1}],
        title={"en": "Replies", "de": "Antworten"},
        **IN_TWO_LANGUAGES,
    )


@pytest.mark.thorough
@pytest.mark.parametrize("language", ["en", "de"])
def test_the_page_fits_and_is_read_aloud(study: Any, browser: Any, live_server: Any, language: str) -> None:
    visitor = Visitor(browser, live_server.url)
    page = visitor.page
    visitor.begin(study.slug, language)
    reply_texts = []
    for item in range(2):
        page.wait_for_selector("[data-screen=judgement]")
        reply_texts += page.locator(".reply").all_inner_texts()
        visitor.look(f"two replies, {item}", language=language)
        if item == 0:
            visitor.send_unanswered()
            visitor.look("two replies, unanswered", language=language)
        for scale in ("helpful", "truthful"):
            page.locator(f"input[name={scale}][value='6']").check()
        before = page.locator("input[name=step]").get_attribute("value")
        visitor.press(CONTINUE[language])
        page.wait_for_selector(f"[data-kind=end], input[name=step]:not([value='{before}'])", state="attached")
    assert visitor.problems == []
    assert sorted(reply_texts) == sorted(text for own in REPLIES.values() for text in own)
    assert [judgement.place for judgement in ReplyJudgement.objects.all()] == [6, 6]
    visitor.close()


@pytest.mark.parametrize("script", [True, False])
def test_two_replies_by_the_keyboard_alone(study: Any, browser: Any, live_server: Any, script: bool) -> None:
    visitor = Visitor(browser, live_server.url, java_script_enabled=script)
    page = visitor.page
    visitor.go(f"/s/{study.slug}/")
    for name in ("Continue", "I agree and take part"):
        page.get_by_role("button", name=name).or_(page.get_by_role("link", name=name)).first.focus()
        page.keyboard.press("Enter")
        page.wait_for_load_state()
    page.wait_for_selector("[data-screen=judgement]")
    for scale in ("helpful", "truthful"):
        page.locator(f"input[name={scale}]").first.focus()
        page.keyboard.press("Space")
        page.keyboard.press("ArrowRight")
    before = page.locator("input[name=step]").get_attribute("value")
    page.keyboard.press("Enter")
    page.wait_for_selector(f"input[name=step]:not([value='{before}'])", state="attached")
    assert ReplyJudgement.objects.get().places == {"helpful": 2, "truthful": 2}
    visitor.close()
