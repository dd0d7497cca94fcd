import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import bandit
from bandit import (
    DesignError,
    EpsilonGreedy,
    compare_shares,
    cross_fit_folds,
    deal,
    draw,
    hajek,
    hajek_difference,
    horvitz_thompson,
    majority_labels,
    naive_mean,
    share_by_stratum,
    stratified_difference,
    stratified_effect,
    stratified_mean,
)
from tests.bandit.laws import least_variance


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


@pytest.mark.slow
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
    single = [0.2 * 0.4, -0.4 * 0.6, 0.4 * 0.4]
    least = least_variance(single, [2, 4, 4], answered=[3] * 3, strata=1)
    assert estimate.standard_error == pytest.approx(math.sqrt(max(2 * (totals**2).sum(), least)))


def simulated_studies(seed, studies):
    """The truth, and for each study the answers to an epsilon-greedy stage with booklets and a tenth of no-shows."""
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


@pytest.mark.slow
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
    # This shows why weights are needed: the plain share of an adaptive stage is far off.
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
    first_part, two = 3 / 2 * (totals_first**2).sum(), 4 / 3 * (totals_second**2).sum()
    assert result.standard_error == pytest.approx(math.sqrt(first_part + two))
    assert result.t == pytest.approx(result.difference / math.sqrt(first_part + two))
    assert result.degrees_of_freedom == pytest.approx((first_part + two) ** 2 / (first_part**2 / 2 + two**2 / 3))
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


@pytest.mark.parametrize("people", [2, 50])
def test_stages_without_variation_give_no_p(people):
    result = compare_shares(
        first=np.zeros(people),
        first_cluster=np.arange(people),
        second=np.ones(people),
        second_cluster=people + np.arange(people),
    )
    assert math.isnan(result.t)
    assert (result.p_one_sided, result.ratio, result.standard_error, result.difference) == (None, None, 0, 1)


def test_answers_that_are_all_alike_give_no_interval_and_no_p():
    estimate = stratified_mean(values=[5.0] * 6, stratum=STRATUM, sizes=SIZES, cluster=PEOPLE)
    assert (estimate.value, estimate.standard_error, estimate.has_interval) == (5, 0, False)
    assert estimate.p_two_sided() is None and "nothing varies" in estimate.too_few


@pytest.mark.thorough
@pytest.mark.parametrize("rest", [5, 10, 20])
def test_means_with_a_thin_stratum_are_covered(rest):
    """A tenth of the candidates has nearly all answers; most answers are 0, the others 5 to 40 points."""
    rng = np.random.default_rng([14, rest])
    people, n = 20, 300
    chance = np.where(np.arange(n) < rest, 0.25, 0.6)
    truth = 20 * (0.9 * 0.25 + 0.1 * 0.6)
    covered = []
    for _ in range(500):
        values = np.where(rng.random(n) < chance, rng.choice([5, 10, 20, 25, 40], n), 0.0)
        estimate = stratified_mean(
            values=values,
            stratum=(np.arange(n) < rest).astype(int),
            sizes=(1200, 10_800),
            cluster=np.arange(n) % people,
        )
        covered.append(estimate.interval[0] <= truth <= estimate.interval[1])
    assert np.mean(covered) >= 0.93


def test_a_thin_stratum_borrows_the_spread_of_all_answers():
    values, stratum = [0.0, 10.0, 0.0, 10.0, 4.0, 4.0], [0, 0, 0, 0, 1, 1]
    estimate = stratified_mean(values=values, stratum=stratum, sizes=(10, 90), cluster=range(6))
    weights = [2.5] * 4 + [45.0] * 2
    single = [weight / 100 * far for weight, far in zip(weights, (-5, 5, -5, 5, 0, 0), strict=True)]
    between_people = 6 / 5 * sum(contribution**2 for contribution in single)
    least = least_variance(single, weights, answered=[4] * 4 + [2] * 2, strata=2)
    assert estimate.standard_error == pytest.approx(math.sqrt(least)) and least > 10 * between_people


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
        ({"cluster": ["a"]}, "1 clusters for 2 answers"),
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


STRATUM, SIZES, PEOPLE = [0, 0, 0, 1, 1, 1], (10, 90), list("aabbcc")


