from __future__ import annotations

import json

import numpy as np
import pytest

from predictors import artifacts, registry
from predictors.errors import PredictorError
from predictors.features import Features, features_of
from predictors.settings import LogisticSettings
from tests.predictors.tiny import some_pairs


def _outcomes(pairs):
    return np.array([pair.outcome for pair in pairs])


def _features(pairs):
    same = [pair.evidence_task == pair.target_task for pair in pairs]
    return {
        "previous_correct": _outcomes(pairs)[:, None],
        "same_task": np.column_stack([_outcomes(pairs), same]).astype(float),
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", ["previous_correct", "same_task"])
@pytest.mark.parametrize("weighted", [False, True])
def test_it_agrees_with_scikit_learn_without_penalty(name, weighted):
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(5)
    pairs = some_pairs(300, seed=5)
    labels = (rng.random(300) < np.where(_outcomes(pairs) == 1, 0.3, 0.6)).astype(float)
    weights = rng.integers(1, 5, 300).astype(float) if weighted else None
    reference = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-12, max_iter=1000)
    reference.fit(_features(pairs)[name], labels, weights)
    predictor = registry.create(name).fit(pairs, labels, weights)
    assert predictor.predict_proba(pairs) == pytest.approx(reference.predict_proba(_features(pairs)[name]), abs=1e-6)
    assert predictor.coef_ == pytest.approx(reference.coef_, abs=1e-6)


def test_a_fraction_teaches_the_same_as_two_weighted_rows():
    pairs = some_pairs(40, seed=2)
    fractions = np.random.default_rng(2).random(40)
    once = registry.create("same_task").fit(pairs, fractions)
    twice = registry.create("same_task").fit(
        pairs + pairs, np.repeat([1.0, 0.0], 40), np.concatenate([fractions, 1 - fractions])
    )
    assert once.coef_ == pytest.approx(twice.coef_, abs=1e-9)


def test_an_outcome_that_decides_the_label_gives_probabilities_near_0_and_1():
    pairs = some_pairs(30, seed=1)
    labels = 1.0 - _outcomes(pairs)
    changed = registry.create("previous_correct").fit(pairs, labels).predict_proba(pairs)[:, 1]
    assert changed == pytest.approx(labels, abs=1e-6)


def test_pairs_of_one_outcome_alone_give_the_mean():
    pairs = [pair._replace(outcome=1) for pair in some_pairs(10)]
    labels = [1, 0, 0, 0, 1, 0, 0, 0, 0, 0]
    changed = registry.create("same_task").fit(pairs, labels)
    assert registry.create("previous_correct").fit(pairs, labels).predict_proba(pairs)[:, 1] == pytest.approx(0.2)
    assert changed.predict_proba(pairs)[:, 1].mean() == pytest.approx(0.2)


@pytest.mark.filterwarnings("error")
def test_of_equally_good_solutions_the_smallest_is_taken():
    pairs = [pair._replace(outcome=1) for pair in some_pairs(10)]
    fitted = registry.create("previous_correct").fit(pairs, [1, 0, 0, 0, 1, 0, 0, 0, 0, 0])
    assert (fitted.intercept_[0], fitted.coef_[0, 0]) == pytest.approx((np.log(0.25) / 2,) * 2, abs=1e-9)
    twice = [Features({}, {"x": x, "again": x}) for x in (0.0, 1.0, 2.0, 3.0, 4.0)]
    first, other = registry.create("logistic").fit(twice, [0, 1, 0, 1, 1]).coef_[0]
    assert first == pytest.approx(other, abs=1e-9) and first > 0.1


def test_it_refuses_to_predict_before_it_has_learnt():
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        registry.create("same_task").predict_proba(some_pairs(2))


def test_scoring_nothing_gives_nothing():
    fitted = registry.create("same_task").fit(some_pairs(4), [0, 1, 0, 1])
    assert fitted.predict_proba([]).shape == (0, 2)


def guesses(count=400, seed=0):
    """Rows of an instrument that knows no pairs, and labels that its two numbers decide with some chance."""
    rng = np.random.default_rng(seed)
    length, seen = rng.normal(1e5, 3e4, count), rng.integers(0, 2, count)
    rows = [Features({}, {"length": float(a), "seen": int(b), "one": 1}) for a, b in zip(length, seen, strict=True)]
    return rows, (rng.random(count) < 1 / (1 + np.exp(2 - (length - 1e5) / 3e4 - 2 * seen))).astype(float)


