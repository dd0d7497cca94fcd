"""The gunicorn worker of the web process: waitress reads requests and sends answers, gunicorn keeps processes running.

Waitress hands whole requests to its threads, so no slow client holds a thread. What is ours here: how many bytes and
seconds one request may take, the access line, and how a worker stops. Imports gunicorn and waitress.
"""

import copy
import json
import os
import resource
import socket
import struct
import threading
import time
from io import BytesIO
from typing import Any

from gunicorn.workers.base import Worker
from waitress import wasyncore
from waitress.adjustments import Adjustments
from waitress.channel import HTTPChannel
from waitress.parser import HTTPRequestParser
from waitress.receiver import FixedStreamReceiver
from waitress.server import TcpWSGIServer
from waitress.task import ThreadedTaskDispatcher, WSGITask
from waitress.utilities import Error

from survey.web.body_limits import body_limit

HEAD_LIMIT = 32 * 1024  # bytes of the request line and all headers
# Seconds for header and body together. It grows with what has arrived, so that a large file over a slow line comes
# through, and one byte at a time does not.
REQUEST_DEADLINE = 10.0
REQUEST_RATE = 64 * 1024  # bytes that earn another second
STOPPING = 3.0  # seconds for idle and unfinished connections of a worker that stops
BODIES_LIMIT = 512 * 1024 * 1024  # bytes of all bodies that a worker keeps at one time
IN_MEMORY = 256 * 1024  # bytes of a body or an answer; more wait in a temporary file
TICK = 0.5  # seconds


class Dropped:
    """Takes a body that is over the limit, and keeps nothing of it: who sends it reads the refusal afterwards."""

    def append(self, data: bytes) -> None: ...

    def close(self) -> None: ...

    def getfile(self) -> BytesIO:
        return BytesIO()

    def __len__(self) -> int:
        return 0


class Refusal(Error):
    """Of a request that does not come to the application: a sentence, in the shape of all errors of the API there."""

    def __init__(self, code: int, reason: str, sentence: str, path: str) -> None:
        super().__init__(sentence)
        self.code, self.reason, self.path = code, reason, path

    def to_response(self, ident: str | None = None) -> tuple[str, list[tuple[str, str]], bytes]:
        kind, body = "text/plain; charset=utf-8", self.body
        if self.path.startswith("/api/"):
            code = self.reason.lower().replace(" ", "_")
            kind, body = "application/json", json.dumps({"error": {"code": code, "message": self.body}})
        return f"{self.code} {self.reason}", [("Content-Type", kind)], f"{body}\n".encode()


class RequestParser(HTTPRequestParser):
    """Keeps a body up to the limit of its path."""

    adj: Any

    def __init__(self, adj: Any) -> None:
        super().__init__(adj)
        self.begun_at = time.monotonic()
        self.is_kept = False

    def parse_header(self, header_plus: bytes) -> None:
        super().parse_header(header_plus)
        limit = body_limit(self.path)
        is_too_much = self.content_length + self.adj.announced() > BODIES_LIMIT
        self.is_kept = self.content_length <= limit and not is_too_much
        if is_too_much:
            sentence = "Too much is being sent to us now. Try again."
            self.error = Refusal(503, "Service Unavailable", sentence, self.path)
        if not self.is_kept:
            self.body_rcv = FixedStreamReceiver(self.content_length, Dropped())
        if self.chunked:  # Waitress refuses it once so many bytes have come, the lines between chunks among them.
            self.adj = copy.copy(self.adj)
            self.adj.max_request_body_size = limit + HEAD_LIMIT

    @property
    def deadline(self) -> float:
        return float(self.begun_at + REQUEST_DEADLINE + self.body_bytes_received / REQUEST_RATE)


class RequestTask(WSGITask):
    """One request in a thread, with its access line. The line has no query string: there a panel names a person."""

    def service(self) -> None:
        worker = self.channel.server.worker
        begun_at = worker.begin_request()
        try:
            super().service()
        finally:
            worker.end_request()
            worker.log.access_log.info(
                '%s "%s %s" %s %s bytes %.0f ms',
                self.channel.addr[0],
                self.request.command,
                self.request.path,
                self.status[:3],
                self.content_bytes_written,
                1000 * (time.monotonic() - begun_at),
            )

    @property
    def asks_for_the_head_alone(self) -> bool:
        return bool(self.request.command == "HEAD")

    def get_environment(self) -> dict[str, Any]:
        environment: dict[str, Any] = super().get_environment()
        if self.asks_for_the_head_alone:  # A file would pass `write` by.
            environment.pop("wsgi.file_wrapper", None)
        return environment

    def build_response_header(self) -> bytes:
        if self.channel.server.worker.is_stopping:
            self.request.headers["CONNECTION"] = "close"
        header = bytes(super().build_response_header())
        if self.asks_for_the_head_alone:
            self.chunked_response = False
        return header

    def write(self, data: bytes) -> None:
        """Django answers HEAD with a body too. Sent, it would stand in front of the connection's next answer."""
        super().write(b"" if self.asks_for_the_head_alone else data)


