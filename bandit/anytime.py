"""Intervals that hold at any time: one may look after every person, and stop because of what one sees. Numpy-free.

An ordinary 95 % interval holds the truth in 95 % of studies if it is looked at once. These hold it at all looks
together in 95 % of studies, asymptotically, so that a study may be ended as soon as its interval is narrow enough. They
are about half as wide again as ordinary ones.

Source: asymptotic confidence sequences with Robbins' normal mixture (Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas,
"Time-uniform central limit theory and asymptotic confidence sequences", arXiv 2103.06476, theorem 2.2 and appendix on
the choice of rho). The units that come one after the other are people: their answers hang together, and the standard
errors of `bandit.estimators` are between them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from bandit.errors import DesignError
from bandit.estimate import Estimate

ALPHA = 0.05


@dataclass(frozen=True)
class AnytimeInterval:
    """An estimate after `people` people, in the units of its values, with its interval that holds at any time."""

    value: float
    standard_error: float
    people: int
    interval: tuple[float, float]

    @property
    def width(self) -> float:
        return self.interval[1] - self.interval[0]


def mixture_parameter(people: int, *, alpha: float = ALPHA) -> float:
    """The rho with which the interval is narrowest after so many people.

    It must be fixed before the first answer.

    Raises:
        DesignError: fewer than 1 person, or no chance between 0 and 1.
    """
    if people < 1:
        raise DesignError(f"people: must be at least 1, not {people}")
    doubled = -2 * math.log(_checked(alpha))
    return math.sqrt((doubled + math.log(doubled + 1)) / people)


def errors_wide(people: int, *, rho: float, alpha: float = ALPHA) -> float:
    """How many standard errors the interval reaches to either side after so many people (1.96 for an ordinary one).

    Raises:
        DesignError: fewer than 1 person, a rho that is not above 0, or no chance between 0 and 1.
    """
    if people < 1:
        raise DesignError(f"people: must be at least 1, not {people}")
    if not 0 < rho < math.inf:
        raise DesignError(f"rho: must be a number above 0, not {rho}")
    spread = people * rho**2
    return math.sqrt((1 + 1 / spread) * 2 * math.log(math.sqrt(spread + 1) / _checked(alpha)))


def anytime_interval(
    estimate: Estimate, *, rho: float, alpha: float = ALPHA, span: Sequence[float] | None = None
) -> AnytimeInterval:
    """The interval around an estimate that holds at this look and at all others, with the chance 1 - alpha.

    `estimate`: with a standard error between people, of the first `n_clusters` people. Asymptotic: look first when
    there are some tens of people. Where the standard error is not known, neither is the interval (NaN). `span`: the
    lowest and the highest value that the truth can have. What lies beyond is cut off; the truth is never there, so that
    the interval holds as often as before.
    """
    reach = errors_wide(estimate.n_clusters, rho=rho, alpha=alpha) * estimate.standard_error
    return AnytimeInterval(
        value=estimate.value,
        standard_error=estimate.standard_error,
        people=estimate.n_clusters,
        interval=cut_to_span((estimate.value - reach, estimate.value + reach), span),
    )


def cut_to_span(interval: tuple[float, float], span: Sequence[float] | None) -> tuple[float, float]:
    """The part of an interval that lies inside `span`; the interval itself without one, or where it is NaN."""
    low, high = interval
    if span is None or math.isnan(low):
        return interval
    return max(low, span[0]), min(high, span[1])


def _checked(alpha: float) -> float:
    if not 0 < alpha < 1:
        raise DesignError(f"alpha: must lie above 0 and below 1, not {alpha}")
    return alpha
