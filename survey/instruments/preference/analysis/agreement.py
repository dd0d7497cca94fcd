"""How far people agree with each other, and how far a judge could at most agree with them. Numpy alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from survey.figures import Figure

from .errors import NOTHING, figure, figure_of_sums, freedom, pair_variance, slope
from .judgements import UNREADABLE, Judgements

Floats = NDArray[np.float64]

MAX_NAMED = 6
"""People of whom each pair has a kappa of its own, if they are the same throughout."""


@dataclass(frozen=True)
class PairKappa:
    """Cohen's kappa of two people, or of all pairs of people pooled. `n`: items, or pairs of judgements of an item."""

    pair: str
    n: int
    kappa: Figure
    agree: float


@dataclass(frozen=True)
class PeopleAgreement:
    """kappas: by pair of people where they are the same throughout, else one of all pairs pooled. alpha: that of
    Krippendorff, ordinal; without a value where nobody judged what another did. Items weigh by the design."""

    kappas: tuple[PairKappa, ...]
    pooled: bool
    alpha: Figure


@dataclass(frozen=True, eq=False)
class AnswerPairs:
    """Every two answers to the same item, arrays (pairs,): the classes of either, and whose they are."""

    one: NDArray[np.int64]
    other: NDArray[np.int64]
    weight: Floats
    people: tuple[NDArray[np.int64], NDArray[np.int64]]
    prompt: NDArray[np.int64]

    def figure(self, of: Callable[[Floats], float]) -> Figure:
        """A figure of the table of the pairs' classes (k, k), each pair counted half either way round, which must not
        change when the table is multiplied."""
        size = int(max(self.one.max(), self.other.max())) + 1
        cells, half = (self.one * size + self.other, self.other * size + self.one), self.weight / 2
        sums = sum(np.bincount(cell, weights=half, minlength=size * size) for cell in cells)
        table = np.asarray(sums, dtype=np.float64)

        def value_of(sums: Floats) -> float:
            return of(sums.reshape(size, size))

        value = value_of(table)
        if not math.isfinite(value):
            return NOTHING
        gradient = slope(value_of, table, size=table)
        influence = half * (gradient[cells[0]] + gradient[cells[1]])
        variance = pair_variance(influence, people=self.people, prompt=self.prompt)
        degrees = freedom(person=np.concatenate(self.people), prompt=self.prompt)
        return figure(value, variance, degrees, scale="correlation")


def of_people(judged: Judgements, *, names: tuple[str, ...] = ()) -> PeopleAgreement:
    """Agreement of the people on items that several of them judged.

    Args:
        names: of people by their number, for tables.
    """
    item, person = judged.item, np.unique(judged.person, return_inverse=True)[1].reshape(-1)
    people = int(person.max()) + 1 if judged.n else 0
    alpha = _alpha(judged)
    if 2 <= people <= MAX_NAMED and np.all(np.bincount(item, minlength=1) == people):
        codes = np.full((int(item.max()) + 1, people), UNREADABLE, dtype=np.int64)
        codes[item, person] = judged.outcome
        prompt, weight = np.zeros(len(codes), dtype=np.int64), np.ones(len(codes))
        prompt[item], weight[item] = judged.prompt, judged.weight
        known = np.unique(judged.person)
        titles = [names[number] if names else str(number + 1) for number in known.tolist()]
        kappas = [
            _kappa(codes[:, first_person], codes[:, other], prompt, weight, f"{titles[first_person]}, {titles[other]}")
            for first_person, other in combinations(range(people), 2)
        ]
        return PeopleAgreement(tuple(kappas), pooled=False, alpha=alpha)
    pairs = _pairs(item)
    if not len(pairs):
        return PeopleAgreement((), pooled=True, alpha=alpha)
    first, other = pairs.T
    both = _answer_pairs(judged, pairs, judged.outcome)
    agree = float(np.average(judged.outcome[first] == judged.outcome[other], weights=both.weight))
    pooled = PairKappa("all pairs of people", len(pairs), both.figure(kappa_of), agree)
    return PeopleAgreement((pooled,), pooled=True, alpha=alpha)


