"""Rows of tables, each kind declared once: columns with their kinds, what is required, and what it means.

A file is read with a declaration. What is wrong with its header, its rows and their cells goes to `Problems` with line
and column, every problem and not only the first. A row is left out where a column that is required is wrong. Rules
between rows are for who reads it. The documents' tables of columns are made from the same declarations.
"""

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Generic, TypeVar, get_type_hints

from pydantic import Field, PlainValidator, ValidationError
from pydantic.dataclasses import dataclass as pydantic_dataclass
from pydantic.fields import FieldInfo

from survey.exceptions import FileErrors, HunchError

from . import decoding, reader
from .problems import Problems
from .reader import ReadTable, TableLimits


def column(meaning: str, default: Any = ..., *, name: str | None = None) -> Any:
    """A column as documents describe it. With a default it may be missing.

    Args:
        name: what files call it, where the field has another name.
    """
    return Field(default, description=meaning, validation_alias=name)


Kind = TypeVar("Kind", bound=type)


def declared(kind: Kind) -> Kind:
    """Make a class a declaration of rows. Its objects are small: a file may have a million."""
    made: Any = pydantic_dataclass(kind, frozen=True, slots=True, kw_only=True)
    return made


@declared
class TableRow:
    """A row of a file. A field is a column of the same name; one without a default must be there."""

    line: Annotated[int, PlainValidator(int)] = 0
    """Where it begins in its file; no column."""
    is_strict: ClassVar[bool] = False
    """Whether columns next to the declared ones are refused; else they are passed over."""
    read_by: ClassVar[str] = ""
    """The commands that read such a file, as documents name them."""
    compared: ClassVar[frozenset[str]] = frozenset()
    """Columns without which rules between rows would find a difference where there is none."""

    @classmethod
    def columns(cls) -> dict[str, FieldInfo]:
        fields: dict[str, FieldInfo] = cls.__pydantic_fields__  # type: ignore[attr-defined]
        return {str(field.validation_alias or name): field for name, field in fields.items() if name != "line"}

    @classmethod
    def required(cls) -> tuple[str, ...]:
        return tuple(name for name, field in cls.columns().items() if field.is_required())

    @classmethod
    def optional(cls) -> tuple[str, ...] | None:
        """The further columns that a file may have; None: any."""
        return tuple(name for name in cls.columns() if name not in cls.required()) if cls.is_strict else None


Row = TypeVar("Row", bound=TableRow)


def renamed(row: type[Row], names: Mapping[str, str]) -> type[Row]:
    """The same declaration for files that call some columns otherwise. names: by ours, theirs.

    Raises:
        HunchError: there is no such column.
    """
    fields: dict[str, FieldInfo] = row.__pydantic_fields__  # type: ignore[attr-defined]
    if unknown := [name for name in names if name not in fields or name == "line"]:
        known = ", ".join(name for name in fields if name != "line")
        raise HunchError(f"{unknown[0]!r} is no column that is read here: {known}")
    hints = get_type_hints(row, include_extras=True)
    namespace: dict[str, Any] = {
        name: column(fields[name].description or "", fields[name].default, name=theirs)
        for name, theirs in names.items()
    }
    namespace["__annotations__"] = {name: hints[name] for name in names}
    return declared(type(row.__name__, (row,), {**namespace, "__module__": row.__module__}))


