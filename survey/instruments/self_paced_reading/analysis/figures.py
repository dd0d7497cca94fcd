"""Figures of reading times: means, slopes of surprisal with intervals, delta log-likelihood. Needs numpy and bandit.

Intervals are by person and by passage at once, both as samples (Cameron, Gelbach and Miller 2011), with Student's
quantile by the smaller effective number of the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import bandit
from predictors.evaluation.reading_times import (
    Columns,
    Delta,
    PreparedWords,
    SingleTimes,
    TimedWords,
    columns_of_times,
    columns_of_words,
    delta_of,
    slopes_of,
)
from survey.figures import Figure
from survey.services.results.people_and_models.errors import UNDEFINED, interval, mean, share_interval

from .cleaning import ReadTimes, asked_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class ReadingOfModel:
    """What one model's surprisal says of the times.

    correlation: of the surprisal and the mean time, over `correlated` words that have both. delta: None where too few
    words are left. slopes: ms per nat of this word and of each word before it. total: their sum. rows, words: how many
    single times, and words, enter the fit. Without people there are no intervals.
    """

    name: str
    correlation: float
    correlated: int
    delta: Delta | None
    slopes: Sequence[Figure]
    total: Figure
    rows: int
    words: int


def mean_times(times: ReadTimes | SingleTimes, words: int) -> tuple[Floats, Ints]:
    """The mean time of each word (words,), NaN where nobody's counts, and how many count (words,)."""
    count = np.bincount(times.word, minlength=words)
    total = np.bincount(times.word, weights=times.time, minlength=words)
    return np.divide(total, count, out=np.full(words, np.nan), where=count > 0), count


def mean_time(times: ReadTimes) -> Figure:
    """Milliseconds per word, with its interval by person and passage."""
    return mean(times.time, np.ones(len(times)), times.person, times.passage)


def right_share(times: ReadTimes) -> Figure:
    """The share of questions that were answered right, with its interval by person and passage: Wilson's, by the
    effective number of answers and with Student's quantile, since passages are few."""
    person, passage, right = asked_of(times)
    if not len(right):
        return UNDEFINED
    share = float(right.mean())
    variance = bandit.clustered_variance((right - share) / len(right), person, passage)
    if not np.isfinite(variance):
        return Figure(share)
    return share_interval(share, variance, len(right), bandit.clustered_freedom(np.ones(len(right)), person, passage))


def of_model(
    name: str,
    *,
    words: TimedWords,
    prepared: PreparedWords,
    times: SingleTimes,
    surprisal: Floats,
    has_people: bool,
) -> ReadingOfModel:
    """
    Args:
        words: W words. prepared: of the same words.
        times: those that count.
        surprisal: (W,) of each word in nats; NaN where the model says nothing.
        has_people: whether times are of single people; otherwise the mean time of each word is fitted.
    """
    means, count = mean_times(times, len(words.word))
    both = np.isfinite(surprisal) & np.isfinite(means) & (count > 0)
    r = correlation(surprisal[both], means[both])
    if has_people:
        columns = columns_of_times(prepared, times, surprisal)
        person, passage = times.person[columns.row], times.passage[columns.row]
        entered = len(np.unique(times.word[columns.row]))
    else:
        columns = columns_of_words(prepared, means, surprisal)
        person = passage = np.zeros(len(columns), dtype=np.int64)
        entered = len(columns)
    own, total = slopes(columns, person, passage)
    return ReadingOfModel(name, r, int(both.sum()), delta_of(columns), own, total, len(columns), entered)


def slopes(columns: Columns, person: Ints, passage: Ints) -> tuple[Sequence[Figure], Figure]:
    """Milliseconds per nat of this word's surprisal and of each word before it, and of all together, with intervals by
    person and passage."""
    width = columns.both.shape[1]
    if len(columns) <= width:
        return [UNDEFINED] * (width - columns.base.shape[1]), UNDEFINED
    fit = slopes_of(columns)
    degrees = bandit.clustered_freedom(np.ones(len(columns)), person, passage)
    # A row a slope, and their sum as the last one.
    summed = np.concatenate([np.eye(len(fit.slopes)), np.ones((1, len(fit.slopes)))])
    values = summed @ fit.slopes
    if min(bandit.cluster_count(person), bandit.cluster_count(passage)) < 2:
        each = [Figure(float(value)) for value in values]
    else:
        by_person, by_passage = _jackknife(columns, person, summed), _jackknife(columns, passage, summed)
        pairs = person * (int(passage.max()) + 1) + passage
        both = np.diag(bandit.clustered_covariance(fit.added @ summed.T, pairs))
        variance = bandit.crossed_variance(by_person, by_passage, both)
        each = [
            interval(float(value), float(own_variance), degrees)
            for value, own_variance in zip(values, variance, strict=True)
        ]
    return each[:-1], each[-1]


def _jackknife(columns: Columns, group: Ints, summed: Floats) -> Floats:
    """The variance of each row of `summed` times the slopes, by leaving out one group after the other. Unlike sums of
    residuals it is not too small where there are few groups."""
    scale = np.abs(columns.both).max(axis=0)
    scale[scale == 0] = 1
    scaled, width = columns.both / scale, columns.base.shape[1]
    whole, wanted = scaled.T @ scaled, scaled.T @ columns.wanted
    place = np.unique(group, return_inverse=True)[1].reshape(-1)
    order = np.argsort(place, kind="stable")
    ends = np.searchsorted(place[order], np.arange(int(place.max()) + 2))

    def fitted(matrix: Floats, right: Floats) -> Floats:
        return summed @ ((np.linalg.pinv(matrix) @ right)[width:] / scale[width:])

    all_of_it = fitted(whole, wanted)
    squares = np.zeros(len(summed))
    for number in range(len(ends) - 1):
        rows = order[ends[number] : ends[number + 1]]
        left = scaled[rows]
        without = fitted(whole - left.T @ left, wanted - left.T @ columns.wanted[rows])
        squares += (without - all_of_it) ** 2
    groups = len(ends) - 1
    return squares * (groups - 1) / groups


def correlation(x: Floats, y: Floats) -> float:
    """Pearson's correlation of (n,) and (n,); NaN with fewer than three or where one is constant."""
    return bandit.weighted_correlation(x, y) if len(x) > 2 else float("nan")
