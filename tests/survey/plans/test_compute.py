"""HUNCH_COMPUTE: a cluster of two processes draws the same plans as threads, and where it fails nothing is drawn."""

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.conf import settings
from django.db import transaction
from django.utils import timezone

from bandit import FactoredScores, factored
from survey.exceptions import ComputeAway, ComputeRefused
from survey.models import CandidateSet, JobStep, Stage
from survey.operation import doctor
from survey.services.base import compute
from survey.services.stages import jobs
from survey.services.stages.verifying import verify_stage
from tests import cast
from tests.servers import ROOT, DaskCluster, dask_cluster

from .test_exhaustive import two

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

dask = pytest.importorskip("distributed") if os.environ.get("CI") != "true" else __import__("distributed")
from survey.processes import dask_cluster as cluster_of_dask  # noqa: E402


@pytest.fixture(autouse=True)
def many_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that even forty questions make a dozen tiles."""
    monkeypatch.setattr(factored, "_BLOCK", 400)
    monkeypatch.setattr(factored, "_COLUMNS", 16)
    monkeypatch.setattr(factored, "_TILE", 16)


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], DaskCluster]]:
    """A function that gives a cluster with two workers: the same one, repaired where a test has broken it."""
    with ExitStack() as stack:
        running: list[DaskCluster] = []

        def find() -> DaskCluster:
            if not running or running[-1].scheduler.poll() is not None:
                running.append(stack.enter_context(dask_cluster(tmp_path_factory.mktemp("dask"), workers=0)))
            cluster = running[-1]
            cluster.workers[:] = [worker for worker in cluster.workers if worker.poll() is None]
            while len(cluster.workers) < 2:
                cluster.add_worker()
            return cluster

        yield find


@pytest.fixture
def cluster(clusters: Callable[[], DaskCluster]) -> DaskCluster:
    return clusters()


@pytest.fixture(scope="module")
def empty_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskCluster]:
    """A scheduler without workers."""
    with dask_cluster(tmp_path_factory.mktemp("dask"), workers=0) as started:
        yield started


def started(address: str, workers: int) -> None:
    """Wait until the scheduler has so many workers."""
    with dask.Client(address.replace("dask://", "tcp://"), timeout=120, set_as_default=False) as client:
        client.wait_for_workers(workers, timeout=240)


@contextmanager
def worker_of(cluster: DaskCluster, code: Path) -> Iterator[None]:
    """A worker with this code, which the scheduler has no longer afterwards."""
    worker = cluster.add_worker(code=code)
    started(cluster.address, 1)
    yield
    with dask.Client(cluster.address.replace("dask://", "tcp://"), timeout=120, set_as_default=False) as client:
        worker.kill()
        worker.wait(timeout=60)
        until = time.monotonic() + 60
        while client.scheduler_info()["workers"] and time.monotonic() < until:
            time.sleep(0.05)


def killed_at(number: int, victims: list[subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Kill these workers when so many tiles were sent; returns a list that fills with the numbers of those sent."""
    sent: list[int] = []
    submit = dask.cfexecutor.ClientExecutor.submit

    def counted(self: Any, *work: Any) -> Any:
        sent.append(len(sent))
        future = submit(self, *work)
        if len(sent) == number:
            for victim in victims:
                os.kill(victim.pid, signal.SIGKILL)
                victim.wait(timeout=60)
        return future

    monkeypatch.setattr(dask.cfexecutor.ClientExecutor, "submit", counted)
    return sent


def hashes_of(stage: Stage) -> tuple[str, ...]:
    stored = CandidateSet.objects.get(stage=stage)
    return stage.plan_sha256, stored.drawn_sha256, stored.shortlist_sha256, stored.file_sha256


def planned_hashes(first: Stage) -> tuple[str, ...]:
    """What planning the second stage gives; nothing of it stays."""
    with transaction.atomic():
        jobs.run_inline(first)
        hashes = hashes_of(cast.stage_of(first.study, 2))
        transaction.set_rollback(True)
    return hashes


