"""Attention checks, scales, reports and the choice about one's data in a real browser: narrow, by keyboard, axe."""

from typing import Any

import pytest

from survey.models import AttentionAnswer, DataChoice, FormAnswer, QuestionReport, Sitting, Study
from tests import cast
from tests.browser.everything import sitting_at
from tests.browser.test_sitting import WIDTH, entrance, fill, look, page_of
from tests.browser.visitor import settle, sit_down
from tests.frontend.test_blocks import ABOUT, ASKING, READ, SCREENER, blocks

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
LARGE = (
    "html { font-size: 200% !important; }"
    "* { line-height: 1.5 !important; letter-spacing: .12em !important; word-spacing: .16em !important; }"
    "p { margin-bottom: 2em !important; }"
)
LONG_SCALE = {
    "name": "recommend",
    "label": "How likely would you recommend it?",
    "kind": "likert",
    "points": 11,
    "labels": ["not at all likely", "extremely likely"],
    "prefer_not_to_say": True,
    "required": True,
}


@pytest.fixture
def study() -> Study:
    questions = {**ABOUT, "fields": [*ABOUT["fields"], LONG_SCALE]}
    made = blocks(before=SCREENER, after=questions, debriefing=ASKING)
    for name in ("comment", "looked_up", "ai_use", "demographics"):
        made.insert(-2, {"kind": "form", "ready": name})
    checks = [{**READ, "text": "Please choose “I read this” here."}]
    return cast.open_study(
        blocks=made, sitting={"items": 1, "attention_checks": checks}, panel=cast.PROLIFIC, texts={"contact": "a@b.org"}
    )


@pytest.fixture
def complaints() -> list[str]:
    return []


@pytest.fixture(params=["light", "dark"])
def page(request: Any, browser: Any, complaints: list[str]) -> Any:
    return page_of(browser, complaints, color_scheme=request.param)


@pytest.fixture
def plain_page(browser: Any, complaints: list[str]) -> Any:
    """Without JavaScript."""
    return page_of(browser, complaints, java_script_enabled=False)


def begin(page: Any, live_server: Any) -> None:
    page.goto(entrance(live_server))
    page.get_by_role("link", name="Continue").click()
    page.get_by_role("button", name="I agree").click()
    settle(page)


def kind_of(page: Any) -> str:
    return str(page.locator("main").get_attribute("data-kind"))


def answer(page: Any) -> None:
    kind = kind_of(page)
    if kind == "attention":
        page.get_by_label("I read this").check()
    elif kind == "form":
        for label in ("Yes", "10", "calm", "A pen"):
            if (field := page.get_by_label(label, exact=True)).count():
                field.check()
        if page.get_by_label("Your age").count():
            page.get_by_label("Your age").fill("30")
    else:
        fill(page)
    page.get_by_role("button", name="Use my data" if kind == "debriefing" else "Continue").click()
    settle(page)


def go_to(page: Any, live_server: Any, kind: str) -> None:
    sit_down(page, live_server.url, sitting_at(Study.objects.get(), kind))
    settle(page)


@pytest.mark.thorough
@pytest.mark.parametrize("page", ["light"], indirect=True)
def test_every_page_holds_on_a_narrow_screen(page: Any, live_server: Any, study: Study, complaints: list[str]) -> None:
    begin(page, live_server)
    while kind_of(page) != "end":
        if (details := page.locator("details.report")).count():
            details.locator("summary").click()
        look(page)
        answer(page)
    look(page)
    assert Sitting.objects.get().state == Sitting.State.COMPLETE
    assert FormAnswer.objects.get(block="about").answers["recommend"] == 10
    assert AttentionAnswer.objects.get().passed and DataChoice.objects.get().may_use
    assert complaints == []