def test_a_domains_mean_is_a_ratio_of_weighted_totals_with_its_linearised_error():
    domain = np.array([True, False, True, True, True, False])
    estimate = stratified_mean(values=[1, 1, 0, 1, 0, 0], stratum=STRATUM, sizes=SIZES, cluster=PEOPLE, domain=domain)
    size = 10 * 2 / 3 + 90 * 2 / 3
    mean = (10 / 3 + 90 / 3) / size
    assert estimate.value == pytest.approx(mean)
    residual = np.array([1 - mean, 0, -mean, 1 - mean, -mean, 0])
    centred = residual - np.repeat([residual[:3].mean(), residual[3:].mean()], 3)
    scores = np.array([10 / 3] * 3 + [30] * 3) * centred / size
    totals = np.array([scores[:2].sum(), scores[2:4].sum(), scores[4:].sum()])
    weights = np.array([10 / 3] * 3 + [30] * 3)[domain]
    least = least_variance(scores[domain], weights, answered=[3] * 4, strata=4 / 3)
    assert estimate.standard_error == pytest.approx(math.sqrt(max(3 / 2 * (totals**2).sum(), least)))
    assert (estimate.n, estimate.n_clusters) == (4, 3)
    weighted = hajek(values=[1, 1, 0, 1, 0, 0], probability=[0.3] * 3 + [1 / 30] * 3, cluster=PEOPLE, domain=domain)
    assert weighted.value == pytest.approx(mean)


def test_people_outside_the_domain_do_not_count_as_its_respondents():
    estimate = stratified_mean(
        values=[1, 1, 0, 1, 0, 0],
        stratum=STRATUM,
        sizes=SIZES,
        cluster=PEOPLE,
        domain=np.array([True, True, True, True, False, False]),
    )
    assert (estimate.n, estimate.n_clusters, estimate.degrees_of_freedom) == (4, 2, 1)


@pytest.mark.parametrize(
    ("domain", "message"),
    [([1, 0], "true or false"), ([True] * 7, "for each of 6 answers"), ([False] * 6, "no answer lies in it")],
)
def test_a_domain_without_answers_or_of_another_shape_is_refused(domain, message):
    with pytest.raises(DesignError, match=message):
        stratified_mean(values=[1, 1, 0, 1, 0, 0], stratum=STRATUM, sizes=SIZES, cluster=PEOPLE, domain=domain)


def test_two_domains_are_compared_within_people():
    values, domain = [7.0, 5.0, 3.0, 1.0, 9.0, 7.0], np.array([True, False] * 3)
    estimate = stratified_difference(
        values=values, stratum=[0] * 6, sizes=(60,), cluster=PEOPLE, first=domain, second=~domain
    )
    assert estimate.value == pytest.approx(-2)
    # Everybody differs by the same 2 between the domains, so differences between people cancel out.
    assert estimate.standard_error == pytest.approx(0)
    assert estimate.p_two_sided() is None and not estimate.has_interval
    other = stratified_difference(
        values=[7.0, 5.0, 3.0, 2.0, 9.0, 6.0],
        stratum=[0] * 6,
        sizes=(60,),
        cluster=PEOPLE,
        first=domain,
        second=~domain,
    )
    paired = stats.ttest_1samp([-2, -1, -3], 0)
    assert other.p_two_sided() == pytest.approx(paired.pvalue)


def test_an_effect_weights_each_level_by_its_own_answers():
    # Stratum 0 holds 90 candidates and has 4 answers, 3 of them under the second level; stratum 1 holds 10 and has 2.
    second = np.array([False, True, True, True, False, True])
    arguments = {"stratum": [0, 0, 0, 0, 1, 1], "sizes": (90, 10), "cluster": np.arange(6)}
    values = [10.0, 20.0, 30.0, 40.0, 50.0, 80.0]
    estimate = stratified_effect(values=values, first=~second, second=second, **arguments)
    alone = [
        stratified_mean(
            values=np.array(values)[level],
            stratum=np.array([0, 0, 0, 0, 1, 1])[level],
            sizes=(90, 10),
            cluster=np.arange(6)[level],
        ).value
        for level in (second, ~second)
    ]
    assert estimate.value == pytest.approx(alone[0] - alone[1]) == pytest.approx(0.9 * 20 + 0.1 * 30)
    with pytest.raises(DesignError, match="stratum 1: has 10 candidates and 0 answers"):
        stratified_effect(
            values=values[:5],
            first=~second[:5],
            second=second[:5],
            stratum=[0] * 4 + [1],
            sizes=(90, 10),
            cluster=range(5),
        )


