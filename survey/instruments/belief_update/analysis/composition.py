"""How beliefs after several evidence questions compose: additivity in log-odds, weights of the steps, order effects.

What one evidence question changes alone is known from the people who saw it first. Means of few answers are noisy, and
a noisy regressor makes a slope too small even for people who follow Bayes' rule. So no person's answer is ever
multiplied by their own: a sequence is set against the single changes of other people, and these against the single
changes of others again (a split-sample instrument; Angrist and Krueger 1995). The figures are means over all ways to
part the people of an item, which have closed forms; `halves` has one split in two, both ways.

Intervals take respondents and items as clusters (`bandit.clustered_variance`): the variance over items, and that over
people, less that over single answers, which is in both.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import bandit
from survey.figures import Figure

from .composing import WAYS, log_odds, weights

CLIPS = (0.5, 0.1, 2.0)
MIN_ITEMS = 5
FREE = ("anchoring", "recency")  # They have a parameter that is estimated.
PENALTY = 6.635  # for it: the 1 % point of a chi-squared of one degree of freedom


@dataclass(frozen=True, eq=False)
class StepAnswers:
    """n answers to items with K evidence questions.

    item, person: their numbers from 0 (n,). order: the places of the evidence questions, from 0, in the order shown
    (n, K). belief: in percentage points, before any evidence and after each step (n, K + 1). weight: of each item (G,).
    mixed: which evidence questions of an item were correct (G, K), bool.
    """

    item: NDArray[np.int64]
    person: NDArray[np.int64]
    order: NDArray[np.int64]
    belief: NDArray[np.float64]
    weight: NDArray[np.float64]
    correct: NDArray[np.bool_]

    @property
    def steps(self) -> int:
        return self.order.shape[1]

    def __len__(self) -> int:
        return len(self.item)


@dataclass(frozen=True, eq=False)
class Composition:
    """What the answers say under one clip. `weights`: of each step, first to last. `recency`: the last less the first.
    `naive`: the slope with everybody's answers on both sides, which noise makes too small."""

    clip: float
    items: int
    answers: int
    people: int
    slope: Figure
    weights: tuple[Figure, ...]
    recency: Figure
    naive: float | None
    covariance: NDArray[np.float64]
    moments: "_Moments"

    def distance(self, name: str) -> tuple[float, float | None]:
        """How far the weights lie from those of a way: the Wald statistic, and the way's parameter where it has one."""
        own_weights = np.array([weight.value for weight in self.weights], dtype=np.float64)
        inverse = np.linalg.pinv(self.covariance)
        tried = np.linspace(0, 1, 201) if name in FREE else np.array([np.nan])
        gaps = np.stack([own_weights - weights(name, len(own_weights), kept) for kept in tried])
        values = np.einsum("ti,ij,tj->t", gaps, inverse, gaps)
        best = int(np.argmin(values))
        return float(values[best]), float(tried[best]) if name in FREE else None

    def explained(self, name: str, kept: float | None = None) -> float | None:
        """The share of what changes systematically that a way with these weights foresees; 1 is all."""
        return self.moments.explained(weights(name, len(self.weights), 0.5 if kept is None else kept))


class _Sums(NamedTuple):
    """Weighted sums of answers by order shown, each (rows, O): of 1, y, s, and of the squared weights times 1, y s, s s
    and y y, which are what a person's answer has with itself."""

    n: np.ndarray
    y: np.ndarray
    s: np.ndarray
    own: np.ndarray
    own_ys: np.ndarray
    own_ss: np.ndarray
    own_yy: np.ndarray


@dataclass(frozen=True, eq=False)
class _Moments:
    """Sums over items. `cross`: sequences times single changes by step (K,); `single`: single changes of two steps
    (K, K); `total`: sequences times sequences."""

    cross: np.ndarray
    single: np.ndarray
    total: float
    of_total: tuple[np.ndarray, np.ndarray]

    def explained(self, step_weights: np.ndarray) -> float | None:
        cross, single = self.of_total
        return (
            None
            if self.total <= 0
            else float((2 * step_weights @ cross - step_weights @ single @ step_weights) / self.total)
        )


def orders_of(steps: int) -> np.ndarray:
    """Every order of so many evidence questions (K!, K)."""
    return np.array(list(permutations(range(steps))), dtype=np.int64)


