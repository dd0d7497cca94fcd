"""The columns of own answers."""

from types import MappingProxyType

from survey.contracts.exports import AnswerColumn, Answered, AnswerExport


class OwnAnswersExport(AnswerExport):
    first_look = MappingProxyType({"answer": "answer", "key": "key", "correct": "right", "confidence": "how sure"})
    columns = (
        AnswerColumn("question_id", "text", "Id of the question that was answered.", of="question__external_id"),
        AnswerColumn("task", "text", "Task of the question.", of="question__task__name"),
        AnswerColumn("question_text", "text", "The question as in the bank, markup included.", of="question__text"),
        AnswerColumn(
            "answer",
            "text",
            "What the person answered, exactly as given; a letter where options were listed.",
            written=True,
            of=Answered("own_answer__text"),
        ),
        AnswerColumn(
            "stated",
            "text",
            "The answer that was read off it; empty where none could be.",
            written=True,
            of=Answered("own_answer__stated"),
        ),
        AnswerColumn("key", "text", "The bank's answer key.", of="question__answer"),
        AnswerColumn("correct", "0 or 1", "1: the answer is right.", of=Answered("own_answer__correct"), value=int),
        AnswerColumn("reason", "text", "Why no answer could be read off it.", of=Answered("own_answer__reason")),
        AnswerColumn(
            "confidence",
            "percentage points",
            "How sure the person was to be right, 0 to 100; empty where not said.",
            of=Answered("own_answer__confidence"),
        ),
    )
    codebook_note = "Beliefs are whole percentage points."
