"""The toy's columns."""

from collections.abc import Sequence
from functools import partial

from survey.contracts.exports import AnswerColumn, Answered, AnswerExport

from .labels import GUESSES


def _guess(number: int, guesses: Sequence[str]) -> str | None:
    return guesses[number - 1] if number <= len(guesses) else None


class ToyExport(AnswerExport):
    columns = (
        AnswerColumn("question_id", "text", "Id of the question that was to be guessed.", of="question__external_id"),
        *(
            AnswerColumn(
                f"guess_{number}",
                "text",
                f"Guess {number}.",
                of=Answered("guess__text", every=True),
                value=partial(_guess, number),
            )
            for number in range(1, GUESSES + 1)
        ),
        AnswerColumn(
            "points", "number", "Points of all guesses together.", of=Answered("score__value", every=True), value=sum
        ),
    )
