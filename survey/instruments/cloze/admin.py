"""Words that people wrote and what models expect, in the admin, read-only."""

from typing import Any

from django.contrib import admin
from django.utils.safestring import SafeString

from survey.admin_base.read_only_admin import ReadOnlyAdmin, link_to

from .models import AskedWord, WrittenWord


@admin.register(AskedWord)
class AskedWordAdmin(ReadOnlyAdmin):
    help = "cloze.md"
    list_display = ("item", "linked_sentence", "position")
    list_select_related = ("item", "question")
    search_fields = ("=question__external_id", "=item__key")
    search_help_text = "By the whole id of a sentence or the whole key of the item."

    @admin.display(description="sentence")
    def linked_sentence(self, asked: AskedWord) -> SafeString | str:
        return link_to(asked.question)


@admin.register(WrittenWord)
class WrittenWordAdmin(ReadOnlyAdmin):
    help = "cloze.md"
    list_display = ("respondent", "text", "several", "answered_at")
    list_filter = ("several",)
    list_select_related = ("response__assignment__sitting__respondent",)
    search_fields = ("response__assignment__sitting__respondent__pseudonym__startswith",)
    search_help_text = "By the beginning of the pseudonym."

    @admin.display
    def respondent(self, word: WrittenWord) -> str:
        return word.response.assignment.sitting.respondent.pseudonym

    @admin.display(ordering="response__answered_at")
    def answered_at(self, word: WrittenWord) -> Any:
        return word.response.answered_at
