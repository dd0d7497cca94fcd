"""Answers at positions: smoothed chances, surprisal, entropy, intervals, thinning. Needs numpy alone.

A position is a place in a sentence. k of its n answers are the sentence's own word. The smoothed chance of that word
is p = (k + a) / (n + a K), where a is the smoothing and K is the number of distinct answers plus 1. Surprisals are in
nats.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

THINNINGS = 20


def smoothed(k: ArrayLike, n: ArrayLike, distinct: ArrayLike, smoothing: float) -> Floats:
    """The smoothed chance of a word: (k + a) / (n + a (distinct + 1)); arrays of one shape."""
    counts, answers, words = (np.asarray(column, dtype=np.float64) for column in (k, n, distinct))
    shares: Floats = (counts + smoothing) / (answers + smoothing * (words + 1))
    return shares


def surprisal(k: ArrayLike, n: ArrayLike, distinct: ArrayLike, smoothing: float) -> Floats:
    """-ln of the smoothed chance, in nats."""
    surprisals: Floats = -np.log(smoothed(k, n, distinct, smoothing))
    return surprisals


def entropy(counts: ArrayLike, smoothing: float) -> float:
    """Of the smoothed distribution over the distinct answers and one that nobody gave, in nats."""
    smoothed_counts = np.append(np.asarray(counts, dtype=np.float64), 0.0) + smoothing
    share = smoothed_counts / smoothed_counts.sum()
    return float(-(share * np.log(share)).sum()) if smoothing > 0 else 0.0


@dataclass(frozen=True, eq=False)
class WordAnswers:
    """Single answers, in arrays of their number A.

    position: which of `size` positions was asked. word: a number that equal answers at a position share. match: whether
    it is the sentence's own word. person: whose it is.
    """

    size: int
    position: Ints
    word: Ints
    match: NDArray[np.bool_]
    person: Ints

    def __post_init__(self) -> None:
        # Answers that are equal and at one position share a pair.
        _pairs, first, pair = np.unique(
            np.stack([self.position, self.word]), axis=1, return_index=True, return_inverse=True
        )
        object.__setattr__(self, "_pair", pair.reshape(-1))
        object.__setattr__(self, "_pair_position", self.position[first])

    _pair: Ints = None  # type: ignore[assignment]
    _pair_position: Ints = None  # type: ignore[assignment]

    def counts(self, chosen: NDArray[np.bool_] | None = None) -> tuple[Ints, Ints, Ints]:
        """At each position: answers, those that are the sentence's own word, and distinct ones; each (size,).

        Args:
            chosen: (A,) which answers count; all without it.
        """
        position, match, pair = self.position, self.match, self._pair
        if chosen is not None:
            position, match, pair = position[chosen], match[chosen], pair[chosen]
        n = np.bincount(position, minlength=self.size)
        k = np.bincount(position[match], minlength=self.size)
        there = np.bincount(pair, minlength=len(self._pair_position)) > 0
        distinct = np.bincount(self._pair_position[there], minlength=self.size)
        return n, k, distinct

    def places(self, rng: np.random.Generator) -> Ints:
        """The place of each answer among those of its position in a random order, from 0; (A,)."""
        order = np.lexsort((rng.random(len(self.position)), self.position))
        starts = np.concatenate([[0], np.cumsum(np.bincount(self.position, minlength=self.size))])
        places = np.empty(len(order), dtype=np.int64)
        places[order] = np.arange(len(order)) - starts[self.position[order]]
        return places

    def thinned(self, most: int, rng: np.random.Generator, times: int) -> Iterator[NDArray[np.bool_]]:
        """`times` random choices (A,) of at most `most` answers at each position."""
        for _ in range(times):
            yield self.places(rng) < most


@dataclass(frozen=True, eq=False)
class HumanSurprisal:
    """What people's answers give at each position, each (size,): the surprisal at no more than `most` answers, its mean
    and the mean of its square over random thinnings; and how many answers there are. NaN where there is none."""

    mean: Floats
    square: Floats
    n: Ints


def human_surprisal(
    answers: WordAnswers, *, smoothing: float, most: int, rng: np.random.Generator, thinnings: int = THINNINGS
) -> HumanSurprisal:
    """People's surprisal at every position, as `most` answers would give it.

    More answers are thinned to that many: a surprisal of few answers is noisier, so that a correlation over positions
    with different numbers of answers would depend on where they were collected.
    """
    n, k, distinct = answers.counts()
    plain = _or_nan(surprisal(k, n, distinct, smoothing), n)
    if not (n > most).any():
        return HumanSurprisal(plain, plain**2, n)
    total, squares = np.zeros(answers.size), np.zeros(answers.size)
    for chosen in answers.thinned(most, rng, thinnings):
        few, hits, words = answers.counts(chosen)
        surprisals = surprisal(hits, few, words, smoothing)
        total += surprisals
        squares += surprisals**2
    many = n > most
    return HumanSurprisal(np.where(many, total / thinnings, plain), np.where(many, squares / thinnings, plain**2), n)


def halves(
    answers: WordAnswers, *, smoothing: float, most: int, rng: np.random.Generator, splits: int = 100
) -> Iterator[tuple[Floats, Floats]]:
    """The surprisals (size,) of one half of the people at each position and of the other, `splits` times; NaN where a
    position has fewer than 2 answers. More than `most` answers are thinned first."""
    n, _k, _distinct = answers.counts()
    even_counts = np.minimum(n, most) // 2 * 2
    for _ in range(splits):
        place = answers.places(rng)
        inside = place < even_counts[answers.position]
        values = []
        for half in (0, 1):
            few, hits, words = answers.counts(inside & (place % 2 == half))
            values.append(_or_nan(surprisal(hits, few, words, smoothing), few))
        yield values[0], values[1]


def halves_of_counts(
    k: Ints, n: Ints, distinct: Ints, *, smoothing: float, most: int, rng: np.random.Generator, splits: int = 100
) -> Iterator[tuple[Floats, Floats]]:
    """The same where only counts are known: the matches fall into the halves by chance, and both have the same K."""
    even_counts = np.minimum(n, most) // 2 * 2
    half = even_counts // 2
    for _ in range(splits):
        inside = rng.hypergeometric(k, n - k, even_counts) if len(k) else k
        first_hits = rng.hypergeometric(inside, even_counts - inside, half) if len(k) else k
        first = surprisal(first_hits, half, distinct, smoothing)
        second = surprisal(inside - first_hits, half, distinct, smoothing)
        yield _or_nan(first, half), _or_nan(second, half)


def answer_influence(answers: WordAnswers, *, smoothing: float, most: int) -> Floats:
    """How much each answer (A,) moves its position's surprisal, with mean 0 at each position; 0 where it is alone.

    It is the step of the surprisal from the other answers without the own word once more to those with it, times how
    far the answer lies from the share of the others. Against the share of all n, of which it is one, products of a
    person's answers would be too small by the square of (n - 1) / n; and the slope at all n is too flat where the word
    is rare.
    """
    n, k, _distinct = answers.counts()
    scale, place = np.maximum(n, 1), answers.position
    # The smoothing weighs as it does at no more than `most` answers.
    weight = (smoothing * scale / np.minimum(scale, most))[place]
    others, others_matched = n[place] - 1, k[place] - answers.match
    step = np.log(others_matched + weight) - np.log(others_matched + 1 + weight)
    moved = np.where(others > 0, step * (answers.match - others_matched / np.maximum(others, 1)), 0.0)
    influence: Floats = moved - (np.bincount(place, weights=moved, minlength=answers.size) / scale)[place]
    return influence


def _or_nan(values: Floats, n: Ints) -> Floats:
    return np.where(n > 0, values, math.nan)
