from itertools import pairwise

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
    inclusion_probabilities,
)
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


@pytest.mark.slow
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
    with pytest.raises(DesignError, match="leaves none in rest"):
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


def test_a_floor_keeps_every_chance_near_the_uniform_one():
    plain, floored = EpsilonGreedy(epsilon=0.1), EpsilonGreedy(epsilon=0.1, floor=0.5)
    assert plain.allocate(100, (100, 900)) == (90, 10)
    assert floored.allocate(100, (100, 900)) == (55, 45)
    # With epsilon 1 the shares would give top no slots; the floor gives it some.
    assert EpsilonGreedy(epsilon=1.0, floor=0.5).allocate(100, (100, 900)) == (5, 95)
    assert Uncertainty(epsilon=0.1, floor=0.5).allocate(100, (100, 900)) == (55, 45)


@pytest.mark.parametrize("floor", [-0.1, 1, 1.5, float("nan")])
def test_a_floor_outside_0_to_1_is_refused(floor):
    with pytest.raises(DesignError, match="floor"):
        EpsilonGreedy(floor=floor)


def test_a_floor_that_whole_slots_cannot_hold_is_refused_with_the_sizes():
    with pytest.raises(DesignError, match=r"floor: 0\.99 needs 1 slots in top and 9 in rest, and there are 9"):
        EpsilonGreedy(floor=0.99).allocate(9, (100, 900))


def test_uncertainty_takes_what_is_closest_to_a_half():
    scores = np.array([0.02, 0.45, 0.9, 0.52, 0.7, 0.1, 0.99, 0.3, 0.8, 0.05])
    cut = Uncertainty(top_fraction=0.2).strata(scores, np.random.default_rng(1))
    assert cut.names == ("uncertain", "rest")
    assert np.flatnonzero(cut.label == 0).tolist() == [1, 3]


def test_uncertainty_takes_what_the_ensemble_disagrees_about():
    cut = Uncertainty(top_fraction=0.25, by="disagreement").strata(
        [0.5, 0.5, 0.9, 0.9], np.random.default_rng(1), disagreement=[0.1, 0.0, 0.3, 0.2]
    )
    assert np.flatnonzero(cut.label == 0).tolist() == [2]


def test_uncertainty_is_refused_without_what_it_ranks_by():
    rng = np.random.default_rng(1)
    with pytest.raises(DesignError, match='by: must be "closeness" or "disagreement", not \'entropy\''):
        Uncertainty(by="entropy")
    with pytest.raises(DesignError, match="disagreement: by"):
        Uncertainty(by="disagreement").strata([0.1] * 20, rng)
    with pytest.raises(DesignError, match="needs a score for each"):
        Uncertainty().strata(None, rng, n_candidates=20)
    with pytest.raises(DesignError, match=r"probabilities, not -2\.\.3"):
        Uncertainty().strata(np.linspace(-2, 3, 20), rng)


def softmax_chances(scores, *, n, temperature, floor):
    return inclusion_probabilities(
        design=Softmax(temperature=temperature, floor=floor),
        n=n,
        scores=scores,
        n_candidates=len(scores),
        rng=np.random.default_rng(0),
    )


@settings(deadline=None)
@given(
    scores=st.lists(st.floats(0, 1), min_size=2, max_size=80),
    temperature=st.floats(1e-6, 1e6),
    floor=st.floats(0.01, 1),
    data=st.data(),
)
def test_softmax_chances_sum_to_n_exactly_and_hold_the_floor(scores, temperature, floor, data):
    n = data.draw(st.integers(1, len(scores)))
    chance = softmax_chances(scores, n=n, temperature=temperature, floor=floor)
    assert sum(int(share * 2**40) for share in chance) == n * 2**40
    assert chance.max() <= 1
    assert chance.min() >= floor * n / len(scores) - 2**-39
    order = np.argsort(scores)
    assert (np.diff(chance[order]) >= -(2**-39)).all()


def test_softmax_is_proportional_to_the_exponential_of_the_score():
    scores = np.array([0.0, 0.1, 0.2, 0.3])
    chance = softmax_chances(scores, n=1, temperature=0.1, floor=0.0)
    np.testing.assert_allclose(chance, np.exp(scores / 0.1) / np.exp(scores / 0.1).sum(), atol=1e-11)
    floored = softmax_chances(scores, n=1, temperature=0.1, floor=0.4)
    np.testing.assert_allclose(floored, 0.4 / 4 + 0.6 * chance, atol=1e-11)


