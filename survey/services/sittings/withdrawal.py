"""A person withdraws: the content of their answers is deleted, the design stays. Imports models and services.

A person's rows are found by their relations to the sitting, so that tables added later are deleted as well: only what
`STAYS` names stays, with three times: of agreeing, of the end and of the withdrawal. The debriefing says so in words
(`debriefing.second_question`), and a test compares both. A frozen answer leaves the keyed hash it was frozen with. The
result lists the predictors that had learnt from the answers.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db import models, transaction
from django.db.models import Q, Sum
from django.db.models.fields.reverse_related import ForeignObjectRel

from survey.contracts import panels
from survey.exceptions import NotFound
from survey.models import (
    Assignment,
    AssignmentCondition,
    Booklet,
    ConditionLevel,
    Consent,
    Erasure,
    Job,
    JobStep,
    LiveSnapshot,
    PanelIdentity,
    PredictorRun,
    Respondent,
    Score,
    Sitting,
    SnapshotAnswer,
    Stage,
    StoredEstimate,
    Submission,
    WaveIdentity,
    Withdrawal,
)
from survey.services.answers.counting import frozen, frozen_stages, held_out_keys, subject_keys
from survey.services.base import erasures
from survey.services.base.auditing import record
from survey.services.base.locks import locked_stage

# What is needed to read a plan, to show that consent was given, and to pay. Everything else is content.
STAYS: frozenset[type[models.Model]] = frozenset(
    {
        Assignment,
        AssignmentCondition,
        ConditionLevel,
        Consent,
        PanelIdentity,
        Respondent,
        Sitting,
        SnapshotAnswer,
        Submission,
        WaveIdentity,
        Withdrawal,
    }
)
DEBRIEFING = "the person's own choice in the debriefing"


@dataclass(frozen=True)
class Plan:
    """What a withdrawal would remove, by table, and what it would mark."""

    respondent: Respondent
    answers: int
    stages: list[dict[str, Any]]
    runs: list[PredictorRun]
    rows: dict[type[models.Model], set[int]] = field(default_factory=dict)
    points: Decimal = Decimal(0)

    @property
    def removed(self) -> dict[str, int]:
        """The number of rows by table, with readable names."""
        return {str(model._meta.verbose_name_plural): len(keys) for model, keys in self.rows.items()}

    def lines(self) -> list[str]:
        """In words, for the person who decides."""
        study = self.respondent.study.slug
        lines = [f"{self.respondent} in {study}: {self.answers} complete answers"]
        lines += [f"  deleted: {rows} {table}" for table, rows in self.removed.items()]
        for part in self.stages:
            became = (
                f"frozen: {part['answers']} keyed hashes stay and are marked as withdrawn"
                if part["frozen"]
                else "its slots are dealt again while the stage is open"
            )
            lines.append(f"  stage {part['stage']}: {became}")
        lines += [f"  had learnt from them, and keeps what it learnt: {run}" for run in self.runs]
        lines += [
            f"  of the same person, withdrawn too: {other_visit}" for other_visit in _other_visits(self.respondent)
        ]
        lines.append(
            "  kept: pseudonym, consent with its language, conditions and the plan's rows without content, the times "
            "of agreeing, of the end and of now; where people are paid, what is owed, and the panel's ids until the "
            "payment is settled"
        )
        return lines


def find_respondent(pseudonym: str) -> Respondent:
    """
    Raises:
        NotFound: nobody has that pseudonym.
    """
    respondent = Respondent.objects.select_related("study").filter(pseudonym=pseudonym).first()
    if respondent is None:
        raise NotFound(f"no respondent is called {pseudonym!r}: a pseudonym looks like r-0123456789abcdef")
    return respondent


def _other_visits(respondent: Respondent) -> list[Respondent]:
    """The same person's visits that found no free place, and the one after them."""
    visits, waiting = {respondent.pk: respondent}, [respondent]
    while waiting:
        visit = waiting.pop()
        near = Respondent.objects.select_related("study").filter(Q(pk=visit.came_before_id) | Q(came_before=visit))
        new = [other for other in near if other.pk not in visits]
        visits |= {other.pk: other for other in new}
        waiting += new
    return [visit for key, visit in sorted(visits.items()) if key != respondent.pk]


