"""The cells of an Excel sheet as texts. Imported where a file is one, since openpyxl costs time to load.

A cell's text is what it stores. Where the sheet shows something else, as 8:12 for a time of day or 50% for 0.5, that is
said with its cell: the author has read the sheet, not what it stores.
"""

import io
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from openpyxl import load_workbook
from openpyxl.cell.read_only import ReadOnlyCell
from openpyxl.utils import range_boundaries
from openpyxl.utils.escape import unescape

# The parser that openpyxl's own sheets are read by. They fill every gap between rows, up to a million of them, and
# tell neither what is hidden nor what is merged.
from openpyxl.worksheet._reader import WorkSheetParser

from survey import letters
from survey.exceptions import FileErrors, Problem

from . import decoding
from .decoding import PROBLEMS_KEPT
from .limits import EMPTY, TableLimits, letters_of, refuse_too_many, refuse_too_wide, refused

LARGEST_UNPACKED = 256 * 1024 * 1024  # bytes of all parts
MAX_PARTS = 2000
LONGEST_WHOLE = 11  # digits of a number that a cell without a format shows as they are
ISO_FORMATS = {"yyyy-mm-dd": date, "hh:mm:ss": time, "yyyy-mm-dd hh:mm:ss": datetime}
NUMBER = re.compile(
    r"(?P<before>[^#0?]*)(?P<whole>[#0?,]*)(?:\.(?P<part>[0#?]*))?(?P<power>E\+0+)?(?P<after>[^#0?/]*)", re.IGNORECASE
)


@dataclass(frozen=True)
class ReadSheet:
    """A sheet's rows that hold a text, by their numbers. problems: cells that cannot be taken, with the place of their
    column from 0. shown: cells that show something else than they store."""

    name: str
    names: tuple[str, ...]
    rows: list[tuple[int, list[str]]]
    problems: list[tuple[int, Problem]]
    shown: list[tuple[int, Problem]]
    notes: list[str]

    @property
    def said(self) -> str:
        return f"an Excel file, sheet {self.name!r}" + (f" of {len(self.names)}" if len(self.names) > 1 else "")


def names_of(content: bytes, file: str) -> list[str]:
    """The names of the visible sheets; none where it cannot be read as a spreadsheet, which `read` then says."""
    try:
        _refuse_strange_archives(content, file)
        book = load_workbook(io.BytesIO(content), read_only=True, keep_links=False)
        return [sheet.title for sheet in book.worksheets if sheet.sheet_state == "visible"]
    except Exception:  # openpyxl raises whatever its parts raise on a broken file.
        return []


def read(content: bytes, file: str, wanted: str, limits: TableLimits) -> ReadSheet:
    """
    Args:
        wanted: the sheet's name; empty: the first one that is visible.

    Raises:
        FileErrors: it is no spreadsheet, has no such sheet, or the sheet is empty or too large.
    """
    _refuse_strange_archives(content, file)
    try:
        # Not `data_only`: a formula is to be seen as one. Nothing is evaluated.
        book = load_workbook(io.BytesIO(content), read_only=True, data_only=False, keep_links=False)
        names = tuple(sheet.title for sheet in book.worksheets)
        visible = [sheet.title for sheet in book.worksheets if sheet.sheet_state == "visible"]
        name = wanted or next(iter(visible), "")
        if name not in names:
            message = f"has no sheet {name[:60]!r}; there are: {', '.join(names[:20]) or 'none'}"
            raise refused(file, None, message, "sheet")
        sheet = _SheetReader(book[name], file, limits).read(names)
    except FileErrors:
        raise
    except Exception as exc:  # openpyxl raises whatever its parts raise on a broken file.
        message = f"is no spreadsheet that can be read ({type(exc).__name__}): save it again as .xlsx or CSV"
        raise refused(file, None, message) from exc
    if not sheet.rows:
        others = (
            f"; the other sheets are {', '.join(other for other in names if other != name)[:200]}" if names[1:] else ""
        )
        raise refused(file, 1, f"the sheet {name!r} {EMPTY}{others}")
    return sheet


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
                raise refused(file, None, f"is {what}")
            unpacked = sum(part.file_size for part in parts)
            if len(parts) > MAX_PARTS or unpacked > LARGEST_UNPACKED:
                raise refused(
                    file,
                    None,
                    f"unpacks to {unpacked:,} bytes in {len(parts):,} parts; at most {LARGEST_UNPACKED:,} are "
                    "read: save the table as CSV",
                )
            if any(part.flag_bits & 1 for part in parts):
                raise refused(file, None, "is protected by a password: remove it, or save the table as CSV")
            for part in parts:
                if part.filename.endswith((".xml", ".rels")):
                    with archive.open(part) as opened:
                        if b"<!" in opened.read(4096).replace(b"\0", b"").replace(b"<!--", b""):
                            raise refused(
                                file, None, "declares entities, as no spreadsheet program does: save it as CSV"
                            )
    except (zipfile.BadZipFile, NotImplementedError, EOFError, ValueError) as exc:
        raise refused(file, None, "begins like a spreadsheet and is broken: save it again as .xlsx or CSV") from exc


