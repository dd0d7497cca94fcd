"""The label (did the belief change), and how predictors of it are judged: overall and by the evidence's outcome."""

from collections.abc import Collection, Iterator, Sequence

import numpy as np

from predictors import evaluation
from predictors.hardness import COLUMNS
from predictors.pairs import Pair as PredictorPair
from survey.contracts.binary_learning import BinaryLearning
from survey.contracts.instruments import AnswerPart, AnswersRead, Baseline
from survey.models import Assignment, Question

from .hardness import columns_and_sources
from .labels import beliefs_of


class BeliefLearning(BinaryLearning):
    """`threshold`: a change counts if it exceeds this, in points; None without a study.

    With several evidence questions a predictor learns from the first one that a person saw: what it alone changed.
    """

    parts = (
        *BinaryLearning.parts,
        AnswerPart("previous_correct", "after a correct answer", "after correct"),
        AnswerPart("previous_incorrect", "after an incorrect one", "after incorrect"),
    )
    baselines = (Baseline("previous_correct", {}), Baseline("same_task", {}))
    reads = "pairs"
    columns = COLUMNS

    def __init__(self, threshold: int | None) -> None:
        self._threshold = threshold

    def inputs(self, *, rows: np.ndarray, questions: Sequence[Question]) -> Sequence[PredictorPair]:
        plain = [question.plain for question in questions]
        tasks = [question.task.name for question in questions]
        return [
            PredictorPair(plain[e], plain[t], tasks[e], tasks[t], int(outcome))
            for e, t, outcome in zip(
                rows["evidence"].tolist(), rows["target"].tolist(), rows["outcome"].tolist(), strict=True
            )
        ]

    def examples(self, assignments: Sequence[Assignment]) -> tuple[Sequence[PredictorPair], np.ndarray]:
        learnt = [(pair, changed) for _index, pair, changed in self._learnable(assignments)]
        return [pair for pair, _changed in learnt], np.asarray([changed for _pair, changed in learnt], dtype=np.float64)

    def columns_of(self, assignments: Sequence[Assignment], names: Collection[str]) -> dict[str, np.ndarray]:
        return self.columns_and_sources(assignments, names)[0]

    def columns_and_sources(
        self, assignments: Sequence[Assignment], names: Collection[str]
    ) -> tuple[dict[str, np.ndarray], dict[str, AnswersRead]]:
        learnt = [assignments[index] for index, _pair, _changed in self._learnable(assignments)]
        return columns_and_sources(learnt, names)

    def masks_of(self, inputs: Sequence[PredictorPair]) -> dict[str, np.ndarray]:
        return dict(evaluation.parts_by_outcome([pair.outcome for pair in inputs]))

    def learnable(self, assignments: Sequence[Assignment]) -> np.ndarray:
        fit = np.zeros(len(assignments), dtype=bool)
        fit[[index for index, _pair, _changed in self._learnable(assignments)]] = True
        return fit

    def _learnable(self, assignments: Sequence[Assignment]) -> Iterator[tuple[int, PredictorPair, int]]:
        """Index, pair and label of every complete assignment that showed evidence. Re-asking controls show none."""
        if self._threshold is None:
            raise RuntimeError("belief_update: labels need a study, since they use its threshold")
        for index, assignment in enumerate(assignments):
            pair, beliefs = assignment.slot.item.pair, beliefs_of(assignment)
            changed = beliefs.after_first.changed(self._threshold)
            if pair.evidence_id is None or changed is None:
                continue
            step = pair.steps[beliefs.steps[0][0] - 1 if beliefs.steps else 0]
            texts = (step.question.plain, pair.target.plain)
            tasks = (step.question.task.name, pair.target.task.name)
            yield index, PredictorPair(*texts, *tasks, int(step.correct)), int(changed)