def plan_withdrawal(respondent: Respondent) -> Plan:
    """What `withdraw` would do now. Reads only."""
    sittings = Sitting.objects.filter(respondent=respondent)
    assignments = Assignment.objects.filter(sitting__in=sittings)
    rows: dict[type[models.Model], set[int]] = {}
    for start in (assignments, sittings, Respondent.objects.filter(pk=respondent.pk)):
        for key, child in _content_of(start.model, set(start.values_list("pk", flat=True))):
            rows.setdefault(key, set()).update(child)
    answered = assignments.filter(completed_at__isnull=False)
    stages = [
        {"stage": stage.index, "answers": stage.given, "frozen": stage.state == Stage.State.FROZEN}
        for stage in Stage.objects.filter(sittings__in=sittings)
        .annotate(given=models.Count("sittings__assignments", filter=Q(sittings__assignments__in=answered)))
        .order_by("index")
    ]
    points = Score.objects.filter(response__assignment__in=assignments).aggregate(sum=Sum("value"))["sum"]
    return Plan(
        respondent=respondent,
        answers=answered.count(),
        stages=stages,
        runs=runs_that_learnt_from(respondent),
        rows={model: keys for model, keys in rows.items() if keys},
        points=points or Decimal(0),
    )


def _content_of(model: type[models.Model], keys: set[int]) -> Iterable[tuple[type[models.Model], set[int]]]:
    """The rows of other tables that refer to these rows, directly or through others. Referring rows come first."""
    if not keys:
        return
    # Hidden relations too: one that no code reads backwards can still hold content.
    for relation in model._meta.get_fields(include_hidden=True):
        if not isinstance(relation, ForeignObjectRel) or relation.many_to_many:
            continue
        child: Any = relation.related_model
        if child in STAYS:
            continue
        rows = child._base_manager.filter(**{f"{relation.field.name}__in": keys})
        own = set(rows.values_list("pk", flat=True))
        if own:
            yield from _content_of(child, own)
            yield child, own


def runs_that_learnt_from(respondent: Respondent) -> list[PredictorRun]:
    """The predictors, trained or in training, that learn from the person's frozen answers."""
    study = respondent.study
    teaching = [stage for stage in frozen_stages(study) if stage.config.teaches]
    learning = list(frozen(teaching).filter(sitting__respondent=respondent).select_related("slot__item", "slot__stage"))
    if not learning:
        return []
    running = JobStep.objects.filter(predictor_run=models.OuterRef("pk"), state=JobStep.State.RUNNING)
    runs = (
        PredictorRun.objects.filter(stage__study=study)
        .filter(~Q(members={}) | models.Exists(running))
        .select_related("stage")
        .order_by("pk")
    )
    keys = subject_keys([answer.slot.item for answer in learning], study)
    held_out = {through: held_out_keys(study, through=through) for through in {run.held_out_through for run in runs}}
    return [
        run
        for run in runs
        if any(
            answer.slot.stage.index <= run.stage.index and key not in held_out[run.held_out_through]
            for answer, key in zip(learning, keys, strict=True)
        )
    ]


@transaction.atomic
def withdraw(
    *, respondent: Respondent, now: datetime, reason: str = "", by: Any = None, via: str = "command"
) -> Withdrawal:
    """Delete everything that a person gave, and record the withdrawal. A second call changes nothing. Earlier visits of
    the same person, which found no free place, are withdrawn with it.

    A sitting that was past its items, or has none left to answer, counts as complete, since the person had given what
    was asked: it is paid. An earlier one is over without pay. A caller that holds one of the person's sittings must
    read it again afterwards, and store nothing more for it.

    Takes the locks of all the person's sittings, so that an answer in flight is either deleted or refused. Then takes
    the locks of the stages, so that no snapshot contains half of the answers.
    """
    for other in _other_visits(respondent):
        _withdraw_visit(respondent=other, now=now, reason=reason, by=by, via=via)
    return _withdraw_visit(respondent=respondent, now=now, reason=reason, by=by, via=via)


