"""The reports of a study by name: the core's own and its instrument's. Pages, API and commands all use this module."""

import json
import logging
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from survey.contracts import instruments
from survey.contracts.instruments import InstrumentMissing
from survey.contracts.reports import Argument, Findings, Given, Layout, Report, ReportEntry, ReportFile, Table
from survey.contracts.tables import ExtraFile
from survey.exceptions import FieldErrors, HunchError, NotFound, StateRefused
from survey.models import Study
from survey.services.answers.conditions import in_words, pairs_of
from survey.services.base.csv_lines import csv_lines
from survey.services.base.writing import replace_file

logger = logging.getLogger(__name__)

NAME = re.compile(r"[a-z][a-z0-9_-]*", re.ASCII)
NOTHING = "–"
CONDITION = Argument(
    "condition",
    "FACTOR=LEVEL: only answers under this level of a factor; several for several factors",
    many=True,
    choices=pairs_of,
)
PILOT = "pilot"


@dataclass(frozen=True)
class CoreReport:
    """A report that the core offers for every study for which `applies` is true."""

    entry: ReportEntry
    applies: Callable[[Study], bool]


CORE = (
    CoreReport(
        ReportEntry(
            name=PILOT,
            title="Pilot",
            summary="What the pilot taught: minutes and losses by screen, failed checks, remarks, the pay by the hour.",
            path="survey.services.results.pilot.Pilot",
        ),
        applies=lambda study: study.config.pilots > 0,
    ),
)


class ArgumentErrors(FieldErrors):
    """Arguments that the report does not accept, one line for each."""

    status = 400

    def __init__(self, errors: Mapping[str, Sequence[str]]) -> None:
        super().__init__(errors)
        self.message = "\n".join(f"{name}: {message}" for name, messages in errors.items() for message in messages)


class ReportBroken(HunchError):
    """A report cannot be imported or made because of a bug in it; the others still work."""

    code = "report_broken"
    status = 500


@dataclass(frozen=True)
class ReportLine:
    """A report in a list; `obstacle` says why it cannot be made now, and is empty if it can."""

    entry: ReportEntry
    arguments: Sequence[Argument]
    obstacle: str


# Which there are


def entries_of(study: Study) -> list[ReportEntry]:
    """The core's reports that the study has, then its instrument's; only the core's if the instrument is missing."""
    found = [one.entry for one in CORE if one.applies(study)]
    try:
        own = instruments.of_study(study).reports()
    except InstrumentMissing:
        return found
    taken = {one.entry.name for one in CORE}
    for entry in own:
        if not NAME.fullmatch(entry.name) or entry.name in taken:
            logger.warning(
                "%s: the report %r is left out: its name is taken, or has more than small letters, digits, _ and -",
                study.instrument,
                entry.name,
            )
            continue
        taken.add(entry.name)
        found.append(entry)
    return found


def lines_of(study: Study) -> list[ReportLine]:
    """Every report of the study, with the reason if it cannot be made now. A broken one does not stop the others."""
    lines = []
    for entry in entries_of(study):
        try:
            report = _loaded(entry)
            lines.append(ReportLine(entry, report.arguments, _obstacle(entry, report, study)))
        except ReportBroken as exc:
            lines.append(ReportLine(entry, (), exc.message))
    return lines


def find_entry(study: Study, name: str) -> ReportEntry:
    """
    Raises:
        NotFound: the study has no report with that name; lists those it has.
    """
    entries = entries_of(study)
    # A core report that the study does not have yet says itself what is missing.
    for entry in [*entries, *(one.entry for one in CORE)]:
        if entry.name == name:
            return entry
    there_are = ", ".join(entry.name for entry in entries) or "none"
    raise NotFound(f"{study.slug} has no report {name!r}; there are: {there_are}")


def load(study: Study, name: str) -> tuple[ReportEntry, Report]:
    """
    Raises:
        NotFound: the study has no report of that name.
        ReportBroken: it cannot be imported.
    """
    entry = find_entry(study, name)
    return entry, _loaded(entry)


def _loaded(entry: ReportEntry) -> Report:
    try:
        return entry.load()
    except Exception as exc:  # Other people's code: whatever is wrong with it, the other reports must work.
        logger.exception("the report %s cannot be loaded", entry.path)
        raise ReportBroken(f"{entry.path} cannot be loaded ({exc}): its author must repair it") from exc


def _obstacle(entry: ReportEntry, report: Report, study: Study) -> str:
    try:
        return report.obstacle(study)
    except HunchError as exc:
        return exc.message
    except Exception as exc:
        raise _fault(entry, exc) from exc


