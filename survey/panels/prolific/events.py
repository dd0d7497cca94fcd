"""Events that Prolific posts. One is accepted if its signature fits the exact bytes and is recent enough."""

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping

from django.conf import settings

from survey.contracts.panels import Event, EventRefused, EventSubject

SIGNATURE = "X-Prolific-Request-Signature"
STAMP = "X-Prolific-Request-Timestamp"
EVENT_ID = "X-Event-ID"
WINDOW = 300  # seconds that a signed request is good for, before and after


def read_event(*, headers: Mapping[str, str], body: bytes, now: float) -> Event:
    """
    Raises:
        EventRefused: no secret is set, the signature does not fit these exact bytes, or it is too old.
    """
    _refuse_unsigned(headers, body, now)
    try:
        event = json.loads(body)
        kind = str(event["event_type"])[:80]
    except (ValueError, KeyError, TypeError) as exc:
        raise EventRefused("The body is not an event.", code="bad_event", status=400) from exc
    # An event without an id is known by its bytes.
    event_id = headers.get(EVENT_ID, "").strip()[:100] or hashlib.sha256(body).hexdigest()
    return Event(event_id, kind, str(event.get("resource_id") or ""), str(event.get("participant_id") or ""))


def _refuse_unsigned(headers: Mapping[str, str], body: bytes, now: float) -> None:
    secret = settings.HUNCH_PROLIFIC_WEBHOOK_SECRET
    if not secret:
        raise EventRefused("No webhooks are taken here.", status=404)
    stamp = headers.get(STAMP, "").strip()
    right = base64.b64encode(hmac.new(secret.encode(), stamp.encode() + body, hashlib.sha256).digest())
    if not hmac.compare_digest(right, headers.get(SIGNATURE, "").strip().encode()):
        raise EventRefused("The signature is not right.")
    # The stamp is part of what was signed, so it comes from the panel.
    if not stamp.isdecimal() or abs(now - int(stamp)) > WINDOW:
        raise EventRefused("It is too old.")


def subject_of(kind: str) -> EventSubject:
    if kind.startswith("study."):
        return EventSubject.POSTING
    return EventSubject.SUBMISSION if kind == "submission.status.change" else EventSubject.NOTHING_OF_OURS
