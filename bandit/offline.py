"""What another policy would have found in a stage that is over, from the stage's own probabilities. Numpy alone.

This is about one stage: the same candidates, and the same answers before it. What a whole study would have found under
another policy cannot be computed from logs, since later stages would have learnt from other answers. Simulate it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bandit.clustered import clustered_variance
from bandit.effective import effective_size
from bandit.errors import DesignError
from bandit.estimate import Estimate, EstimateSample, estimate_of
from bandit.estimators import _values, hajek, stratified_mean

MIN_SUPPORT = 100
MAX_PULL = 0.5  # of one person on a mean, as far as the error allows for it


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
        if self.effective_sample_size < MIN_SUPPORT:
            reasons.append(f"effective sample size {self.effective_sample_size:.0f}, under {MIN_SUPPORT}")
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
    log = _Log.of(values=values, selected=selected, logged=logged, stratum=stratum, planned=planned)
    ratio, wanted = log.ratio(other, "other")
    slots = float(wanted.sum())
    weight = ratio * log.per_answer
    names = np.asarray(cluster)
    used = weight > 0
    if not used.any():
        raise DesignError("other: none of its candidates was answered; the stage says nothing about this policy")
    value = log.value
    self_normalised = hajek(values=value[used], probability=weight[used].min() / weight[used], cluster=names[used])
    # The sum over the slots is the slots of each stratum times the mean over its answers.
    drawn = np.flatnonzero(log.answered)
    plain = stratified_mean(
        values=value * ratio * (sum(planned) / slots),
        stratum=np.searchsorted(drawn, log.label),
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
        unsupported=float(wanted[log.chance == 0].sum() / slots),
    )


def compare_policies(
    *,
    values: ArrayLike,
    selected: ArrayLike,
    logged: ArrayLike,
    first: ArrayLike,
    second: ArrayLike,
    stratum: ArrayLike,
    planned: Sequence[int],
    cluster: ArrayLike,
) -> Estimate:
    """What the policy `second` would have found per answer, minus what `first` would have, self-normalised.

    Both are judged by the same answers, so that most of their errors cancels out: the standard error is that of the
    difference of each answer's two parts, between respondents and inside the stage's strata, whose slots were fixed.
    Where a few answers weigh much, each person pulls a mean towards themselves: a person's part in the error is divided
    by 1 - h, h their larger share of the two means (the jackknife's; Bell and McCaffrey, Survey Methodology 28, 2002).
    `first`, `second`: every candidate's inclusion probability under these policies, shape (M,). The other arguments as
    for `evaluate_policy`; so are the errors. `effective_sample_size` is the smaller one of the two policies'.
    """
    log = _Log.of(values=values, selected=selected, logged=logged, stratum=stratum, planned=planned)
    _, person = np.unique(np.asarray(cluster), return_inverse=True)
    means, parts, sizes, shares = [], [], [], []
    for field, other in (("first", first), ("second", second)):
        weight = log.ratio(other, field)[0] * log.per_answer
        if not weight.sum() > 0:
            raise DesignError(f"{field}: none of its candidates was answered; the stage says nothing about this policy")
        share = weight / weight.sum()
        mean = float(np.dot(share, log.value))
        means.append(mean)
        parts.append(share * (log.value - mean))
        sizes.append(effective_size(weight))
        shares.append(share)
    single = parts[1] - parts[0]
    count = np.bincount(log.label)
    centred = single - (np.bincount(log.label, weights=single) / np.maximum(count, 1))[log.label]
    pull = np.maximum(*(np.bincount(person, weights=share) for share in shares))
    variance = clustered_variance(centred / (1 - np.minimum(pull, MAX_PULL))[person], cluster)
    people = pull.size
    sample = EstimateSample(
        n=log.value.size, n_clusters=people, effective_sample_size=min(sizes), weight_range=(1.0, 1.0)
    )
    return estimate_of(
        sample,
        value=means[1] - means[0],
        variance=variance,
        degrees_of_freedom=max(people - 1, 1),
    )


@dataclass(frozen=True, eq=False)
class _Log:
    """A stage's answers with their candidates; `per_answer` (n,) is a stratum's slots over its answers."""

    value: NDArray[np.float64]
    at: NDArray[np.int64]
    label: NDArray[np.int64]
    chance: NDArray[np.float64]
    answered: NDArray[np.int64]
    per_answer: NDArray[np.float64]

    @classmethod
    def of(
        cls,
        *,
        values: ArrayLike,
        selected: ArrayLike,
        logged: ArrayLike,
        stratum: ArrayLike,
        planned: Sequence[int],
    ) -> _Log:
        chance = _chances(logged, "logged")
        value, at, label = _values(values, allow_empty=True), np.asarray(selected), np.asarray(stratum)
        if not value.shape == at.shape == label.shape or value.ndim != 1:
            raise DesignError(
                "values, selected, stratum: must be flat and equally long, not "
                f"{value.size}, {at.size} and {label.size}"
            )
        if not value.size or at.min() < 0 or at.max() >= chance.size:
            raise DesignError(f"selected: needs at least one answer, of a candidate 0..{chance.size - 1}")
        if label.min() < 0 or label.max() >= len(planned):
            raise DesignError(f"stratum: must be integers 0..{len(planned) - 1}, one for each stratum")
        if not (chance[at] > 0).all():
            raise DesignError(
                "logged: some answered candidate has probability 0; these are not the stage's probabilities"
            )
        answered = np.bincount(label, minlength=len(planned))
        for index, (count, slots_here) in enumerate(zip(answered.tolist(), planned, strict=True)):
            if not min(slots_here, 1) <= count <= slots_here:
                raise DesignError(f"planned: stratum {index} has {slots_here} slots and {count} answers")
        per_answer = (np.array(planned) / np.maximum(answered, 1))[label]
        return cls(value, at, label, chance, answered, per_answer)

    def ratio(self, other: ArrayLike, field: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Each answer's chance under another policy over that under the stage's own, and all candidates' chances."""
        wanted = _chances(other, field)
        if self.chance.size != wanted.size:
            raise DesignError(
                f"{field}: {wanted.size} probabilities for {self.chance.size} candidates; give one for each candidate"
            )
        if not wanted.sum() > 0:
            raise DesignError(f"{field}: gives no candidate a chance")
        return wanted[self.at] / self.chance[self.at], wanted


def _chances(values: ArrayLike, field: str) -> NDArray[np.float64]:
    chance = np.asarray(values, dtype=np.float64)
    if chance.ndim != 1 or not chance.size or not ((chance >= 0) & (chance <= 1)).all():
        raise DesignError(f"{field}: needs a flat array of probabilities in 0..1, one for each candidate")
    return chance
