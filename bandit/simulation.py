"""Simulated respondents whose truth is known, to try out designs and predictors. Numpy alone.

Everything is a fixed function of seeds and names by a hash, so an answer never depends on what was asked before.

The effect sizes are fixed, and not fitted to make a design look good:
- outcome: the paper's mean predicted change is 0.46 after an incorrect and 0.32 after a correct answer (figure 2), 0.59
  in logits; 0.8 for one pair and person, since averaging over a total logit sd of 1.5 shrinks it by about 1.34
  (the usual factor sqrt(1 + 0.346 sd^2) of a logistic-normal mixture).
- same domain, same task: the paper's "same subject" baseline (table 1) shows that related questions change beliefs
  more; 1.4 for the domain and 1.4 more for the task put most pairs of one task above 1/2, where the base rate is 0.31.
- target domain: steps with an sd of 0.7, an assumption (the paper's table 4 finds targets uneven in AUC, not in share);
  each task and each pair of tasks: 0.3, an assumption too, noise that takes data to learn.
Together they are rescaled to the stated share of the stated variance over the uniform universe of the bank.
- priors and sizes of change: the paper's averages are prior 0.63, posterior 0.66 after correct, 0.55 after incorrect.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bandit.candidates import Pairs
from bandit.errors import DesignError

OUTCOME_EFFECT = 0.8
SAME_DOMAIN_EFFECT = 1.4
SAME_TASK_EFFECT = 1.4
TARGET_DOMAIN_SD = 0.7
TASK_SD = 0.3
TASK_PAIR_SD = 0.3

BASE_RATE = 0.31
PAIR_SD = 1.4
HIDDEN_SHARE = 1 / 3
RESPONDENT_SD = 0.6

PRIOR_MEAN = 63.5  # points; ends of the scale and rounding bring it to the paper's 63
OPTIMISM_SD = 9
TASK_DIFFICULTY_SD = 8
DIFFICULTY_SD = 9
PRIOR_NOISE_SD = 9
SHARE_OF_TENS = 0.6  # of the people; the others round to fives
MAX_CHANGE = 40
FURTHER = (0.4, 0.2)  # the chance of each further step after an incorrect and after a correct answer
STILL_FREE = 0.5  # the chance that nobody else was given an item in the meantime: an assumption
# The chance that two random answers of one person differ, in tens or in fives.
RANDOM_CHANGE = SHARE_OF_TENS * (1 - 1 / 11) + (1 - SHARE_OF_TENS) * (1 - 1 / 21)


@dataclass(frozen=True, eq=False)
class BeliefTruth:
    """The chance that a pair changes an average person's belief, fixed for a bank and a seed.

    logit = intercept + visible effects (task, domain, outcome) + hidden pair effect (normal, no text shows it). Over
    the uniform universe of the bank the visible and the hidden part have the variances (1 - hidden_share) * pair_sd^2
    and hidden_share * pair_sd^2, and the share of people and pairs that change is base_rate, with people's logits
    differing by a normal of sd respondent_sd. With `null` the chance is the same for every pair. Made by `for_bank`.
    """

    seed: int
    base_rate: float
    pair_sd: float
    hidden_share: float
    respondent_sd: float
    null: bool
    kind: NDArray[np.int64] = field(repr=False)
    """The (task, domain) of each question as a row of `logits`, shape (N,)."""
    logits: NDArray[np.float64] = field(repr=False)
    """Intercept and visible effects by kind of the evidence, kind of the target and outcome, shape (K, K, 2)."""

    @classmethod
    def for_bank(
        cls,
        *,
        tasks: Sequence[str],
        domains: Sequence[str],
        seed: int,
        base_rate: float = BASE_RATE,
        pair_sd: float = PAIR_SD,
        hidden_share: float = HIDDEN_SHARE,
        respondent_sd: float = RESPONDENT_SD,
        null: bool = False,
        outcome_rates: tuple[float, float] | None = None,
    ) -> BeliefTruth:
        """The truth for a bank, given the task and the domain of each question in the bank's order.

        `outcome_rates`: the shares that change after an incorrect and after a correct answer, if they are to be exact;
        their mean is then the base rate, and the difference is part of the stated variance between pairs.
        """
        if len(tasks) != len(domains) or len(tasks) < 2:
            raise DesignError(
                f"domains: {len(domains)} for {len(tasks)} tasks; give both for each question, of 2 or more"
            )
        for name, value, upper in (("base_rate", base_rate, 1.0), ("hidden_share", hidden_share, 1.0)):
            if not 0 <= value <= upper or (name == "base_rate" and value in (0, 1)):
                raise DesignError(f"{name}: must lie between 0 and 1, not {value}")
        if pair_sd < 0 or respondent_sd < 0:
            raise DesignError(f"pair_sd, respondent_sd: must not be negative, not {pair_sd} and {respondent_sd}")
        if outcome_rates is not None:
            if null or len(outcome_rates) != 2 or not all(0 < rate < 1 for rate in outcome_rates):
                raise DesignError(
                    f"outcome_rates: must be 2 shares between 0 and 1, and not with null: {outcome_rates}"
                )
            base_rate = sum(outcome_rates) / 2
        if null:
            pair_sd = 0.0
        questions = list(zip(tasks, domains, strict=True))
        kinds = sorted(set(questions))
        number = {kind: index for index, kind in enumerate(kinds)}
        kind = np.array([number[question] for question in questions], dtype=np.int64)
        count = np.bincount(kind)
        # Ordered pairs of different questions in each cell; the two outcomes count half each.
        weight = np.repeat((np.outer(count, count) - np.diag(count))[:, :, None], 2, axis=2).astype(np.float64)
        weight /= weight.sum()
        visible = _visible(kinds, seed)
        visible_sd = pair_sd * math.sqrt(1 - hidden_share)
        blur = math.hypot(pair_sd * math.sqrt(hidden_share), respondent_sd)
        if outcome_rates is None:
            logits = _scaled(visible, weight, sd=visible_sd)
            logits += _intercept(logits, weight, blur=blur, base_rate=base_rate)
        else:
            logits = _with_rates(visible, weight, sd=visible_sd, blur=blur, rates=outcome_rates)
        return cls(
            seed=seed,
            base_rate=base_rate,
            pair_sd=pair_sd,
            hidden_share=hidden_share,
            respondent_sd=respondent_sd,
            null=null,
            kind=kind,
            logits=logits,
        )

    def probability(self, evidence: int, target: int, outcome: int, evidence_id: str, target_id: str) -> float:
        """The chance of a change of one pair, for an average person; indices and ids of the bank's questions."""
        hidden = self._hidden(
            np.array([_word(evidence_id)]), np.array([_word(target_id)]), np.array([outcome], dtype=np.uint64)
        )
        return float(_sigmoid(self.logits[self.kind[evidence], self.kind[target], outcome] + hidden)[0])

    def probabilities(self, pairs: Pairs, ids: Sequence[str]) -> NDArray[np.float64]:
        """The chance of a change of each pair, for an average person, shape (M,); `ids` as in the bank."""
        if len(ids) != self.kind.size:
            raise DesignError(
                f"ids: {len(ids)} ids for a bank of {self.kind.size} questions; give one for each question"
            )
        words = _words(tuple(ids))
        hidden = self._hidden(words[pairs.evidence], words[pairs.target], pairs.outcome.astype(np.uint64))
        return _sigmoid(self.logits[self.kind[pairs.evidence], self.kind[pairs.target], pairs.outcome] + hidden)

    def person(self, seed: int) -> SimulatedRespondent:
        """The respondent of this seed, who differs from the average as this truth says."""
        return SimulatedRespondent(seed=seed, truth_seed=self.seed, respondent_sd=self.respondent_sd)

    def _hidden(
        self, evidence: NDArray[np.uint64], target: NDArray[np.uint64], outcome: NDArray[np.uint64]
    ) -> NDArray[np.float64]:
        state = _mixed(evidence ^ _mixed(target ^ _mixed(outcome + _word(f"hidden {self.seed}"))))
        radius = np.sqrt(-2 * np.log(1 - _fractions(state)))
        normal = radius * np.cos(2 * np.pi * _fractions(_mixed(state)))
        return normal * (self.pair_sd * math.sqrt(self.hidden_share))


