"""The toy's label, whether a guess names a word of the question, learnt from the question's text and its length."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from predictors.features import Features
from survey.contracts.binary_learning import BinaryLearning
from survey.contracts.instruments import AnswerPart

from .labels import total_of

if TYPE_CHECKING:
    from survey.models import Assignment, Question

LONG = 21


class ToyLearning(BinaryLearning):
    parts = (*BinaryLearning.parts, AnswerPart("long", "on questions of more than 21 letters", "long"))
    reads = "features"

    def inputs(self, *, rows: np.ndarray, questions: "Sequence[Question]") -> Sequence[Features]:
        return [features_of(questions[row["question"]]) for row in rows]

    def examples(self, assignments: "Sequence[Assignment]") -> tuple[Sequence[Features], np.ndarray]:
        features = [features_of(assignment.slot.item.passage.question) for assignment in assignments]
        return features, np.asarray([float(total_of(assignment) > 0) for assignment in assignments])

    def masks_of(self, inputs: Sequence[Features]) -> dict[str, np.ndarray]:
        return {"long": np.array([features.numbers["letters"] > LONG for features in inputs], dtype=bool)}


def features_of(question: "Question") -> Features:
    return Features(texts={"question": question.plain}, numbers={"letters": float(len(question.plain))})
