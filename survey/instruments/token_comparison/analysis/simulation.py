"""Simulated studies of comparisons with a known truth, for the benchmark of intervals. numpy alone.

Contexts come from an endless supply of texts. At each a generator has a distribution over the tokens of a small
vocabulary, and people have another one: the generator's logarithms with noise, the nearer the less noise. The true
token comes from a distribution of its own, nearer to the generator's. A person states odds with noise, as they are or
rounded to the 11 chances.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .checking import CheckModel
from .loss import ComparisonAnswers, Comparisons, log_odds_of_percent
from .rewards import nearest

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class TokenWorld:
    """How texts, the generator and people are made.

    vocabulary: tokens. sharpness: the spread of the generator's logarithms. distance: the standard deviation of
    people's logarithms around the generator's, in nats. text_sd: how much that varies between texts, as a share.
    person_sd, answer_sd: noise in a person's log odds, of the person and of each answer. rounded: whether people choose
    from the 11 chances.
    """

    vocabulary: int = 60
    sharpness: float = 2.0
    distance: float = 0.5
    text_sd: float = 0.3
    person_sd: float = 0.1
    answer_sd: float = 0.3
    rounded: bool = False


@dataclass(frozen=True)
class TokenPlan:
    """texts, with `contexts` each, `draws` a context; every person answers each context at most once.

    asked: with it, so many comparisons are drawn uniformly from all (all, if there are fewer), as a stage draws them.
    Each has `responses` answers, dealt to the people at random.
    """

    texts: int = 40
    contexts: int = 2
    draws: int = 40
    people: int = 40
    asked: int | None = None
    responses: int = 1


@dataclass(frozen=True, eq=False)
class SimulatedComparisons:
    """A study. true (C,): ln g(y) - ln h(y) of each context, for the people's mean odds."""

    comparisons: Comparisons
    answers: ComparisonAnswers
    people: CheckModel
    true: Floats


def study(world: TokenWorld, plan: TokenPlan, *, rng: np.random.Generator) -> SimulatedComparisons:
    """One study. Each of the draws of a context that is not its true token is answered by some people, as they are
    dealt: every person gets one x of every context, until all have been answered alike often."""
    size = plan.texts * plan.contexts
    text = np.repeat(np.arange(plan.texts), plan.contexts)
    log_g = _log_softmax(world.sharpness * rng.standard_normal((size, world.vocabulary)))
    spread = world.distance * np.exp(world.text_sd * rng.standard_normal(plan.texts))[text]
    log_h = _log_softmax(log_g + spread[:, None] * rng.standard_normal(log_g.shape))
    truth = np.exp(_log_softmax(0.75 * log_g + 0.25 * log_h))
    y = _drawn(truth, 1, rng)[:, 0]
    x = _drawn(np.exp(log_g), plan.draws, rng)
    rows = np.arange(size)
    same = (x == y[:, None]).sum(axis=1)
    flat = (rows[:, None] * world.vocabulary + x)[x != y[:, None]]
    keys, times = np.unique(flat, return_counts=True)
    context, other = keys // world.vocabulary, keys % world.vocabulary
    count = min(len(keys), len(keys) if plan.asked is None else plan.asked)
    distinct = np.bincount(context, minlength=size)
    chance = np.ones(size) if count == len(keys) else _chance_of_any(len(keys), count, distinct)
    comparisons = Comparisons(
        text=text,
        log_g_true=log_g[rows, y],
        draws=np.full(size, float(plan.draws)),
        same=same.astype(np.float64),
        weight=1 / chance,
        context=context,
        multiplicity=times.astype(np.float64),
        log_g_other=log_g[context, other],
        item_weight=np.full(len(keys), len(keys) / count if count else 1.0),
    )
    if plan.asked is None:
        item, person = _dealt(context, size, plan.people, rng)
    else:
        item = np.repeat(rng.choice(len(keys), size=count, replace=False), plan.responses)
        person = rng.permutation(len(item)) % plan.people
    exact = log_h[context, other] - log_h[context, y[context]]
    ability = world.person_sd * rng.standard_normal(plan.people)
    # The mean over people of the odds, not of their logarithms, is the people's own.
    noise = ability[person] + world.answer_sd * rng.standard_normal(len(item))
    log_odds = exact[item] + noise - (world.person_sd**2 + world.answer_sd**2) / 2
    if world.rounded:
        log_odds = log_odds_of_percent(100 * nearest(1 / (1 + np.exp(log_odds))))
    return SimulatedComparisons(
        comparisons,
        ComparisonAnswers(item, person, log_odds),
        CheckModel("people", log_h[rows, y], log_h[context, other]),
        log_g[rows, y] - log_h[rows, y],
    )


def _chance_of_any(size: int, count: int, own: Ints) -> Floats:
    """The chance that at least one of `own` (C,) of `size` comparisons is among `count` drawn; 1 where own is 0."""
    # None of own: the product over j < own of (size - count - j) / (size - j).
    steps = np.arange(int(own.max(initial=0)))
    factors = np.clip(size - count - steps, 0, None) / np.maximum(size - steps, 1)
    none = np.concatenate([[1.0], np.cumprod(factors)])[own]
    return np.where(own > 0, 1 - none, 1.0)


def _log_softmax(logits: Floats) -> Floats:
    shifted = logits - logits.max(axis=1, keepdims=True)
    log_chances: Floats = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return log_chances


def _drawn(chances: Floats, count: int, rng: np.random.Generator) -> Ints:
    """(n, count) columns drawn from each row of chances (n, k)."""
    edges = np.cumsum(chances, axis=1)
    edges /= edges[:, -1:]
    columns = [np.searchsorted(edge, rng.random(count), side="right") for edge in edges]
    return np.minimum(np.array(columns), chances.shape[1] - 1)


def _dealt(context: Ints, size: int, people: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Who answers which comparison: in each context the people, in random order, take the comparisons in turn."""
    first = np.searchsorted(context, np.arange(size))
    count = np.bincount(context, minlength=size)
    has = np.flatnonzero(count)
    place = np.argsort(rng.random((len(has), people)), axis=1)
    item = first[has][:, None] + place % count[has][:, None]
    person = np.broadcast_to(np.arange(people), item.shape)
    return item.reshape(-1).astype(np.int64), person.reshape(-1).astype(np.int64)
