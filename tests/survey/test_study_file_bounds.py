"""Study files that no study needs: refused with a line, before they cost time."""

import tomllib
from pathlib import Path

import pytest

from survey import study_file
from survey.exceptions import FileErrors
from survey.services.studies.creating import read_study_file
from survey.study_file import bounds
from survey.study_file.parsing import MAX_PROBLEMS

from .test_study_file import GOOD, refusals

MANY = 100_000


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("[" * MANY, "brackets stand in each other more than 20 deep"),
        ("[" * MANY + "]" * MANY, "brackets stand in each other more than 20 deep"),
        ("{a=" * 50_000, "brackets stand in each other more than 20 deep"),
        ("9" * MANY, "a name or number has 100,000 characters; at most 100 are read"),
        ("1." + "9" * MANY, "a name or number has 100,000 characters"),
        ('"""a""""', ""),
        ('"""a"""""', ""),
        ('"""\\""""', ""),
        ("'''a''''", ""),
        ('"\\\\"', ""),
        ('"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["', ""),
        ("'" + "9" * 300 + "'", ""),
        ('"""\n' + "[" * 30 + '\n"""', ""),
        ("1 # " + "[" * 30 + "9" * 300, ""),
    ],
    ids=lambda value: value[:12],
)
def test_a_value_that_no_study_needs_is_refused_with_its_line(value: str, says: str) -> None:
    text = GOOD.replace("seed = 1", f"x = {value}\nseed = 1")
    first = refusals(text)[0]
    assert first.startswith(f"4: file: {says}" if says else "4: x: unknown key"), first


@pytest.mark.parametrize(
    "end", ['"""a""""\n', '"""a"""""\n', '"""\\""""\n', "'''a'''''\n", '"\\\\"\n', "'\\'\n", '"#"\n']
)
def test_nothing_hides_behind_a_string(end: str) -> None:
    """What the parser reads as text and what the search reads as text end at the same place."""
    tomllib.loads(f"a = {end}")
    assert refusals(f"a = {end}b = {'[' * 30}")[0].startswith("2: file: brackets")


@pytest.mark.parametrize(
    "line", ["a" + ".a" * MANY + " = 1", '"a"' + '."a"' * 50_000 + " = 1", "[a" + ".a" * MANY + "]"]
)
def test_names_of_many_parts_are_refused(line: str) -> None:
    (said,) = refusals(f"{GOOD}\n{line}")
    assert (
        said == f"{GOOD.count(chr(10)) + 2}: file: a name has more than 8 parts with dots between: write tables instead"
    )


def test_a_file_that_is_too_large_is_refused_unread(tmp_path: Path) -> None:
    text = GOOD + "#" * bounds.LONGEST_FILE
    assert refusals(text) == [f"file: has {len(text):,} bytes; a study file has at most 262,144"]
    assert refusals(GOOD + "\n" * 8001)[0].startswith("file: has 8,0")
    path = tmp_path / "large.toml"
    path.write_bytes(b"\xff" * (bounds.LONGEST_FILE + 1))
    with pytest.raises(FileErrors, match="a study file has at most"):
        read_study_file(path)


@pytest.mark.slow
def test_of_very_many_problems_the_first_ones_are_said_and_no_value_whole() -> None:
    said = refusals(GOOD + "[[conditions]]\n" * 3000)
    assert len(said) == MAX_PROBLEMS
    (long,) = refusals(GOOD.replace('slug = "good"', f'slug = "{"x" * 90_000}"'))
    assert len(long) < 250 and "xxx..." in long


def test_a_problem_found_later_does_not_read_the_text_again(monkeypatch: pytest.MonkeyPatch) -> None:
    from survey.study_file import parsing

    parsing._lines_of_keys.cache_clear()
    for _problem in range(50):
        study_file.problem_at(GOOD, ("seed",), "wrong")
    assert parsing._lines_of_keys.cache_info().misses == 1
