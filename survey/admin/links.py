"""Links that let in one person each: which are used, and a page that makes new ones and shows them once."""

from functools import partial
from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from survey.admin_base.read_only_admin import AdminPage, ReadOnlyAdmin
from survey.figures.csv_lines import csv_line
from survey.models import EntryLink, Study
from survey.services.base import rights
from survey.services.base.rights import Right
from survey.services.sittings import links

from .confirming import Confirmation, ConfirmedAction, confirm
from .filters import deferred_study, study_filter


class LinksForm(forms.Form):
    study = forms.ModelChoiceField(
        Study.objects.none(),
        to_field_name="slug",
        help_text='Studies whose file says [panel] kind = "links".',
    )
    count = forms.IntegerField(min_value=1, max_value=links.MAX_AT_ONCE, initial=20, label="How many")

    def __init__(self, *args: Any, user: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        field: Any = self.fields["study"]
        studies = Study.objects.real().filter(stored_config__panel__kind=links.KIND).order_by("slug")
        field.queryset = rights.visible(user, studies, Right.MAKE_LINKS)


def _make(request: HttpRequest, *, study: Study, count: int, **by: Any) -> HttpResponse:
    """The links come in the answer itself: a redirect would mean that they are stored in between. The admin's pages are
    never cached."""
    root = request.build_absolute_uri("/").rstrip("/")
    made = links.make_links(study, count=count, root=root, **by)
    lines = [csv_line(["number", "link"]), *(csv_line([link.number, link.address]) for link in made)]
    response = HttpResponse("".join(lines), content_type="text/csv; charset=utf-8")
    name = f"{study.slug}-links-{made[0].number}-{made[-1].number}.csv"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def make_links(request: HttpRequest) -> HttpResponse:
    action = ConfirmedAction(
        "add",
        "Make links",
        "Each link lets one person in, and the same link goes on with what that person began. They come as a file and "
        "are shown once: only their hashes are stored.",
        _make,
        form=partial(LinksForm, initial=request.GET.dict(), user=request.user),
        button="Make and download them",
        stays=True,
    )
    back = reverse("admin:survey_entrylink_changelist")
    return confirm(request, action, request, Confirmation(EntryLink, "Make entry links", [], back))


@admin.register(EntryLink)
class EntryLinkAdmin(ReadOnlyAdmin):
    """A link itself is nowhere: only its hash is stored. Nor is it stored whose answers came by it."""

    help = "panels.md#links-for-a-lab"
    pages = (AdminPage("add", "add/", make_links),)
    list_display = ("number", "study", "state", "used_at", "created_by", "created_at")
    list_filter = (study_filter(), ("used_at", admin.EmptyFieldListFilter))
    list_select_related = ("study", "created_by")
    deferred = (*deferred_study("study"), "token_hash")
    fields = ("number", "study", "state", "used_at", "created_by", "created_at")
    readonly_fields = ("state", "created_at")

    @admin.display(description="state", ordering="used_at")
    def state(self, link: EntryLink) -> str:
        return "used" if link.used_at else "unused"

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return rights.studies_with(request.user, Right.MAKE_LINKS) != frozenset()
