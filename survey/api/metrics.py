"""`GET /metrics` for Prometheus, with a token of its own."""

import hmac

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe


@never_cache
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """404 without HUNCH_METRICS_TOKEN, 401 without it in the header `Authorization: Bearer TOKEN`."""
    if not settings.HUNCH_METRICS_TOKEN:
        raise Http404
    header = request.headers.get("Authorization", "").encode()
    if not hmac.compare_digest(header, b"Bearer " + settings.HUNCH_METRICS_TOKEN.encode()):
        return HttpResponse("Wrong token.\n", status=401, headers={"WWW-Authenticate": "Bearer"})
    from survey.operation.metrics import CONTENT_TYPE_LATEST, exposition  # Loaded where somebody reads them.

    return HttpResponse(exposition(), content_type=CONTENT_TYPE_LATEST)
