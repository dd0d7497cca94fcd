"""The toy's label, whether a guess names a word of the question, learnt from the question's text and its length."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from predictors.features import Features
from survey.contracts.instruments import AnswerPart, Learning, Metric

from .labels import total_of

if TYPE_CHECKING:
    from survey.models import Assignment, Question

SAMPLES = 200
LONG = 21


class ToyLearning(Learning):
    metrics = (Metric("brier", "Brier score", highest_first=False, head="Brier", chance="one half has 0.25"),)
    parts = (AnswerPart("all", "over all answers"), AnswerPart("long", "on questions of more than 21 letters", "long"))
    reads = "features"

    def inputs(self, *, rows: np.ndarray, questions: "Sequence[Question]") -> Sequence[Features]:
        return [features_of(questions[row["question"]]) for row in rows]

    def examples(self, assignments: "Sequence[Assignment]") -> tuple[Sequence[Features], np.ndarray]:
        features = [features_of(assignment.slot.item.passage.question) for assignment in assignments]
        return features, np.asarray([float(total_of(assignment) > 0) for assignment in assignments])

    def evaluate(
        self,
        assignments: "Sequence[Assignment]",
        scores: np.ndarray,
        *,
        weights: np.ndarray | None,
        clusters: Sequence[np.ndarray],
        rng: np.random.Generator,
    ) -> dict[str, Any]:
        means, intervals = self._means(assignments, (self._labels(assignments) - scores) ** 2, weights, clusters, rng)
        return {"n": len(assignments), "brier": means, "intervals": {"brier": intervals}}

    def compare(
        self,
        assignments: "Sequence[Assignment]",
        scores: np.ndarray,
        others: np.ndarray,
        *,
        weights: np.ndarray | None,
        clusters: Sequence[np.ndarray],
        rng: np.random.Generator,
    ) -> dict[str, Any]:
        labels = self._labels(assignments)
        losses = (labels - scores) ** 2 - (labels - others) ** 2
        means, intervals = self._means(assignments, losses, weights, clusters, rng)
        cells = {part: {"difference": means[part], "interval": intervals[part]} for part in means}
        return {"brier": cells}

    def _labels(self, assignments: "Sequence[Assignment]") -> np.ndarray:
        return self.examples(assignments)[1]

    def _means(
        self,
        assignments: "Sequence[Assignment]",
        losses: np.ndarray,
        weights: np.ndarray | None,
        clusters: Sequence[np.ndarray],
        rng: np.random.Generator,
    ) -> tuple[dict[str, float | None], dict[str, list[float] | None]]:
        """The weighted mean of these losses (n,) in each part, and its interval over resampled clusters."""
        weighing = np.ones(len(losses)) if weights is None else weights
        letters = np.asarray([row.numbers["letters"] for row in self.examples(assignments)[0]])
        drawn = np.ones((SAMPLES, len(losses)))
        for cluster in clusters:
            names, place = np.unique(cluster, return_inverse=True)
            drawn *= rng.multinomial(len(names), np.full(len(names), 1 / len(names)), size=SAMPLES)[:, place]
        figures: dict[str, float | None] = {}
        intervals: dict[str, list[float] | None] = {}
        for part, where in (("all", np.ones(len(losses), dtype=bool)), ("long", letters > LONG)):
            figures[part], intervals[part] = None, None
            if not where.any():
                continue
            figures[part] = float(np.average(losses[where], weights=weighing[where]))
            counts = (drawn * weighing)[:, where]
            non_empty = counts.sum(axis=1) > 0
            means = (counts[non_empty] @ losses[where]) / counts[non_empty].sum(axis=1)
            intervals[part] = [float(bound) for bound in np.quantile(means, [0.025, 0.975])]
        return figures, intervals


def features_of(question: "Question") -> Features:
    return Features(texts={"question": question.plain}, numbers={"letters": float(len(question.plain))})
