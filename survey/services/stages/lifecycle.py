"""A stage's states and the work between stages. A researcher opens, pauses and closes; the rest follows as job steps.

Closing admits nobody else and waits until nobody inside can give an answer that counts. Freezing takes the snapshot.
Then the steps of `next_steps` follow. Each is a row that says what it works on, so a step that died is found and done
again.
"""

import logging
from dataclasses import dataclass
from typing import Any

from django.core.cache import cache
from django.db import transaction
from django.utils import timezone

from predictors import training as predictor_training
from survey.contracts import instruments
from survey.exceptions import HunchError, StateRefused
from survey.models import (
    Assignment,
    AuditEntry,
    JobStep,
    PredictorRun,
    Sitting,
    SnapshotAnswer,
    Stage,
    StoredEstimate,
    Study,
)
from survey.models.predictor import TRIES
from survey.models.study import UNIFORM_BY_CHOICE
from survey.services.answers.counting import BATCH_SIZE, TRAINED, in_time, with_answers, with_labels
from survey.services.answers.exclusions import decide_exclusions, exclusion_digests, exclusion_facts, snapshot_digest
from survey.services.answers.majorities import facts_of, has_majorities, majorities_among
from survey.services.base.auditing import record
from survey.services.base.hashing import digest, keyed_digest
from survey.services.base.locks import lock_study, locked_stage
from survey.services.base.retention import refuse_without_retention
from survey.services.base.seeds import derive
from survey.services.plans.candidates import question_set_digest
from survey.services.plans.planning import plan_stage
from survey.services.sittings.capacity import sittings_inside
from survey.services.sittings.expiry import expire_sitting
from survey.services.sittings.hourly_pay import refuse_low_pay, refuse_low_pay_by_pilot
from survey.services.studies.outdated import file_problems

from .runs import last_planned, main_run, needs_predictor, runs_in_force

logger = logging.getLogger(__name__)
Kind = JobStep.Kind


@dataclass(frozen=True)
class Choice:
    """A predictor that a stage's answers train."""

    role: PredictorRun.Role
    name: str
    params: dict[str, Any]


def _move(stage: Stage, state: Stage.State, **changes: Any) -> None:
    if not stage.may_become(state):
        raise StateRefused(f"stage {stage.index} of {stage.study.slug} is {stage.state} and cannot become {state}")
    stage.state = state
    for name, value in changes.items():
        setattr(stage, name, value)
    stage.save(update_fields=["state", *changes])


def open_stage(stage: Stage, *, by: Any = None, via: str = "command") -> Stage:
    """Open a stage, or go on with a paused one. A pilot and the first main stage are planned first if necessary.

    Raises:
        StateRefused: another stage is open, the one before is not frozen, this one is not planned, the study is
            archived, or its file names no date until when data is kept.
        PayTooLow: the reward is less per hour than the panel's minimum.
        PlanRefused: the stage cannot be planned.
    """
    _refuse_archived(stage.study)
    _refuse_outdated(stage.study)
    refuse_without_retention(stage.study)
    if stage.state in (Stage.State.DRAFT, Stage.State.PLANNED):
        # Only by the study file: measured times are checked for each posting, whose reward can be raised.
        refuse_low_pay(stage.study, as_expected=True)
        if not stage.is_pilot:
            refuse_low_pay_by_pilot(stage.study)
    if stage.state == Stage.State.DRAFT and stage.plans_on_opening:
        _refuse_out_of_turn(stage)
        plan_stage(stage, by=by, via=via)
    with transaction.atomic():
        stage = locked_stage(stage.pk)
        if stage.state == Stage.State.OPEN:
            return stage
        if stage.state == Stage.State.DRAFT:
            raise StateRefused(_why_not_planned(stage))
        _refuse_out_of_turn(stage)
        _refuse_archived(stage.study)
        now = timezone.now()
        if not stage.is_pilot:
            lock_study(stage.study, now=now, by=by, via=via)
        _move(stage, Stage.State.OPEN, opened_at=stage.opened_at or now)
        record("open_stage", stage, by=by, via=via)
    return stage


