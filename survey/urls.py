"""Addresses. frontend is named by string: survey imports nothing of it."""

from typing import NoReturn

from csp.constants import SELF, UNSAFE_INLINE
from csp.decorators import csp_update
from django.contrib import admin
from django.http import Http404, HttpRequest
from django.urls import include, path
from drf_spectacular.views import SpectacularSwaggerSplitView

from survey.api.document import DocumentView
from survey.api.metrics import metrics
from survey.api.webhooks import panel_webhook
from survey.documents import views as documents
from survey.health import healthz

# The page of Swagger UI contains one <style> block; the rules for scripts stay strict.
api_docs = csp_update({"style-src": [SELF, UNSAFE_INLINE]})(SpectacularSwaggerSplitView.as_view(url_name="schema"))


def no_such_page(request: HttpRequest, rest: str) -> NoReturn:
    """In place of Django's redirect to the address of any row, no matter who may see it."""
    raise Http404


urlpatterns = [
    path("admin/r/<path:rest>", no_such_page),
    path("admin/", admin.site.urls),
    path("s/", include("frontend.urls")),
    path("api/v1/", include("survey.api.urls")),
    path("api/schema/", DocumentView.as_view(), name="schema"),
    path("api/docs/", api_docs, name="docs"),
    path("docs/", documents.first_page, name="documents"),
    path("docs/search", documents.search_page, name="documents_search"),
    path("docs/pictures/<str:name>", documents.picture, name="document_picture"),
    path("docs/<path:name>.html", documents.document_page, name="document"),
    path("hooks/<slug:panel>", panel_webhook, name="panel-webhook"),
    path("healthz", healthz, name="healthz"),
    path("metrics", metrics, name="metrics"),
    path("", include("frontend.urls_root")),
]

handler400 = "frontend.views.bad_request"
handler403 = "frontend.views.permission_denied"
handler404 = "frontend.views.page_not_found"
handler500 = "frontend.views.server_error"
