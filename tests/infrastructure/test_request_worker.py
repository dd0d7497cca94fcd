"""gunicorn with waitress, as a real process: slow clients hold no thread, and every request gets its answer.

How long an answer takes is measured in benchmarks/slow_connections.py. Here a slow client is still connected when the
others have been answered, which no thread that waits for it would allow.
"""

import hashlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from survey import settings
from tests.waiting import PATIENCE, eventually

ROOT = Path(__file__).parents[2]
APP = "tests.infrastructure.serving_app"
DIE_WITH_PARENT = ROOT / "survey/processes/die_with_parent.py"
SLOW = pytest.mark.slow


@dataclass
class Server:
    process: "subprocess.Popen[bytes]"
    address: tuple[str, int]
    log: Path

    def connect(self, *, receive_buffer: int | None = None) -> socket.socket:
        sock = socket.socket()
        if receive_buffer:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        sock.settimeout(PATIENCE)
        sock.connect(self.address)
        return sock

    def ask(self, path: str = "/", method: str = "GET", **options: Any) -> dict[str, Any]:
        """One request on a connection of its own."""
        connection = http.client.HTTPConnection(*self.address, timeout=PATIENCE)
        try:
            connection.request(method, path, **options)
            answer = connection.getresponse()
            assert answer.status == 200, answer.read()
            return json.loads(answer.read())
        finally:
            connection.close()


@contextmanager
def serving(
    folder: Path, *options: str, deadline: float = 60.0, config: str = "tests.infrastructure.serving_config"
) -> Iterator[Server]:
    """gunicorn with one process of two threads, and with `options`. A slow client has `deadline` seconds."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = probe.getsockname()
    log = folder / "gunicorn.log"
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "survey.settings",
        "HUNCH_VAR": str(folder),
        "HUNCH_WEB_WORKERS": "1",
        "SERVING_DEADLINE": str(deadline),
    }
    environment.pop("DATABASE_URL", None)
    command = [sys.executable, "-m", "gunicorn", "-c", f"python:{config}"]
    bind = ["--bind", f"{address[0]}:{address[1]}"]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(DIE_WITH_PARENT), str(os.getpid()), *command, *bind, *options, APP],
            cwd=ROOT,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    server = Server(process, address, log)
    try:
        assert eventually(lambda: with_suppressed(server.ask)), log.read_text()
        yield server
    finally:
        process.kill()
        process.wait()


def with_suppressed(call: Callable[[], Any]) -> Any:
    """None where nobody answers yet, or a busy machine was too slow for the server's deadline."""
    with suppress(OSError, AssertionError):
        return call()


def read_all(sock: socket.socket) -> bytes:
    """Until the server closes."""
    return b"".join(iter(lambda: sock.recv(1 << 20), b""))


def read_answers(sock: socket.socket, count: int) -> list[dict[str, Any]]:
    file = sock.makefile("rb")
    answers = []
    for _ in range(count):
        assert file.readline().startswith(b"HTTP/1.1 200")
        headers = dict(line.split(b": ", 1) for line in iter(file.readline, b"\r\n"))
        answers.append(json.loads(file.read(int(headers[b"Content-Length"]))))
    return answers


def is_open(sock: socket.socket) -> bool:
    """Whether the server has neither closed nor answered."""
    sock.setblocking(False)
    try:
        sock.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        sock.settimeout(PATIENCE)
    return False


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("serving"), "--keep-alive", "60", config="survey.gunicorn_config") as running:
        yield running


@SLOW
def test_a_worker_has_loaded_the_pages_before_the_first_request_and_never_looks_for_garbage_in_them(
    server: Server,
) -> None:
    said = server.ask("/")
    assert said["loaded"]
    assert said["passed_over"] > 100_000


# What reaches the application


def request(body: bytes = b"", *headers: str, method: str = "POST", path: str = "/", version: str = "1.1") -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/{version}", "Host: localhost", *headers, "", ""]).encode() + body


@SLOW
def test_requests_on_one_connection_are_answered_in_order_however_they_are_cut(server: Server) -> None:
    bodies = [b"", b"a" * 100, b"b" * 300_000, b"c" * 7]
    sent = (
        request(method="GET", path="/0")
        + request(bodies[1], "Content-Length: 100", path="/1")
        # Over the limit of the survey's pages, below that of the admin's, and too much to be kept in memory.
        + request(bodies[2], "Content-Length: 300000", path="/admin/2")
        + request(b"3\r\nccc\r\n4;x=y\r\ncccc\r\n0\r\nEnd: 1\r\n\r\n", "Transfer-Encoding: chunked", path="/3")
    )
    with server.connect() as sock:
        for start in range(0, len(sent), 37_111):
            sock.sendall(sent[start : start + 37_111])
            time.sleep(0.01)
        answers = read_answers(sock, 4)
    assert [answer["path"] for answer in answers] == ["/0", "/1", "/admin/2", "/3"]
    assert [answer["sha256"] for answer in answers] == [hashlib.sha256(body).hexdigest() for body in bodies]
    assert (answers[3]["length"], answers[3]["encoding"]) == ("7", "")  # As if it had come with a length.


