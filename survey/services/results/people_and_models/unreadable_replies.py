"""What reports say of replies that could not be read, next to how often a model is right."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, NamedTuple

from survey.contracts.tables import Column

if TYPE_CHECKING:
    from survey.models.language_model import ModelAnswerQuerySet

UNREADABLE = Column(
    "unreadable",
    "number",
    "How many of the model's replies could not be read; they count as not right. Empty where its answers are a file's.",
    whole=True,
)


class Unreadable(NamedTuple):
    """To how many questions a model has answers that figures count, and how many of its replies could not be read."""

    questions: int
    replies: int


def unreadable_by_model(
    answers: "ModelAnswerQuerySet", *, questions: Collection[int] | None = None
) -> dict[str, Unreadable]:
    """By name, every language model with answers that figures count. `questions`: only answers to these, by primary
    key."""
    counts: dict[str, Unreadable] = {}
    rows = answers.graded().order_by("language_model__name")
    for model, question, unreadable in rows.values_list("language_model__name", "question", "unreadable"):
        if questions is None or question in questions:
            before = counts.get(model, Unreadable(0, 0))
            counts[model] = Unreadable(before.questions + 1, before.replies + unreadable)
    return counts


def notes_on_unreadable(counts: Mapping[str, Unreadable]) -> list[str]:
    """A sentence for each model with replies that could not be read."""
    return [
        f"{model}: {count.replies:,} of its replies to {count.questions:,} questions could not be read; they count as "
        "not right"
        for model, count in counts.items()
        if count.replies
    ]
