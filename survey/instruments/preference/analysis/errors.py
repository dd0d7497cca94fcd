"""Standard errors of figures whose rows share people and prompts. Numpy, `bandit` and
`survey.figures` alone.

Every figure is written as a sum of one contribution a row (its influence, the infinitesimal jackknife of Jaeckel 1972).
Rows of one person belong together, and rows of one prompt: the variance is that over people, plus that over prompts,
less that over what both share (Cameron, Gelbach and Miller, "Robust inference with multiway clustering", Journal of
Business & Economic Statistics 29(2), 2011, equation 2.11). It is what resampling people and prompts aims at, without
chance of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bandit import effective_size, student_t_quantile
from survey.figures import Figure

Floats = NDArray[np.float64]
PlacesInRow = Literal["plain", "correlation"]
LEVEL = 0.95
LEAST_EFFECT = 0.5
"""The least design effect that is believed: chance makes it small where few people or prompts come twice."""
FEWEST = 3
"""Clusters, of people or of prompts, below which no interval is given."""


NOTHING = Figure()


def covariance(influence: ArrayLike, *, person: ArrayLike, prompt: ArrayLike) -> Floats:
    """The covariance (k, k) of k figures, of which each row contributes `influence` (n, k).

    Args:
        person, prompt: (n,) whose row it is and what it is about. Where every row has a person of its own, only the
            prompts count, and the other way round.
    """
    rows = np.asarray(influence, dtype=np.float64)
    by_person, by_prompt = _sums(rows, np.asarray(person)), _sums(rows, np.asarray(prompt))
    both = np.unique(np.stack([np.asarray(person), np.asarray(prompt)]), axis=1, return_inverse=True)[1].reshape(-1)
    by_both = _sums(rows, both)
    found = _spread(by_person) + _spread(by_prompt) - _spread(by_both)
    # The difference can come out too small where there are few of either; it is never below the least of the three.
    least = np.min([np.diag(_spread(sums)) for sums in (by_person, by_prompt, by_both)], axis=0)
    short = np.sqrt(np.maximum(least / np.maximum(np.diag(found), 1e-300), 1.0))
    scaled: Floats = np.where(np.diag(found)[:, None] > 0, found, 0) * short[:, None] * short[None, :]
    where = np.diag(found) <= 0
    scaled[where, :] = scaled[:, where] = 0
    scaled[where, where] = least[where]
    return scaled


def pair_variance(
    influence: Floats, *, people: tuple[NDArray[np.int64], NDArray[np.int64]], prompt: NDArray[np.int64]
) -> float:
    """The variance of a figure to which each pair of answers contributes `influence` (pairs,): pairs go together that
    share a prompt or a person (Aronow, Samii and Assenova, "Cluster-robust variance estimation for dyadic data",
    Political Analysis 23(4), 2015, with prompts beside).

    Args:
        people: (pairs,) whose the one answer is, and whose the other. prompt: (pairs,) what both are about.
    """
    rows = influence[:, None]
    who, twice = np.concatenate(people), np.concatenate([rows, rows])
    of_prompt = np.concatenate([prompt, prompt])
    within = np.unique(np.stack([who, of_prompt]), axis=1, return_inverse=True)[1].reshape(-1)
    by_prompt, by_person = _spread(_sums(rows, prompt))[0, 0], _spread(_sums(twice, who))[0, 0]
    by_both = _spread(_sums(twice, within))[0, 0]
    return float(max(by_prompt + by_person - by_both, min(by_prompt, float((influence**2).sum()))))


def freedom(*, person: ArrayLike, prompt: ArrayLike) -> float:
    """Degrees of freedom: the fewer of people and prompts, less 1."""
    return float(min(len(np.unique(person)), len(np.unique(prompt))) - 1)


def figure(value: float, variance: float, degrees: float, *, scale: PlacesInRow = "plain") -> Figure:
    """The value with Student's interval, which is made on Fisher's z of a correlation, so that it stays where such a
    figure can be."""
    if not math.isfinite(value):
        return NOTHING
    if not variance > 0 or degrees < FEWEST - 1:
        return Figure(value)
    error = math.sqrt(variance)
    reach = student_t_quantile((1 + LEVEL) / 2, degrees)
    if scale == "correlation" and -1 < value < 1:
        middle, half = math.atanh(value), reach * error / (1 - value * value)
        return Figure(value, math.tanh(middle - half), math.tanh(middle + half), error)
    return Figure(value, value - reach * error, value + reach * error, error)


def share_figure(values: ArrayLike, weight: ArrayLike, *, person: ArrayLike, prompt: ArrayLike) -> Figure:
    """A weighted mean of values from 0 to 1 (n,), such as a share of wins, with Wilson's interval at the number of
    answers that it is worth.

    That number is Kish's, (sum w)^2 / sum w^2, over the design effect of people and prompts (Korn and Graubard 1998),
    and more where ties make the values vary less than wins and losses. An interval by the spread of the few answers of
    a pair would be too short where some weigh much, and there would be none where all say the same (Brown, Cai and
    DasGupta, "Interval estimation for a binomial proportion", Statistical Science 16(2), 2001). The design effect is
    estimated from the answers beyond the first of each person and prompt: Student's t counts only those.
    """
    value_of, w = np.asarray(values, dtype=np.float64), np.asarray(weight, dtype=np.float64)
    n = len(value_of)
    if not n or not w.sum() > 0:
        return NOTHING
    value = float(np.clip(np.average(value_of, weights=w), 0, 1))
    clusters = freedom(person=person, prompt=prompt) + 1
    influence = w * (value_of - value) / w.sum()
    alone = float((influence**2).sum()) * n / max(n - 1, 1)
    variance = float(covariance(influence[:, None], person=person, prompt=prompt)[0, 0])
    if clusters < FEWEST:
        return Figure(value)
    worth = effective_size(w)
    if alone > 1e-24:
        worth /= min(max(variance / alone, LEAST_EFFECT), float(n))
        spread = float(np.average((value_of - value) ** 2, weights=w))
        worth *= min(max(value * (1 - value) / spread, 1.0), 4.0)
    degrees = (clusters - 1) * n / (n - clusters) if clusters < n else math.inf
    reach = student_t_quantile((1 + LEVEL) / 2, min(degrees, 1e6))
    square = reach**2 / worth
    middle = (value + square / 2) / (1 + square)
    half = math.sqrt(square * (value * (1 - value) + square / 4)) / (1 + square)
    error = math.sqrt(variance) if variance > 0 else None
    return Figure(value, max(0.0, middle - half), min(1.0, middle + half), error)


def figure_of_sums(
    of: Callable[[Floats], Any],
    rows: Floats,
    *,
    person: ArrayLike,
    prompt: ArrayLike,
    scale: PlacesInRow = "plain",
) -> Figure:
    """The figure `of(sums)` of the sums (k,) of rows (n, k), which must not change when all sums are multiplied.

    The contributions follow from the slope of `of` at the sums, found by small steps.
    """
    if not len(rows):
        return NOTHING
    total = rows.sum(axis=0)
    value = float(of(total))
    if not math.isfinite(value):
        return NOTHING
    influence = rows @ slope(of, total, size=np.abs(rows).sum(axis=0))
    found = covariance(influence[:, None], person=person, prompt=prompt)[0, 0]
    return figure(value, found, freedom(person=person, prompt=prompt), scale=scale)


def slope(of: Callable[[Floats], Any], at: Floats, *, size: Floats) -> Floats:
    """The slope (k,) of a figure at these sums, by differences of a small share of `size` either way."""
    found = np.zeros(len(at))
    for place, step in enumerate(1e-6 * np.maximum(size, 1e-12)):
        up, down = at.copy(), at.copy()
        up[place] += step
        down[place] -= step
        found[place] = (float(of(up)) - float(of(down))) / (2 * step)
    return np.nan_to_num(found)


def _sums(rows: Floats, group: NDArray[Any]) -> Floats:
    known, place = np.unique(group, return_inverse=True)
    sums = np.zeros((len(known), rows.shape[1]))
    np.add.at(sums, place.reshape(-1), rows)
    return sums


def _spread(sums: Floats) -> Floats:
    """Outer products of the clusters' sums, with the correction for few clusters."""
    n = len(sums)
    found: Floats = sums.T @ sums * (n / (n - 1) if n > 1 else 1.0)
    return found
