"""The reports of a study by name: the core's own and its instrument's. Pages, API and commands all use this module."""

import json
import logging
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from django.core.cache import cache
from django.db import DatabaseError, transaction
from django.db.models import Subquery

from survey.contracts import instruments
from survey.contracts.instruments import InstrumentMissing
from survey.contracts.reports import (
    Argument,
    ArgumentErrors,
    ReceivedFile,
    Report,
    ReportArguments,
    ReportEntry,
    ReportFile,
    ReportResult,
    Table,
    check_arguments,
)
from survey.contracts.tables import ExtraFile
from survey.exceptions import FieldErrors, HunchError, NotFound, StateRefused
from survey.figures import plain_columns, rendering
from survey.models import AuditEntry, ModelAnswer, Response, Study, Withdrawal
from survey.models.study import TEST_ENDING
from survey.services.answers.conditions import in_words, pairs_of
from survey.services.base import auditing, rights
from survey.services.base.hashing import digest
from survey.services.base.writing import replace_file

from .png import with_png

logger = logging.getLogger(__name__)

NAME = re.compile(r"[a-z][a-z0-9_-]*", re.ASCII)
CONDITION = Argument(
    "condition",
    "FACTOR=LEVEL: only answers under this level of a factor; one for each factor at most",
    many=True,
    choices=pairs_of,
    label="Only under the condition",
)
PILOT = "pilot"
METHODS = "methods"
ESTIMATES = "estimates"
TWO_STUDIES = "two_studies"
PEOPLE = "people"
POLICIES = "policies"
AGREEMENT, CALIBRATION, GAPS = "agreement", "calibration", "gaps"
KEPT_SECONDS = 300
MARKDOWN = "report.md"  # the whole report, next to its tables and pictures


@dataclass(frozen=True)
class CoreReport:
    """A report that the core offers for every study for which `applies` is true."""

    entry: ReportEntry
    applies: Callable[[Study], bool]


def names_figures(study: Study) -> bool:
    """Whether the study's instrument names figures to estimate."""
    return instruments.is_known(study.instrument) and instruments.of_study(study).estimates is not None


def compares(study: Study) -> bool:
    """Whether the study's instrument says what people and models expect of the same items."""
    if not instruments.is_known(study.instrument):
        return False
    try:
        return instruments.of_study(study).expectations is not None
    except Exception:  # Other people's code: the other reports must be listed.
        logger.exception("%s cannot say what people and models expect", study.instrument)
        return False


