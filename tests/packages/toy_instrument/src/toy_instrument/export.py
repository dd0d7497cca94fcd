"""The toy's columns."""

from typing import TYPE_CHECKING, Any

from survey.contracts.exports import AnswerExport
from survey.contracts.tables import Column

from .labels import GUESSES, guesses_of, total_of

if TYPE_CHECKING:
    from survey.models import Assignment


class ToyExport(AnswerExport):
    columns = (
        Column("question_id", "text", "Id of the question that was to be guessed."),
        *(Column(f"guess_{number}", "text", f"Guess {number}.") for number in range(1, GUESSES + 1)),
        Column("points", "number", "Points of all guesses together."),
    )

    def values(self, assignment: "Assignment") -> list[Any]:
        guesses = guesses_of(assignment)
        return [
            assignment.slot.item.passage.question.external_id,
            *(guesses + [None] * GUESSES)[:GUESSES],
            total_of(assignment) if guesses else None,
        ]
