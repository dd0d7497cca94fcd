"""A report of a study: tables, figures and files under one name. Imports only contracts and the results kit.

A report is written once. The command, the admin page and the API show it, and every export if the report says so.
"""

import json
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from survey.exceptions import FieldErrors, HunchError
from survey.figures import LinkedCell as LinkedCell
from survey.figures import Table as Table
from survey.figures.charts import Chart
from survey.figures.rendering import plain
from survey.figures.tables import Columns
from survey.figures.words import short

if TYPE_CHECKING:
    from survey.models import Study


@dataclass(frozen=True)
class Argument:
    """An argument of a report. Its value is text; `many`: it may be given several times.

    `choices` lists the values for a study, for people to choose from; None if they cannot be listed. The report itself
    refuses unknown values. `on_pages` replaces `default` on pages, if a page should load faster. `most_on_web` is the
    largest number that pages and the API take, if a larger one keeps a web process busy for long; commands take more.
    `names_studies`: its values are slugs of other studies; pages and the API take those that the reader may see.
    `without`: what a page calls it among the choices that none of them is given. `label`: its name on pages, in words
    and with its unit. Choices that are a mapping stand on pages under its values. `example`: how a text is written.
    """

    name: str
    help: str
    many: bool = False
    required: bool = False
    default: str = ""
    on_pages: str = ""
    most_on_web: int | None = None
    names_studies: bool = False
    choices: Callable[["Study"], Sequence[str] | Mapping[str, str]] | None = None
    without: str = "all"
    label: str = ""
    example: str = ""

    @property
    def title(self) -> str:
        return self.label or self.name.replace("_", " ").capitalize()

    def choices_in(self, study: "Study") -> Sequence[str] | Mapping[str, str]:
        """The possible values in this study; empty if they cannot be listed."""
        return self.choices(study) if self.choices is not None else ()


class ReportArguments(dict[str, tuple[str, ...]]):
    """A report's arguments by name: the given texts of each, or its default."""

    def one(self, name: str) -> str:
        """The text of an argument that is given once; empty if it is not given."""
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
        """The numbers of an argument that may be given several times.

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
        raise HunchError(f"{name}: {text!r} is not a number from {short(lowest)} to {short(highest)}")
    return value


class ArgumentErrors(FieldErrors):
    """Arguments that are not accepted, one line for each."""

    status = 400

    def __init__(self, errors: Mapping[str, Sequence[str]]) -> None:
        super().__init__(errors)
        self.message = "\n".join(f"{name}: {message}" for name, messages in errors.items() for message in messages)


def check_arguments(
    name: str,
    arguments: Sequence[Argument],
    entered: Mapping[str, Sequence[str]],
    *,
    choices_of: Callable[[Argument], Sequence[str] | Mapping[str, str]],
) -> ReportArguments:
    """Every argument of what is called `name`, given or by default. Empty texts count as not given.

    Raises:
        ArgumentErrors: some are unknown, missing or given too often; every such problem.
    """
    known = {argument.name: argument for argument in arguments}
    there_are = ", ".join(known) or "none"
    problems: dict[str, list[str]] = {
        unknown: [f"{name} has no such argument; there are: {there_are}"] for unknown in entered if unknown not in known
    }
    checked = ReportArguments()
    for argument in arguments:
        texts = tuple(text for text in entered.get(argument.name, ()) if text)
        if any("\x00" in text for text in texts):  # No database can look for it.
            problems.setdefault(argument.name, []).append("holds a character that cannot be used")
        if len(texts) > 1 and not argument.many:
            problems.setdefault(argument.name, []).append(f"give it once, not {len(texts)} times")
        if not texts and argument.required:
            there = "" if argument.choices is None else f"; there are: {', '.join(choices_of(argument)) or 'none'}"
            problems.setdefault(argument.name, []).append(f"name {argument.help}{there}")
        checked[argument.name] = texts or ((argument.default,) if argument.default else ())
    if problems:
        raise ArgumentErrors(problems)
    return checked


@dataclass(frozen=True)
class Picture:
    """A figure. `draw` writes it as SVG; it imports what it draws with. `text` says in words what it shows. `of` makes
    one of a chart.

    `beside`: the heading of pictures that a page shows side by side, with the text of the first: the same figures of
    one model each. Give their axes the same range.

    `heavy`: drawing it loads a large library such as matplotlib, which web processes must not load. A page then names
    the command that draws the figure.
    """

    name: str
    title: str
    text: str
    draw: Callable[[Path], None]
    heavy: bool = False
    beside: str = ""

    @classmethod
    def of(cls, name: str, title: str, text: str, chart: Chart, *, beside: str = "") -> "Picture":
        """A chart, drawn when somebody asks for the picture. `title`: its heading, which may be shorter than the
        chart's own title."""
        return cls(name, title, text, partial(chart.write, name=name, text=text), beside=beside)


