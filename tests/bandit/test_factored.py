import dataclasses

import numpy as np
import pytest

from bandit import DesignError, FactoredScores, pair_from_rank, universe_size
from bandit import factored as module


def some_factors(*, questions=7, rank=3, largest=3, bias=5, seed=0):
    rng = np.random.default_rng(seed)
    return FactoredScores(
        evidence=rng.integers(-largest, largest + 1, (2, questions, rank)),
        target=rng.integers(-largest, largest + 1, (2, questions, rank)),
        evidence_bias=rng.integers(-bias, bias + 1, (2, questions)),
        target_bias=rng.integers(-bias, bias + 1, (2, questions)),
    )


def every_score(scores):
    """The scores of all pairs in rank order, by the formula."""
    pairs = pair_from_rank(np.arange(universe_size(scores.n_questions)), scores.n_questions)
    return np.array(
        [
            int(scores.evidence[o, e].astype(int) @ scores.target[o, t].astype(int))
            + int(scores.evidence_bias[o, e])
            + int(scores.target_bias[o, t])
            for e, t, o in zip(pairs.evidence, pairs.target, pairs.outcome, strict=True)
        ]
    )


def test_a_score_is_the_product_of_the_factors_plus_the_biases():
    scores = some_factors(largest=127, bias=10_000)
    pairs = pair_from_rank(np.arange(universe_size(7)), 7)
    assert scores.of(pairs).tolist() == every_score(scores).tolist()
    assert scores.negated().of(pairs).tolist() == (-every_score(scores)).tolist()
    assert (scores.n_questions, scores.rank) == (7, 3)


def test_the_largest_factors_of_the_largest_rank_are_exact():
    rng = np.random.default_rng(2)
    signs = rng.choice([-127, 127], size=(2, 5, 1000))
    scores = FactoredScores(
        evidence=signs, target=signs, evidence_bias=np.full((2, 5), 300_001), target_bias=np.zeros((2, 5), dtype=int)
    )
    assert scores.of(pair_from_rank(np.arange(40), 5)).tolist() == every_score(scores).tolist()
    blocks = {block.outcome: block.scores.copy() for block in scores.map_blocks(lambda block: block)}
    pairs = pair_from_rank(np.arange(40), 5)
    actual = [blocks[o][e, t] for e, t, o in zip(pairs.evidence, pairs.target, pairs.outcome, strict=True)]
    assert actual == every_score(scores).tolist()


def test_the_total_is_exact_and_leaves_out_what_is_excluded():
    scores = some_factors(largest=100, bias=1000)
    every = every_score(scores)
    assert scores.total() == every.sum()
    assert scores.total(exclude=[0, 5, 83]) == every.sum() - every[[0, 5, 83]].sum()


@pytest.mark.parametrize("block", [1, 14, 10_000])
@pytest.mark.parametrize("threads", [1, 3])
def test_blocks_hold_every_pair_once_and_nothing_else(monkeypatch, block, threads):
    monkeypatch.setattr(module, "_BLOCK", block)
    scores = some_factors()
    exclude = [0, 1, 30, 83]

    def seen(part):
        gaps = np.argwhere(part.scores == module.NO_PAIR)
        assert sorted(map(tuple, gaps)) == sorted(zip(*part.missing, strict=True))
        return part.outcome, part.evidence, part.scores.copy()

    whole = np.full((2, 7, 7), np.nan)
    for outcome, evidence, values in scores.map_blocks(seen, exclude=exclude, threads=threads):
        assert np.isnan(whole[outcome, evidence]).all()
        whole[outcome, evidence] = values
    pairs = pair_from_rank(np.arange(84), 7)
    expected = every_score(scores).astype(float)
    expected[exclude] = module.NO_PAIR
    assert whole[pairs.outcome, pairs.evidence, pairs.target].tolist() == expected.tolist()
    assert (whole[:, np.arange(7), np.arange(7)] == module.NO_PAIR).all()


HAPPENED = np.array([1, 0, 0, 1, 1, 0, 1])


