"""Filters of the lists: by study, stage and task. Each needs one query, not a query for every name."""

from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest

from survey.models import Stage, Study, Task

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
        title = "study"
        parameter_name = "study"
        path = f"{field}__slug"

        def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
            return [(slug, slug) for slug in Study.objects.order_by("slug").values_list("slug", flat=True)]

    return StudyFilter


def stage_filter(field: str = "stage") -> type[KnownValueFilter]:
    class StageFilter(KnownValueFilter):
        title = "stage"
        parameter_name = "stage"
        path = f"{field}__pk"

        def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
            stages = Stage.objects.order_by("study__slug", "index").values_list("pk", "study__slug", "index")
            if slug := request.GET.get("study"):
                stages = stages.filter(study__slug=slug)
            return [(str(pk), f"{name} stage {index}") for pk, name, index in stages]

    return StageFilter


def level_filter(*paths: str) -> type[admin.SimpleListFilter]:
    """By FACTOR=LEVEL. `paths`: the relations to levels, any of which may hold it."""

    class LevelFilter(admin.SimpleListFilter):
        title = "condition"
        parameter_name = "condition"

        def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
            studies = Study.objects.order_by("slug")
            if slug := request.GET.get("study"):
                studies = studies.filter(slug=slug)
            known = {
                f"{condition.factor}={level}": None
                for study in studies.exclude(stored_config__conditions=[])
                for condition in study.config.conditions
                for level in condition.levels
            }
            return [(one, one) for one in known]

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
        tasks = Task.objects.order_by("name").values_list("name", flat=True).distinct()
        if (bank := request.GET.get("bank__id__exact", "")).isdecimal():
            tasks = tasks.filter(bank=int(bank))
        return [(name, name) for name in tasks]
