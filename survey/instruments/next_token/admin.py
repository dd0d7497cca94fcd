"""Guesses in the admin, read-only."""

from typing import Any

from django.contrib import admin
from django.utils.safestring import SafeString

from survey.admin_base.read_only_admin import ReadOnlyAdmin, link_to

from .models import TokenGuess, TokenRun


@admin.register(TokenRun)
class TokenRunAdmin(ReadOnlyAdmin):
    help = "next-token.md"
    list_display = ("item", "linked_passage", "start", "length")
    list_select_related = ("item", "question")
    search_fields = ("=question__external_id", "=item__key")
    search_help_text = "By the whole id of a passage or the whole key of the item."

    @admin.display(description="passage")
    def linked_passage(self, run: TokenRun) -> SafeString | str:
        return link_to(run.question)


@admin.register(TokenGuess)
class TokenGuessAdmin(ReadOnlyAdmin):
    help = "next-token.md"
    list_display = ("respondent", "position", "text", "right", "answered_at")
    list_filter = ("right",)
    list_select_related = ("response__assignment__sitting__respondent",)
    search_fields = ("response__assignment__sitting__respondent__pseudonym__startswith",)
    search_help_text = "By the beginning of the pseudonym."

    @admin.display
    def respondent(self, guess: TokenGuess) -> str:
        return guess.response.assignment.sitting.respondent.pseudonym

    @admin.display(ordering="response__answered_at")
    def answered_at(self, guess: TokenGuess) -> Any:
        return guess.response.answered_at
