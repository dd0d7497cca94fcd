"""Reading a table that somebody made with whatever they have: CSV with commas, semicolons or tabs, XLSX, in any usual
encoding.

How a file was read is said in words, so that a wrong guess is seen. Nothing is evaluated: a formula of a spreadsheet is
refused, and a text that looks like one stays a text. The line of a problem is the line of the file on which its row
begins, or the row of the sheet.
"""

import csv
import io
import re
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, time
from itertools import islice
from pathlib import Path
from typing import Any

from survey.exceptions import FileErrors, Problem

LARGEST_FILE = 19 * 1024 * 1024  # bytes; a form around it stays below what the server takes
MOST_ROWS = 100_000
MOST_COLUMNS = 100
MOST_CELLS = 2_000_000
LARGEST_UNPACKED = 256 * 1024 * 1024  # bytes of a spreadsheet's parts
MOST_PARTS = 2000
PROBLEMS_KEPT = 200

DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
# Where no mark at the file's beginning tells, these are tried. The first one is preferred.
ENCODINGS = {
    "utf_8": "UTF-8",
    "utf_16_le": "UTF-16",
    "utf_16_be": "UTF-16",
    "cp1252": "Windows-1252 (Latin-1)",
    "cp1250": "Windows-1250 (Central Europe)",
    "cp1251": "Windows-1251 (Cyrillic)",
    "mac_roman": "Mac Roman",
}
OLDER = ("cp1252", "cp1250", "cp1251", "mac_roman")
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
}
CONTROL = re.compile(r"[\x01-\x08\x0b\x0c\x0e-\x1f]")


@dataclass(frozen=True)
class TableReading:
    """How to read a file, where somebody says it; empty: find out."""

    encoding: str = ""
    delimiter: str = ""
    sheet: str = ""


@dataclass(frozen=True)
class ReadTable:
    """A file's table, and how it was read. Each row stands with its line (or its row of the sheet)."""

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


@dataclass(frozen=True)
class TableLimits:
    """The largest table that is read."""

    size: int
    """Bytes of the file."""
    rows: int
    cells: int


def limits_of_banks() -> TableLimits:
    """What a bank may be, whoever sends it."""
    return TableLimits(LARGEST_FILE, MOST_ROWS, MOST_CELLS)


OWN_FILES = TableLimits(size=512 * 1024 * 1024, rows=5_000_000, cells=50_000_000)
"""What a command reads for its own user, and stores nowhere."""


def read_path(path: Path | str, reading: TableReading | None = None, *, limits: TableLimits | None = None) -> ReadTable:
    """
    Raises:
        FileErrors: it cannot be read; with every problem.
    """
    file, most = str(path), limits or limits_of_banks()
    try:
        if (size := Path(path).stat().st_size) > most.size:
            raise FileErrors([Problem(file, None, "file", too_large(size, most.size))])
        content = Path(path).read_bytes()
    except OSError as exc:
        raise FileErrors([Problem(file, 1, "file", f"cannot be read ({exc.strerror}): check the path")]) from exc
    return read(content, file, reading, limits=most)


def read(
    content: bytes, file: str, reading: TableReading | None = None, *, limits: TableLimits | None = None
) -> ReadTable:
    """
    Args:
        file: what the file is called in messages.

    Raises:
        FileErrors: it is no table, or one that is too large; with every problem.
    """
    reading, most = reading or TableReading(), limits or limits_of_banks()
    if len(content) > most.size:
        raise _refused(file, None, too_large(len(content), most.size))
    if not content.strip():
        raise _refused(file, 1, "is empty: it needs a header and at least one row")
    for beginning, said in OTHER_FILES.items():
        if content.startswith(beginning):
            raise _refused(file, None, f"is {said}")
    if content.startswith(b"PK"):
        return _read_spreadsheet(content, file, reading, most)
    return _read_text(content, file, reading, most)


