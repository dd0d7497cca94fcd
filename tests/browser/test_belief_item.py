"""The belief item in a real browser: track, directions, buttons; by pointer and by keyboard; checked by axe."""

from typing import Any

import pytest

from survey.instruments.belief_update.models import Belief
from survey.models import Study
from tests import cast
from tests.browser.test_sitting import look, page_of
from tests.browser.visitor import settle, sit_down

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
BLOCKS = [
    {"kind": "consent", "text": "We ask for your consent."},
    {"kind": "items"},
    {"kind": "end", "text": "Thanks."},
]
VALUE, TRACK, CONTINUE = "#id_value", "#id_value_track", "Continue"


@pytest.fixture
def complaints() -> list[str]:
    return []


@pytest.fixture(params=["light"])
def page(request: Any, browser: Any, complaints: list[str]) -> Any:
    return page_of(browser, complaints, color_scheme=request.param)


def open_study(**options: Any) -> Study:
    return cast.open_study(blocks=BLOCKS, instrument={"kind": "belief_update", "options": options})


def arrive(page: Any, screen: str) -> None:
    """Wait for the screen and for its scripts: they run once the page is read, before it counts as loaded."""
    page.wait_for_selector(f"[data-screen={screen}]")
    settle(page)


def begin(page: Any, live_server: Any) -> None:
    sit_down(page, live_server.url, cast.begin(Study.objects.get()))
    arrive(page, "prior")


def go_on(page: Any) -> None:
    page.get_by_role("button", name=CONTINUE, exact=True).click()
    settle(page)


def last() -> Belief:
    belief = Belief.objects.order_by("response_id").last()
    assert belief is not None
    return belief


def facts(belief: Belief) -> tuple[int, str, int | None, int | None]:
    return belief.value, belief.entered_by, belief.first_value, belief.value_changes


@pytest.mark.thorough
def test_a_track_has_no_thumb_until_it_is_touched_and_writes_the_field(
    page: Any, live_server: Any, complaints: list[str]
) -> None:
    open_study()
    begin(page, live_server)
    track = page.locator(TRACK)
    assert page.locator(VALUE).input_value() == ""
    assert track.get_attribute("aria-valuetext") == "no answer yet" and "untouched" in track.get_attribute("class")
    look(page)
    go_on(page)
    assert page.locator(".error-summary").count() == 1 and not Belief.objects.exists()
    width = track.bounding_box()["width"]
    track.click(position={"x": width * 0.8, "y": 20})
    assert "untouched" not in track.get_attribute("class")
    value = int(page.locator(VALUE).input_value())
    assert 76 <= value <= 84 and track.get_attribute("aria-valuetext") == f"{value} %"
    look(page)
    go_on(page)
    assert facts(last()) == (value, "track", value, 1)
    assert [text for text in complaints if "422" not in text] == []


def test_a_click_in_the_middle_is_an_answer(page: Any, live_server: Any) -> None:
    open_study()
    begin(page, live_server)
    track = page.locator(TRACK)
    track.click(position={"x": track.bounding_box()["width"] / 2 - 1.5, "y": 20})
    assert page.locator(VALUE).input_value() == "50"
    go_on(page)
    assert facts(last()) == (50, "track", 50, 1)


def test_the_track_is_worked_by_keyboard_and_follows_what_is_typed(page: Any, live_server: Any) -> None:
    open_study()
    begin(page, live_server)
    page.locator(VALUE).focus()
    page.keyboard.type("30")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "id_value_track"
    assert page.locator(TRACK).input_value() == "30"
    page.keyboard.press("ArrowRight")
    page.keyboard.press("End")
    assert page.locator(VALUE).input_value() == "100"
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    arrive(page, "posterior")
    assert facts(last()) == (100, "track_keys", 30, 3)


@pytest.mark.thorough
def test_the_first_key_brings_the_thumb_in_from_an_end(page: Any, live_server: Any) -> None:
    """From the middle it would be at 51, which suggests an answer."""
    open_study()
    begin(page, live_server)
    firsts = {"ArrowRight": 0, "ArrowUp": 0, "PageUp": 0, "Home": 0, "ArrowLeft": 100, "End": 100}
    for key, value in firsts.items():
        page.reload()
        arrive(page, "prior")
        assert "untouched" in page.locator(TRACK).get_attribute("class"), key
        page.locator(TRACK).focus()
        page.keyboard.press(key)
        assert page.locator(VALUE).input_value() == str(value), key
        assert "untouched" not in page.locator(TRACK).get_attribute("class"), key
        page.keyboard.press("ArrowRight" if value == 0 else "ArrowLeft")
        assert page.locator(VALUE).input_value() == str(abs(value - 1)), key
    go_on(page)
    assert facts(last()) == (99, "track_keys", 100, 2)


@pytest.mark.thorough
def test_the_track_is_cut_to_the_direction_and_keeps_its_scale(page: Any, live_server: Any) -> None:
    open_study()
    begin(page, live_server)
    page.locator(VALUE).fill("60")
    go_on(page)
    line, track = page.locator(".line"), page.locator(TRACK)
    page.get_by_label("Higher than 60 %").check()
    assert (track.get_attribute("min"), track.get_attribute("max")) == ("61", "100")
    whole, part = line.bounding_box(), track.bounding_box()
    thumb = 24
    expected = whole["x"] + (whole["width"] - thumb) * 0.61
    assert abs(part["x"] - expected) < 1.5 and abs(part["x"] + part["width"] - whole["x"] - whole["width"]) < 1.5
    mark = page.locator(".mark path").bounding_box()
    assert abs(mark["x"] + mark["width"] / 2 - (whole["x"] + thumb / 2 + (whole["width"] - thumb) * 0.6)) < 2.5
    track.click(position={"x": 2, "y": 20})
    assert page.locator(VALUE).input_value() == "61"
    page.get_by_label("Lower than 60 %").check()
    assert (track.get_attribute("min"), track.get_attribute("max")) == ("0", "59")
    assert page.locator(VALUE).input_value() == "61" and "untouched" in track.get_attribute("class")
    track.focus()
    page.keyboard.press("ArrowLeft")
    assert page.locator(VALUE).input_value() == "59"
    look(page)
    go_on(page)
    assert (last().value, last().direction, last().entered_by) == (59, "lower", "track_keys")


