"""Small TOML files that commands take, read and checked with every problem named."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from survey.exceptions import FileErrors, Problem
from survey.input_tables import decoding
from survey.study_file import dotted

Model = TypeVar("Model", bound=BaseModel)


def read_toml(path: Path) -> dict[str, Any]:
    """
    Raises:
        FileErrors: the file cannot be read, or is not TOML.
    """
    try:
        return tomllib.loads(decoding.toml_text(decoding.read_bytes(path), str(path)))
    except tomllib.TOMLDecodeError as exc:
        raise FileErrors([Problem(str(path), None, "", f"not TOML: {exc}")]) from exc


def checked(model: type[Model], content: Mapping[str, Any], path: Path) -> Model:
    """What the file says, as `model` has it.

    Raises:
        FileErrors: values are wrong; lists every problem.
    """
    try:
        return model.model_validate(content)
    except ValidationError as exc:
        raise FileErrors(_problem(path, error) for error in exc.errors(include_url=False)) from exc


def _problem(path: Path, error: Mapping[str, Any]) -> Problem:
    return Problem(str(path), None, dotted(error["loc"]) or "file", error["msg"].removeprefix("Value error, "))
