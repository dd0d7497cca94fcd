"""Sends a study's alerts to its receivers, from stored rows: each event once, tried again with growing pauses.

Nothing is sent in a request or in a transaction. Several are sent at a time, each by a thread of its own that touches
no row, so that a receiver that hangs keeps nobody else waiting.
"""

import json
import logging
import queue
import secrets
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.core.mail import send_mail
from django.db import transaction
from django.urls import reverse
from django.utils import timezone

from survey.exceptions import StateRefused
from survey.figures.words import number
from survey.models import Alert, Delivery, Receiver, Study
from survey.panels.addresses import public_root
from survey.services.base import leases
from survey.services.base.auditing import record
from survey.services.base.hashing import digest

from . import channels, outbound, receivers

logger = logging.getLogger(__name__)

# After the first try, the second, and so on; then it is given up.
PAUSES = tuple(timedelta(minutes=n) for n in (1, 5, 15, 60, 180, 360, 720, 1440))
MAX_DELIVERIES_AT_ONCE = 8  # deliveries, each to another receiver
LONGEST_ROUND = 15.0  # seconds; who has not answered then has not taken it
KEPT = timedelta(days=30)
LATEST = timedelta(days=2)  # Alerts that opened earlier are no news.
GONE = 410  # By this answer a receiver says that it wants no more.


def _id_of(alert: Alert, state: str) -> str:
    """The same whenever this is asked for. Different for each installation: `opened_at` has microseconds."""
    return f"evt_{digest([alert.pk, alert.opened_at.isoformat(), state])[:32]}"


def _body(
    event_id: str, event: str, study: Study, *, subject: str, message: str, at: datetime, state: str = "open"
) -> dict[str, Any]:
    """What is sent. `text` is what chat servers show; it repeats the rest for people."""
    address = f"{public_root()}{reverse('admin:survey_study_change', args=[study.pk])}"
    label = event if event == "test" else str(Alert.Cause(event).label)
    head = f"Hunch: {'over: ' if state == 'over' else ''}{label}: {subject}"
    return {
        "id": event_id,
        "type": event,
        "state": state,
        "study": study.slug,
        "subject": subject,
        "message": message,
        "at": at.isoformat(),
        "text": f"{head}\n{message}\n{address}",
    }


def send_test(receiver: Receiver, *, by: Any = None, via: str = "command") -> Delivery:
    """Queue a test event, which a worker sends within some seconds.

    Raises:
        StateRefused: the receiver is switched off.
    """
    if not receiver.is_active:
        raise StateRefused("it is switched off: switch it on first")
    now, event_id = timezone.now(), f"evt_{secrets.token_hex(16)}"
    words = {"subject": "a test", "message": "This is a test: nothing is wrong."}
    body = _body(event_id, "test", receiver.study, at=now, **words)
    with transaction.atomic():
        made = Delivery.objects.create(receiver=receiver, event_id=event_id, event="test", body=body, due_at=now)
        record("test_receiver", receiver.study, by=by, via=via, receiver=receiver.pk)
    return made


# From alerts to rows


def queue_events(*, now: datetime) -> int:
    """A row for each receiver of each alert that is new or over; safe to call again. Returns how many are new."""
    listening = list(Receiver.objects.filter(is_active=True).select_related("study").order_by("pk"))
    if not listening:
        return 0
    alerts: dict[int | None, list[Alert]] = defaultdict(list)
    of_them = Alert.objects.filter(study__in={receiver.study_id for receiver in listening}, opened_at__gte=now - LATEST)
    for alert in of_them.order_by("pk"):
        alerts[alert.study_id].append(alert)
    wanted = [
        (receiver, alert)
        for receiver in listening
        for alert in alerts[receiver.study_id]
        if alert.cause in receiver.causes and alert.opened_at >= receiver.since
    ]
    rows = Delivery.objects.filter(alert__in={alert.pk for _receiver, alert in wanted})
    known = set(rows.values_list("receiver", "event_id"))
    made = [
        row
        for receiver, alert in wanted
        for row in _rows_of(receiver, alert, now)
        if (receiver.pk, row.event_id) not in known
        # What was over before it was sent is sent to nobody.
        and (alert.resolved_at is None or (receiver.pk, _id_of(alert, "open")) in known)
    ]
    Delivery.objects.bulk_create(made, ignore_conflicts=True)
    return len(made)


def _rows_of(receiver: Receiver, alert: Alert, now: datetime) -> Iterator[Delivery]:
    """What is to be sent about the alert as it is now."""
    moments = [("open", alert.opened_at, alert.message)]
    if alert.resolved_at is not None:
        moments.append(("over", alert.resolved_at, "It is over."))
    for state, at, message in moments:
        event_id = _id_of(alert, state)
        facts = {"subject": alert.subject, "message": message, "state": state}
        body = _body(event_id, alert.cause, receiver.study, at=at, **facts)
        yield Delivery(receiver=receiver, alert=alert, event_id=event_id, event=alert.cause, body=body, due_at=now)


