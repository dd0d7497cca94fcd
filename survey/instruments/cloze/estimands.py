"""What cloze answers estimate as means: the share of words that are the sentence's own."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from survey.contracts.instruments import Estimates
from survey.contracts.measures import SHARE, Estimands, Measure
from survey.figures.words import integer

from .labels import judged_word_of

if TYPE_CHECKING:
    from survey.models import Assignment, Item


class ClozeEstimates(Estimates):
    """`lenient`: a slip of one letter still counts as the sentence's own word."""

    units: ClassVar[Mapping[str, str]] = {"match": SHARE}

    def __init__(self, *, lenient: bool) -> None:
        self._lenient = lenient

    def outcomes(self, assignments: Sequence["Assignment"]) -> dict[str, np.ndarray]:
        """1 where the word is the sentence's own, by the study's normalisation; float64 (n,)."""
        scores = [judged_word_of(assignment) for assignment in assignments]
        matches = [score is not None and (score.lenient if self._lenient else score.exact) for score in scores]
        return {"match": np.array(matches, dtype=np.float64)}

    def estimand(self, *, universe_size: int, n_questions: int) -> str:
        return f"all {integer(universe_size)} positions in the bank's {integer(n_questions)} sentences"

    def estimands(self, assignments: Sequence["Assignment"], *, thresholds: Sequence[int] = ()) -> Estimands:
        (values,) = self.outcomes(assignments).values()
        return Estimands(
            [
                Measure(
                    *("match", "share of words that are the sentence's own", SHARE, values),
                    sentence="{} of the words that people give are the sentence's own",
                )
            ]
        )

    def divisions(self, items: Sequence["Item"]) -> dict[str, np.ndarray]:
        return {
            "source": np.array([item.asked_word.question.task.name for item in items], dtype=str),
            "position": np.array([position_part(item.asked_word.position) for item in items], dtype=str),
        }


def position_part(position: int) -> str:
    """The part of a sentence that a position is in, by the words before it."""
    for last in (3, 6, 9):
        if position <= last:
            return f"{last - 2 if last > 3 else 0} to {last} words before"
    return "10 or more words before"
