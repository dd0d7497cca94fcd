"""Tables of figures: what a file holds, with every digit, and what of it people see. Standard library alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any, Literal

from . import words
from .figure import Figure

WHOLE = ("0 or 1", "milliseconds", "percentage points")  # Beliefs are whole percentage points everywhere.
NUMBERS = ("number", "0 to 1", "share")
TIME = "time, UTC"
STYLES = {"percent": "share", "points": words.DIFFERENCE, "number": ""}  # the units of figures in such columns


@dataclass(frozen=True)
class Column:
    """One column of a table: its name in files, its unit or its type in words, and what it means.

    `whole`: its numbers are whole ones. `written`: people's own words, which are published only after a review.

    For people: `heading` stands above it (by default its name without underscores); `digits` after the point; `signed`:
    with a plus; `style` where the unit does not say how a number is read: `percent`, `points` (a difference of two
    shares), `number` (a share as 0.12), `p`, `plain` (no separators, as in a year), `yes or no` (1 and 0), `words` (a
    name of the code without its underscores). `in_file`: False for a column that people see and the file has not.
    """

    name: str
    kind: str
    description: str
    whole: bool = False
    written: bool = False
    heading: str = ""
    digits: int | None = None
    signed: bool = False
    style: Literal["", "percent", "points", "number", "p", "plain", "yes or no", "words"] = ""
    in_file: bool = True

    @property
    def type(self) -> str:
        """What its values are for a program: `whole`, `number`, `time`, `json` or `text`."""
        if self.whole or self.kind in WHOLE:
            return "whole"
        if self.kind in NUMBERS:
            return "number"
        return "time" if self.kind == TIME else "json" if self.kind.startswith("JSON") else "text"

    @property
    def title(self) -> str:
        """What stands above it for people."""
        return self.heading or self.name.replace("_", " ")

    def in_file_columns(self) -> Iterator[PartColumn]:
        """The columns of a file in which its cells are written."""
        if self.in_file:
            yield PartColumn(self.name, "value", self)

    def text(self, value: Any) -> str:
        """A cell as people read it."""
        if isinstance(value, Figure):
            if self.style in STYLES:
                value = replace(value, unit=STYLES[self.style])
            return value.in_words(self.digits, unit="" if self.style == "number" else self.kind, signed=self.signed)
        if isinstance(value, bool):
            return "yes" if value else "no"
        if not is_number(value):
            text = words.NOTHING if words.is_missing(value) else str(value)
            return words.spaced(text) if self.style == "words" else text
        if self.style == "yes or no":
            return "yes" if value else "no"
        if self.style == "p":
            return words.p_value(value)
        if self.style == "plain":
            return str(value)
        if self.style == "points":
            return Figure(value, unit=words.DIFFERENCE).in_words(self.digits, signed=self.signed)
        if self.style == "percent" or (words.is_share(self.kind) and self.style != "number"):
            return words.percent(value, 1 if self.digits is None else self.digits, signed=self.signed)
        if self.digits is not None:
            return words.number(value, self.digits, signed=self.signed)
        if isinstance(value, Integral) or (self.whole and float(value).is_integer()):
            return words.number(value, 0, signed=self.signed)
        return words.significant(value)


@dataclass(frozen=True)
class FigureColumn(Column):
    """A column whose cells are figures. A file has a plain column for each of their parts: `name` for the value, then
    by default the ends of the interval, NAME_low and NAME_high.

    prefix: of these two names in place of NAME_; empty: low and high. `low`, `high`: what the codebook says of them.
    parts: other plain columns than these two, by what of a `Figure` they hold: `low`, `standard_error`, `answers`, ...
    interval: what the heading says of the brackets.
    """

    prefix: str | None = None
    low: str = "Lower end of its 95 % interval."
    high: str = "Its upper end."
    parts: Mapping[str, Column] | None = None
    interval: str = "95 % interval"

    @property
    def ends(self) -> dict[str, Column]:
        """The plain columns of its ends."""
        before = f"{self.name}_" if self.prefix is None else self.prefix
        texts = {"low": self.low, "high": self.high}
        return {part: Column(f"{before}{part}", self.kind, text) for part, text in texts.items()}

    def in_file_columns(self) -> Iterator[PartColumn]:
        yield from super().in_file_columns()
        for part, column in (self.ends if self.parts is None else self.parts).items():
            yield PartColumn(self.name, part, column)


@dataclass(frozen=True)
class PartColumn:
    """A plain column of a file that holds a part of a figure's column, or a whole cell of another one. It takes no cell
    in the rows. Among a table's columns it is only needed where a part stands apart from its figure."""

    of: str
    part: str
    column: Column

    def in_file_columns(self) -> Iterator[PartColumn]:
        yield self

    def of_cell(self, cell: Any) -> Any:
        """What a file has of a cell."""
        if isinstance(cell, Figure):
            return cell.part(self.part)
        return cell if self.part == "value" else None

    def shown(self, cell: Any) -> Any:
        """The same for people: an error is read in the unit of its figure."""
        value = self.of_cell(cell)
        is_error = self.part == "standard_error" and isinstance(cell, Figure) and value is not None
        return Figure(value, unit=cell.unit) if is_error else value


