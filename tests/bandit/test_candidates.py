import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bandit import DesignError, Pairs, pair_from_rank, rank_of, uniform_pool, universe_size
from tests.bandit.laws import p_value_of_counts


def test_a_bank_of_n_questions_has_two_n_times_n_minus_one_pairs():
    assert universe_size(2) == 4
    assert universe_size(16_439) == 540_448_564


def test_a_bank_of_one_question_is_refused():
    with pytest.raises(DesignError, match="the bank has 1"):
        universe_size(1)


@pytest.mark.parametrize("n_questions", [2, 3, 7])
def test_ranks_and_pairs_are_one_to_one(n_questions):
    ranks = np.arange(universe_size(n_questions))
    pairs = pair_from_rank(ranks, n_questions)
    assert len(set(zip(pairs.evidence, pairs.target, pairs.outcome, strict=True))) == len(ranks)
    assert max(pairs.evidence.max(), pairs.target.max()) == n_questions - 1
    np.testing.assert_array_equal(rank_of(pairs, n_questions), ranks)


@settings(deadline=None)
@given(st.integers(2, 40_000).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, 2 * n * (n - 1) - 1))))
def test_any_rank_survives_the_way_there_and_back(case):
    n_questions, rank = case
    pairs = pair_from_rank([rank], n_questions)
    assert pairs.evidence[0] != pairs.target[0]
    assert rank_of(pairs, n_questions).tolist() == [rank]


@pytest.mark.parametrize("rank", [[-1], [24], [0.5], [[1]]])
def test_it_refuses_ranks_that_no_pair_has(rank):
    with pytest.raises(DesignError, match="rank"):
        pair_from_rank(rank, 4)


def test_it_refuses_the_rank_of_a_question_outside_the_bank():
    with pytest.raises(DesignError, match="outside the bank of 4"):
        rank_of(Pairs(evidence=[4], target=[0], outcome=[1]), 4)


@pytest.mark.parametrize(
    ("evidence", "target", "outcome", "message"),
    [
        ([1, 2], [2, 2], [0, 1], "evidence question in 1 of 2"),
        ([1], [2], [2], "outcome"),
        ([1, 2], [3], [0], "equally long"),
        ([-1], [2], [0], "evidence: must lie in"),
        ([1.5], [2], [0], "flat array of integers"),
        ([2**31], [2], [0], "evidence: must lie in"),
    ],
)
def test_it_refuses_pairs_that_make_no_sense(evidence, target, outcome, message):
    with pytest.raises(DesignError, match=message):
        Pairs(evidence=evidence, target=target, outcome=outcome)


def test_pairs_can_be_taken_by_index_or_mask_and_not_be_written_to():
    pairs = Pairs(evidence=[0, 1, 2], target=[1, 2, 0], outcome=[1, 0, 1])
    assert len(pairs) == 3
    assert pairs.take([2, 0]).evidence.tolist() == [2, 0]
    assert pairs.take(np.array([False, True, False])).target.tolist() == [2]
    assert len(pairs.take([])) == 0
    assert (pairs.evidence.dtype, pairs.outcome.dtype) == (np.int32, np.int8)
    with pytest.raises(ValueError, match="read-only"):
        pairs.outcome[0] = 0


@pytest.mark.slow
@settings(deadline=None)
@given(
    n_questions=st.integers(2, 8),
    size=st.integers(1, 130),
    seed=st.integers(0, 2**32),
    data=st.data(),
)
def test_a_pool_holds_different_pairs_and_none_that_is_excluded(n_questions, size, seed, data):
    universe = universe_size(n_questions)
    exclude = sorted(data.draw(st.sets(st.integers(0, universe - 1), max_size=universe - 1)))
    pool = uniform_pool(n_questions=n_questions, size=size, rng=np.random.default_rng(seed), exclude=exclude)
    ranks = rank_of(pool.pairs, n_questions)
    assert (np.diff(ranks) > 0).all()
    assert not set(ranks.tolist()) & set(exclude)
    available = universe - len(exclude)
    assert len(pool.pairs) == min(size, available)
    assert pool.probability == pytest.approx(min(1, size / available))
    assert (pool.universe_size, pool.excluded) == (universe, len(exclude))


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize(("size", "exclude"), [(3, []), (8, []), (15, []), (7, [0, 5, 6, 7, 22, 23])])
def test_every_pair_comes_into_the_pool_equally_often(size, exclude):
    rng = np.random.default_rng(2024)
    counts = np.zeros(24)
    for _ in range(2000):
        counts[rank_of(uniform_pool(n_questions=4, size=size, rng=rng, exclude=exclude).pairs, 4)] += 1
    allowed = np.delete(counts, exclude)
    assert counts.sum() == allowed.sum()
    assert p_value_of_counts(allowed, draws=2000, n=size) > 0.001


