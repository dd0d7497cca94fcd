"""Standard errors of figures whose rows share people and prompts. Numpy, `bandit` and
`survey.figures` alone.

Every figure is written as a sum of one contribution for each row. Rows of one person belong together, and rows of one
prompt (`bandit.clustered_variance`). It is what resampling people and prompts aims at, without chance of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

import bandit
from survey.figures import Figure

Floats = NDArray[np.float64]
PlacesInRow = Literal["plain", "correlation"]
MIN_EFFECT = 0.5
"""The least design effect that is believed: chance makes it small where few people or prompts come twice."""
FEWEST = 3
"""Clusters, of people or of prompts, below which no interval is given."""


NOTHING = Figure()


def pair_variance(
    influence: Floats, *, people: tuple[NDArray[np.int64], NDArray[np.int64]], prompt: NDArray[np.int64]
) -> float:
    """The variance of a figure to which each pair of answers contributes `influence` (pairs,): pairs go together that
    share a prompt or a person (Aronow, Samii and Assenova, "Cluster-robust variance estimation for dyadic data",
    Political Analysis 23(4), 2015, with prompts next to it).

    Args:
        people: (pairs,) whose the one answer is, and whose the other. prompt: (pairs,) what both are about.
    """
    who, of_prompt, twice = np.concatenate(people), np.concatenate([prompt, prompt]), np.concatenate([influence] * 2)
    within = np.unique(np.stack([who, of_prompt]), axis=1, return_inverse=True)[1].reshape(-1)
    parts = ((influence, prompt), (twice, who), (twice, within))
    return float(bandit.crossed_variance(*(bandit.clustered_variance(own, label) for own, label in parts)))


def freedom(*, person: ArrayLike, prompt: ArrayLike) -> float:
    """Degrees of freedom: the fewer of people and prompts, less 1."""
    return float(min(bandit.cluster_count(person), bandit.cluster_count(prompt)) - 1)


def figure(value: float, variance: float, degrees: float, *, scale: PlacesInRow = "plain") -> Figure:
    """The value with Student's interval, which is made on Fisher's z of a correlation, so that it stays where such a
    figure can be."""
    if not math.isfinite(value):
        return NOTHING
    if not variance > 0 or degrees < FEWEST - 1:
        return Figure(value)
    error = math.sqrt(variance)
    ends = bandit.student_interval(value, error, degrees, scale=scale if -1 < value < 1 else "plain")
    return Figure.between(value, ends, standard_error=error)


def share_figure(
    values: ArrayLike, weight: ArrayLike, *, person: ArrayLike, prompt: ArrayLike, centre: ArrayLike | None = None
) -> Figure:
    """A weighted mean of values from 0 to 1 (n,), such as a share of wins, with Wilson's interval at the number of
    answers that it is worth.

    That number is Kish's, (sum w)^2 / sum w^2, over the design effect of people and prompts (Korn and Graubard 1998),
    and more where ties make the values vary less than wins and losses. An interval by the spread of the few answers of
    a pair would be too short where some weigh much, and there would be none where all say the same (Brown, Cai and
    DasGupta, "Interval estimation for a binomial proportion", Statistical Science 16(2), 2001). The design effect is
    estimated from the answers beyond the first of each person and prompt: Student's t counts only those.

    centre: of a mean of several groups with fixed weights, the mean of each answer's group (n,).
    """
    value_of, w = np.asarray(values, dtype=np.float64), np.asarray(weight, dtype=np.float64)
    n = len(value_of)
    if not n or not w.sum() > 0:
        return NOTHING
    value = float(np.clip(np.average(value_of, weights=w), 0, 1))
    clusters = freedom(person=person, prompt=prompt) + 1
    deviation = value_of - (value if centre is None else np.asarray(centre, dtype=np.float64))
    influence = w * deviation / w.sum()
    alone = float((influence**2).sum()) * n / max(n - 1, 1)
    variance = bandit.clustered_variance(influence, person, prompt)
    if clusters < FEWEST:
        return Figure(value)
    worth = bandit.effective_size(w)
    if alone > 1e-24:
        worth /= min(max(variance / alone, MIN_EFFECT), float(n))
        spread = float(np.average(deviation**2, weights=w))
        worth *= min(max(value * (1 - value) / spread, 1.0), 4.0)
    degrees = (clusters - 1) * n / (n - clusters) if clusters < n else math.inf
    error = math.sqrt(variance) if variance > 0 else None
    return Figure(value, *bandit.wilson_interval(value, worth, degrees), error)


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
    return figure(
        value, bandit.clustered_variance(influence, person, prompt), freedom(person=person, prompt=prompt), scale=scale
    )


def slope(of: Callable[[Floats], Any], at: Floats, *, size: Floats) -> Floats:
    """The slope (k,) of a figure at these sums, by differences of a small share of `size` either way."""
    slopes = np.zeros(len(at))
    for place, step in enumerate(1e-6 * np.maximum(size, 1e-12)):
        up, down = at.copy(), at.copy()
        up[place] += step
        down[place] -= step
        slopes[place] = (float(of(up)) - float(of(down))) / (2 * step)
    return np.nan_to_num(slopes)
