"""The files of an export about people and about the study: one row per sitting, one row per slot of the plans, the
predictors' trainings. Imports models and below.

Rows are read while they are written, a few statements for some hundred of them.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any, NamedTuple

from django.db.models import Sum, Value
from django.db.models.functions import NullIf

from survey.contracts.tables import ExtraFile, ValueColumn
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
    Stage,
    Study,
    Submission,
)
from survey.services.answers.blinding import shown_levels
from survey.services.answers.exclusions import excluded_sittings
from survey.services.answers.sitting_flags import marks_of
from survey.services.results.export.increments import changed_since

from .common_columns import CHUNK, WHO, file_of_study, in_json, in_utc, text, time

IF_SEEN = "Empty where the person who exports may not see postings, and where no panel pays."


class SittingFacts(NamedTuple):
    """A sitting with what other tables say of it. `pay`: empty for who may not see it."""

    study: Study
    stage: Stage
    sitting: Sitting
    items: Counter[str]
    attempts: Sequence[bool]
    attention_failed: int
    remarks: int
    flags: Sequence[str]
    excluded: Sequence[str]
    forms: Mapping[str, Any]
    may_use: bool | None
    pay: Mapping[str, Any]

    @property
    def seconds(self) -> int:
        end = self.sitting.ended_at or self.sitting.last_seen_at
        return round((end - self.sitting.started_at).total_seconds())

    def levels(self, name: str) -> str | None:
        """By factor: what is known of its level, while the study is not blind."""
        levels = {drawn.factor: getattr(drawn, name) for drawn in self.sitting.conditions.all()}
        return in_json(shown_levels(self.study, levels))


def _paid(name: str) -> Callable[[SittingFacts], Any]:
    return lambda facts: facts.pay.get(name)


SITTINGS = (
    *WHO,
    ValueColumn("pilot", "0 or 1", "1: the stage is a pilot.", value="stage.is_pilot"),
    ValueColumn("wave", "number", "1 for the person's first pass.", whole=True, value="sitting.wave"),
    ValueColumn(
        "state", "text", "live, complete, expired, failed_checks, turned_away or screened_out.", value="sitting.state"
    ),
    ValueColumn("language", "text", "Language of the pages.", value="sitting.language"),
    ValueColumn(
        "study_sha256", "text", "Of the study file that the sitting began with.", value=text("sitting.study_sha256")
    ),
    ValueColumn(
        "booklet",
        "number",
        "The booklet of the sitting; empty before the items.",
        whole=True,
        value=lambda facts: facts.sitting.booklet.number if facts.sitting.booklet else None,
    ),
    ValueColumn("started_at", "time, UTC", "When the first page was asked for.", value=time("sitting.started_at")),
    ValueColumn(
        "consented_at",
        "time, UTC",
        "When the person agreed.",
        value=lambda facts: in_utc(facts.sitting.consent.given_at) if hasattr(facts.sitting, "consent") else None,
    ),
    ValueColumn("last_seen_at", "time, UTC", "When the last page was sent.", value=time("sitting.last_seen_at")),
    ValueColumn("expired_at", "time, UTC", "When it last expired.", value=time("sitting.expired_at")),
    ValueColumn("ended_at", "time, UTC", "When it ended for good.", value=time("sitting.ended_at")),
    ValueColumn(
        "withdrawn_at", "time, UTC", "When the person took everything back.", value=time("sitting.withdrawn_at")
    ),
    ValueColumn("seconds", "number", "From the first page to the end, or to the last page sent.", whole=True),
    ValueColumn(
        "given", "number", "Items that the person was given.", whole=True, value=lambda facts: facts.items["given"]
    ),
    ValueColumn(
        "answered",
        "number",
        "Items that were complete while the person still had them.",
        whole=True,
        value=lambda facts: facts.items[Assignment.State.COUNTED],
    ),
    ValueColumn(
        "late",
        "number",
        "Items that were complete later.",
        whole=True,
        value=lambda facts: facts.items[Assignment.State.LATE],
    ),
    ValueColumn(
        "check_attempts",
        "number",
        "Attempts at the comprehension checks.",
        whole=True,
        value=lambda facts: len(facts.attempts),
    ),
    ValueColumn(
        "checks_passed",
        "0 or 1",
        "1: they were passed; empty without an attempt.",
        value=lambda facts: any(facts.attempts) if facts.attempts else None,
    ),
    ValueColumn("attention_failed", "number", "Attention checks that were answered wrongly.", whole=True),
    ValueColumn("remarks", "number", "Remarks on questions that the person sent.", whole=True),
    ValueColumn(
        "flags",
        "text",
        "The sitting's flags, with a space between them.",
        value=lambda facts: " ".join(facts.flags) or None,
    ),
    ValueColumn(
        "excluded",
        "text",
        "The flags for which its answers count in nothing; empty where they count.",
        value=lambda facts: " ".join(facts.excluded) or None,
    ),
    ValueColumn(
        "condition",
        "JSON object",
        "Factor to level, as drawn for the sitting.",
        value=lambda facts: facts.levels("level"),
    ),
    ValueColumn(
        "condition_probability",
        "JSON object",
        "Factor to the chance of its drawn level.",
        value=lambda facts: facts.levels("probability"),
    ),
    ValueColumn(
        "forms",
        "JSON object",
        "Each form's name to its answers, as in forms.csv.",
        value=lambda facts: in_json(facts.forms),
    ),
    ValueColumn("may_use", "0 or 1", "After a debriefing that asks: 1 where the data may be used."),
    ValueColumn(
        "reward",
        "number",
        f"Promised by the panel, in whole cents or pence. {IF_SEEN}",
        whole=True,
        value=_paid("posting__reward"),
    ),
    ValueColumn("currency", "text", IF_SEEN, value=_paid("posting__currency")),
    ValueColumn(
        "panel_status", "text", f"What the panel last said of the participation. {IF_SEEN}", value=_paid("status")
    ),
    ValueColumn(
        "panel_seconds", "number", f"Time taken, as the panel counts it. {IF_SEEN}", whole=True, value=_paid("seconds")
    ),
    ValueColumn(
        "approved_at",
        "time, UTC",
        f"When it was approved. {IF_SEEN}",
        value=lambda facts: in_utc(facts.pay.get("approved_at")),
    ),
    ValueColumn(
        "bonus",
        "number",
        f"Paid on top of the reward, in whole cents or pence. {IF_SEEN}",
        whole=True,
        value=_paid("bonus"),
    ),
)
# Of a slot; the values are lookups.
PLAN = (
    ValueColumn("stage", "number", "The stage, from 1.", whole=True, value="stage__index"),
    ValueColumn("slot", "number", "Place in the order of the stage's draw, from 1.", whole=True, value="number"),
    ValueColumn("item", "text", "The item's key, as in answers.csv.", value="item__key"),
    ValueColumn("replicate", "number", "1 for the first planned showing of the item in the stage.", whole=True),
    ValueColumn("role", "text", "sampled, holdout, control or repeat."),
    ValueColumn("control_kind", "text", "What a control asks; empty for other roles.", value="asked_kind"),
    ValueColumn(
        "repeat_of",
        "number",
        "For a repeat: the slot whose item is asked again.",
        whole=True,
        value="repeat_of__number",
    ),
    ValueColumn("stratum", "text", "The part of the candidates that it was drawn from.", value="stratum__name"),
    ValueColumn("inclusion_probability", "0 to 1", "Exact chance that the item is in the plan."),
    ValueColumn("pool_probability", "0 to 1", "Chance that the item is among the candidates."),
    ValueColumn("score", "number", "What the stage's predictor gave the item before the draw."),
    ValueColumn(
        "booklet", "number", "The booklet that it lies in; empty while it waits.", whole=True, value="booklet__number"
    ),
    ValueColumn("position", "number", "Place in its booklet, from 1.", whole=True),
)
RUNS = (
    ValueColumn(
        "trained_after",
        "number",
        "The stage whose answers are the last that it learned from.",
        whole=True,
        value="stage.index",
    ),
    ValueColumn("predictor", "text", "Its name.", value="name"),
    ValueColumn("role", "text", "main, compared or baseline. Only the main one plans a stage."),
    ValueColumn("params", "JSON object", "Its settings.", value=lambda run: in_json(run.params)),
    ValueColumn("seed", "text", "Of everything random in it.", value=lambda run: str(run.seed)),
    ValueColumn("training_answers", "number", "How many answers it learned from.", whole=True, value="example_count"),
    ValueColumn("input_sha256", "text", "Hash of all that it learned from."),
    ValueColumn("members", "number", "How many members it has.", whole=True, value=lambda run: len(run.members)),
    ValueColumn("seconds", "number", "Of training, all members together."),
    ValueColumn("created_at", "time, UTC", "When it was asked for.", value=time("created_at")),
    ValueColumn("ready_at", "time, UTC", "When all members were trained; empty before that.", value=time("ready_at")),
)


def study_files(study: Study, *, since: datetime | None, with_pay: bool) -> Iterator[ExtraFile]:
    """
    Args:
        since: only sittings in which anything was stored since.
        with_pay: what the panel says and pays, for who may see postings.
    """
    runs = PredictorRun.objects.filter(stage__study=study).select_related("stage").order_by("stage__index", "pk")
    yield file_of_study(study, "sittings.csv", SITTINGS, _sittings(study, since, with_pay=with_pay))
    yield file_of_study(study, "plan.csv", PLAN, _slots(study))
    yield file_of_study(study, "runs.csv", RUNS, runs)


def _sittings(study: Study, since: datetime | None, *, with_pay: bool) -> Iterator[SittingFacts]:
    for current in study.stages.order_by("index"):
        current.study = study
        excluded = excluded_sittings(current)
        rows = Sitting.objects.filter(changed_since(since), stage=current).order_by("pk")
        sittings = rows.select_related("respondent", "booklet", "consent").prefetch_related("conditions")
        rest = sittings.iterator(CHUNK)
        while part := list(islice(rest, CHUNK)):
            yield from _with_facts(study, current, part, excluded, with_pay=with_pay)


def _with_facts(
    study: Study, stage: Stage, sittings: Sequence[Sitting], excluded: Mapping[int, Sequence[str]], *, with_pay: bool
) -> Iterator[SittingFacts]:
    """Some sittings with what other tables say of them, a statement for each of these."""
    keys = [sitting.pk for sitting in sittings]

    def of(rows: Any) -> Any:
        return rows.filter(sitting__in=keys).order_by("pk")

    items: dict[int, Counter[str]] = defaultdict(Counter)
    for sitting, state, at in of(Assignment.objects).values_list("sitting", "state", "completed_at"):
        items[sitting]["given"] += 1
        items[sitting][state if state != Assignment.State.LATE or at else "left"] += 1
    attempts: dict[int, list[bool]] = defaultdict(list)
    for sitting, passed in of(CheckAttempt.objects).values_list("sitting", "passed"):
        attempts[sitting].append(passed)
    failed = Counter(of(AttentionAnswer.objects.filter(passed=False)).values_list("sitting", flat=True))
    remarks = Counter(of(QuestionReport.objects).values_list("sitting", flat=True))
    forms: dict[int, dict[str, Any]] = defaultdict(dict)
    for sitting, block, answers in of(FormAnswer.objects).values_list("sitting", "block", "answers"):
        forms[sitting][block] = answers
    choices = dict(of(DataChoice.objects).values_list("sitting", "may_use"))
    flags: Mapping[int, Sequence[str]] = marks_of(study, keys)
    pay = _pay([sitting.respondent_id for sitting in sittings]) if with_pay else {}
    for row in sittings:
        row.stage = stage
        yield SittingFacts(
            study=study,
            stage=stage,
            sitting=row,
            items=items[row.pk],
            attempts=attempts[row.pk],
            attention_failed=failed[row.pk],
            remarks=remarks[row.pk],
            flags=flags.get(row.pk, ()),
            excluded=excluded.get(row.pk, ()),
            forms=forms[row.pk],
            may_use=choices.get(row.pk),
            pay=pay.get((row.respondent_id, row.wave), {}),
        )


def _pay(people: Collection[int]) -> dict[tuple[int, int], dict[str, Any]]:
    """By person and wave. Panels' ids are never read."""
    rows = Submission.objects.filter(respondent__in=people).order_by("pk")
    paid = Payment.objects.filter(
        submission__respondent__in=people, is_void=False, batch__state=PaymentBatch.State.PAID
    ).order_by()
    bonus = dict(paid.values_list("submission").annotate(sum=Sum("amount")))
    facts = ("posting__reward", "posting__currency", "status", "seconds", "approved_at")
    return {
        (row["respondent"], row["posting__wave"]): {**row, "bonus": bonus.get(row["pk"], 0)}
        for row in rows.values("respondent", "posting__wave", "pk", *facts)
    }


def _slots(study: Study) -> Iterator[Any]:
    slots = Slot.objects.filter(stage__study=study).annotate(asked_kind=NullIf("control_kind", Value("")))
    lookups = [str(column.value or column.name) for column in PLAN]
    yield from slots.order_by("stage__index", "number").values_list(*lookups, named=True).iterator(2000)
