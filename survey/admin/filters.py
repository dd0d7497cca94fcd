"""Filters of the lists: by study, stage and task. Each needs one query, not a query for every name."""

from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest

from survey.models import Stage, Study, Task
from survey.services.answers.blinding import shown_conditions
from survey.services.base import rights

STUDY = ("source_text", "stored_config")


def deferred_study(path: str) -> tuple[str, ...]:
    """The large columns of a joined study."""
    return tuple(f"{path}__{column}" for column in STUDY)


class KnownValueFilter(admin.SimpleListFilter):
    """A filter that accepts only the values it offers; any other value in the address is ignored."""

    path: str

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value = self.value()
        if value is None or value not in {str(key) for key, _label in self.lookup_choices}:
            return queryset
        return queryset.filter(**{self.path: value})


def study_filter(field: str = "study") -> type[KnownValueFilter]:
    class StudyFilter(KnownValueFilter):
        """Without a study, the list is of all but test copies; a test copy is chosen by the address of its page."""

        title = "study"
        parameter_name = "study"
        path = f"{field}__slug"

        def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
            studies = rights.visible(request.user, Study.objects.order_by("slug"), model_admin.right)
            rows = list(studies.values_list("pk", "slug", "test_of"))
            self.copies = [pk for pk, _slug, original in rows if original is not None]
            chosen = request.GET.get("study")
            return [(slug, slug) for _pk, slug, original in rows if original is None or slug == chosen]

        def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
            filtered = super().queryset(request, queryset)
            # By their keys: a list of answers would otherwise join the studies of all of them.
            return (
                filtered.exclude(**{f"{field}__in": self.copies}) if filtered is queryset and self.copies else filtered
            )

    return StudyFilter


class TestCopyFilter(admin.SimpleListFilter):
    """Test copies are in no list of studies, unless somebody asks for them."""

    __test__ = False  # Its name would make pytest collect it.
    title = "kind"
    parameter_name = "copies"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("only", "Test copies")]

    def choices(self, changelist: Any) -> Any:
        first, *others = super().choices(changelist)
        yield {**first, "display": "Studies"}
        yield from others

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(test_of__isnull=self.value() != "only")


def stage_filter(field: str = "stage") -> type[KnownValueFilter]:
    class StageFilter(KnownValueFilter):
        title = "stage"
        parameter_name = "stage"
        path = f"{field}__pk"

        def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
            stages = rights.visible(request.user, Stage.objects.order_by("study__slug", "index"), model_admin.right)
            slug = request.GET.get("study")
            stages = stages.filter(study__slug=slug) if slug else stages.filter(study__test_of__isnull=True)
            rows = stages.values_list("pk", "study__slug", "index")
            return [(str(pk), f"{name} stage {index}") for pk, name, index in rows]

    return StageFilter


def level_filter(*paths: str) -> type[admin.SimpleListFilter]:
    """By FACTOR=LEVEL. `paths`: the relations to levels, any of which may hold it."""

    class LevelFilter(admin.SimpleListFilter):
        title = "condition"
        parameter_name = "condition"

        def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
            studies = rights.visible(request.user, Study.objects.order_by("slug"), model_admin.right)
            slug = request.GET.get("study")
            studies = studies.filter(slug=slug) if slug else studies.filter(test_of__isnull=True)
            known = {
                f"{condition.factor}={level}": None
                for study in studies.filter(is_blind=False).exclude(stored_config__conditions=[])
                for condition in shown_conditions(study)
                for level in condition.levels
            }
            return [(level, level) for level in known]

        def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
            value = self.value()
            if value is None or value not in {key for key, _label in self.lookup_choices}:
                return queryset
            factor, _equals, level = value.partition("=")
            wanted = Q()
            for path in paths:
                wanted |= Q(
                    pk__in=queryset.model.objects.filter(**{f"{path}__factor": factor, f"{path}__level": level})
                )
            return queryset.filter(wanted)

    return LevelFilter


class TaskFilter(KnownValueFilter):
    title = "task"
    parameter_name = "task"
    path = "task__name"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        tasks = rights.visible(request.user, Task.objects.order_by("name"))
        if (bank := request.GET.get("bank__id__exact", "")).isdecimal():
            tasks = tasks.filter(bank=int(bank))
        return [(name, name) for name in tasks.values_list("name", flat=True).distinct()]


class VisibleRowsFilter(admin.RelatedFieldListFilter):
    """Django's filter by a foreign key offers every row there is; this one those that the user may see."""

    def field_choices(self, field: Any, request: HttpRequest, model_admin: Any) -> Any:
        rows = rights.visible(request.user, field.remote_field.model._default_manager.all())
        return field.get_choices(include_blank=False, limit_choices_to={"pk__in": rows.values("pk")})


def _is_ruled(field: Any) -> bool:
    return bool(field.remote_field) and rights.is_ruled(field.remote_field.model)


admin.FieldListFilter.register(_is_ruled, VisibleRowsFilter, take_priority=True)
