"""What comparisons estimate as means: how often people favour the true token, and what chance they give it.

The loss and the perplexity of people are no means over answers: the report `token_comparison` has them.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from survey.contracts.instruments import Estimates
from survey.contracts.measures import SHARE, Estimands, Measure
from survey.figures.words import integer

from .analysis.rewards import UNSURE
from .labels import stated_of

if TYPE_CHECKING:
    from survey.models import Assignment, Item


class ComparisonEstimates(Estimates):
    units: ClassVar[Mapping[str, str]] = {"true_favoured": SHARE}

    def outcomes(self, assignments: Sequence["Assignment"]) -> dict[str, np.ndarray]:
        """1 where the true token was given more than half; float64 (n,)."""
        return {"true_favoured": (_percent(assignments) > UNSURE).astype(np.float64)}

    def estimand(self, *, universe_size: int, n_questions: int) -> str:
        return f"all {integer(universe_size)} comparisons drawn for the bank's {integer(n_questions)} texts"

    def estimands(self, assignments: Sequence["Assignment"], *, thresholds: Sequence[int] = ()) -> Estimands:
        percent = _percent(assignments)
        return Estimands(
            [
                Measure(
                    "true_favoured",
                    "share of answers that give the true token more than 50 %",
                    SHARE,
                    (percent > UNSURE).astype(np.float64),
                    sentence="in {} of answers the true token gets more than 50 %",
                ),
                Measure(
                    *("percent_true", "chance given to the true token", "percentage points", percent),
                    span=(0, 100),
                    sentence="the true token gets {} of 100 on average",
                ),
            ]
        )

    def divisions(self, items: Sequence["Item"]) -> dict[str, np.ndarray]:
        return {
            "source": np.array([item.token_pair.question.task.name for item in items], dtype=str),
            "true token": np.array([_kind(item.token_pair.context.true_text) for item in items], dtype=str),
        }


def _percent(assignments: Sequence["Assignment"]) -> np.ndarray:
    stated_chances = [stated_of(assignment) for assignment in assignments]
    return np.array([np.nan if chance is None else chance.percent_true for chance in stated_chances], dtype=np.float64)


def _kind(token: str) -> str:
    own = token.strip()
    if own.isdigit():
        return "digits"
    if not any(character.isalpha() for character in own):
        return "punctuation"
    return "begins a word" if token[:1].isspace() else "goes on"
