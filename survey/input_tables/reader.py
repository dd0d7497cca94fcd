"""Reading a table that somebody made with whatever they have: CSV with commas, semicolons or tabs, XLSX, in any usual
encoding.

How a file was read is said in words, so that a wrong guess is seen. Nothing is evaluated: a formula of a spreadsheet is
refused, a text that looks like one stays a text, and what a spreadsheet shows otherwise than it stores is refused with
its cell. Rows without a text are no rows. The line of a problem is the line of the file on which its row begins, or the
row of the sheet.
"""

import csv
import io
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from survey import letters
from survey.exceptions import Problem

from . import decoding
from .decoding import ENCODINGS, PROBLEMS_KEPT
from .limits import EMPTY, TableLimits, letters_of, refuse_too_many, refuse_too_wide, refused

if TYPE_CHECKING:
    from .spreadsheets import ReadSheet

LARGEST_FILE = 19 * 1024 * 1024  # bytes; a form around it stays below what the server takes
MAX_ROWS = 100_000
MAX_CELLS = 2_000_000

DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
# How files begin that are no table.
OTHER_FILES = {
    b"\xd0\xcf\x11\xe0": "an old Excel file (.xls): save it as .xlsx or CSV",
    b"%PDF": "a PDF: save the table as CSV or .xlsx",
    b"\x1f\x8b": "a compressed file (gzip): unpack it first",
    b"7z\xbc\xaf": "a 7-Zip archive: unpack it first",
    b"Rar!": "a RAR archive: unpack it first",
    b"PAR1": "a Parquet file: save the table as CSV",
    b"SQLite format 3": "a database: save the table as CSV",
    b"\x89PNG": "a picture: upload the table",
    b"<!DOCTYPE": "a web page: save the table as CSV",
    b"<html": "a web page: save the table as CSV",
    b"<table": "a web page: save the table as CSV",
    b"[{": "JSON: save the table as CSV",
    b'{"': "JSON: save the table as CSV",
}


@dataclass(frozen=True)
class TableReading:
    """How to read a file, where somebody says it; empty: find out."""

    encoding: str = ""
    delimiter: str = ""
    sheet: str = ""


@dataclass(frozen=True)
class ReadTable:
    """A file's table, and how it was read. Each row stands with its line (or its row of the sheet), and has the
    header's number of fields."""

    file: str
    header_line: int
    header: list[str]
    rows: list[tuple[int, list[str]]]
    reading: TableReading
    said: str
    """How it was read, for people."""
    sheets: tuple[str, ...] = ()
    is_guess: bool = False
    """Whether another encoding would give other letters."""
    problems: tuple[Problem, ...] = ()
    """Rows that are left out of `rows` since they do not have the header's fields, and fields without a column."""
    cells: tuple[tuple[int, Problem], ...] = ()
    """Cells that cannot be taken as they are, with the place of their column: they stop it where the column counts."""
    shown: tuple[tuple[int, Problem], ...] = ()
    """Cells that a spreadsheet shows otherwise than it stores them."""
    notes: tuple[str, ...] = ()
    """What somebody should know of it who stores it."""

    def problems_in(self, columns: Collection[str] | None = None) -> list[Problem]:
        """What is wrong with the rows, and with the cells of these columns (None: of all)."""
        cells = (problem for place, problem in self.cells if columns is None or self.header[place] in columns)
        return [*self.problems, *cells]

    def shown_in(self, columns: Collection[str] | None = None) -> list[Problem]:
        """The cells of these columns (None: of all) that a spreadsheet shows otherwise than it stores them."""
        return [problem for place, problem in self.shown if columns is None or self.header[place] in columns]

    def header_problems(self, required: Sequence[str], optional: Sequence[str] | None = ()) -> list[Problem]:
        """What is wrong with the header.

        Args:
            optional: the columns that it may have in addition to the required ones; None: any.
        """
        known = (*required, *(optional or ()))
        messages = [f"has no column {name!r}: add it" for name in required if name not in self.header]
        for name in dict.fromkeys(self.header):
            if optional is not None and name not in known:
                messages.append(f"unknown column {name!r}: the columns are {', '.join(known)}")
            elif self.header.count(name) > 1:
                messages.append(f"names the column {name!r} twice: keep one")
        return [Problem(self.file, self.header_line, "header", message) for message in messages]

    def by_column(self) -> Iterator[tuple[int, dict[str, str]]]:
        """Each row's line, and its values by their columns."""
        for line, values in self.rows:
            yield line, dict(zip(self.header, values, strict=True))


