"""What people would have stated if they could state any chance. Needs numpy alone.

People choose from a few chances, so that an answer says between which two ends their odds lie, and no more. As stated,
the smallest and the largest chance stand for all odds beyond them, and the estimator weighs just these most: rounding
alone gives a model whose loss is the generator's own some 0.6 nats too many.

The log odds z = ln h(x) - ln h(y) of answer i at context c are taken as normal around a line of the generator's,
z_i = a + b (ln g(x_i) - ln g(y_i)) + u_c + e_i with u_c ~ N(0, t^2) and e_i ~ N(0, s^2), known only to lie in an
interval. a, b, s and t are estimated by expectation and maximisation (Dempster, Laird and Rubin 1977; grouped data:
Heitjan, Statistical Science 4, 1989), u_c by its posterior mean. Then each answer's odds are replaced by their
expectation in its interval. u_c matters: without it the odds of a context are drawn towards those of all contexts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .loss import ComparisonAnswers, Comparisons, log_odds_of_percent

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ROUNDS = 200
CLOSE_ENOUGH = 1e-4  # in nats, of every number that is estimated
SMALLEST_SPREAD = 1e-3
_NO_MASS = 1e-280
_erfc = np.frompyfunc(math.erfc, 1, 1)


@dataclass(frozen=True, eq=False)
class OddsModel:
    """How the log odds of answers follow from the generator's: intercept a, slope b, spread s of answers within a
    context, in nats; effects (C,): u_c of each context, 0 where nothing was answered."""

    intercept: float
    slope: float
    spread: float
    effects: Floats


def are_rounded(answers: ComparisonAnswers, ratios: Sequence[int]) -> bool:
    """Whether every answer is one of the chances in `ratios`, in percent."""
    if not len(answers):
        return False
    allowed = log_odds_of_percent(np.asarray(ratios, dtype=np.float64))
    return bool((np.abs(answers.log_odds[:, None] - allowed).min(axis=1) < 1e-9).all())


def unrounded(comparisons: Comparisons, answers: ComparisonAnswers, ratios: Sequence[int]) -> ComparisonAnswers:
    """The answers with the odds that are to be expected behind the chances that were stated.

    Args:
        ratios: the chances that people chose from, in percent; each answer counts as the nearest of them.
    """
    low, high = odds_interval(answers.log_odds, ratios)
    of_generator = -comparisons.log_ratio[answers.item]
    context = comparisons.context[answers.item]
    model = fit_odds(of_generator, low, high, context, contexts=comparisons.contexts)
    middle = model.intercept + model.slope * of_generator + model.effects[context]
    return ComparisonAnswers(answers.item, answers.person, _log_mean_odds(middle, model.spread, low, high))


def odds_interval(log_odds: Floats, ratios: Sequence[int]) -> tuple[Floats, Floats]:
    """(A,) twice: between which log odds those of each stated answer (A,) lie; infinite beyond the last chance. An end
    is the middle between two chances."""
    percent = np.sort(np.asarray(ratios, dtype=np.float64))
    stated = np.sort(log_odds_of_percent(percent))
    ends = np.sort(log_odds_of_percent((percent[1:] + percent[:-1]) / 2))
    place = np.abs(log_odds[:, None] - stated).argmin(axis=1)
    return np.concatenate([[-np.inf], ends])[place], np.concatenate([ends, [np.inf]])[place]


def fit_odds(of_generator: Floats, low: Floats, high: Floats, context: Ints, *, contexts: int) -> OddsModel:
    """The model of log odds that are known to lie between `low` and `high`.

    Args:
        of_generator: (A,) ln g(x) - ln g(y) of each answer, in nats.
        low, high: (A,) ends in nats, possibly infinite.
        context: (A,) which of `contexts` each answer is about.
    """
    columns = np.stack([np.ones_like(of_generator), of_generator], axis=1)
    projection = np.linalg.pinv(columns)
    line, spread, between, effects = np.array([0.0, 1.0]), 1.0, 0.5, np.zeros(contexts)
    answers = np.bincount(context, minlength=contexts)
    answered = answers > 0
    for _ in range(ROUNDS):
        odds, unknown = _expected(columns @ line + effects[context], spread, low, high)
        new_line = projection @ (odds - effects[context])
        rest = odds - columns @ new_line
        ratio = spread**2 / between
        effects = np.bincount(context, weights=rest, minlength=contexts) / (answers + ratio)
        # An answer says the less of its context the more of its variance its interval leaves open.
        said = 1 - unknown / spread**2
        of_effects = spread**2 / (np.bincount(context, weights=said, minlength=contexts) + ratio)
        new_between = max(float(np.mean((effects**2 + of_effects)[answered])), SMALLEST_SPREAD**2)
        inside = float(np.mean((rest - effects[context]) ** 2 + unknown + said**2 * of_effects[context]))
        new_spread = max(math.sqrt(inside), SMALLEST_SPREAD)
        moved = max(float(np.abs(new_line - line).max()), abs(new_spread - spread), abs(new_between - between))
        line, spread, between = new_line, new_spread, new_between
        if moved < CLOSE_ENOUGH:
            break
    return OddsModel(float(line[0]), float(line[1]), spread, effects)


def _expected(middle: Floats, spread: float, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """(A,) twice: mean and variance of a normal variable that lies between two ends."""
    first, last, turned = _lower_half((low - middle) / spread, (high - middle) / spread)
    mass = np.maximum(_normal(last) - _normal(first), _NO_MASS)
    at_first, at_last = _density(first), _density(last)
    shift = (at_first - at_last) / mass
    inner = np.where(np.isfinite(first), first, 0) * at_first - np.where(np.isfinite(last), last, 0) * at_last
    variance = spread**2 * np.clip(1 + inner / mass - shift**2, 0, 1)
    return np.clip(middle + spread * np.where(turned, -shift, shift), low, high), variance


def _log_mean_odds(middle: Floats, spread: float, low: Floats, high: Floats) -> Floats:
    """(A,): ln of the mean of exp(z) for a normal z between two ends; the nearer end where it hardly lies there."""
    first, last = (low - middle) / spread, (high - middle) / spread
    mass, raised = _mass(first, last), _mass(first - spread, last - spread)
    known = (mass > _NO_MASS) & (raised > _NO_MASS)
    mean = middle + spread**2 / 2 + np.log(np.where(known, raised, 1.0)) - np.log(np.where(known, mass, 1.0))
    odds: Floats = np.where(known, mean, np.where(middle < low, low, high))
    return odds


def _mass(first: Floats, last: Floats) -> Floats:
    first, last, _turned = _lower_half(first, last)
    return _normal(last) - _normal(first)


def _lower_half(first: Floats, last: Floats) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Intervals above 0 are turned around it: tails below 0 keep their digits."""
    turned = first > 0
    return np.where(turned, -last, first), np.where(turned, -first, last), turned


def _normal(value: Floats) -> Floats:
    return np.asarray(_erfc(-value / math.sqrt(2)), dtype=np.float64) / 2


def _density(value: Floats) -> Floats:
    density: Floats = np.exp(-(value**2) / 2) / math.sqrt(2 * math.pi)
    return density
