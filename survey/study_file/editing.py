"""A study file's text, changed key by key. Imports tomlkit, only when a value is written, and its own package.

The text is cut before each table, and only the table that holds a key is written again: comments, order and spaces of
all others stay byte for byte. After each change the text is read again. It is taken back where the text does not say
exactly what was wanted, as in a file that is written in a way which only a person can change.
"""

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from typing import Any

from . import bounds
from .base import FieldPath
from .parsing import tables_in

LONGEST_INLINE = 100  # characters of a table on one line


class NotEditable(ValueError):
    """The text can be changed by hand alone at this place."""


@dataclass(eq=False)
class _Part:
    """A table of the file: the comments right above its head, its head, and its keys with all that follows them."""

    place: FieldPath
    names: tuple[str, ...]
    is_entry: bool
    text: str


class EditableFile:
    """A study file as its text and as the values in it. A place names a key or table; entries of a list count from 0.

    Raises:
        ValueError: the text is no TOML, or breaks a bound of what is read.
    """

    def __init__(self, text: str) -> None:
        if problem := bounds.problem_of(text):
            raise ValueError(problem.message)
        self.data: dict[str, Any] = tomllib.loads(text)
        self._parts = _cut(text)

    @property
    def text(self) -> str:
        return "".join(part.text for part in self._parts)

    def value(self, place: FieldPath) -> Any:
        """What stands there; None where nothing does."""
        return value_at(self.data, place)

    def set(self, place: FieldPath, value: Any) -> None:
        """Give the key this value; None removes it.

        Raises:
            NotEditable: the text cannot be changed there.
        """
        if _plain(self.value(place)) != _plain(value):
            self._change(lambda: self._write(place, value), lambda data: _put(data, place, value))

    def insert(self, place: FieldPath, entry: Mapping[str, Any]) -> None:
        """Add an entry to a list of tables, so that it stands at the place; the list is made where there is none.

        Raises:
            NotEditable: as `set`.
        """
        self._change(
            lambda: self._insert(place, entry), lambda data: _list_at(data, place).insert(int(place[-1]), entry)
        )

    def add_table(self, place: FieldPath, table: Mapping[str, Any]) -> None:
        """Add a table that is not there, also one with nothing in it.

        Raises:
            NotEditable: as `set`.
        """
        self._change(lambda: self._add_at(place, table), lambda data: _put(data, place, dict(table)))

    def remove(self, place: FieldPath) -> None:
        """Take an entry out of its list, or a table out of the file.

        Raises:
            NotEditable: as `set`.
        """
        self._change(lambda: self._take_out(place), lambda data: _drop(data, place))

    def move(self, place: FieldPath, to: int) -> None:
        """Move an entry within its list.

        Raises:
            NotEditable: as `set`.
        """
        index = int(place[-1])
        step = 1 if to > index else -1
        for at in range(index, to, step):
            lower = min(at, at + step)
            swap, turn = partial(self._swap, place[:-1], lower), partial(_turn, place=place, lower=lower)
            self._change(swap, turn)

    # Changing the text

    def _change(self, write: Callable[[], Any], expect: Callable[[Any], Any]) -> None:
        """Write, and take it back unless the text then says what was expected."""
        before = [replace(part) for part in self._parts]
        wanted = deepcopy(self.data)
        try:
            expect(wanted)
            write()
            made = tomllib.loads(self.text)
            if _plain(made) != _plain(wanted):
                raise ValueError("the text says something else")
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as exc:
            self._parts = before
            raise NotEditable("This part of the file is written in a way that only its text can be changed.") from exc
        self.data, self._parts = made, _cut(self.text)

    def _owner(self, place: FieldPath) -> _Part:
        """The table that holds a key, or holds what holds it."""
        holding = [part for part in self._parts if place[: len(part.place)] == part.place and part.place != place]
        return max(holding, key=lambda part: len(part.place))

    def _inside(self, place: FieldPath) -> list[_Part]:
        return [part for part in self._parts if part.place[: len(place)] == place]

    def _write(self, place: FieldPath, value: Any) -> None:
        inside = self._inside(place) if place else []
        for part in inside:
            self._parts.remove(part)
        owner = self._owner(place)
        *way, key = place[len(owner.place) :]
        document, table = _opened(owner)
        for name in way:
            if isinstance(name, str) and name not in table:
                return self._add_table((*owner.names, *map(str, way)), {str(key): value}, after=owner)
            table = table[name]
        is_there = isinstance(key, int) or key in table
        if value is None:
            if is_there:
                del table[key]
        elif _needs_table(value) and not way:
            if is_there:
                del table[key]
                owner.text = document.as_string()
            return self._add_table((*owner.names, str(key)), value, after=owner)
        elif is_there and isinstance(table[key], list) and isinstance(value, list):
            _fill(table[key], value)
        elif is_there or way:
            table[key] = _item(value, table[key] if is_there else None)
        else:
            owner.text = _with_line(owner.text, f"{_key(str(key))} = {_toml(value)}\n")
            return None
        owner.text = document.as_string()
        return None

    def _add_table(self, names: tuple[str, ...], value: Any, *, after: _Part) -> None:
        at = len(self._parts) if not after.names else self._parts.index(after) + 1
        entries = value if isinstance(value, list) else [value]
        text = "".join(_table(names, entry, is_entry=isinstance(value, list)) for entry in entries)
        self._put_in(at, text, apart=not after.names)

    def _add_at(self, place: FieldPath, table: Mapping[str, Any]) -> None:
        owner = self._owner(place)
        way = place[len(owner.place) :]
        if any(isinstance(name, int) for name in way):
            raise ValueError("an entry that is written on one line has no table of its own")
        self._add_table((*owner.names, *map(str, way)), table, after=owner)

    def _put_in(self, at: int, text: str, *, apart: bool = True) -> None:
        """Text of its own at this place among the parts, with an empty line on both sides where it stands apart."""
        before = self._parts[at - 1]
        if before.text and not before.text.endswith("\n"):
            before.text += "\n"
        ends_blank = before.text.endswith("\n\n")
        if not apart and ends_blank:
            before.text = before.text[:-1]
        lead = "\n" if apart and before.text and not ends_blank else ""
        tail = "\n" if at < len(self._parts) and (apart or ends_blank) else ""
        self._parts.insert(at, _Part((), (), False, f"{lead}{text}{tail}"))

    def _groups(self, place: FieldPath) -> list[list[_Part]]:
        """The entries of a list of tables, each with the tables inside it; none where it is written as a value."""
        return [inside for index in range(len(self.value(place) or ())) if (inside := self._inside((*place, index)))]

    def _insert(self, place: FieldPath, entry: Mapping[str, Any]) -> None:
        *names, index = place
        listed, groups = tuple(names), self._groups(tuple(names))
        if self.value(listed) and not groups:
            owner = self._owner(listed)
            document, table = _opened(owner)
            for name in listed[len(owner.place) :]:
                table = table[name]
            table.insert(index, _item(entry))
            owner.text = document.as_string()
            return
        text = _table(tuple(name for name in listed if isinstance(name, str)), entry, is_entry=True)
        if int(index) < len(groups):
            at = self._parts.index(groups[int(index)][0])
        elif groups:
            at = self._parts.index(groups[-1][-1]) + 1
        else:
            around = self._inside(listed[:-1]) if listed[:-1] else self._parts
            at = self._parts.index(around[-1]) + 1
        self._put_in(at, text)

    def _take_out(self, place: FieldPath) -> None:
        if inside := self._inside(place):
            for part in inside:
                self._parts.remove(part)
        else:
            self._write(place, None)

    def _swap(self, listed: FieldPath, lower: int) -> None:
        groups = self._groups(listed)
        if not groups:
            owner = self._owner(listed)
            document, table = _opened(owner)
            for name in listed[len(owner.place) :]:
                table = table[name]
            first, second = _toml(table[lower].unwrap()), _toml(table[lower + 1].unwrap())
            table[lower], table[lower + 1] = _item_of(second), _item_of(first)
            owner.text = document.as_string()
            return
        first_parts, second_parts = groups[lower], groups[lower + 1]
        at = self._parts.index(first_parts[0])
        ends = [_blank_end(group[-1].text) for group in (first_parts, second_parts)]
        between = list(self._parts[at : self._parts.index(second_parts[-1]) + 1])
        others = [part for part in between if part not in first_parts and part not in second_parts]
        for group, end in ((second_parts, ends[0]), (first_parts, ends[1])):
            group[-1].text = group[-1].text.rstrip("\n") + end
        self._parts[at : at + len(between)] = [*second_parts, *others, *first_parts]


