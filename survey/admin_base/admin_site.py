"""The admin as a whole: the way in (the first account, logging in with a second step, one's own password), what the
pages are called in the navigation, and the pages that lead to them."""

from functools import partial
from threading import RLock
from typing import Any

from django import forms
from django.apps import apps
from django.contrib import messages
from django.contrib.admin import AdminSite
from django.contrib.admin.forms import AdminAuthenticationForm
from django.contrib.auth import authenticate, get_user_model, login, password_validation
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Model
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, URLResolver, path, reverse
from django.utils import timezone
from django.utils.functional import SimpleLazyObject, cached_property
from django.utils.translation import gettext_lazy as _

from survey.admin_base.navigation import GROUPS, DeskGroup, DeskTable, list_title
from survey.admin_base.page_loading import load_admin_pages
from survey.admin_base.qr_codes import qr_code
from survey.admin_base.read_only_admin import HELP_OF_TABLES, HelpPlace
from survey.documents.addresses import help_address
from survey.exceptions import NotFound
from survey.models import Study
from survey.services.base import auditing, first_account, rights, second_factor
from survey.web.client_address import client_address

# What explains the pages that belong to no model: the place in the documents, by the name of the address.
HELP: dict[str, HelpPlace] = {
    "index": "tour.md#home",
    "first_account": "tutorial.md#1-start-it",
    "login": "tour.md#logging-in",
    "second_factor": "tour.md#logging-in",
    "password_change": "tour.md#logging-in",
    "password_change_done": "tour.md#logging-in",
    "desk_group": lambda parts: next((group.help for group in GROUPS if group.name == parts.get("group")), "tour.md"),
    "advanced": HELP_OF_TABLES,
}
# Those that Django makes of each model.
OF_EACH_MODEL = ("changelist", "change", "add", "history", "delete")

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


class FirstAccountForm(forms.Form):
    username = forms.CharField(
        max_length=150, label="User name", widget=forms.TextInput({"autocomplete": "username", "spellcheck": "false"})
    )
    password = forms.CharField(
        strip=False, widget=forms.PasswordInput({"autocomplete": "new-password"}), help_text="At least 12 characters."
    )
    again = forms.CharField(
        label="The password again", strip=False, widget=forms.PasswordInput({"autocomplete": "new-password"})
    )

    def clean_username(self) -> str:
        name: str = get_user_model().normalize_username(self.cleaned_data["username"])
        for validator in get_user_model()._meta.get_field("username").validators:
            validator(name)
        if get_user_model().objects.filter(username=name).exists():
            raise ValidationError("The demo's account has this name: choose another.")
        return name

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        password, again = cleaned.get("password"), cleaned.get("again")
        if password and again and password != again:
            self.add_error("again", "The two passwords differ: type them again.")
        elif password:
            try:
                password_validation.validate_password(password, get_user_model()(username=cleaned.get("username", "")))
            except ValidationError as exc:
                self.add_error("password", exc)
        return cleaned


