"""The small faults that `make mutants` puts in: which there are, which are left out, and what a report says."""

import pytest

from tests import mutants

SOURCE = '''"""A module of 3 lines."""

from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True)
class Place:
    row: int | None = 4

    def __str__(self) -> str:
        return f"{self.row + 1}"


@cache
def first(rows, least=2):
    """The first row above 2."""
    for row in rows:
        if row > least and row.state == "open":
            return take(
                row,
                wave=1,
            )
    raise ValueError(f"none of {len(rows) + 1}")
'''


def every() -> list[mutants.Fault]:
    return list(mutants.faults_of("place.py", SOURCE))


def test_faults_stand_where_code_decides_and_not_in_texts_annotations_or_caches() -> None:
    assert {fault.line for fault in every()} == {7, 9, 16, 18, 19, 22}
    assert {fault.operator.rpartition("/")[2] for fault in every() if fault.line == 7} == {"RemoveDecorator"}
    assert {fault.operator.rpartition("/")[2] for fault in every() if fault.line == 9} == {"NumberReplacer"}


def test_each_fault_is_another_module_that_python_can_read() -> None:
    codes = [fault.code(SOURCE) for fault in every()]
    assert len(set(codes)) == len(codes) > 20 and SOURCE not in codes
    for code in codes:
        assert code is not None
        compile(code, "place.py", "exec")
    assert any("wave" not in code for code in codes if code)


def test_a_fault_is_tried_by_the_tests_of_its_whole_statement() -> None:
    lines = {fault.line: fault.lines for fault in every()}
    assert lines[22] == {20, 21, 22, 23} and lines[19] == {19} and lines[18] == {18}


def test_a_sample_has_one_fault_of_a_line_and_depends_on_the_seed_alone() -> None:
    first, again, other = (list(mutants.sample(every(), seed)) for seed in (1, 1, 2))
    assert first == again != other
    assert sorted(fault.line for fault in first) == sorted({fault.line for fault in every()})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("states", "status", "said"),
    [
        (["noticed"] * 9 + ["not noticed"], 0, "9 of 10 faults noticed: 90 %."),
        (["noticed"] * 8 + ["not noticed", "not run"], 1, "8 of 10 faults noticed: 80 %."),
        (["noticed"] * 9 + ["out of time"], 0, "9 of 9 faults noticed: 100 %; 1 out of time."),
        (["out of time"], 2, "Nothing could be tried."),
    ],
)
def test_the_exit_status_says_whether_enough_was_noticed(
    states: list[str], status: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    outcomes = [mutants.Outcome(every()[0], "-one\n+other", state, tests=3, of=5) for state in states]
    assert mutants.report(outcomes, least=85) == status
    printed = capsys.readouterr().out
    assert said in printed and printed.count("(3 of 5 tests that run it)") == len(states) - states.count("noticed")
