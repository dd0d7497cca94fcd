"""One page for every report of a study: a form for its arguments, its tables, pictures and files."""

import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from mimetypes import guess_type
from pathlib import Path
from types import MappingProxyType
from typing import Any

from django.contrib import messages
from django.core.files.uploadedfile import UploadedFile
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.safestring import SafeString

from survey.admin_base.read_only_admin import admin_page
from survey.contracts.reports import (
    Argument,
    Intake,
    Picture,
    ReceivedFile,
    Report,
    ReportResult,
    Table,
)
from survey.documents import pages as documents
from survey.exceptions import HunchError
from survey.figures import rendering
from survey.figures.csv_lines import guarded
from survey.figures.rendering import Sheet
from survey.models import Study
from survey.services.base import rights
from survey.services.base.rights import Right
from survey.services.results import reports

from . import downloads
from .pictures import NotAPicture, inline

WITHHELD = (
    "It holds what people wrote, so the page leaves it out: you may not export answers. That needs the role analyst in "
    "this study, and for your account the permission survey.export_study."
)


def help_of_report(parts: Mapping[str, Any]) -> str:
    """The section of this report in the documents; of a report that another package brings, the page of all."""
    page = documents.document("reading-reports")
    named = {anchor.rpartition("-")[2]: anchor for anchor in page.anchors} if page else {}
    anchor = named.get(parts.get("name", ""), "")
    return f"reading-reports.md#{anchor}" if anchor else "reading-reports.md"


@dataclass(frozen=True)
class Field:
    """An argument in the form, with its possible values, the chosen ones and what is wrong with them."""

    argument: Argument
    choices: Sequence[str] | Mapping[str, str]
    chosen: Sequence[str]
    errors: Sequence[str] = ()

    @property
    def options(self) -> list[tuple[str, str]]:
        """Each choice with what the page calls it."""
        words = self.choices if isinstance(self.choices, Mapping) else {}
        return [(choice, words.get(choice, choice)) for choice in self.choices]

    @property
    def text(self) -> str:
        return " ".join(self.chosen)


@dataclass(frozen=True)
class ShownTable:
    name: str
    title: str
    note: str
    sheets: Sequence[Sheet]


@dataclass(frozen=True)
class ShownPicture:
    """`svg` is empty if the page does not draw the picture; `why` then says the reason. `beside`: as in `Picture`."""

    name: str
    title: str
    text: str
    svg: SafeString | str
    why: str
    beside: str = ""


def take_files(request: HttpRequest, study: Study, name: str) -> HttpResponse:
    """Files that the report takes back. After a problem the page says what it is, and nothing is stored."""
    _entry, report = _found(study, name)
    if report.intake is None:
        raise Http404
    sent = request.FILES.getlist("files")
    try:
        taken = reports.take(study, name, _taken(sent, report.intake), by=request.user, via="admin")
    except HunchError as exc:
        return report_page(request, study, name, refused=exc.message)
    messages.success(request, taken)
    return HttpResponseRedirect(reverse("admin:survey_study_report", args=[study.pk, name]))


def report_page(request: HttpRequest, study: Study, name: str, *, refused: str = "") -> HttpResponse:
    """The report with the arguments in the address; its form leads to other addresses."""
    may_export = rights.may(request.user, Right.EXPORT, study.pk)
    entry, report = _found(study, name)
    findings, fields, problem = None, [], ""
    try:
        arguments = reports.pages_arguments(study, entry, report, _given(request), reader=request.user)
        choices_of = partial(reports.choices_of, study, entry, reader=request.user)
        fields = fields_of(report.arguments, arguments, choices_of)
        findings = reports.make_for_web(study, name, arguments, reader=request.user)
    except HunchError as exc:
        problem = in_labels(exc.message, report.arguments)
    return admin_page(
        request,
        "study/report.html",
        title=findings.title if findings else f"{entry.title}: {study.title}",
        study=study,
        entry=entry,
        fields=fields,
        problem=problem,
        refused=refused,
        intake=report.intake if may_export else None,
        status=422 if refused else 200,
        query=request.GET.urlencode(),
        may_export=may_export,
        **(_shown(findings, study, name, may_export=may_export) if findings else {}),
    )


