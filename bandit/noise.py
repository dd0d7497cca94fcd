"""How noisy the answers are, from control items, and what that noise leaves to predictors of items. Numpy alone.

What a predictor that knows an item can tell is how the item differs from others for people in general. Two answers of
*different* people to one item agree beyond chance by just that: their covariance is the variance of the items' chances,
whatever habits people have and whatever their earlier answers do to later ones. Two answers of one person agree by that
person's habits too, and say nothing of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bandit.correlation import weighted_correlation
from bandit.errors import DesignError
from bandit.estimate import Estimate, EstimateSample, estimate_of, satterthwaite
from bandit.estimators import naive_mean
from bandit.intervals import student_interval
from bandit.student import student_t_quantile

MIN_ITEMS = 2  # of a stratum, answered by several people


@dataclass(frozen=True)
class Retest:
    """Items asked twice: their number, the people, Pearson's correlation, its 95 % interval, the share of equal
    answers; correlation and share weighted where weights were given.

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


def retest_correlation(
    *, first: ArrayLike, second: ArrayLike, cluster: ArrayLike, weight: ArrayLike | None = None
) -> Retest:
    """The correlation between the first and the second answer to the same items, by people; arrays of shape (n,).

    Beliefs in points, or 0 and 1 for "changed". `weight`: how many items each stands for, above 0; without it, the
    figures are of the items that were asked twice and not of all. The interval is Student's t around Fisher's z, with
    the delete-one-respondent jackknife's standard error (Efron and Tibshirani, An Introduction to the Bootstrap, 1993,
    chapter 11).
    """
    first_answers, other = _answers(first, "first"), _answers(second, "second")
    label = np.asarray(cluster)
    if not first_answers.size == other.size == label.size:
        raise DesignError(
            f"first, second, cluster: must be equally long, not {first_answers.size}, {other.size} and {label.size}"
        )
    weights = np.ones(first_answers.size) if weight is None else _answers(weight, "weight")
    if weights.size != first_answers.size or not (weights > 0).all():
        raise DesignError(f"weight: needs a number above 0 for each of {first_answers.size} items asked twice")
    people, index = np.unique(label, return_inverse=True)
    correlation = weighted_correlation(first_answers, other, weights)
    without = np.array(
        [
            _fisher_z(weighted_correlation(first_answers[remaining], other[remaining], weights[remaining]))
            for remaining in (index != k for k in range(people.size))
        ]
    )
    interval = (math.nan, math.nan)
    if people.size >= 4 and np.isfinite(without).all() and abs(correlation) < 1:
        centre = _fisher_z(correlation)
        spread = (people.size - 1) / people.size * float(((without - without.mean()) ** 2).sum())
        ends = student_interval(centre, math.sqrt(spread), people.size - 1)
        interval = interval if ends is None else (math.tanh(ends[0]), math.tanh(ends[1]))
    return Retest(
        n=first_answers.size,
        n_clusters=int(people.size),
        correlation=correlation,
        interval=interval,
        same=float(np.average(first_answers == other, weights=weights)),
    )


@dataclass(frozen=True)
class AucLimit:
    """An upper limit of the AUC that predictors of items can reach on single answers of other people.

    `limit` lies below the AUC of the best such predictor in at most 5 % of studies. `between_items` is the variance of
    the items' chances over all candidates, with its error, and `highest_variance` its upper limit at 96 %. `items` were
    answered by several people.
    """

    limit: float
    between_items: Estimate
    highest_variance: float
    items: int


