"""Passages, the times of words and the answers to questions, in the admin, read-only."""

from typing import Any

from django.contrib import admin
from django.utils.safestring import SafeString

from survey.admin_base.read_only_admin import ReadOnlyAdmin, link_to
from survey.figures.words import number

from .models import PassageAnswer, ReadPassage, WordTimes


@admin.register(ReadPassage)
class ReadPassageAdmin(ReadOnlyAdmin):
    help = "self-paced-reading.md"
    list_display = ("item", "linked_passage")
    list_select_related = ("item", "question")
    search_fields = ("=question__external_id", "=item__key")
    search_help_text = "By the whole id of a passage or the whole key of the item."

    @admin.display(description="passage")
    def linked_passage(self, passage: ReadPassage) -> SafeString | str:
        return link_to(passage.question)


class _OfResponse(ReadOnlyAdmin):
    help = "self-paced-reading.md"
    list_select_related = ("response__assignment__sitting__respondent",)
    search_fields = ("response__assignment__sitting__respondent__pseudonym__startswith",)
    search_help_text = "By the beginning of the pseudonym."

    @admin.display
    def respondent(self, row: Any) -> str:
        return str(row.response.assignment.sitting.respondent.pseudonym)

    @admin.display(ordering="response__answered_at")
    def answered_at(self, row: Any) -> Any:
        return row.response.answered_at


@admin.register(WordTimes)
class WordTimesAdmin(_OfResponse):
    list_display = ("respondent", "words", "seconds", "marked", "means", "answered_at")
    list_filter = ("means",)

    @admin.display
    def words(self, row: WordTimes) -> int:
        return len(row.times)

    @admin.display
    def seconds(self, row: WordTimes) -> str:
        return number(sum(row.times) / 1000, 1)

    @admin.display(description="marks")
    def marked(self, row: WordTimes) -> str:
        return ", ".join(row.marks)


@admin.register(PassageAnswer)
class PassageAnswerAdmin(_OfResponse):
    list_display = ("respondent", "yes", "right", "answered_at")
    list_filter = ("right",)
