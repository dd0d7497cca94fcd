"""The files of an export, one at a time, from the study page."""

from typing import Any

from django.http import Http404, HttpRequest, HttpResponseBase, HttpResponseNotAllowed, StreamingHttpResponse

from survey.contracts import instruments, panels
from survey.contracts.tables import ExtraFile
from survey.figures import csv_lines
from survey.models import Study
from survey.panels import owed_list
from survey.services.base import auditing, rights
from survey.services.base.rights import Right
from survey.services.results.export import codebook, contents, files
from survey.storage.database import written_patiently

from . import downloads


def files_of(study: Study, user: Any) -> list[str]:
    """The files that the user may have."""
    names = []
    if instruments.is_known(study.instrument) and rights.may(user, Right.EXPORT, study.pk):
        names = ["answers.csv", *(extra.name for extra in contents.file_heads(study)), "codebook.md"]
    owes = _has_owed_list(study) and rights.may(user, Right.SEE_POSTINGS, study.pk)
    return [*names, owed_list.FILE] if owes else names


def export_file(request: HttpRequest, study: Study, name: str) -> HttpResponseBase:
    """One file, streamed. By POST, since the audit records each download."""
    rights.require(request.user, Right.SEE_POSTINGS if name == owed_list.FILE else Right.EXPORT, study.pk)
    if request.method != "POST":
        return HttpResponseNotAllowed(["POST"])
    lines = _lines_of(study, name, with_pay=rights.may(request.user, Right.SEE_POSTINGS, study.pk))
    if lines is None:
        raise Http404
    is_guarded = downloads.is_guarded(request, name)
    auditing.record("export_answers", study, by=request.user, via="admin", form=name, guarded=is_guarded)
    kind = "text/markdown" if name.endswith(".md") else "text/csv"
    guarded_lines = map(csv_lines.guarded, lines) if is_guarded else lines
    response = StreamingHttpResponse(written_patiently(guarded_lines), content_type=f"{kind}; charset=utf-8")
    response["Content-Disposition"] = downloads.save_as(study, name, guarded=is_guarded)
    return response


def _has_owed_list(study: Study) -> bool:
    return panels.of_study(study).pays_from_a_list and not study.is_test


def _lines_of(study: Study, name: str, *, with_pay: bool) -> Any:
    """The lines of one file of the export; None if there is no such file."""
    if name == "answers.csv":
        return files.answers_csv(study)
    if name == "codebook.md":
        return iter([codebook.codebook_page(study)])
    if name == owed_list.FILE and _has_owed_list(study):
        rows = owed_list.rows_of(study, owed_list.owed_list(study))
        return files.streamed(ExtraFile(name, owed_list.COLUMNS, rows))
    extra = contents.file_named(study, name, with_pay=with_pay)
    return None if extra is None else files.streamed(extra)
