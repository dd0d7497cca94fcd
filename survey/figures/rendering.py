"""Tables as people and programs read them: CSV, JSON, Markdown, LaTeX, terminal, page. Standard library alone.

People's renderings begin with a `Sheet`: the cells of one view as texts. Files have every digit, sheets few.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from . import words
from .csv_lines import csv_lines
from .figure import Figure, has_interval
from .tables import Column, FigureColumn, LinkedCell, Table, TableView, is_number

WIDEST = 60  # characters of a cell in a terminal
LONG = 40  # rows that a page folds
MAX_NAMED = 3  # rows that a remark below a table names


# What people see


@dataclass(frozen=True)
class SheetColumn:
    """`is_number`: all its cells are numbers, or there is none. `meaning`: a sentence on what stands in it."""

    title: str
    is_number: bool
    meaning: str = ""


@dataclass(frozen=True)
class SheetCell:
    """`row`: the row of the database that it is about; None: none."""

    text: str
    row: Any = None


@dataclass(frozen=True)
class Sheet:
    """One view of a table in texts."""

    title: str
    columns: Sequence[SheetColumn]
    rows: Sequence[Sequence[SheetCell]]
    note: str

    @property
    def is_long(self) -> bool:
        """Whether a page folds it, so that what stands below is found."""
        return len(self.rows) > LONG

    @property
    def header(self) -> list[str]:
        return [column.title for column in self.columns]

    def labelled(self) -> list[list[tuple[SheetColumn, SheetCell]]]:
        """Each row with its cells next to their columns."""
        return [list(zip(self.columns, row, strict=True)) for row in self.rows]

    def texts(self) -> list[list[str]]:
        """Every cell on one line."""
        return [[" ".join(cell.text.split()) for cell in row] for row in self.rows]


def sheets_of(table: Table) -> list[Sheet]:
    """The views of a table; all of it where it has none. A view without a row and a note is left out."""
    rows = list(table.by_name())
    sheets = [_sheet(table, rows, view) for view in table.views or [TableView()]]
    return [sheet for sheet in sheets if sheet.rows or sheet.note]


def _sheet(table: Table, rows: Sequence[Mapping[str, Any]], view: TableView) -> Sheet:
    own = {column.name: column for column in table.own_columns}
    known = {**own, **{name: part.column for name, part in table.parts.items()}}
    asked = view.columns if isinstance(view.columns, Mapping) else dict.fromkeys(view.columns or own, "")
    chosen = rows if view.rows is None else [rows[place] for place in view.rows]
    chosen = [row for row in chosen if all(row[name] == value for name, value in view.where.items())]
    listed = chosen[: view.most]
    cells: list[tuple[str, Column, list[Any]]] = []
    if view.across:
        cells, listed = _across(view, asked, known, listed)
    else:
        for name, heading in asked.items():
            column, values = known[name], [row[name] for row in listed]
            if any(not _is_empty(value) for value in values) or not values:
                cells.append((_heading(heading, column, values), column, values))
    notes = [view.note, *_about(cells, in_headings=not view.across)]
    if len(listed) < len(chosen) and not view.across:
        notes.append(f"The first {len(listed)} of {len(chosen):,} rows; {table.name}.csv has all.")
    return Sheet(
        view.title,
        [SheetColumn(title, all(map(_counts, values)), column.description) for title, column, values in cells],
        [[_cell(column, values[place]) for _title, column, values in cells] for place in range(len(listed))],
        " ".join(filter(None, notes)),
    )


def _across(
    view: TableView, asked: Mapping[str, str], known: Mapping[str, Column], rows: Sequence[Mapping[str, Any]]
) -> tuple[list[tuple[str, Column, list[Any]]], list[Mapping[str, Any]]]:
    """One row for all rows with the same asked columns, and a column for each value of `across`."""
    groups: dict[tuple[Any, ...], dict[Any, Any]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in asked), {})[row[view.across]] = row[view.cells]
    column, across = known[view.cells], known[view.across]
    cells: list[tuple[str, Column, list[Any]]] = [
        (heading or known[name].title, known[name], [key[place] for key in groups])
        for place, (name, heading) in enumerate(asked.items())
    ]
    turned = {row[view.across]: None for row in rows}
    for value in [
        *filter(turned.__contains__, view.headings),
        *(value_first for value_first in turned if value_first not in view.headings),
    ]:
        title = view.headings.get(value) or across.text(value)
        cells.append((title, column, [group.get(value) for group in groups.values()]))
    return cells, [{} for _group in groups]


def _heading(heading: str, column: Column, values: Sequence[Any]) -> str:
    title = heading or column.title
    if isinstance(column, FigureColumn) and column.interval and has_interval(values):
        return f"{title} [{column.interval}]"
    return title


def _about(cells: Sequence[tuple[str, Column, list[Any]]], *, in_headings: bool) -> Iterator[str]:
    """What stands below a sheet: what the brackets are, and what to know about single figures, by their rows' names."""
    if not in_headings:
        brackets = [
            column.interval for _t, column, values in cells if isinstance(column, FigureColumn) and has_interval(values)
        ]
        for interval in dict.fromkeys(filter(None, brackets)):
            yield f"In brackets: {interval}s."
    before = list(takewhile(lambda cell: not any(isinstance(value, Figure) for value in cell[2]), cells)) or cells[:1]
    remarks: dict[str, list[str]] = {}
    for title, _column, values in cells:
        said = {place: value.withheld or value.note for place, value in enumerate(values) if isinstance(value, Figure)}
        for remark in dict.fromkeys(filter(None, said.values())):
            places = [place for place in said if said[place] == remark]
            names = [_name_of(place, before) for place in places]
            if len(places) == len(said) > 1:
                names = ["all"] if in_headings else [title]
            elif not in_headings:
                names = [f"{name}, {title}" for name in names]
            remarks.setdefault(remark, []).extend(dict.fromkeys(names))
    for remark, names in remarks.items():
        named = list(dict.fromkeys(names))
        more = [f"and {len(named) - MAX_NAMED} more"] if len(named) > MAX_NAMED else []
        yield f"{'; '.join([*named[:MAX_NAMED], *more])}: {remark.removesuffix('.')}."


