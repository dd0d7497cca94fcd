"""What answers to the questions estimate as means: the share of right answers."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from survey.contracts.instruments import Estimates
from survey.contracts.measures import SHARE, Estimands, Measure
from survey.figures.words import integer

from .labels import answer_of

if TYPE_CHECKING:
    from survey.models import Assignment, Item


class ReadingEstimates(Estimates):
    units: ClassVar[Mapping[str, str]] = {"right": SHARE}

    def outcomes(self, assignments: Sequence["Assignment"]) -> dict[str, np.ndarray]:
        """1 where the question was answered right; float64 (n,)."""
        answers = [answer_of(assignment) for assignment in assignments]
        return {"right": np.array([answer is not None and answer.right for answer in answers], dtype=np.float64)}

    def estimand(self, *, universe_size: int, n_questions: int) -> str:
        return f"all {integer(universe_size)} passages of the bank"

    def estimands(self, assignments: Sequence["Assignment"], *, thresholds: Sequence[int] = ()) -> Estimands:
        (values,) = self.outcomes(assignments).values()
        return Estimands(
            [
                Measure(
                    *("right", "share of questions answered right", SHARE, values),
                    sentence="{} of questions are answered right",
                )
            ]
        )

    def divisions(self, items: Sequence["Item"]) -> dict[str, np.ndarray]:
        return {"source": np.array([item.read_passage.question.task.name for item in items], dtype=str)}
