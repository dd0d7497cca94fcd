"""The pages of a next-token run: every layout and axe's findings, in English and German, by the keyboard alone."""

from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from predictors.readings import Text
from survey.instruments.next_token.models import TokenGuess
from survey.instruments.next_token.wording import word_for_people
from survey.services.banks import passages
from tests import cast
from tests.browser.visitor import IN_TWO_LANGUAGES, Visitor, looks_in

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
    call_command("import_questions", str(path), bank="tales", format="passages", html=True)
    passages.train_tokenizer([Text(str(n), text) for n, text in enumerate(TEXTS)], name="tales", size=300)
    call_command("prepare_passages", bank="tales", tokenizer="pairs:tales", verbosity=0)
    return cast.open_study(
        bank="tales",
        instrument={"kind": "next_token", "options": {"tokenizer": "pairs:tales", "run": 3, "start": "drawn"}},
        candidates={"size": 60},
        sitting={"items": 1},
        stages=[{"sittings": 2}],
        title={"en": "Tokens", "de": "Token"},
        **IN_TWO_LANGUAGES,
    )


@pytest.mark.thorough
@pytest.mark.parametrize("language", ["en", "de"])
def test_the_pages_fit_and_are_read_aloud(study: Any, browser: Any, live_server: Any, language: str) -> None:
    visitor = Visitor(browser, live_server.url, **looks_in(language))
    visitor.begin(study.slug, language)
    field = visitor.page.locator("input[name=guess]")
    visitor.look("guess", language=language)
    visitor.send_unanswered()
    visitor.look("guess, unanswered", language=language)
    field.fill("研究")
    field.press("Enter")
    visitor.page.wait_for_selector(".error-summary:has-text('研究')")
    visitor.look("guess, no token", language=language)
    # A word that is longer than any token leads to its beginnings, and nothing is red.
    field.fill("thexyz")
    field.press("Enter")
    visitor.page.wait_for_selector("input[name=choice]:focus")
    assert visitor.page.locator(".error-summary, .error, .wrong, [aria-invalid]").count() == 0
    visitor.look("guess, list", language=language)
    for after in ("guess_2", "guess_3", "ending"):
        field.fill("t")
        field.press("Enter")
        visitor.page.wait_for_selector(f"[data-screen={after}]")
        visitor.look("ending" if after == "ending" else "next guess", language=language)
    assert visitor.problems == []
    assert TokenGuess.objects.count() == 3
    visitor.close()


def enter(visitor: Visitor, study: Any, language: str = "en") -> Any:
    visitor.begin(study.slug, language)
    visitor.page.wait_for_selector("[data-screen=guess_1]")
    return visitor.page


@pytest.mark.thorough
@pytest.mark.parametrize("language", ["en", "de"])
def test_tokens_are_listed_while_one_types(study: Any, browser: Any, live_server: Any, language: str) -> None:
    """The pattern of a combobox: what a screen reader says, arrow keys, Enter, Escape; and nothing moves."""
    visitor = Visitor(browser, live_server.url, **looks_in(language))
    page = enter(visitor, study, language)
    words = passages.vocabulary_of(passages.registered("pairs:tales"))
    field, suggestions = (
        page.locator("input[name=guess]"),
        "() => [...document.querySelectorAll('[role=option]')].map(one => one.textContent)",
    )
    active = """() => {
      const id = document.querySelector('[name=guess]').getAttribute('aria-activedescendant');
      return document.getElementById(id)?.textContent ?? null;
    }"""
    below = "() => document.querySelector('#step-form .choices').getBoundingClientRect().top + window.scrollY"
    place = page.evaluate(below)
    field.focus()
    tick = page.locator("input[name=new_word]")
    for typed, ticked, token in (("e", False, "e"), ("t", True, " t"), (" t", False, " t"), ("\u00a0t", True, " t")):
        tick.set_checked(ticked)
        field.fill(typed)
        page.wait_for_selector("[role=option]")
        assert page.evaluate(suggestions) == [word_for_people(completion) for completion in words.beginning_with(token)]
    tick.check()
    field.focus()
    assert field.get_attribute("aria-expanded") == "true" and page.evaluate(active) is None
    assert page.evaluate(below) == place
    visitor.look("list of tokens", language=language)
    listed = page.evaluate(suggestions)
    page.keyboard.press("ArrowDown")
    assert page.evaluate(active) == listed[0]
    page.keyboard.press("ArrowUp")
    assert page.evaluate(active) is None
    page.keyboard.press("ArrowUp")
    assert page.evaluate(active) == listed[-1]
    visitor.look("token of the list", language=language)
    page.keyboard.press("Escape")
    assert field.get_attribute("aria-expanded") == "false" and field.input_value() == "\u00a0t"
    field.fill("thexyz")
    beginnings = page.evaluate(suggestions)
    assert beginnings == [word_for_people(token) for token in words.beginnings_of(" thexyz")] and beginnings[0] == "the"
    visitor.look("beginnings of a long word", language=language)
    field.fill("研究")
    assert page.evaluate(suggestions) == [] and field.get_attribute("aria-expanded") == "false"
    visitor.look("no such token", language=language)
    # Enter takes a token, and sends the page only once more.
    field.fill("t")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert field.input_value() == listed[1] and TokenGuess.objects.count() == 0
    page.keyboard.press("Enter")
    page.wait_for_selector("[data-screen=guess_2]")
    assert TokenGuess.objects.get().text == f" {listed[1]}"
    # The field of the next page has the focus, and a token can be clicked.
    assert page.locator("input[name=guess]:focus").count() == 1
    page.keyboard.type("t")
    page.locator("[role=option]").nth(2).click()
    assert field.input_value() == listed[2] and page.locator("input[name=guess]:focus").count() == 1
    page.keyboard.press("Enter")
    page.wait_for_selector("[data-screen=guess_3]")
    assert TokenGuess.objects.count() == 2
    assert (
        page.evaluate(
            "() => performance.getEntriesByType('resource').filter(one => one.name.includes('/tokens/')).length"
        )
        == 1
    )
    assert visitor.problems == []
    visitor.close()


@pytest.mark.thorough
def test_without_the_file_of_tokens_the_button_still_lists_them(study: Any, browser: Any, live_server: Any) -> None:
    visitor = Visitor(browser, live_server.url)
    visitor.page.route("**/tokens/*", lambda route: route.abort())
    page = enter(visitor, study)
    page.locator("input[name=guess]").fill("t")
    page.get_by_role("button", name="Show suggestions").click()
    page.wait_for_selector("input[name=choice]:focus")
    assert page.locator(".error-summary, .error, .wrong").count() == 0
    assert page.locator("[role=option]").count() == 0
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
