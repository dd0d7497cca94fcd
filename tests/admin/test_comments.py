"""Reports on questions: counted by question and read in their words, by researchers alone."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from survey.models import Assignment, QuestionReport, Study

from .test_pages import FEW

pytestmark = pytest.mark.slow

LIST = "/admin/survey/questionreport/"


@pytest.fixture
def reported(study: Study) -> list[Assignment]:
    """Every item of the study that was given to somebody, the first one reported twice."""
    assignments = list(Assignment.objects.select_related("slot__item__pair__target").order_by("pk"))
    QuestionReport.objects.bulk_create(
        QuestionReport(
            sitting_id=assignment.sitting_id,
            assignment=assignment,
            screen="prior",
            text=f"<i>odd</i> {number}",
            at=timezone.now(),
        )
        for assignment in assignments
        for number in range(2 if assignment == assignments[0] else 1)
    )
    return assignments


def test_the_questions_with_the_most_reports_stand_above_the_reports(
    reported: list[Assignment], as_researcher: Client
) -> None:
    with CaptureQueriesContext(connection) as queries:
        response = as_researcher.get(LIST)
    assert len(queries) <= FEW, [query["sql"][:100] for query in queries]
    assert response.context["cl"].result_count == len(reported) + 1
    counted = response.context["reported"]
    assert counted[0].reports == max(count.reports for count in counted) >= 2
    target = reported[0].slot.item.pair.target
    assert {count.question.pk: count.reports for count in counted}[target.pk] >= 2
    body = response.content.decode()
    assert "&lt;i&gt;odd&lt;/i&gt;" in body and "<i>odd</i>" not in body
    assert f'<a href="/admin/survey/question/{target.pk}/change/">{target.external_id}</a>' in body


def test_another_studys_reports_are_left_out(reported: list[Assignment], as_researcher: Client) -> None:
    assert as_researcher.get(LIST, {"study": "cast"}).context["reported"]
    assert as_researcher.get(LIST, {"study": "stranger"}).context["reported"] == []


def test_a_sittings_page_shows_its_reports(reported: list[Assignment], as_researcher: Client) -> None:
    body = as_researcher.get(f"/admin/survey/sitting/{reported[0].sitting_id}/change/").content.decode()
    assert "&lt;i&gt;odd&lt;/i&gt; 1" in body