Columns = Sequence[Column | PartColumn]


def plain_columns(columns: Columns) -> list[Column]:
    """The columns of the table's file: of a figure, one for each of its parts."""
    return [part.column for column in columns for part in column.in_file_columns()]


@dataclass(frozen=True)
class LinkedCell:
    """A cell that is about a row of the database: a page links it to that row."""

    text: str
    row: Any

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class TableView:
    """What of a table people see: some of its columns and rows. All texts come from the columns.

    columns: names, in their order; or names with other headings than the column's own. A plain column of the file that
        holds a part of a figure may be named too. All but these by default. One in which no chosen row has anything is
        left out.
    where: only rows that hold these values, by column.
    rows: only these rows, by their places from 0, in this order.
    most: only so many of the rows; the note then says how many there are.
    across: a column each of whose values becomes a column; `cells` names the column whose cells stand there. Rows with
        the same `columns` become one.
    headings: of these columns, by value, in this order; others follow under the value itself.
    """

    columns: Sequence[str] | Mapping[str, str] = ()
    title: str = ""
    note: str = ""
    where: Mapping[str, Any] = field(default_factory=dict)
    rows: Sequence[int] | None = None
    most: int | None = None
    across: str = ""
    cells: str = ""
    headings: Mapping[Any, str] = field(default_factory=dict)

    @property
    def names(self) -> set[str]:
        """Every column that it names."""
        return {*self.columns, *self.where, *filter(None, (self.across, self.cells))}


@dataclass(frozen=True)
class Table:
    """A table as in its file, with every digit. `name` is the file's name without the ending; `note` is a sentence
    below it. A row is a sequence in the order of the columns, or a mapping by their names; of the latter, what it does
    not name is empty. Without views, people see all of it.

    `verbatim`: it holds people's own words. A page shows it only to those who may export answers.
    """

    name: str
    title: str
    columns: Columns
    rows: Sequence[Any]
    note: str = ""
    verbatim: bool = False
    views: Sequence[TableView] = ()

    def __post_init__(self) -> None:
        """
        Raises:
            ValueError: a row has too many or too few cells, or a row or a view names a column that there is not.
        """
        names = [column.name for column in self.own_columns]
        for row in self.rows:
            if not isinstance(row, Mapping) and len(row) != len(names):
                raise ValueError(f"{self.name}: a row has {len(row)} cells for {len(names)} columns")
        named = {name for row in self.rows if isinstance(row, Mapping) for name in row} - set(names)
        named |= {name for view in self.views for name in view.names} - {*names, *self.parts}
        if named:
            raise ValueError(f"{self.name} has no column {', '.join(sorted(named))}")

    @property
    def own_columns(self) -> list[Column]:
        """The columns that have a cell in each row."""
        return [column for column in self.columns if isinstance(column, Column)]

    @property
    def parts(self) -> dict[str, PartColumn]:
        """The plain columns of its file that are parts of figures, by name."""
        own = {column.name for column in self.own_columns}
        parts = [part for column in self.columns for part in column.in_file_columns()]
        return {part.column.name: part for part in parts if part.column.name not in own}

    def by_name(self) -> Iterator[dict[str, Any]]:
        """Each row with its cells by column, and the parts of its figures by their columns in the file."""
        names, parts = [column.name for column in self.own_columns], self.parts
        for row in self.rows:
            cells = {n: row.get(n) for n in names} if isinstance(row, Mapping) else dict(zip(names, row, strict=True))
            yield {**cells, **{name: part.shown(cells[part.of]) for name, part in parts.items()}}

    def file_columns(self) -> list[Column]:
        """The columns of its file, without the parts that only people see."""
        return plain_columns(self.columns)

    def file_rows(self) -> Iterator[list[Any]]:
        """The rows of its file: of a figure, a cell for each part that the file has."""
        parts = [part for column in self.columns for part in column.in_file_columns()]
        for row in self.by_name():
            yield [part.of_cell(row[part.of]) for part in parts]

    def records(self) -> list[dict[str, Any]]:
        """The rows of its file by the names of its columns, for JSON."""
        names = [column.name for column in self.file_columns()]
        return [dict(zip(names, row, strict=True)) for row in self.file_rows()]


def is_number(value: Any) -> bool:
    """An int, a float or one of numpy's, and not a bool; NaN is none."""
    return hasattr(value, "__float__") and not isinstance(value, bool) and not words.is_missing(value)
