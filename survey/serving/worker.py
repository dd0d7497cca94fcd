"""A gunicorn worker whose threads get whole requests and never wait for a client.

gunicorn's threaded worker gives a connection to a thread at its first byte, so as many slow connections as there are
threads stop a site. Here one loop reads every request, header and body, within limits and deadlines; a thread answers
it; and what the client does not take at once is sent by the loop. A connection belongs to the loop or to one thread,
never to both, so nothing needs a lock.

Imports gunicorn and the rest of this package. Of gunicorn it uses what stands in `gunicorn.workers.base.Worker`,
`http.get_parser` on bytes, `http.wsgi.create` with its Response, and `sock.ssl_context`. All of them are held by
tests/infrastructure/test_request_worker.py, which runs before a new gunicorn is taken.
"""

import enum
import errno
import json
import os
import queue
import resource
import selectors
import socket
import ssl
import struct
import threading
import time
from collections import Counter, deque
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Any

from gunicorn import http
from gunicorn import sock as gunicorn_sock
from gunicorn.errors import ConfigError
from gunicorn.http import wsgi
from gunicorn.http.wsgi import FileWrapper
from gunicorn.workers.base import Worker

from survey.serving import limits
from survey.serving.outbox import PIECE, WOULD_BLOCK, Outbox
from survey.serving.reading import RequestReader, WholeRequest
from survey.serving.shares import Shares

TICK = 0.5  # seconds between two looks at the deadlines
RECEIVE = 64 * 1024  # bytes read from a socket at a time
SPARE_FILES = 128  # file descriptors that are no client's: database, Redis, logs, temporary files
LOOK_AGAIN = 0.005  # seconds; then another worker had the time to take a connection that was left to it
LEFT_FOR = 0.05  # seconds that a connection is left to others
STALLED = 5.0  # seconds at one request in every thread; then other workers take the new connections
REPORT = 60.0  # seconds between two lines about refused connections
OUT_OF_FILES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class State(enum.IntEnum):
    """Where a connection is. Where there are too many, those of the lowest number are closed first."""

    LINGERING = 1  # everything is sent; the client may still read
    IDLE = 2  # between two requests, or before the first
    SHAKING_HANDS = 3  # TLS
    READING = 4  # a part of a request has arrived
    SENDING = 5  # the client has not taken the whole answer
    ANSWERING = 6  # a thread has it


class ClientConnection:
    """One client's connection."""

    def __init__(self, sock: socket.socket, client: Any, server: Any, reader: RequestReader) -> None:
        self.sock = sock
        self.client = client
        self.server = server
        self.reader = reader
        self.outbox = Outbox(sock)
        self.state = State.IDLE
        self.since = time.monotonic()  # when this state began
        self.events = 0  # what the selector waits for
        self.request: WholeRequest | None = None
        self.received_at = 0.0
        self.is_kept = False  # whether another request may follow
        self.taken_at_once = 0  # bytes of the answer that fitted into the sockets' own buffers
        self.held = 0  # bytes of a body

    def enter(self, state: State) -> None:
        self.state = state
        self.since = time.monotonic()