def report_file(request: HttpRequest, study: Study, name: str, file: str) -> HttpResponse:
    """One file of the report, made with the same arguments as the page. By POST, since the audit records each
    download."""
    entry, report = _found(study, name)
    try:
        arguments = reports.pages_arguments(study, entry, report, _given(request), reader=request.user)
        findings = reports.make_for_web(study, name, arguments, reader=request.user)
    except HunchError as exc:
        raise Http404(exc.message) from exc
    writer = reports.file_of(findings, file)
    if writer is None or any(picture.heavy and f"{picture.name}.svg" == file for picture in findings.pictures):
        raise Http404
    content, is_guarded = _content(writer), downloads.is_guarded(request, file)
    response = HttpResponse(guarded(content.decode()) if is_guarded else content, content_type=kind_of(file))
    reports.record_reading(study, name, _given(request), by=request.user, via="admin", file=file)
    response["Content-Disposition"] = downloads.save_as(study, file, guarded=is_guarded)
    return response


def _found(study: Study, name: str) -> tuple[Any, Report]:
    try:
        return reports.load(study, name)
    except HunchError as exc:
        raise Http404(exc.message) from exc


def _taken(sent: Sequence[UploadedFile], intake: Intake) -> list[ReceivedFile]:
    """What was sent; of a file that is too large one byte more than is taken, so that it is refused."""
    return [ReceivedFile(Path(file.name or "").name, file.read(intake.largest + 1)) for file in sent]


def _given(request: HttpRequest) -> dict[str, Sequence[str]]:
    return {name: request.GET.getlist(name) for name in request.GET}


def fields_of(
    arguments: Sequence[Argument],
    entered: Mapping[str, Sequence[str]],
    choices_of: Callable[[Argument], Sequence[str] | Mapping[str, str]],
    errors: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> list[Field]:
    """The arguments as a form asks for them. One whose list of choices is empty is not shown."""
    return [
        Field(
            argument,
            choices,
            entered.get(argument.name) or ([argument.default] if argument.default else []),
            errors.get(argument.name, ()),
        )
        for argument in arguments
        if (choices := choices_of(argument)) or argument.choices is None
    ]


def in_labels(message: str, arguments: Sequence[Argument]) -> str:
    """The message with the label of an argument in place of its name, where a line of it begins so."""
    labels = {argument.name: argument.title for argument in arguments}
    lines = (line.partition(": ") for line in message.split("\n"))
    return "\n".join(f"{labels.get(name, name)}{colon}{rest}" for name, colon, rest in lines)


def _shown(findings: ReportResult, study: Study, name: str, *, may_export: bool) -> dict[str, Any]:
    command = f"`hunch report {study.slug} {name} --out DIR`"
    return {
        "headline": findings.headline,
        "lines": findings.lines,
        "notes": findings.notes,
        "tables": [_table(table, may_export=may_export) for table in findings.tables],
        "picture_groups": _beside(drawn(picture, command) for picture in findings.pictures),
        "files": [*(file.name for file in findings.files), reports.MARKDOWN],
    }


def _beside(pictures: Iterable[ShownPicture]) -> list[list[ShownPicture]]:
    """Each picture, and together those that stand side by side."""
    groups: dict[str, list[ShownPicture]] = {}
    for picture in pictures:
        groups.setdefault(picture.beside or picture.name, []).append(picture)
    return list(groups.values())


def _table(table: Table, *, may_export: bool) -> ShownTable:
    if table.verbatim and not may_export:
        return ShownTable(table.name, table.title, WITHHELD, [])
    return ShownTable(table.name, table.title, table.note, rendering.sheets_of(table))


def drawn(picture: Picture, command: str) -> ShownPicture:
    if picture.heavy:
        return ShownPicture(picture.name, picture.title, picture.text, "", f"{command} draws it as {picture.name}.svg.")
    try:
        svg, why = inline(_content(picture.draw).decode()), ""
    except (NotAPicture, UnicodeDecodeError) as exc:
        svg, why = SafeString(), f"It cannot be shown here: {exc}."
    return ShownPicture(picture.name, picture.title, picture.text, svg, why, picture.beside)


def _content(write: Any) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "file"
        write(target)
        return target.read_bytes()


def kind_of(file: str) -> str:
    kind = {".csv": "text/csv", ".svg": "image/svg+xml"}.get(Path(file).suffix) or guess_type(file)[0]
    if kind is None:
        return "application/octet-stream"
    return f"{kind}; charset=utf-8" if kind.startswith("text/") or kind == "image/svg+xml" else kind
