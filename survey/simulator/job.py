"""A dry run as a job. It belongs to the study, and what it fills to the study's test copy."""

import shutil
from collections.abc import Mapping
from typing import Any

from survey.contracts.reports import Argument, ArgumentErrors, ReportArguments
from survey.models import Study
from survey.processes import queues
from survey.services.base.job_kinds import JobKind, Work
from survey.services.base.rights import Right
from survey.services.studies import test_copies

from . import dry_run


def _check(study: Study, arguments: ReportArguments) -> None:
    test_copies.refuse_copy(study, "has no dry run of its own")
    text = arguments.one("people")
    if text and not (text.isascii() and text.isdecimal() and int(text) >= 1):
        raise ArgumentErrors(
            {"people": [f"{text!r} is not a whole number of 1 or more; empty: as many as have a place"]}
        )


def make(work: Work) -> Mapping[str, Any]:
    text = work.arguments.one("people")
    folder = work.folder / "files"
    folder.mkdir()
    rehearsal = dry_run.run(
        work.study,
        folder,
        people=int(text) if text else None,
        by=work.asked_by,
        via="worker",
        own_steps=False,
        say=work.progress,
    )
    dry_run.pack(folder, work.folder / f"{work.study.slug}-dry-run.zip")
    shutil.rmtree(folder)
    return rehearsal.as_json()


KIND = JobKind(
    name=test_copies.DRY_RUN,
    title="Dry run",
    summary=(
        "Simulated people go through every stage of the study's test copy; then every report, estimate, leaderboard "
        "and export is made from their answers, and what could not be filled is named."
    ),
    right=Right.RUN,
    make=make,
    arguments=(Argument("people", "in each stage; empty: as many as have a place", label="Simulated people"),),
    check=_check,
    queue=queues.COLLECT,  # It mostly waits for pages and workers, and must keep no training waiting.
)