CORE = (
    CoreReport(
        ReportEntry(
            name=PILOT,
            title="Pilot",
            summary="What the pilot found: minutes and losses by screen, failed checks, remarks, the pay by the hour.",
            opening="What the people of the pilot needed, and where they stopped. Read minutes and pay first, then "
            "the screens: one that takes long, that people leave at, or a check that many fail, is worth "
            "mending before the first stage opens.",
            path="survey.services.results.pilots.pilot_report.Pilot",
        ),
        applies=lambda study: study.config.pilots > 0,
    ),
    CoreReport(
        ReportEntry(
            name=METHODS,
            title="Methods",
            summary="Sampling, people and estimates as text, tables and figures; a preregistration; an ethics page.",
            opening="How the items were drawn, what became of the people, and what the answers say, in paragraphs "
            "that can be pasted into a paper. Every number of the text stands in a table below it; brackets "
            "hold 95 % intervals.",
            path="survey.services.results.methods.methods_section.Methods",
        ),
        applies=lambda _study: True,
    ),
    CoreReport(
        ReportEntry(
            name=ESTIMATES,
            title="All estimates",
            summary="Every figure of the estimates with intervals, bounds and stages, as tables and files; who left.",
            opening="What the answers say about all items of the study, and not only about those that were asked. "
            "Read each estimate with its 95 % interval in brackets; the plain figure next to it counts all "
            "answers alike, and may be off where the design asked some items more often than others.",
            path="survey.services.results.estimates.estimates_report.EstimatesReport",
        ),
        applies=lambda study: names_figures(study),
    ),
    CoreReport(
        ReportEntry(
            name=TWO_STUDIES,
            title="Two studies",
            summary="This study's figures less those of another one: a year later, or of other people.",
            opening="What this study's answers say less what another one's say, figure by figure. Where the interval "
            "of a difference holds 0 the two may not differ; where it does not, they do, for whatever reason.",
            path="survey.services.results.estimates.two_studies.TwoStudies",
        ),
        applies=lambda study: names_figures(study),
    ),
    CoreReport(
        ReportEntry(
            name=PEOPLE,
            title="People, pairs and questions",
            summary="How much of what answers differ by lies between people, pairs and questions; how people differ.",
            opening="How much of the variance of answers lies between people, and how much between items and "
            "questions. The larger the share between people, the more it matters who is asked; brackets hold "
            "95 % intervals.",
            path="survey.services.results.people_and_models.people_report.People",
        ),
        applies=lambda study: names_figures(study),
    ),
    CoreReport(
        ReportEntry(
            name=POLICIES,
            title="Other sampling designs",
            summary="What another epsilon, top fraction or design would have found in each stage, by its own chances.",
            opening="What another way to choose the items would have found per answer in each stage, worked out from "
            "the answers that came and from their chances of being asked. A difference says something where "
            "its interval does not hold 0; where too few answers support a design, its row says so instead.",
            path="survey.services.results.policies.policies_report.PoliciesReport",
        ),
        applies=lambda study: names_figures(study),
    ),
    *(
        CoreReport(
            ReportEntry(
                name=name,
                title=title,
                summary=summary,
                opening=opening,
                path=f"survey.services.results.people_and_models.{path}",
            ),
            applies=lambda study: compares(study),
        )
        for name, title, summary, opening, path in (
            (
                AGREEMENT,
                "Agreement",
                "How far people and models agree on the same items, next to the ceiling that people’s noise sets.",
                "How far people and models agree item by item, as a correlation: 1 is perfect, 0 is none. Compare it "
                "with the ceiling: people's answers vary, and no model can be expected to agree with them more "
                "closely than that.",
                "agreement_report.AgreementReport",
            ),
            (
                CALIBRATION,
                "Calibration",
                "People, models, judges and predictors on one scale: log score in bits, reliability.",
                "How much the chances that people, models, judges and predictors gave say about what then happened. "
                "Fewer bits are better, and tossing a coin costs 1; a bias above 0 means that they expected it more "
                "often than it happened.",
                "calibration_report.ChancesReport",
            ),
            (
                GAPS,
                "Where people and models differ",
                "Where people and models part: by parts of the items, and item by item.",
                "Where people and models expect different things, by parts of the items and for single items. Above 0 "
                "people expect more than the model; where the interval holds 0 the two may not differ.",
                "gaps_report.GapsReport",
            ),
        )
    ),
)


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
    """The core's reports that the study has, then its instrument's; only the core's if the instrument is missing or
    cannot say which it has."""
    return _listed(study)[0]


def _listed(study: Study) -> tuple[list[ReportEntry], ReportLine | None]:
    """The reports, and a line that says why the instrument's are missing; None if they are there."""
    entries = [core_report.entry for core_report in CORE if core_report.applies(study)]
    try:
        instrument = instruments.of_study(study)
    except InstrumentMissing:
        return entries, None
    kind = type(instrument)
    title = f"Reports of {kind.title}"
    all_of_them = ReportEntry(kind.name, title, "", f"{title}.", f"{kind.__module__}.{kind.__qualname__}")
    taken = {core_report.entry.name for core_report in CORE}
    own = []
    try:
        for entry in instrument.reports():
            if not NAME.fullmatch(entry.name) or entry.name in taken:
                logger.warning(
                    "%s: the report %r is left out: its name is taken, or has more than small letters, digits, _ and -",
                    study.instrument,
                    entry.name,
                )
                continue
            taken.add(entry.name)
            own.append(entry)
    except Exception as exc:  # Other people's code: the core's reports and the page must work.
        return entries, ReportLine(all_of_them, (), _fault(all_of_them, exc, "cannot list its reports").message)
    return [*entries, *own], None


