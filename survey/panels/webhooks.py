"""Webhooks: events that a panel posts to us. A signed event is stored as a row, and a beat task works on it.

An event is only a hint. It names a submission, and we ask the panel for its status. So events may come late, twice and
in any order, and a forged one only makes us ask.
"""

import logging
import time
from collections.abc import Mapping
from datetime import timedelta

from django.db import IntegrityError, transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from survey.contracts import panels
from survey.contracts.panels import Event, EventRefused, EventSubject, PanelClient, PanelIds, PanelMissing
from survey.exceptions import HunchError
from survey.letters import control_character
from survey.models import Posting, WebhookEvent
from survey.services.sittings.identities import seal, unseal

from .asking import can_ask, client_of, words_of
from .submissions import is_forgotten, read_posting, store

MAX_TRIES = 8
FIRST_WAIT = timedelta(seconds=15)
BATCH_SIZE = 100
State = WebhookEvent.State

logger = logging.getLogger(__name__)


def take(panel: str, *, headers: Mapping[str, str], body: bytes, now: float | None = None) -> WebhookEvent | None:
    """Store an event of the panel with that name until a beat task works on it; None if it came before.

    It came before if the panel sends the same event again, or if somebody sends the bytes again that the panel signed,
    with whatever else around them.

    Raises:
        EventRefused: there is no such panel, it posts no events, the signature is wrong or too old, or it is no event
            that can be stored.
    """
    kind = panels.find(panel).client
    if kind is None:
        raise EventRefused("No webhooks are taken here.", status=404)
    try:
        read = kind.read_event(headers=headers, body=body, now=time.time() if now is None else now)
    except RecursionError as exc:  # Whatever the panel's own reader looks for, it may be nested too deep.
        raise EventRefused("The body is not an event.", code="bad_event", status=400) from exc
    if any(control_character(text) for text in (read.event_id, read.kind, read.resource, read.person, read.signed)):
        raise EventRefused("The event holds a character that cannot be stored.", code="bad_event", status=400)
    event = WebhookEvent(
        panel=panel,
        event_id=read.event_id[:100],
        signed_sha256=read.signed,
        event_type=read.kind[:80],
        body_encrypted=_sealed(panel, read),
        due_at=timezone.now(),
    )
    if _came_before(event):
        return None
    try:
        with transaction.atomic():
            event.save(force_insert=True)
    except IntegrityError:
        if not _came_before(event):
            raise
        return None  # Another process took it at the same moment.
    return event


def _came_before(event: WebhookEvent) -> bool:
    same = Q(event_id=event.event_id)
    if event.signed_sha256:
        same |= Q(signed_sha256=event.signed_sha256)
    return WebhookEvent.objects.filter(same, panel=event.panel).exists()


def _sealed(panel: str, event: Event) -> bytes:
    """Only what the work needs, encrypted like a person's ids."""
    return seal(PanelIds(panel, event.person, "", event.resource)).encode()


def work_on_events() -> int:
    """Work on the events that are due; return how many were done. A failed one is tried again after a longer wait."""
    now = timezone.now()
    due = WebhookEvent.objects.filter(state=State.WAITING, due_at__lte=now)
    # If a panel cannot be asked now, its events wait. Events of other panels do not.
    askable = [panel for panel in set(due.values_list("panel", flat=True)) if can_ask(panel)]
    waiting = due.filter(panel__in=askable).order_by("due_at")[:BATCH_SIZE]
    done = 0
    claimed: list[WebhookEvent] = []
    for event in waiting:
        # A conditional update takes the event, so that two workers never ask about the same one.
        later = now + FIRST_WAIT * 2 ** min(event.tries, 8)
        if _mine(event).update(tries=F("tries") + 1, due_at=later):
            event.tries += 1
            claimed.append(event)
    for panel in sorted({event.panel for event in claimed}):
        events = [event for event in claimed if event.panel == panel]
        try:
            with client_of(panel) as client:
                done += sum(_work_on(event, client) for event in events)
        except Exception as exc:
            # It could not be opened. Its events are tried again; those of other panels do not wait.
            logger.exception("%s: no event could be worked on", panel)
            for event in events:
                _write_down(event, exc)
    return done


def _work_on(event: WebhookEvent, client: PanelClient) -> bool:
    try:
        state = _read_what_it_is_about(event, client)
    except Exception as exc:
        if not isinstance(exc, HunchError):
            logger.exception("event %s of %s", event.pk, event.panel)
        _write_down(event, exc)
        return False
    return _close(event, state)


def _write_down(event: WebhookEvent, error: Exception) -> None:
    if event.tries >= MAX_TRIES:
        _close(event, State.FAILED, words_of(error))
    else:
        _mine(event).update(error=words_of(error))


def _mine(event: WebhookEvent) -> QuerySet[WebhookEvent]:
    """The event, unless another worker has taken it up or ended it since."""
    return WebhookEvent.objects.filter(pk=event.pk, state=State.WAITING, tries=event.tries)


def _close(event: WebhookEvent, state: State, error: str = "") -> bool:
    """End the event and remove its ids, which are not needed any more."""
    return bool(_mine(event).update(state=state, body_encrypted=b"", error=error, done_at=timezone.now()))


def _read_what_it_is_about(event: WebhookEvent, client: PanelClient) -> State:
    ids = unseal(bytes(event.body_encrypted).decode())
    resource = ids.submission if ids else ""
    subject = client.event_subject(event.event_type)
    if not resource or subject == EventSubject.NOTHING_OF_OURS:
        return State.IGNORED
    if subject == EventSubject.POSTING:
        posting = _posting(event.panel, resource)
        if posting is None:
            return State.IGNORED
        read_posting(posting, client=client)
        return State.DONE
    asked_at = timezone.now()
    try:
        submission = client.submission(resource)
    except PanelMissing:
        return State.IGNORED
    posting = _posting(event.panel, submission.posting) or _posting(event.panel, submission.parent)
    if posting is None:
        return State.IGNORED
    store(posting, [submission], read_at=asked_at)
    return State.DONE


def _posting(panel: str, external_id: str) -> Posting | None:
    """The posting with that id; None if it is not ours, or its people's ids were removed for good."""
    if not external_id:
        return None
    postings = Posting.objects.filter(Q(external_id=external_id) | Q(parts__external_id=external_id), panel=panel)
    posting = postings.select_related("study").first()
    return None if posting is None or is_forgotten(posting) else posting
