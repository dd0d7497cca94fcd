from __future__ import annotations

import numpy as np
import pytest

from predictors.errors import PredictorError
from predictors.evaluation import negative_log_likelihood
from predictors.majority import (
    MajorityCalibrator,
    are_averages,
    fit_concentration,
    holds_majorities,
    logit_line,
    majority_probability,
)


def answers(p, responses, concentration, seed=0):
    rng = np.random.default_rng(seed)
    return rng.binomial(responses, rng.beta(p * concentration, (1 - p) * concentration))


@pytest.mark.parametrize(("count", "concentration"), [(8, 4.0), (9, 4.0), (3, 0.7)])
def test_the_probability_matches_drawn_people(count, concentration):
    p = np.repeat([0.1, 0.35, 0.8], 40_000)
    drawn = (answers(p, count, concentration) > count / 2).reshape(3, -1).mean(axis=1)
    assert majority_probability([0.1, 0.35, 0.8], count, concentration) == pytest.approx(drawn, abs=0.01)


def test_people_who_follow_the_prediction_exactly_are_binomial():
    assert majority_probability([0.4], 3, np.inf)[0] == pytest.approx(3 * 0.4**2 * 0.6 + 0.4**3)
    assert majority_probability([0.4], 3, 1e7)[0] == pytest.approx(majority_probability([0.4], 3, np.inf)[0], abs=1e-4)


def test_a_tie_is_no_majority():
    assert majority_probability([0.5], 2, np.inf)[0] == pytest.approx(0.25)


def test_one_person_is_their_own_majority_and_certainty_stays():
    p = np.array([0.0, 0.3, 1.0])
    assert (majority_probability(p, 1, 2.0) == p).all()
    assert majority_probability([0.0, 1.0], 9, 5.0) == pytest.approx([0, 1], abs=1e-4)


def test_the_line_of_logits_is_the_tangent_at_even_odds():
    intercept, slope = logit_line(np.array([9, 8, 1, 9]), 5.0)
    assert intercept[[0, 2]] == pytest.approx([0, 0], abs=1e-6)
    assert intercept[1] < -0.1
    assert slope[2] == pytest.approx(1)
    logit = 0.2
    expected = majority_probability([1 / (1 + np.exp(-logit))], 9, 5.0)[0]
    assert slope[0] * logit == pytest.approx(np.log(expected / (1 - expected)), abs=1e-3)
    assert slope[0] == slope[3]


@pytest.mark.parametrize("concentration", [1.5, 30.0])
def test_counts_tell_the_scatter_of_people(concentration):
    p = np.random.default_rng(1).uniform(0.1, 0.9, 2000)
    counts = np.full(2000, 12)
    scatter = fit_concentration(p, answers(p, 12, concentration) / 12, counts, np.ones(2000))
    assert scatter == pytest.approx(concentration, rel=0.3)


def test_single_answers_tell_nothing_of_the_scatter():
    ones = np.ones(5, dtype=np.int64)
    assert fit_concentration(np.full(5, 0.5), np.array([0, 1, 1, 0, 1.0]), ones, np.ones(5), default=7.0) == 7.0


def test_few_counts_move_the_scatter_little_from_what_was_set():
    """By likelihood alone two people who agree, where even odds were predicted, would show no concentration at all."""
    for default in (2.0, 5.0, 30.0):
        scatter = fit_concentration(np.array([0.5]), np.array([1.0]), np.array([2]), np.ones(1), default=default)
        assert default / 3 < scatter < default


def test_a_share_of_nine_answers_recalibrates_as_nine_single_answers_do():
    p, shares = np.array([0.2, 0.4, 0.6, 0.8]), np.array([4, 3, 6, 9]) / 9
    each = np.concatenate([[1.0] * round(9 * share) + [0.0] * round(9 * (1 - share)) for share in shares])
    rng = np.random.default_rng(6)
    single_p, single = rng.uniform(0.1, 0.9, 30), rng.integers(0, 2, 30).astype(float)
    whole = MajorityCalibrator().fit(
        np.concatenate([p, single_p]), np.concatenate([shares, single]), [9] * 4 + [1] * 30, kind="shares"
    )
    rows = MajorityCalibrator().fit(np.concatenate([np.repeat(p, 9), single_p]), np.concatenate([each, single]))
    grid = np.linspace(0.05, 0.95, 10)
    assert whole.predict(grid, 1) == pytest.approx(rows.predict(grid, 1), abs=1e-6)


