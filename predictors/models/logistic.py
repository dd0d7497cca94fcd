"""Logistic regression on named numbers; two choices of numbers are the first rows of table 1. Uses scikit-learn's."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import MaxAbsScaler
from sklearn.utils.validation import check_is_fitted

from predictors.errors import PredictorError
from predictors.features import Features, number_columns, number_names, two_rows
from predictors.hardness import Given, Hardness
from predictors.models.base import SettingsEstimator, both_classes, write_json
from predictors.pairs import Progress, report
from predictors.settings import LogisticSettings

MODEL_FILE = "logistic.json"
# Directions in which the numbers vary by less than this share of the most are rounding.
_RANK_TOLERANCE = 1e-10


class LogisticPredictor(SettingsEstimator, settings=LogisticSettings):
    """P(label 1) by logistic regression without a penalty on the numbers that the settings name.

    Where numbers say the same (one is constant, or a sum of others) the smallest of the equally good solutions is
    taken. `random_state` is accepted, as by every predictor, and has no effect: nothing here is random.
    """

    results = ("loss", "n_iter", "n_examples")

    def fit(
        self,
        rows: Sequence[Any],
        labels: Any,
        sample_weight: Any = None,
        progress: Progress | None = None,
        columns: Given | None = None,
    ) -> Self:
        """Learn from n rows with n labels (0, 1 or fractions), n weights and the columns that the settings name, (n,).

        Raises:
            PredictorError: nothing to learn from, lengths that differ, one class only (see `check_training_data`),
                numbers that the rows do not have, or columns that are not given.
        """
        data = self.training_data(rows, labels, sample_weight)
        self.hardness_: Hardness | None = None
        names = self.settings().numbers or number_names(data.rows)
        if not names:
            raise PredictorError("numbers: the rows have none; this predictor reads numbers and no texts.")
        values = number_columns(data.rows, names)
        if beside := self.settings().columns:
            if isinstance(data.rows[0], Features):
                raise PredictorError("columns: are read next to pairs of the belief update alone; leave them out.")
            weights = np.ones(len(rows)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
            weighted_columns = {name: np.asarray(column)[weights > 0] for name, column in (columns or {}).items()}
            self.hardness_, more = Hardness.learn(beside, data.rows, data.weights, weighted_columns)
            values = np.hstack([values, more])
        coefficients, self.n_iter_ = _fitted(values, data.labels, data.weights)
        self.names_ = tuple(names)
        self.classes_ = np.array([0, 1])
        self.intercept_ = coefficients[:1]
        self.coef_ = coefficients[None, 1:]
        logits = self._logits(values)
        self.loss_ = float(np.average(np.logaddexp(0, logits) - data.labels * logits, weights=data.weights))
        self.n_examples_ = len(data.rows)
        report(progress, 1, 1, f"fitted on {len(data.rows)} rows")
        return self

    def predict_proba(
        self, rows: Sequence[Any], progress: Progress | None = None, columns: Given | None = None
    ) -> NDArray[np.float64]:
        """Probabilities of shape (n, 2): of label 0 and of label 1. columns: as in `HybridPredictor.predict_proba`.

        Raises:
            PredictorError: a number or column of the training is not among those of the rows.
        """
        check_is_fitted(self)
        checked = self.checked_rows(rows)
        values = number_columns(checked, self.names_)
        if self.hardness_ is not None:
            values = np.hstack([values, self.hardness_.numbers(checked, columns)])
        of_label_1 = expit(self._logits(values))
        report(progress, len(of_label_1), len(of_label_1), f"scored {len(of_label_1)} rows")
        return both_classes(of_label_1)

    def save_files(self, folder: Path) -> None:
        """Write the fitted state into `folder`; called by `artifacts.save`."""
        state = self.saved_state()
        state |= {"features": self.names_, "intercept": self.intercept_.tolist(), "coef": self.coef_.tolist()}
        if self.hardness_ is not None:
            state |= {"hardness": self.hardness_.state()}
        write_json(folder / MODEL_FILE, state)

    @classmethod
    def load_files(cls, folder: Path) -> Self:
        """Read back what `save_files` wrote; called by `artifacts.load`."""
        state = json.loads((folder / MODEL_FILE).read_text(encoding="utf-8"))
        # Earlier files have no params: their numbers were those of the kind.
        params = state.get("params") or {"numbers": state["features"], "random_state": state["random_state"]}
        lists = {name: tuple(params.get(name, ())) for name in ("numbers", "columns")}
        estimator = cls.restored({**state, "params": {**params, **lists}})
        estimator.names_ = tuple(state["features"])
        estimator.hardness_ = Hardness(estimator.columns, state["hardness"]) if "hardness" in state else None
        estimator.intercept_ = np.array(state["intercept"], dtype=np.float64)
        estimator.coef_ = np.array(state["coef"], dtype=np.float64)
        return estimator

    def _logits(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        logits: NDArray[np.float64] = self.intercept_[0] + values @ self.coef_[0]
        return logits


def _fitted(
    values: NDArray[np.float64], labels: NDArray[np.float64], weights: NDArray[np.float64]
) -> tuple[NDArray[np.float64], int]:
    """Intercept and coefficients of greatest likelihood, (1 + k,), from values (n, k), and the number of steps taken.

    Where the numbers separate the classes the optimum lies at infinity: the steps end once the gradient is below 1e-10
    a row, with probabilities as close to 0 and 1.
    """
    scaler = MaxAbsScaler().fit(values)
    design = np.column_stack([np.ones(len(values)), scaler.transform(values)])
    _, sizes, directions = np.linalg.svd(design, full_matrices=False)
    # Within the directions that the rows span the solution is unique, and it is the smallest of all solutions.
    spanned = directions[sizes > _RANK_TOLERANCE * sizes[0]].T
    rows, classes, row_weights = two_rows(labels, weights)
    model = LogisticRegression(C=np.inf, solver="newton-cholesky", fit_intercept=False, tol=1e-10, max_iter=200)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit((design @ spanned)[rows], classes, row_weights)
    coefficients = spanned @ model.coef_[0]
    coefficients[1:] /= scaler.scale_
    return coefficients, int(model.n_iter_[0])
