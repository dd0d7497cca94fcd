"""Predicting what people come to believe: the paper's mixture, and a regression that adds to it. Imports only numpy.

The mixture (appendix C) knows the outcome and the predicted chance of a change, and gives everybody the same average
beliefs. The regression adds what people expect of the target question before any evidence. Which one predicts real
posteriors better is measured out of sample. Beliefs and probabilities are fractions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from predictors.evaluation import percentile_interval

from .scores import Averages, mixture_belief

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MIN_ROWS = 30


@dataclass(frozen=True)
class Answers:
    """n complete answers: beliefs, what was shown, who answered, and the design's weights.

    `change` is a predictor's probability of a change, made before the answer was given; `target`, `task`, `respondent`
    and `pair` are any integers that identify them.
    """

    prior: Floats
    posterior: Floats
    outcome: Ints
    change: Floats
    target: Ints
    task: Ints
    respondent: Ints
    pair: Ints
    weight: Floats

    def __post_init__(self) -> None:
        n = len(self.prior)
        for name, column in vars(self).items():
            if column.shape != (n,):
                raise ValueError(f"{name}: shape {column.shape} for {n} answers; give one value an answer")
        for name in ("prior", "posterior", "change"):
            values = getattr(self, name)
            if not ((values >= 0) & (values <= 1)).all():
                raise ValueError(f"{name}: must lie between 0 and 1 everywhere")
        if not np.isin(self.outcome, (0, 1)).all():
            raise ValueError("outcome: use 1 for correct and 0 for incorrect")
        if not (np.isfinite(self.weight) & (self.weight > 0)).all():
            raise ValueError("weight: must be finite and above 0 everywhere")

    def __len__(self) -> int:
        return len(self.prior)

    def take(self, rows: NDArray[np.bool_]) -> Answers:
        return Answers(**{name: column[rows] for name, column in vars(self).items()})


def averages_of(answers: Answers) -> Averages:
    """The weighted mean prior, and mean posteriors after either outcome.

    Raises:
        ValueError: no answer after one of the outcomes.
    """
    row = _averages(answers, np.ones(len(answers)))
    if not np.isfinite(row).all():
        raise ValueError("answers: there is none after one of the outcomes, so its average posterior is not known")
    prior, after_correct, after_incorrect = np.clip(row, 1e-6, 1 - 1e-6)
    return Averages(float(prior), float(after_correct), float(after_incorrect))


def resampled_averages(answers: Answers, *, samples: int, rng: np.random.Generator) -> Floats:
    """(samples, 3) averages with respondents resampled; a resample without answers after an outcome is drawn again.

    Raises:
        ValueError: fewer than two respondents, or too few of them have answers after one of the outcomes.
    """
    _people, person = np.unique(answers.respondent, return_inverse=True)
    count = len(_people)
    if count < 2:
        raise ValueError("respondents: one alone cannot be resampled")
    averages_of(answers)
    sums = np.zeros((count, 6))
    for column, values in enumerate(_parts(answers)):
        sums[:, column] = np.bincount(person, weights=values, minlength=count)
    drawn = np.empty((0, 3))
    for _try in range(20):
        counts = rng.multinomial(count, np.full(count, 1 / count), size=samples - len(drawn))
        totals = counts @ sums
        good = (totals[:, [1, 3, 5]] > 0).all(axis=1)
        drawn = np.concatenate([drawn, totals[good][:, [0, 2, 4]] / totals[good][:, [1, 3, 5]]])
        if len(drawn) == samples:
            return np.clip(drawn, 1e-6, 1 - 1e-6)
    raise ValueError("respondents: too few have answers after one of the outcomes to resample them")


def _parts(answers: Answers) -> Iterator[Floats]:
    correct, incorrect = answers.weight * answers.outcome, answers.weight * (1 - answers.outcome)
    yield from (answers.weight * answers.prior, answers.weight)
    yield from (correct * answers.posterior, correct)
    yield from (incorrect * answers.posterior, incorrect)


def _averages(answers: Answers, multiplicity: Floats) -> Floats:
    sums = [float(values @ multiplicity) for values in _parts(answers)]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(sums[0::2]) / np.asarray(sums[1::2])


@dataclass(frozen=True)
class TargetPriors:
    """What people expect of a target question before evidence: the mean of its answers, shrunk towards its task's mean,
    which is shrunk towards the mean of all (normal shrinkage; its strength comes from the spread between groups)."""

    overall: float
    by_task: dict[int, float]
    by_target: dict[int, float]

    @classmethod
    def fit(cls, *, prior: Floats, task: Ints, target: Ints, weight: Floats) -> TargetPriors:
        overall = float(np.average(prior, weights=weight))
        by_task = _shrunk(prior, task, weight, dict.fromkeys(np.unique(task).tolist(), overall))
        task_of = dict(zip(target.tolist(), task.tolist(), strict=True))
        towards = {question: by_task[task_of[question]] for question in task_of}
        return cls(overall, by_task, _shrunk(prior, target, weight, towards))

    def predict(self, *, task: Ints, target: Ints) -> Floats:
        """(n,) expectations: of the question if it was asked, else of its task, else of all."""
        return np.asarray(
            [
                self.by_target.get(question, self.by_task.get(kind, self.overall))
                for question, kind in zip(target.tolist(), task.tolist(), strict=True)
            ],
            dtype=np.float64,
        )


def _shrunk(values: Floats, group: Ints, weight: Floats, towards: dict[int, float]) -> dict[int, float]:
    names, place = np.unique(group, return_inverse=True)
    counts = np.bincount(place).astype(np.float64)
    mass = np.bincount(place, weights=weight)
    means = np.bincount(place, weights=weight * values) / mass
    centre = np.asarray([towards[name] for name in names.tolist()])
    within_sum = float((weight * (values - means[place]) ** 2).sum() / weight.mean())
    degrees = max(1.0, len(values) - len(names))
    within = max(within_sum / degrees, 1e-9)
    # Method of moments: a group's mean varies by the spread between groups and by chance.
    between = max(float(np.mean((means - centre) ** 2 - within / counts)), 0.0)
    share = between / (between + within / counts)
    shrunk = centre + share * (means - centre)
    return dict(zip(names.tolist(), shrunk.tolist(), strict=True))


@dataclass(frozen=True)
class BeliefRegression:
    """posterior = a + b t + c p + d t p + e prior(x) + f t prior(x): t the outcome, p the predicted chance of a change,
    prior(x) what people expect of the target question. Weighted least squares; predictions kept within [0, 1]."""

    priors: TargetPriors
    coefficients: Floats

    @classmethod
    def fit(cls, answers: Answers) -> BeliefRegression:
        """
        Raises:
            ValueError: fewer than 30 answers.
        """
        if len(answers) < MIN_ROWS:
            raise ValueError(f"answers: {len(answers)} are too few for a regression; it needs {MIN_ROWS} or more")
        priors = TargetPriors.fit(prior=answers.prior, task=answers.task, target=answers.target, weight=answers.weight)
        expected = _leave_one_out(answers, priors)
        features = _features(answers.outcome, answers.change, expected)
        root = np.sqrt(answers.weight / answers.weight.mean())
        # A tiny ridge penalty keeps the solution finite for constant columns (one outcome, or constant predictions).
        gram = (features * root[:, None]).T @ (features * root[:, None]) + 1e-6 * np.eye(features.shape[1])
        return cls(priors, np.linalg.solve(gram, (features * (root**2)[:, None]).T @ answers.posterior))

    def predict(self, *, outcome: ArrayLike, change: ArrayLike, target: Ints, task: Ints) -> Floats:
        """(n,) posterior beliefs; all arguments have n entries."""
        expected = self.priors.predict(task=task, target=target)
        features = _features(np.asarray(outcome), np.asarray(change, dtype=np.float64), expected)
        return np.clip(features @ self.coefficients, 0.0, 1.0)


def _leave_one_out(answers: Answers, priors: TargetPriors) -> Floats:
    """Each row's expected prior without its own answer, which would not be known when predicting."""
    _names, place = np.unique(answers.target, return_inverse=True)
    mass = np.bincount(place, weights=answers.weight)
    total = np.bincount(place, weights=answers.weight * answers.prior)
    alone = mass[place] - answers.weight
    of_task = np.asarray([priors.by_task[task] for task in answers.task.tolist()])
    own = priors.predict(task=answers.task, target=answers.target)
    raw = total[place] / mass[place]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(np.abs(raw - of_task) > 1e-12, (own - of_task) / (raw - of_task), 0.0)
        others = np.where(alone > 0, (total[place] - answers.weight * answers.prior) / alone, of_task)
    return of_task + np.clip(share, 0, 1) * (others - of_task)


