"""Pairs and beliefs in the admin, read-only. The aid of a pair tells of a condition, so that blind studies hide it."""

from typing import Any

from django.contrib import admin
from django.utils.safestring import SafeString

from survey.admin_base.read_only_admin import ReadOnlyAdmin, link_to
from survey.services.answers.blinding import HIDDEN

from .models import Aid, Belief, Pair


@admin.register(Pair)
class PairAdmin(ReadOnlyAdmin):
    help = "belief-in-steps.md#items-plans-and-what-is-learnt"
    list_display = ("item", "evidence_question", "outcome", "target_question")
    list_filter = ("outcome",)
    list_select_related = ("item", "evidence", "target")
    search_fields = ("=evidence__external_id", "=target__external_id", "=item__key")
    search_help_text = "By the whole id of a question or the whole key of the item."
    readonly_fields = ("shown_aid",)

    @admin.display(description="aid next to the target")
    def shown_aid(self, pair: Pair) -> str:
        """What it says to a person who is in an arm with an aid."""
        if pair.item.study.is_blind:
            return HIDDEN
        stored = Aid.objects.filter(pair=pair).first()
        if stored is None:
            return "none"
        return (
            f"{stored.language_model} was right on {stored.right} of the {stored.asked} most similar questions, "
            f"{stored.get_similarity_display()}: {', '.join(stored.questions)}"
        )

    @admin.display(description="evidence")
    def evidence_question(self, pair: Pair) -> SafeString | str:
        return link_to(pair.evidence)

    @admin.display(description="target")
    def target_question(self, pair: Pair) -> SafeString | str:
        return link_to(pair.target)


@admin.register(Belief)
class BeliefAdmin(ReadOnlyAdmin):
    help = "how-a-study-runs.md#what-happens-to-an-answer"
    list_display = ("respondent", "kind", "value", "direction", "entered_by", "answered_at")
    list_filter = ("kind", "direction", "entered_by")
    list_select_related = ("response__assignment__sitting__respondent",)
    search_fields = ("response__assignment__sitting__respondent__pseudonym__startswith",)
    search_help_text = "By the beginning of the pseudonym."

    @admin.display
    def respondent(self, belief: Belief) -> str:
        return belief.response.assignment.sitting.respondent.pseudonym

    @admin.display(ordering="response__answered_at")
    def answered_at(self, belief: Belief) -> Any:
        return belief.response.answered_at