@pytest.mark.thorough
def test_a_scale_does_not_break_the_page_where_text_is_twice_as_large_and_spaced_out(
    browser: Any, live_server: Any, study: Study
) -> None:
    # This style is the reader's, not the page's, so the content policy must not block it.
    page = page_of(browser, [], bypass_csp=True)
    go_to(page, live_server, "form")
    while not page.get_by_label("10", exact=True).count():
        answer(page)
    page.add_style_tag(content=LARGE)
    assert page.evaluate("document.documentElement.scrollWidth") <= WIDTH


@pytest.mark.thorough
@pytest.mark.parametrize("page", ["light"], indirect=True)
def test_a_question_is_reported_by_keyboard_and_answered_all_the_same(
    page: Any, live_server: Any, study: Study, complaints: list[str]
) -> None:
    go_to(page, live_server, "item")
    page.get_by_label("Your answer in percent").fill("37")
    page.locator("details.report summary").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # without words
    page.wait_for_selector(".error-summary:focus")
    look(page)
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector("#id_report:focus")
    page.keyboard.type("Two options are the same.")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector("[role=status]:focus")
    look(page)
    assert page.get_by_label("Your answer in percent").input_value() == "37"
    assert QuestionReport.objects.get().text == "Two options are the same."
    page.get_by_label("Your answer in percent").press("Enter")
    page.wait_for_selector("[data-screen=posterior]")
    assert "37" in page.locator("[data-part=prior]").inner_text()
    assert [text for text in complaints if "422" not in text] == []


@pytest.mark.parametrize("page", ["dark"], indirect=True)
def test_checks_scales_and_the_choice_are_answered_by_keyboard_alone(page: Any, live_server: Any, study: Study) -> None:
    go_to(page, live_server, "attention")
    page.locator("input[type=radio]").first.focus()
    page.keyboard.press("Space")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_selector("main[data-kind=form]")
    assert AttentionAnswer.objects.count() == 1
    while not page.get_by_label("10", exact=True).count():
        answer(page)
    group = page.get_by_role("group", name="How likely would you recommend it?")
    assert group.get_by_label("11: extremely likely").count() == 1
    group.get_by_label("1: not at all likely").focus()
    page.keyboard.press("Space")
    for _step in range(3):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_selector("#id_recommend_1", state="detached")
    assert FormAnswer.objects.get(block="about").answers["recommend"] == 4
    while kind_of(page) != "debriefing":
        answer(page)
    page.get_by_role("button", name="Withdraw my data").focus()
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Please confirm").wait_for()
    look(page)
    page.get_by_role("link", name="No, go back to the question").focus()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Withdraw my data").focus()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Yes, delete my answers").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("main[data-kind=end]")
    look(page)
    assert page.locator("[data-code]").inner_text() == study.completion_code("completed")
    assert Sitting.objects.get().withdrawn_at is not None


@pytest.mark.thorough
def test_without_scripts_reports_and_choices_work_all_the_same(
    plain_page: Any, live_server: Any, study: Study, complaints: list[str]
) -> None:
    page = plain_page
    go_to(page, live_server, "item")
    page.get_by_label("Your answer in percent").fill("37")
    page.locator("details.report summary").click()
    page.get_by_label("What is wrong?").fill("odd")
    page.get_by_role("button", name="Send this remark").click()
    assert "we have noted" in page.locator("[role=status]").inner_text()
    assert page.get_by_label("Your answer in percent").input_value() == "37"
    while kind_of(page) != "end":
        answer(page)
    assert QuestionReport.objects.count() == 1 and DataChoice.objects.get().may_use
    assert complaints == []


@pytest.mark.thorough
@pytest.mark.parametrize("page", ["light"], indirect=True)
def test_who_is_screened_out_meets_an_accessible_page(page: Any, live_server: Any, study: Study) -> None:
    go_to(page, live_server, "form")
    page.get_by_label("No", exact=True).check()
    page.get_by_role("button", name="Continue").click()
    page.wait_for_selector("main[data-outcome=screened_out]")
    look(page)
