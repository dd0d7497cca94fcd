"""How much a model's surprisal adds to what predicts reading times: delta log-likelihood. Needs numpy alone.

The log-likelihood of a Gaussian linear model with the surprisal of this and of the previous words, less that without
them. Both models have length, log frequency and their product, the same of the previous words, and the position (Frank
and Bod, "Insensitivity of the human sentence-processing system to hierarchical structure", 2011; the preprocessing is
that of Hao and others, 2020). Smooth models have natural cubic splines of these and tensor products of the splines of
length and frequency (Harrell, "Regression modeling strategies", 2015, section 2.4). Sums are in nats over all words
that count.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from predictors.word_forms import stripped

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FOLDS = 10
FEWEST = 30
PAIR_KNOTS = 4  # of length and of log frequency, whose splines are multiplied
POSITION_KNOTS = 5
SINGULAR = 1e-13  # eigenvalues below so much of the largest one are 0


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
    in nats per word."""

    total: float
    a_word: float
    words: int


@dataclass(frozen=True, eq=False)
class PreparedWords:
    """Which words count (M,), by number, the numbers of the words before each, the nearest first (M, previous), and the
    columns of the model without surprisal (M, 2 + 3 (1 + previous))."""

    row: Ints
    before: Ints
    base: Floats
    fold: Ints


def prepared(
    words: TimedWords, *, keeps_punctuation: bool = False, previous: int = 1, smooth: bool = False
) -> PreparedWords:
    """The words that count: the word and those before it have a frequency, end no sentence, and, unless
    `keeps_punctuation`, consist of letters alone. The first word of a sentence has none before it, and the word after
    the first one is left out with it, where the first one is not among the words.

    Args:
        previous: how many words before it enter, 1 or more. Self-paced times spill over to two later words.
        smooth: length, frequency and position enter as curves. The columns without surprisal are then more.
    """
    place = {(int(s), int(p)): row for row, (s, p) in enumerate(zip(words.sentence, words.position, strict=True))}
    letters = np.array([keeps_punctuation or word.isalpha() for word in words.word], dtype=bool)
    good = letters & ~words.is_last & np.isfinite(words.log_frequency) & (words.position > 0)
    rows, before = [], []
    for (sentence, position), number in place.items():
        others = [place.get((sentence, position - back), -1) for back in range(1, previous + 1)]
        if good[number] and all(other >= 0 and good[other] for other in others):
            rows.append(number)
            before.append(others)
    row = np.array(rows, dtype=np.int64)
    earlier = np.array(before, dtype=np.int64).reshape(len(rows), previous)
    length = np.array([len(stripped(word)) for word in words.word], dtype=np.float64)
    columns = [np.ones(len(row))]
    for which in (row, *earlier.T):
        lengths, frequencies = length[which][:, None], words.log_frequency[which][:, None]
        if smooth:
            lengths, frequencies = (natural_spline(values[:, 0], PAIR_KNOTS) for values in (lengths, frequencies))
        products = lengths[:, :, None] * frequencies[:, None, :]
        columns += [*lengths.T, *frequencies.T, *products.reshape(len(row), products.shape[1] * products.shape[2]).T]
    positions = words.position[row].astype(np.float64)
    columns += [*natural_spline(positions, POSITION_KNOTS).T] if smooth else [positions]
    _names, fold = np.unique(words.sentence[row], return_inverse=True)
    return PreparedWords(row, earlier, np.stack(columns, axis=1), fold.reshape(-1) % FOLDS)


def natural_spline(values: Floats, knots: int) -> Floats:
    """Values (N,) as columns (N, K): themselves, and cubic terms that make a curve of them which is straight beyond the
    outer knots. Knots stand at equal quantiles of the different values; with fewer than three different ones there is
    the straight line alone.
    """
    different = np.unique(values)
    at = np.unique(np.quantile(different, np.linspace(0.05, 0.95, knots))) if len(different) > knots else different
    if len(at) < 3:
        return values[:, None]
    center, scale = values.mean(), at[-1] - at[0]
    cubes = np.clip((values[:, None] - at) / scale, 0, None) ** 3
    slope = (at[-1] - at[:-2]) / (at[-1] - at[-2])
    curved = cubes[:, :-2] - cubes[:, -2:-1] * slope + cubes[:, -1:] * (slope - 1)
    return np.concatenate([((values - center) / scale)[:, None], curved], axis=1)


@dataclass(frozen=True, eq=False)
class SingleTimes:
    """T times that single people took: the number of the word, the person from 0, the passage from 0, and milliseconds;
    each of T. fixated: (T,) whether the word before was fixated, where times of eye-tracking say so; it then enters
    both models, and a time without it none."""

    word: Ints
    person: Ints
    passage: Ints
    time: Floats
    fixated: Floats | None = None


@dataclass(frozen=True, eq=False)
class Columns:
    """What a fit takes: the model without surprisal and with it, the times, and the folds; one row a time.

    row: the number of each time among those that were given.
    """

    base: Floats
    both: Floats
    wanted: Floats
    fold: Ints
    row: Ints

    def __len__(self) -> int:
        return len(self.wanted)


