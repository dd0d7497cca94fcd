"""Who did what, and the tokens with which researchers read the API."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone

from survey.models import ApiToken, AuditEntry
from survey.read_only_admin import ReadOnlyAdmin, pretty_json, shortened
from survey.services.base.auditing import record


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnlyAdmin):
    list_display = ("at", "who", "via", "action", "subject", "detail_in_short")
    list_filter = ("via", "action")
    list_select_related = ("actor",)
    search_fields = ("subject", "actor__username")
    search_help_text = "By subject or user."
    fields = ("at", "actor", "via", "action", "subject", "detail_text")
    readonly_fields = ("at", "detail_text")

    @admin.display(description="who", ordering="actor__username")
    def who(self, entry: AuditEntry) -> str:
        return str(entry.actor) if entry.actor else "–"

    @admin.display(description="detail")
    def detail_in_short(self, entry: AuditEntry) -> str:
        return shortened(", ".join(f"{name}: {value}" for name, value in entry.detail.items()))

    @admin.display(description="detail")
    def detail_text(self, entry: AuditEntry) -> Any:
        return pretty_json(entry.detail)


class TokenForm(forms.Form):
    name = forms.CharField(
        max_length=80, required=False, label="What it is for", help_text="To tell your tokens apart."
    )


@admin.register(ApiToken)
class ApiTokenAdmin(ReadOnlyAdmin):
    """Everybody sees and revokes their own tokens; superusers see and revoke all."""

    list_display = ("prefix", "name", "user", "created_at", "last_used_at", "revoked_at")
    list_filter = (("revoked_at", admin.EmptyFieldListFilter),)
    list_select_related = ("user",)
    search_fields = ("name", "user__username")
    fields = ("prefix", "name", "user", "created_at", "last_used_at", "revoked_at")
    readonly_fields = ("created_at",)
    change_form_template = "admin/survey/apitoken/page.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        tokens = super().get_queryset(request)
        return tokens if request.user.is_superuser else tokens.filter(user=request.user.pk)

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(request.user.has_perm("survey.add_apitoken"))

    def get_urls(self) -> list[URLPattern]:
        revoke = self.admin_site.admin_view(self.revoke_view)
        return [path("<int:pk>/revoke/", revoke, name="survey_apitoken_revoke"), *super().get_urls()]

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if not self.has_add_permission(request):
            raise PermissionDenied
        form = TokenForm(request.POST or None)
        if request.method == "POST" and form.is_valid():
            return self._issue(request, form.cleaned_data["name"])
        return self._page(request, "make.html", title="Make an API token", form=form)

    def _issue(self, request: HttpRequest, name: str) -> HttpResponse:
        with transaction.atomic():
            token, secret = ApiToken.issue(user=request.user, name=name)
            record("create_token", token, by=request.user, via="admin", token_user=request.user.get_username())
        if "download" in request.POST:
            response = HttpResponse(f"{secret}\n", content_type="text/plain; charset=utf-8")
            response["Content-Disposition"] = f'attachment; filename="hunch-token-{token.prefix}.txt"'
            return response
        # No redirect: it would mean that the secret is stored in between. The admin's pages are never cached.
        return self._page(request, "issued.html", title="Your API token", token=token, secret=secret)

    def revoke_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        token = self.get_object(request, str(pk))
        if token is None or not self.has_view_permission(request, token):
            raise PermissionDenied
        if request.method != "POST":
            return self._page(request, "revoke.html", title="Revoke an API token", token=token)
        with transaction.atomic():
            # Only once: the first time counts.
            if ApiToken.objects.filter(pk=token.pk, revoked_at__isnull=True).update(revoked_at=timezone.now()):
                record("revoke_token", token, by=request.user, via="admin", token_user=token.user.get_username())
        messages.success(request, f"The token {token.prefix}… is revoked.")
        return HttpResponseRedirect(reverse("admin:survey_apitoken_changelist"))

    def _page(self, request: HttpRequest, template: str, **context: Any) -> HttpResponse:
        return TemplateResponse(
            request,
            f"admin/survey/apitoken/{template}",
            {**self.admin_site.each_context(request), "opts": self.opts, "media": self.media, **context},
        )
