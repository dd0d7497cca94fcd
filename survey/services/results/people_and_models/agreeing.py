"""How far people and models agree on the same items, and how far they could: a ceiling that people's noise sets.

Per item there is the mean of people's answers and the model's number. Their correlation over items is lower than that
of the model with what all people would say, since few people answer each item. The ceiling is the correlation that a
model which knew the latter exactly would have: the square root of the reliability of the items' means (Spearman, "The
proof and measurement of association between two things", 1904). Items count by the design. Numpy alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

import bandit
from survey.contracts.expectations import Expectations, ItemReader
from survey.figures import Figure

from .errors import UNDEFINED, Floats, Ints, interval, mean

MIN_ITEMS = 3
MAX_CORRELATION = 0.999999  # a correlation beyond which Fisher's transformation says nothing


@dataclass(frozen=True)
class ReaderAgreement:
    """One reader and people.

    answers, items, people: how many count. several: items that two people or more answered.
    correlation: of the items' means with the reader, as measured. ceiling: what a perfect reader would have.
    corrected: of what all people would say with the reader: the first divided by the second.
    same: how often one person's answer is what the reader holds for more likely; two_people: how often two people give
    the same answer. Both only where people are the event.
    why: why figures are missing, in a sentence; empty if none is.
    """

    reader: str
    kind: str
    answers: int
    items: int
    people: int
    several: int
    correlation: Figure = UNDEFINED
    ceiling: Figure = UNDEFINED
    corrected: Figure = UNDEFINED
    same: Figure = UNDEFINED
    two_people: Figure = UNDEFINED
    why: str = ""


@dataclass(frozen=True, eq=False)
class ReaderRows:
    """The n answers about one reader, on k items that each have one or more: place of the item, person, weight, value,
    and the reader's number of each item (k,)."""

    item: Ints
    person: Ints
    weight: Floats
    value: Floats
    chance: Floats
    item_weight: Floats | None
    places: Ints
    kept: NDArray[np.bool_]


def rows_of(expectations: Expectations, reader: ItemReader) -> ReaderRows:
    """The answers that are about the reader, to items of which it says something."""
    counts = np.ones(len(expectations.value)) if reader.counts is None else np.nan_to_num(reader.counts)
    mask = (counts > 0) & np.isfinite(reader.chance[expectations.item])
    places, item = np.unique(expectations.item[mask], return_inverse=True)
    return ReaderRows(
        item=item.reshape(-1).astype(np.int64),
        person=expectations.person[mask].astype(np.int64),
        weight=(expectations.weight * counts)[mask],
        value=expectations.value[mask],
        chance=reader.chance[places],
        item_weight=None if expectations.item_weight is None else expectations.item_weight[places],
        places=places,
        kept=mask,
    )


@dataclass(frozen=True, eq=False)
class ItemMeans:
    """By item (k,): people's weighted mean, the variance of its noise, the effective number of answers, the item's
    weight, the sum of its answers' weights. `pooled`: the variance of one answer about its item's mean. By answer (n,):
    what one more of its kind changes in the mean and in the noise, to first order."""

    mean: Floats
    noise: Floats
    size: Floats
    weight: Floats
    total: Floats
    pooled: float
    mean_change: Floats
    noise_change: Floats


