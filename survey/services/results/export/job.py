"""An export as a job: the files of `write_export` in one ZIP."""

import zipfile
from collections.abc import Mapping
from typing import Any

from survey.contracts.reports import Argument, Given
from survey.models import Study
from survey.services.answers.conditions import pairs_of, read_condition
from survey.services.base.job_kinds import JobKind, Work
from survey.services.base.rights import Right
from survey.services.results.export import files

CONDITION = Argument(
    "condition",
    "only answers under this level of a factor; several for several factors",
    many=True,
    choices=pairs_of,
)


def _check(study: Study, given: Given) -> None:
    read_condition(study, given["condition"])


def make(work: Work) -> Mapping[str, Any]:
    levels = read_condition(work.study, work.given["condition"])
    folder = work.folder / "files"
    written = files.write_export(work.study, folder, levels=levels)
    with zipfile.ZipFile(work.folder / f"{work.study.slug}-export.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for number, entry in enumerate(written):
            work.progress(number, len(written), f"packing {entry.path.name}")
            archive.write(entry.path, entry.path.name)
    return {"rows": {entry.path.name: entry.rows for entry in written if entry.rows is not None}}


KIND = JobKind(
    name="export",
    title="Export",
    summary="The study's answers with all files beside them and their codebook, in one ZIP.",
    right=Right.EXPORT,
    make=make,
    arguments=(CONDITION,),
    check=_check,
)
