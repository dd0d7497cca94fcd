"""What a stage of the toy may draw by: long questions, or those of which least is known."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from survey.contracts.instruments import Priority

if TYPE_CHECKING:
    from survey.models import Assignment, Question


class ByLetters(Priority):
    """Questions of many letters first. It needs no predictor and no answer."""

    name = "letters"

    def of(
        self,
        *,
        rows: np.ndarray,
        questions: "Sequence[Question]",
        chances: np.ndarray | None,
        answers: "Sequence[Assignment]",
        rng: np.random.Generator,
    ) -> np.ndarray:
        return np.asarray([float(len(questions[row["question"]].plain)) for row in rows])


class ByDoubt(Priority):
    """Questions first of which the predictor's chance is near a half; each answer so far puts a question back."""

    name = "doubt"
    needs_predictor = True

    def of(
        self,
        *,
        rows: np.ndarray,
        questions: "Sequence[Question]",
        chances: np.ndarray | None,
        answers: "Sequence[Assignment]",
        rng: np.random.Generator,
    ) -> np.ndarray:
        if chances is None:
            raise LookupError("doubt is about a predictor's chances, and there are none")
        known = Counter(answer.slot.item.passage.question_id for answer in answers)
        times = np.asarray([known[questions[row["question"]].pk] for row in rows])
        return np.asarray(-np.abs(chances - 0.5) - times, dtype=np.float64)


PRIORITIES: dict[str, Priority] = {priority.name: priority for priority in (ByLetters(), ByDoubt())}
