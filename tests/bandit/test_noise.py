import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from bandit import DesignError, auc_ceiling, false_change_rate, retest_correlation


def test_the_rate_of_false_change_is_a_share_by_people():
    rate = false_change_rate(changed=[0, 1, 0, 0, 0, 0], cluster=list("aabbcc"))
    assert rate.value == pytest.approx(1 / 6)
    assert (rate.n, rate.n_clusters, rate.rarer, rate.method) == (6, 3, 1, "wilson")


def test_a_retest_correlates_two_answers_to_the_same_items():
    rng = np.random.default_rng(1)
    first = rng.normal(size=60)
    second = 0.8 * first + rng.normal(0, 0.6, size=60)
    found = retest_correlation(first=first, second=second, cluster=np.arange(60))
    assert found.correlation == pytest.approx(stats.pearsonr(first, second).statistic)
    assert (found.n, found.n_clusters, found.same) == (60, 60, 0)
    # With one item per person the jackknife is close to the textbook's interval.
    assert found.interval == pytest.approx(stats.pearsonr(first, second).confidence_interval(), abs=0.04)


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
    found = retest_correlation(first=[0, 0, 0], second=[1, 0, 0], cluster=[1, 2, 3])
    assert math.isnan(found.correlation)
    assert all(math.isnan(bound) for bound in found.interval)
    assert found.same == pytest.approx(2 / 3)
    with pytest.raises(DesignError, match="equally long"):
        retest_correlation(first=[0], second=[1, 0], cluster=[1])
    with pytest.raises(DesignError, match="first: needs a flat array"):
        retest_correlation(first=[math.nan], second=[1], cluster=[1])


def best_auc(chance):
    """The AUC of a predictor that knows every item's chance, if all items are equally likely."""
    chance = np.asarray(chance, dtype=float)
    greater = np.sign(chance[:, None] - chance[None, :]) / 2 + 0.5
    weight = np.outer(chance, 1 - chance)
    return (greater * weight).sum() / weight.sum()


@given(st.lists(st.floats(0.01, 0.99), min_size=2, max_size=40))
def test_no_predictor_can_pass_the_ceiling(chances):
    chance = np.array(chances)
    base = chance.mean()
    retest = chance.var() / (base * (1 - base))
    ceiling = auc_ceiling(base_rate=base, false_change=chance.min(), retest=min(1.0, retest))
    assert best_auc(chance) <= ceiling + 1e-9


def test_the_ceiling_is_reached_by_evenly_spread_chances_and_by_all_or_nothing():
    even = np.linspace(0, 1, 1001)
    assert auc_ceiling(base_rate=0.5, retest=even.var() / 0.25) == pytest.approx(best_auc(even), abs=1e-3)
    split = np.array([0.1] * 7 + [1.0] * 3)
    assert auc_ceiling(base_rate=split.mean(), false_change=0.1) == pytest.approx(best_auc(split))
    assert auc_ceiling(base_rate=0.3) == 1.0
    assert auc_ceiling(base_rate=0.3, retest=-0.2) == 0.5
    assert auc_ceiling(base_rate=0.3, false_change=0.4) == 0.5


@pytest.mark.parametrize(
    "arguments", [{"base_rate": 0}, {"base_rate": 0.3, "false_change": -0.1}, {"base_rate": 0.3, "retest": 1.1}]
)
def test_rates_out_of_range_are_refused(arguments):
    with pytest.raises(DesignError, match="must be a"):
        auc_ceiling(**arguments)