def _fault(entry: ReportEntry, exc: Exception) -> ReportBroken:
    logger.error("the report %s fails", entry.path, exc_info=exc)
    return ReportBroken(f"{entry.path} fails ({exc}): its author must repair it")


# Making one


def make(study: Study, name: str, given: Mapping[str, Sequence[str]] | None = None) -> Findings:
    """Make the report.

    Args:
        given: texts by argument; empty texts count as not given.

    Raises:
        NotFound: the study has no report of that name.
        ArgumentErrors: arguments are unknown, missing or given too often.
        HunchError: an argument cannot be used, or there is an obstacle.
        ReportBroken: it fails because of a bug in it; the log has the details.
    """
    entry, report = load(study, name)
    if obstacle := _obstacle(entry, report, study):
        raise StateRefused(obstacle)
    checked = checked_arguments(study, entry, report, given or {})
    try:
        return report.make(study, checked)
    except HunchError:
        raise
    except Exception as exc:
        raise _fault(entry, exc) from exc


def checked_arguments(study: Study, entry: ReportEntry, report: Report, given: Mapping[str, Sequence[str]]) -> Given:
    """Every argument of the report, given or by default.

    Raises:
        ArgumentErrors: some are unknown, missing or given too often; every such problem.
    """
    known = {argument.name: argument for argument in report.arguments}
    there_are = ", ".join(known) or "none"
    problems: dict[str, list[str]] = {
        name: [f"{entry.name} has no such argument; there are: {there_are}"] for name in given if name not in known
    }
    found = Given()
    for name, argument in known.items():
        texts = tuple(text for text in given.get(name, ()) if text)
        if any("\x00" in text for text in texts):  # No database can look for it.
            problems.setdefault(name, []).append("holds a character that cannot be used")
        if len(texts) > 1 and not argument.many:
            problems.setdefault(name, []).append(f"give it once, not {len(texts)} times")
        if not texts and argument.required:
            there = "" if argument.choices is None else f"; there are: {', '.join(argument.choices(study)) or 'none'}"
            problems.setdefault(name, []).append(f"name {argument.help}{there}")
        found[name] = texts or ((argument.default,) if argument.default else ())
    if problems:
        raise ArgumentErrors(problems)
    return found


def pages_arguments(study: Study, report: Report, given: Mapping[str, Sequence[str]]) -> dict[str, Sequence[str]]:
    """The arguments that a page uses: the given ones and, if one is not given, its start value: the first choice of a
    required argument, and a quicker setting if the report names one."""
    filled = {name: [text for text in texts if text] for name, texts in given.items()}
    for argument in report.arguments:
        if filled.get(argument.name):
            continue
        if argument.on_pages:
            filled[argument.name] = [argument.on_pages]
        elif argument.required:
            filled[argument.name] = list(argument.choices_in(study)[:1])
    return {name: texts for name, texts in filled.items() if texts}


# Reading one


def layouts_of(table: Table) -> Sequence[Layout]:
    """The layouts of a table for people: its own, or its columns as they are."""
    if table.layouts:
        return table.layouts
    return [
        Layout(
            [column.name.replace("_", " ") for column in table.columns],
            [[shown(value) for value in row] for row in table.rows],
        )
    ]


