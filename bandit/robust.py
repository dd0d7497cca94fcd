"""A design that does not lose to uniform sampling: chances on the path from uniform ones to the best ones. Numpy alone.

The best chances for a mean are proportional to how far an answer to the item lies from what is predicted, the spread
(Neyman, Journal of the Royal Statistical Society 97, 1934). Nobody knows it, and a wrong one costs more than it could
save. So the spread is learnt from answers of earlier stages, by the rank of the prediction; and of the points between
uniform and best that one is taken whose saving, less a margin for its error, is largest for the figure that it serves
worst (Li, Zrnic and Candès, Robust sampling for active statistical inference, 2025, arXiv 2511.08991). The saving of
answers is reckoned with a spread that other people's answers gave. Where nothing is sure to save, the chances are
uniform, and the reason is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bandit.combining import kish_size
from bandit.designs import Design, Strata, checked_scores
from bandit.errors import DesignError
from bandit.unequal import shares

Floats = NDArray[np.float64]

PATHS = tuple(step / 10 for step in range(10))  # the whole way would leave an item that seems sure without a chance
MARGIN = 2.0  # standard errors of a saving that are taken off it
LEAST_SHARE = 0.02  # of the uniform chance, that every item keeps while `find` is above 0
FOLDS = 5
MIN_PEOPLE = 10
ITEMS_OF_BAND = 20
MAX_BANDS = 10
NEXT_TO_NOTHING = 1e-100  # of estimating, where finding is all that is wanted: ties at the cut stay alike
BORROWED = 10  # items of the usual spread that each band counts next to its own


@dataclass(frozen=True, eq=False)
class Evidence:
    """What answers of earlier stages say of the figures that a stage is drawn for.

    Of n answers, or n items where several people answer each: `score`, the prediction before the answer; `residual`
    (n, k), how far the answer lies from what a linear fit of the prediction expects of each of k figures; `value`, the
    first figure's values; `weight`, what each stands for; `cluster`, the person (the item). `figures`: their k names.
    `missing` counts answers without a prediction, `without` names figures that no answer is about. `people`: who
    gave them, with or without.
    """

    figures: tuple[str, ...]
    score: Floats
    residual: Floats
    value: Floats
    weight: Floats
    cluster: NDArray[np.int64]
    missing: int = 0
    without: tuple[str, ...] = ()
    people: int = 0

    @classmethod
    def of(
        cls,
        *,
        values: Mapping[str, ArrayLike],
        scores: ArrayLike,
        chance: ArrayLike,
        stage: ArrayLike,
        cluster: ArrayLike,
        item: ArrayLike | None = None,
        where: Mapping[str, ArrayLike] | None = None,
        per: Mapping[str, ArrayLike] | None = None,
    ) -> Evidence:
        """From n counted answers; arrays of shape (n,).

        `values`: by figure; `where`: for a figure of a part of the items, true for answers to it; `per`: for a ratio,
        what its values are divided by. `scores`: NaN where there is none. `chance`: of the item, in its `stage`.
        `item`: where several people answer each. The stages weigh as estimates combine them (`bandit.kish_size`).
        """
        prediction, probability = np.asarray(scores, dtype=np.float64), np.asarray(chance, dtype=np.float64)
        stages, people = np.asarray(stage), np.asarray(cluster)
        has_score = np.isfinite(prediction)
        weight = 1 / probability
        for number in np.unique(stages):
            own = stages == number
            several = kish_size(probability[own], people=np.unique(people[own]).size)
            weight[own] *= several / weight[own].sum()
        names, residuals, without = [], [], []
        for name, raw in values.items():
            value = np.asarray(raw, dtype=np.float64)
            inside = np.ones(value.size, dtype=bool)
            if where and where.get(name) is not None:
                inside = np.asarray(where[name], dtype=bool)
            below = np.where(inside, 1.0, 0.0)
            if per and per.get(name) is not None:
                below = np.where(inside, np.asarray(per[name], dtype=np.float64), 0.0)
            total = float((weight * below)[has_score].sum())
            if not total > 0:
                without.append(name)
                continue
            mean = float((weight * np.where(inside, value, 0.0))[has_score].sum()) / total
            names.append(name)
            residuals.append(np.where(inside, value, 0.0) - mean * below)
        columns = np.stack(residuals, axis=1) if residuals else np.zeros((prediction.size, 0))
        first = np.asarray(next(iter(values.values())), dtype=np.float64)
        parts = [prediction, first, weight, *columns.T]
        parts = [part[has_score] for part in parts]
        group, _ = np.unique(people[has_score], return_inverse=True)[::-1]
        if item is not None:
            # Several answers to an item of a stage: what matters is how far their mean lies from the prediction.
            _, pair = np.unique(np.stack([np.asarray(item)[has_score], stages[has_score]]), axis=1, return_inverse=True)
            pair = pair.reshape(-1)
            counts = np.bincount(pair)
            parts = [np.bincount(pair, weights=part) / counts for part in parts]
            group = np.arange(counts.size)
        prediction, first, weight, *rest = parts
        return cls(
            figures=tuple(names),
            score=prediction,
            residual=np.stack([_fitted_off(column, prediction, weight) for column in rest], axis=1)
            if rest
            else np.zeros((prediction.size, 0)),
            value=first,
            weight=weight,
            cluster=group.astype(np.int64),
            missing=int(np.count_nonzero(~has_score)),
            without=tuple(without),
            people=int(np.unique(people).size),
        )


@dataclass(frozen=True)
class Learned:
    """What earlier answers showed a robust design, enough to make its chances again.

    `spread`: how far answers lie from their predictions, relative, in bands of equal size from the lowest predictions
    to the highest; `path`: the point between uniform (0) and best (1); `finds`: whether higher predictions had higher
    values, without which `find` has no effect. `savings`: by figure, the share of answers that the point saves and its
    standard error, both over one draw. `answers`: what it rests on; `reason`: why the chances are no better, empty if
    they are.
    """

    spread: tuple[float, ...] = (1.0,)
    path: float = 0.0
    finds: bool = False
    savings: tuple[tuple[str, float, float], ...] = ()
    answers: int = 0
    reason: str = ""

    def as_facts(self) -> dict[str, Any]:
        """Plain values for a plan's record."""
        return {
            "spread": list(self.spread),
            "path": self.path,
            "finds": self.finds,
            "savings": [list(saving) for saving in self.savings],
            "answers": self.answers,
            "reason": self.reason,
        }

    @classmethod
    def of_facts(cls, facts: Mapping[str, Any]) -> Learned:
        """The inverse of `as_facts`."""
        return cls(
            spread=tuple(facts["spread"]),
            path=facts["path"],
            finds=facts["finds"],
            savings=tuple((name, saving, error) for name, saving, error in facts["savings"]),
            answers=facts["answers"],
            reason=facts["reason"],
        )


