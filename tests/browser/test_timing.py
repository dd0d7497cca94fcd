"""What a real browser measures and sends, under our content policy, when a page is left and opened again."""

from typing import Any

import pytest

from frontend import views
from survey.models import Response, ScreenTiming, Sitting, UnfinishedScreen
from survey.services.sittings.timing import CLIENT_FIELDS, record_unfinished
from tests import cast
from tests.browsing import Browser

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def complaints() -> list[str]:
    return []


@pytest.fixture
def page(browser: Browser, complaints: list[str]) -> Any:
    page = browser.new_page(viewport={"width": 320, "height": 640})
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("response", lambda answer: complaints.append(answer.url) if answer.status >= 400 else None)
    return page


def the_word_on_it(page: Any) -> UnfinishedScreen:
    """The report arrives on its own, perhaps after the next page."""
    for _time in range(100):
        if (left := UnfinishedScreen.objects.first()) is not None:
            return left
        page.wait_for_timeout(50)
    raise AssertionError("no report arrived")


def submit(page: Any) -> None:
    with page.expect_navigation():
        page.get_by_role("button", name="Continue").click()


def test_a_page_that_is_left_tells_so_once_and_one_that_is_sent_does_not(
    page: Any, live_server: Any, complaints: list[str]
) -> None:
    cast.open_study()
    page.goto(f"{live_server.url}/s/cast/consent")
    page.goto(f"{live_server.url}/s/cast/")
    page.goto(f"{live_server.url}/s/cast/consent")
    with page.expect_navigation():
        page.get_by_role("button", name="I agree").click()
    assert page.locator("main").get_attribute("data-kind") == "instructions"
    page.reload()
    left = the_word_on_it(page)
    assert (left.kind, left.step) == ("instructions", 1)
    assert set(left.client) >= {"shown_ms", "hidden_ms", "focus_losses", "copies", "pastes"}
    assert "submitted_ms" not in left.client
    page.locator("h1").click(click_count=3)
    page.keyboard.press("Control+c")
    submit(page)
    page.wait_for_selector('main[data-kind="checks"]')
    taken = ScreenTiming.objects.get(kind="instructions")
    assert taken.client["copies"] == 1 and taken.client["submitted_ms"] > taken.client["shown_ms"]
    assert UnfinishedScreen.objects.count() == 1, "a page that was sent is not reported as left"
    assert complaints == []


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["elements", "dataset"])
def test_a_question_may_be_called_what_a_form_of_the_browsers_is_made_of(
    page: Any, live_server: Any, complaints: list[str], name: str
) -> None:
    form = {"kind": "form", "name": "first", "fields": [{"name": name, "label": "Which?", "kind": "text"}]}
    consent, end = cast.BASE["blocks"][0], cast.BASE["blocks"][-1]
    cast.open_study(blocks=[consent, form, {"kind": "items"}, end])
    page.goto(f"{live_server.url}/s/cast/")
    page.goto(f"{live_server.url}/s/cast/consent")
    with page.expect_navigation():
        page.get_by_role("button", name="I agree").click()
    page.reload()
    assert the_word_on_it(page).name == "first"
    page.get_by_label("Which?").fill("iron")
    submit(page)
    assert ScreenTiming.objects.get(kind="form").client["submitted_ms"] > 0
    assert complaints == []


@pytest.mark.thorough
def test_what_was_typed_and_not_sent_stays_in_the_browser(
    page: Any, live_server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    reports: list[dict[str, Any]] = []

    def listen(*, sitting: Sitting, step: str, data: Any) -> bool:
        reports.append(dict(data))
        return record_unfinished(sitting=sitting, step=step, data=data)

    monkeypatch.setattr(views, "record_unfinished", listen)
    form = {"kind": "form", "name": "first", "fields": [{"name": "remark", "label": "Say", "kind": "text"}]}
    consent, end = cast.BASE["blocks"][0], cast.BASE["blocks"][-1]
    cast.open_study(blocks=[consent, form, {"kind": "items"}, end])
    page.goto(f"{live_server.url}/s/cast/")
    page.goto(f"{live_server.url}/s/cast/consent")
    with page.expect_navigation():
        page.get_by_role("button", name="I agree").click()
    page.get_by_label("Say").fill("a-secret-thought")
    page.goto("about:blank")
    page.goto(f"{live_server.url}/s/cast/sitting")
    the_word_on_it(page)
    assert len(reports) == 1 and set(reports[0]) == {
        "csrfmiddlewaretoken",
        "step",
        *(f"client_{name}" for name in CLIENT_FIELDS),
    }
    assert "a-secret-thought" not in str(reports)
    assert Sitting.objects.get().step == 1 and not Response.objects.exists()