def test_people_who_answer_under_both_levels_are_compared_with_themselves():
    level = np.array([True, False] * 3)
    values = np.array([7.0, 5.0, 3.0, 2.0, 9.0, 6.0])
    arguments = {"stratum": [0] * 6, "sizes": (60,), "cluster": PEOPLE}
    within = stratified_effect(values=values, first=level, second=~level, **arguments)
    assert within.p_two_sided() == pytest.approx(stats.ttest_1samp([-2, -1, -3], 0).pvalue)
    domain = np.array([True, True, True, True, False, False])
    part = stratified_effect(values=values, first=level, second=~level, domain=domain, **arguments)
    assert part.value == pytest.approx((5 + 2) / 2 - (7 + 3) / 2) and (part.n, part.n_clusters) == (4, 2)


@pytest.mark.thorough
def test_the_standard_error_of_an_effect_is_what_draws_of_levels_and_pools_show():
    rng = np.random.default_rng(8)
    truth = np.sort(rng.random(4000))
    moved = truth * 0.5 + 0.3  # Under the second level low values rise and high ones fall.
    values, variances = [], []
    for _ in range(500):
        at = rng.choice(4000, size=120, replace=False)
        cut = draw(design=EpsilonGreedy(0.5, 0.3), n=60, scores=truth[at], n_candidates=120, rng=rng)
        second = rng.permutation(np.arange(60) % 2).astype(bool)
        selected = at[cut.selected]
        estimate = stratified_effect(
            values=np.where(second, moved[selected], truth[selected]),
            stratum=cut.stratum,
            sizes=[stratum.size for stratum in cut.strata],
            cluster=np.arange(60),
            first=~second,
            second=second,
            universe_size=4000,
        )
        values.append(estimate.value)
        variances.append(estimate.standard_error**2)
    assert abs(np.mean(values) - (moved - truth).mean()) < 3 * np.std(values) / math.sqrt(500)
    assert np.mean(variances) == pytest.approx(np.var(values), rel=0.2)


@pytest.mark.thorough
def test_a_pool_adds_its_spread_between_strata_to_the_variance():
    rng = np.random.default_rng(12)
    truth = np.sort(rng.random(5000))
    values, variances, conditional = [], [], []
    for _ in range(600):
        pool = rng.choice(truth, size=100, replace=False)
        cut = draw(design=EpsilonGreedy(0.5, 0.3), n=40, scores=pool, n_candidates=100, rng=rng)
        arguments = {
            "values": pool[cut.selected] + rng.normal(0, 0.02, size=40),
            "stratum": cut.stratum,
            "sizes": [stratum.size for stratum in cut.strata],
            "cluster": np.arange(40),
        }
        estimate = stratified_mean(**arguments, universe_size=5000)
        values.append(estimate.value)
        variances.append(estimate.standard_error**2)
        conditional.append(stratified_mean(**arguments).standard_error ** 2)
    assert abs(np.mean(values) - truth.mean()) < 3 * np.std(values) / math.sqrt(600)
    # The variance of 600 draws is known to about 6 %; without the pool's part the error would be larger.
    assert np.mean(variances) == pytest.approx(np.var(values), rel=0.18)
    assert np.mean(conditional) < 0.8 * np.var(values)


@pytest.mark.parametrize("times", [1, 2, 50])
def test_the_part_of_a_pool_is_that_of_its_strata_by_hand(times):
    arguments = {"values": [1, 2, 3, 4, 5, 9], "stratum": STRATUM, "sizes": SIZES, "cluster": PEOPLE}
    share = np.array(SIZES) / sum(SIZES)
    means = np.array(
        [np.mean([v for v, s in zip(arguments["values"], STRATUM, strict=True) if s == i]) for i in (0, 1)]
    )
    between = np.dot(share, (means - np.dot(share, means)) ** 2)
    alone = stratified_mean(**arguments).standard_error ** 2
    pooled = stratified_mean(**arguments, universe_size=times * sum(SIZES)).standard_error ** 2
    assert pooled - alone == pytest.approx((1 - 1 / times) / sum(SIZES) * between, rel=1e-9, abs=1e-15)


def test_a_pool_larger_than_its_universe_is_refused():
    with pytest.raises(DesignError, match="99 pairs cannot give a pool of 100"):
        stratified_mean(values=[1, 0], stratum=[0, 1], sizes=SIZES, cluster=["a", "b"], universe_size=99)


def test_a_share_near_0_has_wilsons_interval_and_says_when_answers_are_too_few():
    values = np.zeros(200)
    values[:4] = 1
    estimate = naive_mean(values=values, cluster=np.arange(200), share=True)
    assert estimate.method == "wilson"
    t = stats.t.ppf(0.975, 199)
    effective = 0.02 * 0.98 / estimate.standard_error**2
    root = math.sqrt(0.02 * 0.98 / effective + t**2 / (4 * effective**2))
    expected = [(0.02 + t**2 / (2 * effective) + sign * t * root) / (1 + t**2 / effective) for sign in (-1, 1)]
    assert estimate.interval == pytest.approx(expected)
    assert estimate.interval[0] > 0
    assert estimate.too_few == "4 answers of the rarer kind, fewer than 5"


