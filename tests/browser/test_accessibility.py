"""Every page in every state: light and dark, at 320 px, at 400 %, with text spacing; its size, and axe's findings."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from survey.contracts.panels import PanelIds
from survey.models import Sitting
from survey.services.sittings.enrolment import claim_booklet
from survey.services.sittings.expiry import expire_sitting
from survey.services.sittings.links import make_links
from tests import cast
from tests.browser.everything import RIGHT, open_study, sitting_at
from tests.browser.visitor import Visitor, looks_in

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
ENTRANCE = "/s/cast/?PROLIFIC_PID={0}&STUDY_ID=study&SESSION_ID=session{0}"
BUTTONS = {
    "en": {"continue": "Continue", "agree": "I agree and take part", "use": "Use my data"},
    "de": {"continue": "Weiter", "agree": "Ich willige ein und nehme teil", "use": "Meine Daten verwenden"},
}


# Of the page: its kind and screen, whether radio buttons answer it, its variant, its evidence, its first field.
STATE = """() => {
  const find = selector => document.querySelector(selector);
  return [
    find("main").dataset.kind ?? "",
    find("#step-form")?.dataset.screen ?? "feedback",
    find("input[type=radio]") !== null,
    find("[data-part=variant]")?.dataset.value ?? "",
    find("[data-part=evidence]") !== null,
    find("#step-form [name]:not([type=hidden])")?.name ?? "",
  ];
}"""


@pytest.fixture
def visitor(browser: Any, live_server: Any) -> Iterator[Visitor]:
    made = Visitor(browser, live_server.url)
    yield made
    made.close()


def state_of(visitor: Visitor) -> str:
    """A name for the page's state. States that look the same have the same name."""
    kind, screen, by_letters, mode, evidence, first = visitor.page.evaluate(STATE)
    if kind in ("item", "practice"):
        if screen == "own_answer":
            screen += " by letters" if by_letters else " in words"
        elif screen == "posterior":
            screen += " " + mode.split(";")[0].removeprefix("answer_mode=")
            screen += "" if evidence else " without evidence"
        return f"{kind}: {screen}"
    return f"form: {first}" if kind == "form" else kind


def walk(visitor: Visitor, language: str, *, unanswered: Sequence[str] = ()) -> None:
    """Look at every page of a sitting, first as it is shown and then after it was sent without answers.

    Args:
        unanswered: the kinds of pages to send so; all, if none is named.
    """
    page, words = visitor.page, BUTTONS[language]
    for kind in visitor.pages("end"):
        state = state_of(visitor)
        if (
            f"{state}, unanswered" not in visitor.seen
            and kind != "instructions"
            and (not unanswered or kind in unanswered)
        ):
            visitor.look(state, language=language)
            for field in page.locator("[data-prefilled] input:visible").all():
                field.fill("")
            visitor.send_unanswered()
            if page.locator(".error-summary").count():
                visitor.look(f"{state}, unanswered", language=language)
            else:
                visitor.seen.append(f"{state}, unanswered")
                continue
        else:
            visitor.look(state, language=language)
        if kind == "debriefing":
            visitor.press(words["use"])
        else:
            visitor.fill(RIGHT)
            visitor.press(words["continue"])


def begin(visitor: Visitor, person: str, language: str = "en") -> None:
    visitor.go(ENTRANCE.format(person) + f"&language={language}")
    visitor.press(BUTTONS[language]["continue"])
    visitor.press(BUTTONS[language]["agree"])


def hurry(visitor: Visitor, until: str, *, screen: str = "") -> None:
    """Answer the page without checking its look."""
    for _kind in visitor.pages(until, screen=screen):
        visitor.fill(RIGHT)
        visitor.press("Continue")


def outcome(visitor: Visitor) -> str:
    return str(visitor.page.locator("main").get_attribute("data-outcome"))


def refusal(visitor: Visitor) -> str:
    return str(visitor.page.locator("main").get_attribute("data-refused"))


EVERY_FORM = {f"form: {name}" for name in ("adult", "work", "age_group", "frequency", "looked_up", "comment")}