# From rows to receivers


def send_due(*, now: datetime | None = None) -> int:
    """Send what is due, at most one event to each receiver; return how many were taken."""
    now = now or timezone.now()
    held = _claim_due(now)
    if not held:
        return 0
    results: queue.SimpleQueue[tuple[int, bool, str, int]] = queue.SimpleQueue()
    started = time.monotonic()
    for delivery in held:
        # A daemon: looking up a name cannot be interrupted, and must not keep a worker from ending.
        threading.Thread(target=_send_into, args=(results, *_what_to_send(delivery.row)), daemon=True).start()
    waiting = {delivery.row.pk: delivery for delivery in held}
    taken = 0
    while waiting:
        left = LONGEST_ROUND - (time.monotonic() - started)
        try:
            pk, was_taken, words, status = results.get(timeout=max(left, 0.01))
        except queue.Empty:
            break
        taken += was_taken
        _end(waiting.pop(pk), was_taken, words, status)
    for delivery in waiting.values():
        _end(delivery, False, f"no answer within {number(LONGEST_ROUND, 0)} seconds", 0)
    return taken


def _claim_due(now: datetime) -> list[leases.Hold[Delivery]]:
    rows = Delivery.objects.filter(receiver__is_active=True, due_at__lte=now)
    held: dict[int, leases.Hold[Delivery]] = {}
    # One at a time for each: who hangs is not asked a second time meanwhile.
    busy = set(
        Delivery.objects.filter(state=Delivery.State.RUNNING, lease_until__gte=now).values_list("receiver", flat=True)
    )
    for pk, receiver in rows.filter(Delivery.is_free(now)).order_by("pk").values_list("pk", "receiver")[:1000]:
        if receiver in busy or len(held) == MAX_DELIVERIES_AT_ONCE:
            continue
        busy.add(receiver)
        if (row := leases.claim(rows, pk, now=now)) is not None:
            held[receiver] = leases.Hold(row)
    return list(held.values())


def _what_to_send(row: Delivery) -> tuple[int, str, str, str, Mapping[str, Any]]:
    """Everything that the thread needs."""
    try:
        address, secret = receivers.opened(row.receiver)
    except StateRefused as exc:
        return row.pk, "", exc.message, "", {}
    return row.pk, row.receiver.kind, address, secret, row.body


def _send_into(
    results: "queue.SimpleQueue[tuple[int, bool, str, int]]",
    pk: int,
    kind: str,
    address: str,
    secret: str,
    body: Mapping[str, Any],
) -> None:
    try:
        was_taken, words, status = _send(kind, address, secret, body)
    except Exception as exc:  # A library's fault must not leave the row without an answer. No address is logged.
        logger.warning("an event could not be sent (%s)", type(exc).__name__)
        was_taken, words, status = False, f"it could not be sent ({type(exc).__name__})", 0
    results.put((pk, was_taken, words, status))


def _send(kind: str, address: str, secret: str, body: Mapping[str, Any]) -> tuple[bool, str, int]:
    """Whether it was taken, what to say of it, and the status of the answer (0: none)."""
    if not kind:
        return False, address, 0
    if kind == Receiver.Kind.EMAIL:
        try:
            sent = send_mail(str(body["text"]).partition("\n")[0], str(body["text"]), None, [address])
        except OSError as exc:
            return False, f"the mail server did not take it ({type(exc).__name__})", 0
        return bool(sent), "sent" if sent else "the mail server did not take it", 0
    content = json.dumps(body).encode()
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "Hunch",
        "X-Hunch-Event": str(body["id"]),
        channels.SIGNATURE_HEADER: channels.signature(content, at=int(timezone.now().timestamp()), secret=secret),
    }
    try:
        status = outbound.post(outbound.read_address(address), content, headers)
    except (outbound.AddressRefused, outbound.NotSent) as exc:
        return False, str(exc), 0
    return 200 <= status < 300, f"answered {status}", status


def _end(held: leases.Hold[Delivery], was_taken: bool, words: str, status: int) -> None:
    row = held.row
    tries = row.tries + 1
    if was_taken:
        held.end(Delivery.State.DONE, tries=tries, answer=words[:300])
    elif status == GONE:
        held.end(Delivery.State.FAILED, tries=tries, answer=words[:300])
        receivers.switch(row.receiver, on=False, why="it answered 410 (gone)", via="worker")
    elif tries > len(PAUSES):
        held.end(Delivery.State.FAILED, tries=tries, answer=words[:300])
    else:
        due_at = timezone.now() + PAUSES[tries - 1]
        held.give_back(tries=tries, answer=words[:300], due_at=due_at)


def forget_old(*, now: datetime) -> int:
    """Delete what ended long ago."""
    ended: Sequence[str] = (Delivery.State.DONE, Delivery.State.FAILED)
    return Delivery.objects.filter(state__in=ended, created_at__lt=now - KEPT).delete()[0]
