"""Which tests PostgreSQL takes, and which `make check` leaves out."""

import re
from collections import Counter
from collections.abc import Callable

import pytest

from tests import noting, once, slow

FUNCTION = re.compile(r"^\s*(?:async )?def (test_\w+)\(", re.MULTILINE)


def test_each_statement_is_sent_by_a_test_and_cheap_ones_are_taken() -> None:
    statements = {
        "dear": {"a", "b", "c"},
        "cheap": {"a", "b"},
        "also cheap": {"a", "b"},
        "third": {"a"},
        "alone": {"d"},
        "locks": {"a"},
        "none": set(),
    }
    seconds = {"dear": 5.0, "cheap": 0.1, "also cheap": 0.1, "third": 0.4, "alone": 9.0, "locks": 9.0, "none": 0.0}
    chosen = once.tests_to_repeat(statements, seconds, always={"locks"})
    sent = Counter(statement for name in chosen for statement in statements[name])
    assert chosen == {"locks", "also cheap", "dear", "alone"}
    assert sent == {"a": 3, "b": 2, "c": 1, "d": 1}


@pytest.mark.parametrize("listed", [once.listed, slow.listed])
def test_every_listed_test_exists(listed: Callable[[], frozenset[str]]) -> None:
    """Under another name a test is in no list: `make check` then runs it however slow it is."""
    written: dict[str, set[str]] = {}
    for file in {name.partition("::")[0] for name in listed()}:
        path = noting.ROOT / file
        written[file] = set(FUNCTION.findall(path.read_text(encoding="utf-8"))) if path.exists() else set()
    gone = [name for name in listed() if name.rpartition("::")[2] not in written[name.partition("::")[0]]]
    assert gone == [], "rename it in tests/once.txt and tests/slow.txt too, or take it out"


def test_a_test_is_slow_by_the_mean_of_its_cases() -> None:
    costs = noting.Costs(
        seconds={"one": 0.3, "ten": 0.3, "in a browser": 9.0},
        cases=Counter({"one": 1, "ten": 10, "in a browser": 1}),
        fast={"one", "ten"},
    )
    assert slow.slow_ones(costs) == {"one"}


def test_the_parameters_of_a_test_are_no_part_of_its_function() -> None:
    assert (
        noting.function_of("tests/a.py::test_b[c[d]]")
        == noting.function_of("tests/a.py::test_b")
        == "tests/a.py::test_b"
    )