FIRST = {
    Stage.State.DRAFT: "open and close stage {before} first",
    Stage.State.PLANNED: "open and close stage {before} first",
    Stage.State.OPEN: "close stage {before} first",
    Stage.State.PAUSED: "close stage {before} first",
    Stage.State.CLOSING: "stage {before} is closing; wait until nobody is inside, then it is planned",
}

UNPLANNED = "look at its steps of work (`hunch study_status {slug}`), or plan it (`hunch plan_stage {slug} {index}`)"
CLOSED = f"stage {{before}} is closed, and what plans this one is not done or failed; {UNPLANNED}"


def _why_not_planned(stage: Stage) -> str:
    """What is to be done before a stage that is not planned can open. Whatever closed the one before plans it."""
    before = stage.before()
    fix = FIRST.get(Stage.State(before.state), CLOSED) if before else UNPLANNED
    values = {"before": before and before.index, "slug": stage.study.slug, "index": stage.index}
    return f"stage {stage.index} is not planned: {fix.format_map(values)}"


def _refuse_archived(study: Study) -> None:
    if study.archived_at is not None:
        raise StateRefused(f"{study.slug} is archived: bring it back first (`hunch archive_study {study.slug} --undo`)")


def _refuse_outdated(study: Study) -> None:
    if problems := file_problems(study):
        raise StateRefused(
            f"this version of Hunch does not accept the file of {study.slug} any more ({problems[0]}): amend it first"
        )


def _refuse_out_of_turn(stage: Stage) -> None:
    before = stage.before()
    if before and before.state != Stage.State.FROZEN:
        fix = "wait until it is frozen" if before.state == Stage.State.CLOSING else "open and close it first"
        raise StateRefused(f"stage {before.index} is still {before.state}: {fix}")


@transaction.atomic
def pause_stage(stage: Stage, *, by: Any = None, via: str = "command") -> Stage:
    """Admit nobody for now. People who have begun can finish."""
    stage = locked_stage(stage.pk)
    if stage.state != Stage.State.PAUSED:
        _move(stage, Stage.State.PAUSED)
        record("pause_stage", stage, by=by, via=via)
    return stage


def close_stage(stage: Stage, *, now: bool = False, by: Any = None, via: str = "command") -> Stage:
    """Admit nobody any more. Freezing, training, evaluating, scoring and planning follow once nobody is inside.

    Args:
        now: expire the live sittings instead of waiting for them. Those people can finish and are owed pay, but their
            answers from now on are late.

    Raises:
        StateRefused: the stage was never opened.
    """
    with transaction.atomic():
        stage = locked_stage(stage.pk)
        if stage.state not in (Stage.State.CLOSING, Stage.State.FROZEN):
            _move(stage, Stage.State.CLOSING, closing_at=timezone.now())
            record("close_stage", stage, by=by, via=via, now=now)
        elif now and stage.state == Stage.State.CLOSING and not _closes_at_once(stage):
            record("close_stage", stage, by=by, via=via, now=True)
        next_steps(stage)
    if now and stage.state == Stage.State.CLOSING:
        at = timezone.now()
        for pk in stage.sittings.filter(state=Sitting.State.LIVE).values_list("pk", flat=True):
            expire_sitting(pk, now=at)
    return stage


