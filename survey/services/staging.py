"""A stage's states and the work between stages. A researcher opens, pauses and closes; the rest follows as job steps.

Closing admits nobody and waits until nobody inside can give an answer that counts. Freezing takes the snapshot. Then
the steps of `next_steps` follow, each a row that says what it works on, so that whatever dies is found and done again.
"""

from typing import Any

from django.db import transaction
from django.utils import timezone

from predictors import training as predictor_training
from survey.exceptions import StateRefused
from survey.instruments import registry
from survey.models import (
    Assignment,
    CandidateSet,
    JobStep,
    PredictorRun,
    Sitting,
    SnapshotAnswer,
    Stage,
)
from survey.models.predictor import TRIES
from survey.selectors.stages import sittings_inside, with_answers

from .auditing import record
from .expiry import expire_sitting
from .hashing import digest, keyed_digest
from .locks import locked_stage
from .planning import plan_stage, question_set_digest
from .seeds import derive

Kind = JobStep.Kind


def _move(stage: Stage, state: Stage.State, **changes: Any) -> None:
    if not stage.may_become(state):
        raise StateRefused(f"stage {stage.index} of {stage.study.slug} is {stage.state} and cannot become {state}")
    stage.state = state
    for name, value in changes.items():
        setattr(stage, name, value)
    stage.save(update_fields=["state", *changes])


def open_stage(stage: Stage, *, by: Any = None, via: str = "command") -> Stage:
    """Open a stage, or go on with a paused one. Stage 1 is planned first where it is not.

    Raises:
        StateRefused: another stage is open, the one before is not frozen, or this one is not planned.
        PlanRefused: stage 1 cannot be planned.
    """
    if stage.state == Stage.State.DRAFT and stage.index == 1:
        plan_stage(stage, by=by, via=via)
    with transaction.atomic():
        stage = locked_stage(stage.pk)
        if stage.state == Stage.State.OPEN:
            return stage
        if stage.state == Stage.State.DRAFT:
            raise StateRefused(f"stage {stage.index} is not planned: close stage {stage.index - 1} first")
        before = stage.preceding()
        if before and before.state != Stage.State.FROZEN:
            fix = "wait until it is frozen" if before.state == Stage.State.CLOSING else "open and close it first"
            raise StateRefused(f"stage {before.index} is still {before.state}: {fix}")
        _move(stage, Stage.State.OPEN, opened_at=stage.opened_at or timezone.now())
        record("open_stage", stage, by=by, via=via)
    return stage


@transaction.atomic
def pause_stage(stage: Stage, *, by: Any = None, via: str = "command") -> Stage:
    """Admit nobody for now. Those inside go on and finish."""
    stage = locked_stage(stage.pk)
    if stage.state != Stage.State.PAUSED:
        _move(stage, Stage.State.PAUSED)
        record("pause_stage", stage, by=by, via=via)
    return stage


def close_stage(stage: Stage, *, now: bool = False, by: Any = None, via: str = "command") -> Stage:
    """Admit nobody any more; freeze, train, evaluate, score and plan follow by themselves once nobody is inside.

    Args:
        now: expire the sittings that are still live instead of waiting for them. Those people can finish and are owed
            pay; what they answer from here on is late.

    Raises:
        StateRefused: the stage was never opened.
    """
    with transaction.atomic():
        stage = locked_stage(stage.pk)
        if stage.state not in (Stage.State.CLOSING, Stage.State.FROZEN):
            _move(stage, Stage.State.CLOSING, closing_at=timezone.now())
            record("close_stage", stage, by=by, via=via, now=now)
        elif now and stage.state == Stage.State.CLOSING:
            record("close_stage", stage, by=by, via=via, now=True)
        next_steps(stage)
    if now and stage.state == Stage.State.CLOSING:
        at = timezone.now()
        for pk in stage.sittings.filter(state=Sitting.State.LIVE).values_list("pk", flat=True):
            expire_sitting(pk, now=at)
    return stage


def retry_steps(stage: Stage, *, by: Any = None, via: str = "command") -> int:
    """Queue a stage's failed steps again; return how many."""
    with transaction.atomic():
        count = stage.job_steps.filter(state=JobStep.State.FAILED).update(
            state=JobStep.State.QUEUED, tries_left=TRIES, error="", sent_at=None, finished_at=None
        )
        if count:
            record("retry_steps", stage, by=by, via=via, steps=count)
    return count


class StillLive(Exception):
    """Somebody inside can still give an answer that counts; freezing waits."""


