"""The hybrid's two learners over likeness of pairs: ridge regression and Bayesian logistic regression.

Both are Gaussian processes (Rasmussen and Williams 2006, chapters 2, 3 and 8) written in an explicit basis: with as
many landmarks as rows they are exact, with fewer this is the Nystrom approximation, whose cost is bounded.
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.metrics.pairwise import euclidean_distances, rbf_kernel

Numbers = NDArray[np.float64]
Arrays = dict[str, NDArray[np.generic]]

# Rows that the scales of features are learnt from, at most.
_ROWS_FOR_SCALES = 2000
_ROWS_AT_ONCE = 1024
# Noise of the teacher's logits about the kernel's function, as variances.
_NOISES = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0, 3.0)
# Variances of what the kernel adds to the logit of change; 0 leaves only the few named features.
_VARIANCES = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0)
_LEAST_SHARE = 1e-3
_NEWTON_STEPS = 50


class Likeness(NamedTuple):
    """How alike two pairs are: exp(-d^2) averaged over depths, d the distance between standardised features.

    Features of a depth are the two texts' mean states a and b, |a - b| and a * b. centre, scale: float32
    (depths, 4 hidden), with 0 scale for what never varies; the scale holds the width, the root of twice the median
    squared distance among training rows.
    """

    centre: NDArray[np.float32]
    scale: NDArray[np.float32]

    @classmethod
    def learn(cls, states: NDArray[np.float32], rng: np.random.Generator) -> Likeness:
        """Scales from (n, depths, 2, hidden) states of distinct training rows."""
        if len(states) > _ROWS_FOR_SCALES:
            states = states[np.sort(rng.choice(len(states), _ROWS_FOR_SCALES, replace=False))]
        raw = _compared(states)
        centre, deviation = raw.mean(axis=0), raw.std(axis=0)
        varies = deviation > 1e-5
        scale = np.where(varies, 1 / np.where(varies, deviation, 1.0), 0.0)
        features = (raw - centre) * scale
        for depth in range(raw.shape[1]):
            mine = features[:, depth].astype(np.float64)
            distances = euclidean_distances(mine, squared=True)
            scale[depth] /= np.sqrt(2 * (np.median(distances) or 1.0))
        return cls(centre, scale.astype(np.float32))

    def features(self, states: NDArray[np.float32]) -> NDArray[np.float32]:
        """Scaled features, (n, depths, 4 hidden)."""
        return (_compared(states) - self.centre) * self.scale

    def between(self, states: NDArray[np.float32], others: NDArray[np.float32]) -> Numbers:
        """Likeness of n states to the features of m landmarks, (n, m), a block of rows at a time."""
        found = np.empty((len(states), len(others)))
        for first in range(0, len(states), _ROWS_AT_ONCE):
            # In double precision: near landmarks the differences of large squares cancel.
            features = self.features(states[first : first + _ROWS_AT_ONCE]).astype(np.float64)
            depths = range(features.shape[1])
            parts = [rbf_kernel(features[:, depth], others[:, depth].astype(np.float64), gamma=1.0) for depth in depths]
            found[first : first + _ROWS_AT_ONCE] = np.mean(parts, axis=0)
        return found


class Landmarks:
    """Rows of the training data that others are compared with: `states`, and `sides`, -1 or 1 for the outcome.

    The kernel is likeness for rows of the same outcome and 0 otherwise, and the same again whatever the outcome: what
    both outcomes share and what sets them apart, in equal parts.
    """

    def __init__(self, likeness: Likeness, states: NDArray[np.float32], sides: Numbers) -> None:
        self.likeness, self.states, self.sides = likeness, states, sides
        self.features = likeness.features(states)

    @classmethod
    def choose(
        cls, likeness: Likeness, states: NDArray[np.float32], sides: Numbers, most: int, rng: np.random.Generator
    ) -> Landmarks:
        """All rows, or `most` of them drawn at random."""
        if len(states) > most:
            rows = np.sort(rng.choice(len(states), most, replace=False))
            states, sides = states[rows], sides[rows]
        return cls(likeness, states, sides)

    def kernel(self, states: NDArray[np.float32], sides: Numbers) -> Numbers:
        """The kernel of n rows with the m landmarks, (n, m); 1 for a row with itself."""
        found = self.likeness.between(states, self.features)
        found *= (1 + np.outer(sides, self.sides)) / 2
        return found

    def basis(self) -> Numbers:
        """(m, r): kernel @ basis are features whose products are the (Nystrom) kernel."""
        values, vectors = np.linalg.eigh(self.kernel(self.states, self.sides))
        kept = values > 1e-9 * values[-1]
        return vectors[:, kept] / np.sqrt(values[kept])


class Ridge:
    """Kernel ridge regression of a teacher's logits: outcome, and a smooth function of the pair.

    The noise is chosen by leaving out one group after another. Prediction: mean + side * tilt + kernel @ weights.
    """

    def __init__(self, landmarks: Landmarks, line: Numbers, weights: Numbers) -> None:
        self.landmarks, self.line, self.weights = landmarks, line, weights

    @classmethod
    def fit(
        cls,
        landmarks: Landmarks,
        states: NDArray[np.float32],
        sides: Numbers,
        logits: Numbers,
        weights: Numbers,
        groups: NDArray[np.int64],
    ) -> Ridge:
        """Learn from n rows; rows of one group are left out together when the noise is chosen."""
        basis = landmarks.basis()
        mean = float(np.average(logits, weights=weights))
        # The kernel counts twice, so that a shift common to both outcomes has the variance 1.
        smooth = np.sqrt(2) * (landmarks.kernel(states, sides) @ basis)
        root = np.sqrt(weights)
        design = np.column_stack([np.ones(len(sides)), sides, smooth]) * root[:, None]
        target = (logits - mean) * root
        values, vectors = np.linalg.eigh(design.T @ design)
        values = np.maximum(values, 0.0)
        turned = design @ vectors
        moment = turned.T @ target
        order = np.argsort(groups, kind="stable")
        members = np.split(order, np.flatnonzero(np.diff(groups[order])) + 1)
        errors = [
            _held_out_error(turned, moment / (values + noise), values + noise, target, members) for noise in _NOISES
        ]
        found = vectors @ (moment / (values + _NOISES[int(np.argmin(errors))]))
        return cls(landmarks, np.array([mean + found[0], found[1]]), np.sqrt(2) * (basis @ found[2:]))

    def predict(self, states: NDArray[np.float32], sides: Numbers) -> Numbers:
        """Logits, (n,)."""
        return self.line[0] + sides * self.line[1] + self.landmarks.kernel(states, sides) @ self.weights

    def arrays(self) -> Arrays:
        """What `from_arrays` needs, besides the likeness."""
        marks = self.landmarks
        return {"states": marks.states, "sides": marks.sides, "line": self.line, "weights": self.weights}

    @classmethod
    def from_arrays(cls, likeness: Likeness, arrays: dict[str, NDArray]) -> Self:
        """The ridge saved by `arrays`."""
        return cls(Landmarks(likeness, arrays["states"], arrays["sides"]), arrays["line"], arrays["weights"])


class Named(NamedTuple):
    """The few named features of n rows: values (n, k), each with a prior of mean 0 and deviation `spread` (k,); what
    is known already, `offset` (n,), is added to the logit."""

    values: Numbers
    spread: Numbers
    offset: Numbers


class Posterior(NamedTuple):
    """One value of the kernel's variance: its share of belief, coefficients (c,) and a root of their covariance."""

    share: float
    variance: float
    coefficients: Numbers
    root: Numbers


