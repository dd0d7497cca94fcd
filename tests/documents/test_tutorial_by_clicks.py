"""The tutorial without a terminal works: in Chromium somebody presses what it names, in its order. Its pictures are
made on the way, and those of the tour of the console on studies that are there already.

    python -m tests.renew pictures

makes the pictures again.
"""

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from survey.models import Job, Sitting, Study, WatchRecord
from survey.services.base import first_account
from survey.services.base import jobs as asked_jobs
from survey.services.sittings import debriefing
from survey.services.sittings.answering import advance
from survey.services.sittings.flow import current_step
from survey.services.stages import jobs
from survey.simulator import dry_run
from tests import cast
from tests.browsing import Browser
from tests.golden import store

from .blocks import DOCS
from .picturing import WINDOW, take_picture

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.any_database,
    pytest.mark.thorough,
    pytest.mark.django_db(transaction=True),
]
PAGE, TOUR = DOCS / "tutorial.md", DOCS / "tour.md"
TEMPLATE = "What the belief item can do"
PUBLIC = "https://study.example.org"


class Reader:
    """Somebody who follows a page of the documents in a browser."""

    def __init__(self, browser: Browser, root: str, text: str, renew: bool) -> None:
        self.page: Any = browser.new_page(viewport=WINDOW, reduced_motion="reduce", locale="en-GB")
        self.root, self.renew = root, renew
        self.named = {" ".join(name.split()) for name in re.findall(r"(?<!\*)\*([^*]+)\*(?!\*)", text)}
        self.pressed: set[str] = set()
        self.taken: set[str] = set()

    def press(self, name: str, called: str = "") -> None:
        """Press the button or link that the document calls `name`. `called`: its name for a screen reader."""
        self.note(name)
        at = self.page.locator("a:visible, button:visible, input[type=submit]:visible")
        if called:
            at = self.page.get_by_role("button", name=called, exact=True)
        else:
            at = at.filter(has_text=re.compile(rf"^\s*{re.escape(name)}\s*$")).or_(
                self.page.locator(f'input[type=submit][value="{name}"]:visible')
            )
        at.first.click()
        self.page.wait_for_load_state()

    def note(self, name: str) -> None:
        assert name in self.named, f"the document does not name {name}"
        self.pressed.add(name)

    def take(self, name: str) -> None:
        self.taken.add(f"{name}.png")
        take_picture(self.page, f"{name}.png", renew=self.renew)

    def log_in(self, user: User) -> None:
        client = Client()
        client.force_login(user)
        cookie = client.cookies["sessionid"].value
        self.page.context.add_cookies([{"name": "sessionid", "value": cookie, "url": self.root}])


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """What the workers of a running server do."""
    WatchRecord.objects.create(looked_at=timezone.now())

    def steps(_seconds: float = 0) -> None:
        for step in jobs.due_steps():
            jobs.run_step(step.pk)

    def work() -> None:
        for job in Job.objects.filter(state="queued"):
            asked_jobs.run(job.pk)
        steps()

    monkeypatch.setattr(dry_run.time, "sleep", steps)
    return work


@pytest.fixture
def reader(browser: Browser, live_server: Any, request: pytest.FixtureRequest) -> Reader:
    document = PAGE if "tutorial" in request.function.__name__ else TOUR
    return Reader(browser, live_server.url, document.read_text(encoding="utf-8"), request.config.getoption("--renew"))


