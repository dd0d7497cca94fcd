"""Where an answer goes: into the socket as far as the client takes it, and for the rest into a file.

Imports the standard library. gunicorn's Response writes into it as into a socket, and never waits for a client.
"""

import ssl
import tempfile
from selectors import EVENT_READ, EVENT_WRITE

WOULD_BLOCK = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
PIECE = 64 * 1024  # bytes given to the socket at a time
IN_MEMORY = 128 * 1024  # bytes that wait in memory; more wait in a temporary file


class Outbox:
    """The answers of one connection, in order. Used by one thread at a time."""

    def __init__(self, sock: object) -> None:
        self._sock = sock
        self._fresh = bytearray()
        self._piece = memoryview(b"")
        self._waiting = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115 (closed by `close`)
        self._read_at = self._written_to = 0
        self.sent = 0  # bytes of the answers since `begin`
        self.is_broken = False  # The client is gone.
        self.wants = EVENT_WRITE  # what the socket waits for

    def begin(self) -> None:
        """Count what is sent from here on."""
        self.sent = 0

    def sendall(self, data: bytes) -> None:
        """Keep `data`, and send what has come together once it is a piece. Raises OSError where the client is gone."""
        self._fresh += data
        if len(self._fresh) >= PIECE:
            self.flush()

    def send(self, data: bytes) -> int:
        self.sendall(data)
        return len(data)

    def gettimeout(self) -> float:
        """gunicorn asks before it writes an error: nothing here ever waits."""
        return 0.0

    def discard(self) -> None:
        """Forget what has not been sent."""
        self._fresh.clear()
        self._piece = memoryview(b"")
        self._empty_file()

    def flush(self) -> bool:
        """Send what the socket takes now. True when nothing is left. Raises OSError where the client is gone."""
        while piece := self._next_piece():
            try:
                count = self._sock.send(piece)  # type: ignore[attr-defined]
            except WOULD_BLOCK as exc:
                self.wants = EVENT_READ if isinstance(exc, ssl.SSLWantReadError) else EVENT_WRITE
                self._set_aside()
                return False
            except OSError:
                self.is_broken = True
                raise
            self.sent += count
            self._piece = piece[count:]
        return True

    def close(self) -> None:
        self._waiting.close()

    def _next_piece(self) -> memoryview:
        """The next bytes to send, the oldest first. They stay the same until they are sent, as TLS demands."""
        if not self._piece and self._read_at < self._written_to:
            self._waiting.seek(self._read_at)
            data = self._waiting.read(PIECE)
            self._read_at += len(data)
            self._piece = memoryview(data)
            if self._read_at == self._written_to:
                self._empty_file()
        if not self._piece and self._fresh:
            self._piece = memoryview(bytes(self._fresh))
            self._fresh.clear()
        return self._piece

    def _set_aside(self) -> None:
        """Move what is fresh behind what waits already."""
        if self._fresh:
            self._waiting.seek(self._written_to)
            self._waiting.write(self._fresh)
            self._written_to += len(self._fresh)
            self._fresh.clear()

    def _empty_file(self) -> None:
        self._read_at = self._written_to = 0
        self._waiting.seek(0)
        self._waiting.truncate()
