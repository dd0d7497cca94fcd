"""Clustered variances, intervals and correlations: what every figure of the project is made of."""

import math
from itertools import combinations

import numpy as np
import pytest

import bandit
from predictors.evaluation import curves

PERSON, ITEM = np.repeat(np.arange(8), 5), np.tile(np.arange(10), 4)


def by(added, *kinds):
    keys = list(zip(*kinds, strict=True))
    sums = np.array([sum(part for part, own in zip(added, keys, strict=True) if own == key) for key in set(keys)])
    return len(sums) / (len(sums) - 1) * (sums**2).sum()


def test_by_one_kind_it_is_that_of_the_clusters_totals() -> None:
    added = np.random.default_rng(2).normal(size=40)
    names = np.array(["ann", "bob", "cyd", "dan", "eve", "fay", "gus", "hal"])[PERSON]
    assert bandit.clustered_variance(added, names) == pytest.approx(by(added, PERSON))
    assert bandit.clustered_variance(added, 10**12 * PERSON) == pytest.approx(by(added, PERSON))
    # Clusters of one are no clusters: this is the variance of a mean.
    assert bandit.clustered_variance((added - added.mean()) / 40, np.arange(40)) == pytest.approx(
        added.var(ddof=1) / 40
    )


def test_by_two_kinds_it_is_their_sum_less_what_both_share_and_at_least_the_smaller() -> None:
    raised = 0
    for seed in range(40):
        added = np.random.default_rng(seed).normal(size=40)
        people, items = by(added, PERSON), by(added, ITEM)
        plain = people + items - by(added, PERSON, ITEM)
        raised += plain < min(people, items)
        expected = max(plain, min(people, items))
        assert bandit.clustered_variance(added, PERSON, ITEM) == pytest.approx(expected)
        assert bandit.crossed_variance(people, items, by(added, PERSON, ITEM)) == pytest.approx(expected)
    assert 0 < raised < 40


def test_by_three_kinds_what_two_share_comes_off_and_what_all_share_is_added_again() -> None:
    rng = np.random.default_rng(5)
    added, kinds = rng.normal(size=60) + 1, [rng.integers(4, size=60) for _kind in range(3)]
    plain = sum((-1) ** (size + 1) * by(added, *some) for size in (1, 2, 3) for some in combinations(kinds, size))
    assert bandit.clustered_variance(added, *kinds) == pytest.approx(max(plain, min(by(added, kind) for kind in kinds)))


def test_a_kind_with_one_cluster_says_nothing() -> None:
    assert math.isnan(bandit.clustered_variance(np.ones(40), np.zeros(40)))
    assert math.isnan(bandit.clustered_variance(np.ones(40), np.zeros(40), ITEM))


def test_the_covariance_of_figures_agrees_with_the_variance_of_each_and_of_sums() -> None:
    added = np.random.default_rng(7).normal(size=(40, 2)) + np.repeat(np.eye(2)[[0, 1] * 4], 5, axis=0)
    covariance = bandit.clustered_covariance(added, PERSON, ITEM)
    for place in (0, 1):
        assert covariance[place, place] == pytest.approx(bandit.clustered_variance(added[:, place], PERSON, ITEM))
    assert covariance.sum() == pytest.approx(bandit.clustered_variance(added.sum(axis=1), PERSON, ITEM))


def test_a_figure_whose_variance_is_raised_keeps_its_correlations() -> None:
    for seed in range(200):
        added = np.random.default_rng(seed).normal(size=(40, 2))
        single = [np.array([by(column, kind) for column in added.T]) for kind in (PERSON, ITEM)]
        plain = single[0] + single[1] - np.array([by(column, PERSON, ITEM) for column in added.T])
        if (plain > 0).all() and (plain < np.minimum(*single)).any():
            break
    covariance, across = bandit.clustered_covariance(added, PERSON, ITEM), added[:, 0] + added[:, 1]
    both = by(across, PERSON) + by(across, ITEM) - by(across, PERSON, ITEM)
    correlation = (both - plain.sum()) / 2 / math.sqrt(plain[0] * plain[1])
    assert covariance[0, 1] / math.sqrt(covariance[0, 0] * covariance[1, 1]) == pytest.approx(correlation)


def test_degrees_of_freedom_are_the_fewest_effective_clusters_less_one() -> None:
    assert bandit.clustered_freedom(np.ones(40), PERSON, ITEM) == pytest.approx(7)
    assert bandit.clustered_freedom(np.where(PERSON == 0, 1e9, 1.0), PERSON, ITEM) == 1


