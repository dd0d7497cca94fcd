"""The same estimator on language models whose loss is known: what it would say of people with such a loss.

Each model answers the comparisons that people answered: with its own odds, rounded to the chances that people choose
from, and with these roundings allowed for as people's are. Its true L - L_G at these contexts is known. Needs numpy
alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .loss import ComparisonAnswers, Comparisons, Loss, estimate, log_odds_of_percent, terms
from .rewards import RATIOS, nearest
from .rounding import unrounded

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CheckModel:
    """A model's natural logarithms of probability: log_true (C,) of the true token of each context, log_other (I,) of
    the other token of each comparison. NaN where the model has not read it."""

    name: str
    log_true: Floats
    log_other: Floats


@dataclass(frozen=True)
class KnownLoss:
    """What the estimator says of a model, and what is true. All in nats; None where it has no value.

    exact, rounded: from the model's odds, and from the chances nearest to them. unrounded: from these, with what is
    to be expected behind them. true: the model's loss less the generator's, over the contexts that the estimate
    uses. true_error: its standard error over contexts. true_loss: the loss itself.
    """

    name: str
    exact: Loss | None
    rounded: Loss | None
    unrounded: Loss | None
    true: float
    true_error: float
    true_loss: float


def log_odds_of_model(comparisons: Comparisons, model: CheckModel) -> Floats:
    """ln h(x) - ln h(y) of each comparison (I,), as the model has it."""
    return model.log_other - model.log_true[comparisons.context]


def check(
    comparisons: Comparisons,
    answers: ComparisonAnswers,
    model: CheckModel,
    *,
    ratios: Sequence[int] = RATIOS,
    ddof: int = 1,
    one_each: bool = True,
    without_rounding: bool = True,
) -> KnownLoss:
    """One model on the comparisons that were answered.

    Args:
        one_each: the model answers a comparison once, however many people did: it would say the same again.
        without_rounding: whether to work out `unrounded`, which takes longest.
    """
    c = comparisons
    asked = np.unique(answers.item) if one_each else answers.item
    odds = log_odds_of_model(c, model)
    asked = asked[np.isfinite(odds[asked])]
    person = np.zeros(len(asked), dtype=np.int64)
    exact = ComparisonAnswers(asked, person, odds[asked])
    rounded = ComparisonAnswers(
        asked, person, log_odds_of_percent(100 * nearest(1 / (1 + np.exp(odds[asked])), ratios))
    )
    used = terms(c, exact, ddof=ddof).used & np.isfinite(model.log_true)
    weight = np.where(used, c.weight, 0.0)
    values = np.where(used, c.log_g_true - np.where(used, model.log_true, 0.0), 0.0)
    total, n = float(weight.sum()), int(used.sum())
    true = loss = error = np.nan
    if total:
        true = float((weight * values).sum() / total)
        loss = -float((weight * np.where(used, model.log_true, 0.0)).sum() / total)
    if n > ddof:
        error = float(np.sqrt((weight**2 * (values - true) ** 2).sum() * n / (n - ddof)) / total)
    return KnownLoss(
        name=model.name,
        exact=estimate(c, exact, ddof=ddof),
        rounded=estimate(c, rounded, ddof=ddof),
        unrounded=estimate(c, unrounded(c, rounded, ratios), ddof=ddof) if len(asked) and without_rounding else None,
        true=true,
        true_error=error,
        true_loss=loss,
    )