@dataclass(frozen=True)
class Robust(Design):
    """Chances on the path from uniform ones to the best for `figures`, as far as earlier answers show that it saves.

    One stratum, `all`. With `learned` the chance of candidate i is proportional to 1 - path + path * s_i, s_i the
    spread at the rank of its score over its mean. Without, or where nothing was sure to save, it is n / M.

    `find` moves along the frontier between estimating (0) and finding (1): among all chances with the same expected
    value found, those of the narrowest interval. They are base_i * t / sqrt(u - score_i), at most 1, with
    t = (1 - find) / find in standard deviations of the scores, u the number that makes the sum n, and base_i the
    chances above; each candidate keeps 0.02 n / M. `figures`: what is estimated; the caller knows them by name.
    """

    is_unequal = True
    needs_chances = True
    needs_list = True
    learns = True
    find: float = 0.0
    figures: tuple[str, ...] = ()
    learned: Learned | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.find <= 1:
            raise DesignError(f"find: must lie between 0 (estimates best) and 1 (finds most), not {self.find}")
        object.__setattr__(self, "figures", tuple(self.figures))  # A file has a list.
        if self.figures and len(set(self.figures)) != len(self.figures):
            raise DesignError("for: a figure is there twice; remove one")

    @property
    def estimated(self) -> tuple[str, ...]:
        return tuple(self.figures)

    def ranked_by(self, scores: ArrayLike | None, disagreement: ArrayLike | None) -> Floats:
        """The scores, which make the chances and not the strata."""
        if scores is None:
            raise DesignError("scores: robust needs a score for each candidate; or use Uniform")
        score = checked_scores(scores)
        if score.min() < 0 or score.max() > 1:
            raise DesignError(
                f"scores: robust needs predicted chances, not {score.min():g}..{score.max():g}; give probabilities"
            )
        return score

    def inclusion_probabilities(self, *, scores: ArrayLike | None, strata: Strata, allocation: Sequence[int]) -> Floats:
        """The chance of each candidate, shape (M,): whole multiples of 2^-40 that sum to n exactly."""
        score, n, learned = self.ranked_by(scores, None), sum(allocation), self.learned or Learned()
        base = 1 - learned.path + learned.path * _spread_at(_places(score), learned.spread)
        least = 0.0
        if self.find > 0 and learned.finds and np.ptp(score) > 0:
            least = LEAST_SHARE
            base = _frontier(base, score, rate=n / score.size, find=self.find)
        return shares(base, n=n, floor=least)

    def learn(self, evidence: Evidence | None, scores: ArrayLike | None = None) -> Robust:
        """The design with what this evidence shows. `scores`: the candidates', for a reason where all are alike."""
        learned = learned_from(evidence, None if scores is None else np.asarray(scores))
        if self.find and not learned.finds:
            why = "no higher predictions were seen to have higher values, so that find has no effect"
            learned = replace(learned, reason="; ".join(filter(None, [learned.reason, why])))
        return replace(self, learned=learned)

    @property
    def learned_in_words(self) -> str:
        """What it has learnt, as a clause."""
        learned = self.learned
        if learned is None:
            return ""
        noted = f"; {learned.reason}" if learned.reason else ""
        finding = f", moved towards finding by {self.find:g}" if self.find and learned.finds else ""
        if not learned.path:
            return f"chances {'uniform' if not finding else 'from uniform ones'}{finding}{noted}"
        saved = ", ".join(
            f"{100 * saving:.0f} % (± {200 * error:.0f}) for {name}" for name, saving, error in learned.savings
        )
        return (
            f"chances {learned.path:g} of the way from uniform to the best{finding}, by {learned.answers} answers of "
            f"earlier stages, in which that saved of the answers {saved}{noted}"
        )

    def with_facts(self, facts: Mapping[str, Any]) -> Robust:
        """The design with what was kept of an earlier `learn`."""
        return replace(self, learned=Learned.of_facts(facts))

    def facts(self) -> Mapping[str, Any] | None:
        """What must be kept to draw by this design again."""
        return None if self.learned is None else self.learned.as_facts()