def compose(answers: StepAnswers, *, clip: float = CLIPS[0], in_points: bool = False) -> Composition | None:
    """Slope, weights and fits; None where fewer than five items have two people who saw each evidence question first.

    Args:
        clip: beliefs nearer than this to 0 or 100 points count as that.
        in_points: changes in points (as fractions) instead of log-odds.
    """
    every = orders_of(answers.steps)
    order_number = (answers.order[:, None, :] == every[None]).all(axis=2).argmax(axis=1)
    scale = answers.belief / 100 if in_points else log_odds(answers.belief, clip=clip)
    y, s = scale[:, -1] - scale[:, 0], scale[:, 1] - scale[:, 0]
    sums = _sums(answers.item, order_number, y, s, items=len(answers.weight), orders=len(every))
    firsts = _by_first(sums.n, every)
    used: NDArray[np.bool_] = np.all(firsts >= 2, axis=1)
    if used.sum() < MIN_ITEMS:
        return None
    weight = np.where(used, answers.weight, 0.0)
    cross, single = _pairs(sums, every)
    cross, single = weight @ np.where(used[:, None], cross, 0), np.einsum("g,gpq->pq", weight, _zero(single, used))
    keep = used[answers.item]
    item, person = answers.item[keep], np.unique(answers.person[keep], return_inverse=True)[1].reshape(-1)
    change = _derivative(sums, item, order_number[keep], y[keep], s[keep], every)
    item_cross, item_single = (_zero(part, used) for part in _pairs(sums, every))
    clusters = (weight, item, person)
    weighed = np.linalg.solve(single, cross) if np.linalg.matrix_rank(single) == len(single) else None
    ones = np.ones(answers.steps)
    slope = float(ones @ cross / (ones @ single @ ones))
    slope_error = _covariance(
        (item_cross - slope * item_single.sum(axis=2)).sum(axis=1)[:, None],
        (change[0] - slope * change[1].sum(axis=2)).sum(axis=1)[:, None],
        np.array([[ones @ single @ ones]]),
        clusters,
        own=item_single.sum(axis=(1, 2))[:, None, None],
    )[0, 0]
    count, crowd = int(used.sum()), len(np.unique(person))
    independent = _effective(weight * item_single.sum(axis=(1, 2))) if in_points else count
    degrees = min(independent, crowd) - 1
    if weighed is None:
        return None
    covariance = _covariance(
        item_cross - item_single @ weighed, change[0] - change[1] @ weighed, single, clusters, own=item_single
    )
    contrast = np.zeros(answers.steps)
    contrast[[0, -1]] = -1, 1
    return Composition(
        clip=clip,
        items=count,
        answers=int(keep.sum()),
        people=crowd,
        slope=_figure(slope, slope_error, degrees),
        weights=tuple(
            _figure(float(value), float(error), degrees)
            for value, error in zip(weighed, np.diag(covariance), strict=True)
        ),
        recency=_figure(float(contrast @ weighed), float(contrast @ covariance @ contrast), degrees),
        naive=_naive(sums, every, weight),
        covariance=covariance,
        moments=_moments(sums, every, weight, cross, single),
    )


def _effective(shares: np.ndarray) -> float:
    """How many items of equal share would say as much; at least two. Shares may be below 0 by chance.

    In points, a few items with long changes make most of a slope. Its variance rests on these few, and is known less
    well than the number of items says (Imbens and Kolesar 2016).
    """
    squares = float((shares**2).sum())
    return max(float(shares.sum()) ** 2 / squares, 2.0) if squares > 0 else 2.0


def _figure(value: float, variance: float, degrees: float) -> Figure:
    if np.isnan(variance):
        return Figure(value)
    error = float(np.sqrt(max(variance, 0.0)))
    return Figure(value, *(bandit.student_interval(value, error, degrees) or (value, value)), error)


def _zero(part: np.ndarray, used: np.ndarray) -> np.ndarray:
    masked: np.ndarray = np.where(used.reshape(-1, *[1] * (part.ndim - 1)), part, 0.0)
    return masked


def _sums(
    item: np.ndarray, order_number: np.ndarray, y: np.ndarray, s: np.ndarray, *, items: int, orders: int
) -> _Sums:
    cell = item * orders + order_number

    def added(values: np.ndarray | None) -> np.ndarray:
        totals: np.ndarray = np.bincount(cell, weights=values, minlength=items * orders).reshape(items, orders)
        return totals.astype(np.float64)

    n = added(None)
    return _Sums(n, added(y), added(s), n, added(y * s), added(s * s), added(y * y))


def _by_first(values: np.ndarray, every: np.ndarray) -> np.ndarray:
    """Sums over the orders that begin with each place; (rows, K)."""
    return np.stack([values[:, every[:, 0] == place].sum(axis=1) for place in range(every.shape[1])], axis=1)


