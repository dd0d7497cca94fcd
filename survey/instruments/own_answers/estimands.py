"""What people's own answers estimate: the share that is right, and how sure people are."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from survey.contracts.measures import Estimands, Measure

from .labels import answer_of

if TYPE_CHECKING:
    from survey.models import Assignment, Item


def in_words(*, universe_size: int, n_questions: int) -> str:
    return f"all {n_questions:,} questions of this bank that the study asks, each counted once"


def correct_of(assignments: Sequence["Assignment"]) -> np.ndarray:
    """1 where the answer is right; float64 (n,)."""
    return np.array([float(answer is not None and answer.correct) for answer in map(answer_of, assignments)])


def of_answers(assignments: Sequence["Assignment"]) -> Estimands:
    """Share correct; and, over the answers with a confidence, confidence and how much too high it is."""
    correct = correct_of(assignments)
    confidences = [answer and answer.confidence for answer in map(answer_of, assignments)]
    said = np.array([value is not None for value in confidences], dtype=bool)
    confidence = np.array([0 if value is None else value for value in confidences], dtype=np.float64)
    measures = [
        Measure("correct", "share correct", "share", correct, sentence="{} of answers are right"),
        Measure(
            "confidence", "mean confidence", "points", confidence, said, sentence="the mean confidence is {} of 100"
        ),
        Measure(
            *("overconfidence", "confidence less share correct", "points", confidence - 100 * correct, said),
            sentence="confidence less the share of right answers is {}",
        ),
    ]
    return Estimands(measures=measures)


def divisions(items: Sequence["Item"]) -> dict[str, np.ndarray]:
    """By task and domain."""
    tasks = [item.asked_question.question.task for item in items]
    return {
        "task": np.array([task.name for task in tasks], dtype=str),
        "domain": np.array([task.domain or task.name for task in tasks], dtype=str),
    }
