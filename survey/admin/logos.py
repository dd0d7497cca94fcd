"""Logos of institutions: sent once under a name, which study files then use."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from survey.admin_base.read_only_admin import AdminPage, ReadOnlyAdmin, admin_page
from survey.exceptions import HunchError
from survey.models import Logo
from survey.services.base import rights
from survey.services.studies import logos


class LogoForm(forms.Form):
    file = forms.FileField(
        label="Logo",
        help_text="PNG, at most 100 kB and 2,000 pixels a side. On respondents' pages it is 48 pixels high.",
        widget=forms.FileInput(attrs={"accept": ".png,image/png"}),
    )
    name = forms.CharField(
        max_length=60,
        help_text="Small letters, digits and hyphens. Study files and the builder call it so.",
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )


def send_logo(request: HttpRequest) -> HttpResponse:
    if not rights.may_make_studies(request.user):
        raise PermissionDenied
    posted = request.method == "POST"
    form = LogoForm(request.POST if posted else None, request.FILES if posted else None)
    if posted and form.is_valid():
        sent = form.cleaned_data["file"]
        try:
            content = sent.read(logos.LARGEST + 1) if sent.size > logos.LARGEST else sent.read()
            logo = logos.store(content, name=form.cleaned_data["name"], by=request.user, via="admin")
        except HunchError as exc:
            field, _colon, message = exc.message.partition(": ")
            form.add_error(field, message)
        else:
            messages.success(request, f"The logo {logo} is stored. Choose it in the builder, under First page.")
            return HttpResponseRedirect(reverse("admin:survey_logo_changelist"))
    return admin_page(request, "logo/send.html", title="New logo", form=form)


@admin.register(Logo)
class LogoAdmin(ReadOnlyAdmin):
    help = "study-file.md#texts"
    pages = (AdminPage("add", "add/", send_logo),)
    list_display = ("name", "picture", "width", "height", "created_by", "created_at")
    list_select_related = ("created_by",)
    exclude = ("content",)

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return rights.may_make_studies(request.user)

    def visible_to(self, user: Any, rows: QuerySet[Any]) -> QuerySet[Any]:
        return rows.defer("content") if rights.may_make_studies(user) else rows.none()

    @admin.display(description="logo")
    def picture(self, logo: Logo) -> SafeString:
        return format_html('<img src="{}" alt="" height="32">', reverse("logo", args=[logo.name]))
