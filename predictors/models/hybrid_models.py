"""The hybrid's two learners over likeness of pairs: ridge regression and Bayesian logistic regression.

Both are Gaussian processes (Rasmussen and Williams 2006, chapters 2, 3 and 8) written in an explicit basis: with as
many landmarks as rows they are exact, with fewer this is the Nystrom approximation, whose cost is bounded.
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotri
from scipy.optimize import minimize
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
_MIN_SHARE = 1e-3
_NEWTON_STEPS = 50
# Learning how much each part of the kernel counts: rows at most, steps at most, logarithms of the variances at least
# and at most, where they lie a priori and how far about it, and the variance of a mean that may be anything.
_ROWS_FOR_SHARES = 500
_SHARE_STEPS = 30
_BOUNDS = (-12.0, 4.0)
_USUAL_SIZE = float(np.log(0.1))
_SIZES_SPREAD = 3.0
_FREE_MEAN = 4.0


class View(NamedTuple):
    """What is known of n pairs: float32 states (n, depths, 2, hidden), and, (n,) each, sides (-1 or 1 for the outcome),
    similarity of both texts, each read alone, and 1 where both questions are of one task. beside: numbers beside the
    texts, (n, k), which no kernel reads."""

    states: NDArray[np.float32]
    sides: Numbers
    similarity: Numbers
    same_task: Numbers
    beside: Numbers | None = None

    def take(self, rows: NDArray | slice) -> View:
        """Some of the pairs."""
        beside = None if self.beside is None else self.beside[rows]
        return View(self.states[rows], self.sides[rows], self.similarity[rows], self.same_task[rows], beside)


class Likeness(NamedTuple):
    """How alike two pairs are, by depth of the network: exp(-d^2), d the distance between standardised features.

    Features of a depth are the two texts' mean states a and b, |a - b| and a * b. centre, scale: float32
    (depths, 4 hidden), with 0 scale for what never varies; the scale holds the width, the root of twice the median
    squared distance among training rows. similarity_scale: the same for the similarity of the texts.
    """

    centre: NDArray[np.float32]
    scale: NDArray[np.float32]
    similarity_scale: float = 0.0

    @classmethod
    def learn(cls, view: View, rng: np.random.Generator) -> Likeness:
        """Scales from distinct training rows."""
        if len(view.states) > _ROWS_FOR_SCALES:
            view = view.take(np.sort(rng.choice(len(view.states), _ROWS_FOR_SCALES, replace=False)))
        raw = _compared(view.states)
        centre, deviation = raw.mean(axis=0), raw.std(axis=0)
        varies = deviation > 1e-5
        scale = np.where(varies, 1 / np.where(varies, deviation, 1.0), 0.0)
        features = (raw - centre) * scale
        for depth in range(raw.shape[1]):
            mine = features[:, depth].astype(np.float64)
            distances = euclidean_distances(mine, squared=True)
            scale[depth] /= np.sqrt(2 * (np.median(distances) or 1.0))
        distances = np.square(view.similarity[:, None] - view.similarity)
        similarity_scale = 1 / np.sqrt(2 * (np.median(distances) or 1.0))
        return cls(centre, scale.astype(np.float32), float(similarity_scale))

    def features(self, states: NDArray[np.float32]) -> NDArray[np.float32]:
        """Scaled features, (n, depths, 4 hidden)."""
        return (_compared(states) - self.centre) * self.scale


class Landmarks:
    """Rows of the training data that others are compared with.

    The kernel is a sum of parts: likeness at each depth, likeness of the texts' similarity, and "both pairs are inside
    a task". Each part counts once whatever the outcome, and once with the sign of both outcomes' product: what both
    outcomes share, and what sets them apart. shares: how much, (parts, 2), 1 in all; by default the depths alone, in
    equal parts.
    """

    def __init__(self, likeness: Likeness, view: View, shares: Numbers | None = None) -> None:
        self.likeness, self.view = likeness, view
        self.features = likeness.features(view.states).astype(np.float64)
        depths = view.states.shape[1]
        if shares is None:
            shares = np.zeros((depths + 2, 2))
            shares[:depths] = 1 / (2 * depths)
        self.shares = shares

    @classmethod
    def choose(cls, likeness: Likeness, view: View, most: int, rng: np.random.Generator) -> Landmarks:
        """All rows, or `most` of them drawn at random."""
        if len(view.states) > most:
            view = view.take(np.sort(rng.choice(len(view.states), most, replace=False)))
        return cls(likeness, view)

    def with_shares_of(self, view: View, values: Numbers, weights: Numbers, rng: np.random.Generator) -> Landmarks:
        """The same landmarks, with the shares under which n values (n,) are likeliest (`likeliest_shares`)."""
        if len(values) > _ROWS_FOR_SHARES:
            rows = np.sort(rng.choice(len(values), _ROWS_FOR_SHARES, replace=False))
            view, values, weights = view.take(rows), values[rows], weights[rows]
        if not values.std() > 0:
            return self
        parts = Landmarks(self.likeness, view).parts(view)
        return Landmarks(self.likeness, self.view, likeliest_shares(parts, view.sides, values, weights))

    def parts(self, view: View) -> list[Numbers]:
        """The parts of the kernel of n rows with the m landmarks, (n, m) each, without signs and shares."""
        # In double precision: near landmarks the differences of large squares cancel.
        features = self.likeness.features(view.states).astype(np.float64)
        kernels = [
            rbf_kernel(features[:, column], self.features[:, column], gamma=1.0) for column in range(features.shape[1])
        ]
        apart = self.likeness.similarity_scale * (view.similarity[:, None] - self.view.similarity)
        return [*kernels, np.exp(-np.square(apart)), np.outer(view.same_task, self.view.same_task)]

    def kernel(self, view: View) -> Numbers:
        """The kernel of n rows with the m landmarks, (n, m); at most 1, for a row with itself."""
        kernel = np.zeros((len(view.states), len(self.view.states)))
        for first in range(0, len(kernel), _ROWS_AT_ONCE):
            rows = slice(first, first + _ROWS_AT_ONCE)
            block = view.take(rows)
            signs = np.outer(block.sides, self.view.sides)
            for part, (common, contrast) in zip(self.parts(block), self.shares, strict=True):
                if common or contrast:
                    kernel[rows] += (common + contrast * signs) * part
        return kernel

    def basis(self) -> Numbers:
        """(m, r): kernel @ basis are features whose products are the (Nystrom) kernel."""
        values, vectors = np.linalg.eigh(self.kernel(self.view))
        large = values > 1e-9 * values[-1]
        return vectors[:, large] / np.sqrt(values[large])

    def arrays(self) -> Arrays:
        """What `from_arrays` needs, besides the likeness."""
        compared = {name: part for name, part in self.view._asdict().items() if name != "beside"}
        return {**compared, "shares_of_parts": self.shares}

    @classmethod
    def from_arrays(cls, likeness: Likeness, arrays: dict[str, NDArray]) -> Landmarks:
        """The landmarks saved by `arrays`."""
        view = View(*(arrays[name] for name in ("states", "sides", "similarity", "same_task")))
        return cls(likeness, view, arrays["shares_of_parts"])


def likeliest_shares(parts: list[Numbers], sides: Numbers, values: Numbers, weights: Numbers) -> Numbers:
    """Shares (parts, 2), 1 in all, under which n values (n,) are likeliest: type II maximum likelihood.

    The values are a Gaussian process with a free mean for each outcome, and noise of a variance that falls with the
    weight (n,). parts: (n, n) each, as of `Landmarks.parts`. Rasmussen and Williams (2006), section 5.4. A weak prior
    keeps variances that the values say nothing of small and finite.
    """
    target = (values - np.average(values, weights=weights)) / values.std()
    signs = np.outer(sides, sides)
    terms = [term for part in parts for term in (part, part * signs)]
    noise = weights.mean() / weights
    means = _FREE_MEAN * (1 + signs)

    def misfit(logs: Numbers) -> tuple[float, Numbers]:
        sizes = np.exp(logs)
        covariance = means + sum(size * term for size, term in zip(sizes, terms, strict=False))
        covariance[np.diag_indices_from(covariance)] += sizes[-1] * noise
        inverse, log_determinant = _inverse_and_log_determinant(covariance)
        explained = inverse @ target
        away = (logs - _USUAL_SIZE) / _SIZES_SPREAD
        value = 0.5 * (target @ explained + log_determinant + away @ away)
        slopes = [np.sum(inverse * term) - explained @ term @ explained for term in terms]
        slopes.append(noise @ (np.diag(inverse) - explained**2))
        return float(value), 0.5 * sizes * np.array(slopes) + away / _SIZES_SPREAD

    start = np.full(len(terms) + 1, _USUAL_SIZE)
    bounds = [_BOUNDS] * len(start)
    optimum = minimize(misfit, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": _SHARE_STEPS})
    sizes = np.exp(optimum.x[:-1]).reshape(-1, 2)
    return np.asarray(sizes / sizes.sum())


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
        view: View,
        logits: Numbers,
        weights: Numbers,
        groups: NDArray[np.int64],
    ) -> Ridge:
        """Learn from n rows; rows of one group are left out together when the noise is chosen."""
        basis = landmarks.basis()
        mean = float(np.average(logits, weights=weights))
        # The kernel counts twice, so that a shift common to both outcomes has the variance 1.
        smooth = np.sqrt(2) * (landmarks.kernel(view) @ basis)
        root = np.sqrt(weights)
        design = np.column_stack([np.ones(len(logits)), view.sides, smooth]) * root[:, None]
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
        coefficients = vectors @ (moment / (values + _NOISES[int(np.argmin(errors))]))
        return cls(
            landmarks, np.array([mean + coefficients[0], coefficients[1]]), np.sqrt(2) * (basis @ coefficients[2:])
        )

    def predict(self, view: View) -> Numbers:
        """Logits, (n,)."""
        return self.line[0] + view.sides * self.line[1] + self.landmarks.kernel(view) @ self.weights

    def arrays(self) -> Arrays:
        """What `from_arrays` needs, besides the likeness."""
        return {**self.landmarks.arrays(), "line": self.line, "weights": self.weights}

    @classmethod
    def from_arrays(cls, likeness: Likeness, arrays: dict[str, NDArray]) -> Self:
        """The ridge saved by `arrays`."""
        return cls(Landmarks.from_arrays(likeness, arrays), arrays["line"], arrays["weights"])


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
        fits, evidences, iterations = [], [], 0
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
            fits.append((variance, coefficients, np.linalg.inv(lower).T))
        shares = np.exp(np.array(evidences) - max(evidences))
        shares /= shares.sum()
        likely = shares >= _MIN_SHARE
        shares = shares / shares[likely].sum()
        posteriors = [Posterior(float(s), *fit) for s, fit, keep in zip(shares, fits, likely, strict=True) if keep]
        return cls(landmarks, basis, posteriors, iterations)

    def likeliest_variance(self) -> float:
        """The variance most believed in."""
        return max(self.posteriors, key=lambda posterior: posterior.share).variance

    def predict(self, view: View, named: Named) -> Numbers:
        """Probabilities of change, (n,)."""
        return self.predict_smooth(self.landmarks.kernel(view) @ self.basis, named)

    def predict_smooth(self, smooth: Numbers, named: Named) -> Numbers:
        """As `predict`, from the smooth features."""
        total = np.zeros(len(smooth))
        for posterior in self.posteriors:
            design = (
                np.column_stack([named.values, np.sqrt(posterior.variance) * smooth])
                if posterior.variance
                else named.values
            )
            variance = np.sum((design @ posterior.root) ** 2, axis=1)
            # MacKay's approximation of the mean of a sigmoid under a normal distribution.
            logits = (named.offset + design @ posterior.coefficients) / np.sqrt(1 + np.pi * variance / 8)
            total += posterior.share * expit(logits)
        return total

    def arrays(self) -> Arrays:
        """What `from_arrays` needs, besides the likeness."""
        arrays: Arrays = {**self.landmarks.arrays(), "basis": self.basis}
        arrays["shares"] = np.array([posterior.share for posterior in self.posteriors])
        arrays["variances"] = np.array([posterior.variance for posterior in self.posteriors])
        for number, one in enumerate(self.posteriors):
            arrays[f"coefficients-{number}"], arrays[f"root-{number}"] = one.coefficients, one.root
        return arrays

    @classmethod
    def from_arrays(cls, likeness: Likeness, arrays: dict[str, NDArray], iterations: int) -> Self:
        """The regression saved by `arrays`."""
        posteriors = [
            Posterior(float(share), float(variance), arrays[f"coefficients-{number}"], arrays[f"root-{number}"])
            for number, (share, variance) in enumerate(zip(arrays["shares"], arrays["variances"], strict=True))
        ]
        return cls(Landmarks.from_arrays(likeness, arrays), arrays["basis"], posteriors, iterations)


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


def _inverse_and_log_determinant(covariance: Numbers) -> tuple[Numbers, float]:
    """Both of a symmetric positive definite matrix, from one Cholesky factor: about a third of the operations of
    numpy's two general routines. Where rounding leaves it indefinite, numpy's."""
    factor, failed = dpotrf(covariance, lower=1, clean=1)
    if failed:
        inverse: Numbers = np.asarray(np.linalg.inv(covariance), dtype=np.float64)
        return inverse, float(np.linalg.slogdet(covariance)[1])
    lower, _ = dpotri(factor, lower=1)
    return lower + np.tril(lower, -1).T, 2 * float(np.log(np.diag(factor)).sum())


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