@pytest.mark.thorough
@pytest.mark.parametrize("shortlist", [0, 200])
def test_a_cluster_of_two_processes_draws_the_same_plan_as_threads(
    shortlist: int,
    scorer: list[dict[str, Any]],
    cluster: DaskCluster,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    first = cast.closed_stage(**two(shortlist=shortlist))
    cast.run_until(first, "score")
    by_threads = planned_hashes(first)
    sent = killed_at(0, [], monkeypatch)
    started(cluster.address, 2)
    monkeypatch.setattr(settings, "HUNCH_COMPUTE", cluster.address)
    assert planned_hashes(first) == by_threads and all(by_threads[:2])
    assert len(sent) > 10
    jobs.run_inline(first)
    assert verify_stage(cast.stage_of(first.study, 2)).agrees
    # Work really goes to both processes.
    rng = np.random.default_rng(1)
    scores = FactoredScores(
        evidence=rng.integers(-3, 4, (2, 64, 3)),
        target=rng.integers(-3, 4, (2, 64, 3)),
        evidence_bias=rng.integers(-3, 4, (2, 64)),
        target_bias=rng.integers(-3, 4, (2, 64)),
    )
    meeting = tmp_path / "meeting"
    meeting.mkdir()

    def meets(_block: Any) -> int:
        """Work that ends when another process has begun with some."""
        (meeting / str(os.getpid())).touch()
        until = time.monotonic() + 240
        while len(list(meeting.iterdir())) < 2 and time.monotonic() < until:
            time.sleep(0.01)
        return os.getpid()

    with compute.workers() as workers:
        assert workers["threads"] == 2
        processes = set(scores.map_blocks(meets, **workers))
    assert len(processes) == 2 and os.getpid() not in processes
    # The doctor says so.
    (line,) = doctor.LOOKS["compute"]("compute")
    assert line.grade is doctor.Grade.OK and "2 workers with 2 threads" in line.what


def test_a_step_whose_scheduler_died_is_queued_again(
    scorer: list[dict[str, Any]],
    cluster: DaskCluster,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = cast.closed_stage(**two())
    step = cast.run_until(first, "score")
    started(cluster.address, 2)
    monkeypatch.setattr(settings, "HUNCH_COMPUTE", cluster.address)
    monkeypatch.setattr(factored, "_PATIENCE", 3.0)
    killed_at(3, [cluster.scheduler], monkeypatch)
    assert jobs.run_step(step.pk) is False
    step.refresh_from_db()
    assert (step.state, step.tries_left) == (JobStep.State.QUEUED, 2)
    assert step.error.startswith(f"it is tried again after: HUNCH_COMPUTE: {cluster.address}")
    assert not CandidateSet.objects.filter(stage__index=2).exists()


@pytest.mark.thorough
def test_where_one_worker_of_two_is_killed_the_other_draws_the_same_plan(
    scorer: list[dict[str, Any]],
    cluster: DaskCluster,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = cast.closed_stage(**two())
    cast.run_until(first, "score")
    by_threads = planned_hashes(first)
    started(cluster.address, 2)
    monkeypatch.setattr(settings, "HUNCH_COMPUTE", cluster.address)
    sent = killed_at(3, cluster.workers[:1], monkeypatch)
    assert planned_hashes(first) == by_threads
    assert len(sent) > 10 and cluster.workers[0].returncode == -signal.SIGKILL and cluster.workers[1].poll() is None


@pytest.mark.thorough
def test_a_step_whose_workers_all_died_is_queued_again_and_draws_the_same_plan_later(
    scorer: list[dict[str, Any]],
    cluster: DaskCluster,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = cast.closed_stage(**two())
    step = cast.run_until(first, "score")
    by_threads = planned_hashes(first)
    started(cluster.address, 2)
    monkeypatch.setattr(settings, "HUNCH_COMPUTE", cluster.address)
    monkeypatch.setattr(factored, "_PATIENCE", 3.0)
    with monkeypatch.context() as patched:
        killed_at(3, cluster.workers, patched)
        assert jobs.run_step(step.pk) is False
    step.refresh_from_db()
    assert (step.state, step.tries_left, step.attempt) == (JobStep.State.QUEUED, 2, 1)
    assert step.error.startswith(f"it is tried again after: HUNCH_COMPUTE: {cluster.address}: what works on blocks")
    assert step.sent_at is not None and step.sent_at <= timezone.now()
    assert not CandidateSet.objects.filter(stage__index=2).exists()
    monkeypatch.setattr(factored, "_PATIENCE", 600.0)
    cluster.add_worker()
    started(cluster.address, 1)
    jobs.run_inline(first)
    assert hashes_of(cast.stage_of(first.study, 2)) == by_threads


def test_a_step_waits_for_the_scheduler_and_fails_only_where_it_is_lost_in_the_middle(
    scorer: list[dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # Bound and not listening: anyone who comes is refused.
        address = f"dask://127.0.0.1:{nobody.getsockname()[1]}"
        monkeypatch.setattr(settings, "HUNCH_COMPUTE", address)
        monkeypatch.setattr(cluster_of_dask, "ANSWERS_WITHIN", 0.5)
        first = cast.closed_stage(**two())
        step = cast.run_until(first, "score")
        for _look in range(2):
            assert jobs.run_step(step.pk) is False
            step.refresh_from_db()
            assert (step.state, step.tries_left, step.attempt) == (JobStep.State.QUEUED, 3, 0)
            assert step.error.startswith(f"waits: HUNCH_COMPUTE: no scheduler answers at {address}")
            assert step.error.endswith("then it goes on by itself")
        monkeypatch.setattr(compute, "check", lambda: None)  # It goes away after that look.
        for left in (2, 1, 0):
            assert jobs.run_step(step.pk) is False
            step.refresh_from_db()
            assert step.tries_left == left
            assert step.state == (JobStep.State.QUEUED if left else JobStep.State.FAILED)
            assert f"HUNCH_COMPUTE: no scheduler answers at {address}" in step.error
            assert "start it with dask scheduler" in step.error
        (line,) = doctor.LOOKS["compute"]("compute")
    assert line.grade is doctor.Grade.BROKEN and "no scheduler answers" in line.what and "dask scheduler" in line.to_do


def test_a_scheduler_without_workers_is_said(empty_cluster: DaskCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_of_dask, "WORKERS_WITHIN", 0.2)
    monkeypatch.setattr(settings, "HUNCH_COMPUTE", empty_cluster.address)
    with pytest.raises(ComputeAway, match="has no workers; start some"), compute.workers():
        pass


@pytest.mark.parametrize(
    ("has", "message"),
    [
        ("another version", "with other code in the package bandit"),
        ("another bandit", "cannot load the package bandit"),
    ],
)
def test_a_worker_with_other_code_is_refused_before_it_gets_work(
    has: str, message: str, empty_cluster: DaskCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = tmp_path / "code"
    if has == "another version":
        shutil.copytree(ROOT / "bandit", code / "bandit", ignore=shutil.ignore_patterns("__pycache__"))
        with (code / "bandit/exhaustive.py").open("a") as file:
            file.write("_RARE = 0\n")
    else:
        (code / "bandit").mkdir(parents=True)
        (code / "bandit/__init__.py").write_text("")
    with worker_of(empty_cluster, code):
        monkeypatch.setattr(settings, "HUNCH_COMPUTE", empty_cluster.address)
        with pytest.raises(ComputeRefused, match=message), compute.workers():
            pass
        (line,) = doctor.LOOKS["compute"]("compute")
    assert line.grade is doctor.Grade.BROKEN and message in line.what and "install" in line.to_do