class Logistic:
    """Bayesian logistic regression on named features and a smooth function of the pair, by Laplace's method.

    Every variance of the smooth function is believed in as far as the data speak for it (its marginal likelihood), and
    predictions are averaged over them and over the coefficients' posterior, so that few rows give cautious predictions.
    """

    def __init__(self, landmarks: Landmarks, basis: Numbers, posteriors: list[Posterior], iterations: int) -> None:
        self.landmarks, self.basis, self.posteriors = landmarks, basis, posteriors
        self.iterations = iterations

    @classmethod
    def fit(
        cls,
        landmarks: Landmarks,
        basis: Numbers,
        named: Named,
        smooth: Numbers,
        labels: Numbers,
        weights: Numbers,
        variances: tuple[float, ...] = _VARIANCES,
    ) -> Logistic:
        """Learn from n rows: `smooth` is their kernel with the landmarks @ basis, possibly scaled row by row as the
        named features are; labels in [0, 1]."""
        found, evidences, iterations = [], [], 0
        for variance in variances:
            design = np.column_stack([named.values, np.sqrt(variance) * smooth]) if variance else named.values
            precision = np.concatenate([named.spread**-2.0, np.ones(design.shape[1] - len(named.spread))])
            coefficients, hessian, steps = _newton(design, precision, named.offset, labels, weights)
            iterations += steps
            lower = np.linalg.cholesky(hessian)
            logits = named.offset + design @ coefficients
            evidence = -np.sum(weights * (np.logaddexp(0, logits) - labels * logits))
            evidence += 0.5 * (np.log(precision).sum() - precision @ coefficients**2) - np.log(np.diag(lower)).sum()
            evidences.append(evidence)
            found.append((variance, coefficients, np.linalg.inv(lower).T))
        shares = np.exp(np.array(evidences) - max(evidences))
        shares /= shares.sum()
        kept = shares >= _LEAST_SHARE
        shares = shares / shares[kept].sum()
        posteriors = [Posterior(float(s), *one) for s, one, keep in zip(shares, found, kept, strict=True) if keep]
        return cls(landmarks, basis, posteriors, iterations)

    def likeliest_variance(self) -> float:
        """The variance most believed in."""
        return max(self.posteriors, key=lambda one: one.share).variance

    def predict(self, states: NDArray[np.float32], sides: Numbers, named: Named) -> Numbers:
        """Probabilities of change, (n,)."""
        return self.predict_smooth(self.landmarks.kernel(states, sides) @ self.basis, named)

    def predict_smooth(self, smooth: Numbers, named: Named) -> Numbers:
        """As `predict`, from the smooth features."""
        total = np.zeros(len(smooth))
        for one in self.posteriors:
            design = np.column_stack([named.values, np.sqrt(one.variance) * smooth]) if one.variance else named.values
            variance = np.sum((design @ one.root) ** 2, axis=1)
            # MacKay's approximation of the mean of a sigmoid under a normal distribution.
            logits = (named.offset + design @ one.coefficients) / np.sqrt(1 + np.pi * variance / 8)
            total += one.share * expit(logits)
        return total

    def arrays(self) -> Arrays:
        """What `from_arrays` needs, besides the likeness."""
        marks = self.landmarks
        found: Arrays = {"states": marks.states, "sides": marks.sides, "basis": self.basis}
        found["shares"] = np.array([one.share for one in self.posteriors])
        found["variances"] = np.array([one.variance for one in self.posteriors])
        for number, one in enumerate(self.posteriors):
            found[f"coefficients-{number}"], found[f"root-{number}"] = one.coefficients, one.root
        return found

    @classmethod
    def from_arrays(cls, likeness: Likeness, arrays: dict[str, NDArray], iterations: int) -> Self:
        """The regression saved by `arrays`."""
        posteriors = [
            Posterior(float(share), float(variance), arrays[f"coefficients-{number}"], arrays[f"root-{number}"])
            for number, (share, variance) in enumerate(zip(arrays["shares"], arrays["variances"], strict=True))
        ]
        return cls(Landmarks(likeness, arrays["states"], arrays["sides"]), arrays["basis"], posteriors, iterations)


