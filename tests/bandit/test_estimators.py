import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from bandit import (
    DesignError,
    EpsilonGreedy,
    compare_shares,
    deal,
    draw,
    hajek,
    horvitz_thompson,
    share_by_stratum,
    stratified_mean,
)


def test_shares_by_stratum_are_plain_and_absent_without_answers():
    top, rest, nobody = share_by_stratum(values=[1, 0, 1, 0], stratum=[0, 0, 0, 1], names=("top", "rest", "nobody"))
    assert (top.name, top.n, top.changed, top.share) == ("top", 3, 2, pytest.approx(2 / 3))
    assert (rest.n, rest.share) == (1, 0)
    assert (nobody.n, nobody.share) == (0, None)
    assert share_by_stratum(values=[], stratum=[], names=("all",))[0].share is None


def test_a_stratified_mean_weighs_each_stratum_by_its_size():
    estimate = stratified_mean(
        values=[1, 1, 0, 1, 0, 0], stratum=[0, 0, 0, 1, 1, 1], sizes=(10, 90), cluster=list("aabbcc")
    )
    assert estimate.value == pytest.approx(0.1 * 2 / 3 + 0.9 / 3)
    assert (estimate.n, estimate.n_clusters, estimate.degrees_of_freedom) == (6, 3, 2)
    # Linearised totals by hand: weight times residual from the stratum mean, summed over each person's answers.
    totals = np.array([0.1 / 3 * (2 / 3), 0.1 / 3 * (-2 / 3) + 0.9 / 3 * (2 / 3), 0.9 / 3 * (-2 / 3)])
    assert estimate.standard_error == pytest.approx(math.sqrt(3 / 2 * (totals**2).sum()))
    reach = stats.t.ppf(0.975, 2) * estimate.standard_error
    assert estimate.interval == pytest.approx((estimate.value - reach, estimate.value + reach))


def test_with_one_answer_a_person_and_one_stratum_the_error_is_the_textbook_one():
    values = np.random.default_rng(1).random(40)
    estimate = stratified_mean(values=values, stratum=np.zeros(40, dtype=int), sizes=(1000,), cluster=np.arange(40))
    assert estimate.standard_error == pytest.approx(values.std(ddof=1) / math.sqrt(40))
    assert hajek(values=values, probability=np.full(40, 0.04), cluster=np.arange(40)).standard_error == pytest.approx(
        values.std(ddof=1) / math.sqrt(40)
    )
    assert horvitz_thompson(
        values=values, probability=np.full(40, 0.04), universe_size=1000, cluster=np.arange(40)
    ).standard_error == pytest.approx(values.std(ddof=1) / math.sqrt(40))


@settings(deadline=None)
@given(
    sizes=st.lists(st.integers(5, 10_000), min_size=1, max_size=4),
    seed=st.integers(0, 2**32),
    data=st.data(),
)
def test_the_three_estimators_agree_under_full_response(sizes, seed, data):
    drawn = [data.draw(st.integers(1, min(size, 30))) for size in sizes]
    rng = np.random.default_rng(seed)
    stratum = np.repeat(np.arange(len(sizes)), drawn)
    values, cluster = rng.random(stratum.size) * 100, rng.integers(0, 5, size=stratum.size)
    probability = (np.array(drawn) / np.array(sizes))[stratum]
    means = [
        stratified_mean(values=values, stratum=stratum, sizes=sizes, cluster=cluster).value,
        horvitz_thompson(values=values, probability=probability, universe_size=sum(sizes), cluster=cluster).value,
        hajek(values=values, probability=probability, cluster=cluster).value,
    ]
    np.testing.assert_allclose(means, means[0], rtol=1e-12)


def test_hajek_is_a_weighted_mean_with_its_linearised_error():
    estimate = hajek(values=[1, 0, 1], probability=[0.5, 0.25, 0.25], cluster=["a", "a", "b"])
    assert estimate.value == pytest.approx((2 + 4) / 10)
    totals = np.array([0.2 * 0.4 - 0.4 * 0.6, 0.4 * 0.4])
    assert estimate.standard_error == pytest.approx(math.sqrt(2 * (totals**2).sum()))


def simulated_studies(seed, studies):
    """Truth and, a study: who answered which slot of an epsilon-greedy stage with booklets and a tenth of no-shows."""
    rng = np.random.default_rng(seed)
    logit = rng.normal(-1, 1.2, size=1500)
    scores = logit + rng.normal(0, 1.5, size=1500)
    nodes, weights = np.polynomial.hermite_e.hermegauss(30)
    truth = float((1 / (1 + np.exp(-(logit[:, None] + 0.8 * nodes[None, :])))).mean(axis=0) @ (weights / weights.sum()))
    design = EpsilonGreedy(epsilon=0.3, top_fraction=0.2)
    for _ in range(studies):
        drawn = draw(design=design, n=300, scores=scores, n_candidates=1500, rng=rng)
        person = np.zeros(300, dtype=int)
        for index, booklet in enumerate(
            deal(conflict_keys=[()] * 300, groups=drawn.stratum.tolist(), size=10, rng=rng)
        ):
            person[booklet] = index
        chance = 1 / (1 + np.exp(-(logit[drawn.selected] + rng.normal(0, 0.8, size=30)[person])))
        yield truth, drawn, person, rng.random(300) < chance, rng.random(30)[person] > 0.1


