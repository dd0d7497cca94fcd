import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import bandit
from bandit import DesignError, false_change_rate, retest_correlation
from tests.bandit import noise_cases


def test_the_rate_of_false_change_is_a_share_by_people():
    rate = false_change_rate(changed=[0, 1, 0, 0, 0, 0], cluster=list("aabbcc"))
    assert rate.value == pytest.approx(1 / 6)
    assert (rate.n, rate.n_clusters, rate.rarer, rate.method) == (6, 3, 1, "wilson")


def test_a_retest_correlates_two_answers_to_the_same_items():
    rng = np.random.default_rng(1)
    first = rng.normal(size=60)
    second = 0.8 * first + rng.normal(0, 0.6, size=60)
    retest = retest_correlation(first=first, second=second, cluster=np.arange(60))
    assert retest.correlation == pytest.approx(stats.pearsonr(first, second).statistic)
    assert (retest.n, retest.n_clusters, retest.same) == (60, 60, 0)
    # With one item per person the jackknife is close to the textbook's interval.
    assert retest.interval == pytest.approx(stats.pearsonr(first, second).confidence_interval(), abs=0.04)


@pytest.mark.thorough
def test_the_retests_interval_covers_with_several_items_a_person():
    rng = np.random.default_rng(2)
    people, covered = np.repeat(np.arange(40), 3), 0
    for _ in range(200):
        level = rng.normal(size=40)[people]
        first, second = level + rng.normal(size=120), level + rng.normal(size=120)
        low, high = retest_correlation(first=first, second=second, cluster=people).interval
        covered += low <= 0.5 <= high
    assert covered / 200 == pytest.approx(0.95, abs=0.05)


def test_a_round_without_variation_has_no_correlation():
    retest = retest_correlation(first=[0, 0, 0], second=[1, 0, 0], cluster=[1, 2, 3])
    assert math.isnan(retest.correlation)
    assert all(math.isnan(bound) for bound in retest.interval)
    assert retest.same == pytest.approx(2 / 3)
    with pytest.raises(DesignError, match="equally long"):
        retest_correlation(first=[0], second=[1, 0], cluster=[1])
    with pytest.raises(DesignError, match="first: needs a flat array"):
        retest_correlation(first=[0, math.nan], second=[1, 0], cluster=[1, 2])


def best_auc(chance):
    """The AUC of a predictor that knows every item's chance, if all items are equally likely."""
    chance = np.asarray(chance, dtype=float)
    greater = np.sign(chance[:, None] - chance[None, :]) / 2 + 0.5
    weight = np.outer(chance, 1 - chance)
    return (greater * weight).sum() / weight.sum()


def variance_of(chance):
    """As if the items' chances were known: no error."""
    estimate = bandit.naive_mean(values=(np.asarray(chance) - np.mean(chance)) ** 2, cluster=np.arange(len(chance)))
    return replace(estimate, standard_error=0.0, degrees_of_freedom=10.0)


def known(share):
    return replace(bandit.naive_mean(values=[0, 1], cluster=[1, 2]), value=share, standard_error=0.0)


@given(st.lists(st.floats(0.01, 0.99), min_size=2, max_size=40))
def test_no_predictor_of_items_can_pass_the_limit_with_everything_known(chances):
    limit = bandit.auc_limit(between_items=variance_of(chances), base_rate=known(np.mean(chances))).limit
    assert best_auc(chances) <= limit + 1e-9


def test_the_limit_is_reached_by_evenly_spread_chances():
    even = np.linspace(0, 1, 1001)
    limit = bandit.auc_limit(between_items=variance_of(even), base_rate=known(0.5))
    assert limit.limit == pytest.approx(best_auc(even), abs=1e-3)
    assert bandit.auc_limit(between_items=variance_of([0.3, 0.3]), base_rate=known(0.3)).limit == 0.5
    assert bandit.auc_limit(between_items=variance_of([0.0, 1.0]), base_rate=known(0.5)).limit == 1.0


def test_uneven_false_change_does_not_lower_the_limit():
    """The share that changes without evidence, .1 on average, differs between items: .904 can be reached."""
    chance = np.array([0.01] * 60 + [0.35] * 20 + [0.98] * 20)
    limit = bandit.auc_limit(between_items=variance_of(chance), base_rate=known(chance.mean())).limit
    assert best_auc(chance) > 0.9 and limit >= best_auc(chance)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_without_both_kinds_of_answers_there_is_no_limit(share):
    with pytest.raises(DesignError, match="base_rate: must be a share between 0 and 1"):
        bandit.auc_limit(between_items=variance_of([0.3, 0.5]), base_rate=known(share))


