"""People who leave before their last item: a test, weights by the chance of staying, and bounds. Numpy alone.

Whoever leaves gives fewer answers than whoever stays, and a mean of the answers given is nearer to those who stay. If
leaving depends on what a person has answered so far, answers weighted by 1 / the chance of being still there stand for
everybody who began (inverse-probability-of-censoring weights, Robins, Rotnitzky and Zhao, JASA 90, 1995). If it depends
on the answer that was not given, no weight helps and no test shows it; then there are bounds: for a stated odds ratio
between unanswered and answered items, or for anything whatever (Manski, American Economic Review 80, 1990).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bandit.errors import DesignError
from bandit.estimators import Estimate, interval_of
from bandit.logistic import fit_logistic, predict_logistic

ODDS_RATIO = 2.0
FEWEST_LEAVERS = 10
LEAST_CHANCE = 0.05  # of being still there: no answer counts for more than 20


@dataclass(frozen=True)
class LeavingTest:
    """Whether people leave by what they have just answered.

    `at_risk` counts answers with a further item to come, `left` the people who left after one of them. `share_after`
    and `share_else` are the shares that left after an answer above 0 and after another one, None without such answers;
    `odds_ratio` is Mantel and Haenszel's between them, None where it is 0 / 0, a division by 0, or the values are not 0
    and 1. `p` is two-sided, None where `reason` says why.
    """

    at_risk: int
    left: int
    share_after: float | None
    share_else: float | None
    odds_ratio: float | None
    p: float | None
    reason: str


def leaving_test(*, left: ArrayLike, value: ArrayLike, stratum: ArrayLike) -> LeavingTest:
    """Mantel and Haenszel's test (Journal of the National Cancer Institute 22, 1959) of leaving on the last answer.

    One entry for each answer with a further item to come, shape (n,): `left`, whether the person then left; `value`,
    what was answered (0 or 1, or a number, with the test's extension to scores, Mantel, JASA 58, 1963); `stratum`, the
    combination of stage and item number, inside which leavers are compared with stayers. Without a correction for
    continuity. p is withheld with fewer than 10 people who left, and where nothing varies.
    """
    gone, number = np.asarray(left, dtype=bool), np.asarray(value, dtype=np.float64)
    place = np.asarray(stratum)
    if not gone.shape == number.shape == place.shape or gone.ndim != 1:
        raise DesignError(f"left, value, stratum: need one entry each, not {gone.size}, {number.size} and {place.size}")
    _, index = np.unique(place, return_inverse=True)
    count = np.bincount(index).astype(np.float64)
    leavers = np.bincount(index, weights=gone)
    mean = np.bincount(index, weights=number) / count
    spread = np.bincount(index, weights=(number - mean[index]) ** 2) / count
    found = float(number[gone].sum() - np.dot(leavers, mean))
    variance = float((leavers * (count - leavers) * spread / np.maximum(count - 1, 1)).sum())
    reason = ""
    if gone.sum() < FEWEST_LEAVERS:
        reason = f"{int(gone.sum())} people left, fewer than {FEWEST_LEAVERS}"
    elif not variance > 0:
        reason = "all answers before leaving are alike"
    above = number > 0
    return LeavingTest(
        at_risk=int(gone.size),
        left=int(gone.sum()),
        share_after=float(gone[above].mean()) if above.any() else None,
        share_else=float(gone[~above].mean()) if not above.all() else None,
        odds_ratio=_odds_ratio(gone, above, index, count) if np.isin(number, (0, 1)).all() else None,
        p=None if reason else math.erfc(abs(found) / math.sqrt(2 * variance)),
        reason=reason,
    )


def _odds_ratio(
    gone: NDArray[np.bool_], above: NDArray[np.bool_], index: NDArray[np.intp], count: NDArray[np.float64]
) -> float | None:
    def of(mask: NDArray[np.bool_]) -> NDArray[np.float64]:
        return np.bincount(index, weights=mask, minlength=count.size).astype(np.float64)

    with_it, against = (
        float((of(one & above) * of(other & ~above) / count).sum()) for one, other in ((gone, ~gone), (~gone, gone))
    )
    return with_it / against if against > 0 else None


def staying_chances(
    *,
    value: ArrayLike,
    sitting: ArrayLike,
    number: ArrayLike,
    left: ArrayLike,
    known: ArrayLike,
    cluster: ArrayLike,
    rng: np.random.Generator,
    folds: int = 5,
) -> NDArray[np.float64]:
    """The chance that whoever gave each answer was still there to give it, shape (n,), above 0 and at most 1.

    One entry an answer, shape (n,): `value`, what was answered; `sitting`; `number`, the place of the item among the
    sitting's items, from 1; `left`, whether the person left after it; `known`, whether it is known that they did or did
    not (false for the last item, and where a sitting is still going on); `cluster`, the person.

    The chance of leaving after an answer is a logistic regression on the item's number, the answer itself and the mean
    of the person's answers before it. It is fitted by folds of people, so that nobody's own leaving makes their weight.
    The chance of being there is the product over the items before, and at least 0.05. Raises DesignError with fewer
    than 10 people who left, or fewer than 10 people.
    """
    answer, order_by = np.asarray(value, dtype=np.float64), np.asarray(number, dtype=np.float64)
    gone, has, run = np.asarray(left, dtype=bool), np.asarray(known, dtype=bool), np.asarray(sitting)
    people, person = np.unique(np.asarray(cluster), return_inverse=True)
    if (gone & has).sum() < FEWEST_LEAVERS or people.size < 2 * folds:
        raise DesignError(
            f"left: {int((gone & has).sum())} of {people.size} people left; weights need at least {FEWEST_LEAVERS} of "
            f"{2 * folds}"
        )
    order = np.lexsort((order_by, run))
    answer, place, person = answer[order], order_by[order], person[order]
    gone, has, run = gone[order], has[order], run[order]
    starts = np.flatnonzero(np.concatenate([[True], run[1:] != run[:-1]]))
    index = np.repeat(np.arange(starts.size), np.diff(starts, append=run.size))
    rank = np.arange(run.size) - starts[index]
    before = np.cumsum(answer) - answer
    before = before - before[starts][index]
    middle, scale = float(answer.mean()), float(answer.std()) or 1.0
    standard = (answer - middle) / scale
    # The mean of the answers before this one, drawn towards the mean of all by one answer's weight.
    past = (before - rank * middle) / (rank + 1) / scale
    spread = float(place.std()) or 1.0
    columns = np.column_stack([np.ones(run.size), (place - place.mean()) / spread, standard, past])
    ridge = np.array([1e-3, 0.5, 0.5, 0.5])
    of_person = rng.permutation(np.arange(people.size) % folds)
    hazard = np.zeros(run.size)
    for fold in range(folds):
        held = of_person[person] == fold
        train = ~held & has
        fitted = fit_logistic(columns=columns[train], label=gone[train].astype(np.float64), precision=ridge)
        hazard[held] = predict_logistic(columns[held], fitted)
    stays = np.log1p(-np.minimum(hazard, 1 - 1e-9))
    until = np.cumsum(stays) - stays
    chance = np.empty(run.size)
    chance[order] = np.maximum(np.exp(until - until[starts][index]), LEAST_CHANCE)
    return np.minimum(chance, 1.0)


@dataclass(frozen=True)
class Bounds:
    """The lowest and the highest mean that the assumption allows, each with its own standard error. `interval` reaches
    from the lower one's low end to the upper one's high end: it holds the truth in at least 95 % of studies wherever
    the assumption holds. `odds_ratio` is infinite for worst-case bounds. `unanswered` counts the items that were given
    to somebody and not answered."""

    lower: Estimate
    upper: Estimate
    odds_ratio: float
    unanswered: int

    @property
    def interval(self) -> tuple[float, float]:
        return self.lower.interval[0], self.upper.interval[1]


def bounds(
    *,
    values: ArrayLike,
    stratum: ArrayLike,
    sizes: Sequence[int],
    cluster: ArrayLike,
    missing_stratum: ArrayLike,
    missing_cluster: ArrayLike,
    odds_ratio: float = ODDS_RATIO,
    span: tuple[float, float] | None = None,
    weight: ArrayLike | None = None,
    missing_weight: ArrayLike | None = None,
    domain: ArrayLike | None = None,
    missing_domain: ArrayLike | None = None,
    item: ArrayLike | None = None,
    universe_size: int | None = None,
    share: bool = False,
) -> Bounds:
    """Bounds of the mean over all candidates if everybody who began had answered all their items.

    `values`, `stratum`, `cluster`, `domain`, `item`: of the n answers, as in `stratified_mean`. `missing_stratum`,
    `missing_cluster`, `missing_domain`: of the m items that were given to a person who did not answer them; the domain
    may be a chance from 0 to 1 where it is not known. `weight` (n,) and `missing_weight` (m,) are 1 / inclusion
    probability for designs with unequal chances in one stratum.

    In each stratum, the odds that an item is unanswered differ by at most the factor `odds_ratio` between any two
    values that its answer would have had. For values of 0 and 1 that is an odds ratio between unanswered and answered
    items. The highest mean is found by a cut: values above it are that much more frequent among the unanswered (as in
    Aronow and Lee, Biometrika 100, 2013). With an infinite `odds_ratio` every unanswered item has the lowest, or the
    highest, value of `span`. Standard errors are between people, of linearised totals at the cut that was found, with
    the number of unanswered items counted as random.
    """
    value = np.asarray(values, dtype=np.float64)
    n, m = value.size, np.asarray(missing_stratum).size
    if odds_ratio < 1:
        raise DesignError(f"odds_ratio: must be at least 1, not {odds_ratio}")
    if share and span is None:
        span = (0.0, 1.0)
    if math.isinf(odds_ratio) and span is None:
        raise DesignError("span: worst-case bounds need the lowest and the highest value that an answer can have")
    rows = _Rows(
        value=np.concatenate([value, np.zeros(m)]),
        answered=np.arange(n + m) < n,
        label=np.concatenate([np.asarray(stratum), np.asarray(missing_stratum)]).astype(np.int64),
        cluster=np.concatenate([np.asarray(cluster), np.asarray(missing_cluster)]),
        weight=np.concatenate([_or_ones(weight, n), _or_ones(missing_weight, m)]),
        inside=np.concatenate([_or_ones(domain, n), _or_ones(missing_domain, m)]),
        sizes=np.asarray(sizes, dtype=np.float64),
    )
    rarer = None
    if share:
        ones = int(value[rows.inside[:n] > 0].sum())
        rarer = min(ones, int((rows.inside[:n] > 0).sum()) - ones)
    lower, upper = (
        rows.extreme(
            sign=sign,
            odds_ratio=odds_ratio,
            end=None if span is None else span[side],
            item=None if item is None else np.asarray(item),
            universe_size=universe_size,
            rarer=rarer,
        )
        for side, sign in ((0, -1.0), (1, 1.0))
    )
    return Bounds(lower=lower, upper=upper, odds_ratio=odds_ratio, unanswered=round(float(rows.inside[n:].sum())))


@dataclass(frozen=True, eq=False)
class _Rows:
    """Answers and unanswered items in one; arrays of shape (n + m,), `sizes` (strata,)."""

    value: NDArray[np.float64]
    answered: NDArray[np.bool_]
    label: NDArray[np.int64]
    cluster: NDArray[np.generic]
    weight: NDArray[np.float64]
    inside: NDArray[np.float64]
    sizes: NDArray[np.float64]

    def sums(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.bincount(self.label, weights=self.weight * values, minlength=self.sizes.size).astype(np.float64)

    def extreme(
        self,
        *,
        sign: float,
        odds_ratio: float,
        end: float | None,
        item: NDArray[np.generic] | None,
        universe_size: int | None,
        rarer: int | None,
    ) -> Estimate:
        """The lowest (`sign` -1) or the highest (1) mean, with what each row adds to its error."""
        of_stratum = self.sizes / self.sizes.sum()
        everything = self.sums(np.ones(self.value.size))
        given = np.where(self.answered, self.inside, 0.0)
        missing = np.where(self.answered, 0.0, self.inside)
        answers, lost = self.sums(given), self.sums(missing)
        worst = math.isinf(odds_ratio)
        if not worst:  # Nothing answered there says what an unanswered item would have had.
            missing = np.where(answers[self.label] > 0, missing, 0.0)
            lost = self.sums(missing)
        mean = _divided(self.sums(given * self.value), answers)
        far, tilt = mean.copy(), np.ones(self.value.size)
        if worst:
            far[:] = end
        else:
            for index in np.flatnonzero(lost):
                chosen = np.flatnonzero((self.label == index) & (given > 0))
                far[index], tilt[chosen] = _tilted(self.value[chosen], self.weight[chosen], sign, odds_ratio)
        total = _divided(of_stratum * (answers + lost), everything)
        size = float(total.sum())
        if not size > 0:
            raise DesignError("domain: no answer lies in it; bounds need at least one")
        middle = _divided(answers * mean + lost * far, answers + lost)
        estimate = float(np.dot(total, middle)) / size
        at = self.label
        own = (given + missing) * (middle[at] - estimate)
        own += given * (self.value - mean[at]) + (missing - (given + missing) * _divided(lost, answers + lost)[at]) * (
            far[at] - mean[at]
        )
        if not worst:
            normal = _divided(self.sums(given * tilt), answers)
            own += (
                given
                * _divided(lost, answers)[at]
                * tilt
                * (self.value - far[at])
                / np.where(normal > 0, normal, 1)[at]
            )
        # Strata are of fixed sizes; where there is one with chances of its own, the weights are random and stay in.
        if self.sizes.size > 1 or np.ptp(self.weight) == 0:
            own = own - _divided(self.sums(own), everything)[at]
        contributions = self.weight * own * _divided(of_stratum, everything)[at] / size
        extra = 0.0
        if universe_size is not None and universe_size > self.sizes.sum():
            candidates = float(self.sizes.sum())
            by_stratum = _divided(self.sums((given + missing) * (middle[at] - estimate)), everything) / size
            by_stratum = by_stratum - np.dot(of_stratum, by_stratum)
            extra = (1 - candidates / universe_size) / candidates * float(np.dot(of_stratum, by_stratum**2))
        return self._estimate(estimate, contributions, extra, item, rarer)

    def _estimate(
        self,
        value: float,
        contributions: NDArray[np.float64],
        extra: float,
        item: NDArray[np.generic] | None,
        rarer: int | None,
    ) -> Estimate:
        counted = self.answered & (self.inside > 0)
        variance, _ = _between(contributions, self.cluster)
        people = int(np.unique(self.cluster[counted]).size)
        if item is not None:
            several = contributions[: item.size]
            variance += max(_between(several, item)[0] - float(np.dot(several, several)), 0.0)
            people = min(people, int(np.unique(item[counted[: item.size]]).size))
        weight = (_divided(self.sizes, self.sums(self.answered.astype(np.float64)))[self.label] * self.weight)[counted]
        kish = float(weight.sum() ** 2 / np.dot(weight, weight))
        error, interval, method = math.nan, (math.nan, math.nan), "t"
        if people > 1:
            error = math.sqrt(variance + extra)
            interval, method = interval_of(
                value=value, standard_error=error, degrees_of_freedom=people - 1, kish=kish, share=rarer is not None
            )
        return Estimate(
            value=value,
            standard_error=error,
            degrees_of_freedom=people - 1,
            interval=interval,
            n=int(counted.sum()),
            n_clusters=int(np.unique(self.cluster[counted]).size),
            effective_sample_size=kish,
            weight_range=(float(weight.min() / weight.mean()), float(weight.max() / weight.mean())),
            rarer=rarer,
            method="wilson" if method == "wilson" else "t",
        )


def _tilted(
    value: NDArray[np.float64], weight: NDArray[np.float64], sign: float, odds_ratio: float
) -> tuple[float, NDArray[np.float64]]:
    """The mean that is farthest in the direction of `sign` if values beyond a cut count `odds_ratio` times, and how
    often each then counts."""
    order = np.argsort(-sign * value, kind="stable")
    sums, sizes = np.cumsum((weight * value)[order]), np.cumsum(weight[order])
    more = odds_ratio - 1
    means = np.append((more * sums + sums[-1]) / (more * sizes + sizes[-1]), sums[-1] / sizes[-1])
    best = int(np.argmax(sign * means))
    tilt = np.ones(value.size)
    tilt[order[: best + 1 if best < value.size else 0]] = odds_ratio
    return float(means[best]), tilt


def _between(contributions: NDArray[np.float64], cluster: NDArray[np.generic]) -> tuple[float, int]:
    _, index = np.unique(cluster, return_inverse=True)
    totals = np.bincount(index, weights=contributions)
    if totals.size < 2:
        return math.nan, int(totals.size)
    return float(totals.size / (totals.size - 1) * np.dot(totals, totals)), int(totals.size)


def _divided(one: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.divide(one, other, out=np.zeros(np.broadcast(one, other).shape), where=other > 0)


def _or_ones(given: ArrayLike | None, n: int) -> NDArray[np.float64]:
    found = np.ones(n) if given is None else np.asarray(given, dtype=np.float64)
    if found.shape != (n,):
        raise DesignError(f"domain, weight: {found.size} entries for {n} rows; give one for each")
    return found