class _SheetReader:
    def __init__(self, sheet: Any, file: str, limits: TableLimits) -> None:
        self.sheet, self.file, self.limits = sheet, file, limits
        self.rows: list[tuple[int, list[str]]] = []
        self.problems: list[tuple[int, Problem]] = []
        self.shown: list[tuple[int, Problem]] = []
        self._formats: dict[int, str] = {}

    def read(self, names: tuple[str, ...]) -> ReadSheet:
        book, cells = self.sheet.parent, 0
        with self.sheet._get_source() as source:
            parser = WorkSheetParser(
                source,
                self.sheet._shared_strings,
                epoch=book.epoch,
                date_formats=book._date_formats,
                timedelta_formats=book._timedelta_formats,
            )
            for number, row in parser.parse():
                values = self._values(number, row)
                if any(value.strip() for value in values):
                    cells += len(values)
                    refuse_too_many(self.file, len(self.rows) + 1, cells, self.limits)
                    self.rows.append((number, values))
        self._refuse_merged(parser.merged_cells)
        notes = [
            f"{self.file}: {what} {', '.join(map(str, places[:10]))}{' and more' if places[10:] else ''} of the sheet "
            "are hidden, and are read as all others"
            for what, places in (("rows", self._hidden_rows(parser)), ("columns", list(_hidden_columns(parser))))
            if places
        ]
        return ReadSheet(self.sheet.title, names, self.rows, self.problems, self.shown, notes)

    def _values(self, number: int, row: list[dict[str, Any]]) -> list[str]:
        values: list[str] = []
        for cell in row:
            place = cell["column"] - 1
            text = self._text(number, place, cell)
            if text:
                refuse_too_wide(self.file, number, place + 1 if text.strip() else 0)
                values += [""] * (place + 1 - len(values))
                values[place] = text
        return values

    def _text(self, number: int, place: int, cell: dict[str, Any]) -> str:
        value, kind = cell["value"], cell["data_type"]
        if value is None:
            return ""
        if kind == "f":
            self._wrong(number, place, "holds a formula, which is not evaluated: paste its value in its place")
            return "="
        if kind == "e":
            self._wrong(number, place, f"holds the error {str(value)[:20]}: correct it")
            return str(value)
        if kind == "s":
            text = decoding.LINE_END.sub("\n", unescape(str(value))).lstrip(decoding.MARK)
            if message := letters.control_character(text):
                self._wrong(number, place, message)
            return text
        text = _text_of(value)
        if wrong := _shown_otherwise(value, text, self._format(cell)):
            message = f"is shown {wrong} and stores {text!r}: format the column as text, and type what is to be read"
            self._add(self.shown, number, place, message)
        return text

    def _format(self, cell: dict[str, Any]) -> str:
        style = cell["style_id"]
        if style not in self._formats:
            self._formats[style] = ReadOnlyCell(self.sheet, **cell).number_format
        return self._formats[style]

    def _wrong(self, number: int, place: int, message: str) -> None:
        self._add(self.problems, number, place, message)

    def _add(self, where: list[tuple[int, Problem]], number: int, place: int, message: str) -> None:
        if len(where) < PROBLEMS_KEPT:
            where.append((place, Problem(self.file, number, f"{letters_of(place)}{number}", message)))

    def _refuse_merged(self, merged: Any) -> None:
        first = self.rows[0][0] if self.rows else 0
        for cell_range in merged.mergeCell if merged is not None else ():
            left, top, right, bottom = range_boundaries(cell_range.ref)
            if self.rows and bottom > first and top <= self.rows[-1][0]:
                message = (
                    f"is merged with others ({cell_range.ref}), and it alone holds the text: unmerge and fill each"
                )
                for place in range(left - 1, min(right, left + 1)):
                    self._add(self.problems, top, place, message)

    def _hidden_rows(self, parser: Any) -> list[int]:
        hidden = {int(number) for number, facts in parser.row_dimensions.items() if _is_hidden(facts)}
        return [number for number, _values in self.rows if number in hidden]