class RequestWorker(Worker):
    """`worker_class = "survey.serving.worker.RequestWorker"`."""

    alive: bool  # gunicorn's: False once this process is to end
    age: int  # gunicorn's: the number of this worker among those that were started
    shares = Shares()  # The same memory in every worker: gunicorn imports this module before it forks.

    @classmethod
    def check_config(cls, cfg: Any, log: Any) -> None:
        """Called by gunicorn before it starts a worker."""
        if cfg.protocol != "http" or cfg.proxy_protocol != "off":
            raise ConfigError("survey.serving.worker speaks HTTP/1.1 alone: leave protocol and proxy_protocol unset")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.connections: set[ClientConnection] = set()
        self.most = 0
        self._selector: Any = None
        self._tls: ssl.SSLContext | None = None
        self._is_accepting = False
        self._accept_again = 0.0
        self._left_since = self._left_at = 0.0
        self._held = 0
        self._whole: queue.SimpleQueue[ClientConnection] = queue.SimpleQueue()
        self._answered: deque[ClientConnection] = deque()
        self._busy_since: list[float] = []  # of each thread; 0 while it waits
        self._next_sweep = self._next_report = 0.0
        self._refused: Counter[str] = Counter()

    # The loop

    def run(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._selector.register(self.PIPE[0], selectors.EVENT_READ, self._empty_pipe)
        self._tls = gunicorn_sock.ssl_context(self.cfg) if self.cfg.is_ssl else None
        self.most = min(self.cfg.worker_connections, _files_for_clients())
        limits.admin_root()  # Loads every view, before somebody waits for it.
        self._next_report = time.monotonic() + REPORT
        self._busy_since = [0.0] * self.cfg.threads
        for number in range(self.cfg.threads):
            # Daemons: a thread that hangs must not keep a worker from ending.
            threading.Thread(target=self._serve, args=(number,), name=f"request-{number}", daemon=True).start()
        for listener in self.sockets:
            listener.setblocking(False)
        while self.alive and self.ppid == os.getppid():
            self._turn()
        self._stop()

    def _stop(self) -> None:
        """Answer what has arrived, and what arrives in the next seconds on connections that are open."""
        self._accept(False)
        until = time.monotonic() + self.cfg.graceful_timeout
        while self.connections and time.monotonic() < until:
            self._turn()
        for connection in list(self.connections):
            if connection.state is not State.ANSWERING:
                self._close(connection)
        for listener in self.sockets:
            listener.close()

    def _turn(self) -> None:
        until = self._accept_again - time.monotonic()
        for key, _events in self._selector.select(until if 0 < until < TICK else TICK):
            key.data()
        while self._answered:
            self._take_back(self._answered.popleft())
        now = time.monotonic()
        if now >= self._next_sweep:
            self._next_sweep = now + TICK
            self._sweep(now)
            if not self._hangs(now):
                self.notify()
        has_room = self.alive and self._has_room(now)
        self._accept(has_room and now >= self._accept_again)
        self.shares.note(self.age, len(self.connections), now if has_room else 0.0)

    def _sweep(self, now: float) -> None:
        for connection in list(self.connections):
            if now >= self._deadline(connection):
                if connection.state is State.READING:
                    self._refuse(connection, 408, "Request Timeout", "The request took too long to arrive.")
                else:
                    if connection.state is State.SENDING:
                        self._refused["the answer was not read"] += 1
                        _take_back_what_is_sent(connection.sock)
                    self._close(connection)
        if now >= self._next_report:
            self._next_report = now + REPORT
            if self._refused:
                self.log.warning("Connections ended by us in the last minute: %s", dict(self._refused))
                self._refused.clear()

    def _deadline(self, connection: ClientConnection) -> float:
        """When this connection has to be where it is no longer."""
        if connection.state is State.ANSWERING:
            return float("inf")
        allowed = {
            State.LINGERING: limits.LINGER,
            State.IDLE: self.cfg.keepalive or limits.REQUEST_DEADLINE,
            State.SHAKING_HANDS: limits.REQUEST_DEADLINE,
            State.READING: limits.REQUEST_DEADLINE + connection.held / limits.REQUEST_RATE,
            State.SENDING: limits.ANSWER_DEADLINE + self._read_on(connection) / limits.ANSWER_RATE,
        }[connection.state]
        if not self.alive and connection.state is not State.SENDING:
            allowed = min(allowed, limits.STOPPING)
        return float(connection.since + allowed)

    @staticmethod
    def _read_on(connection: ClientConnection) -> int:
        """Bytes of its answer that a client has read beyond what the sockets hold for one that reads nothing."""
        return connection.outbox.sent - connection.taken_at_once

    # Whether this worker can take more

    def _has_room(self, now: float) -> bool:
        if len(self.connections) >= self.most and not self._can_evict():
            return False
        # Where every thread is busy for long, another worker answers a new visitor sooner.
        return self.cfg.workers == 1 or self._whole.empty() or self._busy_for(now) < STALLED

    def _hangs(self, now: float) -> bool:
        """Whether every thread has been at one request for `timeout`. Then gunicorn hears nothing and replaces us."""
        return self._busy_for(now) > self.cfg.timeout > 0

    def _busy_for(self, now: float) -> float:
        """For how many seconds every thread has been at the request that it has now."""
        return min((now - since if since else 0.0) for since in self._busy_since)

    def _leaves_it(self, now: float) -> bool:
        """Whether the connection that has arrived is for a worker that has fewer. If none takes it, we do."""
        fewest = self.shares.fewest_of_others(self.age, now)
        if fewest is None or len(self.connections) <= fewest:
            return False
        if now - self._left_at > LEFT_FOR:  # What was left before has long been taken; this is another one.
            self._left_since = now
        self._left_at = now
        if now - self._left_since < LEFT_FOR:
            return True
        self._left_since = now  # For the next one.
        return False

    def _can_evict(self) -> bool:
        return any(connection.state is not State.ANSWERING for connection in self.connections)

    def _evict(self) -> None:
        """Close the connection that matters least, the oldest of its kind."""
        victim = min(
            (connection for connection in self.connections if connection.state is not State.ANSWERING),
            key=lambda connection: (connection.state, connection.since),
            default=None,
        )
        if victim is not None:
            self._refused["too many connections"] += 1
            self._close(victim)

    # From the listener to a whole request

    def _accept(self, wanted: bool) -> None:
        if wanted == self._is_accepting:
            return
        for listener in self.sockets:
            if wanted:
                self._selector.register(listener, selectors.EVENT_READ, partial(self._on_arrival, listener))
            else:
                self._selector.unregister(listener)
        self._is_accepting = wanted

    def _on_arrival(self, listener: Any) -> None:
        now = time.monotonic()
        if self._leaves_it(now):
            self._accept_again = now + LOOK_AGAIN
            return
        if len(self.connections) >= self.most:
            self._evict()
        try:
            sock, client = listener.accept()
        except WOULD_BLOCK:
            return
        except OSError as exc:
            if exc.errno in OUT_OF_FILES:
                self.log.error("A connection cannot be accepted: %s", exc.strerror)
                self._evict()
                self._accept_again = now + TICK
            elif exc.errno != errno.ECONNABORTED:
                raise
            return
        sock.setblocking(False)
        if self._tls is not None:
            try:
                sock = self._tls.wrap_socket(
                    sock,
                    server_side=True,
                    do_handshake_on_connect=False,
                    suppress_ragged_eofs=self.cfg.suppress_ragged_eofs,
                )
            except OSError:
                sock.close()
                return
        reader = RequestReader(parse=partial(self._parse, client), limit=limits.body_limit)
        connection = ClientConnection(sock, client, listener.getsockname(), reader)
        connection.enter(State.SHAKING_HANDS if self._tls is not None else State.IDLE)
        self.connections.add(connection)
        self._wait_for(connection, selectors.EVENT_READ)

    def _parse(self, client: Any, head: bytes) -> Any:
        return next(http.get_parser(self.cfg, [head], client))

    def _on_ready(self, connection: ClientConnection) -> None:
        if connection not in self.connections:  # It was closed for another one in this turn.
            return
        match connection.state:
            case State.SHAKING_HANDS:
                self._shake_hands(connection)
            case State.SENDING:
                self._send(connection)
            case State.LINGERING:
                self._linger(connection)
            case State.IDLE | State.READING:
                self._receive(connection)
            case State.ANSWERING:  # The next request, or the end. It is looked at after the answer.
                self._release(connection)

    def _shake_hands(self, connection: ClientConnection) -> None:
        try:
            connection.sock.do_handshake()  # type: ignore[attr-defined]
        except ssl.SSLWantReadError:
            self._wait_for(connection, selectors.EVENT_READ)
        except ssl.SSLWantWriteError:
            self._wait_for(connection, selectors.EVENT_WRITE)
        except OSError:
            self._close(connection)
        else:
            connection.enter(State.IDLE)
            self._wait_for(connection, selectors.EVENT_READ)
            self._receive(connection)

    def _receive(self, connection: ClientConnection) -> None:
        try:
            data = connection.sock.recv(RECEIVE)
            while data and isinstance(connection.sock, ssl.SSLSocket) and connection.sock.pending():
                connection.reader.feed(data)
                data = connection.sock.recv(RECEIVE)
        except WOULD_BLOCK:
            return
        except OSError:
            self._close(connection)
            return
        if not data:  # The client has closed, before its request was whole.
            self._close(connection)
            return
        connection.reader.feed(data)
        self._advance(connection)

    def _advance(self, connection: ClientConnection) -> None:
        """Take what has arrived: hand a whole request to a thread, or wait for the rest of it."""
        try:
            request = connection.reader.take()
        except Exception as exc:  # gunicorn's errors have no parent of their own, and it knows the status of each.
            self.handle_error(None, connection.outbox, connection.client, exc)
            self._finish(connection)
            return
        self._hold(connection, request.length if request and not request.is_refused else connection.reader.held)
        if self._held > limits.BODIES_LIMIT:
            if request is not None:
                request.body.close()
            self._refuse(connection, 503, "Service Unavailable", "Too much is being sent to us now. Try again.")
        elif request is not None:
            connection.request = request
            connection.received_at = time.monotonic()
            connection.enter(State.ANSWERING)
            self.nr += 1
            if self.nr >= self.max_requests and self.alive:
                self.log.info("Restarting after %d requests.", self.nr)
                self.alive = False
            self._whole.put(connection)
        else:
            self._wait_for_rest(connection)

    def _wait_for_rest(self, connection: ClientConnection) -> None:
        if connection.reader.has_begun and connection.state is not State.READING:
            connection.enter(State.READING)
        if connection.reader.continue_is_due():
            with suppress(OSError):
                connection.sock.send(CONTINUE)
        self._wait_for(connection, selectors.EVENT_READ)

    def _hold(self, connection: ClientConnection, size: int) -> None:
        self._held += size - connection.held
        connection.held = size

    # A thread

    def _serve(self, number: int) -> None:
        while True:
            connection = self._whole.get()
            self._busy_since[number] = time.monotonic()
            try:
                connection.is_kept = self._answer(connection, number)
            except BaseException:  # A thread that ends would be missed by nobody but the visitors.
                connection.is_kept = False
                connection.outbox.is_broken = True
                self.log.exception("A request could not be answered")
            self._busy_since[number] = 0.0
            self._answered.append(connection)
            self._wake()

    def _answer(self, connection: ClientConnection, number: int) -> bool:
        """Let the application answer. Whether another request may follow on this connection."""
        request, outbox = connection.request, connection.outbox
        assert request is not None  # noqa: S101 (for mypy: a thread gets a connection with its request)
        message = request.message
        outbox.begin()
        response = None
        environ: dict[str, Any] = {}
        started = datetime.now()
        try:
            self.cfg.pre_request(self, message)
            response, environ = self._describe(connection, request)
            pieces = self.wsgi(environ, partial(self._start, response))
            try:
                for piece in pieces:
                    response.write(piece)
                    self._busy_since[number] = time.monotonic()  # A long file that goes on does not hang.
                response.close()
                outbox.flush()
            finally:
                if hasattr(pieces, "close"):
                    pieces.close()
            return not response.should_close()
        except Exception as exc:
            if outbox.is_broken:
                self.log.debug("The client has gone: %s", exc)
            elif outbox.sent:
                # A part is on its way; another answer behind it would be read as its rest.
                self.log.exception("Error in the middle of an answer")
                outbox.is_broken = True
            else:
                outbox.discard()
                self.handle_error(message, outbox, connection.client, exc)
            return False
        finally:
            request.body.close()
            if response is not None and response.status is not None:
                self.log.access(response, message, environ, datetime.now() - started)
            try:
                self.cfg.post_request(self, message, environ, response)
            except Exception:
                self.log.exception("Exception in post_request")

    def _describe(self, connection: ClientConnection, request: WholeRequest) -> tuple[Any, dict[str, Any]]:
        """gunicorn's response and environment of a request whose body has been read."""
        message = request.message
        message._expected_100_continue = False  # The loop has sent it; a second one would do no harm.
        response, environ = wsgi.create(message, connection.outbox, connection.client, connection.server, self.cfg)
        environ["wsgi.input"] = request.body
        environ["wsgi.multithread"] = self.cfg.threads > 1
        environ["wsgi.file_wrapper"] = _pieces_of
        if request.is_chunked:
            environ.pop("HTTP_TRANSFER_ENCODING", None)
            environ["CONTENT_LENGTH"] = str(request.length)
        if request.is_refused or not self.cfg.keepalive:
            response.force_close()
        return response, environ

    def _start(self, response: Any, *given: Any, **named: Any) -> Any:
        """WSGI's start_response: a worker that has begun to stop says that it will close the connection."""
        if not self.alive:
            response.force_close()
        return response.start_response(*given, **named)

    def _wake(self) -> None:
        """Let the loop look at what has been answered."""
        with suppress(OSError):  # A full pipe wakes it as well.
            os.write(self.PIPE[1], b".")

    def _empty_pipe(self) -> None:
        with suppress(OSError):
            os.read(self.PIPE[0], 4096)

    # From the answer to the next request, or the end

    def _take_back(self, connection: ClientConnection) -> None:
        connection.request = None
        self._hold(connection, 0)
        if connection.outbox.is_broken:
            self._close(connection)
            return
        self._begin_to_send(connection)

    def _begin_to_send(self, connection: ClientConnection) -> None:
        connection.enter(State.SENDING)
        self._send(connection)
        connection.taken_at_once = connection.outbox.sent

    def _send(self, connection: ClientConnection) -> None:
        try:
            is_sent = connection.outbox.flush()
        except OSError:
            self._close(connection)
            return
        if not is_sent:
            self._wait_for(connection, connection.outbox.wants)
        elif connection.is_kept:
            connection.enter(State.IDLE)
            self._advance(connection)  # The next request may be here already.
        else:
            self._say_goodbye(connection)

    def _finish(self, connection: ClientConnection) -> None:
        """Send what is in the outbox and close."""
        connection.is_kept = False
        self._begin_to_send(connection)

    def _refuse(self, connection: ClientConnection, status: int, reason: str, sentence: str) -> None:
        self._refused[f"{status} {reason}"] += 1
        kind, body = "text/plain; charset=utf-8", sentence
        if connection.reader.path.startswith("/api/"):  # In the shape of all errors of the API.
            code = reason.lower().replace(" ", "_")
            kind, body = "application/json", json.dumps({"error": {"code": code, "message": sentence}})
        connection.outbox.begin()
        connection.outbox.sendall(
            f"HTTP/1.1 {status} {reason}\r\nConnection: close\r\nContent-Type: {kind}\r\n"
            f"Content-Length: {len(body) + 1}\r\n\r\n{body}\n".encode("ascii")
        )
        self._finish(connection)

    def _say_goodbye(self, connection: ClientConnection) -> None:
        """Close our side, and read on until the client closes its own. With unread bytes, closing at once would take
        back what the client has not read yet (RFC 9112, 9.6)."""
        try:
            connection.sock.shutdown(socket.SHUT_WR)
        except OSError:
            self._close(connection)
            return
        connection.enter(State.LINGERING)
        self._wait_for(connection, selectors.EVENT_READ)

    def _linger(self, connection: ClientConnection) -> None:
        try:
            if not connection.sock.recv(RECEIVE):
                self._close(connection)
        except WOULD_BLOCK:
            pass
        except OSError:
            self._close(connection)

    # The selector

    def _wait_for(self, connection: ClientConnection, events: int) -> None:
        if events == connection.events:
            return
        if connection.events:
            self._selector.modify(connection.sock, events, partial(self._on_ready, connection))
        else:
            self._selector.register(connection.sock, events, partial(self._on_ready, connection))
        connection.events = events

    def _release(self, connection: ClientConnection) -> None:
        if connection.events:
            self._selector.unregister(connection.sock)
            connection.events = 0

    def _close(self, connection: ClientConnection) -> None:
        self._release(connection)
        self._hold(connection, 0)
        self.connections.discard(connection)
        connection.reader.close()
        connection.outbox.close()
        with suppress(OSError):
            connection.sock.close()


def _pieces_of(file: Any, size: int = 0) -> Any:
    """WSGI's file wrapper, in pieces of our size. The file is closed by the application's own answer."""
    return FileWrapper(file, PIECE)


def _take_back_what_is_sent(sock: socket.socket) -> None:
    """Let closing drop what the system still holds for a client that does not read it."""
    with suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def _files_for_clients() -> int:
    """How many connections the limit on open files allows, raised as far as the system lets us."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            soft = hard
    if soft == resource.RLIM_INFINITY:
        return 1_000_000
    return max(16, soft - SPARE_FILES)