def item_means(rows: ReaderRows) -> ItemMeans:
    """The means of people's answers by item. An item with one answer has the noise of the other items' answers."""
    k = len(rows.chance)
    c = rows.weight
    total: Floats = np.bincount(rows.item, weights=c, minlength=k).astype(np.float64)
    average: Floats = np.bincount(rows.item, weights=c * rows.value, minlength=k).astype(np.float64) / total
    squares = np.bincount(rows.item, weights=c * c, minlength=k)
    off = rows.value - average[rows.item]
    spread = np.bincount(rows.item, weights=(c * off) ** 2, minlength=k)
    size: Floats = total**2 / squares
    room = total**2 - squares
    several = room > 1e-9 * total**2
    weight = total if rows.item_weight is None else rows.item_weight
    noise = np.divide(spread, room, out=np.zeros(k), where=several)
    pooled = math.nan
    if several.any():
        pooled = float(np.average((noise * size)[several], weights=weight[several]))
    noise = np.where(several, noise, pooled)
    # The change by more weight of one answer: of the mean, and of noise = spread / (total^2 - squares), which is the
    # mean's square less the mean product of two answers.
    mean_change = c * off / total[rows.item]
    room_change = 2 * total[rows.item] * c - 2 * c * c
    with np.errstate(divide="ignore", invalid="ignore"):
        change = (2 * (c * off) ** 2 - noise[rows.item] * room_change) / room[rows.item]
    return ItemMeans(
        mean=average,
        noise=noise,
        size=size,
        weight=weight,
        total=total,
        pooled=pooled,
        mean_change=mean_change,
        noise_change=np.where(several[rows.item], change, 0.0),
    )


def agreement(expectations: Expectations, reader: ItemReader) -> ReaderAgreement:
    """Agreement of people with one reader, with 95 % intervals by person and item."""
    rows = rows_of(expectations, reader)
    n, k = len(rows.value), len(rows.chance)
    people = len(np.unique(rows.person))
    several = int((np.bincount(rows.item, minlength=k) > 1).sum()) if n else 0
    start = ReaderAgreement(reader.name, reader.kind, n, k, people, several)
    if not expectations.event.people_forecast and n:
        start = replace(start, same=_same(rows), two_people=_two_people(rows))

    def result(
        why: str,
        raw: Figure = UNDEFINED,
        ceiling: Figure = UNDEFINED,
        corrected: Figure = UNDEFINED,
    ) -> ReaderAgreement:
        return replace(start, why=why, correlation=raw, ceiling=ceiling, corrected=corrected)

    if k < MIN_ITEMS:
        return result(f"{k} items have answers of people and of {reader.name}; a correlation needs {MIN_ITEMS}")
    means = item_means(rows)
    share = means.weight / means.weight.sum()
    grown = 1 / (1 - float(np.square(share).sum()))  # Means are taken off, which makes sums of squares smaller.
    human, model = means.mean - share @ means.mean, rows.chance - share @ rows.chance
    between, across, both = (
        grown * float(share @ (first * other)) for first, other in ((human, human), (model, model), (human, model))
    )
    if between <= 1e-12:
        return result("all items have the same mean of people’s answers: there is nothing to correlate")
    if across <= 1e-12:
        return result(f"{reader.name} says the same of all items: there is nothing to correlate")
    correlation = min(1.0, max(-1.0, both / math.sqrt(between * across)))
    # What each answer adds to the error of the three sums: by its item as a whole, and by its share in its mean.
    part, own = share[rows.item], rows.weight / means.total[rows.item]
    a, b, q = human[rows.item], model[rows.item], means.mean_change
    d_both = part * (own * (a * b - both) + b * q)
    d_between = part * (own * (a * a - between) + 2 * a * q)
    d_across = part * own * (b * b - across)
    degrees = bandit.clustered_freedom(part * own, rows.person, rows.item)
    scale = math.sqrt(between * across)
    d_raw = d_both / scale - correlation * (d_between / (2 * between) + d_across / (2 * across))
    raw = _fisher(correlation, bandit.clustered_variance(d_raw, rows.person, rows.item), degrees)
    if people < 2:
        return result("one person answered: nothing is known of how people differ", Figure(correlation))
    if not several:
        return result("no item was answered by two people, so that their noise, and a ceiling, are not known", raw)
    noise = float(share @ means.noise)
    true = between - noise
    if noise <= 1e-12:
        return result("all people say the same of each item: their noise is 0 and the ceiling 1", raw, Figure(1.0), raw)
    if true <= 1e-12:
        return result("items differ by no more than people do by chance: there is no ceiling to measure by", raw)
    d_noise = part * (own * (means.noise[rows.item] - noise) + means.noise_change)
    reliability = true / between
    d_reliability = (d_between * noise / between - d_noise) / between
    ceiling = _ceiling(reliability, bandit.clustered_variance(d_reliability, rows.person, rows.item), degrees)
    corrected = both / math.sqrt(true * across)
    root = math.sqrt(across)
    d_top = d_both / root - both * d_across / (2 * across * root)
    ends = _ratio_to_root(both / root, true, d_top, d_between - d_noise, rows, degrees)
    why = ""
    if abs(corrected) > 1:
        why = "the corrected correlation came out beyond 1 by chance and is shown as 1"
    return result(why, raw, ceiling, _clipped(Figure(corrected, *ends)))


