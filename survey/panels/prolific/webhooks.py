"""What a panel tells us unasked: taken when its signature is right, kept as a row, worked on by beat.

An event is only a hint. It names a submission, and we ask the panel how that one stands: so events may come late, twice
and in any order, and whoever forges one gains nothing but a question.
"""

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db.models import F
from django.utils import timezone

from survey.exceptions import HunchError
from survey.models import Posting, WebhookEvent
from survey.panels.errors import PanelError, PanelMissing
from survey.services.sittings.identities import PanelIds, seal, unseal

from .client import ProlificClient, is_configured, open_client
from .submissions import is_forgotten, read_posting, store

SIGNATURE = "X-Prolific-Request-Signature"
STAMP = "X-Prolific-Request-Timestamp"
EVENT_ID = "X-Event-ID"
WINDOW = 300  # seconds that a signed request is good for, before and after
MOST_TRIES = 8
FIRST_WAIT = timedelta(seconds=15)
AT_ONCE = 100
State = WebhookEvent.State


class NotTaken(HunchError):
    """Not signed by the panel, or not now."""

    code = "not_taken"
    status = 403


def take(*, headers: Mapping[str, str], body: bytes, now: float | None = None) -> WebhookEvent | None:
    """Keep an event until beat works on it; None where it came before.

    Raises:
        NotTaken: no secret is set, or the signature over these very bytes is not the panel's, or it is too old.
    """
    _refuse_unsigned(headers, body, time.time() if now is None else now)
    try:
        told = json.loads(body)
        kind = str(told["event_type"])[:80]
    except (ValueError, KeyError, TypeError) as exc:
        raise NotTaken("The body is not an event.", code="bad_event", status=400) from exc
    # Without an id of its own an event is known by its bytes.
    event_id = headers.get(EVENT_ID, "").strip()[:100] or hashlib.sha256(body).hexdigest()
    event, created = WebhookEvent.objects.get_or_create(
        panel="prolific",
        event_id=event_id,
        defaults={
            "event_type": kind,
            "body_encrypted": _sealed(told),
            "due_at": timezone.now(),
        },
    )
    return event if created else None


def _refuse_unsigned(headers: Mapping[str, str], body: bytes, now: float) -> None:
    secret = settings.HUNCH_PROLIFIC_WEBHOOK_SECRET
    if not secret:
        raise NotTaken("No webhooks are taken here.", status=404)
    stamp = headers.get(STAMP, "").strip()
    right = base64.b64encode(hmac.new(secret.encode(), stamp.encode() + body, hashlib.sha256).digest())
    if not hmac.compare_digest(right, headers.get(SIGNATURE, "").strip().encode()):
        raise NotTaken("The signature is not right.")
    # The stamp is part of what was signed, so that it is one of the panel's own.
    if not stamp.isdecimal() or abs(now - int(stamp)) > WINDOW:
        raise NotTaken("It is too old.")


def _sealed(told: Mapping[str, Any]) -> bytes:
    """What the work needs and no more, encrypted as a person's ids are."""
    return seal(
        PanelIds("prolific", str(told.get("participant_id") or ""), "", str(told.get("resource_id") or ""))
    ).encode()


def work_on_events() -> int:
    """Work on the events that are due; return how many were done. One that fails is tried again, later each time."""
    if not is_configured():
        return 0
    now = timezone.now()
    waiting = WebhookEvent.objects.filter(state=State.WAITING, due_at__lte=now).order_by("due_at")[:AT_ONCE]
    done = 0
    claimed: list[WebhookEvent] = []
    for event in waiting:
        # Taken by a conditional update: two workers never ask about one event at once.
        later = now + FIRST_WAIT * 2 ** min(event.tries, 8)
        mine = WebhookEvent.objects.filter(pk=event.pk, state=State.WAITING, tries=event.tries)
        if mine.update(tries=F("tries") + 1, due_at=later):
            event.tries += 1
            claimed.append(event)
    if not claimed:
        return 0
    with open_client() as client:
        for event in claimed:
            done += _work_on(event, client)
    return done


def _work_on(event: WebhookEvent, client: ProlificClient) -> bool:
    try:
        state = _read_what_it_is_about(event, client)
    except PanelError as exc:
        event.error = exc.message
        if event.tries >= MOST_TRIES:
            _close(event, State.FAILED)
        else:
            event.save(update_fields=["error"])
        return False
    event.error = ""
    _close(event, state)
    return True


def _close(event: WebhookEvent, state: State) -> None:
    """Its ids go with its end: nothing asks for them again."""
    event.state, event.body_encrypted, event.done_at = state, b"", timezone.now()
    event.save(update_fields=["state", "body_encrypted", "error", "done_at"])


def _read_what_it_is_about(event: WebhookEvent, client: ProlificClient) -> State:
    ids = unseal(bytes(event.body_encrypted).decode())
    resource = ids.submission if ids else ""
    if not resource:
        return State.IGNORED
    if event.event_type.startswith("study."):
        posting = Posting.objects.filter(external_id=resource).select_related("study").first()
        if posting is None or is_forgotten(posting):
            return State.IGNORED
        read_posting(posting, client=client)
        return State.DONE
    if event.event_type != "submission.status.change":
        return State.IGNORED
    asked_at = timezone.now()
    try:
        told = client.submission(resource)
    except PanelMissing:
        return State.IGNORED
    posting = Posting.objects.filter(external_id=str(told.get("study_id") or "")).select_related("study").first()
    if posting is None or is_forgotten(posting):
        return State.IGNORED
    store(posting, [told], read_at=asked_at)
    return State.DONE
