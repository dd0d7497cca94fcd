"""The loss of people at predicting next tokens, from comparisons of two: importance sampling. Needs numpy alone.

After a context c comes the token y. Other tokens x are drawn n times from a generator g given c. A person who holds x
to be r times as likely as y has r = h(x) / h(y), and the mean of r g(y) / g(x) over the draws has the expectation
g(y) / h(y). A draw of y itself has r = 1 and is never asked. So

    e_c = (draws of y + sum over distinct x of m_x g(y) / g(x) mean over people of r) / n,

and the mean of ln e_c over contexts estimates L - L_G, the loss of people less that of the generator, in nats. People
are taken as one distribution. The terms are heavy-tailed, and the logarithm of a mean is on average below that of its
expectation: the estimate is too low for few draws, by more the less the generator is like the people. So nothing here
gives a perplexity without models of known loss next to it (`checking`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

import bandit

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

RESAMPLES = 1000
MAX_MISSING = 0.15  # how far the second half of the draws may move the figure, in halves of its 95 % interval
_NUMBERS_AT_ONCE = 2**20


@dataclass(frozen=True, eq=False)
class ComparisonAnswers:
    """A answers to comparisons. item (A,): which comparison; person (A,): whose; log_odds (A,): ln h(x) - ln h(y) as
    stated."""

    item: Ints
    person: Ints
    log_odds: Floats

    def __len__(self) -> int:
        return len(self.item)


@dataclass(frozen=True, eq=False)
class Comparisons:
    """C contexts and their I comparisons: distinct x that are not y.

    text (C,): the number of the text that a context is from. log_g_true (C,): ln g(y). draws (C,): n. same (C,): how
    many of these are y. weight (C,): 1 / the chance to be in the study.
    context (I,), multiplicity (I,): m_x. log_g_other (I,): ln g(x). item_weight (I,): 1 / the chance of the comparison
    to be asked, given its context.
    """

    text: Ints
    log_g_true: Floats
    draws: Floats
    same: Floats
    weight: Floats
    context: Ints
    multiplicity: Floats
    log_g_other: Floats
    item_weight: Floats

    @property
    def contexts(self) -> int:
        return len(self.text)

    @cached_property
    def log_ratio(self) -> Floats:
        """(I,): ln g(y) - ln g(x)."""
        log_ratio: Floats = self.log_g_true[self.context] - self.log_g_other
        return log_ratio

    def __len__(self) -> int:
        return len(self.context)


@dataclass(frozen=True, eq=False)
class ContextTerms:
    """What each of C contexts gives. used (C,): whether it has an answer, or only draws of y. log_e (C,): ln e_c, NaN
    where not used. relative_error (C,): the standard error of e_c over its draws, divided by e_c."""

    used: Bools
    log_e: Floats
    relative_error: Floats


@dataclass(frozen=True)
class Loss:
    """L - L_G in nats with its errors, and L itself.

    contexts: those that are used; left_out: those without an answer. error_texts: error 1, of the contexts.
    error_draws: error 2, of the draws and answers within contexts. error_of_loss: error 1 of L, whose L_G is estimated
    on the same contexts. interval, interval_of_loss: 95 %, by resampling texts and people; None where not asked for.
    """

    contexts: int
    left_out: int
    difference: float
    error_texts: float
    error_draws: float
    generator_loss: float
    error_of_loss: float
    interval: tuple[float, float] | None = None
    interval_of_loss: tuple[float, float] | None = None

    @property
    def loss(self) -> float:
        """L in nats."""
        return self.generator_loss + self.difference

    @property
    def perplexity(self) -> float:
        """exp(L). Print it with a check next to it, or not at all."""
        return math.exp(self.loss)

    def within(self, times: float = 2.0) -> tuple[float, float]:
        """The difference, less and more `times` error 1."""
        return self.difference - times * self.error_texts, self.difference + times * self.error_texts

    def perplexity_within(self, times: float = 2.0) -> tuple[float, float]:
        """The perplexity at L, less and more `times` its error."""
        width = times * self.error_of_loss
        return math.exp(self.loss - width), math.exp(self.loss + width)


def log_odds_of_percent(percent_true: NDArray[np.float64]) -> Floats:
    """ln h(x) - ln h(y) of answers that gave y these chances in percent (n,)."""
    log_odds: Floats = np.log(100 - percent_true) - np.log(percent_true)
    return log_odds


def terms(comparisons: Comparisons, answers: ComparisonAnswers, *, ddof: int = 1) -> ContextTerms:
    """Each context's e_c and its error.

    A comparison without an answer is weighted for within its context, by its multiplicity and its chance to be asked;
    the share of draws that are y is known and never rescaled. The error is that of the mean of n draws, as they were
    answered; draws that share an answer share its noise.
    """
    c, size = comparisons, len(comparisons)
    asked = np.bincount(answers.item, minlength=size).astype(np.float64)
    # Logarithms are added first, so that a person with the generator's own odds has exactly 1.
    single = np.exp(c.log_ratio[answers.item] + answers.log_odds)
    value = np.bincount(answers.item, weights=single, minlength=size) / np.maximum(asked, 1)
    has = asked > 0
    weight = np.where(has, c.multiplicity * c.item_weight, 0.0)
    answered = _by_context(c, weight)
    others = c.draws - c.same
    used = (others == 0) | (answered > 0)
    mean_other = _by_context(c, weight * value) / np.where(answered > 0, answered, 1.0)
    share = c.same / c.draws
    e = share + (1 - share) * mean_other
    # Squares of n draws around their mean: those of the answered x, raised to all x, and those between x and y.
    inside = _by_context(c, weight * (value - mean_other[c.context]) ** 2) / np.where(answered > 0, answered, 1.0)
    multiplicity_answered = _by_context(c, np.where(has, c.multiplicity, 0.0))
    fewer = others / np.where(multiplicity_answered > 0, multiplicity_answered, 1.0)
    squares = others * inside * fewer + c.draws * share * (1 - share) * (1 - mean_other) ** 2
    variance = squares / np.maximum(c.draws - ddof, 1) / c.draws
    variance = variance + _shared_noise(c, answers, single, asked, value)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_e = np.where(used & (e > 0), np.log(np.where(e > 0, e, 1.0)), np.nan)
        relative = np.where(used & (e > 0), np.sqrt(variance) / np.where(e > 0, e, 1.0), np.nan)
    return ContextTerms(used & (e > 0), log_e, relative)


def _shared_noise(c: Comparisons, answers: ComparisonAnswers, single: Floats, asked: Floats, value: Floats) -> Floats:
    """The variance that draws of the same x add to e_c because they share their answers, beyond what draws with an
    answer each would have. The noise of an answer, relative to the mean, is that of all comparisons with two or more
    answers; where there is none it is not known and left out."""
    several, has = asked > 1, asked > 0
    if not several.any() or not (c.multiplicity[has] > 1).any():
        return np.zeros(c.contexts)
    squares = np.bincount(answers.item, weights=(single / value[answers.item] - 1) ** 2, minlength=len(c))
    relative = float(np.mean(squares[several] / (asked[several] - 1)))
    noise = relative * value**2 / np.maximum(asked, 1)
    m = np.where(has, c.multiplicity, 0.0)
    return _by_context(c, noise * (m**2 - m)) / c.draws**2


def _by_context(c: Comparisons, values: Floats) -> Floats:
    return np.bincount(c.context, weights=values, minlength=c.contexts).astype(np.float64)


def estimate(
    comparisons: Comparisons,
    answers: ComparisonAnswers,
    *,
    ddof: int = 1,
    rng: np.random.Generator | None = None,
    samples: int = RESAMPLES,
) -> Loss | None:
    """L - L_G of those who answered; None where no context can be used.

    Args:
        ddof: what is taken off the number of contexts and of draws in standard deviations.
        rng: resamples texts and people for 95 % intervals; without it there are none.
    """
    c = comparisons
    loss_terms = terms(c, answers, ddof=ddof)
    used = loss_terms.used
    if not used.any():
        return None
    weight = np.where(used, c.weight, 0.0)
    log_e = np.where(used, loss_terms.log_e, 0.0)
    difference, error = _mean_and_error(log_e, weight, ddof)
    loss, of_loss = _mean_and_error(np.where(used, log_e - c.log_g_true, 0.0), weight, ddof)
    relative = np.where(used, loss_terms.relative_error, 0.0)
    within = float(np.sqrt(((weight * relative) ** 2).sum()) / weight.sum())
    made = Loss(
        contexts=int(used.sum()),
        left_out=int((~used).sum()),
        difference=difference,
        error_texts=error,
        error_draws=within,
        generator_loss=loss - difference,
        error_of_loss=of_loss,
    )
    if rng is None:
        return made
    drawn = resampled(c, answers, rng=rng, samples=samples)
    texts = len(np.unique(c.text[used]))
    ends = [interval(value, column, texts) for value, column in zip((difference, loss), drawn.T, strict=True)]
    return replace(made, interval=ends[0], interval_of_loss=ends[1])


def _mean_and_error(values: Floats, weight: Floats, ddof: int) -> tuple[float, float]:
    """A weighted mean, and its standard error over the rows of positive weight; NaN where too few are left."""
    total, n = float(weight.sum()), int((weight > 0).sum())
    mean = float((weight * values).sum() / total)
    if n <= ddof:
        return mean, math.nan
    squares = float((weight**2 * (values - mean) ** 2).sum())
    return mean, math.sqrt(squares * n / (n - ddof)) / total


def resampled(
    comparisons: Comparisons, answers: ComparisonAnswers, *, rng: np.random.Generator, samples: int = RESAMPLES
) -> Floats:
    """(samples, 2): L - L_G and L in studies whose texts and people are each drawn again with replacement; NaN where no
    context is left (Owen, "The pigeonhole bootstrap", 2007: it errs on the wide side)."""
    c = comparisons
    order = np.argsort(answers.item, kind="stable")
    item, person = answers.item[order], answers.person[order]
    single = np.exp(c.log_ratio[item] + answers.log_odds[order])
    people, who = np.unique(person, return_inverse=True)
    texts, own_text = np.unique(c.text, return_inverse=True)
    there, first = np.unique(item, return_index=True)
    in_context = np.argsort(c.context[there], kind="stable")
    there_sorted = there[in_context]
    contexts, begin = np.unique(c.context[there_sorted], return_index=True)
    weight = (c.multiplicity * c.item_weight)[there_sorted]
    share = c.same / c.draws
    only_same = c.draws == c.same
    rows = max(1, _NUMBERS_AT_ONCE // max(1, len(item), c.contexts))
    parts: list[Floats] = []
    for start in range(0, samples, rows):
        count = min(rows, samples - start)
        of_text = rng.multinomial(len(texts), np.full(len(texts), 1 / len(texts)), size=count)
        context_weight = of_text[:, own_text.reshape(-1)] * c.weight
        log_e = np.where(only_same, 0.0, np.nan)[None].repeat(count, axis=0)
        if len(item):
            of_person = rng.multinomial(len(people), np.full(len(people), 1 / len(people)), size=count)
            times = of_person[:, who.reshape(-1)].astype(np.float64)
            asked = np.add.reduceat(times, first, axis=1)[:, in_context]
            total = np.add.reduceat(times * single, first, axis=1)[:, in_context]
            own = np.where(asked > 0, weight, 0.0)
            value = total / np.where(asked > 0, asked, 1.0)
            answered = np.add.reduceat(own, begin, axis=1)
            mean = np.add.reduceat(own * value, begin, axis=1) / np.where(answered > 0, answered, 1.0)
            e = share[contexts] + (1 - share[contexts]) * mean
            ok = (answered > 0) & (e > 0)
            log_e[:, contexts] = np.where(ok, np.log(np.where(ok, e, 1.0)), np.nan)
        used = np.where(np.isnan(log_e), 0.0, context_weight)
        whole = used.sum(axis=1)
        safe = np.where(whole > 0, whole, 1.0)
        filled = np.where(np.isnan(log_e), 0.0, log_e)
        both = np.stack([(used * filled).sum(axis=1), (used * (filled - c.log_g_true)).sum(axis=1)], axis=1)
        parts.append(np.where(whole[:, None] > 0, both / safe[:, None], np.nan))
    return np.concatenate(parts)


def interval(value: float, drawn: Floats, texts: int) -> tuple[float, float] | None:
    """The 95 % interval of a figure from its resamples; None where fewer than half of them have a number.

    The middle 95 % of resamples are too narrow where there are few texts: a mean of n has n / (n - 1) the variance that
    resampling gives it, and a t distribution. So each end is moved away from the figure by that.
    """
    known = drawn[np.isfinite(drawn)]
    if 2 * len(known) < len(drawn) or not len(known):
        return None
    low, high = np.percentile(known, [2.5, 97.5])
    wider = 1.0
    if texts > 1:
        t, normal = (bandit.student_t_quantile(0.975, freedom) for freedom in (texts - 1, math.inf))
        wider = t / normal * math.sqrt(texts / (texts - 1))
    return float(value - wider * max(value - low, 0.0)), float(value + wider * max(high - value, 0.0))


def values_of(comparisons: Comparisons, answers: ComparisonAnswers) -> Floats:
    """g(y) / g(x) times the mean over people of h(x) / h(y), of each comparison (I,); NaN where nobody answered."""
    asked = np.bincount(answers.item, minlength=len(comparisons))
    single = np.exp(comparisons.log_ratio[answers.item] + answers.log_odds)
    total = np.bincount(answers.item, weights=single, minlength=len(comparisons))
    return np.where(asked > 0, total / np.maximum(asked, 1), np.nan)


def by_draws(
    comparisons: Comparisons, values: Floats, *, rng: np.random.Generator, orders: int = 20
) -> Iterator[tuple[int, float]]:
    """L - L_G as it would be with n draws per context, for n = 1 to the most draws of a context.

    Args:
        values: (I,) g(y) / g(x) times h(x) / h(y) of every comparison. An unknown one (NaN) counts as the mean of the
            others of its context; a context without any is left out.
        orders: over so many random orders of the draws the mean is taken.
    """
    c = comparisons
    there = np.isfinite(values)
    weight_known = _by_context(c, np.where(there, c.multiplicity, 0.0))
    sums_known = _by_context(c, np.where(there, c.multiplicity * np.where(there, values, 0.0), 0.0))
    mean = sums_known / np.where(weight_known > 0, weight_known, 1.0)
    values = np.where(there, values, mean[c.context])
    known = (weight_known > 0) | (c.draws == c.same)
    most = int(c.draws.max()) if known.any() else 0
    sums = np.zeros(most)
    weight = c.weight[known] / c.weight[known].sum() if known.any() else c.weight
    counts = np.rint(c.multiplicity).astype(np.int64)
    rows = [
        np.concatenate([np.repeat(values[own], counts[own]), np.ones(round(float(c.same[place])))])
        for place in np.flatnonzero(known).tolist()
        for own in [np.flatnonzero(c.context == place)]
    ]
    for _ in range(orders):
        for part, own in zip(weight.tolist(), rows, strict=True):
            means = np.cumsum(rng.permutation(own)) / np.arange(1, len(own) + 1)
            sums[: len(means)] += part * np.log(means)
            sums[len(means) :] += part * math.log(means[-1])
    yield from zip(range(1, most + 1), (sums / orders).tolist(), strict=True)


def rise(points: Sequence[tuple[int, float]]) -> float:
    """How far, in nats, the estimate with all draws is above that with half of them, from `by_draws`; NaN with one."""
    if len(points) < 2:
        return math.nan
    value = dict(points)
    most = max(value)
    return value[most] - (value[most // 2] + value[(most + 1) // 2]) / 2


def has_enough_draws(rise: float, interval: tuple[float, float]) -> bool:
    """Whether more draws would move the estimate by little, next to its 95 % interval.

    The bias of a logarithm of a mean of n falls with 1 / n, so that the first half of the draws had twice the bias that
    is left: what the second half moved is about what is missing. With a heavy tail more is missing, so that only a
    small part of the interval is allowed.
    """
    low, high = interval
    return abs(rise) <= MAX_MISSING * (high - low) / 2
