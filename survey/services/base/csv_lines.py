"""Tables as CSV text."""

import csv
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from survey.contracts.tables import Column

# What a spreadsheet may take for a formula: at the beginning of a cell, or where a spreadsheet that separates by
# semicolons or tabs begins one, maybe after blanks and quotes. OWASP, "CSV Injection".
FORMULA = re.compile(r"""^(?=[\t\r\n])|(?:^|(?<=[;\t\r\n]))(?=["' ]*[=+\-@＝＋－＠])""")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
AT_ONCE = 200  # rows
NO_CELL = '""\r\n'  # How the csv module writes a row whose only cell is empty.
CELL = re.compile(r'(?:"[^"]*")+|[^",\r\n]+')


class _Lines(list[str]):
    """What the csv module writes to: it hands over one line at a time."""

    write = list.append


def csv_text(rows: Iterable[Iterable[Any]]) -> str:
    """Lines of CSV (RFC 4180, but each ends with a bare newline). Every text keeps its bytes.

    Spreadsheets may run a cell that begins with "=". `guarded` makes the text safe to open in one.
    """
    lines = _Lines()
    # Only what is in its ending of lines makes the csv module quote a lone carriage return. Its reader would take that
    # for the end of the row.
    csv.writer(lines, lineterminator="\r\n").writerows(map(_plain, rows))
    return "".join(["\n" if line == NO_CELL else f"{line[:-2]}\n" for line in lines])


def csv_line(values: Iterable[Any]) -> str:
    """One line."""
    return csv_text([values])


def _plain(row: Iterable[Any]) -> Iterable[Any]:
    """0 and 1 for truth values."""
    return [int(value) if value is True or value is False else value for value in row]


def csv_lines(columns: Iterable[Column], rows: Iterable[Iterable[Any]]) -> Iterator[str]:
    """The header, then some lines at a time."""
    yield csv_line(column.name for column in columns)
    rest = iter(rows)
    while part := list(islice(rest, AT_ONCE)):
        yield csv_text(part)


def guarded(text: str) -> str:
    """Lines of CSV for a spreadsheet: an apostrophe stands before whatever it would run. Numbers stay numbers."""
    return CELL.sub(lambda cell: _guarded_cell(cell[0]), text)


def _guarded_cell(cell: str) -> str:
    if not cell.startswith('"'):
        return cell if NUMBER.fullmatch(cell) else FORMULA.sub("'", cell)
    return '"' + FORMULA.sub("'", cell[1:-1].replace('""', '"')).replace('"', '""') + '"'
