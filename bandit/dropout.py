"""People who leave before their last item: a test, weights by the chance of staying, and bounds. Numpy alone.

People who leave give fewer answers than people who stay, and a mean of the answers is nearer to those who stay. If
leaving depends on what a person has answered so far, answers weighted by 1 / the chance of being still there stand for
everybody who began (inverse-probability-of-censoring weights, Robins, Rotnitzky and Zhao, JASA 90, 1995). If it depends
on the answer that was not given, no weight helps and no test shows it; then there are bounds: for a stated odds ratio
between unanswered and answered items, or for anything whatever (Manski, American Economic Review 80, 1990).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bandit.clustered import clustered_variance
from bandit.errors import DesignError
from bandit.estimate import Estimate, EstimateSample, estimate_of, minus, satterthwaite
from bandit.estimators import _rarer, _values
from bandit.logistic import fit_logistic, predict_logistic

ODDS_RATIO = 2.0
MIN_LEAVERS = 10
MIN_CHANCE = 0.02  # of being still there: no answer counts for more than 50


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
    gone, number = np.asarray(left, dtype=bool), _values(value, field="value", allow_empty=True)
    place = np.asarray(stratum)
    if not gone.shape == number.shape == place.shape or gone.ndim != 1:
        raise DesignError(f"left, value, stratum: need one entry each, not {gone.size}, {number.size} and {place.size}")
    _, index = np.unique(place, return_inverse=True)
    count = np.bincount(index).astype(np.float64)
    leavers = np.bincount(index, weights=gone)
    mean = np.bincount(index, weights=number) / count
    spread = np.bincount(index, weights=(number - mean[index]) ** 2) / count
    statistic = float(number[gone].sum() - np.dot(leavers, mean))
    variance = float((leavers * (count - leavers) * spread / np.maximum(count - 1, 1)).sum())
    reason = ""
    if gone.sum() < MIN_LEAVERS:
        reason = f"{int(gone.sum())} people left, fewer than {MIN_LEAVERS}"
    elif not variance > 0:
        reason = "all answers before leaving are alike"
    above = number > 0
    return LeavingTest(
        at_risk=int(gone.size),
        left=int(gone.sum()),
        share_after=float(gone[above].mean()) if above.any() else None,
        share_else=float(gone[~above].mean()) if not above.all() else None,
        odds_ratio=_odds_ratio(gone, above, index, count) if np.isin(number, (0, 1)).all() else None,
        p=None if reason else math.erfc(abs(statistic) / math.sqrt(2 * variance)),
        reason=reason,
    )


def _odds_ratio(
    gone: NDArray[np.bool_], above: NDArray[np.bool_], index: NDArray[np.intp], count: NDArray[np.float64]
) -> float | None:
    def of(mask: NDArray[np.bool_]) -> NDArray[np.float64]:
        return np.bincount(index, weights=mask, minlength=count.size).astype(np.float64)

    with_it, against = (
        float((of(group & above) * of(other & ~above) / count).sum()) for group, other in ((gone, ~gone), (~gone, gone))
    )
    return with_it / against if against > 0 else None


def fisher_exact(first: tuple[int, int], second: tuple[int, int]) -> float:
    """The two-sided p of Fisher's exact test that two groups have the same share: of all tables with the same margins,
    the chance of those that are no more likely than this one (Fisher, Statistical Methods for Research Workers, 1934).

    `first`, `second`: of each group how many have the property, and how many there are. 1 for groups without anybody.
    """
    (a, n), (b, m) = first, second
    if not (0 <= a <= n and 0 <= b <= m):
        raise DesignError(f"first, second: {a} of {n} and {b} of {m}; a group has as many as it has, or fewer")
    ways = {
        count: math.comb(n, count) * math.comb(m, a + b - count)
        for count in range(max(0, a + b - m), min(n, a + b) + 1)
    }
    return sum(count for count in ways.values() if count <= ways[a]) / sum(ways.values())


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
    levels: ArrayLike | None = None,
) -> NDArray[np.float64]:
    """The chance that the person of each answer was still there to give it, shape (n,), above 0 and at most 1.

    One entry an answer, shape (n,): `value`, what was answered; `sitting`; `number`, the place of the item among the
    sitting's items, from 1; `left`, whether the person left after it; `known`, whether it is known that they did or did
    not (false for the last item, and where a sitting is still going on); `cluster`, the person.

    The chance of leaving after an answer is a logistic regression on the item's number, the answer itself and the mean
    of the person's answers before it. `levels`, whole numbers of shape (n, factors): the level of each factor of a
    condition under which the answer was given. Under each level after a factor's first, leaving may be more or less
    frequent, and depend on the answers in another way: people may leave one condition and not another.

    The regression is fitted by folds of people, so that nobody's own leaving makes their weight. The chance of being
    there is the product over the items before, and at least 0.02. Raises DesignError with fewer than 10 people who
    left, or fewer than 10 people.
    """
    answer = _values(value, field="value", allow_empty=True)
    order_by = _values(number, field="number", allow_empty=True)
    gone, has, run = np.asarray(left, dtype=bool), np.asarray(known, dtype=bool), np.asarray(sitting)
    people, person = np.unique(np.asarray(cluster), return_inverse=True)
    if (gone & has).sum() < MIN_LEAVERS or people.size < 2 * folds:
        raise DesignError(
            f"left: {int((gone & has).sum())} of {people.size} people left; weights need at least {MIN_LEAVERS} of "
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
    plain = np.column_stack([np.ones(run.size), (place - place.mean()) / spread, standard, past])
    columns = np.column_stack([plain, *_by_level(levels, plain[:, [0, 2, 3]], order)])
    ridge = np.array([1e-3, *[0.5] * (columns.shape[1] - 1)])
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
    chance[order] = np.maximum(np.exp(until - until[starts][index]), MIN_CHANCE)
    return np.minimum(chance, 1.0)


def _by_level(
    levels: ArrayLike | None, columns: NDArray[np.float64], order: NDArray[np.intp]
) -> Iterator[NDArray[np.float64]]:
    """The columns once more for the answers under each level but a factor's first; `order` is that of the columns."""
    if levels is None:
        return
    of_answers = np.asarray(levels)
    if of_answers.ndim != 2 or of_answers.shape[0] != columns.shape[0]:
        raise DesignError(f"levels: need one of each factor for {columns.shape[0]} answers, not {of_answers.shape}")
    for factor in of_answers[order].T:
        for level in np.unique(factor)[1:]:
            yield columns * (factor == level)[:, None]


