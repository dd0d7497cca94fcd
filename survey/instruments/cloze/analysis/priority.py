"""What the next stage samples positions by: how uncertain people's surprisal will be, or how far it will lie from a
model's. Needs numpy alone.

Both begin with people's surprisal as a ridge regression of earlier answers predicts it, from what is known of a
position without asking: a model's surprisal and entropy, the word's length and log frequency. A position with answers
is predicted by the fit to the others. So no position's own answers move its chance of being drawn again, and one
divided by its chance of being drawn at least once is a weight without bias.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bandit.logistic import standardised

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

PENALTY = 1.0
FEWEST = 5  # positions with answers, for a regression on features
WEAKEST, STRONGEST = 1.0, 200.0  # of the prior, in answers


def predicted_surprisal(features: Floats, answered: Ints, surprisal: Floats) -> Floats:
    """People's surprisal at M positions, in nats, from its value at n of them.

    Args:
        features: (M, k); NaN counts as the column's mean. answered: (n,) which positions have answers. surprisal: (n,).

    Returns:
        (M,); at an answered position what the others predict.
    """
    if not len(answered):
        return np.zeros(len(features))
    if len(answered) < FEWEST or not features.shape[1]:
        predicted = np.full(len(features), float(surprisal.mean()))
        if len(answered) > 1:
            predicted[answered] = (surprisal.sum() - surprisal) / (len(answered) - 1)
        return predicted
    columns = np.concatenate([np.ones((len(features), 1)), standardised(features)], axis=1)
    own = columns[answered]
    penalty = PENALTY * np.eye(own.shape[1])
    penalty[0, 0] = 0
    inverse = np.linalg.inv(own.T @ own + penalty)
    predicted = columns @ (inverse @ (own.T @ surprisal))
    leverage = np.clip(np.einsum("ij,jk,ik->i", own, inverse, own), 0, 0.99)
    predicted[answered] = surprisal - (surprisal - predicted[answered]) / (1 - leverage)
    return predicted


def uncertainty(predicted: Floats, answered: Ints, k: Ints, n: Ints, *, smoothing: float, responses: int) -> Floats:
    """The standard deviation of people's surprisal at M positions: sqrt((1 - p) / (n p)) at `responses` answers.

    p is the mean of a Beta prior centred on the predicted chance, smoothed as the norms are. The prior's strength is
    estimated from how far the shares k / n of the answered positions lie from what is predicted for them.
    """
    centre = np.clip(np.exp(-predicted), 1e-6, 1 - 1e-6)
    strength = _strength(centre[answered], k, n)
    chance = (strength * centre + smoothing) / (strength + 2 * smoothing)
    deviation: Floats = np.sqrt((1 - chance) / (responses * chance))
    return deviation


def gap(predicted: Floats, model: Floats) -> Floats:
    """How far a model's surprisal (M,) lies from people's predicted one; 0 where the model has none."""
    known = np.isfinite(model)
    gaps: Floats = np.where(known, np.abs(predicted - np.where(known, model, 0.0)), 0.0)
    return gaps


def drawn_at_least_once(chances: Floats) -> Floats:
    """The chance (N,) that a position is drawn in one of S stages or more, from its chance in each (S, N)."""
    chance: Floats = 1 - np.prod(1 - chances, axis=0)
    return chance


def _strength(centre: Floats, k: Ints, n: Ints) -> float:
    """Of a Beta prior, by moments: E (k / n - c)^2 = c (1 - c) (1 / n + (1 - 1 / n) / (strength + 1))."""
    asked = n > 0
    if not asked.any():
        return WEAKEST
    share, middle, answers = k[asked] / n[asked], centre[asked], n[asked]
    binomial = middle * (1 - middle)
    spread = float(((share - middle) ** 2 - binomial / answers).sum())
    most = float((binomial * (1 - 1 / answers)).sum())
    if most <= 0 or spread <= 0:
        return STRONGEST
    return min(max(most / spread - 1, WEAKEST), STRONGEST)
