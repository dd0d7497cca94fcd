"""Events that Prolific posts. One is accepted if its signature fits the exact bytes and is recent enough."""

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import Any

from django.conf import settings

from survey.contracts.panels import Event, EventRefused, EventSubject

SIGNATURE = "X-Prolific-Request-Signature"
STAMP = "X-Prolific-Request-Timestamp"
EVENT_ID = "X-Event-ID"
LONGEST_STAMP = 12  # digits
WINDOW = 300  # seconds that a signed request is good for, before and after


def read_event(*, headers: Mapping[str, str], body: bytes, now: float) -> Event:
    """
    Raises:
        EventRefused: no secret is set, the signature does not fit these exact bytes, or it is too old or no event.
    """
    _refuse_unsigned(headers, body, now)
    try:
        event = json.loads(body)
        kind, resource, person = _texts(event["event_type"], event.get("resource_id"), event.get("participant_id"))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as exc:
        raise EventRefused("The body is not an event.", code="bad_event", status=400) from exc
    # The header with the id is not signed. So the id counts only together with the body: nobody can use up the id of an
    # event that is still to come. Another delivery of the same event has the same id and body, and a stamp of its own.
    named = headers.get(EVENT_ID, "").strip().encode()
    return Event(
        event_id=hashlib.sha256(named + b"\0" + body).hexdigest(),
        kind=kind[:80],
        resource=resource,
        person=person,
        signed=hashlib.sha256(headers.get(STAMP, "").strip().encode() + b"\0" + body).hexdigest(),
    )


def _texts(*values: Any) -> list[str]:
    """Names and ids are texts. A list or a number in their place is no event, however deep Python can read it."""
    if not all(value is None or isinstance(value, str) for value in values):
        raise TypeError("a name or an id is no text")
    return [value or "" for value in values]


def _refuse_unsigned(headers: Mapping[str, str], body: bytes, now: float) -> None:
    secret = settings.HUNCH_PROLIFIC_WEBHOOK_SECRET
    if not secret:
        raise EventRefused("No webhooks are taken here.", status=404)
    stamp = headers.get(STAMP, "").strip()
    right = base64.b64encode(hmac.new(secret.encode(), stamp.encode() + body, hashlib.sha256).digest())
    if not hmac.compare_digest(right, headers.get(SIGNATURE, "").strip().encode()):
        raise EventRefused("The signature is not right.")
    # The stamp is part of what was signed, so it comes from the panel.
    if not (stamp.isascii() and stamp.isdecimal() and len(stamp) <= LONGEST_STAMP):
        raise EventRefused(f"{STAMP} is no time in seconds.", code="bad_event", status=400)
    if abs(now - int(stamp)) > WINDOW:
        raise EventRefused("It is too old.")


def subject_of(kind: str) -> EventSubject:
    if kind.startswith("study."):
        return EventSubject.POSTING
    return EventSubject.SUBMISSION if kind == "submission.status.change" else EventSubject.NOTHING_OF_OURS
