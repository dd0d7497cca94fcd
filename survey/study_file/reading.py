"""Turns a file's text into a checked study, or into a list of all its problems, each with its line."""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from pydantic import BaseModel, ValidationError

from survey.exceptions import FileErrors, Problem

from . import bounds
from .base import Place, Words, WrongKey, dotted
from .sampling import CANDIDATES, DESIGNS, design_defaults
from .study import StudyConfig


class StudyFileError(ValueError):
    """Everything that is wrong with a study file's text: each problem with its line, but without the file's name."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = by_line(problems)
        super().__init__("\n".join(map(str, self.problems)))

    def in_file(self, name: str) -> FileErrors:
        return FileErrors(replace(problem, file=name) for problem in self.problems)


# Each reads a line in one pass: no two parts next to each other take the same characters.
TABLE = re.compile(r"^[ \t]*(\[\[?)([A-Za-z0-9_.\-\"' \t]+)\]\]?[ \t]*(#.*)?$")
KEY = re.compile(r"^[ \t]*([A-Za-z0-9_\-\"'.]+)[ \t]*=")
MOST_PROBLEMS = 200  # Whoever reads them begins with the first ones.
LONGEST_QUOTE = 100  # characters of a wrong value


def by_line(problems: Iterable[Problem]) -> list[Problem]:
    return sorted(problems, key=lambda problem: problem.line or 0)


@lru_cache(maxsize=4)  # Each problem that is found later asks for its line in the same text.
def _lines_of_keys(text: str) -> Mapping[Place, int]:
    """Where each key and table of a valid TOML text stands. tomllib keeps no positions, so the text is read again."""
    lines: dict[Place, int] = {(): 1}
    counts: dict[Place, int] = {}
    table: Place = ()
    closing = ""  # Inside a multi-line string until this mark.
    for number, line in enumerate(text.splitlines(), start=1):
        if closing:
            if closing in line:
                closing = ""
            continue
        if found := TABLE.match(line):
            names = [part.strip().strip("\"'") for part in found[2].split(".")]
            path: Place = ()
            for name in names[:-1]:
                path = (*path, name)
                if path in counts:
                    path = (*path, counts[path])
            path = (*path, names[-1])
            if found[1] == "[[":
                counts[path] = counts.get(path, -1) + 1
                lines.setdefault(path, number)
                path = (*path, counts[path])
            table = path
            lines[table] = number
        elif found := KEY.match(line):
            path = table
            for name in found[1].split("."):
                path = (*path, name.strip("\"'"))
                lines.setdefault(path, number)
            value = line[found.end() :]
            for mark in ('"""', "'''"):
                if value.count(mark) % 2:
                    closing = mark
    return lines


def _line_of(path: Place, lines: Mapping[Place, int]) -> int:
    while path not in lines:
        path = path[:-1]
    return lines[path]


def _known_keys(location: Sequence[str | int]) -> str:
    model: Any = StudyConfig
    for part in location[:-1]:
        if isinstance(part, int) or model is None:
            continue
        info = model.model_fields.get(part)
        model = info and next((t for t in models_in(info.annotation)), None)
    return ", ".join(sorted(model.model_fields)) if model else ""


def models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in getattr(annotation, "__args__", ()):
        yield from models_in(inner)


def _problem(error: Mapping[str, Any], lines: Mapping[Place, int]) -> Problem:
    location = tuple(error["loc"])
    message = error["msg"].removeprefix("Value error, ")
    cause = error.get("ctx", {}).get("error")
    if isinstance(cause, WrongKey):
        location, message = (*location, *cause.place), cause.message
    elif error["type"] == "extra_forbidden":
        message = f"unknown key; the keys here are {_known_keys(location)}"
    elif error["type"] == "missing":
        message = "is missing: add it"
    elif "input" in error and not isinstance(error["input"], dict | list | BaseModel):
        message = f"{message} (it is {_quoted(error['input'])})"
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
        found = re.search(r"\(at line (\d+), column \d+\)", str(exc))
        line = int(found[1]) if found else text.count("\n") + 1
        message = re.sub(r" \(at .*\)", "", str(exc))
        raise StudyFileError([Problem("", line, "file", f"not TOML: {message}")]) from exc
    lines = _lines_of_keys(text)
    foreign = [*_keys_of_another_kind(raw, lines), *_keys_of_ready_forms(raw, lines)]
    try:
        config = StudyConfig.model_validate(raw)
    except ValidationError as exc:
        problems = [_problem(error, lines) for error in exc.errors(include_url=False)[:MOST_PROBLEMS]]
        raise StudyFileError([*foreign, *problems]) from exc
    for language in config.languages[1:]:  # The first one has just been checked.
        try:
            config.in_language(language)
        except ValidationError as exc:
            for error in exc.errors(include_url=False):
                problem = _problem(error, lines)
                foreign.append(replace(problem, message=f"in {language}: {problem.message}"))
    if foreign:
        raise StudyFileError(foreign)
    return config


def _keys_of_another_kind(raw: Mapping[str, Any], lines: Mapping[Place, int]) -> Iterator[Problem]:
    """Keys that are known but have no meaning for the chosen kind. In a stored study they do no harm."""
    designs = {kind: tuple(design_defaults(kind)) for kind in DESIGNS}
    stages = raw.get("stages")
    tables: list[tuple[Place, Any, dict[str, tuple[str, ...]], str]] = [
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


def _keys_of_ready_forms(raw: Mapping[str, Any], lines: Mapping[Place, int]) -> Iterator[Problem]:
    """Keys that a ready form fixes. The stored study contains them, so the schema cannot refuse them; this does."""
    blocks = raw.get("blocks")
    for index, block in enumerate(blocks if isinstance(blocks, list) else []):
        if isinstance(block, Mapping) and block.get("ready"):
            for key in ("fields", "version"):
                if key in block:
                    message = "a ready form has its own: remove this key, or write the form without ready"
                    place = ("blocks", index, key)
                    yield Problem("", _line_of(place, lines), dotted(place), message)


def problem_at(text: str, place: Place, message: str, *, file: str = "") -> Problem:
    """A problem found outside the schema (no such bank, an option that the instrument refuses), with its line."""
    return Problem(file, _line_of(place, _lines_of_keys(text)), dotted(place), message)


def missing_texts(config: StudyConfig) -> list[tuple[Place, str]]:
    """Where a text is missing in one of the file's languages: the place in the file, and the language.

    A bare string counts as the first language only, except `contact`, which may be the same in all.
    """
    return list(_missing(config, (), config.languages))


def _missing(value: Any, path: Place, languages: Sequence[str]) -> Iterator[tuple[Place, str]]:
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