def test_estimates_recover_the_truth_and_their_intervals_cover_it():
    values, covered, naive, complete = [], [], [], []
    for truth, drawn, person, changed, answered in simulated_studies(seed=5, studies=600):
        estimate = stratified_mean(
            values=changed[answered],
            stratum=drawn.stratum[answered],
            sizes=[stratum.size for stratum in drawn.strata],
            cluster=person[answered],
        )
        values.append(estimate.value)
        covered.append(estimate.interval[0] <= truth <= estimate.interval[1])
        naive.append(changed[answered].mean())
        complete.append(
            horvitz_thompson(
                values=changed, probability=drawn.inclusion_probability, universe_size=1500, cluster=person
            ).value
        )
    error = np.std(values) / math.sqrt(600)
    assert abs(np.mean(values) - truth) < 3 * error
    assert abs(np.mean(complete) - truth) < 3 * np.std(complete) / math.sqrt(600)
    assert 0.93 <= np.mean(covered) <= 0.97
    # What the weights are for: the plain share of an adaptive stage is far off.
    assert np.mean(naive) - truth > 0.1


def test_comparing_shares_by_hand():
    result = compare_shares(
        first=[0, 0, 1, 0, 0, 1], first_cluster=list("aabbcc"), second=[1, 1, 0, 1], second_cluster=list("wxyz")
    )
    assert (result.first, result.second) == (pytest.approx(1 / 3), 0.75)
    assert result.difference == pytest.approx(0.75 - 1 / 3)
    assert result.ratio == pytest.approx(2.25)
    totals_first = np.array([-2 / 3, 1 / 3, 1 / 3]) / 6
    totals_second = np.array([0.25, 0.25, -0.75, 0.25]) / 4
    one, two = 3 / 2 * (totals_first**2).sum(), 4 / 3 * (totals_second**2).sum()
    assert result.standard_error == pytest.approx(math.sqrt(one + two))
    assert result.t == pytest.approx(result.difference / math.sqrt(one + two))
    assert result.degrees_of_freedom == pytest.approx((one + two) ** 2 / (one**2 / 2 + two**2 / 3))
    assert result.p_one_sided == pytest.approx(stats.t.sf(result.t, result.degrees_of_freedom), abs=1e-10)


def test_with_one_answer_a_person_the_comparison_is_welchs_test():
    rng = np.random.default_rng(3)
    first, second = rng.integers(0, 2, 30), rng.integers(0, 2, 50)
    result = compare_shares(first=first, first_cluster=np.arange(30), second=second, second_cluster=np.arange(50))
    welch = stats.ttest_ind(second, first, equal_var=False, alternative="greater")
    assert result.p_one_sided == pytest.approx(welch.pvalue, abs=1e-10)
    assert result.degrees_of_freedom == pytest.approx(welch.df)


def test_the_comparison_keeps_its_level_when_people_differ():
    rng = np.random.default_rng(6)
    cluster = np.repeat(np.arange(20), 15)
    rejected = 0
    for _ in range(1000):
        first, second = (
            rng.random(300) < (1 / (1 + np.exp(-(rng.normal(-0.9, 1.0, size=20)))))[cluster] for _ in range(2)
        )
        rejected += (
            compare_shares(first=first, first_cluster=cluster, second=second, second_cluster=cluster).p_one_sided < 0.05
        )
    assert stats.binomtest(rejected, 1000, 0.05).pvalue > 0.001


def test_stages_without_variation_show_nothing():
    result = compare_shares(first=[0, 0], first_cluster=[1, 2], second=[1, 1], second_cluster=[3, 4])
    assert math.isnan(result.t)
    assert (result.p_one_sided, result.ratio, result.standard_error) == (1.0, None, 0)


def test_one_person_gives_a_value_but_no_interval():
    estimate = stratified_mean(values=[1, 0], stratum=[0, 0], sizes=(9,), cluster=["a", "a"])
    assert estimate.value == 0.5
    assert math.isnan(estimate.standard_error)
    assert all(math.isnan(bound) for bound in estimate.interval)
    with pytest.raises(DesignError, match="at least 2 respondents, not 1"):
        compare_shares(first=[1, 0], first_cluster=["a", "a"], second=[1, 0], second_cluster=["b", "c"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"stratum": [0, 0]}, "stratum 1: has 90 candidates and 0 answers"),
        ({"stratum": [0, 2]}, r"integers 0\.\.1"),
        ({"stratum": [0]}, "1 strata for 2 answers"),
        ({"cluster": ["a"]}, "1 respondents for 2 answers"),
        ({"values": [1, float("nan")]}, "NaN or infinite"),
        ({"values": []}, "at least one answer"),
    ],
)
def test_answers_that_do_not_fit_together_are_refused(change, message):
    arguments = {"values": [1, 0], "stratum": [0, 1], "sizes": (10, 90), "cluster": ["a", "b"]} | change
    with pytest.raises(DesignError, match=message):
        stratified_mean(**arguments)


@pytest.mark.parametrize("probability", [[0, 0.5], [0.5, 1.1], [float("nan"), 0.5], [0.5]])
def test_probabilities_that_no_drawn_item_has_are_refused(probability):
    with pytest.raises(DesignError, match="probability"):
        hajek(values=[1, 0], probability=probability, cluster=["a", "b"])


def test_a_share_of_anything_but_0_and_1_is_refused():
    with pytest.raises(DesignError, match="0 \\(no change\\) or 1"):
        share_by_stratum(values=[0.5], stratum=[0], names=("all",))
