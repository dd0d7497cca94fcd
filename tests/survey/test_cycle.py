"""A whole stage cycle on real parts: a real Redis, real Celery workers and beat, a real (tiny) BERT."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from survey import tasks
from survey.models import (
    CandidateSet,
    Evaluation,
    JobStep,
    PredictorRun,
    Response,
    ScoringPart,
    SnapshotAnswer,
)
from survey.models.predictor import TRIES
from survey.services.base import leases
from survey.services.plans import planning
from survey.services.stages import lifecycle
from tests import cast, servers
from tests.conftest import unavailable
from tests.waiting import PATIENCE

pytestmark = [pytest.mark.redis, pytest.mark.slow, pytest.mark.django_db(transaction=True)]

ML = ("worker", "--pool-start-method", "spawn", "-Q", "train,score", "-c", "1", "-n", "ml@%h")
DEFAULT = ("worker", "-Q", "default", "-c", "1", "-n", "default@%h")


@contextmanager
def celery(*arguments: str, environment: dict[str, str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A Celery process in a group of its own; killed with all its children at the end."""
    with log.open("ab") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "celery", "-A", "survey", *arguments],
            env={**environment, "OMP_NUM_THREADS": "1"},
            cwd=Path(__file__).parent.parent.parent,
            stdout=file,
            stderr=file,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        kill(process)


def kill(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=PATIENCE)


@contextmanager
def beat(*, environment: dict[str, str], folder: Path) -> Iterator[None]:
    arguments = ("beat", "--schedule", str(folder / "schedule"), "--pidfile", "")
    with celery(*arguments, environment=environment, log=folder / "beat.log"):
        yield


