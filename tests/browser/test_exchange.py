"""An answer and its next page in one exchange, in a real browser: title, focus, history, and a broken connection."""

from collections.abc import Iterator
from typing import Any

import pytest

from survey.instruments.belief_update.models import Belief
from survey.models import Response, Sitting
from tests.browser.test_belief_item import CONTINUE, VALUE, arrive, begin, go_on, open_study
from tests.browser.test_sitting import look, page_of
from tests.browser.visitor import settle

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def complaints() -> list[str]:
    return []


@pytest.fixture(params=["light"])
def page(request: Any, browser: Any, complaints: list[str]) -> Iterator[Any]:
    yield from page_of(browser, complaints, color_scheme=request.param)


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
    assert page.title() != first and page.title().startswith("And now?")
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