def lines_of(study: Study) -> list[ReportLine]:
    """Every report of the study, with the reason if it cannot be made now. A broken one does not stop the others."""
    lines = []
    entries, without = _listed(study)
    for entry in entries:
        try:
            report = _loaded(entry)
            lines.append(ReportLine(entry, report.arguments, _obstacle(entry, report, study)))
        except ReportBroken as exc:
            lines.append(ReportLine(entry, (), exc.message))
    return lines if without is None else [*lines, without]


def find_entry(study: Study, name: str) -> ReportEntry:
    """
    Raises:
        NotFound: the study has no report with that name; lists those it has.
        ReportBroken: its instrument cannot say which reports it has.
    """
    entries, without = _listed(study)
    # A core report that the study does not have yet says itself what is missing.
    for entry in [*entries, *(core_report.entry for core_report in CORE)]:
        if entry.name == name:
            return entry
    if without is not None:
        raise ReportBroken(without.obstacle)
    there_are = ", ".join(entry.name for entry in entries) or "none"
    raise NotFound(f"{study.slug} has no report {name!r}; there are: {there_are}")


def load(study: Study, name: str) -> tuple[ReportEntry, Report]:
    """
    Raises:
        NotFound: the study has no report of that name.
        ReportBroken: it cannot be imported, or the instrument cannot say which reports it has.
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


def choices_of(
    study: Study, entry: ReportEntry, argument: Argument, *, reader: Any = None
) -> Sequence[str] | Mapping[str, str]:
    """The values that an argument may have in this study, perhaps with words for each; empty if they cannot be listed.

    Args:
        reader: the user who asks, who learns only of studies that they may see; None: a command, which knows all.

    Raises:
        ReportBroken: the report fails to list them.
    """
    try:
        choices = argument.choices_in(study)
    except HunchError:
        raise
    except Exception as exc:
        raise _fault(entry, exc, f"cannot list the values of {argument.name}") from exc
    return _seen(list(choices), reader) if argument.names_studies else choices


def _seen(slugs: Sequence[str], reader: Any) -> list[str]:
    """Those of the studies that the reader may see. A test copy is never another study's other study."""
    if reader is None:
        return [slug for slug in slugs if not slug.endswith(TEST_ENDING)]
    known = set(rights.visible(reader, Study.objects.real().filter(slug__in=slugs)).values_list("slug", flat=True))
    return [slug for slug in slugs if slug in known]


def _fault(entry: ReportEntry, exc: Exception, what: str = "fails") -> ReportBroken:
    logger.error("the report %s %s", entry.path, what, exc_info=exc)
    return ReportBroken(f"{entry.path} {what} ({exc}): its author must repair it")


# Making one


def make(study: Study, name: str, arguments: Mapping[str, Sequence[str]] | None = None) -> ReportResult:
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
    checked = checked_arguments(study, entry, report, arguments or {})
    try:
        return replace(report.make(study, checked), opening=entry.opening)
    except HunchError:
        raise
    except Exception as exc:
        raise _fault(entry, exc) from exc


def make_for_web(study: Study, name: str, arguments: Mapping[str, Sequence[str]], *, reader: Any) -> ReportResult:
    """`make` for pages, their files and the API, within the limits that arguments have there. Cached by the arguments
    for a few minutes, until an answer, a reply of a language model, a withdrawal, or what the audit records, changes.

    Raises:
        ArgumentErrors: also where a number is above its limit; says which command takes it.
        NotFound: also where it names a study that the reader may not see.
    """
    entry, report = load(study, name)
    asked = {argument: [text for text in texts if text] for argument, texts in arguments.items()}
    _check_limits(study, entry, report, asked)
    _check_studies(study, entry, report, asked, reader)
    facts = [study.pk, name, sorted(asked.items()), study.source_sha256, _newest(study)]
    key = f"survey.report:{digest(facts)}"
    findings: ReportResult | None = cache.get(key)
    if findings is None:
        findings = make(study, name, asked)
        try:
            findings = _drawn(findings)
            cache.set(key, findings, timeout=KEPT_SECONDS)
        except HunchError:
            raise
        except Exception as exc:  # Other people's code: a picture that cannot be drawn, a value that cannot be stored.
            raise _fault(entry, exc) from exc
    return findings


