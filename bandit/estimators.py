"""What a stage's answers say about all its candidates, and whether one stage finds more than another. Numpy alone.

Answers of one respondent are correlated, so every standard error here is between respondents ("clusters"): the variance
of linearised cluster totals (Särndal, Swensson and Wretman, Model Assisted Survey Sampling, 1992, chapters 4 to 6).
The questions are fixed and the people are not, so no finite-population correction applies to answers.

Where several people answer each item, the answers to one item hang together too. The variance is then clustered both
ways, by respondent and by item: the one, plus the other, less that of the single answers, which both count (Cameron,
Gelbach and Miller, Journal of Business & Economic Statistics 29, 2011, section 2.1). The items are drawn without
replacement inside their strata, and products of two people's answers to one item say how far the items are apart, so
that the finite-population correction (1 - n_h / N_h, Cochran, Sampling Techniques, 1977, section 2.5) is made to the
items' share of the variance, and to that alone.

A candidate set that is itself a uniform pool out of all pairs is a first phase of sampling (chapter 9, and Cochran,
Sampling Techniques, 1977, section 12.2). Without a finite-population correction the spread inside strata is counted in
full by the answers, so what the pool adds is its spread between strata.

A stratum of few answers says little of its own spread, and one answer says nothing. A variance is therefore never below
that of as many equally weighted answers of different people as the effective sample has: the spread of single answers
over Kish's effective size (`_least_of_mean`). Where nothing varies at all there is no interval, but for a share
Wilson's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bandit.clustered import cluster_count, cluster_totals, clustered_variance, crossed_variance
from bandit.effective import effective_size
from bandit.errors import DesignError
from bandit.estimate import Estimate, EstimateSample, estimate_of, satterthwaite
from bandit.logistic import fit_logistic, predict_logistic
from bandit.student import student_t_upper_tail

MIN_EFFECTIVE = 2.0  # below, one answer decides the figure
WEIGHT_CLASSES = 5
MIN_TO_FOLD = 10  # people, for predictions by folds of them
BORROWED = 10  # answers that the plain spread of all answers counts for, next to the effective sample's own


@dataclass(frozen=True)
class StratumShare:
    """The plain share of answers in one stratum that changed: unweighted, None without answers."""

    name: str
    n: int
    changed: int
    share: float | None


@dataclass(frozen=True)
class Comparison:
    """Two shares, second against first. `ratio` is second / first, None if the first is 0.

    `p_one_sided` is the chance of a t at least this large if the second is no higher. If neither stage varies between
    clusters, `t` is NaN and `p_one_sided` None: nothing says how far chance alone would go.
    """

    first: float
    second: float
    difference: float
    ratio: float | None
    standard_error: float
    t: float
    degrees_of_freedom: float
    p_one_sided: float | None


def share_by_stratum(*, values: ArrayLike, stratum: ArrayLike, names: Sequence[str]) -> tuple[StratumShare, ...]:
    """Per stratum the answers, those that changed (`values` 1, else 0) and their plain share; arrays of shape (n,)."""
    changed = _values(values, allow_empty=True)
    _rarer(changed)
    label = _labels(stratum, changed.size, len(names))
    shares = []
    for index, name in enumerate(names):
        inside = changed[label == index]
        count = int(inside.sum())
        share = count / inside.size if inside.size else None
        shares.append(StratumShare(name=name, n=int(inside.size), changed=count, share=share))
    return tuple(shares)


def stratified_mean(
    *,
    values: ArrayLike,
    stratum: ArrayLike,
    sizes: Sequence[int],
    cluster: ArrayLike,
    domain: ArrayLike | None = None,
    universe_size: int | None = None,
    share: bool = False,
    per: ArrayLike | None = None,
    item: ArrayLike | None = None,
    staying: ArrayLike | None = None,
    adjustment: ArrayLike | None = None,
) -> Estimate:
    """The mean over all candidates: each stratum's mean answer, weighted by the stratum's size N_h.

    `values`, `stratum` (index into `sizes`) and `cluster` (respondent) have shape (n,): one entry a counted answer.
    An answer's weight is N_h / r_h with r_h the answers in its stratum, so slots that nobody answered are taken to be
    missing at random within the stratum. Raises DesignError for a stratum without answers.

    `domain`: shape (n,), true for answers in the part of the candidates that the mean is over (a task, an outcome); the
    mean is then a ratio of two estimated totals. `universe_size`: given if the candidates are a uniform pool out of so
    many pairs and the mean is over those. `share`: the values are 0 or 1, and the interval is Wilson's near the ends.

    `per`: shape (n,), at least 0; the estimate is then the ratio of two totals, that of `values` over that of `per`,
    linearised (Särndal and others, section 5.6). `item`: shape (n,), where several people answered each item; the
    variance is then clustered by respondent and by item. `staying`: shape (n,), each answer's chance that its person
    was still there (`bandit.staying_chances`); inside a stratum answers then count 1 / that chance. `adjustment`: shape
    (n,), what `bandit.assist` takes off the answers; the mean is then assisted by predictions, and the variance of the
    pool has that of the predictions in it.
    """
    fit = _Stratified.of(
        values=values, stratum=stratum, sizes=sizes, cluster=cluster, item=item, staying=staying, adjustment=adjustment
    )
    inside, below = _domain(domain, fit.value.size), _per(per, fit.value.size)
    value, residual = fit.mean_in(inside, below)
    contributions = fit.contributions(residual)
    return _estimate(
        value=value,
        contributions=contributions,
        cluster=fit.cluster,
        weight=fit.weight,
        inside=inside,
        extra_variance=fit.first_phase(residual, universe_size, fit.adjusted_in(inside, below)),
        share=_rarer(_values(values)[inside]) if share else None,
        items=fit.items(universe_size),
        least=_least_of_mean(contributions, fit.weight, fit.label, inside),
    )


def stratified_difference(
    *,
    values: ArrayLike,
    stratum: ArrayLike,
    sizes: Sequence[int],
    cluster: ArrayLike,
    first: ArrayLike,
    second: ArrayLike,
    universe_size: int | None = None,
    per: ArrayLike | None = None,
    item: ArrayLike | None = None,
    staying: ArrayLike | None = None,
) -> Estimate:
    """The mean over the candidates in `second` minus the mean over those in `first`, two domains of one stage.

    Arguments as for `stratified_mean`; the domains are true or false for each answer. People who answered in both count
    once, with both. One use is a check on the prior: between outcomes that are shown later it may differ only by
    chance.
    """
    fit = _Stratified.of(values=values, stratum=stratum, sizes=sizes, cluster=cluster, item=item, staying=staying)
    first_domain, other = _domain(first, fit.value.size, field="first"), _domain(second, fit.value.size, field="second")
    below = _per(per, fit.value.size)
    mean_one, residual_one = fit.mean_in(first_domain, below)
    mean_other, residual_other = fit.mean_in(other, below)
    residual = residual_other - residual_one
    return _estimate(
        value=mean_other - mean_one,
        contributions=fit.contributions(residual),
        cluster=fit.cluster,
        weight=fit.weight,
        inside=first_domain | other,
        extra_variance=fit.first_phase(residual, universe_size),
        items=fit.items(universe_size),
        least=_least_of_difference(
            contributions=(fit.contributions(residual_one), fit.contributions(residual_other)),
            weight=fit.weight,
            stratum=fit.label,
            sides=(first_domain, other),
            cluster=fit.cluster,
        ),
    )


def stratified_effect(
    *,
    values: ArrayLike,
    stratum: ArrayLike,
    sizes: Sequence[int],
    cluster: ArrayLike,
    first: ArrayLike,
    second: ArrayLike,
    domain: ArrayLike | None = None,
    universe_size: int | None = None,
    per: ArrayLike | None = None,
    item: ArrayLike | None = None,
    staying: ArrayLike | None = None,
) -> Estimate:
    """The mean over all candidates under one level of a factor (`second`) minus the mean under another (`first`).

    Levels are drawn at random for people or for answers, so that the answers under a level stand for all candidates by
    themselves: an answer's weight is N_h / r_h with r_h the answers of its stratum under its own level. `first` and
    `second` are true for the answers under that level, the other arguments as for `stratified_mean`. People who
    answered under both count once, with both. Raises DesignError for a stratum without answers under one of them.
    An item that was answered under both levels adds nothing by being this item; where `item` is given, no
    finite-population correction is made, since how much of the items' spread is left is not known.
    """
    value = _values(values)
    below = _per(per, value.size)
    chance = None if staying is None else _probabilities(staying, value.size)
    label, person = _labels(stratum, value.size, len(sizes)), np.asarray(cluster)
    contributions, weight = np.zeros(value.size), np.zeros(value.size)
    means, by_stratum, single = [], [], []
    part = _domain(domain, value.size)
    first_domain, other = _domain(first, value.size, field="first"), _domain(second, value.size, field="second")
    for sign, inside in ((-1.0, first_domain), (1.0, other)):
        fit = _Stratified.of(
            values=value[inside],
            stratum=label[inside],
            sizes=sizes,
            cluster=person[inside],
            staying=None if chance is None else chance[inside],
        )
        mean, residual = fit.mean_in(part[inside], None if below is None else below[inside])
        means.append(mean)
        by_stratum.append(fit.means(residual))
        single.append(np.zeros(value.size))
        single[-1][inside] = fit.contributions(residual)
        contributions += sign * single[-1]
        weight[inside] = fit.weight
    extra = 0.0
    if universe_size is not None:
        extra = fit.pool_factor(universe_size) * float(np.dot(fit.share, (by_stratum[1] - by_stratum[0]) ** 2))
    contributions, freedom = _two_groups(contributions, person, first_domain & part, other & part)
    return _estimate(
        value=means[1] - means[0],
        contributions=contributions,
        cluster=person,
        weight=weight,
        inside=(first_domain | other) & part,
        extra_variance=extra,
        freedom=freedom,
        items=None if item is None else _Items.of(item, label),
        least=_least_of_difference(
            contributions=single,
            weight=weight,
            stratum=label,
            sides=(first_domain & part, other & part),
            cluster=person,
        ),
    )


@dataclass(frozen=True, eq=False)
class CrossFitFold:
    """Answers that are predicted (`held`) and those that may train for it (`train`): masks of shape (n,)."""

    train: NDArray[np.bool_]
    held: NDArray[np.bool_]


def cross_fit_folds(
    *, cluster: ArrayLike, item: ArrayLike, rng: np.random.Generator, folds: int = 5
) -> tuple[CrossFitFold, ...]:
    """Folds for predictions of a first stage, which no earlier answers can train.

    Respondents (`cluster`) are shared out at random; what trains for a fold holds none of its respondents and none of
    its items. Arrays of shape (n,), one entry an answer. The `prediction_means` of `bandit.assist` are then those of
    the folds' predictors, each counted as often as its fold has answers.
    """
    _, person = np.unique(np.asarray(cluster), return_inverse=True)
    _, thing = np.unique(np.asarray(item), return_inverse=True)
    people = int(person.max(initial=-1)) + 1
    if person.shape != thing.shape or person.ndim != 1:
        raise DesignError(f"item: {thing.size} items for {person.size} answers; give one for each answer")
    if not 2 <= folds <= people:
        raise DesignError(f"folds: must lie in 2..{people}, the number of respondents, not {folds}")
    of_person = rng.permutation(np.arange(people) % folds)[person]
    parts = []
    for number in range(folds):
        held = of_person == number
        parts.append(CrossFitFold(train=~held & ~np.isin(thing, thing[held]), held=held))
    return tuple(parts)


def cross_fitted_chances(
    *, columns: ArrayLike, label: ArrayLike, cluster: ArrayLike, item: ArrayLike, rng: np.random.Generator
) -> NDArray[np.float64]:
    """What a logistic regression on `columns` (n, k) expects of each `label`, 0 or 1, without that person's and that
    item's answers, by the folds of `cross_fit_folds`; (n,). All NaN with too few people or nothing to train on."""
    values, known = _values(label), np.asarray(columns, dtype=np.float64)
    known = np.column_stack([np.ones(values.size), known])
    precision = np.full(known.shape[1], 0.5)
    precision[0] = 1e-3
    chances = np.full(values.size, np.nan)
    if np.unique(np.asarray(cluster)).size < MIN_TO_FOLD:
        return chances
    for fold in cross_fit_folds(cluster=cluster, item=item, rng=rng):
        if fold.train.any() and fold.held.any():
            fitted = fit_logistic(columns=known[fold.train], label=values[fold.train], precision=precision)
            chances[fold.held] = predict_logistic(known[fold.held], fitted)
    return chances


