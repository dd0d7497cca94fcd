"""Comparisons, people's judgements and judges' verdicts in the admin, read-only."""

from typing import Any

from django.contrib import admin
from django.utils.safestring import SafeString

from survey.admin_base.read_only_admin import ReadOnlyAdmin, link_to

from .models import JudgeVerdict, ReplyComparison, ReplyJudgement


@admin.register(ReplyComparison)
class ComparisonAdmin(ReadOnlyAdmin):
    help = "preference.md"
    list_display = ("item", "linked_question", "model_a", "model_b")
    list_select_related = ("item", "question", "a__language_model", "b__language_model")
    search_fields = ("=question__external_id", "=item__key")
    search_help_text = "By the whole id of a prompt or the whole key of the item."

    @admin.display(description="prompt")
    def linked_question(self, comparison: ReplyComparison) -> SafeString | str:
        return link_to(comparison.question)

    @admin.display(description="A")
    def model_a(self, comparison: ReplyComparison) -> str:
        return comparison.a.language_model.name

    @admin.display(description="B")
    def model_b(self, comparison: ReplyComparison) -> str:
        return comparison.b.language_model.name


@admin.register(ReplyJudgement)
class JudgementAdmin(ReadOnlyAdmin):
    help = "preference.md"
    list_display = ("respondent", "place", "a_first", "cannot_judge", "answered_at")
    list_filter = ("cannot_judge", "a_first")
    list_select_related = ("response__assignment__sitting__respondent",)
    search_fields = ("response__assignment__sitting__respondent__pseudonym__startswith",)
    search_help_text = "By the beginning of the pseudonym."

    @admin.display
    def respondent(self, judgement: ReplyJudgement) -> str:
        return judgement.response.assignment.sitting.respondent.pseudonym

    @admin.display(ordering="response__answered_at")
    def answered_at(self, judgement: ReplyJudgement) -> Any:
        return judgement.response.answered_at


@admin.register(JudgeVerdict)
class VerdictAdmin(ReadOnlyAdmin):
    help = "preference.md"
    list_display = ("judge", "template", "prompt", "model_a", "model_b", "first", "towards_a", "created_at")
    list_filter = ("template", "judge")
    list_select_related = ("judge", "a__question", "a__language_model", "b__language_model")
    search_fields = ("=a__question__external_id",)
    search_help_text = "By the whole id of a prompt."

    @admin.display
    def prompt(self, verdict: JudgeVerdict) -> str:
        return verdict.a.question.external_id

    @admin.display(description="A")
    def model_a(self, verdict: JudgeVerdict) -> str:
        return verdict.a.language_model.name

    @admin.display(description="B")
    def model_b(self, verdict: JudgeVerdict) -> str:
        return verdict.b.language_model.name