def test_shares_above_one_are_capped_and_handed_on_in_proportion():
    chance = softmax_chances([5.0, 1.0, 0.0, 0.0], n=2, temperature=1.0, floor=0.0)
    rest = np.exp([1.0, 0.0, 0.0])
    np.testing.assert_allclose(chance, [1.0, *(rest / rest.sum())], atol=1e-11)


def test_the_lowest_temperatures_take_the_best_and_share_ties():
    assert softmax_chances([1.0, 0.0, 0.5, 0.0], n=2, temperature=1e-300, floor=0.0).tolist() == [1, 0, 1, 0]
    assert softmax_chances([1.0, 0.0, 0.5, 0.5], n=2, temperature=1e-9, floor=0.0).tolist() == [1, 0, 0.5, 0.5]


@pytest.mark.parametrize(
    ("settings_", "message"),
    [({"temperature": 0}, "temperature"), ({"temperature": float("inf")}, "temperature"), ({"floor": 1.1}, "floor")],
)
def test_a_softmax_out_of_range_is_refused(settings_, message):
    with pytest.raises(DesignError, match=message):
        Softmax(**settings_)


def test_softmax_needs_scores_and_enough_candidates():
    with pytest.raises(DesignError, match="needs a score"):
        Softmax().strata(None, np.random.default_rng(1), n_candidates=5)
    with pytest.raises(DesignError, match="holds 3 of 3"):
        softmax_chances([0.1, 0.2, 0.3], n=4, temperature=1.0, floor=0.1)


def test_the_test_set_takes_both_ends_and_nothing_between():
    cut = TestSet(pairs=3, top_fraction=0.2, bottom_fraction=0.1).strata(np.arange(20), np.random.default_rng(1))
    assert (cut.names, cut.sizes) == (("top", "bottom", "middle"), (4, 2, 14))
    assert np.flatnonzero(cut.label == 0).tolist() == [16, 17, 18, 19]
    assert np.flatnonzero(cut.label == 1).tolist() == [0, 1]
    assert TestSet(pairs=3, top_fraction=0.2, bottom_fraction=0.1).allocate(27, cut.sizes) == (2, 1, 0)


@pytest.mark.slow
def test_ties_at_both_ends_of_a_test_set_are_broken_at_random():
    rng = np.random.default_rng(5)
    counts = np.zeros((2, 10))
    for _ in range(3000):
        label = TestSet(pairs=2, top_fraction=0.2, bottom_fraction=0.3).strata(np.zeros(10), rng).label
        counts[0] += label == 0
        counts[1] += label == 1
    assert p_value_of_counts(counts[0], draws=3000, n=2) > 0.001
    assert p_value_of_counts(counts[1], draws=3000, n=3) > 0.001


def test_a_test_set_says_how_many_candidates_it_needs():
    with pytest.raises(
        DesignError, match=r"328 from the top 0\.01 need 32701 candidates, there are 12000, with 120 in"
    ):
        TestSet().allocate(4428, TestSet().ends(12000).sizes)
    assert TestSet().allocate(4428, TestSet().ends(32701).sizes) == (328, 164, 0)
    with pytest.raises(DesignError, match=r"328 from the top 0\.01 need 32701"):
        TestSet().allocate(4428, TestSet().ends(32700).sizes)


@pytest.mark.parametrize(
    ("settings_", "message"),
    [
        ({"pairs": 0}, "pairs: must be at least 1"),
        ({"responses_per_pair": 0}, "responses_per_pair"),
        ({"top_fraction": 0}, "top_fraction"),
        ({"bottom_fraction": 1}, "bottom_fraction"),
        ({"top_share": 1.2}, "top_share"),
    ],
)
def test_a_test_set_out_of_range_is_refused(settings_, message):
    with pytest.raises(DesignError, match=message):
        TestSet(**settings_)


def test_a_test_set_with_other_slots_or_overlapping_ends_is_refused():
    with pytest.raises(DesignError, match="492 pairs with 9 responses each are 4428 slots, not 1320"):
        TestSet().allocate(1320, (400, 400, 30000))
    with pytest.raises(DesignError, match="5 and 5 of 10 candidates leave none between"):
        TestSet(top_fraction=0.5, bottom_fraction=0.5).ends(10)