def limits_of_banks() -> TableLimits:
    """What a bank may be, no matter who sends it."""
    return TableLimits(LARGEST_FILE, MAX_ROWS, MAX_CELLS)


OWN_FILES = TableLimits(size=512 * 1024 * 1024, rows=5_000_000, cells=50_000_000)
"""What a command reads for its own user, and stores nowhere."""


def read_path(
    path: Path | str,
    reading: TableReading | None = None,
    *,
    limits: TableLimits | None = None,
    guesses: bool = True,
    header: Sequence[str] = (),
) -> ReadTable:
    """
    Raises:
        FileErrors: it cannot be read; with every problem.
    """
    most = limits or limits_of_banks()
    content = decoding.read_bytes(path, largest=most.size, too_large=lambda size: too_large(size, most.size))
    return read(content, str(path), reading, limits=most, guesses=guesses, header=header)


def read(
    content: bytes,
    file: str,
    reading: TableReading | None = None,
    *,
    limits: TableLimits | None = None,
    guesses: bool = True,
    header: Sequence[str] = (),
) -> ReadTable:
    """
    Args:
        file: what the file is called in messages.
        guesses: whether a file that is no Unicode is read as the likeliest of the older encodings.
        header: the columns of a file that has no header.

    Raises:
        FileErrors: it is no table, or one that is too large; with every problem.
    """
    reading, most = reading or TableReading(), limits or limits_of_banks()
    if len(content) > most.size:
        raise refused(file, None, too_large(len(content), most.size))
    if not content.strip():
        raise refused(file, 1, EMPTY)
    for beginning, said in OTHER_FILES.items():
        # Texts without a header may begin so: each is one field of a row.
        if content.startswith(beginning) and not (header and beginning[:1] in b"<[{"):
            raise refused(file, None, f"is {said}")
    if content.startswith(b"PK"):
        from . import spreadsheets  # Not needed by most files, and costs time to load.

        sheet = spreadsheets.read(content, file, reading.sheet, most)
        return _table(file, sheet.rows, TableReading(sheet=sheet.name), sheet.said, sheet=sheet)
    decoded = decoding.decode(content, file, encoding=reading.encoding, guesses=guesses)
    text, skipped, delimiter = decoded.text, 0, reading.delimiter
    if named := re.match(r"sep=(.)(\r\n|\r|\n)", text):  # Excel writes and reads this line; it is no part of the table.
        text, skipped, delimiter = text[named.end() :], 1, delimiter or named[1]
    delimiter = delimiter or _delimiter(text)
    rows = list(_numbered(text, delimiter, file, skipped, most))
    if header:
        rows.insert(0, (1, list(header)))
    encoding = ENCODINGS.get(decoded.encoding, decoded.encoding)
    said = f"{encoding}, fields separated by {DELIMITERS.get(delimiter, repr(delimiter))}{_line_ends(text)}"
    return _table(file, rows, TableReading(decoded.encoding, delimiter), said, is_guess=decoded.is_guess)


def sheets_of(content: bytes, file: str) -> list[str]:
    """The names of a spreadsheet's visible sheets; none of another file."""
    if not content.startswith(b"PK"):
        return []
    from . import spreadsheets

    return spreadsheets.names_of(content, file)


def too_large(size: int, most: int | None = None) -> str:
    return f"has {size:,} bytes; a table has at most {most or LARGEST_FILE:,}: leave out columns and rows not needed"