def _hidden_columns(parser: Any) -> Iterator[str]:
    for facts in parser.column_dimensions.values():
        if _is_hidden(facts):
            for place in range(int(facts["min"]), min(int(facts["max"]), int(facts["min"]) + 20) + 1):
                yield letters_of(place - 1)


def _is_hidden(facts: Any) -> bool:
    return facts.get("hidden") in ("1", "true")


def _text_of(value: Any) -> str:
    """A cell's value as a text. A whole number has no decimal point, whatever the program stored, and others have the
    15 digits that such programs compute with."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 2**53 else f"{value:.15g}"
    if isinstance(value, datetime):
        return value.date().isoformat() if value.time() == time() else value.isoformat(" ")
    if isinstance(value, date | time):
        return value.isoformat()
    return str(value)


def _shown_otherwise(value: Any, text: str, number_format: str) -> str:
    """As what a number or time is shown, where that is not its text; empty where it is."""
    if isinstance(value, bool) or (number_format.casefold() in ("general", "@") and isinstance(value, int | float)):
        is_short = isinstance(value, bool) or ("e" not in text and len(text.strip("-").split(".")[0]) <= LONGEST_WHOLE)
        return "" if is_short else "in the form 1.2E+34"
    if isinstance(value, int | float):
        as_shown = shown_number(value, number_format)
    elif isinstance(value, date | time | timedelta):
        plain = re.sub(r"\[\$[^\]]*\]|[\\\"]|;@$", "", number_format).casefold()
        kind = ISO_FORMATS.get(plain)
        as_shown = text if kind is not None and len(text) == len(plain) else None
    else:
        return ""
    if as_shown is None:
        return f"in the format {number_format[:40]!r}"
    return "" if as_shown == text else f"as {as_shown!r}"


def shown_number(value: float, number_format: str) -> str | None:
    """A number as a spreadsheet shows it in this format; None where that is not known, as of a fraction."""
    sections = re.findall(r'((?:"[^"]*"|\\.|\[[^\]]*\]|[^;])*)(?:;|$)', number_format)
    place = 1 if value < 0 and sections[1:2] != [""] and len(sections) > 2 else 0
    section = re.sub(r"\[\$([^\]-]*)[^\]]*\]", r'"\1"', sections[place])
    section = re.sub(r"\[[^\]]*\]|_.|\*.", "", section)
    quoted: list[str] = []

    def keep(match: re.Match[str]) -> str:
        quoted.append(match[1] if match[1] is not None else match[2])
        return chr(0xE000 + len(quoted) - 1)

    parts = NUMBER.fullmatch(re.sub(r'"([^"]*)"|\\(.)', keep, section))
    if parts is None or not (parts["whole"] or parts["part"]) or re.search("[a-z]", parts["before"] + parts["after"]):
        return None
    number = Decimal(repr(value)) * 100 ** (parts["before"] + parts["after"]).count("%")
    decimals = parts["part"] or ""
    if parts["power"]:
        digits = f"{number:.{len(decimals)}E}"
        mantissa, power = digits.split("E")
        digits = f"{mantissa}E{power[0]}{power[1:].zfill(len(parts['power']) - 2)}"
    else:
        number = number.quantize(Decimal(1).scaleb(-len(decimals)), ROUND_HALF_UP)
        whole, _point, behind = f"{abs(number):f}".partition(".")
        while behind and decimals[len(behind) - 1] in "#?" and behind[-1] == "0":
            behind = behind[:-1]
        whole = whole.zfill(parts["whole"].count("0"))
        if "," in parts["whole"]:
            whole = f"{int(whole):,}".zfill(parts["whole"].count("0"))
        digits = whole + (f".{behind}" if behind else "")
    text = parts["before"] + digits + parts["after"]
    text = re.sub("[\ue000-\uf8ff]", lambda match: quoted[ord(match[0]) - 0xE000], text)
    return f"-{text}" if value < 0 and not place and not parts["power"] else text
