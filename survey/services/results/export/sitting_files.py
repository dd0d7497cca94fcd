"""The files of an export that are not about items: forms, checks, and reports on questions. Imports models and below.

Rows are in the order of stages and sittings, and are read while they are written.
"""

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import Exists, OuterRef

from survey.contracts.tables import ExtraFile, ValueColumn
from survey.models import (
    AttentionAnswer,
    CheckAttempt,
    DataChoice,
    FormAnswer,
    PracticeAnswer,
    QuestionReport,
    QuotaPlace,
    Sitting,
    Study,
)
from survey.services.sittings import debriefing, quotas
from survey.study_file import AttentionCheckConfig, CheckConfig

from .common_columns import WHO, file_of_study, rows_of_sittings, text, time


class FormField(NamedTuple):
    """An answer to one question of a form."""

    sitting: Sitting
    block: str
    version: str | None
    name: str
    answer: Any
    at: datetime


class CheckAnswer(NamedTuple):
    """An answer to one check. `check`: as the file has it that the sitting began with; None where it has none."""

    sitting: Sitting
    kind: str
    name: str
    check: CheckConfig | AttentionCheckConfig | None
    attempt: int
    after_items: int | None
    answer: int
    passed: bool
    order: Sequence[int] | None
    at: datetime

    @property
    def words(self) -> str | None:
        """None if the file has no such check or option."""
        check = self.check
        return str(check.options[self.answer]) if check is not None and self.answer < len(check.options) else None

    @property
    def places(self) -> str | None:
        return json.dumps([index + 1 for index in self.order]) if self.order else None


AT = ValueColumn("at", "time, UTC", "When the page was sent.", value=time("at"))
FORMS = (
    *WHO,
    ValueColumn("block", "text", "The form's name in the study file; a ready form's is fixed."),
    ValueColumn("version", "text", "The form's version; a ready form's changes with its questions."),
    ValueColumn("field", "text", "The question's name.", value="name"),
    ValueColumn(
        "answer",
        "text, number or JSON list",
        "The option's value (its text in the file's first language where it has none), the number, the scale's point "
        "from 1, the text, or a list of values; prefer_not_to_say where that was chosen. After a debriefing that asks "
        "for it, my_data is use; of who withdrew nothing is left here.",
        value=lambda row: json.dumps(row.answer, ensure_ascii=False) if isinstance(row.answer, list) else row.answer,
    ),
    AT,
)
CHECKS = (
    *WHO,
    ValueColumn("kind", "text", "comprehension: before the items. attention: between them."),
    ValueColumn("check", "text", "The check's name.", value="name"),
    ValueColumn("attempt", "number", "At the comprehension checks 1 or 2; at an attention check 1.", whole=True),
    ValueColumn("after_items", "number", "How many items had been answered before an attention check.", whole=True),
    ValueColumn(
        "answer",
        "number",
        "The chosen option's place in the study file, from 1; the right one comes first there.",
        whole=True,
        value=lambda row: row.answer + 1,
    ),
    ValueColumn("answer_text", "text", "Its words, in the file's first language.", value="words"),
    ValueColumn("passed", "0 or 1", "1: a right option was chosen."),
    ValueColumn(
        "shown",
        "JSON list",
        "The options' places in the study file, in the order in which they were shown.",
        value="places",
    ),
    AT,
)
PRACTICE = (
    *WHO,
    ValueColumn("number", "number", "1 for the practice item's first page, and so on.", whole=True),
    ValueColumn("screen", "text", "The instrument's name for the page."),
    ValueColumn(
        "answers",
        "JSON object",
        "The fields that were accepted, by name. They count for nothing.",
        value=lambda row: json.dumps(row.data, ensure_ascii=False, sort_keys=True),
    ),
    AT,
)
QUOTAS = (
    *WHO,
    ValueColumn("quota", "text", "The quota's name in the study file."),
    ValueColumn("cell", "text", "The cell in which the person belongs; empty outside of all.", value=text("cell")),
    ValueColumn(
        "state", "text", "held, full (the sitting ended), outside (in no cell), or lost (while it was expired)."
    ),
    ValueColumn("counts", "0 or 1", "1: the place is taken now. Who expires among the items gives it back."),
    ValueColumn(
        "answers",
        "JSON object",
        "The answers that decided, by question.",
        value=lambda row: json.dumps(row.answers, ensure_ascii=False, sort_keys=True),
    ),
    ValueColumn("at", "time, UTC", "When it was decided.", value=time("at")),
)
REPORTS = (
    *WHO,
    ValueColumn(
        "slot", "number", "The slot of the item, as in answers.csv.", whole=True, value="assignment.slot.number"
    ),
    ValueColumn("item", "text", "The item's key, as in answers.csv.", value="assignment.slot.item.key"),
    ValueColumn("position", "number", "Place in the sitting, from 1.", whole=True, value="assignment.position"),
    ValueColumn("screen", "text", "The screen that the report was sent from."),
    ValueColumn("text", "text", "What the respondent wrote."),
    ValueColumn("at", "time, UTC", "When it was sent.", value=time("at")),
)


def sitting_files(study: Study, *, since: datetime | None) -> Iterator[ExtraFile]:
    practice = rows_of_sittings(PracticeAnswer.objects.all(), study, since)
    reports = rows_of_sittings(QuestionReport.objects.all(), study, since, "assignment__slot__item")
    yield file_of_study(study, "forms.csv", FORMS, _form_fields(study, since))
    yield file_of_study(study, "checks.csv", CHECKS, _check_answers(study, since))
    yield file_of_study(study, "practice.csv", PRACTICE, practice)
    yield file_of_study(study, "question_reports.csv", REPORTS, reports)
    if study.config.quotas:
        taking = quotas.taking(QuotaPlace.objects.filter(pk=OuterRef("pk"))).order_by()
        places = rows_of_sittings(QuotaPlace.objects.annotate(counts=Exists(taking)), study, since)
        yield file_of_study(study, "quotas.csv", QUOTAS, places)


def _form_fields(study: Study, since: datetime | None) -> Iterator[FormField]:
    for row in rows_of_sittings(FormAnswer.objects.all(), study, since):
        for name, answer in sorted(row.answers.items()):
            yield FormField(row.sitting, row.block, row.version, name, answer, row.at)
    for row in rows_of_sittings(DataChoice.objects.all(), study, since):
        answer = debriefing.USE if row.may_use else debriefing.WITHDRAW
        yield FormField(row.sitting, "debriefing", None, debriefing.FIELD, answer, row.at)


def _check_answers(study: Study, since: datetime | None) -> Iterator[CheckAnswer]:
    """Indices are of the file that the sitting began with: a later one may have other options, or none."""
    for row in rows_of_sittings(CheckAttempt.objects.all(), study, since):
        file = study.as_of(row.sitting.study_sha256)
        comprehension = {check.name: check for block in file.blocks for check in block.checks}
        for name, answer in sorted(row.answers.items()):
            yield CheckAnswer(
                row.sitting,
                "comprehension",
                name,
                comprehension.get(name),
                row.attempt,
                None,
                answer,
                answer == 0,
                row.shown.get(name),
                row.at,
            )
    for row in rows_of_sittings(AttentionAnswer.objects.all(), study, since):
        file = study.as_of(row.sitting.study_sha256)
        attention = {check.name: check for check in file.sitting.attention_checks}
        yield CheckAnswer(
            row.sitting,
            "attention",
            row.name,
            attention.get(row.name),
            1,
            row.position,
            row.answer,
            row.passed,
            row.shown,
            row.at,
        )
