"""What the toy's answers are estimates of: items with a right word, right words per word guessed, and points."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from survey.contracts.instruments import Estimates
from survey.contracts.measures import SHARE, Estimands, Measure

from .labels import guesses_of, total_of, words_in

if TYPE_CHECKING:
    from survey.models import Assignment, Item


class ToyEstimates(Estimates):
    units = {"found": SHARE, "points": "points"}

    def outcomes(self, assignments: "Sequence[Assignment]") -> dict[str, np.ndarray]:
        points = np.asarray([float(total_of(assignment)) for assignment in assignments])
        return {"found": (points > 0).astype(float), "points": points}

    def estimands(self, assignments: "Sequence[Assignment]", *, thresholds: Sequence[int] = ()) -> Estimands:
        outcomes = self.outcomes(assignments)
        words = [sum(len(words_in(guess)) for guess in guesses_of(assignment)) for assignment in assignments]
        return Estimands(
            measures=[
                Measure("found", "items with a right word", "share", outcomes["found"]),
                Measure("accuracy", "right words per word guessed", "share", outcomes["points"], per=np.asarray(words)),
                Measure("points", "points", "points", outcomes["points"]),
            ],
            retested=("found", "accuracy"),
        )

    def divisions(self, items: "Sequence[Item]") -> dict[str, np.ndarray]:
        """By where the question stands in the bank."""
        places = np.asarray([item.passage.question.position for item in items], dtype=int)
        return {"half": np.where(places % 2 == 0, "even", "odd").astype(str)}