def test_it_learns_from_the_numbers_of_any_instrument():
    rows, labels = guesses(4000)
    fitted = registry.create("logistic").fit(rows, labels)
    assert fitted.names_ == ("length", "seen", "one")
    length, seen, _one = fitted.coef_[0]
    assert (length * 3e4, seen) == pytest.approx((1, 2), abs=0.2)
    some = registry.create("logistic", {"numbers": ["seen"]}).fit(rows, labels)
    means = [labels[[row.numbers["seen"] == value for row in rows]].mean() for value in (0, 1)]
    lengths_do_not_matter = [Features({}, {"seen": 0, "length": 0.0}), Features({}, {"length": 9.0, "seen": 1})]
    assert some.predict_proba(lengths_do_not_matter)[:, 1] == pytest.approx(means, abs=1e-9)


def test_numbers_that_the_rows_do_not_have_are_refused_by_name():
    rows, labels = guesses(20)
    with pytest.raises(PredictorError, match="numbers: the rows have no 'age'; they have 'length', 'seen', 'one'"):
        registry.create("logistic", {"numbers": ["seen", "age"]}).fit(rows, labels)
    with pytest.raises(PredictorError, match="numbers: the rows have no 'previous_correct'"):
        registry.create("same_task").fit(rows, labels)
    fitted = registry.create("logistic").fit(rows, labels)
    with pytest.raises(PredictorError, match="numbers: the rows have no 'length'"):
        fitted.predict_proba([Features({}, {"seen": 1})])
    with pytest.raises(PredictorError, match="numbers: the rows have none"):
        registry.create("logistic").fit([Features({"text": "a"})] * 4, [0, 1, 0, 1])


@pytest.mark.parametrize("numbers", ["seen", 3, ["seen", "seen"], ["seen", ""], [1]])
def test_names_that_cannot_be_used_are_refused(numbers):
    with pytest.raises(PredictorError, match=r"^numbers: "):
        registry.create("logistic", {"numbers": numbers})


def test_names_may_be_a_list_as_files_have_them():
    settings = registry.settings_of("logistic", {"numbers": ["seen", "length"]})
    assert settings == LogisticSettings(("seen", "length")) and hash(settings)


def test_a_baseline_is_the_logistic_regression_on_its_numbers():
    pairs = some_pairs(60, seed=3)
    labels = [0, 1, 1] * 20
    fixed = registry.create("same_task").fit(pairs, labels)
    named = registry.create("logistic", {"numbers": ["previous_correct", "same_task"]}).fit(pairs, labels)
    as_features = registry.create("logistic").fit([features_of(pair) for pair in pairs], labels)
    assert np.array_equal(fixed.coef_, named.coef_) and np.array_equal(fixed.coef_, as_features.coef_)
    assert type(fixed) is type(named)


def test_it_is_saved_with_its_numbers_as_the_kind_that_it_is(tmp_path):
    rows, labels = guesses(50)
    fitted = registry.create("logistic", {"numbers": ["seen"]}, seed=4).fit(rows, labels)
    artifacts.save(fitted, tmp_path / "named")
    again = artifacts.load(tmp_path / "named")
    assert np.array_equal(again.predict_proba(rows), fitted.predict_proba(rows))
    assert again.get_params() == {"numbers": ("seen",), "columns": (), "random_state": 4}
    for name in ("same_task", "previous_correct"):
        artifacts.save(registry.create(name).fit(some_pairs(4), [0, 1, 0, 1]), tmp_path / name)
        assert artifacts.verify(tmp_path / name)["kind"] == name
    assert artifacts.verify(tmp_path / "named")["kind"] == "logistic"


def test_a_folder_that_was_saved_before_numbers_had_names_still_loads(tmp_path):
    state = {
        "features": ["previous_correct", "same_task"],
        "random_state": 5,
        "intercept": [-0.4],
        "coef": [[0.6, -0.9]],
        "n_iter": 4,
        "loss": 0.67,
        "n_examples": 24,
    }
    (tmp_path / "logistic.json").write_text(json.dumps(state, indent=1))
    manifest = {
        "format": 1,
        "kind": "same_task",
        "files": {"logistic.json": artifacts.file_digest(tmp_path / "logistic.json")},
    }
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    loaded = artifacts.load(tmp_path)
    pairs = some_pairs(20, seed=6)
    outcome, same = _features(pairs)["same_task"].T
    expected = 1 / (1 + np.exp(0.4 - 0.6 * outcome + 0.9 * same))
    assert loaded.predict_proba(pairs)[:, 1] == pytest.approx(expected, abs=1e-12)
    assert loaded.get_params() == registry.create("same_task", seed=5).get_params()
    assert (loaded.loss_, loaded.n_iter_, loaded.n_examples_) == (0.67, 4, 24)
