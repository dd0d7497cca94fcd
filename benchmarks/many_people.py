"""Does one small machine serve a crowd while it trains?

    python benchmarks/many_people.py [--people 500] [--arriving 60] [--think 3,9] [--items 15] [--cores 2]

Web, PostgreSQL, Redis, beat, workers and people share the same cores. `manage.py up` starts the services, as on
any one machine, and PostgreSQL keeps what it acknowledges.

People arrive within a minute at a study that has a place for nine of ten of them, and go through whole sittings as
browsers with script do: the next page comes in the answer to the last. They think between pages. Meanwhile the ml
worker trains a predictor for a second study.

Printed are the times of each kind of page, errors, places taken against places, answers stored against answers that
were acknowledged, and whether training went on all the time. It ends by itself, and so does all that it started.
"""

import argparse
import asyncio
import json
import os
import random
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import psutil
import psycopg
from _browsers import TAG, Browser, Page, Refused, filled
from _servers import ROOT, free_address, milliseconds, postgresql, processor_seconds, started, wait_until_it_answers
from serving import STUDY, open_study, right_answers

SLUG = "demo"
KINDS = ("begin", "item", "other", "end")
TRAINING = {"head": "segments", "members": 1, "batch_size": 16, "frozen_layers": 5, "min_steps": 100_000}
TRAINED_PEOPLE = 24
BEGINS_WITHIN = 240  # seconds until the first step of training must be done


