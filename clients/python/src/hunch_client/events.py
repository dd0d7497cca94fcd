"""Events of a study's webhook: checked before they are believed. Needs nothing but the standard library."""

import hashlib
import hmac
import json
import time
from typing import Any

TOLERANCE = 300  # seconds


class EventRefused(Exception):
    """The signature is missing, wrong, or too old: anyone who sent this does not know the secret."""


def event_of(body: bytes, header: str, secret: str, *, now: float | None = None) -> dict[str, Any]:
    """The event, if the header `X-Hunch-Signature` fits the body. Act once on each `id`: it may come again.

    Raises:
        EventRefused: it does not fit, or is more than five minutes old.
    """
    parts = dict(part.split("=", 1) for part in header.split(",") if "=" in part)
    at, signature = parts.get("t", ""), parts.get("v1", "")
    if not (at.isascii() and at.isdigit() and len(at) < 16):
        raise EventRefused("the signature has no time")
    expected = hmac.new(secret.encode(), at.encode() + b"." + body, hashlib.sha256).hexdigest()
    if not hmac.compare_digest(expected.encode(), signature.encode()):
        raise EventRefused("the signature is wrong")
    if abs((time.time() if now is None else now) - int(at)) > TOLERANCE:
        raise EventRefused("the signature is too old")
    event = json.loads(body)
    if not isinstance(event, dict):
        raise EventRefused("the body is no event")
    return event
