"""Middleware of the project. Imports Django and the contracts."""

from collections.abc import Callable

from django.conf import settings
from django.contrib import admin
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _

from survey.contracts.instruments import InstrumentMissing


class BodyLimitMiddleware:
    """Refuse a body that is larger than any of our forms, before anything reads it.

    Django's own limit does not cover a body that a REST parser reads as a stream. A body without a length is read as
    empty by Django, so the header is enough.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        in_admin = request.path_info.startswith(reverse("admin:index"))
        limit = settings.HUNCH_MAX_ADMIN_BODY if in_admin else settings.HUNCH_MAX_BODY
        try:
            length = int(request.META.get("CONTENT_LENGTH") or 0)
        except ValueError:
            length = 0
        if length <= limit:
            return self.get_response(request)
        message = _("What was sent is too large: at most %(limit)d bytes.") % {"limit": limit}
        if request.path_info.startswith("/api/"):
            return JsonResponse({"error": {"code": "too_large", "message": message}}, status=413)
        return HttpResponse(message, status=413, content_type="text/plain; charset=utf-8")


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