def shown(value: Any) -> str:
    """A value of a table for people: a dash for nothing, four digits of a broken number."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def plain(value: Any) -> Any:
    """A value as JSON: NaN and infinity as null, arrays as lists, values of unknown types as text."""
    if isinstance(value, Mapping):
        return {str(name): plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(inner) for inner in value]
    if hasattr(value, "tolist"):  # numpy's
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, str | int | bool) else str(value)


def lines_as_json(study: Study) -> list[dict[str, Any]]:
    """Every report of the study with its arguments, and the reason if it cannot be made now."""
    return [
        {
            "name": line.entry.name,
            "title": line.entry.title,
            "summary": line.entry.summary,
            "obstacle": line.obstacle,
            "arguments": [
                {
                    "name": argument.name,
                    "help": argument.help,
                    "many": argument.many,
                    "required": argument.required,
                    "default": argument.default,
                    "choices": list(argument.choices_in(study)),
                }
                for argument in line.arguments
            ],
        }
        for line in lines_of(study)
    ]


def as_json(study: Study, name: str, found: Findings) -> dict[str, Any]:
    """The whole report, except that pictures and files are only named."""
    return {
        "study": study.slug,
        "report": name,
        "title": found.title,
        "lines": list(found.lines),
        "notes": list(found.notes),
        "tables": [
            {
                "name": table.name,
                "title": table.title,
                "note": table.note,
                "columns": [vars(column) for column in table.columns],
                "rows": [[plain(value) for value in row] for row in table.rows],
            }
            for table in found.tables
        ],
        "pictures": [{"name": one.name, "title": one.title, "text": one.text} for one in found.pictures],
        "files": [one.name for one in found.files],
        "data": plain(found.data),
    }


# Files


def table_csv(table: Table) -> str:
    """A table as CSV with every digit; a cell is empty if the value is None or NaN."""
    rows = ([_written(value) for value in row] for row in table.rows)
    return "".join(csv_lines(table.columns, rows))


def _written(value: Any) -> Any:
    value = value.item() if hasattr(value, "item") else value  # numpy's numbers
    return None if isinstance(value, float) and not math.isfinite(value) else value


def file_of(found: Findings, name: str) -> Callable[[Path], None] | None:
    """The function that writes the file with that name; None if there is none. Tables are .csv, pictures .svg."""
    return dict(writers_of(found)).get(name)


def writers_of(found: Findings) -> list[tuple[str, Callable[[Path], None]]]:
    """Every file of a report by name, with the function that writes it."""
    return [
        *((f"{table.name}.csv", partial(_write_table, table)) for table in found.tables),
        *((f"{picture.name}.svg", picture.draw) for picture in found.pictures),
        *((file.name, partial(_write_file, file)) for file in found.files),
    ]


def _write_table(table: Table, path: Path) -> None:
    _write_text(path, table_csv(table))


def _write_file(file: ReportFile, path: Path) -> None:
    path.write_bytes(file.content())


def _write_text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="")


def write(study: Study, name: str, found: Findings, folder: Path) -> list[Path]:
    """Write tables, pictures, further files and NAME.json into a folder, which is made if it is missing. Each file
    appears whole or not at all; an older one is replaced.

    Raises:
        HunchError: a file cannot be written, or a further file's name is no plain one.
    """
    content = json.dumps(as_json(study, name, found), ensure_ascii=False, indent=1, allow_nan=False)
    writers = [*writers_of(found), (f"{name}.json", lambda path: _write_text(path, content + "\n"))]
    return write_files(writers, folder)


def write_files(writers: Sequence[tuple[str, Callable[[Path], None]]], folder: Path) -> list[Path]:
    """
    Raises:
        HunchError: a file cannot be written, or a name is not a plain one.
    """
    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file_name, writer in writers:
            if Path(file_name).name != file_name:
                raise HunchError(f"{file_name!r} is not a plain file name")
            with replace_file(folder / file_name) as path:
                writer(path)
            written.append(folder / file_name)
    except OSError as exc:
        raise HunchError(f"--out {folder}: cannot be written ({exc.strerror}): choose another folder") from exc
    return written


# In exports


def export_files(study: Study, levels: Mapping[str, str], taken: Collection[str]) -> Iterator[ExtraFile]:
    """The tables that reports add to every export, as TABLE.csv. A table has no rows if its report cannot be made for
    this study; the log says why.

    Args:
        taken: names of files that the export has already; a table with such a name is left out, and the log says so.
    """
    used = set(taken)
    for entry in entries_of(study):
        try:
            report = _loaded(entry)
        except ReportBroken:
            continue
        for table, columns in report.exported.items():
            name = f"{table}.csv"
            if name in used or not NAME.fullmatch(table):
                logger.warning(
                    "%s: %s is left out of the export: the name is taken, or has more than small letters, digits, _ "
                    "and -",
                    entry.path,
                    name,
                )
                continue
            used.add(name)
            yield ExtraFile(name, columns, _Rows(study, entry, table, levels))


@dataclass(frozen=True)
class _Rows:
    """The rows of one exported table; the report is made when they are iterated."""

    study: Study
    entry: ReportEntry
    table: str
    levels: Mapping[str, str]

    def __iter__(self) -> Iterator[Sequence[Any]]:
        given = {}
        if self.levels and any(argument.name == "condition" for argument in _loaded(self.entry).arguments):
            given["condition"] = [in_words({factor: level}) for factor, level in self.levels.items()]
        try:
            found = make(self.study, self.entry.name, given)
        except HunchError as exc:
            logger.warning("%s: %s has no rows in the export: %s", self.study.slug, self.entry.name, exc.message)
            return
        for table in found.tables:
            if table.name == self.table:
                yield from ([_written(value) for value in row] for row in table.rows)
