"""The files of an export about people and about the study: one row per sitting, one row per slot of the plans, the
predictors' trainings. Imports models and below.

Rows are read while they are written, a few statements for some hundred of them.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

from django.db.models import Sum

from survey.contracts.tables import Column, ExtraFile
from survey.models import (
    Assignment,
    AttentionAnswer,
    CheckAttempt,
    DataChoice,
    FormAnswer,
    Payment,
    PaymentBatch,
    PredictorRun,
    QuestionReport,
    Sitting,
    Slot,
    Study,
    Submission,
)
from survey.services.answers.blinding import shown_levels
from survey.services.answers.exclusions import excluded_sittings
from survey.services.answers.sitting_flags import marks_of
from survey.services.results.export.columns import in_utc
from survey.services.results.export.increments import changed_since

from .sitting_files import WHO

CHUNK = 500
IF_SEEN = "Empty where the person who exports may not see postings, and where no panel pays."
SITTINGS = (
    *WHO,
    Column("pilot", "0 or 1", "1: the stage is a pilot."),
    Column("wave", "number", "1 for the person's first pass.", whole=True),
    Column("state", "text", "live, complete, expired, failed_checks, turned_away or screened_out."),
    Column("language", "text", "Language of the pages."),
    Column("study_sha256", "text", "Of the study file that the sitting began with."),
    Column("booklet", "number", "The booklet of the sitting; empty before the items.", whole=True),
    Column("started_at", "time, UTC", "When the first page was asked for."),
    Column("consented_at", "time, UTC", "When the person agreed."),
    Column("last_seen_at", "time, UTC", "When the last page was sent."),
    Column("expired_at", "time, UTC", "When it last expired."),
    Column("ended_at", "time, UTC", "When it ended for good."),
    Column("withdrawn_at", "time, UTC", "When the person took everything back."),
    Column("seconds", "number", "From the first page to the end, or to the last page sent.", whole=True),
    Column("given", "number", "Items that the person was given.", whole=True),
    Column("answered", "number", "Items that were complete while the person still had them.", whole=True),
    Column("late", "number", "Items that were complete later.", whole=True),
    Column("check_attempts", "number", "Attempts at the comprehension checks.", whole=True),
    Column("checks_passed", "0 or 1", "1: they were passed; empty without an attempt."),
    Column("attention_failed", "number", "Attention checks that were answered wrongly.", whole=True),
    Column("remarks", "number", "Remarks on questions that the person sent.", whole=True),
    Column("flags", "text", "The sitting's flags, with a space between them."),
    Column("excluded", "text", "The flags for which its answers count in nothing; empty where they count."),
    Column("condition", "JSON object", "Factor to level, as drawn for the sitting."),
    Column("condition_probability", "JSON object", "Factor to the chance of its drawn level."),
    Column("forms", "JSON object", "Each form's name to its answers, as in forms.csv."),
    Column("may_use", "0 or 1", "After a debriefing that asks: 1 where the data may be used."),
    Column("reward", "number", f"Promised by the panel, in whole cents or pence. {IF_SEEN}", whole=True),
    Column("currency", "text", IF_SEEN),
    Column("panel_status", "text", f"What the panel last said of the participation. {IF_SEEN}"),
    Column("panel_seconds", "number", f"Time taken, as the panel counts it. {IF_SEEN}", whole=True),
    Column("approved_at", "time, UTC", f"When it was approved. {IF_SEEN}"),
    Column("bonus", "number", f"Paid on top of the reward, in whole cents or pence. {IF_SEEN}", whole=True),
)
PLAN = (
    Column("study", "text", "The study's short name."),
    Column("stage", "number", "The stage, from 1.", whole=True),
    Column("slot", "number", "Place in the order of the stage's draw, from 1.", whole=True),
    Column("item", "text", "The item's key, as in answers.csv."),
    Column("replicate", "number", "1 for the first planned showing of the item in the stage.", whole=True),
    Column("role", "text", "sampled, holdout, control or repeat."),
    Column("control_kind", "text", "What a control asks; empty for other roles."),
    Column("repeat_of", "number", "For a repeat: the slot whose item is asked again.", whole=True),
    Column("stratum", "text", "The part of the candidates that it was drawn from."),
    Column("inclusion_probability", "0 to 1", "Exact chance that the item is in the plan."),
    Column("pool_probability", "0 to 1", "Chance that the item is among the candidates."),
    Column("score", "number", "What the stage's predictor gave the item before the draw."),
    Column("booklet", "number", "The booklet that it lies in; empty while it waits.", whole=True),
    Column("position", "number", "Place in its booklet, from 1.", whole=True),
)
RUNS = (
    Column("study", "text", "The study's short name."),
    Column("trained_after", "number", "The stage whose answers are the last that it learned from.", whole=True),
    Column("predictor", "text", "Its name."),
    Column("role", "text", "main, compared or baseline. Only the main one plans a stage."),
    Column("params", "JSON object", "Its settings."),
    Column("seed", "text", "Of everything random in it."),
    Column("training_answers", "number", "How many answers it learned from.", whole=True),
    Column("input_sha256", "text", "Hash of all that it learned from."),
    Column("members", "number", "How many members it has.", whole=True),
    Column("seconds", "number", "Of training, all members together."),
    Column("created_at", "time, UTC", "When it was asked for."),
    Column("ready_at", "time, UTC", "When all members were trained; empty before that."),
)


def study_files(study: Study, *, since: datetime | None, with_pay: bool) -> Iterator[ExtraFile]:
    """
    Args:
        since: only sittings in which anything was stored since.
        with_pay: what the panel says and pays, for who may see postings.
    """
    yield ExtraFile("sittings.csv", SITTINGS, _sittings(study, since, with_pay=with_pay))
    yield ExtraFile("plan.csv", PLAN, _plan(study))
    yield ExtraFile("runs.csv", RUNS, _runs(study))


def _sittings(study: Study, since: datetime | None, *, with_pay: bool) -> Iterator[Sequence[Any]]:
    for current in study.stages.order_by("index"):
        current.study = study
        excluded = excluded_sittings(current)
        rows = Sitting.objects.filter(changed_since(since), stage=current).order_by("pk")
        sittings = rows.select_related("respondent", "booklet", "consent").prefetch_related("conditions")
        rest = sittings.iterator(CHUNK)
        while part := list(islice(rest, CHUNK)):
            facts = _Facts(
                study,
                [sitting_of_part.pk for sitting_of_part in part],
                [sitting_of_part.respondent_id for sitting_of_part in part],
                with_pay=with_pay,
            )
            for sitting in part:
                yield _sitting(sitting, study, current.index, current.is_pilot, facts, excluded.get(sitting.pk, ()))


class _Facts:
    """What the rows of some sittings have in other tables."""

    def __init__(self, study: Study, sittings: Sequence[int], people: Sequence[int], *, with_pay: bool) -> None:
        def of(rows: Any) -> Any:
            return rows.filter(sitting__in=sittings).order_by("pk")

        self.items: dict[int, Counter[str]] = defaultdict(Counter)
        for sitting, state, at in of(Assignment.objects).values_list("sitting", "state", "completed_at"):
            self.items[sitting]["given"] += 1
            self.items[sitting][state if state != Assignment.State.LATE or at else "left"] += 1
        self.attempts: dict[int, list[bool]] = defaultdict(list)
        for sitting, passed in of(CheckAttempt.objects).values_list("sitting", "passed"):
            self.attempts[sitting].append(passed)
        self.failed = Counter(of(AttentionAnswer.objects.filter(passed=False)).values_list("sitting", flat=True))
        self.remarks = Counter(of(QuestionReport.objects).values_list("sitting", flat=True))
        self.forms: dict[int, dict[str, Any]] = defaultdict(dict)
        for sitting, block, answers in of(FormAnswer.objects).values_list("sitting", "block", "answers"):
            self.forms[sitting][block] = answers
        self.choices = dict(of(DataChoice.objects).values_list("sitting", "may_use"))
        self.flags: Mapping[int, Sequence[str]] = marks_of(study, sittings)
        self.pay = _pay(people) if with_pay else {}


def _pay(people: Collection[int]) -> dict[tuple[int, int], list[Any]]:
    """By person and wave: reward, currency, status, seconds, approved at, bonus. Panels' ids are never read."""
    rows = Submission.objects.filter(respondent__in=people).order_by("pk")
    paid = Payment.objects.filter(
        submission__respondent__in=people, is_void=False, batch__state=PaymentBatch.State.PAID
    ).order_by()
    bonus = dict(paid.values_list("submission").annotate(sum=Sum("amount")))
    payments = {}
    facts = (
        "respondent",
        "posting__wave",
        "pk",
        "posting__reward",
        "posting__currency",
        "status",
        "seconds",
        "approved_at",
    )
    for person, wave, key, *known, approved in rows.values_list(*facts):
        payments[person, wave] = [*known, in_utc(approved), bonus.get(key, 0)]
    return payments