@transaction.atomic
def freeze(stage: Stage) -> dict[str, Any]:
    """Take the snapshot of the stage's complete answers and freeze it. Safe to run twice.

    Raises:
        StillLive: somebody inside can still give an answer that counts.
        StateRefused: the stage is not closing.
    """
    stage = locked_stage(stage.pk)
    if stage.state == Stage.State.FROZEN:
        return {"answers": stage.snapshot.count(), "snapshot_sha256": stage.snapshot_sha256}
    if stage.state != Stage.State.CLOSING:
        raise StateRefused(f"stage {stage.index} is {stage.state}; only a closing stage can be frozen")
    if sittings_inside(stage).exists():
        raise StillLive
    instrument = registry.get(stage.study.instrument)
    counted = Assignment.objects.filter(slot__stage=stage, state=Assignment.State.COUNTED)
    rows = [
        SnapshotAnswer(stage=stage, number=number, assignment=answer, digest=answer_digest(answer, instrument))
        for number, answer in enumerate(with_answers(counted, stage.study).order_by("slot__number"), start=1)
    ]
    SnapshotAnswer.objects.bulk_create(rows, batch_size=2000)
    stage.snapshot_sha256 = digest([row.digest for row in rows])
    stage.record(snapshot={"answers": len(rows), "sha256": stage.snapshot_sha256})
    _move(
        stage,
        Stage.State.FROZEN,
        frozen_at=timezone.now(),
        snapshot_sha256=stage.snapshot_sha256,
        manifest=stage.manifest,
    )
    return {"answers": len(rows), "snapshot_sha256": stage.snapshot_sha256}


def answer_digest(answer: Assignment, instrument: registry.Instrument) -> str:
    return keyed_digest(
        [answer.sitting.public_id.hex, answer.slot.number, answer.slot.item.key, *instrument.answer_values(answer)],
        purpose=f"answer:{answer.slot.stage_id}",
    )


def _queue(stage: Stage, kind: JobStep.Kind, inputs: Any, *, member: int = 0) -> JobStep:
    step, _created = JobStep.objects.get_or_create(stage=stage, kind=kind, member=member, input_sha256=digest(inputs))
    return step


def next_steps(stage: Stage) -> list[JobStep]:
    """Queue every step of a closing or frozen stage whose inputs are there, and return all that the stage has.

    Called after each step and by beat: the rows alone say what is next, so it does not matter who died when.
    """
    if stage.state not in (Stage.State.CLOSING, Stage.State.FROZEN):
        return []
    _queue(stage, Kind.FREEZE, [stage.plan_sha256])
    if stage.state == Stage.State.FROZEN:
        _queue_after_freeze(stage)
    return list(stage.job_steps.order_by("pk"))


def _queue_after_freeze(stage: Stage) -> None:
    candidates = CandidateSet.objects.filter(stage=stage).select_related("predictor_run").first()
    if candidates and candidates.predictor_run:
        _queue(stage, Kind.EVALUATE, [stage.snapshot_sha256, candidates.predictor_run.input_sha256])
    following = stage.following()
    run = _predictor_run(stage)
    if run is not None:
        steps = [
            _queue(stage, Kind.TRAIN, [run.input_sha256], member=member)
            for member in range(predictor_training.members_of(run.name, run.params))
        ]
        if any(step.state != JobStep.State.DONE for step in steps):
            return
        run.refresh_from_db()
    if following is None or following.state != Stage.State.DRAFT:
        return
    questions = question_set_digest(stage.study)
    if run is not None:
        step = _queue(stage, Kind.SCORE, [run.input_sha256, run.members, following.seed, questions])
        if step.state != JobStep.State.DONE:
            return
    _queue(stage, Kind.PLAN, [run.input_sha256 if run else "", following.seed, questions])


def _predictor_run(stage: Stage) -> PredictorRun | None:
    """The run that this stage's answers lead to; None where the study, the stage or the instrument has none."""
    study = stage.study
    wanted = study.settings.predictor
    if wanted is None or not stage.settings.train or not registry.get(study.instrument).predicts:
        return None
    snapshots = list(
        study.stages.filter(index__lte=stage.index).order_by("index").values_list("snapshot_sha256", flat=True)
    )
    seed = derive(stage.seed, "predictor")
    inputs = digest([wanted.name, wanted.params, seed, snapshots])
    run, _created = PredictorRun.objects.get_or_create(
        stage=stage,
        name=wanted.name,
        input_sha256=inputs,
        defaults={"params": wanted.params, "seed": seed, "example_count": 0},
    )
    return run


def pipeline_status(stage: Stage) -> list[JobStep]:
    return list(stage.job_steps.order_by("pk"))


def pipeline_is_done(stage: Stage) -> bool:
    """Whether everything that follows from closing this stage is done."""
    steps = next_steps(stage)
    if stage.state != Stage.State.FROZEN or any(step.state != JobStep.State.DONE for step in steps):
        return False
    following = stage.following()
    return following is None or following.state != Stage.State.DRAFT


def failed_steps(stage: Stage) -> list[JobStep]:
    return list(stage.job_steps.filter(state=JobStep.State.FAILED).order_by("pk"))


def open_if_automatic(stage: Stage | None) -> None:
    """The stage after a planned one opens by itself where the study file says so."""
    if stage is not None and stage.state == Stage.State.PLANNED and stage.settings.opens == "automatically":
        open_stage(stage, via="worker")
