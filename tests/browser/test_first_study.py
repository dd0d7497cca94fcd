"""A researcher's whole way in a browser, by clicks and typing alone: from an empty server to an open study on a table
of their own, and to its results, its data and their package. The study's file is never shown.
"""

import io
import json
import zipfile
from collections.abc import Iterator
from typing import Any

import pytest

from survey.models import Job, Sitting, Stage, Study
from survey.services.base import first_account
from survey.services.base import jobs as asked_jobs
from survey.services.sittings import debriefing
from survey.services.sittings.answering import advance
from survey.services.sittings.flow import current_step
from survey.services.stages import jobs
from tests import cast
from tests.browser.test_console import RULES_AT, SIDEWAYS, WIDER
from tests.browser.visitor import AXE, COLOURS, RESTYLE, Visitor, use_axe

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True), pytest.mark.thorough]
MOST_CLICKS = 25  # From the empty server to the open study.
PASSWORD = "a long enough word"
# Latin-1, semicolons, German headings, no ids: as Excel in Germany saves a table.
COUNTRIES = ("Österreich", "Dänemark", "Ägypten", "Türkei", "Rumänien", "Südkorea", "Äthiopien", "Frankreich")
OPPOSITES = ("groß", "heiß", "süß", "müde", "früh", "schön", "höflich", "dünn")
TABLE = "Thema;Fragetext;Lösung;Anmerkung\n" + "".join(
    [f"Hauptstädte;Was ist die Hauptstadt von {name}?;{number};-\n" for number, name in enumerate(COUNTRIES)]
    + [f"Gegenteile;Was ist das Gegenteil von {name}?;{number};-\n" for number, name in enumerate(OPPOSITES)]
)
TEXTS = {
    "title.en": "What does a machine know?",
    "title.de": "Was weiß eine Maschine?",
    "texts.welcome.en": "Thank you for coming. You will see {items} questions.",
    "texts.welcome.de": "Danke, dass Sie da sind. Sie sehen {items} Fragen.",
    "texts.contact.en": "survey@university.example",
    "texts.contact.de": "survey@university.example",
}
FRAMINGS = {
    "plain": ("You will see some questions.", "Sie sehen einige Fragen."),
    "warm": ("We are glad that you help us.", "Wir freuen uns, dass Sie helfen."),
    "brief": ("Read, then answer.", "Lesen Sie, dann antworten Sie."),
}


class Researcher:
    """Somebody at a browser who counts their own clicks. What they type and the keys that they press are no clicks."""

    def __init__(self, visitor: Visitor) -> None:
        self.visitor, self.page, self.clicks = visitor, visitor.page, 0

    def click(self, target: Any, *, leads_on: bool = True) -> None:
        self.clicks += 1
        if leads_on:
            with self.page.expect_navigation():
                target.click()
        else:
            target.click()

    def press(self, name: str, **options: Any) -> None:
        self.click(self.page.get_by_role("button", name=name, exact=True), **options)

    def follow(self, name: str) -> None:
        self.click(self.page.get_by_role("link", name=name, exact=True))

    def type(self, name: str, words: str) -> None:
        self.page.locator(f'[id="in-{name}"]').fill(words)


@pytest.fixture
def newcomer(browser: Any, live_server: Any) -> Iterator[Researcher]:
    visitor = Visitor(browser, live_server.url)
    visitor.page.set_viewport_size({"width": 1280, "height": 900})
    yield Researcher(visitor)
    visitor.close()


def make_the_account(one: Researcher) -> None:
    secret = first_account.offer()
    assert secret
    one.visitor.go(first_account.path(secret))  # As `hunch up` prints it.
    for name, words in {"username": "ada", "password": PASSWORD, "again": PASSWORD}.items():
        one.page.locator(f"[name={name}]").fill(words)
    one.press("Make the account")


def store_the_table(one: Researcher) -> None:
    one.follow("New bank")
    with one.page.expect_file_chooser() as chooser:
        one.click(one.page.locator("input[type=file]"), leads_on=False)
    chooser.value.set_files([{"name": "fragen.csv", "mimeType": "text/csv", "buffer": TABLE.encode("latin-1")}])
    one.press("Look at the file")
    one.press("Store the bank")


