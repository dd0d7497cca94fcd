"""How hard targets are, for predictors with columns beside the texts: people's priors, and models' answers."""

from collections.abc import Collection, Sequence

import numpy as np

from predictors.hardness import MODELS, PEOPLE
from survey.models import Assignment, ModelAnswer

from .label_reading import AT_ONCE
from .labels import beliefs_of


def columns_of(answers: Sequence[Assignment], names: Collection[str]) -> dict[str, np.ndarray]:
    """The named columns of n answers, (n,) each, fractions in [0, 1], NaN where nothing is known.

    `people` is the answer's own prior: a predictor makes means of it when it learns. `models` is the share of language
    models that answer the target right, over all that have a graded answer in the bank now.
    """
    found: dict[str, np.ndarray] = {}
    if PEOPLE in names:
        priors = [beliefs_of(answer).prior for answer in answers]
        found[PEOPLE] = np.array([np.nan if prior is None else prior / 100 for prior in priors], dtype=np.float64)
    if MODELS in names:
        targets = [answer.slot.item.pair.target_id for answer in answers]
        shares = _shares_right(set(targets))
        found[MODELS] = np.array([shares.get(target, np.nan) for target in targets], dtype=np.float64)
    return found


def _shares_right(questions: Collection[int]) -> dict[int, float]:
    """How right language models are on average, by the question's key; questions that none answered are not there."""
    wanted = sorted(questions)
    graded: dict[int, list[float]] = {}
    for start in range(0, len(wanted), AT_ONCE):
        rows = ModelAnswer.objects.graded().filter(question__in=wanted[start : start + AT_ONCE]).order_by()
        for question, correct, share in rows.values_list("question_id", "correct", "share_correct"):
            graded.setdefault(question, []).append(float(bool(correct)) if share is None else share)
    return {question: sum(values) / len(values) for question, values in graded.items()}
