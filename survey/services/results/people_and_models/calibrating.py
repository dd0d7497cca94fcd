"""How well chances are calibrated, on one scale for people, models, judges and predictors: log score and reliability.

A forecaster gave each answer's event a chance; the event then happened or not. The log score is the mean of -log2 of
the chance given to what happened, in bits; 1 bit is what a coin costs. A figure is set next to the best constant
chance, which knows nothing of the items, and next to the other people's answers to the same item, which is a ceiling.
Numpy.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

import bandit
from predictors.evaluation.curves import rows_by_rank
from survey.contracts.expectations import Expectations, ItemReader
from survey.figures import Figure

from .errors import UNDEFINED, Floats, Ints, interval, mean, share_interval

LN2 = math.log(2)
OTHERS = "the other people"
PEOPLE = "people"
ALL = "all models"
MIN_OF_BIN = 10  # answers of a point of the reliability diagram, where there are as many
PSEUDO = 1.0  # answers at the mean of all that the others' share is smoothed with


@dataclass(frozen=True)
class ReliabilityBin:
    """Answers whose event got about the same chance: the mean of the chances, and how often the event happened."""

    answers: int
    chance: float
    happened: Figure


@dataclass(frozen=True)
class ForecasterCalibration:
    """One forecaster.

    about: whose doing was forecast, where people forecast; else empty. bits: the log score with chances kept from
    `floor` to 1 - floor. saved: bits that it costs less than the best constant chance, on the same answers. infinite:
    the share of answers whose event got chance 0; the score as stated is infinite where it is above 0. stated: the
    score as stated, in bits, infinite or not. bias: the mean chance less how often the event happened. bins: the
    reliability diagram; empty where events have more than two outcomes.
    """

    forecaster: str
    kind: str
    about: str
    answers: int
    items: int
    people: int
    bits: Figure = UNDEFINED
    saved: Figure = UNDEFINED
    stated: float = math.nan
    infinite: float = math.nan
    chance: Figure = UNDEFINED
    happened: Figure = UNDEFINED
    bias: Figure = UNDEFINED
    bins: tuple[ReliabilityBin, ...] = ()
    why: str = ""

    @property
    def perplexity(self) -> Figure:
        """2 to the bits: as good as certain among so many equally likely outcomes."""
        ends = [None if end is None else 2.0**end for end in (self.bits.low, self.bits.high)]
        return Figure.between(2.0**self.bits.number, ends) if self.bits.is_defined else UNDEFINED


@dataclass(frozen=True, eq=False)
class Forecasts:
    """What one forecaster gave to n events: the chance of the event and whether it happened, from 0 to 1; or, where
    there are more than two outcomes, the chance given to what happened."""

    forecaster: str
    kind: str
    about: str
    item: Ints
    person: Ints
    weight: Floats
    chance: Floats | None
    happened: Floats | None
    given: Floats | None


def calibrations(expectations: Expectations, *, floor: float, bins: int = 10) -> list[ForecasterCalibration]:
    """Every forecaster of the event, people first."""
    return [calibration(forecasts, floor=floor, bins=bins) for forecasts in forecasts_of(expectations)]


def forecasts_of(expectations: Expectations) -> Iterator[Forecasts]:
    """What people, the others and the readers gave to the event, in the order of tables."""
    if not expectations.event.people_forecast:
        yield from _of_next_person(expectations)
        return
    stated = [(PEOPLE, expectations.value), *((forecast.name, forecast.chance) for forecast in expectations.forecasts)]
    about = [_about(expectations, reader) for reader in expectations.readers]
    groups = [(ALL, about)] if len(about) > 1 else []
    groups += [(reader.name, [rows]) for reader, rows in zip(expectations.readers, about, strict=True)]
    for name, parts in groups:
        row = np.concatenate([part[0] for part in parts])
        happened = np.concatenate([part[1] for part in parts])
        counts = np.concatenate([part[2] for part in parts])
        # A belief about several models counts once: they share its weight.
        shared = np.bincount(row, weights=counts, minlength=len(expectations.value))
        weight = expectations.weight[row] * counts / np.where(shared[row] > 0, shared[row], 1.0)
        for forecaster, chance in stated:
            yield Forecasts(
                *(forecaster, "people", name, expectations.item[row], expectations.person[row], weight, chance[row]),
                happened=happened,
                given=None,
            )


def _about(expectations: Expectations, reader: ItemReader) -> tuple[Ints, Floats, Floats]:
    """The answers about a reader: their places, what it did, and how far each is about it."""
    counts = np.ones(len(expectations.value)) if reader.counts is None else np.nan_to_num(reader.counts)
    row = np.flatnonzero((counts > 0) & np.isfinite(reader.chance[expectations.item]))
    return row, reader.chance[expectations.item][row], counts[row]


def _of_next_person(expectations: Expectations) -> Iterator[Forecasts]:
    many = expectations.others is not None or any(reader.given is not None for reader in expectations.readers)
    item = expectations.item
    if expectations.others is None:
        others = _others(expectations)
        yield _kept(expectations, OTHERS, "people", chance=others, given=None)
    else:
        yield _kept(expectations, OTHERS, "people", chance=None, given=expectations.others)
    for reader in expectations.readers:
        yield _kept(
            expectations, reader.name, reader.kind, chance=reader.chance[item], given=None, counts=reader.counts
        )
        if many and reader.given is not None:
            name = f"{reader.name}, all answers"
            yield _kept(expectations, name, reader.kind, chance=None, given=reader.given, counts=reader.counts)


def _others(expectations: Expectations) -> Floats:
    """The share of the other people's answers to the item in which the event happened, smoothed by one answer at the
    mean of all; NaN where nobody else answered."""
    k = len(expectations.items)
    n = np.bincount(expectations.item, minlength=k)[expectations.item]
    total = np.bincount(expectations.item, weights=expectations.value, minlength=k)[expectations.item]
    average = (
        float(np.average(expectations.value, weights=expectations.weight)) if len(expectations.value) else math.nan
    )
    share = (total - expectations.value + PSEUDO * average) / (n - 1 + PSEUDO)
    return np.where(n > 1, share, np.nan)


def _kept(
    expectations: Expectations,
    forecaster: str,
    kind: str,
    *,
    chance: Floats | None,
    given: Floats | None,
    counts: Floats | None = None,
) -> Forecasts:
    values = chance if given is None else given
    assert values is not None  # noqa: S101 - one of the two is there
    counted = np.ones(len(values)) if counts is None else np.nan_to_num(counts)
    mask = np.isfinite(values) & (counted > 0)
    return Forecasts(
        forecaster=forecaster,
        kind=kind,
        about="",
        item=expectations.item[mask],
        person=expectations.person[mask],
        weight=(expectations.weight * counted)[mask],
        chance=None if chance is None else chance[mask],
        happened=None if chance is None else expectations.value[mask],
        given=None if given is None else given[mask],
    )


def calibration(forecasts: Forecasts, *, floor: float, bins: int = 10) -> ForecasterCalibration:
    """The log score, bias and reliability of one forecaster, with 95 % intervals by person and item.

    Args:
        floor: chances count as this much at least, and as 1 - floor at most.
    """
    n, person, item, weight = len(forecasts.weight), forecasts.person, forecasts.item, forecasts.weight

    start = ForecasterCalibration(
        forecasts.forecaster, forecasts.kind, forecasts.about, n, len(np.unique(item)), len(np.unique(person))
    )
    if not n:
        return replace(start, why="no answer has a forecast of it: nobody else answered these items")
    why = "" if len(np.unique(person)) > 1 else "one person answered: there is no interval"
    if forecasts.chance is None or forecasts.happened is None:
        chance_given = forecasts.given if forecasts.given is not None else np.ones(n)
        cost, exact = -np.log2(np.maximum(chance_given, floor)), chance_given
        infinite = float(np.average(exact <= 0, weights=weight))
        stated = math.inf if infinite else float(np.average(-np.log2(np.where(exact > 0, exact, 1.0)), weights=weight))
        return replace(start, why=why, bits=mean(cost, weight, person, item), stated=stated, infinite=infinite)
    q, y = forecasts.chance, forecasts.happened
    cost = _bits(np.clip(q, floor, 1 - floor), y)
    impossible = np.where(q <= 0, y, 0.0) + np.where(q >= 1, 1 - y, 0.0)
    infinite = float(np.average(impossible, weights=weight))
    inner = np.clip(q, 1e-300, 1 - 1e-16)
    stated = math.inf if infinite else float(np.average(_bits(inner, y), weights=weight))
    average = float(np.average(y, weights=weight))
    if average <= 0 or average >= 1:
        why = f"the event {'always' if average >= 1 else 'never'} happened: a constant knows it all"
    return replace(
        start,
        why=why,
        bits=mean(cost, weight, person, item),
        saved=_saved(cost, y, average, weight, person, item),
        stated=stated,
        infinite=infinite,
        chance=_in_unit(mean(q, weight, person, item)),
        happened=_of_share(y, weight, person, item, of_item=bool(forecasts.about)),
        bias=mean(q - y, weight, person, item),
        bins=tuple(_bins(forecasts, bins)),
    )


def _of_enough(parts: Iterable[Ints]) -> list[Ints]:
    """The same rows in the same order, in sets of `MIN_OF_BIN` answers or more, if there are so many."""
    sets: list[Ints] = []
    for rows in parts:
        if sets and min(len(rows), len(sets[-1])) < MIN_OF_BIN:
            sets[-1] = np.concatenate([sets[-1], rows])
        else:
            sets.append(rows)
    return sets


def _bits(chance: Floats, happened: Floats) -> Floats:
    bits: Floats = -(happened * np.log2(chance) + (1 - happened) * np.log2(1 - chance))
    return bits


def _saved(cost: Floats, y: Floats, average: float, weight: Floats, person: Ints, item: Ints) -> Figure:
    """The entropy of the mean less the mean cost: what the best constant chance would have cost more."""
    if not 0 < average < 1:
        return UNDEFINED
    entropy = float(_bits(np.array([average]), np.array([average]))[0])
    share = weight / weight.sum()
    value = entropy - float(share @ cost)
    slope = math.log2((1 - average) / average)
    added = share * (slope * (y - average) - (cost - float(share @ cost)))
    return interval(
        value, bandit.clustered_variance(added, person, item), bandit.clustered_freedom(share, person, item)
    )


def _of_share(y: Floats, weight: Floats, person: Ints, item: Ints, *, of_item: bool) -> Figure:
    """How often it happened, with Wilson's interval by the effective number of answers."""
    share = weight / weight.sum()
    value = float(share @ y)
    variance = bandit.clustered_variance(share * (y - value), person, item)
    if not math.isfinite(variance):
        return Figure(value)
    # What a model does on an item is one event, however many people forecast it.
    size = bandit.effective_size(bandit.cluster_totals(weight, item) if of_item else weight)
    return share_interval(value, variance, size, bandit.clustered_freedom(share, person, item))


def _in_unit(figure: Figure) -> Figure:
    if figure.low is None or figure.high is None:
        return figure
    return Figure(figure.value, max(0.0, figure.low), min(1.0, figure.high), figure.standard_error)


def _bins(forecasts: Forecasts, count: int) -> Iterator[ReliabilityBin]:
    """At most `count` sets of answers of about equal weight, by rising chance; equal chances stay together, and what
    is left of a few answers goes to the set before it."""
    if forecasts.chance is None or forecasts.happened is None:
        return
    for rows in _of_enough(rows_by_rank(forecasts.chance, forecasts.weight, count)):
        weight = forecasts.weight[rows]
        person, item = forecasts.person[rows], forecasts.item[rows]
        happened = _of_share(forecasts.happened[rows], weight, person, item, of_item=bool(forecasts.about))
        yield ReliabilityBin(len(rows), float(np.average(forecasts.chance[rows], weights=weight)), happened)
