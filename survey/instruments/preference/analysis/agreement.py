"""How far people agree with each other, and how far a judge could at most agree with them. Numpy and `predictors`."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from predictors.evaluation.agreement import alphas

from .errors import NOTHING, MeasuredFigure, figure_of_sums
from .judgements import UNREADABLE, Judgements

Floats = NDArray[np.float64]

MOST_NAMED = 6
"""People of whom each pair has a kappa of its own, if they are the same throughout."""
SAMPLES = 1000


@dataclass(frozen=True)
class PairKappa:
    """Cohen's kappa of two people, or of all pairs of people pooled. `n`: items, or pairs of judgements of an item."""

    pair: str
    n: int
    kappa: MeasuredFigure
    agree: float


@dataclass(frozen=True)
class PeopleAgreement:
    """kappas: by pair of people where they are the same throughout, else one of all pairs pooled. alpha: that of
    Krippendorff, ordinal, with its interval over prompts; None where nobody judged what another did."""

    kappas: tuple[PairKappa, ...]
    pooled: bool
    alpha: float | None
    alpha_interval: tuple[float, float] | None


def of_people(judged: Judgements, *, names: tuple[str, ...] = (), rng: np.random.Generator) -> PeopleAgreement:
    """Agreement of the people on items that several of them judged.

    Args:
        names: of people by their number, for tables.
    """
    item, person = judged.item, np.unique(judged.person, return_inverse=True)[1].reshape(-1)
    people = int(person.max()) + 1 if judged.n else 0
    alpha, interval = _alpha(judged, rng=rng)
    if 2 <= people <= MOST_NAMED and np.all(np.bincount(item, minlength=1) == people):
        codes = np.full((int(item.max()) + 1, people), UNREADABLE, dtype=np.int64)
        codes[item, person] = judged.outcome
        prompt = np.zeros(len(codes), dtype=np.int64)
        prompt[item] = judged.prompt
        known = np.unique(judged.person)
        titles = [names[one] if names else str(one + 1) for one in known.tolist()]
        found = [
            _kappa(codes[:, one], codes[:, other], prompt, np.arange(len(codes)), f"{titles[one]}, {titles[other]}")
            for one, other in combinations(range(people), 2)
        ]
        return PeopleAgreement(tuple(found), pooled=False, alpha=alpha, alpha_interval=interval)
    pairs = _pairs(item)
    if not len(pairs):
        return PeopleAgreement((), pooled=True, alpha=alpha, alpha_interval=interval)
    one, other = np.concatenate([pairs, pairs[:, ::-1]]).T  # Both ways round: nobody is first.
    pooled = _kappa(judged.outcome[one], judged.outcome[other], judged.prompt[one], one, "all pairs of people")
    pooled = PairKappa(pooled.pair, len(pairs), pooled.kappa, pooled.agree)
    return PeopleAgreement((pooled,), pooled=True, alpha=alpha, alpha_interval=interval)


def _pairs(item: NDArray[np.int64]) -> NDArray[np.int64]:
    """Every two rows of the same item, (pairs, 2)."""
    order = np.argsort(item, kind="stable")
    found = []
    for distance in range(1, int(np.bincount(item).max()) if len(item) else 1):
        same = item[order[distance:]] == item[order[:-distance]]
        found.append(np.stack([order[:-distance][same], order[distance:][same]], axis=1))
    return np.concatenate(found) if found else np.empty((0, 2), dtype=np.int64)


def kappa_of(table: Floats) -> float:
    """Cohen's kappa (1960) of a square table of counts; NaN where both used one class alone."""
    total = table.sum()
    agree = np.trace(table) / total
    chance = float(table.sum(axis=1) @ table.sum(axis=0)) / total**2
    return float("nan") if chance >= 1 else float((agree - chance) / (1 - chance))


def classes_of(one: NDArray[np.int64], other: NDArray[np.int64]) -> Floats:
    """A row a pair of verdicts with a 1 in its cell of the square table of classes, (n, classes^2)."""
    known = np.unique(np.concatenate([one, other]))
    size = len(known)
    cell = np.searchsorted(known, one) * size + np.searchsorted(known, other)
    rows = np.zeros((len(one), size * size))
    rows[np.arange(len(one)), cell] = 1
    return rows


def kappa_figure(
    one: NDArray[np.int64], other: NDArray[np.int64], *, prompt: NDArray[np.int64], person: NDArray[np.int64]
) -> MeasuredFigure:
    """Kappa of two sets of verdicts with its interval."""
    if not len(one):
        return NOTHING
    rows = classes_of(one, other)
    size = round(rows.shape[1] ** 0.5)
    return figure_of_sums(
        lambda sums: kappa_of(sums.reshape(size, size)), rows, person=person, prompt=prompt, scale="correlation"
    )


def _kappa(
    one: NDArray[np.int64], other: NDArray[np.int64], prompt: NDArray[np.int64], person: NDArray[np.int64], pair: str
) -> PairKappa:
    kappa = kappa_figure(one, other, prompt=prompt, person=person)
    return PairKappa(pair=pair, n=len(one), kappa=kappa, agree=float(np.mean(one == other)))


def _alpha(judged: Judgements, *, rng: np.random.Generator) -> tuple[float | None, tuple[float, float] | None]:
    """Krippendorff's alpha of the values towards A, ordinal, over items with two judgements or more."""
    readable = judged.where(judged.outcome != UNREADABLE)
    item = readable.item
    _values, column = np.unique(readable.value, return_inverse=True)
    counts = np.zeros((int(item.max()) + 1 if len(item) else 0, len(_values)))
    np.add.at(counts, (item, column.reshape(-1)), 1)
    prompt = np.zeros(len(counts), dtype=np.int64)
    prompt[item] = readable.prompt
    several = counts.sum(axis=1) >= 2
    counts, prompt = counts[several], np.unique(prompt[several], return_inverse=True)[1].reshape(-1)
    if (counts.sum(axis=0) > 0).sum() < 2:
        return None, None
    counts = counts[:, counts.sum(axis=0) > 0]
    found = float(alphas(counts, np.ones((1, len(counts))), level="ordinal")[0])
    prompts = int(prompt.max()) + 1
    if prompts < 3:
        return found, None
    weights = rng.multinomial(prompts, np.full(prompts, 1 / prompts), size=SAMPLES)[:, prompt]
    drawn = alphas(counts, weights.astype(np.float64), level="ordinal")
    low, high = np.quantile(drawn[np.isfinite(drawn)], [0.025, 0.975])
    return found, (float(low), float(high))