@pytest.mark.thorough
def test_a_whole_sitting_with_every_page_sent_unanswered_first(visitor: Visitor) -> None:
    study = open_study(stages=[{"sittings": 1}])  # One booklet: which items it has descends from the seed.
    visitor.go(ENTRANCE.format("a"))
    visitor.look("welcome")
    visitor.press("Continue")
    visitor.look("consent")
    visitor.send_unanswered()
    visitor.look("consent, unanswered")
    visitor.press("I agree and take part")
    walk(visitor, "en")
    visitor.look("end")
    assert visitor.page.locator("[data-code]").inner_text() == study.completion_code("completed")
    met = {
        *("instructions", "checks", "attention", "debriefing", "practice: feedback", "practice: posterior direction"),
        *("item: prior", "item: explanation", "item: own_answer in words", "item: own_answer by letters"),
        *EVERY_FORM,
    }
    assert met <= set(visitor.seen), met - set(visitor.seen)
    assert {f"{state}, unanswered" for state in met - {"instructions"}} <= set(visitor.seen)
    for mode in ("direction", "blank", "keep_button", "prefilled"):
        assert any(state.startswith(f"item: posterior {mode}") for state in visitor.seen), mode
    assert any(state.endswith("without evidence") for state in visitor.seen)
    assert visitor.problems == []


@pytest.mark.thorough
def test_a_whole_sitting_in_german(browser: Any, live_server: Any) -> None:
    open_study()
    visitor = Visitor(browser, live_server.url, **looks_in("de"))
    visitor.go(ENTRANCE.format("a"))
    visitor.page.get_by_role("link", name="Deutsch").click()
    visitor.look("welcome", language="de")
    visitor.press("Weiter")
    visitor.look("consent", language="de")
    visitor.press("Ich willige ein und nehme teil")
    walk(visitor, "de", unanswered=["checks", "attention"])  # The words of all errors are in test_locale.py.
    visitor.look("end", language="de")
    assert Sitting.objects.get().language == "de" and outcome(visitor) == "completed"
    assert visitor.problems == []
    visitor.close()


