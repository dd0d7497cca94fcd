"""What another policy would have found in a stage that is over, from the stage's own probabilities. Numpy alone.

This is about one stage: the same candidates, and the same answers before it. What a whole study would have found under
another policy cannot be computed from logs, since later stages would have learnt from other answers. Simulate it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bandit.errors import DesignError
from bandit.estimators import Estimate, hajek, stratified_mean

LEAST_SUPPORT = 100


@dataclass(frozen=True)
class OfflineEstimate:
    """Expected value of an answer under another policy.

    `plain` weighs answers by inverse propensity alone, `self_normalised` divides by the sum of the weights.
    `unsupported` is the share of the other policy's slots on candidates that the stage could not draw. The answers say
    nothing about those, and `plain` counts them as 0. `reason` says why there is not enough support, or is empty.
    """

    plain: Estimate
    self_normalised: Estimate
    effective_sample_size: float
    unsupported: float

    @property
    def reason(self) -> str:
        reasons = []
        if self.effective_sample_size < LEAST_SUPPORT:
            reasons.append(f"effective sample size {self.effective_sample_size:.0f}, under {LEAST_SUPPORT}")
        if self.unsupported > 0:
            reasons.append(f"{self.unsupported:.1%} of the policy's slots are on candidates with probability 0")
        return f"not enough support: {'; '.join(reasons)}" if reasons else ""


def evaluate_policy(
    *,
    values: ArrayLike,
    selected: ArrayLike,
    logged: ArrayLike,
    other: ArrayLike,
    stratum: ArrayLike,
    planned: Sequence[int],
    cluster: ArrayLike,
) -> OfflineEstimate:
    """What another policy would have found in expectation, by inverse propensity.

    `values`, `selected` (the candidate), `stratum` (index into `planned`) and `cluster` (respondent): one for each
    counted answer, shape (n,). `logged`, `other`: every candidate's inclusion probability under the stage's design and
    under the other policy, shape (M,), for instance from `inclusion_probabilities`. `planned`: the stage's slots by
    stratum; those that nobody answered are taken to be missing at random within their stratum.

    An answer's weight is other / (logged * response rate) (Horvitz and Thompson 1952; self-normalised: Hajek 1971, and
    Swaminathan and Joachims, NeurIPS 2015). Raises DesignError where the policies share no candidate.
    """
    chance, wanted = _chances(logged, "logged"), _chances(other, "other")
    if chance.size != wanted.size:
        raise DesignError(
            f"other: {wanted.size} probabilities for {chance.size} candidates; give one for each candidate"
        )
    slots = float(wanted.sum())
    if slots <= 0:
        raise DesignError("other: gives no candidate a chance")
    value, at, label = np.asarray(values, dtype=np.float64), np.asarray(selected), np.asarray(stratum)
    if not value.shape == at.shape == label.shape or value.ndim != 1:
        raise DesignError(
            f"values, selected, stratum: must be flat and equally long, not {value.size}, {at.size} and {label.size}"
        )
    if not value.size or at.min() < 0 or at.max() >= chance.size:
        raise DesignError(f"selected: needs at least one answer, of a candidate 0..{chance.size - 1}")
    if label.min() < 0 or label.max() >= len(planned):
        raise DesignError(f"stratum: must be integers 0..{len(planned) - 1}, one for each stratum")
    if not (chance[at] > 0).all():
        raise DesignError("logged: some answered candidate has probability 0; these are not the stage's probabilities")
    answered = np.bincount(label, minlength=len(planned))
    for index, (count, slots_here) in enumerate(zip(answered.tolist(), planned, strict=True)):
        if not min(slots_here, 1) <= count <= slots_here:
            raise DesignError(f"planned: stratum {index} has {slots_here} slots and {count} answers")
    ratio = wanted[at] / chance[at]
    weight = ratio * (np.array(planned) / np.maximum(answered, 1))[label]
    used = weight > 0
    if not used.any():
        raise DesignError("other: none of its candidates was answered; the stage says nothing about this policy")
    names = np.asarray(cluster)
    self_normalised = hajek(values=value[used], probability=weight[used].min() / weight[used], cluster=names[used])
    # The sum over the slots is the slots of each stratum times the mean over its answers.
    drawn = np.flatnonzero(answered)
    plain = stratified_mean(
        values=value * ratio * (sum(planned) / slots),
        stratum=np.searchsorted(drawn, label),
        sizes=[planned[index] for index in drawn.tolist()],
        cluster=names,
    )
    return OfflineEstimate(
        plain=replace(
            plain,
            effective_sample_size=self_normalised.effective_sample_size,
            weight_range=self_normalised.weight_range,
        ),
        self_normalised=self_normalised,
        effective_sample_size=self_normalised.effective_sample_size,
        unsupported=float(wanted[chance == 0].sum() / slots),
    )


def _chances(values: ArrayLike, field: str) -> NDArray[np.float64]:
    chance = np.asarray(values, dtype=np.float64)
    if chance.ndim != 1 or not chance.size or not ((chance >= 0) & (chance <= 1)).all():
        raise DesignError(f"{field}: needs a flat array of probabilities in 0..1, one for each candidate")
    return chance
