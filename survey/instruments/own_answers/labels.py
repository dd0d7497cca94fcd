"""Whether a person's answer is right, by the same rules as for a language model's."""

from decimal import Decimal
from typing import TYPE_CHECKING

from survey.contracts.screens import Points
from survey.services.banks.answer_checking import CheckedAnswer, check_answer

if TYPE_CHECKING:
    from survey.models import Assignment, Question

    from .models import OwnAnswer

RULE, VERSION = "correct", "1"


def verdict_on(text: str, question: "Question") -> CheckedAnswer:
    return check_answer(text, question.answer, question=question.text)


def points_of(answer: "OwnAnswer") -> Points:
    return Points(value=Decimal(int(answer.correct)), rule=RULE, version=VERSION)


def answer_of(assignment: "Assignment") -> "OwnAnswer | None":
    """The stored answer; None if it was not given (yet)."""
    return next(
        (response.own_answer for response in assignment.responses.all() if hasattr(response, "own_answer")), None
    )
