"""A worker is killed while it writes a predictor, and disks are really full: no half file is used, the work goes on."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from survey.models import PredictorRun
from survey.services.base import files
from survey.services.stages import jobs
from survey.services.stages.verifying import verify_stage
from tests import cast
from tests.conftest import NOT_TESTED
from tests.faults.test_twice import TWO
from tests.survey.stages.test_jobs import lapse

# Who is not root becomes it in a namespace of users.
MOUNTS_OF_OUR_OWN = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]
ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]
RUN_STEP = """
import django, sys
django.setup()
from survey.services.stages import jobs
jobs.run_step(int(sys.argv[1]))
"""
# The second time as if the disk became full after the step had begun.
RUN_STEP_TWICE = (
    RUN_STEP
    + """
import json
from survey.models import JobStep
from survey.services.base import files
step = JobStep.objects.get(pk=int(sys.argv[1]))
print(json.dumps([step.state, step.tries_left, step.error]))
files.full_folder = lambda: None
jobs.run_step(step.pk)
"""
)
# The process dies when half of the file is written: nothing is unwound, no exception is seen.
DIE_IN_THE_MIDDLE = (
    """
import os, signal
from pathlib import Path
from django.core.files.storage import FileSystemStorage

def write_half(self, name, content):
    path, data = Path(self.path(name)), content.read()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data[: len(data) // 2])
    print(path, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

FileSystemStorage._save = write_half
from survey.services.base import files
files.is_stored = lambda sha256: False  # Another test may have trained the same.
"""
    + RUN_STEP
)
# A file system of 16 KB of its own, filled to the last byte, where the folder $0 was; then a command in it.
ON_A_FULL_DISK = (
    'mkdir -p "$0" && mount -t tmpfs -o size=16k none "$0" && head -c 20k /dev/zero > "$0/full" 2>/dev/null; '
    '"$@"; status=$?; ls -A "$0"; exit $status'
)


@pytest.fixture
def training() -> Any:
    """A stage whose training is next."""
    stage = cast.closed_stage(**TWO)
    return cast.run_until(stage, "train")


def on_a_full_disk(folder: Path, *command: str, environment: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    inside = [*MOUNTS_OF_OUR_OWN, "sh", "-c", ON_A_FULL_DISK, str(folder), *command]
    return subprocess.run(inside, cwd=ROOT, env=environment, capture_output=True, text=True)


@pytest.fixture
def full_disks() -> None:
    """Skips where no file system of our own can be mounted."""
    mount = [*MOUNTS_OF_OUR_OWN, "mount", "-t", "tmpfs", "none", "/mnt"]
    made = shutil.which("unshare") and subprocess.run(mount, capture_output=True)
    if not made or made.returncode:
        pytest.skip(f"{NOT_TESTED}full disks: this machine lets nobody mount one")


def assert_it_ends_well(step: Any) -> None:
    assert jobs.run_step(step.pk)
    run = PredictorRun.objects.get(role="main")
    assert run.is_ready and run.example_count == 12
    for member in run.members.values():
        assert files.folder_of(member).is_dir()  # Every byte is checked.
    jobs.run_inline(step.stage)
    assert cast.stage_of(step.stage.study, 2).state in ("planned", "open")
    assert verify_stage(cast.stage_of(step.stage.study)).differences == []


@pytest.mark.any_database
def test_a_worker_killed_in_the_middle_of_writing_a_model(training: Any, child_environment: dict[str, str]) -> None:
    command = [sys.executable, "-c", DIE_IN_THE_MIDDLE, str(training.pk)]
    died = subprocess.run(command, cwd=ROOT, env=child_environment, capture_output=True, text=True)
    assert died.returncode == -9, died.stderr
    half = Path(died.stdout.strip())
    assert files.sha256_of(half) != half.name
    training.refresh_from_db()
    assert (training.state, training.attempt) == ("running", 1)
    assert PredictorRun.objects.get(role="main").members == {}
    lapse(training)
    assert_it_ends_well(training)


@pytest.mark.thorough
@pytest.mark.any_database
def test_a_disk_that_is_full_when_a_model_is_stored(
    training: Any, child_environment: dict[str, str], full_disks: None
) -> None:
    folder = Path(settings.HUNCH_VAR) / "files"
    command = [sys.executable, "-c", RUN_STEP_TWICE, str(training.pk)]
    ended = on_a_full_disk(folder, *command, environment=child_environment)
    assert ended.returncode == 0 and "Traceback" not in ended.stdout + ended.stderr, ended.stderr
    state, tries_left, error = json.loads(next(line for line in ended.stdout.splitlines() if line.startswith("[")))
    assert (state, tries_left) == ("queued", 3)
    assert error.startswith("waits: less than ") and f" are free in {folder}" in error
    training.refresh_from_db()
    assert (training.state, training.tries_left) == ("queued", 2)
    assert "No space left on device" in training.error
    assert PredictorRun.objects.get(role="main").members == {}
    assert_it_ends_well(training)
    training.refresh_from_db()
    assert training.error == ""


@pytest.mark.any_database
def test_an_export_to_a_full_disk_leaves_nothing_and_says_why(
    training: Any, child_environment: dict[str, str], full_disks: None, tmp_path: Path
) -> None:
    command = [sys.executable, "manage.py", "export", "small", "--out", str(tmp_path)]
    ended = on_a_full_disk(tmp_path, *command, environment=child_environment)
    assert ended.returncode == 1
    assert "No space left on device" in ended.stderr and "Traceback" not in ended.stderr
    assert ended.stdout.split() == ["full"]


def test_work_waits_for_room_says_so_and_costs_no_try(training: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as little:
        little.setattr(files, "SPACE", 1 << 62)
        for _look in range(5):
            assert jobs.run_step(training.pk) is False
        training.refresh_from_db()
        assert (training.state, training.attempt, training.tries_left) == ("queued", 0, 3)
        assert training.error.startswith("waits: less than ") and "goes on by itself" in training.error
    assert_it_ends_well(training)
