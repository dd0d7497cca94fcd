import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bandit import (
    DesignError,
    EpsilonGreedy,
    Proportional,
    Softmax,
    TestSet,
    Uncertainty,
    Uniform,
    deal,
    draw,
    inclusion_probabilities,
)
from tests.bandit.laws import p_value_of_counts, p_value_of_largest_z


@st.composite
def possible_draws(draw_one):
    scores = draw_one(st.lists(st.floats(0, 1), min_size=20, max_size=120))
    n = draw_one(st.integers(1, len(scores) // 10))
    epsilon = draw_one(st.floats(0, 1))
    return scores, n, EpsilonGreedy(epsilon=epsilon, top_fraction=0.1), draw_one(st.integers(0, 2**32))


@pytest.mark.thorough
@settings(deadline=None)
@given(possible_draws())
def test_inclusion_probabilities_are_exact_and_sum_to_n(case):
    scores, n, design, seed = case
    drawn = draw(design=design, n=n, scores=scores, n_candidates=len(scores), rng=np.random.default_rng(seed))
    assert len(set(drawn.selected.tolist())) == n
    assert sum(stratum.n for stratum in drawn.strata) == n
    assert sum(stratum.size for stratum in drawn.strata) == len(scores)
    for index, chance in zip(drawn.stratum, drawn.inclusion_probability, strict=True):
        assert chance == drawn.strata[index].n / drawn.strata[index].size
    # Over the draw: the Horvitz-Thompson estimate of a stratum's size is its size.
    for index, stratum in enumerate(drawn.strata):
        if stratum.n:
            assert (1 / drawn.inclusion_probability[drawn.stratum == index]).sum() == pytest.approx(stratum.size)


@pytest.mark.thorough
def test_frequencies_over_many_draws_match_the_stored_probabilities():
    rng = np.random.default_rng(7)
    scores = np.linspace(0, 1, 60)
    counts, stored = np.zeros(60), np.zeros(60)
    for _ in range(4000):
        drawn = draw(design=EpsilonGreedy(0.4, 0.2), n=10, scores=scores, n_candidates=60, rng=rng)
        counts[drawn.selected] += 1
        stored[drawn.selected] = drawn.inclusion_probability
    assert set(stored[:48]) == {4 / 48}
    assert set(stored[48:]) == {6 / 12}
    assert p_value_of_counts(counts[:48], draws=4000, n=4) > 0.001
    assert p_value_of_counts(counts[48:], draws=4000, n=6) > 0.001


@pytest.mark.thorough
def test_every_candidate_can_stand_at_every_place_of_the_draw():
    rng = np.random.default_rng(8)
    first = np.zeros(12)
    for _ in range(4000):
        drawn = draw(design=EpsilonGreedy(0.5, 0.5), n=6, scores=np.arange(12), n_candidates=12, rng=rng)
        first[drawn.selected[0]] += 1
    assert p_value_of_counts(first, draws=4000, n=1) > 0.001


def test_strata_are_described_over_all_their_candidates():
    drawn = draw(
        design=EpsilonGreedy(0.5, 0.2), n=2, scores=np.arange(10) / 10, n_candidates=10, rng=np.random.default_rng(1)
    )
    top, rest = drawn.strata
    assert (top.name, top.size, top.n, top.lowest, top.highest) == ("top", 2, 1, 0.8, 0.9)
    assert (top.mean, rest.mean) == (pytest.approx(0.85), pytest.approx(0.35))


def test_a_uniform_draw_needs_no_scores():
    drawn = draw(design=Uniform(), n=3, scores=None, n_candidates=12, rng=np.random.default_rng(1))
    assert drawn.inclusion_probability.tolist() == [0.25] * 3
    assert drawn.strata[0].mean is None


def test_the_same_seed_gives_the_same_draw():
    scores = np.random.default_rng(3).random(500)
    first, two, other = (
        draw(design=EpsilonGreedy(), n=50, scores=scores, n_candidates=500, rng=np.random.default_rng(seed)).selected
        for seed in (1, 1, 2)
    )
    assert first.tolist() == two.tolist() != other.tolist()


@pytest.mark.parametrize(
    ("n", "scores", "message"),
    [(0, None, "at least 1 slot"), (4, None, "holds 3 of 3"), (1, [0.1, 0.2], "2 scores for 3 candidates")],
)
def test_an_impossible_draw_is_refused(n, scores, message):
    with pytest.raises(DesignError, match=message):
        draw(design=Uniform(), n=n, scores=scores, n_candidates=3, rng=np.random.default_rng(1))


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize("design", [Softmax(temperature=0.25, floor=0.2), Proportional(trade_off=0.2, power=2)])
def test_frequencies_match_the_stored_probabilities_of_each_candidate(design):
    rng = np.random.default_rng(17)
    scores = rng.random(40)
    chance = inclusion_probabilities(design=design, n=8, scores=scores, n_candidates=40, rng=rng)
    counts = np.zeros(40)
    for _ in range(4000):
        drawn = draw(design=design, n=8, scores=scores, n_candidates=40, rng=rng)
        assert len(set(drawn.selected.tolist())) == 8
        assert drawn.inclusion_probability.tolist() == chance[drawn.selected].tolist()
        counts[drawn.selected] += 1
    assert chance.max() > 3 * chance.min()
    assert p_value_of_largest_z(counts, draws=4000, probability=chance) > 0.001


def test_a_certain_candidate_is_in_every_softmax_draw():
    rng = np.random.default_rng(18)
    for _ in range(50):
        drawn = draw(design=Softmax(0.05, 0.1), n=3, scores=[3.0, *[0.0] * 20], n_candidates=21, rng=rng)
        assert 0 in drawn.selected
        assert len(set(drawn.selected.tolist())) == 3


@pytest.mark.thorough
def test_every_candidate_can_stand_at_every_place_of_a_softmax_draw():
    rng = np.random.default_rng(19)
    first = np.zeros(6)
    scores = np.array([0.0, 0.0, 0.0, 0.1, 0.1, 0.1])
    for _ in range(3000):
        drawn = draw(design=Softmax(temperature=0.2, floor=0.0), n=6, scores=scores, n_candidates=6, rng=rng)
        first[drawn.selected[0]] += 1
    assert p_value_of_counts(first, draws=3000, n=1) > 0.001


def test_uncertainty_by_disagreement_draws_from_what_is_disputed():
    drawn = draw(
        design=Uncertainty(epsilon=0.5, top_fraction=0.5, by="disagreement"),
        n=4,
        scores=np.zeros(8),
        disagreement=np.arange(8),
        n_candidates=8,
        rng=np.random.default_rng(1),
    )
    assert [stratum.name for stratum in drawn.strata] == ["uncertain", "rest"]
    assert sorted(drawn.selected >= 4) == [False, False, True, True]
    with pytest.raises(DesignError, match="3 numbers for 8 candidates"):
        draw(
            design=Uncertainty(),
            n=4,
            scores=np.zeros(8),
            disagreement=[1, 2, 3],
            n_candidates=8,
            rng=np.random.default_rng(1),
        )


def test_a_test_set_gives_each_pair_its_replicates_and_different_people():
    design = TestSet(pairs=12, responses_per_pair=5, top_fraction=0.1, bottom_fraction=0.1)
    scores = np.random.default_rng(2).random(300)
    drawn = draw(design=design, n=60, scores=scores, n_candidates=300, rng=np.random.default_rng(3))
    top, bottom, middle = drawn.strata
    assert (top.n, bottom.n, middle.n) == (40, 20, 0)
    assert len(set(drawn.selected.tolist())) == 12
    for pair in set(drawn.selected.tolist()):
        assert sorted(drawn.replicate[drawn.selected == pair].tolist()) == [1, 2, 3, 4, 5]
    # The chance is that of the candidate: 8 of the 30 at the top.
    assert set(drawn.inclusion_probability[drawn.stratum == 0]) == {8 / 30}
    assert set(drawn.inclusion_probability[drawn.stratum == 1]) == {4 / 30}
    booklets = deal(
        conflict_keys=[(int(pair),) for pair in drawn.selected],
        groups=drawn.stratum.tolist(),
        size=10,
        rng=np.random.default_rng(4),
    )
    for booklet in booklets:
        assert len(set(drawn.selected[booklet].tolist())) == 10


def test_replicates_of_a_plain_draw_are_all_the_first():
    drawn = draw(design=Uniform(), n=3, scores=None, n_candidates=12, rng=np.random.default_rng(1))
    assert drawn.replicate.tolist() == [1, 1, 1]


def test_any_two_candidates_can_be_in_a_softmax_draw_together():
    rng = np.random.default_rng(20)
    scores = np.linspace(0, 0.2, 6)
    seen = set()
    for _ in range(400):
        drawn = draw(design=Softmax(temperature=1.0, floor=0.1), n=2, scores=scores, n_candidates=6, rng=rng)
        seen.add(frozenset(drawn.selected.tolist()))
    assert len(seen) == 15
