"""The predictability norm correlation (PNC) of language models: human against model surprisal. Numpy, `bandit` and
`survey.figures` alone.

PNC is the weighted Pearson correlation over positions (Hao, Mendelsohn, Sterneck, Martinez and Frank, "Probabilistic
predictions of people perusing", 2020). A position's weight is 1 / its chance of being drawn. What is estimated is the
value at a fixed number of answers at every position, over sentences such as these. The `answers` of a figure are the
positions that it rests on.

Intervals resample sentences, all models on the same resamples, and add what answers of one person have in common: the
variance that people add is that over people less that over single answers (`bandit.crossed_variance`). They are made on
Fisher's z with Student's t.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import bandit
from bandit.correlation import correlation_of_sums, moments
from bandit.errors import DesignError
from bandit.fragility import Fragility, fragile_sums
from survey.figures import Figure

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

RESAMPLES = 1000
FEWEST = 3  # positions, for a correlation


@dataclass(frozen=True, eq=False)
class Positions:
    """N positions with people's surprisal: its mean and its mean square at the number of answers that is aimed at, the
    weight and the sentence of each; all (N,).

    answer_position, answer_influence, answer_person: single answers (A,), where they are known: which position, how
    much each moves its surprisal, and whose it is.
    """

    human: Floats
    square: Floats
    weight: Floats
    sentence: Ints
    answer_position: Ints | None = None
    answer_influence: Floats | None = None
    answer_person: Ints | None = None


def spearman(x: Floats, y: Floats, weight: Floats) -> float | None:
    """The weighted correlation of ranks, ties in the middle."""
    coefficient = bandit.weighted_correlation(bandit.ranks(x), bandit.ranks(y), weight)
    return None if math.isnan(coefficient) else coefficient


def pnc(
    positions: Positions,
    models: Mapping[str, Floats],
    *,
    rng: np.random.Generator,
    samples: int = RESAMPLES,
) -> tuple[dict[str, Figure], dict[tuple[str, str], Figure]]:
    """The PNC of each model, and for each two models the first one's less the other's, where both have a surprisal.

    Args:
        models: by name the model's surprisal (N,); NaN or infinite where it has none, which leaves the position out.
    """
    _names, sentence = np.unique(positions.sentence, return_inverse=True)
    sentence = sentence.reshape(-1)
    groups = int(sentence.max()) + 1 if len(sentence) else 0
    counts = _counts(groups, rng, samples)
    cache: dict[tuple[str, bytes], _Sampled] = {}

    def of(name: str, inside: NDArray[np.bool_]) -> _Sampled:
        key = (name, inside.tobytes())
        if key not in cache:
            cache[key] = _sampled(positions, models[name], inside, sentence, groups, counts)
        return cache[key]

    known = {name: np.isfinite(values) & np.isfinite(positions.human) for name, values in models.items()}
    single = {name: of(name, inside).correlation(groups) for name, inside in known.items()}
    names = list(models)
    differences = {}
    for place, first in enumerate(names):
        for other in names[place + 1 :]:
            both = known[first] & known[other]
            differences[first, other] = _difference(of(first, both), of(other, both), groups)
    return single, differences


def fragile_order(positions: Positions, models: Mapping[str, Floats]) -> tuple[Fragility, Ints] | None:
    """Which few positions carry the order of the models by PNC, and the places of the positions that all of them have
    (P,), which the rows of the first are; None where fewer than two models have a PNC there.

    Args:
        models: as in `pnc`.
    """
    inside = np.isfinite(positions.human) & (positions.weight > 0)
    for values in models.values():
        inside &= np.isfinite(values)
    places = np.flatnonzero(inside)
    if len(models) < 2 or len(places) < FEWEST:
        return None
    weight, y, square = (part[places] for part in (positions.weight, positions.human, positions.square))
    middle = np.average(y, weights=weight)
    off = square - 2 * middle * y + middle**2
    parts = [
        moments(x - np.average(x, weights=weight), y - middle, weight, off)
        for x in (values[places] for values in models.values())
    ]
    try:
        fragile = fragile_sums(
            parts=np.stack(parts, axis=1),
            score=correlation_of_sums,
        )
    except DesignError:  # One of them has no PNC there.
        return None
    return fragile, places


def mean_surprisal(positions: Positions, *, rng: np.random.Generator, samples: int = RESAMPLES) -> Figure:
    """People's mean surprisal over positions, in nats, with its interval."""
    inside = np.isfinite(positions.human)
    _names, sentence = np.unique(positions.sentence, return_inverse=True)
    sentence = sentence.reshape(-1)
    groups = int(sentence.max()) + 1 if len(sentence) else 0
    weight = np.where(inside, positions.weight, 0.0)
    values = np.where(inside, positions.human, 0.0)
    if not weight.sum() > 0:
        return Figure(answers=0)
    mean = float((weight * values).sum() / weight.sum())
    sums = np.stack([_by(sentence, weight * values, groups), _by(sentence, weight, groups)], axis=1)
    drawn = _counts(groups, rng, samples) @ sums
    means = np.divide(drawn[:, 0], drawn[:, 1], out=np.full(len(drawn), np.nan), where=drawn[:, 1] > 0)
    half = _reach(_variance(means), groups, positions, weight / weight.sum())
    count = int(inside.sum())
    return Figure.between(mean, (mean - half, mean + half) if groups > 1 else None, answers=count)


def reliability(pairs: Iterable[tuple[Floats, Floats]], weight: Floats) -> float | None:
    """How alike two groups of people of the whole size would be: the mean correlation of halves (N,), by the formula of
    Spearman and Brown; None where it is not above 0."""
    correlations = []
    for first, other in pairs:
        inside = np.isfinite(first) & np.isfinite(other)
        if inside.sum() < FEWEST:
            continue
        value = bandit.weighted_correlation(first[inside], other[inside], weight[inside])
        if not math.isnan(value):
            correlations.append(value)
    if not correlations:
        return None
    mean = sum(correlations) / len(correlations)
    return 2 * mean / (1 + mean) if mean > 0 else None


