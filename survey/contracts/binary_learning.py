"""A label that is yes or no, with everything done by which predictors of it are judged."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from predictors import evaluation

from .learning import AnswerPart, Learning, Metric

if TYPE_CHECKING:
    from survey.models import Assignment


class BinaryLearning(Learning):
    """Learns a label that is 0 or 1, or a share between. A subclass says what it is: `inputs` and `examples`.

    Predictors are judged by negative log likelihood and area under the ROC curve, over all answers and over the parts
    that a subclass adds to `parts` and gives in `masks_of`. Intervals resample respondents, and items where an item has
    several answers (`predictors.evaluation`).
    """

    metrics = (
        Metric(
            "nll",
            "Negative log likelihood",
            highest_first=False,
            chance="a coin toss has 0.693",
            is_log_score=True,
        ),
        Metric("auc", "Area under the ROC curve", highest_first=True, chance="a coin toss has 0.5"),
    )
    parts: ClassVar[Sequence[AnswerPart]] = (AnswerPart(evaluation.OVERALL, "over all answers"),)

    def masks_of(self, inputs: Sequence[Any]) -> Mapping[str, np.ndarray]:
        """Which of these inputs (n,) belong to each of `parts` but the first: bool (n,) by the part's name."""
        return {}

    def evaluate(
        self,
        assignments: Sequence["Assignment"],
        scores: np.ndarray,
        *,
        weights: np.ndarray | None,
        clusters: Sequence[np.ndarray],
        rng: np.random.Generator,
    ) -> dict[str, Any]:
        inputs, labels = self.examples(assignments)
        return self._evaluated(inputs, labels, scores, weights=weights, cluster=tuple(clusters), rng=rng)

    def compare(
        self,
        assignments: Sequence["Assignment"],
        scores: np.ndarray,
        others: np.ndarray,
        *,
        weights: np.ndarray | None,
        clusters: Sequence[np.ndarray],
        rng: np.random.Generator,
    ) -> dict[str, Any]:
        inputs, labels = self.examples(assignments)
        return self._compared(inputs, labels, scores, others, weights=weights, cluster=tuple(clusters), rng=rng)

    def evaluate_majorities(
        self, assignments: Sequence["Assignment"], labels: np.ndarray, scores: np.ndarray, *, rng: np.random.Generator
    ) -> dict[str, Any]:
        """Chances of one person's label, judged by what most people's is."""
        inputs, _labels = self.examples(assignments)
        items = np.arange(len(labels))
        return self._evaluated(inputs, labels, scores, weights=None, cluster=items, rng=rng)

    def compare_majorities(
        self,
        assignments: Sequence["Assignment"],
        labels: np.ndarray,
        scores: np.ndarray,
        others: np.ndarray,
        *,
        rng: np.random.Generator,
    ) -> dict[str, Any]:
        inputs, _labels = self.examples(assignments)
        items = np.arange(len(labels))
        return self._compared(inputs, labels, scores, others, weights=None, cluster=items, rng=rng)

    def _evaluated(
        self,
        inputs: Sequence[Any],
        labels: np.ndarray,
        scores: np.ndarray,
        *,
        weights: np.ndarray | None,
        cluster: Any,
        rng: np.random.Generator,
    ) -> dict[str, Any]:
        masks = self.masks_of(inputs)
        return dict(
            evaluation.evaluate_with_intervals(labels, scores, masks, sample_weight=weights, cluster=cluster, rng=rng)
        )

    def _compared(
        self,
        inputs: Sequence[Any],
        labels: np.ndarray,
        scores: np.ndarray,
        others: np.ndarray,
        *,
        weights: np.ndarray | None,
        cluster: Any,
        rng: np.random.Generator,
    ) -> dict[str, Any]:
        masks = self.masks_of(inputs)
        differences = evaluation.paired_difference(
            labels, scores, others, masks, sample_weight=weights, cluster=cluster, rng=rng
        )
        return {metric: dict(cells) for metric, cells in differences.items()}