def too_large(size: int, most: int | None = None) -> str:
    return f"has {size:,} bytes; a table has at most {most or LARGEST_FILE:,}: leave out columns and rows not needed"


def _refused(file: str, line: int | None, message: str, field: str = "file") -> FileErrors:
    return FileErrors([Problem(file, line, field, message)])


# Texts


def _read_text(content: bytes, file: str, reading: TableReading, limits: TableLimits) -> ReadTable:
    text, encoding, is_guess = _decoded(content, file, reading.encoding)
    problems = [
        Problem(file, number, "file", "holds a NUL character: remove it")
        for number, line in enumerate(text.split("\n"), start=1)
        if "\0" in line
    ]
    if problems:
        raise FileErrors(problems[:PROBLEMS_KEPT])
    if (is_guess or encoding.startswith("utf_16")) and (found := CONTROL.search(text)):
        line = text.count("\n", 0, found.start()) + 1
        raise _refused(file, line, "holds control characters, as no text does: save the table as CSV in UTF-8")
    skipped, delimiter = 0, reading.delimiter
    if named := re.match(r"sep=(.)\r?\n", text):  # Excel writes and reads this line; it is no part of the table.
        text, skipped, delimiter = text[named.end() :], 1, delimiter or named[1]
    delimiter = delimiter or _delimiter(text)
    rows = list(_numbered(text, delimiter, file, skipped, limits))
    if not rows:
        raise _refused(file, 1, "is empty: it needs a header and at least one row")
    (header_line, header), *rows = rows
    header = [name.strip() for name in header]
    _refuse_too_wide(file, header_line, len(header))
    ends = _line_ends(text)
    said = (
        f"{ENCODINGS.get(encoding, encoding)}, fields separated by {DELIMITERS.get(delimiter, repr(delimiter))}{ends}"
    )
    return ReadTable(
        file, header_line, header, rows, TableReading(encoding=encoding, delimiter=delimiter), said, is_guess=is_guess
    )


def _decoded(content: bytes, file: str, wanted: str) -> tuple[str, str, bool]:
    """The text, its encoding, and whether that is a guess."""
    for mark, encoding in ((b"\xef\xbb\xbf", "utf_8"), (b"\xff\xfe", "utf_16_le"), (b"\xfe\xff", "utf_16_be")):
        if content.startswith(mark) and wanted in ("", encoding):
            return _strictly(content[len(mark) :], encoding, file), encoding, False
    if wanted:
        return _strictly(content, wanted, file), wanted, False
    with suppress(UnicodeDecodeError):
        text = content.decode()
        if not _looks_wide(content):
            return text, "utf_8", False
    if encoding := _looks_wide(content):
        return _strictly(content, encoding, file), encoding, True
    encoding = _older_encoding(content)
    if not encoding:
        raise FileErrors(
            Problem(
                file,
                number,
                "file",
                f"byte {at} of this line is not UTF-8, and no other encoding fits: save it as UTF-8",
            )
            for number, at in _not_utf8(content)
        )
    return _strictly(content, encoding, file), encoding, True


def _strictly(content: bytes, encoding: str, file: str) -> str:
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as exc:
        line = content.count(b"\n", 0, exc.start) + 1
        name = ENCODINGS.get(encoding, encoding)
        raise _refused(file, line, f"is not {name}: choose another encoding, or save the file as UTF-8") from exc
    except LookupError as exc:
        raise _refused(file, None, f"there is no encoding {encoding!r}: use one of {', '.join(ENCODINGS)}") from exc


def _looks_wide(content: bytes) -> str:
    """UTF-16 without a mark: every other byte of Western text is NUL."""
    sample = content[:4096]
    if len(sample) < 4:
        return ""
    for encoding, part in (("utf_16_le", sample[1::2]), ("utf_16_be", sample[0::2])):
        if part.count(0) > 0.4 * len(part):
            return encoding
    return ""


