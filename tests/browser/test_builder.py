"""The builder in a real browser: a study of one's own by clicks alone, and its page for everybody."""

from typing import Any

import pytest

from survey.models import Study
from tests.browser.test_console import RULES_AT, SIDEWAYS, WIDER, researcher
from tests.browser.visitor import AXE, COLOURS, RESTYLE, Visitor, use_axe

__all__ = ["researcher"]  # A fixture.
pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]


def open_builder(visitor: Visitor, template: str = "Belief update, adaptive") -> Any:
    page = visitor.page
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto(f"{visitor.root}/admin/survey/study/add/")
    page.get_by_role("button", name=f"Begin with {template}", exact=True).click()
    page.locator("[data-look-frame]:not([hidden])").wait_for()
    return page


def box(page: Any, name: str) -> Any:
    return page.locator(f'[id="in-{name}"]')


def test_a_study_of_ones_own_by_clicks_alone(researcher: Visitor) -> None:
    page = open_builder(researcher)
    box(page, "title").fill("Mine & yours")
    look = page.frame_locator("[data-look-frame]")
    look.get_by_role("heading", name="Mine & yours").wait_for()
    box(page, "blocks.2.text").fill("Read <b>this</b>.\n\n- one\n- two")
    look.get_by_text("Read <b>this</b>.").wait_for()
    assert look.locator("li").all_inner_texts() == ["one", "two"]
    page.locator('[data-live="diff"] .hunch-diff-new', has_text="- one").wait_for(state="attached")
    page.get_by_role("button", name="Move down: 2. Instructions").press("Enter")  # By keys.
    page.get_by_text("3. Instructions: What you will do").wait_for()
    assert page.evaluate("document.activeElement.id") == "at-blocks.3"
    page.get_by_role("button", name="Add: form", exact=True).click()
    page.get_by_text("6. Form: form_1").wait_for()
    box(page, "stages.1.sittings").fill("40")
    page.locator('[data-live="sums"]', has_text="600").wait_for()
    page.get_by_role("button", name="Make the study").click()
    page.get_by_text("The study mine-yours is made").wait_for()
    config = Study.objects.get().config
    assert config.title == "Mine & yours" and config.blocks[2].text.startswith("Read <b>this</b>.")
    assert [block.kind for block in config.blocks][:3] == ["consent", "checks", "instructions"]
    assert config.blocks[5].name == "form_1" and config.stages[0].sittings == 40
    assert researcher.problems == []


@pytest.mark.thorough
def test_cards_are_dragged_and_a_phone_shows_the_page_in_its_card(researcher: Visitor) -> None:
    page = open_builder(researcher)
    handle = page.locator("[data-entry='blocks.2'] > .hunch-orders .hunch-handle")
    handle.hover()
    page.mouse.down()
    handle.hover(position={"x": 20, "y": 5})  # The drag begins with the first move, before the page scrolls.
    for _time in range(2):  # A page is told of a place once the pointer has moved there.
        page.locator("[data-entry='blocks.3'] > .hunch-orders").hover()
    page.mouse.up()
    page.get_by_text("3. Instructions: What you will do").wait_for()
    page.set_viewport_size({"width": 390, "height": 844})
    page.get_by_role("button", name="See this page: 1. Consent").click()
    page.locator("[data-entry='blocks.1'] [data-look-frame]").wait_for(state="visible")
    page.frame_locator("[data-look-frame]").get_by_text("I agree and take part").wait_for()
    assert not Study.objects.exists() and researcher.problems == []


@pytest.mark.thorough
@pytest.mark.parametrize("template", ["What the belief item can do", "With people from Prolific"])
def test_the_builder_is_for_everybody(researcher: Visitor, template: str) -> None:
    page = open_builder(researcher, template)
    for width, rules in RULES_AT.items():
        page.set_viewport_size({"width": width, "height": 900})
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        assert not page.evaluate(WIDER), width
        assert page.evaluate(SIDEWAYS) == []
        use_axe(page)
        assert page.evaluate(AXE, rules) == []
        page.evaluate(RESTYLE, "* { transition: none !important; }")
        page.emulate_media(color_scheme="dark")
        assert page.evaluate(AXE, COLOURS) == []
        page.emulate_media(color_scheme="light")
    assert researcher.problems == []
