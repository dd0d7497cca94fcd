"""From one person's answer to the majority of several. Needs numpy and scipy; imports no estimator.

Single answers train P(one person changes); a test label may be the majority of n people (section 3 of the paper). The
share of people whose belief a pair changes scatters about the predicted probability, so that the count of n answers
is beta-binomial: with p predicted and concentration c the share is Beta(p c, (1 - p) c). The larger c, the better the
prediction fixes the share; with an infinite c the share is the prediction.
"""

from __future__ import annotations

from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from predictors.calibration import METHODS, Calibrator, in_unit_interval
from predictors.errors import PredictorError
from predictors.evaluation.metrics import checked

DEFAULT_CONCENTRATION = 5.0
_CONCENTRATIONS = np.geomspace(0.5, 500.0, 40)
_LEAST = 1e-6
# Averages of so many answers or fewer are known from a teacher's probabilities by their values.
_MAX_ANSWERS = 30

LabelKind = Literal["auto", "shares", "majorities"]


def majority_probability(probability: ArrayLike, responses: ArrayLike, concentration: float) -> NDArray[np.float64]:
    """P(more than half of `responses` people change) where one person changes with `probability`; shape (n,).

    `responses` is one count for all or one a row, of 1 or more; `concentration` is above 0 and may be infinite. A tie
    of an even count is no majority. For one response this is `probability` itself.

    Raises:
        PredictorError: a value out of range, or lengths that differ.
    """
    from scipy.stats import betabinom, binom

    p = _probabilities(probability)
    n = as_responses(responses, len(p))
    _check_concentration(concentration)
    half = n // 2
    if np.isinf(concentration):
        several = binom.sf(half, n, p)
    else:
        inner = np.clip(p, _LEAST, 1 - _LEAST)
        several = betabinom.sf(half, n, inner * concentration, (1 - inner) * concentration)
    return np.where(n == 1, p, np.clip(several, 0.0, 1.0))