@dataclass(frozen=True)
class Bounds:
    """The lowest and the highest mean that the assumption allows, each with its own standard error. `interval` reaches
    from the lower one's low end to the upper one's high end, and always contains the interval of the plain estimate:
    one that allows for missing answers claims less. It covers the truth as often as the plain one where nothing
    depends on the answers, and in at least 95 % of studies wherever the assumption holds and standard errors are
    right. `odds_ratio` is infinite for worst-case bounds. `unanswered` counts the items that were given to somebody and
    not answered."""

    lower: Estimate
    upper: Estimate
    odds_ratio: float
    unanswered: int

    @property
    def interval(self) -> tuple[float, float]:
        return self.lower.interval[0], self.upper.interval[1]


def difference_of_bounds(first: Bounds, second: Bounds, *, same_people: bool, plain: Estimate) -> Bounds:
    """Bounds of the mean of `second` minus that of `first`: two levels of a factor, or two parts of the candidates.

    `plain`: the difference itself, whose interval the bounds contain.

    The lowest difference is the lowest mean of the one minus the highest of the other, since nothing says that
    unanswered items are alike on both sides. `same_people`: as for `bandit.minus`.
    """
    return Bounds(
        lower=_reaching(minus(second.lower, first.upper, same_people=same_people), plain),
        upper=_reaching(minus(second.upper, first.lower, same_people=same_people), plain),
        odds_ratio=first.odds_ratio,
        unanswered=first.unanswered + second.unanswered,
    )


def _reaching(end: Estimate, plain: Estimate) -> Estimate:
    """An end of bounds whose interval contains the plain one."""
    if not end.has_interval or not plain.has_interval:
        return replace(end, interval=(math.nan, math.nan))
    (low, high), (plain_low, plain_high) = end.interval, plain.interval
    return replace(end, interval=(min(low, plain_low), max(high, plain_high)))


