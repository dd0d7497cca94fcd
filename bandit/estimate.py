"""One estimate with its standard error, and the interval that belongs to them. Numpy alone; a leaf next to
`bandit.student`.

Every estimator of the library, whatever its variance is made of, builds its `Estimate` here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bandit.effective import effective_size
from bandit.intervals import effective_answers, student_interval, wilson_interval
from bandit.student import student_t_upper_tail

MIN_RESPONDENTS = 30
MIN_OF_EITHER = 5
MIN_OF_A_MEAN = 20  # effective answers of a figure in points
ROUNDING = 1e-12
WILSON_BELOW = 10  # effective answers of the rarer kind


@dataclass(frozen=True)
class Estimate:
    """A mean over a candidate set (or a difference of two), in the units of the values, with a 95 % interval.

    `n` counts answers, `n_clusters` the people who gave them.
    With a single cluster the standard error and the interval are NaN, since nothing is known of how people differ.
    Where all answers are alike the standard error is 0 and the interval NaN (for a share, Wilson's).
    `interval` is Student's t with people - 1 degrees of freedom (items - 1, where several people answered each item and
    there are fewer of these), or, where `method` says so, Wilson's for a share near 0 or 1, or of few people, on the
    effective number of answers, variance of the design and of people included.
    `effective_sample_size` is Kish's: (sum of weights)^2 / sum of squared weights; `weight_range` the smallest and the
    largest weight, in mean weights. `rarer`, for a share, counts the answers of the rarer kind, and is None otherwise.
    """

    value: float
    standard_error: float
    degrees_of_freedom: float
    interval: tuple[float, float]
    n: int
    n_clusters: int
    effective_sample_size: float
    weight_range: tuple[float, float]
    rarer: int | None = None
    method: Literal["t", "wilson"] = "t"

    @property
    def too_few(self) -> str:
        """Why the interval is not reliable; empty if it is."""
        reasons = []
        if self.n_clusters < MIN_RESPONDENTS:
            reasons.append(f"{self.n_clusters} respondents, fewer than {MIN_RESPONDENTS}")
        if self.rarer is not None and self.rarer < MIN_OF_EITHER:
            reasons.append(f"{self.rarer} answers of the rarer kind, fewer than {MIN_OF_EITHER}")
        elif self.rarer is not None and 0 < (alike := self.rarer_of_equal_weight) < MIN_OF_EITHER - 1e-6:
            reasons.append(
                f"{self.rarer} answers of the rarer kind weigh as much as {alike:.1f} of equal weight, fewer than "
                f"{MIN_OF_EITHER}"
            )
        if self.rarer is None and self.effective_sample_size < MIN_OF_A_MEAN:
            reasons.append(
                f"an effective sample of {self.effective_sample_size:.0f} answers, fewer than {MIN_OF_A_MEAN}, "
                "which may have missed seldom large ones"
            )
        if self.standard_error == 0 and not self.has_interval:
            reasons.append("nothing varies between the answers, so that there is no interval")
        return "; ".join(reasons)

    @property
    def rarer_of_equal_weight(self) -> float:
        """Of a share: how many answers of the rarer kind there would be among equally weighted ones that are as precise
        (`effective_sample_size`). Where scores find that kind, most of them are light, and a few heavy ones decide."""
        return self.effective_sample_size * min(self.value, 1 - self.value)

    @property
    def has_interval(self) -> bool:
        return not any(math.isnan(end) for end in self.interval)

    def p_two_sided(self, null: float = 0.0) -> float | None:
        """The chance of an estimate at least this far from `null` if that is the truth; None if nothing varies."""
        if not self.standard_error > 0:
            return None
        return 2 * student_t_upper_tail(abs(self.value - null) / self.standard_error, self.degrees_of_freedom)

    def with_error(self, standard_error: float, degrees_of_freedom: float) -> Estimate:
        """The same mean of the same answers with another standard error, and the interval of that."""
        interval, method = interval_of(
            value=self.value,
            standard_error=standard_error,
            degrees_of_freedom=degrees_of_freedom,
            kish=self.effective_sample_size,
            share=self.rarer is not None,
        )
        return replace(
            self,
            standard_error=standard_error,
            degrees_of_freedom=degrees_of_freedom,
            interval=interval,
            method=method,
        )


@dataclass(frozen=True)
class EstimateSample:
    """The answers that an estimate rests on: how many, of how many people, and how unequally they weigh.

    `rarer`: of a share, the answers of the rarer kind; None for other figures.
    """

    n: int
    n_clusters: int
    effective_sample_size: float
    weight_range: tuple[float, float]
    rarer: int | None = None

    @classmethod
    def of(cls, weight: NDArray[np.float64], *, n_clusters: int, rarer: int | None = None) -> EstimateSample:
        """`weight`: of each answer, shape (n,), at least 0, in any unit."""
        mean = weight.mean()
        return cls(
            n=weight.size,
            n_clusters=n_clusters,
            effective_sample_size=effective_size(weight),
            weight_range=(float(weight.min() / mean), float(weight.max() / mean)),
            rarer=rarer,
        )


def estimate_of(
    sample: EstimateSample, *, value: float, variance: float, degrees_of_freedom: float, alike: float = 1.0
) -> Estimate:
    """The estimate with this variance, which is NaN where nothing is known of it.

    `alike`: how many answers of different items an answer is worth where all answers agree; below 1 where several
    people answered each item, since nothing else then says how much several answers to one item are worth.
    """
    if sample.rarer is not None:  # Weights that sum to 1 but for rounding may make a share of 1.0000000000000002.
        value = min(1.0, max(0.0, value))
    error = standard_error_of(variance, value)
    interval: tuple[float, float] = (math.nan, math.nan)
    method: Literal["t", "wilson"] = "t"
    if not math.isnan(error):
        kish = sample.effective_sample_size
        interval, method = interval_of(
            value=value,
            standard_error=error,
            degrees_of_freedom=degrees_of_freedom,
            kish=kish if error > 0 else kish * alike,
            share=sample.rarer is not None,
        )
    return Estimate(
        value=value,
        standard_error=error,
        degrees_of_freedom=degrees_of_freedom,
        interval=interval,
        n=sample.n,
        n_clusters=sample.n_clusters,
        effective_sample_size=sample.effective_sample_size,
        weight_range=sample.weight_range,
        rarer=sample.rarer,
        method=method,
    )


def satterthwaite(variances: Sequence[float], freedoms: Sequence[float]) -> float:
    """The degrees of freedom of a sum of independent variances (Welch, and Satterthwaite, Biometrics Bulletin 2, 1946);
    the sum of theirs where all variances are 0."""
    total = sum(variances)
    if not total > 0:
        return float(sum(freedoms))
    return float(total**2 / sum(variance**2 / df for variance, df in zip(variances, freedoms, strict=True)))


def minus(estimate: Estimate, other: Estimate, *, same_people: bool) -> Estimate:
    """The difference of two estimates of different answers.

    `same_people`: some people are on both sides. The standard error is then the sum of both sides', which no
    correlation exceeds; for different people it is the root of the sum of squares, with Welch's and Satterthwaite's
    degrees of freedom.
    """
    errors = [estimate.standard_error, other.standard_error]
    freedoms = [estimate.degrees_of_freedom, other.degrees_of_freedom]
    variances = [error**2 for error in errors]
    sample = EstimateSample(
        n=estimate.n + other.n,
        n_clusters=max(estimate.n_clusters, other.n_clusters)
        if same_people
        else estimate.n_clusters + other.n_clusters,
        effective_sample_size=estimate.effective_sample_size + other.effective_sample_size,
        weight_range=(
            min(estimate.weight_range[0], other.weight_range[0]),
            max(estimate.weight_range[1], other.weight_range[1]),
        ),
    )
    return estimate_of(
        sample,
        value=estimate.value - other.value,
        variance=sum(errors) ** 2 if same_people else sum(variances),
        degrees_of_freedom=min(freedoms) if same_people else satterthwaite(variances, freedoms),
    )


def standard_error_of(variance: float, value: float) -> float:
    """The root of a variance; 0 where that is only the rounding of floats, for answers that are all alike."""
    error = math.sqrt(variance)
    return 0.0 if error <= ROUNDING * max(1.0, abs(value)) else error


def interval_of(
    *, value: float, standard_error: float, degrees_of_freedom: float, kish: float, share: bool
) -> tuple[tuple[float, float], Literal["t", "wilson"]]:
    """The 95 % interval and its method: Wilson's for a `share` with few effective answers of either kind, or where t's
    would end below 0 or above 1, else t's.

    Without a standard error anything but a share has no interval. The effective number of answers is
    value * (1 - value) / standard_error^2, but never above `kish`, and `kish` where all answers agree (Korn and
    Graubard, Survey Methodology 24, 1998; the interval is Wilson's, 1927).
    """
    plain = student_interval(value, standard_error, degrees_of_freedom)
    if share and 0 <= value <= 1:
        effective = effective_answers(value, standard_error**2, kish)
        outside = plain is not None and (plain[0] < 0 or plain[1] > 1)
        if effective * min(value, 1 - value) < WILSON_BELOW or outside:
            return wilson_interval(value, effective, degrees_of_freedom), "wilson"
    return plain or (math.nan, math.nan), "t"
