"""Logistic regression with normal priors and, if answers come in clusters, an intercept for each. Numpy alone.

It is small and quick: it assists the estimate of a first stage, and replaces the predictor in simulated studies.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bandit.errors import DesignError


def standardised(columns: ArrayLike) -> NDArray[np.float64]:
    """The columns (n, k) with mean 0 and standard deviation 1, for a fit with priors around 0.

    What is not known (NaN) becomes the column's mean. A column with a single value becomes 0.
    """
    values = np.asarray(columns, dtype=np.float64)
    known = np.isfinite(values)
    mean = np.where(known, values, 0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    filled = np.where(known, values, mean)
    deviation = filled.std(axis=0)
    scaled: NDArray[np.float64] = (filled - mean) / np.where(deviation > 0, deviation, 1.0)
    return scaled


def fit_logistic(
    *,
    columns: ArrayLike,
    label: ArrayLike,
    precision: ArrayLike,
    cluster: ArrayLike | None = None,
    iterations: int = 12,
    tolerance: float = 1e-3,
) -> NDArray[np.float64]:
    """The coefficients (k,) with the highest posterior density, by Newton's method.

    `columns`: features, shape (n, k), including a column of ones if an intercept is wanted; `label`: 0 or 1, shape
    (n,); `precision`: the precision of each coefficient's normal prior around 0, shape (k,). With `cluster` (n,), the
    respondents, each respondent gets its own intercept, which is not returned; the precision of its prior is learnt by
    one EM step per iteration. The fit ends when no coefficient moves by `tolerance`.
    """
    design, y = np.asarray(columns, dtype=np.float64), np.asarray(label, dtype=np.float64)
    prior = np.asarray(precision, dtype=np.float64)
    if design.ndim != 2 or y.shape != design.shape[:1] or prior.shape != design.shape[1:] or not y.size:
        raise DesignError(
            "columns, label, precision: need shapes (n, k), (n,) and (k,), "
            f"not {design.shape}, {y.shape} and {prior.shape}"
        )
    if cluster is None:
        return _fit(design, y, prior, iterations, tolerance)
    order = np.argsort(np.asarray(cluster), kind="stable")
    return _fit_mixed(design[order], y[order], prior, np.asarray(cluster)[order], iterations, tolerance)


def predict_logistic(columns: ArrayLike, coefficients: ArrayLike) -> NDArray[np.float64]:
    """Chances (n,) for features (n, k); those of an average cluster if the fit had clusters."""
    chance: NDArray[np.float64] = 1 / (1 + np.exp(-(np.asarray(columns) @ np.asarray(coefficients))))
    return chance


def _fit(
    columns: NDArray[np.float64],
    label: NDArray[np.float64],
    precision: NDArray[np.float64],
    iterations: int,
    tolerance: float,
) -> NDArray[np.float64]:
    beta = np.zeros(precision.size)
    for _ in range(iterations):
        chance = predict_logistic(columns, beta)
        slope = columns.T @ (label - chance) - precision * beta
        step = np.linalg.solve((columns * (chance * (1 - chance))[:, None]).T @ columns + np.diag(precision), slope)
        beta += step
        if np.abs(step).max() < tolerance:
            break
    return beta


def _fit_mixed(
    columns: NDArray[np.float64],
    label: NDArray[np.float64],
    precision: NDArray[np.float64],
    cluster: NDArray[np.generic],
    iterations: int,
    tolerance: float,
) -> NDArray[np.float64]:
    beta = np.zeros(precision.size)
    starts = np.flatnonzero(np.concatenate([[True], cluster[1:] != cluster[:-1]]))
    index = np.repeat(np.arange(starts.size), np.diff(starts, append=cluster.size))
    own, own_precision = np.zeros(starts.size), 1.0
    for _ in range(iterations):
        chance = 1 / (1 + np.exp(-(columns @ beta + own[index])))
        weighted = columns * (chance * (1 - chance))[:, None]
        # The clusters' block is diagonal, so it is eliminated before the rest is solved.
        diagonal = np.add.reduceat(chance * (1 - chance), starts) + own_precision
        across = np.add.reduceat(weighted, starts, axis=0)
        slope = columns.T @ (label - chance) - precision * beta
        own_slope = np.add.reduceat(label - chance, starts) - own_precision * own
        left = weighted.T @ columns + np.diag(precision) - (across / diagonal[:, None]).T @ across
        step = np.linalg.solve(left, slope - across.T @ (own_slope / diagonal))
        beta += step
        own += (own_slope - across @ step) / diagonal
        own_precision = 1 / float(np.mean(own**2 + 1 / diagonal))
        if np.abs(step).max() < tolerance:
            break
    return beta