class HunchAdminSite(AdminSite):
    login_form = LogInForm
    login_template = "admin/survey/login.html"

    def __init__(self, name: str = "admin") -> None:
        self._loading = RLock()  # The thread that loads the pages registers them; others wait until all are there.
        self._are_pages_loaded = False
        super().__init__(name)

    @property
    def _registry(self) -> dict[type[Model], Any]:
        """The pages by model. They are loaded when this is first read: that takes a quarter of a second."""
        with self._loading:
            if not self._are_pages_loaded:
                self._are_pages_loaded = True
                try:
                    load_admin_pages(self)
                except BaseException:
                    self._are_pages_loaded = False
                    raise
            return self._pages

    @_registry.setter
    def _registry(self, pages: dict[type[Model], Any]) -> None:
        self._pages = pages

    def get_urls(self) -> list[URLPattern | URLResolver]:
        # In the order of the apps: that in which they were loaded depends on which page was imported first.
        pages = self._registry
        self._registry = {model: pages[model] for model in apps.get_models() if model in pages}
        wrap = self.admin_view
        return [
            path("second-factor/", wrap(self.second_factor_page), name="second_factor"),
            path("desk/<slug:group>/", wrap(self.group_page), name="desk_group"),
            path("advanced/", wrap(self.advanced_page), name="advanced"),
            # Nobody can log in yet: the address itself is the proof. Its secret is in the query, which no log has.
            path("first-account/", self.first_account_page, name="first_account"),
            *super().get_urls(),
        ]

    # Home and navigation

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> Any:
        """Made where a page lists its tables. Django asks for it on every page, for a sidebar that we do not show."""
        return SimpleLazyObject(partial(super().get_app_list, request, app_label))

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        return {**super().each_context(request), "desk": self._desk(request), "help_address": self._help(request)}

    def _help(self, request: HttpRequest) -> str:
        """Where "Help" on this page leads to."""
        match = request.resolver_match
        place = self.help_places.get(match.url_name or "", "tour.md") if match else "tour.md"
        return help_address(place if isinstance(place, str) else place(match.kwargs if match else {}))

    @cached_property
    def help_places(self) -> dict[str, HelpPlace]:
        """By the name of an address what explains its page: as the page says, else as the model's pages say."""
        places = dict(HELP)
        for model, pages in self._registry.items():
            begins = f"{model._meta.app_label}_{model._meta.model_name}_"
            of_all = getattr(pages, "help", HELP_OF_TABLES)
            places |= {begins + name: of_all for name in OF_EACH_MODEL}
            places |= {begins + page.name: page.help or of_all for page in getattr(pages, "pages", ())}
        return places

    def _desk(self, request: HttpRequest) -> list[tuple[str, str, bool]]:
        """The navigation: what each entry is called, its address, and whether the page belongs to it."""
        if not self.has_permission(request):
            return []
        here = request.path_info
        # A page belongs to the entry with the longest beginning of its address.
        entries: list[tuple[str, str, tuple[str, ...]]] = [("Studies", reverse("admin:index"), ("/survey/study/",))]
        for group in GROUPS:
            if self._tables(request, group):
                beginnings = tuple(f"/{table.model.replace('.', '/')}/" for table in group.tables)
                entries.append((group.label, reverse("admin:desk_group", args=[group.name]), beginnings))
        entries.append(("Advanced", reverse("admin:advanced"), ()))
        home = reverse("admin:index")
        return [
            (
                label,
                address,
                here == address or any(here.startswith(home.rstrip("/") + beginning) for beginning in beginnings),
            )
            for label, address, beginnings in entries
        ]

    def _tables(self, request: HttpRequest, group: DeskGroup) -> list[DeskTable]:
        """Those of the group that the user may look at."""
        pages = {model._meta.label_lower: page for model, page in self._registry.items()}
        return [
            table
            for table in group.tables
            if (page := pages.get(table.model)) is not None and page.has_view_permission(request)
        ]

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> TemplateResponse:
        """The studies: those of the user that are not archived, or with `?archived` those that are."""
        page: Any = self._registry[Study]
        archived = "archived" in request.GET
        may_see = page.has_view_permission(request)
        studies = (
            page.get_queryset(request).filter(archived_at__isnull=not archived) if may_see else Study.objects.none()
        )
        request.current_app = self.name
        return TemplateResponse(
            request,
            "admin/survey/index.html",
            {
                **self.each_context(request),
                "title": "Archived studies" if archived else "Studies",
                "subtitle": None,
                "cards": page.cards(list(studies.defer(None).defer("source_text")), request.user),
                "archived": archived,
                "may_see_studies": may_see,
                "may_make_study": rights.may_make_studies(request.user),
                "may_make_bank": rights.may_make_banks(request.user),
                **(extra_context or {}),
            },
        )

    def group_page(self, request: HttpRequest, group: str) -> TemplateResponse:
        """The tables of one entry of the navigation, each with a sentence."""
        page_group = next((candidate for candidate in GROUPS if candidate.name == group), None)
        tables = self._tables(request, page_group) if page_group else []
        if page_group is None or not tables:
            raise Http404
        request.current_app = self.name
        lines = [(table, reverse(f"admin:{table.model.replace('.', '_')}_changelist")) for table in tables]
        return TemplateResponse(
            request,
            "admin/survey/group.html",
            {
                **self.each_context(request),
                "title": page_group.label,
                "subtitle": None,
                "group": page_group,
                "lines": lines,
                "may_make_bank": page_group.name == "banks" and rights.may_make_banks(request.user),
            },
        )

    def advanced_page(self, request: HttpRequest) -> TemplateResponse:
        """All tables that the user may look at, as they are stored."""
        request.current_app = self.name
        context = {
            **self.each_context(request),
            "title": "Advanced",
            "subtitle": None,
            "app_list": [
                {**app, "models": [{**line, "name": list_title(line["model"]._meta)} for line in app["models"]]}
                for app in self.get_app_list(request)
            ],
        }
        return TemplateResponse(request, "admin/survey/advanced.html", context)

    # The way in

    def first_account_page(self, request: HttpRequest) -> HttpResponse:
        """Makes the first account, a superuser, and logs it in. The address works once."""
        if request.method not in ("GET", "HEAD", "POST"):
            return HttpResponseNotAllowed(["GET", "HEAD", "POST"])
        secret = request.GET.get("secret", "")
        form = FirstAccountForm(request.POST if request.method == "POST" else None)
        problem = "" if first_account.is_open(secret, now=timezone.now()) else first_account.GONE
        if not problem and form.is_valid():
            try:
                user = first_account.make(
                    secret,
                    username=form.cleaned_data["username"],
                    password=form.cleaned_data["password"],
                    now=timezone.now(),
                )
            except NotFound as exc:
                problem = exc.message
            else:
                login(request, user, backend="django.contrib.auth.backends.ModelBackend")
                messages.success(request, "Your account is made. Next: a new study, or a bank first.")
                return HttpResponseRedirect(reverse("admin:index"))
        context = {**self.each_context(request), "title": "The first account", "form": form, "problem": problem}
        status = 404 if problem else 200
        return TemplateResponse(request, "admin/survey/first_account.html", context, status=status)

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
            "title": "Two-factor login",
            "form": form,
            "codes": codes,
            "app": app,
            "codes_left": second_factor.codes_left(request.user),
            "secret": begun and second_factor.shown_secret(begun),
            "picture": begun and qr_code(begun.config_url, title="QR code for your app"),
        }
        return TemplateResponse(request, "admin/survey/second_factor.html", context)
