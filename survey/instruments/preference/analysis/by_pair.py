"""What is said of each two models: their scores, their ties, and what the place of a reply does. Numpy and `bandit`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import bandit
from survey.figures import Figure

from .errors import NOTHING, figure, freedom, share_figure
from .judgements import TIE, UNREADABLE, Judgements


@dataclass(frozen=True)
class PairFigures:
    """Of n readable judgements of two models, `model` the one that the study names first.

    rating: mean towards `model`, -3.5 to 3.5, or -1 to 1 where only the winner was said. ties: share of judgements.
    first: how often the reply that was shown first was preferred, ties half, both orders counting alike, so that the
    better model does not matter; nothing where only one order was shown. sides: judgements of which the order is known.
    """

    model: int
    other: int
    n: int
    rating: Figure
    ties: Figure
    first: Figure
    sides: int


def by_pair(judged: Judgements) -> list[PairFigures]:
    """Figures of each two models that were judged, by the design's weights; people and prompts vary."""
    readable = judged.where(judged.outcome != UNREADABLE)
    low, high = np.minimum(readable.a, readable.b), np.maximum(readable.a, readable.b)
    pairs = []
    for model, other in sorted(set(zip(low.tolist(), high.tolist(), strict=True))):
        rows = readable.where((low == model) & (high == other))
        towards = np.where(rows.a == model, rows.value, -rows.value)
        is_tie = (rows.outcome == TIE).astype(np.float64)
        ties = share_figure(is_tie, rows.weight, person=rows.person, prompt=rows.prompt)
        sided = rows.where(rows.first != 0)
        pairs.append(PairFigures(model, other, rows.n, _mean(towards, rows), ties, _first(sided, model), sided.n))
    return pairs


def _mean(values: np.ndarray, rows: Judgements) -> Figure:
    mean = float(np.average(values, weights=rows.weight))
    influence = rows.weight * (values - mean) / rows.weight.sum()
    variance = bandit.clustered_variance(influence, rows.person, rows.prompt)
    return figure(mean, variance, freedom(person=rows.person, prompt=rows.prompt))


def _first(rows: Judgements, model: int) -> Figure:
    model_first = (rows.first > 0) == (rows.a == model)
    if not rows.n or model_first.all() or not model_first.any():
        return NOTHING
    won = np.where(rows.first > 0, rows.win, 1 - rows.win)
    weight, centre = rows.weight.copy(), np.empty(rows.n)
    for order in (model_first, ~model_first):
        weight[order] /= weight[order].sum()
        centre[order] = np.average(won[order], weights=weight[order])
    return share_figure(won, weight, person=rows.person, prompt=rows.prompt, centre=centre)
