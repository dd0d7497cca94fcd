"""Sends alerts by e-mail and webhook, and a ping whose absence shows an outside service that this host is dead.

Imports only Django, and httpx when it sends. Nothing here raises: reporting a failure must not cause a second one.
Addresses may hold tokens, so no log names them.
"""

import hashlib
import hmac
import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from django.conf import settings
from django.core.mail import send_mail
from django.utils import timezone

logger = logging.getLogger(__name__)

TIMEOUT = 5.0  # seconds
SIGNATURE_HEADER = "X-Hunch-Signature"


def are_configured() -> bool:
    return bool(settings.HUNCH_ALERT_EMAILS or settings.HUNCH_ALERT_WEBHOOK)


def send(title: str, lines: Sequence[str], alerts: Sequence[Mapping[str, Any]]) -> bool:
    """Tell people by every way that is set up; True if at least one of them took it.

    Args:
        alerts: the same for programs, as JSON values.
    """
    text = "\n\n".join(lines)
    done = [_send_email(title, text), _post(title, text, alerts)]
    return any(done)


def _send_email(title: str, text: str) -> bool:
    if not settings.HUNCH_ALERT_EMAILS:
        return False
    try:
        return bool(send_mail(f"Hunch: {title}", text, None, settings.HUNCH_ALERT_EMAILS))
    except Exception as exc:  # Any mail server's fault, from a closed port to a wrong certificate.
        logger.warning("no alert could be sent by e-mail (%s): look at HUNCH_EMAIL_URL", type(exc).__name__)
        return False


def _post(title: str, text: str, alerts: Sequence[Mapping[str, Any]]) -> bool:
    if not settings.HUNCH_ALERT_WEBHOOK:
        return False
    import httpx

    # Chat servers show `text`; programs read `alerts`.
    body = json.dumps({"text": f"Hunch: {title}\n\n{text}", "alerts": list(alerts)}).encode()
    headers = {"Content-Type": "application/json"}
    if settings.HUNCH_ALERT_WEBHOOK_SECRET:
        headers[SIGNATURE_HEADER] = signature(
            body, at=int(timezone.now().timestamp()), secret=settings.HUNCH_ALERT_WEBHOOK_SECRET
        )
    try:
        # No redirect is followed: it could lead to an address that nobody has set.
        answer = httpx.post(
            settings.HUNCH_ALERT_WEBHOOK, content=body, headers=headers, timeout=TIMEOUT, follow_redirects=False
        )
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as exc:
        logger.warning("the alert webhook could not be reached (%s)", type(exc).__name__)
        return False
    if not answer.is_success:
        logger.warning("the alert webhook answered %s", answer.status_code)
    return answer.is_success


def signature(body: bytes, *, at: int, secret: str) -> str:
    """`t=SECONDS,v1=HEX`: HMAC-SHA256, with the shared secret, of the time, a full stop and the body."""
    key = secret.encode()
    return f"t={at},v1={hmac.new(key, str(at).encode() + b'.' + body, hashlib.sha256).hexdigest()}"


def ping(*, is_well: bool) -> None:
    """Tell the dead-man service that this host lives, or that it lives and is not well."""
    if not settings.HUNCH_PING_URL:
        return
    import httpx

    try:
        url = httpx.URL(settings.HUNCH_PING_URL)
        url = url if is_well else url.copy_with(path=f"{url.path.rstrip('/')}/fail")
        answer = httpx.get(url, timeout=TIMEOUT, follow_redirects=False)
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as exc:
        logger.warning("the ping could not be sent (%s)", type(exc).__name__)
        return
    if not answer.is_success:
        logger.warning("the ping was answered with %s", answer.status_code)
