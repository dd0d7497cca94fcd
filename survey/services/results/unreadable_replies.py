"""What reports say of replies that could not be read, beside how often a model is right."""

from collections import Counter
from collections.abc import Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from survey.models.language_model import ModelAnswerQuerySet


def notes_on_unreadable(answers: "ModelAnswerQuerySet", *, questions: Collection[int] | None = None) -> list[str]:
    """A sentence for each language model with replies that could not be read, among these answers that figures count.
    `questions`: only answers to these, by primary key."""
    rows = answers.graded().order_by("language_model__name")
    counted: Counter[str] = Counter()
    replies: Counter[str] = Counter()
    for model, question, unreadable in rows.values_list("language_model__name", "question", "unreadable"):
        if questions is None or question in questions:
            counted[model] += 1
            replies[model] += unreadable
    return [
        f"{model}: {count:,} of its replies to {counted[model]:,} questions could not be read; they count as not right"
        for model, count in replies.items()
        if count
    ]