def naive_mean(*, values: ArrayLike, cluster: ArrayLike, share: bool = False, per: ArrayLike | None = None) -> Estimate:
    """The plain mean of the answers, or the ratio of their sum to that of `per`, clustered by people. It is about the
    answers alone, not all candidates; (n,)."""
    value = _values(values)
    return hajek(values=value, probability=np.ones(value.size), cluster=cluster, share=share, per=per)


def horvitz_thompson(*, values: ArrayLike, probability: ArrayLike, universe_size: int, cluster: ArrayLike) -> Estimate:
    """Sum of value / inclusion probability over the universe's size; arrays of shape (n,), one entry an answer.

    Unbiased if every slot was answered. The standard error ignores the strata and is therefore wider than that of
    `stratified_mean`.
    """
    value = _values(values)
    weight = 1 / _probabilities(probability, value.size)
    contributions = value * weight / universe_size
    total = float(contributions.sum())
    _, person, answers = np.unique(np.asarray(cluster), return_inverse=True, return_counts=True)
    # Of each person's total the mean of all of them is taken off.
    contributions -= total / answers.size / answers[person]
    return _estimate(value=total, contributions=contributions, cluster=cluster, weight=weight)


def hajek(
    *,
    values: ArrayLike,
    probability: ArrayLike,
    cluster: ArrayLike,
    domain: ArrayLike | None = None,
    share: bool = False,
    per: ArrayLike | None = None,
    item: ArrayLike | None = None,
    adjustment: ArrayLike | None = None,
    candidates: int | None = None,
    universe_size: int | None = None,
) -> Estimate:
    """The mean weighted by 1 / inclusion probability; arrays of shape (n,), one entry an answer.

    Non-response that affects all candidates equally cancels out. The standard error ignores strata and counts the
    spread of all candidates in full, so that a uniform pool's phase needs no extra term. `probability`: the product of
    both phases, or one of them where the other is the same for all. `domain`, `share`, `per` and `item` as for
    `stratified_mean`, with no finite-population correction. `adjustment`: shape (n,), what `bandit.assist` takes off
    the answers. The spread of the predictions is then no longer counted, so that a pool of `candidates` out of
    `universe_size` pairs needs both.
    """
    value, taken_off = _values(values), _adjustment(adjustment, values)
    inside, below = _domain(domain, value.size), _per(per, value.size)
    weight = 1 / _probabilities(probability, value.size)
    mean, contributions = _weighted(value if taken_off is None else value - taken_off, weight, inside, below)
    extra = 0.0
    if taken_off is not None and universe_size is not None:
        if not candidates or candidates > universe_size:
            raise DesignError(f"candidates: a pool needs 1..{universe_size}, the pairs that it was drawn from")
        mass = weight if below is None else weight * below
        scaled = np.where(inside, taken_off, 0.0) * weight.sum() / mass[inside].sum()
        extra = (1 / candidates - 1 / universe_size) * float(np.average(scaled**2, weights=weight))
    return _estimate(
        value=mean,
        contributions=contributions,
        cluster=cluster,
        weight=weight,
        inside=inside,
        extra_variance=extra,
        share=_rarer(value[inside]) if share else None,
        items=None if item is None else _Items.of(item, np.zeros(value.size, dtype=np.int64)),
        least=_least_of_mean(contributions, weight, np.zeros(value.size, dtype=np.int64), inside),
        freedom=_freedom_of_weights(weight[inside], np.asarray(cluster)[inside]),
    )