@SLOW
def test_a_body_over_the_limit_is_not_kept_and_the_application_can_still_answer(server: Server) -> None:
    with server.connect() as sock:
        sock.sendall(request(b"x" * 300_000, "Content-Length: 300000") + request(method="GET", path="/2"))
        refused, after = read_answers(sock, 2)
    assert (refused["length"], refused["size"]) == ("300000", 0)
    assert after["path"] == "/2"


@SLOW
def test_a_body_of_unknown_length_is_refused_at_the_limit(server: Server) -> None:
    limit = settings.HUNCH_MAX_BODY
    for size, status in ((limit, 200), (2 * limit, 413)):  # In between, the application refuses it.
        with server.connect() as sock:
            chunk = b"%x\r\n" % size + b"x" * size + b"\r\n0\r\n\r\n"
            sock.sendall(request(chunk, "Transfer-Encoding: chunked", "Connection: close"))
            assert sock.recv(100).startswith(b"HTTP/1.1 %d " % status)


@SLOW
def test_where_too_much_is_being_sent_the_next_body_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVING_BODIES", "300000")
    with serving(tmp_path) as server, server.connect() as first, server.connect() as second:
        first.sendall(request(b"x", "Content-Length: 200000"))
        assert eventually(lambda: refused_with_503(server))
        second.sendall(request(b"x" * 99_999, "Content-Length: 99999"))
        first.sendall(b"x" * 199_999)
        assert [answer["size"] for sock in (first, second) for answer in read_answers(sock, 1)] == [200_000, 99_999]
        assert eventually(lambda: not refused_with_503(server))


def refused_with_503(server: Server) -> bool:
    with server.connect() as sock:
        sock.sendall(request(b"x" * 150_000, "Content-Length: 150000", "Connection: close"))
        return read_all(sock).startswith(b"HTTP/1.1 503 ")


@SLOW
def test_the_word_to_go_on_is_sent_once_and_the_answer_follows(server: Server) -> None:
    with server.connect() as sock:
        sock.sendall(request(b"", "Expect: 100-continue", "Content-Length: 3", "Connection: close"))
        assert sock.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        sock.sendall(b"abc")
        answer = read_all(sock)
    assert answer.startswith(b"HTTP/1.1 200") and b"100 Continue" not in answer


@SLOW
def test_an_older_client_and_one_that_asks_for_the_head_alone(server: Server) -> None:
    with server.connect() as sock:
        sock.sendall(request(method="GET", version="1.0"))
        assert read_all(sock).startswith(b"HTTP/1.0 200")  # read_all returns: the server closed.
    with server.connect() as sock:
        sock.sendall(request(method="HEAD") + request(method="HEAD", path="/2", version="1.0"))
        heads = read_all(sock)
    assert heads.count(b"Content-Length: ") == 2 and heads.endswith(b"\r\n\r\n") and b"{" not in heads


@SLOW
@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nA: " + b"x" * 40_000, 431),
        (request(b"zz\r\n", "Transfer-Encoding: chunked"), 400),
        (request(b"", "Transfer-Encoding: gzip, chunked"), 501),
    ],
)
def test_what_is_not_http_is_refused(server: Server, sent: bytes, status: int) -> None:
    with server.connect() as sock:
        sock.sendall(sent)
        assert read_all(sock)[: len(b"HTTP/1.1 400 ")].endswith(b" %d " % status)


@SLOW
def test_an_error_is_answered_and_one_in_the_middle_of_an_answer_breaks_it_off(server: Server) -> None:
    with server.connect() as sock:
        sock.sendall(request(method="GET", path="/broken"))
        assert read_all(sock).startswith(b"HTTP/1.1 500 ")
    with server.connect() as sock:
        sock.sendall(request(method="GET", path="/breaks-off"))
        head, _, body = read_all(sock).partition(b"\r\n\r\n")
    assert b"Content-Length: 1000000" in head and set(body) <= set(b"x") and len(body) < 1_000_000
    assert "in the middle" in server.log.read_text()
    assert server.ask()["path"] == "/"


# Slow clients


def slow_header(server: Server) -> socket.socket:
    sock = server.connect()
    sock.sendall(b"GET / HTTP/1.1\r\nHost: local")
    return sock


def slow_body(server: Server) -> socket.socket:
    sock = server.connect()
    sock.sendall(request(b"a=", "Content-Length: 100"))
    return sock


