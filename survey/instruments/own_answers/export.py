"""The columns of own answers."""

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from survey.contracts.exports import AnswerExport
from survey.contracts.tables import Column

from .labels import answer_of
from .quick_export import OwnAnswersQuickExport

if TYPE_CHECKING:
    from survey.models import Assignment

COLUMNS = (
    Column("question_id", "text", "Id of the question that was answered."),
    Column("task", "text", "Task of the question."),
    Column("question_text", "text", "The question as in the bank, markup included."),
    Column(
        "answer",
        "text",
        "What the person answered, exactly as given; a letter where options were listed.",
        written=True,
    ),
    Column("stated", "text", "The answer that was read off it; empty where none could be.", written=True),
    Column("key", "text", "The bank's answer key."),
    Column("correct", "0 or 1", "1: the answer is right."),
    Column("reason", "text", "Why no answer could be read off it."),
    Column("confidence", "percentage points", "How sure the person was to be right, 0 to 100; empty where not said."),
)


def values(assignment: "Assignment") -> list[Any]:
    question = assignment.slot.item.asked_question.question
    answer = answer_of(assignment)
    cells = (
        [None] * 5
        if answer is None
        else [answer.text, answer.stated, int(answer.correct), answer.reason, answer.confidence]
    )
    text, stated, correct, reason, confidence = cells
    return [
        question.external_id,
        question.task.name,
        question.text,
        text,
        stated,
        question.answer,
        correct,
        reason,
        confidence,
    ]


class OwnAnswersExport(AnswerExport):
    columns = COLUMNS
    first_look = MappingProxyType({"answer": "answer", "key": "key", "correct": "right", "confidence": "how sure"})
    codebook_note = "Beliefs are whole percentage points."

    def values(self, assignment: "Assignment") -> list[Any]:
        return values(assignment)

    @property
    def quick(self) -> OwnAnswersQuickExport:
        return OwnAnswersQuickExport()
