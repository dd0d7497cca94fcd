"""Which times enter the figures, each rule with its count. Needs numpy alone.

The rules are applied in order: passages that are marked, people who answer too few questions right, times that are too
short, times that are too long. A time is counted once, by the first rule that leaves it out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from survey.figures.words import short

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class ReadTimes:
    """T times: the number of the word, the passage and the person from 0, milliseconds, whether the passage's question
    was answered right (NaN: it was not asked), and whether the passage is marked; each of T."""

    word: Ints
    passage: Ints
    person: Ints
    time: Floats
    right: Floats
    marked: Bools

    def __len__(self) -> int:
        return len(self.time)


@dataclass(frozen=True)
class CleaningRules:
    """Milliseconds, and a share of right answers from 0 to 1. `keeps_marked`: marked passages count too."""

    shortest: float = 100.0
    longest: float = 3000.0
    least_right: float = 0.8
    keeps_marked: bool = False


@dataclass(frozen=True)
class LeftOut:
    """One rule, in words, with the times that it left out, and the people or passages that it left out whole."""

    rule: str
    times: int
    whole: int
    of_what: str


@dataclass(frozen=True, eq=False)
class Cleaned:
    """keep: (T,) whether a time counts."""

    keep: Bools
    left_out: Sequence[LeftOut]


def cleaned(times: ReadTimes, rules: CleaningRules) -> Cleaned:
    """Which times count by the rules.

    Returns:
        The times that count, and what each rule left out.
    """
    keep = np.ones(len(times), dtype=bool)
    counts = []

    def leave_out(rule: str, which: Bools, whole: int, of_what: str) -> None:
        gone = keep & which
        counts.append(LeftOut(rule, int(gone.sum()), whole, of_what))
        keep[which] = False

    if not rules.keeps_marked:
        pairs = {(int(person), int(other)) for person, other in zip(times.person, times.passage, strict=True)}
        unmarked = {
            (int(person), int(other))
            for person, other in zip(times.person[~times.marked], times.passage[~times.marked], strict=True)
        }
        leave_out("marked passages", times.marked, len(pairs - unmarked), "passages read")
    share = share_right(times)
    poor = share < rules.least_right
    careless = poor[times.person] if len(times) else np.zeros(0, dtype=bool)
    leave_out(
        f"people with under {short(100 * rules.least_right)} % of questions right",
        careless,
        int(poor.sum()),
        "people",
    )
    leave_out(f"times under {short(rules.shortest)} ms", times.time < rules.shortest, 0, "")
    leave_out(f"times over {short(rules.longest)} ms", times.time > rules.longest, 0, "")
    return Cleaned(keep, counts)


def share_right(times: ReadTimes) -> Floats:
    """The share of right answers of each person (P,); NaN for people who were asked nothing. Every passage counts once,
    marked or not."""
    people = int(times.person.max()) + 1 if len(times) else 0
    person, right = answers_of(times)
    asked = np.bincount(person, minlength=people)
    good = np.bincount(person, weights=right, minlength=people)
    return np.divide(good, asked, out=np.full(people, np.nan), where=asked > 0)


def answers_of(times: ReadTimes) -> tuple[Ints, Floats]:
    """Of each answered question the person and whether the answer is right."""
    person, _passage, right = asked_of(times)
    return person, right


def asked_of(times: ReadTimes) -> tuple[Ints, Ints, Floats]:
    """Of each answered question the person, the passage, and whether the answer is right."""
    known = np.isfinite(times.right)
    person, passage, right = times.person[known], times.passage[known], times.right[known]
    if not len(person):
        return person, passage, right
    pair = person * (int(passage.max()) + 1) + passage
    _pairs, first = np.unique(pair, return_index=True)
    return person[first], passage[first], right[first]