def idle(server: Server) -> socket.socket:
    return server.connect()


def never_reading(server: Server) -> socket.socket:
    sock = server.connect(receive_buffer=4096)
    sock.sendall(request(method="GET", path="/large"))
    return sock


@pytest.mark.thorough
@SLOW
def test_200_slow_connections_hold_no_thread(server: Server) -> None:
    with ExitStack() as stack:
        slow = [
            stack.enter_context(kind(server))
            for kind, number in ((slow_header, 80), (slow_body, 80), (idle, 36), (never_reading, 4))
            for _ in range(number)
        ]
        for number in range(20):
            assert server.ask(f"/{number}")["path"] == f"/{number}"
        # The first are still at it, and the last still have something to read.
        assert all(is_open(sock) for sock in slow[:160])
        slow[0].sendall(b"host\r\nConnection: close\r\n\r\n")
        assert read_all(slow[0]).startswith(b"HTTP/1.1 200")
        slow[80].sendall(b"x" * 98)
        assert read_answers(slow[80], 1)[0]["size"] == 100


@SLOW
def test_a_large_answer_reaches_who_reads_it_late(server: Server) -> None:
    with never_reading(server) as sock:
        assert server.ask("/behind")["path"] == "/behind"
        file = sock.makefile("rb")
        while file.readline() != b"\r\n":
            pass
        body = file.read(12_000_000)
    assert body == b"".join(b"%08d" % number * 1000 for number in range(1500))


@SLOW
def test_who_is_too_slow_is_cut_off(tmp_path: Path) -> None:
    with serving(tmp_path, "--keep-alive", "2", deadline=1.0) as server:
        for kind in (slow_header, slow_body):
            with kind(server) as sock:
                assert b" 408 " in read_all(sock)[:20]
        with idle(server) as sock:
            assert read_all(sock) == b""
        with slow_header(server) as sock, suppress(OSError):
            for _ in range(200):  # A byte now and then earns no more time.
                sock.sendall(b"a")
                time.sleep(0.05)
            pytest.fail("still connected")
        with never_reading(server) as sock:
            assert eventually(lambda: is_cut_off(sock))
        assert eventually(lambda: with_suppressed(server.ask))["path"] == "/"


def is_cut_off(sock: socket.socket) -> bool:
    """Whether the server has reset the connection, seen without reading from it."""
    return sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) != 0


@SLOW
def test_the_access_line_names_no_query_string(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        server.ask("/s/demo/?PROLIFIC_PID=5f0000000000000000000001")
        assert eventually(lambda: '"GET /s/demo/" 200' in server.log.read_text())
        assert "5f0000000000000000000001" not in server.log.read_text()


# Ending


@pytest.mark.thorough
@SLOW
def test_a_worker_that_stops_answers_what_it_has(tmp_path: Path) -> None:
    with serving(tmp_path) as server, server.connect() as sock, slow_header(server) as unfinished:
        sock.sendall(request(method="GET", path="/sleep/1.5"))
        assert eventually(lambda: "/sleep/1.5 has come" in server.log.read_text())
        server.process.send_signal(signal.SIGTERM)
        answer = read_all(sock)
        assert answer.startswith(b"HTTP/1.1 200") and b"Connection: close" in answer
        assert server.process.wait(timeout=PATIENCE) == 0
        assert not is_open(unfinished)


@SLOW
def test_workers_that_are_replaced_after_some_requests_lose_none(tmp_path: Path) -> None:
    short = ["--max-requests", "15", "--max-requests-jitter", "0"]
    with serving(tmp_path, *short, "--workers", "2") as server:
        pids: list[int] = []

        def visit() -> None:
            pids.extend(server.ask()["pid"] for _ in range(10))

        visitors = [threading.Thread(target=visit) for _ in range(4)]
        for visitor in visitors:
            visitor.start()
        for visitor in visitors:
            visitor.join()
        assert len(pids) == 40

        def ask_once_more() -> bool:
            pids.append(server.ask()["pid"])
            return len(set(pids)) > 2  # Two at the start.

        assert eventually(ask_once_more)


@pytest.mark.thorough
@SLOW
def test_a_worker_whose_threads_all_hang_is_replaced(tmp_path: Path) -> None:
    with serving(tmp_path, "--timeout", "2") as server, ExitStack() as stack:
        before = server.ask()["pid"]
        for _ in range(2):
            sock = stack.enter_context(server.connect())
            sock.sendall(request(method="GET", path="/sleep/600"))
        assert eventually(lambda: other_than(server, before))


def other_than(server: Server, pid: int) -> int:
    other_pid = with_suppressed(lambda: server.ask()["pid"])
    return other_pid if other_pid and other_pid != pid else 0