def _closes_at_once(stage: Stage) -> bool:
    """Whether somebody has closed it without waiting before: of several who do so, one is written down."""
    said = AuditEntry.objects.filter(action="close_stage", subject=str(stage)).values_list("detail", flat=True)
    return any(detail.get("now") for detail in said)


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
    """Freezing waits: somebody inside can still give an answer that counts."""


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
    instrument = instruments.of_study(stage.study)
    answers = with_answers(in_time([stage]), stage.study).order_by("slot__number")
    rows, sittings = [], []
    for number, answer in enumerate(answers.iterator(BATCH_SIZE), start=1):
        digested = answer_digest(answer, instrument)
        rows.append(SnapshotAnswer(stage=stage, number=number, assignment_id=answer.pk, digest=digested))
        sittings.append(answer.sitting_id)
    SnapshotAnswer.objects.bulk_create(rows, batch_size=2000)
    now = timezone.now()
    flagged = decide_exclusions(stage, now=now)
    excluded = [row.number for row, sitting in zip(rows, sittings, strict=True) if sitting in flagged]
    facts = exclusion_facts(stage.study, excluded)
    stage.snapshot_sha256 = snapshot_digest([row.digest for row in rows], facts)
    stage.record(snapshot={"answers": len(rows), "sha256": stage.snapshot_sha256, **facts})
    if has_majorities(stage):
        sampled = with_labels(in_time([stage], roles=TRAINED), stage.study).order_by("slot__number")
        unflagged = [answer for answer in sampled.iterator(BATCH_SIZE) if answer.sitting_id not in flagged]
        stage.record(majorities=facts_of(majorities_among(unflagged, stage), stage))
    _move(
        stage,
        Stage.State.FROZEN,
        frozen_at=now,
        snapshot_sha256=stage.snapshot_sha256,
        manifest=stage.manifest,
    )
    StoredEstimate.objects.filter(study=stage.study).queue()
    record(
        "freeze_stage",
        stage,
        via="worker",
        answers=len(rows),
        snapshot_sha256=stage.snapshot_sha256,
        excluded=exclusion_digests(stage),
    )
    return {"answers": len(rows), "snapshot_sha256": stage.snapshot_sha256}


def answer_digest(answer: Assignment, instrument: instruments.Instrument) -> str:
    return keyed_digest(
        [answer.sitting.public_id.hex, answer.slot.number, answer.slot.item.key, *instrument.answer_values(answer)],
        purpose=f"answer:{answer.slot.stage_id}",
    )


class _Steps:
    """The steps of a stage, read once and all together; what is not there yet is queued."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self._known = {(step.kind, step.member, step.input_sha256): step for step in stage.job_steps.order_by("pk")}

    def queue(self, kind: JobStep.Kind, inputs: Any, *, member: int = 0, run: PredictorRun | None = None) -> JobStep:
        key = (kind.value, member, digest(inputs))
        if key not in self._known:
            self._known[key], _created = JobStep.objects.get_or_create(
                stage=self.stage, kind=kind, member=member, input_sha256=key[2], defaults={"predictor_run": run}
            )
        return self._known[key]

    def all(self) -> list[JobStep]:
        return sorted(self._known.values(), key=lambda step: step.pk)


def next_steps(stage: Stage) -> list[JobStep]:
    """Queue every step of a closing or frozen stage whose inputs exist, and return all steps of the stage.

    Called after each step and by beat. Only the rows decide what is next, so it does not matter which worker died when.
    """
    if stage.state not in (Stage.State.CLOSING, Stage.State.FROZEN):
        return []
    steps = _Steps(stage)
    steps.queue(Kind.FREEZE, [stage.plan_sha256])
    if stage.state == Stage.State.FROZEN:
        _queue_after_freeze(stage, steps)
    return steps.all()


def _queue_after_freeze(stage: Stage, steps: _Steps) -> None:
    _queue_evaluation(stage, steps)
    choices = _predictors_of(stage)
    main = _run(stage, choices[0]) if choices else None
    following = stage.following()
    if main is not None:
        training = _training_of(main, steps)
        if any(step.state in (JobStep.State.QUEUED, JobStep.State.RUNNING) for step in training):
            return
        if any(step.state == JobStep.State.FAILED for step in training) and (
            following is None or needs_predictor(following)
        ):
            return
        main.refresh_from_db()
    if following is not None and following.state == Stage.State.DRAFT and not following.plans_on_opening:
        _queue_plan(stage, following, main, steps)
    elif main is not None and main.is_ready:
        # Only now: the next stage must not wait for predictors that plan nothing.
        for choice in choices[1:]:
            _training_of(_run(stage, choice), steps)


def _queue_evaluation(stage: Stage, steps: _Steps) -> None:
    """Evaluate the current predictors once each is trained or has failed; again after a failed one was repaired."""
    runs = runs_in_force(stage)
    if not runs:
        return
    going_on = JobStep.objects.filter(
        stage=runs[0].stage_id, kind=Kind.TRAIN, state__in=[JobStep.State.QUEUED, JobStep.State.RUNNING]
    )
    if not going_on.exists():
        steps.queue(Kind.EVALUATE, [stage.snapshot_sha256, *sorted(run.input_sha256 for run in runs)])


def _training_of(run: PredictorRun, steps: _Steps) -> list[JobStep]:
    """The steps that train the run's members; queues those that are not there yet."""
    return [
        steps.queue(Kind.TRAIN, [run.input_sha256], member=member, run=run)
        for member in range(predictor_training.members_of(run.name, run.params))
    ]


