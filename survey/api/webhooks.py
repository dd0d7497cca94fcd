"""Where a panel posts its events: parse, call, answer. Not part of the documented API, since only panels post here."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from survey.contracts.panels import EventRefused
from survey.panels.webhooks import take


@csrf_exempt  # Exempt from CSRF: the panel signs the exact bytes, and no browser posts here.
@require_POST
def panel_webhook(request: HttpRequest, panel: str) -> HttpResponse:
    try:
        take(panel, headers=request.headers, body=request.body)
    except EventRefused as refusal:
        return HttpResponse(refusal.message, status=refusal.status, content_type="text/plain; charset=utf-8")
    return HttpResponse(status=204)
