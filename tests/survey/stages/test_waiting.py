"""Why a step of work that is queued has not begun: at its bound, and without naming another study."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from survey.models import Job, JobStep
from survey.operation import causes
from survey.services.stages.waiting import Waiting, why_not_begun
from tests import cast

pytestmark = pytest.mark.django_db
NOW = timezone.now()


def queued(stage: Any, kind: str, seconds: float = 60, **facts: Any) -> JobStep:
    step = JobStep.objects.create(stage=stage, kind=kind, input_sha256=str(seconds), **facts)
    JobStep.objects.filter(pk=step.pk).update(created_at=NOW - timedelta(seconds=seconds))
    return JobStep.objects.select_related("stage__study").get(pk=step.pk)


def running(stage: Any, kind: str, minutes: float = 12, *, left: float = 1) -> JobStep:
    at = {"started_at": NOW - timedelta(minutes=minutes), "lease_until": NOW + timedelta(minutes=left)}
    return JobStep.objects.create(stage=stage, kind=kind, input_sha256="r", state="running", **at)


def why(step: JobStep) -> Waiting | None:
    return why_not_begun([step], NOW).get(step.pk)


def test_a_step_waits_once_it_was_queued_for_a_minute() -> None:
    stage = cast.stage_of(cast.stored_study())
    score = queued(stage, "score")
    assert why(score) == Waiting("for the worker that trains and scores, which has taken nothing for 1 min", True)
    assert why(queued(stage, "score", 59)) is None
    assert why(queued(stage, "score", 3600, started_at=NOW - timedelta(seconds=59))) is None, "it was tried just now"
    assert why(running(stage, "train")) is None
    assert why(queued(stage, "plan")) == Waiting(
        "for the worker for short tasks, which has taken nothing for 1 min", is_untaken=True
    )


def test_it_says_behind_what_and_names_no_other_study() -> None:
    stage = cast.stage_of(cast.stored_study())
    other = cast.stage_of(cast.stored_study("other", on=stage.study.bank))
    score, freeze = queued(stage, "score"), queued(stage, "freeze")
    running(other, "train", left=-1)
    assert (why(score) or Waiting("")).is_untaken, "a worker that died is behind nothing"
    JobStep.objects.filter(stage=other).update(lease_until=NOW + timedelta(minutes=1))
    assert why(score) == Waiting("behind work of another study, which began 12 min ago")
    assert (why(freeze) or Waiting("")).is_untaken, "another worker does it"
    job = Job(
        study=other.study, kind="export", asked_sha256="a", state="running", lease_until=NOW + timedelta(minutes=1)
    )
    job.save()
    assert why(freeze) == Waiting("behind 1 file that workers are making")
    running(stage, "evaluate", minutes=30)
    assert why(score) == Waiting("behind evaluate predictor, which began 30 min ago"), "the older one"


def test_what_cannot_begin_says_so() -> None:
    stage = cast.stage_of(cast.stored_study())
    step = queued(stage, "train", error="waits: the bucket is away; then it goes on by itself")
    assert why(step) == Waiting("since the bucket is away; then it goes on by itself", is_untaken=True)


def test_the_watch_reports_work_that_no_worker_takes() -> None:
    stage = cast.stage_of(cast.stored_study())
    assert list(causes.waiting_steps(NOW)) == []
    queued(stage, "score", 59)
    assert list(causes.waiting_steps(NOW)) == [], "it is not late"
    queued(stage, "score", 61)
    (trouble,) = causes.waiting_steps(NOW)
    assert trouble.key == ("unhealthy", "workers") and trouble.message.startswith("score candidates (")
    running(stage, "train")
    assert list(causes.waiting_steps(NOW)) == []
    queued(stage, "score", error="waits: no room")
    assert [trouble.subject for trouble in causes.waiting_steps(NOW)] == ["work between stages"]
