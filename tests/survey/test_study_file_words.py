"""What is wrong with a study file is said in our words, all of it at once, and with what to write instead."""

import pytest

from survey.study_file import StudyFileError, parse
from tests.survey.test_study_file import GOOD


def lines_of(text: str) -> list[str]:
    with pytest.raises(StudyFileError) as refused:
        parse(text)
    return [str(problem) for problem in refused.value.problems]


def with_data(value: str) -> str:
    return f"{GOOD}\n[data]\nretention_until = {value}\n"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ('"01.02.2030"', "data.retention_until: write a date as YEAR-MONTH-DAY: 2030-02-01 (it is '01.02.2030')"),
        ('"1/2/2030"', "data.retention_until: write a date as YEAR-MONTH-DAY: 2030-02-01"),
        ('"31.02.2030"', "data.retention_until: there is no such day: write a date as YEAR-MONTH-DAY"),
        ('"2030-13-01"', "data.retention_until: there is no such day"),
        ('"soon"', "data.retention_until: write a date as YEAR-MONTH-DAY, such as 2030-01-31"),
        ("2030-13-01", "file: not TOML: there is no such day: write a date as YEAR-MONTH-DAY, such as 2030-01-31"),
        ("2030-02-30", "file: not TOML: there is no such day"),
        ("01.02.2030", "file: not TOML: write a date as YEAR-MONTH-DAY: 2030-02-01, without quotes"),
        ("2030-01-01T12:30:00", "data.retention_until: write a date without a time"),
    ],
)
def test_dates(value: str, expected: str) -> None:
    text = with_data(value)
    (line,) = lines_of(text)
    assert line.startswith(f"{len(text.splitlines())}: {expected}"), line


@pytest.mark.parametrize(
    ("slug", "better"), [("My Study", "my-study"), ("Größe_2", "grosse-2"), ("-a--b-", "a-b"), ("研究", "")]
)
def test_slugs(slug: str, better: str) -> None:
    (line,) = lines_of(GOOD.replace('slug = "good"', f'slug = "{slug}"'))
    assert "slug: write small letters, digits and single hyphens between them" in line
    assert (f'such as "{better}"' in line) == bool(better)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("note = hello there", 'a text stands in quotes: write "hello there"'),
        ("note = “hello”", "curly quotes stand around the text"),
        ('note = "hello', "a text has no closing quotes on its line"),
        ("note = True", "write true or false in small letters"),
        ("note =", "the value is missing behind the ="),
        ("just a remark", "a key is followed by = and its value"),
        ("note = [1, 2", "a list has no closing ]"),
        ('slug = "again"', "this key stands in the table already: keep one"),
        ("[stages", "the name of a table has no closing ]"),
        ('note = "C:\\data"', "a \\ stands in a text"),
    ],
)
def test_toml(line: str, expected: str) -> None:
    text = GOOD.replace("seed = 1\n", f"seed = 1\n{line}\n", 1)
    said = lines_of(text)
    assert len(said) == 1 and f"file: not TOML: {expected}" in said[0], said


@pytest.mark.parametrize(
    "key", ["reward", "places", "spending_cap", "turned_away_pay", "bonus_per_point", "screen_out_pay"]
)
def test_true_is_no_sum_of_money(key: str) -> None:
    said = lines_of(GOOD + f"\n[panel]\n{key} = true\n")
    assert any(f"panel.{key}: write a whole number, not true or false" in line for line in said), said


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('kind = "epsilon_greedy"', 'kind = "epsilon_gredy"', 'did you mean "epsilon_greedy"? Choose one of uniform'),
        ("seed = 1", "sed = 1", 'sed: unknown key; did you mean "seed"? The keys here are'),
        ("seed = 1", "seed = 1\nqqqq = 1", "qqqq: unknown key; the keys here are"),
        ("sittings = 4", 'sittings = "4.5"', "stages.1.sittings: write a whole number, without quotes"),
        ("seed = 1", "seed = 1.5", "seed: write a whole number, without a decimal point"),
        ("sittings = 4", "sittings = 0", "stages.1.sittings: must be 1 or more (it is 0)"),
        ('title = "A good study"', "title = 5", "title: write a text in quotes (it is 5)"),
        ('title = "A good study"', f'title = "{"x" * 201}"', "title: has 201 characters; at most 200 are allowed"),
        ("seed = 1", "seed = 1\nstages = 5", "not TOML: this key stands in the table already"),
    ],
)
def test_values(old: str, new: str, expected: str) -> None:
    said = lines_of(GOOD.replace(old, new, 1))
    assert any(expected in line for line in said), said


def test_rules_between_keys_are_told_together_with_wrong_keys_and_with_each_other() -> None:
    text = GOOD.replace("seed = 1\n", "seed = -1\nsede = 1\n[roles]\nholdout = 2\n[flags.attention]\nfailed = 3\n", 1)
    text = text.replace('kind = "epsilon_greedy"', 'kind = "epsilon_greedy"\nfloor = "x"', 1)
    text = text.replace("sittings = 4\n\n", 'sittings = 4\ndesign = {kind = "softmax"}\n\n', 1)
    said = "\n".join(lines_of(text))
    for expected in (
        "seed: must be 0 or more",
        "sede: unknown key",
        "roles.holdout: must be less than 1",
        "stages.2.design.floor: write a number",
        "flags.attention.failed: the sitting has 0 attention checks",
        "stages.1.design: the first stage has no predictor",
    ):
        assert expected in said, said


def test_what_was_left_out_to_look_further_is_not_told_as_missing() -> None:
    said = lines_of(GOOD.replace('slug = "good"', "slug = 5").replace("sittings = 4", 'sittings = "many"'))
    assert len(said) == 3 and not any("missing" in line for line in said), said


def test_no_message_of_a_library_is_left() -> None:
    text = GOOD.replace("seed = 1\n", 'seed = "x"\n[roles]\nholdout = "x"\ncontrols = []\ncontrol_kinds = []\n', 1)
    text = text.replace("sittings = 4", 'sittings = 1.5\ntrain = "maybe"\nopens = 5')
    assert not any("Input should" in line or "valid" in line for line in lines_of(text)), lines_of(text)
