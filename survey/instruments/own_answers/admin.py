"""People's own answers in the admin, read-only."""

from typing import Any

from django.contrib import admin
from django.utils.safestring import SafeString

from survey.admin_base.read_only_admin import ReadOnlyAdmin, link_to

from .models import AskedQuestion, OwnAnswer


@admin.register(AskedQuestion)
class AskedQuestionAdmin(ReadOnlyAdmin):
    help = "language-models.md#humans-about-humans"
    list_display = ("item", "linked_question", "copy")
    list_select_related = ("item", "question")
    search_fields = ("=question__external_id", "=item__key")
    search_help_text = "By the whole id of a question or the whole key of the item."

    @admin.display(description="question")
    def linked_question(self, asked: AskedQuestion) -> SafeString | str:
        return link_to(asked.question)


@admin.register(OwnAnswer)
class OwnAnswerAdmin(ReadOnlyAdmin):
    help = "language-models.md#humans-about-humans"
    list_display = ("respondent", "text", "stated", "correct", "confidence", "answered_at")
    list_filter = ("correct",)
    list_select_related = ("response__assignment__sitting__respondent",)
    search_fields = ("response__assignment__sitting__respondent__pseudonym__startswith",)
    search_help_text = "By the beginning of the pseudonym."

    @admin.display
    def respondent(self, answer: OwnAnswer) -> str:
        return answer.response.assignment.sitting.respondent.pseudonym

    @admin.display(ordering="response__answered_at")
    def answered_at(self, answer: OwnAnswer) -> Any:
        return answer.response.answered_at