def _newton(
    design: Numbers, precision: Numbers, offset: Numbers, labels: Numbers, weights: Numbers
) -> tuple[Numbers, Numbers, int]:
    """Coefficients of greatest posterior density, the negative Hessian of its logarithm there, and steps taken."""

    def loss(coefficients: Numbers) -> float:
        logits = offset + design @ coefficients
        misfit = np.sum(weights * (np.logaddexp(0, logits) - labels * logits))
        return float(misfit + 0.5 * precision @ coefficients**2)

    coefficients = np.zeros(design.shape[1])
    value = loss(coefficients)
    steps = 0
    while True:
        fitted = expit(offset + design @ coefficients)
        hessian = design.T @ ((weights * fitted * (1 - fitted))[:, None] * design)
        hessian[np.diag_indices_from(hessian)] += precision
        gradient = design.T @ (weights * (fitted - labels)) + precision * coefficients
        step = np.linalg.solve(hessian, gradient)
        # Twice what the step can still gain: the loss is convex, so this bounds the distance to the optimum.
        if step @ gradient < 1e-12 * (1 + abs(value)) or steps == _NEWTON_STEPS:
            return coefficients, hessian, steps
        scale = 1.0
        while scale > 1e-6 and (new := loss(coefficients - scale * step)) > value:
            scale /= 2
        if scale <= 1e-6:
            return coefficients, hessian, steps
        coefficients, value = coefficients - scale * step, new
        steps += 1


def _held_out_error(
    turned: Numbers, coefficients: Numbers, penalised: Numbers, target: Numbers, members: list[NDArray[np.int64]]
) -> float:
    """Squared error of ridge regression on each group when it is held out of the fit, without fitting again.

    `turned` (n, c) are orthogonal columns, `penalised` (c,) their squared norms plus the noise: with H a group's block
    of the hat matrix and e its errors in the full fit, its errors when held out are the solution of (I - H) x = e.
    """
    missed = target - turned @ coefficients
    total = 0.0
    for rows in members:
        mine = turned[rows]
        held_out = np.linalg.solve(np.eye(len(rows)) - (mine / penalised) @ mine.T, missed[rows])
        total += float(held_out @ held_out)
    return total


def _compared(states: NDArray[np.float32]) -> NDArray[np.float32]:
    evidence, target = states[:, :, 0], states[:, :, 1]
    return np.concatenate([evidence, target, np.abs(evidence - target), evidence * target], axis=2)
