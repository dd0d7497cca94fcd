from __future__ import annotations

import numpy as np
import pytest

from predictors import registry
from predictors.pairs import as_columns
from tests.predictors.tiny import some_pairs


def _features(pairs):
    columns = as_columns(pairs)
    same = [e == t for e, t in zip(columns.evidence_task, columns.target_task, strict=True)]
    return {"previous_correct": columns.outcome[:, None], "same_task": np.column_stack([columns.outcome, same])}


@pytest.mark.parametrize("name", ["previous_correct", "same_task"])
@pytest.mark.parametrize("weighted", [False, True])
def test_it_agrees_with_scikit_learn_without_penalty(name, weighted):
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(5)
    pairs = some_pairs(300, seed=5)
    labels = (rng.random(300) < np.where(as_columns(pairs).outcome == 1, 0.3, 0.6)).astype(float)
    weights = rng.integers(1, 5, 300).astype(float) if weighted else None
    reference = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-12, max_iter=1000)
    reference.fit(_features(pairs)[name], labels, weights)
    found = registry.create(name).fit(pairs, labels, weights)
    assert found.predict_proba(pairs) == pytest.approx(reference.predict_proba(_features(pairs)[name]), abs=1e-6)
    assert found.coef_ == pytest.approx(reference.coef_, abs=1e-6)


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
    labels = 1.0 - as_columns(pairs).outcome
    changed = registry.create("previous_correct").fit(pairs, labels).predict_proba(pairs)[:, 1]
    assert changed == pytest.approx(labels, abs=1e-6)


def test_pairs_of_one_outcome_alone_give_the_mean():
    pairs = [pair._replace(outcome=1) for pair in some_pairs(10)]
    labels = [1, 0, 0, 0, 1, 0, 0, 0, 0, 0]
    changed = registry.create("same_task").fit(pairs, labels)
    assert registry.create("previous_correct").fit(pairs, labels).predict_proba(pairs)[:, 1] == pytest.approx(0.2)
    assert changed.predict_proba(pairs)[:, 1].mean() == pytest.approx(0.2)


def test_it_refuses_to_predict_before_it_has_learnt():
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        registry.create("same_task").predict_proba(some_pairs(2))


def test_scoring_nothing_gives_nothing():
    fitted = registry.create("same_task").fit(some_pairs(4), [0, 1, 0, 1])
    assert fitted.predict_proba([]).shape == (0, 2)