def _check_limits(study: Study, entry: ReportEntry, report: Report, arguments: Mapping[str, Sequence[str]]) -> None:
    problems = {
        argument.name: [
            f"pages and the API take at most {argument.most_on_web}; for more: `hunch report {study.slug} "
            f"{entry.name} {argument.name}={text}`"
        ]
        for argument in report.arguments
        for text in arguments.get(argument.name, ())
        if argument.most_on_web is not None and _is_above(text, argument.most_on_web)
    }
    if problems:
        raise ArgumentErrors(problems)


def _check_studies(
    study: Study, entry: ReportEntry, report: Report, arguments: Mapping[str, Sequence[str]], reader: Any
) -> None:
    """Everything that names other studies, or lists them, is asked here: what was made is kept for all readers. An
    obstacle comes first, and `make` says it."""
    naming = [argument for argument in report.arguments if argument.names_studies]
    if not naming or _obstacle(entry, report, study):
        return
    for argument in naming:
        there_are = ", ".join(choices_of(study, entry, argument, reader=reader)) or "none"
        if argument.required and not arguments.get(argument.name):
            raise ArgumentErrors({argument.name: [f"name {argument.help}; there are: {there_are}"]})
        for slug in arguments.get(argument.name, ()):
            if "\x00" in slug or not _seen([slug], reader):
                raise NotFound(f"no study is called {slug!r}; there are: {there_are}")


def _is_above(text: str, limit: int) -> bool:
    try:
        return float(text) > limit
    except ValueError:
        return False  # The report itself refuses it.


def _newest(study: Study) -> list[Any]:
    """The last rows of what reports read. By primary key, so that it is found at once in large tables."""
    changes = AuditEntry.objects.exclude(action__startswith="export_")
    rows = (Response.objects.all(), Withdrawal.objects.all(), ModelAnswer.objects.all(), changes)
    newest = {f"newest_{n}": Subquery(queryset.order_by("-pk").values("pk")[:1]) for n, queryset in enumerate(rows)}
    return list(study.stages.order_by("index").values_list("state", "plan_sha256", *newest.values()))


def _drawn(findings: ReportResult) -> ReportResult:
    """The same with every picture drawn and every file made, which can be stored. A heavy picture is not drawn: web
    processes must not load what it draws with."""
    return replace(
        findings,
        pictures=[
            replace(picture, draw=_not_drawn if picture.heavy else partial(_write_bytes, _bytes_of(picture.draw)))
            for picture in findings.pictures
        ],
        files=[replace(file, content=partial(bytes, file.content())) for file in findings.files],
    )


def _bytes_of(draw: Callable[[Path], None]) -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "picture.svg"
        draw(path)
        return path.read_bytes()


def _write_bytes(content: bytes, path: Path) -> None:
    path.write_bytes(content)


def _not_drawn(path: Path) -> None:
    raise HunchError(f"{path.name}: a command draws it")


def checked_arguments(
    study: Study, entry: ReportEntry, report: Report, arguments: Mapping[str, Sequence[str]]
) -> ReportArguments:
    """Every argument of the report, given or by default.

    Raises:
        ArgumentErrors: some are unknown, missing or given too often; every such problem.
    """
    return check_arguments(
        entry.name, report.arguments, arguments, choices_of=lambda argument: choices_of(study, entry, argument)
    )


def pages_arguments(
    study: Study, entry: ReportEntry, report: Report, arguments: Mapping[str, Sequence[str]], *, reader: Any
) -> dict[str, Sequence[str]]:
    """The arguments that a page uses: the given ones and, if one is not given, its start value: the first choice of a
    required argument, and a quicker setting if the report names one.

    Raises:
        ReportBroken: the report fails to list the choices.
    """
    filled = {name: [text for text in texts if text] for name, texts in arguments.items()}
    for argument in report.arguments:
        if filled.get(argument.name):
            continue
        if argument.on_pages:
            filled[argument.name] = [argument.on_pages]
        elif argument.required:
            filled[argument.name] = list(choices_of(study, entry, argument, reader=reader))[:1]
    return {name: texts for name, texts in filled.items() if texts}


