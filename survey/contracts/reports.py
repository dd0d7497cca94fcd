"""A report of a study: tables, figures and files under one name. Imports contracts alone.

A report is written once. The command, the admin page, the API address and, where it says so, every export show it.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from survey.exceptions import HunchError

from .tables import Column

if TYPE_CHECKING:
    from survey.models import Study


@dataclass(frozen=True)
class Argument:
    """What a report can be asked. It comes as text; `many`: it may be given several times.

    `choices` lists what may be given in a study, for people to choose from; None where it cannot be listed. The report
    itself refuses what it does not know. `on_pages` is what a page starts with instead of `default`, where it should
    answer sooner.
    """

    name: str
    help: str
    many: bool = False
    required: bool = False
    default: str = ""
    on_pages: str = ""
    choices: Callable[["Study"], Sequence[str]] | None = None

    def choices_in(self, study: "Study") -> Sequence[str]:
        """What may be given in this study; nothing where it cannot be listed."""
        return self.choices(study) if self.choices is not None else ()


class Given(dict[str, tuple[str, ...]]):
    """What a report was asked: the texts that were given for each of its arguments, or its default; by name."""

    def one(self, name: str) -> str:
        """The text of an argument that is given once; empty where it is not given."""
        return self[name][0] if self[name] else ""

    def whole(self, name: str, *, lowest: int, highest: int) -> int:
        """
        Raises:
            HunchError: it is not a whole number in these limits.
        """
        try:
            value = int(self.one(name))
        except ValueError:
            value = lowest - 1
        if not lowest <= value <= highest:
            raise HunchError(f"{name}: {self.one(name)!r} is not a whole number from {lowest} to {highest}")
        return value

    def number(self, name: str, *, lowest: float, highest: float) -> float:
        """
        Raises:
            HunchError: it is not a number in these limits.
        """
        return _number(name, self.one(name), lowest, highest)

    def numbers(self, name: str, *, lowest: float, highest: float) -> list[float]:
        """Of an argument that may be given several times.

        Raises:
            HunchError: one is not a number in these limits.
        """
        return [_number(name, text, lowest, highest) for text in self[name]]


def _number(name: str, text: str, lowest: float, highest: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not lowest <= value <= highest:
        raise HunchError(f"{name}: {text!r} is not a number from {lowest:g} to {highest:g}")
    return value


@dataclass(frozen=True)
class Linked:
    """A cell of a layout about a row of the database: a page links it to that row."""

    text: str
    row: Any

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Layout:
    """How people read a table, or a part of it, in words and rounded numbers: a page and the terminal show it."""

    header: Sequence[str]
    rows: Sequence[Sequence[str | Linked]]
    title: str = ""
    note: str = ""


@dataclass(frozen=True)
class Table:
    """A table as its file has it, with every digit. `name` is the file's name without the ending; `note` is a sentence
    below it. Without layouts, people read its columns as they are."""

    name: str
    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Any]]
    note: str = ""
    layouts: Sequence[Layout] = ()


@dataclass(frozen=True)
class Picture:
    """A figure. `draw` writes it as SVG; it imports what it draws with. `text` says in words what it shows.

    `heavy`: drawing it loads a large library such as matplotlib. Web processes stay without it: a page then names the
    command that draws the figure.
    """

    name: str
    title: str
    text: str
    draw: Callable[[Path], None]
    heavy: bool = False


@dataclass(frozen=True)
class ReportFile:
    """A further file, in its own layout; `name` with its ending."""

    name: str
    content: Callable[[], bytes]


@dataclass(frozen=True, eq=False)
class Findings:
    """What a report found. `lines` come first; `notes` is what a reader should know; `data` is all of it as JSON."""

    title: str
    lines: Sequence[str] = ()
    tables: Sequence[Table] = ()
    pictures: Sequence[Picture] = ()
    files: Sequence[ReportFile] = ()
    notes: Sequence[str] = ()
    data: Mapping[str, Any] = field(default_factory=dict)


class Report(ABC):
    """One report. A subclass is imported when somebody asks for it."""

    arguments: ClassVar[Sequence[Argument]] = ()
    # The tables that every export of a study brings along, by name with their columns: the codebook lists these before
    # anything is made. Such a table is made without arguments, or with `condition` alone where the report has that one.
    exported: ClassVar[Mapping[str, Sequence[Column]]] = {}

    def obstacle(self, study: "Study") -> str:
        """Why this study has no such report now, in a sentence that says what to do; empty where it has one. Asked for
        every list of reports: a few quick queries."""
        return ""

    @abstractmethod
    def make(self, study: "Study", given: Given) -> Findings:
        """Read the study's answers and say what they show.

        Raises:
            HunchError: an argument cannot be used, or the study has nothing to show; with what to do.
        """


@dataclass(frozen=True)
class ReportEntry:
    """A report by name, for lists and addresses: small letters, digits, underscores, hyphens. `path` is its class, as
    module.Class, imported when it is asked for."""

    name: str
    title: str
    summary: str
    path: str

    def load(self) -> Report:
        module, _dot, name = self.path.rpartition(".")
        report: Report = getattr(import_module(module), name)()
        return report