@dataclass(frozen=True, eq=False)
class GivenItems:
    """The items of one stage that were given to people: n answers, and m items without one.

    `values`, `stratum`, `cluster`, `domain`, `item`: of the answers, as in `stratified_mean`. `missing_stratum`,
    `missing_cluster`, `missing_domain`: of the items that a person was given and did not answer; the domain may be a
    chance from 0 to 1 where it is not known. `weight` (n,) and `missing_weight` (m,) are 1 / inclusion probability for
    designs with unequal chances in one stratum.
    """

    values: ArrayLike
    stratum: ArrayLike
    sizes: Sequence[int]
    cluster: ArrayLike
    missing_stratum: ArrayLike
    missing_cluster: ArrayLike
    weight: ArrayLike | None = None
    missing_weight: ArrayLike | None = None
    domain: ArrayLike | None = None
    missing_domain: ArrayLike | None = None
    item: ArrayLike | None = None
    universe_size: int | None = None


def bounds(
    *,
    stages: Sequence[GivenItems],
    plain: Estimate,
    plan_weights: Sequence[float] = (1.0,),
    odds_ratio: float = ODDS_RATIO,
    span: tuple[float, float] | None = None,
    share: bool = False,
) -> Bounds:
    """Bounds of the mean over all candidates (of the domain) if everybody who began had answered all their items.

    `plain`: the estimate from the answers alone, of the same stages with the same weights. Its variance has a floor,
    since few answers in a stratum say too little of how far answers there are apart (`bandit.estimators`); the standard
    error of either end is larger by as much as the floor makes that of the plain estimate larger. The interval contains
    the plain one, and there is none where that has none.

    `plan_weights`: one for each stage, from the plans alone. The stages' sums are put together before they are divided,
    as in `pooled_mean`, so that inside a part of the candidates both are about the same figure.

    In each stratum, the odds that an item is unanswered differ by at most the factor `odds_ratio` between any two
    values that its answer would have had. For values of 0 and 1 that is an odds ratio between unanswered and answered
    items. The highest mean is found by a cut: values above it are that much more frequent among the unanswered (as in
    Aronow and Lee, Biometrika 100, 2013). With an infinite `odds_ratio` every unanswered item has the lowest, or the
    highest, value of `span`; so have the unanswered items of a stratum in which nothing of the domain was answered.
    Without a `span` the latter are left out. Standard errors are between people, of linearised totals at the cut that
    was found, with the number of unanswered items counted as random. Raises DesignError where no answer lies inside.
    """
    if odds_ratio < 1:
        raise DesignError(f"odds_ratio: must be at least 1, not {odds_ratio}")
    if share and span is None:
        span = (0.0, 1.0)
    if math.isinf(odds_ratio) and span is None:
        raise DesignError("span: worst-case bounds need the lowest and the highest value that an answer can have")
    total = float(sum(plan_weights))
    if len(stages) != len(plan_weights) or not total > 0 or min(plan_weights) < 0:
        raise DesignError(f"plan_weights: need a number of at least 0 for each of {len(stages)} stages, one above it")
    rows = [_Rows.of(stage, weight / total) for stage, weight in zip(stages, plan_weights, strict=True) if weight > 0]
    inside = np.concatenate([row.value[row.counted] for row in rows])
    if not inside.size:
        raise DesignError("domain: no answer lies in it; bounds need at least one")
    rarer = _rarer(inside) if share else None
    floor = _Floor.of(rows, plain)
    lower, upper = (
        _reaching(
            floor.under(
                _extreme(rows, sign=sign, odds_ratio=odds_ratio, end=None if span is None else span[side], rarer=rarer)
            ),
            plain,
        )
        for side, sign in ((0, -1.0), (1, 1.0))
    )
    lost = sum(float(row.inside[~row.answered].sum()) for row in rows)
    return Bounds(lower=lower, upper=upper, odds_ratio=odds_ratio, unanswered=round(lost))


