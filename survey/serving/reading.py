"""Turns the bytes of one connection into whole requests. Imports gunicorn's errors and the standard library.

gunicorn's own parser reads the head. The body is taken here, because gunicorn's reader asks the socket for more and
waits. The rules are those of RFC 9112; where a message could be understood in two ways, it is refused.
"""

import re
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO, Any
from urllib.parse import unquote

from gunicorn.http.errors import (
    ChunkMissingTerminator,
    InvalidChunkExtension,
    InvalidChunkSize,
    LimitRequestHeaders,
    UnsupportedTransferCoding,
)

from survey.serving.limits import CHUNK_LINE_LIMIT, HEAD_LIMIT, TRAILER_LIMIT

IN_MEMORY = 256 * 1024  # bytes of a body; a larger one goes to a temporary file
CHUNK_SIZE = re.compile(rb"[0-9a-fA-F]{1,8}")


class BodyRefusedError(OSError):
    """The application reads a body that was too large to be taken."""


class RefusedBody:
    """Stands for a body that is over the limit. The application must answer without it."""

    def read(self, size: int = -1) -> bytes:
        raise BodyRefusedError("the body is over the limit and was not read")

    def readline(self, size: int = -1) -> bytes:
        return self.read()

    def close(self) -> None:
        pass


@dataclass
class WholeRequest:
    """A request of which nothing is missing. `message` is gunicorn's, `length` the bytes of the body."""

    message: Any
    body: IO[bytes] | RefusedBody
    length: int
    is_chunked: bool = False
    is_refused: bool = False  # The body is over the limit, and what follows on the connection is unknown.


class RequestReader:
    """`feed` it what arrives, and `take` each request once it is whole.

    `parse`: gunicorn's message of a head. `limit`: how many bytes the body of a request to a path may have.
    """

    def __init__(self, *, parse: Callable[[bytes], Any], limit: Callable[[str], int]) -> None:
        self._parse = parse
        self._limit = limit
        self._buffer = bytearray()
        self._searched = 0
        self._message: Any = None
        self._body: _Body | None = None
        self._may_continue = False
        self.path = ""  # of the request whose head was read last

    def feed(self, data: bytes) -> None:
        self._buffer += data

    @property
    def has_begun(self) -> bool:
        """Whether something of a request has arrived that is not whole yet."""
        return self._message is not None or bool(self._buffer)

    @property
    def held(self) -> int:
        """Bytes of a body that wait for the rest."""
        return self._body.length if self._body is not None else 0

    def close(self) -> None:
        """Drop what has arrived of an unfinished request."""
        if self._body is not None:
            self._body.close()

    def continue_is_due(self) -> bool:
        """Whether the client waits for `100 Continue` before it sends its body. True once a request."""
        is_due = self._may_continue and self._body is not None and not self._buffer and not self._body.length
        self._may_continue = False
        return is_due

    def take(self) -> WholeRequest | None:
        """The next request, or None while something of it is missing. Raises gunicorn's errors where it is not HTTP."""
        if self._message is None and not self._read_head():
            return None
        if self._body is None or not self._body.fill(self._buffer):
            return None
        whole = WholeRequest(
            message=self._message,
            body=self._body.finish(),
            length=self._body.length,
            is_chunked=isinstance(self._body, _ChunkedBody),
            is_refused=self._body.is_refused,
        )
        self._message = self._body = None
        return whole

    def _read_head(self) -> bool:
        buffer = self._buffer
        if not self._searched:
            while buffer.startswith(b"\r\n"):  # RFC 9112, 2.2: an empty line before the request is passed over
                del buffer[:2]
        end = buffer.find(b"\r\n\r\n", self._searched)
        if end + 4 > HEAD_LIMIT or (end < 0 and len(buffer) > HEAD_LIMIT):
            raise LimitRequestHeaders("limit request headers")
        if end < 0:
            self._searched = max(0, len(buffer) - 3)
            return False
        head = bytes(buffer[: end + 4])
        del buffer[: end + 4]
        self._searched = 0
        self._message = self._parse(head)
        self.path = unquote(self._message.path)
        self._body = self._body_of(self._message)
        self._may_continue = self._message.version >= (1, 1) and any(
            name == "EXPECT" and value.lower() == "100-continue" for name, value in self._message.headers
        )
        return True

    def _body_of(self, message: Any) -> "_Body":
        limit = self._limit(self.path)
        headers = dict(message.headers)  # gunicorn has refused a second one of the two
        if "TRANSFER-ENCODING" in headers:
            if headers["TRANSFER-ENCODING"].strip().lower() != "chunked":
                raise UnsupportedTransferCoding(headers["TRANSFER-ENCODING"])
            return _ChunkedBody(limit)
        return _SizedBody(int(headers.get("CONTENT-LENGTH", 0)), limit)


