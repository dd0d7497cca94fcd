"""Base classes of the admin's pages. Imports only Django and the rights, so that an instrument's admin can build on
them too.

What a study has stored is evidence: nobody adds, changes or deletes it by hand, not even superusers. Members of a study
see its rows; for everybody else there are none.
"""

import json
from typing import Any

from django.contrib import admin
from django.db.models import Model, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from survey.services.base import rights
from survey.services.base.rights import Right


class ReadOnly:
    """May be looked at with the model's view permission, and nothing else."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class ByRights:
    """Mixed into a ModelAdmin: shows the rows that the user may see. A row of somebody else's study is not there."""

    model: type[Model]
    # What a member needs to see these rows; None: as their model says.
    right: Right | None = None
    view_on_site: Any = False  # Its address would name rows that the user may not see.

    def visible_to(self, user: Any, rows: QuerySet[Any]) -> QuerySet[Any]:
        return rights.visible(user, rows, self.right)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request)  # type: ignore[misc]
        return self.visible_to(request.user, rows)

    def get_field_queryset(self, db: Any, db_field: Any, request: HttpRequest) -> QuerySet[Any] | None:
        """What a form offers for a foreign key."""
        rows: QuerySet[Any] | None = super().get_field_queryset(db, db_field, request)  # type: ignore[misc]
        related = db_field.remote_field.model
        if not rights.is_ruled(related):
            return rows
        return rights.visible(request.user, related._default_manager.all() if rows is None else rows)

    def _get_obj_does_not_exist_redirect(self, request: HttpRequest, opts: Any, object_id: str) -> HttpResponse:
        """Django goes to the index with a message."""
        raise Http404


class HunchAdmin(ByRights, admin.ModelAdmin):
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