def wait_for(what: str, look: Callable[[], bool], *, logs: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while not look():
        if time.monotonic() > deadline or JobStep.objects.filter(state="failed").exists():
            tail = "\n".join(f"== {log.name}\n{log.read_text()[-3000:]}" for log in sorted(logs.glob("*.log")))
            steps = [(step.kind, step.state, step.error) for step in JobStep.objects.all()]
            pytest.fail(f"{what} did not happen; steps: {steps}\n{tail}")
        time.sleep(0.1)


def state_of(stage: Any, index: int) -> str:
    return str(cast.stage_of(stage.study, index).state)


# On PostgreSQL, real workers that are killed freeze, train and open the next stage in tests/faults/test_site.py.
@pytest.mark.any_database
@pytest.mark.torch
def test_a_stage_is_frozen_trained_scored_and_planned_by_workers_though_one_is_killed(
    redis_server: str, child_environment: dict[str, str], tmp_path: Path
) -> None:
    from tests.predictors.tiny import save_tiny_bert

    params = {
        "checkpoint": str(save_tiny_bert(tmp_path / "tiny")),
        "members": 1,
        "batch_size": 4,
        "min_steps": 80,
        "max_length": 64,
        "bfloat16": False,
        "device": "cpu",
    }
    # Wide enough that the plan can be dealt whatever an untrained BERT happens to like.
    greedy = {"kind": "epsilon_greedy", "epsilon": 0.25, "top_fraction": 0.5}
    stage = cast.open_stage(
        stages=[{"sittings": 4}, {"sittings": 8, "design": greedy, "train": False, "opens": "automatically"}],
        predictor={"name": "bert", "params": params},
        candidates={"size": 200},
    )
    cast.fill(stage)
    environment = child_environment
    with (
        beat(environment=environment, folder=tmp_path),
        celery(*DEFAULT, environment=environment, log=tmp_path / "default.log"),
    ):
        with celery(*ML, environment=environment, log=tmp_path / "ml.log") as victim:
            lifecycle.close_stage(stage)
            training = JobStep.objects.filter(kind="train", state="running", progress_done__gte=1)
            wait_for("training", training.exists, logs=tmp_path)
            kill(victim)
        step = cast.step_of(stage, "train")
        assert (step.state, step.attempt) == ("running", 1)
        assert not PredictorRun.objects.get(role="main").members

        # As if its lease had run out.
        past = timezone.now() - timedelta(seconds=1)
        JobStep.objects.filter(pk=step.pk).update(lease_until=past, sent_at=past - leases.SEND_AGAIN)
        with celery(*ML, environment=environment, log=tmp_path / "ml-second.log"):
            wait_for("the second stage", lambda: state_of(stage, 2) == "open", logs=tmp_path)
            wait_for("the baselines", lambda: lifecycle.pipeline_is_done(cast.stage_of(stage.study)), logs=tmp_path)

            steps = stage.job_steps.exclude(kind="freeze").exclude(predictor_run__role="baseline")
            assert dict(steps.values_list("kind", "attempt")) == {"train": 2, "score": 1, "plan": 1}
            assert set(stage.job_steps.values_list("state", flat=True)) == {"done"}
            main = PredictorRun.objects.get(role="main")
            assert SnapshotAnswer.objects.count() == main.example_count == 12

            second = cast.stage_of(stage.study, 2)
            assert {stratum.name: stratum.slots for stratum in second.strata.all()} == {"top": 18, "rest": 6}
            cast.fill(second)
            lifecycle.close_stage(second)
            wait_for("the evaluation", Evaluation.objects.exists, logs=tmp_path)
    judged = {
        evaluation.predictor_run.name: evaluation.metrics["naive"]["n"] for evaluation in Evaluation.objects.all()
    }
    assert judged == {"bert": 24, "previous_correct": 24, "same_task": 24}
    assert state_of(stage, 2) == "frozen"


class DueSteps:
    """Sends what is due each second, as beat does: to look for more costs more than the work itself."""

    def __init__(self) -> None:
        self.next = 0.0

    def __call__(self) -> None:
        if time.monotonic() >= self.next:
            tasks.run_due_steps()
            self.next = time.monotonic() + 1


send_due_steps = DueSteps()


def has_come(rows: Any) -> bool:
    send_due_steps()
    return bool(rows.exists())


def stop_within_a_part(process: subprocess.Popen[bytes], parts: Any, *, logs: Path) -> int:
    """Stop a process while it scores one of these parts, and return the part."""
    while True:
        wait_for("a part", lambda: has_come(parts), logs=logs)
        os.killpg(process.pid, signal.SIGSTOP)
        if number := parts.values_list("pk", flat=True).first():
            return int(number)
        os.killpg(process.pid, signal.SIGCONT)


@pytest.mark.thorough
@pytest.mark.torch
def test_two_workers_score_and_one_is_killed_with_the_same_hashes_as_one_alone(
    redis_server: str, child_environment: dict[str, str], tmp_path: Path
) -> None:
    from tests.predictors.tiny import save_tiny_bert

    params = {"checkpoint": str(save_tiny_bert(tmp_path / "tiny")), "members": 1, "min_steps": 4, "device": "cpu"}
    greedy = {"kind": "epsilon_greedy", "epsilon": 0.25, "top_fraction": 0.5}
    stage = cast.closed_stage(
        on=cast.small_bank(50),
        stages=[{"sittings": 4}, {"sittings": 8, "design": greedy, "train": False}],
        predictor={"name": "bert", "params": {**params, "batch_size": 4, "max_length": 64, "bfloat16": False}},
        candidates={"size": 4200},
    )
    step = cast.run_until(stage, "score")
    own = ScoringPart.objects.filter(state="running", helpers_left=TRIES)
    helped = ScoringPart.objects.filter(state="running", helpers_left__lt=TRIES)
    done = JobStep.objects.filter(pk=step.pk, state="done")

    def hashes() -> tuple[str, str]:
        wait_for("the scores", lambda: has_come(done), logs=tmp_path)
        assert not ScoringPart.objects.exists()
        (candidates,) = CandidateSet.objects.filter(stage__index=2)
        with transaction.atomic():
            plan = planning.plan_stage(cast.stage_of(stage.study, 2)).plan_sha256
            transaction.set_rollback(True)
        return candidates.file_sha256, plan

    def score_again() -> None:
        CandidateSet.objects.filter(stage__index=2).delete()
        JobStep.objects.filter(pk=step.pk).update(state="queued", result={}, sent_at=None, attempt=0, tries_left=TRIES)

    with ExitStack() as stack:

        def worker(name: str) -> subprocess.Popen[bytes]:
            log = tmp_path / f"{name}.log"
            return stack.enter_context(celery(*ML, environment=child_environment, log=log))

        def disturbed(first: subprocess.Popen[bytes], other: str, *, dies: str) -> subprocess.Popen[bytes]:
            """The first one has the step and the other helps it, until one dies in its part. Returns who goes on."""
            part_of_first = stop_within_a_part(first, own, logs=tmp_path)
            second = worker(other)
            part_of_second = stop_within_a_part(second, helped, logs=tmp_path)
            victim, survivor = (second, first) if dies == "who helps" else (first, second)
            kill(victim)
            os.killpg(survivor.pid, signal.SIGCONT)
            left = ScoringPart.objects.filter(pk=part_of_second if victim is second else part_of_first)
            assert left.values_list("state", "attempt").get() == ("running", 1)
            # As if its leases had run out.
            past = timezone.now() - timedelta(seconds=1)
            left.update(lease_until=past)
            if victim is first:
                JobStep.objects.filter(pk=step.pk).update(lease_until=past, sent_at=past - leases.SEND_AGAIN)
            return survivor

        first = disturbed(worker("first"), "second", dies="who helps")
        all_hashes = [hashes()]
        assert JobStep.objects.get(pk=step.pk).attempt == 1
        score_again()
        disturbed(first, "third", dies="who has the step")
        all_hashes.append(hashes())
        assert JobStep.objects.get(pk=step.pk).attempt == 2
        score_again()
        all_hashes.append(hashes())
        assert len(set(all_hashes)) == 1


@pytest.mark.any_database
def test_answers_are_stored_while_redis_is_down_and_the_work_goes_on_when_it_is_back(
    child_environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    try:
        servers.redis_server_binary()
    except servers.ServicesError as exc:
        unavailable(f"answering while Redis is down ({exc})")
    logs = tmp_path_factory.mktemp("r")
    socket = logs / "s"
    environment = {**child_environment, "REDIS_URL": f"unix://{socket}"}
    stage = cast.open_stage(stages=[{"sittings": 4}, {"sittings": 4}])
    first = cast.closed_stage("before")
    with (
        beat(environment=environment, folder=logs),
        celery(*DEFAULT, environment=environment, log=logs / "default.log"),
    ):
        with servers.embedded_redis(socket):
            wait_for("a first freeze", lambda: state_of(first, 1) == "frozen", logs=logs)

        cast.fill(stage)  # Nobody notices that there is no Redis.
        assert Response.objects.filter(assignment__sitting__stage=stage).count() == 24
        lifecycle.close_stage(stage)
        assert state_of(stage, 1) == "closing"

        socket.unlink(missing_ok=True)
        with servers.embedded_redis(socket):
            wait_for("the next plan", lambda: state_of(stage, 2) == "planned", logs=logs)
    assert SnapshotAnswer.objects.filter(stage=stage).count() == 12