@dataclass(frozen=True, eq=False)
class _Sampled:
    """One correlation on the sample and on every resample, on Fisher's z, and what each position adds to it."""

    value: float
    z: float
    resampled: Floats
    slope: Floats
    positions: Positions
    count: int

    def correlation(self, groups: int) -> Figure:
        if math.isnan(self.value):
            return Figure(answers=self.count)
        if groups < FEWEST:
            return Figure(self.value, answers=self.count)
        half = _reach(_variance(self.resampled), groups, self.positions, self.slope)
        return Figure(self.value, math.tanh(self.z - half), math.tanh(self.z + half), answers=self.count)


def _difference(first: _Sampled, other: _Sampled, groups: int) -> Figure:
    if math.isnan(first.value) or math.isnan(other.value):
        return Figure(answers=first.count)
    value = first.value - other.value
    if groups < FEWEST:
        return Figure(value, answers=first.count)
    # A difference has no z of its own: its slope is that of the correlations themselves.
    slope = first.slope * (1 - first.value**2) - other.slope * (1 - other.value**2)
    half = _reach(_variance(np.tanh(first.resampled) - np.tanh(other.resampled)), groups, first.positions, slope)
    return Figure(value, value - half, value + half, answers=first.count)


def _sampled(
    positions: Positions,
    model: Floats,
    inside: NDArray[np.bool_],
    sentence: Ints,
    groups: int,
    counts: Floats,
) -> _Sampled:
    weight = np.where(inside, positions.weight, 0.0)
    x = np.where(inside, model, 0.0)
    y = np.where(inside, positions.human, 0.0)
    square = np.where(inside, positions.square, 0.0)
    count = int(inside.sum())
    nothing = _Sampled(math.nan, math.nan, np.empty(0), np.zeros(len(x)), positions, count)
    if count < FEWEST:
        return nothing
    # Centred, so that sums of squares lose no digits; a correlation does not depend on where 0 lies.
    middle_x, middle_y = np.average(x, weights=weight), np.average(y, weights=weight)
    centred_x, centred_y = np.where(inside, x - middle_x, 0.0), np.where(inside, y - middle_y, 0.0)
    centred_square = np.where(inside, square - 2 * middle_y * y + middle_y**2, 0.0)
    added = moments(centred_x, centred_y, weight, centred_square)
    value = float(correlation_of_sums(added.sum(axis=0)))
    if math.isnan(value):
        return nothing
    by_sentence = np.stack([_by(sentence, added[:, column], groups) for column in range(6)], axis=1)
    resampled = np.arctanh(np.clip(correlation_of_sums(counts @ by_sentence), -1 + 1e-12, 1 - 1e-12))
    share = weight / weight.sum()
    sd_x = math.sqrt(float((share * centred_x**2).sum()))
    sd_y = math.sqrt(float((share * centred_square).sum()))
    slope = share * (centred_x / (sd_x * sd_y) - value * centred_y / sd_y**2) / max(1 - value**2, 1e-12)
    return _Sampled(value, math.atanh(min(max(value, -1 + 1e-12), 1 - 1e-12)), resampled, slope, positions, count)


def _counts(groups: int, rng: np.random.Generator, samples: int) -> Floats:
    """How often each sentence is in each resample (samples, groups)."""
    if not groups:
        return np.zeros((samples, 0))
    return rng.multinomial(groups, np.full(groups, 1 / groups), size=samples).astype(np.float64)


def _by(group: Ints, values: Floats, groups: int) -> Floats:
    return np.bincount(group, weights=values, minlength=groups).astype(np.float64)


def _variance(values: Floats) -> float:
    defined = values[np.isfinite(values)]
    return float(defined.var(ddof=1)) if len(defined) > 1 else math.nan


def _reach(of_sentences: float, groups: int, positions: Positions, slope: Floats) -> float:
    """Half of a 95 % interval: from the variance that resampled sentences give, of `groups` of them, and what people
    add to it. Student's t with the degrees of freedom of the sum."""
    place, influence, person = positions.answer_position, positions.answer_influence, positions.answer_person
    variance, people = of_sentences, 0
    if place is not None and influence is not None and person is not None and len(place):
        parts, people = slope[place] * influence, bandit.cluster_count(person)
        if people > 1:
            by_person, by_answer = (
                bandit.clustered_variance(parts, person),
                bandit.clustered_variance(parts, np.arange(len(parts))),
            )
            variance = float(bandit.crossed_variance(of_sentences, by_person, by_answer))
    if not variance > 0:
        return variance  # 0, or NaN where it is not known.
    freedom = bandit.satterthwaite([of_sentences, variance - of_sentences], [max(1, groups - 1), max(1, people - 1)])
    return bandit.student_t_quantile(0.975, max(1.0, freedom)) * math.sqrt(variance)


def by_part(
    positions: Positions, models: Mapping[str, Floats], part: Sequence[str], *, rng: np.random.Generator
) -> dict[tuple[str, str], Figure]:
    """The PNC of each model in each part of the positions, named by an array of words (N,)."""
    names = np.array(part, dtype=str)
    parts = {}
    for name in dict.fromkeys(part):
        inside = names == name
        own = {model: np.where(inside, values, np.nan) for model, values in models.items()}
        single, _differences = pnc(positions, own, rng=rng, samples=400) if inside.any() else ({}, {})
        parts.update({(model, name): value for model, value in single.items()})
    return parts
