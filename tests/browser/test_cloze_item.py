"""The page of a cloze item: every layout and axe's findings, in English and German, by the keyboard."""

from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from survey.instruments.cloze.models import WrittenWord
from tests import cast
from tests.browser.visitor import IN_TWO_LANGUAGES, Visitor, looks_in

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True), pytest.mark.thorough]
SENTENCES = (
    "The old man sat <b>down</b> & <i>slept</i> by the river.",
    "שלום עולם זה משפט ארוך מאוד מאוד.",
    "Nobody knew why the extraordinarily-long-compound-word-of-the-lighthouse-keeper went out again.",
)


@pytest.fixture
def study(tmp_path: Path) -> Any:
    path = tmp_path / "sentences.csv"
    rows = [f's{number},source,"{text}",5' for number, text in enumerate(SENTENCES)]
    path.write_text("\n".join(["id,source,text,positions", *rows]) + "\n", encoding="utf-8")
    call_command("import_questions", str(path), bank="sentences", format="sentences", html=True)
    return cast.open_study(
        bank="sentences",
        instrument={"kind": "cloze", "options": {"least": 1}},
        candidates={"size": 60},
        sitting={"items": 3},
        stages=[{"sittings": 1}],
        title={"en": "Words", "de": "Wörter"},
        **IN_TWO_LANGUAGES,
    )


@pytest.mark.parametrize("language", ["en", "de"])
def test_the_page_fits_and_is_read_aloud(study: Any, browser: Any, live_server: Any, language: str) -> None:
    visitor = Visitor(browser, live_server.url, **looks_in(language))
    visitor.begin(study.slug, language)
    field = visitor.page.locator("input[name=word]")
    visitor.look("word", language=language)
    visitor.send_unanswered()
    visitor.look("word, unanswered", language=language)
    for _item in range(3):
        field.fill("two words")
        field.press("Enter")
        visitor.page.wait_for_selector("[data-screen=word_again]")
        visitor.look("word again", language=language)
        field.fill("one")
        field.press("Enter")
        visitor.page.wait_for_selector("[data-screen=word], [data-kind=end]")
    assert visitor.problems == []
    assert WrittenWord.objects.count() == 6
    visitor.close()
