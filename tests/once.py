"""Which tests need not run on PostgreSQL too, because each statement they send is sent there by another one.

    python -m tests.once

runs every test of the database on PostgreSQL, notes which statements of ours each sends and how long it takes, and
writes once.txt anew: the test functions that then run on SQLite alone. A new test is not in the file, so it runs on
both. What is about the database itself is never listed: transactions, locks, constraints, servers that die.

    python -m tests.run --note FOLDER
    python -m tests.once --noted FOLDER

does the same for what a run of all tests sent to PostgreSQL; what was listed before stays so.
"""

import re
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests import noting, servers

FILE = Path(__file__).with_name("once.txt")
# What every test costs beside its own time, so that one of no time at all is not free.
LEAST_SECONDS = 0.02
ABOUT_THE_DATABASE = ("tests/survey/models/", "tests/faults/", "tests/infrastructure/")
# Files about the order in which things happen, about odd input, and about how many statements there are.
ABOUT_IT_BY_NAME = re.compile(r"fuzz|interleav|query_counts|statements|backups|restore|upgrade")


def listed() -> frozenset[str]:
    return noting.read_list(FILE)


def is_about_the_database(item: pytest.Item) -> bool:
    mark = item.get_closest_marker("django_db")
    return (
        item.nodeid.startswith(ABOUT_THE_DATABASE)
        or ABOUT_IT_BY_NAME.search(item.nodeid.partition("::")[0]) is not None
        or (mark is not None and bool(mark.kwargs.get("transaction")))
        or not {"transactional_db", "live_server", "child_environment"}.isdisjoint(getattr(item, "fixturenames", ()))
        or any(item.get_closest_marker(name) for name in ("postgresql", "every_database", "redis"))
    )


def tests_to_repeat(statements: Mapping[str, set[str]], seconds: Mapping[str, float], always: set[str]) -> set[str]:
    """Tests that together send every statement, in little time: the one that adds most for its time is taken next,
    until nothing is missing."""
    missing = set[str]().union(*statements.values())
    chosen: set[str] = set()

    def take(name: str) -> None:
        chosen.add(name)
        missing.difference_update(statements[name])

    def worth(name: str) -> float:
        return len(missing & statements[name]) / (seconds[name] + LEAST_SECONDS)

    for name in sorted(always):
        take(name)
    left = {name: worth(name) for name in sorted(statements) if name not in chosen}
    while left:
        name = max(left, key=lambda one: left[one])
        now = worth(name)
        if now == 0:
            del left[name]
        elif now < left[name]:
            left[name] = now  # Another one sends some of it by now: compare again.
        else:
            take(name)
            del left[name]
    return chosen


def main() -> int:
    status, costs, listed_before = 0, noting.noted("postgresql"), listed()
    if costs is None:
        listed_before = frozenset()
        with servers.postgresql() as url:
            status, costs = noting.note(["--database-only", "--also-listed"], url)
    if status:
        print("once.txt stays as it is: not every test passed.")
        return status
    chosen = tests_to_repeat(costs.statements, costs.seconds, costs.about_the_database)
    head = "Test functions that run on SQLite alone: PostgreSQL gets their statements from others. See once.py."
    noting.write_list(FILE, head, (listed_before | set(costs.statements)) - chosen)
    kept, whole = (sum(costs.seconds[name] for name in names) for names in (chosen, costs.statements))
    print(f"{len(chosen)} of {len(costs.statements)} test functions run on both: {kept:.0f} of {whole:.0f} s.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
