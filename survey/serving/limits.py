"""What one connection may cost. Imports Django only. The middleware that refuses large bodies asks `body_limit` too."""

from functools import cache

from django.conf import settings
from django.urls import reverse

HEAD_LIMIT = 32 * 1024  # bytes of the request line and all headers
CHUNK_LINE_LIMIT = 1024  # bytes of a line between chunks
TRAILER_LIMIT = 8 * 1024  # bytes of all lines behind the last chunk
BODIES_LIMIT = 512 * 1024 * 1024  # bytes of all bodies that a worker holds at one time

# Seconds. Each deadline grows with what has arrived, so that a large file over a slow line comes through, and one byte
# at a time does not.
REQUEST_DEADLINE = 10.0  # for header and body together, from the first byte
REQUEST_RATE = 64 * 1024  # bytes that earn another second
ANSWER_DEADLINE = 30.0  # until a client has read an answer that is larger than what the sockets hold
ANSWER_RATE = 16 * 1024
LINGER = 5.0  # for a client to read the last answer and close
STOPPING = 3.0  # for idle and unfinished connections of a worker that stops


@cache
def admin_root() -> str:
    return reverse("admin:index")


@cache
def upload_page() -> str:
    return reverse("admin:survey_bank_add")


def body_limit(path: str) -> int:
    """How many bytes a request to this path may send."""
    if path == upload_page():
        return int(settings.HUNCH_MAX_UPLOAD_BODY)
    return int(settings.HUNCH_MAX_ADMIN_BODY if path.startswith(admin_root()) else settings.HUNCH_MAX_BODY)
