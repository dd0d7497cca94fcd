"""Many simulated people at once.

The people themselves only use HTTP. This module reads the database before they start, expires the sittings of those who
left (as an hour without activity would), and compares the server's counts at the end.
"""

import logging
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

import httpx
from django.utils import timezone

from survey.contracts import instruments
from survey.exceptions import StateRefused
from survey.models import Respondent, Sitting, Stage, Study
from survey.services.base.seeds import derive
from survey.services.sittings import waves
from survey.services.sittings.capacity import admitting_stage
from survey.services.sittings.enrolment import why_no_simulated_people
from survey.services.sittings.expiry import deal_make_up_booklets, expire_sitting
from survey.study_file import CellConfig

from .crowd_report import Before, CrowdReport, report_on
from .habits import NONE, Rates, habits_of, stray_scanners
from .journey import LEFT, Journey
from .loopback import loopback_url
from .own_site import OwnSite
from .routes import ROUTES
from .scanners import scan
from .visitors import Person, SimulationError, open_client, queries, queries_of_returning


@dataclass(frozen=True)
class Visit:
    """The result for one person: an outcome of the end page, why they were not admitted, or that they left."""

    outcome: str
    code: str
    seconds: float


def seed_of(seed: int, stage: int | str, number: int) -> int:
    """The seed of the n-th person (from 0) of a stage, or of "every" stage."""
    return derive(seed, "respondent", stage, number)


def cells_in_turn(study: Study, stage: Stage, *, first: int, count: int, seed: int) -> list[list[CellConfig]]:
    """The cells of the quotas in which each of so many people belongs, from the one with the number `first` (from 0).

    As many people come as a stage has sittings: they belong where its places are, in an order that the seed gives. Who
    comes beyond that finds full cells.
    """
    of_person: list[list[CellConfig]] = [[] for _person in range(count)]
    for quota in study.config.quotas:
        places = quota.places(stage.config.sittings)
        deck: list[CellConfig | None] = [cell for cell in quota.cells for _place in range(places[cell.name])]
        if quota.otherwise == "admit":
            deck += [None] * (stage.config.sittings - len(deck))  # They answer as they like.
        random.Random(derive(seed, "quota", stage.index, quota.name)).shuffle(deck)  # noqa: S311 - reproducible
        for person in range(count if deck else 0):
            if cell := deck[(first + person) % len(deck)]:
                of_person[person].append(cell)
    return of_person


def returning_people(study: Study, stage: Stage, *, chance: float, seed: int) -> list[Respondent]:
    """The simulated people who come back for the stage's wave: each who finished the wave before, with that chance.
    Asked again, the same people come, but for those who have come."""
    due = waves.due_for(study, stage.wave, now=timezone.now())
    returning = []
    for due_person in due:
        own = derive(seed, "return", stage.wave, due_person.sitting.respondent.pseudonym)
        if due_person.sitting.respondent.is_simulated and random.Random(own).random() < chance:  # noqa: S311 - reproducible
            returning.append(due_person.sitting.respondent)
    return returning


