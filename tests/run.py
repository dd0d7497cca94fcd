"""What `make check`, `make test` and `make test-all` call, with what is written behind them in ARGS.

    python -m tests.run                     `make test`: all but the thorough ones on SQLite, and at the same time
                                            on PostgreSQL what it alone can say
    python -m tests.run --fast              `make check`: only what needs no server, browser or torch, on SQLite
    python -m tests.run --all               `make test-all`: everything, and all tests of the database on PostgreSQL too
    python -m tests.run --repeat 3          the whole three times, each time in another order
    python -m tests.run --shuffle 7         in the order of that seed; with --repeat of the seeds from there on
    python -m tests.run --times FILE        and write there how many seconds each test took, as JSON, slowest first
    python -m tests.run tests/api -k links  every other argument goes to pytest

The order of the tests is another one in each run (pytest-randomly). pytest prints its seed, with which --shuffle gives
the same order again. After the runs stand the slowest tests and the time by folder, and at the end a plain closing line
that counts all runs. With CI=true a missing part is a failure.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests import servers

NO_TESTS_COLLECTED = 5
SLOWEST = 20
# How many processes take tests at a time. More than there are cores: browsers, workers and servers keep some waiting.
# Each reads all tests first, which takes it a quarter of a minute. Fast tests wait for nothing.
WORKERS = {"SQLite": 3, "PostgreSQL": 1}
FAST_WORKERS = 2


@dataclass
class Part:
    """The tests of one database, in a pytest of their own."""

    name: str
    folder: Path
    arguments: list[str]
    environment: dict[str, str]
    aside: bool = False  # Its output is kept until it has ended.
    process: subprocess.Popen[bytes] = field(init=False)

    def start(self) -> None:
        self.folder.mkdir()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *self.arguments],
            env=self.whole_environment,
            stdout=self.output.open("wb") if self.aside else None,
            stderr=subprocess.STDOUT if self.aside else None,
        )

    @property
    def whole_environment(self) -> dict[str, str]:
        """Bytecode is written whatever the caller's environment says. Without it each worker compiles the project and
        its tests for 16 s, and each process that a test starts compiles the project."""
        ours = {"HUNCH_TEST_FOLDER": str(self.folder), "HUNCH_TEST_SUMMARY": str(self.summary)}
        return {**os.environ, **self.environment, **ours, "PYTHONDONTWRITEBYTECODE": ""}

    @property
    def summary(self) -> Path:
        return self.folder / "summary.json"

    @property
    def output(self) -> Path:
        return self.folder / "output.txt"

    def end(self) -> tuple[int, dict[str, Any]]:
        """Wait for it: its exit status, and what conftest.py wrote of it."""
        status = self.process.wait()
        if self.aside:
            print(f"\n{self.name}\n{self.output.read_text(encoding='utf-8', errors='replace')}", flush=True)
        if not self.summary.exists():
            return status or 1, {"counts": {}, "not_tested": [], "seconds": {}}
        return status, json.loads(self.summary.read_text(encoding="utf-8"))

    def kill(self) -> None:
        """Where we are interrupted. It ends its workers and servers itself."""
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait()


class Total:
    """What all parts of all runs came to."""

    def __init__(self) -> None:
        self.status = 0
        self.counts: Counter[str] = Counter()
        self.missing: list[str] = []
        self.seconds: dict[tuple[str, str], float] = {}

    def add(self, part: Part) -> None:
        status, report = part.end()
        self.counts.update(report["counts"])
        self.note(*report["not_tested"])
        for test, seconds in report["seconds"].items():
            self.seconds[part.name, test] = max(seconds, self.seconds.get((part.name, test), 0.0))
        if status not in (0, NO_TESTS_COLLECTED):
            self.status = self.status or status
            if not report["counts"].get("failed") and not report["counts"].get("errors"):
                self.counts["errors"] += 1  # It broke off before a test could fail.

    def note(self, *sentences: str) -> None:
        self.missing += [sentence for sentence in sentences if sentence not in self.missing]


def slowest_tests(seconds: dict[tuple[str, str], float]) -> list[str]:
    ranked = sorted(seconds.items(), key=lambda item: -item[1])[:SLOWEST]
    return [f"{time:8.2f} s  {database:<10}  {test}" for (database, test), time in ranked]


def time_by_folder(seconds: dict[tuple[str, str], float]) -> list[str]:
    """The seconds and the number of tests of each folder, in each database."""
    folders: dict[tuple[str, str], list[float]] = {}
    for (database, test), taken in seconds.items():
        folders.setdefault((test.split("::")[0].rpartition("/")[0], database), []).append(taken)
    ranked = sorted(folders.items(), key=lambda item: -sum(item[1]))
    return [
        f"{sum(times):8.2f} s  {database:<10}  {folder}, {len(times)} test{'s' if len(times) > 1 else ''}"
        for (folder, database), times in ranked
    ]


def closing_line(counts: Counter[str], seconds: float) -> str:
    """As pytest ends: `==== 2 failed, 300 passed, 1 skipped in 61.20s ====`."""
    parts = ", ".join(
        f"{counts[name]} {name}" for name in ("failed", "errors", "passed", "skipped") if counts.get(name)
    )
    return f" {parts or 'no tests ran'} in {seconds:.2f}s ".center(80, "=")


def read_arguments(arguments: list[str]) -> tuple[argparse.Namespace, list[str]]:
    parser = argparse.ArgumentParser(
        prog="python -m tests.run", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    tier = parser.add_mutually_exclusive_group()
    tier.add_argument(
        "--fast",
        dest="tier",
        action="store_const",
        const="check",
        default="test",
        help="only what needs no server, browser or torch, on SQLite",
    )
    tier.add_argument("--all", dest="tier", action="store_const", const="all", help="everything, on both databases")
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="run everything N times")
    parser.add_argument(
        "--shuffle", type=int, metavar="SEED", help="the order of this seed; the next run takes the next"
    )
    parser.add_argument("--times", type=Path, metavar="FILE", help="write the seconds of each test there, as JSON")
    return parser.parse_known_args(arguments)


def parts_of_run(
    chosen: argparse.Namespace, pytest_arguments: list[str], databases: dict[str, str], folder: Path
) -> list[Part]:
    """The first one shows its output while it runs, the others once they have ended."""
    several = not any(argument.startswith("-n") or "no:xdist" in argument for argument in pytest_arguments)
    parts: list[Part] = []
    workers = 0
    for name, url in databases.items():
        processes = FAST_WORKERS if chosen.tier == "check" else WORKERS[name]
        environment = {"DJANGO_SETTINGS_MODULE": "tests.settings", "DATABASE_URL": url}
        if "PostgreSQL" in databases:
            environment["HUNCH_TEST_POSTGRESQL"] = databases["PostgreSQL"]
        options = [f"--tier={chosen.tier}"]
        if name == "PostgreSQL":
            options.append("--database-only")
        if chosen.shuffle is not None:
            options += ["-p", "randomly", f"--randomly-seed={chosen.shuffle}"]
        if several:
            options += ["-n", str(processes), "--dist", "worksteal"]
            environment["OMP_NUM_THREADS"] = "1"  # Several processes with two threads each are slower than with one.
            environment["HUNCH_TEST_FIRST_REDIS"] = str(workers)  # Of one that REDIS_URL names, which all use.
            workers += processes
        parts.append(Part(name, folder / name.lower(), [*options, *pytest_arguments], environment, aside=bool(parts)))
    return parts


def run_once(parts: list[Part], total: Total) -> None:
    with ExitStack() as stack:
        for part in parts:
            part.start()
            stack.callback(part.kill)
        for part in parts:
            total.add(part)


def main(arguments: list[str]) -> int:
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    chosen, pytest_arguments = read_arguments(arguments)
    started = time.monotonic()
    total = Total()
    with ExitStack() as stack:
        databases = {"SQLite": ""}
        if chosen.tier != "check":
            try:
                databases["PostgreSQL"] = stack.enter_context(servers.postgresql())
            except Exception as exc:  # Whatever keeps a server from starting, the tests on SQLite still say something.
                total.note(f"PostgreSQL cannot be started ({type(exc).__name__}: {exc})")
                if os.environ.get("CI") == "true":
                    total.status = 1
        for number in range(1, chosen.repeat + 1):
            run = f", run {number} of {chosen.repeat}" if chosen.repeat > 1 else ""
            print(f"\n{' and next to it '.join(databases)}{run}", flush=True)
            with tempfile.TemporaryDirectory(prefix="hunch-tests-") as folder:
                run_once(parts_of_run(chosen, pytest_arguments, databases, Path(folder)), total)
            if chosen.shuffle is not None:
                chosen.shuffle += 1
    print(f"\nThe {SLOWEST} slowest tests", *slowest_tests(total.seconds), sep="\n")
    print("\nTime by folder", *time_by_folder(total.seconds), "", sep="\n")
    if chosen.times is not None:
        ranked = sorted(total.seconds.items(), key=lambda timed: -timed[1])
        times = {f"{database} {test}": round(seconds, 3) for (database, test), seconds in ranked}
        chosen.times.write_text(json.dumps(times, indent=1) + "\n", encoding="utf-8")
    for sentence in total.missing:
        print(f"Not tested: {sentence}")
    print(closing_line(total.counts, time.monotonic() - started))
    return total.status if total.counts["passed"] or total.status else NO_TESTS_COLLECTED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
