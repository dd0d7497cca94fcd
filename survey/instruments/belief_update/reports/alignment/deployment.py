"""What people get from a model that they deploy by their beliefs: human-deployed performance (eq. 2). Only numpy.

People see a model answer x', form a belief about x, and deploy it there or not. The performance of a model is the mean
of h(b) t(x) over pairs (x', x), with x' drawn uniformly and the model's real outcome. h is the chance of deploying at
belief b; t says whether the model answers x correctly. A better model can do worse, since h depends on the model
(appendix B).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bandit.fragility import Fragility, fragile_means
from survey.figures.words import number, short

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Rule:
    """How a belief becomes a deployment: `threshold`, h = 1 where b > threshold; `proportional`, h = b."""

    kind: Literal["threshold", "proportional"] = "threshold"
    threshold: float = 0.5

    def __post_init__(self) -> None:
        if self.kind not in ("threshold", "proportional"):
            raise ValueError(f"rule: {self.kind!r} is not known; use 'threshold' or 'proportional'")
        if not 0 <= self.threshold < 1:
            raise ValueError(f"threshold: {self.threshold!r} must be at least 0 and below 1")

    def deployed(self, belief: ArrayLike) -> Floats:
        """h(b), the chance of deploying, of the same shape as `belief`."""
        b = np.asarray(belief, dtype=np.float64)
        if not ((b >= 0) & (b <= 1)).all():
            raise ValueError("belief: must lie between 0 and 1 everywhere")
        return b if self.kind == "proportional" else (b > self.threshold).astype(np.float64)


def why_beliefs_decide_nothing(belief: ArrayLike, rule: Rule) -> str:
    """A sentence if the threshold lies above every belief, or below every one; else empty."""
    beliefs = np.asarray(belief, dtype=np.float64)
    lowest, highest = float(beliefs.min()), float(beliefs.max())
    if rule.kind == "proportional" or lowest <= rule.threshold < highest:
        return ""
    threshold = short(rule.threshold)
    spread = "mixture beliefs lie between the average posteriors, regression beliefs spread wider"
    if highest <= rule.threshold:
        return f"no belief is above {number(highest, 3)}, so that a threshold of {threshold} deploys nothing; {spread}"
    return (
        f"no belief is below {number(lowest, 3)}, so that a threshold of {threshold} deploys every model everywhere, "
        f"and what people get is its plain accuracy; {spread}"
    )


@dataclass(frozen=True)
class Deployed:
    """One model: mean correctness, share deployed, human-deployed performance; each with an interval over pairs."""

    name: str
    pairs: int
    mean: float
    mean_interval: tuple[float, float]
    share: float
    performance: float
    performance_interval: tuple[float, float]


@dataclass(frozen=True)
class Reversal:
    """`better` answers more questions correctly than `worse` (paired interval above 0), and does worse when people
    deploy it (paired interval below 0)."""

    better: str
    worse: str
    mean_difference: float
    mean_interval: tuple[float, float]
    performance_difference: float
    performance_interval: tuple[float, float]


@dataclass(frozen=True)
class ModelRows:
    """One model's rows for n pairs, the same pairs for every model; `known` says where it has a row.

    `belief` is (n,), or (2, n) after an incorrect and after a correct answer; `seen`, of the same shape, says how much
    each row counts under it (1 without it). `correct` may be fractions.
    """

    name: str
    belief: Floats
    correct: NDArray[Any]
    known: NDArray[np.bool_]
    seen: Floats | None = None

    def sums(self, rule: Rule) -> Floats:
        """(n, 4) of every pair: how much it counts, how often it is correct, deployed, and both at once."""
        n = len(self.correct)
        mass = np.where(self.known, np.ones_like(self.belief) if self.seen is None else self.seen, 0.0)
        counted = mass.reshape(-1, n).sum(axis=0)
        right = np.where(self.known, self.correct, 0.0)
        h = (rule.deployed(np.where(self.known, self.belief, 0.0)) * mass).reshape(-1, n).sum(axis=0)
        return np.stack([counted, right * counted, h, h * right], axis=1)


def known_beliefs(rows: Sequence[ModelRows]) -> Floats:
    """Every belief that counts, of all these models together (k,); of both outcomes where a row has two."""
    return np.concatenate([row.belief[..., row.known].reshape(-1) for row in rows])


def compare_deployment(
    models: list[ModelRows], rule: Rule, *, rng: np.random.Generator, samples: int = 10_000, level: float = 0.95
) -> tuple[list[Deployed], list[Reversal]]:
    """Every model's figures and all reversals between two of them; pairs are resampled, the same for all models.

    A model's figures are means over its own known pairs.

    Raises:
        ValueError: no model, a model without a known pair, or lengths that differ.
    """
    if not models:
        raise ValueError("models: give at least one")
    n = len(models[0].correct)
    counts = rng.multinomial(n, np.full(n, 1 / n), size=samples).astype(np.float64)
    tail = (1 - level) / 2
    estimates, draws = [], {}
    for model in models:
        if not (model.belief.shape[-1] == len(model.correct) == len(model.known) == n):
            raise ValueError(f"{model.name}: needs one row for each of the {n} pairs")
        if not model.known.any():
            raise ValueError(f"{model.name}: has no pair with answers to both questions")
        columns = model.sums(rule)
        point = columns.sum(axis=0)
        resampled = counts @ columns
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = resampled[:, 1:] / resampled[:, :1]
        draws[model.name] = shares
        intervals = np.nanquantile(shares, [tail, 1 - tail], axis=0).T
        estimates.append(
            Deployed(
                name=model.name,
                pairs=int(model.known.sum()),
                mean=float(point[1] / point[0]),
                mean_interval=_pair(intervals[0]),
                share=float(point[2] / point[0]),
                performance=float(point[3] / point[0]),
                performance_interval=_pair(intervals[2]),
            )
        )
    reversals = []
    for first in estimates:
        for second in estimates:
            gap = draws[first.name] - draws[second.name]
            intervals = np.nanquantile(gap, [tail, 1 - tail], axis=0).T
            if intervals[0, 0] > 0 and intervals[2, 1] < 0:
                reversals.append(
                    Reversal(
                        better=first.name,
                        worse=second.name,
                        mean_difference=first.mean - second.mean,
                        mean_interval=_pair(intervals[0]),
                        performance_difference=first.performance - second.performance,
                        performance_interval=_pair(intervals[2]),
                    )
                )
    return estimates, reversals


def carried_by(models: list[ModelRows], rule: Rule) -> Fragility:
    """Which of the n pairs carry the ranking by human-deployed performance: a pair is lost for all models at once.

    Raises:
        DesignError: a model without a known pair.
    """
    sums = np.stack([model.sums(rule) for model in models], axis=1)
    counted, right = sums[:, :, 0], sums[:, :, 3]
    with np.errstate(divide="ignore", invalid="ignore"):
        return fragile_means(values=right / counted, weight=counted)


def _pair(values: Floats) -> tuple[float, float]:
    return float(values[0]), float(values[1])


@dataclass(frozen=True)
class Failure:
    """A pair on which a model misled people: it got the evidence right, they became more confident, and it then failed.
    `gain` is their mean change in belief, `answers` the number of answers behind it."""

    row: int
    gain: float
    answers: int


def failures_of_generalization(
    *, outcome: ArrayLike, correct: ArrayLike, gain: ArrayLike, answers: ArrayLike, known: ArrayLike
) -> list[Failure]:
    """The pairs of figure 4, largest gain first (ties: more answers first, then the pairs' order).

    All arguments have n entries: the model's outcome on the evidence and on the target question (a fraction counts as
    right above 0.5 and as wrong below), people's mean change
    after a correct answer (NaN if nobody answered), the number of answers, and whether the model has both answers.
    """
    t, y = np.asarray(outcome), np.asarray(correct)
    g, n = np.asarray(gain, dtype=np.float64), np.asarray(answers, dtype=np.int64)
    misled = (t > 0.5) & (y < 0.5) & (n > 0) & (np.nan_to_num(g) > 0)
    rows = np.flatnonzero(np.asarray(known, dtype=bool) & misled)
    ordered = sorted(rows.tolist(), key=lambda row: (-g[row], -n[row], row))
    return [Failure(row=row, gain=float(g[row]), answers=int(n[row])) for row in ordered]
