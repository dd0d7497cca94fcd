"""The answers of a study as a table: filtered, searched, sorted; and what is listed as a file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.urls import reverse

from survey.admin_base.read_only_admin import admin_page, shortened
from survey.contracts import instruments
from survey.contracts.tables import Column
from survey.exceptions import HunchError
from survey.figures import csv_lines
from survey.figures.words import date_and_time
from survey.models import Assignment, Stage, Study
from survey.services.answers.conditions import pairs_of, read_condition
from survey.services.base import auditing, rights
from survey.services.base.rights import Right
from survey.services.results.export import files
from survey.services.results.export.answer_list import COUNTS, NOT, PILOT, REASONS, SORTS, AnswerList, Selection
from survey.storage.database import written_patiently

from . import downloads

PER_PAGE = 50
LONG = 140  # characters of a text that stand in the table; the rest is folded
FILE = "listed_answers.csv"
FILTERS = ("stage", "counts", "condition", "person", "words")


@dataclass(frozen=True)
class Head:
    """Above a column: its title, what it means, and the link that sorts by it, if it can be sorted."""

    title: str
    description: str
    is_number: bool
    link: str = ""
    order: str = ""


@dataclass(frozen=True)
class Cell:
    """`short` stands for a long text until a reader asks for all of it."""

    head: Head
    text: str
    short: str = ""


@dataclass(frozen=True)
class Line:
    """An answer, with the keys of what its links lead to."""

    assignment: int
    sitting: int
    person: str
    cells: Sequence[Cell]


class _Rows:
    """What a paginator needs: how many there are, and some of their keys."""

    def __init__(self, listed: AnswerList) -> None:
        self.listed = listed

    def count(self) -> int:
        return self.listed.count()

    def __len__(self) -> int:
        return self.count()

    def __getitem__(self, part: slice) -> list[int]:
        return self.listed.keys(part.start, part.stop)


def page(request: HttpRequest, study: Study) -> HttpResponse:
    problem = instruments.problem_with(study.instrument)
    if problem:
        return admin_page(request, "study/answers.html", title=f"Answers of {study.slug}", study=study, problem=problem)
    stages = _stages(study)
    asked = {name: request.GET.get(name, "").strip() for name in (*FILTERS, "sort")}
    selection, remark = _selection(study, stages, asked)
    listed = AnswerList(study, stages, selection)
    paginator: Any = Paginator(_Rows(listed), PER_PAGE)  # type: ignore[arg-type]
    part = paginator.get_page(request.GET.get("page"))
    rows = [] if remark else listed.rows(part.object_list)
    heads = [_head(column, listed.headings, asked) for column in listed.columns]
    return admin_page(
        request,
        "study/answers.html",
        title=f"Answers of {study.slug}",
        study=study,
        remark=remark,
        asked=asked,
        stages=stages,
        conditions=pairs_of(study),
        reasons=_reasons(stages),
        has_questions=bool(listed.instrument.rows.questions),
        heads=heads,
        lines=[_line(answer, values, heads, listed.columns) for answer, values in rows],
        part=part,
        others=_address(asked, page=""),
        undecided=[stage for stage in stages if study.config.exclusions.flags and _is_undecided(stage)],
        may_export=rights.may(request.user, Right.EXPORT, study.pk),
        file=FILE,
        file_address=f"{reverse('admin:survey_study_answers_file', args=[study.pk])}{_address(asked)}",
    )


def take(request: HttpRequest, study: Study) -> HttpResponseBase:
    """What the page lists, all pages of it, as a file. The audit records it with what was chosen."""
    instruments.kind(study.instrument)
    stages = _stages(study)
    asked = {name: request.GET.get(name, "").strip() for name in (*FILTERS, "sort")}
    selection, remark = _selection(study, stages, asked)
    if remark:
        return page(request, study)
    is_guarded = downloads.is_guarded(request, FILE)
    chosen = {name: value for name, value in asked.items() if value}
    auditing.record("export_answers", study, by=request.user, via="admin", form=FILE, guarded=is_guarded, chosen=chosen)
    lines = files.streamed(AnswerList(study, stages, selection).table(FILE))
    guarded_lines = map(csv_lines.guarded, lines) if is_guarded else lines
    response = StreamingHttpResponse(written_patiently(guarded_lines), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = downloads.save_as(study, FILE, guarded=is_guarded)
    return response


def _stages(study: Study) -> list[Stage]:
    stages = list(study.stages.exclude(state=Stage.State.DRAFT).order_by("index"))
    for stage in stages:
        stage.study = study
    return stages


def _is_undecided(stage: Stage) -> bool:
    return stage.state != Stage.State.FROZEN and not stage.is_pilot


def _reasons(stages: Sequence[Stage]) -> list[tuple[str, str]]:
    has_pilots = any(stage.is_pilot for stage in stages)
    reasons = [(name, words) for name, words in REASONS.items() if name != PILOT or has_pilots]
    return [(COUNTS, "counts"), (NOT, "does not count"), *((name, f"not: {words}") for name, words in reasons)]


def _selection(study: Study, stages: Sequence[Stage], asked: Mapping[str, str]) -> tuple[Selection, str]:
    """What the address asks for, and what of it could not be read; then nothing is listed."""
    remark, levels = "", {}
    if asked["condition"]:
        try:
            levels = read_condition(study, [asked["condition"]])
        except HunchError as exc:
            remark = exc.message
    stage = next((stage.index for stage in stages if str(stage.index) == asked["stage"]), None)
    if asked["stage"] and stage is None:
        remark = f"stage: {shortened(asked['stage'], 20)} is no stage of {study.slug} that has answers; choose another"
    sort = asked["sort"].removeprefix("-")
    selection = Selection(
        stage=stage,
        counts=asked["counts"] if asked["counts"] in (COUNTS, NOT, *REASONS) else "",
        levels=levels,
        person=asked["person"],
        words=asked["words"],
        sort=sort if sort in SORTS else "",
        descending=asked["sort"].startswith("-"),
    )
    return selection, remark


def _address(asked: Mapping[str, str], **changes: str) -> str:
    return "?" + urlencode({name: value for name, value in {**asked, **changes}.items() if value})


def _head(column: Column, headings: Mapping[str, str], asked: Mapping[str, str]) -> Head:
    title = headings.get(column.name, column.title)
    title = title[:1].upper() + title[1:]
    is_number = column.type in ("whole", "number") and column.kind != "0 or 1"
    if column.name not in SORTS:
        return Head(title, column.description, is_number)
    is_up, is_down = asked["sort"] == column.name, asked["sort"] == f"-{column.name}"
    link = _address(asked, sort=f"-{column.name}" if is_up else column.name)
    return Head(title, column.description, is_number, link, "ascending" if is_up else "descending" if is_down else "")


def _line(assignment: Assignment, values: Sequence[Any], heads: Sequence[Head], columns: Sequence[Column]) -> Line:
    cells = []
    for head, column, value in zip(heads, columns, values, strict=True):
        if column.name == "completed_at":
            text = f"{date_and_time(assignment.completed_at)}" if assignment.completed_at else column.text(None)
        elif column.kind == "0 or 1" and value is not None:
            text = "yes" if int(value) else "no"
        else:
            text = column.text(value)
        short = shortened(text, LONG)
        cells.append(Cell(head, text, short if len(text) > LONG else ""))
    return Line(assignment.pk, assignment.sitting_id, assignment.sitting.respondent.pseudonym, cells)
