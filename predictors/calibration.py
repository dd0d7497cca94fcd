"""Recalibration of probabilities, by weighted maximum likelihood. Needs numpy and scipy; imports no estimator.

Fit it on rows that the predictor did not train on. Labels may be fractions and rows may be weighted, as in
`predictors.evaluation`.
"""

from __future__ import annotations

from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from predictors.errors import PredictorError
from predictors.evaluation.metrics import checked

METHODS = ("platt", "temperature", "beta")
_LEAST = 1e-6
# The prior's standard deviation about the identity, in logits: nothing for fifty rows, much for five; and it keeps the
# slope finite where the predictions happen to separate a few rows without a mistake.
_PRIOR = 3.0


class Calibrator:
    """A monotone map of probabilities, learnt by penalised maximum likelihood.

    platt: logit q = a + b logit p (Platt 1999). temperature: logit q = b logit p (Guo et al. 2017). beta:
    logit q = a + b log p - c log(1 - p) (Kull, Silva Filho and Flach 2017). b and c are not negative, so the order of
    the predictions stays; the prior is the identity (a = 0, b = c = 1).
    """

    def __init__(self, method: Literal["platt", "temperature", "beta"] = "platt") -> None:
        self.method = method

    def fit(self, probabilities: ArrayLike, labels: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from n probabilities with n labels in [0, 1] and n weights.

        Raises:
            PredictorError: an unknown method, lengths that differ, or values out of range.
        """
        from scipy.optimize import minimize
        from scipy.special import expit

        if self.method not in METHODS:
            raise PredictorError(f"method: {self.method!r} is not known; choose one of {', '.join(METHODS)}.")
        y, p, w = checked(labels, probabilities, sample_weight)
        if not len(y):
            raise PredictorError("labels: there are none to learn from.")
        design = self._design(p)
        identity = np.array([0.0] + [1.0] * (design.shape[1] - 1))

        def loss(coefficients: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            logits = design @ coefficients
            away = (coefficients - identity) / _PRIOR
            value = np.sum(w * (np.logaddexp(0.0, logits) - y * logits)) + 0.5 * away @ away
            gradient = design.T @ (w * (expit(logits) - y)) + away / _PRIOR
            return float(value), gradient

        free = (0.0, 0.0) if self.method == "temperature" else (None, None)
        bounds = [free] + [(0.0, None)] * (design.shape[1] - 1)
        optimum = minimize(loss, identity, jac=True, method="L-BFGS-B", bounds=bounds, options={"ftol": 1e-14})
        self.coefficients_ = np.asarray(optimum.x, dtype=np.float64)
        return self

    def predict(self, probabilities: ArrayLike) -> NDArray[np.float64]:
        """The recalibrated probabilities, (n,)."""
        from scipy.special import expit

        return expit(self._design(in_unit_interval("probabilities", probabilities)) @ self.coefficients_)

    def _design(self, probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
        p = np.clip(probabilities, _LEAST, 1 - _LEAST)
        ones = np.ones(len(p))
        if self.method == "beta":
            return np.column_stack([ones, np.log(p), -np.log1p(-p)])
        return np.column_stack([ones, np.log(p) - np.log1p(-p)])


def in_unit_interval(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Numbers between 0 and 1 as float64 (n,).

    Raises:
        PredictorError: they are not one column of such numbers; the message begins with `name`.
    """
    column = np.asarray(values, dtype=np.float64)
    if column.ndim != 1 or not np.isfinite(column).all() or (column < 0).any() or (column > 1).any():
        raise PredictorError(f"{name}: must be a column of numbers between 0 and 1.")
    return column
