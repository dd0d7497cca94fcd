"""Comparisons of tokens and what people said of them, in the admin, read-only."""

from typing import Any

from django.contrib import admin
from django.utils.safestring import SafeString

from survey.admin_base.read_only_admin import ReadOnlyAdmin, link_to

from .models import StatedChance, TokenPair


@admin.register(TokenPair)
class TokenPairAdmin(ReadOnlyAdmin):
    help = "token-comparison.md"
    list_display = ("item", "linked_text", "true_token", "other_text", "multiplicity")
    list_select_related = ("item", "question", "context")
    search_fields = ("=question__external_id", "=item__key")
    search_help_text = "By the whole id of a text or the whole key of the item."

    @admin.display(description="text")
    def linked_text(self, pair: TokenPair) -> SafeString | str:
        return link_to(pair.question)

    @admin.display
    def true_token(self, pair: TokenPair) -> str:
        return pair.context.true_text


@admin.register(StatedChance)
class StatedChanceAdmin(ReadOnlyAdmin):
    help = "token-comparison.md"
    list_display = ("respondent", "percent_left", "true_is_left", "reward", "answered_at")
    list_filter = ("true_is_left",)
    list_select_related = ("response__assignment__sitting__respondent",)
    search_fields = ("response__assignment__sitting__respondent__pseudonym__startswith",)
    search_help_text = "By the beginning of the pseudonym."

    @admin.display
    def respondent(self, stated: StatedChance) -> str:
        return stated.response.assignment.sitting.respondent.pseudonym

    @admin.display(ordering="response__answered_at")
    def answered_at(self, stated: StatedChance) -> Any:
        return stated.response.answered_at
