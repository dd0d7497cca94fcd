"""Tables as CSV text."""

from collections.abc import Iterable, Iterator
from typing import Any

from survey.contracts.tables import Column


def csv_line(values: Iterable[Any]) -> str:
    """One line of CSV (RFC 4180, but ending with a bare newline). Every text keeps its bytes.

    Spreadsheets may run a cell that begins with "=". Nothing guards against that, since a guard would change the text.
    """
    return ",".join(_cell(value) for value in values) + "\n"


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float):
        return repr(value)
    text = str(value)
    # The csv module leaves a lone carriage return unquoted, and its reader then takes it as the end of the row.
    return '"' + text.replace('"', '""') + '"' if any(mark in text for mark in ',"\n\r') else text


def csv_lines(columns: Iterable[Column], rows: Iterable[Iterable[Any]]) -> Iterator[str]:
    yield csv_line(column.name for column in columns)
    for row in rows:
        yield csv_line(row)