def _name_of(row: int, columns: Sequence[tuple[str, Column, list[Any]]]) -> str:
    """A row by what stands in these columns."""
    return ", ".join(column.text(values[row]) for _title, column, values in columns if not _is_empty(values[row]))


def _cell(column: Column, value: Any) -> SheetCell:
    if isinstance(value, LinkedCell):
        return SheetCell(value.text, value.row)
    return SheetCell(words.NOTHING if value == "" else column.text(value))


def _is_empty(value: Any) -> bool:
    if isinstance(value, Figure):
        return value.value is None and value.interval is None and not value.withheld
    return value == "" if isinstance(value, str) else words.is_missing(value)


def _counts(value: Any) -> bool:
    return isinstance(value, Figure) or is_number(value) or words.is_missing(value)


# In a terminal


def terminal(table: Table) -> Iterator[str]:
    """The sheets of a table with their titles and notes, each part on lines of its own."""
    sheets = sheets_of(table)
    if not sheets or not all(sheet.title for sheet in sheets):
        yield f"\n{table.title}"
    for sheet in sheets:
        if sheet.title:
            yield f"\n{sheet.title}"
        if sheet.rows:
            yield aligned(sheet.header, [[_short(text) for text in row] for row in sheet.texts()])
        if sheet.note:
            yield sheet.note
    if table.note:
        yield table.note


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Right-aligned columns under their names, two spaces apart."""
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]
    lines = [header, ["-" * width for width in widths], *rows]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)


def _short(text: str) -> str:
    """Not wider than a terminal can bear."""
    return text if len(text) <= WIDEST else f"{text[: WIDEST - 1]}…"


# In documents


def markdown(table: Table) -> str:
    lines = [f"**{table.title}**", ""]
    for sheet in sheets_of(table):
        if sheet.title:
            lines += [sheet.title, ""]
        lines += ["| " + " | ".join(sheet.header) + " |", "|" + " --- |" * len(sheet.columns)]
        lines += [
            "| " + " | ".join(markdown_text(text).replace("|", "\\|") for text in row) + " |" for row in sheet.texts()
        ]
        lines += ["", sheet.note, ""] if sheet.note else [""]
    return "\n".join([*lines, *([table.note, ""] if table.note else [])])


def markdown_text(text: str) -> str:
    """What would begin an element of HTML stays text."""
    return re.sub(r"<(?=[a-zA-Z/!?])", r"\\<", text)


LATEX = str.maketrans(
    {
        **{mark: f"\\{mark}" for mark in "&%$#_{}"},
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "\\": r"\textbackslash{}",
        "–": "--",
    }
)


def escaped_latex(text: str) -> str:
    return text.translate(LATEX)


def latex(table: Table) -> str:
    """To be included where `\\usepackage{booktabs}` is."""
    lines = [r"\begin{table}", rf"\caption{{{escaped_latex(table.title)}}}"]
    for sheet in sheets_of(table):
        kinds = "".join("r" if column.is_number else "l" for column in sheet.columns)
        lines += [rf"\begin{{tabular}}{{{kinds}}}", r"\toprule"]
        lines += [" & ".join(map(escaped_latex, sheet.header)) + r" \\", r"\midrule"]
        lines += [" & ".join(map(escaped_latex, row)) + r" \\" for row in sheet.texts()]
        lines += [r"\bottomrule", r"\end{tabular}"]
        lines += [rf"\par {escaped_latex(note)}" for note in (sheet.title, sheet.note) if note]
    return "\n".join([*lines, *([rf"\par {escaped_latex(table.note)}"] if table.note else []), r"\end{table}", ""])


# For programs


def csv(table: Table) -> str:
    """A table as CSV with every digit; a cell is empty if the value is None or no finite number."""
    return "".join(csv_lines(table.file_columns(), file_rows(table)))


def file_rows(table: Table) -> Iterator[list[Any]]:
    for row in table.file_rows():
        yield [_written(value) for value in row]


def _written(value: Any) -> Any:
    value = value.item() if hasattr(value, "item") else value  # numpy's numbers
    return None if isinstance(value, float) and not math.isfinite(value) else value


def as_json(table: Table) -> dict[str, Any]:
    """A table with its columns and the rows of its file."""
    return {
        "name": table.name,
        "title": table.title,
        "note": table.note,
        "columns": [
            {"name": column.name, "kind": column.kind, "description": column.description}
            for column in table.file_columns()
        ],
        "rows": [[plain(value) for value in row] for row in table.file_rows()],
    }


def plain(value: Any) -> Any:
    """A value as JSON: NaN and infinity as null, arrays as lists, figures as value, low and high, values of unknown
    types as text."""
    if isinstance(value, Figure):
        return value.as_json()
    if isinstance(value, Mapping):
        return {str(name): plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(inner) for inner in value]
    if hasattr(value, "tolist"):  # numpy's
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, str | int | bool) else str(value)
