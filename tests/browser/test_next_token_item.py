"""The pages of a next-token run: every layout and axe's findings, in English and German, by the keyboard alone."""

from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from predictors.readings import Text
from survey.instruments.next_token.models import TokenGuess
from survey.services.banks import passages
from tests import cast
from tests.browser.visitor import Visitor

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
TEXTS = (
    "The miller <b>rode</b> to the market with seven sacks & sold the barley to a baker, and the hen to a miller.",
    "A storm came over the lake and broke the mast of the ferry, and the ferryman rowed home over the lake again.",
)


@pytest.fixture
def study(tmp_path: Path) -> Any:
    path = tmp_path / "tales.csv"
    rows = [f't{number},tales,"{text}"' for number, text in enumerate(TEXTS)]
    path.write_text("\n".join(["id,source,text", *rows]) + "\n", encoding="utf-8")
    call_command("import_questions", str(path), bank="tales", format="passages")
    passages.train_tokenizer([Text(str(n), text) for n, text in enumerate(TEXTS)], name="tales", size=300)
    call_command("prepare_passages", bank="tales", tokenizer="pairs:tales", verbosity=0)
    return cast.open_study(
        bank="tales",
        instrument={"kind": "next_token", "options": {"tokenizer": "pairs:tales", "run": 3, "start": "drawn"}},
        candidates={"size": 60},
        roles={"holdout": 0, "controls": 0},
        sitting={"items": 1},
        stages=[{"sittings": 2}],
        title={"en": "Tokens", "de": "Token"},
        texts={"languages": ["en", "de"], "welcome": {"en": "Welcome.", "de": "Willkommen."}, "minutes": 3},
        blocks=[
            {"kind": "consent", "text": {"en": "Do you agree?", "de": "Stimmen Sie zu?"}, "version": "1"},
            {"kind": "items"},
            {"kind": "end", "text": {"en": "Thanks.", "de": "Danke."}},
        ],
    )


@pytest.mark.parametrize("language", ["en", "de"])
def test_the_pages_fit_and_are_read_aloud(study: Any, browser: Any, live_server: Any, language: str) -> None:
    words = {"en": ("Continue", "I agree and take part"), "de": ("Weiter", "Ich willige ein und nehme teil")}[language]
    visitor = Visitor(browser, live_server.url)
    visitor.go(f"/s/{study.slug}/?language={language}")
    visitor.press(words[0])
    visitor.press(words[1])
    field = visitor.page.locator("input[name=guess]")
    visitor.look("guess", language=language)
    visitor.send_unanswered()
    visitor.look("guess, unanswered", language=language)
    field.fill("zzz")
    field.press("Enter")
    visitor.page.wait_for_selector(".error-summary:has-text('zzz')")
    visitor.look("guess, no token", language=language)
    for after in ("guess_2", "guess_3", "told"):
        field.fill("t")
        field.press("Enter")
        visitor.page.wait_for_selector(f"[data-screen={after}]")
        visitor.look("told" if after == "told" else "next guess", language=language)
    assert visitor.problems == []
    assert TokenGuess.objects.count() == 3
    visitor.close()


@pytest.mark.parametrize("script", [True, False])
def test_a_run_by_the_keyboard_alone(study: Any, browser: Any, live_server: Any, script: bool) -> None:
    """Tab, arrows, space and Enter: a list is asked for, a token of it chosen, and the text goes on."""
    visitor = Visitor(browser, live_server.url, java_script_enabled=script)
    page = visitor.page
    visitor.go(f"/s/{study.slug}/")
    for name in ("Continue", "I agree and take part"):
        page.get_by_role("button", name=name).or_(page.get_by_role("link", name=name)).first.focus()
        page.keyboard.press("Enter")
        page.wait_for_load_state()
    page.wait_for_selector("[data-screen=guess_1]")
    page.locator("input[name=guess]").focus()
    page.keyboard.type("t")
    for _press in range(4):
        page.keyboard.press("Tab")
        if page.locator("button[name=look]:focus").count():
            break
    page.keyboard.press("Enter")
    page.wait_for_selector("input[name=choice]")
    page.locator("input[name=guess]").focus()
    for _press in range(4):
        page.keyboard.press("Tab")
        if page.locator("input[name=choice]:focus").count():
            break
    page.keyboard.press("Space")
    chosen = page.locator("input[name=choice]:checked").get_attribute("value")
    page.keyboard.press("Enter")
    page.wait_for_selector("[data-screen=guess_2]")
    assert [str(guess.token) for guess in TokenGuess.objects.all()] == [chosen]
    visitor.close()
