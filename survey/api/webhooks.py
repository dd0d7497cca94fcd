"""Where a panel posts its events: parse, call, answer. Not part of the documented API: nobody else is answered."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from survey.panels.prolific.webhooks import NotTaken, take


@csrf_exempt  # Signed by the panel over its very bytes; no browser of ours posts here.
@require_POST
def prolific_webhook(request: HttpRequest) -> HttpResponse:
    try:
        take(headers=request.headers, body=request.body)
    except NotTaken as refusal:
        return HttpResponse(refusal.message, status=refusal.status, content_type="text/plain; charset=utf-8")
    return HttpResponse(status=204)
