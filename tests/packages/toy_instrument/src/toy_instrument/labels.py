"""Points for a guess: how many of the question's words it names."""

from decimal import Decimal
from typing import TYPE_CHECKING

from survey.contracts.screens import Points

if TYPE_CHECKING:
    from survey.models import Assignment

RULE, VERSION = "words_in_question", "2"
GUESSES = 3


def points_of(guess: str, question: str) -> Points:
    return Points(value=Decimal(len(words_in(question) & words_in(guess))), rule=RULE, version=VERSION)


def words_in(text: str) -> set[str]:
    return set(text.lower().split())


def guesses_of(assignment: "Assignment") -> list[str]:
    return [response.guess.text for response in assignment.responses.all() if hasattr(response, "guess")]


def total_of(assignment: "Assignment") -> Decimal:
    scored = (response for response in assignment.responses.all() if hasattr(response, "score"))
    return sum((response.score.value for response in scored), Decimal(0))