def _pairs(item: NDArray[np.int64]) -> NDArray[np.int64]:
    """Every two rows of the same item, (pairs, 2)."""
    order = np.argsort(item, kind="stable")
    pairs = []
    for distance in range(1, int(np.bincount(item).max()) if len(item) else 1):
        same = item[order[distance:]] == item[order[:-distance]]
        pairs.append(np.stack([order[:-distance][same], order[distance:][same]], axis=1))
    return np.concatenate(pairs) if pairs else np.empty((0, 2), dtype=np.int64)


def _answer_pairs(judged: Judgements, pairs: NDArray[np.int64], classes: NDArray[Any]) -> AnswerPairs:
    known = np.unique(classes, return_inverse=True)[1].reshape(-1)
    first, other = pairs.T
    return AnswerPairs(
        one=known[first],
        other=known[other],
        weight=(judged.weight[first] + judged.weight[other]) / 2,
        people=(judged.person[first], judged.person[other]),
        prompt=judged.prompt[first],
    )


def kappa_of(table: Floats) -> float:
    """Cohen's kappa (1960) of a square table of counts; NaN where both used one class alone."""
    total = table.sum()
    agree = np.trace(table) / total
    chance = float(table.sum(axis=1) @ table.sum(axis=0)) / total**2
    return float("nan") if chance >= 1 else float((agree - chance) / (1 - chance))


def classes_of(first: NDArray[np.int64], other: NDArray[np.int64]) -> Floats:
    """One row per pair of verdicts with a 1 in its cell of the square table of classes, (n, classes^2)."""
    known = np.unique(np.concatenate([first, other]))
    size = len(known)
    cell = np.searchsorted(known, first) * size + np.searchsorted(known, other)
    rows = np.zeros((len(first), size * size))
    rows[np.arange(len(first)), cell] = 1
    return rows


def kappa_figure(
    first: NDArray[np.int64],
    other: NDArray[np.int64],
    *,
    prompt: NDArray[np.int64],
    person: NDArray[np.int64],
    weight: Floats,
) -> Figure:
    """Kappa of two sets of verdicts with its interval."""
    if not len(first):
        return NOTHING
    rows = classes_of(first, other) * weight[:, None]
    size = round(rows.shape[1] ** 0.5)
    return figure_of_sums(
        lambda sums: kappa_of(sums.reshape(size, size)), rows, person=person, prompt=prompt, scale="correlation"
    )


def _kappa(
    first: NDArray[np.int64], other: NDArray[np.int64], prompt: NDArray[np.int64], weight: Floats, pair: str
) -> PairKappa:
    """Of two people, who are no sample of people: only prompts vary."""
    kappa = kappa_figure(first, other, prompt=prompt, person=np.arange(len(first)), weight=weight)
    return PairKappa(pair=pair, n=len(first), kappa=kappa, agree=float(np.average(first == other, weights=weight)))


def alpha_of(table: Floats, codes: int) -> float:
    """Krippendorff's alpha, ordinal, of a table of coincidences (k, k) with classes from lowest to highest; NaN where
    there is one class alone. The same as `alphas` of the units, in the order of Krippendorff's own formula.

    Args:
        codes: how many answers the table was made of.
    """
    share = table / table.sum()
    margin = share.sum(axis=1)
    position = margin.cumsum() - margin / 2
    apart = (position[:, None] - position[None, :]) ** 2
    expected = float(margin @ apart @ margin)
    if not expected > 0:
        return math.nan
    return 1 - (codes - 1) / codes * float((share * apart).sum()) / expected


def _alpha(judged: Judgements) -> Figure:
    """Krippendorff's alpha of the values towards A, ordinal, over items with two judgements or more."""
    readable = judged.where(judged.outcome != UNREADABLE)
    pairs = _pairs(readable.item)
    if not len(pairs):
        return NOTHING
    answer_pairs = _answer_pairs(readable, pairs, readable.value)
    answers = np.bincount(readable.item)[readable.item]
    # An item of m answers has m (m - 1) / 2 pairs and counts m times.
    answer_pairs = replace(answer_pairs, weight=answer_pairs.weight * 2 / (answers[pairs[:, 0]] - 1))
    codes = int((answers >= 2).sum())
    return answer_pairs.figure(lambda table: alpha_of(table, codes))
