"""Items with several evidence questions: their ranks, and uniform pools of them."""

from collections import Counter

import numpy as np
import pytest

from bandit import (
    DesignError,
    Sequences,
    rank_of_sequences,
    sequence_universe,
    sequences_from_rank,
    uniform_sequences,
)


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_every_rank_is_one_item_without_a_question_twice(steps: int) -> None:
    universe = sequence_universe(5, steps)
    sequences = sequences_from_rank(np.arange(universe), 5, steps)
    rows = np.concatenate([sequences.target[:, None], sequences.evidence], axis=1)
    assert all(len(set(row)) == steps + 1 for row in rows.tolist())
    assert len({*map(tuple, np.concatenate([rows, sequences.outcome], axis=1).tolist())}) == universe
    assert rank_of_sequences(sequences, 5).tolist() == list(range(universe))


def test_ranks_hold_for_a_bank_as_large_as_the_papers() -> None:
    universe = sequence_universe(16_439, 3)
    ranks = np.random.default_rng(1).integers(universe, size=200)
    assert (rank_of_sequences(sequences_from_rank(ranks, 16_439, 3), 16_439) == ranks).all()


@pytest.mark.thorough
def test_every_item_has_the_same_chance_and_the_excluded_have_none() -> None:
    exclude = np.array([0, 7, 40])
    universe = sequence_universe(4, 2)
    rng = np.random.default_rng(2)
    counts: Counter[int] = Counter()
    for _pool in range(2000):
        pool = uniform_sequences(n_questions=4, steps=2, size=31, rng=rng, exclude=exclude)
        assert pool.probability == 31 / (universe - 3)
        counts.update(rank_of_sequences(pool.sequences, 4).tolist())
    assert not set(counts) & set(exclude.tolist())
    assert len(counts) == universe - 3
    expected = 2000 * 31 / (universe - 3)
    spread = np.sqrt(2000 * pool.probability * (1 - pool.probability))
    assert max(abs(count - expected) for count in counts.values()) < 5 * spread


def test_only_outcomes_that_happened_are_drawn_where_they_are_given() -> None:
    happened = np.array([1, 0, 1, 1, 0])
    made_up = Sequences(np.array([0]), np.array([[1, 2]]), np.array([[1, 1]]))
    real = Sequences(np.array([0]), np.array([[1, 2]]), np.array([[0, 1]]))
    exclude = np.sort(np.concatenate([rank_of_sequences(made_up, 5), rank_of_sequences(real, 5)]))
    pool = uniform_sequences(
        n_questions=5, steps=2, size=999, rng=np.random.default_rng(3), exclude=exclude, outcome=happened
    )
    assert pool.universe_size == 60
    assert pool.probability == 1
    assert len(pool.sequences) == 59
    assert (happened[pool.sequences.evidence] == pool.sequences.outcome).all()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"n_questions": 2, "steps": 2, "size": 1}, "needs 3 questions"),
        ({"n_questions": 9, "steps": 4, "size": 1}, "1 to 3"),
        ({"n_questions": 9, "steps": 2, "size": 0}, "at least 1"),
        ({"n_questions": 3, "steps": 2, "size": 1, "exclude": np.arange(24)}, "leaves out all"),
    ],
)
def test_what_cannot_be_drawn_is_refused(given: dict, said: str) -> None:
    with pytest.raises(DesignError, match=said):
        uniform_sequences(rng=np.random.default_rng(4), **given)
