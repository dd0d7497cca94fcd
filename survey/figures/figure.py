"""A figure with its interval, or the reason why it is withheld. `bandit` and the standard library alone."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bandit import Estimate

from . import words

NARROWEST = 1e-9  # An interval without width says nothing of chance: every resample gave the same.


@dataclass(frozen=True)
class Figure:
    """One figure as reports give it, in tables, sentences, charts and files.

    value: None where there is none; NaN becomes None, in the other numbers too.
    low, high: the ends of its interval; both or neither. A figure may have ends and no value, as bounds have.
    standard_error, degrees_of_freedom: what the interval rests on, where it is Student's.
    answers, people: how many it rests on.
    unit: a share is shown as per cent. Empty: that of its column.
    note: what to know about it, such as that it rests on few people.
    withheld: why there is no value.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None
    standard_error: float | None = None
    degrees_of_freedom: float | None = None
    answers: int | None = None
    people: int | None = None
    unit: str = ""
    note: str = ""
    withheld: str = ""

    def __post_init__(self) -> None:
        for name in ("value", "low", "high", "standard_error", "degrees_of_freedom"):
            object.__setattr__(self, name, _plain(getattr(self, name)))
        if self.low is None or self.high is None:
            object.__setattr__(self, "low", None)
            object.__setattr__(self, "high", None)

    @classmethod
    def between(cls, value: Any, interval: Iterable[Any] | None, unit: str = "", **more: Any) -> Figure:
        """A value with an interval as two ends, which may be missing."""
        low, high = interval if interval is not None else (None, None)
        return cls(value, low, high, unit=unit, **more)

    @classmethod
    def of(cls, estimate: Estimate | None, unit: str = "", *, withheld: str = "") -> Figure:
        """An estimate of `bandit`; its `too_few` is the note. withheld: why there is none."""
        if estimate is None:
            return cls(unit=unit, withheld=withheld)
        return cls(
            estimate.value,
            *estimate.interval,
            estimate.standard_error,
            estimate.degrees_of_freedom,
            estimate.n,
            estimate.n_clusters,
            unit,
            f"too few: {estimate.too_few}" if estimate.too_few else "",
        )

    @property
    def is_defined(self) -> bool:
        """Whether there is a value, and not an endless one."""
        return self.value is not None and math.isfinite(self.value)

    @property
    def number(self) -> float:
        """The value for arithmetic: NaN where there is none."""
        return math.nan if self.value is None else self.value

    @property
    def interval(self) -> tuple[float, float] | None:
        """The ends of its interval; None without one."""
        return None if self.low is None or self.high is None else (self.low, self.high)

    @property
    def width(self) -> float:
        """Of its interval, for arithmetic: NaN without one."""
        return math.nan if self.low is None or self.high is None else self.high - self.low

    @property
    def has_width(self) -> bool:
        """Whether there is an interval that says something."""
        return self.width > NARROWEST

    def holds(self, number: float) -> bool:
        """Whether its interval holds the number; without an interval it does."""
        return self.low is None or self.high is None or self.low <= number <= self.high

    def times(self, factor: float, unit: str = "") -> Figure:
        """The same in another unit, such as percentage points for a chart; the factor is above 0."""

        scaled: Any = {
            name: None if (number := getattr(self, name)) is None else factor * number
            for name in ("value", "low", "high", "standard_error")
        }
        return replace(self, unit=unit, **scaled)

    def in_words(self, digits: int | None = None, *, unit: str = "", signed: bool = False) -> str:
        """0.71 [0.60, 0.79], 71.0 % [60.1, 79.2] or 4.10 points [3.00, 5.20]; without an interval of any width its
        value, and without a value its ends or a dash. unit: that of its column, where the figure itself names none; the
        column's heading says it."""
        ends = [words.in_unit(end, self.unit or unit, digits, signed=signed) for end in self.interval or ()]
        low, high = (end.removesuffix(" %") for end in ends) if ends else ("", "")
        value = words.in_unit(self.value, self.unit or unit, digits, signed=signed)
        named = "points" if self.unit in (words.DIFFERENCE, "percentage points") else self.unit
        after = "" if words.is_share(self.unit) or not self.unit else f" {named}"
        if self.value is None:
            return f"{low} to {ends[1]}{after}" if ends else value
        return f"{value}{after} [{low}, {high}]" if ends and self.has_width else f"{value}{after}"

    def __str__(self) -> str:
        return self.in_words()

    def as_json(self) -> dict[str, float | None]:
        """Value and interval; None where there is none or no end."""
        return {name: finite(getattr(self, name)) for name in ("value", "low", "high")}

    def part(self, name: str) -> Any:
        """One part of it for a file, such as `low`."""
        return getattr(self, name)


def finite(value: float | None) -> float | None:
    """For JSON: None where it is missing, endless or no number."""
    return None if value is None or not math.isfinite(value) else float(value)


def has_interval(cells: Sequence[Any]) -> bool:
    """Whether any of a column's cells is a figure with an interval next to its value."""
    return any(isinstance(cell, Figure) and cell.value is not None and cell.has_width for cell in cells)


def _plain(value: Any) -> float | None:
    if value is None or math.isnan(value):
        return None
    return value if isinstance(value, int) else float(value)  # A file shows 3 and not 3.0.
