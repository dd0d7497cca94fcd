import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bandit import DesignError, EpsilonGreedy, Uniform, draw
from tests.bandit.laws import p_value_of_counts


@st.composite
def possible_draws(draw_one):
    scores = draw_one(st.lists(st.floats(0, 1), min_size=20, max_size=120))
    n = draw_one(st.integers(1, len(scores) // 10))
    epsilon = draw_one(st.floats(0, 1))
    return scores, n, EpsilonGreedy(epsilon=epsilon, top_fraction=0.1), draw_one(st.integers(0, 2**32))


@settings(deadline=None)
@given(possible_draws())
def test_inclusion_probabilities_are_exact_and_sum_to_n(case):
    scores, n, design, seed = case
    drawn = draw(design=design, n=n, scores=scores, n_candidates=len(scores), rng=np.random.default_rng(seed))
    assert len(set(drawn.selected.tolist())) == n
    assert sum(stratum.n for stratum in drawn.strata) == n
    assert sum(stratum.size for stratum in drawn.strata) == len(scores)
    # Over all candidates: the chance of each times how many have it.
    assert sum(s.size * (s.n / s.size) for s in drawn.strata) == pytest.approx(n)
    for index, chance in zip(drawn.stratum, drawn.inclusion_probability, strict=True):
        assert chance == drawn.strata[index].n / drawn.strata[index].size
    # Over the draw: the Horvitz-Thompson estimate of a stratum's size is its size.
    for index, stratum in enumerate(drawn.strata):
        if stratum.n:
            assert (1 / drawn.inclusion_probability[drawn.stratum == index]).sum() == pytest.approx(stratum.size)


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
    one, two, other = (
        draw(design=EpsilonGreedy(), n=50, scores=scores, n_candidates=500, rng=np.random.default_rng(seed)).selected
        for seed in (1, 1, 2)
    )
    assert one.tolist() == two.tolist() != other.tolist()


@pytest.mark.parametrize(
    ("n", "scores", "message"),
    [(0, None, "at least 1 slot"), (4, None, "holds 3 of 3"), (1, [0.1, 0.2], "2 scores for 3 candidates")],
)
def test_an_impossible_draw_is_refused(n, scores, message):
    with pytest.raises(DesignError, match=message):
        draw(design=Uniform(), n=n, scores=scores, n_candidates=3, rng=np.random.default_rng(1))