@dataclass(frozen=True)
class ReportFile:
    """A further file in its own format; `name` includes the ending."""

    name: str
    content: Callable[[], bytes]

    @classmethod
    def of_json(cls, name: str, data: Any) -> "ReportFile":
        """The data as JSON, with figures as value, low and high."""
        text = json.dumps(plain(data), ensure_ascii=False, indent=1, allow_nan=False) + "\n"
        return cls(name, text.encode)


@dataclass(frozen=True, eq=False)
class ReportResult:
    """What a report found. `headline` is its main figure in a sentence, if it has one; `lines` follow it; `notes` are
    what a reader should know; `data` is everything as JSON. `opening` is the registered one: who asks for a report of a
    study gets it filled in."""

    title: str
    lines: Sequence[str] = ()
    tables: Sequence[Table] = ()
    pictures: Sequence[Picture] = ()
    files: Sequence[ReportFile] = ()
    notes: Sequence[str] = ()
    data: Mapping[str, Any] = field(default_factory=dict)
    headline: str = ""
    opening: str = ""

    @property
    def said(self) -> list[str]:
        """What every door shows first: what the report is about and how to read it, then its main figure."""
        return [text for text in (self.opening, self.headline) if text]


@dataclass(frozen=True)
class Intake:
    """Files that a report takes back, such as what people coded. `help` says which, in a sentence or two.

    `largest`: bytes of one file; `most`: files at once.
    """

    title: str
    help: str
    largest: int = 512 * 1024
    most: int = 5


@dataclass(frozen=True)
class ReceivedFile:
    """A file as it was sent; `name` without a folder."""

    name: str
    content: bytes


class Report(ABC):
    """One report. A subclass is imported when somebody asks for it."""

    arguments: ClassVar[Sequence[Argument]] = ()
    # The tables that every export of a study includes, by name with their columns: the codebook lists these before
    # anything is made. Such a table is made without arguments, or only with `condition` if the report has it.
    exported: ClassVar[Mapping[str, Columns]] = {}

    # Which files it takes back, by its page and the API; None: none.
    intake: ClassVar[Intake | None] = None

    def take(self, study: "Study", files: Sequence[ReceivedFile]) -> str:
        """Check all files, then store what they hold; called in a transaction, with the study's row locked. Returns a
        sentence on what was stored. Only reports with an `intake` need it.

        Raises:
            HunchError: a file cannot be used; names file, line and field. Nothing is stored then.
        """
        raise NotImplementedError

    def obstacle(self, study: "Study") -> str:
        """Why this study has no such report now, in a sentence that says what to do; empty if it has one. Every list of
        reports calls this, so it must take only a few quick queries."""
        return ""

    @abstractmethod
    def make(self, study: "Study", arguments: ReportArguments) -> ReportResult:
        """Read the study's answers and say what they show.

        Raises:
            HunchError: an argument cannot be used, or the study has nothing to show; says what to do.
        """


@dataclass(frozen=True)
class ReportEntry:
    """A report's entry in lists and addresses. `name`: small letters, digits, underscores, hyphens. `summary`: what it
    holds, for lists. `opening`: whole sentences that say what it shows and how to read it; every door begins with them,
    so they must be true for any study, also for one with a single model or without answers. `path`: its class as
    module.Class, imported when the report is asked for. `while_it_runs`: it is quick, and the study page names it next
    to the numbers of the stage that is running."""

    name: str
    title: str
    summary: str
    opening: str
    path: str
    while_it_runs: bool = False

    def __post_init__(self) -> None:
        """
        Raises:
            ValueError: it does not open with a sentence.
        """
        if not re.fullmatch(r"\S.*[.?!]", self.opening):
            raise ValueError(
                f"the report {self.name}: `opening` must be whole sentences, what it shows and how to read it"
            )

    def load(self) -> Report:
        module, _dot, name = self.path.rpartition(".")
        report: Report = getattr(import_module(module), name)()
        return report
