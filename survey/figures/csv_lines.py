"""Tables as CSV text."""

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from .tables import Column

# What a spreadsheet may take for a formula: at the beginning of a cell, or where a spreadsheet that separates by
# semicolons or tabs begins one, maybe after blanks and quotes. OWASP, "CSV Injection".
FORMULA = re.compile(r"""^(?=[\t\r\n])|(?:^|(?<=[;\t\r\n]))(?=["' ]*[=+\-@＝＋－＠])""")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
BATCH_SIZE = 200  # rows
CELL = re.compile(r'(?:"[^"]*")+|[^",\r\n]+')


def csv_text(rows: Iterable[Iterable[Any]]) -> str:
    """Lines of CSV (RFC 4180, but each ends with a bare newline). Every text keeps its bytes.

    Spreadsheets may run a cell that begins with "=". `guarded` makes the text safe to open in one.
    """
    # A large export has millions of cells. The csv module takes two and a half times as long, since it looks at each
    # character. It also leaves a lone carriage return unquoted, and its reader then takes it as the end of the row.
    return "".join([f"{_line(row)}\n" for row in rows])


def csv_line(values: Iterable[Any]) -> str:
    """One line."""
    return f"{_line(values)}\n"


def _line(row: Iterable[Any]) -> str:
    # The commonest kinds of cells are written without a call.
    return ",".join(["" if cell is None else str(cell) if type(cell) is int else _cell(cell) for cell in row])


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float):
        return repr(value)
    text = value if type(value) is str else str(value)
    if '"' in text or "," in text or "\n" in text or "\r" in text:
        return '"' + text.replace('"', '""') + '"'
    return text


def csv_lines(columns: Iterable[Column], rows: Iterable[Iterable[Any]]) -> Iterator[str]:
    """The header, then some lines at a time."""
    yield csv_line(column.name for column in columns)
    rest = iter(rows)
    while part := list(islice(rest, BATCH_SIZE)):
        yield csv_text(part)


def guarded(text: str) -> str:
    """Lines of CSV for a spreadsheet: an apostrophe stands before whatever it would run. Numbers stay numbers."""
    return CELL.sub(lambda cell: _guarded_cell(cell[0]), text)


def _guarded_cell(cell: str) -> str:
    if not cell.startswith('"'):
        return cell if NUMBER.fullmatch(cell) else FORMULA.sub("'", cell)
    return '"' + FORMULA.sub("'", cell[1:-1].replace('""', '"')).replace('"', '""') + '"'
