"""The page of a study's estimates: the stored figures, which may be out of date, and groups of people. Its tables are
those of the report `estimates`, which has the files."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse

from survey.admin_base.read_only_admin import admin_page
from survey.contracts import instruments
from survey.exceptions import HunchError
from survey.figures import rendering
from survey.models import Study
from survey.services.answers.conditions import pairs_of
from survey.services.base import rights
from survey.services.base.rights import Right
from survey.services.results import reports
from survey.services.results.estimates import headlines, stored_estimates, study_estimates
from survey.services.results.estimates.estimate_tables import tables_of
from survey.services.results.estimates.people_groups import people_questions

from . import report_pages


def page(request: HttpRequest, study: Study) -> HttpResponse:
    """What the answers say about all items."""
    may_see_people = rights.may(request.user, Right.EXPORT, study.pk)
    by, condition = request.GET.getlist("by"), request.GET.getlist("condition")
    return admin_page(
        request,
        "study/estimates.html",
        title=f"Estimates: {study.title}",
        study=study,
        opening=reports.find_entry(study, reports.ESTIMATES).opening,
        **context(study, by, condition, may_see_people=may_see_people),
    )


def context(
    study: Study, by: Sequence[str], condition: Sequence[str] = (), *, may_see_people: bool = False
) -> dict[str, Any]:
    """What the page shows: all figures and, for each part of the divisions in `by`, those of the first threshold.

    Args:
        may_see_people: whether the reader may see single people's answers. A reader without this right gets no groups
            by form answers: the figures of a small group could be computed from those of the others.
    """
    if problem := instruments.problem_with(study.instrument):
        return {"problem": problem}
    own = study_estimates.own_divisions(study)
    questions = [*people_questions(study, own).values()] if may_see_people else []
    values: dict[str, Any] = {
        "divisions": own,
        "questions": questions,
        "by": [*dict.fromkeys(by)],
        "conditions": pairs_of(study),
        "condition": [*dict.fromkeys(condition)],
    }
    if not may_see_people and set(by) & {*people_questions(study, own)}:
        problem = "Figures by people's answers are for members who may export: ask an owner for the role of an analyst."
        return {**values, "problem": problem}
    try:
        stored = stored_estimates.shown_estimates(study, by=values["by"], condition=values["condition"])
    except HunchError as exc:
        return {**values, "problem": exc.message}
    estimates: Any = instruments.of_study(study).estimates
    picture = headlines.picture(stored.report, estimates)
    return {
        **values,
        "stored": stored,
        "report": stored.report,
        "headlines": [*headlines.sentences(stored.report, estimates)],
        "picture": picture and report_pages.drawn(picture, ""),
        "as_files": _query([name for name in values["by"] if name in own], values["condition"]),
        "tables": [(table, rendering.sheets_of(table)) for table in tables_of(stored.report)],
    }


def _query(by: Sequence[str], condition: Sequence[str]) -> str:
    """What the report with all figures is asked for, as the end of its address."""
    asked = urlencode({"by": by, "condition": condition}, doseq=True)
    return f"?{asked}" if asked else ""
