"""What visitors see while the database or the disk cannot be used: 503, and nothing that was typed is lost.

All of it works without a database. Imports survey alone.
"""

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import render
from django.utils import translation
from django.utils.cache import add_never_cache_headers
from django.utils.log import log_response
from django.utils.translation import gettext as _

from survey.logs import request_ids
from survey.storage.outages import is_outage

from . import cookies

RETRY_AFTER = 10  # seconds
CSRF_FIELD = "csrfmiddlewaretoken"


class OutageMiddleware:
    """Answer 503 where a view could not use the database or the disk. What fails outside views is a case for
    `views.server_error`, which gives the same answer."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        # A view was called, so the CSRF check has let the form through.
        return unavailable(request, exception, is_checked=True) if is_outage(exception) else None


def unavailable(request: HttpRequest, exc: BaseException, *, is_checked: bool) -> HttpResponse:
    """The answer to this request while `exc` keeps us from working.

    Args:
        is_checked: whether the CSRF check has let the request through. Only then its fields are shown again.
    """
    with translation.override(_language(request)):
        response = _answer(request, is_checked=is_checked)
        response.headers["Content-Language"] = translation.get_language() or "en"
    response.headers["Retry-After"] = str(RETRY_AFTER)
    add_never_cache_headers(response)
    log_response(
        "%s %s: not possible for now: %s: %s",
        request.method,
        request.path_info,
        type(exc).__name__,
        (str(exc).splitlines() or [""])[0],
        response=response,
        request=request,
        level="warning",
    )
    return response


def _language(request: HttpRequest) -> str:
    """Which language a study is in stands in the database. What the respondent has chosen is in a cookie."""
    chosen = request.COOKIES.get(cookies.LANGUAGE, "")
    return chosen if chosen in dict(settings.LANGUAGES) else translation.get_language_from_request(request)


def _answer(request: HttpRequest, *, is_checked: bool) -> HttpResponse:
    is_respondents = request.resolver_match is not None and request.resolver_match.app_name == "frontend"
    if not is_respondents:
        message = _(
            "The database or the disk cannot be used at the moment. Please try again in a minute. If you have sent "
            "something, look first whether it was stored."
        )
    elif request.method == "POST":
        message = _(
            "We cannot reach our records at the moment, so we do not know whether this page has arrived. What you "
            "entered is still here. Please wait a moment, then send it again. It is stored once, however often you "
            "send it."
        )
    else:
        message = _(
            "We cannot reach our records at the moment. What you have answered is stored. Please wait a moment, then "
            "try again."
        )
    if request.path_info.startswith("/api/"):
        error = {"code": "unavailable", "message": message, "request_id": request_ids.current.get()}
        return JsonResponse({"error": error}, status=503)
    if request.path_info.startswith("/hooks/"):
        return HttpResponse(message, status=503, content_type="text/plain; charset=utf-8")
    sends_again = is_respondents and is_checked and request.method == "POST"
    context = {
        "title": _("Please try again in a moment"),
        "message": message,
        "loads_again": request.method in ("GET", "HEAD"),
        "sends_again": sends_again,
        "sent": _fields(request) if sends_again else (),
    }
    return render(request, "frontend/unavailable.html", context, status=503)


def _fields(request: HttpRequest) -> list[tuple[str, str]]:
    """What was sent, but for the CSRF token: the page gets one of its own."""
    return [(name, value) for name, values in request.POST.lists() if name != CSRF_FIELD for value in values]
