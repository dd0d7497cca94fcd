"""Middleware of the project."""

from collections.abc import Callable

from csp.constants import HEADER
from csp.middleware import CheckableLazyObject, CSPMiddleware
from csp.utils import build_policy
from django.conf import settings
from django.contrib import admin
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.middleware.locale import LocaleMiddleware
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import translation
from django.utils.cache import add_never_cache_headers
from django.utils.translation import gettext as _

from survey.contracts.instruments import InstrumentMissing
from survey.logs import request_ids
from survey.services.base import second_factor
from survey.web.body_limits import body_limit

CONSOLE, LOG_IN = "/admin/", "/admin/login/"
NEVER = "max-age=0, no-cache, no-store, must-revalidate, private"


class RequestIdMiddleware:
    """Give each request an id, under which its log lines are found, and name it in the answer."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        request_id = request_ids.of_headers(request.headers.get(request_ids.HEADER, ""))
        request_ids.current.set(request_id)
        response = self.get_response(request)
        response.headers[request_ids.HEADER] = request_id
        return response


class PolicyMiddleware(CSPMiddleware):
    """Writes the header that its base class would make again for each answer: most get what the settings say."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        super().__init__(get_response)
        self._usual = _usual_policy()

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        if (
            not self._usual
            or HEADER in response.headers
            or hasattr(request, "_csp_nonce")
            or any(name.startswith("_csp") for name in vars(response))  # A decorator wants another one.
        ):
            return super().process_response(request, response)
        response.headers[HEADER] = self._usual
        # The nonce of a request cannot be asked for any more.
        setattr(request, "csp_nonce", CheckableLazyObject(self._csp_nonce_post_response))  # noqa: B010
        return response


class LanguageMiddleware(LocaleMiddleware):
    """Respondents and who logs in read the language that their browser asks for. The console has words of its own in
    English alone: Django's words next to them are English, too."""

    def process_request(self, request: HttpRequest) -> None:
        if request.path_info.startswith(CONSOLE) and not request.path_info.startswith(LOG_IN):
            translation.activate("en")
            request.LANGUAGE_CODE = "en"
        else:
            super().process_request(request)


def _usual_policy() -> str:
    """The header where nothing wants another one; empty where it depends on the request."""
    depends = settings.DEBUG or set(settings.CONTENT_SECURITY_POLICY) != {"DIRECTIVES"}
    if depends or getattr(settings, "CONTENT_SECURITY_POLICY_REPORT_ONLY", None):
        return ""
    return str(build_policy())


class NoStoreMiddleware:
    """No browser and no proxy keeps what a view answers: pages, answers of the API, exports and refusals.

    Static files are answered before this. What stands at an address with the hash of its content says itself that it
    may be kept.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        said = response.headers.get("Cache-Control", "")
        if "immutable" not in said and not (said == NEVER and "Expires" in response.headers):  # The admin says it, too.
            add_never_cache_headers(response)
        return response


class BodyLimitMiddleware:
    """Refuse a body that is larger than any of our forms, before anything reads it.

    Django's own limits do not cover a body that a REST parser reads as a stream, and not the files of a form. A body
    without a length is read as empty by Django, so the header is enough. The web process itself does not read more than
    `body_limit` either. In the admin, researchers who are logged in may send more than others. Who they are is known
    when the view is about to be called, before the CSRF check reads the form.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        limit = body_limit(request.path_info)
        return self.get_response(request) if _length(request) <= limit else _too_large(request, limit)

    def process_view(self, request: HttpRequest, *_view: object) -> HttpResponseBase | None:
        if _length(request) <= settings.HUNCH_MAX_BODY or (request.user.is_active and request.user.is_staff):
            return None
        return _too_large(request, settings.HUNCH_MAX_BODY)


def _length(request: HttpRequest) -> int:
    try:
        return int(request.META.get("CONTENT_LENGTH") or 0)
    except ValueError:
        return 0


def _too_large(request: HttpRequest, limit: int) -> HttpResponse:
    message = _("What was sent is too large: at most %(limit)d bytes.") % {"limit": limit}
    if request.path_info.startswith("/api/"):
        error = {"code": "too_large", "message": message, "request_id": request_ids.current.get()}
        return JsonResponse({"error": error}, status=413)
    return HttpResponse(message, status=413, content_type="text/plain; charset=utf-8")


class SecondFactorMiddleware:
    """Where codes are required, a session without one is led to the page that sets them up, and may do nothing else."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if settings.HUNCH_TOTP != "required" or not request.user.is_authenticated:
            return self.get_response(request)
        if second_factor.is_marked(request.session):
            return self.get_response(request)
        return self._without_code(request)

    def _without_code(self, request: HttpRequest) -> HttpResponseBase:
        set_up = reverse("admin:second_factor")
        if request.path_info.startswith(reverse("admin:index")):
            free = (set_up, reverse("admin:logout"), reverse("admin:login"), reverse("admin:jsi18n"))
            return self.get_response(request) if request.path_info in free else redirect(set_up)
        request.user = AnonymousUser()
        return self.get_response(request)


class InstrumentMissingMiddleware:
    """Say on an admin page which instrument is missing, where the page needs it and says nothing itself."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if not isinstance(exception, InstrumentMissing) or not request.path_info.startswith(reverse("admin:index")):
            return None
        context = {**admin.site.each_context(request), "title": "This cannot be shown", "message": exception.message}
        return render(request, "admin/survey/instrument_missing.html", context, status=exception.status)