def _sitting(
    sitting: Sitting, study: Study, stage: int, is_pilot: bool, facts: _Facts, excluded: Sequence[str]
) -> list[Any]:
    items, attempts = facts.items[sitting.pk], facts.attempts.get(sitting.pk, [])
    drawn = list(sitting.conditions.all())
    return [
        *(
            study.slug,
            stage,
            sitting.respondent.pseudonym,
            sitting.respondent.is_simulated,
            is_pilot,
            sitting.wave,
            sitting.state,
        ),
        *(sitting.language, sitting.study_sha256 or None, sitting.booklet.number if sitting.booklet else None),
        *(in_utc(sitting.started_at), in_utc(sitting.consent.given_at) if hasattr(sitting, "consent") else None),
        *(
            in_utc(sitting.last_seen_at),
            in_utc(sitting.expired_at),
            in_utc(sitting.ended_at),
            in_utc(sitting.withdrawn_at),
        ),
        round(((sitting.ended_at or sitting.last_seen_at) - sitting.started_at).total_seconds()),
        *(items["given"], items[Assignment.State.COUNTED], items[Assignment.State.LATE]),
        *(len(attempts), any(attempts) if attempts else None, facts.failed[sitting.pk], facts.remarks[sitting.pk]),
        *(" ".join(facts.flags.get(sitting.pk, ())) or None, " ".join(excluded) or None),
        _json(shown_levels(study, {condition.factor: condition.level for condition in drawn})),
        _json(shown_levels(study, {condition.factor: condition.probability for condition in drawn})),
        *(_json(facts.forms.get(sitting.pk)), facts.choices.get(sitting.pk)),
        *facts.pay.get((sitting.respondent_id, sitting.wave), [None] * 6),
    ]


def _json(value: Any) -> str | None:
    return json.dumps(value, ensure_ascii=False, sort_keys=True) if value else None


def _plan(study: Study) -> Iterator[Sequence[Any]]:
    rows = Slot.objects.filter(stage__study=study)
    facts = (
        *("stage__index", "number", "item__key", "replicate", "role", "control_kind", "repeat_of__number"),
        *("stratum__name", "inclusion_probability", "pool_probability", "score", "booklet__number", "position"),
    )
    for index, number, key, replicate, role, kind, *rest in (
        rows.order_by("stage__index", "number").values_list(*facts).iterator(2000)
    ):
        yield [study.slug, index, number, key, replicate, role, kind or None, *rest]


def _runs(study: Study) -> Iterator[Sequence[Any]]:
    rows = PredictorRun.objects.filter(stage__study=study).select_related("stage").order_by("stage__index", "pk")
    for run in rows:
        yield [
            *(study.slug, run.stage.index, run.name, run.role, _json(run.params), str(run.seed), run.example_count),
            *(run.input_sha256, len(run.members), run.seconds, in_utc(run.created_at), in_utc(run.ready_at)),
        ]
