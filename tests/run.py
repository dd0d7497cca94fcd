"""What `make test` calls: all tests on SQLite, then those that use the database again on PostgreSQL.

Arguments go to pytest. A plain closing line counts both runs. With CI=true a missing part is a failure.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from tests import servers

NO_TESTS_COLLECTED = 5


def run_pytest(
    arguments: list[str], *, environment: dict[str, str], folder: Path
) -> tuple[int, dict[str, int], list[str]]:
    """The exit status, the counts by outcome, and what could not be tested."""
    summary = folder / "summary.json"
    summary.unlink(missing_ok=True)
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *arguments],
        env={**os.environ, **environment, "HUNCH_TEST_SUMMARY": str(summary)},
        check=False,
    )
    if not summary.exists():
        return run.returncode or 1, {}, []
    told = json.loads(summary.read_text(encoding="utf-8"))
    return run.returncode, told["counts"], told["not_tested"]


def closing_line(counts: dict[str, int], seconds: float) -> str:
    """As pytest ends: `==== 2 failed, 300 passed, 1 skipped in 61.20s ====`."""
    parts = ", ".join(
        f"{counts[name]} {name}" for name in ("failed", "errors", "passed", "skipped") if counts.get(name)
    )
    return f" {parts or 'no tests ran'} in {seconds:.2f}s ".center(80, "=")


def main(arguments: list[str]) -> int:
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    started = time.monotonic()
    two_at_once = not any(argument.startswith("-n") or "no:xdist" in argument for argument in arguments)
    shared = ["-n", "2", "--dist", "loadfile"] if two_at_once else []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hunch-tests-")))
        environment = {"HUNCH_TEST_FOLDER": str(folder), "DJANGO_SETTINGS_MODULE": "tests.settings"}
        if two_at_once:
            environment["OMP_NUM_THREADS"] = "1"  # two processes with two threads each are slower than two with one
        postgresql, missing = "", []
        try:
            postgresql = stack.enter_context(servers.postgresql())
            environment["HUNCH_TEST_POSTGRESQL"] = postgresql
        except Exception as exc:  # whatever keeps a server from starting, the tests on SQLite still say something
            missing = [f"PostgreSQL cannot be started ({type(exc).__name__}: {exc})"]
        runs = [("SQLite", {"DATABASE_URL": ""}, [])]
        if postgresql:
            runs.append(("PostgreSQL", {"DATABASE_URL": postgresql}, ["--database-only"]))
        status, total = 0, {}
        for name, database, options in runs:
            print(f"\n{name}", flush=True)
            code, counts, not_tested = run_pytest(
                [*shared, *options, *arguments], environment={**environment, **database}, folder=folder
            )
            for outcome, count in counts.items():
                total[outcome] = total.get(outcome, 0) + count
            missing += [sentence for sentence in not_tested if sentence not in missing]
            if code not in (0, NO_TESTS_COLLECTED):
                status = status or code
                if not counts.get("failed") and not counts.get("errors"):  # it broke off before a test could fail
                    total["errors"] = total.get("errors", 0) + 1
    if not postgresql and os.environ.get("CI") == "true":
        status = status or 1
    for sentence in missing:
        print(f"Not tested: {sentence}")
    print(closing_line(total, time.monotonic() - started))
    return status if total.get("passed") or status else NO_TESTS_COLLECTED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
