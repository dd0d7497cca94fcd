"""People's own answers as arrays, for reports that compare them with what others expect."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from survey.models import Assignment

from .estimands import correct_of


@dataclass(frozen=True, eq=False)
class AnswerRows:
    """What people themselves answered: n questions by primary key, and 1 where the answer is right; arrays of n."""

    question: np.ndarray
    correct: np.ndarray


def answer_rows(assignments: Sequence[Assignment]) -> AnswerRows:
    """Who answered which question, and whether rightly, for n complete answers in order."""
    return AnswerRows(
        question=np.array(
            [assignment.slot.item.asked_question.question_id for assignment in assignments], dtype=np.int64
        ),
        correct=correct_of(assignments).astype(np.int8),
    )