def hajek_difference(
    *,
    values: ArrayLike,
    probability: ArrayLike,
    cluster: ArrayLike,
    first: ArrayLike,
    second: ArrayLike,
    per: ArrayLike | None = None,
    item: ArrayLike | None = None,
) -> Estimate:
    """The weighted mean in domain `second` minus that in `first`; arrays of shape (n,), the domains true or false.

    `stratified_difference` for designs with unequal chances; the other arguments as for `hajek`.
    """
    value = _values(values)
    weight = 1 / _probabilities(probability, value.size)
    first_domain, other = _domain(first, value.size, field="first"), _domain(second, value.size, field="second")
    below = _per(per, value.size)
    mean_one, contributions_one = _weighted(value, weight, first_domain, below)
    mean_other, contributions_other = _weighted(value, weight, other, below)
    contributions, freedom = _two_groups(
        contributions_other - contributions_one, np.asarray(cluster), first_domain, other
    )
    if (
        uneven := _freedom_of_weights(weight[first_domain | other], np.asarray(cluster)[first_domain | other])
    ) is not None:
        freedom = uneven if freedom is None else min(freedom, uneven)
    return _estimate(
        value=mean_other - mean_one,
        contributions=contributions,
        cluster=cluster,
        weight=weight,
        inside=first_domain | other,
        freedom=freedom,
        items=None if item is None else _Items.of(item, np.zeros(value.size, dtype=np.int64)),
        least=_least_of_difference(
            contributions=(contributions_one, contributions_other),
            weight=weight,
            stratum=np.zeros(value.size, dtype=np.int64),
            sides=(first_domain, other),
            cluster=np.asarray(cluster),
            unequal=True,
        ),
    )