@dataclass(frozen=True)
class SimulatedRespondent:
    """A respondent with a readiness to change, a general optimism and a habit of rounding, all from the seeds.

    Beliefs are whole percentage points 0..100.
    """

    seed: int
    truth_seed: int = 0
    respondent_sd: float = RESPONDENT_SD

    @cached_property
    def readiness(self) -> float:
        """What this person adds to every pair's logit of a change."""
        return self.respondent_sd * _normal(self.truth_seed, self.seed, "readiness")

    @cached_property
    def step(self) -> int:
        """Whether this person thinks in tens (six of ten people) or in fives."""
        return 10 if _uniform(self.truth_seed, self.seed, "step") < SHARE_OF_TENS else 5

    def prior(self, *, target_id: str, target_task: str = "") -> int:
        """The belief before any evidence: it depends on the person, the target's task and the target alone."""
        points = (
            PRIOR_MEAN
            + OPTIMISM_SD * _normal(self.truth_seed, self.seed, "optimism")
            + TASK_DIFFICULTY_SD * _normal(self.truth_seed, "task difficulty", target_task)
            + DIFFICULTY_SD * _normal(self.truth_seed, "question difficulty", target_id)
            + PRIOR_NOISE_SD * _normal(self.truth_seed, self.seed, "prior", target_id)
        )
        return int(min(100, max(0, self.step * round(points / self.step))))

    def answer(
        self, *, probability: float, outcome: int, target_id: str, pair_id: str, target_task: str = ""
    ) -> tuple[int, int]:
        """Prior and posterior for a pair that changes an average person's belief with this probability.

        The posterior differs from the prior if and only if the belief changes; then it moves up after a correct and
        down after an incorrect answer by 5 to 40 points, or the other way if the prior stands at the end of the scale.
        """
        if not 0 <= probability <= 1:
            raise DesignError(f"probability: must lie in 0..1, not {probability}")
        if outcome not in (0, 1):
            raise DesignError(f"outcome: must be 0 (incorrect) or 1 (correct), not {outcome}")
        prior = self.prior(target_id=target_id, target_task=target_task)
        name = (self.truth_seed, self.seed, pair_id, outcome)
        if _uniform(*name, "change") >= self._own(probability):
            return prior, prior
        # Bad news moves people further: 20 against 12 points on average, before the ends of the scale.
        most = MAX_CHANGE // self.step
        further = sum(_uniform(*name, "size", k) < FURTHER[outcome] for k in range(1, most))
        size = self.step * (1 + further)
        posterior = min(100, prior + size) if outcome == 1 else max(0, prior - size)
        if posterior == prior:
            posterior = prior - size if outcome == 1 else prior + size
        return prior, posterior

    def _own(self, probability: float) -> float:
        # The logistic shift by readiness written without a logarithm, so that 0, 1 and the tiniest chances are safe.
        odds = probability * math.exp(self.readiness)
        return odds / (odds + 1 - probability)


