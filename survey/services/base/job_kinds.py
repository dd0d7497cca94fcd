"""The kinds of jobs that somebody can ask for. A kind is imported when it is first used, so this names no other room.

To add a kind: write a `JobKind` in the room of its subject, and add its line to `KINDS`. The pages, the command, the
API and the workers then know it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

from django.utils.module_loading import import_string

from survey.contracts.reports import Argument, ArgumentErrors, ReportArguments, check_arguments
from survey.exceptions import NotFound
from survey.models import Study
from survey.processes import queues

from .rights import Right

KINDS: Mapping[str, str] = {
    "both_outcomes": "survey.instruments.belief_update.reports.alignment.both_outcomes.KIND",
    "demographics": "survey.panels.demographics.KIND",
    "dry_run": "survey.simulator.job.KIND",
    "export": "survey.services.results.export.job.KIND",
    "held_out_scores": "survey.instruments.belief_update.reports.paper.held_out.KIND",
    "package": "survey.services.results.package.building.KIND",
    "prepare": "survey.services.studies.preparing.KIND",
    "screens": "survey.printed_screens.job.KIND",
}

Progress = Callable[[int, int, str], None]
"""progress(done, total, words): call it often; it renews the claim. It ends the work with Stopped if the job was
cancelled or another worker has it."""


@dataclass(frozen=True)
class Work:
    """What a kind's `make` gets. Every file that it writes into `folder` (no folders inside) becomes a result file."""

    study: Study
    arguments: ReportArguments
    folder: Path
    progress: Progress
    asked_by: Any
    """The user who asked; None: a command."""


@dataclass(frozen=True)
class JobKind:
    """A kind of job.

    Args:
        title: what is made, as pages name it.
        summary: one sentence for who may ask for it.
        right: what a member needs to ask for it and to get its files.
        make: does it in a worker, and returns what to keep of it as JSON. It may be called again from the beginning
            after a worker died, so it changes nothing but `folder`, or what it can do twice.
        arguments: those of pages, command and API; their texts are checked before the row is made.
        suits: whether it means anything in a study. Elsewhere it is not offered.
        forbids: why a user may not have it done in this study though they have the right; empty if they may.
        check: further checks of the arguments, which raise HunchError and name the argument.
        keeps: how long the files are kept.
        queue: whose workers do it. Work that takes many minutes, or a core all the time, belongs to `queues.SCORE`.
    """

    name: str
    title: str
    summary: str
    right: Right
    make: Callable[[Work], Mapping[str, Any]]
    arguments: Sequence[Argument] = ()
    suits: Callable[[Study], bool] = lambda study: True
    forbids: Callable[[Study, Any], str] = lambda study, by: ""
    check: Callable[[Study, ReportArguments], None] = lambda study, arguments: None
    keeps: timedelta = timedelta(days=7)
    queue: str = queues.DEFAULT

    def checked(self, study: Study, arguments: Mapping[str, Sequence[str]]) -> ReportArguments:
        """Every argument, given or by default.

        Raises:
            HunchError: one cannot be used; says which, and what there is.
        """
        checked_arguments = check_arguments(
            self.name, self.arguments, arguments, choices_of=lambda argument: argument.choices_in(study)
        )
        problems = {}
        for argument in self.arguments:
            if argument.choices is None:
                continue
            there_are = argument.choices_in(study)
            if unknown := [text for text in checked_arguments[argument.name] if text not in there_are]:
                problems[argument.name] = [
                    f"{unknown[0]!r} cannot be chosen; there are: {', '.join(there_are) or 'none'}"
                ]
        if problems:
            raise ArgumentErrors(problems)
        self.check(study, checked_arguments)
        return checked_arguments


@cache
def find_kind(name: str) -> JobKind:
    """
    Raises:
        NotFound: there is no such kind; lists those there are.
    """
    if name not in KINDS:
        raise NotFound(f"no kind of job is called {name!r}; there are: {', '.join(KINDS)}")
    kind: JobKind = import_string(KINDS[name])
    return kind


def all_kinds() -> list[JobKind]:
    return [find_kind(name) for name in KINDS]
