"""Running a job step, which a worker claims by a lease.

Long work stays outside transactions. A step that is delivered twice is claimed once. A step whose worker died is sent
again when its lease is over.
"""

import logging
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.core.cache import cache
from django.db import OperationalError, transaction
from django.db.models import F
from django.utils import timezone

from predictors.endpoints import EndpointError
from predictors.errors import PredictorError, Stopped
from survey.contracts.instruments import InstrumentMissing
from survey.exceptions import HunchError
from survey.models import JobStep, Stage
from survey.services.base import leases
from survey.services.plans.candidates import candidates_are_outdated

from . import lifecycle
from .scoring import score_candidates
from .training import evaluate, train_member

logger = logging.getLogger(__name__)

HEARTBEAT_SECONDS = 2.0
ML_KINDS = (JobStep.Kind.TRAIN, JobStep.Kind.SCORE, JobStep.Kind.EVALUATE)

Progress = Callable[[int, int, str], bool]


class Claim(leases.Hold[JobStep]):
    """One worker's hold on a step."""

    def __init__(self, step: JobStep) -> None:
        super().__init__(step)
        self._last_at = 0.0
        self._last = (0, 0)

    @property
    def step(self) -> JobStep:
        return self.row

    def renew(self, **changes: Any) -> bool:
        return super().renew(heartbeat_at=timezone.now(), **changes)

    def heartbeat(self, done: int, total: int, text: str) -> bool:
        """Renew the lease and store the progress; False if the claim is lost, which stops the work.

        Written at most every few seconds, and at once when a part of the work ends (`done` is `total`).
        """
        has_ended = done >= total and (done, total) != self._last
        if time.monotonic() - self._last_at < HEARTBEAT_SECONDS and not has_ended:
            return True
        self._last_at, self._last = time.monotonic(), (done, total)
        return self.renew(progress_done=done, progress_total=total, progress_text=text[:200])

    def finish(self, result: dict[str, Any]) -> None:
        """
        Raises:
            Stopped: another worker has the step, and nothing was written.
        """
        if not self.end(JobStep.State.DONE, result=result, error=""):
            raise Stopped

    def fail(self, error: str) -> None:
        self.end(JobStep.State.FAILED, error=error[:4000])


def claim(step_id: int, *, now: datetime | None = None) -> Claim | None:
    """Claim a queued step, or one whose lease is over; None if another worker has it or its tries are used up."""
    now = now or timezone.now()
    step = leases.claim(
        JobStep.objects.filter(tries_left__gt=0),
        step_id,
        now=now,
        tries_left=F("tries_left") - 1,
        started_at=now,
        heartbeat_at=now,
        progress_done=0,
        progress_total=0,
        progress_text="",
    )
    return None if step is None else Claim(step)


def run_step(step_id: int) -> bool:
    """Run one step to its end. False if there was nothing to do: it is done, or another worker has it."""
    held = claim(step_id)
    if held is None:
        return False
    step = held.step
    try:
        RUNNERS[JobStep.Kind(step.kind)](held)
    except lifecycle.StillLive:
        # This does not count as a try: people are still inside, and the next sweep looks again.
        held.give_back(tries_left=F("tries_left") + 1)
        return False
    except Stopped:
        logger.info("step %s: the claim went to another worker", step.pk)
        return False
    except OperationalError as exc:
        logger.warning("step %s: the database did not answer (%s); queued again", step.pk, exc)
        held.give_back()
        return False
    except EndpointError as exc:
        logger.warning("step %s (%s): a server did not answer: %s", step.pk, step, exc)
        if exc.permanent or step.tries_left == 0:
            held.fail(str(exc))
        else:  # This process keeps the answers it got; the next beat tries again.
            held.give_back()
        return False
    except (HunchError, PredictorError) as exc:
        # The error says what a person must change, so the step is not tried again.
        logger.warning("step %s (%s) failed: %s", step.pk, step, exc)
        held.fail(str(exc))
        return False
    except Exception as exc:
        logger.exception("step %s (%s) failed", step.pk, step)
        held.fail(f"{type(exc).__name__}: {exc}")
        return False
    stage = Stage.objects.select_related("study__bank").get(pk=step.stage_id)
    lifecycle.next_steps(stage)
    if step.kind == JobStep.Kind.PLAN:
        lifecycle.open_if_automatic(stage.following())
    if step.kind == JobStep.Kind.TRAIN:
        # A predictor that took longer than the next stage, or was repaired after it, is evaluated on it now.
        for later in stage.study.stages.filter(index__gt=stage.index, state=Stage.State.FROZEN):
            lifecycle.next_steps(later)
    return True


