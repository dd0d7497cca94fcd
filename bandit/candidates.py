"""Which pairs there are, and the uniform pool a stage may draw from. Numpy alone: knows no database and no texts.

A bank of N questions in a fixed order has 2 N (N - 1) pairs: an ordered (evidence, target) of two different questions
and the outcome (0 incorrect, 1 correct) that the respondent sees for the evidence question.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bandit.errors import DesignError


@dataclass(frozen=True, eq=False)
class Pairs:
    """M pairs as three read-only arrays of shape (M,): evidence and target index (int32), outcome 0 or 1 (int8)."""

    evidence: NDArray[np.int32]
    target: NDArray[np.int32]
    outcome: NDArray[np.int8]

    def __post_init__(self) -> None:
        sizes = []
        for name, dtype in (("evidence", np.int32), ("target", np.int32), ("outcome", np.int8)):
            column = _read_only(getattr(self, name), dtype, name)
            object.__setattr__(self, name, column)
            sizes.append(column.size)
        if len(set(sizes)) > 1:
            raise DesignError(f"evidence, target, outcome: must be equally long, not {sizes}")
        if self.outcome.size and self.outcome.max() > 1:
            raise DesignError("outcome: must be 0 (incorrect) or 1 (correct)")
        same = int(np.count_nonzero(self.evidence == self.target))
        if same:
            raise DesignError(f"target: is the evidence question in {same} of {len(self)} pairs; take two questions")

    def __len__(self) -> int:
        return int(self.evidence.size)

    def take(self, index: ArrayLike) -> Pairs:
        """The pairs at `index` (integers or a boolean mask of shape (M,)), in that order."""
        at = np.asarray(index)
        if at.size == 0:
            at = at.astype(np.int64)
        return Pairs(evidence=self.evidence[at], target=self.target[at], outcome=self.outcome[at])


@dataclass(frozen=True, eq=False)
class Pool:
    """A candidate set and the chance with which each pair that could be drawn came into it (the first phase).

    `universe_size` counts all 2 N (N - 1) pairs, `excluded` those that could not be drawn (their probability is 0).
    """

    pairs: Pairs
    universe_size: int
    probability: float
    excluded: int = 0


def universe_size(n_questions: int) -> int:
    """The number of pairs of a bank of `n_questions` questions, 2 N (N - 1)."""
    if n_questions < 2:
        raise DesignError(f"n_questions: a pair needs two questions, the bank has {n_questions}")
    return 2 * n_questions * (n_questions - 1)


def pair_from_rank(rank: ArrayLike, n_questions: int) -> Pairs:
    """The pairs of these ranks, integers in range(2 N (N - 1)), shape (M,). The inverse of `rank_of`."""
    universe = universe_size(n_questions)
    ranks = checked_ranks(rank, universe, "rank")
    ordered, outcome = np.divmod(ranks, 2)
    evidence, others = np.divmod(ordered, n_questions - 1)
    return Pairs(evidence=evidence, target=others + (others >= evidence), outcome=outcome)


def rank_of(pairs: Pairs, n_questions: int) -> NDArray[np.int64]:
    """Each pair's place in range(2 N (N - 1)), int64 of shape (M,): by evidence, then target, then outcome."""
    universe_size(n_questions)
    if len(pairs) and max(int(pairs.evidence.max()), int(pairs.target.max())) >= n_questions:
        raise DesignError(f"pairs: name a question outside the bank of {n_questions}; use indices 0..{n_questions - 1}")
    evidence = pairs.evidence.astype(np.int64)
    target = pairs.target.astype(np.int64)
    return (evidence * (n_questions - 1) + target - (target > evidence)) * 2 + pairs.outcome


