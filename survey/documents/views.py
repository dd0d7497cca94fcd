"""The documents' pages, pictures and search. No account is asked for: they say nothing of any study."""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import translation
from django.views.decorators.http import require_safe

from . import pages
from .search import LONGEST, search

KEPT = "public, max-age=31536000, immutable"


def _page(request: HttpRequest, template: str, **context: object) -> HttpResponse:
    with translation.override("en"):  # The documents are English, whatever the browser asks for.
        return render(request, f"survey/documents/{template}", {"menu": pages.menu(), **context})


@require_safe
def first_page(request: HttpRequest) -> HttpResponse:
    return redirect("document", pages.FIRST)


@require_safe
def document_page(request: HttpRequest, name: str) -> HttpResponse:
    document = pages.document(name)
    if document is None:
        raise Http404
    before, after = pages.beside(name)
    return _page(request, "page.html", document=document, before=before, after=after)


@require_safe
def search_page(request: HttpRequest) -> HttpResponse:
    question = request.GET.get("q", "").strip()[:LONGEST]
    return _page(request, "search.html", question=question, places=search(question))


@require_safe
def picture(request: HttpRequest, name: str) -> HttpResponse:
    stored_picture = pages.picture(name)
    if stored_picture is None:
        raise Http404
    content, content_type, digest = stored_picture
    response = HttpResponse(content, content_type=content_type)
    if request.GET.get("v") == digest:  # Only under the address that names this content.
        response.headers["Cache-Control"] = KEPT
    return response