class _Body(ABC):
    """What all bodies share: where their bytes go, and when there are too many."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.length = 0
        self.is_refused = False
        self._file = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115 (closed with the request)

    @abstractmethod
    def fill(self, buffer: bytearray) -> bool:
        """Take what belongs to the body from the front of `buffer`. True when nothing is missing."""

    def finish(self) -> "IO[bytes] | RefusedBody":
        if self.is_refused:
            self._file.close()
            return RefusedBody()
        self._file.seek(0)
        return self._file

    def close(self) -> None:
        self._file.close()

    def _move(self, buffer: bytearray, most: int) -> int:
        with memoryview(buffer) as view:
            taken = self._file.write(view[:most])
        del buffer[:taken]
        self.length += taken
        return taken


class _SizedBody(_Body):
    def __init__(self, size: int, limit: int) -> None:
        super().__init__(limit)
        self.size = size
        self.is_refused = size > limit

    def fill(self, buffer: bytearray) -> bool:
        if not self.is_refused and buffer:
            self._move(buffer, self.size - self.length)
        return self.is_refused or self.length == self.size


class _ChunkedBody(_Body):
    """RFC 9112, 7.1: lines with sizes, data, and after a size of 0 trailers, which are dropped."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self._next = self._read_size
        self._left = 0
        self._trailers = 0
        self._is_whole = False

    def fill(self, buffer: bytearray) -> bool:
        while not (self._is_whole or self.is_refused) and self._next(buffer):
            pass
        return self._is_whole or self.is_refused

    # Each of these takes one piece and sets what comes next. False: the piece has not arrived in whole.

    def _read_size(self, buffer: bytearray) -> bool:
        line = _take_line(buffer)
        if line is None:
            return False
        size, semicolon, extension = line.partition(b";")
        if b"\r" in extension or b"\n" in extension:
            raise InvalidChunkExtension("bare CR or LF")
        if not CHUNK_SIZE.fullmatch(size.rstrip(b" \t") if semicolon else size):
            raise InvalidChunkSize(line[:32])
        self._left = int(size, 16)
        self.is_refused = self.length + self._left > self.limit
        if self.is_refused:
            self.length += self._left
        self._next = self._read_data if self._left else self._read_trailer
        return True

    def _read_data(self, buffer: bytearray) -> bool:
        self._left -= self._move(buffer, self._left)
        if self._left:
            return False
        self._next = self._read_end_of_data
        return True

    def _read_end_of_data(self, buffer: bytearray) -> bool:
        if len(buffer) < 2 and b"\r\n".startswith(buffer):
            return False
        if buffer[:2] != b"\r\n":
            raise ChunkMissingTerminator(bytes(buffer[:2]))
        del buffer[:2]
        self._next = self._read_size
        return True

    def _read_trailer(self, buffer: bytearray) -> bool:
        line = _take_line(buffer)
        if line is None:
            return False
        self._trailers += len(line)
        if self._trailers > TRAILER_LIMIT:
            raise LimitRequestHeaders("limit request trailers")
        self._is_whole = not line
        return True


def _take_line(buffer: bytearray) -> bytes | None:
    end = buffer.find(b"\r\n", 0, CHUNK_LINE_LIMIT)
    if end < 0:
        if len(buffer) > CHUNK_LINE_LIMIT:
            raise InvalidChunkSize(bytes(buffer[:32]))
        return None
    line = bytes(buffer[:end])
    del buffer[: end + 2]
    return line
