"""Walks through the pages of a copy of a study, along every path that shows something new.

This process serves the pages, so that everything happens inside the caller's transaction. Each path is undone before
the next one is taken.
"""

import logging
import re
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import httpx
from django.conf import settings
from django.core.handlers.wsgi import WSGIHandler
from django.core.signals import request_finished, request_started
from django.db import close_old_connections, transaction
from django.utils import timezone

from survey.contracts import instruments
from survey.models import AssignmentCondition, Booklet, Sitting, Stage
from survey.models.study import FILE_FIELDS
from survey.services.answers.conditions import combinations
from survey.services.sittings import entry
from survey.services.sittings.flow import current_step
from survey.simulator.page import Element, Page
from survey.simulator.routes import SITTING_COOKIE, Pages, Shown
from survey.simulator.visitors import Person, queries
from survey.study_file import StudyConfig

# Some things are drawn at random for each sitting (the order of some answers, whether reasons are asked for). They are
# drawn again up to MAX_DRAWS times, or until SILENT_DRAWS draws in a row have shown nothing new.
MAX_DRAWS = 8
SILENT_DRAWS = 3
MAX_COMBINATIONS = 64
MAX_STEPS = 1000
# The order in which pages are listed: the pages before consent, the blocks, the ends.
ENTRY, ENDS = -1, 1000
PERCENT = re.compile(r"\b\d{1,3} %")
NUMBER = re.compile(r"_\d+")
# Kinds of parts that hold what an item is about, and not words of the page.
CONTENTS = ("question", "prompt", "reply", "fragment", "context", "token", "passage", "passage_question")
# Pages of one screen, with items of one kind under the same levels, that differ by what was answered before.
MAX_ALIKE = 6
NAMESPACE = uuid.UUID("6f2f8f0e-6a5c-4b8e-9a3b-52b8c2a0d9f1")


Key = tuple[str, ...]


@dataclass
class PrintedScreen:
    """A page, what it is, and under which combinations of levels (their numbers) it was seen.

    `kinds`: the kinds of items it was seen with. `origins`: if only some walks take the path to it, the pages from
    which the path begins; the screen is then seen under all combinations under which those are seen.
    """

    name: str
    title: str
    html: str
    place: tuple[int, int]
    combinations: set[int] = field(default_factory=set)
    kinds: set[str] = field(default_factory=set)
    origins: "set[Key]" = field(default_factory=set)


