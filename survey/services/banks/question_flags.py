"""Flags of questions: sensitive, broken or excluded, with a reason. Later plans leave flagged questions out.

Stages that are planned already keep them: their slots are shown and count, since a drawn plan never changes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path
from typing import Any

from django.db import transaction
from django.utils import timezone

from survey.contracts.tables import ExtraFile, ValueColumn
from survey.exceptions import FieldErrors, HunchError, NotFound, StateRefused
from survey.input_tables import cells, reader
from survey.input_tables.decoding import LINE_END
from survey.input_tables.problems import Problems
from survey.input_tables.rows import TableRow, column, declared, read_text_file, rows_of
from survey.models import Bank, CandidateSet, Question, Stage
from survey.services.base import rights
from survey.services.base.auditing import record
from survey.services.base.rights import Right

LONGEST_REASON = 500
NAMES_SHOWN = 10


def waiting_stage(bank_id: int) -> Stage | None:
    """A stage between its candidates and its plan: its candidates name questions by position among the unflagged."""
    waiting = CandidateSet.objects.filter(
        stage__study__bank=bank_id, stage__study__test_of__isnull=True, stage__state=Stage.State.DRAFT
    )
    waiting_step = waiting.select_related("stage__study").first()
    return waiting_step.stage if waiting_step else None


def while_waiting(stage: Stage, by: Any) -> str:
    """Why no flag changes now. The stage's name is for those who may know of its study; commands may."""
    named = by is None or rights.may(by, Right.SEE, stage.study_id)
    return (
        f"The candidates of {stage if named else 'a stage on this bank'} are drawn, but it is not planned yet. Plan it "
        "first, so that both use the same questions."
    )


@transaction.atomic
def flag_questions(
    *, bank: Bank, external_ids: Sequence[str], kind: str, reason: str, by: Any = None, via: str = "command"
) -> list[Question]:
    """Flag questions of a bank, or remove their flags (`kind` empty); return those that change.

    Raises:
        FieldErrors: no such kind, a flag without a reason, or a reason that is too long.
        NotFound: the bank lacks one of the questions; nothing is written.
        StateRefused: a stage on this bank has candidates and no plan yet.
    """
    reason = checked_reason(kind, reason)
    wanted = list(dict.fromkeys(external_ids))
    questions = {
        question.external_id: question for question in bank.questions.select_for_update().filter(external_id__in=wanted)
    }
    if strangers := [external_id for external_id in wanted if external_id not in questions]:
        more = f" and {len(strangers) - NAMES_SHOWN} more" if len(strangers) > NAMES_SHOWN else ""
        raise NotFound(f"{bank} has no question called {', '.join(strangers[:NAMES_SHOWN])}{more}: check the ids")
    changed = [
        questions[external_id]
        for external_id in wanted
        if (questions[external_id].flag, questions[external_id].flag_reason) != (kind, reason)
    ]
    stage = waiting_stage(bank.pk) if any(question.flag != kind for question in changed) else None
    if stage is not None:
        raise StateRefused(while_waiting(stage, by))
    now = timezone.now()
    for question in changed:
        before = question.flag
        question.flag, question.flag_reason = kind, reason
        question.flagged_at = now if kind else None
        question.flagged_by = by if kind and getattr(by, "is_authenticated", False) else None
        question.save(update_fields=["flag", "flag_reason", "flagged_at", "flagged_by"])
        record(
            "flag_question",
            f"{bank} question {question.external_id}",
            by=by,
            via=via,
            flag=kind,
            before=before,
            reason=reason,
        )
    return changed


def checked_reason(kind: str, reason: str) -> str:
    """The reason as it is stored with a flag: empty without one.

    Raises:
        FieldErrors: no such kind, a flag without a reason, or a reason that is too long.
    """
    reason = " ".join(reason.split()) if kind else ""
    if kind not in Question.Flag.values:
        raise FieldErrors(
            {"flag": [f"{kind!r} is no flag; there are: {', '.join(filter(None, Question.Flag.values))}"]}
        )
    if kind and not reason:
        raise FieldErrors({"flag_reason": ["Say why: the reason is kept with the flag."]})
    if len(reason) > LONGEST_REASON:
        raise FieldErrors({"flag_reason": [f"Keep it under {LONGEST_REASON} characters; it has {len(reason)}."]})
    return reason


@declared
class FlagRow(TableRow):
    """A question to flag. A list with one id on each line does too."""

    read_by = "`flag_questions FILE --bank NAME`"
    id: cells.Stripped = column("The question's id in the bank.")
    reason: cells.Stripped = column("Why; otherwise `--reason` says it for all.", "")


@dataclass(frozen=True)
class Wish:
    """A question that a file names, and its reason if the file gives one."""

    external_id: str
    reason: str = ""


def read_ids(path: Path) -> list[Wish]:
    """Questions from a file: a table of `FlagRow`, or a list with one id per line.

    Raises:
        FileErrors: it cannot be read, or names no question.
    """
    table = reader.read_path(path, guesses=False)
    problems = Problems()
    if "id" in table.header:
        wishes = [Wish(row.id, row.reason) for row in rows_of(FlagRow, table, problems)]
    else:
        wishes = [Wish(line.strip()) for line in LINE_END.split(read_text_file(path, problems))]
    problems.raise_if_any()
    wishes = [wish for wish in wishes if wish.external_id]
    if not wishes:
        raise HunchError(f"{path}: names no question: write one id a line, or a CSV file with a column id")
    return wishes


# A table for exports

# Of a question; the values are lookups.
COLUMNS = (
    ValueColumn("position", "number", "Place in the bank's fixed order, from 0; items are named by it.", whole=True),
    ValueColumn("id", "text", "The question's id in the bank.", value="external_id"),
    ValueColumn("task", "text", "The task that it belongs to.", value=lambda row: row.task__name or None),
    ValueColumn("domain", "text", "The task's domain.", value=lambda row: row.task__domain or None),
    ValueColumn(
        "flag",
        "text",
        "sensitive, broken or excluded, by now; empty without a flag.",
        value=lambda row: row.flag or None,
    ),
    ValueColumn("flag_reason", "text", "Why.", value=lambda row: row.flag_reason or None),
    ValueColumn(
        "flagged_at",
        "time, UTC",
        "When; plans drawn before still hold the question.",
        value=lambda row: row.flagged_at and row.flagged_at.astimezone(UTC).isoformat(),
    ),
)


def questions_file(bank: Bank) -> ExtraFile:
    """Every question of the bank with its flag."""
    facts = ("position", "external_id", "task__name", "task__domain", "flag", "flag_reason", "flagged_at")
    rows = bank.questions.order_by("position").values_list(*facts, named=True)
    return ExtraFile.of("questions.csv", COLUMNS, rows.iterator(chunk_size=2000))
