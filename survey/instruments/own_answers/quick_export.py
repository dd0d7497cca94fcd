"""The columns of `export`, from tuples: the same values without an object for each answer."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from survey.contracts.exports import QuickExport, QuickPlace

from .models import AskedQuestion


class OwnAnswersQuickExport(QuickExport):
    response_facts = tuple(f"own_answer__{name}" for name in ("text", "stated", "correct", "reason", "confidence"))

    def items(self, keys: Collection[int]) -> Mapping[int, Any]:
        rows = AskedQuestion.objects.filter(pk__in=keys).values_list(
            "pk", "question__external_id", "question__task__name", "question__text", "question__answer"
        )
        return {row[0]: row[1:] for row in rows}

    def values(self, item: Any, responses: Sequence[Sequence[Any]], place: QuickPlace) -> Sequence[Any]:
        question, task, question_text, key = item
        answered = next((response[1:] for response in responses if response[1] is not None), None)
        if answered is None:
            return (question, task, question_text, None, None, key, None, None, None)
        text, stated, correct, reason, confidence = answered
        return (question, task, question_text, text, stated, key, int(correct), reason, confidence)
