"""The two logistic regressions of table 1. Imports scikit-learn's base class; the fit itself is numpy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from predictors.errors import PredictorError
from predictors.pairs import Columns, Pair, Progress, as_columns, check_training_data, report

MODEL_FILE = "logistic.json"
_ITERATIONS = 100


class _Logistic(ClassifierMixin, BaseEstimator):
    """Unregularised logistic regression over the few features that a subclass reads from the pairs.

    Fitted by Newton's method; agrees with scikit-learn's `penalty=None` to 1e-6. Where a feature is constant the
    smallest of the equally good solutions is taken. `random_state` is accepted, as by every predictor, and has no
    effect: nothing here is random.
    """

    artifact_kind = ""
    feature_names: tuple[str, ...] = ()

    def __init__(self, random_state: int = 0) -> None:
        self.random_state = random_state

    @staticmethod
    def _features(columns: Columns) -> NDArray[np.float64]:
        raise NotImplementedError

    def fit(self, pairs: list[Pair], labels: Any, sample_weight: Any = None, progress: Progress | None = None) -> Self:
        """Learn from n pairs with n labels (0, 1 or fractions) and n weights.

        Raises:
            PredictorError: nothing to learn from, lengths that differ, one class only (see `check_training_data`).
        """
        data = check_training_data(pairs, labels, sample_weight)
        design = self._design(as_columns(data.pairs))
        coefficients, iterations = _newton(design, data.labels, data.weights)
        self.classes_ = np.array([0, 1])
        self.intercept_ = coefficients[:1]
        self.coef_ = coefficients[None, 1:]
        self.n_iter_ = iterations
        self.loss_ = _loss(design @ coefficients, data.labels, data.weights)
        self.n_examples_ = len(data.pairs)
        report(progress, 1, 1, f"fitted on {len(data.pairs)} rows")
        return self

    def predict_proba(self, pairs: list[Pair], progress: Progress | None = None) -> NDArray[np.float64]:
        """Probabilities of shape (n, 2): belief kept, belief changed."""
        check_is_fitted(self)
        columns = as_columns(pairs)
        coefficients = np.concatenate([self.intercept_, self.coef_[0]])
        changed = _sigmoid(self._design(columns) @ coefficients)
        report(progress, len(changed), len(changed), f"scored {len(changed)} pairs")
        return np.column_stack([1 - changed, changed])

    def predict(self, pairs: list[Pair]) -> NDArray[np.int64]:
        """The likelier class of each pair, 0 or 1."""
        return (self.predict_proba(pairs)[:, 1] > 0.5).astype(np.int64)

    def save_files(self, folder: Path) -> None:
        """Write the fitted state into `folder`; called by `artifacts.save`."""
        check_is_fitted(self)
        state = {
            "features": self.feature_names,
            "random_state": self.random_state,
            "intercept": self.intercept_.tolist(),
            "coef": self.coef_.tolist(),
            "n_iter": self.n_iter_,
            "loss": self.loss_,
            "n_examples": self.n_examples_,
        }
        (folder / MODEL_FILE).write_text(json.dumps(state, indent=1), encoding="utf-8")

    @classmethod
    def load_files(cls, folder: Path) -> Self:
        """Read back what `save_files` wrote; called by `artifacts.load`."""
        state = json.loads((folder / MODEL_FILE).read_text(encoding="utf-8"))
        if tuple(state["features"]) != cls.feature_names:
            raise PredictorError(f"{MODEL_FILE}: has features {state['features']}, not {list(cls.feature_names)}.")
        estimator = cls(random_state=state["random_state"])
        estimator.classes_ = np.array([0, 1])
        estimator.intercept_ = np.array(state["intercept"], dtype=np.float64)
        estimator.coef_ = np.array(state["coef"], dtype=np.float64)
        estimator.n_iter_ = state["n_iter"]
        estimator.loss_ = state["loss"]
        estimator.n_examples_ = state["n_examples"]
        return estimator

    def _design(self, columns: Columns) -> NDArray[np.float64]:
        features = self._features(columns)
        return np.column_stack([np.ones(len(features)), features])


class PreviousCorrect(_Logistic):
    """P(change) from whether the evidence question was answered correctly (first row of table 1)."""

    artifact_kind = "previous_correct"
    feature_names = ("previous_correct",)

    @staticmethod
    def _features(columns: Columns) -> NDArray[np.float64]:
        return columns.outcome.astype(np.float64)[:, None]


class SameTask(_Logistic):
    """P(change) from the outcome and whether both questions are of one task (second row of table 1)."""

    artifact_kind = "same_task"
    feature_names = ("previous_correct", "same_task")

    @staticmethod
    def _features(columns: Columns) -> NDArray[np.float64]:
        tasks = zip(columns.evidence_task, columns.target_task, strict=True)
        same = np.array([evidence == target for evidence, target in tasks], dtype=np.float64)
        return np.column_stack([columns.outcome.astype(np.float64), same])


def _newton(
    design: NDArray[np.float64], labels: NDArray[np.float64], weights: NDArray[np.float64]
) -> tuple[NDArray[np.float64], int]:
    """Coefficients of greatest likelihood and the number of steps taken.

    A step that does not lower the loss is halved. Where a feature separates the classes the optimum lies at infinity:
    the loop then ends once the gradient is below 1e-10 a row, with probabilities as close to 0 and 1.
    """
    coefficients = np.zeros(design.shape[1])
    loss = _loss(design @ coefficients, labels, weights)
    for iteration in range(1, _ITERATIONS + 1):
        fitted = _sigmoid(design @ coefficients)
        gradient = design.T @ (weights * (labels - fitted)) / len(labels)
        if np.abs(gradient).max() < 1e-10:
            return coefficients, iteration
        curvature = design.T @ ((weights * fitted * (1 - fitted))[:, None] * design) / len(labels)
        step = np.linalg.pinv(curvature, hermitian=True) @ gradient
        scale = 1.0
        while scale > 1e-6:
            candidate = coefficients + scale * step
            new_loss = _loss(design @ candidate, labels, weights)
            if new_loss <= loss:
                break
            scale /= 2
        else:
            return coefficients, iteration
        coefficients, loss = candidate, new_loss
    return coefficients, _ITERATIONS


def _loss(logits: NDArray[np.float64], labels: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    losses = np.logaddexp(0, logits) - labels * logits
    return float(np.average(losses, weights=weights))


def _sigmoid(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    # By the sign of the logit, so that exp never overflows.
    small = np.exp(-np.abs(logits))
    return np.where(logits >= 0, 1 / (1 + small), small / (1 + small))