def _freeze(held: Claim) -> None:
    with held.kept_alive(), transaction.atomic():
        held.lock()
        held.finish(lifecycle.freeze(held.step.stage))


def _plan(held: Claim) -> None:
    following = held.step.stage.following()
    if following is None:
        held.finish({})
        return
    if following.state == Stage.State.DRAFT and candidates_are_outdated(following):
        held.finish({"outdated": "questions were flagged since the scoring; what is next is scored anew"})
        return
    with held.kept_alive():
        planned = lifecycle.plan_stage(following, via="worker")
    held.finish({"plan_sha256": planned.plan_sha256})


RUNNERS: dict[JobStep.Kind, Callable[[Claim], None]] = {
    JobStep.Kind.FREEZE: _freeze,
    JobStep.Kind.EVALUATE: evaluate,
    JobStep.Kind.TRAIN: train_member,
    JobStep.Kind.SCORE: score_candidates,
    JobStep.Kind.PLAN: _plan,
}


def due_steps(*, now: datetime | None = None) -> list[JobStep]:
    """Steps to send a task for, if none was sent lately: queued ones, and running ones whose lease is over.

    Also continues where a worker died between two steps: queues the next ones, opens the next stage.
    """
    now = now or timezone.now()
    closed = Stage.objects.filter(state__in=[Stage.State.CLOSING, Stage.State.FROZEN], settled_at__isnull=True)
    for stage in closed.select_related("study__bank"):
        try:
            # The first of the two queues what is missing.
            if lifecycle.pipeline_is_done(stage) and lifecycle.open_if_automatic(stage.following()):
                Stage.objects.filter(pk=stage.pk).update(settled_at=now)
        except InstrumentMissing as exc:
            if cache.add(f"survey.instrument_missing:{stage.pk}", True, timeout=3600):  # Once an hour is enough.
                logger.warning("%s does not go on: %s", stage, exc.message)
        except Exception:
            # One study that cannot go on must not stop all others.
            logger.exception("%s: cannot say what is next", stage)
    return leases.due(JobStep.objects.filter(tries_left__gt=0), now=now)


def sweep(*, now: datetime | None = None) -> int:
    """Mark steps as failed whose workers died too often, so that a person looks; return how many."""
    now = now or timezone.now()
    return JobStep.objects.filter(JobStep.is_free(now), tries_left=0).update(
        state=JobStep.State.FAILED,
        error="its worker died or lost the database every time; see the ml worker's log, then retry",
        finished_at=now,
        lease_until=None,
    )


def run_inline(stage: Stage) -> None:
    """Run everything that follows closing a stage in this process, one step after the other.

    Raises:
        RuntimeError: a step failed, with its error.
    """
    while True:
        stage.refresh_from_db()
        steps = [step for step in lifecycle.next_steps(stage) if step.state != JobStep.State.DONE]
        if not steps:
            return
        failed = [step for step in steps if step.state == JobStep.State.FAILED]
        if failed:
            raise RuntimeError(f"{failed[0]}: {failed[0].error}")
        if not run_step(steps[0].pk):
            steps[0].refresh_from_db()
            if steps[0].state == JobStep.State.QUEUED:
                raise RuntimeError(f"{steps[0]} cannot run now: people are still inside, or the database is away")
            if steps[0].state == JobStep.State.RUNNING:
                raise RuntimeError(f"{steps[0]} is run by another worker")