def _table(
    file: str,
    rows: list[tuple[int, list[str]]],
    reading: TableReading,
    said: str,
    *,
    is_guess: bool = False,
    sheet: "ReadSheet | None" = None,
) -> ReadTable:
    """The table of rows of which the first one is the header. Columns without a name are left out where they hold
    nothing, and are a problem where they hold something."""
    if not rows:
        raise refused(file, 1, EMPTY if sheet is None else f"the sheet {sheet.name!r} {EMPTY}")
    (header_line, header), *rows = rows
    seen = [letters.without_unseen(name) for name in header]
    refuse_too_wide(file, header_line, len(seen))
    named = [place for place, name in enumerate(seen) if name]
    if not named:
        raise refused(file, header_line, "has no name of a column: its first row must name them", "header")
    width, problems, taken, held = named[-1] + 1, list[Problem](), list[tuple[int, list[str]]](), set[int]()
    is_plain = len(named) == len(seen)
    for line, values in rows:
        if sheet is None and (len(values) < width or any(_is_text(value) for value in values[len(seen) :])):
            message = (
                f"has {len(values)} fields and the header {len(seen)}: put texts that hold commas, quotes or line "
                "breaks in quotes"
            )
            problems.append(Problem(file, line, "row", message))
            continue
        for place in range(len(values)) if len(values) > len(named) else ():
            value = values[place]
            if (place >= len(seen) or not seen[place]) and place not in held and _is_text(value):
                held.add(place)
                where = f"{letters_of(place)}{line}" if sheet is not None else f"column {place + 1}"
                message = f"holds {value.strip()[:40]!r}, and its column has no name: name it, or remove what it holds"
                problems.append(Problem(file, line, where, message))
        if not is_plain or len(values) != width:
            values = [values[place] if place < len(values) else "" for place in named]
        taken.append((line, values))
    notes = list(sheet.notes if sheet is not None else [])
    if len(named) < len(seen) and not held:
        places = ", ".join(str(place + 1) for place in range(len(seen)) if place not in named)
        notes.append(f"{file}:{header_line}: header: columns without a name hold nothing and are left out ({places})")
    if changed := [seen[place] for place in named if seen[place] != header[place].strip()]:
        notes.append(
            f"{file}:{header_line}: header: letters that cannot be seen were removed from {', '.join(changed)[:200]}"
        )
    return ReadTable(
        file,
        header_line,
        [seen[place] for place in named],
        taken,
        reading,
        said,
        sheets=sheet.names if sheet is not None else (),
        is_guess=is_guess,
        problems=tuple(problems[:PROBLEMS_KEPT]),
        cells=_in_columns(sheet.problems if sheet is not None else (), named),
        shown=_in_columns(sheet.shown if sheet is not None else (), named),
        notes=tuple(notes),
    )


def _in_columns(cells: Sequence[tuple[int, Problem]], named: Sequence[int]) -> tuple[tuple[int, Problem], ...]:
    """Problems of cells whose columns have a name, by the place of the column among those."""
    number = {place: index for index, place in enumerate(named)}
    return tuple((number[place], problem) for place, problem in cells if place in number)


def _is_text(value: str) -> bool:
    text = value.strip()
    return bool(text) and (text[0].isalnum() or bool(letters.without_unseen(text)))


# Texts


def _delimiter(text: str) -> str:
    """The one by which most of the first rows have as many fields as the first row. A comma where none is better."""
    sample = text[:65536]
    if len(text) > len(sample) and "\n" in sample:
        sample = sample[: sample.rindex("\n") + 1]
    best, chosen = (0.0, 0), ","
    for delimiter in DELIMITERS:
        reader = csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter)
        try:
            rows = [row for row in islice(reader, 50) if any(value.strip() for value in row)]
        except csv.Error:
            continue
        width = len(rows[0]) if rows else 0
        if width < 2:
            continue
        alike = sum(len(row) == width for row in rows) / len(rows)
        if (alike, width) > best:
            best, chosen = (alike, width), delimiter
    return chosen


def _numbered(
    text: str, delimiter: str, file: str, skipped: int, limits: TableLimits
) -> Iterator[tuple[int, list[str]]]:
    """Each row that holds a text, with the line on which it begins."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=delimiter)
    cells = count = 0
    has_marks = decoding.MARK in text
    while True:
        line = reader.line_num + 1 + skipped
        try:
            values = next(reader)
        except StopIteration:
            return
        except csv.Error as exc:
            message = f"not CSV ({exc}): check the quotes of the row that begins here"
            raise refused(file, line, message, "row") from exc
        if any(map(_is_text, values)):
            count, cells = count + 1, cells + len(values)
            refuse_too_many(file, count, cells, limits)
            yield line, [value.lstrip(decoding.MARK) for value in values] if has_marks else values


def _line_ends(text: str) -> str:
    windows = text.count("\r\n")
    if windows and windows == text.count("\n"):
        return ", Windows line ends"
    return ", old Mac line ends" if "\n" not in text and "\r" in text else ""