def test_a_pool_of_the_full_bank_takes_little_memory():
    tracemalloc.start()
    pool = uniform_pool(n_questions=16_439, size=30_000, rng=np.random.default_rng(1))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(pool.pairs) == 30_000
    assert pool.probability == 30_000 / 540_448_564
    assert peak < 20 * 2**20


def test_the_same_seed_gives_the_same_pool():
    first, second, third = (
        uniform_pool(n_questions=50, size=100, rng=np.random.default_rng(seed)).pairs for seed in (5, 5, 6)
    )
    np.testing.assert_array_equal(rank_of(first, 50), rank_of(second, 50))
    assert rank_of(first, 50).tolist() != rank_of(third, 50).tolist()


def test_an_impossible_pool_is_refused():
    rng = np.random.default_rng(1)
    with pytest.raises(DesignError, match="at least 1 pair, not 0"):
        uniform_pool(n_questions=4, size=0, rng=rng)
    with pytest.raises(DesignError, match="all 4 pairs"):
        uniform_pool(n_questions=2, size=1, rng=rng, exclude=[0, 1, 2, 3])
    with pytest.raises(DesignError, match="strictly increasing"):
        uniform_pool(n_questions=4, size=1, rng=rng, exclude=[3, 3])


# Outcomes that really happened


def test_a_real_universe_has_every_ordered_pair_once_with_its_outcome() -> None:
    outcome = np.array([1, 0, 0, 1])
    pool = uniform_pool(n_questions=4, size=100, rng=np.random.default_rng(0), outcome=outcome)
    assert (pool.universe_size, pool.probability, pool.excluded, len(pool.pairs)) == (12, 1.0, 0, 12)
    assert (pool.pairs.outcome == outcome[pool.pairs.evidence]).all()
    assert len(set(zip(pool.pairs.evidence.tolist(), pool.pairs.target.tolist(), strict=True))) == 12


@pytest.mark.thorough
def test_every_real_pair_has_the_same_chance() -> None:
    rng, outcome = np.random.default_rng(3), np.array([0, 1, 1, 0, 1])
    counts = np.zeros(universe_size(5))
    draws = 6000
    for _draw in range(draws):
        pool = uniform_pool(n_questions=5, size=6, rng=rng, outcome=outcome)
        assert pool.probability == 6 / 20
        counts[rank_of(pool.pairs, 5)] += 1
    happened = counts > 0
    assert happened.sum() == 20
    assert (np.abs(counts[happened] / draws - 0.3) < 5 * np.sqrt(0.3 * 0.7 / draws)).all()


def test_of_excluded_pairs_only_those_that_happened_leave_the_real_universe() -> None:
    outcome = np.array([1, 0, 1])
    both = rank_of(Pairs(evidence=[0, 0, 1], target=[1, 1, 2], outcome=[0, 1, 0]), 3)
    pool = uniform_pool(n_questions=3, size=9, rng=np.random.default_rng(0), outcome=outcome, exclude=np.sort(both))
    assert (pool.universe_size, pool.excluded, len(pool.pairs)) == (6, 2, 4)
    drawn = set(zip(pool.pairs.evidence.tolist(), pool.pairs.target.tolist(), strict=True))
    assert drawn == {(0, 2), (1, 0), (2, 0), (2, 1)}


@pytest.mark.parametrize("outcome", [[1, 0], [1, 0, 2], [[1, 0, 1]]])
def test_it_refuses_outcomes_that_are_not_one_a_question(outcome: object) -> None:
    with pytest.raises(DesignError, match="outcome: give 0 or 1 for each of the 3 questions"):
        uniform_pool(n_questions=3, size=2, rng=np.random.default_rng(0), outcome=outcome)