def columns_of_words(words: PreparedWords, times: Floats, surprisal: Floats) -> Columns:
    """One row a word. times, surprisal: (N,) of all words; NaN leaves a word out."""
    added = surprisal[np.concatenate([words.row[:, None], words.before], axis=1)]
    wanted = times[words.row]
    inside = np.isfinite(added).all(axis=1) & np.isfinite(wanted)
    base = words.base[inside]
    return Columns(
        base, np.concatenate([base, added[inside]], axis=1), wanted[inside], words.fold[inside], words.row[inside]
    )


def columns_of_times(words: PreparedWords, times: SingleTimes, surprisal: Floats) -> Columns:
    """One row a single time. The mean of each reading, a person in a passage, is taken off every column and off the
    times, which is the same as a level of each person in each passage in both models: that people are slow, or a
    passage is hard as a whole, is no effect of its words.

    Args:
        surprisal: (N,) of all words; NaN leaves a word out.
    """
    number = np.full(len(surprisal), -1, dtype=np.int64)
    number[words.row] = np.arange(len(words.row))
    added = surprisal[np.concatenate([words.row[:, None], words.before], axis=1)]
    counts = number[times.word] >= 0
    counts[counts] = np.isfinite(added[number[times.word[counts]]]).all(axis=1)
    counts &= np.isfinite(times.time)
    if times.fixated is not None:
        counts &= np.isfinite(times.fixated)
    row = np.flatnonzero(counts)
    place = number[times.word[row]]
    base = words.base[place]
    if times.fixated is not None:
        base = np.concatenate([base, times.fixated[row, None]], axis=1)
    both = np.concatenate([base, added[place]], axis=1)
    readings = np.stack([times.person[row], times.passage[row]])
    reading = np.unique(readings, axis=1, return_inverse=True)[1].reshape(-1)
    wanted = times.time[row].astype(np.float64)
    each = np.maximum(np.bincount(reading), 1)
    together = np.concatenate([both, wanted[:, None]], axis=1)
    means = np.stack([np.bincount(reading, weights=column) / each for column in together.T], axis=1)
    own = together - means[reading]
    own[:, 0] = 1.0
    width = base.shape[1]
    return Columns(own[:, :width], own[:, :-1], own[:, -1], words.fold[place], row)


def delta_log_likelihood(words: PreparedWords, times: Floats, surprisal: Floats) -> Delta | None:
    """What surprisals (N,) add to the prediction of times (N,); NaN leaves a word out. None where fewer than 30 words
    are left.

    Args:
        words: of the same N words.
    """
    return delta_of(columns_of_words(words, times, surprisal))


def delta_of(columns: Columns) -> Delta | None:
    """The same of columns that are made; `words` counts their rows. None where fewer than 30 rows are left, or fewer
    than two for each column."""
    if len(columns) < max(FEWEST, 2 * columns.both.shape[1]):
        return None
    total = _log_likelihood(columns.both, columns.wanted) - _log_likelihood(columns.base, columns.wanted)
    unseen = _unseen(columns.both, columns.wanted, columns.fold) - _unseen(columns.base, columns.wanted, columns.fold)
    return Delta(total, unseen, len(columns))


def added_log_likelihood(words: PreparedWords, times: Floats, surprisal: Floats) -> float:
    """The total of `delta_log_likelihood` alone, which is quicker."""
    columns = columns_of_words(words, times, surprisal)
    return _log_likelihood(columns.both, columns.wanted) - _log_likelihood(columns.base, columns.wanted)


@dataclass(frozen=True, eq=False)
class SurprisalSlopes:
    """Milliseconds per nat of this word's surprisal and of each word before it (1 + previous,), and what each of T rows
    adds to the error of each of them (T, 1 + previous): their sum over independent groups gives the variance."""

    slopes: Floats
    added: Floats


def slopes_of(columns: Columns) -> SurprisalSlopes:
    """The slopes of surprisal in the larger model, by least squares."""
    width = columns.base.shape[1]
    scale = np.abs(columns.both).max(axis=0)
    scale[scale == 0] = 1
    scaled = columns.both / scale
    inverse = np.linalg.pinv(scaled.T @ scaled)
    coefficients = inverse @ (scaled.T @ columns.wanted)
    rest = columns.wanted - scaled @ coefficients
    influence = (scaled * rest[:, None]) @ inverse[:, width:]
    return SurprisalSlopes(coefficients[width:] / scale[width:], influence / scale[width:])


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
    """The mean log density of words under a fit to the sentences of the other folds. Each fold enters by its sums of
    products alone, so that no fit goes through the rows again."""
    scale = np.abs(columns).max(axis=0)
    scale[scale == 0] = 1
    rows = np.concatenate([columns / scale, wanted[:, None]], axis=1)
    width = columns.shape[1]
    parts = [rows[fold == number] for number in np.unique(fold)]
    sums = [part.T @ part for part in parts]
    whole = np.sum(sums, axis=0)
    total = 0.0
    for part, own in zip(parts, sums, strict=True):
        others = whole - own
        inverse = np.linalg.pinv(others[:width, :width], rcond=SINGULAR, hermitian=True)
        coefficients = np.append(-inverse @ others[:width, width], 1.0)
        variance = max(float(coefficients @ others @ coefficients) / max(len(wanted) - len(part), 1), 1e-300)
        squares = max(float(coefficients @ own @ coefficients), 0.0)
        total -= 0.5 * (len(part) * math.log(2 * math.pi * variance) + squares / variance)
    return total / len(wanted)
