"""Every number of a study file and of a budget file at the ends of what is taken, and what is said beyond them.

    python -m tests.renew bounds

writes the texts in `data/bounds` again. The keys come from the models and from the example files, so a new one is there
by itself.
"""

import copy
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from django.utils.module_loading import import_string
from pydantic import BaseModel, ValidationError

from survey import study_file
from survey.contracts import instruments
from survey.exceptions import HunchError
from survey.services.base.toml_files import read_toml
from survey.services.results import budgets
from survey.study_file import StudyConfig
from tests import cast

from .recording import Script, script

pytestmark = [pytest.mark.django_db, pytest.mark.any_database, pytest.mark.slow]
__all__ = ["script"]

STUDIES = Path(__file__).parents[2] / "studies"
USUAL = (-1, 0, 1, 10**9)
Place = tuple[str | int, ...]


def numbers(schema: Mapping[str, Any], defs: Mapping[str, Any], place: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Every key that takes a number, with its schema; the first member stands for all of a list."""
    if "$ref" in schema:
        schema = defs[schema["$ref"].rpartition("/")[2]]
    if schema.get("type") in ("integer", "number"):
        yield place, schema
    for inner in schema.get("anyOf", ()):
        yield from numbers(inner, defs, place)
    for name, inner in schema.get("properties", {}).items():
        if place.count(name) == 0:  # A group of filters holds filters.
            yield from numbers(inner, defs, (*place, name))
    if "items" in schema:
        yield from numbers(schema["items"], defs, (*place, 0))


def values(schema: Mapping[str, Any]) -> list[float]:
    step = 1 if schema["type"] == "integer" else 0.001
    ends = [schema[name] for name in schema if name.endswith(("inimum", "aximum"))]
    around = [round(end + move, 6) for end in ends for move in (-step, 0, step)]
    return sorted({*around, *USUAL})


def with_value(place: Place, value: float) -> str:
    """The cast's study file with that number; tables and lists on the way to it are made."""
    raw: Any = copy.deepcopy({**cast.BASE, "panel": cast.PROLIFIC})
    inner = raw
    for name, following in pairwise(place):
        made: Any = [] if isinstance(following, int) else {}
        if isinstance(inner, list):
            if not inner:
                inner.append(made)
        else:
            inner.setdefault(name, made)
        inner = inner[name]
    if isinstance(inner, list):
        inner[:] = [value]
    else:
        inner[place[-1]] = value
    return cast.study_text(**raw)


def said_of(place: Place, value: float) -> str:
    """What is said of this key, and nothing of the others."""
    field = ".".join(str(part + 1 if isinstance(part, int) else part) for part in place)
    try:
        study_file.parse(with_value(place, value))
    except study_file.StudyFileError as exc:
        said = [problem.message for problem in exc.problems if problem.field == field]
        return "; ".join(said) or f"taken ({len(exc.problems)} other problems)"
    return "taken"


def test_study_file(script: Script) -> None:
    schema = StudyConfig.model_json_schema()
    for place, about in sorted(dict(numbers(schema, schema["$defs"])).items(), key=str):
        script.lines.append(".".join(map(str, place)))
        script.lines += [f"   {value}: {said_of(place, value)}" for value in values(about)]


def test_options(script: Script) -> None:
    """Of each instrument."""
    for name in instruments.names():
        kind = instruments.kind(name)
        if kind.__module__.startswith("survey."):
            script.lines.append(f"# {name}")
            model: type[BaseModel] = kind.options_model
            schema = model.model_json_schema()
            for place, about in dict(numbers(schema, schema.get("$defs", {}))).items():
                script.lines.append(".".join(map(str, place)))
                script.lines += [f"   {value}: {said_of_option(model, place, value)}" for value in values(about)]


def said_of_option(model: type[BaseModel], place: Place, value: float) -> str:
    raw: Any = [value] if place[-1] == 0 else value
    try:
        model.model_validate({str(place[0]): raw})
    except ValidationError as exc:
        return "; ".join(error["msg"] for error in exc.errors() if error["loc"][:1] in ((), place[:1])) or "taken"
    return "taken"


def test_budget_files(script: Script) -> None:
    for path in sorted(STUDIES.glob("example-budget*.toml")):
        script.lines.append(f"# {path.name}")
        raw = read_toml(path)
        for place, number in numbers_in(raw):
            script.lines.append(f"{'.'.join(map(str, place))} = {number}")
            script.lines += [f"   {value}: {said_of_budget(path, place, value)}" for value in (-1, 0, 1, 10**9)]


def numbers_in(raw: Any, place: Place = ()) -> Iterator[tuple[Place, float]]:
    """Every number; of a list the first."""
    members = raw.items() if isinstance(raw, dict) else list(enumerate(raw))[:1] if isinstance(raw, list) else ()
    for name, inner in members:
        yield from numbers_in(inner, (*place, name))
    if isinstance(raw, int | float) and not isinstance(raw, bool):
        yield place, raw


def said_of_budget(path: Path, place: Place, value: float) -> str:
    raw: Any = read_toml(path)
    inner = raw
    for name in place[:-1]:
        inner = inner[name]
    inner[place[-1]] = value
    planner = import_string(instruments.kind(raw.pop("instrument", "belief_update")).budget_planner)
    try:
        budgets.read(planner, raw, path=path)
    except HunchError as exc:
        return str(exc).replace(str(path), "FILE").replace("\n", " / ")
    return "taken"
