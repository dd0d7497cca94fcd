"""Base classes of the admin's pages. Imports only Django, so that an instrument's admin can build on them too.

What a study has stored is evidence: nobody adds, changes or deletes it by hand, not even superusers.
"""

import json
from typing import Any

from django.contrib import admin
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString


class ReadOnly:
    """May be looked at with the model's view permission, and nothing else."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class HunchAdmin(admin.ModelAdmin):
    """A list that needs only a few queries for any number of rows."""

    actions: Any = None
    list_per_page = 50
    show_full_result_count = False  # To count all answers for "of 18480 in all" would be a slow extra query.
    # Large columns of joined rows, which a list would otherwise read again for every row.
    deferred: tuple[str, ...] = ()

    class Media:
        css = {"all": ["survey/admin.css"]}

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows = super().get_queryset(request)
        related = self.list_select_related
        if isinstance(related, list | tuple) and related:
            rows = rows.select_related(*related)
        return rows.defer(*self.deferred) if self.deferred else rows


class ReadOnlyAdmin(ReadOnly, HunchAdmin):
    """A list and its pages, for looking only."""


class ReadOnlyInline(ReadOnly, admin.TabularInline):
    """Rows shown on the page of the row they belong to."""

    extra = 0
    can_delete = False
    related: tuple[str, ...] = ()

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).select_related(*self.related)


def pretty_json(value: Any) -> SafeString:
    """A JSON value, indented."""
    return format_html(
        '<pre class="hunch-text">{}</pre>', json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True)
    )


def shortened(text: str, length: int = 100) -> str:
    """The text on one line, cut where a list would grow too wide."""
    line = " ".join(text.split())
    return line if len(line) <= length else f"{line[: length - 1]}…"


def link_to(row: Model | None, text: str = "") -> SafeString | str:
    """A link to a row's admin page; a dash where there is no row."""
    if row is None:
        return "–"
    address = reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_change", args=[row.pk])
    return format_html('<a href="{}">{}</a>', address, text or str(row))