def build_the_study(one: Researcher) -> None:
    one.follow("New study with this bank")
    one.press("Begin with What the belief item can do")  # It has texts in two languages, and checks.
    for name, words in TEXTS.items():
        one.type(name, words)
    one.press("Add: condition")
    one.type("conditions.2.factor", "framing")
    one.type("conditions.2.levels", "\n".join(FRAMINGS))
    with one.page.expect_navigation():  # Each level then has boxes of its own.
        one.page.keyboard.press("Tab")
    card = one.page.locator("[data-entry='conditions.2']")
    one.click(card.locator("summary", has_text="What each level changes in the texts"), leads_on=False)
    for level, both in FRAMINGS.items():
        for code, words in zip(("en", "de"), both, strict=True):
            one.type(f"conditions.2.texts.{level}.instructions.{code}", words)
    one.press("Add: form")
    form = one.page.locator("[data-entry^='blocks.']", has=one.page.locator("legend", has_text="form_1")).last
    place = form.get_attribute("data-entry")
    for name, words in {
        "label.en": "Do you use such programs?",
        "label.de": "Nutzen Sie solche Programme?",
        "options.en": "Yes\nNo\nSometimes",
        "options.de": "Ja\nNein\nManchmal",
    }.items():
        one.type(f"{place}.fields.1.{name}", words)
    one.click(form.get_by_role("button", name="Add: field"))
    one.clicks += 1
    with one.page.expect_navigation():
        one.page.locator(f'[id="in-{place}.fields.2.kind"]').select_option("number")
    for name, words in {"name": "age", "label.en": "How old are you?", "label.de": "Wie alt sind Sie?"}.items():
        one.type(f"{place}.fields.2.{name}", words)
    one.press("Make the study")


def open_it(one: Researcher) -> None:
    one.click(one.page.locator("#do-next"))
    one.press("Open")


def test_from_an_empty_server_to_the_data_of_a_study_of_ones_own(newcomer: Researcher) -> None:
    one = newcomer
    make_the_account(one)
    store_the_table(one)
    build_the_study(one)
    open_it(one)
    study = Study.objects.get()
    assert study.stages.get().state == Stage.State.OPEN
    assert one.clicks <= MOST_CLICKS
    config = study.config
    assert config.bank == "fragen" and config.languages == ("en", "de")
    assert config.in_language("de").title == TEXTS["title.de"]
    assert [condition.levels for condition in config.conditions][-1] == list(FRAMINGS)
    form = next(block for block in config.blocks if block.kind == "form")
    assert [field.kind for field in form.fields] == ["choice", "number"]
    for _person in range(6):
        take_part(cast.begin(study))
    to_its_results(one, study)
    assert one.visitor.problems == []


def take_part(sitting: Sitting) -> None:
    step = current_step(sitting)
    while step.kind != "end":
        answers = cast.answers_for(step, confidence="60")
        if step.kind == "form":
            answers = {"field_1": "Yes", "age": "30"}
        if step.kind == "debriefing":
            answers = {debriefing.FIELD: debriefing.USE}
        if step.kind == "attention":
            answers = {check.name: "1" for check in step.checks}
        step = advance(sitting=sitting, step=step.number, data=answers)


def to_its_results(one: Researcher, study: Study) -> None:
    page, at_study = one.page, f"/admin/survey/study/{study.pk}/change/"
    one.visitor.go(at_study)
    one.click(page.get_by_role("link", name="Close", exact=True).first)
    one.press("Close")
    jobs.run_inline(study.stages.get())  # What the workers do.
    one.visitor.go(at_study)
    one.click(page.locator("[data-tabs]").get_by_role("link", name="Results"), leads_on=False)
    one.click(page.locator("#results").get_by_role("link", name="Estimates").first)
    assert page.locator("#content svg").first.is_visible()
    one.visitor.go(at_study)
    one.click(page.locator("[data-tabs]").get_by_role("link", name="Data"), leads_on=False)
    one.click(page.locator("#data").get_by_role("link", name="Answers", exact=True))
    assert "Was ist" in page.locator("table.hunch-answers tbody tr").first.inner_text()
    one.visitor.go(at_study)
    one.click(page.locator("[data-tabs]").get_by_role("link", name="Data"), leads_on=False)
    one.click(page.locator(f'#data a[href$="/job/ask/{study.pk}/package/"]'))
    page.locator("[name=author]").fill("A. Researcher")
    page.locator("[name=licence]").fill("https://creativecommons.org/licenses/by/4.0/")
    one.press("Make it")
    job = Job.objects.get(kind="package")
    asked_jobs.run(job.pk)
    page.reload()
    with page.expect_download() as download:
        one.click(page.locator(".hunch-files a", has_text=".zip").first, leads_on=False)
    with zipfile.ZipFile(io.BytesIO(download.value.path().read_bytes())) as archive:
        described = next(name for name in archive.namelist() if name.endswith("dataset_description.json"))
        assert json.loads(archive.read(described))["name"]


