"""How much of the answers' variance lies between people, between items and between questions. Numpy alone.

The model is linear with crossed random effects: an answer is a mean plus the effects of its person, its item, each of
its item's questions, and a rest. Closed form: weighted sums of products of two answers' deviations that share a person,
an item or a question are set equal to what the model expects of them, which is linear in the variances (the method of
moments; Searle, Casella and McCulloch, Variance Components, 1992, chapter 5; for large unbalanced crossed designs Gao
and Owen, Electronic Journal of Statistics 11, 2017). No distribution is assumed. That the mean is estimated from the
same answers is allowed for exactly.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bandit.errors import DesignError
from bandit.student import student_t_quantile

PEOPLE, PAIRS, QUESTIONS, REST = "people", "pairs", "questions", "rest"
RESAMPLES = 200
MIN_PEOPLE = 10
GROUPS = 200  # at most so many parts of the people are left out in turn
MIN_PRODUCTS = 20  # products of two answers, in equally weighted ones, from which a variance is estimated
_PLACES = ("first question", "second question")
# What is drawn again for the error of each other share; the largest of several errors counts.
_WAYS_OF = {PEOPLE: (), PAIRS: (PAIRS,), QUESTIONS: (PAIRS, *_PLACES), REST: (PAIRS,)}
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Share:
    """One part of the variance: its variance in squared units of the answers, its share of the whole (0 to 1), and the
    95 % interval of the share. The plain estimate may be a little below 0 where there is nothing; it is cut off there.
    """

    name: str
    variance: float
    share: float
    interval: tuple[float, float]


@dataclass(frozen=True, eq=False)
class Components:
    """The shares of the variance, and the people's effects.

    `total`: the variance of one answer, in squared units. `shares`: those that the answers can separate, the rest last;
    they sum to 1 but for what is cut off at 0. `joined`: what cannot be separated from the rest, and is in it.
    `effects`: each person's shrunken effect, shape (people,), in units of the answers, sorted, so that the order names
    nobody.
    `answers`, `people`: how many.
    """

    total: float
    shares: tuple[Share, ...]
    joined: tuple[str, ...]
    effects: Floats
    answers: int
    people: int


@dataclass(frozen=True, eq=False)
class _Factor:
    """Which level each answer has, from 0; -1 for none, shape (n,)."""

    name: str
    level: Integers
    size: int

    @cached_property
    def is_whole(self) -> bool:
        return bool((self.level >= 0).all())

    def sums(self, values: Floats) -> Floats:
        """By answer: the sum over all answers of its level; 0 without one."""
        if self.is_whole:
            whole = np.bincount(self.level, weights=values, minlength=self.size)
            return np.asarray(whole, dtype=np.float64)[self.level]
        # One level more for those without one; -1 is its index.
        level = np.where(self.level < 0, self.size, self.level)
        of_level = np.asarray(np.bincount(level, weights=values, minlength=self.size + 1), dtype=np.float64)
        of_level[self.size] = 0.0
        return of_level[level]


def _once(w: Floats, times: Floats) -> Floats:
    """Weights whose products have the copies once and not twice."""
    return np.divide(w, np.sqrt(times), out=np.zeros_like(w), where=times > 0)


def variance_components(
    *,
    values: ArrayLike,
    person: ArrayLike,
    item: ArrayLike,
    subjects: ArrayLike | None = None,
    weight: ArrayLike | None = None,
    rng: np.random.Generator,
    resamples: int = RESAMPLES,
    only: Sequence[str] = (PEOPLE, PAIRS, QUESTIONS, REST),
) -> Components:
    """The shares of variance between people, items, and questions, with intervals from resampling.

    `values`, `person`, `item`: shape (n,), an entry for each answer. `subjects`: shape (n, 2), the questions of the
    item by their place, -1 for none; the same question in another place is another effect. `weight`: shape (n,), above
    0, of how many items each answer stands for; all alike without it.

    A variance is only estimated where enough answers share the level and differ otherwise; otherwise it is `joined` to
    the rest: with one answer an item, pairs cannot be separated from the rest.

    The interval of the share between people comes from leaving each person out in turn (the jackknife): its error, its
    bias, which is taken off the middle, and its skewness, by which the upper end lies further away (Johnson, Journal of
    the American Statistical Association 73, 1978; Hall, Journal of the Royal Statistical Society B 54, 1992). Where few
    people are far from the others, most samples lack them, so that the share and its error are both too low. The lower
    end is not moved in.

    The other intervals come from drawing with replacement, by `rng`: items, and for the share between questions also
    questions, of which the larger error counts. (To draw all of them at once is too wide: Owen, Annals of Applied
    Statistics 1, 2007.) Two copies of an item count as two items.

    Both: Student's t with people minus 1 degrees of freedom around the share's variance-stabilised value (Fisher's for
    intraclass correlations).

    People's effects are the best linear predictions: the weighted mean of a person's deviations times
    variance / (variance + error of that mean), where the other variances are the error (Searle and others, chapter 7).

    `only`: the shares that get an interval; the others have NaN, and take no time.

    Raises:
        DesignError: arrays that do not fit, fewer than 10 people, nobody with two answers, or answers that do not vary.
    """
    data = _Data.of(values, person, item, subjects, weight)
    variances = data.solve()
    total = float(sum(variances.values()))
    # The mean of equal numbers differs from them by its last digit, which is no variance.
    if not total > 0 or not math.isfinite(total) or not np.ptp(data.values) > 0:
        raise DesignError("values: all answers are alike, so that there is no variance to share out")
    plain, ways = _shares(variances), data.ways()
    ways = tuple(way for way in ways if any(way in _WAYS_OF[name] for name in only))
    drawn = {way: [_shares(data.solve(*data.draw(way, rng))) for _ in range(resamples)] for way in ways}
    shares = []
    for name, share in plain.items():
        own = [way for way in ways if name in only and way in _WAYS_OF[name]]
        again = [np.array([draw[name] for draw in drawn[way]]) for way in own]
        if name == PEOPLE:
            ends = data.interval_of_people(share) if name in only else (math.nan, math.nan)
        elif name == REST:  # A share near 1 is as precise as that of all the others together.
            low, high = data.interval(1 - share, [1 - shares for shares in again])
            ends = 1 - high, 1 - low
        else:
            ends = data.interval(share, again)
        shares.append(Share(name, max(0.0, share * total), max(0.0, share), ends))
    return Components(
        total=total,
        shares=tuple(shares),
        joined=data.joined,
        effects=data.effects(variances),
        answers=data.values.size,
        people=data.people,
    )


def plain_shares(
    *,
    values: ArrayLike,
    person: ArrayLike,
    item: ArrayLike,
    subjects: ArrayLike | None = None,
    weight: ArrayLike | None = None,
) -> dict[str, float]:
    """The shares by name as `variance_components` estimates them, not cut off at 0, without intervals."""
    return _shares(_Data.of(values, person, item, subjects, weight).solve())


def _shares(variances: Mapping[str, float]) -> dict[str, float]:
    total = sum(variances.values())
    return {name: variance / total if total > 0 else math.nan for name, variance in _by_name(variances).items()}


def _by_name(variances: Mapping[str, float]) -> dict[str, float]:
    """With the places of questions put together."""
    totals: dict[str, float] = {}
    for name, variance in variances.items():
        key = QUESTIONS if name in _PLACES else name
        totals[key] = totals.get(key, 0.0) + variance
    return totals


@dataclass(frozen=True, eq=False)
class _Data:
    values: Floats
    weight: Floats
    person: _Factor
    item: _Factor
    places: tuple[_Factor, ...]
    factors: tuple[_Factor, ...]
    cells: Mapping[tuple[int, int], _Factor]
    """By two factors' numbers: the pairs of levels that answers have together."""
    joined: tuple[str, ...]

    @property
    def people(self) -> int:
        return self.person.size

    @classmethod
    def of(
        cls,
        values: ArrayLike,
        person: ArrayLike,
        item: ArrayLike,
        subjects: ArrayLike | None,
        weight: ArrayLike | None,
    ) -> _Data:
        y = np.asarray(values, dtype=np.float64)
        n = y.size
        who, what = np.asarray(person), np.asarray(item)
        w = np.ones(n) if weight is None else np.asarray(weight, dtype=np.float64)
        about = np.full((n, 0), -1) if subjects is None else np.asarray(subjects, dtype=np.int64)
        if y.ndim != 1 or not np.isfinite(y).all():
            raise DesignError("values: needs a finite number for each answer")
        if not (who.shape == what.shape == w.shape == (n,)) or about.ndim != 2 or len(about) != n:
            raise DesignError(f"person, item, subjects, weight: must be of {n} answers, as values are")
        if not (np.isfinite(w) & (w > 0)).all():
            raise DesignError("weight: needs a number above 0 for each answer")
        people = _factor(PEOPLE, who)
        if people.size < MIN_PEOPLE:
            raise DesignError(f"person: {people.size} people; the variance between people needs {MIN_PEOPLE}")
        if people.size == n:
            raise DesignError("person: nobody gave two answers, so that people cannot be separated from the rest")
        w = w / w.sum()
        places = tuple(_factor(name, about[:, place]) for place, name in enumerate(_PLACES[: about.shape[1]]))
        items = _factor(PAIRS, what)
        known = [people, items, *places]
        estimable = [factor for factor in known if _products(factor, people, w) >= MIN_PRODUCTS]
        joined = tuple(
            dict.fromkeys(
                QUESTIONS if factor.name in _PLACES else factor.name for factor in known if factor not in estimable
            )
        )
        if people not in estimable:
            raise DesignError("person: too few people gave two answers to tell people apart from the rest")
        cells = {
            (a, b): _joint(factor, other)
            for a, factor in enumerate(estimable)
            for b, other in enumerate(estimable)
            if a <= b
        }
        return cls(y, w, people, items, places, tuple(estimable), cells, joined)

    def ways(self) -> tuple[str, ...]:
        """What can be drawn again: items, and the questions of each place."""
        return (PAIRS, *(place.name for place in self.places if place in self.factors))

    def draw(self, way: str, rng: np.random.Generator) -> tuple[str, Floats]:
        """How often each answer's item or question of a place is drawn, shape (n,); 1 where it has none."""
        factor = next(factor for factor in (self.item, *self.places) if factor.name == way)
        times = rng.multinomial(factor.size, np.full(factor.size, 1 / factor.size)).astype(np.float64)
        return way, np.where(factor.level >= 0, times[factor.level], 1.0)

    def solve(self, way: str = "", times: Floats | None = None) -> dict[str, float]:
        """The variances by name, from the moment equations.

        `way`, `times`: in a resample, as `draw` gives them. A product of two answers that share what is drawn counts
        once for each copy of it, any other for each two copies.
        """
        size = len(self.factors)
        w = self.weight if times is None else self.weight * times
        total = w.sum()
        if not total > 0:
            return dict.fromkeys([*(factor.name for factor in self.factors), REST], math.nan)
        w = w / total
        r = self.values - float(w @ self.values)
        # Sums of w itself, which most equations need: by factor, and by cell once it is asked for.
        of_level = [factor.sums(w) for factor in self.factors]
        of_cell = {(place, place): sums for place, sums in enumerate(of_level)}
        whole = np.array([float(w @ sums) for sums in of_level] + [float(w @ w)])  # of the mean's variance
        left, right = np.empty((size + 1, size + 1)), np.empty(size + 1)
        for place, factor in enumerate(self.factors):
            u = w if times is None or not self._holds(way, factor) else _once(w, times)
            u = u if factor.is_whole else np.where(factor.level >= 0, u, 0.0)
            others = (of_level[place] if u is w else factor.sums(u)) - u
            right[place] = r @ (u * (factor.sums(u * r) - u * r))
            left[place] = float(u @ others) * whole
            for other in range(size):
                both = (min(place, other), max(place, other))
                cell = self.cells[both]
                shared = u if cell.is_whole else np.where(cell.level >= 0, u, 0.0)
                if shared is not w:
                    sums = cell.sums(shared)
                elif both in of_cell:
                    sums = of_cell[both]
                else:
                    sums = of_cell[both] = cell.sums(w)
                left[place, other] += float(shared @ sums) - float(shared @ shared)
                left[place, other] -= 2 * float((u * others) @ of_level[other])
            left[place, size] -= 2 * float((u * others) @ w)
        right[size] = w @ (r * r)
        left[size] = (
            whole + np.array([float(w[factor.level >= 0].sum()) for factor in self.factors] + [1.0]) - 2 * whole
        )
        try:
            solution = np.linalg.solve(left, right)
        except np.linalg.LinAlgError:
            solution = np.full(size + 1, math.nan)
        return dict(zip([*(factor.name for factor in self.factors), REST], solution.tolist(), strict=True))

    def without_people(self) -> Floats:
        """The share between people without each part of them, shape (parts,): a person, or one of `GROUPS` groups."""
        part = self.person.level % min(self.people, GROUPS)
        left_out = range(min(self.people, GROUPS))
        return np.array(
            [_shares(self.solve(PEOPLE, np.where(part == number, 0.0, 1.0)))[PEOPLE] for number in left_out]
        )

    def _holds(self, way: str, factor: _Factor) -> bool:
        """Whether two answers that share a level of the factor share what is drawn: an item has its questions."""
        return way == factor.name or (factor is self.item and way in _PLACES)

    def interval(self, share: float, again: Sequence[Floats]) -> tuple[float, float]:
        """By resamples of the share, of each way to draw again; the largest error counts."""
        known = [shares[np.isfinite(shares)] for shares in again]
        if not known or any(shares.size < 2 for shares in known):
            return math.nan, math.nan
        reach = self._quantile * max(float(np.std(self._stable(shares), ddof=1)) for shares in known)
        middle = float(self._stable(np.array([share]))[0])
        return self._ends(middle - reach, middle + reach)

    def interval_of_people(self, share: float) -> tuple[float, float]:
        """By leaving people out: see `variance_components`."""
        without = self._stable(self.without_people())
        parts, influence = len(without), float(np.mean(without)) - without
        squares = float((influence**2).sum())
        if not math.isfinite(squares):
            return math.nan, math.nan
        middle = float(self._stable(np.array([share]))[0])
        middle += (parts - 1) * (middle - float(np.mean(without)))
        reach = self._quantile * math.sqrt((parts - 1) / parts * squares)
        skewness = float((influence**3).mean()) / (squares / parts) ** 1.5 if squares > 0 else 0.0
        further = max(0.0, skewness) * (2 * self._quantile**2 + 1) / (6 * math.sqrt(parts) * self._quantile)
        return self._ends(middle - reach, middle + (1 + further) * reach)

    @cached_property
    def _quantile(self) -> float:
        return student_t_quantile(0.975, self.people - 1)

    @property
    def _answers_each(self) -> float:
        return self.values.size / self.people

    def _stable(self, share: Floats) -> Floats:
        """Fisher's z of an intraclass correlation with so many answers per person."""
        inside = np.clip(share, -0.9 / max(self._answers_each - 1, 1), 0.999)
        z: Floats = np.log((1 + (self._answers_each - 1) * inside) / (1 - inside)) / 2
        return z

    def _ends(self, *z: float) -> tuple[float, float]:
        low, high = ((math.exp(2 * end) - 1) / (math.exp(2 * end) + self._answers_each - 1) for end in z)
        return max(0.0, low), min(1.0, max(0.0, high))

    def effects(self, variances: Mapping[str, float]) -> Floats:
        between, total = max(0.0, variances[PEOPLE]), sum(variances.values())
        level, size = self.person.level, self.person.size
        inside = np.bincount(level, weights=self.weight, minlength=size)
        deviation = self.values - float(self.weight @ self.values)
        mean = np.bincount(level, weights=self.weight * deviation, minlength=size) / inside
        squares = np.bincount(level, weights=self.weight**2, minlength=size) / inside**2
        if between <= 0:
            return np.zeros(size)
        shrunken: Floats = np.sort(mean * between / (between + max(0.0, total - between) * squares))
        return shrunken


def _factor(name: str, labels: NDArray[np.generic]) -> _Factor:
    """-1 stays none where labels are whole numbers."""
    known, level = np.unique(labels, return_inverse=True)
    if known.size and np.issubdtype(known.dtype, np.integer) and known[0] < 0:
        return _Factor(name, level.astype(np.int64) - 1, known.size - 1)
    return _Factor(name, level.astype(np.int64), known.size)


def _joint(factor: _Factor, other: _Factor) -> _Factor:
    has = (factor.level >= 0) & (other.level >= 0)
    return _factor("", np.where(has, factor.level * other.size + other.level, -1))


def _products(factor: _Factor, person: _Factor, w: Floats) -> float:
    """How many products there are of two answers that share a level, of two people but where the factor is people, in
    equally weighted ones."""
    u = np.where(factor.level >= 0, w, 0.0)
    pairs = factor.sums(u) - u
    if factor is not person:
        pairs = pairs - (_joint(factor, person).sums(u) - u)
    mean = float(u @ pairs) / 2
    return mean * w.size**2
