"""Tables that researchers have, with columns beside the known ones: rows by the header, and numbers in their cells.

They are read in any usual form (CSV with commas, semicolons or tabs, XLSX), of which `RowFile.guess` says what was
guessed. What cannot be read goes to `Problems` with its line.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from survey.exceptions import FileErrors

from . import tables
from .importing import Problems


@dataclass(frozen=True)
class RowFile:
    """A file's header and its rows, each with the line on which it begins. Empty after a problem. `guess`: a sentence
    about its letters, where another encoding would give others."""

    header: Sequence[str] = ()
    rows: Sequence[tuple[int, dict[str, str]]] = field(default=())
    guess: str = ""


def row_file(path: Path, required: Sequence[str], problems: Problems) -> RowFile:
    """A whole file; its columns are the required ones and any others."""
    file = str(path)
    try:
        table = tables.read_path(path, limits=tables.OWN_FILES)
    except FileErrors as exc:
        problems.found += exc.problems
        return RowFile()
    header, line = table.header, table.header_line
    if missing := [name for name in required if name not in header]:
        problems.add(file, line, "header", f"has no column {', '.join(missing)}: it needs {', '.join(required)}")
        return RowFile()
    if twice := sorted({name for name in header if name and header.count(name) > 1}):
        problems.add(file, line, "header", f"names a column twice ({', '.join(twice)[:60]}): keep one")
        return RowFile()
    rows = []
    for line, values in table.rows:
        if len(values) == len(header):
            rows.append((line, dict(zip(header, values, strict=True))))
        else:
            problems.add(file, line, "row", f"does not have the header's {len(header)} fields: check its commas")
    guess = f"{path.name} was read as {table.said}; if letters look wrong, save it as UTF-8" if table.is_guess else ""
    return RowFile(tuple(name for name in header if name), rows, guess)


def csv_rows(path: Path, required: Sequence[str], problems: Problems) -> Iterator[tuple[int, dict[str, str]]]:
    """The rows of `row_file`."""
    yield from row_file(path, required, problems).rows


def whole_of(text: str) -> int | None:
    """A whole number from 0; None where it is none."""
    text = text.strip().removesuffix(".0")
    return int(text) if text.isdecimal() and text.isascii() and len(text) < 10 else None


def nats_of(text: str, *, signed: bool = False) -> float | None:
    """The number of a cell, infinite where it says so, NaN where it is empty, None where it is none."""
    if text.strip().casefold() in ("", "na", "nan"):
        return math.nan
    try:
        value = float(text)
    except ValueError:
        return None
    return value if signed or value >= 0 else None
