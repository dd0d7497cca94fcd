"""Which language models are right wherever others are, and which of them people get less from. Imports only numpy.

A model dominates another if it is right on every question on which the other is (section 2). People deploy a model by
what they believe of it, so that the dominating one can still do worse (appendix B).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from predictors.evaluation import percentile_interval

from .deployment import ModelRows, Rule, known_beliefs, why_beliefs_decide_nothing

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Domination:
    """Two models on the `questions` that both have answered: `better` is right on more of them. `more`: how many
    `better` is right on and `worse` is not. `exceptions`: the other way round. With answers in fractions: on how many
    the one is right more often than the other. `right`: on how many `worse` is right at all."""

    better: str
    worse: str
    questions: int
    better_correct: float
    worse_correct: float
    more: int
    exceptions: int
    right: int

    @property
    def exception_share(self) -> float | None:
        """Exceptions among the questions on which the worse model is right; None if there is none."""
        return self.exceptions / self.right if self.right else None

    def holds(self, allowed: float = 0.0) -> bool:
        """Whether the better model dominates: it is right somewhere else too, and at most this share of what the worse
        one is right on is an exception."""
        return self.more > 0 and (self.exception_share or 0.0) <= allowed


def dominations(answers: Mapping[str, Mapping[Hashable, float]]) -> list[Domination]:
    """Every pair of models with a question that both have answered, those with the fewest exceptions first.

    Args:
        given: by model and question how right the model is, from 0 to 1.
    """
    pairs = []
    for first, second in combinations(answers, 2):
        common = answers[first].keys() & answers[second].keys()
        if not common:
            continue
        first_answers, other = (
            np.array([answers[name][key] for key in common], dtype=np.float64) for name in (first, second)
        )
        better, worse = first, second
        if (other.mean(), (other > first_answers).sum()) > (first_answers.mean(), (first_answers > other).sum()):
            better, worse, first_answers, other = second, first, other, first_answers
        pairs.append(
            Domination(
                better=better,
                worse=worse,
                questions=len(common),
                better_correct=float(first_answers.mean()),
                worse_correct=float(other.mean()),
                more=int((first_answers > other).sum()),
                exceptions=int((other > first_answers).sum()),
                right=int((other > 0).sum()),
            )
        )
    return sorted(pairs, key=lambda pair: (pair.exception_share or 0.0, -pair.more, pair.better, pair.worse))


@dataclass(frozen=True)
class DeploymentGap:
    """Human-deployed performance of two models under one rule: of the better one, of the worse one, and the difference
    with its interval over pairs. `pairs`: how many of each model's rows were used. `deployed`: the share of them in
    which each is deployed. `undecided`: why the beliefs decide nothing here; empty where they do."""

    better: str
    worse: str
    rule: Rule
    beliefs: str
    pairs: tuple[int, int]
    performance: tuple[float, float]
    difference: float
    interval: tuple[float, float]
    deployed: tuple[float, float]
    undecided: str = ""

    @property
    def verdict(self) -> str:
        """reversed: people get less from the better model, beyond chance. unclear: by the figure alone. kept: not.
        undecided: both are deployed nowhere, or everywhere, so that people's beliefs decide nothing."""
        if self.undecided:
            return "undecided"
        if self.difference >= 0:
            return "kept"
        return "reversed" if self.interval[1] < 0 else "unclear"


def resampled_pairs(n: int, *, samples: int, rng: np.random.Generator) -> Floats:
    """(samples, n) how often each of n pairs is in each resample."""
    return rng.multinomial(n, np.full(n, 1 / n), size=samples).astype(np.float64)


def deployment_gaps(
    models: Sequence[tuple[ModelRows, ModelRows]],
    rule: Rule,
    beliefs: str,
    *,
    counts: Floats,
    level: float = 0.95,
) -> list[DeploymentGap]:
    """Each pair of models (better, worse), over the pairs of questions of either; resampled alike.

    Args:
        counts: (samples, n) of `resampled_pairs`; all models have the same n pairs.
    """
    gaps = []
    for better, worse in models:
        if not (better.known.any() and worse.known.any()):
            continue
        points, draws, deployed = [], [], []
        for model in (better, worse):
            sums = model.sums(rule)
            columns = sums[:, [0, 3]]
            point, resampled = columns.sum(axis=0), counts @ columns
            points.append(float(point[1] / point[0]))
            deployed.append(float(sums[:, 2].sum() / point[0]))
            with np.errstate(divide="ignore", invalid="ignore"):
                draws.append(resampled[:, 1] / resampled[:, 0])
        gap = draws[0] - draws[1]
        low, high = percentile_interval(gap[np.isfinite(gap)], level) or (np.nan, np.nan)
        gaps.append(
            DeploymentGap(
                better=better.name,
                worse=worse.name,
                rule=rule,
                beliefs=beliefs,
                pairs=(int(better.known.sum()), int(worse.known.sum())),
                performance=(points[0], points[1]),
                difference=points[0] - points[1],
                interval=(low, high),
                deployed=(deployed[0], deployed[1]),
                undecided=why_beliefs_decide_nothing(known_beliefs([better, worse]), rule),
            )
        )
    return gaps
