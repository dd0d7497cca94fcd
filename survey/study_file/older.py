"""Stored study files that this version of Hunch no longer accepts: read as far as they can be, with what is wrong.

A release may narrow a limit, drop a key or add a rule. What was collected under the older file is evidence, so that its
pages, figures and exports go on; nothing new is planned or opened by such a file (`survey.services.studies.outdated`).
"""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from .base import dotted, words_of
from .constructing import as_far_as_possible
from .messages import message_of
from .study import StudyConfig, languages_of

MAX_SHOWN = 20


def read_stored(stored: Mapping[str, Any]) -> StudyConfig:
    """A stored file. `problems` of what is returned says what this version would refuse; empty for all others."""
    try:
        return StudyConfig.model_validate(stored)
    except ValidationError as exc:
        with words_of(languages_of(stored)):
            config = as_far_as_possible(StudyConfig, stored)
        return config.with_problems(problem_lines(exc))


def problem_lines(error: ValidationError) -> list[str]:
    """What is wrong, each with its place."""
    return [_line(problem) for problem in error.errors(include_url=False)[:MAX_SHOWN]]


def _line(error: Mapping[str, Any]) -> str:
    known = "this version knows no such key" if error["type"] == "extra_forbidden" else message_of(error)
    return f"{dotted(tuple(error['loc'])) or 'file'}: {known or error['msg'].removeprefix('Value error, ')}"
