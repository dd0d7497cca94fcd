"""A problem stays in its parts until somebody reads it; only then it is a line."""

import pytest

from survey import study_file
from survey.exceptions import FileErrors, Problem
from survey.study_file import Note, StudyFileError
from survey.study_file.base import WrongKey
from tests import cast


@pytest.mark.parametrize(
    ("problem", "line"),
    [
        (Problem("a.toml", 3, "seed", "is missing: add it"), "a.toml:3: seed: is missing: add it"),
        (Problem("a.toml", None, "seed", "cannot be changed"), "a.toml: seed: cannot be changed"),
        (Problem("a.toml", None, "", "cannot be read: no such file"), "a.toml: cannot be read: no such file"),
        (Problem("", 3, "seed", "is missing"), "3: seed: is missing"),
        (Problem("", None, "bank.name", "has 1 question"), "bank.name: has 1 question"),
    ],
)
def test_a_problem_reads_as_place_field_and_what_to_do(problem: Problem, line: str) -> None:
    assert str(problem) == line


@pytest.mark.parametrize(("count", "last"), [(1, "f:1: id: no"), (2, "f:2: id: no"), (3, "and 1 more problem")])
def test_people_read_the_first_problems_and_programs_have_them_all(count: int, last: str) -> None:
    refused = FileErrors((Problem("f", line, "id", "no") for line in range(1, count + 1)), shown=2)
    assert len(refused.problems) == count
    assert refused.lines[-1] == last and len(refused.lines) == min(count, 3)
    assert refused.message == "\n".join(refused.lines) == str(refused)
    many = FileErrors([Problem("f", 1, "id", "no")] * 9, shown=2)
    assert many.lines[2:] == ["and 7 more problems"]
    assert len(FileErrors(many.problems).lines) == 9, "all are shown where nothing is said"


def test_the_problems_of_a_study_file_are_in_the_order_of_its_lines_and_get_its_name() -> None:
    error = StudyFileError([Problem("", 7, "b", "no: 7"), Problem("", 2, "a", "no: 2"), Problem("", None, "c", "no")])
    assert str(error) == "c: no\n2: a: no: 2\n7: b: no: 7"
    assert error.in_file("x.toml").lines == ["x.toml: c: no", "x.toml:2: a: no: 2", "x.toml:7: b: no: 7"]


def test_what_does_not_fit_together_names_its_key_and_keeps_its_words() -> None:
    error = WrongKey(("stages", 1, "design"), "3: not this: but that")
    assert str(error) == "stages.2.design: 3: not this: but that"
    assert (error.place, error.message) == (("stages", 1, "design"), "3: not this: but that")


def test_the_key_that_does_not_fit_has_its_line() -> None:
    texts = {"warm": {"stranger": "Hello"}}
    condition = {"factor": "tone", "levels": ["warm", "cold"], "texts": texts}
    text = cast.study_text(conditions=[condition]).replace("stranger", '"3: x"')
    with pytest.raises(StudyFileError) as refused:
        study_file.parse(text)
    (problem,) = refused.value.problems
    assert (problem.field, problem.message) == ("conditions", "tone: no block is called 3: x")
    assert problem.line is not None and text.splitlines()[problem.line - 1] == "[[conditions]]"


def test_a_note_about_the_whole_study_names_no_field() -> None:
    assert str(Note("sitting.items", "few: 2")) == "sitting.items: few: 2"
    assert str(Note("", "evidence is real: 3 of 4")) == "evidence is real: 3 of 4"
