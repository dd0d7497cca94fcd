"""Running a job step, which a worker claims by a lease.

Long work stays outside transactions. A step that is delivered twice is claimed once. A step whose worker died is sent
again when its lease is over.
"""

import logging
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

from django.core.cache import cache
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from predictors.endpoints import EndpointError
from predictors.errors import PredictorError, Stopped
from survey.contracts.instruments import InstrumentMissing
from survey.exceptions import ComputeAway, ComputeRefused, HunchError, StorageAway, StorageRefused
from survey.models import Assignment, JobStep, Response, Sitting, Slot, SnapshotAnswer, Stage
from survey.processes import queues
from survey.services.base import compute, files, leases
from survey.services.plans.planning import QuestionsChanged, scores_are_outdated
from survey.storage.database import forget_broken_connection, refresh_statistics
from survey.storage.outages import is_outage

from . import lifecycle
from .claims import Claim
from .scoring import score_candidates
from .training import evaluate, train_member

logger = logging.getLogger(__name__)

MEGABYTE = 1024 * 1024
MANY_ANSWERS = 1000


def queue_of(step: JobStep) -> str:
    """The queue whose workers run this step."""
    if step.kind == JobStep.Kind.TRAIN:
        return queues.TRAIN
    if step.kind in (JobStep.Kind.SCORE, JobStep.Kind.EVALUATE):
        return queues.SCORE
    # A draw from all items reads the scores of each of them, which may take minutes.
    draws_from_all = step.kind == JobStep.Kind.PLAN and step.stage.study.config.candidates.kind == "exhaustive"
    return queues.SCORE if draws_from_all else queues.DEFAULT


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
        error="",
    )
    return None if step is None else Claim(step)


def run_step(step_id: int) -> bool:
    """Run one step to its end. False if there was nothing to do: it is done, another worker has it, or it waits."""
    if _waits(step_id):
        return False
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
    except Exception as exc:
        _end_with(held, exc)
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


def _end_with(held: Claim, exc: Exception) -> None:
    """Queue the step again where time may repair what went wrong; otherwise it fails, so that a person looks."""
    step = held.step
    if is_outage(exc):
        logger.warning("step %s (%s): the database or the disk cannot be used: %s", step.pk, step, exc)
        forget_broken_connection()
        held.give_back(sent_at=timezone.now(), error=f"it is tried again after: {exc}"[:4000])
    elif isinstance(exc, EndpointError):
        logger.warning("step %s (%s): a server did not answer: %s", step.pk, step, exc)
        if exc.permanent or step.tries_left == 0:
            held.fail(str(exc))
        else:  # This process keeps the answers it got; the next beat tries again.
            held.give_back()
    elif isinstance(exc, ComputeAway) and step.tries_left:
        logger.warning("step %s (%s): %s", step.pk, step, exc)
        held.give_back(sent_at=timezone.now(), error=f"it is tried again after: {exc}"[:4000])
    elif isinstance(exc, HunchError | PredictorError):
        # The error says what a person must change, so the step is not tried again.
        logger.warning("step %s (%s) failed: %s", step.pk, step, exc)
        held.fail(str(exc))
    else:
        logger.error("step %s (%s) failed", step.pk, step, exc_info=exc)
        held.fail(f"{type(exc).__name__}: {exc}")


def _waits(step_id: int) -> bool:
    """Whether the step must wait until its files can be stored, and the machines that it needs answer. What fails in
    the middle would cost a try, and a training what servers of models were paid."""
    words = _why_it_waits(step_id)
    if words:
        logger.warning("step %s %s%s", step_id, leases.WAITS, words)
        JobStep.objects.filter(pk=step_id, state=JobStep.State.QUEUED).update(error=f"{leases.WAITS}{words}"[:4000])
    return bool(words)


def _why_it_waits(step_id: int) -> str:
    if (folder := files.full_folder()) is not None:
        return f"less than {files.SPACE // MEGABYTE} MB are free in {folder}; make room, then it goes on by itself"
    step = JobStep.objects.select_related("stage__study").filter(pk=step_id).first()
    if step is None or step.kind == JobStep.Kind.FREEZE:  # It stores rows alone.
        return ""
    try:
        files.check_storage()
        if _goes_through_all_scores(step):
            compute.check()
    except (StorageAway, StorageRefused, ComputeAway, ComputeRefused) as exc:
        return f"{exc}; then it goes on by itself"
    return ""


def _goes_through_all_scores(step: JobStep) -> bool:
    if step.kind not in (JobStep.Kind.SCORE, JobStep.Kind.PLAN):
        return False
    following = step.stage.following()
    is_drawn_by_scores = following is not None and following.config.design.kind != "uniform"
    return is_drawn_by_scores and step.stage.study.config.candidates.kind == "exhaustive"


def _freeze(held: Claim) -> None:
    with held.kept_alive(), transaction.atomic():
        held.lock()
        facts = lifecycle.freeze(held.step.stage)
        held.finish(facts)
    if facts["answers"] >= MANY_ANSWERS:
        # The next step reads these tables at once, before PostgreSQL looks at them by itself.
        typed = (
            related_object.related_model
            for related_object in Response._meta.related_objects
            if related_object.one_to_one
        )
        refresh_statistics(Sitting, Slot, Assignment, SnapshotAnswer, Response, *typed)


def _plan(held: Claim) -> None:
    following = held.step.stage.following()
    if following is None:
        held.finish({})
        return
    while following.state != Stage.State.DRAFT or not scores_are_outdated(following):
        with suppress(QuestionsChanged), held.kept_alive():
            held.finish({"plan_sha256": lifecycle.plan_stage(following, via="worker").plan_sha256})
            return
    held.finish({"outdated": "questions were flagged since the scoring; what is next is scored anew"})


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
        error="its worker died or lost the database every time; see the log of the worker that trains, then retry",
        finished_at=now,
        lease_until=None,
    )


def run_inline(stage: Stage) -> None:
    """Run everything that follows closing a stage in this process, one step after the other.

    Raises:
        RuntimeError: a step failed, with its error.
    """
    stage.refresh_from_db()
    lifecycle.next_steps(stage)
    while True:
        # `run_step` has queued what follows a step that it ran.
        steps = list(stage.job_steps.exclude(state=JobStep.State.DONE).order_by("pk"))
        if not steps:
            stage.refresh_from_db()
            return
        failed = [step for step in steps if step.state == JobStep.State.FAILED]
        if failed:
            raise RuntimeError(f"{failed[0]}: {failed[0].error}")
        if not run_step(steps[0].pk):
            steps[0].refresh_from_db()
            if steps[0].state == JobStep.State.QUEUED:
                why = steps[0].error or "people are still inside, or the database is away"
                raise RuntimeError(f"{steps[0]} cannot run now: {why}")
            if steps[0].state == JobStep.State.RUNNING:
                raise RuntimeError(f"{steps[0]} is run by another worker")