def take(study: Study, name: str, files: Sequence[ReceivedFile], *, by: Any = None, via: str = "command") -> str:
    """Have a report take files back, all of them or none, and record it in the audit. Returns what was stored, in a
    sentence.

    Raises:
        NotFound: the study has no report of that name, or the report takes no files.
        HunchError: there is an obstacle, or too many files, a file is too large, or what it holds cannot be used.
        ReportBroken: it fails because of a bug in it.
    """
    entry, report = load(study, name)
    intake = report.intake
    if intake is None:
        raise NotFound(f"{name}: this report takes no files")
    if obstacle := _obstacle(entry, report, study):
        raise StateRefused(obstacle)
    if not 1 <= len(files) <= intake.most:
        raise FieldErrors({"files": [f"choose 1 to {intake.most} files, not {len(files)}"]})
    for file in files:
        if len(file.content) > intake.largest:
            message = f"{file.name[:60]}: has {len(file.content):,} bytes, and {intake.largest:,} are taken; split it"
            raise FieldErrors({"files": [message]})
    try:
        with transaction.atomic():
            Study.objects.select_for_update(of=("self",), no_key=True).get(pk=study.pk)
            message = report.take(study, files)
            # Names of files may name people, and the audit names nobody.
            taken = [{"bytes": len(file.content), "sha256": sha256(file.content).hexdigest()} for file in files]
            auditing.record("take_report_files", study, by=by, via=via, report=name, files=taken)
    except (HunchError, DatabaseError):
        raise
    except Exception as exc:
        raise _fault(entry, exc, "cannot take files") from exc
    return message


def record_reading(
    study: Study, name: str, arguments: Mapping[str, Sequence[str]], *, by: Any, via: str, file: str = ""
) -> None:
    """Record in the audit that somebody took a report out of the service, or one file of it."""
    asked = {argument: [*texts] for argument, texts in arguments.items()}
    auditing.record(
        "export_report", study, by=by, via=via, report=name, asked=asked, **({"file": file} if file else {})
    )


# Reading one


def lines_as_json(study: Study, *, reader: Any = None) -> list[dict[str, Any]]:
    """Every report of the study with its arguments, and the reason if it cannot be made now."""
    # Several reports have arguments of the same meaning, whose values are listed by the same function.
    listed: dict[Any, list[str]] = {}
    return [_line_as_json(study, line, reader, listed) for line in lines_of(study)]


def _line_as_json(study: Study, line: ReportLine, reader: Any, listed: dict[Any, list[str]]) -> dict[str, Any]:
    obstacle, arguments = line.obstacle, []
    for argument in line.arguments:
        key = argument.choices, argument.names_studies
        try:
            if key not in listed:
                listed[key] = list(choices_of(study, line.entry, argument, reader=reader))
            choices = listed[key]
        except HunchError as exc:
            choices, obstacle = [], obstacle or exc.message
        arguments.append(
            {
                "name": argument.name,
                "help": argument.help,
                "many": argument.many,
                "required": argument.required,
                "default": argument.default,
                "choices": choices,
            }
        )
    return {
        "name": line.entry.name,
        "title": line.entry.title,
        "summary": line.entry.summary,
        "opening": line.entry.opening,
        "obstacle": obstacle,
        "arguments": arguments,
    }


def as_json(study: Study, name: str, findings: ReportResult) -> dict[str, Any]:
    """The whole report, except that pictures and files are only named."""
    return {
        "study": study.slug,
        "report": name,
        "title": findings.title,
        "opening": findings.opening,
        "headline": findings.headline,
        "lines": list(findings.lines),
        "notes": list(findings.notes),
        "tables": [rendering.as_json(table) for table in findings.tables],
        "pictures": [
            {"name": picture.name, "title": picture.title, "text": picture.text} for picture in findings.pictures
        ],
        "files": [file.name for file in findings.files],
        "data": rendering.plain(findings.data),
    }


