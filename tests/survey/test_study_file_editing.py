"""A study file changed key by key: what is not changed stays byte for byte."""

import difflib
import tomllib
from collections.abc import Iterator
from datetime import date
from typing import Any

import pytest

from survey.storage.paths import STUDIES_DIR
from survey.study_file.editing import EditableFile, NotEditable

FILES = sorted(path for path in STUDIES_DIR.rglob("*.toml") if "budget" not in path.name)
LISTS = ("blocks", "stages", "conditions", "quotas", "waves")


def leaves(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(inner, (*place, key))
    else:
        yield place, value


def another(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, date):
        return value.replace(year=2051)
    if isinstance(value, str):
        first = value.split()[0]
        return value.replace(first, 'A "quoted" \\ word', 1)
    return value + 1


def changed_lines(old: str, new: str) -> list[str]:
    lines = list(difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=0))[2:]
    return [line for line in lines if line[0] in "+-"]


@pytest.mark.parametrize("step", [19, pytest.param(1, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_one_changed_value_changes_one_line_of_an_example(path: Any, step: int) -> None:
    """`step`: every value, or one of so many."""
    text = path.read_text()
    assert EditableFile(text).text == text
    for place, value in list(leaves(tomllib.loads(text)))[::step]:
        file = EditableFile(text)
        file.set(place, another(value))
        lines = changed_lines(text, file.text)
        assert [line[0] for line in lines] == ["-", "+"], (place, lines)
        file.set(place, value)
        assert tomllib.loads(file.text) == tomllib.loads(text), place


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_an_entry_that_is_moved_and_moved_back_leaves_no_difference(path: Any) -> None:
    text = path.read_text()
    file = EditableFile(text)
    for name in LISTS:
        last = len(file.value((name,)) or ()) - 1
        if last < 1:
            continue
        before = file.value((name,))
        file.move((name, 0), last)
        assert file.value((name,)) == [*before[1:], before[0]] and len(file.text) == len(text)
        file.move((name, last), 0)
        assert file.text == text, name


TEXT = """# above all
slug = "a"   # the name

# about the first
[[blocks]]
kind = "consent"
text = '''
one
two'''

# about the second
[[blocks]]
kind = "end"
options = [
  "x",   # the right one
  "y",
]
"""


def test_keys_and_tables_are_added_where_they_belong_and_comments_stay_with_their_tables() -> None:
    file = EditableFile(TEXT)
    file.set(("blocks", 0, "title"), "T")
    file.set(("texts", "answerer", "a"), "a bot")
    file.set(("blocks", 1, "options"), ["x", "z", "w"])
    file.set(("blocks", 0, "text"), {"en": "one\ntwo", "de": "eins\nzwei"})
    file.move(("blocks", 1), 0)
    file.insert(("blocks", 1), {"kind": "form", "fields": [{"name": "f", "label": {"en": "a\nb"}}]})
    assert file.text == (
        '# above all\nslug = "a"   # the name\n\n# about the second\n[[blocks]]\nkind = "end"\noptions = [\n'
        '  "x",   # the right one\n  "z",\n  "w",\n]\n\n'
        '[[blocks]]\nkind = "form"\n\n[[blocks.fields]]\nname = "f"\n\n[blocks.fields.label]\nen = """\na\nb\n"""\n\n'
        '# about the first\n[[blocks]]\nkind = "consent"\ntitle = "T"\n'
        '[blocks.text]\nen = """\none\ntwo\n"""\nde = """\neins\nzwei\n"""\n\n[texts.answerer]\na = "a bot"\n'
    )
    file.remove(("blocks", 1))
    file.set(("blocks", 1, "title"), None)
    assert "form" not in file.text and "title" not in file.text


def test_a_text_that_the_parts_cannot_tell_is_left_as_it_was() -> None:
    # A table's head inside a text of several lines in an array: the cut would go through it.
    text = 'a = [\n"""\n[b]\n"""]\n[c]\nd = 1\n'
    file = EditableFile(text)
    with pytest.raises(NotEditable):
        file.set(("a",), ["x"])
    assert file.text == text and file.value(("c", "d")) == 1
    with pytest.raises(ValueError):
        EditableFile("a = ")
