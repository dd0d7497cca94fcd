"""How much predictions help an estimate: fitted, so that bad predictions cost nothing. Numpy alone; a leaf.

A prediction is known for every candidate, so that the predictions of what was drawn can be compared with those of all
candidates. What the draw has too much of them, times a coefficient, is taken off the answers. With the coefficient 1
that is the difference estimator (Särndal, Swensson and Wretman, Model Assisted Survey Sampling, 1992, chapter 6), which
costs people where predictions are bad. The coefficient with the smallest variance costs none ("power tuning":
Angelopoulos, Duchi and Zrnic, PPI++, arXiv 2311.01453, 2023; by strata: Fisch and others, Stratified prediction-powered
inference, arXiv 2406.04291, 2024).

**Which coefficient.** An answer adds w (y - c x) to the figure's error: w is its weight, and x its prediction less the
mean over the stratum's candidates. Predictions are of items, and items are dealt to people at random, so that x has
nothing to do with the person's other answers. The best c is therefore the slope of y on x over all items, each
weighted by the square of its weight.

**Shrinkage.** A slope from few answers is uncertain itself. It is multiplied by 1 - `CAUTION` / f, at least 0, where f
is its square over its variance (James and Stein's rule, positive part). Several predictions are turned to their
principal axes first: each axis is shrunk by its own f, or by the mean f of all axes where that is smaller. That is
a generalised ridge in closed form (Hoerl and Kennard, Technometrics 12, 1970). The coefficients of the figure are
shrunk to 0; by how much those of a stratum differ from them is then shrunk to 0 in the same way.

**Cross-fitting.** An answer's coefficient is fitted without the answers of its person and without those to its item.
Coefficient and draw are then independent: the estimate is right on average however bad the predictions are, and what is
left of the answers varies with the error of the coefficient too, so that their plain variance counts it.

In simulated studies of 12 to 88 people (`benchmarks/sampling_laws.py`) no predictions made a figure need 2 % more
people than without them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bandit.clustered import cluster_count, clustered_variance
from bandit.errors import DesignError

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

CAUTION = 2.0
MIN_PEOPLE = 10
ALIKE = 1e-9  # Predictions that lie nearer to their mean than this part of their size are equal but for rounding.
TINY = 1e-300


@dataclass(frozen=True, eq=False)
class Assistance:
    """What predictions change in a figure.

    adjustment: (n,), in the unit of the answers: the `adjustment` of `bandit.stratified_mean`, `bandit.hajek` and their
    differences. coefficients: (strata, p), the mean of the answers' coefficients for each prediction, in units of the
    answers per unit of the prediction. coefficient: (p,), the same over all answers by their weights. withheld: why
    nothing is adjusted; empty where something is.
    """

    adjustment: Floats
    coefficients: Floats
    coefficient: Floats
    withheld: str = ""


def assist(
    *,
    values: ArrayLike,
    predictions: ArrayLike,
    prediction_means: ArrayLike,
    stratum: ArrayLike,
    weight: ArrayLike,
    cluster: ArrayLike,
    item: ArrayLike | None = None,
    per: ArrayLike | None = None,
) -> Assistance:
    """How much of each answer is that the draw has too much, or too little, of the predictions.

    Args:
        values: the answers, shape (n,); of a ratio, its upper line.
        predictions: of each answer's item, by predictors that have not seen the answers, shape (n,) or, of p
            predictors, (n, p). In any unit. NaN where there is none: nothing is adjusted there.
        prediction_means: over all candidates that have a prediction, by stratum, shape (strata,) or (strata, p). NaN
            where no candidate of a stratum has one.
        stratum: of each answer, 0 to strata - 1, shape (n,).
        weight: of each answer in the figure, above 0, in any unit, shape (n,).
        cluster: the person of each answer, shape (n,).
        item: the item of each answer, shape (n,), where several people answered an item; None where nobody did.
        per: of a ratio, its lower line, at least 0, shape (n,).

    Returns:
        `Assistance`. With fewer than `MIN_PEOPLE` people, or predictions that tell nothing, all is 0 and the reason
        stands in `withheld`.

    Raises:
        DesignError: shapes that do not fit, infinite numbers, weights that are not above 0.
    """
    value, w, below = _answers(values, weight, per)
    x, label, strata = _centred(predictions, prediction_means, stratum, value.size)
    person = _numbers(cluster, value.size, "cluster")
    thing = np.arange(value.size) if item is None else _numbers(item, value.size, "item")
    nothing = np.zeros((strata, x.shape[1]))

    def withheld(reason: str) -> Assistance:
        return Assistance(np.zeros(value.size), nothing, nothing[0], reason)

    if (people := cluster_count(person)) < MIN_PEOPLE:
        return withheld(f"{people} people, and a coefficient needs {MIN_PEOPLE}")
    if not x.any():
        return withheld("the predictions are all alike")
    # The error of a ratio is that of its upper line less the ratio times its lower line.
    error = value if below is None else value - below * (np.dot(w, value) / np.dot(w, below))
    error = error - _means(error, label, w, strata)[label]
    about = x - np.stack([_means(column, label, w, strata)[label] for column in x.T], axis=1)
    # An item counts by the square of its weight, of which each of its answers has a part.
    part = w * np.bincount(thing, weights=w)[thing] / w.sum() ** 2
    unit = np.sqrt((x**2).mean(axis=0))
    unit[unit == 0] = 1.0
    fit = _Fit(about / unit, error, part, person, thing)
    raw, coefficient = fit.slopes(np.ones(value.size, dtype=bool), np.zeros(x.shape), 0.0)
    if strata > 1:
        whole = np.maximum(part @ fit.x**2, TINY)
        for rows in (label == number for number in np.unique(label)):
            share = float(((part[rows] @ fit.x[rows] ** 2) / whole).max())
            coefficient[rows] += fit.slopes(rows, raw, share)[1][rows]
    coefficient /= unit
    adjustment = (x * coefficient).sum(axis=1)
    if not adjustment.any():
        return withheld("the predictions tell no more of the answers than chance would")
    each = np.ones(value.size)
    return Assistance(
        adjustment,
        np.stack([_means(column, label, each, strata) for column in coefficient.T], axis=1),
        np.average(coefficient, weights=w, axis=0),
    )


@dataclass(frozen=True, eq=False)
class _Fit:
    """Predictions less the mean of their stratum's answers (n, p); errors and squared weights of the answers, their
    people and items (n,)."""

    x: Floats
    error: Floats
    part: Floats
    person: Ints
    item: Ints

    @cached_property
    def both(self) -> Ints:
        """Labels that are alike for answers of one person to one item."""
        return np.unique(self.person * (int(self.item.max()) + 1) + self.item, return_inverse=True)[1].reshape(-1)

    def slopes(self, rows: NDArray[np.bool_], base: Floats, known: float) -> tuple[Floats, Floats]:
        """Each answer's coefficients (n, p) less `base`, from the answers in `rows`: as fitted, and shrunk to 0.

        `known`: how much of `base` came from these answers; the difference is less uncertain by so much.
        """
        x, part = np.where(rows[:, None], self.x, 0.0), self.part[:, None]
        roots, axes = np.linalg.eigh(x.T @ (part * x))
        axes = axes[:, roots > ALIKE * max(roots.max(), TINY)]
        if not axes.size:
            return np.zeros(x.shape), np.zeros(x.shape)
        along = x @ axes
        squares, products = part * along**2, part * along * self.error[:, None]
        whole, others = squares.sum(axis=0), self._of_others(squares)
        # Where nearly all comes from one person or item there is nothing to fit without them.
        enough = others > 1e-6 * whole
        others = np.where(enough, others, 1.0)
        slope = np.where(enough, self._of_others(products) / others - base @ axes, 0.0)
        off = self.error[:, None] - along * (products.sum(axis=0) / whole)
        variance = np.array([self._variance(*axis) for axis in zip((part * along).T, off.T, whole, strict=True)])
        clear = slope**2 / np.maximum((1 - known) * variance * whole / others, TINY)
        clear = np.minimum(clear, clear.mean(axis=1, keepdims=True))
        return slope @ axes.T, (slope * np.maximum(1 - CAUTION / np.maximum(clear, TINY), 0.0)) @ axes.T

    def _variance(self, pull: Floats, off: Floats, whole: float) -> float:
        """Of a slope, between people; at least that of single answers, and of single answers that all lie as far off
        as they do on average."""
        own, there = pull * off / whole, pull != 0
        spread = float(np.average(off[there] ** 2, weights=self.part[there]))
        return max(clustered_variance(own, self.person), float(own @ own), spread * float(pull @ pull) / whole**2)

    def _of_others(self, pieces: Floats) -> Floats:
        """The sums (n, p) without the answers of each answer's person and those to its item."""
        left = np.empty(pieces.shape)
        for number, piece in enumerate(pieces.T):
            own, same, twice = (np.bincount(at, weights=piece)[at] for at in (self.person, self.item, self.both))
            left[:, number] = piece.sum() - own - same + twice
        return left


