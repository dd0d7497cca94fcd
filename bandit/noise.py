"""How noisy the answers are, from control items, and what that noise leaves any predictor. Numpy alone."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bandit.errors import DesignError
from bandit.estimators import Estimate, naive_mean
from bandit.student import student_t_quantile


@dataclass(frozen=True)
class Retest:
    """Items asked twice: their number, the people, Pearson's correlation, its 95 % interval, the share of equal
    answers.

    Correlation and interval are NaN where one of the two rounds does not vary, the interval also with fewer than 4
    people or a perfect correlation without its jackknife's spread.
    """

    n: int
    n_clusters: int
    correlation: float
    interval: tuple[float, float]
    same: float


def false_change_rate(*, changed: ArrayLike, cluster: ArrayLike) -> Estimate:
    """The share of beliefs that changed with no evidence, or with evidence that has nothing to do with the target.

    `changed`: 0 or 1 for each answer to a control of one kind, `cluster` its respondent, both of shape (n,).
    """
    return naive_mean(values=changed, cluster=cluster, share=True)


def retest_correlation(*, first: ArrayLike, second: ArrayLike, cluster: ArrayLike) -> Retest:
    """The correlation between the first and the second answer to the same items, by people; arrays of shape (n,).

    Beliefs in points, or 0 and 1 for "changed". The interval is Student's t around Fisher's z, with the delete-one-
    respondent jackknife's standard error (Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapter 11).
    """
    one, other = _answers(first, "first"), _answers(second, "second")
    label = np.asarray(cluster)
    if not one.size == other.size == label.size:
        raise DesignError(
            f"first, second, cluster: must be equally long, not {one.size}, {other.size} and {label.size}"
        )
    people, index = np.unique(label, return_inverse=True)
    correlation = _correlation(one, other)
    without = np.array([_fisher_z(_correlation(one[index != k], other[index != k])) for k in range(people.size)])
    interval = (math.nan, math.nan)
    if people.size >= 4 and np.isfinite(without).all() and abs(correlation) < 1:
        centre = _fisher_z(correlation)
        spread = (people.size - 1) / people.size * float(((without - without.mean()) ** 2).sum())
        reach = student_t_quantile(0.975, people.size - 1) * math.sqrt(spread)
        interval = (math.tanh(centre - reach), math.tanh(centre + reach))
    return Retest(
        n=one.size,
        n_clusters=int(people.size),
        correlation=correlation,
        interval=interval,
        same=float((one == other).mean()),
    )


def auc_ceiling(*, base_rate: float, false_change: float = 0.0, retest: float = 1.0) -> float:
    """The highest AUC that any predictor of "changed" can have on new answers, given how noisy they are; 0.5..1.

    `base_rate`: the share of answers that changed, q; `false_change`: the share that changes without evidence, f;
    `retest`: the correlation of "changed" between two answers to one item, r (an item's chance of a change is then
    spread with variance r q (1 - q)).

    A predictor that knows each item's chance p has AUC 1/2 + E|p - p'| / (4 q (1 - q)), p and p' of two items. Whatever
    the chances' distribution, E|p - p'| is at most 2 / sqrt(3) standard deviations of p (Yitzhaki and Schechtman, The
    Gini Methodology, 2013) and, as no chance is under f, at most 2 (q - f) (1 - q) / (1 - f). The lower bound counts.
    Repeats by one person also contain that person's habits, which no predictor of items can know. The result is then
    higher than it need be, and still a ceiling.
    """
    for name, share in (("base_rate", base_rate), ("false_change", false_change)):
        if not 0 <= share <= 1 or (name == "base_rate" and share in (0, 1)):
            raise DesignError(f"{name}: must be a share between 0 and 1, not {share}")
    if not -1 <= retest <= 1:
        raise DesignError(f"retest: must be a correlation, not {retest}")
    spread = base_rate * (1 - base_rate)
    by_retest = 2 / math.sqrt(3) * math.sqrt(max(retest, 0.0) * spread)
    by_floor = 2 * max(base_rate - false_change, 0.0) * (1 - base_rate) / (1 - false_change) if false_change < 1 else 0
    return min(1.0, 0.5 + min(by_retest, by_floor) / (4 * spread))


def _correlation(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    if one.size < 2 or one.min() == one.max() or other.min() == other.max():
        return math.nan
    return float(np.clip(np.corrcoef(one, other)[0, 1], -1, 1))


def _fisher_z(correlation: float) -> float:
    return math.inf if abs(correlation) == 1 else math.atanh(correlation)


def _answers(values: ArrayLike, field: str) -> NDArray[np.float64]:
    answers = np.asarray(values, dtype=np.float64)
    if answers.ndim != 1 or not answers.size or not np.isfinite(answers).all():
        raise DesignError(f"{field}: needs a flat array of numbers, one for each item asked twice")
    return answers
