"""Running a job step: claimed by lease, kept alive by heartbeats, written only while the claim is still ours.

Long work stays outside transactions; a step that is delivered twice is claimed once, and one whose worker died is sent
again once its lease is over.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from django.db import OperationalError, connection, transaction
from django.db.models import F, Q
from django.utils import timezone

from predictors.endpoints import EndpointError
from predictors.errors import PredictorError, Stopped
from survey.exceptions import HunchError
from survey.models import JobStep, Stage
from survey.services.plans.candidates import candidates_are_outdated

from . import lifecycle
from .scoring import score_candidates
from .training import evaluate, train_member

logger = logging.getLogger(__name__)

LEASE = timedelta(seconds=90)
HEARTBEAT_SECONDS = 2.0
# Work that cannot say how far it is has its lease renewed beside it, but not for ever: it might hang.
RENEW_EVERY = LEASE.total_seconds() / 3
RENEW_AT_MOST = timedelta(hours=1)
# A task that was sent and not begun after this long was lost with its broker or worker, and is sent again.
SEND_AGAIN = timedelta(seconds=30)
ML_KINDS = (JobStep.Kind.TRAIN, JobStep.Kind.SCORE, JobStep.Kind.EVALUATE)

Progress = Callable[[int, int, str], bool]


class Claim:
    """One worker's hold on a step. Everything is written through it, and only while `attempt` is still the row's."""

    def __init__(self, step: JobStep) -> None:
        self.step = step
        self.attempt = step.attempt
        self._last = 0.0

    def _mine(self) -> Any:
        return JobStep.objects.filter(pk=self.step.pk, attempt=self.attempt, state=JobStep.State.RUNNING)

    def heartbeat(self, done: int, total: int, text: str) -> bool:
        """Renew the lease at most every few seconds; False once the claim is lost, which stops the work."""
        if time.monotonic() - self._last < HEARTBEAT_SECONDS and done < total:
            return True
        self._last = time.monotonic()
        now = timezone.now()
        return bool(
            self._mine().update(
                heartbeat_at=now,
                lease_until=now + LEASE,
                progress_done=done,
                progress_total=total,
                progress_text=text[:200],
            )
        )

    @contextmanager
    def kept_alive(self) -> Iterator[None]:
        """Renew the lease from a thread of its own, for as long as work goes on that gives no heartbeats."""
        over = threading.Event()
        until = time.monotonic() + RENEW_AT_MOST.total_seconds()

        def renew() -> None:
            try:
                while not over.wait(RENEW_EVERY) and time.monotonic() < until:
                    now = timezone.now()
                    try:
                        self._mine().update(heartbeat_at=now, lease_until=now + LEASE)
                    except OperationalError as exc:
                        # The work may hold the database in a long transaction; the next renewal is soon enough.
                        logger.info("step %s: no heartbeat now (%s)", self.step.pk, exc)
            finally:
                connection.close()  # A thread has a connection of its own.

        thread = threading.Thread(target=renew, name=f"step-{self.step.pk}", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def lock(self) -> None:
        """Inside a transaction: make sure the claim is ours and stays so until the commit.

        Raises:
            Stopped: another worker has it.
        """
        if not list(self._mine().select_for_update(no_key=True).values_list("pk", flat=True)):
            raise Stopped

    def finish(self, result: dict[str, Any]) -> None:
        if not self._mine().update(
            state=JobStep.State.DONE, result=result, error="", finished_at=timezone.now(), lease_until=None
        ):
            raise Stopped

    def fail(self, error: str) -> None:
        self._mine().update(
            state=JobStep.State.FAILED, error=error[:4000], finished_at=timezone.now(), lease_until=None
        )

    def give_back(self) -> None:
        self._mine().update(state=JobStep.State.QUEUED, lease_until=None, sent_at=None)


def claim(step_id: int, *, now: datetime | None = None) -> Claim | None:
    """Claim a queued step, or one whose lease is over, by one conditional update; None when somebody else has it."""
    now = now or timezone.now()
    step = JobStep.objects.select_related("stage__study__bank").filter(pk=step_id).first()
    if step is None:
        return None
    claimed = JobStep.objects.filter(
        Q(state=JobStep.State.QUEUED) | Q(state=JobStep.State.RUNNING, lease_until__lt=now),
        pk=step_id,
        attempt=step.attempt,
        tries_left__gt=0,
    ).update(
        state=JobStep.State.RUNNING,
        attempt=F("attempt") + 1,
        tries_left=F("tries_left") - 1,
        started_at=now,
        heartbeat_at=now,
        lease_until=now + LEASE,
        progress_done=0,
        progress_total=0,
        progress_text="",
    )
    if not claimed:
        return None
    step.refresh_from_db()
    return Claim(step)


def run_step(step_id: int) -> bool:
    """Run one step to its end. False when there was nothing to do: done already, or another worker has it."""
    held = claim(step_id)
    if held is None:
        return False
    step = held.step
    try:
        RUNNERS[JobStep.Kind(step.kind)](held)
    except lifecycle.StillLive:
        # Not a try: people are still inside, and the next sweep looks again.
        JobStep.objects.filter(pk=step.pk, attempt=held.attempt).update(tries_left=F("tries_left") + 1)
        held.give_back()
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
        else:  # What it has answered is kept by this process; the next beat tries again.
            held.give_back()
        return False
    except (HunchError, PredictorError) as exc:
        # Said in words by whoever refused it: a person must change something, so it is not tried again.
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
        # A predictor that took longer than the next stage, or was mended after it, is judged on it now.
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

    Also does what a worker that died between two steps has left: queues the next ones, opens the next stage.
    """
    now = now or timezone.now()
    closed = Stage.objects.filter(state__in=[Stage.State.CLOSING, Stage.State.FROZEN], settled_at__isnull=True)
    for stage in closed.select_related("study__bank"):
        try:
            # The first of the two queues what is missing.
            if lifecycle.pipeline_is_done(stage) and lifecycle.open_if_automatic(stage.following()):
                Stage.objects.filter(pk=stage.pk).update(settled_at=now)
        except Exception:
            # One study that cannot go on (an instrument that is no longer installed) must not stop all others.
            logger.exception("%s: cannot say what is next", stage)
    return list(
        JobStep.objects.filter(
            Q(state=JobStep.State.QUEUED) | Q(state=JobStep.State.RUNNING, lease_until__lt=now),
            Q(sent_at__isnull=True) | Q(sent_at__lt=now - SEND_AGAIN),
            tries_left__gt=0,
        ).order_by("pk")
    )


def mark_sent(step: JobStep, *, now: datetime | None = None) -> bool:
    """Say that a task goes out for a step; False when another beat or worker has just done so."""
    now = now or timezone.now()
    return bool(JobStep.objects.filter(pk=step.pk, sent_at=step.sent_at, attempt=step.attempt).update(sent_at=now))


def sweep(*, now: datetime | None = None) -> int:
    """Fail the steps whose workers died too often, so that a person looks; return how many."""
    now = now or timezone.now()
    return JobStep.objects.filter(
        Q(state=JobStep.State.RUNNING, lease_until__lt=now) | Q(state=JobStep.State.QUEUED), tries_left=0
    ).update(
        state=JobStep.State.FAILED,
        error="its worker died or lost the database every time; see the ml worker's log, then retry",
        finished_at=now,
        lease_until=None,
    )


def run_inline(stage: Stage) -> None:
    """Run all that follows from closing a stage in this process, one step after the other.

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