def _withdraw_visit(*, respondent: Respondent, now: datetime, reason: str, by: Any, via: str) -> Withdrawal:
    sittings = list(
        Sitting.objects.select_for_update(of=("self",), no_key=True)
        .filter(respondent=respondent)
        .select_related("stage__study")
        .order_by("pk")
    )
    # Lock the person's row too: without a sitting, two calls at once would share no other lock.
    respondent = (
        Respondent.objects.select_for_update(of=("self",), no_key=True).select_related("study").get(pk=respondent.pk)
    )
    if earlier := Withdrawal.objects.filter(respondent=respondent).first():
        return earlier
    for stage in sorted({sitting.stage_id for sitting in sittings}):
        locked_stage(stage)
    plan = plan_withdrawal(respondent)
    for model, keys in plan.rows.items():
        model._base_manager.filter(pk__in=keys).delete()
    assignments = Assignment.objects.filter(sitting__respondent=respondent)
    answered_all = set(assignments.values_list("sitting", flat=True))
    left_open = assignments.filter(completed_at__isnull=True).exclude(state=Assignment.State.DECLINED)
    answered_all -= set(left_open.values_list("sitting", flat=True))
    SnapshotAnswer.objects.filter(assignment__in=assignments, withdrawn_at__isnull=True).update(withdrawn_at=now)
    assignments.update(state=Assignment.State.WITHDRAWN, completed_at=None)
    StoredEstimate.objects.filter(study=respondent.study).empty()
    LiveSnapshot.objects.filter(study=respondent.study).empty()
    Job.objects.filter(study=respondent.study).forget_results()
    for sitting in sittings:
        _end(sitting, now, gave_all=sitting.pk in answered_all)
        _forget_times(sitting)
    if not panels.of_study(respondent.study).has_submissions:
        _forget_ids(respondent)
    withdrawal = Withdrawal.objects.create(
        respondent=respondent,
        at=now,
        reason=reason[:300],
        answers=plan.answers,
        stages=plan.stages,
        removed=plan.removed,
        points=plan.points,
    )
    withdrawal.predictor_runs.set(plan.runs)
    erasures.remember(Erasure.What.ANSWERS, [respondent], at=now)
    record(
        "withdraw",
        respondent,
        by=by,
        via=via,
        study=respondent.study.slug,
        answers=plan.answers,
        removed=plan.removed,
        predictor_runs=[str(run) for run in plan.runs],
    )
    return withdrawal


def _end(sitting: Sitting, now: datetime, *, gave_all: bool) -> None:
    kinds = [block.kind for block in sitting.config.blocks]
    if sitting.state in (Sitting.State.LIVE, Sitting.State.EXPIRED):
        # Who left in the last item, which counted as it was, still stands at the items.
        if gave_all or sitting.block > kinds.index("items"):
            sitting.state = Sitting.State.COMPLETE
        else:
            sitting.state = Sitting.State.EXPIRED
            sitting.expired_at = sitting.expired_at or now
        sitting.ended_at = now
    sitting.withdrawn_at = now
    sitting.save(update_fields=["state", "expired_at", "ended_at", "withdrawn_at"])


def _forget_times(sitting: Sitting) -> None:
    """All but those of agreeing, of the end, which lists of payments need, and of the withdrawal."""
    consent = Consent.objects.filter(sitting=sitting).first()
    agreed_at = consent.given_at if consent is not None else sitting.started_at
    sitting.started_at = sitting.last_seen_at = agreed_at
    sitting.expired_at = sitting.ended_at if sitting.state == Sitting.State.EXPIRED else None
    sitting.save(update_fields=["started_at", "last_seen_at", "expired_at"])
    Assignment.objects.filter(sitting=sitting).update(assigned_at=agreed_at)
    Booklet.objects.filter(sitting=sitting).update(claimed_at=agreed_at)
    if sitting.wave == 1:
        Respondent.objects.filter(pk=sitting.respondent_id).update(created_at=agreed_at)


def _forget_ids(respondent: Respondent) -> None:
    """Where no panel pays, nobody has to be named any more: the hashes notice who comes again."""
    PanelIdentity.objects.filter(respondent=respondent).update(ids_encrypted=b"")
    WaveIdentity.objects.filter(identity__respondent=respondent).update(ids_encrypted=b"")
