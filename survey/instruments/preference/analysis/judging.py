"""Judges held against people, item by item. Numpy, `bandit` and `predictors` alone.

Ratings are always towards A, never towards a side. Pearson's correlation depends on which model is called A; the
uncentred one, sum hj / sqrt(sum hh sum jj), does not. Both stand in the table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import bandit
from bandit import assist, fit_logistic, hajek, predict_logistic
from bandit.correlation import correlation_of_sums, moments
from bandit.estimate import Estimate
from survey.figures import Figure

from . import bradley_terry
from .agreement import classes_of, kappa_of
from .errors import NOTHING, PlacesInRow, figure, freedom, share_figure, slope
from .judgements import TIE, UNREADABLE, A, B, JudgedItems, Judgements

Floats = NDArray[np.float64]

FOLDS = 5
BINS = 8
MIN_ITEMS = 10
"""Items that people and a judge share, below which nothing is compared."""
PRIOR = np.array([0.01, 0.01])


@dataclass(frozen=True, eq=False)
class Compared:
    """m items that people and a judge have both judged; arrays (m,), and the n people's answers to them.

    human, judge: value towards A: the mean rating, or of people who only said the winner, their majority as -1, 0 or 1.
    mean: people's mean value. said, verdict: the majority of people and the judge's. share: of people for A.
    chance: the judge's chance of A. rows: the people's answers; row_item: the item of each. prompt, category: of items.
    weight: of items, with mean 1.
    """

    human: Floats
    mean: Floats
    judge: Floats
    said: NDArray[np.int64]
    verdict: NDArray[np.int64]
    share: Floats
    chance: Floats
    prompt: NDArray[np.int64]
    category: NDArray[np.str_]
    weight: Floats
    rows: Judgements
    row_item: NDArray[np.int64]
    fitted: bool = False
    """Whether the judge stated no chances, so that they are fitted to people's answers."""

    @property
    def m(self) -> int:
        return len(self.human)

    @property
    def says_nothing(self) -> bool:
        """Whether no verdict could be read: a chance fitted to none is people's own share, not the judge's."""
        return bool((self.verdict == UNREADABLE).all())

    def where(self, chosen: NDArray[np.bool_]) -> Compared:
        """Those items alone."""
        place = np.cumsum(chosen) - 1
        rows = chosen[self.row_item]
        names = ("human", "mean", "judge", "said", "verdict", "share", "chance", "prompt", "category", "weight")
        return Compared(
            **{name: getattr(self, name)[chosen] for name in names},
            rows=self.rows.where(rows),
            row_item=place[self.row_item[rows]],
            fitted=self.fitted,
        )


@dataclass(frozen=True)
class ChanceBin:
    """A part of the judge's chances: its items, their mean chance, and the share that people gave to A."""

    items: int
    chance: float
    share: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class JudgeFigures:
    """A judge against people over some items. Figures that are not defined have no value.

    unreadable: verdicts that could not be read, of `verdicts`. log_score: bits, of the judge's chance of what people
    preferred, ties half. ceiling_person, ceiling_judge: correlation of one left-out person, and of the judge, with the
    mean of the other people on the same items.
    """

    items: int
    verdicts: int
    unreadable: int
    pearson: Figure
    uncentred: Figure
    spearman: Figure
    accuracy: Figure
    kappa: Figure
    log_score: Figure
    ceiling_person: Figure
    ceiling_judge: Figure
    orders: Figure
    """The share of items on which its two orders agree."""
    both_orders: int
    side: Figure


def compare(people: Judgements, judge: Judgements) -> Compared | None:
    """What both have judged; None where these are fewer than 10 items. Models and prompts have the same places."""
    asked, read = JudgedItems.of(people), JudgedItems.of(judge)
    shared = np.intersect1d(asked.key, read.key)
    if len(shared) < MIN_ITEMS:
        return None
    own, others = np.searchsorted(asked.key, shared), np.searchsorted(read.key, shared)
    # The judge's A may be the people's B.
    turn = np.where(judge.a[read.where[others]] == people.a[asked.where[own]], 1, -1)
    readable = judge.where(judge.outcome != UNREADABLE)
    stated = mean_by_item(readable.chance, readable.key, shared)
    verdict = _verdicts(judge, shared)
    rating = read.value[others] * turn
    share, said = asked.share[own], asked.outcome[own]
    prompt = people.prompt[asked.where[own]]
    rows = people.where(np.isin(people.key, shared))
    row_item = np.searchsorted(shared, rows.key)
    weight = 1 / people.probability[asked.where[own]]
    chance = np.where(turn > 0, stated, 1 - stated)
    if fitted := bool(np.isnan(chance).any()):
        fitted_chance = cross_fitted(rating, prompt, rows.win, row_item)
        chance = np.where(np.isnan(chance), fitted_chance, chance)
    return Compared(
        human=asked.value[own] if rated(people) else np.where(said == UNREADABLE, 0, said).astype(np.float64),
        mean=asked.value[own],
        judge=rating,
        said=said,
        verdict=np.where(np.isin(verdict, (A, B)), verdict * turn, verdict),
        share=share,
        chance=chance,
        prompt=prompt,
        category=people.category[asked.where[own]],
        weight=weight / weight.mean(),
        rows=rows,
        row_item=row_item,
        fitted=fitted,
    )