@dataclass(frozen=True, eq=False)
class Majorities:
    """The answers to items that several people answered each; arrays of shape (items,), in the order of `item`.

    `changed` of `answered` answers changed. `label` is 1 where more than half did, so that a tie counts as no change
    (as in the paper). `tied` says which items are ties.
    """

    item: NDArray[np.generic]
    answered: NDArray[np.int64]
    changed: NDArray[np.int64]
    label: NDArray[np.int8]
    tied: NDArray[np.bool_]


def majority_labels(*, values: ArrayLike, item: ArrayLike) -> Majorities:
    """The majority of each item's answers; `values` (1 for a change, 0 for none) and `item` have shape (n,)."""
    changed = _values(values)
    _rarer(changed)
    name = np.asarray(item)
    if name.shape != changed.shape:
        raise DesignError(f"item: {name.size} items for {changed.size} answers; give one for each answer")
    items, index = np.unique(name, return_inverse=True)
    answered = np.bincount(index)
    count = np.bincount(index, weights=changed).astype(np.int64)
    return Majorities(
        item=items,
        answered=answered,
        changed=count,
        label=(2 * count > answered).astype(np.int8),
        tied=2 * count == answered,
    )


def compare_shares(
    *, first: ArrayLike, first_cluster: ArrayLike, second: ArrayLike, second_cluster: ArrayLike
) -> Comparison:
    """One-sided test that the second stage's share exceeds the first's, clustered by respondent.

    `first` and `second` hold 1 for a change and 0 for none, their `_cluster` arrays the respondents. Each share is a
    ratio of cluster totals, linearised; the stages have different respondents, so the variances add; Student's t with
    the degrees of freedom of Welch and Satterthwaite. Raises DesignError for a stage with fewer than two respondents.
    """
    shares, variances, freedom = [], [], []
    p: float | None
    for name, values, cluster in (("first", first, first_cluster), ("second", second, second_cluster)):
        value = _values(values, field=name)
        share = float(value.mean())
        variance, clusters = clustered_variance((value - share) / value.size, cluster), cluster_count(cluster)
        if clusters < 2:
            raise DesignError(f"{name}_cluster: the comparison needs answers of at least 2 respondents, not {clusters}")
        shares.append(share)
        variances.append(variance)
        freedom.append(clusters - 1)
    difference = shares[1] - shares[0]
    error = math.sqrt(sum(variances))
    if error == 0:
        t, df, p = math.nan, float(sum(freedom)), None
    else:
        t = difference / error
        df = satterthwaite(variances, freedom)
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