class Channel(HTTPChannel):
    parser_class = RequestParser
    task_class = RequestTask
    request: Any

    @property
    def is_idle(self) -> bool:
        return not (self.requests or self.total_outbufs_len)

    def refuse_the_rest(self) -> None:
        """Answer a request that has not arrived in time, and close."""
        path = getattr(self.request, "path", "")  # None before its head has come.
        self.request.error = Refusal(408, "Request Timeout", "The request took too long to arrive.", path)
        self.requests.append(self.request)
        self.request = None
        self.server.add_task(self)

    @property
    def announced(self) -> int:
        """Bytes of the bodies that are kept for it, or will be."""
        requests = [*self.requests, self.request]
        return sum(request.content_length for request in requests if request is not None and request.is_kept)


class Server(TcpWSGIServer):
    """One listener of a worker, with the connections that it took."""

    channel_class = Channel

    def __init__(self, worker: "WaitressWorker", listener: Any, **options: Any) -> None:
        self.worker = worker
        sock = listener.sock
        super().__init__(
            worker.wsgi, _sock=sock, bind_socket=False, sockinfo=(sock.family, sock.type, sock.proto, None), **options
        )

    @property
    def channels(self) -> list[Channel]:
        return list(self.active_channels.values())

    def maintenance(self, now: float) -> None:
        super().maintenance(now)
        for channel in self.channels:
            if channel.is_idle and channel.request is not None and time.monotonic() > channel.request.deadline:
                channel.refuse_the_rest()
            if channel.will_close and channel.total_outbufs_len:  # No event closes a socket that takes nothing.
                channel.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                channel.handle_close()


class WaitressWorker(Worker):
    """`worker_class = "survey.web.web_worker.WaitressWorker"`."""

    alive: bool  # gunicorn's: False once this process is to end

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._begun_at: dict[int, float] = {}  # of the requests that threads are at now

    @property
    def is_stopping(self) -> bool:
        return not self.alive

    def begin_request(self) -> float:
        now = self._begun_at[threading.get_ident()] = time.monotonic()
        self.nr += 1
        if self.nr >= self.max_requests and self.alive:  # Threads count together, and may pass over a number.
            self.log.info("Restarting after %d requests.", self.nr)
            self.alive = False
        return now

    def end_request(self) -> None:
        self._begun_at.pop(threading.get_ident(), None)

    def run(self) -> None:
        body_limit("/")  # Loads every view, before somebody waits for it.
        # Each client takes a file descriptor, and a large body or answer one more.
        resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
        adjustments: Any = Adjustments(
            threads=self.cfg.threads,
            connection_limit=self.cfg.worker_connections,
            channel_timeout=self.cfg.keepalive,
            cleanup_interval=1,
            backlog=self.cfg.backlog,
            asyncore_use_poll=True,
            clear_untrusted_proxy_headers=False,  # survey/web/client_address.py says which are read
            max_request_header_size=HEAD_LIMIT,
            recv_bytes=2 * HEAD_LIMIT,
            inbuf_overflow=IN_MEMORY,
            outbuf_overflow=IN_MEMORY,
            outbuf_high_watermark=1 << 40,  # A thread never waits for a client; the answer waits in its file.
            log_socket_errors=False,
            ident=None,
        )
        threads = ThreadedTaskDispatcher()
        threads.queue_logger.setLevel("ERROR")  # Requests that wait are the usual under load.
        threads.set_thread_count(adjustments.threads)
        sockets: dict[int, Any] = {}
        servers: list[Server] = [
            Server(self, listener, map=sockets, dispatcher=threads, adj=adjustments) for listener in self.sockets
        ]
        adjustments.announced = lambda: sum(channel.announced for server in servers for channel in server.channels)
        while self.alive and self.ppid == os.getppid():
            wasyncore.loop(TICK, use_poll=True, map=sockets, count=1)
            if not self._hangs():
                self.notify()
        self._stop(servers, sockets)

    def _hangs(self) -> bool:
        """Whether every thread has been at one request for `timeout`. Then gunicorn hears nothing and replaces us."""
        begun_at = list(self._begun_at.values())
        return len(begun_at) >= self.cfg.threads and time.monotonic() - max(begun_at) > self.cfg.timeout > 0

    def _stop(self, servers: list[Server], sockets: dict[int, Any]) -> None:
        """Answer what has arrived, and what arrives in the next seconds on connections that are open."""
        for server in servers:
            server.accepting = False
        began_at = time.monotonic()
        while time.monotonic() < began_at + self.cfg.graceful_timeout:
            channels = [channel for server in servers for channel in server.channels]
            if not channels:
                return
            if time.monotonic() > began_at + STOPPING:
                for channel in channels:
                    channel.will_close = channel.will_close or channel.is_idle
            wasyncore.loop(TICK, use_poll=True, map=sockets, count=1)
