"""A stored file as the answer to a request, from any byte on, so that a download that stopped can go on.

Imports Django alone.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from typing import IO

from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse

CHUNK = 1 << 16
RANGE = re.compile(r"bytes=(\d*)-(\d*)", re.ASCII)


def span_of(request: HttpRequest, size: int, etag: str) -> tuple[int, int] | None:
    """The first byte that is asked for and the one after the last; None if it cannot be satisfied.

    A request for several spans, or for a file that has changed since (`If-Range`), gets the whole file, as HTTP allows.
    """
    asked = RANGE.fullmatch(request.headers.get("Range", "").replace(" ", ""))
    if asked is None or asked.group(0) == "bytes=-" or request.headers.get("If-Range", etag) != etag:
        return 0, size
    first, last = asked.groups()
    if len(first) > 18 or len(last) > 18:
        return None
    if not first:  # The last bytes.
        return (max(size - int(last), 0), size) if int(last) and size else None
    begin, end = int(first), min(int(last) + 1, size) if last else size
    return (begin, end) if begin < end else None


def file_response(
    request: HttpRequest,
    open_file: Callable[[], AbstractContextManager[IO[bytes]]],
    *,
    name: str,
    size: int,
    sha256: str,
    content_type: str,
) -> HttpResponseBase:
    """The file or a span of it, streamed."""
    etag = f'"{sha256}"'
    span = span_of(request, size, etag)
    response: HttpResponseBase
    if span is None:
        response = HttpResponse("There are no such bytes.", status=416, content_type="text/plain; charset=utf-8")
        response.headers["Content-Range"] = f"bytes */{size}"
        return response
    begin, end = span
    response = StreamingHttpResponse(_Span(open_file, begin, end), content_type=content_type)
    if (begin, end) != (0, size):
        response.status_code = 206
        response.headers["Content-Range"] = f"bytes {begin}-{end - 1}/{size}"
    response.headers["Content-Length"] = str(end - begin)
    response.headers["Accept-Ranges"] = "bytes"
    response.headers["ETag"] = etag
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


class _Span:
    """The bytes from `begin` to `end`. Opened at once, so that a file that is gone is an answer with an error."""

    def __init__(self, open_file: Callable[[], AbstractContextManager[IO[bytes]]], begin: int, end: int) -> None:
        self._open = ExitStack()
        self._file = self._open.enter_context(open_file())
        self._file.seek(begin)
        self._left = end - begin

    def __iter__(self) -> Iterator[bytes]:
        while self._left and (chunk := self._file.read(min(CHUNK, self._left))):
            self._left -= len(chunk)
            yield chunk

    def close(self) -> None:
        """Django calls it at the end, and where the reader has gone away."""
        self._open.close()
