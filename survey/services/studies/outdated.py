"""Whether this version of Hunch still accepts a stored study file, with the options of its instrument and its panel."""

from collections.abc import Callable
from typing import Any

from pydantic import ValidationError

from survey.contracts import instruments, panels
from survey.models import Study
from survey.study_file import problem_lines


def file_problems(study: Study) -> list[str]:
    """What this version would refuse of the file in force; empty for nearly every study. A missing instrument is
    reported elsewhere."""
    problems = [*study.config.problems]
    if instruments.is_known(study.instrument):
        instrument = instruments.of_study(study)
        options = instrument.options_model.stored(study.config.instrument.options)
        problems += _problems("instrument.options", lambda: instrument.options_model.model_validate(options))
    panel = panels.of_study(study)
    problems += _problems("panel.options", lambda: panel.options_model.model_validate(study.config.panel.options))
    return problems


def _problems(where: str, check: Callable[[], Any]) -> list[str]:
    try:
        check()
    except ValidationError as exc:
        return [f"{where}.{problem_line}" for problem_line in problem_lines(exc)]
    return []