def as_markdown(findings: ReportResult) -> str:
    """The whole report as text with Markdown tables; pictures by the names of their files."""
    parts = [rendering.markdown_text(text) for text in (f"# {findings.title}", *findings.said, *findings.lines)]
    parts += [f"![{rendering.markdown_text(picture.text)}]({picture.name}.svg)" for picture in findings.pictures]
    parts += [rendering.markdown(table).strip() for table in findings.tables]
    parts += ["\n".join(f"- {rendering.markdown_text(note)}" for note in findings.notes)] if findings.notes else []
    return "\n\n".join(parts) + "\n"


# Files


def file_of(findings: ReportResult, name: str) -> Callable[[Path], None] | None:
    """The function that writes the file with that name; None if there is none. Tables are .csv, pictures .svg."""
    return dict(writers_of(findings)).get(name)


def writers_of(findings: ReportResult, *, png: bool = False) -> list[tuple[str, Callable[[Path], None]]]:
    """Every file of a report by name, with the function that writes it. png: each picture as PNG too.

    Raises:
        HunchError: PNG cannot be drawn on this machine.
    """
    writers: list[tuple[str, Callable[[Path], None]]] = [
        *((f"{table.name}.csv", partial(_write_table, table)) for table in findings.tables),
        *((f"{picture.name}.svg", picture.draw) for picture in findings.pictures),
        *((file.name, partial(_write_file, file)) for file in findings.files),
        (MARKDOWN, lambda path: _write_text(path, as_markdown(findings))),
    ]
    return with_png(writers) if png else writers


def _write_table(table: Table, path: Path) -> None:
    _write_text(path, rendering.csv(table))


def _write_file(file: ReportFile, path: Path) -> None:
    path.write_bytes(file.content())


def _write_text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="")


def write(study: Study, name: str, findings: ReportResult, folder: Path, *, png: bool = False) -> list[Path]:
    """Write tables, pictures, further files and NAME.json into a folder, which is made if it is missing. Each file
    appears whole or not at all; an older one is replaced. png: each picture as PNG too.

    Raises:
        HunchError: a file cannot be written, a further file's name is no plain one, or PNG cannot be drawn.
    """
    content = json.dumps(as_json(study, name, findings), ensure_ascii=False, indent=1, allow_nan=False)
    writers = [*writers_of(findings, png=png), (f"{name}.json", lambda path: _write_text(path, content + "\n"))]
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
        made = _ExportedReport(study, entry, levels)
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
            yield ExtraFile(name, plain_columns(columns), _Rows(made, table))


@dataclass(frozen=True)
class _ExportedReport:
    """A report for an export: made once, when the rows of its first table are iterated."""

    study: Study
    entry: ReportEntry
    levels: Mapping[str, str]

    @cached_property
    def tables(self) -> Sequence[Table]:
        """Its tables; none if it cannot be made, and the log then says why."""
        report, arguments = _loaded(self.entry), {}
        if self.levels and any(argument.name == "condition" for argument in report.arguments):
            arguments["condition"] = [in_words({factor: level}) for factor, level in self.levels.items()]
        without = "%s: %s has no rows in the export: %s"
        try:
            if obstacle := _obstacle(self.entry, report, self.study):
                logger.info(without, self.study.slug, self.entry.name, obstacle)  # No fault: it is not there yet.
                return ()
            return make(self.study, self.entry.name, arguments).tables
        except StateRefused as exc:
            logger.info(without, self.study.slug, self.entry.name, exc.message)
            return ()
        except HunchError as exc:
            logger.warning(without, self.study.slug, self.entry.name, exc.message)
            return ()


@dataclass(frozen=True)
class _Rows:
    """The rows of one exported table."""

    made: _ExportedReport
    table: str

    def __iter__(self) -> Iterator[Sequence[Any]]:
        for table in self.made.tables:
            if table.name == self.table:
                yield from rendering.file_rows(table)