def test_a_share_of_nothing_still_has_an_upper_bound():
    estimate = naive_mean(values=np.zeros(60), cluster=np.repeat(np.arange(20), 3), share=True)
    t = stats.t.ppf(0.975, 19)
    assert estimate.interval == pytest.approx((0, t**2 / 60 / (1 + t**2 / 60)))
    assert estimate.too_few == "20 respondents, fewer than 30; 0 answers of the rarer kind, fewer than 5"


def test_a_share_in_the_middle_keeps_students_interval_and_is_not_too_few():
    values = np.random.default_rng(3).random(300) < 0.4
    estimate = naive_mean(values=values, cluster=np.arange(300), share=True)
    assert (estimate.method, estimate.too_few) == ("t", "")
    assert estimate.interval == pytest.approx(
        stats.t.interval(0.95, 299, loc=estimate.value, scale=estimate.standard_error)
    )
    assert estimate.p_two_sided(null=0.4) == pytest.approx(stats.ttest_1samp(values.astype(float), 0.4).pvalue)


@pytest.mark.parametrize("people", [2, 3])
def test_a_share_of_few_people_never_ends_outside_0_and_1(people):
    values = np.tile([1.0, 1, 0, 0, 0, 1, 0, 1, 0, 1], 3 * people)
    values[: 14 + 7 * people] = 1
    estimate = naive_mean(values=values, cluster=np.repeat(np.arange(people), 30), share=True)
    t = stats.t.ppf(0.975, people - 1)
    assert estimate.value + t * estimate.standard_error > 1
    low, high = estimate.interval
    assert estimate.method == "wilson" and 0 < low < estimate.value < high < 1
    # A mean in points has no such ends.
    points = naive_mean(values=values, cluster=np.repeat(np.arange(people), 30))
    assert points.interval[1] == pytest.approx(estimate.value + t * estimate.standard_error)


def test_an_estimate_says_how_uneven_its_weights_are():
    estimate = stratified_mean(values=[1, 1, 0, 1, 0, 0], stratum=STRATUM, sizes=SIZES, cluster=PEOPLE)
    weight = np.array([10 / 3] * 3 + [30] * 3)
    assert estimate.effective_sample_size == pytest.approx(weight.sum() ** 2 / (weight**2).sum())
    assert estimate.weight_range == pytest.approx((weight.min() / weight.mean(), weight.max() / weight.mean()))


def test_a_tied_majority_is_no_change_and_is_flagged():
    labels = majority_labels(values=[1, 1, 0, 1, 0, 0, 0, 0, 1], item=list("aaabbcccc"))
    assert labels.item.tolist() == ["a", "b", "c"]
    assert labels.answered.tolist() == [3, 2, 4]
    assert labels.changed.tolist() == [2, 1, 1]
    assert labels.label.tolist() == [1, 0, 0]
    assert labels.tied.tolist() == [False, True, False]
    with pytest.raises(DesignError, match="2 items for 1 answers"):
        majority_labels(values=[1], item=["a", "b"])
    with pytest.raises(DesignError, match="0 \\(no change\\) or 1"):
        majority_labels(values=[0.5], item=["a"])


def test_folds_keep_respondents_and_items_apart():
    rng = np.random.default_rng(1)
    cluster, item = np.repeat(np.arange(11), 4), rng.integers(0, 30, size=44)
    folds = cross_fit_folds(cluster=cluster, item=item, rng=rng, folds=3)
    assert (np.sum([fold.held for fold in folds], axis=0) == 1).all()
    assert sorted(len(set(cluster[fold.held])) for fold in folds) == [3, 4, 4]
    for fold in folds:
        assert not set(cluster[fold.train]) & set(cluster[fold.held])
        assert not set(item[fold.train]) & set(item[fold.held])
        left_out = ~fold.train & ~fold.held
        assert set(item[left_out]) <= set(item[fold.held])


@pytest.mark.parametrize("folds", [1, 12])
def test_more_folds_than_respondents_are_refused(folds):
    with pytest.raises(DesignError, match=r"folds: must lie in 2\.\.11"):
        cross_fit_folds(cluster=np.arange(11), item=np.arange(11), rng=np.random.default_rng(1), folds=folds)
    with pytest.raises(DesignError, match="2 items for 11 answers"):
        cross_fit_folds(cluster=np.arange(11), item=[1, 2], rng=np.random.default_rng(1), folds=2)


