"""Tables as CSV text."""

from collections.abc import Iterable, Iterator
from typing import Any

from survey.contracts.tables import Column


def csv_line(values: Iterable[Any]) -> str:
    """One line of CSV (RFC 4180, but with a bare newline at its end), in which every text keeps its bytes.

    Nothing guards against spreadsheets that run a cell which begins with "=": a guard would change the text.
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
    # The csv module leaves a lone carriage return unquoted, which its own reader then takes for the end of the row.
    return '"' + text.replace('"', '""') + '"' if any(mark in text for mark in ',"\n\r') else text


def csv_lines(columns: Iterable[Column], rows: Iterable[Iterable[Any]]) -> Iterator[str]:
    yield csv_line(column.name for column in columns)
    for row in rows:
        yield csv_line(row)
