import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bandit import DesignError, EpsilonGreedy, Uniform
from tests.bandit.laws import p_value_of_counts


def test_uniform_puts_everything_into_one_stratum():
    cut = Uniform().strata(None, np.random.default_rng(1), n_candidates=5)
    assert (cut.names, cut.sizes, cut.label.tolist()) == (("all",), (5,), [0] * 5)
    assert Uniform().strata([0.1, 0.2], np.random.default_rng(1)).sizes == (2,)
    assert Uniform().allocate(3, (5,)) == (3,)


def test_uniform_needs_to_know_how_many_candidates_there_are():
    with pytest.raises(DesignError, match="n_candidates"):
        Uniform().strata(None, np.random.default_rng(1))


@pytest.mark.parametrize("bad", [{"epsilon": -0.01}, {"epsilon": 1.01}, {"epsilon": float("nan")}])
def test_an_epsilon_outside_0_to_1_is_refused(bad):
    with pytest.raises(DesignError, match="epsilon: must lie in"):
        EpsilonGreedy(**bad)


@pytest.mark.parametrize("fraction", [0, 1, -0.1, 1.1, float("nan")])
def test_a_top_fraction_outside_0_to_1_is_refused(fraction):
    with pytest.raises(DesignError, match="top_fraction"):
        EpsilonGreedy(top_fraction=fraction)


@settings(deadline=None)
@given(st.lists(st.integers(0, 5), min_size=2, max_size=60), st.sampled_from([0.01, 0.07, 0.1, 0.3, 0.5]))
def test_no_score_in_rest_is_above_one_in_top(scores, fraction):
    cut = EpsilonGreedy(top_fraction=fraction).strata(scores, np.random.default_rng(3))
    score = np.array(scores)
    assert cut.names == ("top", "rest")
    assert cut.sizes == (np.count_nonzero(cut.label == 0), np.count_nonzero(cut.label == 1))
    assert score[cut.label == 0].min() >= score[cut.label == 1].max()


@pytest.mark.parametrize(("fraction", "m", "top"), [(0.1, 3000, 300), (0.07, 100, 7), (0.1, 11, 2), (0.1, 3, 1)])
def test_top_holds_the_ceiling_of_its_fraction_without_float_slips(fraction, m, top):
    assert EpsilonGreedy(top_fraction=fraction).strata(np.arange(m), np.random.default_rng(1)).sizes == (top, m - top)


def test_ties_at_the_cut_are_broken_at_random():
    rng = np.random.default_rng(11)
    scores = np.array([2.0, 1, 1, 1, 1, 1, 0, 0, 0, 0])
    counts = np.zeros(10)
    for _ in range(3000):
        counts += EpsilonGreedy(top_fraction=0.3).strata(scores, rng).label == 0
    assert counts[0] == 3000
    assert counts[6:].sum() == 0
    assert p_value_of_counts(counts[1:6], draws=3000, n=2) > 0.001


@pytest.mark.parametrize("scores", [[0.1, float("nan"), 0.3], [0.1, float("inf"), 0.2], [], [[0.1, 0.2]]])
def test_scores_without_an_order_are_refused(scores):
    with pytest.raises(DesignError, match="scores"):
        EpsilonGreedy().strata(scores, np.random.default_rng(1))


def test_epsilon_greedy_needs_scores():
    with pytest.raises(DesignError, match="needs a score"):
        EpsilonGreedy().strata(None, np.random.default_rng(1), n_candidates=10)


def test_a_single_candidate_leaves_an_empty_stratum_and_is_refused():
    with pytest.raises(DesignError, match="nobody in rest"):
        EpsilonGreedy().strata([1.0], np.random.default_rng(1))
    with pytest.raises(DesignError, match="stratum rest is empty"):
        EpsilonGreedy().allocate(1, (5, 0))


@pytest.mark.parametrize(
    ("epsilon", "n", "expected"),
    [(0.1, 300, (270, 30)), (0.5, 5, (2, 3)), (0.5, 7, (4, 3)), (0.7, 5, (2, 3)), (0.0, 9, (9, 0)), (1.0, 9, (0, 9))],
)
def test_slots_are_shared_out_by_epsilon_with_halves_to_the_even_number(epsilon, n, expected):
    assert EpsilonGreedy(epsilon=epsilon).allocate(n, (1000, 1000)) == expected


def test_more_slots_than_candidates_in_a_stratum_are_refused_with_the_sizes():
    with pytest.raises(DesignError, match="top gets 270 of 300 slots but holds 200 of 2000 candidates"):
        EpsilonGreedy().allocate(300, (200, 1800))
    with pytest.raises(DesignError, match="holds 5 of 5"):
        Uniform().allocate(6, (5,))


def test_an_allocation_for_other_strata_or_of_no_slots_is_refused():
    with pytest.raises(DesignError, match="top, rest"):
        EpsilonGreedy().allocate(3, (10,))
    with pytest.raises(DesignError, match="cannot plan -3 slots"):
        Uniform().allocate(-3, (10,))
