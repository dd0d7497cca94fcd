"""What a stage's answers say about all its candidates, and whether one stage finds more than another. Numpy alone.

Answers of one respondent hang together, so every standard error here is between respondents ("clusters"): the variance
of linearised cluster totals (Särndal, Swensson and Wretman, Model Assisted Survey Sampling, 1992, chapters 4 and 5).
The questions are fixed and the people are not, so no finite-population correction applies.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bandit.errors import DesignError
from bandit.student import student_t_quantile, student_t_upper_tail


@dataclass(frozen=True)
class StratumShare:
    """The plain share of answers in one stratum that changed: unweighted, None without answers."""

    name: str
    n: int
    changed: int
    share: float | None


@dataclass(frozen=True)
class Estimate:
    """A mean over a candidate set, in the units of the values, with a 95 % interval.

    `n` counts answers, `n_clusters` the people who gave them.
    With a single cluster the standard error and the interval are NaN, since nothing is known of how people differ.
    """

    value: float
    standard_error: float
    degrees_of_freedom: int
    interval: tuple[float, float]
    n: int
    n_clusters: int


@dataclass(frozen=True)
class Comparison:
    """Two shares, second against first. `ratio` is second / first, None if the first is 0.

    `p_one_sided` is the chance of a t at least this large if the second is no higher. If neither stage varies between
    clusters, `t` is NaN and `p_one_sided` 1, since nothing is shown.
    """

    first: float
    second: float
    difference: float
    ratio: float | None
    standard_error: float
    t: float
    degrees_of_freedom: float
    p_one_sided: float


def share_by_stratum(*, values: ArrayLike, stratum: ArrayLike, names: Sequence[str]) -> tuple[StratumShare, ...]:
    """Per stratum the answers, those that changed (`values` 1, else 0) and their plain share; arrays of shape (n,)."""
    changed = _values(values, allow_empty=True)
    if not np.isin(changed, (0, 1)).all():
        raise DesignError("values: a share needs 0 (no change) or 1 (change) for each answer")
    label = _labels(stratum, changed.size, len(names))
    shares = []
    for index, name in enumerate(names):
        inside = changed[label == index]
        count = int(inside.sum())
        share = count / inside.size if inside.size else None
        shares.append(StratumShare(name=name, n=int(inside.size), changed=count, share=share))
    return tuple(shares)


def stratified_mean(*, values: ArrayLike, stratum: ArrayLike, sizes: Sequence[int], cluster: ArrayLike) -> Estimate:
    """The mean over all candidates: each stratum's mean answer, weighted by the stratum's size N_h.

    `values`, `stratum` (index into `sizes`) and `cluster` (respondent) have shape (n,): one entry a counted answer.
    An answer's weight is N_h / r_h with r_h the answers in its stratum, so slots that nobody answered are taken to be
    missing at random within the stratum. Raises DesignError for a stratum without answers.
    """
    value = _values(values)
    total = sum(sizes)
    label = _labels(stratum, value.size, len(sizes))
    answered = np.bincount(label, minlength=len(sizes))
    for index, (size, count) in enumerate(zip(sizes, answered, strict=True)):
        if size < 1 or count < 1:
            raise DesignError(
                f"stratum {index}: has {size} candidates and {count} answers; a mean over all candidates needs both"
            )
    means = np.bincount(label, weights=value, minlength=len(sizes)) / answered
    weight = np.array(sizes)[label] / answered[label] / total
    return _estimate(
        value=float(np.dot(np.array(sizes) / total, means)),
        contributions=weight * (value - means[label]),
        cluster=cluster,
    )


def horvitz_thompson(*, values: ArrayLike, probability: ArrayLike, universe_size: int, cluster: ArrayLike) -> Estimate:
    """Sum of value / inclusion probability over the universe's size; arrays of shape (n,), one entry an answer.

    Right on average if every slot was answered. The standard error leaves the strata out of account and is therefore
    wider than that of `stratified_mean`.
    """
    value = _values(values)
    contributions = value / _probabilities(probability, value.size) / universe_size
    total = float(contributions.sum())
    people = np.unique(np.asarray(cluster)).size
    return _estimate(value=total, contributions=contributions, cluster=cluster, centre=total / people)


def hajek(*, values: ArrayLike, probability: ArrayLike, cluster: ArrayLike) -> Estimate:
    """The mean weighted by 1 / inclusion probability; arrays of shape (n,), one entry an answer.

    Non-response that hits all strata alike cancels. The standard error leaves the strata out of account.
    """
    value = _values(values)
    weight = 1 / _probabilities(probability, value.size)
    weight = weight / weight.sum()
    mean = float(np.dot(weight, value))
    return _estimate(value=mean, contributions=weight * (value - mean), cluster=cluster)


def compare_shares(
    *, first: ArrayLike, first_cluster: ArrayLike, second: ArrayLike, second_cluster: ArrayLike
) -> Comparison:
    """One-sided test that the second stage's share exceeds the first's, clustered by respondent.

    `first` and `second` hold 1 for a change and 0 for none, with a respondent each. Each share is a ratio of cluster
    totals, linearised; the stages have different respondents, so the variances add; Student's t with the degrees of
    freedom of Welch and Satterthwaite. Raises DesignError for a stage with fewer than two respondents.
    """
    shares, variances, freedom = [], [], []
    for name, values, cluster in (("first", first, first_cluster), ("second", second, second_cluster)):
        value = _values(values, field=name)
        share = float(value.mean())
        variance, clusters = _cluster_variance((value - share) / value.size, cluster)
        if clusters < 2:
            raise DesignError(f"{name}_cluster: the comparison needs answers of at least 2 respondents, not {clusters}")
        shares.append(share)
        variances.append(variance)
        freedom.append(clusters - 1)
    difference = shares[1] - shares[0]
    error = math.sqrt(sum(variances))
    if error == 0:
        t, df, p = math.nan, float(sum(freedom)), 1.0
    else:
        t = difference / error
        df = sum(variances) ** 2 / sum(v * v / f for v, f in zip(variances, freedom, strict=True))
        p = student_t_upper_tail(t, df)
    return Comparison(
        first=shares[0],
        second=shares[1],
        difference=difference,
        ratio=shares[1] / shares[0] if shares[0] else None,
        standard_error=error,
        t=t,
        degrees_of_freedom=df,
        p_one_sided=p,
    )


def _estimate(*, value: float, contributions: NDArray[np.float64], cluster: ArrayLike, centre: float = 0.0) -> Estimate:
    variance, clusters = _cluster_variance(contributions, cluster, centre=centre)
    if clusters < 2:
        error, interval = math.nan, (math.nan, math.nan)
    else:
        error = math.sqrt(variance)
        reach = student_t_quantile(0.975, clusters - 1) * error
        interval = (value - reach, value + reach)
    return Estimate(
        value=value,
        standard_error=error,
        degrees_of_freedom=clusters - 1,
        interval=interval,
        n=contributions.size,
        n_clusters=clusters,
    )


def _cluster_variance(contributions: NDArray[np.float64], cluster: ArrayLike, centre: float = 0.0) -> tuple[float, int]:
    """C / (C - 1) times the sum of squared cluster totals less their mean `centre`, and the number of clusters C."""
    label = np.asarray(cluster)
    if label.shape != contributions.shape:
        raise DesignError(f"cluster: {label.size} respondents for {contributions.size} answers; give one an answer")
    _, index = np.unique(label, return_inverse=True)
    totals = np.bincount(index, weights=contributions) - centre
    if totals.size < 2:
        return math.nan, int(totals.size)
    return float(totals.size / (totals.size - 1) * np.dot(totals, totals)), int(totals.size)


def _values(values: ArrayLike, *, field: str = "values", allow_empty: bool = False) -> NDArray[np.float64]:
    value = np.asarray(values, dtype=np.float64)
    if value.ndim != 1 or (value.size == 0 and not allow_empty):
        raise DesignError(f"{field}: needs a flat array with at least one answer, not shape {value.shape}")
    if not np.isfinite(value).all():
        raise DesignError(f"{field}: NaN or infinite for some answers; leave unanswered slots out")
    return value


def _labels(stratum: ArrayLike, n: int, n_strata: int) -> NDArray[np.int64]:
    label = np.asarray(stratum)
    if label.shape != (n,):
        raise DesignError(f"stratum: {label.size} strata for {n} answers; give one an answer")
    if n and (label.dtype.kind not in "iu" or label.min() < 0 or label.max() >= n_strata):
        raise DesignError(f"stratum: must be integers 0..{n_strata - 1}, one for each stratum")
    return label.astype(np.int64)


def _probabilities(probability: ArrayLike, n: int) -> NDArray[np.float64]:
    chance = np.asarray(probability, dtype=np.float64)
    if chance.shape != (n,):
        raise DesignError(f"probability: {chance.size} probabilities for {n} answers; give one an answer")
    if not ((chance > 0) & (chance <= 1)).all():
        raise DesignError("probability: must lie above 0 and at most at 1; an item with probability 0 cannot be drawn")
    return chance