def _cut(text: str) -> list[_Part]:
    """The text cut before each table and the comments right above it; the first part has the keys above all tables."""
    lines = text.splitlines(keepends=True)
    parts: list[_Part] = []
    counts: dict[FieldPath, int] = {}
    heads: list[tuple[FieldPath, tuple[str, ...], bool]] = [((), (), False)]
    cuts = [0]
    for line, names, is_entry in tables_in(text):
        place: FieldPath = ()
        for name in names[:-1]:
            place = (*place, name)
            place = (*place, counts[place]) if place in counts else place
        place = (*place, names[-1])
        if is_entry:
            counts[place] = counts.get(place, -1) + 1
            place = (*place, counts[place])
        start = line - 1
        while start > cuts[-1] + (len(cuts) > 1) and lines[start - 1].lstrip().startswith("#"):
            start -= 1
        cuts.append(start)
        heads.append((place, tuple(map(str, names)), is_entry))
    for (place, named, is_entry), start, end in zip(heads, cuts, [*cuts[1:], len(lines)], strict=True):
        parts.append(_Part(place, named, is_entry, "".join(lines[start:end])))
    return parts


def _opened(part: _Part) -> tuple[Any, Any]:
    """The part as a document, and its table in that."""
    import tomlkit  # Only who writes files needs it.

    document = tomlkit.parse(part.text)
    table: Any = document
    for name in part.names:
        table = table[name]
        table = table[0] if isinstance(table, list) else table
    return document, table


