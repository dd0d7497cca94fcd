"""Exported tables: their columns with their values, and files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from survey.figures import Column as Column
from survey.figures.tables import TIME as TIME


@dataclass(frozen=True)
class ValueColumn(Column):
    """A column, and how its value is read from what a row is about: by an attribute, with dots between several, or by a
    function. Without it, by the attribute of the column's name."""

    value: str | Callable[[Any], Any] = field(default="", kw_only=True)

    @property
    def read(self) -> Callable[[Any], Any]:
        return self.value if callable(self.value) else attrgetter(self.value or self.name)


@dataclass(frozen=True)
class ExtraFile:
    """A further file of an export, for example in the layout of a paper. A row may be an answer, a response or anything
    else: `columns` say what it holds. `rows` are iterated once, while they are written."""

    name: str
    columns: Sequence[Column]
    rows: Iterable[Sequence[Any]]

    @classmethod
    def of(cls, name: str, columns: Sequence[ValueColumn], rows: Iterable[Any]) -> ExtraFile:
        """A file with the columns' values of each of these."""
        return cls(name, columns, _values(columns, rows))


def _values(columns: Sequence[ValueColumn], rows: Iterable[Any]) -> Iterator[list[Any]]:
    """The columns' values of each row."""
    read_values = [column.read for column in columns]
    for row in rows:
        yield [read(row) for read in read_values]
