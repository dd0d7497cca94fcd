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
from survey.figures.figure import finite

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
    """What people get from two models under one rule: from the better one, from the worse one, and the difference with
    its interval over pairs. `pairs`: how many of each model's rows were used. `deployed`: the share of them in which
    each is deployed. `undecided`: why the beliefs decide nothing here; empty where they do.

    `performance` is the mean of h(b) t(x) over pairs. `in_use` is how often a model is right where it is deployed:
    that is equation 2 with h as a distribution over questions: it falls where people use a model for what it cannot do,
    however often they use it. None of a model that is deployed nowhere.
    """

    better: str
    worse: str
    rule: Rule
    beliefs: str
    pairs: tuple[int, int]
    performance: tuple[float, float]
    difference: float
    interval: tuple[float, float]
    deployed: tuple[float, float]
    in_use: tuple[float | None, float | None]
    in_use_difference: float | None
    in_use_interval: tuple[float, float]
    undecided: str = ""

    @property
    def verdict(self) -> str:
        """reversed: people get less from the better model, beyond chance. unclear: by the figure alone. kept: not.
        undecided: both are deployed nowhere, or everywhere, so that people's beliefs decide nothing."""
        return "undecided" if self.undecided else _verdict(self.difference, self.interval)

    @property
    def in_use_verdict(self) -> str:
        """The same of how often the models are right where they are deployed; also undecided where one of them is
        deployed nowhere."""
        if self.undecided or self.in_use_difference is None:
            return "undecided"
        return _verdict(self.in_use_difference, self.in_use_interval)

    @property
    def is_reversed(self) -> bool:
        return "reversed" in (self.verdict, self.in_use_verdict)


def _verdict(difference: float, interval: tuple[float, float]) -> str:
    if difference >= 0:
        return "kept"
    return "reversed" if interval[1] < 0 else "unclear"


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
        sums = [model.sums(rule) for model in (better, worse)]
        totals = [columns.sum(axis=0) for columns in sums]
        resampled = [counts @ columns for columns in sums]
        performance, interval = _gap(totals, resampled, 0, level)
        in_use, in_use_interval = _gap(totals, resampled, 2, level)
        gaps.append(
            DeploymentGap(
                better=better.name,
                worse=worse.name,
                rule=rule,
                beliefs=beliefs,
                pairs=(int(better.known.sum()), int(worse.known.sum())),
                performance=(performance[0], performance[1]),
                difference=performance[0] - performance[1],
                interval=interval,
                deployed=(float(totals[0][2] / totals[0][0]), float(totals[1][2] / totals[1][0])),
                in_use=(finite(in_use[0]), finite(in_use[1])),
                in_use_difference=None if np.isnan(in_use).any() else in_use[0] - in_use[1],
                in_use_interval=in_use_interval,
                undecided=why_beliefs_decide_nothing(known_beliefs([better, worse]), rule),
            )
        )
    return gaps


def _gap(
    totals: Sequence[Floats], resampled: Sequence[Floats], whole: int, level: float
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Of the better and the worse model how often it is deployed and right, as a share of the column `whole` of
    `ModelRows.sums`, and the interval of their difference over the resamples, of which those without that are left
    out."""
    with np.errstate(divide="ignore", invalid="ignore"):
        first, second = (float(total[3] / total[whole]) for total in totals)
        gap = np.subtract(*(draws[:, 3] / draws[:, whole] for draws in resampled))
    low, high = percentile_interval(gap[np.isfinite(gap)], level) or (np.nan, np.nan)
    return (first, second), (low, high)