@dataclass(frozen=True)
class RowFile(Generic[Row]):
    """A file, and its rows while they are read: `for row in file`."""

    row: type[Row]
    file: str
    problems: Problems
    table: ReadTable | None = None
    """None where no row can be read."""
    notes: Sequence[str] = ()
    first_lines: dict[Hashable, int] = field(default_factory=dict)

    @property
    def header(self) -> Sequence[str]:
        return self.table.header if self.table is not None else ()

    def __iter__(self) -> Iterator[Row]:
        validated = self.row.__pydantic_validator__.validate_python  # type: ignore[attr-defined]
        for line, cells in self.table.by_column() if self.table is not None else ():
            cells["line"] = line  # type: ignore[assignment]
            try:
                row = validated(cells)
            except ValidationError as exc:
                wrong = self._refuse(line, exc)
                # Rules between rows are still looked at where the columns that are wrong could have been left out.
                if wrong.isdisjoint(self.row.compared):
                    with suppress(ValidationError):
                        yield validated({name: cell for name, cell in cells.items() if name not in wrong})
                continue
            yield row

    @property
    def count(self) -> int:
        """How many rows there are, right or wrong."""
        return len(self.table.rows) if self.table is not None else 0

    def column(self, name: str) -> Iterator[tuple[int, str]]:
        """Each row's line and its cell in a column, whether it is declared or not."""
        if self.table is not None:
            place = self.header.index(name)
            yield from ((line, values[place]) for line, values in self.table.rows)

    def without(self, column: str, values: Collection[str]) -> "tuple[RowFile[Row], int]":
        """The file without the rows that have one of these values in a column, where there is one, and their number."""
        if self.table is None or column not in self.header:
            return self, 0
        place = self.header.index(column)
        rows = [row for row in self.table.rows if row[1][place].strip() not in values]
        return replace(self, table=replace(self.table, rows=rows)), len(self.table.rows) - len(rows)

    def wrong(self, line: int, column: str, message: str) -> None:
        self.problems.add(self.file, line, column, message)

    def once(self, row: TableRow, column: str, key: Hashable, what: str) -> None:
        """Refuse a row if one before it has the same key; `what` says what both are."""
        if (first := self.first_lines.setdefault(key, row.line)) != row.line:
            self.wrong(row.line, column, f"{what} in line {first}: keep one")

    def refuse(self, empty: str = "") -> None:
        """
        Args:
            empty: what is said where no row was taken and nothing is wrong; give it only then.

        Raises:
            FileErrors: with every problem.
        """
        if empty and not self.problems:
            self.wrong(1, "file", empty)
        self.problems.raise_if_any()

    def _refuse(self, line: int, exc: ValidationError) -> set[str]:
        """Note what is wrong with a row's cells, and return their columns."""
        errors = exc.errors(include_url=False, include_context=False, include_input=False)
        for error in errors:
            self.wrong(line, str(error["loc"][0]), error["msg"].removeprefix("Value error, "))
        return {str(error["loc"][0]) for error in errors}


def read_rows(
    row: type[Row],
    path: Path | str,
    problems: Problems,
    *,
    limits: TableLimits | None = reader.OWN_FILES,
    guesses: bool = True,
) -> RowFile[Row]:
    """The rows of a file in any usual form: CSV with commas, semicolons or tabs, XLSX.

    Args:
        limits: the largest file; None: as large as a bank may be.
        guesses: whether a file that is no Unicode is read as the likeliest of the older encodings.
    """
    try:
        table = reader.read_path(path, limits=limits, guesses=guesses)
    except FileErrors as exc:
        problems.found += exc.problems
        return RowFile(row, str(path), problems)
    return rows_of(row, table, problems)


def rows_of(row: type[Row], table: ReadTable, problems: Problems) -> RowFile[Row]:
    """The rows of a table that has been read."""
    before = len(problems.notes)
    is_right = check_header(table, problems, required=row.required(), optional=row.optional())
    return RowFile(row, table.file, problems, table if is_right else None, problems.notes[before:])


def check_header(
    table: ReadTable, problems: Problems, *, required: Sequence[str], optional: Sequence[str] | None = ()
) -> bool:
    """Whether the columns are right. What is wrong with them or with cells goes to `problems`, and what is to be known
    of the file to its notes.

    Args:
        optional: the columns that it may have in addition to the required ones; None: any.
    """
    wrong = table.header_problems(required, optional)
    problems.found += wrong or table.problems_in()
    problems.notes += table.notes
    # A table with further columns is one of measurements, whose cells are numbers in whatever form a sheet shows them.
    if optional is not None:
        problems.found += table.shown_in()
    elif cells := table.shown_in():
        problems.notes.append(f"{cells[0]} (and {len(cells) - 1:,} more cells)" if len(cells) > 1 else str(cells[0]))
    if table.is_guess:
        problems.notes.append(
            f"{Path(table.file).name} was read as {table.said}; if letters look wrong, save it as UTF-8"
        )
    return not wrong


def read_text_file(path: Path | str, problems: Problems, *, largest: int | None = None) -> str:
    """A file's text, its line ends untouched; empty after a problem. A byte order mark is not part of the text."""
    try:
        return decoding.decode(decoding.read_bytes(path, largest=largest), str(path)).text
    except FileErrors as exc:
        problems.found += exc.problems
        return ""
