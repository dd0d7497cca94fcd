"""The browser that all tests of a process share: what one leaves there, the next does not find."""

from typing import Any

import pytest

from tests.browsing import Browser

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True), pytest.mark.thorough]
STORE = """async () => {
  localStorage.setItem("left", "1");
  sessionStorage.setItem("left", "1");
  await caches.open("left");
}"""
STORED = """async () => [
  localStorage.length, sessionStorage.length, (await caches.keys()).length, history.length, document.cookie,
  (await navigator.permissions.query({name: "clipboard-read"})).state,
]"""


@pytest.mark.parametrize("ends", ["there", "elsewhere", "closed"])
def test_nothing_of_a_test_is_left_to_the_next(browser: Browser, live_server: Any, ends: str) -> None:
    address = f"{live_server.url}/nowhere"
    page = browser.new_page(viewport={"width": 320, "height": 640}, color_scheme="dark")
    page.goto(address)
    clean = page.evaluate(STORED)
    assert clean == [0, 0, 0, 2, "", "prompt"]
    page.context.add_cookies([{"name": "left", "value": "1", "url": live_server.url}])
    page.context.grant_permissions(["clipboard-read"])
    page.evaluate(STORE)
    page.goto(f"{live_server.url}/")
    assert page.evaluate(STORED) == [1, 1, 1, 3, "left=1", "granted"]
    page.context.route("**/*", lambda route: route.abort())
    page.context.set_offline(True)
    if ends == "elsewhere":
        page.goto("about:blank")
    elif ends == "closed":
        page.close()
    browser.empty()
    assert page.is_closed()
    other = browser.new_page(viewport={"width": 320, "height": 640})
    other.goto(address)
    assert other.context == page.context and other.evaluate(STORED) == clean
    assert not other.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