@pytest.mark.thorough
def test_what_can_go_wrong_inside_a_sitting(visitor: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    study = open_study()
    page = visitor.page
    visitor.sit_down(sitting_at(study, "checks"))
    visitor.fill(RIGHT, wrong=True)
    visitor.press("Continue")
    visitor.look("checks with hints")
    visitor.fill(RIGHT)
    visitor.press("Continue")
    page.locator("details.report summary").click()
    visitor.look("report, open")
    visitor.press("Send this remark")
    visitor.look("report, empty")
    page.get_by_label("What is wrong?").fill("odd")
    visitor.press("Send this remark")
    visitor.look("report, thanked")
    page.get_by_label("Your answer in percent").fill("101")
    visitor.press("Continue")
    visitor.look("a number that is too high")
    hurry(visitor, "item", screen="posterior")
    while not page.get_by_label("Higher than").count():
        visitor.fill(RIGHT)
        visitor.press("Continue")
    page.get_by_label("Higher than").check()
    visitor.look("a direction, its number asked for")
    visitor.press("Continue")
    visitor.look("a direction without a number")
    page.locator("#id_value").fill("1")
    visitor.press("Continue")
    visitor.look("a direction and a number that contradict")
    expire_sitting(Sitting.objects.get().pk, now=timezone.now() + timedelta(days=1))
    visitor.go("/s/cast/sitting")
    visitor.look("an expired sitting")
    visitor.fill(RIGHT)
    visitor.press("Continue")
    assert Sitting.objects.get().state == Sitting.State.LIVE
    for number in ("x", "99"):
        page.evaluate("number => { document.querySelector('[name=step]').value = number }", number)
        visitor.send_unanswered()
        visitor.look(f"sent as step {number}")
        visitor.press("Go on from where you are")
    visitor.context.clear_cookies(name="csrftoken")
    visitor.send_unanswered()
    visitor.look("403, open for too long")
    monkeypatch.setattr("frontend.views.sitting_for", lambda *_args, **_kwargs: 1 / 0)
    visitor.go("/s/cast/sitting")
    visitor.look("500")
    assert visitor.problems == []


@pytest.mark.thorough
def test_every_other_end_and_coming_back(visitor: Visitor) -> None:
    study = open_study(stages=[{"sittings": 4}])
    visitor.sit_down(sitting_at(study, "checks", person="failing"))
    for _attempt in range(2):
        visitor.fill(RIGHT, wrong=True)
        visitor.press("Continue")
    visitor.look("end: failed checks")
    assert outcome(visitor) == "failed_checks"
    visitor.sit_down(sitting_at(study, "form", person="young"))
    visitor.page.get_by_label("No", exact=True).check()
    visitor.press("Continue")
    visitor.look("end: screened out")
    assert outcome(visitor) == "screened_out"
    visitor.go(ENTRANCE.format("unwilling"))
    visitor.press("Continue")
    visitor.press("I do not agree")
    visitor.look("declined")
    visitor.go("/s/cast/consent")
    visitor.page.evaluate("document.querySelector('[name=words]').value = 'others'")
    visitor.press("I agree and take part")
    visitor.look("consent, changed meanwhile")
    sitting_at(study, "checks", person="slow")
    visitor.context.clear_cookies()
    visitor.go(ENTRANCE.format("slow"))
    visitor.look("welcome, begun")
    visitor.press("Continue where you were")
    assert visitor.kind == "checks"
    visitor.go(ENTRANCE.format("failing"))
    visitor.look("welcome, over")
    visitor.press("Show the last page again")
    assert outcome(visitor) == "failed_checks"
    assert visitor.problems == []


@pytest.mark.thorough
def test_every_refusal_at_the_door(visitor: Visitor) -> None:
    study = open_study(stages=[{"sittings": 2}])
    visitor.go("/")
    visitor.look("root")
    for path in ("/nowhere", "/s/nowhere/", "/s/cast/sitting"):
        visitor.go(path)
        visitor.look(path)
    closed = cast.open_study(slug="closed")
    cast.lifecycle.pause_stage(cast.stage_of(closed))
    linked = cast.open_study(slug="linked", panel={"kind": "links"})
    cast.open_study(slug="generic", panel={"kind": "generic"})
    cast.open_study(slug="other", panel={**cast.PROLIFIC, "exclude_people_of": ["cast"]})
    visitor.sit_down(sitting_at(study, "checks", person="slow"))
    (link,) = make_links(linked, count=1, root=visitor.root)
    doors = {
        f"/s/{closed.slug}/": "closed",
        "/s/cast/?PROLIFIC_PID=slow&STUDY_ID=study&SESSION_ID=another": "already_taken_part",
        "/s/cast/?PROLIFIC_PID=%7B%7B%25PROLIFIC_PID%25%7D%7D&STUDY_ID=a&SESSION_ID=b": "bad_panel_ids",
        "/s/other/?PROLIFIC_PID=slow&STUDY_ID=a&SESSION_ID=b": "took_part_in_another",
        "/s/other/": "no_panel_ids",
        "/s/generic/?pid=%5B%25PID%25%5D": "bad_panel_ids",
        "/s/generic/": "no_panel_ids",
        "/s/linked/": "no_panel_ids",
        link.address[: -len("0123456789")].removeprefix(visitor.root) + "0123456789": "unknown_link",
    }
    for path, code in doors.items():
        visitor.go(path)
        assert refusal(visitor) == code, path
        visitor.look(f"{code} at {path.split('?')[0]}")
    visitor.go(link.address.removeprefix(visitor.root))
    visitor.press("Continue")
    visitor.press("I agree and take part")
    visitor.context.clear_cookies()
    visitor.go(link.address.removeprefix(visitor.root))
    visitor.look("a link that was used")
    # The last places are taken while one person is still at the checks and another one on the first page.
    visitor.go(ENTRANCE.format("slow"))
    visitor.press("Continue where you were")
    expire_sitting(Sitting.objects.get(stage__study=study).pk, now=timezone.now() + timedelta(days=1))
    for person in ("b", "c"):
        faster = cast.begin(study, PanelIds("prolific", person, "study", f"session{person}"))
        assert claim_booklet(faster, now=timezone.now())
        faster.save(update_fields=["booklet"])
    visitor.fill(RIGHT)
    visitor.press("Continue")
    visitor.look("end: full")
    assert outcome(visitor) == "study_full"
    visitor.go(ENTRANCE.format("late"))
    assert refusal(visitor) == "full"
    visitor.look("full at the door")
    assert visitor.problems == []


@pytest.mark.thorough
def test_what_is_wrong_with_a_page_is_found(visitor: Visitor) -> None:
    """Otherwise the other tests here could find nothing on any page."""
    visitor.sit_down(sitting_at(open_study(), "item"))
    visitor.page.evaluate("""() => {
      document.querySelector("label[for=id_value]").remove();
      document.querySelector(".progress").style.color = "#999";
      document.documentElement.lang = "xx";
      document.querySelector("main").insertAdjacentHTML("beforeend",
        "<h1>Another</h1><img src='https://example.org/a.png'>");
      document.querySelector("h1").style.width = "400px";
    }""")
    visitor.page.wait_for_timeout(100)
    visitor.look("spoilt")
    text = "\n".join(visitor.problems)
    for sign in ("label:", "color-contrast:", "image-alt:", "lang is xx", "2 main headings", "px wide", "console: "):
        assert sign in text, sign