@dataclass(frozen=True, eq=False)
class _Items:
    """Whose answers hang together because they are about one item: its number for each answer, and its stratum (n,).

    `fraction`, shape (strata,): how much of all that a stratum stands for was drawn and answered; None where no
    finite-population correction is made.
    """

    item: NDArray[np.int64]
    stratum: NDArray[np.int64]
    fraction: NDArray[np.float64] | None = None

    @classmethod
    def of(cls, item: ArrayLike, stratum: NDArray[np.int64]) -> _Items:
        _, number = np.unique(np.asarray(item), return_inverse=True)
        if number.shape != stratum.shape:
            raise DesignError(f"item: {number.size} items for {stratum.size} answers; give one an answer")
        return cls(item=number.astype(np.int64), stratum=stratum)

    def variance(self, contributions: NDArray[np.float64], by_person: float) -> float:
        """The variance by respondent and by item, given that by respondent.

        An item's k answers make k (k - 1) products of two different people's. Each product has the spread of the items
        as its mean, and their sum is what clustering by item adds. Clustering by respondent has that spread in it k
        times already, so that both together have it k^2 times; where a fraction f of all items was drawn, f of this
        comes off. The sum can fall too low by chance: it is at least what the noise inside the items, as if all answers
        were different people's, and the corrected spread come to.
        """
        strata = int(self.stratum.max()) + 1
        _, first, answers = np.unique(self.item, return_index=True, return_counts=True)
        home = self.stratum[first]
        total = np.asarray(np.bincount(self.item, weights=contributions), dtype=np.float64)
        squares = np.asarray(np.bincount(self.item, weights=contributions**2), dtype=np.float64)
        count = np.bincount(home, minlength=strata)

        def by_stratum(values: NDArray[np.floating]) -> NDArray[np.float64]:
            return np.bincount(home, weights=values, minlength=strata).astype(np.float64)

        def centred(n: NDArray[np.integer]) -> NDArray[np.float64]:
            return np.asarray(n / np.maximum(n - 1, 1), dtype=np.float64)

        each = centred(np.bincount(self.stratum, minlength=strata))
        both = each * by_stratum(squares)
        products = centred(count) * by_stratum(total**2) - both
        if self.fraction is None:
            return float(crossed_variance(by_person, (products + both).sum(), both.sum()))
        products = np.maximum(products, 0.0)
        pairs = by_stratum((answers * (answers - 1)).astype(np.float64))
        spread = np.divide(
            products * by_stratum((answers**2).astype(np.float64)), pairs, out=np.zeros(strata), where=pairs > 0
        )
        inside = np.where(answers > 1, (squares - total**2 / answers) * centred(answers), 0.0)
        least = float(inside.sum() + ((1 - self.fraction) * spread).sum())
        return max(by_person + float((products - self.fraction * spread).sum()), least)

    def count(self, inside: NDArray[np.bool_]) -> int:
        return int(np.unique(self.item[inside]).size)


