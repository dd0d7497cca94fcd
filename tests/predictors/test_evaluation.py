from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from predictors.errors import PredictorError
from predictors.evaluation import area_under_curve, evaluate, negative_log_likelihood, parts_by_outcome

rows = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 20), st.floats(0.1, 10.0)), min_size=2, max_size=40).filter(
    lambda rows: len({label for label, _, _ in rows}) == 2
)


@pytest.mark.thorough
@settings(max_examples=60, deadline=None)
@given(rows)
def test_both_metrics_agree_with_scikit_learn_ties_and_weights_included(found):
    from sklearn.metrics import log_loss, roc_auc_score

    labels, probabilities, weights = (np.array(column, dtype=float) for column in zip(*found, strict=True))
    probabilities /= 20
    for weight in (None, weights):
        nll = negative_log_likelihood(labels, probabilities, weight)
        auc = area_under_curve(labels, probabilities, weight)
        assert nll == pytest.approx(log_loss(labels, probabilities, sample_weight=weight), abs=1e-12, rel=1e-12)
        assert auc == pytest.approx(roc_auc_score(labels, probabilities, sample_weight=weight), abs=1e-12)


def test_a_fraction_counts_as_two_weighted_rows():
    fractions = np.array([0.25, 1.0, 0.6])
    p = np.array([0.3, 0.8, 0.4])
    twice = np.concatenate([p, p])
    labels = np.array([1, 1, 1, 0, 0, 0])
    weights = np.concatenate([fractions, 1 - fractions])
    assert area_under_curve(fractions, p) == pytest.approx(area_under_curve(labels, twice, weights), abs=1e-15)
    assert negative_log_likelihood(fractions, p) == pytest.approx(
        negative_log_likelihood(labels, twice, weights), abs=1e-15
    )


def test_a_predictor_that_knows_only_the_outcome_is_no_better_than_chance_within_one():
    outcomes = np.array([1, 1, 1, 0, 0, 0])
    labels = np.array([0, 1, 0, 1, 1, 0])
    metrics = evaluate(labels, np.where(outcomes == 1, 0.33, 0.67), parts_by_outcome(outcomes))
    assert metrics["auc"]["previous_correct"] == 0.5
    assert metrics["auc"]["previous_incorrect"] == 0.5
    assert metrics["auc"]["overall"] == pytest.approx(6 / 9)


def test_each_part_is_measured_on_its_own_rows():
    metrics = evaluate([1, 0, 1, 0], [0.9, 0.2, 0.3, 0.6], parts_by_outcome([1, 1, 0, 0]))
    assert metrics["n"] == 4
    assert metrics["nll"]["previous_correct"] == pytest.approx(-(np.log(0.9) + np.log(0.8)) / 2)
    assert metrics["nll"]["previous_incorrect"] == pytest.approx(-(np.log(0.3) + np.log(0.4)) / 2)
    assert metrics["auc"] == {"overall": 0.75, "previous_correct": 1.0, "previous_incorrect": 0.0}


def test_what_cannot_be_measured_is_none():
    metrics = evaluate([1, 1], [0.9, 0.2], parts_by_outcome([1, 1]))
    assert metrics["auc"] == {"overall": None, "previous_correct": None, "previous_incorrect": None}
    assert metrics["nll"]["previous_incorrect"] is None
    assert evaluate([], [], parts_by_outcome([]))["nll"] == metrics["auc"]


def test_rows_without_weight_do_not_count():
    metrics = evaluate([1, 0, 1], [0.9, 0.2, 0.0], sample_weight=[1, 1, 0])
    assert metrics["n"] == 2
    assert metrics["auc"]["overall"] == 1.0


def test_the_parts_are_the_callers_and_all_rows_come_first():
    metrics = evaluate([1, 0, 1, 0], [0.9, 0.2, 0.3, 0.6], {"easy": [True, True, False, False]})
    assert metrics["auc"] == {"overall": 0.75, "easy": 1.0}
    assert list(evaluate([1, 0], [0.9, 0.2])["nll"]) == ["overall"]
    named = evaluate([1, 0], [0.9, 0.2], {"late": [True, False], "overall": [True, True]})
    assert list(named["auc"]) == ["overall", "late"]


@pytest.mark.parametrize(
    ("labels", "probabilities", "parts", "message"),
    [
        ([1, 0], [0.5], None, "probabilities: shape"),
        ([1, 2], [0.5, 0.5], None, "labels: must"),
        ([1, 0], [0.5, 1.5], None, "probabilities: must"),
        ([1, 0], [0.5, np.nan], None, "probabilities: holds"),
        ([1, 0], [0.5, 0.5], {"late": [True]}, r"parts: 'late' has shape \(1,\) and type bool for 2 labels"),
        ([1, 0], [0.5, 0.5], {"late": [1, 0]}, "parts: 'late' has shape .* and type int64"),
        ([1, 0], [0.5, 0.5], [1, 0], "parts: a list; give a mapping"),
        ([1, 0], [0.5, 0.5], {"overall": [True, False]}, "parts: 'overall' leaves out rows"),
    ],
)
def test_input_that_cannot_be_evaluated_is_refused_by_name(labels, probabilities, parts, message):
    with pytest.raises(PredictorError, match=message):
        evaluate(labels, probabilities, parts)


def test_outcomes_other_than_0_and_1_make_no_parts():
    with pytest.raises(PredictorError, match="outcomes: use 1 for correct"):
        parts_by_outcome([1, 2])
    with pytest.raises(PredictorError, match="outcomes: shape"):
        parts_by_outcome([[1, 0]])
