"""Turns a file's text into a checked study, or into a list of all its problems, each with its line."""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from pydantic import BaseModel, ValidationError

from survey.exceptions import FileErrors, Problem
from survey.letters import control_character

from . import bounds
from .base import FieldPath, Words, WrongKey, WrongKeys, dotted
from .constructing import models_in
from .messages import message_of, toml_words, unknown_key
from .sampling import CANDIDATES, DESIGNS, design_defaults
from .study import StudyConfig
from .values import REWARD, UNTIL, VALUES, names_in, texts_with_values


@dataclass(frozen=True)
class RepairedConfig:
    """A file without what is wrong in it, so that what else is wrong can be found too. Never stored."""

    config: StudyConfig
    left_out: tuple[FieldPath, ...]

    def touches(self, *tables: str) -> bool:
        """Whether something was left out of these tables."""
        return any(place[:1] == (table,) for place in self.left_out for table in tables)


class StudyFileError(ValueError):
    """Everything that is wrong with a study file's text: each problem with its line, but without the file's name."""

    def __init__(self, problems: Iterable[Problem], repaired: "RepairedConfig | None" = None) -> None:
        self.problems = by_line(problems)
        self.repaired = repaired
        super().__init__("\n".join(map(str, self.problems)))

    def in_file(self, name: str) -> FileErrors:
        return FileErrors(replace(problem, file=name) for problem in self.problems)


# Each reads a line in one pass: no two parts next to each other take the same characters.
TABLE = re.compile(r"^[ \t]*(\[\[?)([A-Za-z0-9_.\-\"' \t]+)\]\]?[ \t]*(#.*)?$")
KEY = re.compile(r"^[ \t]*([A-Za-z0-9_\-\"'.]+)[ \t]*=")
MAX_PROBLEMS = 200  # Anyone who reads them begins with the first ones.
LONGEST_QUOTE = 100  # characters of a wrong value


def by_line(problems: Iterable[Problem]) -> list[Problem]:
    return sorted(problems, key=lambda problem: problem.line or 0)


def _lines_outside_texts(text: str) -> Iterator[tuple[int, str]]:
    """The lines, from 1, on which no text of several lines goes on."""
    closing = ""  # Inside a multi-line string until this mark.
    for number, line in enumerate(text.splitlines(), start=1):
        if closing:
            if closing in line:
                closing = ""
            continue
        yield number, line
        if not TABLE.match(line) and (match := KEY.match(line)):
            for mark in ('"""', "'''"):
                if line[match.end() :].count(mark) % 2:
                    closing = mark


def tables_in(text: str) -> list[tuple[int, FieldPath, bool]]:
    """Where each table of a valid TOML text begins: its line, its names, and whether it is an entry of a list."""
    return [
        (number, tuple(part.strip().strip("\"'") for part in match[2].split(".")), match[1] == "[[")
        for number, line in _lines_outside_texts(text)
        if (match := TABLE.match(line))
    ]


@lru_cache(maxsize=4)  # Each problem that is found later asks for its line in the same text.
def _lines_of_keys(text: str) -> Mapping[FieldPath, int]:
    """Where each key and table of a valid TOML text stands. tomllib keeps no positions, so the text is read again."""
    lines: dict[FieldPath, int] = {(): 1}
    counts: dict[FieldPath, int] = {}
    table: FieldPath = ()
    for number, line in _lines_outside_texts(text):
        if match := TABLE.match(line):
            names = [part.strip().strip("\"'") for part in match[2].split(".")]
            path: FieldPath = ()
            for name in names[:-1]:
                path = (*path, name)
                if path in counts:
                    path = (*path, counts[path])
            path = (*path, names[-1])
            if match[1] == "[[":
                counts[path] = counts.get(path, -1) + 1
                lines.setdefault(path, number)
                path = (*path, counts[path])
            table = path
            lines[table] = number
        elif match := KEY.match(line):
            path = table
            for name in match[1].split("."):
                path = (*path, name.strip("\"'"))
                lines.setdefault(path, number)
    return lines


def _line_of(path: FieldPath, lines: Mapping[FieldPath, int]) -> int:
    while path not in lines:
        path = path[:-1]
    return lines[path]


def _known_keys(location: Sequence[str | int]) -> Sequence[str]:
    model: Any = StudyConfig
    for part in location[:-1]:
        if isinstance(part, int) or model is None:
            continue
        info = model.model_fields.get(part)
        model = info and next((t for t in models_in(info.annotation)), None)
    return sorted(model.model_fields) if model else ()