@dataclass(frozen=True, eq=False)
class CrowdAnswers:
    """Beliefs of n answers in whole percentage points 0..100, int64 arrays of shape (n,)."""

    prior: NDArray[np.int64]
    posterior: NDArray[np.int64]

    @property
    def changed(self) -> NDArray[np.bool_]:
        return self.prior != self.posterior


def crowd_answers(
    *,
    probability: ArrayLike,
    outcome: ArrayLike,
    person: ArrayLike,
    rng: np.random.Generator,
    respondent_sd: float = RESPONDENT_SD,
    speeder: ArrayLike | None = None,
) -> CrowdAnswers:
    """Answers of many people at once, for simulations of whole studies; arrays of shape (n,).

    `probability`: the chance that the pair changes an average person's belief; `person`: 0..P-1. People differ as
    `SimulatedRespondent` does: in readiness to change (logit sd `respondent_sd`), optimism, and rounding to tens or
    fives; the posterior differs from the prior if and only if the belief changes. Priors differ between answers as much
    as there, but not by target. `speeder`, bool (P,): true for people who read nothing and give two random answers,
    rounded as they always round; their share of changes is `RANDOM_CHANGE`.
    """
    chance, outcomes = np.asarray(probability, dtype=np.float64), np.asarray(outcome)
    who = np.asarray(person)
    if not chance.shape == outcomes.shape == who.shape or chance.ndim != 1:
        raise DesignError(
            f"probability, outcome, person: must be flat and equally long: {chance.shape}, {outcomes.shape}, "
            f"{who.shape}"
        )
    if chance.size and not (chance.min() >= 0 and chance.max() <= 1):
        raise DesignError(f"probability: must lie in 0..1, not {chance.min()}..{chance.max()}")
    hurried = np.zeros(int(who.max(initial=-1)) + 1, dtype=bool) if speeder is None else np.asarray(speeder, dtype=bool)
    people = hurried.size
    if hurried.ndim != 1 or people <= who.max(initial=-1):
        raise DesignError(
            f"speeder: must be flat and name all {int(who.max(initial=-1)) + 1} people, not {hurried.shape}"
        )
    step = np.where(rng.random(people) < SHARE_OF_TENS, 10, 5)[who]
    points = PRIOR_MEAN + rng.normal(0, OPTIMISM_SD, people)[who]
    points += rng.normal(0, math.hypot(TASK_DIFFICULTY_SD, DIFFICULTY_SD, PRIOR_NOISE_SD), who.size)
    prior = np.clip(step * np.rint(points / step), 0, 100).astype(np.int64)
    odds = chance * np.exp(rng.normal(0, respondent_sd, people))[who]
    changes = rng.random(who.size) < odds / (odds + 1 - chance)
    further = rng.binomial(MAX_CHANGE // step - 1, np.where(outcomes == 0, *FURTHER))
    size = step * (1 + further)
    moved = np.where(outcomes == 1, np.minimum(100, prior + size), np.maximum(0, prior - size))
    away = np.where(outcomes == 1, prior - size, prior + size)
    posterior = np.where(changes, np.where(moved == prior, away, moved), prior)
    if hurried.any():
        prior, posterior = (
            np.where(hurried[who], step * rng.integers(0, 100 // step + 1), read) for read in (prior, posterior)
        )
    return CrowdAnswers(prior=prior, posterior=posterior)


@dataclass(frozen=True, eq=False)
class Attendance:
    """Which of their items people answer in time, and which too late to count: bool arrays (people, items)."""

    in_time: NDArray[np.bool_]
    late: NDArray[np.bool_]


def attend(
    *,
    people: int,
    items: int,
    dropout: float,
    rng: np.random.Generator,
    returners: float = 0.0,
    still_free: float = STILL_FREE,
) -> Attendance:
    """How far people get: a share `dropout` leaves for good, each at a random place.

    A share `returners` leaves in the same way and comes back after the sitting has expired. Each item they had not
    answered is still free for them with the chance `still_free`; their answers to the others are late.
    """
    if not (dropout >= 0 and returners >= 0 and dropout + returners < 1):
        raise DesignError(f"dropout, returners: must be shares of less than 1 together, not {dropout} and {returners}")
    if not 0 <= still_free <= 1:
        raise DesignError(f"still_free: must be a chance in 0..1, not {still_free}")
    kind = rng.random(people)
    answered = np.where(kind < dropout + returners, rng.integers(0, items, people), items)
    in_time = np.arange(items)[None, :] < answered[:, None]
    late = np.zeros_like(in_time)
    if returners:
        left = ~in_time & ((kind >= dropout) & (kind < dropout + returners))[:, None]
        again = rng.random((people, items)) < still_free
        in_time, late = in_time | (left & again), left & ~again
    return Attendance(in_time=in_time, late=late)


def average_over_people(probability: ArrayLike, respondent_sd: float) -> NDArray[np.float64]:
    """The share of people who change, given the chance for an average person; same shape, values between 0 and 1."""
    chance = np.asarray(probability, dtype=np.float64)
    with np.errstate(divide="ignore"):  # a chance of 0 or 1 has an infinite logit and stays what it is
        logit = np.log(chance) - np.log1p(-chance)
    return _blurred(logit, respondent_sd)


def _visible(kinds: Sequence[tuple[str, str]], seed: int) -> NDArray[np.float64]:
    """The effects that task, domain and outcome have, in logits, shape (K, K, 2), before rescaling."""
    tasks, domains = [task for task, _ in kinds], [domain for _, domain in kinds]
    same_task = np.array([[task == other for other in tasks] for task in tasks])
    same_domain = np.array([[domain == other for other in domains] for domain in domains])
    # Evenly spaced steps in an order drawn by the seed: equally strong for every seed, unlike normal draws.
    order = sorted(set(domains), key=lambda domain: _uniform(seed, "domain", domain))
    steps = np.linspace(-math.sqrt(3), math.sqrt(3), len(order)) if len(order) > 1 else np.zeros(1)
    of_domain = dict(zip(order, TARGET_DOMAIN_SD * steps, strict=True))
    evidence = np.array([TASK_SD * _normal(seed, "evidence task", task) for task in tasks])
    target = np.array([TASK_SD * _normal(seed, "target task", task) for task in tasks])
    of_pair = np.array([[TASK_PAIR_SD * _normal(seed, "task pair", task, other) for other in tasks] for task in tasks])
    cell = (
        SAME_TASK_EFFECT * same_task
        + SAME_DOMAIN_EFFECT * same_domain
        + evidence[:, None]
        + (target + np.array([of_domain[domain] for domain in domains]))[None, :]
        + of_pair
    )
    return np.stack([cell + OUTCOME_EFFECT, cell], axis=2)


def _scaled(visible: NDArray[np.float64], weight: NDArray[np.float64], *, sd: float) -> NDArray[np.float64]:
    """The effects with weighted mean 0 and standard deviation `sd`; all 0 where nothing differs, as with one task."""
    centred = visible - (weight * visible).sum()
    spread = math.sqrt(float((weight * centred**2).sum()))
    scaled: NDArray[np.float64] = centred * (sd / spread) if spread > 1e-9 else np.zeros_like(centred)
    return scaled


def _with_rates(
    visible: NDArray[np.float64],
    weight: NDArray[np.float64],
    *,
    sd: float,
    blur: float,
    rates: tuple[float, float],
) -> NDArray[np.float64]:
    """Logits with these mean chances by outcome and standard deviation `sd` over both, shape (K, K, 2)."""
    parts = [(visible[:, :, outcome], 2 * weight[:, :, outcome]) for outcome in (0, 1)]
    inside = sd
    for _ in range(20):
        scaled = [_scaled(part, share, sd=inside) for part, share in parts]
        middles = [
            _intercept(part, share, blur=blur, base_rate=rate)
            for part, (_, share), rate in zip(scaled, parts, rates, strict=True)
        ]
        left = sd**2 - (middles[0] - middles[1]) ** 2 / 4
        if left <= 0:
            raise DesignError(f"outcome_rates: {rates} differ by more than the pairs' visible sd of {sd:.3g} allows")
        if abs(inside - math.sqrt(left)) < 1e-9:
            break
        inside = math.sqrt(left)
    return np.stack([part + middle for part, middle in zip(scaled, middles, strict=True)], axis=2)


def _intercept(visible: NDArray[np.float64], weight: NDArray[np.float64], *, blur: float, base_rate: float) -> float:
    """The intercept at which the mean chance, over cells, hidden effects and people, is the base rate."""
    low, high = -50.0, 50.0
    for _ in range(60):
        middle = (low + high) / 2
        if float((weight * _blurred(visible + middle, blur)).sum()) < base_rate:
            low = middle
        else:
            high = middle
    return (low + high) / 2


_AT_ONCE = 4096  # Numbers that are blurred in one call: with few of them, calls take most of the time.


@lru_cache(maxsize=1)
def _quadrature() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    return nodes, weights


def _blurred(logit: NDArray[np.float64], sd: float) -> NDArray[np.float64]:
    """The mean of sigmoid(logit + sd z) over a standard normal z, by Gauss-Hermite quadrature."""
    nodes, weights = _quadrature()
    each = (len(nodes), *[1] * np.ndim(logit))
    at, shares = (sd * nodes).reshape(each), (weights / weights.sum()).reshape(each)
    mean = np.zeros_like(logit)
    several = max(1, _AT_ONCE // max(1, np.size(logit)))
    for first in range(0, len(nodes), several):
        part = slice(first, first + several)
        for summand in shares[part] * _sigmoid(logit + at[part]):  # One after the other: every sum has the same bits.
            mean = mean + summand
    return mean


def _sigmoid(logit: NDArray[np.float64]) -> NDArray[np.float64]:
    return (1 + np.tanh(logit / 2)) / 2


def _word(name: str) -> np.uint64:
    return np.uint64(int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big"))


@lru_cache(maxsize=4)
def _words(names: tuple[str, ...]) -> NDArray[np.uint64]:
    return np.array([_word(name) for name in names])


def _mixed(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Scrambles 64-bit words one to one (the finaliser of SplitMix64: Steele, Lea and Flood, 2014)."""
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def _fractions(words: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Words as numbers in [0, 1)."""
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _uniform(*name: str | int) -> float:
    """A number in (0, 1) that is a fixed function of the name."""
    digest = hashlib.blake2b("\x1f".join(map(str, name)).encode(), digest_size=8).digest()
    return ((int.from_bytes(digest, "big") >> 11) + 0.5) * 2.0**-53


def _normal(*name: str | int) -> float:
    """A standard normal number that is a fixed function of the name."""
    return NormalDist().inv_cdf(_uniform(*name))
