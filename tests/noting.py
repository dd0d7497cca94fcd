"""What each test function costs and which statements of ours it sends, for the two lists that follow from it.

once.txt names tests that run on SQLite alone (once.py), slow.txt those that `make check` leaves out (slow.py).
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
# What differs between two statements of one place: values, and how many there are in a list.
VALUES = re.compile(r"\((?:%s, )*%s\)|'[^']*'|\b\d+\b")
NOT_COUNTED = ("SAVEPOINT", "RELEASE", "ROLLBACK")


def function_of(test: str) -> str:
    """The id of a test without its parameters."""
    return test.partition("[")[0]


def read_list(file: Path) -> frozenset[str]:
    if not file.exists():
        return frozenset()
    lines = file.read_text(encoding="utf-8").splitlines()
    return frozenset(line for line in lines if line and not line.startswith("#"))


def write_list(file: Path, head: str, names: Set[str]) -> None:
    file.write_text(f"# {head}\n" + "".join(f"{name}\n" for name in sorted(names)), encoding="utf-8")


@dataclass
class Costs:
    """By test function."""

    statements: dict[str, set[str]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)  # Of processor time, summed over its cases.
    cases: Counter[str] = field(default_factory=Counter)
    about_the_database: set[str] = field(default_factory=set)
    fast: set[str] = field(default_factory=set)  # Those that need no server, browser or torch.


class Noted:
    """The plugin that notes it, in each process that runs tests."""

    def __init__(
        self, folder: Path, is_about_the_database: Callable[[pytest.Item], bool], is_fast: Callable[[pytest.Item], bool]
    ) -> None:
        self.folder = folder
        self.is_about_the_database = is_about_the_database
        self.is_fast = is_fast
        self.costs = Costs()
        self._now: set[str] | None = None

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        from django.db import connection

        if self._note not in connection.execute_wrappers:
            connection.execute_wrappers.append(self._note)
        name = function_of(item.nodeid)
        if self.is_about_the_database(item):
            self.costs.about_the_database.add(name)
        if self.is_fast(item):
            self.costs.fast.add(name)
        self._now = self.costs.statements.setdefault(name, set())
        started = _processor_time()
        yield
        self.costs.seconds[name] = self.costs.seconds.get(name, 0.0) + _processor_time() - started
        self.costs.cases[name] += 1
        self._now = None

    def pytest_sessionfinish(self) -> None:
        found = {
            "statements": {name: sorted(own) for name, own in self.costs.statements.items()},
            "seconds": self.costs.seconds,
            "cases": self.costs.cases,
            "about_the_database": sorted(self.costs.about_the_database),
            "fast": sorted(self.costs.fast),
        }
        path = self.folder / f"{os.environ.get('PYTEST_XDIST_WORKER', 'main')}.json"
        path.write_text(json.dumps(found), encoding="utf-8")

    def _note(self, execute: Callable[..., Any], sql: Any, *given: Any) -> Any:
        text = str(sql)
        if self._now is not None and not text.startswith(NOT_COUNTED) and (place := _place()):
            self._now.add(f"{place} {VALUES.sub('?', text)}")
        return execute(sql, *given)


def _processor_time() -> float:
    """Of this process and of those that it has waited for."""
    return sum(os.times()[:4])


def _place() -> str:
    """The innermost line of the project that leads to the statement; nothing where it is a test's own."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        path = frame.f_code.co_filename
        if path.startswith(str(ROOT)) and "/.venv" not in path:
            inside = path[len(str(ROOT)) + 1 :]
            return "" if inside.startswith("tests/") else f"{inside}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


def note(options: list[str], database: str = "") -> tuple[int, Costs]:
    """Run tests on that database (SQLite where it is empty), two at a time: the exit status, and what they cost."""
    with tempfile.TemporaryDirectory(prefix="hunch-noted-") as folder:
        environment = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "tests.settings",
            "DATABASE_URL": database,
            "HUNCH_TEST_FOLDER": folder,
            "OMP_NUM_THREADS": "1",
            **({"HUNCH_TEST_POSTGRESQL": database} if database else {}),
        }
        command = [sys.executable, "-m", "pytest", f"--note-costs={folder}", "-q", "-n", "2", "--dist", "worksteal"]
        status = subprocess.call([*command, *options, *sys.argv[1:]], env=environment)
        return status, read_costs(Path(folder))


def noted(database: str) -> Costs | None:
    """What `python -m tests.run --note FOLDER` noted of that database, where the command line says `--noted FOLDER`."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--noted", type=Path)
    folder = parser.parse_known_args()[0].noted
    return None if folder is None else read_costs(folder / database)


def read_costs(folder: Path) -> Costs:
    """What the processes of one run have noted there."""
    costs = Costs()
    for path in sorted(folder.glob("*.json")):
        found = json.loads(path.read_text(encoding="utf-8"))
        costs.about_the_database |= set(found["about_the_database"])
        costs.fast |= set(found["fast"])
        costs.cases.update(found["cases"])
        for name, seconds in found["seconds"].items():
            costs.seconds[name] = costs.seconds.get(name, 0.0) + seconds
            costs.statements.setdefault(name, set()).update(found["statements"][name])
    return costs