class Reader(Person):
    """Reads the instructions, and pays attention."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._misreads = self._careless = False


class Walk:
    """All screens of one language."""

    def __init__(self, *, stage: Stage, kinds: Mapping[int, str], language: str) -> None:
        self.stage = stage
        self.kinds = kinds
        self.language = language
        self.config: StudyConfig = stage.study.config_in(language)
        self.combinations = chosen_combinations(self.config)
        self.screens: dict[Key, PrintedScreen] = {}
        self._server = WSGIHandler()  # One for all browsers: a new one lists all static files.
        self._number = 0
        self._last: Key = ()
        self._origin: Key = ()
        self._has_remarked = False
        self._alike: Counter[tuple[str, str, int]] = Counter()
        items = stage.slots.values_list("item", flat=True)
        self.kinds_shown = {kinds[item] for item in items}

    def run(self) -> None:
        for number in range(len(self.combinations)):
            self._number = number
            if number == 0:
                self._at_the_door()
            silent = 0
            for draw in range(MAX_DRAWS):
                before = len(self.screens)
                with undone(), self._browser() as route:
                    self._through(route, draw=draw, every_path=number == 0 and draw == 0)
                silent = silent + 1 if len(self.screens) == before else 0
                if silent == SILENT_DRAWS:
                    break

    @property
    def found(self) -> list[PrintedScreen]:
        """In the order in which people meet them, the ends last."""
        for screen in self.screens.values():
            for origin in screen.origins:
                screen.combinations |= self.screens[origin].combinations
                screen.kinds |= self.screens[origin].kinds if screen.kinds else set()
        return sorted(self.screens.values(), key=lambda screen: screen.place)

    @property
    def levels(self) -> Mapping[str, str]:
        return self.combinations[self._number]

    # Paths

    def _at_the_door(self) -> None:
        with undone(), self._browser() as route:
            current = route.arrive()
            self._keep("welcome", (ENTRY, 0))
            current = route.go_in()
            self._keep("consent", (ENTRY, 1))
            route.send(current, {})
            self._keep("consent-unanswered", (ENTRY, 2))
            route.send(current, {"consent": "no"})
            self._keep("end-no-consent", (ENDS, 0))
            if instruments.of_study(self.stage.study).needs.script:
                route.send(current, {"consent": "yes"})
                self._keep("end-no-script", (ENDS, 0))
            self._begin(route, draw=0)
            route.arrive()
            self._keep("welcome-back", (ENTRY, 3))
        for name, change in (
            ("door-full", lambda: Booklet.objects.filter(stage=self.stage).update(claimed_at=timezone.now())),
            ("door-closed", lambda: Stage.objects.filter(pk=self.stage.pk).update(state=Stage.State.PAUSED)),
        ):
            with undone(), self._browser() as route:
                change()
                route.arrive()
                self._keep(name, (ENDS, 1))

    def _begin(self, route: Pages, *, draw: int) -> Shown:
        route.send(route.go_in(), {"consent": "yes", "script": "1"})  # As a browser that runs scripts does.
        sitting = self._sitting()
        sitting.public_id = uuid.uuid5(NAMESPACE, f"{self.stage.study.source_sha256} {draw}")
        sitting.save(update_fields=["public_id"])
        for cookie in route.client.cookies.jar:
            if cookie.name == SITTING_COOKIE:
                cookie.value = sitting.token
        for factor, level in self.levels.items():
            sitting.conditions.filter(factor=factor).update(level=level)
        return route.look()

    def _through(self, route: Pages, *, draw: int, every_path: bool) -> None:
        route.arrive()
        current = self._begin(route, draw=draw)
        person = Reader(
            config=self.stage.study.config.in_language(self.language),
            items=instruments.of_study(self.stage.study).simulated_person(seed=1),
            seed=1,
            link={},
        )
        for _step in range(MAX_STEPS):
            if self._set_levels():
                current = route.look()
            is_new = self._keep_step(current)
            if current.kind == "end":
                break
            if is_new:
                self._errors(route, current)
            # Another answer to an item or for practice leads to the same pages with another number on them.
            if every_path and current.kind not in ("item", "practice"):
                self._other_answers(route, current, person, depth=0)
            if every_path and is_new and current.kind == "item":
                self._remark(route, current)
            current = route.send(current, route.answers(current, person))
        if every_path:
            with self._aside(route):
                route.arrive()
                self._keep("welcome-after-the-end", (ENDS, 3))

    def _errors(self, route: Pages, current: Shown) -> None:
        """What the page says if nothing was entered."""
        with self._aside(route):
            after = route.send(current, {})
            if after.errors:
                self._keep_step(after, suffix="-unanswered")

    def _other_answers(self, route: Pages, current: Shown, person: Person, *, depth: int) -> None:
        """Where another answer leads, one answer at a time: a second attempt with hints, or another end."""
        page = current.page
        if page is None or depth > 1:
            return
        usual = route.answers(current, person)
        choices = {name: [value for value, _text in options] for name, options in page.choices.items()}
        for name, values in {**choices, **page.buttons}.items():
            for value in values:
                if usual.get(name) == value:
                    continue
                with self._aside(route):
                    after = route.send(current, {**usual, name: value})
                    same_block = after.kind == current.kind and not after.errors
                    if (after.kind == "end" or same_block) and self._keep_step(after) and same_block:
                        self._other_answers(route, after, person, depth=depth + 1)
        if current.kind in ("instructions", "checks"):
            with self._aside(route):  # Meanwhile somebody else took the last place.
                Booklet.objects.filter(stage=self.stage).update(claimed_at=timezone.now())
                after = route.send(current, usual)
                if after.kind == "end":
                    self._keep_step(after)

    def _remark(self, route: Pages, current: Shown) -> None:
        """What people read after they report that something is wrong with the question."""
        elements = list(current.page.main.walk()) if current.page else []
        button = next((element.attributes for element in elements if "formaction" in element.attributes), None)
        if current.page is None or button is None or self._has_remarked:
            return
        self._has_remarked = True
        boxes = [
            element.attributes["name"]
            for element in elements
            if element.tag == "textarea" and "form" in element.attributes
        ]
        fields = {button["name"]: button["value"], **dict.fromkeys(boxes, "Two of the options are the same.")}
        with self._aside(route):
            route.client.post(button["formaction"], data={**current.page.hidden, **fields})
            self._keep("item-remark-sent", (self._sitting().block, 1))

    # The database behind the pages

    def _sitting(self) -> Sitting:
        # Without the study file, so that the one is taken that this process keeps: to check it again takes longer.
        rows = Sitting.objects.select_related("stage__study__bank", "respondent", "booklet")
        return (
            rows.defer(*(f"stage__study__{name}" for name in FILE_FIELDS))
            .prefetch_related("conditions")
            .get(stage=self.stage)
        )

    def _set_levels(self) -> bool:
        """Give all items the levels of this walk. Returns whether any of them changed."""
        changed = 0
        for factor, level in self.levels.items():
            rows = AssignmentCondition.objects.filter(assignment__sitting__stage=self.stage, factor=factor)
            changed += rows.exclude(level=level).update(level=level)
        return changed > 0

    @contextmanager
    def _browser(self) -> Iterator[Pages]:
        host = settings.ALLOWED_HOSTS[0].lstrip(".") if settings.ALLOWED_HOSTS else "localhost"
        base = f"https://{'localhost' if host == '*' else host}"
        with (
            connection_kept(),
            httpx.Client(
                transport=httpx.WSGITransport(app=self._server),
                base_url=base,
                headers={"Referer": f"{base}/", entry.SIMULATED_HEADER: entry.simulated_mark()},
                follow_redirects=True,
                trust_env=False,
            ) as client,
        ):
            client.event_hooks = {"response": [self._remember]}
            (carried,) = queries(self.stage.study, count=1, root=base)
            ids = {**carried, "language": self.language}
            yield Pages(client=client, slug=self.stage.study.slug, ids=ids)

    def _remember(self, response: httpx.Response) -> None:
        self._html = response.read().decode()

    @contextmanager
    def _aside(self, route: Pages) -> Iterator[None]:
        """A side path: at its end, what it stored is undone, and so are the cookies."""
        cookies, last, origin = httpx.Cookies(route.client.cookies), self._last, self._origin
        self._origin = origin or last
        with undone():
            yield
        route.client.cookies, self._last, self._origin = cookies, last, origin

    # Keeping pages

    def _keep_step(self, current: Shown, suffix: str = "") -> bool:
        sitting = self._sitting()
        step = current_step(sitting)
        if current.kind == "end":
            return self._keep(f"end-{current.outcome}", (ENDS, 2))
        parts, kind = [current.kind], ""
        if current.kind == "item" and step.assignment is not None:
            parts.append(current.page.screen if current.page else "")
            kind = self.kinds[step.assignment.slot.item_id]
        elif step.block.name and step.block.name != current.kind:
            parts.append(step.block.name)
        if step.attempt > 1:
            parts.append("second-attempt")
        name = "-".join(part for part in parts if part) + suffix
        shown_parts = step.screen.parts.values() if step.screen else ()
        questions = [str(part["value"]) for part in shown_parts if part["kind"] in CONTENTS]
        return self._keep(name, (sitting.block, 0), questions=questions, kind=kind)

    def _keep(self, name: str, place: tuple[int, int], *, questions: Sequence[str] = (), kind: str = "") -> bool:
        """Keep the page that was shown last unless an equal one is kept already. Returns whether it is new."""
        page = Page(self._html)
        key = (name.partition("-")[0], *_said(page, questions))
        is_new = key not in self.screens
        if is_new and place[0] not in (ENTRY, ENDS):
            alike = (NUMBER.sub("", name), kind, self._number)
            self._alike[alike] += 1
            if self._alike[alike] > MAX_ALIKE:
                return False
        if is_new:
            heading = next((element.text for element in page.main.walk() if element.tag == "h1"), name)
            self.screens[key] = PrintedScreen(
                name=re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-"),
                title=" ".join(heading.split()),
                html=self._html,
                place=(place[0], place[1] * MAX_STEPS + len(self.screens)),
            )
        # Before consent no level is drawn.
        everywhere = place[0] == ENTRY or name.startswith(("door", "end-no-consent"))
        self.screens[key].combinations |= set(range(len(self.combinations))) if everywhere else {self._number}
        if kind:
            self.screens[key].kinds.add(kind)
        if self._origin:
            self.screens[key].origins.add(self._origin)
        self._last = key
        return is_new


@contextmanager
def connection_kept() -> Iterator[None]:
    """Keep the database connection open. A request normally closes it at its end, which would end our transaction."""
    signals = (request_started, request_finished)
    # Answers that we get refused on purpose need no log line.
    log = logging.getLogger("django.request")
    level = log.level
    log.setLevel(logging.ERROR)
    connected = [signal for signal in signals if signal.disconnect(close_old_connections)]
    try:
        yield
    finally:
        log.setLevel(level)
        for signal in connected:
            signal.connect(close_old_connections)


class _Undo(Exception):
    """Raised to leave a block and undo what it wrote."""


@contextmanager
def undone() -> Iterator[None]:
    """What is written inside is undone at the end."""
    with suppress(_Undo), transaction.atomic():
        yield
        raise _Undo


def chosen_combinations(config: StudyConfig) -> list[dict[str, str]]:
    """Every combination of levels. If there are too many: the first one and those that differ from it in one level."""
    all_combinations = combinations(config)
    if len(all_combinations) <= MAX_COMBINATIONS:
        return all_combinations
    first = all_combinations[0]
    return [
        combination
        for combination in all_combinations
        if sum(combination[factor] != first[factor] for factor in first) <= 1
    ]


def _said(page: Page, questions: Sequence[str]) -> Iterator[str]:
    """The words by which a page counts as different from others of its kind. Left out are the question asked, the
    numbers entered and the place in the sitting; except for items, also the order of the options."""
    words = list(_words(page.main, questions))
    yield from words if page.kind in ("item", "practice") else sorted(words)


def _words(element: Element, questions: Sequence[str]) -> Iterator[str]:
    attributes = element.attributes
    if attributes.get("type") == "hidden" or "progress" in attributes.get("class", ""):
        return
    if "data-part" in attributes:
        is_number = element.text.strip().rstrip(" %").isdigit()
        is_content = bool(element.text.strip()) and element.text.strip() in questions
        if is_number or is_content or "question" in attributes.get("class", ""):
            yield f"[{attributes['data-part']}]"
            return
    if element.tag in ("input", "textarea", "button"):
        yield element.tag
    for child in element.children:
        if isinstance(child, Element):
            yield from _words(child, questions)
        elif text := " ".join(child.split()):
            # A number in percent is one that was entered, also where the page repeats it.
            said = PERCENT.sub("[number] %", text)
            yield "[option]" if any(text in question for question in questions) else said
