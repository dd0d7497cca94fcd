"""`check_files` names what is lost or changed, and says when all is there."""

from io import StringIO
from pathlib import Path

import pytest
from django.core.files.storage import default_storage
from django.core.management import call_command

from survey.models import CandidateSet, PredictorRun
from survey.services.base import files
from survey.services.stages import jobs
from survey.services.stages.needed_files import needed_files
from tests import cast
from tests.survey.stages.test_jobs import TWO

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


def checked() -> tuple[int, str]:
    out, err = StringIO(), StringIO()
    try:
        call_command("check_files", stdout=out, stderr=err)
    except SystemExit as exc:
        return int(str(exc)), err.getvalue()
    return 0, out.getvalue()


def test_lost_and_changed_files_are_named() -> None:
    first = cast.closed_stage(**TWO)
    jobs.run_inline(first)
    run, stored = PredictorRun.objects.get(role="main"), CandidateSet.objects.get(stage__index=2)
    needed = needed_files()
    positions = cast.stage_of(first.study, 2).manifest["questions"]["positions_sha256"]
    assert {stored.file_sha256, positions, *run.members["0"].values()} <= set(needed)
    assert checked() == (0, f"all {len(needed)} files that plans and predictors need are in {storage_url()}\n")
    lost, changed = stored.file_sha256, next(iter(run.members["0"].values()))
    contents = {sha256: Path(default_storage.path(files.name_of(sha256))) for sha256 in (lost, changed)}
    before = {sha256: path.read_bytes() for sha256, path in contents.items()}
    try:
        contents[lost].unlink()
        contents[changed].write_bytes(b"other")
        status, said = checked()
    finally:
        for sha256, path in contents.items():
            path.write_bytes(before[sha256])
    assert status == 1
    assert f"{lost} (candidates of {stored.stage}) is not in the storage" in said
    assert f"{changed} ({next(iter(run.members['0']))} of {run}) has changed" in said
    assert f"2 of {len(needed)} files" in said
    run.members = {**run.members, "1": {"another": "b" * 64}}
    run.save(update_fields=["members"])
    assert needed_files() == {**needed, "b" * 64: f"another of {run}"}


def storage_url() -> str:
    from django.conf import settings

    return str(settings.HUNCH_STORAGE_URL)
