"""An answer and its next page in one exchange, in a real browser: title, focus, history, and a broken connection."""

from typing import Any

import pytest

from survey.instruments.belief_update.models import Belief
from survey.models import QuestionReport, Response, Sitting, Study
from tests import cast
from tests.browser.test_belief_item import BLOCKS, CONTINUE, VALUE, arrive, begin, go_on, open_study
from tests.browser.test_sitting import look, page_of
from tests.browser.visitor import settle, sit_down

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def complaints() -> list[str]:
    return []


@pytest.fixture(params=["light"])
def page(request: Any, browser: Any, complaints: list[str]) -> Any:
    return page_of(browser, complaints, color_scheme=request.param)


@pytest.mark.thorough
def test_the_next_page_comes_in_the_reply_with_title_focus_and_times_of_its_own(
    page: Any, live_server: Any, complaints: list[str]
) -> None:
    open_study()
    begin(page, live_server)
    requests: list[str] = []
    page.on("request", lambda request: requests.append(f"{request.method} {request.url}"))
    first = page.title()
    page.locator(VALUE).fill("60")
    go_on(page)
    arrive(page, "posterior")
    assert requests == [f"POST {live_server.url}/s/cast/sitting"]
    assert page.title() != first and page.title().startswith("How likely is it now that the model")
    assert page.evaluate("document.activeElement.tagName") == "H1"
    look(page)
    page.get_by_label("The same, 60 %").check()
    go_on(page)
    arrive(page, "prior")
    for response in Response.objects.all():
        # From the moment that the page was asked for, as where it is loaded.
        assert 0 <= response.client["shown_ms"] <= response.client["first_touch_ms"] <= response.client["submitted_ms"]
        assert response.client["shown_ms"] <= response.server_ms + 1000
    assert complaints == []


def test_back_shows_where_the_sitting_is_and_reload_stays_there(page: Any, live_server: Any) -> None:
    open_study()
    begin(page, live_server)
    page.locator(VALUE).fill("60")
    go_on(page)
    arrive(page, "posterior")
    with page.expect_navigation():
        page.go_back()
    arrive(page, "posterior")
    assert page.url == f"{live_server.url}/s/cast/sitting"
    page.reload()
    arrive(page, "posterior")
    assert page.locator("[data-part=prior]").inner_text() == "60"
    assert Belief.objects.count() == 1


def test_what_was_entered_stays_while_the_connection_is_broken_and_is_stored_once_after_it(
    page: Any, live_server: Any
) -> None:
    open_study()
    begin(page, live_server)
    page.locator(VALUE).fill("61")
    page.route("**/sitting", lambda route: route.abort())
    go_on(page)
    unsent = page.locator("#unsent")
    assert unsent.is_visible() and "still here" in unsent.inner_text()
    look(page)
    assert page.locator(VALUE).input_value() == "61" and not Belief.objects.exists()
    page.unroute("**/sitting")

    def lose_the_reply(route: Any) -> None:
        route.fetch()  # The server stores the answer, and the browser never hears of it.
        route.abort()

    page.route("**/sitting", lose_the_reply)
    go_on(page)
    assert unsent.is_visible() and Belief.objects.count() == 1
    page.unroute("**/sitting")
    go_on(page)
    arrive(page, "posterior")
    assert Belief.objects.get().value == 61 and not page.locator("#unsent").is_visible()


@pytest.mark.thorough
def test_an_error_of_the_server_leaves_the_page_as_it_is(page: Any, live_server: Any) -> None:
    open_study()
    begin(page, live_server)
    page.locator(VALUE).fill("61")
    page.route("**/sitting", lambda route: route.fulfill(status=503, body="later"))
    go_on(page)
    assert page.locator("#unsent").is_visible() and page.locator(VALUE).input_value() == "61"
    page.unroute("**/sitting")
    page.get_by_role("button", name=CONTINUE, exact=True).dblclick()
    settle(page)
    arrive(page, "posterior")
    assert Belief.objects.count() == 1 and Sitting.objects.get().step == 2


@pytest.mark.thorough
def test_without_a_network_what_was_typed_stays(page: Any, live_server: Any) -> None:
    open_study()
    begin(page, live_server)
    page.locator(VALUE).fill("61")
    page.context.set_offline(True)
    go_on(page)
    assert page.locator("#unsent").is_visible() and page.locator(VALUE).input_value() == "61"
    page.context.set_offline(False)
    go_on(page)
    arrive(page, "posterior")
    assert Belief.objects.get().value == 61


