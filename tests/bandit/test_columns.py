"""Blocks that are narrower than the bank: columns of targets, as in banks of many questions."""

import dataclasses
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from bandit import (
    EpsilonGreedy,
    TestSet,
    draw_exhaustively,
    exhaustive,
    factored,
    find_cut,
    pair_from_rank,
    rank_of,
    shortlist,
)
from tests.bandit.test_exhaustive import assert_cut_is_right
from tests.bandit.test_factored import HAPPENED, every_score, some_factors

EXCLUDE = [0, 1, 13, 30, 41, 83]


@pytest.fixture(autouse=True, params=[1, 2, 3])
def columns(request, monkeypatch):
    monkeypatch.setattr(factored, "_COLUMNS", request.param)
    monkeypatch.setattr(factored, "_BLOCK", 4)
    monkeypatch.setattr(factored, "_TILE", 5)
    return request.param


@pytest.mark.slow
@pytest.mark.parametrize("executor", [False, True])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("happened", [None, HAPPENED])
def test_narrow_blocks_hold_every_pair_once(columns, threads, executor, happened):
    scores = dataclasses.replace(some_factors(), happened=happened)
    whole = np.full((2, 7, 7), np.nan)

    def seen(block):
        assert block.scores.shape == (block.evidence.size, min(columns, 7 - block.first_target))
        gaps = np.argwhere(block.scores == factored.NO_PAIR)
        assert sorted(map(tuple, gaps)) == sorted(set(zip(*block.missing, strict=True)))
        return dataclasses.replace(block, scores=block.scores.copy())

    with ThreadPoolExecutor(threads) as pool:
        how = {"threads": threads, "executor": pool if executor else None}
        blocks = list(scores.map_blocks(seen, exclude=EXCLUDE, **how))
    for block in blocks:
        place = block.outcome, block.evidence, slice(block.first_target, block.first_target + block.scores.shape[1])
        assert np.isnan(whole[place]).all()
        whole[place] = block.scores
    ranks = np.arange(84)
    pairs = pair_from_rank(ranks, 7)
    expected = every_score(scores).astype(float)
    expected[EXCLUDE] = factored.NO_PAIR
    expected[~scores.holds(ranks)] = np.nan
    assert np.array_equal(whole[pairs.outcome, pairs.evidence, pairs.target], expected, equal_nan=True)


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 20, 77])
@pytest.mark.parametrize("bins", [4, 2**20])
def test_a_cut_over_narrow_blocks_is_exact(monkeypatch, count, bins):
    monkeypatch.setattr(exhaustive, "_BINS", bins)
    scores = some_factors(largest=9)
    left = np.delete(every_score(scores), EXCLUDE)
    assert_cut_is_right(find_cut(scores, count=count, exclude=EXCLUDE, threads=2), left, count)


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize("design", [EpsilonGreedy(epsilon=0.4, top_fraction=0.3), TestSet(4, 2, 0.2, 0.2)])
@pytest.mark.parametrize("rare", [0, 1])
def test_draws_do_not_depend_on_the_blocks_or_the_threads(monkeypatch, design, rare):
    monkeypatch.setattr(exhaustive, "_RARE", rare)
    scores = some_factors(largest=9)

    def drawn(threads):
        draw = draw_exhaustively(
            design=design, n=8, scores=scores, rng=np.random.default_rng(1), exclude=EXCLUDE, threads=threads
        )
        listed = shortlist(scores, size=15, rng=np.random.default_rng(1), exclude=EXCLUDE, threads=threads)
        return rank_of(draw.pairs, 7).tolist(), draw.inclusion_probability.tolist(), draw.strata, listed.tolist()

    narrow = [drawn(threads) for threads in (1, 2, 3)]
    monkeypatch.setattr(factored, "_COLUMNS", 100)
    monkeypatch.setattr(factored, "_BLOCK", 10_000)
    assert all(draw == drawn(1) for draw in narrow)


def test_progress_is_said_after_each_block_and_can_end_the_pass():
    seen = []
    scores = dataclasses.replace(some_factors(), progress=lambda *place: seen.append(place))
    for number, _ in enumerate(scores.map_blocks(lambda block: None), start=1):
        assert seen[-1][0] == len(seen) == number
    assert {of for _, of in seen} == {len(seen)}
    seen.clear()
    find_cut(scores.negated(), count=20)
    assert len(seen) > 20

    def end(done, _of):
        if done == 3:
            raise InterruptedError

    worked = []
    with pytest.raises(InterruptedError):
        list(dataclasses.replace(scores, progress=end).map_blocks(worked.append, threads=2))
    assert len(worked) < len(seen)


def test_no_thread_runs_far_ahead_of_who_reads():
    worked = []
    blocks = some_factors().map_blocks(worked.append, threads=2)
    next(blocks)
    assert 1 <= len(worked) <= 9
    assert sum(1 for _ in blocks) == len(worked) - 1


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize("sizes", [[30, 5, 0, 65], [3, 1, 6]])
def test_a_large_stratum_is_shared_out_among_its_layers_as_a_small_one(monkeypatch, sizes):
    layers, n, draws = np.array(sizes), 6, 4000
    rng = np.random.default_rng(9)
    monkeypatch.setattr(exhaustive, "_MAX_FOR_NUMPY", 0)
    actual = np.array([exhaustive._shared_out(layers, n, rng) for _ in range(draws)])
    monkeypatch.undo()
    expected = np.array([exhaustive._shared_out(layers, n, rng) for _ in range(draws)])
    assert (actual.sum(axis=1) == n).all() and (actual <= layers).all()
    spread = np.sqrt((actual.var(axis=0) + expected.var(axis=0)) / draws) + 1e-12
    assert np.abs((actual.mean(axis=0) - expected.mean(axis=0)) / spread).max() < 4
    assert actual.var(axis=0) == pytest.approx(expected.var(axis=0), rel=0.15)


def test_billions_of_pairs_can_be_shared_out():
    layers = np.array([2 * 10**9, 10**4, 18 * 10**9])
    shares = exhaustive._shared_out(layers, 1320, np.random.default_rng(1))
    assert shares.sum() == 1320 and 80 < shares[0] < 190 and shares[1] <= 2
