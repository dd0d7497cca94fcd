"""Items with three evidence questions, and items with an aid: layouts, axe, keyboard, no script, reload and back."""

from typing import Any

import pytest
from playwright.sync_api import expect

from survey.instruments.belief_update.models import Belief
from survey.models import Response, Study
from tests import cast
from tests.browser.everything import both
from tests.browser.visitor import IN_TWO_LANGUAGES, Visitor, looks_in
from tests.survey.instruments.test_evidence_in_steps import THREE
from tests.survey.instruments.test_real_evidence import REAL, answered

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
SCREENS = ("prior", "step_1", "step_2", "posterior")


def open_study(instrument: dict[str, Any], **overrides: Any) -> Study:
    return cast.open_study(
        instrument=instrument,
        sitting={"items": 1},
        stages=[{"sittings": 2}],
        title=both("Steps", "Schritte"),
        **IN_TWO_LANGUAGES,
        **overrides,
    )


def shown(visitor: Visitor) -> str:
    return str(visitor.page.locator("[data-screen]").get_attribute("data-screen"))


def number(visitor: Visitor) -> Any:
    return visitor.page.locator("input[name=value]:not([type=range]):visible")


@pytest.mark.thorough
@pytest.mark.parametrize("language", ["en", "de"])
def test_every_step_fits_and_is_answered_by_the_keyboard(browser: Any, live_server: Any, language: str) -> None:
    study = open_study(THREE)
    visitor = Visitor(browser, live_server.url, **looks_in(language))
    visitor.begin(study.slug, language)
    for place, screen in enumerate(SCREENS):
        visitor.page.wait_for_selector(f"[data-screen={screen}]")
        visitor.look(screen, language=language)
        if screen == "step_2":
            visitor.send_unanswered()
            visitor.look("step_2, unanswered", language=language)
        field = number(visitor)
        field.focus()
        visitor.page.keyboard.type(str(40 + 10 * place))
        visitor.page.keyboard.press("Enter")
    visitor.page.wait_for_selector("[data-kind=end]")
    assert visitor.problems == []
    assert [*Belief.objects.order_by("response__number").values_list("value", flat=True)] == [40, 50, 60, 70]
    visitor.close()


def test_reload_back_and_a_second_tab_change_no_answer_and_show_no_later_evidence(
    browser: Any, live_server: Any
) -> None:
    study = open_study(THREE)
    visitor = Visitor(browser, live_server.url, java_script_enabled=False)
    visitor.begin(study.slug)
    page = visitor.page
    number(visitor).fill("40")
    visitor.press("Continue")
    assert shown(visitor) == "step_1"
    other = visitor.context.new_page()
    other.goto(page.url)
    evidence = page.locator("[data-part=evidence]").inner_text()
    assert other.locator("[data-part=evidence]").inner_text() == evidence
    number(visitor).fill("50")
    visitor.press("Continue")
    assert shown(visitor) == "step_2"
    later = page.locator("[data-part=evidence]").inner_text()
    assert later != evidence
    # The other tab still has step 1; what it sends now counts for nothing.
    assert later not in other.content()
    other.locator("input[name=value]").fill("99")
    other.get_by_role("button", name="Continue", exact=True).click()
    expect(other.locator("[data-screen=step_2]")).to_be_visible()
    page.reload()
    assert (shown(visitor), page.locator("[data-part=evidence]").inner_text()) == ("step_2", later)
    page.go_back()
    page.reload()
    assert shown(visitor) == "step_2"
    assert [*Belief.objects.order_by("response__number").values_list("value", flat=True)] == [40, 50]
    for value in ("60", "70"):
        number(visitor).fill(value)
        visitor.press("Continue")
    assert visitor.kind == "end"
    assert [*Belief.objects.order_by("response__number").values_list("value", flat=True)] == [40, 50, 60, 70]
    assert Response.objects.count() == 4
    visitor.close()


@pytest.mark.thorough
@pytest.mark.parametrize("language", ["en", "de"])
def test_an_item_with_an_aid_fits_and_names_it_to_everybody(browser: Any, live_server: Any, language: str) -> None:
    answered(cast.bank())
    options = {**REAL["options"], "aid": "similar_questions", "aid_questions": 5, "answer_mode": "blank"}
    study = open_study({"kind": "belief_update", "options": options})
    visitor = Visitor(browser, live_server.url, **looks_in(language))
    visitor.begin(study.slug, language)
    for screen in ("prior", "posterior"):
        visitor.page.wait_for_selector(f"[data-screen={screen}]")
        expect(visitor.page.locator("[data-part=aid]:visible")).to_have_count(1)
        visitor.look(screen, language=language)
        number(visitor).fill("40")
        number(visitor).press("Enter")
    visitor.page.wait_for_selector("[data-kind=end]")
    assert visitor.problems == []
    assert Belief.objects.count() == 2
    visitor.close()