def item_variance(
    *,
    values: ArrayLike,
    item: ArrayLike,
    cluster: ArrayLike,
    stratum: ArrayLike,
    sizes: Sequence[int],
    mean: float,
    weight: ArrayLike | None = None,
) -> Estimate:
    """The variance between items of their chances, over all candidates of a stage, from items that several people
    answered.

    `values` (0 or 1), `item`, `cluster` (the person) and `stratum` have shape (n,): every answer to an item, the others
    are passed over. `mean`: the share over all candidates. `weight`: (n,), how many items each item stands for, where
    those of one stratum had different chances. An item's figure is the mean product of two different people's
    deviations from `mean`, and a stratum's items stand for all of its candidates. The standard error is between people,
    each of whom may be in several products; a stratum's spread counts as at least that of all items and as that of
    answers without any difference between items, so that few items do not look alike by chance. `n` counts the items.
    Raises DesignError where a stratum has fewer than two such items.
    """
    value = _answers(values, "values")
    name, person, place = np.asarray(item), np.asarray(cluster), np.asarray(stratum)
    if not value.size == name.size == person.size == place.size:
        raise DesignError("values, item, cluster, stratum: must be equally long")
    if not np.isin(value, (0, 1)).all():
        raise DesignError("values: need 0 or 1 for each answer")
    weights = np.ones(value.size) if weight is None else _answers(weight, "weight")
    # One answer a person and item.
    _, first = np.unique(np.column_stack(_numbered(name, person)), axis=0, return_index=True)
    _, whose = np.unique(person[first], return_inverse=True)
    items, index = np.unique(name[first], return_inverse=True)
    deviation = value[first] - mean
    count = np.bincount(index)
    total = np.bincount(index, weights=deviation)
    square = np.bincount(index, weights=deviation**2)
    several = count > 1
    home = np.zeros(items.size, dtype=np.int64)
    home[index] = place[first]
    each = np.zeros(items.size)
    each[index] = weights[first]
    answered = np.bincount(home[several], minlength=len(sizes))
    for number, (size, answered_count) in enumerate(zip(sizes, answered, strict=True)):
        if size and answered_count < MIN_ITEMS:
            raise DesignError(
                f"stratum {number}: {answered_count} items that two people answered, fewer than {MIN_ITEMS}"
            )
    product = np.where(several, (total**2 - square) / np.maximum(count * (count - 1), 1), 0.0)
    each = np.where(several, each, 0.0)
    relative = each / np.bincount(home, weights=each, minlength=len(sizes))[home]
    share = np.asarray(sizes, dtype=np.float64) / sum(sizes)
    by_stratum = np.bincount(home, weights=relative * product, minlength=len(sizes))
    residual = np.where(several, product - by_stratum[home], 0.0)
    contributions = share[home] * relative * residual
    # Between people: products that share a person. An item with k answers is in the totals of k people.
    totals = np.bincount(whose, weights=contributions[index])
    people = totals.size
    between = people / max(people - 1, 1) * float(np.dot(totals, totals))
    between -= float(np.dot(np.where(several, count - 1, 0), contributions**2))
    kish = 1 / np.bincount(home, weights=relative**2, minlength=len(sizes))
    own = np.bincount(home, weights=relative * residual**2, minlength=len(sizes)) * kish / np.maximum(kish - 1, 1e-9)
    pooled = float((residual[several] ** 2).sum() / max(several.sum() - len(sizes), 1))
    spread = np.maximum.reduce([own, np.full(own.size, pooled), np.full(own.size, (mean * (1 - mean)) ** 2)])
    parts = share**2 * spread / kish
    final = share[home[several]] * relative[several]
    sample = EstimateSample.of(final, n_clusters=int(np.unique(whose[several[index]]).size))
    return estimate_of(
        sample,
        value=float(np.dot(share, by_stratum)),
        variance=max(float(parts.sum()), between),
        degrees_of_freedom=satterthwaite(parts.tolist(), np.maximum(kish - 1, 1).tolist()),
    )


def auc_limit(*, between_items: Estimate, base_rate: Estimate) -> AucLimit:
    """The upper limit of the AUC, from the variance between items (`item_variance`, or a mean of several stages') and
    the share of answers that changed, q.

    A predictor that knows each item's chance p has AUC 1/2 + E|p - p'| / (4 q (1 - q)), p and p' of two items. Whatever
    the chances' distribution, E|p - p'| is at most 2 / sqrt(3) standard deviations of p (Yitzhaki and Schechtman, The
    Gini Methodology, 2013). The variance is taken at its upper limit at 96 % and q (1 - q) at its lower limit at 99 %,
    so that both hold in at least 95 % of studies. Raises DesignError where all answers, or none, changed.
    """
    if not 0 < base_rate.value < 1 or math.isnan(base_rate.standard_error):
        raise DesignError(f"base_rate: must be a share between 0 and 1 with an error, not {base_rate.value}")
    slack = student_t_quantile(0.99, base_rate.degrees_of_freedom) * base_rate.standard_error
    ends = np.clip([base_rate.value - slack, base_rate.value + slack], 0.0, 1.0)
    spread = float(min(end * (1 - end) for end in ends))
    highest = between_items.value + (
        student_t_quantile(0.96, between_items.degrees_of_freedom) * between_items.standard_error
    )
    highest = min(max(highest, 0.0), base_rate.value * (1 - base_rate.value))
    limit = 1.0 if not spread > 0 else min(1.0, 0.5 + 2 / math.sqrt(3) * math.sqrt(highest) / (4 * spread))
    return AucLimit(limit=limit, between_items=between_items, highest_variance=highest, items=between_items.n)


def _numbered(*labels: NDArray[np.generic]) -> list[NDArray[np.intp]]:
    return [np.unique(label, return_inverse=True)[1] for label in labels]


def _fisher_z(correlation: float) -> float:
    return math.inf if abs(correlation) == 1 else math.atanh(correlation)


def _answers(values: ArrayLike, field: str) -> NDArray[np.float64]:
    answers = np.asarray(values, dtype=np.float64)
    if answers.ndim != 1 or not answers.size or not np.isfinite(answers).all():
        raise DesignError(f"{field}: needs a flat array of numbers, one for each item asked twice")
    return answers
