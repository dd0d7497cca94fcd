"""Why a queued step of work has not begun. Asks the database only where one has been queued for a while."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from survey.figures.words import counted, duration
from survey.models import Job, JobStep
from survey.processes import queues
from survey.services.base.leases import WAITS

from .jobs import queue_of

A_WHILE = timedelta(minutes=1)
# One worker trains and scores, one task at a time; another one does all else (survey/queues.py).
HEAVY = (queues.TRAIN, queues.SCORE)


@dataclass(frozen=True)
class Waiting:
    """What a step waits for, in words that follow "waits". `is_untaken`: no worker at work will take it next."""

    words: str
    is_untaken: bool = False


def why_not_begun(steps: Sequence[JobStep], now: datetime) -> dict[int, Waiting]:
    """By the step's key, what each waits for that has been queued for a while.

    Args:
        steps: with their stages and studies, of one study or of several. Work of other studies is not named in words.
    """
    queued = [step for step in steps if step.state == JobStep.State.QUEUED and now - _queued_at(step) >= A_WHILE]
    if not queued:
        return {}
    running = JobStep.objects.filter(state=JobStep.State.RUNNING, lease_until__gt=now).select_related(
        "stage__study", "predictor_run"
    )
    at_work = list(running.defer("result").order_by("started_at"))
    jobs = Job.objects.filter(state=Job.State.RUNNING, lease_until__gt=now).count()
    return {step.pk: _why(step, at_work, jobs, now) for step in queued}


def _queued_at(step: JobStep) -> datetime:
    """Since when nobody has tried to do it."""
    return max(step.created_at, step.started_at or step.created_at)


def _why(step: JobStep, at_work: Sequence[JobStep], jobs: int, now: datetime) -> Waiting:
    if step.error.startswith(WAITS):
        return Waiting(f"since {step.error.removeprefix(WAITS)}", is_untaken=True)
    is_heavy = queue_of(step) in HEAVY
    for other in at_work:
        if (queue_of(other) in HEAVY) == is_heavy:
            what = other.title if other.stage.study_id == step.stage.study_id else "work of another study"
            return Waiting(f"behind {what}, which began {duration(_age(other.started_at, now))} ago")
    if jobs and not is_heavy:
        return Waiting(f"behind {counted(jobs, 'file', 'files')} that workers are making")
    worker = "the worker that trains and scores" if is_heavy else "the worker for short tasks"
    return Waiting(
        f"for {worker}, which has taken nothing for {duration(_age(_queued_at(step), now))}", is_untaken=True
    )


def _age(since: datetime | None, now: datetime) -> float:
    return (now - (since or now)).total_seconds()
