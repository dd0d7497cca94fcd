"""Groups, calibration, rank and ROC; and the likelihood of counts."""

from __future__ import annotations

import numpy as np
import pytest

from predictors.errors import PredictorError
from predictors.evaluation import (
    area_under_curve,
    auc_by_group,
    calibration,
    count_log_likelihood,
    negative_log_likelihood,
    rank_curve,
    roc_curve,
)


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    probabilities = np.round(rng.uniform(size=500), 2)
    return (rng.uniform(size=500) < probabilities).astype(int), probabilities, rng.uniform(0.2, 3, 500)


def test_groups_that_are_small_or_of_one_class_are_left_out_and_counted():
    labels = [1, 0, 1, 0, 1, 1, 1, 1, 1, 1, 0, 1]
    scores = [0.9, 0.1, 0.8, 0.2, 0.7, 0.5, 0.5, 0.5, 0.5, 0.5, 0.4, 0.4]
    groups = ["a"] * 5 + ["one class"] * 5 + ["few"] * 2
    areas = auc_by_group(labels, scores, groups)
    assert areas == {"groups": {"a": {"n": 5, "auc": 1.0}}, "too_small": 1, "one_class": 1}
    assert auc_by_group(labels, scores, groups, least=2)["groups"]["few"] == {"n": 2, "auc": 0.5}


def test_groups_may_be_pairs_of_tasks_and_come_best_first():
    groups = [("x", "y")] * 4 + [("y", "x")] * 4
    areas = auc_by_group([1, 0, 1, 0, 1, 0, 1, 0], [0.1, 0.9, 0.2, 0.8, 0.9, 0.1, 0.8, 0.2], groups, least=4)
    assert list(areas["groups"]) == [("y", "x"), ("x", "y")]


def test_rows_without_weight_make_no_group():
    areas = auc_by_group([1, 0] * 3, [0.9, 0.1] * 3, ["a"] * 6, sample_weight=[1, 1, 1, 1, 0, 0])
    assert areas["too_small"] == 1


def test_calibration_has_bins_of_equal_weight_and_never_parts_equal_predictions(rows):
    labels, probabilities, _ = rows
    curve = calibration(labels, probabilities, bins=10)
    assert len(curve["bins"]) == 10
    assert all(40 <= calibration_bin["n"] <= 60 for calibration_bin in curve["bins"])
    assert [calibration_bin["predicted"] for calibration_bin in curve["bins"]] == sorted(
        calibration_bin["predicted"] for calibration_bin in curve["bins"]
    )
    two = calibration([1, 0, 0, 0, 1, 1], [0.2, 0.2, 0.2, 0.2, 0.8, 0.8], bins=6)
    assert [
        (calibration_bin["n"], calibration_bin["predicted"], calibration_bin["observed"])
        for calibration_bin in two["bins"]
    ] == [
        (4, pytest.approx(0.2), 0.25),
        (2, pytest.approx(0.8), 1.0),
    ]
    assert two["expected_calibration_error"] == pytest.approx((4 * 0.05 + 2 * 0.2) / 6)


def test_equal_predictions_go_where_most_of_them_belong():
    bins = calibration([1] * 8, [0.1] * 3 + [0.5] * 4 + [0.9], bins=2)["bins"]
    assert [calibration_bin["n"] for calibration_bin in bins] == [3, 5]


def test_calibration_error_is_small_for_true_probabilities_and_large_for_shifted_ones(rows):
    labels, probabilities, weights = rows
    assert calibration(labels, probabilities, sample_weight=weights)["expected_calibration_error"] < 0.06
    assert calibration(labels, probabilities**3)["expected_calibration_error"] > 0.15


def test_the_interval_of_a_bin_is_wilsons():
    calibration_bin = calibration([1, 1, 0, 0, 0, 0, 0, 0, 0, 0], [0.2] * 10)["bins"][0]
    assert calibration_bin["interval"] == pytest.approx(
        [0.0567, 0.5098], abs=1e-4
    )  # statsmodels: proportion_confint(2, 10)
    doubled = calibration([1, 1, 0, 0, 0, 0, 0, 0, 0, 0], [0.2] * 10, sample_weight=[2.0] * 10)["bins"][0]
    assert doubled["interval"] == pytest.approx(calibration_bin["interval"])


def test_the_rank_curve_rises_for_a_good_predictor_and_spans_all_ranks(rows):
    labels, probabilities, _ = rows
    points = rank_curve(labels, probabilities, points=5)
    assert [point["rank"] for point in points] == pytest.approx([0.1, 0.3, 0.5, 0.7, 0.9], abs=0.02)
    observed = [point["observed"] for point in points]
    assert observed == sorted(observed)
    assert sum(point["n"] * point["observed"] for point in points) == labels.sum()


def test_the_area_under_the_roc_curve_is_the_metric(rows):
    labels, probabilities, weights = rows
    curve = roc_curve(labels, probabilities, sample_weight=weights)
    area = np.trapezoid(curve.true_positive_rate, curve.false_positive_rate)
    assert area == pytest.approx(area_under_curve(labels, probabilities, weights), abs=1e-12)
    assert (curve.true_positive_rate[0], curve.true_positive_rate[-1]) == (0.0, pytest.approx(1.0))


def test_curves_of_nothing_are_empty():
    assert calibration([], []) == {"bins": [], "expected_calibration_error": None}
    assert rank_curve([1], [0.4], sample_weight=[0]) == []
    assert len(roc_curve([1, 1], [0.2, 0.4]).true_positive_rate) == 0


def test_the_likelihood_of_counts_is_the_binomial_one():
    from scipy.stats import binom

    changed, answers, p = np.array([0, 3, 8, 5]), np.array([0, 9, 8, 12]), np.array([0.3, 0.4, 0.9, 0.2])
    likelihood = count_log_likelihood(changed, answers, p)
    assert likelihood["answers"] == 29
    assert likelihood["log_likelihood"] == pytest.approx(binom.logpmf(changed, answers, p).sum(), abs=1e-12)


def test_the_likelihood_per_answer_is_that_of_the_single_answers():
    likelihood = count_log_likelihood([2, 1], [3, 2], [0.7, 0.4])
    single = negative_log_likelihood([1, 1, 0, 1, 0], [0.7, 0.7, 0.7, 0.4, 0.4])
    assert likelihood["nll_per_answer"] == pytest.approx(single, abs=1e-12)
    assert count_log_likelihood([], [], [])["nll_per_answer"] is None


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: count_log_likelihood([3], [2], [0.5]), "changed: row 0"),
        (lambda: count_log_likelihood([0.5], [2], [0.5]), "changed: must be whole"),
        (lambda: count_log_likelihood([1], [2, 3], [0.5]), "answers: shape"),
        (lambda: calibration([1], [0.5], bins=0), "bins: 0"),
        (lambda: rank_curve([1], [0.5], points=0), "points: 0"),
        (lambda: auc_by_group([1, 0], [0.5, 0.5], ["a"]), "groups: 1"),
    ],
)
def test_input_that_cannot_be_used_is_refused_by_name(call, message):
    with pytest.raises(PredictorError, match=message):
        call()
