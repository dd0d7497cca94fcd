"""Self-paced reading in a real browser: space bar, tap, held key, background, second window, no script, layouts."""

import csv
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from survey.instruments.self_paced_reading.models import PassageAnswer, WordTimes
from survey.models import Sitting
from tests import cast
from tests.browser.visitor import IN_TWO_LANGUAGES, Visitor, looks_in

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
TEXTS = (
    "The <b>lighthouse</b> keeper & his extraordinarily-long-compound-word-of-the-lighthouse-keeper went out again.",
    "שלום עולם זה משפט ארוך מאוד מאוד.",
    "A short text.",
)
RUNNING = "[data-window].running"
# What a page hidden by the person looks like to its script.
HIDE = """() => {
  Object.defineProperty(document, "hidden", { value: true, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}"""
UNCOVERED = "() => [...document.querySelectorAll('[data-window] span:not(.masked)')].map(word => word.textContent)"


@pytest.fixture
def study(tmp_path: Path) -> Any:
    path = tmp_path / "passages.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(("id", "source", "text", "question", "answer"))
        rows.writerows((f"t{number}", "s", text, "Is it <i>so</i>?", "yes") for number, text in enumerate(TEXTS))
    call_command("import_questions", str(path), bank="passages", format="passages", html=True)
    return cast.open_study(
        bank="passages",
        instrument={"kind": "self_paced_reading"},
        candidates={"size": 60},
        sitting={"items": 3},
        stages=[{"sittings": 1}],
        title={"en": "Texts", "de": "Texte"},
        **IN_TWO_LANGUAGES,
    )


def start(page: Any) -> int:
    """Begin the passage; how many words it has."""
    page.locator("[data-start]").click()
    page.wait_for_selector(RUNNING)
    return page.locator("[data-window] span").count()


def read_by_space(page: Any, words: int) -> None:
    for _press in range(words + 1):
        page.keyboard.press("Space")
    page.wait_for_selector("[data-screen=passage_question]")


def answer(page: Any) -> None:
    page.get_by_label("Yes", exact=True).or_(page.get_by_label("Ja", exact=True)).check()
    page.locator("#step-form button[type=submit]").click()
    page.wait_for_selector("[data-screen=passage], [data-kind=end]")


@pytest.mark.thorough
@pytest.mark.parametrize("language", ["en", "de"])
def test_the_page_fits_and_is_read_by_the_space_bar(study: Any, browser: Any, live_server: Any, language: str) -> None:
    visitor = Visitor(browser, live_server.url, **looks_in(language))
    page = visitor.page
    visitor.begin(study.slug, language)
    for number in range(3):
        if number == 0:
            visitor.look("passage before the start", language=language)
        words = start(page)
        assert page.evaluate(UNCOVERED) == []
        page.keyboard.press("Space")
        page.keyboard.press("Space")
        (window_text,) = page.evaluate(UNCOVERED)
        assert window_text == page.locator("[data-window] span").nth(1).text_content()
        visitor.look("passage at its second word", language=language)
        # A key that is held down calls no further word.
        page.keyboard.down("Space")
        page.keyboard.down("Space")
        page.keyboard.up("Space")
        assert len(page.evaluate(UNCOVERED)) == 1
        assert page.evaluate(UNCOVERED) == [page.locator("[data-window] span").nth(2).text_content()] or words == 3
        read_by_space(page, words - 3)
        if number == 0:
            visitor.look("question", language=language)
        answer(page)
    assert visitor.problems == []
    times = list(WordTimes.objects.all())
    assert sorted(len(time.times) for time in times) == sorted(len(text.split()) for text in TEXTS)
    assert {time.means for time in times} == {"key"} and PassageAnswer.objects.filter(right=True).count() == 3
    assert all(time.server_ms is not None and sum(time.times) <= time.server_ms + 2000 for time in times)
    visitor.close()


def test_taps_count_and_a_page_in_the_background_is_marked(study: Any, browser: Any, live_server: Any) -> None:
    visitor = Visitor(browser, live_server.url, has_touch=True)
    page = visitor.page
    visitor.begin(study.slug)
    words = start(page)
    for _tap in range(words + 1):
        page.locator("[data-window]").tap()
    page.wait_for_selector("[data-screen=passage_question]")
    answer(page)
    words = start(page)
    page.keyboard.press("Space")
    page.evaluate(HIDE)
    read_by_space(page, words - 1)
    first, second = WordTimes.objects.order_by("pk")
    assert first.means == "tap" and "background" not in first.marks
    assert "background" in second.marks
    visitor.close()


# A device that sleeps: the clock of the day goes on, and the one of the page does not.
SLEPT = "() => { const now = Date.now.bind(Date); Date.now = () => now() + 40000; }"


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("what", "mark"),
    [
        (SLEPT, "clock"),
        ("() => { const now = Date.now.bind(Date); Date.now = () => now() - 7200000; }", "clock"),
        (
            "() => document.dispatchEvent(new Event('freeze')) && window.dispatchEvent(new Event('freeze'))",
            "background",
        ),
        ("() => window.dispatchEvent(new Event('blur'))", "focus"),
    ],
)
def test_what_happens_to_a_device_in_the_middle_of_a_passage_is_marked(
    study: Any, browser: Any, live_server: Any, what: str, mark: str
) -> None:
    visitor = Visitor(browser, live_server.url)
    page = visitor.page
    visitor.begin(study.slug)
    words = start(page)
    page.keyboard.press("Space")
    page.evaluate(what)
    read_by_space(page, words - 1)
    assert mark in WordTimes.objects.get().marks
    visitor.close()


def test_a_passage_that_is_loaded_again_in_the_middle_is_marked(study: Any, browser: Any, live_server: Any) -> None:
    visitor = Visitor(browser, live_server.url)
    page = visitor.page
    visitor.begin(study.slug)
    words = start(page)
    page.keyboard.press("Space")
    page.reload()
    assert start(page) == words
    read_by_space(page, words)
    assert "opened_again" in WordTimes.objects.get().marks
    visitor.close()


@pytest.mark.thorough
def test_a_second_window_marks_the_passage_in_both(study: Any, browser: Any, live_server: Any) -> None:
    visitor = Visitor(browser, live_server.url)
    visitor.begin(study.slug)
    words = start(visitor.page)
    other = visitor.context.new_page()
    other.goto(visitor.page.url)
    assert start(other) == words
    read_by_space(other, words)
    (word_times,) = WordTimes.objects.all()
    assert {"second_window", "opened_again"} <= set(word_times.marks)
    visitor.close()


@pytest.mark.thorough
def test_without_script_nobody_comes_in(study: Any, browser: Any, live_server: Any) -> None:
    visitor = Visitor(browser, live_server.url, java_script_enabled=False)
    visitor.go(f"/s/{study.slug}/")
    note = visitor.page.locator(".note p").first
    assert note.is_visible() and "This study needs JavaScript" in str(note.text_content())
    assert not visitor.page.locator("[data-action=begin]").is_visible()
    visitor.go(f"/s/{study.slug}/consent")
    visitor.press("I agree and take part")
    assert visitor.page.locator("h1").text_content() == "This study needs JavaScript"
    assert Sitting.objects.count() == 0
    visitor.close()
