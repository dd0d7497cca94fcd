"""One figure from the answers of several stages, where it is about a part of the candidates. Numpy alone.

A stage's mean inside a part (a task, an outcome) is a ratio: the weighted sum of the answers there over the weights
there. With few answers some stages have none in a stratum, and a mean of the stages' ratios would leave those stages
out by chance. So the sums are put together before they are divided (the combined ratio estimator, Cochran, Sampling
Techniques, 1977, section 6.11): each stage's two sums are right on average whatever was drawn, the plans alone weigh
them, and no stage has to have answers everywhere. Over all candidates this is the mean of the stages' means.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bandit.clustered import cluster_count, clustered_variance
from bandit.errors import DesignError
from bandit.estimate import Estimate, EstimateSample, estimate_of, satterthwaite, standard_error_of
from bandit.estimators import (
    _freedom_of_weights,
    _Items,
    _least_of_difference,
    _least_of_mean,
    _probabilities,
    _rarer,
    _Stratified,
    _values,
)


@dataclass(frozen=True, eq=False)
class StageAnswers:
    """The n answers of one stage, as for `stratified_mean`, or, with `probability`, as for `hajek`.

    `inside`: shape (n,), true for answers in the part that the figure is over; it may be true for none of them.
    `first`: for a difference, true for answers in the part that is taken off. `per`, `staying`: as for
    `stratified_mean`.
    """

    values: ArrayLike
    stratum: ArrayLike
    sizes: Sequence[int]
    cluster: ArrayLike
    inside: ArrayLike | None = None
    first: ArrayLike | None = None
    per: ArrayLike | None = None
    universe_size: int | None = None
    item: ArrayLike | None = None
    probability: ArrayLike | None = None
    staying: ArrayLike | None = None


def pooled_mean(*, stages: Sequence[StageAnswers], plan_weights: Sequence[float], share: bool = False) -> Estimate:
    """The mean over a part of the candidates, or the ratio of `values` to `per` there, from several stages.

    `plan_weights`: one for each stage, from the plans alone; stages with weight 0 say nothing. Variances of the stages
    add up, since respondents take part in one stage only; the degrees of freedom are Welch and Satterthwaite's.
    Raises DesignError if no answer of a stage with a weight lies inside, or a stage has a stratum without answers.
    """
    parts = _parts(stages, plan_weights)
    side = _Side.of(parts, [part.inside for part in parts])
    return _estimate(parts, value=side.value, residuals=side.residuals, sides=[side], share=share)


def pooled_difference(*, stages: Sequence[StageAnswers], plan_weights: Sequence[float]) -> Estimate:
    """The mean over `inside` minus that over `first`, each from all stages; otherwise as `pooled_mean`."""
    parts = _parts(stages, plan_weights)
    first, second = (
        _Side.of(parts, masks) for masks in ([part.first for part in parts], [part.inside for part in parts])
    )
    residuals = [two - residual for residual, two in zip(first.residuals, second.residuals, strict=True)]
    return _estimate(parts, value=second.value - first.value, residuals=residuals, sides=[first, second])


@dataclass(frozen=True, eq=False)
class _Part:
    """A stage with a weight: its answers, each with its share of the weight in a mean over all stages; arrays (n,)."""

    value: NDArray[np.float64]
    per: NDArray[np.float64]
    inside: NDArray[np.bool_]
    first: NDArray[np.bool_]
    cluster: NDArray[np.generic]
    label: NDArray[np.int64]
    relative: NDArray[np.float64]
    weight: float
    fit: _Stratified | None
    items: _Items | None
    universe_size: int | None

    @classmethod
    def of(cls, stage: StageAnswers, weight: float) -> _Part:
        value = _values(stage.values)
        fit = None
        if stage.probability is None:
            fit = _Stratified.of(
                values=value,
                stratum=stage.stratum,
                sizes=stage.sizes,
                cluster=stage.cluster,
                item=stage.item,
                staying=stage.staying,
            )
            label, relative = fit.label, fit.weight / fit.candidates
            items = fit.items(stage.universe_size)
        else:
            label = np.zeros(value.size, dtype=np.int64)
            relative = 1 / _probabilities(stage.probability, value.size)
            if stage.staying is not None:
                relative = relative / _probabilities(stage.staying, value.size)
            relative /= relative.sum()
            items = None if stage.item is None else _Items.of(stage.item, label)
        everywhere = np.ones(value.size)
        return cls(
            value=value,
            per=everywhere if stage.per is None else _values(stage.per, field="per"),
            inside=_mask(stage.inside, value.size),
            first=_mask(stage.first, value.size),
            cluster=np.asarray(stage.cluster),
            label=label,
            relative=weight * relative,
            weight=weight,
            fit=fit,
            items=items,
            universe_size=stage.universe_size,
        )

    @property
    def repeats_items(self) -> bool:
        return self.items is not None and np.unique(self.items.item).size < self.value.size

    def contributions(self, residual: NDArray[np.float64]) -> NDArray[np.float64]:
        """What each answer adds to the error of the figure: how far it is from the mean of its stratum."""
        if self.fit is None:
            centre = np.full(residual.size, np.dot(self.relative, residual) / self.relative.sum())
        else:
            centre = self.fit.means(residual)[self.label]
        return self.relative * (residual - centre)

    def variance(self, residual: NDArray[np.float64]) -> float:
        contributions = self.contributions(residual)
        variance, people = clustered_variance(contributions, self.cluster), cluster_count(self.cluster)
        if people < 2:
            raise DesignError(f"cluster: a stage needs answers of at least 2 respondents, not {people}")
        if self.items is not None:
            variance = self.items.variance(contributions, variance)
        if self.fit is not None:
            variance += self.weight**2 * self.fit.first_phase(residual, self.universe_size)
        return variance

    def freedom(self, inside: NDArray[np.bool_]) -> float:
        """People inside less 1; items less 1 where several people answered each, and there are fewer of these. With
        chances of their own, what the weights leave of them."""
        people = int(np.unique(self.cluster[inside]).size)
        fewest = people if self.items is None else min(people, self.items.count(inside))
        freedom = float(max(fewest - 1, 1))
        if self.fit is not None:
            return freedom
        uneven = _freedom_of_weights(self.relative[inside], self.cluster[inside])
        return freedom if uneven is None else min(freedom, uneven)


@dataclass(frozen=True, eq=False)
class _Side:
    """One part of the candidates: its mean from all stages, and each stage's residuals for a unit of weight."""

    value: float
    masks: list[NDArray[np.bool_]]
    residuals: list[NDArray[np.float64]]

    @classmethod
    def of(cls, parts: Sequence[_Part], masks: list[NDArray[np.bool_]]) -> _Side:
        pairs = list(zip(parts, masks, strict=True))
        above = sum(float(np.dot(part.relative[mask], part.value[mask])) for part, mask in pairs)
        below = sum(float(np.dot(part.relative[mask], part.per[mask])) for part, mask in pairs)
        if not below > 0:
            raise DesignError("inside: no answer of any stage lies in it, or there is nothing to divide by")
        value = above / below
        residuals = [np.where(mask, part.value - value * part.per, 0.0) / below for part, mask in pairs]
        return cls(value, masks, residuals)


