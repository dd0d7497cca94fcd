"""An interval for such questions next to one for these: the bank's questions as a sample, not only its people. Numpy
alone.

An item is about one question or two, and answers to items that share one hang together, in whichever role it stands. A
mean over these questions does not have that spread in its error, since the questions are the same in every repetition;
a mean over questions like these does. The variance is then clustered by question, in either role (dyadic-robust:
Aronow, Samii and Assenova, Political Analysis 23, 2015; Tabord-Meehan, Journal of Business & Economic Statistics 37,
2019), in addition to that between people.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bandit.effective import effective_size
from bandit.errors import DesignError
from bandit.estimate import Estimate
from bandit.estimators import _values

MAX_SUBJECTS = 2


def error_contributions(
    *, values: ArrayLike, weight: ArrayLike, domain: ArrayLike | None = None, per: ArrayLike | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What each answer adds to the error of a weighted mean or ratio, and its share of that mean; both (n,).

    Errors are around the mean and not around a stratum's: what a question adds lies between the strata too, where these
    are cut by a prediction from the question.
    `values`, `weight` (N_h / r_h, or 1 / inclusion probability), `domain`, `per`: shape (n,), as for `stratified_mean`.
    """
    value, weights = _values(values), _values(weight, field="weight")
    if weights.size != value.size or (weights < 0).any():
        raise DesignError(f"weight: needs a number of at least 0 for each of {value.size} answers")
    below = np.ones(value.size) if per is None else np.asarray(per, dtype=np.float64)
    if domain is not None:
        weights = np.where(np.asarray(domain, dtype=bool), weights, 0.0)
    size = float(np.dot(weights, below))
    if not size > 0:
        raise DesignError("domain, per: sum to 0 over the answers; there is nothing to divide by")
    mean = float(np.dot(weights, value)) / size
    relative = weights / size
    return relative * (value - mean * below), relative * below


def superpopulation_estimate(
    estimate: Estimate,
    *,
    contributions: ArrayLike,
    shares: ArrayLike,
    cluster: ArrayLike,
    subjects: ArrayLike,
    item: ArrayLike | None = None,
) -> Estimate:
    """The same mean with an interval for a population of questions from which the bank's are a random draw.

    `estimate`: of all stages together, between people. `contributions` (n,): what each answer of all stages adds to its
    error, and `shares` (n,), its share of the mean (`error_contributions`, each times the stage's weight). `cluster`
    (n,): the people. `subjects` (n, 1) or (n, 2): the questions that the item is about, as whole numbers; -1 where an
    item is about one only. `item` (n,): whole numbers, alike for answers to one item whose products are in the variance
    of the estimate already, since it is clustered by item too.

    To the variance between people comes the sum of all products of two different people's contributions whose items
    share a question, at least 0. Products of one person's are in the variance between people already. Contributions are
    around the estimated mean, so that the sum is too low by f times the whole variance, f the same sum of products of
    shares; this is put back. Degrees of freedom are those of the estimate or N - 1, whichever are fewer, with N the
    effective number of questions: (sum of b^2)^2 / sum of b^4, b a question's part of all shares. Raises DesignError
    with fewer than two questions.
    """
    own, about = _values(contributions, field="contributions"), np.asarray(subjects, dtype=np.int64)
    _, person = np.unique(np.asarray(cluster), return_inverse=True)
    if about.ndim != 2 or about.shape[0] != own.size or not 1 <= about.shape[1] <= MAX_SUBJECTS:
        raise DesignError(
            f"subjects: need one or two questions for each of {own.size} answers, not shape {about.shape}"
        )
    part = _values(shares, field="shares")
    if part.size != own.size:
        raise DesignError(f"shares: {part.size} for {own.size} answers; give one for each answer")
    used = part != 0
    own, part, about, person = own[used], part[used], about[used], person[used]
    thing = None if item is None else np.unique(np.asarray(item)[used], return_inverse=True)[1]
    questions, number = np.unique(about, return_inverse=True)
    number = number.reshape(about.shape)
    named = about >= 0
    count = int((questions >= 0).sum())
    if count < 2:
        raise DesignError(f"subjects: {count} questions; an interval for such questions needs at least 2")
    people, size = int(person.max()) + 1, questions.size
    low, high = number.min(axis=1), number.max(axis=1)
    both = named.all(axis=1) & (low < high)
    pair = (low * size + high)[both]
    rows, columns = np.nonzero(named)
    if about.shape[1] > 1:  # An item about the same question twice counts once.
        once = (columns == 0) | (number[rows, 0] != number[rows, 1])
        rows, columns = rows[once], columns[once]
    single = number[rows, columns]

    def shared(values: NDArray[np.float64]) -> float:
        """The sum of products of two different people's values whose items share a question. A pair of items about the
        same two questions shares both, and counts once."""
        everybody = _squares(single, values[rows]) - _squares(pair, values[both])
        of_person = _squares(single * people + person[rows], values[rows])
        squares = everybody - of_person + _squares(pair * people + person[both], values[both])
        if thing is not None:
            squares -= _squares(thing, values) - _squares(thing * people + person, values)
        return squares

    share = np.bincount(single, weights=part[rows], minlength=size)
    effective = effective_size(share**2)
    missing = min(max(shared(part), 0.0), 0.5)
    added = max((shared(own) + missing * estimate.standard_error**2) / (1 - missing), 0.0)
    error = math.sqrt(estimate.standard_error**2 + added)
    freedom = min(estimate.degrees_of_freedom, max(effective - 1, 1.0))
    return estimate.with_error(error, freedom)


def _squares(group: NDArray[np.int64], values: NDArray[np.float64]) -> float:
    """The sum of the groups' squared totals."""
    if not group.size:
        return 0.0
    order = np.argsort(group, kind="stable")
    ends = np.flatnonzero(np.append(group[order][1:] != group[order][:-1], True))
    totals = np.diff(np.cumsum(values[order])[ends], prepend=0.0)
    return float(np.dot(totals, totals))
