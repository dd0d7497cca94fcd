"""Which questions a study draws from."""

from collections.abc import Iterable

from survey.contracts import instruments
from survey.models import Question, Study


def eligible_questions(study: Study) -> list[Question]:
    """The bank's questions that the study's filters and flags leave and its instrument can ask about, in the bank's
    fixed order."""
    return instruments.of_study(study).usable(filtered_questions(study))


def filtered_questions(study: Study) -> list[Question]:
    """The bank's questions that the study's filters and flags leave, in the bank's fixed order."""
    wanted = study.config.questions
    questions = study.bank.questions.filter(flag=Question.Flag.NONE).select_related("task").order_by("position")
    if wanted.tasks:
        questions = questions.filter(task__name__in=wanted.tasks)
    return [
        question
        for question in questions
        if (wanted.max_characters is None or len(question.plain) <= wanted.max_characters)
        and (wanted.max_words is None or question.word_count <= wanted.max_words)
    ]


def word_counts(questions: Iterable[int]) -> dict[int, int]:
    """How many words these questions (by primary key) have, their options included."""
    rows = Question.objects.filter(pk__in=set(questions)).only("text").order_by("pk")
    return {question.pk: question.word_count for question in rows}