def uniform_pool(
    *,
    n_questions: int,
    size: int,
    rng: np.random.Generator,
    exclude: ArrayLike | None = None,
    outcome: ArrayLike | None = None,
) -> Pool:
    """A uniform sample without replacement of `size` pairs, in rank order; all pairs if there are no more than that.

    `exclude`: strictly increasing ranks of pairs never to be drawn, for instance those already answered; the others
    then have probability size / (universe - excluded). Memory grows with the sample, not with the universe.
    `outcome`: given where outcomes really happened: the one outcome, 0 or 1, that each question has as evidence, shape
    (N,). Only pairs with these outcomes can then be drawn: the universe is the N (N - 1) ordered pairs, and excluded
    ranks with other outcomes have no effect.
    Raises DesignError for a size under 1 or if nothing is left to draw from.
    """
    universe = universe_size(n_questions)
    if size < 1:
        raise DesignError(f"size: a pool needs at least 1 pair, not {size}")
    excluded = checked_ranks([] if exclude is None else exclude, universe, "exclude", increasing=True)
    happened = None if outcome is None else _outcomes(outcome, n_questions)
    if happened is not None:
        # Here a rank does not count the outcome, since the evidence question decides it.
        universe //= 2
        excluded = excluded[excluded % 2 == happened[excluded // 2 // (n_questions - 1)]] // 2
    available = universe - excluded.size
    if available == 0:
        raise DesignError(f"exclude: leaves out all {universe} pairs of {n_questions} questions; add questions")
    if size >= available:
        drawn, probability = np.arange(available, dtype=np.int64), 1.0
    else:
        drawn, probability = distinct(rng, available, size), size / available
    # The k-th allowed rank is k plus the number of excluded ranks that stand before it.
    ranks = drawn + np.searchsorted(excluded - np.arange(excluded.size), drawn, side="right")
    if happened is not None:
        ranks = 2 * ranks + happened[ranks // (n_questions - 1)]
    return Pool(
        pairs=pair_from_rank(ranks, n_questions),
        universe_size=universe,
        probability=probability,
        excluded=int(excluded.size),
    )


def _outcomes(outcome: ArrayLike, n_questions: int) -> NDArray[np.int64]:
    happened = np.asarray(outcome)
    if happened.shape != (n_questions,) or not np.isin(happened, (0, 1)).all():
        raise DesignError(f"outcome: give 0 or 1 for each of the {n_questions} questions, not shape {happened.shape}")
    return happened.astype(np.int64)


def checked_ranks(values: ArrayLike, universe: int, field: str, *, increasing: bool = False) -> NDArray[np.int64]:
    """Ranks in range(universe) as int64 of shape (M,), strictly increasing if asked."""
    ranks = np.atleast_1d(np.asarray(values))
    if ranks.size == 0:
        return np.empty(0, dtype=np.int64)
    if ranks.ndim != 1 or ranks.dtype.kind not in "iu":
        raise DesignError(f"{field}: must be a flat array of integers, not {ranks.dtype} of shape {ranks.shape}")
    if ranks.min() < 0 or ranks.max() >= universe:
        raise DesignError(f"{field}: ranks go from 0 to {universe - 1}, not from {ranks.min()} to {ranks.max()}")
    if increasing and np.any(np.diff(ranks.astype(np.int64)) <= 0):
        raise DesignError(f"{field}: ranks must be strictly increasing; pass numpy.unique(ranks)")
    return ranks.astype(np.int64)


def distinct(rng: np.random.Generator, population: int, size: int) -> NDArray[np.int64]:
    """`size` different integers of range(population), every subset equally likely, sorted."""
    if size > population // 2:
        return np.delete(np.arange(population, dtype=np.int64), distinct(rng, population, population - size))
    # The first distinct values of an endless sequence of independent draws are a sample without replacement.
    drawn = np.empty(0, dtype=np.int64)
    while drawn.size < size:
        more = rng.integers(population, size=(size - drawn.size) * 11 // 10 + 16, dtype=np.int64)
        drawn = np.concatenate([drawn, more])
        _, first = np.unique(drawn, return_index=True)
        drawn = drawn[np.sort(first)][:size]
    return np.sort(drawn)


def _read_only(values: ArrayLike, dtype: type[np.integer], field: str) -> NDArray[np.integer]:
    column = np.asarray(values)
    if column.ndim != 1 or (column.size and column.dtype.kind not in "iu"):
        raise DesignError(f"{field}: must be a flat array of integers, not {column.dtype} of shape {column.shape}")
    if column.size and (column.min() < 0 or column.max() > np.iinfo(dtype).max):
        raise DesignError(f"{field}: must lie in 0..{np.iinfo(dtype).max}, not {column.min()}..{column.max()}")
    column = column.astype(dtype)
    column.setflags(write=False)
    return column
