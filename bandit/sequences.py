"""Which items there are with a target and several evidence questions in an order, and the uniform pool of them.

A bank of N questions has N (N - 1) ... (N - K) 2^K items with K evidence questions: a target, K other questions in an
order, no question twice, and the outcome of each. Numpy alone: knows no database and no texts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bandit.candidates import checked_ranks, distinct
from bandit.errors import DesignError

MAX_STEPS = 3


@dataclass(frozen=True, eq=False)
class Sequences:
    """M items: target index (M,), evidence indices (M, K) in order, and outcomes 0 or 1 (M, K); int64."""

    target: NDArray[np.int64]
    evidence: NDArray[np.int64]
    outcome: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.target)


@dataclass(frozen=True, eq=False)
class SequencePool:
    """A candidate set and the chance with which each item that could be drawn came into it."""

    sequences: Sequences
    universe_size: int
    probability: float


def sequence_universe(n_questions: int, steps: int, *, outcomes: int = 2) -> int:
    """How many items there are. `outcomes`: 2, or 1 where every question has one outcome that really happened.

    Raises:
        DesignError: too few questions for one item, too many for numbers of 64 bits, or `steps` outside 1 to 3.
    """
    if not 1 <= steps <= MAX_STEPS:
        raise DesignError(f"steps: an item has 1 to {MAX_STEPS} evidence questions, not {steps}")
    if n_questions <= steps:
        raise DesignError(
            f"n_questions: an item with {steps} evidence questions needs {steps + 1} questions, and there are "
            f"{n_questions}"
        )
    size = outcomes**steps
    for place in range(steps + 1):
        size *= n_questions - place
    if size >= 2**62:
        raise DesignError(f"n_questions: {n_questions} questions have too many items with {steps} evidence questions")
    return size


def sequences_from_rank(rank: ArrayLike, n_questions: int, steps: int) -> Sequences:
    """The items of these ranks (M,), integers in range(`sequence_universe`). The inverse of `rank_of_sequences`."""
    left = checked_ranks(rank, sequence_universe(n_questions, steps), "rank")
    outcome = np.empty((len(left), steps), dtype=np.int64)
    for step in reversed(range(steps)):
        left, outcome[:, step] = np.divmod(left, 2)
    chosen = np.empty((len(left), steps + 1), dtype=np.int64)
    for place in reversed(range(steps + 1)):
        left, chosen[:, place] = np.divmod(left, n_questions - place)
    for place in range(1, steps + 1):
        # The number counts the questions that are left: step over those that were taken, the lowest first.
        for taken in np.sort(chosen[:, :place], axis=1).T:
            chosen[:, place] += chosen[:, place] >= taken
    return Sequences(target=chosen[:, 0], evidence=chosen[:, 1:], outcome=outcome)


def rank_of_sequences(sequences: Sequences, n_questions: int) -> NDArray[np.int64]:
    """Each item's place in range(`sequence_universe`), int64 (M,).

    Raises:
        DesignError: a question comes twice in an item, or is outside of the bank.
    """
    steps = sequences.evidence.shape[1]
    sequence_universe(n_questions, steps)
    chosen = np.concatenate([sequences.target[:, None], sequences.evidence], axis=1)
    if chosen.size and (chosen.min() < 0 or chosen.max() >= n_questions):
        raise DesignError(f"sequences: name a question outside the bank of {n_questions}")
    ordered = np.sort(chosen, axis=1)
    if (ordered[:, 1:] == ordered[:, :-1]).any():
        raise DesignError("sequences: a question comes twice in an item")
    rank = np.zeros(len(chosen), dtype=np.int64)
    for place in range(steps + 1):
        before = (chosen[:, :place] < chosen[:, place : place + 1]).sum(axis=1)
        rank = rank * (n_questions - place) + chosen[:, place] - before
    for step in range(steps):
        rank = rank * 2 + sequences.outcome[:, step]
    return rank


def uniform_sequences(
    *,
    n_questions: int,
    steps: int,
    size: int,
    rng: np.random.Generator,
    exclude: ArrayLike | None = None,
    outcome: ArrayLike | None = None,
) -> SequencePool:
    """A uniform sample without replacement of `size` items, in rank order; all items if there are no more than that.

    Args:
        exclude: strictly increasing ranks of items never to be drawn. The others have probability
            size / (universe - excluded).
        outcome: given where outcomes really happened: the one outcome that each question has as evidence (N,). Only
            items with these outcomes can then be drawn.

    Raises:
        DesignError: a size under 1, or nothing is left to draw from.
    """
    if size < 1:
        raise DesignError(f"size: a pool needs at least 1 item, not {size}")
    universe = sequence_universe(n_questions, steps)
    excluded = checked_ranks([] if exclude is None else exclude, universe, "exclude", increasing=True)
    happened = None
    if outcome is not None:
        happened = np.asarray(outcome, dtype=np.int64)
        if happened.shape != (n_questions,) or not np.isin(happened, (0, 1)).all():
            raise DesignError(f"outcome: give 0 or 1 for each of the {n_questions} questions")
        # Here a rank does not count the outcomes, since the questions decide them.
        universe //= 2**steps
        named = sequences_from_rank(excluded, n_questions, steps)
        real = (happened[named.evidence] == named.outcome).all(axis=1)
        excluded = excluded[real] // 2**steps
    available = universe - excluded.size
    if available == 0:
        raise DesignError(f"exclude: leaves out all {universe} items of {n_questions} questions; add questions")
    if size >= available:
        drawn, probability = np.arange(available, dtype=np.int64), 1.0
    else:
        drawn, probability = distinct(rng, available, size), size / available
    # The k-th allowed rank is k plus the number of excluded ranks that stand before it.
    ranks = drawn + np.searchsorted(excluded - np.arange(excluded.size), drawn, side="right")
    if happened is None:
        sequences = sequences_from_rank(ranks, n_questions, steps)
    else:
        sequences = sequences_from_rank(ranks * 2**steps, n_questions, steps)
        sequences = Sequences(sequences.target, sequences.evidence, happened[sequences.evidence])
    return SequencePool(sequences=sequences, universe_size=universe, probability=probability)