def _queue_plan(stage: Stage, following: Stage, run: PredictorRun | None, steps: _Steps) -> None:
    if run is not None and not run.is_ready:
        if needs_predictor(following):
            return  # See `waits_for_a_choice`.
        run = None
    questions = question_set_digest(stage.study)
    inputs: list[Any] = [] if run is None else [run.input_sha256, run.members]
    priority = instruments.of_study(stage.study).priority if following.config.design.kind != "uniform" else None
    if priority is not None:
        snapshots = stage.study.main_stages().filter(index__lte=stage.index).values_list("snapshot_sha256", flat=True)
        inputs.append([priority.facts(), *snapshots])
    if inputs:
        step = steps.queue(Kind.SCORE, [*inputs, following.seed, questions])
        if step.state != JobStep.State.DONE:
            return
    # A plan by a predictor without a priority keeps the name it had before priorities existed.
    named = inputs if priority is not None else [run.input_sha256 if run else ""]
    steps.queue(Kind.PLAN, [*named, following.seed, questions])


def _predictors_of(stage: Stage) -> list[Choice]:
    """The predictors that this stage's answers train, the main one first; empty if study or instrument has none.

    Baselines are always included, since a figure without a comparison says little.
    """
    study = stage.study
    wanted = study.config.predictor
    learning = instruments.of_study(study).learning
    if wanted is None or stage.is_pilot or not stage.config.train or learning is None:
        return []
    compared = [Choice(PredictorRun.Role.COMPARED, other.name, other.params) for other in wanted.compared]
    named = {wanted.name, *(other.name for other in compared)}
    baselines = [
        Choice(PredictorRun.Role.BASELINE, baseline.name, dict(baseline.params))
        for baseline in learning.baselines
        if baseline.name not in named
    ]
    return [Choice(PredictorRun.Role.MAIN, wanted.name, wanted.params), *compared, *baselines]


def _run(stage: Stage, choice: Choice) -> PredictorRun:
    """The training of a predictor on the answers up to and including this stage.

    The row fixes what is held out: a stage that is planned by hand later must not make two members of one ensemble
    learn from different answers.
    """
    for run in stage.predictor_runs.filter(role=choice.role, name=choice.name).order_by("pk"):
        if run.params == choice.params:
            return run
    study = stage.study
    through = last_planned(study)
    stages = study.main_stages()
    snapshots = list(stages.filter(index__lte=stage.index).values_list("snapshot_sha256", flat=True))
    later_plans = list(stages.filter(index__gt=stage.index, index__lte=through).values_list("plan_sha256", flat=True))
    seed = derive(stage.seed, "predictor")
    inputs = [choice.name, choice.params, seed, snapshots, *later_plans]
    run, _created = PredictorRun.objects.get_or_create(
        stage=stage,
        name=choice.name,
        input_sha256=digest(inputs),
        defaults={
            "role": choice.role,
            "params": choice.params,
            "seed": seed,
            "held_out_through": through,
            "example_count": 0,
        },
    )
    return run