def proportional_chances(scores, *, n, trade_off, power):
    return inclusion_probabilities(
        design=Proportional(trade_off=trade_off, power=power),
        n=n,
        scores=scores,
        n_candidates=len(scores),
        rng=np.random.default_rng(0),
    )


@pytest.mark.thorough
@settings(deadline=None)
@given(
    scores=st.lists(st.floats(0, 1), min_size=2, max_size=80),
    trade_off=st.floats(0.02, 1),
    power=st.floats(0.01, 100),
    data=st.data(),
)
def test_proportional_chances_sum_to_n_exactly_and_hold_the_even_share(scores, trade_off, power, data):
    n = data.draw(st.integers(1, len(scores)))
    chance = proportional_chances(scores, n=n, trade_off=trade_off, power=power)
    assert sum(int(share * 2**40) for share in chance) == n * 2**40
    assert chance.max() <= 1
    assert chance.min() >= trade_off * n / len(scores) - 2**-39
    assert (np.diff(chance[np.argsort(scores)]) >= -(2**-39)).all()


def test_proportional_chances_are_a_power_of_the_score_beside_an_even_share():
    scores = np.array([0.1, 0.2, 0.4, 0.8])
    chance = proportional_chances(scores, n=1, trade_off=0.3, power=3.0)
    np.testing.assert_allclose(chance, 0.3 / 4 + 0.7 * scores**3 / (scores**3).sum(), atol=1e-11)


def test_proportional_chances_above_one_are_capped_and_handed_on():
    scores = np.array([0.9, 0.2, 0.1, 0.1])
    chance = proportional_chances(scores, n=2, trade_off=0.2, power=2.0)
    rest = scores[1:] ** 2
    np.testing.assert_allclose(chance, [1.0, *(0.1 + 0.7 * rest / rest.sum())], atol=1e-11)


def test_a_trade_off_of_one_is_uniform_whatever_the_scores():
    assert set(proportional_chances([0.0, 0.3, 0.9, 1.0], n=2, trade_off=1.0, power=16)) == {0.5}


def test_scores_of_zero_get_the_even_share_alone():
    chance = proportional_chances([0.0, 0.0, 0.5, 0.5], n=1, trade_off=0.4, power=1.0)
    np.testing.assert_allclose(chance, [0.1, 0.1, 0.4, 0.4], atol=1e-11)


@pytest.mark.parametrize(
    ("settings_", "message"),
    [
        ({"trade_off": 0.01}, "trade_off: must lie between 0.02"),
        ({"trade_off": 1.1}, "trade_off"),
        ({"power": 0}, "power: must be above 0"),
        ({"power": 101}, "power"),
    ],
)
def test_a_proportional_design_out_of_range_is_refused(settings_, message):
    with pytest.raises(DesignError, match=message):
        Proportional(**settings_)


@pytest.mark.parametrize("scores", [[-0.1, 0.5], [0.5, 1.2]])
def test_proportional_needs_chances(scores):
    with pytest.raises(DesignError, match="needs predicted chances"):
        Proportional().strata(scores, np.random.default_rng(1))
    with pytest.raises(DesignError, match="needs a score"):
        Proportional().strata(None, np.random.default_rng(1), n_candidates=5)


def test_the_rest_is_cut_into_strata_of_equal_size_by_score():
    scores = np.random.default_rng(1).permutation(103)
    design = EpsilonGreedy(epsilon=0.5, top_fraction=0.1, rest_strata=5)
    cut = design.strata(scores, np.random.default_rng(2))
    assert cut.names == ("top", "rest 1", "rest 2", "rest 3", "rest 4", "rest 5")
    assert cut.sizes == (11, 19, 19, 18, 18, 18)
    spans = [(scores[cut.label == index].min(), scores[cut.label == index].max()) for index in range(6)]
    assert all(low > high for (low, _), (_, high) in pairwise(spans))
    allocation = design.allocate(20, cut.sizes)
    assert allocation == (10, 2, 2, 2, 2, 2)
    assert design.allocate(21, cut.sizes) == (10, 3, 2, 2, 2, 2)
    chance = design.inclusion_probabilities(scores=scores, strata=cut, allocation=allocation)
    assert chance.sum() == pytest.approx(20)
    assert set(chance[cut.label == 5]) == {2 / 18}