def _older_encoding(content: bytes) -> str:
    """The likeliest of the older encodings; the Western one where it fits as well as any."""
    from charset_normalizer import from_bytes  # Not needed by most files, and costs time to load.

    found = list(from_bytes(content, cp_isolation=list(OLDER)))
    if not found:
        return ""
    best = min(one.chaos for one in found)
    for encoding in OLDER:
        if any(encoding in one.could_be_from_charset and one.chaos <= best + 0.05 for one in found):
            return encoding
    return str(found[0].encoding)


def _not_utf8(content: bytes) -> Iterator[tuple[int, int]]:
    for number, line in enumerate(content.split(b"\n"), start=1):
        try:
            line.decode()
        except UnicodeDecodeError as exc:
            yield number, exc.start + 1


def _delimiter(text: str) -> str:
    """The one by which most of the first rows have as many fields as the first row. A comma where none is better."""
    sample = text[:65536]
    if len(text) > len(sample) and "\n" in sample:
        sample = sample[: sample.rindex("\n") + 1]
    best, chosen = (0.0, 0), ","
    for delimiter in DELIMITERS:
        reader = csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter)
        try:
            rows = [row for row in islice(reader, 50) if row]
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
    """Each row that is not blank, with the line on which it begins."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=delimiter)
    cells = count = 0
    while True:
        line = reader.line_num + 1 + skipped
        try:
            values = next(reader)
        except StopIteration:
            return
        except csv.Error as exc:
            message = f"not CSV ({exc}): check the quotes of the row that begins here"
            raise _refused(file, line, message, "row") from exc
        if values:
            count, cells = count + 1, cells + len(values)
            _refuse_too_many(file, count, cells, limits)
            yield line, values


def _line_ends(text: str) -> str:
    windows = text.count("\r\n")
    if windows and windows == text.count("\n"):
        return ", Windows line ends"
    return ", old Mac line ends" if "\n" not in text and "\r" in text else ""


def _refuse_too_wide(file: str, line: int, width: int) -> None:
    if width > MOST_COLUMNS:
        raise _refused(file, line, f"has {width:,} columns; at most {MOST_COLUMNS} are read: leave some out", "header")


def _refuse_too_many(file: str, rows: int, cells: int, limits: TableLimits) -> None:
    if rows > limits.rows + 1 or cells > limits.cells:
        what = f"more than {limits.rows:,} rows" if rows > limits.rows + 1 else f"more than {limits.cells:,} cells"
        raise _refused(file, None, f"has {what}: split the table")


# Spreadsheets


def _read_spreadsheet(content: bytes, file: str, reading: TableReading, limits: TableLimits) -> ReadTable:
    _refuse_strange_archives(content, file)
    from openpyxl import load_workbook  # Not needed by most files, and costs time to load.

    try:
        # Not `data_only`: a formula is to be seen as one. Nothing is evaluated.
        book = load_workbook(io.BytesIO(content), read_only=True, data_only=False, keep_links=False)
        names = tuple(sheet.title for sheet in book.worksheets)
        wanted = reading.sheet or _first_sheet(book)
        if wanted not in names:
            raise _refused(
                file, None, f"has no sheet {wanted[:60]!r}; there are: {', '.join(names[:20]) or 'none'}", "sheet"
            )
        rows, problems = _rows_of_sheet(book[wanted], file, limits)
    except FileErrors:
        raise
    except Exception as exc:  # openpyxl raises whatever its parts raise on a broken file.
        raise _refused(
            file,
            None,
            f"is no spreadsheet that can be read ({type(exc).__name__}): open it and save it again as .xlsx or CSV",
        ) from exc
    if problems:
        raise FileErrors(problems)
    if not rows:
        raise _refused(file, 1, f"the sheet {wanted!r} is empty: it needs a header and at least one row")
    (header_line, header), *rows = rows
    header = [name.strip() for name in header]
    while header and not header[-1]:
        header.pop()
    _refuse_too_wide(file, header_line, len(header))
    width = len(header)
    # Empty cells at a row's end are not stored, and some programs store empty ones behind the last column.
    rows = [(line, _padded(values, width)) for line, values in rows]
    which = f"sheet {wanted!r}" + (f" of {len(names)}" if len(names) > 1 else "")
    said = f"an Excel file, {which}"
    return ReadTable(file, header_line, header, rows, TableReading(sheet=wanted), said, sheets=names)


def _padded(values: list[str], width: int) -> list[str]:
    if len(values) > width and not any(values[width:]):
        return values[:width]
    return values + [""] * (width - len(values))


def _first_sheet(book: Any) -> str:
    return next((sheet.title for sheet in book.worksheets if sheet.sheet_state == "visible"), "")


def _refuse_strange_archives(content: bytes, file: str) -> None:
    """Look at what an archive says of itself before anything in it is unpacked."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            parts = archive.infolist()
            names = {part.filename for part in parts}
            if "xl/workbook.xml" not in names:
                what = (
                    "an OpenDocument file: save it as .xlsx or CSV"
                    if "mimetype" in names
                    else ("a ZIP archive: unpack it and upload the table in it")
                )
                raise _refused(file, None, f"is {what}")
            unpacked = sum(part.file_size for part in parts)
            if len(parts) > MOST_PARTS or unpacked > LARGEST_UNPACKED:
                raise _refused(
                    file,
                    None,
                    f"unpacks to {unpacked:,} bytes in {len(parts):,} parts; at most {LARGEST_UNPACKED:,} are "
                    "read: save the table as CSV",
                )
            if any(part.flag_bits & 1 for part in parts):
                raise _refused(file, None, "is protected by a password: remove it, or save the table as CSV")
            for part in parts:
                if part.filename.endswith((".xml", ".rels")):
                    with archive.open(part) as opened:
                        if b"<!" in opened.read(4096).replace(b"\0", b"").replace(b"<!--", b""):
                            raise _refused(
                                file, None, "declares entities, as no spreadsheet program does: save it as CSV"
                            )
    except (zipfile.BadZipFile, NotImplementedError, EOFError, ValueError) as exc:
        raise _refused(file, None, "begins like a spreadsheet and is broken: save it again as .xlsx or CSV") from exc


