"""What people's judgements estimate over all items: how often A, and the reply shown first, is preferred."""

from collections.abc import Sequence

import numpy as np

from survey.contracts.instruments import Estimates
from survey.contracts.measures import SHARE, Estimands, Measure
from survey.figures.words import integer
from survey.models import Assignment, Item

from .labels import judgement_of, rating_of
from .models import MIDDLE


class PreferenceEstimates(Estimates):
    """`models`: those of the study file, in its order; none without a study."""

    units = {"a_better": SHARE}

    def __init__(self, models: Sequence[str] = ()) -> None:
        self._models = models

    def outcomes(self, assignments: Sequence[Assignment]) -> dict[str, np.ndarray]:
        """`a_better`: 1 where the reply of the model that the study file names first is better."""
        ratings = [rating_of(assignment) for assignment in assignments]
        return {"a_better": np.array([float(rating is not None and rating > 0) for rating in ratings])}

    def estimand(self, *, universe_size: int, n_questions: int) -> str:
        return f"all {integer(universe_size)} pairs of replies to the bank's {integer(n_questions)} prompts"

    def estimands(self, assignments: Sequence[Assignment], *, thresholds: Sequence[int] = ()) -> Estimands:
        judgements = [judgement_of(assignment) for assignment in assignments]
        judged = np.array(
            [judgement is not None and judgement.place is not None for judgement in judgements], dtype=bool
        )
        places = np.array(
            [MIDDLE if judgement is None or judgement.place is None else judgement.place for judgement in judgements]
        )
        ratings = np.array([rating_of(assignment) or 0.0 for assignment in assignments])
        first, second = self._models if len(self._models) == 2 else ("the model named first", "the other one")
        measures = [
            Measure(
                "a_better",
                "share that prefers the model named first",
                SHARE,
                np.where(judged, ratings > 0, 0.0),
                judged,
                sentence=f"in {{}} of comparisons {first} is preferred to {second}",
            ),
            Measure(
                "first_better",
                "share that prefers the reply shown first",
                SHARE,
                np.where(judged, places < MIDDLE, 0.0),
                judged,
                sentence="in {} of comparisons the reply shown first is preferred",
            ),
            Measure("strength", "how far from the middle", "places", np.abs(places - MIDDLE), judged, span=(0.5, 3.5)),
            Measure(
                *("judged", "share that could be judged", SHARE, judged.astype(np.float64)),
                sentence="{} of comparisons could be judged",
            ),
        ]
        return Estimands(measures=measures, retested=("a_better",))

    def divisions(self, items: Sequence[Item]) -> dict[str, np.ndarray]:
        """By category, and by pair of models, for which `a_better` is a win rate."""
        both = [item.comparison for item in items]
        return {
            "category": np.array([comparison.question.task.name for comparison in both], dtype=str),
            "pair": np.array(
                [f"{comparison.a.language_model.name} : {comparison.b.language_model.name}" for comparison in both],
                dtype=str,
            ),
        }
