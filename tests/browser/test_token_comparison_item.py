"""The pages of a token comparison: every layout and axe's findings, in English and German, by the keyboard alone."""

from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from predictors.readings import Text
from survey.instruments.token_comparison.models import StatedChance
from survey.services.banks import ngrams, passages
from tests import cast
from tests.browser.visitor import CONTINUE, IN_TWO_LANGUAGES, Visitor, looks_in

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
TEXTS = (
    "The old man sat <b>down</b> by the river & looked at the water for a long time.",
    "Nobody knew why the lights went out, but the old house was dark all night long.",
    "Rain fell all night long on the roof of the old house by the river and the road.",
)


@pytest.fixture
def study(tmp_path: Path) -> Any:
    path = tmp_path / "passages.csv"
    rows = [f'p{number},source,"{text}"' for number, text in enumerate(TEXTS)]
    path.write_text("\n".join(["id,source,text", *rows]) + "\n", encoding="utf-8")
    call_command("import_questions", str(path), bank="passages", format="passages", html=True)
    texts = [Text(str(number), text) for number, text in enumerate(TEXTS)]
    passages.train_tokenizer(texts, name="own", size=300)
    cut_by = passages.open_tokenizer("pairs:own")
    ngrams.train(texts, name="two", order=2, unit="token", smoothing="kneser_ney", cut_by=cut_by)
    return cast.open_study(
        bank="passages",
        instrument={"kind": "token_comparison", "options": {"generator": "ngram:two", "draws": 12}},
        candidates={"size": 1000},
        sitting={"items": 1},
        stages=[{"sittings": 2}],
        title={"en": "Pieces", "de": "Stücke"},
        **IN_TWO_LANGUAGES,
    )


@pytest.mark.thorough
@pytest.mark.parametrize("language", ["en", "de"])
def test_the_pages_fit_and_are_read_aloud(study: Any, browser: Any, live_server: Any, language: str) -> None:
    visitor = Visitor(browser, live_server.url, **looks_in(language))
    visitor.begin(study.slug, language)
    visitor.look("comparison", language=language)
    visitor.send_unanswered()
    visitor.look("comparison, unanswered", language=language)
    visitor.page.locator("input[name=percent_left][value='80']").check()
    visitor.press(CONTINUE[language])
    visitor.page.wait_for_selector("[data-screen=revealed]")
    visitor.look("revealed", language=language)
    assert visitor.problems == []
    assert StatedChance.objects.get().percent_left == 80
    visitor.close()


@pytest.mark.parametrize("script", [True, False])
def test_a_comparison_by_the_keyboard_alone(study: Any, browser: Any, live_server: Any, script: bool) -> None:
    visitor = Visitor(browser, live_server.url, java_script_enabled=script)
    page = visitor.page
    visitor.go(f"/s/{study.slug}/")
    for name in ("Continue", "I agree and take part"):
        page.get_by_role("button", name=name).or_(page.get_by_role("link", name=name)).first.focus()
        page.keyboard.press("Enter")
        page.wait_for_load_state()
    page.wait_for_selector("[data-screen=compare]")
    page.locator("input[name=percent_left]").first.focus()
    page.keyboard.press("Space")
    page.keyboard.press("ArrowRight")
    assert page.locator("input[name=percent_left]:checked").get_attribute("value") == "90"
    page.keyboard.press("Enter")
    page.wait_for_selector("[data-screen=revealed]")
    assert StatedChance.objects.get().percent_left == 90
    visitor.close()