@pytest.mark.parametrize("page", ["light", "dark"], indirect=True)
def test_a_number_is_asked_for_once_a_direction_needs_one(page: Any, live_server: Any, complaints: list[str]) -> None:
    open_study()
    begin(page, live_server)
    page.locator(VALUE).fill("60")
    go_on(page)
    assert not page.locator(VALUE).is_visible()
    look(page)
    page.get_by_label("Higher than 60 %").check()
    assert page.locator(VALUE).is_visible()
    look(page)
    page.locator(VALUE).fill("40")
    go_on(page)
    assert "40 is not higher than 60" in page.locator(".error-summary").inner_text()
    assert page.get_by_label("Higher than 60 %").is_checked() and page.locator(VALUE).input_value() == "40"
    look(page)
    # People who change their mind need not empty the field, which is then hidden.
    page.get_by_label("The same, 60 %").check()
    assert not page.locator(VALUE).is_visible()
    go_on(page)
    belief = last()
    assert (belief.value, belief.direction, belief.entered_by) == (60, "same", "button")
    assert [text for text in complaints if "422" not in text] == []


@pytest.mark.thorough
def test_the_enter_key_in_the_number_sends_the_number_and_not_the_other_button(page: Any, live_server: Any) -> None:
    open_study(answer_mode="keep_button")
    begin(page, live_server)
    page.locator(VALUE).fill("60")
    page.keyboard.press("Enter")
    arrive(page, "posterior")
    look(page)
    page.locator(VALUE).fill("75")
    page.keyboard.press("Enter")
    arrive(page, "prior")
    assert facts(last()) == (75, "typed", 75, 1)
    page.locator(VALUE).fill("20")
    go_on(page)
    page.get_by_role("button", name="My answer stays at 20 %").click()
    settle(page)
    arrive(page, "prior")
    assert facts(last())[:2] == (20, "button")


@pytest.mark.thorough
def test_what_was_filled_in_may_be_left(page: Any, live_server: Any) -> None:
    open_study(answer_mode="prefilled")
    begin(page, live_server)
    page.locator(VALUE).fill("60")
    go_on(page)
    assert page.locator(VALUE).input_value() == "60" and page.locator(TRACK).input_value() == "60"
    look(page)
    go_on(page)
    assert facts(last()) == (60, "prefilled", None, None)


@pytest.mark.thorough
def test_reasons_and_the_own_answer_are_accessible(page: Any, live_server: Any) -> None:
    open_study(explanation="all", own_answer=True, confidence=True)
    begin(page, live_server)
    page.locator(VALUE).fill("60")
    go_on(page)
    page.get_by_label("The same, 60 %").check()
    go_on(page)
    look(page)
    page.get_by_label("Your reasons").fill("It seemed so.")
    go_on(page)
    look(page)
    page.get_by_label("Your own answer", exact=True).fill("yes")
    page.get_by_label("How sure are you").fill("40")
    go_on(page)
    assert page.locator("[data-screen=prior]").count() == 1


@pytest.mark.thorough
def test_a_page_with_everything_weighs_under_50_kb(page: Any, live_server: Any) -> None:
    open_study()
    begin(page, live_server)
    page.locator(VALUE).fill("60")
    sizes: dict[str, int] = {}
    page.on("response", lambda answer: sizes.update({answer.url: len(answer.body())}) if answer.ok else None)
    go_on(page)
    page.reload()
    page.wait_for_load_state("networkidle")
    assert any(url.endswith("number.js") for url in sizes)
    assert sum(sizes.values()) <= 50_000, sizes


def test_a_reload_keeps_what_was_entered_until_it_is_sent(page: Any, live_server: Any) -> None:
    """For this page of this sitting alone: no other sitting in the same tab sees it, and nothing stays behind."""
    study = open_study()
    kept = "() => Object.keys(sessionStorage).filter(name => name.startsWith('hunch:')).length"
    begin(page, live_server)
    page.locator(VALUE).fill("37")
    page.locator(VALUE).blur()
    page.reload()
    arrive(page, "prior")
    assert page.locator(VALUE).input_value() == "37" == page.locator(TRACK).input_value()
    # Somebody else at the same computer, at the same page.
    sit_down(page, live_server.url, cast.begin(study))
    arrive(page, "prior")
    assert page.locator(VALUE).input_value() == "" and page.evaluate(kept) == 0
    page.locator(VALUE).fill("41")
    page.locator(VALUE).blur()
    page.reload()
    arrive(page, "prior")
    go_on(page)
    arrive(page, "posterior")
    assert facts(last()) == (41, "typed", 41, 1) and page.evaluate(kept) == 0
    # A number of the page before is no answer to this one; a choice is kept, too.
    page.locator("input[name=direction][value=higher]").check()
    page.locator(VALUE).fill("60")
    page.reload()
    arrive(page, "posterior")
    assert page.locator("input[name=direction][value=higher]").is_checked()
    assert page.locator(VALUE).input_value() == "60"
