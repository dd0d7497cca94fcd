"""How hard targets are, for predictors with columns next to the texts: people's priors, and models' answers."""

import hashlib
import json
from collections.abc import Collection, Sequence

import numpy as np

from predictors.hardness import MODELS, PEOPLE
from survey.contracts.instruments import AnswersRead
from survey.models import Assignment, ModelAnswer

from .labels import beliefs_of


def columns_of(answers: Sequence[Assignment], names: Collection[str]) -> dict[str, np.ndarray]:
    """The named columns of n answers, (n,) each, fractions in [0, 1], NaN where nothing is known.

    `people` is the answer's own prior: a predictor makes means of it when it learns. `models` is the share of language
    models that answer the target right, over all that have a graded answer in the bank now.
    """
    return columns_and_sources(answers, names)[0]


def columns_and_sources(
    answers: Sequence[Assignment], names: Collection[str]
) -> tuple[dict[str, np.ndarray], dict[str, AnswersRead]]:
    """`columns_of`, and which answers of language models `models` was made of: all graded ones of the bank, as they are
    in the same moment. Priors are frozen with the answers that they belong to, so that `people` needs no such note."""
    sources: dict[str, AnswersRead] = {}
    columns: dict[str, np.ndarray] = {}
    if PEOPLE in names:
        priors = [beliefs_of(answer).prior for answer in answers]
        columns[PEOPLE] = np.array([np.nan if prior is None else prior / 100 for prior in priors], dtype=np.float64)
    if MODELS in names:
        targets = [answer.slot.item.pair.target for answer in answers]
        shares, sources[MODELS] = _shares_right({target.bank_id for target in targets})
        columns[MODELS] = np.array([shares.get(target.pk, np.nan) for target in targets], dtype=np.float64)
    return columns, sources


def _shares_right(banks: Collection[int]) -> tuple[dict[int, float], AnswersRead]:
    """How right language models are on average, by the question's key; questions that none answered are not there. And
    which answers say so."""
    rows = ModelAnswer.objects.graded().filter(question__bank__in=banks)
    rows = rows.order_by("question__bank", "question__position", "language_model__name")
    graded: dict[int, list[float]] = {}
    models, digest = set(), hashlib.sha256()
    for key, question, model, correct, share in rows.values_list(
        "question_id", "question__external_id", "language_model__name", "correct", "share_correct"
    ).iterator():
        value = float(bool(correct)) if share is None else share
        graded.setdefault(key, []).append(value)
        models.add(model)
        digest.update(json.dumps([question, model, value]).encode() + b"\n")
    source = AnswersRead(sum(map(len, graded.values())), len(models), digest.hexdigest())
    return {question: sum(values) / len(values) for question, values in graded.items()}, source