@dataclass(frozen=True, eq=False)
class _Stratified:
    """One stage's answers with their weights N_h / r_h; arrays of shape (n,), `share` (N_h / N) of shape (strata,)."""

    value: NDArray[np.float64]
    label: NDArray[np.int64]
    cluster: NDArray[np.generic]
    weight: NDArray[np.float64]
    share: NDArray[np.float64]
    candidates: int
    item: ArrayLike | None = None
    relative: NDArray[np.float64] | None = None
    """How much an answer counts next to the others of its stratum, 1 on average; None where all count the same."""
    adjustment: NDArray[np.float64] | None = None
    """What predictions have taken off each value; None without predictions."""

    @classmethod
    def of(
        cls,
        *,
        values: ArrayLike,
        stratum: ArrayLike,
        sizes: Sequence[int],
        cluster: ArrayLike,
        item: ArrayLike | None = None,
        staying: ArrayLike | None = None,
        adjustment: ArrayLike | None = None,
    ) -> _Stratified:
        value, taken_off = _values(values), _adjustment(adjustment, values)
        label = _labels(stratum, value.size, len(sizes))
        answered = np.bincount(label, minlength=len(sizes))
        for index, (size, count) in enumerate(zip(sizes, answered, strict=True)):
            if size < 1 or count < 1:
                raise DesignError(
                    f"stratum {index}: has {size} candidates and {count} answers; a mean over all candidates needs both"
                )
        counts = np.array(sizes, dtype=np.float64)
        weight, relative = (counts / answered)[label], None
        if staying is not None:
            each = 1 / _probabilities(staying, value.size)
            relative = each / (np.bincount(label, weights=each) / answered)[label]
            weight = weight * relative
        return cls(
            value=value if taken_off is None else value - taken_off,
            label=label,
            cluster=np.asarray(cluster),
            weight=weight,
            share=counts / counts.sum(),
            candidates=sum(sizes),
            item=item,
            relative=relative,
            adjustment=taken_off,
        )

    def items(self, universe_size: int | None) -> _Items | None:
        """For a variance by respondent and item; None where the items do not matter."""
        if self.item is None:
            return None
        items = _Items.of(self.item, self.label)
        _, first = np.unique(items.item, return_index=True)
        answered = np.bincount(self.label[first], minlength=self.share.size)
        # A pool's own fraction multiplies: what it adds inside the strata is counted with what the draw adds.
        pool = 1.0 if universe_size is None else self.candidates / universe_size
        return _Items(items.item, items.stratum, np.minimum(pool * answered / (self.share * self.candidates), 1.0))

    def means(self, value: NDArray[np.float64]) -> NDArray[np.float64]:
        if self.relative is not None:
            value = value * self.relative
        return np.bincount(self.label, weights=value, minlength=self.share.size) / np.bincount(self.label)

    def mean_in(
        self, inside: NDArray[np.bool_], per: NDArray[np.float64] | None = None
    ) -> tuple[float, NDArray[np.float64]]:
        """The domain's mean, or its ratio, and what each answer adds to it for a unit of weight in a mean over all
        candidates."""
        if per is None and inside.all():
            mean = float(np.dot(self.share, self.means(self.value)))
            return mean, self.value - mean
        below = np.where(inside, 1.0 if per is None else per, 0.0)
        size = float(np.dot(self.share, self.means(below)))
        if not size > 0:
            raise DesignError("per: sums to 0 over the answers; there is nothing to divide by")
        mean = float(np.dot(self.share, self.means(np.where(inside, self.value, 0.0)))) / size
        return mean, (np.where(inside, self.value, 0.0) - mean * below) / size

    def contributions(self, residual: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.weight / self.candidates * (residual - self.means(residual)[self.label])

    def adjusted_in(self, inside: NDArray[np.bool_], per: NDArray[np.float64] | None) -> NDArray[np.float64] | None:
        """What predictions have taken off each residual; None without predictions."""
        if self.adjustment is None:
            return None
        mean, residual = replace(self, value=self.adjustment).mean_in(inside, per)
        return residual + mean

    def first_phase(
        self,
        residual: NDArray[np.float64],
        universe_size: int | None,
        adjusted: NDArray[np.float64] | None = None,
    ) -> float:
        """The variance that a uniform pool's spread between strata adds, and that of predictions inside them."""
        if universe_size is None:
            return 0.0
        means = self.means(residual)
        spread = (means - np.dot(self.share, means)) ** 2
        if adjusted is not None:
            spread = spread + self.means(adjusted**2)
        return self.pool_factor(universe_size) * float(np.dot(self.share, spread))

    def pool_factor(self, universe_size: int) -> float:
        if universe_size < self.candidates:
            raise DesignError(f"universe_size: {universe_size} pairs cannot give a pool of {self.candidates}")
        return (1 - self.candidates / universe_size) / self.candidates


def _least_of_mean(
    contributions: NDArray[np.float64],
    weight: NDArray[np.float64],
    stratum: NDArray[np.int64],
    inside: NDArray[np.bool_] | None = None,
) -> float:
    """The variance of a mean if all answers were different people's: their spread over Kish's effective size.

    `contributions`: what each answer adds to the mean's error, (n,), `stratum` where that was centred.
    """
    part = _Distances.of(contributions, weight, stratum, inside)
    return part.shrink * part.spread()


def _least_of_difference(
    *,
    contributions: Sequence[NDArray[np.float64]],
    weight: NDArray[np.float64],
    stratum: NDArray[np.int64],
    sides: Sequence[NDArray[np.bool_]],
    cluster: NDArray[np.generic],
    unequal: bool = False,
) -> float:
    """The same for a difference. What people bring to both sides cancels out, so that the spread is that inside
    people, unless each of them gave one answer.

    `unequal`: answers of one stratum weigh unequally, since their items had chances by a score. Heavy answers then lie
    apart from light ones of the same person because of the score, which is no spread between answers: distances are
    taken from those of about the same weight.
    """
    parts = [_Distances.of(own, weight, stratum, side) for own, side in zip(contributions, sides, strict=True)]
    if unequal:
        parts = [part.by_weight() for part in parts]
    _, person = np.unique(np.concatenate([cluster[side] for side in sides]), return_inverse=True)
    people = int(person.max()) + 1
    if person.size == people:
        return sum(part.shrink * part.spread() for part in parts)
    distance = np.concatenate([part.distance for part in parts])
    inside_people = _Distances(
        distance=distance - (np.bincount(person, weights=distance) / np.bincount(person))[person],
        relative=np.concatenate([part.relative for part in parts]) / 2,
        stretch=np.full(person.size, person.size / (person.size - people)),
        lost=float(people),
    )
    return sum(part.shrink for part in parts) * inside_people.spread()


def _two_groups(
    contributions: NDArray[np.float64],
    cluster: NDArray[np.generic],
    first: NDArray[np.bool_],
    second: NDArray[np.bool_],
) -> tuple[NDArray[np.float64], float | None]:
    """Contributions to a difference, scaled so that C / (C - 1) is that of each side where different people answered
    on the two sides, with the degrees of freedom of Welch and Satterthwaite. Nothing changes where people are paired.
    """
    groups = [np.unique(cluster[side]) for side in (first, second)]
    people = np.unique(cluster).size
    # Somebody on both sides, or on neither, makes fewer or more people than both sides have.
    if sum(group.size for group in groups) != people or np.isin(groups[0], groups[1]).any():
        return contributions, None
    if min(group.size for group in groups) < 2:
        return contributions, None
    scaled = contributions.copy()
    variances, freedoms = [], []
    for group in groups:
        of_group = np.isin(cluster, group)
        count = cluster_count(cluster[of_group])
        variances.append(clustered_variance(contributions[of_group], cluster[of_group]))
        freedoms.append(count - 1)
        scaled[of_group] *= math.sqrt(count / (count - 1) * (people - 1) / people)
    return scaled, satterthwaite(variances, freedoms)


@dataclass(frozen=True, eq=False)
class _Distances:
    """How far answers are from the mean of their stratum, with their shares of the weight; (n,).

    `stretch` makes up for each stratum's mean being one of its own answers, `lost` counts those means.
    """

    distance: NDArray[np.float64]
    relative: NDArray[np.float64]
    stretch: NDArray[np.float64]
    lost: float

    @classmethod
    def of(
        cls,
        contributions: NDArray[np.float64],
        weight: NDArray[np.float64],
        stratum: NDArray[np.int64],
        inside: NDArray[np.bool_] | None,
    ) -> _Distances:
        answered = np.bincount(stratum)[stratum]
        stretch = answered / np.maximum(answered - 1, 1)
        if inside is not None and not inside.all():
            contributions, weight, answered = contributions[inside], weight[inside], answered[inside]
            stretch = stretch[inside]
        relative = weight / weight.sum()
        return cls(contributions / relative, relative, stretch, max(1.0, float((1 / answered).sum())))

    def by_weight(self) -> _Distances:
        """The distances from the mean of the answers of about the same weight, in up to `WEIGHT_CLASSES` classes."""
        ends = np.quantile(self.relative, np.arange(1, WEIGHT_CLASSES) / WEIGHT_CLASSES)
        _, place = np.unique(np.searchsorted(ends, self.relative), return_inverse=True)
        count = np.bincount(place)
        mean = np.bincount(place, weights=self.distance) / count
        stretch = (count / np.maximum(count - 1, 1))[place]
        return _Distances(self.distance - mean[place], self.relative, stretch, max(self.lost, float(count.size)))

    @property
    def shrink(self) -> float:
        """1 / Kish's effective size."""
        return float(np.dot(self.relative, self.relative))

    def spread(self) -> float:
        """The variance of single answers. A few heavy answers tell it badly, so that the plain variance of all answers
        is mixed in, as if it were that of `BORROWED` answers more."""
        if not self.distance.size > self.lost:
            return 0.0
        squares = self.distance**2
        own = float(np.dot(self.relative**2, squares * self.stretch)) / self.shrink
        plain = float(squares.sum()) / (squares.size - self.lost)
        kish = 1 / self.shrink
        return (kish * own + BORROWED * plain) / (kish + BORROWED)


def _estimate(
    *,
    value: float,
    contributions: NDArray[np.float64],
    cluster: ArrayLike,
    weight: NDArray[np.float64],
    inside: NDArray[np.bool_] | None = None,
    extra_variance: float = 0.0,
    share: int | None = None,
    items: _Items | None = None,
    least: float = 0.0,
    freedom: float | None = None,
) -> Estimate:
    variance, clusters = clustered_variance(contributions, cluster), cluster_count(cluster)
    if inside is not None and not inside.all():
        weight = weight[inside]
        clusters = int(np.unique(np.asarray(cluster)[inside]).size)
    # As many free choices as there are of that of which there is less: people, or items where these are clusters too.
    fewest, alike = clusters, 1.0
    if items is not None and clusters > 1:
        variance = items.variance(contributions, variance)
        distinct = items.count(np.ones(contributions.size, dtype=bool) if inside is None else inside)
        fewest, alike = min(clusters, distinct), distinct / weight.size
        if alike < 1:
            least = 0.0  # The variance by item has a least value of its own.
    return estimate_of(
        EstimateSample.of(weight, n_clusters=clusters, rarer=share),
        value=value,
        variance=max(variance, least) + extra_variance if fewest > 1 else math.nan,
        degrees_of_freedom=fewest - 1 if freedom is None else min(freedom, max(fewest - 1, 1)),
        alike=alike,
    )


def _weighted(
    value: NDArray[np.float64],
    weight: NDArray[np.float64],
    inside: NDArray[np.bool_],
    per: NDArray[np.float64] | None,
) -> tuple[float, NDArray[np.float64]]:
    """The weighted mean or ratio inside a domain, and what each answer adds to its error."""
    below = weight if per is None else weight * per
    size = below[inside].sum()
    if not size > 0:
        raise DesignError("per: sums to 0 over the answers; there is nothing to divide by")
    relative = np.where(inside, weight, 0.0) / size
    mean = float(np.dot(relative, value))
    return mean, relative * (value - mean * (1.0 if per is None else per))


def _freedom_of_weights(weight: NDArray[np.float64], cluster: NDArray[np.generic]) -> float | None:
    """The degrees of freedom of a variance between people whose answers weigh unequally; None where all weigh the same.

    A person's squared total is as large as the sum of their squared weights a, so that the sum over people has
    (sum of a)^2 / sum of a^2 (Satterthwaite), less the one of the mean. People minus 1 is too many where a few heavy
    answers decide.
    """
    if not weight.size or np.ptp(weight) == 0:
        return None
    return max(effective_size(cluster_totals(weight**2, cluster)) - 1, 1.0)


def _rarer(value: NDArray[np.float64]) -> int:
    if not np.isin(value, (0, 1)).all():
        raise DesignError("values: a share needs 0 (no change) or 1 (change) for each answer")
    ones = int(value.sum())
    return min(ones, value.size - ones)


def _domain(domain: ArrayLike | None, n: int, *, field: str = "domain") -> NDArray[np.bool_]:
    if domain is None:
        return np.ones(n, dtype=bool)
    inside = np.asarray(domain)
    if inside.shape != (n,) or inside.dtype != bool:
        raise DesignError(f"{field}: needs true or false for each of {n} answers, not {inside.dtype} of {inside.shape}")
    if not inside.any():
        raise DesignError(f"{field}: no answer lies in it; a mean needs at least one")
    return inside


def _per(per: ArrayLike | None, n: int) -> NDArray[np.float64] | None:
    if per is None:
        return None
    below = _values(per, field="per")
    if below.size != n or (below < 0).any():
        raise DesignError(f"per: needs a number of at least 0 for each of {n} answers")
    return below


def _adjustment(adjustment: ArrayLike | None, values: ArrayLike) -> NDArray[np.float64] | None:
    if adjustment is None:
        return None
    taken_off = _values(adjustment, field="adjustment")
    if taken_off.shape != np.shape(values):
        raise DesignError(f"adjustment: {taken_off.size} for {np.size(values)} answers; give one for each answer")
    return taken_off


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
        raise DesignError(f"stratum: {label.size} strata for {n} answers; give one for each answer")
    if n and (label.dtype.kind not in "iu" or label.min() < 0 or label.max() >= n_strata):
        raise DesignError(f"stratum: must be integers 0..{n_strata - 1}, one for each stratum")
    return label.astype(np.int64)


def _probabilities(probability: ArrayLike, n: int) -> NDArray[np.float64]:
    chance = np.asarray(probability, dtype=np.float64)
    if chance.shape != (n,):
        raise DesignError(f"probability: {chance.size} probabilities for {n} answers; give one for each answer")
    if not ((chance > 0) & (chance <= 1)).all():
        raise DesignError("probability: must lie above 0 and at most at 1; an item with probability 0 cannot be drawn")
    return chance
