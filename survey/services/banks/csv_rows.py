"""Tables that researchers have, with columns beside the known ones: rows by the header, and numbers in their cells.

They are read in any usual form (CSV with commas, semicolons or tabs, XLSX), of which `RowFile.notes` say what was
guessed or left out. What cannot be read goes to `Problems` with its line.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from predictors.cell_numbers import number_of
from survey.exceptions import FileErrors

from . import tables
from .importing import Problems, rows_of

INFINITE = {"inf": math.inf, "+inf": math.inf, "-inf": -math.inf, "infinity": math.inf, "-infinity": -math.inf}
UNKNOWN = ("", "na", "nan")


@dataclass(frozen=True)
class RowFile:
    """A file's header and its rows, each with the line on which it begins. Empty after a problem."""

    header: Sequence[str] = ()
    rows: Sequence[tuple[int, dict[str, str]]] = field(default=())
    notes: Sequence[str] = ()


def row_file(path: Path, required: Sequence[str], problems: Problems, *, guesses: bool = True) -> RowFile:
    """A whole file; its columns are the required ones and any others."""
    try:
        table = tables.read_path(path, limits=tables.OWN_FILES, guesses=guesses)
    except FileErrors as exc:
        problems.found += exc.problems
        return RowFile()
    before = len(problems.notes)
    rows = list(rows_of(table, problems, required=required, optional=None))
    return RowFile(table.header, rows, problems.notes[before:]) if rows or not problems else RowFile()


def csv_rows(
    path: Path, required: Sequence[str], problems: Problems, *, guesses: bool = True
) -> Sequence[tuple[int, dict[str, str]]]:
    """The rows of `row_file`."""
    return row_file(path, required, problems, guesses=guesses).rows


def number_or_nan(text: str) -> float | None:
    """The finite number of a cell, NaN where it is empty, None where it is none."""
    return math.nan if text.strip().casefold() in UNKNOWN else number_of(text)


def whole_of(text: str) -> int | None:
    """A whole number from 0; None where it is none."""
    text = text.strip().removesuffix(".0")
    return int(text) if text.isdecimal() and text.isascii() and len(text) < 10 else None


def nats_of(text: str, *, signed: bool = False) -> float | None:
    """The number of a cell, infinite where it says so, NaN where it is empty, None where it is none."""
    value = INFINITE.get(text.strip().casefold(), number_or_nan(text))
    return value if value is None or math.isnan(value) or signed or value >= 0 else None
