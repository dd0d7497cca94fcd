"""A report of a study: tables, figures and files under one name. Imports contracts alone.

A report is written once. Command, admin page, API address and export show it by its name.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from .tables import Column

if TYPE_CHECKING:
    from survey.models import Study


@dataclass(frozen=True)
class Argument:
    """What a report can be asked. It comes as text; `many`: it may be given several times.

    `choices` lists what may be given in a study, for pages; empty where anything may.
    """

    name: str
    help: str
    many: bool = False
    required: bool = False
    default: str = ""
    choices: Callable[["Study"], Sequence[str]] = lambda study: ()


@dataclass(frozen=True)
class Table:
    """A table. `name` is its file's name without the ending; `note` is a sentence below it."""

    name: str
    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Any]]
    note: str = ""


@dataclass(frozen=True)
class Picture:
    """A figure. `draw` writes it as SVG; it imports what it draws with. `text` says in words what is to be seen."""

    name: str
    title: str
    text: str
    draw: Callable[[Path], None]


@dataclass(frozen=True)
class ReportFile:
    """A further file, in its own layout."""

    name: str
    content: Callable[[], bytes]


@dataclass(frozen=True, eq=False)
class Findings:
    """What a report found. `data` is all of it as JSON values; `notes` is what a reader should know."""

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
    # Whether every export of a study brings its tables along.
    in_exports: ClassVar[bool] = False

    def obstacle(self, study: "Study") -> str:
        """Why this study has no such report now, in a sentence that says what to do; empty where it has one."""
        return ""

    @abstractmethod
    def make(self, study: "Study", arguments: Mapping[str, Sequence[str]]) -> Findings:
        """Read the study's answers and say what they show.

        Args:
            arguments: what was given, by name: a list of texts each, empty where nothing was.

        Raises:
            HunchError: an argument cannot be used, or the study has nothing to show yet; with what to do.
        """


@dataclass(frozen=True)
class ReportEntry:
    """A report by name, for lists and addresses. `path` is its class, as module.Class, imported when asked for."""

    name: str
    title: str
    summary: str
    path: str

    def load(self) -> Report:
        module, _dot, name = self.path.rpartition(".")
        report: Report = getattr(import_module(module), name)()
        return report
