"""Intervals that hold at any time: one may look after every person, and stop because of what one sees. Numpy-free.

An ordinary 95 % interval holds the truth in 95 % of studies if it is looked at once. These hold it at all looks
together in 95 % of studies, asymptotically, so that a study may be ended as soon as its interval is narrow enough. They
are about half as wide again as ordinary ones.

Source: asymptotic confidence sequences with Robbins' normal mixture (Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas,
"Time-uniform central limit theory and asymptotic confidence sequences", arXiv 2103.06476, theorem 2.2 and appendix on
the choice of rho). The units that come one after the other are people: their answers hang together, and the standard
errors of `bandit.estimators` are between them.

The interval of a share is laid around its logit (the same theorem with the delta method: Robbins' mixture on the scale
on which a share is nearly normal). Around the share itself it holds too seldom where the share is small and a few heavy
answers decide: whenever few of these are of the rarer kind, the share and its standard error are too small together.

What it assumes beside: people come in an order that has nothing to do with their answers, so that those who come first
are like those who come later. The strata are those of the whole plan, so that an early look has each stratum's answers
by chance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from bandit.errors import DesignError
from bandit.estimate import Estimate
from bandit.intervals import share_of_log_odds

ALPHA = 0.05
Scale = Literal["plain", "logit"]


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
    estimate: Estimate,
    *,
    rho: float,
    alpha: float = ALPHA,
    span: Sequence[float] | None = None,
    scale: Scale = "plain",
) -> AnytimeInterval:
    """The interval around an estimate that holds at this look and at all others, with the chance 1 - alpha.

    `estimate`: with a standard error between people, of the first `n_clusters` people. Asymptotic: look first when
    there are some tens of people. Where the standard error is not known, neither is the interval (NaN). `span`: the
    lowest and the highest value that the truth can have. What lies beyond is cut off; the truth is never there, so that
    the interval holds as often as before. `scale`: logit for a share, plain for everything else.
    """
    ends = anytime_ends(
        estimate.value, estimate.standard_error, estimate.n_clusters, rho=rho, alpha=alpha, span=span, scale=scale
    )
    return AnytimeInterval(
        value=estimate.value, standard_error=estimate.standard_error, people=estimate.n_clusters, interval=ends
    )


def anytime_ends(
    value: float,
    standard_error: float,
    people: int,
    *,
    rho: float,
    alpha: float = ALPHA,
    span: Sequence[float] | None = None,
    scale: Scale = "plain",
) -> tuple[float, float]:
    """The ends of `anytime_interval` from the numbers alone. A share of 0 or 1 has no logit and a standard error of 0:
    both ends are the share."""
    reach = errors_wide(people, rho=rho, alpha=alpha) * standard_error
    if scale == "plain" or not 0 < value < 1 or math.isnan(reach):
        return cut_to_span((value - reach, value + reach), span)
    middle, reach = math.log(value / (1 - value)), reach / (value * (1 - value))
    return cut_to_span((share_of_log_odds(middle - reach), share_of_log_odds(middle + reach)), span)


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
