"""Where people and models part: the gap of each item, of each part of the items, and of all. Numpy alone.

A gap is the mean of people's answers to an item less the reader's number. Few people answer each item, so that the
largest gaps are partly chance. The items' means are therefore drawn towards what the reader's number lets one expect of
people, the more so the fewer answers there are (Efron and Morris, "Data analysis using Stein's estimator and its
generalizations", Journal of the American Statistical Association 70, 1975).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

import bandit
from survey.contracts.expectations import Expectations, ItemReader
from survey.figures import Figure

from .agreeing import ItemMeans, ReaderRows, item_means, rows_of
from .errors import UNDEFINED, Floats, interval

FEWEST = 3  # items, to draw them towards something
MIN_OF_PART = 10  # items, and people, of a part, below which its gap has no interval


@dataclass(frozen=True)
class PartGap:
    """The mean gap over a part of the items. `division`: how items are divided; empty for all items."""

    division: str
    part: str
    answers: int
    items: int
    people: float
    reader: float
    gap: Figure


@dataclass(frozen=True)
class ItemGap:
    """One item: its place, how many answered it, the means, the gap as measured, and the gap with people's mean drawn
    towards what is expected of it, with its 95 % interval; undefined where noise is not known."""

    item: int
    answers: int
    people: float
    reader: float
    gap: float
    shrunk: Figure


@dataclass(frozen=True)
class Gaps:
    """One reader. `typical`: the root of the mean squared gap, what chance adds to it taken off; its interval too."""

    reader: str
    kind: str
    parts: tuple[PartGap, ...]
    typical: Figure
    items: tuple[ItemGap, ...]
    why: str


def gaps(expectations: Expectations, reader: ItemReader) -> Gaps:
    """Where people and one reader part, with 95 % intervals by person and item."""
    rows = rows_of(expectations, reader)
    if not len(rows.value):
        return Gaps(reader.name, reader.kind, (), UNDEFINED, (), f"no answer is about an item that {reader.name} reads")
    means = item_means(rows)
    every = np.ones(len(rows.chance), dtype=bool)
    parts = [_part("", "", every, rows, means)]
    for division, labels in expectations.items.groups.items():
        own = labels[rows.places]
        parts += [_part(division, str(part), own == part, rows, means) for part in np.unique(own)]
    why = ""
    if len(np.unique(rows.person)) < 2:
        why = "one person answered: there is no interval"
    elif not math.isfinite(means.pooled):
        why = "no item was answered by two people: gaps are shown as measured, with people's noise in them"
    return Gaps(reader.name, reader.kind, tuple(parts), _typical(rows, means), tuple(_items(rows, means)), why)


def _part(division: str, part: str, chosen: np.ndarray, rows: ReaderRows, means: ItemMeans) -> PartGap:
    inside = chosen[rows.item]
    weight = np.where(chosen, means.weight, 0.0)
    share = weight / weight.sum()
    gap = means.mean - rows.chance
    value = float(share @ gap)
    own = rows.weight / means.total[rows.item]
    added = (share[rows.item] * (own * (gap[rows.item] - value) + means.mean_change))[inside]
    degrees = bandit.clustered_freedom((share[rows.item] * own)[inside], rows.person[inside], rows.item[inside])
    variance = math.nan
    if min(chosen.sum(), len(np.unique(rows.person[inside]))) >= MIN_OF_PART:
        variance = bandit.clustered_variance(added, rows.person[inside], rows.item[inside])
    return PartGap(
        division=division,
        part=part,
        answers=int(inside.sum()),
        items=int(chosen.sum()),
        people=float(share @ means.mean),
        reader=float(share @ rows.chance),
        gap=interval(value, variance, degrees, within=(-1.0, 1.0)),
    )


def _typical(rows: ReaderRows, means: ItemMeans) -> Figure:
    if not math.isfinite(means.pooled):
        return UNDEFINED
    share = means.weight / means.weight.sum()
    gap = means.mean - rows.chance
    square = gap**2 - means.noise
    value = float(share @ square)
    if value <= 0:
        return Figure(0.0)
    own = rows.weight / means.total[rows.item]
    part = share[rows.item]
    change = 2 * gap[rows.item] * means.mean_change - means.noise_change
    added = part * (own * (square[rows.item] - value) + change)
    degrees = bandit.clustered_freedom(part * own, rows.person, rows.item)
    figure = interval(value, bandit.clustered_variance(added, rows.person, rows.item), degrees, within=(0.0, 1.0))
    if figure.low is None or figure.high is None:
        return Figure(math.sqrt(value))
    return Figure(math.sqrt(value), math.sqrt(figure.low), math.sqrt(figure.high))


def _items(rows: ReaderRows, means: ItemMeans) -> list[ItemGap]:
    """The items, those with the largest gaps first."""
    count = np.bincount(rows.item, minlength=len(rows.chance))
    gap = means.mean - rows.chance
    towards, spread, noise, effective = _expected(rows, means)
    item_gaps = []
    for place in range(len(rows.chance)):
        shrunk = UNDEFINED
        if math.isfinite(spread):
            kept_share = spread / (spread + noise[place]) if spread + noise[place] > 0 else 0.0
            people = towards[place] + kept_share * (means.mean[place] - towards[place])
            # What is expected, and how far items spread around it, are estimated too (Morris, JASA 78, 1983).
            lost = (
                (1 - kept_share) ** 2
                * (spread + noise[place] + (means.mean[place] - towards[place]) ** 2)
                * 2
                / effective
            )
            ends = bandit.student_interval(float(people), math.sqrt(kept_share * noise[place] + lost))
            own = float(rows.chance[place])
            middle, *around = (min(1.0, max(0.0, float(end))) - own for end in (people, *(ends or ())))
            shrunk = Figure.between(middle, around or None)
        item_gaps.append(
            ItemGap(
                item=int(rows.places[place]),
                answers=int(count[place]),
                people=float(means.mean[place]),
                reader=float(rows.chance[place]),
                gap=float(gap[place]),
                shrunk=shrunk,
            )
        )
    largest = [abs(item_gap.shrunk.number if item_gap.shrunk.is_defined else item_gap.gap) for item_gap in item_gaps]
    return [item_gaps[place] for place in sorted(range(len(item_gaps)), key=lambda place: (-largest[place], place))]


def _expected(rows: ReaderRows, means: ItemMeans) -> tuple[Floats, float, Floats, float]:
    """What is expected of people by the reader's number (k,), how far items spread around it, the noise of each item's
    mean (k,), and the effective number of items. The spread is NaN where noise is not known."""
    k = len(rows.chance)
    share = means.weight / means.weight.sum()
    human, model = means.mean - share @ means.mean, rows.chance - share @ rows.chance
    across = float(share @ model**2)
    slope = float(share @ (human * model)) / across if across > 1e-12 else 0.0
    towards = np.clip(share @ means.mean + slope * model, 0.0, 1.0)
    if k < FEWEST or not math.isfinite(means.pooled) or not len(means.size):
        return towards, math.nan, np.full(k, np.nan), 0.0
    noise = means.pooled / means.size
    effective = bandit.effective_size(share)
    left = float(share @ (means.mean - towards) ** 2) * effective / max(effective - 2, 1.0)
    average = float(share @ noise)
    # By chance the spread can come out as 0. Items are never taken for alike beyond what so many of them can show.
    return towards, max(left - average, average * math.sqrt(2 / effective)), noise, effective