def _with_line(text: str, line: str) -> str:
    """The line behind the last key, and before comments and spaces that belong to what follows."""
    lines = text.splitlines(keepends=True)
    end = len(lines)
    while end and (not lines[end - 1].strip() or lines[end - 1].startswith("#")):
        end -= 1
    if end and not lines[end - 1].endswith("\n"):
        lines[end - 1] += "\n"
    return "".join([*lines[:end], line, *lines[end:]])


def _blank_end(text: str) -> str:
    return text[len(text.rstrip("\n")) :]


# Writing values


def _needs_table(value: Any) -> bool:
    """Whether a value stands in tables of its own: with several lines, or too much for one."""
    if isinstance(value, Mapping):
        lines = any("\n" in inner if isinstance(inner, str) else _needs_table(inner) for inner in value.values())
        return lines or len(_toml(value)) > LONGEST_INLINE
    return isinstance(value, list) and any(isinstance(entry, Mapping) and _needs_table(entry) for entry in value)


def _table(names: tuple[str, ...], value: Mapping[str, Any], *, is_entry: bool) -> str:
    """A table with its head, and the tables inside it behind its keys."""
    head = ".".join(map(_key, names))
    inner = {key: entry for key, entry in value.items() if _needs_table(entry)}
    keys = "".join(
        f"{_key(key)} = {_toml(entry)}\n" for key, entry in value.items() if key not in inner and entry is not None
    )
    tables = [
        _table((*names, key), entry, is_entry=isinstance(below, list))
        for key, below in inner.items()
        for entry in (below if isinstance(below, list) else [below])
    ]
    return "".join([f"[[{head}]]\n" if is_entry else f"[{head}]\n", keys, *(f"\n{table}" for table in tables)])


def _fill(array: Any, values: Sequence[Any]) -> None:
    """Give an array these values; those that it has already stay as they are written."""
    while len(array) > len(values):
        array.pop()
    for index, value in enumerate(values):
        if index == len(array):
            array.append(_item(value))
        elif _plain(array[index]) != _plain(value):
            array[index] = _item(value, array[index])


def _item(value: Any, old: Any = None) -> Any:
    return _item_of(_toml(value, getattr(old, "as_string", str)() if isinstance(old, str) else ""))


def _item_of(raw: str) -> Any:
    import tomlkit

    return tomlkit.value(raw)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _quoted(name)


def _toml(value: Any, old: str = "") -> str:
    """The value as TOML. A text that was written on several lines in the file stays on several lines."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(str(key))} = {_toml(inner)}" for key, inner in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if not isinstance(value, str):
        return repr(value)
    if "\n" not in value and not old.startswith(('"""', "'''")):
        return _quoted(value)
    text = value.strip("\n").replace("\\", "\\\\").replace('"""', '""\\"')
    return f'"""\n{CONTROLS.sub(_escaped, text)}\n"""'


CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
SHORT = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}


def _escaped(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04X}"


def _quoted(text: str) -> str:
    text = text.replace("\\", "\\\\").replace('"', '\\"')
    for letter, mark in SHORT.items():
        text = text.replace(letter, mark)
    return f'"{CONTROLS.sub(_escaped, text)}"'


# Values


def value_at(data: Any, place: FieldPath) -> Any:
    """What stands at the place; None where nothing does."""
    for part in place:
        if isinstance(part, int):
            data = data[part] if isinstance(data, list) and part < len(data) else None
        else:
            data = data.get(part) if isinstance(data, Mapping) else None
    return data


def _plain(value: Any) -> Any:
    """The value without what makes no difference: spaces around a text, and tables and lists with nothing in them."""
    if isinstance(value, Mapping):
        inner = {str(key): _plain(entry) for key, entry in value.items()}
        return {key: entry for key, entry in inner.items() if entry not in (None, {}, [])}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return value.strip().replace("\r\n", "\n") if isinstance(value, str) else value


def _list_at(data: Any, place: FieldPath) -> list[Any]:
    """The list whose entry the place names, made where there is none."""
    listed = place[:-1]
    if value_at(data, listed) is None:
        _put(data, listed, [])
    entries: list[Any] = value_at(data, listed)
    return entries


def _put(data: Any, place: FieldPath, value: Any) -> None:
    *way, key = place
    for name in way:
        data = data[name] if isinstance(name, int) else data.setdefault(name, {})
    if value is None and isinstance(data, dict):
        data.pop(key, None)
    else:
        data[key] = value


def _drop(data: Any, place: FieldPath) -> None:
    del value_at(data, place[:-1])[place[-1]]


def _turn(data: Any, place: FieldPath, lower: int) -> None:
    entries = value_at(data, place[:-1])
    entries[lower], entries[lower + 1] = entries[lower + 1], entries[lower]