def _problems(error: Mapping[str, Any], lines: Mapping[FieldPath, int]) -> Iterator[Problem]:
    """What an error of pydantic says, in our words. One error may tell of several rules."""
    location = tuple(error["loc"])
    cause = error.get("ctx", {}).get("error")
    if isinstance(cause, WrongKeys):
        yield from (_at((*location, *wrong_key.place), wrong_key.message, lines) for wrong_key in cause.found)
    elif isinstance(cause, WrongKey):
        yield _at((*location, *cause.place), cause.message, lines)
    elif error["type"] == "extra_forbidden":
        yield _at(location, unknown_key(str(location[-1]), _known_keys(location)), lines)
    elif error["type"] == "missing":
        yield _at(location, "is missing: add it", lines)
    else:
        message = message_of(error) or error["msg"].removeprefix("Value error, ")
        if "input" in error and not isinstance(error["input"], dict | list | BaseModel):
            message = f"{message} (it is {_quoted(error['input'])})"
        yield _at(location, message, lines)


def _at(location: FieldPath, message: str, lines: Mapping[FieldPath, int]) -> Problem:
    return Problem("", _line_of(location, lines), dotted(location) or "file", message)


def _quoted(value: Any) -> str:
    text = repr(value[: LONGEST_QUOTE + 1] if isinstance(value, str) else value)
    return text if len(text) <= LONGEST_QUOTE else f"{text[:LONGEST_QUOTE]}..."


def parse(text: str) -> StudyConfig:
    """Check a study file's text.

    Raises:
        StudyFileError: with the problems found, each with its line; with one alone where the text breaks a bound.
    """
    if problem := bounds.problem_of(text):
        raise StudyFileError([problem])
    try:
        raw = tomllib.loads(text)
    except (ValueError, RecursionError) as exc:
        match = re.search(r"\(at line (\d+), column \d+\)", str(exc))
        line = int(match[1]) if match else text.count("\n") + 1
        message = re.sub(r" \(at .*\)", "", str(exc))
        words = toml_words(message, dict(enumerate(text.splitlines(), start=1)).get(line, ""))
        raise StudyFileError([Problem("", line, "file", f"not TOML: {words}")]) from exc
    lines = _lines_of_keys(text)
    foreign = [
        *_control_characters(raw, (), lines),
        *_keys_of_another_kind(raw, lines),
        *_keys_of_ready_forms(raw, lines),
        *_unknown_values(raw, lines),
    ]
    try:
        config = StudyConfig.model_validate(raw)
    except ValidationError as exc:
        problems, repaired = _all_problems(raw, exc, lines)
        raise StudyFileError([*foreign, *problems], repaired) from exc
    for language in config.languages[1:]:  # The first one has just been checked.
        try:
            config.in_language(language)
        except ValidationError as exc:
            for error in exc.errors(include_url=False):
                for problem in _problems(error, lines):
                    foreign.append(replace(problem, message=f"in {language}: {problem.message}"))
    if foreign:
        raise StudyFileError(foreign, RepairedConfig(config, ()))
    return config


MAX_MENDED = 4  # times that a file is read again without what was wrong
# What takes the place of a wrong value that every file has.
PLACEHOLDERS: Mapping[str, Any] = {"slug": "study", "title": "Study", "bank": "bank", "seed": 0}


def _all_problems(
    raw: Mapping[str, Any], error: ValidationError, lines: Mapping[FieldPath, int]
) -> tuple[list[Problem], RepairedConfig | None]:
    """What is wrong, and what else is found once that is left out: rules between keys are only asked of a file whose
    keys are all sound. The file without what is wrong, where such a file can be made."""
    problems: list[Problem] = []
    left_out: list[FieldPath] = []
    repaired = deepcopy(dict(raw))
    for _time in range(MAX_MENDED):
        errors = error.errors(include_url=False)[:MAX_PROBLEMS]
        for detail in errors:
            if not _follows(tuple(detail["loc"]), left_out):
                problems += [problem for problem in _problems(detail, lines) if problem not in problems]
        if not all(_leave_out(repaired, error, left_out) for error in errors):
            return problems[:MAX_PROBLEMS], None
        try:
            config = StudyConfig.model_validate(repaired)
        except ValidationError as exc:
            error = exc
        else:
            return problems[:MAX_PROBLEMS], RepairedConfig(config, tuple(left_out))
    return problems[:MAX_PROBLEMS], None


def _follows(location: FieldPath, left_out: Sequence[FieldPath]) -> bool:
    """Whether an error may only be there because something was left out: it is about the same table, or about all."""
    return any(location[: max(1, len(place) - 1)] == place[: max(1, len(place) - 1)] for place in left_out)


def _leave_out(raw: Any, error: Mapping[str, Any], left_out: list[FieldPath]) -> bool:
    """Remove the key that an error is about; False where that is not possible."""
    location = tuple(error["loc"])
    if not location:
        return False  # A rule between parts: nobody can say which of them is wrong.
    if len(location) == 1 and location[0] in PLACEHOLDERS:
        raw[location[0]] = PLACEHOLDERS[str(location[0])]
        left_out.append(location)
        return True
    table = raw
    for depth, part in enumerate(location[:-1]):
        inner = table.get(part) if isinstance(table, dict) else table[part] if isinstance(part, int) else None
        if not isinstance(inner, dict | list):  # The error is inside a value, such as the entry of a union.
            location = location[: depth + 1]
            break
        table = inner
    if not isinstance(table, dict) or location[-1] not in table:
        return False
    del table[location[-1]]
    left_out.append(location)
    return True


