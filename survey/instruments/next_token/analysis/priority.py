"""By what later stages sample runs: where people and a model part, or where people's share is least certain. Numpy."""

import numpy as np
from numpy.typing import NDArray

from bandit.logistic import standardised

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

RIDGE = 5.0
# So many guesses does the mean of a text weigh as much as that of all texts.
TEXT_GUESSES = 40.0
LOWEST, HIGHEST = 0.01, 0.99


def predicted_share(features: Floats, text: Ints, guessed: Ints, n: Floats, right: Floats) -> Floats:
    """The share of people who would guess each of M positions rightly (M,), between 0.01 and 0.99.

    A ridge regression of the share on the features, weighted by guesses, and what each text adds to it, drawn towards 0
    by a weight of `TEXT_GUESSES` guesses.

    Args:
        features: (M, k), NaN where a value is not known.
        text: the passage of each position, from 0 (M,).
        guessed: the positions that have guesses (N,), with their numbers of guesses `n` and of right ones `right`.
    """
    if not len(guessed):
        return np.full(len(features), 0.5)
    columns = np.column_stack([np.ones(len(features)), standardised(features)])
    own, target, weight = columns[guessed], right / n, n
    penalty = RIDGE * np.eye(columns.shape[1])
    penalty[0, 0] = 0.0
    slope = np.linalg.solve(own.T @ (weight[:, None] * own) + penalty, own.T @ (weight * target))
    fitted = columns @ slope
    rest = right - n * np.clip(fitted[guessed], LOWEST, HIGHEST)
    size = int(text.max()) + 1
    shift = np.bincount(text[guessed], weights=rest, minlength=size) / (
        np.bincount(text[guessed], weights=n, minlength=size) + TEXT_GUESSES
    )
    shares: Floats = np.clip(fitted + shift[text], LOWEST, HIGHEST)
    return shares


def gap(predicted: Floats, model: Floats, run: Ints) -> Floats:
    """How far people's predicted share and the model's lie apart in each run (R,); 0 where the model is not known.

    Args:
        model: whether the model's likeliest token is the true one at each position (M,), NaN where not known.
        run: the run of each position, from 0 (M,).
    """
    known = np.isfinite(model)
    count = np.maximum(np.bincount(run[known], minlength=int(run.max()) + 1), 1)
    differences = np.where(known, predicted - np.where(known, model, 0.0), 0.0)
    gaps: Floats = np.abs(np.bincount(run, weights=differences, minlength=len(count)) / count)
    return gaps


def uncertainty(predicted: Floats, run: Ints, times: Floats) -> Floats:
    """The standard error that people's share in each run has after one more person (R,).

    Args:
        times: how many people have guessed each run (R,).
    """
    spread = np.bincount(run, weights=predicted * (1 - predicted), minlength=len(times))
    tokens = np.maximum(np.bincount(run, minlength=len(times)), 1)
    errors: Floats = np.sqrt(spread) / tokens / np.sqrt(times + 1.0)
    return errors