def test_the_variance_between_items_is_the_mean_product_of_two_peoples_deviations():
    value = [1, 1, 1, 0, 0, 0, 1, 0, 1, 1]
    item = [1, 1, 2, 2, 3, 3, 3, 4, 4, 5]
    cluster = ["a", "b", "a", "c", "b", "c", "d", "a", "d", "e"]
    stratum = [0, 0, 0, 0, 1, 1, 1, 1, 1, 1]
    variance = bandit.item_variance(
        values=value, item=item, cluster=cluster, stratum=stratum, sizes=[100, 300], mean=0.4
    )
    three = ((-0.4) * (-0.4) + 2 * (-0.4) * 0.6) / 3
    expected = 0.25 * (0.36 - 0.24) / 2 + 0.75 * (three - 0.24) / 2
    assert variance.value == pytest.approx(expected) and (variance.n, variance.n_clusters) == (4, 4)
    again = bandit.item_variance(
        values=[*value, 0],
        item=[*item, 1],
        cluster=[*cluster, "a"],
        stratum=[*stratum, 0],
        sizes=[100, 300],
        mean=0.4,
    )
    assert again.value == variance.value  # A person's second answer to an item tells of the person.
    # Where everybody says the same, nothing varies, and degrees of freedom are those of the items.
    alike = bandit.item_variance(
        values=[1] * 10, item=item, cluster=cluster, stratum=stratum, sizes=[100, 300], mean=1.0
    )
    assert alike.value == 0 and alike.degrees_of_freedom > 0 and not alike.has_interval


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"stratum": [0, 0, 1, 1]}, "stratum 0: 1 items that two people answered, fewer than 2"),
        ({"values": [0, 1, 2, 1]}, "values: need 0 or 1"),
        ({"cluster": [1, 2, 1]}, "must be equally long"),
    ],
)
def test_too_few_items_of_two_people_are_refused(changes, message):
    arguments = {"values": [0, 1, 1, 1], "item": [1, 1, 2, 2], "cluster": [1, 2, 1, 2], "stratum": [0] * 4}
    with pytest.raises(DesignError, match=message):
        bandit.item_variance(**(arguments | changes), sizes=[5, 5], mean=0.5)


def test_a_retest_is_of_all_items_where_weights_say_so():
    """Half of the repeats are of items of which there are nine times as many."""
    rng = np.random.default_rng(3)
    rare, many = rng.normal(size=2000), rng.normal(size=2000)
    first = np.concatenate([rare, many])
    second = np.concatenate([rare, rng.normal(size=2000)])
    people = np.arange(4000) % 50
    plain = retest_correlation(first=first, second=second, cluster=people)
    weighted = retest_correlation(first=first, second=second, cluster=people, weight=np.repeat([1.0, 9.0], 2000))
    assert plain.correlation == pytest.approx(0.5, abs=0.05) and weighted.correlation == pytest.approx(0.1, abs=0.05)
    assert weighted.interval[0] < weighted.correlation < weighted.interval[1] < plain.interval[0]
    assert weighted.same == pytest.approx(0.1, abs=0.01)
    with pytest.raises(DesignError, match="weight: needs a number above 0"):
        retest_correlation(first=first, second=second, cluster=people, weight=np.zeros(4000))


def test_a_weighted_retest_leaves_out_one_person_at_a_time_with_the_weights():
    rng = np.random.default_rng(5)
    people, weight = np.repeat(np.arange(12), 3), rng.choice([1.0, 9.0], size=36)
    first = rng.normal(size=36)
    second = first + rng.normal(size=36)

    def z(rows):
        covariance = np.cov(first[rows], second[rows], aweights=weight[rows])
        return math.atanh(covariance[0, 1] / math.sqrt(covariance[0, 0] * covariance[1, 1]))

    without = np.array([z(people != person) for person in range(12)])
    reach = stats.t.ppf(0.975, 11) * math.sqrt(11 / 12 * ((without - without.mean()) ** 2).sum())
    centre = z(people >= 0)
    retest = retest_correlation(first=first, second=second, cluster=people, weight=weight)
    assert retest.interval == pytest.approx((math.tanh(centre - reach), math.tanh(centre + reach)), rel=1e-9)


@pytest.mark.thorough
@pytest.mark.parametrize("habits", [noise_cases.PERSON, noise_cases.CARRY_OVER, noise_cases.EXTREMITY, noise_cases.ALL])
@pytest.mark.parametrize("uneven", [False, True])
def test_the_limit_is_below_the_best_auc_in_at_most_5_percent_of_studies(habits, uneven):
    limits = [
        noise_cases.limit(np.random.default_rng([17, seed]), habits, uneven=uneven, people=60, stages=2)
        for seed in range(120)
    ]
    assert np.mean([limit < best for limit, best in limits]) <= 0.05
    assert np.mean([limit for limit, _best in limits]) < 1 or uneven  # It says something, on the whole.