def learned_from(evidence: Evidence | None, scores: Floats | None = None) -> Learned:
    """The spread and the point on the path that this evidence allows."""
    if evidence is None or not (evidence.score.size or evidence.missing):
        return Learned(reason="no earlier answer counts")
    answers = int(evidence.score.size)
    finds = _slope(evidence.value, evidence.score, evidence.weight) > 0
    nothing = _nothing_to_learn(evidence, scores)
    if nothing:
        return Learned(finds=finds, answers=answers, reason=nothing)
    weight = evidence.weight * answers / evidence.weight.sum()
    scale = (weight[:, None] * evidence.residual**2).mean(axis=0)
    varies = scale > 0
    square = evidence.residual[:, varies] ** 2 / scale[varies]
    figures = [name for name, known in zip(evidence.figures, varies, strict=True) if known]
    place = _places(evidence.score, weight)
    people, person = np.unique(evidence.cluster, return_inverse=True)
    fold = np.random.default_rng(0).permutation(np.arange(people.size) % FOLDS)[person]
    expected = np.ones(answers)
    for number in range(FOLDS):
        train = fold != number
        spread = _spread_by_band(place[train], square[train], weight[train])
        expected[~train] = _spread_at(place[~train], spread)
    best, path, savings = 0.0, 0.0, [(0.0, 0.0)] * len(figures)
    for point in PATHS[1:]:
        saved, error = _savings(point, expected, square, weight, person)
        low = float((saved - MARGIN * error).min())
        if low > best:
            best, path, savings = low, point, list(zip(saved.tolist(), error.tolist(), strict=True))
    notes = [f"no earlier answer is about {name}" for name in evidence.without]
    notes += [f"answers do not differ in {name}" for name in evidence.figures if name not in figures]
    notes += [f"{evidence.missing} earlier answers had no prediction"] if evidence.missing else []
    if not path:
        notes = ["no other chances are sure to save answers", *notes]
    return Learned(
        spread=_spread_by_band(place, square, weight) if path else (1.0,),
        path=path,
        finds=finds,
        savings=tuple((name, *saving) for name, saving in zip(figures, savings, strict=True)) if path else (),
        answers=answers,
        reason="; ".join(notes),
    )