@pytest.mark.parametrize("arguments", [(np.ones(3), np.zeros(2)), (np.ones(3),), (np.ones((3, 1)), np.zeros(3))])
def test_shapes_that_do_not_fit_are_refused(arguments) -> None:
    with pytest.raises(bandit.DesignError):
        bandit.clustered_variance(*arguments)


# Intervals


def test_students_interval_on_three_scales() -> None:
    t = bandit.student_t_quantile(0.975, 9)
    assert bandit.student_interval(2.0, 0.5, 9) == pytest.approx((2 - t / 2, 2 + t / 2))
    assert bandit.student_interval(2.0, 0.5) == pytest.approx((2 - 0.97998, 2 + 0.97998), abs=1e-5)
    assert bandit.student_interval(0.9, 0.5, 9, within=(0.0, 1.0)) == (0.0, 1.0)
    low, high = bandit.student_interval(0.9, 0.05, 9, scale="correlation") or ()
    assert [math.atanh(low), math.atanh(high)] == pytest.approx(math.atanh(0.9) + np.array([-1, 1]) * t * 0.05 / 0.19)
    low, high = bandit.student_interval(0.9, 0.05, 9, scale="share") or ()
    logits = [math.log(end / (1 - end)) for end in (low, high)]
    assert logits == pytest.approx(math.log(9) + np.array([-1, 1]) * t * 0.05 / 0.09)


@pytest.mark.parametrize(
    ("value", "error", "scale"),
    [(math.nan, 1, "plain"), (1, 0, "plain"), (1, math.nan, "plain"), (1, 0.1, "correlation"), (0, 0.1, "share")],
)
def test_there_is_no_interval_without_an_error_or_at_the_end_of_a_scale(value, error, scale) -> None:
    assert bandit.student_interval(value, error, 9, scale=scale) is None


def test_wilsons_interval_is_that_of_the_textbook() -> None:
    expected = {0: (0, 0.2775), 5: (0.2366, 0.7634), 10: (0.7225, 1)}
    for hits, ends in expected.items():
        assert bandit.wilson_interval(hits / 10, 10) == pytest.approx(ends, abs=1e-4)
    # Few clusters make it wider, as far as Student's t is above the normal quantile.
    low, high = bandit.wilson_interval(0.5, 10, 4)
    assert low < expected[5][0] and high > expected[5][1]
    for share, answers in ((1.2, 10), (0.5, 0), (math.nan, 10)):
        with pytest.raises(bandit.DesignError):
            bandit.wilson_interval(share, answers)


def test_the_library_of_predictors_which_may_not_import_this_one_has_the_same_interval() -> None:
    rng = np.random.default_rng(3)
    weight = rng.uniform(1, 3, 40)
    label = (rng.random(40) < 0.3).astype(float)
    (whole,) = curves.calibration(label, np.full(40, 0.3), sample_weight=weight)["bins"]
    size = bandit.effective_size(weight)
    assert whole["interval"] == pytest.approx(bandit.wilson_interval(np.average(label, weights=weight), size))


def test_effective_answers_are_what_the_variance_says_and_never_more_than_there_are() -> None:
    assert bandit.effective_answers(0.5, 0.01, 100) == pytest.approx(25)
    assert bandit.effective_answers(0.5, 0.001, 100) == 100
    assert bandit.effective_answers(1.0, 0.0, 100) == bandit.effective_answers(0.5, math.nan, 100) == 100


# Correlations


def test_correlations_are_those_of_numpy_with_weights_as_repetitions_and_ties_in_the_middle() -> None:
    rng = np.random.default_rng(4)
    x, y, times = 1e6 + rng.normal(size=30), rng.integers(5, size=30), rng.integers(1, 4, size=30)
    repeated = np.corrcoef(np.repeat(x, times), np.repeat(y, times))[0, 1]
    assert bandit.weighted_correlation(x, y, times) == pytest.approx(repeated)
    assert bandit.weighted_correlation(x, y) == pytest.approx(np.corrcoef(x, y)[0, 1])
    assert bandit.ranks([3.0, 1.0, 3.0, 9.0]).tolist() == [2.5, 1, 2.5, 4]
    assert math.isnan(bandit.weighted_correlation(x, np.ones(30))) and math.isnan(bandit.weighted_correlation([], []))