@pytest.mark.parametrize("kind", ["shares", "majorities"])
def test_a_predictor_of_one_person_is_made_to_predict_majorities(kind):
    rng = np.random.default_rng(2)
    truth = rng.uniform(0.05, 0.95, 1500)
    squeezed = 1 / (1 + np.exp(-np.log(truth / (1 - truth)) / 2))
    changed = answers(truth, 9, 10.0)
    majority = (changed > 4.5).astype(float)
    learn, fresh = slice(0, 1000), slice(1000, None)
    labels = changed / 9 if kind == "shares" else majority
    fitted = MajorityCalibrator(concentration=10.0).fit(squeezed[learn], labels[learn], 9)
    best = negative_log_likelihood(majority[fresh], majority_probability(truth[fresh], 9, 10.0))
    loss = negative_log_likelihood(majority[fresh], fitted.predict(squeezed[fresh], 9))
    assert loss < best + 0.02
    assert loss < negative_log_likelihood(majority[fresh], squeezed[fresh]) - 0.05


def test_single_answers_recalibrate_and_leave_the_scatter_to_the_setting():
    p = np.random.default_rng(3).uniform(0.2, 0.8, 3000)
    y = (np.random.default_rng(4).uniform(size=3000) < p).astype(float)
    fitted = MajorityCalibrator(concentration=6.0).fit(p, y)
    assert fitted.predict(p[:5], 9) == pytest.approx(majority_probability(p[:5], 9, 6.0), abs=0.04)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: majority_probability([0.5], 0, 1.0), "responses: must be whole numbers of 1 or more"),
        (lambda: majority_probability([0.5], [1, 2], 1.0), r"responses: shape \(2,\) for 1 rows"),
        (lambda: majority_probability([1.5], 3, 1.0), "probabilities"),
        (lambda: majority_probability([0.5], 3, 0.0), "concentration"),
        (lambda: MajorityCalibrator("line").fit([0.5], [1]), "method: 'line' is not known"),
        (lambda: MajorityCalibrator().fit([0.5, 0.5], [1, 0.3], 3, kind="majorities"), "majorities are 0 or 1"),
        (lambda: MajorityCalibrator().fit([0.5], [1], 3, kind="counts"), "kind: 'counts' is not known"),
        (lambda: MajorityCalibrator().fit([0.5], [1, 0]), r"probabilities: shape \(1,\) for 2 labels"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(call, message):
    with pytest.raises(PredictorError, match=message):
        call()


def test_averages_of_answers_are_told_from_a_teachers_chances() -> None:
    averages, chances = np.array([1 / 3, 0.25, 5 / 9, 29 / 30]), np.array([0.123456, 0.98765432, 0.4142135])
    assert are_averages(averages) and not are_averages(chances)
    # More than half of them must be: a teacher may say a half now and then.
    assert not are_averages(np.append(chances, averages[:3])) and are_averages(np.append(chances, averages))
    assert not are_averages(np.array([31 / 37])) and not are_averages(np.empty(0))


def test_labels_of_several_answers_that_are_all_whole_are_majorities() -> None:
    several = np.array([9, 1, 9])
    assert holds_majorities(np.array([1.0, 0.3, 0.0]), several)
    assert not holds_majorities(np.array([1.0, 0.0, 0.4]), several)
    assert not holds_majorities(np.array([1.0, 0.0, 1.0]), several, "shares")
    assert not holds_majorities(np.array([1.0, 0.0, 1.0]), np.ones(3, dtype=np.int64))


@pytest.mark.parametrize("kind", ["shares", "majorities"])
def test_a_row_of_weight_two_counts_as_that_row_twice(kind):
    rng = np.random.default_rng(3)
    p, counts = rng.uniform(0.1, 0.9, 60), rng.integers(3, 12, 60)
    shares = answers(p, counts, 4.0) / counts
    labels = shares if kind == "shares" else (shares > 0.5).astype(float)
    weights = np.where(np.abs(shares - 0.5) > 0.3, 6, 1)  # Those of the ends alone: so they scatter more.
    weighted = MajorityCalibrator().fit(p, labels, counts, weights, kind)
    repeated = MajorityCalibrator().fit(*(np.repeat(of, weights) for of in (p, labels, counts)), kind=kind)
    assert weighted.concentration_ == repeated.concentration_
    assert weighted.predict(p, 5) == pytest.approx(repeated.predict(p, 5), abs=1e-6)
