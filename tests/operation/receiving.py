"""A receiver of webhooks on this machine, which answers as a test says."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Receiving:
    """What came, and what is answered: bytes; None for nothing at all; "drip" for one byte after the other."""

    answer: bytes | str | None = b"HTTP/1.1 204 No Content\r\n\r\n"
    requests: list[bytes] = field(default_factory=list)
    port: int = 0
    over: threading.Event = field(default_factory=threading.Event)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook?token=x"

    def headers(self, number: int = 0) -> dict[str, str]:
        head = self.requests[number].split(b"\r\n\r\n")[0].decode()
        return {name.lower(): value for name, value in (line.split(": ", 1) for line in head.split("\r\n")[1:])}

    def body(self, number: int = 0) -> bytes:
        return self.requests[number].split(b"\r\n\r\n", 1)[1]

    def serve(self, listening: socket.socket) -> None:
        while True:
            try:
                connection, _from = listening.accept()
            except OSError:
                return
            threading.Thread(target=self.take, args=(connection,), daemon=True).start()

    def take(self, connection: socket.socket) -> None:
        with connection:
            whole = b""
            while b"\r\n\r\n" not in whole or len(whole.split(b"\r\n\r\n", 1)[1]) < length_of(whole):
                if not (part := connection.recv(4096)):
                    return
                whole += part
            self.requests.append(whole)
            if isinstance(self.answer, bytes):
                connection.sendall(self.answer)
                return
            try:
                while not self.over.wait(0.02):
                    if self.answer == "drip":
                        connection.sendall(b"H")
            except OSError:
                return


def length_of(whole: bytes) -> int:
    head = whole.split(b"\r\n\r\n")[0].lower()
    return int(head.split(b"content-length: ")[1].split(b"\r\n")[0])


@contextmanager
def receiving() -> Iterator[Receiving]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        there = Receiving(port=listening.getsockname()[1])
        threading.Thread(target=there.serve, args=(listening,), daemon=True).start()
        yield there
        there.over.set()