@dataclass(frozen=True, eq=False)
class _Rows:
    """A stage's answers and unanswered items in one; arrays of shape (n + m,), `sizes` (strata,)."""

    value: NDArray[np.float64]
    answered: NDArray[np.bool_]
    label: NDArray[np.int64]
    cluster: NDArray[np.generic]
    weight: NDArray[np.float64]
    inside: NDArray[np.float64]
    sizes: NDArray[np.float64]
    item: NDArray[np.generic] | None
    universe_size: int | None
    share: float
    """The stage's weight among all stages."""

    @classmethod
    def of(cls, items: GivenItems, share: float) -> _Rows:
        value = _values(items.values, allow_empty=True)
        n, m = value.size, np.asarray(items.missing_stratum).size
        return cls(
            value=np.concatenate([value, np.zeros(m)]),
            answered=np.arange(n + m) < n,
            label=np.concatenate([np.asarray(items.stratum), np.asarray(items.missing_stratum)]).astype(np.int64),
            cluster=np.concatenate([np.asarray(items.cluster), np.asarray(items.missing_cluster)]),
            weight=np.concatenate([_or_ones(items.weight, n), _or_ones(items.missing_weight, m)]),
            inside=np.concatenate([_or_ones(items.domain, n), _or_ones(items.missing_domain, m)]),
            sizes=np.asarray(items.sizes, dtype=np.float64),
            item=None if items.item is None else np.asarray(items.item),
            universe_size=items.universe_size,
            share=share,
        )

    @cached_property
    def counted(self) -> NDArray[np.bool_]:
        return self.answered & (self.inside > 0)

    @cached_property
    def of_stratum(self) -> NDArray[np.float64]:
        shares: NDArray[np.float64] = self.sizes / self.sizes.sum()
        return shares

    def sums(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.bincount(self.label, weights=self.weight * values, minlength=self.sizes.size).astype(np.float64)

    @cached_property
    def everything(self) -> NDArray[np.float64]:
        """The sum of all weights by stratum."""
        return self.sums(np.ones(self.value.size))

    @cached_property
    def given(self) -> NDArray[np.float64]:
        """The answers inside."""
        return np.where(self.answered, self.inside, 0.0)

    @cached_property
    def answers(self) -> NDArray[np.float64]:
        """The sum of the weights of the answers inside, by stratum."""
        return self.sums(self.given)

    @cached_property
    def mean(self) -> NDArray[np.float64]:
        """The mean of the answers inside, by stratum."""
        return _divided(self.sums(self.given * self.value), self.answers)

    @cached_property
    def relative(self) -> NDArray[np.float64]:
        """How much each answer inside counts in a mean over all stages."""
        each = _divided(self.sizes, self.sums(self.answered.astype(np.float64)))[self.label] * self.weight
        weights: NDArray[np.float64] = self.share * (each / each[self.answered].sum())[self.counted]
        return weights

    def variance(self, contributions: NDArray[np.float64]) -> float:
        if self.item is None:
            return clustered_variance(contributions, self.cluster)
        # An item that nobody answered is one of its own.
        _, number = np.unique(self.item, return_inverse=True)
        missing = np.arange(number.size, contributions.size)
        return clustered_variance(contributions, self.cluster, np.concatenate([number, number.size + missing]))

    @cached_property
    def people(self) -> int:
        return int(np.unique(self.cluster[self.counted]).size)

    @cached_property
    def fewest(self) -> int:
        """People with an answer inside; items, where several people answered each and there are fewer of these."""
        if self.item is None:
            return self.people
        return min(self.people, int(np.unique(self.item[self.counted[: self.item.size]]).size))


def _extreme(
    rows: Sequence[_Rows], *, sign: float, odds_ratio: float, end: float | None, rarer: int | None
) -> Estimate:
    """The lowest (`sign` -1) or the highest (1) mean of all stages together, with what each row adds to its error."""
    sides = [_Side.of(row, sign=sign, odds_ratio=odds_ratio, end=end) for row in rows]
    size = sum(side.rows.share * float(side.total.sum()) for side in sides)
    if not size > 0:
        raise DesignError("domain: no answer lies in it; bounds need at least one")
    value = sum(side.rows.share * float(np.dot(side.total, side.middle)) for side in sides) / size
    variances = [side.variance(value, size) for side in sides]
    people = sum(row.people for row in rows)
    return estimate_of(
        EstimateSample.of(np.concatenate([row.relative for row in rows]), n_clusters=people, rarer=rarer),
        value=value,
        variance=sum(variances) if people > 1 else math.nan,
        degrees_of_freedom=satterthwaite(variances, [max(row.fewest - 1, 1) for row in rows]),
    )


@dataclass(frozen=True)
class _Floor:
    """How much larger the plain estimate's standard error is than its linearised one, and its degrees of freedom."""

    times: float
    degrees_of_freedom: float

    @classmethod
    def of(cls, rows: Sequence[_Rows], plain: Estimate) -> _Floor:
        linearised = _extreme(rows, sign=1.0, odds_ratio=1.0, end=None, rarer=None).standard_error
        if not linearised > 0 or not plain.standard_error > linearised:
            return cls(1.0, plain.degrees_of_freedom)
        return cls(plain.standard_error / linearised, plain.degrees_of_freedom)

    def under(self, end: Estimate) -> Estimate:
        """The end with a standard error that is larger by as much. Its degrees of freedom are the plain estimate's if
        these are fewer, or if the floor decides."""
        if math.isnan(end.standard_error):
            return end
        fewer = min(end.degrees_of_freedom, self.degrees_of_freedom)
        return end.with_error(self.times * end.standard_error, self.degrees_of_freedom if self.times > 1 else fewer)


@dataclass(frozen=True, eq=False)
class _Side:
    """A stage's lowest or highest mean, by stratum: `total` is what part of all candidates lies inside, `middle` their
    mean and `far` that of the unanswered, whose weights `lost` sums. `tilt` (n + m,): how often each answer counts."""

    rows: _Rows
    missing: NDArray[np.float64]
    lost: NDArray[np.float64]
    total: NDArray[np.float64]
    far: NDArray[np.float64]
    middle: NDArray[np.float64]
    tilt: NDArray[np.float64] | None

    @classmethod
    def of(cls, rows: _Rows, *, sign: float, odds_ratio: float, end: float | None) -> _Side:
        items, answers, mean = rows.given, rows.answers, rows.mean
        missing = np.where(rows.answered, 0.0, rows.inside)
        if end is None:  # Nothing says what the unanswered items of a stratum without answers would have had.
            missing = np.where(answers[rows.label] > 0, missing, 0.0)
        lost = rows.sums(missing)
        far, tilt = mean.copy(), None
        if end is not None:
            far[(answers == 0) | math.isinf(odds_ratio)] = end
        if not math.isinf(odds_ratio):
            tilt = np.ones(rows.value.size)
            for index in np.flatnonzero((lost > 0) & (answers > 0)):
                chosen = np.flatnonzero((rows.label == index) & (items > 0))
                far[index], tilt[chosen] = _tilted(rows.value[chosen], rows.weight[chosen], sign, odds_ratio)
        return cls(
            rows=rows,
            missing=missing,
            lost=lost,
            total=_divided(rows.of_stratum * (answers + lost), rows.everything),
            far=far,
            middle=_divided(answers * mean + lost * far, answers + lost),
            tilt=tilt,
        )

    def variance(self, value: float, size: float) -> float:
        """What the stage adds to the variance of the mean `value` of all stages, whose parts inside sum to `size`."""
        rows, at = self.rows, self.rows.label
        both = rows.given + self.missing
        answers, lost = rows.answers, self.lost
        own = both * (self.middle[at] - value) + rows.given * (rows.value - rows.mean[at])
        own += (self.missing - both * _divided(lost, answers + lost)[at]) * (self.far - rows.mean)[at]
        if self.tilt is not None:
            normal = _divided(rows.sums(rows.given * self.tilt), answers)
            moved = rows.given * self.tilt * (rows.value - self.far[at])
            own += _divided(lost, answers)[at] * moved / np.where(normal > 0, normal, 1)[at]
        everything = rows.everything
        own = own - _divided(rows.sums(own), everything)[at]
        contributions = rows.share * rows.weight * own * _divided(rows.of_stratum, everything)[at] / size
        return rows.variance(contributions) + self._first_phase(value, size)

    def _first_phase(self, value: float, size: float) -> float:
        """The variance that a uniform pool's spread between strata adds."""
        rows, candidates = self.rows, float(self.rows.sizes.sum())
        if rows.universe_size is None or rows.universe_size <= candidates:
            return 0.0
        both = self.rows.given + self.missing
        by_stratum = _divided(rows.sums(both * (self.middle[rows.label] - value)), rows.everything) / size
        by_stratum = by_stratum - np.dot(rows.of_stratum, by_stratum)
        spread = float(np.dot(rows.of_stratum, by_stratum**2))
        return rows.share**2 * (1 - candidates / rows.universe_size) / candidates * spread


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


def _divided(numerator: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.divide(numerator, other, out=np.zeros(numerator.shape), where=other > 0)


def _or_ones(values: ArrayLike | None, n: int) -> NDArray[np.float64]:
    entries = np.ones(n) if values is None else np.asarray(values, dtype=np.float64)
    if entries.shape != (n,):
        raise DesignError(f"domain, weight: {entries.size} entries for {n} rows; give one for each")
    return entries
