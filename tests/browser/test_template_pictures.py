"""The pictures of the templates: the page on which people answer, made from the template itself by

python -m tests.renew pictures
"""

from typing import Any

import pytest
from django.conf import settings

from survey.services.studies.file_texts import STARTING_FILES
from tests.browser.test_console import researcher
from tests.browser.visitor import Visitor

__all__ = ["researcher"]  # A fixture.
FOLDER = settings.BASE_DIR / "survey/static/survey/templates"
SIZE = {"width": 480, "height": 360}
# What a page costs a browser that shows all of them.
LARGEST = 40_000
ITEM_PAGE = """async () => {
  const body = new FormData(document.getElementById("builder"));
  body.set("look", "items");
  return (await fetch(location.href, { method: "POST", body })).text();
}"""
HEADERS_GONE = (
    "header, footer, .progress-bar, .progress, .institution { display: none !important } "
    "body { margin: 0; padding-top: 0; border: 0; zoom: .8 }"
)


def test_each_template_has_a_small_picture_and_no_other_is_there() -> None:
    pictures = {path.name: path.read_bytes() for path in FOLDER.glob("*.png")}
    assert set(pictures) == {f"{one.picture}.png" for one in STARTING_FILES}
    for name, content in pictures.items():
        assert content.startswith(b"\x89PNG") and len(content) < LARGEST, name


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.django_db(transaction=True)
def test_they_show_the_pages_on_which_people_answer(researcher: Visitor, request: pytest.FixtureRequest) -> None:
    page, look = researcher.page, researcher.context.new_page()
    look.set_viewport_size(SIZE)
    for one in {one.picture: one for one in reversed(STARTING_FILES)}.values():
        page.goto(f"{researcher.root}/admin/survey/study/add/")
        with page.expect_navigation(timeout=120_000):
            page.get_by_role("button", name=f"Begin with {one.title}", exact=True).click()
        html: Any = page.evaluate(ITEM_PAGE)
        look.unroute_all()
        look.route(
            f"{researcher.root}/look",
            lambda route, _request, html=html: route.fulfill(body=html, content_type="text/html; charset=utf-8"),
        )
        look.goto(f"{researcher.root}/look")
        assert look.locator("main[data-kind=item]").count() == 1, one.name
        look.add_style_tag(content=HEADERS_GONE)
        if request.config.getoption("--renew"):
            FOLDER.mkdir(exist_ok=True)
            look.screenshot(path=str(FOLDER / f"{one.picture}.png"), animations="disabled")