def _verdicts(judge: Judgements, keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """Of each item: unreadable where no verdict could be read, else the sign of the mean over those that could, in the
    direction in which the judge's A and B stand."""
    readable = judge.where(judge.outcome != UNREADABLE)
    mean = mean_by_item(np.where(readable.outcome == TIE, 0, readable.value), readable.key, keys)
    return np.where(np.isnan(mean), UNREADABLE, np.sign(np.nan_to_num(mean))).astype(np.int64)


def mean_by_item(values: Floats, key: NDArray[np.int64], keys: NDArray[np.int64]) -> Floats:
    """The mean over each of the keys, which are in order; NaN where there is no value, or one of them is NaN."""
    there = np.isin(key, keys)
    place = np.searchsorted(keys, key[there])
    n = np.bincount(place, minlength=len(keys))
    with np.errstate(invalid="ignore"):
        means: Floats = np.bincount(place, weights=values[there], minlength=len(keys)) / n
    return means


def cross_fitted(rating: Floats, prompt: NDArray[np.int64], win: Floats, row_item: NDArray[np.int64]) -> Floats:
    """The chance of each item (m,) that people prefer A, by a judge's rating: a logistic regression for each of five
    folds of prompts, fitted to the people's answers (n,) in the other four, ties half to either side."""
    known, place = np.unique(prompt, return_inverse=True)
    fold = np.random.default_rng(0).permutation(len(known))[place.reshape(-1)] % FOLDS
    columns = np.stack([np.ones_like(rating), rating], axis=1)
    chances = np.full(len(rating), 0.5)
    for number in range(FOLDS):
        own, others = fold == number, (fold != number)[row_item]
        if own.any() and others.any():
            beta = _regression(columns[row_item[others]], win[others])
            chances[own] = predict_logistic(columns[own], beta)
    return chances


def figures(compared: Compared, judge: Judgements) -> JudgeFigures:
    """Every figure of a judge over these items, and of its own verdicts."""
    own = compared
    ranks_h, ranks_j = bandit.ranks(own.human), bandit.ranks(own.judge)
    people, machine = _ceiling(own)
    return JudgeFigures(
        items=own.m,
        verdicts=judge.n,
        unreadable=int((judge.outcome == UNREADABLE).sum()),
        pearson=_of_moments(own, own.human, own.judge, correlation_of_sums, _of_rows(own)),
        uncentred=_of_moments(own, own.human, own.judge, uncentred_of, _of_rows(own)),
        spearman=_of_moments(own, ranks_h, ranks_j, correlation_of_sums, None),
        accuracy=_share(own, (own.verdict == own.said).astype(np.float64)[own.row_item]),
        kappa=_kappa(own),
        log_score=NOTHING if own.says_nothing else _log_score(own),
        ceiling_person=people,
        ceiling_judge=machine,
        **_orders(judge),
        side=_side(judge),
    )


@dataclass(frozen=True)
class Ways:
    """Two ways of judging on the m items that both and people have judged. accuracy: of the first less of the other, by
    people's majorities. same: the share of items on which both say the same."""

    judge: str
    other: str
    items: int
    accuracy: Figure
    same: Figure


def compare_ways(judge: str, own: Compared, other: str, others: Compared) -> Ways | None:
    """Two judges, or one that was asked in two ways, on the same items; None where these are fewer than 10."""
    own_keys, other_keys = np.unique(own.rows.key), np.unique(others.rows.key)
    shared = np.intersect1d(own_keys, other_keys)
    if len(shared) < MIN_ITEMS:
        return None
    first, second = own.where(np.isin(own_keys, shared)), others.where(np.isin(other_keys, shared))
    gain = (first.verdict == first.said).astype(np.float64) - (second.verdict == second.said)
    same = (first.verdict == second.verdict).astype(np.float64)
    return Ways(judge, other, first.m, _mean(first, gain[first.row_item]), _share(first, same[first.row_item]))


def _log_score(compared: Compared) -> Figure:
    """Without an interval where chances are fitted and items weigh unequally: what the fit adds is not known there, and
    an interval without it holds too seldom (benchmarks/preference_laws.py)."""
    score = _mean(compared, log_scores(compared.chance[compared.row_item], compared.rows.win))
    unequal = float(np.ptp(compared.weight)) > 1e-9
    return Figure(score.value) if compared.fitted and unequal else score


def log_scores(chance: Floats, share: Floats) -> Floats:
    """Bits of each item: -log2 of the chance given to what people preferred, by their share. Infinite where a chance of
    0 was given to what somebody preferred."""
    with np.errstate(divide="ignore", invalid="ignore"):
        won = np.where(share > 0, -share * np.log2(chance), 0.0)
        lost = np.where(share < 1, -(1 - share) * np.log2(1 - chance), 0.0)
    scores: Floats = won + lost
    return scores


def reliability(compared: Compared) -> list[ChanceBin]:
    """Eight parts of equal numbers of items by the judge's chance."""
    order = np.argsort(compared.chance, kind="stable")
    bins = []
    for part in np.array_split(order, min(BINS, max(1, compared.m // 10))):
        if len(part):
            in_part = np.zeros(compared.m, dtype=bool)
            in_part[part] = True
            own = compared.where(in_part)
            share = _share(own, own.rows.win)
            bins.append(
                ChanceBin(len(part), float(compared.chance[part].mean()), share.value or 0.0, share.low, share.high)
            )
    return bins


def uncentred_of(sums: Floats) -> float:
    """The same about 0: it does not depend on which model is called A."""
    _n, _x, _y, xx, yy, xy = sums
    return float(xy / math.sqrt(xx * yy)) if xx > 0 and yy > 0 else math.nan


def rated(judged: Judgements) -> bool:
    """Whether some judgement says more than who won."""
    return bool((~np.isin(judged.value, (-1.0, 0.0, 1.0))).any())


def _of_rows(compared: Compared) -> Floats | None:
    """How far each answer lies from its item's mean, a share of the item each; None where majorities count."""
    if not np.array_equal(compared.human, compared.mean):
        return None
    n = np.bincount(compared.row_item, minlength=compared.m)
    deviation: Floats = (compared.rows.value - compared.mean[compared.row_item]) / n[compared.row_item]
    return deviation


def _of_moments(
    compared: Compared, x: Floats, y: Floats, of: Callable[[Floats], Any], deviation: Floats | None
) -> Figure:
    """A correlation of items' values, whose rows are the people's answers.

    deviation: of each answer from its item's mean of x, a share each; None where x is a rank, which no single answer
    moves by a known amount.
    """
    rows = moments(x, y, compared.weight)
    total = rows.sum(axis=0)
    value = float(of(total))
    if not math.isfinite(value):
        return NOTHING
    gradient = slope(of, total, size=np.abs(rows).sum(axis=0))
    by_item = rows @ gradient
    n = np.bincount(compared.row_item, minlength=compared.m)
    influence = (by_item / n)[compared.row_item]
    if deviation is not None:
        by_x = compared.weight * (gradient[1] + 2 * gradient[3] * x + gradient[5] * y)
        influence = influence + by_x[compared.row_item] * deviation
    return _by_answers(compared, value, influence, scale="correlation")


def _by_answers(compared: Compared, value: float, influence: Floats, *, scale: PlacesInRow) -> Figure:
    person, prompt = compared.rows.person, compared.rows.prompt
    variance = bandit.clustered_variance(influence, person, prompt)
    return figure(value, variance, freedom(person=person, prompt=prompt), scale=scale)


def _share(compared: Compared, values: Floats) -> Figure:
    """The mean over items of values of their answers (n,)."""
    weight = (compared.weight / np.bincount(compared.row_item, minlength=compared.m))[compared.row_item]
    return share_figure(values, weight, person=compared.rows.person, prompt=compared.rows.prompt)


def _mean(compared: Compared, values: Floats) -> Figure:
    """The mean over items of values of their answers (n,)."""
    weight = (compared.weight / np.bincount(compared.row_item, minlength=compared.m))[compared.row_item]
    value = float(np.average(values, weights=weight)) if compared.m else math.nan
    if not math.isfinite(value):
        return Figure(value if math.isinf(value) else None)
    return _by_answers(compared, value, weight * (values - value) / weight.sum(), scale="plain")


def _kappa(compared: Compared) -> Figure:
    rows = classes_of(compared.verdict, compared.said) * compared.weight[:, None]
    size = round(rows.shape[1] ** 0.5)

    def of(sums: Floats) -> float:
        return kappa_of(sums.reshape(size, size))

    total = rows.sum(axis=0)
    value = of(total)
    if not math.isfinite(value):
        return NOTHING
    n = np.bincount(compared.row_item, minlength=compared.m)
    influence = rows @ slope(of, total, size=np.abs(rows).sum(axis=0))
    return _by_answers(compared, value, (influence / n)[compared.row_item], scale="correlation")


def _ceiling(compared: Compared) -> tuple[Figure, Figure]:
    """The left-out person, and the judge, against the same mean of the others: one row per answer of which the item has
    others."""
    n = np.bincount(compared.row_item, minlength=compared.m)[compared.row_item]
    with np.errstate(invalid="ignore", divide="ignore"):
        others = (compared.mean[compared.row_item] * n - compared.rows.value) / (n - 1)
    several = n >= 2
    if several.sum() < MIN_ITEMS:
        return NOTHING, NOTHING
    weight, person, prompt = (
        compared.weight[compared.row_item][several],
        compared.rows.person[several],
        compared.rows.prompt[several],
    )
    correlations = []
    for values in (compared.rows.value, compared.judge[compared.row_item]):
        rows = moments(values[several], others[several], weight)
        total = rows.sum(axis=0)
        value = float(correlation_of_sums(total))
        if not math.isfinite(value):
            correlations.append(NOTHING)
            continue
        influence = rows @ slope(correlation_of_sums, total, size=np.abs(rows).sum(axis=0))
        variance = bandit.clustered_variance(influence, person, prompt)
        correlations.append(figure(value, variance, freedom(person=person, prompt=prompt), scale="correlation"))
    return correlations[0], correlations[1]


def _orders(judge: Judgements) -> dict[str, Any]:
    """Of the items that it judged in both orders, the share on which both say the same; unreadable ones say nothing."""
    known = judge.where((judge.first != 0) & (judge.outcome != UNREADABLE))
    sign: dict[int, dict[int, float]] = {}
    prompts: dict[int, int] = {}
    for key, first, value, prompt in zip(
        known.key.tolist(), known.first.tolist(), np.sign(known.value).tolist(), known.prompt.tolist(), strict=True
    ):
        sign.setdefault(key, {})[first] = value
        prompts[key] = prompt
    both = [key for key, signs in sign.items() if len(signs) == 2]
    if not both:
        return {"orders": NOTHING, "both_orders": 0}
    same = np.array([float(sign[key][1] == sign[key][-1]) for key in both])
    prompt = np.array([prompts[key] for key in both])
    share = share_figure(same, np.ones(len(same)), person=np.arange(len(same)), prompt=prompt)
    return {"orders": share, "both_orders": len(both)}


def _side(judge: Judgements) -> Figure:
    """Its own side bias, in logits."""
    known = judge.where((judge.first != 0) & (judge.outcome != UNREADABLE))
    if known.n < MIN_ITEMS:
        return NOTHING
    try:
        return bradley_terry.fit(own_person_each(known)).side
    except bradley_terry.NoRanking:
        return NOTHING


def own_person_each(judged: Judgements) -> Judgements:
    """The same without people: a judge is no sample of people, so that only prompts are resampled."""
    return replace(judged, person=np.arange(judged.n))


@dataclass(frozen=True)
class Assisted:
    """How often A is preferred to B, from people alone and with the judge's help. saved: human answers that the judge
    is worth; None where nothing varies. coefficient: how much a unit of the judge's chance counts; None of several
    judges. withheld: why the judge does not help; empty where it does."""

    model: str
    other: str
    answers: int
    items: int
    people: Estimate
    assisted: Estimate
    saved: float | None
    coefficient: float | None
    withheld: str

    @property
    def notes(self) -> str:
        return f"not assisted: {self.withheld}" if self.withheld else ""


def fitted(rating: Floats, win: Floats, at: Floats) -> Floats:
    """The chance that people prefer A at these ratings, by a logistic regression on answers (n,) whose items the judge
    gave `rating` (n,)."""
    columns = np.stack([np.ones_like(rating), rating], axis=1)
    beta = _regression(columns, win)
    return predict_logistic(np.stack([np.ones_like(at), at], axis=1), beta)


def _regression(columns: Floats, win: Floats) -> Floats:
    """Two rows per answer, so that a tie is one of each."""
    halves = 2 * win
    label = np.stack([halves >= 1, halves >= 2], axis=1).reshape(-1).astype(np.float64)
    return fit_logistic(columns=np.repeat(columns, 2, axis=0), label=label, precision=PRIOR, iterations=25)


def of_these_items(
    estimate: Estimate, values: Floats, weight: Floats, item: NDArray[np.int64], known: Floats, *, items: int
) -> Estimate:
    """A mean over items such as these as one over these alone: its variance less what drawing all of them from many
    would add, the variance between items over their number.

    The variance between items is the mean product of two people's deviations on the same item. Where nobody answered
    what another did, only the part of it is known that goes with the judge's chance. Then too little is taken off, and
    the interval is a little too wide.

    Args:
        found: the estimate. values, weight, item, known: of each answer (n,), the last one the judge's chance. items:
            how many there are.
    """
    if not estimate.has_interval or not estimate.standard_error > 0:
        return estimate
    off = values - np.average(values, weights=weight)
    whole = float(np.average(off**2, weights=weight))
    answers = np.bincount(item)
    several = answers >= 2
    if several.any():
        sums, squares = np.bincount(item, weights=off), np.bincount(item, weights=off**2)
        product = (sums**2 - squares)[several] / (answers * (answers - 1))[several]
        between = float(np.average(product, weights=np.bincount(item, weights=weight)[several]))
    else:
        centred = known - np.average(known, weights=weight)
        spread = float(np.average(centred**2, weights=weight))
        slope_of = float(np.average(centred * off, weights=weight)) / spread if spread > 0 else 0.0
        explained = slope_of**2 * spread
        between = explained - (whole - explained) / max(len(values) - 2, 1)  # Less what chance explains.
    between = min(max(between, 0.0), whole)
    # What single answers add stays, however many of the items were asked.
    least = (whole - between) * float((weight**2).sum() / weight.sum() ** 2)
    variance = max(estimate.standard_error**2 - between / items, min(least, estimate.standard_error**2))
    ratio = math.sqrt(variance) / estimate.standard_error
    low, high = (estimate.value + (end - estimate.value) * ratio for end in estimate.interval)
    return replace(estimate, standard_error=estimate.standard_error * ratio, interval=(low, high))


def assisted(
    people: Judgements,
    predictions: Mapping[int, float | Sequence[float]],
    *,
    universe: Mapping[tuple[int, int], Floats],
) -> list[Assisted]:
    """The judge-assisted win rate of each pair of models: people's, less what the asked items have too much of the
    judge's chances (`bandit.assist`). Both rates are of these items: how the asked ones differ from the others is less
    uncertain the more of them were asked.

    Args:
        people: their judgements, with a below b.
        predictions: the judge's chance of A by the item's key; of p judges together, their p chances.
        universe: of each pair (a, b), the judge's chances over all its m items, (m,) or (m, p).
    """
    pairs = []
    for (a, b), chances in sorted(universe.items()):
        own = (people.a == a) & (people.b == b) & np.isin(people.key, np.fromiter(predictions, dtype=np.int64))
        rows = people.where(own)
        if rows.n < MIN_ITEMS or not len(chances):
            continue
        known = np.array([predictions[key] for key in rows.key.tolist()]).reshape(rows.n, -1)
        item = np.unique(rows.key, return_inverse=True)[1].reshape(-1)
        several = item if len(np.unique(item)) < rows.n else None
        weight = 1 / rows.probability
        help_by_judge = assist(
            values=rows.win,
            predictions=known,
            prediction_means=chances.reshape(len(chances), -1).mean(axis=0, keepdims=True),
            stratum=np.zeros(rows.n, dtype=np.int64),
            weight=weight,
            cluster=rows.person,
            item=several,
        )
        sample: dict[str, Any] = {
            "values": rows.win,
            "probability": rows.probability,
            "cluster": rows.person,
            "item": several,
        }
        guess = known.mean(axis=1)
        alone = of_these_items(hajek(**sample), rows.win, weight, item, guess, items=len(chances))
        helped = hajek(**sample, adjustment=help_by_judge.adjustment)
        helped = of_these_items(helped, rows.win - help_by_judge.adjustment, weight, item, guess, items=len(chances))
        saved = None
        if helped.standard_error > 0 and alone.standard_error > 0:
            saved = rows.n * ((alone.standard_error / helped.standard_error) ** 2 - 1)
        names = people.models[a], people.models[b]
        coefficient = float(help_by_judge.coefficient[0]) if known.shape[1] == 1 else None
        pairs.append(Assisted(*names, rows.n, len(chances), alone, helped, saved, coefficient, help_by_judge.withheld))
    return pairs
