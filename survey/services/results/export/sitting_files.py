"""The files of an export that are not about items: forms, checks, and reports on questions. Imports models and below.

Rows are in the order of stages and sittings, and are read while they are written.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet

from survey.contracts.tables import Column, ExtraFile
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
from survey.services.results.export.columns import in_utc
from survey.services.results.export.increments import changed_since
from survey.services.sittings import debriefing, quotas
from survey.study_file import AttentionCheckConfig, CheckConfig

CHUNK = 500
WHO = (
    Column("study", "text", "The study's short name."),
    Column("stage", "number", "The stage, from 1.", whole=True),
    Column("respondent", "text", "Pseudonym of the respondent."),
    Column("simulated", "0 or 1", "1: the respondent was a simulated one."),
)
FORMS = (
    *WHO,
    Column("block", "text", "The form's name in the study file; a ready form's is fixed."),
    Column("version", "text", "The form's version; a ready form's changes with its questions."),
    Column("field", "text", "The question's name."),
    Column(
        "answer",
        "text, number or JSON list",
        "The option's value (its text in the file's first language where it has none), the number, the scale's point "
        "from 1, the text, or a list of values; prefer_not_to_say where that was chosen. After a debriefing that asks "
        "for it, my_data is use; of who withdrew nothing is left here.",
    ),
    Column("at", "time, UTC", "When the page was sent."),
)
CHECKS = (
    *WHO,
    Column("kind", "text", "comprehension: before the items. attention: between them."),
    Column("check", "text", "The check's name."),
    Column("attempt", "number", "At the comprehension checks 1 or 2; at an attention check 1.", whole=True),
    Column("after_items", "number", "How many items had been answered before an attention check.", whole=True),
    Column(
        "answer",
        "number",
        "The chosen option's place in the study file, from 1; the right one comes first there.",
        whole=True,
    ),
    Column("answer_text", "text", "Its words, in the file's first language."),
    Column("passed", "0 or 1", "1: a right option was chosen."),
    Column("shown", "JSON list", "The options' places in the study file, in the order in which they were shown."),
    Column("at", "time, UTC", "When the page was sent."),
)
PRACTICE = (
    *WHO,
    Column("number", "number", "1 for the practice item's first page, and so on.", whole=True),
    Column("screen", "text", "The instrument's name for the page."),
    Column("answers", "JSON object", "The fields that were accepted, by name. They count for nothing."),
    Column("at", "time, UTC", "When the page was sent."),
)
QUOTAS = (
    *WHO,
    Column("quota", "text", "The quota's name in the study file."),
    Column("cell", "text", "The cell in which the person belongs; empty outside of all."),
    Column("state", "text", "held, full (the sitting ended), outside (in no cell), or lost (while it was expired)."),
    Column("counts", "0 or 1", "1: the place is taken now. Who expires among the items gives it back."),
    Column("answers", "JSON object", "The answers that decided, by question."),
    Column("at", "time, UTC", "When it was decided."),
)
REPORTS = (
    *WHO,
    Column("slot", "number", "The slot of the item, as in answers.csv.", whole=True),
    Column("item", "text", "The item's key, as in answers.csv."),
    Column("position", "number", "Place in the sitting, from 1.", whole=True),
    Column("screen", "text", "The screen that the report was sent from."),
    Column("text", "text", "What the respondent wrote."),
    Column("at", "time, UTC", "When it was sent."),
)


def sitting_files(study: Study, *, since: datetime | None) -> Iterator[ExtraFile]:
    yield ExtraFile("forms.csv", FORMS, _forms(study, since))
    yield ExtraFile("checks.csv", CHECKS, _checks(study, since))
    yield ExtraFile("practice.csv", PRACTICE, _practice(study, since))
    yield ExtraFile("question_reports.csv", REPORTS, _reports(study, since))
    if study.config.quotas:
        yield ExtraFile("quotas.csv", QUOTAS, _quotas(study, since))


def _rows(rows: QuerySet[Any], study: Study, since: datetime | None, *related: str) -> Iterator[Any]:
    selected = rows.filter(changed_since(since, "sitting__"), sitting__stage__study=study)
    selected = selected.select_related("sitting__respondent", "sitting__stage", *related)
    return selected.order_by("sitting__stage__index", "sitting", "at", "pk").iterator(CHUNK)


def _who(sitting: Sitting, study: Study) -> list[Any]:
    return [study.slug, sitting.stage.index, sitting.respondent.pseudonym, sitting.respondent.is_simulated]


def _forms(study: Study, since: datetime | None) -> Iterator[Sequence[Any]]:
    for row in _rows(FormAnswer.objects.all(), study, since):
        for name, answer in sorted(row.answers.items()):
            value = json.dumps(answer, ensure_ascii=False) if isinstance(answer, list) else answer
            yield [*_who(row.sitting, study), row.block, row.version, name, value, in_utc(row.at)]
    for row in _rows(DataChoice.objects.all(), study, since):
        value = debriefing.USE if row.may_use else debriefing.WITHDRAW
        yield [*_who(row.sitting, study), "debriefing", None, debriefing.FIELD, value, in_utc(row.at)]


def _checks(study: Study, since: datetime | None) -> Iterator[Sequence[Any]]:
    for row in _rows(CheckAttempt.objects.all(), study, since):
        # Indices are of the file that the sitting began with: a later one may have other options, or none.
        file = study.as_of(row.sitting.study_sha256)
        comprehension = {check.name: check for block in file.blocks for check in block.checks}
        for name, answer in sorted(row.answers.items()):
            order = row.shown.get(name)
            yield [
                *_who(row.sitting, study),
                *("comprehension", name, row.attempt, None),
                *(answer + 1, _words(comprehension, name, answer), answer == 0, _places(order), in_utc(row.at)),
            ]
    for row in _rows(AttentionAnswer.objects.all(), study, since):
        file = study.as_of(row.sitting.study_sha256)
        attention = {check.name: check for check in file.sitting.attention_checks}
        yield [
            *_who(row.sitting, study),
            *("attention", row.name, 1, row.position),
            *(row.answer + 1, _words(attention, row.name, row.answer), row.passed, _places(row.shown), in_utc(row.at)),
        ]


def _quotas(study: Study, since: datetime | None) -> Iterator[Sequence[Any]]:
    taking = quotas.taking(QuotaPlace.objects.filter(pk=OuterRef("pk"))).order_by()
    for row in _rows(QuotaPlace.objects.annotate(counts=Exists(taking)), study, since):
        answers = json.dumps(row.answers, ensure_ascii=False, sort_keys=True)
        yield [
            *_who(row.sitting, study),
            *(row.quota, row.cell or None, row.state, row.counts, answers, in_utc(row.at)),
        ]


def _practice(study: Study, since: datetime | None) -> Iterator[Sequence[Any]]:
    for row in _rows(PracticeAnswer.objects.all(), study, since):
        answers = json.dumps(row.data, ensure_ascii=False, sort_keys=True)
        yield [*_who(row.sitting, study), row.number, row.screen, answers, in_utc(row.at)]


def _reports(study: Study, since: datetime | None) -> Iterator[Sequence[Any]]:
    for row in _rows(QuestionReport.objects.all(), study, since, "assignment__slot__item"):
        slot = row.assignment.slot
        yield [
            *_who(row.sitting, study),
            *(slot.number, slot.item.key, row.assignment.position, row.screen, row.text, in_utc(row.at)),
        ]


def _words(
    checks: Mapping[str, CheckConfig] | Mapping[str, AttentionCheckConfig], name: str, answer: int
) -> str | None:
    """None if the file has no such check or option."""
    check = checks.get(name)
    return str(check.options[answer]) if check is not None and answer < len(check.options) else None


def _places(order: Sequence[int] | None) -> str | None:
    return json.dumps([index + 1 for index in order]) if order else None