@pytest.mark.parametrize("block", [1, 14, 10_000])
@pytest.mark.parametrize("happened", [HAPPENED, np.ones(7, dtype=int)], ids=["mixed", "all right"])
def test_blocks_hold_every_pair_that_happened_and_no_other(monkeypatch, block, happened):
    monkeypatch.setattr(module, "_BLOCK", block)
    scores = dataclasses.replace(some_factors(), happened=happened)
    pairs = pair_from_rank(np.arange(84), 7)
    possible = pairs.outcome == happened[pairs.evidence]
    exclude = np.arange(0, 84, 5)  # Some of them are not a pair anyway.
    whole = np.full((2, 7, 7), np.nan)
    for part in scores.map_blocks(lambda part: dataclasses.replace(part, scores=part.scores.copy()), exclude=exclude):
        assert np.isnan(whole[part.outcome, part.evidence]).all()
        whole[part.outcome, part.evidence] = part.scores
    expected = every_score(scores).astype(float)
    expected[exclude] = module.NO_PAIR
    expected[~possible] = np.nan
    actual = whole[pairs.outcome, pairs.evidence, pairs.target]
    assert np.array_equal(actual, expected, equal_nan=True)
    assert scores.universe_size == possible.sum() == 42
    assert scores.holds(np.arange(84)).tolist() == possible.tolist()
    assert scores.total() == every_score(scores)[possible].sum()
    left = np.setdiff1d(np.flatnonzero(possible), exclude)
    assert scores.total(exclude=exclude) == every_score(scores)[left].sum()
    assert scores.negated().total() == -scores.total()


@pytest.mark.parametrize("happened", [np.ones(6, dtype=int), np.full(7, 2), np.full(7, -1), np.full(7, 0.5)])
def test_outcomes_that_cannot_have_happened_are_refused(happened):
    with pytest.raises(DesignError, match="happened"):
        dataclasses.replace(some_factors(), happened=happened)


def test_the_hash_knows_what_happened():
    hashes = {
        dataclasses.replace(some_factors(), happened=happened).sha256
        for happened in (None, HAPPENED, 1 - HAPPENED, HAPPENED.copy())
    }
    assert len(hashes) == 3


def test_the_hash_knows_every_factor():
    scores = some_factors()
    assert scores.sha256 == some_factors().sha256
    changed = {name: np.array(getattr(scores, name)) for name in ("evidence", "target", "evidence_bias", "target_bias")}
    hashes = {scores.sha256}
    for name, values in changed.items():
        other = values.copy()
        other.flat[0] += 1 if other.flat[0] < 1 else -1
        hashes.add(FactoredScores(**(changed | {name: other})).sha256)
    assert len(hashes) == 5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"evidence": np.zeros((2, 7, 3))}, "evidence: must be whole numbers"),
        ({"evidence": np.full((2, 7, 3), 128)}, r"evidence: must lie in -127\.\.127, not 128"),
        ({"evidence": np.zeros((1, 7, 3), dtype=int)}, "2 outcomes"),
        ({"evidence": np.zeros((2, 7, 1001), dtype=int)}, r"rank of 1\.\.1000"),
        ({"target": np.zeros((2, 6, 3), dtype=int)}, r"target: must have the shape \(2, 7, 3\)"),
        ({"target_bias": np.zeros((2, 6), dtype=int)}, r"target_bias: must have the shape \(2, 7\)"),
        ({"target_bias": np.full((2, 7), 2**24 - 1)}, r"scores may reach 16777\d+, and must stay under 16777216"),
    ],
)
def test_factors_that_float32_could_not_hold_exactly_are_refused(change, message):
    scores = some_factors()
    factors = {name: getattr(scores, name) for name in ("evidence", "target", "evidence_bias", "target_bias")}
    with pytest.raises(DesignError, match=message):
        FactoredScores(**(factors | change))


def test_pairs_outside_the_bank_and_too_few_threads_are_refused():
    scores = some_factors()
    with pytest.raises(DesignError, match="outside the bank of 7"):
        scores.of(pair_from_rank(np.arange(112), 8))
    with pytest.raises(DesignError, match="threads: must be at least 1"):
        list(scores.map_blocks(lambda block: block, threads=0))
    with pytest.raises(DesignError, match="exclude: ranks must be strictly increasing"):
        scores.total(exclude=[3, 3])