def _pairs(sums: _Sums, every: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of each row the mean product over two different people: of a sequence's change and of the single change of each
    step (rows, K), and of the single changes of two steps (rows, K, K). Orders count as often as they were shown."""
    steps = every.shape[1]
    with np.errstate(divide="ignore", invalid="ignore"):
        n, s, own, own_ss = (_by_first(part, every) for part in (sums.n, sums.s, sums.own, sums.own_ss))
        mean = s / n
        both = mean[:, :, None] * mean[:, None, :]
        same = (s**2 - own_ss) / (n**2 - own)
        both[:, range(steps), range(steps)] = same
        total = sums.n.sum(axis=1)
        cross = np.zeros((len(sums.n), steps))
        single = np.zeros((len(sums.n), steps, steps))
        for place, order in enumerate(every):
            share = np.where(sums.n[:, place] > 0, sums.n[:, place] / total, 0.0)
            own_mean = sums.y[:, place] / sums.n[:, place]
            first = order[0]
            by_step = own_mean[:, None] * mean[:, order]
            # The person who saw it first gave the sequence too: leave out what they have with themselves.
            by_step[:, 0] = (sums.y[:, place] * s[:, first] - sums.own_ys[:, place]) / (
                sums.n[:, place] * n[:, first] - sums.own[:, place]
            )
            present = sums.n[:, place] > 0
            cross += np.where(present[:, None], share[:, None] * by_step, 0.0)
            single += share[:, None, None] * both[:, order][:, :, order]
    return cross, single


def _derivative(
    sums: _Sums, item: np.ndarray, order_number: np.ndarray, y: np.ndarray, s: np.ndarray, every: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """How the mean products of its item change with the weight of each answer, which is 1."""
    step = 1e-4
    place = np.zeros((len(item), len(every)))
    place[np.arange(len(item)), order_number] = 1.0

    def moved(by: float) -> tuple[np.ndarray, np.ndarray]:
        square = (1 + by) ** 2 - 1
        added = (by, by * y, by * s, square, square * y * s, square * s * s, square * y * y)
        rows = [
            part[item] + place * (np.full(len(item), more) if np.isscalar(more) else more)[:, None]
            for part, more in zip(sums, added, strict=True)
        ]
        return _pairs(_Sums(*rows), every)

    up, down = moved(step), moved(-step)
    return (up[0] - down[0]) / (2 * step), (up[1] - down[1]) / (2 * step)


def _covariance(
    by_item: np.ndarray,
    by_answer: np.ndarray,
    slope_of: np.ndarray,
    clusters: tuple[np.ndarray, np.ndarray, np.ndarray],
    *,
    own: np.ndarray | None = None,
) -> np.ndarray:
    """The sandwich over items and people. `by_item` (G, m): each item's part of the moments, which add up to 0;
    `by_answer` (n, m): what each answer moves them by; `slope_of`: the moments' derivative, to which each item adds
    `own` (G, m, m). With it the variance over items is that of leaving out one item after the other: an item with long
    changes pulls the estimate to itself, and its part of the moments alone would look too small.
    """
    weight, item, person = clusters
    used = weight > 0
    parts, answers = weight[:, None] * by_item, weight[item][:, None] * by_answer
    items = np.arange(len(weight))
    over_items = bandit.clustered_covariance(parts[used], items[used])
    if own is not None:
        left = slope_of - weight[:, None, None] * own
        if (np.linalg.det(left) > 0).all():
            without = (slope_of @ np.linalg.solve(left, parts[:, :, None]))[:, :, 0]
            over_items = (1 - 1 / used.sum()) * without.T @ without
    middle = bandit.crossed_covariance(
        over_items,
        bandit.clustered_covariance(answers, person),
        bandit.clustered_covariance(answers, np.arange(len(answers))),
    )
    bread = np.linalg.inv(slope_of)
    return np.asarray(bread @ middle @ bread.T)


def _naive(sums: _Sums, every: np.ndarray, weight: np.ndarray) -> float | None:
    used = weight > 0
    singles = (_by_first(sums.s, every)[used] / _by_first(sums.n, every)[used]).sum(axis=1)
    change = sums.y[used].sum(axis=1) / sums.n[used].sum(axis=1)
    below = float((weight[used] * singles**2).sum())
    return float((weight[used] * change * singles).sum() / below) if below > 0 else None


def _moments(sums: _Sums, every: np.ndarray, weight: np.ndarray, cross: np.ndarray, single: np.ndarray) -> _Moments:
    """With the products of sequences among themselves, over the items in which each shown order has two people."""
    whole = (weight > 0) & ((sums.n == 0) | (sums.n >= 2)).all(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        same = (sums.y**2 - sums.own_yy) / (sums.n**2 - sums.own)
    share = sums.n / np.maximum(sums.n.sum(axis=1, keepdims=True), 1)
    own = np.where(sums.n >= 2, share * np.nan_to_num(same), 0.0).sum(axis=1)
    item_cross, item_single = _pairs(sums, every)
    used_weight = np.where(whole, weight, 0.0)
    return _Moments(
        cross,
        single,
        float(used_weight @ np.where(whole, own, 0.0)),
        (used_weight @ _zero(item_cross, whole), np.einsum("g,gpq->pq", used_weight, _zero(item_single, whole))),
    )


# Two halves, and how well each way fits


def halves(
    answers: StepAnswers, *, rng: np.random.Generator, clip: float = CLIPS[0]
) -> tuple[float | None, float | None]:
    """The slope with the people parted in two at random: the single changes of the first half are the instrument, and
    the sequences come from the second; and the other way round. None where no item has both."""
    every = orders_of(answers.steps)
    scale = log_odds(answers.belief, clip=clip)
    y, s = scale[:, -1] - scale[:, 0], scale[:, 1] - scale[:, 0]
    people = np.unique(answers.person)
    second = np.isin(answers.person, rng.permutation(people)[: len(people) // 2])
    order_number = (answers.order[:, None, :] == every[None]).all(axis=2).argmax(axis=1)
    mean, change = [], []
    for half in (~second, second):
        sums = _sums(
            answers.item[half], order_number[half], y[half], s[half], items=len(answers.weight), orders=len(every)
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            mean.append((_by_first(sums.s, every) / _by_first(sums.n, every)).sum(axis=1))
            change.append(sums.y.sum(axis=1) / sums.n.sum(axis=1))
    used = np.isfinite(mean[0]) & np.isfinite(mean[1])
    if not used.any():
        return None, None
    weight = answers.weight[used]
    below = float((weight * mean[0][used] * mean[1][used]).sum())
    values = [float((weight * change[1 - half][used] * mean[half][used]).sum() / below) for half in (0, 1)]
    return values[0], values[1]


def order_effect(answers: StepAnswers, *, clip: float = CLIPS[0], in_points: bool = False) -> Figure:
    """In items with correct and incorrect answers: the whole change where a correct one came last, less that where an
    incorrect one did. Above 0: what came last counts more. In log-odds, or in points."""
    mixed = answers.correct.any(axis=1) & ~answers.correct.all(axis=1)
    last = answers.correct[answers.item, answers.order[:, -1]]
    scale = answers.belief if in_points else log_odds(answers.belief, clip=clip)
    y = scale[:, -1] - scale[:, 0]
    items = len(answers.weight)
    counts, means = [], []
    for is_last in (True, False):
        of = last == is_last
        count = np.bincount(answers.item[of], minlength=items)
        counts.append(count)
        means.append(np.bincount(answers.item[of], weights=y[of], minlength=items) / np.maximum(count, 1))
    used = mixed & (counts[0] > 0) & (counts[1] > 0)
    if used.sum() < MIN_ITEMS:
        return Figure()
    weight = np.where(used, answers.weight, 0.0)
    gap = means[0] - means[1]
    value = float(weight @ gap / weight.sum())
    keep = used[answers.item]
    item, side = answers.item[keep], last[keep]
    number = np.where(side, counts[0][item], counts[1][item])
    own = np.where(side, 1, -1) * (y[keep] - np.where(side, means[0][item], means[1][item])) / number
    person = np.unique(answers.person[keep], return_inverse=True)[1].reshape(-1)
    variance = _covariance(
        (gap - value)[:, None],
        own[:, None],
        np.array([[weight.sum()]]),
        (weight, item, person),
    )[0, 0]
    return _figure(value, variance, min(int(used.sum()), int(person.max()) + 1) - 1)


def at_the_ends(answers: StepAnswers) -> tuple[float, float]:
    """The shares of 0 and of 100 among all stated beliefs."""
    return float((answers.belief == 0).mean()), float((answers.belief == 100).mean())


@dataclass(frozen=True)
class WayFit:
    """How well a way fits. `distance`: the Wald statistic of its weights, with `penalty` for a parameter; `kept`: its
    parameter. `explained`: the share of the systematic change that it foresees, on its own scale."""

    name: str
    distance: float
    penalty: float
    kept: float | None
    explained: float | None

    @property
    def score(self) -> float:
        return self.distance + self.penalty


def fits(logits: Composition, in_points: Composition) -> list[WayFit]:
    """How well each way fits, in the order of `WAYS`: its weights next to those that were found."""
    way_fits = []
    for way in WAYS:
        of = in_points if way.name == "additive" else logits
        name = "bayes" if way.name == "additive" else way.name
        distance, kept = of.distance(name)
        penalty = PENALTY if way.name in FREE else 0.0
        way_fits.append(WayFit(way.name, distance, penalty, kept, of.explained(name, kept)))
    return way_fits


def best_of(fits: Sequence[WayFit], shapes: Sequence[Figure]) -> str:
    """The name of the way that fits best: the lowest score. Where all changes count in full, `shapes` (see
    `scale_of_adding`, with sums cut at the ends and not) help to decide on which scale they add. They rest on the same
    answers as the distances, so that these count by half and the shapes by their mean."""
    scores = {fit.name: fit.score for fit in fits}
    best = min(scores, key=lambda name: scores[name])
    known = [
        (shape.value, shape.standard_error) for shape in shapes if shape.value is not None and shape.standard_error
    ]
    if best not in ("bayes", "additive") or not known:
        return best
    for name, aim in (("bayes", 1.0), ("additive", 0.0)):
        scores[name] = scores[name] / 2 + float(np.mean([((value - aim) / error) ** 2 for value, error in known]))
    return min(("bayes", "additive"), key=lambda name: scores[name])


def scale_of_adding(
    answers: StepAnswers, *, rng: np.random.Generator, clip: float = CLIPS[0], splits: int = 8, cut: bool = True
) -> Figure:
    """On which scale changes add up: 1 in log-odds, 0 in points.

    The two ways foresee different beliefs. What was stated less what adding points foresees is set against the
    difference of the two; single changes and sequences come from different halves of the people, both ways, and the
    figure rests on several splits. Its interval takes the items as clusters, and leaves out one after the other.

    Args:
        cut: sums of points beyond 0 and 100 count as these, since nobody states more. Without that the figure has less
            noise, and is above 0 for people who add points where their sums reach the ends.
    """
    logits = log_odds(answers.belief, clip=clip)
    share = answers.belief / 100
    items, steps = len(answers.weight), answers.steps
    first = answers.order[:, 0]
    people = np.unique(answers.person)
    above, below = np.zeros(items), np.zeros(items)
    for _split in range(splits):
        second = np.isin(answers.person, rng.permutation(people)[: len(people) // 2])
        differs, stays = [], []
        for half in (~second, second):
            cell, item = answers.item[half] * steps + first[half], answers.item[half]
            n = np.bincount(cell, minlength=items * steps).reshape(items, steps)
            with np.errstate(divide="ignore", invalid="ignore"):
                alone = [
                    (np.bincount(cell, weights=(part[half, 1] - part[half, 0]), minlength=items * steps)).reshape(
                        items, steps
                    )
                    / n
                    for part in (logits, share)
                ]
                total = [part.sum(axis=1)[item] for part in alone]
                count = np.bincount(item, minlength=items)
                by_points = share[half, 0] + total[1]
                if cut:
                    by_points = np.clip(by_points, 0.0, 1.0)
                by_logits = 1 / (1 + np.exp(-(logits[half, 0] + total[0])))
                differs.append(np.bincount(item, weights=by_logits - by_points, minlength=items) / count)
                stays.append(np.bincount(item, weights=share[half, -1] - by_points, minlength=items) / count)
        used = np.isfinite(differs[0]) & np.isfinite(differs[1])
        above += np.where(used, differs[0] * stays[1] + differs[1] * stays[0], 0.0)
        below += np.where(used, 2 * differs[0] * differs[1], 0.0)
    above, below = above * answers.weight, below * answers.weight
    item_count = int(np.count_nonzero(below))
    if item_count < MIN_ITEMS or below.sum() <= 0:
        return Figure()
    value = float(above.sum() / below.sum())
    # Without one item after the other: a few items with long changes decide the ratio, and sums of residuals would miss
    # what each of them does to its denominator.
    own = below != 0
    left = below.sum() - below[own]
    if (left <= 0).any():  # One item alone makes the ratio: no interval, and hardly a hint at which way fits.
        error = np.sqrt(item_count / (item_count - 1) * float(((above - value * below) ** 2).sum())) / float(
            below.sum()
        )
        return Figure(value, standard_error=float(error))
    without = (above.sum() - above[own]) / left
    variance = (item_count - 1) / item_count * float(((without - without.mean()) ** 2).sum())
    return _figure(value, variance, item_count - 1)