def _rows_of_sheet(sheet: Any, file: str, limits: TableLimits) -> tuple[list[tuple[int, list[str]]], list[Problem]]:
    rows: list[tuple[int, list[str]]] = []
    problems: list[Problem] = []
    cells = 0
    # What a sheet says of its own size may be wrong, and is not asked.
    sheet.reset_dimensions()
    for number, row in enumerate(sheet.iter_rows(max_col=MOST_COLUMNS + 1, max_row=limits.rows + 2), start=1):
        if number > limits.rows + 1:  # Rows behind the last one that is read would be lost.
            _refuse_too_many(file, number, 0, limits)
        values: list[str] = []
        for cell in row:
            if cell.data_type in ("f", "e") and len(problems) < PROBLEMS_KEPT:
                place = f"column {getattr(cell, 'column', len(values) + 1)}"
                what = (
                    "holds a formula, which is not evaluated: paste its value in its place"
                    if cell.data_type == "f"
                    else f"holds the error {str(cell.value)[:20]}: correct it"
                )
                problems.append(Problem(file, number, place, what))
            values.append(_text_of(cell.value))
        while values and not values[-1]:
            values.pop()
        if any(values):
            cells += len(values)
            _refuse_too_many(file, len(rows) + 1, cells, limits)
            rows.append((number, values))
    return rows, problems


def _text_of(value: Any) -> str:
    """A cell's value as a text. A whole number has no decimal point, whatever the program stored."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    if isinstance(value, datetime):
        return value.date().isoformat() if value.time() == time() else value.isoformat(" ")
    if isinstance(value, date | time):
        return value.isoformat()
    return str(value)