@dataclass
class Met:
    """What all people met: the seconds of each kind of page, and how their visits ended."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    errors: Counter[str] = field(default_factory=Counter)
    acknowledged: int = 0  # answers to items
    finished: int = 0  # people who answered all items and came to the end
    refused: int = 0  # people for whom there was no place
    left: int = 0  # people still inside when the time was over


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, default=500)
    parser.add_argument("--arriving", type=float, default=60.0, help="seconds within which all of them come")
    parser.add_argument("--think", default="3,9", help="seconds of thinking before each page is sent: least, most")
    parser.add_argument("--items", type=int, default=15, help="of a sitting")
    parser.add_argument("--seconds", type=float, default=600.0, help="after which people who are still inside leave")
    parser.add_argument("--cores", type=int, default=2, help="for everything together")
    parser.add_argument("--no-training", action="store_true", help="without the second study")
    return parser.parse_args()


def main() -> int:
    options = read_arguments()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.cores])
    places = options.people - options.people // 10
    with tempfile.TemporaryDirectory(prefix="hunch-crowd-") as name, postgresql() as (url, server):
        folder = Path(name)
        folder.chmod(0o755)
        os.environ |= {"DJANGO_SETTINGS_MODULE": "survey.settings", "HUNCH_VAR": str(folder), "DATABASE_URL": url}
        os.environ.pop("REDIS_URL", None)  # The process manager starts one.
        begun = time.perf_counter()

        def say(what: str) -> None:
            print(f"{time.perf_counter() - begun:5.0f} s  {what}", flush=True)

        open_study(study_text(places, options.items), folder)
        say(f"a study with {places} places is open")
        if not options.no_training:
            close_a_stage()
            say("the second study's stage is closed")
        with services(dict(os.environ)) as (address, manager):
            say("web, workers and beat have started")
            looker = Looker(url, manager, server)
            if not options.no_training:
                looker.wait_for_training()
                say("training goes on")
            with looker.looking():
                met = asyncio.run(crowd(address, options))
            report = figures(met, places, options) | looker.figures()
    print_figures(report, options)
    print(json.dumps(report))
    is_right = not met.errors and report["lost"] == 0 and report["places_taken"] == report["places_due"]
    return 0 if is_right else 1


def study_text(places: int, items: int) -> str:
    text = STUDY.replace("sittings = 1500", f"sittings = {places}", 1).replace("items = 15", f"items = {items}", 1)
    checks = [line for line in text.splitlines() if line.startswith("after_item = ")]
    for number, line in enumerate(checks, start=1):
        text = text.replace(line, f"after_item = {max(1, number * items // 3)}", 1)
    return text


def close_a_stage() -> None:
    """A second study whose first stage is answered and closed: beat freezes it, and the ml worker trains for long."""
    from django.db import connection

    from survey.models import Bank
    from survey.services.stages import lifecycle
    from tests import cast
    from tests.survey import filled as answers

    study = cast.small_study(
        "training",
        on=Bank.objects.get(name="load"),
        candidates={"size": 2000},
        sitting={"items": 10},
        stages=[{"sittings": TRAINED_PEOPLE}, {"sittings": 2, "design": {"kind": "epsilon_greedy", "epsilon": 0.5}}],
        predictor={"name": "bert", "params": TRAINING},
    )
    stage = study.stages.select_related("study__bank").get(index=1)
    lifecycle.open_stage(stage)
    answers.answer(stage)
    lifecycle.close_stage(stage)
    connection.close()


@contextmanager
def services(environment: dict[str, str]) -> Iterator[tuple[tuple[str, int], int]]:
    address = free_address()
    command = [sys.executable, str(ROOT / "manage.py"), "up", "--port", str(address[1])]
    with started(command, environment=environment) as process:
        wait_until_it_answers(f"http://{address[0]}:{address[1]}/s/{SLUG}/", process)
        yield address, process.pid


class Looker:
    """Whether training goes on, and what each part of the site costs, looked at once a second by a thread."""

    def __init__(self, url: str, manager: int, database: int) -> None:
        self._connection = psycopg.connect(url, autocommit=True)
        self._manager, self._database = manager, database
        self.looks: list[tuple[bool, int]] = []
        self.spent: dict[str, float] = {}
        self.took = 0.0

    def training(self) -> tuple[bool, int]:
        """Whether a step of training is being run, and how far it is."""
        row = self._connection.execute(
            "SELECT state, progress_done, error FROM survey_jobstep WHERE kind = 'train' ORDER BY id LIMIT 1"
        ).fetchone()
        if row is not None and row[0] == "failed":
            raise RuntimeError(f"training failed: {row[2]}")
        return (False, 0) if row is None else (row[0] == "running", row[1])

    def wait_for_training(self) -> None:
        until = time.monotonic() + BEGINS_WITHIN
        while not self.training()[1]:
            if time.monotonic() > until:
                raise RuntimeError(f"training has not begun within {BEGINS_WITHIN} s")
            time.sleep(0.5)

    @contextmanager
    def looking(self) -> Iterator[None]:
        over = threading.Event()

        def look() -> None:
            while not over.wait(1.0):
                self.looks.append(self.training())

        thread = threading.Thread(target=look, daemon=True)
        before, begun = self._processor(), time.perf_counter()
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
            self.took = time.perf_counter() - begun
            self.spent = {name: seconds - before.get(name, 0.0) for name, seconds in self._processor().items()}
            self._connection.close()

    def _processor(self) -> dict[str, float]:
        """Processor seconds so far: the people (this process), PostgreSQL, each service by its command, and all that
        the machine does."""
        seconds = {"people": time.process_time(), "postgresql": processor_seconds(self._database)}
        times = psutil.cpu_times()
        seconds["machine"] = sum(times) - times.idle - times.iowait - times.guest - times.guest_nice
        marks = {
            "gunicorn": "web",
            "-Q train": "worker-ml",
            "-Q collect": "worker-collect",
            "-Q default": "worker",
            " beat": "beat",
            "redis": "redis",
        }
        for child in psutil.Process(self._manager).children():
            line = " ".join(child.cmdline())
            if name := next((name for mark, name in marks.items() if mark in line), ""):
                seconds[name] = processor_seconds(child.pid)
        return seconds

    def figures(self) -> dict[str, Any]:
        running = [is_running for is_running, _done in self.looks]
        used = {name: round(seconds / self.took, 3) for name, seconds in sorted(self.spent.items())}
        # What else ran on the machine: above a few hundredths the times below say little.
        used["others"] = round(used.pop("machine") - sum(used.values()), 3)
        return {
            "training_running_share": round(sum(running) / len(running), 3) if running else None,
            "training_steps": self.looks[-1][1] - self.looks[0][1] if self.looks else 0,
            "cores_used": used,
        }


# People


async def crowd(address: tuple[str, int], options: argparse.Namespace) -> Met:
    met = Met()
    least, most = (float(bound) for bound in options.think.split(","))
    right = right_answers(STUDY)
    until = time.perf_counter() + options.seconds

    async def one() -> None:
        await asyncio.sleep(random.uniform(0, options.arriving))
        browser = Browser(address)
        try:
            await visit(browser, met, right, (least, most), until)
        except (OSError, TimeoutError, asyncio.IncompleteReadError, Refused) as exc:
            met.errors[f"{type(exc).__name__}: {exc}"[:160]] += 1
        finally:
            browser.close()

    await asyncio.gather(*(one() for _ in range(options.people)))
    return met


async def visit(browser: Browser, met: Met, right: set[str], think: tuple[float, float], until: float) -> None:
    """One person: from the address they were given to the last page."""

    async def timed(kind: str, asking: Any) -> Page:
        begun = time.perf_counter()
        page: Page = await asking
        met.seconds["end" if page.kind == "end" else kind].append(time.perf_counter() - begun)
        return page

    await timed("begin", browser.get(f"/s/{SLUG}/"))
    await asyncio.sleep(random.uniform(*think))
    page = await timed("begin", browser.get(f"/s/{SLUG}/consent"))
    await asyncio.sleep(random.uniform(*think))
    if page.status < 400:
        fields = filled(page.text, right) | {"consent": "yes"}
        page = await timed("begin", browser.post(f"/s/{SLUG}/consent", fields))
    answers = 0
    while time.perf_counter() < until:
        if page.status in (403, 409, 410):
            met.refused += 1
            return
        if page.status >= 400 or not page.kind:
            raise Refused(f"{page.status} {page.kind} {' '.join(TAG.sub(' ', page.text).split())[:120]!r}")
        if page.kind == "end":  # Also that of a person for whom no place was left after the checks.
            met.finished += answers > 0
            met.refused += answers == 0
            return
        await asyncio.sleep(random.uniform(*think))
        kind = page.kind
        asking = browser.post(f"/s/{SLUG}/sitting", filled(page.text, right), {"X-Hunch-Exchange": "1"})
        page = await timed("item" if kind == "item" else "other", asking)
        if kind == "item" and page.status < 400:
            answers += 1
            met.acknowledged += 1
    met.left += 1


# Figures


def figures(met: Met, places: int, options: argparse.Namespace) -> dict[str, Any]:
    from django.db import connection

    from survey.models import Booklet, Response, Sitting

    stored = Response.objects.filter(assignment__sitting__stage__study__slug=SLUG).count()
    taken = Booklet.objects.filter(stage__study__slug=SLUG, claimed_at__isnull=False).count()
    sitting = Sitting.objects.filter(stage__study__slug=SLUG, booklet__isnull=False).count()
    connection.close()
    everything = [second for seconds in met.seconds.values() for second in seconds]
    return {
        "people": options.people,
        "pages": {kind: times(met.seconds[kind]) for kind in KINDS} | {"all": times(everything)},
        "errors": sum(met.errors.values()),
        "first_errors": dict(met.errors.most_common(5)),
        "finished": met.finished,
        "refused": met.refused,
        "left": met.left,
        "places": places,
        "places_due": min(places, options.people),
        "places_taken": taken,
        "people_with_a_place": sitting,
        "acknowledged": met.acknowledged,
        "stored": stored,
        "lost": met.acknowledged - stored,
    }


def times(seconds: list[float]) -> dict[str, Any]:
    shares = {f"p{round(100 * share)}_ms": milliseconds(seconds, share) for share in (0.5, 0.95, 0.99)}
    return {"n": len(seconds), **shares, "most_ms": milliseconds(seconds, 1.0)}


def print_figures(report: dict[str, Any], options: argparse.Namespace) -> None:
    print(f"{options.people} people within {options.arriving:g} s, thinking {options.think} s, {options.cores} cores")
    for kind, times in report["pages"].items():
        print(
            f"{kind:<6} {times['n']:>6} pages: p50 {times['p50_ms']} ms, p95 {times['p95_ms']}, p99 {times['p99_ms']}"
        )
    print(
        f"errors {report['errors']}; places taken {report['places_taken']} of {report['places']} (due: "
        f"{report['places_due']}); finished {report['finished']}, refused {report['refused']}, left {report['left']}"
    )
    print(f"answers acknowledged {report['acknowledged']}, stored {report['stored']}")
    if not options.no_training:
        print(
            f"training was running in {100 * report['training_running_share']:.0f} % of the looks, "
            f"{report['training_steps']} steps"
        )
    print("cores used: " + ", ".join(f"{name} {share:.2f}" for name, share in report["cores_used"].items()))


if __name__ == "__main__":
    sys.exit(main())
