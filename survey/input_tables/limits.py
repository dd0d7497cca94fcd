"""How large a table may be, and what is said of one that is larger, whatever the file is."""

from dataclasses import dataclass

from survey.exceptions import FileErrors, Problem

MAX_COLUMNS = 100
EMPTY = "is empty: it needs a header and at least one row"


@dataclass(frozen=True)
class TableLimits:
    """The largest table that is read."""

    size: int
    """Bytes of the file."""
    rows: int
    cells: int


def refused(file: str, line: int | None, message: str, field: str = "file") -> FileErrors:
    return FileErrors([Problem(file, line, field, message)])


def letters_of(place: int) -> str:
    """What a spreadsheet calls the column at this place, from 0."""
    letters, rest = "", place + 1
    while rest:
        rest, letter = divmod(rest - 1, 26)
        letters = chr(ord("A") + letter) + letters
    return letters


def refuse_too_wide(file: str, line: int, width: int) -> None:
    if width > MAX_COLUMNS:
        raise refused(file, line, f"has {width:,} columns; at most {MAX_COLUMNS} are read: leave some out", "header")


def refuse_too_many(file: str, rows: int, cells: int, limits: TableLimits) -> None:
    if rows > limits.rows + 1 or cells > limits.cells:
        what = f"more than {limits.rows:,} rows" if rows > limits.rows + 1 else f"more than {limits.cells:,} cells"
        raise refused(file, None, f"has {what}: split the table")
