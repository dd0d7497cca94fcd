"""Exported tables: their columns and files. Imports nothing from survey."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Column:
    """One column of a table: its name, its type in words, and what it means."""

    name: str
    kind: str
    description: str


@dataclass(frozen=True)
class ExtraFile:
    """A further file of an export, for example in the layout of a paper. A row may be an answer, a response or anything
    else: `columns` say what it holds. `rows` are iterated once, while they are written."""

    name: str
    columns: Sequence[Column]
    rows: Iterable[Sequence[Any]]