def _nothing_to_learn(evidence: Evidence, scores: Floats | None) -> str:
    """Why the evidence says nothing of the spread; empty if it does."""
    if evidence.people < MIN_PEOPLE:
        return f"the earlier answers are of {evidence.people} people, fewer than {MIN_PEOPLE}"
    if not evidence.score.size:
        return f"none of {evidence.missing} earlier answers had a prediction"
    if evidence.score.size < 2 * ITEMS_OF_BAND:
        return f"there are {evidence.score.size} earlier answers with predictions, fewer than {2 * ITEMS_OF_BAND}"
    if np.ptp(evidence.score) == 0:
        return "the predictions of the earlier answers are all alike"
    if scores is not None and np.ptp(scores) == 0:
        return "the predictions of the candidates are all alike"
    if not evidence.figures:
        return f"no earlier answer is about {', '.join(evidence.without)}"
    if not (evidence.residual**2).sum() > 0:
        return "the earlier answers do not differ"
    return ""


def _savings(
    path: float, expected: Floats, square: Floats, weight: Floats, person: NDArray[np.intp]
) -> tuple[Floats, Floats]:
    """By figure, the share of a uniform draw's variance that this point would save, and its standard error by person.

    A mean's variance is that of answers over their chances: the mean of square / (chance over uniform).
    """
    gained = weight[:, None] * square * (1 - 1 / (1 - path + path * expected))[:, None]
    gain = gained.mean(axis=0)
    of_people = np.stack([np.bincount(person, weights=column) for column in gained.T], axis=1)
    people = len(of_people)
    spread = ((of_people - of_people.mean(axis=0)) ** 2).sum(axis=0) * people / (people - 1)
    return gain, np.sqrt(spread) / len(square)


def _fitted_off(value: Floats, score: Floats, weight: Floats) -> Floats:
    """What a line on the score does not explain; the values less their mean where scores are alike."""
    centred = value - np.average(value, weights=weight)
    return centred - _slope(value, score, weight) * (score - np.average(score, weights=weight))


def _slope(value: Floats, score: Floats, weight: Floats) -> float:
    if not score.size:
        return 0.0
    off = score - np.average(score, weights=weight)
    square = float(weight @ off**2)
    return float(weight @ (off * value)) / square if square > 0 else 0.0


def _places(score: Floats, weight: Floats | None = None) -> Floats:
    """The place of each score in the order of all, in 0..1, equal scores alike: the weight below it and half its
    own."""
    kinds, kind = np.unique(score, return_inverse=True)
    total = np.bincount(kind, weights=weight, minlength=kinds.size).astype(np.float64)
    reached = np.cumsum(total)
    return ((reached - total / 2) / reached[-1])[kind]


def _spread_by_band(place: Floats, square: Floats, weight: Floats) -> tuple[float, ...]:
    """The root of the mean square in each band of places, drawn towards the mean of all, which is 1."""
    bands = int(min(MAX_BANDS, max(1, place.size // ITEMS_OF_BAND)))
    band = np.minimum((place * bands).astype(np.int64), bands - 1)
    of_answer = square.mean(axis=1)
    total = np.bincount(band, weights=weight, minlength=bands)
    there = total > 0
    mean = np.ones(bands)
    mean[there] = np.bincount(band, weights=weight * of_answer, minlength=bands)[there] / total[there]
    size = np.zeros(bands)
    size[there] = total[there] ** 2 / np.bincount(band, weights=weight**2, minlength=bands)[there]
    spread = np.sqrt((mean * size + BORROWED) / (size + BORROWED))
    return tuple(spread.tolist())


def _spread_at(place: Floats, spread: Sequence[float]) -> Floats:
    """The spread at these places, on straight lines between the middles of the bands, over its mean over 0..1."""
    known = np.asarray(spread, dtype=np.float64)
    middles = (np.arange(known.size) + 0.5) / known.size
    whole = (float(known[0] + known[-1]) / 2 + float(known[:-1].sum() + known[1:].sum()) / 2) / known.size
    return np.interp(place, middles, known) / whole


def _frontier(base: Floats, score: Floats, *, rate: float, find: float) -> Floats:
    """The multiples of the uniform chance that find most for their variance: rate * base * t / sqrt(u - score), at
    most 1, over the rate; (M,).

    The stationary point of the sum of chance * score less a multiple of the sum of base^2 / chance, where the chances
    sum to n and are at most 1. Found by halving, to the last bit.
    """
    value = score / score.std()
    strength = rate * base * max((1 - find) / find, NEXT_TO_NOTHING)

    def chances(level: float) -> Floats:
        below = level - value
        with np.errstate(divide="ignore"):
            return np.where(below > 0, np.minimum(1.0, strength / np.sqrt(np.maximum(below, 0.0))), 1.0)

    low, high = float(value.min()), float(value.max()) + float(strength.max() / rate) ** 2 + 1
    n = rate * score.size
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if chances(middle).sum() > n else (low, middle)
    return chances(high) / rate
