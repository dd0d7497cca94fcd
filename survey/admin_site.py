"""The admin as a whole: logging in with a second step, setting that up, and changing one's own password."""

from typing import Any

import segno
from django import forms
from django.contrib import messages
from django.contrib.admin import AdminSite
from django.contrib.admin.forms import AdminAuthenticationForm
from django.contrib.auth import authenticate
from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, URLResolver, path
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext_lazy as _

from survey.client_address import client_address
from survey.models import CodeApp
from survey.services.base import auditing, second_factor

CODE = {"autocomplete": "one-time-code", "spellcheck": "false"}


class LogInForm(AdminAuthenticationForm):
    request: HttpRequest
    code = forms.CharField(
        label=_("Code"),
        required=False,
        max_length=40,
        widget=forms.TextInput(CODE),
        help_text=_("Only if you have set up codes for this account: the one that your app shows, or a recovery code."),
    )

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        user: Any = self.get_user()
        if user is not None and second_factor.app_of(user) is not None:
            user.proved_by = self._proved_by(user, cleaned.get("code", ""))
        return cleaned

    def _proved_by(self, user: Any, code: str) -> str:
        if not code:
            raise ValidationError(_("This account asks for a code too. Enter your password again, and the code."))
        if proof := second_factor.prove(user, code):
            return proof
        auditing.record("fail_second_factor", user, via="admin", address=client_address(self.request))
        raise ValidationError(
            _("The code is wrong, was used already, or came too soon after a wrong one. Please wait for the next one.")
        )


class SecondFactorForm(forms.Form):
    """Asks for the password, so that nobody changes an account whose owner has left the desk."""

    code = forms.CharField(label="Code that the app shows", max_length=40, widget=forms.TextInput(CODE))
    password = forms.CharField(
        label="Your password", strip=False, widget=forms.PasswordInput({"autocomplete": "current-password"})
    )

    def __init__(self, request: HttpRequest, *, with_code: bool) -> None:
        super().__init__(request.POST if request.method == "POST" else None)
        self.request = request
        if not with_code:
            del self.fields["code"]

    def clean_password(self) -> str:
        name = self.request.user.get_username()
        # Failures count towards the lock-out.
        if authenticate(self.request, username=name, password=self.cleaned_data["password"]) is None:
            raise ValidationError("This is not your password.")
        return str(self.cleaned_data["password"])


class HunchAdminSite(AdminSite):
    login_form = LogInForm
    login_template = "admin/survey/login.html"

    def get_urls(self) -> list[URLPattern | URLResolver]:
        page = self.admin_view(self.second_factor_page)
        return [path("second-factor/", page, name="second_factor"), *super().get_urls()]

    def password_change(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        with transaction.atomic():
            response = super().password_change(request, extra_context)
            if request.method == "POST" and response.status_code == 302:
                auditing.record("change_password", request.user, by=request.user, via="admin")
        return response

    def second_factor_page(self, request: HttpRequest) -> HttpResponse:
        """Set up codes; later make new recovery codes, or remove it all."""
        app = second_factor.app_of(request.user)
        is_proved = second_factor.is_marked(request.session)
        form = SecondFactorForm(request, with_code=app is None or not is_proved)
        codes: list[str] = []
        if form.is_valid():
            if "code" in form.fields and app is not None:
                is_proved = bool(second_factor.prove(request.user, form.cleaned_data["code"]))
            if app is None:
                codes = second_factor.confirm(request.user, form.cleaned_data["code"])
                is_proved = bool(codes)
            elif is_proved and "remove" in request.POST:
                return self._remove_second_factor(request)
            elif is_proved:
                codes = second_factor.replace_codes(request.user)
            if is_proved:
                second_factor.mark(request.session)
            else:
                form.add_error("code", "The code is wrong, was used already, or came too soon after a wrong one.")
        # No redirect with the codes: it would mean that they are stored in between.
        return self._second_factor(request, form, codes)

    @staticmethod
    def _remove_second_factor(request: HttpRequest) -> HttpResponse:
        second_factor.remove(request.user, by=request.user, via="admin")
        second_factor.unmark(request.session)
        messages.success(request, "Your account no longer asks for codes.")
        return HttpResponseRedirect(request.path)

    def _second_factor(self, request: HttpRequest, form: SecondFactorForm, codes: list[str]) -> HttpResponse:
        app = second_factor.app_of(request.user)
        begun = second_factor.begun_app(request.user) if app is None else None
        context = {
            **self.each_context(request),
            "title": "Log in with codes",
            "form": form,
            "codes": codes,
            "app": app,
            "codes_left": second_factor.codes_left(request.user),
            "secret": begun and second_factor.shown_secret(begun),
            "picture": begun and _picture(begun),
        }
        return TemplateResponse(request, "admin/survey/second_factor.html", context)


def _picture(app: CodeApp) -> SafeString:
    """The QR code as inline SVG, without styles, so that the content policy lets it be drawn."""
    code = segno.make(app.config_url, error="m")
    return mark_safe(code.svg_inline(scale=5, light="#fff", title="QR code for your app"))  # noqa: S308 (our own figures)
