"""Exported tables: their columns and files. Imports nothing from survey."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

WHOLE = ("0 or 1", "milliseconds", "percentage points")  # Beliefs are whole percentage points everywhere.
NUMBERS = ("number", "0 to 1", "share")
TIME = "time, UTC"


@dataclass(frozen=True)
class Column:
    """One column of a table: its name, its type in words, and what it means.

    `whole`: its numbers are whole ones. `written`: people's own words, which are published only after a review.
    """

    name: str
    kind: str
    description: str
    whole: bool = False
    written: bool = False

    @property
    def type(self) -> str:
        """What its values are for a program: `whole`, `number`, `time`, `json` or `text`."""
        if self.whole or self.kind in WHOLE:
            return "whole"
        if self.kind in NUMBERS:
            return "number"
        return "time" if self.kind == TIME else "json" if self.kind.startswith("JSON") else "text"


@dataclass(frozen=True)
class ExtraFile:
    """A further file of an export, for example in the layout of a paper. A row may be an answer, a response or anything
    else: `columns` say what it holds. `rows` are iterated once, while they are written."""

    name: str
    columns: Sequence[Column]
    rows: Iterable[Sequence[Any]]