def _estimate(
    parts: Sequence[_Part],
    *,
    value: float,
    residuals: Sequence[NDArray[np.float64]],
    sides: Sequence[_Side],
    share: bool = False,
) -> Estimate:
    either = [np.any([side.masks[place] for side in sides], axis=0) for place in range(len(parts))]
    used = [place for place, mask in enumerate(either) if mask.any()]
    variances = [parts[place].variance(residuals[place]) for place in used]
    freedoms = [parts[place].freedom(either[place]) for place in used]
    variance = sum(variances)
    least = 0.0 if any(part.repeats_items for part in parts) else _least(parts, sides)
    # Where the least variance decides, nothing of the own ones does; where nothing varies, these are rounding.
    decides = variance >= least and standard_error_of(variance, value) > 0
    freedom = satterthwaite(variances, freedoms) if decides else sum(freedoms)
    pairs = list(zip(parts, either, strict=True))
    people = sum(int(np.unique(part.cluster[mask]).size) for part, mask in pairs if mask.any())
    rarer = _rarer(np.concatenate([part.value[mask] for part, mask in pairs])) if share else None
    return estimate_of(
        EstimateSample.of(
            np.concatenate([part.relative[mask] for part, mask in pairs]), n_clusters=people, rarer=rarer
        ),
        value=value,
        variance=max(variance, least),
        degrees_of_freedom=freedom,
    )


def _least(parts: Sequence[_Part], sides: Sequence[_Side]) -> float:
    """The variance if all answers were different people's (`bandit.estimators`), from all stages together."""
    weight = np.concatenate([part.relative for part in parts])
    strata = np.cumsum([0, *(int(part.label.max()) + 1 for part in parts)])
    stratum = np.concatenate([part.label + first for part, first in zip(parts, strata[:-1], strict=True)])
    single = [
        np.concatenate([part.contributions(residual) for part, residual in zip(parts, side.residuals, strict=True)])
        for side in sides
    ]
    masks = [np.concatenate(side.masks) for side in sides]
    if len(sides) == 1:
        return _least_of_mean(single[0], weight, stratum, masks[0])
    person, people = [], 0
    for part in parts:  # A number may name different people in different stages.
        names, index = np.unique(part.cluster, return_inverse=True)
        person.append(index + people)
        people += names.size
    return _least_of_difference(
        contributions=single,
        weight=weight,
        stratum=stratum,
        sides=masks,
        cluster=np.concatenate(person),
        unequal=any(part.fit is None for part in parts),
    )


def _parts(stages: Sequence[StageAnswers], plan_weights: Sequence[float]) -> list[_Part]:
    if len(stages) != len(plan_weights):
        raise DesignError(f"plan_weights: {len(plan_weights)} for {len(stages)} stages; give one for each stage")
    total = float(sum(plan_weights))
    if not (total > 0 and math.isfinite(total)) or any(weight < 0 for weight in plan_weights):
        raise DesignError("plan_weights: must be numbers of at least 0, one of them above it")
    return [_Part.of(stage, weight / total) for stage, weight in zip(stages, plan_weights, strict=True) if weight > 0]


def _mask(mask: ArrayLike | None, n: int) -> NDArray[np.bool_]:
    selected = np.ones(n, dtype=bool) if mask is None else np.asarray(mask)
    if selected.shape != (n,) or selected.dtype != bool:
        raise DesignError(f"inside, first: need true or false for each of {n} answers")
    return selected