def test_ties_at_the_cuts_of_the_rest_are_broken_at_random():
    rng, counts = np.random.default_rng(4), np.zeros(20)
    for _ in range(1000):
        counts += EpsilonGreedy(epsilon=0.5, top_fraction=0.5, rest_strata=2).strata(np.zeros(20), rng).label == 1
    assert p_value_of_counts(counts, draws=1000, n=5) > 0.001


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: EpsilonGreedy(rest_strata=0), "rest_strata: must be from 1 to 20"),
        (lambda: EpsilonGreedy(rest_strata=21), "rest_strata"),
        (
            lambda: EpsilonGreedy(rest_strata=8).strata(np.arange(8), np.random.default_rng(1)),
            "7 candidates are no 8 strata",
        ),
        (
            lambda: EpsilonGreedy(epsilon=0.2, rest_strata=3).allocate(10, (9, 30, 30, 30)),
            "3 strata of the rest get 2 of 10 slots",
        ),
    ],
)
def test_strata_of_the_rest_that_cannot_be_are_refused(call, message):
    with pytest.raises(DesignError, match=message):
        call()


def test_the_least_slots_of_a_floor_may_be_all_there_are_and_each_stratum_gets_its_own():
    assert EpsilonGreedy(epsilon=0.0, top_fraction=0.5, floor=0.5).allocate(2, (1, 1)) == (1, 1)
    assert EpsilonGreedy(epsilon=0.0, floor=0.5).allocate(100, (100, 900)) == (55, 45)
    # As many slots in the rest as it has strata is enough.
    assert EpsilonGreedy(epsilon=0.3, rest_strata=3).allocate(10, (9, 30, 30, 30)) == (7, 1, 1, 1)


def test_a_cut_leaves_at_least_one_candidate_on_its_other_side():
    assert EpsilonGreedy(top_fraction=0.9).ends(10).sizes == (9, 1)
    with pytest.raises(DesignError, match="leaves none in rest"):
        EpsilonGreedy(top_fraction=0.91).ends(10)
    assert TestSet(top_fraction=0.5, bottom_fraction=0.4).ends(10).sizes == (5, 4, 1)


def test_either_end_of_a_test_set_may_be_the_one_that_needs_most_candidates():
    design = TestSet(pairs=30, responses_per_pair=1, top_fraction=0.1, bottom_fraction=0.01, top_share=0.5)
    assert design.least_candidates == 1401
    assert design.allocate(30, design.ends(1401).sizes) == (15, 15, 0)
    with pytest.raises(DesignError, match=r"15 from the bottom 0\.01 need 1401 candidates"):
        design.allocate(30, design.ends(1400).sizes)
    assert TestSet(pairs=30, top_fraction=0.01, bottom_fraction=0.1, top_share=0.5).least_candidates == 1401


EVERY_DESIGN = [
    Uniform(),
    EpsilonGreedy(),
    Uncertainty(),
    Uncertainty(by="disagreement"),
    Softmax(),
    Proportional(),
    TestSet(pairs=4, responses_per_pair=1, top_fraction=0.2, bottom_fraction=0.2),
]


def chances_of(design, scores, disagreement=None):
    rng = np.random.default_rng(1)
    return inclusion_probabilities(
        design=design, n=4, scores=scores, n_candidates=len(scores), rng=rng, disagreement=disagreement
    )


@pytest.mark.parametrize("design", EVERY_DESIGN, ids=repr)
def test_what_a_design_says_of_itself_is_what_it_does(design):
    scores = np.random.default_rng(2).permutation(np.linspace(0.05, 0.95, 40))
    strata = design.strata(scores, np.random.default_rng(1), disagreement=scores)
    chances = chances_of(design, scores, scores)
    strata_differ = any(np.ptp(chances[strata.label == label]) > 1e-9 for label in np.unique(strata.label))
    assert strata_differ == design.is_unequal
    assert refuses(design, scores) == design.needs_disagreement
    # By disagreement the scores decide nothing at all.
    assert refuses(design, 10 * scores, scores) == (design.needs_chances and not design.needs_disagreement)


def refuses(design, scores, disagreement=None):
    try:
        chances_of(design, scores, disagreement)
    except DesignError:
        return True
    return False
