"""What a stage shows: candidate sets, strata, booklets, items and slots. Drawn before it opens, never changed after."""

from typing import Any

from django.contrib import admin

from survey.admin_base.read_only_admin import ReadOnlyAdmin, link_to
from survey.figures.words import number, percent, significant, spaced
from survey.models import Booklet, CandidateSet, Item, Slot, Stratum
from survey.services.base.rights import Right

from .filters import deferred_study, stage_filter, study_filter


def _short(value: float | None) -> str:
    """For a list; the row's own page has every digit."""
    return significant(value)


@admin.register(CandidateSet)
class CandidateSetAdmin(ReadOnlyAdmin):
    help = "study-file.md#candidates"
    list_display = (
        "stage",
        "kind",
        "size",
        "universe_size",
        "probability",
        "predictor_run",
        "ranks_like_the_predictor",
    )
    list_filter = (study_filter("stage__study"),)
    list_select_related = ("stage__study", "predictor_run__stage__study")
    deferred = (*deferred_study("stage__study"), *deferred_study("predictor_run__stage__study"))

    @admin.display(description="fast scorer against predictor")
    def ranks_like_the_predictor(self, candidates: CandidateSet) -> str:
        """Rank correlation with its interval, on fresh uniform pairs and on questions the fast scorer never saw."""
        parts = []
        for name, words in (("uniform", "fresh pairs"), ("unseen_questions", "unseen questions")):
            figures = candidates.fidelity.get(name)
            if figures and figures["spearman"] is not None:
                low, high = figures["spearman_interval"]
                parts.append(
                    f"{words}: Spearman {number(figures['spearman'], 3)} ({number(low, 3)} to {number(high, 3)}), "
                    f"{percent(figures['top_decile_recall'])} of the top tenth"
                )
        return "; ".join(parts) or "–"


@admin.register(Stratum)
class StratumAdmin(ReadOnlyAdmin):
    help = "study-file.md#stages"
    list_display = ("name", "stage", "size", "slots", "lowest_score", "mean_score", "highest_score")
    list_filter = (study_filter("stage__study"), stage_filter())
    list_select_related = ("stage__study",)
    deferred = deferred_study("stage__study")


@admin.register(Booklet)
class BookletAdmin(ReadOnlyAdmin):
    help = "study-file.md#sitting"
    right = Right.READ_ANSWERS  # It names the sitting.
    list_display = ("number", "stage", "kind", "claimed_at", "claimed_by")
    list_filter = (study_filter("stage__study"), stage_filter(), "kind", ("claimed_at", admin.EmptyFieldListFilter))
    list_select_related = ("stage__study", "sitting__respondent")
    deferred = deferred_study("stage__study")

    @admin.display(description="sitting")
    def claimed_by(self, booklet: Booklet) -> str:
        sitting = getattr(booklet, "sitting", None)
        return link_to(sitting, sitting.respondent.pseudonym) if sitting else "–"


@admin.register(Item)
class ItemAdmin(ReadOnlyAdmin):
    list_display = ("key", "study")
    list_filter = (study_filter(),)
    list_select_related = ("study",)
    deferred = deferred_study("study")
    search_fields = ("=key",)
    search_help_text = "By the whole key."


@admin.register(Slot)
class SlotAdmin(ReadOnlyAdmin):
    help = "estimates.md"
    list_display = (
        "number",
        "stage",
        "item",
        "role",
        "control",
        "repeated_slot",
        "stratum",
        "inclusion",
        "pool",
        "predicted",
        "booklet_number",
        "position",
    )
    list_filter = (study_filter("stage__study"), stage_filter(), "role", "control_kind")
    list_select_related = ("stage__study", "item", "stratum", "booklet", "repeat_of")
    deferred = deferred_study("stage__study")
    search_fields = ("=item__key",)
    search_help_text = "By the item's whole key."

    @admin.display(description="kind of control", ordering="control_kind")
    def control(self, slot: Slot) -> str:
        return spaced(slot.control_kind) or "–"

    @admin.display(description="repeats slot", ordering="repeat_of__number")
    def repeated_slot(self, slot: Slot) -> Any:
        return slot.repeat_of.number if slot.repeat_of else None

    @admin.display(description="inclusion p.", ordering="inclusion_probability")
    def inclusion(self, slot: Slot) -> str:
        return _short(slot.inclusion_probability)

    @admin.display(description="pool p.", ordering="pool_probability")
    def pool(self, slot: Slot) -> str:
        return _short(slot.pool_probability)

    @admin.display(description="score", ordering="score")
    def predicted(self, slot: Slot) -> str:
        return _short(slot.score)

    @admin.display(description="booklet", ordering="booklet__number")
    def booklet_number(self, slot: Slot) -> Any:
        return slot.booklet.number if slot.booklet else None
