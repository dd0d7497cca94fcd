"""Many simulated people at once. The database is read here, before they set out; they themselves only speak HTTP."""

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

import httpx

from survey.exceptions import StateRefused
from survey.instruments import registry
from survey.models import Study
from survey.services.seeds import derive

from .loopback import loopback_url
from .visitors import ROUTES, Person, SimulationError, open_client


@dataclass(frozen=True)
class Visit:
    """How it went for one person: an outcome of the end page, or why the door stayed closed."""

    outcome: str
    code: str
    seconds: float


def seed_of(seed: int, stage: int | str, number: int) -> int:
    """The seed of the n-th person (from 0) of a stage, or of "every" stage."""
    return derive(seed, "respondent", stage, number)


class Crowd:
    """People for the open stage of a study, each from a seed of its own.

    Args:
        seed: of the people; the study's own by default. People of one stage are numbered on from those who came before.
        null: their changes do not depend on the pair.
        through: "pages" or "api".
        same_in_every_stage: the n-th person of every stage has the same character; otherwise all differ.
    """

    def __init__(
        self,
        *,
        study: Study,
        respondents: int,
        base_url: str,
        seed: int | None = None,
        null: bool = False,
        through: str = "pages",
        concurrency: int = 4,
        same_in_every_stage: bool = False,
    ) -> None:
        """
        Raises:
            HunchError: the address is not of this machine.
            StateRefused: no stage is open.
        """
        self.base_url = loopback_url(base_url)
        self.slug = study.slug
        self.concurrency = concurrency
        self._visit = ROUTES[through]
        self._stop = threading.Event()
        stage = study.admitting_stage()
        if stage is None:
            raise StateRefused(f"no stage of {study.slug} is open: open_stage {study.slug} opens the next one")
        instrument = registry.get(study.instrument)
        come = stage.sittings.count()
        stage_name: int | str = "every" if same_in_every_stage else stage.index
        seeds = [
            seed_of(study.seed if seed is None else seed, stage_name, number)
            for number in range(come, come + respondents)
        ]
        self.people = [
            Person(
                config=study.settings,
                items=instrument.simulated_person(study=study, seed=one, null=null),
                seed=derive(one, "manners"),
            )
            for one in seeds
        ]

    def visits(self) -> Iterator[Visit]:
        """Send everybody in, some at a time, and yield each visit as it ends.

        Raises:
            SimulationError: somebody met a page that does not do what it promises, or nothing answers.
        """
        logging.getLogger("httpx").setLevel(logging.WARNING)  # A line for every request would bury everything else.
        with ThreadPoolExecutor(self.concurrency, thread_name_prefix="respondent") as pool:
            waiting: set[Future[Visit]] = {pool.submit(self._take_part, person) for person in self.people}
            try:
                while waiting:
                    done, waiting = wait(waiting, timeout=1.0, return_when=FIRST_COMPLETED)
                    for future in done:
                        yield future.result()
            finally:
                self._stop.set()
                pool.shutdown(cancel_futures=True)

    def run(self, on_visit: Callable[[Visit], None] = lambda visit: None) -> Counter[str]:
        """All visits; how many ended with which outcome."""
        outcomes: Counter[str] = Counter()
        for visit in self.visits():
            outcomes[visit.outcome] += 1
            on_visit(visit)
        return outcomes

    def _take_part(self, person: Person) -> Visit:
        started = time.monotonic()
        try:
            with open_client(self.base_url) as client:
                outcome, code = self._visit(
                    client=client, slug=self.slug, person=person, go_on=lambda: not self._stop.is_set()
                )
        except httpx.TransportError as exc:
            raise SimulationError(
                f"{self.base_url} does not answer ({exc or type(exc).__name__}): is it running? `make up` starts it"
            ) from exc
        return Visit(outcome=outcome, code=code, seconds=time.monotonic() - started)
