"""Admin, Swagger UI and documents in a real browser under our content policy: it blocks nothing that they need."""

from typing import Any

import pytest
from django.contrib.auth.models import User

pytestmark = [pytest.mark.browser, pytest.mark.thorough]


@pytest.fixture
def complaints() -> list[str]:
    return []


@pytest.fixture
def page(browser: Any, complaints: list[str]) -> Any:
    """A page that records everything the content policy blocks and every error of a script."""
    page = browser.new_page()
    page.on(
        "console",
        lambda message: complaints.append(message.text) if "Content Security Policy" in message.text else None,
    )
    page.on("pageerror", lambda error: complaints.append(str(error)))
    return page


def test_swagger_ui_shows_the_schema(page: Any, complaints: list[str], live_server: Any) -> None:
    page.goto(f"{live_server.url}/api/docs/")
    page.wait_for_selector(".swagger-ui .info .title")
    assert "Hunch" in page.inner_text(".swagger-ui .info .title")
    assert complaints == []


def test_a_researcher_logs_into_the_admin(page: Any, complaints: list[str], live_server: Any, admin_user: User) -> None:
    page.goto(f"{live_server.url}/admin/")
    page.fill("[name=username]", "admin")
    page.fill("[name=password]", "password")
    page.click("[type=submit]")
    page.wait_for_selector("#user-tools")
    page.click(".theme-toggle")
    assert page.evaluate("getComputedStyle(document.querySelector('#header')).backgroundColor") != "rgba(0, 0, 0, 0)"
    assert complaints == []


def test_the_documents_are_searched_and_read(page: Any, complaints: list[str], live_server: Any) -> None:
    page.goto(f"{live_server.url}/docs/")
    page.get_by_label("Search").fill("attention check")
    page.keyboard.press("Enter")
    page.get_by_role("link", name="The study file: [[sitting.attention_checks]]").click()
    page.wait_for_url("**/docs/study-file.html#sittingattention_checks")
    assert page.locator('[id="sittingattention_checks"]').is_visible()
    page.goto(f"{live_server.url}/docs/idea.html")
    assert page.locator("main img").evaluate("image => image.complete && image.naturalWidth > 100")
    assert complaints == []