def test_the_tutorial_by_clicks(reader: Reader, workers: Callable[[], None]) -> None:
    page = reader.page
    # 2. Your account
    secret = first_account.offer()
    assert secret is not None
    page.goto(reader.root + first_account.path(secret))
    page.get_by_label("User name").fill("ada")
    for field in page.locator("[type=password]").all():
        field.fill("correct horse battery")
    reader.press("Make the account")
    page.goto(f"{reader.root}/admin/")  # Without the message.
    page.get_by_role("link", name="Help").wait_for()
    reader.note("Help")
    reader.take("tutorial-home")
    # 3. A study from a template
    reader.press("New study")
    reader.note(TEMPLATE)
    reader.press("Begin", called=f"Begin with {TEMPLATE}")
    page.locator("[data-look-frame]:not([hidden])").wait_for()
    reader.note("Title")
    page.locator('[id="in-title.en"]').fill("Homework with a chatbot")
    page.locator('[id="in-title.de"]').fill("Hausaufgaben mit einem Chatbot")
    look = page.frame_locator("[data-look-frame]")
    look.get_by_text("Homework with a chatbot").or_(look.get_by_text("Hausaufgaben mit")).first.wait_for()
    reader.take("tutorial-builder")
    reader.note("Stages")
    reader.note("People")
    page.locator('[id="in-stages.1.sittings"]').fill("10")
    reader.press("Make the study")
    page.get_by_text("is made. Its first stage").wait_for()
    study = Study.objects.get()
    assert study.config.title == "Homework with a chatbot" and study.config.stages[0].sittings == 10
    home = page.url
    page.locator("#do-next").wait_for()
    reader.note("Next")
    # 4. See it as people will
    reader.press("Try out")
    reader.press("Make a preview")
    with page.context.expect_page() as preview:
        reader.press("Open the preview (in a new tab)")
    preview.value.get_by_text("Homework with a chatbot").wait_for()
    preview.value.close()
    reader.press("Dry run")
    reader.press("Make it")
    workers()
    page.goto(home)
    reader.note("Studies")
    reader.press("Try out")
    page.locator("#dry-run").wait_for()
    reader.press("Estimates")
    page.get_by_role("heading", name="Estimates").first.wait_for()
    reader.take("tutorial-estimates")
    # 5. Open it
    page.goto(home)
    reader.press("Open")
    reader.press("Open")
    page.get_by_text("Stage 1 is open.").wait_for()
    page.goto(home)
    reader.note("Addresses and codes")
    address = page.get_by_role("link", name=f"{reader.root}/s/homework-with-a-chatbot/", exact=True)
    address.evaluate("(link, text) => { link.textContent = text }", f"{PUBLIC}/s/{study.slug}/")  # Always the same.
    reader.take("tutorial-open")
    # 6. Take part
    person = page.context.new_page()
    person.set_viewport_size(WINDOW)
    person.goto(f"{reader.root}/s/{study.slug}/")
    person.locator("[data-action=begin]").click()
    person.locator("#consent-yes").click()
    person.locator("main[data-kind=instructions]").wait_for()
    sitting = Sitting.objects.get(respondent__study=study)
    walk(sitting, until="item")
    person.reload()
    person.locator("[data-screen=prior]").wait_for()
    tutorial, reader.page = reader.page, person
    reader.take("tutorial-item")
    reader.page = tutorial
    person.close()
    walk(sitting, until="end")
    # 7. Close it
    page.goto(home)
    reader.press("Close")
    reader.press("Close")
    workers()
    assert study.stages.get().state == "frozen"
    # 8. Read the results
    for tab in ("Results", "Data"):
        page.goto(home)
        reader.press(tab)
        page.locator(f"#{tab.lower()}").wait_for(state="visible")
        reader.press({"Results": "Estimates", "Data": "Answers"}[tab])
    page.locator("#content table").first.wait_for()
    reader.take("tutorial-answers")
    page.goto(f"{home}#data")
    page.get_by_role("link", name="Export", exact=True).first.wait_for()
    reader.note("Export")
    page.goto(f"{reader.root}/admin/")
    reader.press("New bank")
    left = reader.named - reader.pressed - {"First account", "From a terminal"}
    assert left == set(), "the tutorial names what nobody pressed"
    assert reader.taken == pictures_of(PAGE.name, "tutorial")


def walk(sitting: Sitting, *, until: str) -> None:
    """Answer all pages up to one of that kind: nobody sees these."""
    sitting.refresh_from_db()
    step = current_step(sitting)
    while step.kind != until:
        assert step.kind != "end", f"came to the end before {until}"
        data = {**cast.answers_for(step), "confidence": "70"}
        if step.kind == "debriefing":
            data[debriefing.FIELD] = debriefing.USE
        for check in step.checks:
            data[check.name] = str([index for index, _text in check.options].index(0) + 1)  # The first is right.
        step = advance(sitting=sitting, step=step.number, data=data)


def pictures_of(page: str, beginning: str) -> set[str]:
    """Those that the page shows, which are those that there are."""
    named = set(re.findall(rf"pictures/({beginning}-[\w-]+\.png)", (DOCS / page).read_text(encoding="utf-8")))
    assert named == {path.name for path in (DOCS / "pictures").glob(f"{beginning}-*.png")}
    return named


def test_the_tour_shows_the_console(reader: Reader, workers: Callable[[], None], settings: Any) -> None:
    """Of studies that earlier code stored, so that their answers are the same each time."""
    settings.HUNCH_IDENTITY_KEY = store.IDENTITY_KEY
    WatchRecord.objects.all().delete()
    store.load_database()
    WatchRecord.objects.update_or_create(defaults={"looked_at": timezone.now()})
    Study.objects.filter(slug="beliefs").update(title="What people expect of a chatbot")
    Study.objects.filter(slug="real").update(title="After real answers of a chatbot")
    Study.objects.filter(slug="answers").update(title="How good people are at the same tasks")
    reader.log_in(User.objects.create_superuser("ada"))
    study = Study.objects.get(slug="beliefs")
    page = reader.page
    for name, address in {
        "home": "",
        "bank": f"survey/bank/{study.bank_id}/change/",
        "new": "survey/study/add/",
        "builder": f"survey/study/{study.pk}/build/",
        "try": f"survey/study/{study.pk}/try/",
        "estimates": f"survey/study/{study.pk}/estimates/",
        "answers": f"survey/study/{study.pk}/answers/",
    }.items():
        answer = page.goto(f"{reader.root}/admin/{address}")
        assert answer.status == 200, address
        page.wait_for_load_state("networkidle")
        reader.take(f"tour-{name}")
    assert reader.taken == pictures_of(TOUR.name, "tour")
