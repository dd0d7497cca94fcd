"""Flags in the list of sittings."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from survey.admin_base.read_only_admin import ReadOnlyAdmin
from survey.models import Sitting
from survey.services.answers.sitting_flags import flags_of, marks_of
from survey.study_file import FLAGS

ANY, NONE, EXCLUDED = "any", "none", "excluded"


class FlagFilter(admin.SimpleListFilter):
    """By the flags as they are now. No table stores them: they are computed for all sittings that are left to show."""

    title = "flag"
    parameter_name = "flag"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [
            *((name, name.replace("_", " ")) for name in FLAGS),
            (ANY, "any flag"),
            (NONE, "no flag"),
            (EXCLUDED, "excluded when frozen"),
        ]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value = self.value()
        if value == EXCLUDED:
            return queryset.filter(exclusion__isnull=False)
        if value not in (*FLAGS, ANY, NONE):
            return queryset
        flags_by_sitting = flags_of(queryset.order_by().values_list("pk", flat=True))
        if value in (ANY, NONE):
            wanted = [pk for pk, flags in flags_by_sitting.items() if bool(flags) == (value == ANY)]
        else:
            wanted = [pk for pk, flags in flags_by_sitting.items() if value in flags]
        return queryset.filter(pk__in=wanted)


class FlaggedSittings(ReadOnlyAdmin):
    """Base of the sittings' admin: reads the flags of all rows of a list at once."""

    # A study's rules are read together with the rows, not in a separate query.
    deferred = ("stage__study__source_text",)

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        changelist = super().get_changelist_instance(request)
        rows = list(changelist.result_list)
        studies = {row.stage.study_id: row.stage.study for row in rows}
        for pk, study in studies.items():
            own = [row for row in rows if row.stage.study_id == pk]
            marks = marks_of(study, [row.pk for row in own])
            for row in own:
                row.known_flags = marks.get(row.pk, ())
        changelist.result_list = rows  # Django only iterates over it.
        return changelist

    @admin.display(description="flags")
    def flags(self, sitting: Sitting) -> str:
        known = getattr(sitting, "known_flags", None)
        flags = flags_of([sitting.pk])[sitting.pk] if known is None else known
        return ", ".join(name.replace("_", " ") for name in flags) or "–"