def choose_uniform(stage: Stage, *, by: Any = None, via: str = "command") -> Stage:
    """Let a stage that should be drawn by a predictor be drawn uniformly, since no predictor could be trained, or its
    training takes longer than somebody will wait: what is left of it is stopped.

    A person must decide this, not a worker: it departs from the study file, and the manifest records it.

    Raises:
        StateRefused: the stage is planned, or uniform anyway, or a predictor can still plan it or has scored it.
    """
    with transaction.atomic():
        if (before := stage.preceding()) is not None:
            before = locked_stage(before.pk)  # A training that ends holds this lock while it says that it is ready.
        stage = locked_stage(stage.pk)
        if stage.manifest.get(UNIFORM_BY_CHOICE):
            return stage
        if stage.state != Stage.State.DRAFT:
            raise StateRefused(f"stage {stage.index} is {stage.state}: its plan is never changed")
        if stage.config.design.kind == "uniform":
            raise StateRefused(f"stage {stage.index} is uniform in the study file: plan it without --uniform")
        if not needs_predictor(stage):
            raise StateRefused(
                f"stage {stage.index} is drawn by its instrument's priority, which needs no predictor: the workers "
                "plan it once the stage before is frozen"
            )
        if before is None or before.state != Stage.State.FROZEN:
            raise StateRefused(f"stage {stage.index - 1} is not frozen yet: close it first, and let it train")
        run = main_run(before)
        if run is not None and run.is_ready:
            raise StateRefused(
                f"stage {stage.index} has its predictor, and the workers plan it: `hunch study_status "
                f"{stage.study.slug}` shows how far they are"
            )
        stage.record(**{UNIFORM_BY_CHOICE: _why_untrained(run)})
        stage.save(update_fields=["manifest"])
        if run is not None:
            run.stop(f"stage {stage.index} is drawn uniformly")
        record("choose_uniform", stage, by=by, via=via, reason=stage.manifest[UNIFORM_BY_CHOICE])
    return stage


def _why_untrained(run: PredictorRun | None) -> str:
    for step in run.job_steps.order_by("member") if run is not None else ():
        if reason := step.result.get("nothing_to_learn") or step.error:
            return str(reason)
    return "no predictor was trained" if run is None else "its training was stopped before it had ended"


def waits_for_training(stage: Stage | None) -> bool:
    """Whether a stage should be drawn by a predictor whose training has not ended, or has failed."""
    if stage is None or stage.state != Stage.State.DRAFT or not needs_predictor(stage):
        return False
    before = stage.preceding()
    run = main_run(before) if before is not None and before.state == Stage.State.FROZEN else None
    return run is not None and not run.is_ready and run.job_steps.exclude(state=JobStep.State.DONE).exists()


def waits_for_a_choice(stage: Stage | None) -> bool:
    """Whether a stage should be drawn by a predictor that had nothing to learn from: a person must plan it."""
    if stage is None or stage.state != Stage.State.DRAFT or not needs_predictor(stage):
        return False
    before = stage.preceding()
    run = main_run(before) if before is not None and before.state == Stage.State.FROZEN else None
    if run is None or run.is_ready:
        return False
    return not run.job_steps.exclude(state=JobStep.State.DONE).exists() and run.job_steps.exists()


def choice_to_make(slug: str, index: int) -> str:
    """What a person can do about a stage that waits for a choice."""
    return (
        f"stage {index} should be drawn by a predictor that had nothing to learn from. To draw it uniformly instead: "
        f"`hunch plan_stage {slug} {index} --uniform`"
    )


def pipeline_status(stage: Stage) -> list[JobStep]:
    return list(stage.job_steps.select_related("predictor_run").order_by("pk"))


def pipeline_is_done(stage: Stage) -> bool:
    """Whether everything that follows closing this stage is done."""
    steps = next_steps(stage)
    if stage.state != Stage.State.FROZEN or any(step.state != JobStep.State.DONE for step in steps):
        return False
    following = stage.following()
    return following is None or following.plans_on_opening or following.state != Stage.State.DRAFT


def failed_steps(stage: Stage) -> list[JobStep]:
    return list(stage.job_steps.filter(state=JobStep.State.FAILED).order_by("pk"))


def open_if_automatic(stage: Stage | None) -> bool:
    """Open the stage after a planned one if the study file says so. False if it may not open (because of the pay, or
    the date until when data is kept): beat tries again, so that it opens once a person has fixed that."""
    if stage is None or stage.state != Stage.State.PLANNED or stage.config.opens != "automatically":
        return True
    try:
        open_stage(stage, via="worker")
    except HunchError as exc:
        if cache.add(f"survey.stays_closed:{stage.pk}", True, timeout=3600):  # Once an hour is enough.
            logger.warning("%s does not open by itself: %s", stage, exc.message)
        return False
    return True
