"""Which tests PostgreSQL takes, and which `make check` leaves out."""

from collections import Counter

from tests import noting, once, slow


def test_each_statement_is_sent_by_two_tests_and_cheap_ones_are_taken() -> None:
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
    assert chosen == {"locks", "cheap", "also cheap", "dear", "alone"}
    assert sent == {"a": 4, "b": 3, "c": 1, "d": 1}


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
