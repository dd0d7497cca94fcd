"""Exported tables: their columns and files."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from survey.figures import Column as Column
from survey.figures.tables import TIME as TIME


@dataclass(frozen=True)
class ExtraFile:
    """A further file of an export, for example in the layout of a paper. A row may be an answer, a response or anything
    else: `columns` say what it holds. `rows` are iterated once, while they are written."""

    name: str
    columns: Sequence[Column]
    rows: Iterable[Sequence[Any]]
