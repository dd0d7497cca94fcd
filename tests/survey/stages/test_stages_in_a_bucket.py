"""A study whose predictors and plans lie in a bucket: the plans are those of a folder, and it waits for the bucket."""

from pathlib import Path
from typing import Any

import pytest
from django.db import transaction

from survey.exceptions import StorageAway
from survey.models import CandidateSet, JobStep, PredictorRun, Stage
from survey.services.base import files
from survey.services.stages import jobs
from survey.services.stages.verifying import verify_stage
from tests import cast
from tests.buckets import TestBucket, use

from .test_jobs import TWO

pytestmark = [pytest.mark.django_db, pytest.mark.thorough]


def hashes(first: Stage) -> tuple[str, str, Any]:
    second, run = cast.stage_of(first.study, 2), PredictorRun.objects.get(role="main")
    return second.plan_sha256, CandidateSet.objects.get(stage=second).file_sha256, run.members


def away(bucket: TestBucket, settings: Any, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Nobody listens where the bucket was."""
    nowhere = bucket.url.replace(bucket.server, "http://127.0.0.1:9")
    use(nowhere, settings, monkeypatch, folder)


def test_plans_and_predictors_of_a_bucket_are_those_of_a_folder(
    bucket: TestBucket, settings: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    use((tmp_path / "shared").as_uri(), settings, monkeypatch, tmp_path / "machine")
    first = cast.closed_stage(**TWO)
    with transaction.atomic():
        jobs.run_inline(first)
        from_folder = hashes(first)
        transaction.set_rollback(True)
    assert (tmp_path / "shared" / from_folder[1][:2] / from_folder[1]).is_file()
    use(bucket.url, settings, monkeypatch, tmp_path / "machine")
    jobs.run_inline(first)
    assert hashes(first) == from_folder and all(from_folder)
    stored = {key.rpartition("/")[2] for key in bucket.objects()}
    assert {from_folder[1], *from_folder[2]["0"].values()} <= stored == files.names_stored()
    assert not (tmp_path / "machine" / "files").exists()
    # Another machine, which has the database and the bucket alone.
    use(bucket.url, settings, monkeypatch, tmp_path / "another")
    second = cast.stage_of(first.study, 2)
    assert verify_stage(second).differences == []
    bucket.put(from_folder[1], b"other")
    assert "has changed: restore it from a backup" in str(verify_stage(second).differences)
    bucket.delete(from_folder[1])
    (lost,) = [difference for difference in verify_stage(second).differences if difference.startswith("candidates")]
    assert f"a file is not in the storage ({from_folder[1][:2]}/{from_folder[1]})" in lost


def test_a_step_waits_for_the_bucket_and_loses_no_try(
    bucket: TestBucket, settings: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first = cast.closed_stage(**TWO)
    freeze = cast.run_until(first, "freeze")
    away(bucket, settings, monkeypatch, tmp_path / "machine")
    assert jobs.run_step(freeze.pk) is True  # It needs no file.
    step = first.job_steps.get(kind="train")
    assert jobs.run_step(step.pk) is False
    step.refresh_from_db()
    assert (step.state, step.tries_left, step.attempt) == (JobStep.State.QUEUED, 3, 0)
    assert step.error.startswith(
        f"waits: HUNCH_STORAGE_URL: s3://{bucket.name}/hunch/files at http://127.0.0.1:9 cannot"
    )
    assert "then it goes on by itself" in step.error
    use(bucket.url.replace(bucket.name, "no-such-bucket"), settings, monkeypatch, tmp_path / "machine")
    assert jobs.run_step(step.pk) is False
    step.refresh_from_db()
    assert step.tries_left == 3 and "refuses us (NoSuchBucket); check the bucket" in step.error
    use(bucket.url, settings, monkeypatch, tmp_path / "machine")
    assert jobs.run_step(step.pk) is True
    step.refresh_from_db()
    assert (step.state, step.error) == (JobStep.State.DONE, "")


@pytest.mark.parametrize("kind", ["train", "score", "plan"])
def test_a_step_that_loses_the_bucket_in_the_middle_is_done_again(
    kind: str, bucket: TestBucket, settings: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first = cast.closed_stage(**TWO)
    step = cast.run_until(first, kind)
    before = bucket.objects()
    with monkeypatch.context() as patched:
        patched.setattr(files, "check_storage", lambda: away(bucket, settings, monkeypatch, tmp_path / "machine"))
        assert jobs.run_step(step.pk) is False
    step.refresh_from_db()
    assert (step.state, step.tries_left) == (JobStep.State.QUEUED, 2)
    assert step.error.startswith("it is tried again after: HUNCH_STORAGE_URL: s3://")
    assert bucket.objects() == before
    use(bucket.url, settings, monkeypatch, tmp_path / "machine")
    jobs.run_inline(first)
    second = cast.stage_of(first.study, 2)
    assert verify_stage(second).differences == []
    away(bucket, settings, monkeypatch, tmp_path / "machine")
    with pytest.raises(StorageAway):  # Not that the plan is wrong, or its file lost.
        verify_stage(second)
