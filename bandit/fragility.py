"""How many rows carry a ranking: a small set of judgements whose loss changes who is ahead of whom. Numpy alone.

The set is found by influence: what the loss of each row would change, to first order, in the difference between two
scores (Broderick, Giordano and Meager, "An automatic finite-sample robustness metric", 2020; for Bradley-Terry Huang,
Shen, Wei and Broderick, "Dropping just a handful of preferences can change top large language model rankings", 2025).
The rows that help the one ahead most are left out first. What is found is confirmed by fitting again without them and
made as short as the order allows, so that it is an upper bound of the smallest such set: a smaller one may exist, a
larger one is not needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bandit.bradley_terry import Duels
from bandit.errors import DesignError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

RIVALS = 5  # how many of those behind are tried for the first place
TINY = 1e-12
EQUAL = 1e-9  # Scores nearer than this are equal: a fit says no more.


@dataclass(frozen=True, eq=False)
class Fragile:
    """Two neighbours of a ranking, and a set of rows whose loss puts the second ahead.

    ahead, behind: places in the list of names, from 0. margin: how far ahead, in the unit of the scores. rows: whose
    loss was confirmed to turn it, most telling first; None where no set was found. margin_after: the same without them,
    below 0. share: of all rows with weight.
    """

    ahead: int
    behind: int
    margin: float
    rows: Ints | None
    margin_after: float | None
    share: float | None

    @property
    def count(self) -> int | None:
        """How many rows; an upper bound of the smallest such set."""
        return None if self.rows is None else len(self.rows)


@dataclass(frozen=True, eq=False)
class Fragility:
    """Of one ranking. order: places by falling score. scores: (k,). first: what changes the first place, None with a
    single name. neighbours: each two that follow one another, best first."""

    order: Ints
    scores: Floats
    first: Fragile | None
    neighbours: tuple[Fragile, ...]


def fragile_bradley_terry(
    *,
    first: ArrayLike,
    second: ArrayLike,
    outcome: ArrayLike,
    names: int,
    weight: ArrayLike | None = None,
    ridge: float = 0.1,
    side: bool = True,
) -> Fragility:
    """Which rows carry a Bradley-Terry ranking. Arguments and errors as in `fit_bradley_terry`.

    A lost row counts nothing; the weights of the others keep their scale.
    """
    duels = Duels.of(first=first, second=second, outcome=outcome, names=names, weight=weight, ridge=ridge, side=side)
    # Judgements with the same first and second are one row of the fits.
    cells, cell = np.unique(duels.first * names + duels.second, return_inverse=True)
    together = replace(
        duels,
        first=cells // names,
        second=cells % names,
        mass=np.bincount(cell, weights=duels.mass).astype(np.float64),
        wins=np.bincount(cell, weights=duels.wins).astype(np.float64),
        columns=duels.columns[: cells.size],
    )
    start = together.fit()
    rows = int((duels.mass > 0).sum())

    def without(lost: Ints) -> Duels:
        mass, wins = (
            np.maximum(whole - np.bincount(cell[lost], weights=own[lost], minlength=cells.size), 0.0)
            for whole, own in ((together.mass, duels.mass), (together.wins, duels.wins))
        )
        return replace(together, mass=mass, wins=wins)

    def turned(ahead: int, behind: int) -> Fragile:
        contrast = np.zeros(start.size)
        contrast[[ahead, behind]] = 1.0, -1.0

        def effects(left: Duels, at: Floats) -> Floats:
            """(n,) what the loss of each row adds to how far one is ahead, to first order."""
            inverse = left.inverse(at) @ contrast
            across = inverse[duels.first] - inverse[duels.second] + duels.columns @ inverse[names:]
            return np.asarray((duels.mass * left.chances(at)[cell] - duels.wins) * across)

        margin = float(start[ahead] - start[behind])

        def margin_without(lost: Ints) -> float:
            left = without(lost)
            if ridge == 0 and behind not in left.connected(ahead):
                return np.inf  # Nothing says which of the two is ahead.
            try:
                fitted = left.fit(start)
            except (DesignError, np.linalg.LinAlgError):
                return np.inf
            return float(fitted[ahead] - fitted[behind])

        def further(lost: Ints) -> Floats:
            left = without(lost)
            return effects(left, left.fit(start))

        lost = _shortest(margin, effects(together, start), margin_without, further)
        return _fragile(ahead, behind, margin, lost, margin_without, rows)

    return _of_ranking(start[:names] - start[:names].mean(), turned)


def fragile_means(*, values: ArrayLike, weight: ArrayLike | None = None) -> Fragility:
    """Which rows carry a ranking by weighted means, higher first.

    Args:
        values: (n, k), a row for what is lost together (an answer, a pair of questions), a column for each name; NaN
            where a name has none.
        weight: (n,), or (n, k) where a row counts differently for each name; 0 or more. None: each counts once.

    Raises:
        DesignError: shapes do not fit, or a name without a value.
    """
    table = np.asarray(values, dtype=np.float64)
    if table.ndim != 2 or not table.size:
        raise DesignError(f"values: needs one row per unit and one column per name, not shape {table.shape}")
    masses = np.ones(len(table)) if weight is None else np.asarray(weight, dtype=np.float64)
    if masses.shape not in (table.shape, table.shape[:1]):
        raise DesignError(f"weight: shape {masses.shape} for values of {table.shape}")
    mass = np.where(np.isnan(table), 0.0, masses if masses.ndim == 2 else masses[:, None])
    if not (np.isfinite(mass) & (mass >= 0)).all():
        raise DesignError("weight: must be finite and at least 0")
    below = mass.sum(axis=0)
    if not (below > 0).all():
        raise DesignError(f"values: name {int(np.flatnonzero(~(below > 0))[0])} has none")
    above = np.where(mass > 0, table, 0.0) * mass
    scores = above.sum(axis=0) / below
    rows = int((mass > 0).any(axis=1).sum())

    def turned(ahead: int, behind: int) -> Fragile:
        effect = np.zeros(len(table))
        for name, sign in ((ahead, -1.0), (behind, 1.0)):
            effect += sign * (above[:, name] - scores[name] * mass[:, name]) / below[name]

        def margin_without(lost: Ints) -> float:
            remaining = [
                (above[:, name].sum() - above[lost, name].sum(), below[name] - mass[lost, name].sum())
                for name in (ahead, behind)
            ]
            if min(size for _sum, size in remaining) <= 1e-9 * max(below[ahead], below[behind]):
                return np.inf  # Nothing is left to compare.
            return float(remaining[0][0] / remaining[0][1] - remaining[1][0] / remaining[1][1])

        margin = float(scores[ahead] - scores[behind])
        lost = _shortest(margin, effect, margin_without, None)
        return _fragile(ahead, behind, margin, lost, margin_without, rows)

    return _of_ranking(scores, turned)


def fragile_sums(*, parts: ArrayLike, score: Callable[[Floats], Floats]) -> Fragility:
    """Which rows carry a ranking by scores that follow from sums over rows, such as correlations.

    Args:
        parts: (n, k, m), what each of n rows adds to the m sums of each of k names.
        score: of sums (..., k, m) the scores (..., k), higher first; not finite where there is none.

    Raises:
        DesignError: the shape does not fit, or a name has no score over all rows.
    """
    table = np.asarray(parts, dtype=np.float64)
    if table.ndim != 3 or not table.size or not np.isfinite(table).all():
        raise DesignError(f"parts: needs finite sums of shape (rows, names, sums), not shape {table.shape}")
    total = table.sum(axis=0)
    scores = np.asarray(score(total), dtype=np.float64)
    if not np.isfinite(scores).all():
        raise DesignError(f"parts: name {int(np.flatnonzero(~np.isfinite(scores))[0])} has no score")

    def turned(ahead: int, behind: int) -> Fragile:
        def lead(sums: Floats) -> Floats:
            scores = score(sums)
            return np.asarray(scores[..., ahead] - scores[..., behind], dtype=np.float64)

        def margin_without(lost: Ints) -> float:
            margin = float(lead(total - table[lost].sum(axis=0)))
            return margin if np.isfinite(margin) else np.inf

        def effects(left: Floats) -> Floats:
            """What the loss of each row adds to the lead, found by leaving it out."""
            return np.nan_to_num(lead(left - table) - lead(left), nan=0.0, posinf=0.0, neginf=0.0)

        margin = float(scores[ahead] - scores[behind])
        lost = _shortest(margin, effects(total), margin_without, lambda gone: effects(total - table[gone].sum(axis=0)))
        return _fragile(ahead, behind, margin, lost, margin_without, len(table))

    return _of_ranking(scores, turned)


def _of_ranking(scores: Floats, turned: Callable[[int, int], Fragile]) -> Fragility:
    order = np.argsort(-scores, kind="stable")
    neighbours = tuple(turned(int(ahead), int(two)) for ahead, two in pairwise(order))
    tried = [*neighbours[:1], *(turned(int(order[0]), int(rival)) for rival in order[2 : RIVALS + 1])]
    countable = [pair for pair in tried if pair.count is not None]
    first = min(countable, key=lambda pair: pair.count or 0) if countable else (tried[0] if tried else None)
    return Fragility(order=order, scores=scores, first=first, neighbours=neighbours)


def _fragile(
    ahead: int, behind: int, margin: float, lost: Ints | None, margin_without: Callable[[Ints], float], rows: int
) -> Fragile:
    if lost is None:
        return Fragile(ahead, behind, margin, None, None, None)
    return Fragile(ahead, behind, margin, lost, margin_without(lost), len(lost) / rows)


def _shortest(
    margin: float,
    effect: Floats,
    margin_without: Callable[[Ints], float],
    further: Callable[[Ints], Floats] | None,
) -> Ints | None:
    """The shortest beginning of the rows by rising effect whose loss turns the margin; None where none was found.

    effect: (n,) what the loss of each row adds to the margin, to first order. further: the same without rows that are
    lost already, to go on where the first order was not enough.
    """
    effect = _levelled(effect)
    order = _helpful(effect, margin)
    if not len(order):
        return None
    if _turns(margin_without(order)):
        return _first_turning(order, margin_without, 0)
    low = len(order)
    order = _all_helpful(effect) if further is None else _gone_on(order, margin_without, further)
    return _first_turning(order, margin_without, low)


def _turns(margin: float) -> bool:
    """Whether the second is ahead, and not level but for rounding."""
    return margin < -TINY


def _levelled(effect: Floats) -> Floats:
    """Effects that are equal but for rounding, which depends on the processor, as equal: their rows then stand in the
    order of the table on every machine."""
    unit = 1e-9 * float(np.abs(effect).max(initial=0.0))
    return np.round(effect / unit) * unit if unit else effect


def _helpful(effect: Floats, margin: float) -> Ints:
    """The rows that help the one ahead, most first, until their effects add up to more than the margin."""
    many = 64
    while True:
        many = min(many, len(effect))
        part = np.flatnonzero(effect <= np.partition(effect, many - 1)[many - 1])  # In the table's order.
        part = part[np.argsort(effect[part], kind="stable")]
        part = part[effect[part] < 0]
        enough = np.flatnonzero(margin + np.cumsum(effect[part]) < -TINY)
        if len(enough):
            return part[: int(enough[0]) + 1]
        if many == len(effect) or len(part) < many:
            return part
        many *= 4


def _all_helpful(effect: Floats) -> Ints:
    order = np.argsort(effect, kind="stable")
    helpful: Ints = order[effect[order] < 0]
    return helpful


def _gone_on(
    order: Ints, margin_without: Callable[[Ints], float], further: Callable[[Ints], Floats], rounds: int = 12
) -> Ints:
    """More rows, by their effects without those that are lost already, until the margin turns or none helps."""
    for _round in range(rounds):
        left = margin_without(order)
        if _turns(left) or not np.isfinite(left):
            break
        effect = _levelled(further(order))
        effect[order] = 0.0
        more = _helpful(effect, left)
        if not len(more):
            break
        order = np.concatenate([order, more])
    return order


def _first_turning(order: Ints, margin_without: Callable[[Ints], float], low: int) -> Ints | None:
    """The shortest beginning of `order` that turns the margin, by halving; those of `low` rows or fewer do not."""
    if not len(order) or not _turns(margin_without(order)):
        return None
    high = len(order)
    while high - low > 1:
        middle = (low + high) // 2
        if _turns(margin_without(order[:middle])):
            high = middle
        else:
            low = middle
    return order[:high]


def in_words(fragility: Fragility, names: Sequence[str], *, unit: str = "judgements") -> Iterator[str]:
    """A sentence for the first place, and one that says what the numbers are."""
    pair = fragility.first
    if pair is None:
        return
    if abs(pair.margin) < EQUAL:
        yield f"Nobody is first: {names[pair.ahead]} and {names[pair.behind]} are equal."
    elif pair.count is None:
        yield f"No set of {unit} was found whose loss takes the first place from {names[pair.ahead]}."
    else:
        yield (
            f"Without {pair.count:,} of the {unit} ({100 * (pair.share or 0.0):.3g} %) {names[pair.behind]} would be "
            f"ahead of {names[pair.ahead]}, who is first. This is an upper bound: fewer may do."
        )