def _same(rows: ReaderRows) -> Figure:
    """How often an answer is the one that the reader holds for more likely; a tie on either side counts half."""
    held = np.where(rows.chance > 0.5, 1.0, np.where(rows.chance < 0.5, 0.0, 0.5))[rows.item]
    return _share(mean(1 - np.abs(rows.value - held), rows.weight, rows.person, rows.item))


def _two_people(rows: ReaderRows) -> Figure:
    """How often two people give the same answer to an item, among items with two answers or more."""
    k = len(rows.chance)
    n = np.bincount(rows.item, minlength=k)
    enough = n[rows.item] > 1
    if not enough.any():
        return UNDEFINED
    like = np.zeros(len(rows.value))
    for value in np.unique(rows.value):
        same_answer = rows.value == value
        like += same_answer * (np.bincount(rows.item[same_answer], minlength=k)[rows.item] - 1)
    like = like[enough] / (n[rows.item[enough]] - 1)
    return _share(mean(like, rows.weight[enough], rows.person[enough], rows.item[enough]))


def _share(figure: Figure) -> Figure:
    if figure.low is None or figure.high is None:
        return figure
    return Figure(figure.value, max(0.0, figure.low), min(1.0, figure.high), figure.standard_error)


def _fisher(correlation: float, variance: float, degrees: float) -> Figure:
    """By Fisher's transformation, in which the error does not depend on the correlation."""
    if not abs(correlation) < MAX_CORRELATION:
        return Figure(correlation)
    return interval(correlation, variance, degrees, scale="correlation")


def _ceiling(reliability: float, variance: float, degrees: float) -> Figure:
    """The square root of the reliability, and of the ends of its interval."""
    figure = interval(reliability, variance, degrees, within=(0.0, 1.0))
    value = math.sqrt(reliability)
    if figure.low is None or figure.high is None:
        return Figure(value)
    return Figure(value, math.sqrt(figure.low), math.sqrt(figure.high), math.sqrt(variance) / (2 * value))


def _ratio_to_root(
    top: float, below: float, d_top: Floats, d_below: Floats, rows: ReaderRows, degrees: float
) -> tuple[float | None, float | None]:
    """The interval of top / root of below, by the values that a test does not refuse (Fieller, "Some problems in
    interval estimation", 1954), with the root to first order. It is wider on the side where `below` could be small."""
    root = math.sqrt(below)
    d_root = d_below / (2 * root)
    v_top, v_root, v_sum = (
        bandit.clustered_variance(part, rows.person, rows.item) for part in (d_top, d_root, d_top + d_root)
    )
    if not all(math.isfinite(variance) for variance in (v_top, v_root, v_sum)) or v_sum <= 0:
        return None, None
    both = (v_sum - v_top - v_root) / 2
    q = bandit.student_t_quantile(0.975, degrees) ** 2
    # a r^2 - 2 b r + c <= 0 for the values r that are not refused.
    a, b, c = below - q * v_root, top * root - q * both, top * top - q * v_top
    under = b * b - a * c
    if a <= 0 or under <= 0:  # The root cannot be separated from 0: every value is possible.
        return -1.0, 1.0
    return (b - math.sqrt(under)) / a, (b + math.sqrt(under)) / a


def _clipped(figure: Figure) -> Figure:
    value = min(1.0, max(-1.0, figure.number))
    if figure.low is None or figure.high is None:
        return Figure(value)
    return Figure(value, max(-1.0, figure.low), min(1.0, figure.high), figure.standard_error)