def _means(value: Floats, label: Ints, weight: Floats, strata: int) -> Floats:
    """The weighted mean of each stratum (strata,); 0 where it has no answers."""
    sums, total = (np.bincount(label, weights=column, minlength=strata) for column in (weight * value, weight))
    return np.asarray(sums / np.where(total > 0, total, 1.0), dtype=np.float64)


def _answers(values: ArrayLike, weight: ArrayLike, per: ArrayLike | None) -> tuple[Floats, Floats, Floats | None]:
    value, w = np.asarray(values, dtype=np.float64), np.asarray(weight, dtype=np.float64)
    if value.ndim != 1 or not value.size or not np.isfinite(value).all():
        raise DesignError("values: need one row of at least one finite answer")
    if w.shape != value.shape or not (np.isfinite(w) & (w > 0)).all():
        raise DesignError(f"weight: needs a number above 0 for each of {value.size} answers")
    below = None if per is None else np.asarray(per, dtype=np.float64)
    if below is not None and (below.shape != value.shape or not (below >= 0).all() or not 0 < below.sum() < np.inf):
        raise DesignError(f"per: needs a number of at least 0 for each of {value.size} answers, and not 0 for all")
    return value, w, below


def _centred(predictions: ArrayLike, means: ArrayLike, stratum: ArrayLike, n: int) -> tuple[Floats, Ints, int]:
    """The predictions less the means of their strata (n, p), 0 where there is none; the strata, and their number."""
    predicted, mean = (np.asarray(numbers, dtype=np.float64) for numbers in (predictions, means))
    if predicted.shape[:1] != (n,) or predicted.ndim not in (1, 2):
        raise DesignError(f"predictions: {predicted.shape[:1]} for {n} answers; give one for each answer")
    predicted = predicted.reshape(n, -1)
    if mean.ndim not in (1, 2) or mean.size != len(mean) * predicted.shape[1]:
        raise DesignError(
            f"prediction_means: shape {mean.shape} for {predicted.shape[1]} predictors; give one for each stratum"
        )
    mean = mean.reshape(-1, predicted.shape[1])
    label = np.asarray(stratum)
    if label.shape != (n,) or label.dtype.kind not in "iu" or label.min() < 0 or label.max() >= len(mean):
        raise DesignError(f"stratum: needs a whole number 0..{len(mean) - 1} for each of {n} answers")
    if np.isinf(predicted).any() or np.isinf(mean).any():
        raise DesignError("predictions, prediction_means: infinite for some items; give NaN where there is none")
    x = predicted - mean[label]
    x[np.isnan(x)] = 0.0
    x[np.abs(x) <= ALIKE * np.abs(np.nan_to_num(predicted)).max(axis=0)] = 0.0
    return x, label.astype(np.intp), len(mean)


def _numbers(labels: ArrayLike, n: int, field: str) -> Ints:
    label = np.asarray(labels)
    if label.shape != (n,):
        raise DesignError(f"{field}: {label.size} for {n} answers; give one for each answer")
    return np.unique(label, return_inverse=True)[1].reshape(-1)
