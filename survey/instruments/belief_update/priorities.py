"""By what stages sample items with several evidence questions: the predicted departure from additivity, or how likely
the last evidence still changes the belief.

The predictor knows single pairs. It gives each step the chance that this evidence question alone changes the belief.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from survey.contracts.instruments import Priority

from .analysis import expected
from .labels import beliefs_of
from .sequences import BeliefSequences

if TYPE_CHECKING:
    from survey.models import Assignment, Question

    from .options import BeliefUpdateOptions


class StepPriority(Priority):
    """`additivity` or `last_change`, by the study file's option `priority`."""

    needs_predictor = True

    def __init__(self, options: "BeliefUpdateOptions", sequences: BeliefSequences) -> None:
        self._options, self._sequences = options, sequences
        # A class attribute in the contract; each of the two priorities has its own name in manifests.
        self.name = options.priority  # type: ignore[misc]

    def further_rows(self, rows: np.ndarray) -> np.ndarray:
        steps = range(2, self._sequences.steps + 1)
        return np.concatenate([self._sequences.step_rows(rows, step) for step in steps])

    def of(
        self,
        *,
        rows: np.ndarray,
        questions: "Sequence[Question]",
        chances: np.ndarray | None,
        answers: "Sequence[Assignment]",
        rng: np.random.Generator,
    ) -> np.ndarray:
        """As in the contract."""
        if chances is None:
            raise RuntimeError("belief_update: priorities of steps need a predictor, and the study file was checked")
        by_step = chances.reshape(self._sequences.steps, len(rows)).T
        if self._options.priority == "last_change":
            return expected.last_change(by_step, order=self._options.evidence_order)
        names = [self._sequences.names(step)[1] for step in range(1, self._sequences.steps + 1)]
        outcome = np.stack([rows[name] for name in names], axis=1)
        return expected.departure(
            by_step, outcome, answered(answers, self._sequences.steps), order=self._options.evidence_order
        )


def answered(answers: "Sequence[Assignment]", steps: int) -> expected.AnsweredSteps:
    """The whole answers with steps, as arrays."""
    rows = []
    for answer in answers:
        beliefs, pair_steps = beliefs_of(answer), answer.slot.item.pair.steps
        if beliefs.prior is not None and len(beliefs.steps) == steps:
            correct = [pair_steps[place - 1].correct for place, _after in beliefs.steps]
            rows.append(([beliefs.prior, *(after for _place, after in beliefs.steps)], correct))
    return expected.AnsweredSteps(
        belief=np.array([belief for belief, _correct in rows], dtype=np.float64).reshape(-1, steps + 1),
        correct=np.array([correct for _belief, correct in rows], dtype=bool).reshape(-1, steps),
    )
