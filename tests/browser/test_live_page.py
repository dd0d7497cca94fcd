"""The study page in a real browser: it refreshes by itself, keeps what one has opened, and fits a phone."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client

from tests.browser.everything import open_study, take_part
from tests.browser.visitor import Visitor

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
WIDER = "document.documentElement.scrollWidth > innerWidth"
HIDDEN = """() => [...document.querySelectorAll(".hunch-stack, .hunch-wide")]
    .filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => one.textContent.slice(0, 80))"""


@pytest.fixture
def researcher(browser: Any, live_server: Any, admin_user: User) -> Iterator[Visitor]:
    client = Client()
    client.force_login(admin_user)
    visitor = Visitor(browser, live_server.url)
    visitor.page.set_viewport_size({"width": 390, "height": 844})
    name = settings.SESSION_COOKIE_NAME
    visitor.context.add_cookies([{"name": name, "value": client.cookies[name].value, "url": live_server.url}])
    yield visitor
    visitor.close()


def test_it_refreshes_by_itself_and_keeps_what_is_open(researcher: Visitor) -> None:
    study = open_study(stages=[{"sittings": 3}])
    take_part(study, "first")
    page = researcher.page
    page.goto(f"{researcher.root}/admin/survey/study/{study.pk}/change/")
    assert page.get_by_text("1 arrived, 1 finished").count() == 1
    page.locator("#arrivals-numbers summary").click()
    take_part(study, "second")
    page.get_by_text("2 arrived, 2 finished").wait_for()
    assert page.locator("#arrivals-numbers").get_attribute("open") is not None
    assert page.get_by_role("button", name="Save as PNG: People who arrived, by the hour").count() == 1
    assert researcher.problems == []


@pytest.mark.thorough
def test_a_figure_is_saved_as_png(researcher: Visitor) -> None:
    study = open_study(stages=[{"sittings": 3}])
    take_part(study, "first")
    page = researcher.page
    page.goto(f"{researcher.root}/admin/survey/study/{study.pk}/reports/live/")
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Save as PNG: Beliefs before the evidence").click()
    content = waiting.value.path().read_bytes()
    assert waiting.value.suggested_filename == "beliefs-before-the-evidence.png"
    assert content.startswith(b"\x89PNG") and len(content) > 5000
    figure = page.locator(".hunch-figure").first
    figure.locator("svg").focus()
    page.keyboard.press("ArrowRight")
    first = figure.locator(".hunch-number").inner_text()
    page.keyboard.press("ArrowRight")
    assert "%" in first and "%" in figure.locator(".hunch-number").inner_text() != first
    assert researcher.problems == []


@pytest.mark.thorough
def test_nothing_is_hidden_beside_the_screen_of_a_phone(researcher: Visitor) -> None:
    study = open_study(stages=[{"sittings": 3}])
    take_part(study, "first")
    sitting = study.stages.get(index=1).sittings.get()
    for address in (f"study/{study.pk}/change/", f"study/{study.pk}/reports/live/", f"sitting/{sitting.pk}/replay/"):
        researcher.page.goto(f"{researcher.root}/admin/survey/{address}")
        assert not researcher.page.evaluate(WIDER), address
        assert researcher.page.evaluate(HIDDEN) == [], address