def logit_line(responses: NDArray[np.int64], concentration: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Intercept and slope, (n,) each, of the line that the logit of the majority follows over one person's logit.

    The tangent at even odds. A logistic model of one person's answer learns from majorities by it: a row's logit is
    intercept + slope * logit.
    """
    counts, row = np.unique(responses, return_inverse=True)
    step = 1e-3
    around = 1 / (1 + np.exp(-np.array([-step, 0.0, step])))
    lines = []
    for count in counts:
        p = majority_probability(around, int(count), concentration)
        logits = np.log(p) - np.log1p(-p)
        lines.append((logits[1], (logits[2] - logits[0]) / (2 * step)))
    intercept, slope = np.array(lines).reshape(-1, 2).T
    return intercept[row], slope[row]


class MajorityCalibrator:
    """P(the majority of n people change) from any predictor's probabilities of one person's change.

    `fit` learns on rows that the predictor did not train on (out of fold, or the next stage's answers) how its
    probabilities are to be recalibrated (`method`: see `predictors.calibration`) and how far shares scatter about
    them (`concentration_`). Majorities alone do not show the scatter: then it stays at `concentration`.
    """

    def __init__(
        self, method: Literal["platt", "temperature", "beta"] = "platt", concentration: float = DEFAULT_CONCENTRATION
    ) -> None:
        self.method = method
        self.concentration = concentration

    def fit(
        self,
        probabilities: ArrayLike,
        labels: ArrayLike,
        responses: ArrayLike = 1,
        sample_weight: ArrayLike | None = None,
        kind: LabelKind = "auto",
    ) -> Self:
        """Learn from n predictions with n labels, each summing up `responses` answers.

        `labels` are the shares that changed (`kind="shares"`) or the majorities, 0 or 1 (`"majorities"`); `"auto"`
        takes labels that are all 0 or 1 for majorities.

        Raises:
            PredictorError: a value out of range, lengths that differ, or an unknown method or kind.
        """
        if self.method not in METHODS:
            raise PredictorError(f"method: {self.method!r} is not known; choose one of {', '.join(METHODS)}.")
        _check_concentration(self.concentration)
        y, p, w = checked(labels, probabilities, sample_weight)
        p = np.clip(p, _LEAST, 1 - _LEAST)
        n = as_responses(responses, len(p))
        if holds_majorities(y, n, kind):
            self.concentration_ = float(self.concentration)
            # Read as a prediction about the majority, so that one recalibration serves single answers as well.
            seen = majority_probability(p, n, self.concentration_)
            self.calibrator_ = Calibrator(self.method).fit(seen, y, w)
            self.on_majorities_ = True
            return self
        self.calibrator_ = Calibrator(self.method).fit(p, y, w * n)
        self.on_majorities_ = False
        fitted = self.calibrator_.predict(p)
        self.concentration_ = fit_concentration(fitted, y, n, w, default=self.concentration)
        return self

    def predict(self, probabilities: ArrayLike, responses: ArrayLike) -> NDArray[np.float64]:
        """P(majority of `responses` people), (n,), from the predictor's probabilities of one person's change."""
        p = np.clip(_probabilities(probabilities), _LEAST, 1 - _LEAST)
        if self.on_majorities_:
            return self.calibrator_.predict(majority_probability(p, responses, self.concentration_))
        return majority_probability(self.calibrator_.predict(p), responses, self.concentration_)


def fit_concentration(
    probabilities: NDArray[np.float64],
    shares: NDArray[np.float64],
    responses: NDArray[np.int64],
    weights: NDArray[np.float64],
    default: float = DEFAULT_CONCENTRATION,
) -> float:
    """The concentration of greatest likelihood, of counts round(share * responses), among 40 values of 0.5 to 500.

    A weak prior keeps it near `default` where counts are few. Rows of one response say nothing; where there are no
    others, `default` is returned.
    """
    from scipy.stats import betabinom

    several = responses > 1
    if not several.any():
        return float(default)
    p = np.clip(probabilities[several], _LEAST, 1 - _LEAST)
    n, w = responses[several], weights[several]
    counts = np.rint(shares[several] * n)
    grid = np.unique(np.append(_CONCENTRATIONS, default))
    fit = np.array([np.sum(w * betabinom.logpmf(counts, n, p * c, (1 - p) * c)) for c in grid])
    return float(grid[np.argmax(fit - 0.5 * np.log(grid / default) ** 2)])


def holds_majorities(labels: NDArray[np.float64], responses: NDArray[np.int64], kind: LabelKind = "auto") -> bool:
    """Whether labels that sum up several answers are majorities, not shares.

    Raises:
        PredictorError: an unknown kind, or majorities that are not 0 or 1.
    """
    if kind not in ("auto", "shares", "majorities"):
        raise PredictorError(f"kind: {kind!r} is not known; use 'auto', 'shares' or 'majorities'.")
    several = responses > 1
    whole = bool(np.isin(labels[several], (0.0, 1.0)).all())
    if kind == "majorities" and not whole:
        raise PredictorError("labels: majorities are 0 or 1; give shares as kind='shares'.")
    return bool(several.any()) and whole and kind != "shares"


def are_averages(fractions: NDArray[np.float64]) -> bool:
    """Whether most of these fractions are shares of few answers, and not a teacher's probabilities."""
    if not len(fractions):
        return False
    answers = np.arange(1, _MAX_ANSWERS + 1)
    products = fractions[:, None] * answers
    near = (np.abs(products - np.rint(products)) < 1e-6 * answers).any(axis=1)
    return bool(near.mean() > 0.5)


def as_responses(responses: ArrayLike, count: int) -> NDArray[np.int64]:
    """Checked counts of answers, int64 (count,), from one number for all or one a row.

    Raises:
        PredictorError: not whole numbers of 1 or more, or not one a row.
    """
    values = np.asarray(responses, dtype=np.float64)
    if values.ndim == 0:
        values = np.full(count, float(values))
    if values.shape != (count,):
        raise PredictorError(f"responses: shape {values.shape} for {count} rows; give one number, or one a row.")
    if not np.isfinite(values).all() or (values < 1).any() or (values != np.rint(values)).any():
        raise PredictorError("responses: must be whole numbers of 1 or more.")
    return values.astype(np.int64)


def _probabilities(values: ArrayLike) -> NDArray[np.float64]:
    return in_unit_interval("probabilities", np.atleast_1d(np.asarray(values, dtype=np.float64)))


def _check_concentration(value: float) -> None:
    if not value > 0:
        raise PredictorError(f"concentration: {value!r} is not above 0.")