class Crowd:
    """People for the open stage of a study, each with their own seed.

    Args:
        seed: the people's seed; by default the study's. Numbers go on from the people who came to the stage before.
        null: if true, their changes do not depend on the pair.
        people: their kind, one of the instrument's `simulated_kinds`; empty: the usual one.
        through: "pages" or "api".
        same_in_every_stage: the n-th person of every stage has the same character; otherwise all differ.
        rates: the shares of people who leave, come back, hurry and click twice, and of programs that only read; 0 by
            default.
        pace: seconds that people look at a page on average; 0 by default.
        site: what answers them; by default the server at `base_url`.
        return_chance: in a later wave, the chance that a simulated person who finished the wave before comes back. So
            many of them come, at most `respondents`.
    """

    def __init__(
        self,
        *,
        study: Study,
        respondents: int,
        base_url: str = "",
        seed: int | None = None,
        null: bool = False,
        people: str = "",
        through: str = "pages",
        concurrency: int = 4,
        same_in_every_stage: bool = False,
        rates: Rates = NONE,
        pace: float = 0.0,
        site: OwnSite | None = None,
        return_chance: float = 1.0,
    ) -> None:
        """
        Raises:
            HunchError: the address does not lead to this machine.
            StateRefused: no stage is open, or the study has a posting or real people.
        """
        if why := why_no_simulated_people(study):
            raise StateRefused(why)
        self._site = site
        self.base_url = loopback_url(base_url) if site is None else site.base_url
        self.slug = study.slug
        self.concurrency = concurrency
        self.pace = pace
        self._route = ROUTES[through]
        self._stop = threading.Event()
        stage = admitting_stage(study)
        if stage is None:
            raise StateRefused(f"no stage of {study.slug} is open: open the next one (`hunch open_stage {study.slug}`)")
        self.stage = stage
        instrument = instruments.of_study(study)
        if people and people not in instrument.simulated_kinds:
            kinds = ", ".join(instrument.simulated_kinds) or "none"
            raise StateRefused(f"{instrument.name} has no simulated people of the kind {people!r}; there are: {kinds}")
        of_kind: dict[str, Any] = {"kind": people} if people else {}
        come = stage.sittings.count()
        stage_name: int | str = "every" if same_in_every_stage else stage.index
        base = study.seed if seed is None else seed
        seeds = [seed_of(base, stage_name, number) for number in range(come, come + respondents)]
        returning: Sequence[Mapping[str, str]] = ()
        if stage.wave > 1:
            who = returning_people(study, stage, chance=return_chance, seed=base)[:respondents]
            returning = queries_of_returning(study, who, root=self.base_url)
            respondents, seeds = len(returning), seeds[: len(returning)]
        # Programs that only read come to a first wave alone: nobody else's address leads into a later one.
        strays = 0 if stage.wave > 1 else stray_scanners(respondents, rates)
        addresses = returning or queries(study, count=respondents + strays, root=self.base_url)
        habits = habits_of(respondents, rates=rates, config=study.config, seed=derive(base, "crowd", stage.index, come))
        belongings = cells_in_turn(study, stage, first=come, count=respondents, seed=base)
        self.people = [
            Person(
                config=study.config,
                items=instrument.simulated_person(seed=seed, null=null, **of_kind),
                seed=derive(seed, "manners"),
                habit=habit,
                link=link,
                cells=cells,
            )
            for seed, habit, link, cells in zip(seeds, habits, addresses[:respondents], belongings, strict=True)
        ]
        self.strays = addresses[respondents:]
        self.given_up = 0
        self.read = 0
        self._before = Before.of(study)

    def visits(self) -> Iterator[Visit]:
        """Send everybody in, some at a time, and yield each visit when it ends.

        Raises:
            SimulationError: a page does not do what it promises, or the server does not answer.
        """
        logging.getLogger("httpx").setLevel(logging.WARNING)  # A line for every request would hide everything else.
        at_once = [person for person in self.people if not person.habit.newcomer]
        yield from self._send_in([*at_once, *self.strays])
        late = [person for person in at_once if person.habit.kind == "back_late" and not person.diary.outcome]
        self.given_up = self._give_up([person for person in at_once if person.diary.outcome == LEFT] + late)
        # Newcomers may get the items that others left unanswered, before those others come back.
        yield from self._send_in([*(person for person in self.people if person.habit.newcomer), *late])

    def run(self, on_visit: Callable[[Visit], None] = lambda visit: None) -> Counter[str]:
        """Make all visits. Returns how many ended with each outcome."""
        outcomes: Counter[str] = Counter()
        for visit in self.visits():
            outcomes[visit.outcome] += 1
            on_visit(visit)
        return outcomes

    def report(self) -> CrowdReport:
        """What was done, and whether the server has counted the same. Call it after all visits."""
        return report_on(
            stage=self.stage,
            people=self.people,
            strays=self.strays,
            before=self._before,
            given_up=self.given_up,
            read=self.read,
        )

    def _send_in(self, visitors: Sequence[Person | Mapping[str, str]]) -> Iterator[Visit]:
        with ThreadPoolExecutor(self.concurrency, thread_name_prefix="respondent") as pool:
            waiting: set[Future[Visit | None]] = {pool.submit(self._let, visitor) for visitor in visitors}
            try:
                while waiting:
                    done, waiting = wait(waiting, timeout=1.0, return_when=FIRST_COMPLETED)
                    for future in done:
                        if (visit := future.result()) is not None:
                            yield visit
            finally:
                if waiting:
                    self._stop.set()
                pool.shutdown(cancel_futures=True)

    def _let(self, visitor: Person | Mapping[str, str]) -> Visit | None:
        """One visit; None for a program and for a person who will come back later."""
        started = time.monotonic()
        try:
            if not isinstance(visitor, Person):
                self._scan(visitor)
                return None
            outcome = self._take_part(visitor)
        except httpx.TransportError as exc:
            raise SimulationError(
                f"{self.base_url} does not answer ({exc or type(exc).__name__}): is it running? `make up` starts it"
            ) from exc
        if outcome is None:
            return None
        visitor.diary.outcome = outcome
        return Visit(outcome=outcome, code=visitor.diary.code, seconds=time.monotonic() - started)

    def _take_part(self, person: Person) -> str | None:
        habit = person.habit
        if person.cookies is not None:
            return self._come_back(person)
        if habit.scanned:
            self._scan(person.panel_ids)
        outcome = self._visit(person, leaves_before=habit.leaves_before)
        if outcome != LEFT or habit.kind == "dropout":
            return outcome
        return self._come_back(person) if habit.kind == "back_soon" else None

    def _come_back(self, person: Person) -> str:
        person.diary.returned += 1
        return self._visit(person)

    def _visit(self, person: Person, *, leaves_before: int | None = None) -> str:
        # A link identifies them in any browser. Without a link, only what the first browser received identifies them.
        cookies = None if person.panel_ids else person.cookies
        with self._browser(cookies) as client:
            route = self._route(client=client, slug=self.slug, ids=person.panel_ids or person.kept)
            journey = Journey(route=route, person=person, go_on=lambda: not self._stop.is_set(), pace=self.pace)
            outcome = journey.run(leaves_before=leaves_before)
            person.cookies, person.kept = client.cookies, route.ids
            return outcome

    def _browser(self, cookies: httpx.Cookies | None = None) -> httpx.Client:
        return open_client(self.base_url, cookies, transport=None if self._site is None else self._site.transport())

    def _scan(self, ids: Mapping[str, str]) -> None:
        with self._browser() as client:
            requests = scan(client=client, slug=self.slug, ids=ids)
        with _COUNTING:
            self.read += requests

    def _give_up(self, people: Sequence[Person]) -> int:
        """Expire their sittings, as beat does after the time that the study allows without activity."""
        given_up = 0
        now = timezone.now()
        for token in [token for person in people for token in person.diary.tokens]:
            if public_id := Sitting.public_id_of(token):
                given_up += expire_sitting(Sitting.objects.get(public_id=public_id).pk, now=now)
        if given_up:
            deal_make_up_booklets(self.stage)
        return given_up


_COUNTING = threading.Lock()
