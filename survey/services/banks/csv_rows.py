"""CSV files that researchers have, with columns beside the known ones: rows by the header, and numbers in their cells.

What cannot be read goes to `Problems` with its line.
"""

import csv
import io
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from .importing import Problems, read_text_file


def csv_rows(path: Path, required: Sequence[str], problems: Problems) -> Iterator[tuple[int, dict[str, str]]]:
    file, content = str(path), read_text_file(path, problems)
    if not content:
        if not problems:
            problems.add(file, 1, "file", f"is empty: it needs a header with {', '.join(required)}")
        return
    reader = csv.DictReader(io.StringIO(content, newline=""), strict=True)
    try:
        header = reader.fieldnames or []
        if missing := [name for name in required if name not in header]:
            problems.add(file, 1, "header", f"has no column {', '.join(missing)}: it needs {', '.join(required)}")
            return
        if len(set(header)) < len(header):
            problems.add(file, 1, "header", "names a column twice: keep one")
            return
        line = reader.line_num + 1
        for row in reader:
            if None in row or None in row.values():
                problems.add(file, line, "row", f"does not have the header's {len(header)} fields: check its commas")
            else:
                yield line, row
            line = reader.line_num + 1
    except csv.Error as exc:
        problems.add(file, reader.line_num, "row", f"is no CSV ({exc}): check the quotes")


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
