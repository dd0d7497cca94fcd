"""How far language models perform as people expect: tables 2 and 5 of the paper, with intervals. Imports only numpy.

Notation (sections 2 and 5): for pair i = (x', x), `outcome` is t(x', f(x')), whether the model answered the evidence
question correctly; `correct` is t(x, f(x)) on the target question, both fractions where a model answers in fractions
(repeated or graded replies: t is then the chance of a right one); `change` is the predicted probability that a person
who saw that outcome changes their belief; `belief` is what that person then expects, b(x | x', f). Fractions in [0, 1].
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from predictors.evaluation import bootstrap_p, percentile_interval

Floats = NDArray[np.float64]

PAPER_ALPHAS = (1.0, 19.0, 50.0, 99.0)


@dataclass(frozen=True)
class Averages:
    """Mean beliefs, as fractions: before any evidence, after a correct and after an incorrect answer."""

    prior: float
    posterior_correct: float
    posterior_incorrect: float

    def __post_init__(self) -> None:
        for name in ("prior", "posterior_correct", "posterior_incorrect"):
            value = getattr(self, name)
            if not 0 < value < 1:
                raise ValueError(f"{name}: {value!r} is not a belief; give a fraction above 0 and below 1, such as 0.6")


# From section 3 of the paper: over all responses of the authors' survey.
PAPER_AVERAGES = Averages(prior=0.629, posterior_correct=0.663, posterior_incorrect=0.551)


def threshold_of(alpha: ArrayLike) -> Floats:
    """The deployment threshold that a weight stands for: alpha / (1 + alpha) (section 5)."""
    weights = _alphas(alpha)
    return weights / (1 + weights)


def alpha_of(threshold: ArrayLike) -> Floats:
    """The weight of a deployment threshold t in [0, 1): t / (1 - t).

    Raises:
        ValueError: a threshold below 0, or of 1 or more.
    """
    values = np.atleast_1d(np.asarray(threshold, dtype=np.float64))
    if not ((values >= 0) & (values < 1)).all():
        raise ValueError("threshold: must be at least 0 and below 1, for instance 0.95")
    return values / (1 - values)


def mixture_belief(change: ArrayLike, outcome: ArrayLike, averages: Averages) -> Floats:
    """b = p * (average posterior after that outcome) + (1 - p) * (average prior), for n pairs (appendix C).

    Args:
        change: (n,) predicted probabilities of a change, for the outcome that the model really had.
        outcome: (n,) 1 where the evidence question was answered correctly, else 0.

    Raises:
        ValueError: lengths differ, or values are out of range.
    """
    p = _fractions("change", change)
    t = _binary("outcome", outcome, len(p))
    after = np.where(t == 1, averages.posterior_correct, averages.posterior_incorrect)
    return p * after + (1 - p) * averages.prior


def change_for(outcome: ArrayLike, change_if_correct: ArrayLike, change_if_incorrect: ArrayLike) -> Floats:
    """The prediction that goes with the outcome a model really had; all arguments have n entries."""
    if_correct = _fractions("change_if_correct", change_if_correct)
    if_incorrect = _fractions("change_if_incorrect", change_if_incorrect)
    t = _binary("outcome", outcome, len(if_correct))
    return np.where(t == 1, if_correct, if_incorrect)


def weighted_accuracy(correct: ArrayLike, belief: ArrayLike, alphas: ArrayLike = PAPER_ALPHAS) -> Floats:
    """Weighted generalized accuracy of n beliefs for each of k weights (equations 7 and 8), in [0, 1]; shape (k,).

    sum(y b + alpha (1 - y)(1 - b)) / sum(y + alpha (1 - y)); NaN where the denominator is 0 (alpha 0, never correct).

    Raises:
        ValueError: lengths differ, values are out of range, no pair, or an alpha below 0.
    """
    sums = _sums(correct, belief)
    return _ratio(sums[None, :], _alphas(alphas), 0)[0]


def weighted_cross_entropy(correct: ArrayLike, belief: ArrayLike, alphas: ArrayLike = PAPER_ALPHAS) -> Floats:
    """Like `weighted_accuracy`, with losses -log b and -log(1 - b) (table 5), in nats; lower is better; shape (k,).

    A wrong belief of exactly 0 or 1 has an infinite loss.

    Raises:
        ValueError: as `weighted_accuracy`.
    """
    sums = _sums(correct, belief)
    return _ratio(sums[None, :], _alphas(alphas), 2)[0]


@dataclass(frozen=True)
class Trial:
    """One language model's row for n pairs; the same n pairs, in the same order, for every model of a comparison.

    `answered` says for which pairs the model has answers to both questions; for others outcome and correct are ignored.
    Where `outcome` is a fraction, people see a right answer with this chance, and the pair counts under both outcomes,
    each by its chance. `weight`: how much a pair counts, 1 without it.
    """

    name: str
    outcome: NDArray[Any]
    correct: NDArray[Any]
    answered: NDArray[np.bool_]
    weight: Floats | None = None

    def seen(self, outcome: int) -> Floats:
        """(n,) how much each pair counts with this outcome on the evidence, 0 or 1."""
        t = np.where(self.answered, self.outcome, 0).astype(np.float64)
        whole = self.answered.astype(np.float64) if self.weight is None else np.where(self.answered, self.weight, 0.0)
        seen: Floats = whole * (t if outcome else 1 - t)
        return seen


@dataclass(frozen=True)
class ModelScore:
    """One model: both measures for k weights, their intervals (k, 2), and how many pairs they are based on."""

    name: str
    pairs: int
    alphas: Floats
    accuracy: Floats
    cross_entropy: Floats
    accuracy_interval: Floats
    cross_entropy_interval: Floats

    @property
    def thresholds(self) -> Floats:
        return threshold_of(self.alphas)


@dataclass(frozen=True)
class ModelDifference:
    """First model minus second, for k weights: differences (k,), intervals (k, 2), p (k,); `pairs` are those that
    both have answered."""

    first: str
    second: str
    pairs: int
    alphas: Floats
    accuracy: Floats
    accuracy_interval: Floats
    accuracy_p: Floats
    cross_entropy: Floats
    cross_entropy_interval: Floats
    cross_entropy_p: Floats


class AlignmentComparison:
    """Language models on the same pairs: scores, intervals and paired differences from one set of resamples.

    Pairs are resampled with replacement: the same resample for every model, numerator and denominator together. The
    predictions are treated as fixed. So are the averages, unless `averages_draws` gives resamples of them (a study's
    averages, resampled by respondent): then draw s of the pairs is used with draw s of the averages.

    Args:
        trials: m models over n pairs.
        change_if_correct, change_if_incorrect: (n,) predicted probabilities of a change after either outcome.
        averages_draws: (samples, 3) prior, posterior after correct, posterior after incorrect; or None.

    Raises:
        ValueError: lengths differ, values out of range, or a model without an answered pair.
    """

    def __init__(
        self,
        trials: list[Trial],
        *,
        change_if_correct: ArrayLike,
        change_if_incorrect: ArrayLike,
        averages: Averages = PAPER_AVERAGES,
        averages_draws: ArrayLike | None = None,
        samples: int = 10_000,
        level: float = 0.95,
        rng: np.random.Generator,
    ) -> None:
        if not trials:
            raise ValueError("trials: give at least one language model")
        if samples < 100:
            raise ValueError(f"samples: {samples} resamples give no interval; use 100 or more")
        if not 0 < level < 1:
            raise ValueError(f"level: {level!r} must lie between 0 and 1, for instance 0.95")
        self.trials = {trial.name: trial for trial in trials}
        if len(self.trials) != len(trials):
            raise ValueError("trials: two language models have the same name")
        self.level = level
        self.averages = averages
        self._if_correct = _fractions("change_if_correct", change_if_correct)
        self._if_incorrect = _fractions("change_if_incorrect", change_if_incorrect)
        n = len(self._if_correct)
        if not n:
            raise ValueError("pairs: there are none")
        if len(self._if_incorrect) != n:
            raise ValueError(f"change_if_incorrect: {len(self._if_incorrect)} values for {n} pairs")
        for trial in trials:
            for name in ("outcome", "correct", "answered"):
                if len(getattr(trial, name)) != n:
                    raise ValueError(f"{trial.name}: {name} has {len(getattr(trial, name))} entries for {n} pairs")
            for name in ("outcome", "correct"):
                _fractions(f"{trial.name}: {name}", getattr(trial, name)[trial.answered])
            if trial.weight is not None and (len(trial.weight) != n or not (trial.weight >= 0).all()):
                raise ValueError(f"{trial.name}: weight needs {n} numbers of 0 or more")
            if not trial.answered.any():
                raise ValueError(f"{trial.name}: has answered no pair of the sample; import its answers first")
        draws = None if averages_draws is None else np.asarray(averages_draws, dtype=np.float64)
        if draws is not None and draws.shape != (samples, 3):
            raise ValueError(f"averages_draws: shape {draws.shape} for {samples} resamples; give (samples, 3)")
        self._draws = draws
        self._known_sums: dict[str, tuple[Floats, Floats]] = {}
        # Drawing n pairs with replacement gives multinomial counts; float32 holds them exactly.
        self._counts = rng.multinomial(n, np.full(n, 1 / n), size=samples).astype(np.float32)

    @property
    def resampled(self) -> str:
        """What was resampled for the intervals, in words."""
        return "pairs" if self._draws is None else "pairs and respondents"

    def belief(self, name: str) -> Floats:
        """(n,) the mixture's mean belief for every pair, meaningful where the model has answered."""
        trial = self.trials[name]
        t = np.where(trial.answered, trial.outcome, 0).astype(np.float64)
        after_incorrect, after_correct = self.beliefs()
        return t * after_correct + (1 - t) * after_incorrect

    def beliefs(self) -> Floats:
        """(2, n) the mixture's belief for every pair after an incorrect and after a correct answer."""
        n = len(self._if_correct)
        return np.stack(
            [
                mixture_belief(change, np.full(n, outcome), self.averages)
                for outcome, change in enumerate((self._if_incorrect, self._if_correct))
            ]
        )

    def score(self, name: str, alphas: ArrayLike = PAPER_ALPHAS) -> ModelScore:
        trial = self.trials[name]
        weights = _alphas(alphas)
        point, resampled = self._own_sums(trial)
        accuracy, entropy = _ratio(resampled, weights, 0), _ratio(resampled, weights, 2)
        return ModelScore(
            name=name,
            pairs=int(trial.answered.sum()),
            alphas=weights,
            accuracy=_ratio(point[None], weights, 0)[0],
            cross_entropy=_ratio(point[None], weights, 2)[0],
            accuracy_interval=self._interval(accuracy),
            cross_entropy_interval=self._interval(entropy),
        )

    def difference(
        self, first: str, second: str, alphas: ArrayLike = PAPER_ALPHAS, *, common: bool = True
    ) -> ModelDifference:
        """Paired: both models are resampled alike.

        Args:
            common: over the pairs that both have answered. False: each model over its own pairs. That is right if a row
                is a pair with one outcome: common rows would be those on which both models had the same outcome.

        Raises:
            ValueError: `common`, and the two models have no pair in common.
        """
        first_trial, other = self.trials[first], self.trials[second]
        both = first_trial.answered & other.answered
        if common and not both.any():
            raise ValueError(f"{first} and {second}: have answered no pair of the sample in common")
        weights = _alphas(alphas)
        sums = [self._sums_of(trial, both) if common else self._own_sums(trial) for trial in (first_trial, other)]
        estimates = []
        for column in (0, 2):
            points, resamples = zip(
                *[
                    (_ratio(point[None], weights, column)[0], _ratio(resampled, weights, column))
                    for point, resampled in sums
                ],
                strict=True,
            )
            gap = resamples[0] - resamples[1]
            estimates.append((points[0] - points[1], self._interval(gap), _p_of(gap)))
        (accuracy, accuracy_interval, accuracy_p), (entropy, entropy_interval, entropy_p) = estimates
        return ModelDifference(
            first=first,
            second=second,
            pairs=int(both.sum()),
            alphas=weights,
            accuracy=accuracy,
            accuracy_interval=accuracy_interval,
            accuracy_p=accuracy_p,
            cross_entropy=entropy,
            cross_entropy_interval=entropy_interval,
            cross_entropy_p=entropy_p,
        )

    def _own_sums(self, trial: Trial) -> tuple[Floats, Floats]:
        """`_sums_of` over the pairs that the model has answered, computed once."""
        if trial.name not in self._known_sums:
            self._known_sums[trial.name] = self._sums_of(trial, trial.answered)
        return self._known_sums[trial.name]

    def _sums_of(self, trial: Trial, rows: NDArray[np.bool_]) -> tuple[Floats, Floats]:
        """The six sums of `_terms` over the given rows, and over each resample: shapes (6,) and (samples, 6)."""
        point, resampled = np.zeros(6), np.zeros((len(self._counts), 6))
        for outcome, predicted in enumerate((self._if_incorrect, self._if_correct)):
            seen = np.where(rows, trial.seen(outcome), 0.0)
            inside = seen > 0
            if not inside.any():
                continue
            weight, correct, change = seen[inside], trial.correct[inside], predicted[inside]
            outcomes = np.full(len(weight), outcome)
            terms = weight[:, None] * _terms(correct, mixture_belief(change, outcomes, self.averages))
            point += terms.sum(axis=0)
            counts = self._counts[:, inside]
            if self._draws is None:
                resampled += (counts @ terms.astype(np.float32)).astype(np.float64)
                continue
            step = max(1, 2_000_000 // max(1, counts.shape[1]))
            for start in range(0, len(counts), step):
                part = slice(start, start + step)
                prior, after = self._draws[part, 0][:, None], self._draws[part, 1 if outcome else 2][:, None]
                belief = change * after + (1 - change) * prior
                resampled[part] += np.einsum("sn,snk->sk", counts[part] * weight, _terms(correct, belief))
        return point, resampled

    def _interval(self, resampled: Floats) -> Floats:
        """(k, 2): percentiles over the resamples in which the ratio is defined; NaN where half of them have none."""
        finite = np.where(np.isfinite(resampled), resampled, np.nan)
        ends = [percentile_interval(column, self.level) for column in finite.T]
        return np.array([(np.nan, np.nan) if pair is None else pair for pair in ends])


def _p_of(gap: Floats) -> Floats:
    """(k,) the two-sided bootstrap p of each column of resampled differences (samples, k)."""
    return np.array([np.nan if (p := bootstrap_p(column)) is None else p for column in gap.T])


def _terms(correct: NDArray[Any], belief: Floats) -> Floats:
    """(..., 6) of every pair: y b, (1 - y)(1 - b), -y log b, -(1 - y) log(1 - b), y, 1 - y."""
    y = np.broadcast_to(correct.astype(np.float64), belief.shape)
    with np.errstate(divide="ignore"):
        gain, loss = -np.log(belief), -np.log1p(-belief)
    return np.stack(
        [
            *(y * belief, (1 - y) * (1 - belief)),
            *(_times(y, gain), _times(1 - y, loss)),
            *(y, 1 - y),
        ],
        axis=-1,
    )


def _times(share: Floats, loss: Floats) -> Floats:
    """The product; 0 where the share is 0, however large the loss."""
    return np.multiply(share, loss, where=share > 0, out=np.zeros_like(loss))


def _sums(correct: ArrayLike, belief: ArrayLike) -> Floats:
    b = _fractions("belief", belief)
    y = _fractions("correct", correct)
    if len(y) != len(b):
        raise ValueError(f"correct: {len(y)} values for {len(b)} beliefs; give one value a pair")
    if not len(b):
        raise ValueError("pairs: there are none")
    return _terms(y, b).sum(axis=0)


def _ratio(sums: Floats, alphas: Floats, first: int) -> Floats:
    """(rows, k) of sums (rows, 6): accuracy for first = 0, cross-entropy for first = 2."""
    numerator = sums[:, first, None] + alphas * sums[:, first + 1, None]
    denominator = sums[:, 4, None] + alphas * sums[:, 5, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(denominator > 0, numerator / denominator, np.nan)


def _alphas(alphas: ArrayLike) -> Floats:
    values = np.atleast_1d(np.asarray(alphas, dtype=np.float64))
    if values.ndim != 1 or not np.isfinite(values).all() or (values < 0).any():
        raise ValueError("alpha: must be a finite number of 0 or more; alpha 19 stands for a threshold of 95 %")
    return values


def _fractions(name: str, values: ArrayLike) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise ValueError(f"{name}: shape {array.shape}; give one number a pair")
    if not ((array >= 0) & (array <= 1)).all():
        raise ValueError(f"{name}: must lie between 0 and 1 everywhere")
    return array


def _binary(name: str, values: ArrayLike, n: int) -> NDArray[np.int8]:
    array = np.asarray(values)
    if array.shape != (n,):
        raise ValueError(f"{name}: shape {array.shape} for {n} pairs; give one value a pair")
    if not np.isin(array, (0, 1)).all():
        raise ValueError(f"{name}: use 1 for correct and 0 for incorrect")
    return array.astype(np.int8)


def averages_as_row(averages: Averages) -> Floats:
    """(3,) prior, posterior after correct, posterior after incorrect: a row of `averages_draws`."""
    return np.asarray(astuple(averages))
