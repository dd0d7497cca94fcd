"""The small logistic regression: it agrees with scikit-learn's and does not depend on the order of the answers."""

import numpy as np
import pytest

import bandit


def answers(seed: int = 1, n: int = 600) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    columns = np.column_stack([np.ones(n), rng.normal(size=(n, 3))])
    person = rng.integers(40, size=n)
    logit = columns @ [0.3, 1.0, -0.5, 0.0] + rng.normal(0, 1.5, 40)[person]
    return columns, (rng.random(n) < 1 / (1 + np.exp(-logit))).astype(float), person


def test_without_clusters_it_agrees_with_scikit_learn() -> None:
    from sklearn.linear_model import LogisticRegression

    columns, label, _person = answers()
    fit = bandit.fit_logistic(columns=columns, label=label, precision=np.full(4, 0.5), tolerance=1e-10, iterations=50)
    reference = LogisticRegression(C=2.0, fit_intercept=False, tol=1e-10, max_iter=1000).fit(columns, label)
    assert fit == pytest.approx(reference.coef_[0], abs=1e-6)


def test_respondents_of_their_own_kind_no_longer_shrink_the_effects() -> None:
    columns, label, person = answers(n=6000)
    precision = np.full(4, 1e-6)
    alone = bandit.fit_logistic(columns=columns, label=label, precision=precision)
    mixed = bandit.fit_logistic(columns=columns, label=label, precision=precision, cluster=person, iterations=50)
    assert abs(mixed[1] - 1.0) < 0.1 < abs(alone[1] - 1.0)


def test_the_order_of_the_answers_does_not_matter() -> None:
    columns, label, person = answers()
    order = np.random.default_rng(2).permutation(label.size)
    first, second = (
        bandit.fit_logistic(columns=columns[at], label=label[at], precision=np.ones(4), cluster=person[at])
        for at in (np.arange(label.size), order)
    )
    assert first == pytest.approx(second, abs=1e-9)


def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(bandit.DesignError, match=r"\(3, 1\), \(2,\) and \(1,\)"):
        bandit.fit_logistic(columns=np.ones((3, 1)), label=[0, 1], precision=[1.0])
