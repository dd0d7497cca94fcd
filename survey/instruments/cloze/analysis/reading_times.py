"""How much a model's surprisal adds to what predicts reading times: delta log-likelihood. Needs numpy alone.

The log-likelihood of a Gaussian linear model with the surprisal of this and of the previous word, less that without
them. Both models have length, log frequency and their product, the same of the previous word, and the position (Frank
and Bod, "Insensitivity of the human sentence-processing system to hierarchical structure", 2011; the preprocessing is
that of Hao and others, 2020). Sums are in nats over all words that count.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .normalising import stripped

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FOLDS = 10
COLUMNS = 8  # of the model without surprisal
FEWEST = 30


@dataclass(frozen=True, eq=False)
class TimedWords:
    """N words of sentences, with their punctuation: sentence, place in it (from 0), log frequency (NaN where there is
    none), whether the word ends its sentence; each of N."""

    word: Sequence[str]
    sentence: Ints
    position: Ints
    log_frequency: Floats
    is_last: NDArray[np.bool_]


@dataclass(frozen=True)
class Delta:
    """`total`: the delta log-likelihood over `words`, in nats. `a_word`: the same on words that the fit has not seen,
    in nats a word."""

    total: float
    a_word: float
    words: int


@dataclass(frozen=True, eq=False)
class Prepared:
    """Which words count (M,), by number, the number of the word before each, and the model without surprisal (M, 8)."""

    row: Ints
    before: Ints
    base: Floats
    fold: Ints


def prepared(words: TimedWords, *, keeps_punctuation: bool = False) -> Prepared:
    """The words that count: the word and the one before it have a frequency, end no sentence, and, unless
    `keeps_punctuation`, consist of letters alone. The first word of a sentence has none before it, and the word after
    the first one is left out with it, where the first one is not among the words."""
    place = {(int(s), int(p)): row for row, (s, p) in enumerate(zip(words.sentence, words.position, strict=True))}
    letters = np.array([keeps_punctuation or word.isalpha() for word in words.word], dtype=bool)
    good = letters & ~words.is_last & np.isfinite(words.log_frequency) & (words.position > 0)
    rows, before = [], []
    for (sentence, position), number in place.items():
        other = place.get((sentence, position - 1))
        if good[number] and other is not None and good[other]:
            rows.append(number)
            before.append(other)
    row, previous = np.array(rows, dtype=np.int64), np.array(before, dtype=np.int64)
    length = np.array([len(stripped(word)) for word in words.word], dtype=np.float64)
    columns = [np.ones(len(row))]
    for which in (row, previous):
        columns += [length[which], words.log_frequency[which], length[which] * words.log_frequency[which]]
    columns.append(words.position[row].astype(np.float64))
    _names, fold = np.unique(words.sentence[row], return_inverse=True)
    return Prepared(row, previous, np.stack(columns, axis=1), fold.reshape(-1) % FOLDS)


def delta_log_likelihood(words: Prepared, times: Floats, surprisal: Floats) -> Delta | None:
    """What surprisals (N,) add to the prediction of times (N,); NaN leaves a word out. None where fewer than 30 words
    are left.

    Args:
        words: of the same N words.
    """
    base, both, wanted, fold = _columns(words, times, surprisal)
    if len(wanted) < FEWEST:
        return None
    total = _log_likelihood(both, wanted) - _log_likelihood(base, wanted)
    unseen = _unseen(both, wanted, fold) - _unseen(base, wanted, fold)
    return Delta(total, unseen, len(wanted))


def added_log_likelihood(words: Prepared, times: Floats, surprisal: Floats) -> float:
    """The total of `delta_log_likelihood` alone, which is quicker."""
    base, both, wanted, _fold = _columns(words, times, surprisal)
    return _log_likelihood(both, wanted) - _log_likelihood(base, wanted)


def _columns(words: Prepared, times: Floats, surprisal: Floats) -> tuple[Floats, Floats, Floats, Ints]:
    """Without and with surprisal, times, and folds of the words that have all."""
    added = np.stack([surprisal[words.row], surprisal[words.before]], axis=1)
    wanted = times[words.row]
    inside = np.isfinite(added).all(axis=1) & np.isfinite(wanted)
    base = words.base[inside]
    return base, np.concatenate([base, added[inside]], axis=1), wanted[inside], words.fold[inside]


def _fit(columns: Floats, wanted: Floats) -> tuple[Floats, float]:
    scale = np.abs(columns).max(axis=0)
    scale[scale == 0] = 1
    coefficients = np.linalg.lstsq(columns / scale, wanted, rcond=None)[0] / scale
    rest = wanted - columns @ coefficients
    return coefficients, float(rest @ rest / len(wanted))


def _log_likelihood(columns: Floats, wanted: Floats) -> float:
    _coefficients, variance = _fit(columns, wanted)
    return -len(wanted) / 2 * (math.log(2 * math.pi * max(variance, 1e-300)) + 1)


def _unseen(columns: Floats, wanted: Floats, fold: Ints) -> float:
    """The mean log density of words under a fit to the sentences of the other folds."""
    total = 0.0
    for number in np.unique(fold):
        out = fold == number
        coefficients, variance = _fit(columns[~out], wanted[~out])
        rest = wanted[out] - columns[out] @ coefficients
        total += float((-0.5 * (np.log(2 * math.pi * max(variance, 1e-300)) + rest**2 / max(variance, 1e-300))).sum())
    return total / len(wanted)