def _features(outcome: NDArray[np.generic], change: Floats, expected: Floats) -> Floats:
    t = outcome.astype(np.float64)
    return np.stack([np.ones_like(change), t, change, t * change, expected, t * expected], axis=1)


@dataclass(frozen=True)
class BeliefComparison:
    """Weighted squared errors of posteriors, out of sample: mixture, regression, and the first minus the second."""

    n: int
    respondents: int
    mixture: float
    regression: float
    improvement: float
    interval: tuple[float, float]


def compare_beliefs(
    answers: Answers, *, rng: np.random.Generator, folds: int = 5, samples: int = 2000, level: float = 0.95
) -> BeliefComparison:
    """Compare mixture and regression by cross-validation. No fit sees the people or the pairs that it is tested on.

    The interval is over respondents, of the paired difference of mean squared errors (positive: the regression is
    better).

    Raises:
        ValueError: too few answers, people or pairs to divide.
    """
    mixture, regression = np.full(len(answers), np.nan), np.full(len(answers), np.nan)
    for test, train in _crossed_folds(answers, folds, rng):
        if not test.any():
            continue
        known, new = answers.take(train), answers.take(test)
        mixture[test] = mixture_belief(new.change, new.outcome, averages_of(known))
        fitted = BeliefRegression.fit(known)
        regression[test] = fitted.predict(outcome=new.outcome, change=new.change, target=new.target, task=new.task)
    errors = np.stack([(predicted - answers.posterior) ** 2 for predicted in (mixture, regression)])
    people, person = np.unique(answers.respondent, return_inverse=True)
    mass = np.bincount(person, weights=answers.weight)
    gain = np.bincount(person, weights=answers.weight * (errors[0] - errors[1]))
    counts = rng.multinomial(len(people), np.full(len(people), 1 / len(people)), size=samples)
    interval = percentile_interval((counts @ gain) / (counts @ mass), level)
    means = np.average(errors, axis=1, weights=answers.weight)
    return BeliefComparison(
        n=len(answers),
        respondents=len(people),
        mixture=float(means[0]),
        regression=float(means[1]),
        improvement=float(means[0] - means[1]),
        interval=interval or (np.nan, np.nan),
    )


def _crossed_folds(
    answers: Answers, folds: int, rng: np.random.Generator
) -> Iterator[tuple[NDArray[np.bool_], NDArray[np.bool_]]]:
    """Every row is tested once, by a fit without its respondent and without its pair."""
    by = []
    for name, group in (("respondents", answers.respondent), ("pairs", answers.pair)):
        names, place = np.unique(group, return_inverse=True)
        if len(names) < folds:
            raise ValueError(f"{name}: {len(names)} cannot be divided into {folds} parts")
        by.append(rng.permutation(np.arange(len(names)) % folds)[place])
    person, pair = by
    for first in range(folds):
        for second in range(folds):
            yield (person == first) & (pair == second), (person != first) & (pair != second)
