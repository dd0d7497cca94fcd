"""What arms of a study change: alignment and human-deployed performance of a language model, by the levels of a factor.

Everything is about the beliefs that people stated in each arm, and not about predicted ones: an arm may change on which
questions people trust a model, which averages of beliefs do not show. `correct` is t(x, f(x)), whether the model is
right on the target question, and never shown to anybody. Notation as in `alignment`; fractions in [0, 1]. Imports
numpy, the contracts and the results kit alone.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from survey.contracts.measures import Measure
from survey.figures.words import short

from ..alignment.deployment import Rule

When = Literal["prior", "posterior"]
WHEN: tuple[When, ...] = ("prior", "posterior")
ACCURACY, CROSS_ENTROPY, PERFORMANCE, DEPLOYED, CORRECT = (
    "accuracy",
    "cross_entropy",
    "performance",
    "deployed",
    "correct",
)
# Beliefs are whole percentage points. Those of 0 and 100 % count as half a point inside, since their loss is infinite.
NEAREST = 0.005


@dataclass(frozen=True, eq=False)
class ArmAnswers:
    """n answers: both beliefs as fractions; how often the model is right on the target, 0 to 1; how much the answer
    counts for this model, which is the chance that it had the outcome that was shown (0: it is none of its pairs)."""

    prior: np.ndarray
    posterior: np.ndarray
    correct: np.ndarray
    counts: np.ndarray

    def belief(self, when: When) -> np.ndarray:
        belief: np.ndarray = getattr(self, when)
        return belief


@dataclass(frozen=True)
class ArmMeasure:
    """What one figure is. `alpha` of accuracy and cross-entropy, `rule` of performance and the share deployed."""

    measure: str
    when: When | None = None
    alpha: float | None = None
    rule: Rule | None = None

    @property
    def name(self) -> str:
        rule = None if self.rule is None else self.rule.kind
        alpha = None if self.alpha is None else short(self.alpha)
        return "_".join(part for part in (self.measure, self.when, alpha, rule) if part)

    @property
    def title(self) -> str:
        if self.measure == CORRECT:
            return "model right on the target"
        if self.rule is not None:
            how = f"above {short(self.rule.threshold)}" if self.rule.kind == "threshold" else "as often as believed"
            what = "deployed" if self.measure == DEPLOYED else "deployed and right"
            return f"{what}, {how}"
        what = "alignment" if self.measure == ACCURACY else "cross-entropy"
        return f"{what}, alpha {short(self.alpha)}"


def measures_of_arms(alphas: Sequence[float], rules: Sequence[Rule]) -> list[ArmMeasure]:
    """Every figure, of priors and then of posteriors; the last one is the same in all arms, up to chance."""
    measures = []
    for when in WHEN:
        measures += [ArmMeasure(ACCURACY, when, alpha=alpha) for alpha in alphas]
        measures += [ArmMeasure(CROSS_ENTROPY, when, alpha=alpha) for alpha in alphas]
        for rule in rules:
            measures += [ArmMeasure(PERFORMANCE, when, rule=rule), ArmMeasure(DEPLOYED, when, rule=rule)]
    return [*measures, ArmMeasure(CORRECT)]


def as_measures(wanted: Sequence[ArmMeasure], answers: ArmAnswers) -> Iterator[Measure]:
    """The figures as ratios of sums over answers: eq. 2 of the paper, and tables 2 and 5, with stated beliefs.

    Weighted accuracy is sum(y b + alpha (1 - y)(1 - b)) / sum(y + alpha (1 - y)), cross-entropy the same with -ln b and
    -ln(1 - b), human-deployed performance sum(h(b) y) / n.
    """
    y, counts = answers.correct, answers.counts
    inside = counts > 0
    y = np.where(inside, y, 0.0)
    for measure in wanted:
        per = counts
        if measure.measure == CORRECT or measure.when is None:
            values, unit = y, "share"
        else:
            b = answers.belief(measure.when)
            if measure.rule is not None:
                h = measure.rule.deployed(b)
                values, unit = (h * y if measure.measure == PERFORMANCE else h), "share"
            else:
                alpha = measure.alpha or 0.0
                per = counts * (y + alpha * (1 - y))
                if measure.measure == ACCURACY:
                    values, unit = y * b + alpha * (1 - y) * (1 - b), "share"
                else:
                    near = np.clip(b, NEAREST, 1 - NEAREST)
                    values, unit = -y * np.log(near) - alpha * (1 - y) * np.log1p(-near), "nats"
        yield Measure(
            measure.name,
            measure.title,
            unit,
            counts * values,
            where=inside,
            per=per,
            has_far_answers=measure.measure == CROSS_ENTROPY,
        )
