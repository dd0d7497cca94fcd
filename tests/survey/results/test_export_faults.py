"""Exports that something happens to in the middle: nothing is half done, there is one file, and a message says why."""

import io
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone

from survey.models import Assignment, Job, Study
from survey.services.base import files as storage
from survey.services.base import jobs
from survey.services.results.export import answers_file, files, formats
from survey.services.results.export import job as exporting
from survey.services.stages import jobs as stage_jobs
from survey.services.stages import lifecycle
from tests import cast
from tests.survey.results.test_export_job import manifest, table
from tests.waiting import PATIENCE

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
ALL = {"format": list(formats.FORMATS), "table": ["answers", "sittings"]}


@pytest.fixture
def study() -> Study:
    return cast.full_of_answers(cast.open_stage("cast")).study


def asked(study: Study, **arguments: Any) -> Job:
    return jobs.ask(study, "export", arguments)[0]


def archive_of(job: Job) -> ZipFile:
    job.refresh_from_db()
    (made,) = job.files
    with jobs.opened(job, made["name"]) as file:
        return ZipFile(io.BytesIO(file.read()))


def in_the_middle(monkeypatch: pytest.MonkeyPatch, act: Callable[[], None]) -> None:
    """Call this when the first rows of answers.csv are written and others are not read yet."""
    whole = files.write_table

    def written(file: Any, paths: Any) -> Iterator[int]:
        for number, rows in enumerate(whole(file, paths)):
            if file.name == files.ANSWERS and number == 0:
                act()
            yield rows

    monkeypatch.setattr(files, "BATCH_SIZE", 2)
    monkeypatch.setattr(answers_file, "CHUNK", 2)
    monkeypatch.setattr(files, "write_table", written)


def nothing_is_left(job: Job) -> bool:
    return storage.folders_at(job.place) == [] and not list((Path(settings.HUNCH_VAR) / "jobs").iterdir())


def test_a_stage_that_is_closed_and_frozen_meanwhile_is_exported_once_and_whole(
    study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    def close() -> None:
        stage_jobs.run_inline(lifecycle.close_stage(study.stages.get(index=1), now=True))

    job = asked(study, **ALL)
    in_the_middle(monkeypatch, close)
    assert jobs.run(job.pk), Job.objects.get(pk=job.pk).error
    assert study.stages.get(index=1).state == "frozen"
    rows = table(archive_of(job), "answers")
    assert [int(row["slot"]) for row in rows] == list(range(1, study.stages.get(index=1).slots.count() + 1))
    assert {row["status"] for row in rows} == {"counted"} and manifest(archive_of(job))["rows"]["answers"] == len(rows)


def test_answers_that_come_late_meanwhile_make_no_row_twice(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    job = asked(study, table=["answers"])
    late = Assignment.objects.filter(slot__number__lte=6)
    in_the_middle(monkeypatch, lambda: late.update(state="late") and None)
    assert jobs.run(job.pk), Job.objects.get(pk=job.pk).error
    rows = table(archive_of(job), "answers")
    assert [row["status"] for row in rows[:7]] == ["counted"] * 2 + ["late"] * 4 + ["counted"]
    assert len({row["slot"] for row in rows}) == len(rows)


def test_a_worker_that_is_killed_in_the_middle_leaves_one_whole_file(
    study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed() -> None:
        raise SystemExit

    job = asked(study, **ALL)
    with monkeypatch.context() as first:
        in_the_middle(first, killed)
        with pytest.raises(SystemExit):
            jobs.run(job.pk)
    left = Path(settings.HUNCH_VAR) / "jobs" / f"{job.key}-1-left"  # A killed process deletes nothing.
    left.mkdir()
    (left / "cast-export.zip").write_bytes(b"half")
    job.refresh_from_db()
    assert (job.state, job.files) == ("running", []) and jobs.due_jobs() == []
    Job.objects.filter(pk=job.pk).update(lease_until=timezone.now() - timedelta(seconds=1))
    assert jobs.due_jobs() == [job] and jobs.run(job.pk)
    assert archive_of(job).testzip() is None
    assert storage.folders_at(job.place) == ["2"] and not left.exists()
    assert manifest(archive_of(job))["rows"]["answers"] == len(table(archive_of(job), "answers"))


class FullDisk:
    """Writers whose file lies on a disk without room: /dev/full takes nothing, and says so as a disk does."""

    def __init__(self, writer: type[formats.TableWriter]) -> None:
        self.writer = writer

    def __call__(self, path: Path, columns: Any) -> formats.TableWriter:
        return self.writer(Path("/dev/full"), columns)


@pytest.mark.thorough
@pytest.mark.parametrize("name", formats.FORMATS)
def test_a_disk_that_is_full_while_a_table_is_written_is_said(
    study: Study, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = asked(study, format=[name], table=["answers"])
    with monkeypatch.context() as full:
        full.setitem(formats.WRITERS, name, FullDisk(formats.WRITERS[name]))
        assert not jobs.run(job.pk)
    job.refresh_from_db()
    assert (job.state, job.files) == ("queued", []) and "No space left on device" in job.error
    assert nothing_is_left(job)
    assert jobs.run(job.pk) and archive_of(job).testzip() is None
    job.refresh_from_db()
    assert job.error == ""


def test_a_disk_that_is_full_while_the_zip_is_packed_is_said(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(ZipFile):
        def __init__(self, _path: Path, *arguments: Any, **named: Any) -> None:
            super().__init__("/dev/full", *arguments, **named)

    job = asked(study, **ALL)
    with monkeypatch.context() as full:
        full.setattr(exporting.zipfile, "ZipFile", Full)
        assert not jobs.run(job.pk)
    job.refresh_from_db()
    assert (job.state, job.files) == ("queued", []) and "No space left on device" in job.error
    assert nothing_is_left(job) and jobs.run(job.pk)


@pytest.mark.django_db(transaction=True)
@pytest.mark.every_database
def test_two_windows_that_ask_at_once_get_one_job_and_one_file(study: Study) -> None:
    user = User.objects.create_superuser("owner")
    ready, asked_jobs = threading.Barrier(2, timeout=PATIENCE), []

    def ask() -> None:
        try:
            ready.wait()
            asked_jobs.append(jobs.ask(study, "export", {"table": ["plan"]}, by=user))
        finally:
            connection.close()

    windows = [threading.Thread(target=ask) for _window in range(2)]
    for window in windows:
        window.start()
    for window in windows:
        window.join()
    assert len(asked_jobs) == 2 and sorted(is_new for _job, is_new in asked_jobs) == [False, True]
    (job,) = {job.pk for job, _is_new in asked_jobs}
    assert jobs.run(job) and not jobs.run(job)
    assert len(Job.objects.get().files) == 1
