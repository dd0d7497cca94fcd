"""Every linked page of the admin, in a real browser, for a study that has everything."""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client

from survey.models import Sitting
from survey.services.sittings.comments import report_question
from survey.services.sittings.expiry import expire_sitting
from survey.services.stages import jobs, lifecycle
from tests.browser.everything import ATTENTION, open_study, take_part
from tests.browser.visitor import Visitor

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True), pytest.mark.thorough]
# Whether the page has a heading, whether it is wider than the screen, and where it leads to.
FACTS = """() => [
  document.querySelector("h1, h2") !== null,
  document.documentElement.scrollWidth > innerWidth,
  [...document.querySelectorAll("a[href]")].map(link => link.href),
]"""
# These lead out of the admin, end the login, or give a file.
LEFT_OUT = re.compile(r"/(auth|history|logout|password_change|jsi18n|export)/|/reports/[^/]+/[^/]+$")


@pytest.fixture
def researcher(browser: Any, live_server: Any, admin_user: User) -> Iterator[Visitor]:
    client = Client()
    client.force_login(admin_user)
    visitor = Visitor(browser, live_server.url)
    visitor.page.set_viewport_size({"width": 1280, "height": 900})
    name = settings.SESSION_COOKIE_NAME
    visitor.context.add_cookies([{"name": name, "value": client.cookies[name].value, "url": live_server.url}])
    yield visitor
    visitor.close()


def test_every_page_that_a_link_leads_to_opens_without_a_complaint(researcher: Visitor) -> None:
    study = open_study(
        stages=[{"sittings": 2}, {"sittings": 3}],
        sitting={"items": 3, "attention_checks": [ATTENTION]},
        predictor={"name": "same_task"},
        flags={"speeder": {}, "attention": {}},
    )
    take_part(study, "first")
    jobs.run_inline(lifecycle.close_stage(study.stages.select_related("study__bank").get(index=1)))
    lifecycle.open_stage(study.stages.select_related("study__bank").get(index=2))
    take_part(study, "second")
    for person in ("third", "fourth"):
        take_part(study, person, pages=9)
    asked, gone = Sitting.objects.order_by("-pk")[:2]
    report_question(sitting=asked, position="1", screen="prior", text="odd")
    expire_sitting(gone.pk, now=gone.last_seen_at)
    waiting = [f"{researcher.root}/admin/"]
    known: set[str] = set()
    while waiting:
        address = waiting.pop(0)
        # One page of each kind is enough, for any row.
        kind = re.sub(r"[0-9]+", "1", urlsplit(address).path)
        if kind in known or not kind.startswith("/admin/") or LEFT_OUT.search(kind):
            continue
        known.add(kind)
        answer = researcher.page.goto(address)
        assert answer.status == 200, address
        has_heading, is_wider, links = researcher.page.evaluate(FACTS)
        assert has_heading, address
        if is_wider:
            researcher.problems.append(f"wider than 1280 px: {address}")
        waiting += links
    for page in ("leaderboard", "estimates", "budget", "amend", "try"):
        assert any(kind.endswith(f"/{page}/") for kind in known), page
    assert len(known) > 40
    assert researcher.problems == []
