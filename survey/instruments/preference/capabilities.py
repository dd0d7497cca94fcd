"""The optional capabilities of preferences: controls, signals, the priority."""

from collections.abc import Collection, Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from bandit.errors import DesignError
from survey.contracts.instruments import REPEAT, Controls, Priority, Signals
from survey.models import Assignment, ModelAnswer, Question

from .analysis import bradley_terry
from .analysis.information import information
from .models import ReplyComparison, ReplyJudgement
from .rows import judgements_of

ROW = np.dtype([("question", "<i4"), ("a", "i2"), ("b", "i2")])
SAME = "same"


class PreferenceControls(Controls):
    """The same comparison with its sides changed, and one reply shown twice."""

    kinds = (REPEAT, SAME)

    def __init__(self, instrument: Any) -> None:
        self._instrument = instrument

    def draw(self, *, kind: str, count: int, questions: Sequence[Question], rng: np.random.Generator) -> np.ndarray:
        if kind != SAME:
            return super().draw(kind=kind, count=count, questions=questions, rng=rng)
        every = [
            (index, model, model)
            for index, question in enumerate(questions)
            for model in sorted(self._instrument.replies.get(question.pk, ()))
        ]
        if count > len(every):
            raise DesignError(
                f"controls: {count} that show one reply twice need as many replies, and there are {len(every)}; lower "
                "the share of controls or leave this kind out"
            )
        return np.array(every, dtype=ROW)[rng.choice(len(every), size=count, replace=False)]


class PreferenceSignals(Signals):
    def word_counts(self, items: Collection[int]) -> dict[int, int]:
        """Of the prompt and both replies."""
        counts = {}
        asked = ReplyComparison.objects.filter(pk__in=items).values_list(
            "pk", "question__plain", "a__response", "b__response"
        )
        for item, *texts in asked.iterator(2000):
            counts[item] = sum(len(text.split()) for text in texts)
        return counts

    def stated_values(self, sittings: Collection[int]) -> Iterable[tuple[int, str, Hashable]]:
        """The places as given: a person who always takes the same one may not be reading."""
        stated = ReplyJudgement.objects.filter(
            response__assignment__sitting__in=sittings, place__isnull=False
        ).order_by()
        return stated.values_list("response__assignment__sitting", "response__screen", "place").iterator()


class Information(Priority):
    """How much a comparison is expected to tell of the models' strengths, by the frozen answers so far.

    1/2 ln(1 + p (1 - p) x'Cx): p and C are the chance of A and the covariance by Bradley and Terry's model, and x is 1
    for A and -1 for B (Lindley's expected information of one more answer, for a normal posterior). Every prompt of two
    models has the same, so that the draw decides among prompts by chance.
    """

    name = "information"

    def __init__(self, instrument: Any) -> None:
        self._instrument = instrument

    def of(
        self,
        *,
        rows: np.ndarray,
        questions: "Sequence[Question]",
        chances: np.ndarray | None,
        answers: "Sequence[Assignment]",
        rng: np.random.Generator,
    ) -> np.ndarray:
        models = self._instrument.options.models
        judged = judgements_of(answers, models=models).with_ties(self._instrument.options.tie)
        theta, covariance = bradley_terry.posterior(judged)
        value = information(theta, covariance, rows["a"].astype(np.int64), rows["b"].astype(np.int64))
        # Which of equal candidates lies above a cut is drawn here, by a part too small to change any order.
        return np.asarray(value + rng.random(len(rows)) * 1e-9, dtype=np.float64)


def replies_of(bank: int, models: Sequence[str]) -> dict[int, dict[int, int]]:
    """Of each prompt, the replies of these models: prompt to place in `models` to reply, by primary key. An empty reply
    is none."""
    place = {model: index for index, model in enumerate(models)}
    replies: dict[int, dict[int, int]] = {}
    rows = ModelAnswer.objects.filter(question__bank=bank, language_model__name__in=list(models)).exclude(response="")
    for pk, question, model in rows.values_list("pk", "question", "language_model__name").iterator(5000):
        replies.setdefault(question, {})[place[model]] = pk
    return replies
