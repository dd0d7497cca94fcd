"""How many steps a second does the web process serve, next to a bare Django view and oTree under the same conditions?

    python benchmarks/serving.py [--people 1,8,32,64] [--seconds 6] [--rounds 5] [--otree PYTHON] [--only exchange]

A step is an answer sent and the next page read to its end. People go through whole sittings of the demo's study without
a pause, each followed by another one. Four sites stand ready, each with a fresh PostgreSQL that keeps what it
acknowledges, and take short turns in several rounds: a machine whose speed changes changes it for all
of them. The ratios are medians over the rounds.

  exchange  our pages, the next one in the answer to the last, as the page's script does it
  redirect  our pages without script: POST, redirect, GET
  bare      a Django view with our middleware and a page of the same size: lock, insert, commit, redirect, GET
  otree     oTree's own server with the same questions: POST, redirect, GET

The server and its PostgreSQL run on the first core (where ours has one process of two threads by default), the people
on the second; with one core, or with --unpinned, all share what there is. --otree names a Python that has oTree and
psycopg2 installed (`python -m venv folder`, then `folder/bin/pip install otree psycopg2-binary`); without it oTree is
not measured, and the closing lines say so. Every accepted answer is looked for in the database afterwards.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from _browsers import Browser, Person, Refused, Walked, crowd, form_after_form, sitting
from _servers import ROOT, free_address, gunicorn, milliseconds, postgresql, started, wait_until_it_answers

SITES = ("exchange", "redirect", "bare", "otree")
GOALS = {"redirect": (1.6, 0.6), "exchange": (2.2, 0.5)}  # steps a second and p95, of oTree's
SITTINGS = 1_500
QUESTIONS = 600
WARM_UP = 3.0  # seconds
BARE_PEOPLE = 512
STUDY = (
    (ROOT / "studies/demo.toml")
    .read_text(encoding="utf-8")
    .replace('bank = "starter"', 'bank = "load"')
    .replace("size = 4800", "size = 30000")
    .replace("sittings = 32", f"sittings = {SITTINGS}", 1)
    .replace("expires_after_minutes = 60", "expires_after_minutes = 60\nbegins_per_address = 0")
)


def right_answers(text: str) -> set[str]:
    """What a person who reads the instructions chooses in the study's checks, by its words."""
    config = tomllib.loads(text)
    checks = [check for block in config["blocks"] for check in block.get("checks", [])]
    return {check["options"][0] for check in checks} | {"Sometimes", "Strongly disagree"}


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", default="1,8,32,64", help="at a time, one measurement each")
    parser.add_argument("--seconds", type=float, default=6.0, help="of each turn of a site")
    parser.add_argument("--rounds", type=int, default=5, help="turns of every site, for each number of people")
    parser.add_argument("--otree", metavar="PYTHON", help="a Python that has oTree and psycopg2")
    parser.add_argument("--only", choices=SITES, action="append", help="this site alone; may be repeated")
    parser.add_argument("--unpinned", action="store_true", help="every process on every core")
    parser.add_argument("--page-bytes", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--inside", choices=SITES, help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> int:
    options = read_arguments()
    if options.inside:
        take_turns(options.inside, options)
        return 0
    chosen = [site for site in SITES if not options.only or site in options.only]
    if "otree" in chosen and not options.otree:
        chosen.remove("otree")
        print("oTree is not measured: --otree names no Python that has it.")
    turns: dict[int, list[dict[str, Any]]] = {}
    with ExitStack() as stack:
        sites: dict[str, SiteProcess] = {}
        size = 6_000
        for name in chosen:
            sites[name] = stack.enter_context(SiteProcess(name, options, size))
            size = sites[name].page_bytes or size
        for people in [int(number) for number in options.people.split(",")]:
            turns[people] = []
            for _ in range(options.rounds):
                turns[people].append({name: site.turn(people) for name, site in sites.items()})
            for name in chosen:
                summed_up = summary([turn[name] for turn in turns[people]])
                print(
                    f"{name:<8}  {people:>3} people: {summed_up['steps_per_second']:6.1f} steps a second; a step takes "
                    f"{summed_up['p50_ms']:.0f} ms (p95 {summed_up['p95_ms']:.0f}, p99 {summed_up['p99_ms']:.0f}); "
                    f"errors {summed_up['errors']}, lost {summed_up['lost']}",
                    flush=True,
                )
    for sentence in compared(turns):
        print(sentence)
    figures = {
        name: {str(people): summary([turn[name] for turn in runs]) for people, runs in turns.items()} for name in chosen
    }
    print(json.dumps(figures))
    return 0


class SiteProcess:
    """A site that stands ready in a process of its own, since a process reads its settings once."""

    def __init__(self, name: str, options: argparse.Namespace, page_bytes: int) -> None:
        arguments = ["--otree", options.otree] if options.otree else []
        arguments += ["--unpinned"] if options.unpinned else []
        arguments += ["--seconds", str(options.seconds), "--page-bytes", str(page_bytes)]
        self._process = subprocess.Popen(
            [sys.executable, __file__, *arguments, "--inside", name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.page_bytes: int = self._read()["page_bytes"]

    def __enter__(self) -> "SiteProcess":
        return self

    def __exit__(self, *_exception: object) -> None:
        self._process.stdin.close()  # type: ignore[union-attr]
        self._process.wait()

    def turn(self, people: int) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{people}\n")
        self._process.stdin.flush()
        return self._read()

    def _read(self) -> dict[str, Any]:
        """Its next line of JSON. What a library prints before it is passed over."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("{"):
                return dict(json.loads(line))
        raise SystemExit("A site could not be started or measured; the lines above say why.")


def compared(turns: dict[int, list[dict[str, Any]]]) -> Iterator[str]:
    """Our pages against the bare view and oTree: the median over the rounds of the ratio inside a round."""
    for ours in ("exchange", "redirect"):
        for other in ("otree", "bare"):
            for people, rounds in turns.items():
                pairs = [
                    (summary([turn[ours]]), summary([turn[other]])) for turn in rounds if {ours, other} <= turn.keys()
                ]
                if not pairs:
                    continue
                speed, wait = (
                    statistics.median(mine[key] / theirs[key] for mine, theirs in pairs)
                    for key in ("steps_per_second", "p95_ms")
                )
                goal = f" (goal: {GOALS[ours][0]} and {GOALS[ours][1]})" if other == "otree" else ""
                yield f"{ours} / {other}, {people} people: steps a second {speed:.2f}, p95 {wait:.2f}{goal}"


def take_turns(site: str, options: argparse.Namespace) -> None:
    """Start a site, say the bytes of a page of an item, and measure it with each number of people on standard input."""
    cores = sorted(os.sched_getaffinity(0))
    pinned = len(cores) > 1 and not options.unpinned
    servers, people = (cores[:1], cores[1:]) if pinned else (cores, cores)
    with tempfile.TemporaryDirectory(prefix="hunch-serving-") as name, postgresql(servers) as (url, _process):
        folder = Path(name)
        folder.chmod(0o755)
        start = {"bare": bare_site, "otree": otree_site}.get(site, our_site)
        with start(url, folder, servers, options, site == "exchange") as (address, person_of, stored):
            os.sched_setaffinity(0, people)
            asyncio.run(crowd(address, 4, WARM_UP, person_of(64)))
            size = asyncio.run(size_of_an_item(address)) if site in ("exchange", "redirect") else 0
            print(json.dumps({"page_bytes": size}), flush=True)
            for line in sys.stdin:
                before, person = stored(), person_of(int(line))
                walked = asyncio.run(crowd(address, int(line), options.seconds, person))
                accepted = sum(walked.kinds[kind] for kind in ("item", "form"))
                said = {
                    "steps_per_second": walked.steps_per_second,
                    "seconds": walked.seconds,
                    "finished": walked.finished,
                    "errors": dict(walked.errors),
                    "lost": accepted - (stored() - before),
                }
                print(json.dumps(said), flush=True)


def summary(turns: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One site's turns together."""
    seconds = [duration for turn in turns for duration in turn["seconds"]]
    return {
        "steps_per_second": round(statistics.fmean(turn["steps_per_second"] for turn in turns), 1),
        "p50_ms": milliseconds(seconds, 0.5),
        "p95_ms": milliseconds(seconds, 0.95),
        "p99_ms": milliseconds(seconds, 0.99),
        "steps": len(seconds),
        "finished": sum(turn["finished"] for turn in turns),
        "errors": sum(sum(turn["errors"].values()) for turn in turns),
        "first_errors": [error for turn in turns for error in turn["errors"]][:3],
        "lost": sum(turn["lost"] for turn in turns),
    }


async def size_of_an_item(address: tuple[str, int]) -> int:
    """Bytes of the page of an item, for the bare view."""
    sizes: list[int] = []

    async def person(browser: Browser, walked: Walked, is_over: Callable[[], bool]) -> None:
        inner = sitting("demo", right_answers(STUDY), by_exchange=False)
        post = browser.post

        async def watched(*arguments: Any) -> Any:
            page = await post(*arguments)
            if page.kind == "item":
                sizes.append(len(page.text))
            return page

        browser.post = watched  # type: ignore[method-assign]
        await inner(browser, walked, lambda: bool(sizes))

    await crowd(address, 1, 1.0, person)
    return sizes[0]


Site = tuple[tuple[str, int], Callable[[int], Person], Callable[[], int]]


@contextmanager
def our_site(
    url: str, folder: Path, cores: list[int], options: argparse.Namespace, by_exchange: bool
) -> Iterator[Site]:
    os.environ |= {"DJANGO_SETTINGS_MODULE": "survey.settings", "HUNCH_VAR": str(folder), "DATABASE_URL": url}
    os.environ["HUNCH_LOG_LEVEL"] = "ERROR"
    open_study(STUDY, folder)
    from django.db import connection

    from survey.models import Response

    def stored() -> int:
        count = Response.objects.count()
        connection.close()
        return count

    right = right_answers(STUDY)
    with gunicorn("survey.wsgi", environment=dict(os.environ), ready="/s/demo/", cores=cores) as (address, _process):
        yield address, lambda _count: sitting("demo", right, by_exchange=by_exchange), stored


def open_study(text: str, folder: Path) -> None:
    """The study of this file on a bank of made-up questions, planned and open, in the database of the environment."""
    sys.path.insert(0, str(ROOT))
    import django

    django.setup()
    from django.core.management import call_command
    from django.db import connection

    call_command("migrate", verbosity=0, interactive=False)
    bank, study = folder / "bank.csv", folder / "demo.toml"
    lines = [
        f"q{i},task_{i % 6},What is {i} plus {3 * i} in round {i % 7} of game {i % 11}?,{4 * i}"
        for i in range(QUESTIONS)
    ]
    bank.write_text("\n".join(["id,source,question,answer", *lines, ""]), encoding="utf-8")
    study.write_text(text, encoding="utf-8")
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        call_command("import_questions", str(bank), bank="load", stdout=nowhere)
        call_command("create_study", str(study), stdout=nowhere)
        call_command("plan_stage", "demo", "1", stdout=nowhere)
        call_command("open_stage", "demo", stdout=nowhere)
    connection.close()


@contextmanager
def bare_site(
    url: str, folder: Path, cores: list[int], options: argparse.Namespace, by_exchange: bool
) -> Iterator[Site]:
    import psycopg

    def asked(statement: str, *values: int) -> Any:
        with psycopg.connect(url, autocommit=True) as connection:
            return connection.execute(statement, values)  # type: ignore[call-overload]

    asked("CREATE TABLE bare_person (id integer PRIMARY KEY, step integer NOT NULL)")
    asked("CREATE TABLE bare_answer (id bigserial PRIMARY KEY, person integer NOT NULL, value text NOT NULL)")
    asked("INSERT INTO bare_person SELECT n, 0 FROM generate_series(1, %s) AS n", BARE_PEOPLE)

    def stored() -> int:
        with psycopg.connect(url) as connection:
            return int(connection.execute("SELECT count(*) FROM bare_answer").fetchone()[0])  # type: ignore[index]

    environment = dict(os.environ) | {
        "DJANGO_SETTINGS_MODULE": "_bare_site",
        "PYTHONPATH": str(Path(__file__).resolve().parent),
        "BARE_PAGE": str(options.page_bytes),
        "HUNCH_VAR": str(folder),
        "DATABASE_URL": url,
        "HUNCH_LOG_LEVEL": "ERROR",
    }
    numbers = iter(range(1, 10**9))

    def person_of(_count: int) -> Person:
        async def person(browser: Browser, walked: Walked, is_over: Callable[[], bool]) -> None:
            await form_after_form(f"/{1 + next(numbers) % BARE_PEOPLE}", {"value": "50"})(browser, walked, is_over)

        return person

    with gunicorn("survey.wsgi", environment=environment, ready="/1", cores=cores) as (address, _process):
        yield address, person_of, stored


@contextmanager
def otree_site(
    url: str, folder: Path, cores: list[int], options: argparse.Namespace, by_exchange: bool
) -> Iterator[Site]:
    binaries = Path(options.otree).absolute().parent
    environment = dict(os.environ) | {
        "DATABASE_URL": url,
        "OTREE_PRODUCTION": "1",
        "OTREE_ADMIN_PASSWORD": "benchmark",
        "OTREE_REST_KEY": "benchmark",
        "PATH": f"{binaries}:{os.environ['PATH']}",
    }
    project = folder / "project"
    for name in ("belief", "_static", "_templates"):
        (project / name).mkdir(parents=True)
    (project / "belief/__init__.py").write_text((ROOT / "benchmarks/_otree_belief.py").read_text(), encoding="utf-8")
    for page, name in (("Prior", "prior"), ("Posterior", "posterior")):
        (project / f"belief/{page}.html").write_text(
            "{{ block title }}What do you expect?{{ endblock }}\n{{ block content }}\n"
            f"<p>What is 17 plus 51 in round 3 of game 6?</p>\n{{{{ formfield '{name}' }}}}\n{{{{ next_button }}}}\n"
            "{{ endblock }}\n",
            encoding="utf-8",
        )
    (project / "settings.py").write_text(
        "SESSION_CONFIGS = [dict(name='belief', app_sequence=['belief'], num_demo_participants=1)]\n"
        "SESSION_CONFIG_DEFAULTS = dict(real_world_currency_per_point=1, participation_fee=0)\n"
        "PARTICIPANT_FIELDS = SESSION_FIELDS = []\nLANGUAGE_CODE = 'en'\nREAL_WORLD_CURRENCY_CODE = 'GBP'\n"
        "USE_POINTS = True\nADMIN_USERNAME = 'admin'\nADMIN_PASSWORD = 'benchmark'\nDEMO_PAGE_INTRO_HTML = ''\n"
        "SECRET_KEY = 'benchmark'\n",
        encoding="utf-8",
    )
    otree = str(binaries / "otree")
    subprocess.run([otree, "resetdb", "--noinput"], cwd=project, env=environment, check=True, stdout=subprocess.DEVNULL)
    host, port = free_address()
    root = f"http://{host}:{port}"

    def ask(path: str, body: dict[str, Any], method: str) -> Any:
        headers = {"otree-rest-key": "benchmark", "content-type": "application/json"}
        request = urllib.request.Request(root + path, json.dumps(body).encode(), headers, method=method)
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.load(answer)

    def person_of(count: int) -> Person:
        made = ask("/api/sessions", {"session_config_name": "belief", "num_participants": 200}, "POST")
        seats = [participant["code"] for participant in ask(f"/api/sessions/{made['code']}", {}, "GET")["participants"]]

        async def person(browser: Browser, walked: Walked, is_over: Callable[[], bool]) -> None:
            if not seats:
                raise Refused("oTree's session has no participant left: take fewer seconds")
            page = await browser.get(f"/InitializeParticipant/{seats.pop()}")
            while not is_over():
                name = next((field for field in ("prior", "posterior") if f'name="{field}"' in page.text), None)
                if name is None:
                    walked.finished += 1
                    return
                begun = time.perf_counter()
                page = await browser.post(page.path, {name: "50"})
                walked.seconds.append(time.perf_counter() - begun)
                if page.status >= 400:
                    raise Refused(f"{page.status}")
                walked.kinds["form"] += 1

        return person

    # Its own tables hold a row per participant and round from the start, so stored answers are counted by their values.
    def stored() -> int:
        import psycopg

        with psycopg.connect(url) as connection:
            row = connection.execute("SELECT count(prior) + count(posterior) FROM belief_player").fetchone()
        return int(row[0]) if row else 0

    command = [otree, "prodserver", f"{host}:{port}"]
    with started(command, environment=environment, folder=project, cores=cores) as process:
        wait_until_it_answers(f"{root}/", process)
        yield (host, port), person_of, stored


if __name__ == "__main__":
    sys.exit(main())
