"""Webhooks: events that a panel posts to us. A signed event is stored as a row, and a beat task works on it.

An event is only a hint. It names a submission, and we ask the panel for its status. So events may come late, twice and
in any order, and a forged one only makes us ask.
"""

import time
from collections.abc import Mapping
from contextlib import ExitStack
from datetime import timedelta

from django.db.models import F
from django.utils import timezone

from survey.contracts import panels
from survey.contracts.panels import Event, EventRefused, EventSubject, PanelClient, PanelError, PanelIds, PanelMissing
from survey.models import Posting, WebhookEvent
from survey.services.sittings.identities import seal, unseal

from .asking import can_ask, client_of
from .submissions import is_forgotten, read_posting, store

MOST_TRIES = 8
FIRST_WAIT = timedelta(seconds=15)
AT_ONCE = 100
State = WebhookEvent.State


def take(panel: str, *, headers: Mapping[str, str], body: bytes, now: float | None = None) -> WebhookEvent | None:
    """Store an event of the panel with that name until a beat task works on it; None if it came before.

    Raises:
        EventRefused: there is no such panel, it posts no events, or the signature is wrong or too old.
    """
    kind = panels.find(panel).client
    if kind is None:
        raise EventRefused("No webhooks are taken here.", status=404)
    read = kind.read_event(headers=headers, body=body, now=time.time() if now is None else now)
    event, created = WebhookEvent.objects.get_or_create(
        panel=panel,
        event_id=read.event_id[:100],
        defaults={
            "event_type": read.kind[:80],
            "body_encrypted": _sealed(panel, read),
            "due_at": timezone.now(),
        },
    )
    return event if created else None


def _sealed(panel: str, event: Event) -> bytes:
    """Only what the work needs, encrypted like a person's ids."""
    return seal(PanelIds(panel, event.person, "", event.resource)).encode()


def work_on_events() -> int:
    """Work on the events that are due; return how many were done. A failed one is tried again after a longer wait."""
    now = timezone.now()
    due = WebhookEvent.objects.filter(state=State.WAITING, due_at__lte=now)
    # If a panel cannot be asked now, its events wait. Events of other panels do not.
    askable = [panel for panel in set(due.values_list("panel", flat=True)) if can_ask(panel)]
    waiting = due.filter(panel__in=askable).order_by("due_at")[:AT_ONCE]
    done = 0
    claimed: list[WebhookEvent] = []
    for event in waiting:
        # A conditional update takes the event, so that two workers never ask about the same one.
        later = now + FIRST_WAIT * 2 ** min(event.tries, 8)
        mine = WebhookEvent.objects.filter(pk=event.pk, state=State.WAITING, tries=event.tries)
        if mine.update(tries=F("tries") + 1, due_at=later):
            event.tries += 1
            claimed.append(event)
    with ExitStack() as stack:
        clients = {panel: stack.enter_context(client_of(panel)) for panel in {event.panel for event in claimed}}
        for event in claimed:
            done += _work_on(event, clients[event.panel])
    return done


def _work_on(event: WebhookEvent, client: PanelClient) -> bool:
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
    """End the event and remove its ids, which are not needed any more."""
    event.state, event.body_encrypted, event.done_at = state, b"", timezone.now()
    event.save(update_fields=["state", "body_encrypted", "error", "done_at"])


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
        found = client.submission(resource)
    except PanelMissing:
        return State.IGNORED
    posting = _posting(event.panel, found.posting)
    if posting is None:
        return State.IGNORED
    store(posting, [found], read_at=asked_at)
    return State.DONE


def _posting(panel: str, external_id: str) -> Posting | None:
    """The posting with that id; None if it is not ours, or its people's ids were removed for good."""
    found = Posting.objects.filter(panel=panel, external_id=external_id).exclude(external_id="")
    posting = found.select_related("study").first()
    return None if posting is None or is_forgotten(posting) else posting
