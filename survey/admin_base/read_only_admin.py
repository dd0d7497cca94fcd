"""Base classes of the admin's pages. Imports only Django and the rights, so that an instrument's admin can build on
them too.

What a study has stored is evidence: nobody adds, changes or deletes it by hand, not even superusers. Members of a study
see its rows; for everybody else there are none.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, HttpResponseNotAllowed
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from survey.admin_base.navigation import list_title
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


ROW = "<int:pk>/"
Links = Callable[[Any, Any], Sequence[tuple[str, tuple[Any, ...]]]]
HelpPlace = str | Callable[[Mapping[str, Any]], str]
HELP_OF_TABLES = "tour.md#tables-as-they-are-stored"


@dataclass(frozen=True)
class AdminPage:
    """A page in addition to those that Django makes of a model; "add" takes the place of Django's.

    Attributes:
        name: of its address, after the model's: the page "live" of studies is `admin:survey_study_live`.
        path: below the model's list. A page whose path begins with `<int:pk>/` is of one row.
        view: answers a request. It gets the request, the row if the page is of one, and the other parts of the path.
        right: what the reader needs in the row's study, besides seeing the row.
        may_open: what else must hold for the reader and the row.
        by_post: whether it answers to POST alone.
        group: the part of the row's own page that links to it; of the pages that Django makes, "tools" at the top.
        links: for a reader who may open it and a row: the text of each link there, and the other parts of the path.
        help: the place in the documents that explains it, such as `panels.md#adding-a-panel`, or a function that gets
            the parts of the path and returns one. Empty: that of the model's other pages.
    """

    name: str
    path: str
    view: Callable[..., HttpResponseBase]
    right: Right | None = None
    may_open: Callable[[Any, Any], bool] | None = None
    by_post: bool = False
    group: str = ""
    links: Links = lambda user, row: ()
    help: HelpPlace = ""

    def __post_init__(self) -> None:
        if not self.is_of_one_row and (self.right is not None or self.may_open is not None):
            raise ValueError(f"{self.name}: a page of no row has no study in which a right could be asked for")

    @property
    def is_of_one_row(self) -> bool:
        return self.path.startswith(ROW)


def link(text: str) -> Links:
    """The same link for everybody who may open the page."""
    return lambda user, row: [(text, ())]


class HunchAdmin(ByRights, admin.ModelAdmin):
    """A list that needs only a few queries for any number of rows, and the pages of `pages`."""

    pages: Sequence[AdminPage] = ()
    # The place in the documents that "Help" on these pages leads to.
    help: str = HELP_OF_TABLES
    # What the pages of one row read together with it.
    page_related: tuple[str, ...] = ()
    change_form_template = "admin/survey/row.html"

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

    def get_urls(self) -> list[URLPattern]:
        own = [
            path(page.path, self.admin_site.admin_view(self._answering(page)), name=self._address_name(page))
            for page in self.pages
        ]
        return [*own, *super().get_urls()]

    def _address_name(self, page: AdminPage) -> str:
        return f"{self.opts.app_label}_{self.opts.model_name}_{page.name}"

    def _answering(self, page: AdminPage) -> Callable[..., HttpResponseBase]:
        """The page's view, once the row is there and the reader may open it."""

        def answer(request: HttpRequest, **parts: Any) -> HttpResponseBase:
            rows = []
            if page.name == "add" and not self.has_add_permission(request):
                raise PermissionDenied
            if page.is_of_one_row:
                rows = [self.readable_row(request, parts.pop("pk"))]
                if not self._may_open(page, request.user, rows[0]):
                    raise PermissionDenied
            if page.by_post and request.method != "POST":
                return HttpResponseNotAllowed(["POST"])
            return page.view(request, *rows, **parts)

        return answer

    def readable_row(self, request: HttpRequest, pk: int) -> Any:
        """The row with that key.

        Raises:
            Http404: there is no such row, or the reader may not see it.
            PermissionDenied: the reader's account lacks the model's view permission.
        """
        rows = self.visible_to(request.user, self.model._default_manager.select_related(*self.page_related))
        row = rows.filter(pk=pk).first()
        if row is None:
            raise Http404
        if not self.has_view_permission(request, row):
            raise PermissionDenied
        return row

    def links_of(self, user: Any, row: Model) -> dict[str, list[tuple[str, str]]]:
        """By group the links to the row's pages that this reader is offered now: text and address."""
        links: dict[str, list[tuple[str, str]]] = {}
        for page in self.pages:
            if page.group and self._may_open(page, user, row):
                for text, parts in page.links(user, row):
                    address = reverse(f"admin:{self._address_name(page)}", args=[row.pk, *parts])
                    links.setdefault(page.group, []).append((text, address))
        return links

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        return super().changelist_view(request, {"title": list_title(self.opts), **(extra_context or {})})

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> HttpResponse:
        row = kwargs.get("obj")
        context["tools"] = [] if row is None else self.links_of(request.user, row).get("tools", [])
        return super().render_change_form(request, context, *args, **kwargs)

    @staticmethod
    def _may_open(page: AdminPage, user: Any, row: Model) -> bool:
        has_right = page.right is None or rights.may(user, page.right, rights.study_key_of(row))
        return has_right and (page.may_open is None or page.may_open(user, row))


class ReadOnlyAdmin(ReadOnly, HunchAdmin):
    """A list and its pages, for looking only."""


class ReadOnlyInline(ReadOnly, admin.TabularInline):
    """Rows shown on the page of the row they belong to."""

    extra = 0
    can_delete = False
    related: tuple[str, ...] = ()

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).select_related(*self.related)


def inline_of(model: type[Model], *fields: str, related: Sequence[str] = (), **attributes: Any) -> type[ReadOnlyInline]:
    """The model's rows, with these fields, on the page of the row they belong to. `related` is read with them."""
    own = {"model": model, "fields": fields, "related": related, **attributes}
    return type(f"{model.__name__}Inline", (ReadOnlyInline,), own)


def admin_page(
    request: HttpRequest, template: str, *, of: type[Model] | None = None, status: int = 200, **context: Any
) -> TemplateResponse:
    """A page by a template below `admin/survey`, among the pages of the model `of`: by default the one that the
    template's folder is called after."""
    model = of or apps.get_model("survey", template.partition("/")[0])
    media = admin.site.get_model_admin(model).media
    common = {**admin.site.each_context(request), "opts": model._meta, "media": media}
    return TemplateResponse(request, f"admin/survey/{template}", {**common, **context}, status=status)


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