@pytest.mark.thorough
def test_a_remark_leaves_the_page_and_what_was_typed_as_they_are(page: Any, live_server: Any) -> None:
    open_study()
    begin(page, live_server)
    length = page.evaluate("history.length")
    page.locator(VALUE).fill("61")
    page.locator("details.report summary").click()
    page.get_by_label("What is wrong?").fill("odd")
    page.context.set_offline(True)
    page.get_by_role("button", name="Send this remark").click()
    settle(page)
    assert page.locator("#unsent").is_visible() and page.locator(VALUE).input_value() == "61"
    page.context.set_offline(False)
    page.get_by_role("button", name="Send this remark").click()
    page.wait_for_selector("[role=status]:focus")
    assert page.locator(VALUE).input_value() == "61" and QuestionReport.objects.get().text == "odd"
    assert page.evaluate("history.length") == length and page.url.endswith("/s/cast/sitting")
    go_on(page)
    arrive(page, "posterior")
    assert Belief.objects.get().value == 61


@pytest.mark.thorough
def test_a_page_with_scripts_of_its_own_keeps_what_was_typed_too(page: Any, live_server: Any) -> None:
    """Such a page is sent without a document, and the next one is loaded."""
    open_study()
    begin(page, live_server)
    page.evaluate("document.getElementById('step-form').setAttribute('data-exchange', 'document')")
    page.locator(VALUE).fill("101")
    page.context.set_offline(True)
    go_on(page)
    assert page.locator("#unsent").is_visible() and page.locator(VALUE).input_value() == "101"
    page.context.set_offline(False)
    with page.expect_navigation():
        page.get_by_role("button", name=CONTINUE, exact=True).click()
    assert page.locator(VALUE).input_value() == "101" and page.locator(".error-summary").count() == 1
    page.evaluate("document.getElementById('step-form').setAttribute('data-exchange', 'document')")
    page.locator(VALUE).fill("61")
    with page.expect_navigation():
        page.get_by_role("button", name=CONTINUE, exact=True).click()
    arrive(page, "posterior")
    assert Belief.objects.get().value == 61


@pytest.mark.thorough
def test_back_after_a_mistake_sends_nothing_again_without_scripts(browser: Any, live_server: Any) -> None:
    """A browser shows "Confirm Form Resubmission" where a page is the reply to a form."""
    open_study()
    page = browser.new_page(java_script_enabled=False)
    page.goto(f"{live_server.url}/s/cast/")
    page.get_by_role("link", name=CONTINUE).click()
    page.get_by_role("button", name="I agree").click()
    page.locator(VALUE).fill("101")
    page.get_by_role("button", name=CONTINUE, exact=True).click()
    page.wait_for_selector(".error-summary")
    page.locator(VALUE).fill("61")
    page.get_by_role("button", name=CONTINUE, exact=True).click()
    page.wait_for_selector("[data-screen=posterior]")
    answered = page.go_back()
    assert answered is None or answered.request.method == "GET"
    assert page.locator("[data-screen=posterior]").count() == 1 and Belief.objects.count() == 1


# Notes which screen an exchange has shown and whether its slider was there, once all scripts have heard of the page.
WHEN_SHOWN = """() => document.addEventListener("hunch:page", () => queueMicrotask(() => {
  window.shown = {
    screen: document.querySelector("[data-screen]").dataset.screen,
    track: document.querySelector("[data-track]:not([hidden])") !== null,
  };
}))"""


@pytest.mark.parametrize("fate", ["late", "missing", "hanging"])
def test_a_page_comes_with_its_scripts_and_does_not_grow_later(page: Any, live_server: Any, fate: str) -> None:
    """A control that came later would push the one in use out of sight. Scripts that do not come keep no page back."""
    hung: list[Any] = []

    def bring(route: Any) -> None:
        if fate == "missing":
            route.abort()
        elif fate == "hanging":
            hung.append(route)
        else:
            reply = route.fetch()
            page.wait_for_timeout(300)
            route.fulfill(response=reply)

    cast.open_study(
        blocks=[BLOCKS[0], {"kind": "instructions", "text": "One page before the items."}, *BLOCKS[1:]],
        instrument={"kind": "belief_update"},
    )
    sit_down(page, live_server.url, cast.begin(Study.objects.get()))
    page.route("**/number*.js", bring)
    page.evaluate(WHEN_SHOWN)
    go_on(page)
    arrive(page, "prior")
    assert page.evaluate("window.shown") == {"screen": "prior", "track": fate == "late"}
    if fate == "hanging":
        hung.pop().continue_()
        page.wait_for_selector("[data-track]:not([hidden])")
    page.unroute("**/number*.js")
    page.locator(VALUE).fill("61")
    go_on(page)
    arrive(page, "posterior")
    assert page.evaluate("window.shown.track"), "a script that failed was not asked for again"
    assert Belief.objects.get().value == 61
