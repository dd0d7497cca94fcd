"""The receivers of a study's alerts: added, switched off, removed. The audit has each change, without addresses."""

import json
import secrets
from collections.abc import Collection
from typing import Any

from cryptography.fernet import InvalidToken
from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction
from django.utils import timezone

from survey.exceptions import FieldErrors, StateRefused
from survey.models import Alert, Delivery, Receiver, Study
from survey.services.base.auditing import record
from survey.services.base.hashing import identity_cipher

from . import outbound

MAX_RECEIVERS = 10  # receivers of a study
Cause = Alert.Cause
# The alerts that a study's receivers may get. All others are about the whole site.
OFFERED = (
    Cause.STAGE_FULL,
    Cause.STEP_FAILED,
    Cause.NO_ARRIVALS,
    Cause.RETURNS_HIGH,
    Cause.CAP_NEAR,
    Cause.POSTING_PAUSED,
    Cause.NOT_PAUSED,
)


def add(
    study: Study, *, kind: str, address: str, causes: Collection[str], by: Any = None, via: str = "command"
) -> tuple[Receiver, str]:
    """A new receiver, and the secret that signs what it gets (empty for e-mail).

    Raises:
        FieldErrors: the address cannot be used, leads into our own network, or no alert was chosen.
        StateRefused: the study has too many.
    """
    address = address.strip()
    shown_address = _checked(kind, address)
    known = [cause.value for cause in OFFERED]
    if not causes or not set(causes) <= set(known):
        raise FieldErrors({"causes": [f"Choose at least one of: {', '.join(known)}."]})
    secret = secrets.token_urlsafe(32) if kind == Receiver.Kind.WEBHOOK else ""
    sealed = identity_cipher().encrypt(json.dumps([address, secret]).encode())
    with transaction.atomic():
        Study.objects.select_for_update(no_key=True).filter(pk=study.pk).values_list("pk").first()
        if study.receivers.count() >= MAX_RECEIVERS:
            raise StateRefused(f"{study.slug} has {MAX_RECEIVERS} receivers: remove one first")
        receiver = Receiver.objects.create(
            study=study,
            kind=kind,
            shown=shown_address,
            sealed=sealed,
            causes=[cause for cause in known if cause in causes],
            created_by=by if getattr(by, "is_authenticated", False) else None,
            since=timezone.now(),
        )
        record("add_receiver", study, by=by, via=via, receiver=receiver.pk, kind=kind, causes=receiver.causes)
    return receiver, secret


def _checked(kind: str, address: str) -> str:
    """What pages show of a good address."""
    if kind == Receiver.Kind.EMAIL:
        if not settings.EMAIL_HOST:
            raise FieldErrors({"kind": ["This server sends no e-mail: HUNCH_EMAIL_URL is not set."]})
        try:
            validate_email(address)
        except ValidationError:
            raise FieldErrors({"address": ["Write an e-mail address, such as you@example.org."]}) from None
        return address[:254]
    if kind != Receiver.Kind.WEBHOOK:
        raise FieldErrors({"kind": [f"Choose one of: {', '.join(Receiver.Kind.values)}."]})
    try:
        place = outbound.read_address(address)
        outbound.resolve(place)
    except outbound.AddressRefused as exc:
        raise FieldErrors({"address": [str(exc)]}) from None
    except outbound.NotSent:
        raise FieldErrors({"address": ["The name of the host cannot be resolved at the moment. Try again."]}) from None
    return place.host


def opened(receiver: Receiver) -> tuple[str, str]:
    """Its address and its secret.

    Raises:
        StateRefused: they were encrypted with another key.
    """
    try:
        address, secret = json.loads(identity_cipher().decrypt(bytes(receiver.sealed)))
    except InvalidToken:
        words = "its address was encrypted with another HUNCH_IDENTITY_KEY: remove it and add it again"
        raise StateRefused(words) from None
    return str(address), str(secret)


@transaction.atomic
def switch(receiver: Receiver, *, on: bool, why: str = "", by: Any = None, via: str = "command") -> bool:
    """Switch it on or off; False if it was so already. What waits is given up when it is switched off, and what happens
    while it is off is not sent later."""
    changed = Receiver.objects.filter(pk=receiver.pk, is_active=not on).update(
        is_active=on, off_because="" if on else why[:200], **({"since": timezone.now()} if on else {})
    )
    if not changed:
        return False
    if not on:
        Delivery.objects.filter(receiver=receiver, state=Delivery.State.QUEUED).update(
            state=Delivery.State.FAILED, finished_at=timezone.now(), answer="switched off"
        )
    record("switch_receiver", receiver.study, by=by, via=via, receiver=receiver.pk, on=on)
    return True


@transaction.atomic
def remove(receiver: Receiver, *, by: Any = None, via: str = "command") -> None:
    """Remove it, and the list of what it was sent."""
    record("remove_receiver", receiver.study, by=by, via=via, receiver=receiver.pk)
    receiver.delete()
