from __future__ import annotations

import numpy as np
import pytest

from predictors.calibration import Calibrator
from predictors.errors import PredictorError
from predictors.evaluation import area_under_curve, negative_log_likelihood

METHODS = ["platt", "temperature", "beta"]


def sigmoid(logits):
    return 1 / (1 + np.exp(-logits))


def squeezed(count=4000, seed=0):
    """Predictions whose logits are a third of the truth's, and answers."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(scale=2, size=count)
    return sigmoid(logits / 3), (rng.uniform(size=count) < sigmoid(logits)).astype(float)


@pytest.mark.parametrize("method", METHODS)
def test_it_unfolds_squeezed_predictions_and_keeps_their_order(method):
    p, y = squeezed()
    fresh, answers = squeezed(seed=1)
    fitted = Calibrator(method).fit(p, y).predict(fresh)
    assert negative_log_likelihood(answers, fitted) < negative_log_likelihood(answers, fresh) - 0.03
    assert area_under_curve(answers, fitted) == pytest.approx(area_under_curve(answers, fresh))
    assert Calibrator(method).fit(p, y).coefficients_[1:] == pytest.approx(3, rel=0.15)


def test_platt_finds_what_logistic_regression_finds():
    from sklearn.linear_model import LogisticRegression

    p, y = squeezed()
    logits = np.log(p / (1 - p))
    reference = LogisticRegression(C=np.inf, tol=1e-10).fit(logits[:, None], y)
    expected = [reference.intercept_[0], reference.coef_[0, 0]]
    assert Calibrator("platt").fit(p, y).coefficients_ == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize("method", METHODS)
def test_a_fraction_is_two_weighted_rows(method):
    p, f = np.array([0.2, 0.4, 0.7, 0.9]), np.array([0.1, 0.5, 0.5, 1.0])
    once = Calibrator(method).fit(p, f, [1.0, 2.0, 1.0, 3.0]).coefficients_
    twice = Calibrator(method).fit(
        np.tile(p, 2), np.repeat([1.0, 0.0], 4), np.concatenate([f, 1 - f]) * np.tile([1.0, 2.0, 1.0, 3.0], 2)
    )
    assert once == pytest.approx(twice.coefficients_, abs=1e-4)


@pytest.mark.parametrize("method", METHODS)
def test_the_gradient_is_that_of_the_loss(method, monkeypatch):
    """By central differences, at places where the prior pulls in every direction."""
    from scipy import optimize

    matches, minimize = [], optimize.minimize

    def look(loss, start, **how):
        rng = np.random.default_rng(2)
        for _ in range(5):
            at = start + rng.normal(scale=2, size=len(start))
            steps = 1e-6 * np.eye(len(at))
            differences = [(loss(at + step)[0] - loss(at - step)[0]) / 2e-6 for step in steps]
            matches.append(loss(at)[1] == pytest.approx(differences, rel=1e-4, abs=1e-6))
        return minimize(loss, start, **how)

    monkeypatch.setattr(optimize, "minimize", look)
    Calibrator(method).fit([0.2, 0.4, 0.7], [0.0, 1.0, 1.0], [0.01, 0.02, 0.01])
    assert matches == [True] * 5


@pytest.mark.parametrize("method", METHODS)
def test_a_few_rows_separated_perfectly_leave_it_finite_and_near_the_identity(method):
    fitted = Calibrator(method).fit([0.4, 0.6], [0.0, 1.0])
    assert fitted.predict([0.0, 1.0]) == pytest.approx([0, 1], abs=1e-3)
    assert abs(fitted.predict([0.6])[0] - 0.6) < 0.25


def test_it_never_turns_the_order_around():
    p, y = squeezed()
    assert Calibrator("platt").fit(p, 1 - y).coefficients_[1] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.5, 1.5], [0, 1]), "probabilities"),
        (([0.5, 0.5], [0, 2]), "labels"),
        (([0.5, 0.5], [0]), "for 1 labels; give one number a row"),
        (([], []), "labels: there are none"),
        (([0.5], [1], [-1]), "sample_weight"),
    ],
)
def test_what_cannot_be_learnt_from_is_refused_by_name(arguments, message):
    with pytest.raises(PredictorError, match=message):
        Calibrator().fit(*arguments)


def test_an_unknown_method_is_refused_with_the_known_ones():
    with pytest.raises(PredictorError, match="choose one of platt, temperature, beta"):
        Calibrator("isotonic").fit([0.5], [1])


def test_a_temperature_moves_no_even_odds():
    p, y = squeezed()
    fitted = Calibrator("temperature").fit(p, np.maximum(y, np.arange(len(y)) % 3 == 0))
    assert fitted.coefficients_[0] == 0 and fitted.predict([0.5])[0] == 0.5
