"""A whole sitting in a real browser on a narrow screen, checked by axe."""

from typing import Any

import pytest

from survey.instruments.belief_update.models import Belief
from survey.models import Response, Sitting, Study
from tests import cast
from tests.browser.everything import sitting_at
from tests.browser.visitor import AXE, only_violations, settle, sit_down, use_axe
from tests.browsing import Browser

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
WIDTH = 320
LEVELS = only_violations("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa")
# The pages of one kind, and the items' screens, look alike.
STATE = (
    """[...document.querySelectorAll("main, [data-screen]")].map(at => at.dataset.kind ?? at.dataset.screen).join()"""
)


@pytest.fixture
def study() -> Study:
    return cast.open_study(panel=cast.PROLIFIC)


@pytest.fixture
def complaints() -> list[str]:
    return []


def page_of(browser: Browser, complaints: list[str], **options: Any) -> Any:
    page = browser.new_page(viewport={"width": WIDTH, "height": 640}, **options)
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("response", lambda answer: complaints.append(answer.url) if answer.status >= 500 else None)
    return page


@pytest.fixture(params=["light", "dark"])
def page(request: Any, browser: Browser, complaints: list[str]) -> Any:
    return page_of(browser, complaints, color_scheme=request.param)


def look(page: Any) -> None:
    """Nothing is wider than the screen, and axe finds nothing."""
    assert page.evaluate("document.documentElement.scrollWidth") <= WIDTH
    use_axe(page)
    assert page.evaluate(AXE, LEVELS) == []


def entrance(live_server: Any) -> str:
    return f"{live_server.url}/s/cast/?PROLIFIC_PID=a1&STUDY_ID=b2&SESSION_ID=c3"


def fill(page: Any) -> None:
    """Answer the page that is shown."""
    kind = page.locator("main").get_attribute("data-kind")
    if kind == "checks":
        page.get_by_label("right one", exact=True).check()
        page.get_by_label("right", exact=True).check()
    elif kind == "item":
        if page.locator("[data-screen=prior]").count():
            page.get_by_label("Your answer in percent").fill("60")
        else:
            page.get_by_label("Higher than 60 %").check()
            page.get_by_label("your new number in percent").fill("70")
    elif kind == "form":
        page.get_by_label("Your age").fill("30")


def at_the_end(page: Any) -> bool:
    return bool(page.locator("main").get_attribute("data-kind") == "end")


@pytest.mark.parametrize("page", ["light"], indirect=True)
def test_a_whole_sitting_on_a_narrow_screen(page: Any, live_server: Any, study: Study, complaints: list[str]) -> None:
    page.goto(entrance(live_server))
    assert "PROLIFIC" not in page.url
    look(page)
    page.get_by_role("link", name="Continue").click()
    look(page)
    page.get_by_role("button", name="I agree").click()
    settle(page)
    seen: set[str] = set()
    while not at_the_end(page):
        state = page.evaluate(STATE)
        if state not in seen:
            look(page)
        seen.add(state)
        fill(page)
        page.get_by_role("button", name="Continue").click()
        settle(page)
    look(page)
    assert page.locator("[data-code]").inner_text() == study.completion_code("completed")
    assert Sitting.objects.get().state == Sitting.State.COMPLETE
    assert complaints == []
    for screen, client in Response.objects.values_list("screen", "client"):
        assert client["shown_ms"] <= client["first_touch_ms"] <= client["submitted_ms"]
        # The second answer is a direction and a number.
        assert (client["changes"], client["first_value"]) == {"prior": (1, 60), "posterior": (2, 70)}[screen]


@pytest.mark.thorough
@pytest.mark.parametrize("page", ["dark"], indirect=True)
def test_an_error_takes_the_focus_and_leads_to_its_field_by_keyboard(
    page: Any, live_server: Any, study: Study, complaints: list[str]
) -> None:
    sit_down(page, live_server.url, sitting_at(study, "item"))
    settle(page)
    page.get_by_label("Your answer in percent").fill("101")
    page.keyboard.press("Enter")
    page.wait_for_selector(".error-summary:focus")
    assert page.title().startswith("There is a problem")
    look(page)
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector("#id_value:focus")
    assert page.get_by_label("Your answer in percent").input_value() == "101"
    page.keyboard.press("Control+A")
    page.keyboard.type("62")
    page.keyboard.press("Enter")
    page.wait_for_selector("[data-screen=posterior]")
    assert "62" in page.locator("[data-part=prior]").inner_text()
    assert [text for text in complaints if "422" not in text] == []


@pytest.mark.parametrize("page", ["light"], indirect=True)
def test_back_and_a_double_click_do_no_harm(page: Any, live_server: Any, study: Study) -> None:
    sit_down(page, live_server.url, sitting_at(study, "item"))
    settle(page)
    fill(page)
    page.get_by_role("button", name="Continue").dblclick()
    page.wait_for_selector("[data-screen=posterior]")
    page.go_back()
    page.wait_for_selector("main")
    page.goto(f"{live_server.url}/s/cast/sitting")
    assert page.locator("[data-screen=posterior]").count() == 1
    assert Belief.objects.count() == 1


@pytest.mark.thorough
@pytest.mark.parametrize("page", ["light", "dark"], indirect=True)
@pytest.mark.parametrize("path", ["/", "/nowhere", "/s/cast/", "/s/cast/sitting"])
def test_pages_of_refusal_are_accessible_too(page: Any, live_server: Any, study: Study, path: str) -> None:
    page.goto(live_server.url + path)
    look(page)


@pytest.mark.thorough
@pytest.mark.parametrize("page", ["light"], indirect=True)
def test_the_code_is_copied_by_its_button(page: Any, live_server: Any, study: Study) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(entrance(live_server))
    page.get_by_role("link", name="Continue").click()
    page.get_by_role("button", name="I do not agree").click()
    page.get_by_role("button", name="Copy the code").click()
    page.wait_for_function("document.querySelector('.copied').textContent === 'Copied'")
    assert page.evaluate("navigator.clipboard.readText()") == study.completion_code("no_consent")
