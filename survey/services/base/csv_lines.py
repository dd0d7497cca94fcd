"""Tables as CSV text."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from survey.contracts.tables import Column

# What a spreadsheet may take for a formula: at the beginning of a cell, or where a spreadsheet that separates by
# semicolons or tabs begins one, maybe after blanks and quotes. OWASP, "CSV Injection".
FORMULA = re.compile(r"""^(?=[\t\r\n])|(?:^|(?<=[;\t\r\n]))(?=["' ]*[=+\-@＝＋－＠])""")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
MARKS = re.compile('[,"\\n\\r]')
CELL = re.compile(r'(?:"[^"]*")+|[^",\r\n]+')


def csv_line(values: Iterable[Any]) -> str:
    """One line of CSV (RFC 4180, but ending with a bare newline). Every text keeps its bytes.

    Spreadsheets may run a cell that begins with "=". `guarded` makes the text safe to open in one.
    """
    return ",".join([_cell(value) for value in values]) + "\n"


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float):
        return repr(value)
    text = value if type(value) is str else str(value)
    # The csv module leaves a lone carriage return unquoted, and its reader then takes it as the end of the row.
    return '"' + text.replace('"', '""') + '"' if MARKS.search(text) else text


def csv_lines(columns: Iterable[Column], rows: Iterable[Iterable[Any]]) -> Iterator[str]:
    yield csv_line(column.name for column in columns)
    for row in rows:
        yield csv_line(row)


def guarded(text: str) -> str:
    """Lines of CSV for a spreadsheet: an apostrophe stands before whatever it would run. Numbers stay numbers."""
    return CELL.sub(lambda cell: _guarded_cell(cell[0]), text)


def _guarded_cell(cell: str) -> str:
    if not cell.startswith('"'):
        return cell if NUMBER.fullmatch(cell) else FORMULA.sub("'", cell)
    return '"' + FORMULA.sub("'", cell[1:-1].replace('""', '"')).replace('"', '""') + '"'