def test_a_difference_between_domains_with_equal_chances_is_that_of_the_stratified_estimate() -> None:
    rng = np.random.default_rng(5)
    value, cluster, first = rng.normal(size=90), np.repeat(np.arange(30), 3), rng.random(90) < 0.4
    weighted = hajek_difference(values=value, probability=np.full(90, 0.2), cluster=cluster, first=first, second=~first)
    stratified = stratified_difference(
        values=value, stratum=np.zeros(90, dtype=int), sizes=[450], cluster=cluster, first=first, second=~first
    )
    assert weighted.value == pytest.approx(value[~first].mean() - value[first].mean())
    assert weighted.value == pytest.approx(stratified.value, abs=1e-12)
    assert weighted.standard_error == pytest.approx(stratified.standard_error, abs=1e-12)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize(
    ("field", "call"),
    [
        ("value", lambda values: bandit.leaving_test(left=[0, 1, 0], value=values, stratum=[0, 0, 0])),
        (
            "value",
            lambda values: bandit.staying_chances(
                value=values,
                sitting=[1, 2, 3],
                number=[1, 1, 1],
                left=[True] * 3,
                known=[True] * 3,
                cluster=[1, 2, 3],
                rng=np.random.default_rng(1),
            ),
        ),
        ("values", lambda values: bandit.error_contributions(values=values, weight=[1, 1, 1])),
        ("weight", lambda values: bandit.error_contributions(values=[1, 0, 1], weight=values)),
        (
            "contributions",
            lambda values: bandit.superpopulation_estimate(
                naive_mean(values=[1, 0, 1], cluster=[1, 2, 3]),
                contributions=values,
                shares=[1 / 3] * 3,
                cluster=[1, 2, 3],
                subjects=[[1, 2], [2, 3], [1, 3]],
            ),
        ),
        (
            "values",
            lambda values: bandit.bounds(
                stages=[
                    bandit.GivenItems(
                        values=values,
                        stratum=[0, 0, 0],
                        sizes=[9],
                        cluster=[1, 2, 3],
                        missing_stratum=[0],
                        missing_cluster=[1],
                    )
                ],
                plain=naive_mean(values=[1, 0, 1], cluster=[1, 2, 3], share=True),
                share=True,
            ),
        ),
        (
            "values",
            lambda values: bandit.compare_policies(
                values=values,
                selected=[0, 1, 2],
                logged=[0.5] * 4,
                first=[0.5] * 4,
                second=[0.2, 0.2, 0.8, 0.8],
                stratum=[0, 0, 0],
                planned=[3],
                cluster=[1, 2, 3],
            ),
        ),
        ("values", lambda values: bandit.stratified_mean(values=values, stratum=[0] * 3, sizes=[9], cluster=[1, 2, 3])),
    ],
)
def test_numbers_that_are_none_are_refused_everywhere(field, call, bad):
    with pytest.raises(DesignError, match=f"^{field}: NaN or infinite"):
        call([1.0, bad, 0.0])


def test_a_few_heavy_answers_leave_few_degrees_of_freedom():
    """(sum of a)^2 / sum of a^2 - 1, a being a person's sum of squared weights, and not people - 1."""
    chance = np.array([0.02, 0.02] + [0.5] * 28)
    cluster = np.arange(30) // 2
    values = np.where(cluster % 3 == 0, 9.0, 0.0) + np.arange(30) % 2
    squared = [sum(1 / chance[cluster == person] ** 2) for person in range(15)]
    expected = sum(squared) ** 2 / sum(value**2 for value in squared) - 1
    common = {"values": values, "probability": chance, "cluster": cluster}
    assert bandit.hajek(**common).degrees_of_freedom == pytest.approx(max(expected, 1))
    assert bandit.hajek(**{**common, "probability": np.full(30, 0.5)}).degrees_of_freedom == 14
    half = np.arange(30) % 2 == 0
    assert bandit.hajek_difference(**common, first=half, second=~half).degrees_of_freedom == pytest.approx(
        max(expected, 1)
    )
    milder = np.linspace(0.1, 0.9, 30)
    squared = np.bincount(cluster, weights=1 / milder**2)
    freedom = bandit.hajek(**{**common, "probability": milder}).degrees_of_freedom
    assert freedom == pytest.approx(squared.sum() ** 2 / (squared**2).sum() - 1) and 1 < freedom < 13
