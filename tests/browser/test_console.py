"""The main pages of the admin in a real browser, each once: axe at the levels AA and AAA, and nothing hidden next to
the screen of a phone or of a desk."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from survey.models import Delivery, Receiver, Sitting, Study
from survey.services.base import jobs as asked_jobs
from survey.services.sittings.comments import report_question
from survey.services.stages import jobs, lifecycle
from tests.browser.everything import ATTENTION, open_study, take_part
from tests.browser.visitor import AXE, RULES, SIZES, Visitor, use_axe

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True), pytest.mark.thorough]
STRICT = {**RULES, "runOnly": {"type": "tag", "values": [*RULES["runOnly"]["values"], "wcag2aaa"]}}
# On a phone the same page has other sizes, and the same names, roles and colours.
RULES_AT = {1280: STRICT, 390: SIZES}
WIDER = "document.documentElement.scrollWidth > innerWidth"
# Parts of a page that scroll sideways, but for texts of files: their lines may be long.
SIDEWAYS = """() => [...document.querySelectorAll("#content *")]
    .filter((one) => !one.matches("textarea, pre, input, select") && getComputedStyle(one).overflowX !== "visible"
                     && one.clientWidth > 20 && one.scrollWidth > one.clientWidth + 1)
    .map((one) => `${one.tagName}.${one.className}: ${one.textContent.trim().slice(0, 60)}`)"""


@pytest.fixture
def researcher(browser: Any, live_server: Any, admin_user: User) -> Iterator[Visitor]:
    client = Client()
    client.force_login(admin_user)
    visitor = Visitor(browser, live_server.url)
    name = settings.SESSION_COOKIE_NAME
    visitor.context.add_cookies([{"name": name, "value": client.cookies[name].value, "url": live_server.url}])
    yield visitor
    visitor.close()


def a_study_with_everything() -> Study:
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
    take_part(study, "third", pages=9)
    report_question(sitting=Sitting.objects.order_by("-pk")[0], position="1", screen="prior", text="odd " * 40)
    jobs.run_inline(lifecycle.close_stage(study.stages.select_related("study__bank").get(index=2), now=True))
    return study


def a_receiver_of(study: Study) -> Receiver:
    receiver = Receiver.objects.create(
        study=study, kind="webhook", shown="hooks.example.org", sealed=b"", causes=["stage_full"], since=timezone.now()
    )
    Delivery.objects.create(
        receiver=receiver,
        event="stage_full",
        body={"subject": "stage 1", "state": "open"},
        due_at=timezone.now(),
        answer="It answered 503 Service Unavailable after some seconds.",
    )
    return receiver


def test_the_main_pages_are_for_everybody_and_fit_a_phone(researcher: Visitor, admin_user: User) -> None:
    study = a_study_with_everything()
    receiver = a_receiver_of(study)
    asked_jobs.ask(study, "export", {}, by=admin_user)
    of_study = f"survey/study/{study.pk}"
    pages = {
        "home": "",
        "study": f"{of_study}/change/",
        "new study": "survey/study/add/",
        "editor": f"{of_study}/amend/",
        "bank upload": "survey/bank/add/",
        "try out": f"{of_study}/try/",
        "members": f"{of_study}/members/",
        "receivers": f"{of_study}/receivers/",
        "receiver": f"{of_study}/receivers/{receiver.pk}/",
        "leaderboard": f"{of_study}/leaderboard/",
        "estimates": f"{of_study}/estimates/?by=outcome",
        "live": f"{of_study}/reports/live/",
        "methods": f"{of_study}/reports/methods/",
        "replay": f"survey/sitting/{Sitting.objects.order_by('pk')[0].pk}/replay/",
        "jobs": "survey/job/",
        "export": f"survey/job/ask/{study.pk}/export/",
    }
    page = researcher.page
    for name, address in pages.items():
        answer = page.goto(f"{researcher.root}/admin/{address}")
        assert answer.status == 200, name
        for width, rules in RULES_AT.items():
            page.set_viewport_size({"width": width, "height": 900})
            say = f"{name} at {width} px: "
            if page.evaluate(WIDER):
                researcher.problems.append(say + "wider than the screen")
            researcher.problems += [say + problem for problem in page.evaluate(SIDEWAYS)]
            if name == "study":  # What is folded is looked at too.
                page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
            use_axe(page)
            researcher.problems += [say + problem for problem in page.evaluate(AXE, rules)]
    assert researcher.problems == []


def test_lists_hide_no_column_on_a_phone(researcher: Visitor) -> None:
    study = open_study(stages=[{"sittings": 3}])
    take_part(study, "first")
    page = researcher.page
    page.set_viewport_size({"width": 390, "height": 844})
    for address in ("sitting/", "assignment/", "auditentry/", "question/"):
        page.goto(f"{researcher.root}/admin/survey/{address}")
        page.locator("#result_list.hunch-stack").wait_for()
        assert page.evaluate(SIDEWAYS) == [], address
    assert researcher.problems == []


def test_a_link_on_the_study_page_unfolds_what_it_leads_to(researcher: Visitor) -> None:
    study = open_study(stages=[{"sittings": 3}])
    take_part(study, "first")
    page = researcher.page
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto(f"{researcher.root}/admin/survey/study/{study.pk}/change/")
    assert not page.locator("#stage-1").is_visible()
    page.locator("#to-stage-1").click()
    page.locator("#stage-1").wait_for(state="visible")
    assert researcher.problems == []


def test_the_meaning_of_a_word_opens_by_key_and_by_touch(researcher: Visitor) -> None:
    study = open_study(stages=[{"sittings": 3}])
    take_part(study, "first")
    page = researcher.page
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(f"{researcher.root}/admin/survey/study/{study.pk}/change/")
        word = page.locator("button.hunch-term", has_text="Counted").first
        meaning = page.locator(".hunch-note", has_text="Answers that were complete in time").first
        assert not meaning.is_visible()
        word.focus()
        page.keyboard.press("Enter")
        meaning.wait_for(state="visible")
        page.keyboard.press("Escape")
        meaning.wait_for(state="hidden")
        word.click()
        meaning.wait_for(state="visible")
        box = meaning.bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= width, "it fits the screen"
        page.mouse.click(2, 2)
        meaning.wait_for(state="hidden")
    assert researcher.problems == []