def _control_characters(value: Any, place: FieldPath, lines: Mapping[FieldPath, int]) -> Iterator[Problem]:
    """Texts with characters that TOML lets in as an escape, such as \\u0007."""
    if isinstance(value, str):
        if message := control_character(value):
            yield _at(place, message, lines)
    elif isinstance(value, Mapping | list):
        for key, inner in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from _control_characters(inner, (*place, key), lines)


def _keys_of_another_kind(raw: Mapping[str, Any], lines: Mapping[FieldPath, int]) -> Iterator[Problem]:
    """Keys that are known but have no meaning for the chosen kind. In a stored study they do no harm."""
    designs = {kind: tuple(design_defaults(kind)) for kind in DESIGNS}
    stages = raw.get("stages")
    tables: list[tuple[FieldPath, Any, dict[str, tuple[str, ...]], str]] = [
        (("stages", index, "design"), stage.get("design"), designs, "uniform")
        for index, stage in enumerate(stages if isinstance(stages, list) else [])
        if isinstance(stage, Mapping)
    ]
    tables.append((("candidates",), raw.get("candidates"), CANDIDATES, "pool"))
    for path, table, kinds, default in tables:
        if not isinstance(table, Mapping) or (kind := table.get("kind", default)) not in kinds:
            continue
        known = {key for keys in kinds.values() for key in keys}
        for key in table:
            if key in known and key not in kinds[kind]:
                own = ", ".join(kinds[kind]) or "no parameters"
                message = f'kind = "{kind}" has {own}: remove this key'
                yield Problem("", _line_of((*path, key), lines), dotted((*path, key)), message)


def _keys_of_ready_forms(raw: Mapping[str, Any], lines: Mapping[FieldPath, int]) -> Iterator[Problem]:
    """Keys that a ready form fixes. The stored study contains them, so the schema cannot refuse them; this does."""
    blocks = raw.get("blocks")
    for index, block in enumerate(blocks if isinstance(blocks, list) else []):
        if isinstance(block, Mapping) and block.get("ready"):
            for key in ("fields", "version"):
                if key in block:
                    message = "a ready form has its own: remove this key, or write the form without ready"
                    place = ("blocks", index, key)
                    yield Problem("", _line_of(place, lines), dotted(place), message)


def _unknown_values(raw: Mapping[str, Any], lines: Mapping[FieldPath, int]) -> Iterator[Problem]:
    """Names in braces that people would read as they stand. In a stored study they do no harm."""
    panel, data = raw.get("panel"), raw.get("data")
    missing = {
        name: f"{table}.{name}"
        for name, table, keys in ((REWARD, "panel", panel), (UNTIL, "data", data))
        if not isinstance(keys, Mapping) or name not in keys
    }
    for place, text in texts_with_values(raw):
        for name in dict.fromkeys(names_in(text)):
            if name not in VALUES:
                known = ", ".join(f"{{{value}}}" for value in VALUES)
                message = f"there is no {{{name}}}; there are {known}. For a brace itself write {{{{ and }}}}"
                yield _at(place, message, lines)
            elif name in missing:
                yield _at(place, f"{{{name}}} needs {missing[name]}: add that key, or remove {{{name}}}", lines)


def problem_at(text: str, place: FieldPath, message: str, *, file: str = "") -> Problem:
    """A problem found outside the schema (no such bank, an option that the instrument refuses), with its line."""
    return Problem(file, _line_of(place, _lines_of_keys(text)), dotted(place), message)


def missing_texts(config: StudyConfig) -> list[tuple[FieldPath, str]]:
    """Where a text is missing in one of the file's languages: the place in the file, and the language.

    A bare string counts as the first language only, except `contact`, which may be the same in all.
    """
    return list(_missing(config, (), config.languages))


def texts_missing_in(config: StudyConfig, language: str) -> list[FieldPath]:
    """The places of the texts that have no words in this language, which need not be one of the file's."""
    return [place for place, code in _missing(config, (), (*config.languages, language)) if code == language]


def _missing(value: Any, path: FieldPath, languages: Sequence[str]) -> Iterator[tuple[FieldPath, str]]:
    if isinstance(value, Words):
        known = value.by_language or {languages[0]: str(value)}
        yield from ((path, code) for code in languages if value and not known.get(code))
    elif isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from _missing(getattr(value, name), (*path, name), languages)
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _missing(inner, (*path, key), languages)
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            yield from _missing(inner, (*path, index), languages)
