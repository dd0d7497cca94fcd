"""Reports by respondents about questions: counts for each question, and their own words."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse

from survey.admin_base.read_only_admin import ReadOnlyAdmin, shortened
from survey.models import QuestionReport, Study
from survey.services.base import rights
from survey.services.base.rights import Right
from survey.services.results.pilots.commented_questions import reports_by_question

from .filters import deferred_study, study_filter


@admin.register(QuestionReport)
class QuestionReportAdmin(ReadOnlyAdmin):
    """Nobody but researchers sees these. A question that is broken is flagged on its own page."""

    help = "tour.md#people"
    change_list_template = "admin/survey/questionreport/list.html"
    list_display = ("text_in_short", "item", "screen", "respondent", "stage", "at")
    list_filter = (study_filter("sitting__stage__study"),)
    list_select_related = ("assignment__slot__item", "sitting__respondent", "sitting__stage__study")
    deferred = deferred_study("sitting__stage__study")
    search_fields = ("text", "=assignment__slot__item__key", "sitting__respondent__pseudonym__startswith")
    search_help_text = "By words of the report, an item's key, or the beginning of a pseudonym."
    fields = ("sitting", "assignment", "item", "screen", "text", "at")
    readonly_fields = ("item",)

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        studies = rights.visible(request.user, Study.objects.all(), Right.READ_ANSWERS)
        slug = request.GET.get("study")
        studies = studies.filter(slug=slug) if slug else studies.filter(test_of__isnull=True)
        counted = reports_by_question(studies)
        return super().changelist_view(request, {**(extra_context or {}), "reported": counted})

    @admin.display(description="report", ordering="text")
    def text_in_short(self, report: QuestionReport) -> str:
        return shortened(report.text)

    @admin.display(ordering="assignment__slot__item__key")
    def item(self, report: QuestionReport) -> str:
        return report.assignment.slot.item.key

    @admin.display(ordering="sitting__respondent__pseudonym")
    def respondent(self, report: QuestionReport) -> str:
        return report.sitting.respondent.pseudonym

    @admin.display(ordering="sitting__stage")
    def stage(self, report: QuestionReport) -> str:
        return str(report.sitting.stage)
