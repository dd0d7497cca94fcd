"""Intervals of a figure from its standard error: Student's, and Wilson's for a share. A leaf next to `bandit.student`.

Every 95 % interval of the project that does not resample is one of these two.
"""

from __future__ import annotations

import math
from typing import Literal

from bandit.errors import DesignError
from bandit.student import student_t_quantile

LEVEL = 0.95
Interval = tuple[float, float]
Scale = Literal["plain", "correlation", "share"]


def student_interval(
    value: float,
    standard_error: float,
    degrees_of_freedom: float = math.inf,
    *,
    scale: Scale = "plain",
    within: Interval | None = None,
    level: float = LEVEL,
) -> Interval | None:
    """Student's t interval of a figure (Student, "The probable error of a mean", Biometrika 6, 1908).

    Args:
        value, standard_error: of the figure, in its unit.
        degrees_of_freedom: above 0; infinity for the normal interval, where the error is known.
        scale: on which the interval is symmetric. "correlation": Fisher's z (Biometrika 10, 1915), so that the ends
            stay between -1 and 1; "share": log-odds, so that they stay between 0 and 1. There the error is taken to
            first order (Oehlert, The American Statistician 46, 1992).
        within: the lowest and the highest value that the figure can have; ends beyond are cut to it.
        level: the chance with which the interval holds the truth.

    Returns:
        Both ends, in the unit of the figure. None where there is no interval: the value or its error is not a finite
        number, the error is 0, or the value is at an end of its scale.

    Raises:
        DesignError: degrees of freedom of 0 or less, or NaN.
    """
    if not (math.isfinite(value) and math.isfinite(standard_error)) or standard_error <= 0:
        return None
    reach = student_t_quantile((1 + level) / 2, degrees_of_freedom) * standard_error
    if scale == "correlation":
        if not -1 < value < 1:
            return None
        middle, half = math.atanh(value), reach / (1 - value * value)
        low, high = math.tanh(middle - half), math.tanh(middle + half)
    elif scale == "share":
        if not 0 < value < 1:
            return None
        middle, half = math.log(value / (1 - value)), reach / (value * (1 - value))
        low, high = share_of_log_odds(middle - half), share_of_log_odds(middle + half)
    else:
        low, high = value - reach, value + reach
    return (low, high) if within is None else (max(low, within[0]), min(high, within[1]))


def wilson_interval(share: float, answers: float, degrees_of_freedom: float = math.inf) -> Interval:
    """Wilson's 95 % score interval of a share (Wilson, "Probable inference, the law of succession, and statistical
    inference", Journal of the American Statistical Association 22, 1927).

    Args:
        share: from 0 to 1.
        answers: how many independent answers of equal weight would say as much, above 0; see `effective_answers`.
        degrees_of_freedom: with which the variance of the share is known. Infinity takes the normal quantile: right for
            independent answers, while for few clusters such an interval held in 88.0 to 97.6 % of simulated studies,
            and with Student's t in 94.4 to 99.6 % (`benchmarks/cluster_laws.py`).

    Returns:
        Both ends, between 0 and 1. They differ where all answers agree, too.

    Raises:
        DesignError: a share outside 0 to 1, or no answers.
    """
    if not 0 <= share <= 1:
        raise DesignError(f"share: must lie between 0 and 1, not {share}")
    if not answers > 0:
        raise DesignError(f"answers: must be more than 0, not {answers}")
    t = student_t_quantile((1 + LEVEL) / 2, degrees_of_freedom)
    slack = t * t / answers
    middle = (share + slack / 2) / (1 + slack)
    reach = t / (1 + slack) * math.sqrt(share * (1 - share) / answers + slack / (4 * answers))
    return max(0.0, middle - reach), min(1.0, middle + reach)


def effective_answers(share: float, variance: float, at_most: float) -> float:
    """How many independent answers of equal weight give a share this variance: share (1 - share) / variance.

    Never above `at_most` (Kish's effective size of the weights), and `at_most` where all answers agree, or where the
    variance is 0 or not known (Korn and Graubard, Survey Methodology 24, 1998).
    """
    spread = share * (1 - share)
    return min(at_most, spread / variance) if spread > 0 and variance > 0 else at_most


def share_of_log_odds(log_odds: float) -> float:
    """1 / (1 + e^-x), also far from 0, where e^-x overflows."""
    return 1 / (1 + math.exp(-log_odds)) if log_odds >= 0 else math.exp(log_odds) / (1 + math.exp(log_odds))
