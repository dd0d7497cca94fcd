"""One id for everything that a request or a task leads to. Imports Django's settings alone.

Log lines, error pages and API errors name it, and tasks inherit it. It is random: it says nothing of a person.
It stays set when a request is over, since its access line is written after that; the next request replaces it.
"""

import re
import secrets
from contextvars import ContextVar

from django.conf import settings

HEADER = "X-Request-ID"
PATTERN = re.compile(r"[0-9a-f]{32}")  # as nginx makes them
current: ContextVar[str] = ContextVar("request_id", default="")


def make() -> str:
    return secrets.token_hex(16)


def of_headers(header: str) -> str:
    """The id that our proxy gave the request, or a new one: what anybody else sends could write into our logs."""
    return header if settings.HUNCH_BEHIND_PROXY and PATTERN.fullmatch(header) else make()