def test_the_same_way_by_keys_alone(newcomer: Researcher) -> None:
    page = newcomer.page
    make_the_account(newcomer)
    store_the_table(newcomer)

    def reach(name: str, *, role: str = "button", presses: int = 400) -> None:
        """Press Tab until that control has the focus, as somebody without a mouse does."""
        wanted = page.get_by_role(role, name=name, exact=True).first
        for _press in range(presses):
            page.keyboard.press("Tab")
            if wanted.evaluate("one => one === document.activeElement"):
                return
        raise AssertionError(f"{name} is not reached by Tab")

    def enter(key: str = "Enter") -> None:
        with page.expect_navigation():
            page.keyboard.press(key)

    reach("New study with this bank", role="link")
    enter()
    reach("Begin with What the belief item can do")
    enter()
    reach("Title (English)", role="textbox")
    page.keyboard.press("Control+A")
    page.keyboard.type("By keys")
    reach("Move down: 2. Instructions: What you will do")
    enter()
    assert page.evaluate("document.activeElement.id") == "at-blocks.3"
    reach("Add: condition")
    enter()
    reach("Make the study")
    enter()
    assert Study.objects.get().config.title == "By keys"
    reach("Open", role="link")
    enter()
    reach("Open")
    enter()
    assert Study.objects.get().stages.get().state == Stage.State.OPEN


def test_the_pages_of_the_way_are_for_everybody(newcomer: Researcher) -> None:
    page = newcomer.page
    make_the_account(newcomer)
    newcomer.follow("New bank")
    page.locator("input[type=file]").set_input_files(
        [{"name": "fragen.csv", "mimeType": "text/csv", "buffer": TABLE.encode("latin-1")}]
    )
    newcomer.press("Look at the file")
    look_at(newcomer, "a table that was sent")
    newcomer.press("Store the bank")
    look_at(newcomer, "a bank")
    newcomer.follow("New study with this bank")
    look_at(newcomer, "templates")
    newcomer.press("Begin with Belief update, adaptive")
    page.locator("[data-look-frame]:not([hidden])").wait_for()
    look_at(newcomer, "builder")
    newcomer.press("Make the study")
    look_at(newcomer, "study that is not open")
    newcomer.click(page.locator("#do-next"))
    look_at(newcomer, "opening")
    assert newcomer.visitor.problems == [], "\n".join(newcomer.visitor.problems)


def look_at(researcher: Researcher, name: str) -> None:
    researcher.page.set_viewport_size({"width": 320, "height": 700})
    if researcher.page.evaluate(WIDER):
        researcher.visitor.problems.append(f"{name} at 320 px: wider than the screen")
    # Without `preload`, for which axe writes styles into the page that its content policy refuses.
    for width, rules in RULES_AT.items():
        researcher.page.set_viewport_size({"width": width, "height": 900})
        say = f"{name} at {width} px: "
        if researcher.page.evaluate(WIDER):
            researcher.visitor.problems.append(say + "wider than the screen")
        researcher.visitor.problems += [say + problem for problem in researcher.page.evaluate(SIDEWAYS)]
        use_axe(researcher.page)
        researcher.visitor.problems += [
            say + problem for problem in researcher.page.evaluate(AXE, {**rules, "preload": False})
        ]
        researcher.page.evaluate(RESTYLE, "* { transition: none !important; }")
        researcher.page.emulate_media(color_scheme="dark")
        researcher.visitor.problems += [
            f"{say}dark: {problem}" for problem in researcher.page.evaluate(AXE, {**COLOURS, "preload": False})
        ]
        researcher.page.evaluate(RESTYLE, "")
        researcher.page.emulate_media(color_scheme="light")
    researcher.page.set_viewport_size({"width": 1280, "height": 900})
