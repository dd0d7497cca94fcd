"""The pages that ask before an action about a posting or a person, on the screen of a small phone."""

from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client

from survey.models import Sitting
from survey.panels import postings
from survey.panels.prolific.fake import FakeProlific
from survey.panels.submissions import read_posting
from tests.browser.visitor import Visitor
from tests.panels.conftest import fake, signing_key
from tests.panels.world import arrives, begins, posted

__all__ = ["fake", "signing_key"]
pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True), pytest.mark.thorough]


def test_no_page_that_asks_is_wider_than_a_small_phone(
    browser: Any, live_server: Any, admin_user: User, fake: FakeProlific
) -> None:
    posting = posted(publish=False)
    at_posting = f"/admin/survey/posting/{posting.pk}"
    client = Client()
    client.force_login(admin_user)
    visitor = Visitor(browser, live_server.url)
    visitor.page.set_viewport_size({"width": 320, "height": 640})
    cookie = settings.SESSION_COOKIE_NAME
    visitor.context.add_cookies([{"name": cookie, "value": client.cookies[cookie].value, "url": live_server.url}])

    def assert_fits(address: str) -> None:
        assert visitor.page.goto(live_server.url + address).status == 200, address
        assert visitor.page.locator(".hunch-confirm").count() == 1, f"{address} does not ask"
        assert visitor.page.evaluate("document.documentElement.scrollWidth") <= 320, f"{address} is too wide"

    for rest in ("do/publish", "schedule", "places"):
        assert_fits(f"{at_posting}/{rest}/")
    postings.publish(posting, cents=posting.cost, by=admin_user, via="admin")
    place = arrives(fake, posting)
    begins(posting.study, place)
    fake.submit(place["id"], posting.study.completion_code("completed"))
    read_posting(posting)
    at_person = f"/admin/survey/sitting/{Sitting.objects.get().pk}"
    for address in (f"{at_posting}/do/approve/", f"{at_person}/do/approve/", f"{at_person}/do/reject/"):
        assert_fits(address)
    visitor.close()
