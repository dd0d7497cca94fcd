"""One scale for every stated probability: the log score in nats and bits, and perplexity. Needs numpy alone.

A log score is the mean of -ln q over what happened, q being the probability that was given to it before (Good,
"Rational decisions", 1952). Perplexity is exp of it: the number of equally likely outcomes among which one would be as
uncertain (Jelinek, Mercer, Bahl and Baker, "Perplexity: a measure of the difficulty of speech recognition tasks",
1977). It does not depend on the base of the logarithm.

What was given probability 0 and happened costs infinitely much. Nothing is clipped: such a score is infinite, the cases
are counted, and a second figure leaves them out. Anyone who wants a floor sets one, and it stands next to the figure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from predictors.errors import PredictorError
from predictors.evaluation.intervals import Cluster, percentile_interval, resampled_counts

Floats = NDArray[np.float64]

LN2 = math.log(2)
INFINITY = "∞"
OVERFITTING = 0.5
"""A train perplexity below this share of the test perplexity is flagged: the model has learnt its texts by heart."""


def in_bits(nats: float) -> float:
    """Nats as bits."""
    return nats / LN2


def perplexity_of(nats: float) -> float:
    """exp of a mean log score in nats; infinite where the score is, or where it exceeds what a float can hold."""
    return math.exp(nats) if nats < 709 else math.inf


def finite(value: float | None) -> float | None:
    """The value for JSON: null where it is infinite, no number, or missing."""
    return None if value is None or not math.isfinite(value) else float(value)


def in_words(value: float | None, digits: int = 2) -> str:
    """The value for people: the sign for infinity where it is infinite, a dash where there is none."""
    if value is None or math.isnan(value):
        return "-"
    return INFINITY if math.isinf(value) else f"{value:,.{digits}f}"


@dataclass(frozen=True)
class LogScore:
    """The weighted log score of n cases.

    n: cases of positive weight. nats: mean of -ln q, infinite where `infinite` > 0. infinite: cases with q = 0.
    nats_of_finite: the mean over the others; None where there are none. floor: the least q that was counted, where the
    caller set one. below_floor: cases that it raised.
    """

    n: int
    nats: float
    infinite: int
    nats_of_finite: float | None
    floor: float | None = None
    below_floor: int = 0

    @property
    def bits(self) -> float:
        """The log score in bits."""
        return in_bits(self.nats)

    @property
    def perplexity(self) -> float:
        """exp(nats), the geometric mean of 1 / q."""
        return perplexity_of(self.nats)

    @property
    def perplexity_of_finite(self) -> float | None:
        """The perplexity without the cases of q = 0."""
        return None if self.nats_of_finite is None else perplexity_of(self.nats_of_finite)

    def as_json(self) -> dict[str, Any]:
        """Plain values; infinite ones are null, and `infinite` says how many cases made them so."""
        return {
            "n": self.n,
            "nats": finite(self.nats),
            "bits": finite(self.bits),
            "perplexity": finite(self.perplexity),
            "infinite": self.infinite,
            "perplexity_of_finite": finite(self.perplexity_of_finite),
            "floor": self.floor,
            "below_floor": self.below_floor,
        }


def log_score(
    probabilities: ArrayLike, sample_weight: ArrayLike | None = None, *, floor: float | None = None
) -> LogScore | None:
    """The log score of what happened; None where no case has weight.

    Args:
        probabilities: (n,) fractions: the probability that was given to what then happened.
        sample_weight: (n,) of 0 or more; without it each case counts once.
        floor: probabilities below this count as this much. Without it 0 stays 0, and its score infinite.

    Raises:
        PredictorError: lengths differ; a value is not a number or out of range; weights that sum to 0 although there
            are cases; a floor outside (0, 1).
    """
    q, w = checked_probabilities(probabilities, sample_weight)
    below = 0
    if floor is not None:
        if not 0 < floor < 1:
            raise PredictorError(f"floor: {floor!r} is not between 0 and 1; leave it out to keep 0 infinite.")
        below = int(np.count_nonzero((q < floor) & (w > 0)))
        q = np.maximum(q, floor)
    if not len(q):
        return None
    counted = w > 0
    possible = counted & (q > 0)
    rest = float(np.average(-np.log(q[possible]), weights=w[possible])) if possible.any() else None
    infinite = int(np.count_nonzero(counted & (q == 0)))
    return LogScore(
        n=int(np.count_nonzero(counted)),
        nats=math.inf if infinite or rest is None else _positive(rest),
        infinite=infinite,
        nats_of_finite=None if rest is None else _positive(rest),
        floor=floor,
        below_floor=below,
    )


def log_scores_by_group(
    probabilities: ArrayLike,
    groups: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    floor: float | None = None,
) -> dict[Any, LogScore]:
    """The log score within each of the groups (n,), by label, in the labels' order. Groups without weight are left out.

    Raises:
        PredictorError: as `log_score`; groups of another length.
    """
    q, w = checked_probabilities(probabilities, sample_weight)
    labels = np.asarray(groups)
    if labels.shape != q.shape:
        raise PredictorError(f"groups: shape {labels.shape} for {q.size} probabilities; give one label each.")
    scores: dict[Any, LogScore] = {}
    for label in np.unique(labels):
        inside = (labels == label) & (w > 0)
        if inside.any() and (score := log_score(q[inside], w[inside], floor=floor)) is not None:
            scores[label.item()] = score
    return scores


def log_score_interval(
    probabilities: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    cluster: Cluster | None = None,
    floor: float | None = None,
    rng: np.random.Generator,
    samples: int = 1000,
    level: float = 0.95,
) -> tuple[float, float] | None:
    """The percentile bootstrap interval of the log score in nats.

    An end is infinite where that share of the resamples holds a case of q = 0.

    Args:
        cluster: (n,) labels, or two such arrays (people and items) that are resampled each by itself; None: cases.

    Raises:
        PredictorError: as `log_score`, or a cluster of another length; samples below 1 or level outside (0, 1).
    """
    score = log_score(probabilities, sample_weight, floor=floor)
    if score is None:
        return None
    q, w = checked_probabilities(probabilities, sample_weight)
    q = q if floor is None else np.maximum(q, floor)
    weighted = w > 0
    possible = q[weighted] > 0
    losses = np.where(possible, -np.log(np.where(possible, q[weighted], 1.0)), 0.0)
    clusters: Cluster | None
    if isinstance(cluster, tuple):
        clusters = tuple(np.asarray(column)[weighted] for column in cluster)
    else:
        clusters = None if cluster is None else np.asarray(cluster)[weighted]
    parts = []
    for counts in resampled_counts(clusters, int(weighted.sum()), rng, samples, level):
        weights = counts * w[weighted]
        total = weights.sum(axis=1)
        means = np.divide(weights @ losses, total, out=np.full(len(counts), np.nan), where=total > 0)
        means[(weights[:, ~possible] > 0).any(axis=1)] = np.inf
        parts.append(means)
    return percentile_interval(np.concatenate(parts), level, method="nearest")


@dataclass(frozen=True)
class TextScore:
    """What reading one or more texts cost in all, and how much text it was.

    nats: sum of -ln p over the tokens that were read; infinite where one had probability 0. nats_of_finite: the same
    without these. tokens: how many were read. infinite: of these, with probability 0. words, characters: of the whole
    texts, whatever a model calls a token.
    """

    nats: float
    nats_of_finite: float
    tokens: int
    infinite: int
    words: int
    characters: int

    @classmethod
    def of(cls, log_probabilities: ArrayLike, *, words: int, characters: int) -> TextScore:
        """From the natural log-probabilities (n,) of the tokens; NaN marks one that was not read.

        Raises:
            PredictorError: no column of numbers; one above 0; a count below 0.
        """
        values = np.asarray(log_probabilities, dtype=np.float64)
        if values.ndim != 1:
            raise PredictorError(f"log_probabilities: shape {values.shape}; give one number a token.")
        read = values[~np.isnan(values)]
        if (read > 0).any():
            raise PredictorError("log_probabilities: one is above 0; give natural logarithms of probabilities.")
        if words < 0 or characters < 0:
            raise PredictorError("words, characters: must not be negative.")
        possible = read[np.isfinite(read)]
        infinite = len(read) - len(possible)
        nats = _positive(float(-possible.sum()))
        return cls(math.inf if infinite else nats, nats, len(read), infinite, words, characters)

    def __add__(self, other: TextScore) -> TextScore:
        return TextScore(
            self.nats + other.nats,
            self.nats_of_finite + other.nats_of_finite,
            self.tokens + other.tokens,
            self.infinite + other.infinite,
            self.words + other.words,
            self.characters + other.characters,
        )

    @property
    def perplexity_per_token(self) -> float | None:
        """exp(nats / tokens); None without a token."""
        return perplexity_of(self.nats / self.tokens) if self.tokens else None

    @property
    def bits_per_token(self) -> float | None:
        """nats / ln 2 / tokens: the cross-entropy H, of which perplexity is 2 to the power; None without a token."""
        return in_bits(self.nats / self.tokens) if self.tokens else None

    @property
    def perplexity_of_finite(self) -> float | None:
        """The same over the tokens that had a probability above 0; None where there are none."""
        left = self.tokens - self.infinite
        return perplexity_of(self.nats_of_finite / left) if left else None

    @property
    def perplexity_per_word(self) -> float | None:
        """exp(nats / words), whatever a token is; None without a word."""
        return perplexity_of(self.nats / self.words) if self.words else None

    @property
    def bits_per_character(self) -> float | None:
        """nats / ln 2 / characters: the scale on which models with different tokens compare."""
        return in_bits(self.nats / self.characters) if self.characters else None

    def normalised(self, vocabulary: int) -> float | None:
        """Perplexity per token as a share of the vocabulary's size: 1 for a model that knows nothing.

        Raises:
            PredictorError: a vocabulary of less than one token.
        """
        if vocabulary < 1:
            raise PredictorError(f"vocabulary: {vocabulary!r} is not 1 or more.")
        perplexity = self.perplexity_per_token
        return None if perplexity is None else perplexity / vocabulary

    def as_json(self) -> dict[str, Any]:
        """Plain values; infinite ones are null, and `infinite` says how many tokens made them so."""
        return {
            "nats": finite(self.nats),
            "tokens": self.tokens,
            "infinite": self.infinite,
            "words": self.words,
            "characters": self.characters,
            "bits_per_token": finite(self.bits_per_token),
            "perplexity_per_token": finite(self.perplexity_per_token),
            "perplexity_of_finite": finite(self.perplexity_of_finite),
            "perplexity_per_word": finite(self.perplexity_per_word),
            "bits_per_character": finite(self.bits_per_character),
        }


def added(scores: Sequence[TextScore]) -> TextScore:
    """All texts together."""
    return sum(scores, TextScore(0.0, 0.0, 0, 0, 0, 0))


@dataclass(frozen=True)
class TrainTest:
    """One model on the texts that it learnt from and on others.

    `ratio`: train perplexity / test perplexity, a token; 0 where the test's is infinite, None where one is missing or
    both are infinite.
    """

    train: TextScore
    test: TextScore

    @property
    def ratio(self) -> float | None:
        train, test = self.train.perplexity_per_token, self.test.perplexity_per_token
        if train is None or test is None or math.isinf(train):
            return None
        return train / test

    @property
    def is_overfitted(self) -> bool:
        """Whether the ratio lies under `OVERFITTING`."""
        return self.ratio is not None and self.ratio < OVERFITTING

    def as_json(self) -> dict[str, Any]:
        return {
            "train": self.train.as_json(),
            "test": self.test.as_json(),
            "ratio": finite(self.ratio),
            "overfitted": self.is_overfitted,
        }


@dataclass(frozen=True)
class ModelIntervals:
    """Intervals of bits per character by model, and of the first model's less each other one's; None where fewer than
    two texts were read. All are of the same resamples of texts."""

    bits_per_character: Mapping[str, tuple[float, float] | None]
    differences: Mapping[str, tuple[float, float] | None]


def text_intervals(
    scores: Mapping[str, Sequence[TextScore]],
    *,
    rng: np.random.Generator,
    samples: int = 1000,
    level: float = 0.95,
) -> ModelIntervals:
    """Percentile bootstrap intervals over texts, every model on the same resamples.

    Args:
        scores: by model, one score a text, the texts in the same order everywhere.

    Raises:
        PredictorError: models with different numbers of texts; samples below 1 or level outside (0, 1).
    """
    names = list(scores)
    lengths = {len(row) for row in scores.values()}
    if len(lengths) > 1:
        raise PredictorError(f"scores: models have {sorted(lengths)} texts; give the same texts for each.")
    if not names or lengths.pop() < 2:
        nothing: dict[str, tuple[float, float] | None] = dict.fromkeys(names)
        return ModelIntervals(nothing, dict.fromkeys(names[1:]))
    characters = np.array([[score.characters for score in scores[name]] for name in names], dtype=np.float64)
    nats = np.array([[score.nats_of_finite for score in scores[name]] for name in names])
    endless = np.array([[score.infinite for score in scores[name]] for name in names], dtype=np.float64)
    drawn: list[Floats] = []
    for counts in resampled_counts(None, nats.shape[1], rng, samples, level):
        bits = counts @ nats.T / np.maximum(counts @ characters.T, 1) / LN2
        bits[(counts @ endless.T) > 0] = np.inf
        drawn.append(bits)
    table = np.concatenate(drawn)
    of_model = {name: percentile_interval(table[:, place], level, method="nearest") for place, name in enumerate(names)}
    differences: dict[str, tuple[float, float] | None] = {}
    for place, name in enumerate(names[1:], start=1):
        both = np.isfinite(table[:, 0]) & np.isfinite(table[:, place])
        gap = table[:, 0] - table[:, place]
        differences[name] = percentile_interval(gap, level, method="nearest") if both.all() else None
    return ModelIntervals(of_model, differences)


def checked_probabilities(probabilities: ArrayLike, sample_weight: ArrayLike | None) -> tuple[Floats, Floats]:
    """Probabilities and weights as float64 arrays (n,).

    Raises:
        PredictorError: lengths differ; a value is not a number or out of range, with its place; weights of sum 0.
    """
    q = np.asarray(probabilities, dtype=np.float64)
    w = np.ones_like(q) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if q.ndim != 1 or w.shape != q.shape:
        raise PredictorError(f"probabilities: shapes {q.shape} and {w.shape}; give one probability and weight a case.")
    if len(bad := np.flatnonzero(~((q >= 0) & (q <= 1)))):
        raise PredictorError(f"probabilities: case {int(bad[0])} is {q[bad[0]]!r}; must lie between 0 and 1.")
    if len(bad := np.flatnonzero(~(np.isfinite(w) & (w >= 0)))):
        raise PredictorError(f"sample_weight: case {int(bad[0])} is {w[bad[0]]!r}; must be 0 or more.")
    if len(w) and not w.sum() > 0:
        raise PredictorError("sample_weight: sums to 0, so that no case counts; give one of them a weight.")
    return q, w


def _positive(value: float) -> float:
    """0.0 for -0.0."""
    return value + 0.0 if value else 0.0
