"""Figures with intervals whose answers hang together by person and by item. Numpy and bandit alone.

The variances and intervals themselves are `bandit.clustered_variance`, `bandit.student_interval` and
`bandit.wilson_interval`. People and items both count as a sample.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

import bandit
from bandit.intervals import Scale
from survey.figures import Figure

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


UNDEFINED = Figure()


def interval(
    value: float,
    variance: float,
    degrees: float,
    *,
    scale: Scale = "plain",
    within: tuple[float, float] | None = None,
) -> Figure:
    """The figure with Student's interval (`bandit.student_interval`); without one where the variance is not known or is
    0."""
    error = math.sqrt(variance) if variance > 0 else math.nan
    ends = bandit.student_interval(value, error, degrees, scale=scale, within=within)
    return Figure(value) if ends is None else Figure(value, *ends, error)


def share_interval(share: float, variance: float, size: float, degrees: float) -> Figure:
    """Wilson's interval of a share, by its effective number of answers: what its variance says, and `size` at most."""
    if not math.isfinite(share):
        return UNDEFINED
    share = min(1.0, max(0.0, share))  # Sums of weights are rounded.
    answers = bandit.effective_answers(share, variance, size)
    if not answers > 1:
        return Figure(share)
    return Figure(share, *bandit.wilson_interval(share, answers, degrees), math.sqrt(share * (1 - share) / answers))


def mean(values: Floats, weight: Floats, person: Ints, item: Ints) -> Figure:
    """The weighted mean of n values with its interval by person and item."""
    total = float(weight.sum())
    if not len(values) or not total > 0:
        return UNDEFINED
    share = weight / total
    value = float(share @ values)
    variance = bandit.clustered_variance(share * (values - value), person, item)
    return interval(value, variance, bandit.clustered_freedom(share, person, item))
