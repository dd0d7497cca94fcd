"""Does the site answer while many connections are slow on purpose?

    python benchmarks/slow_connections.py [--connections 200] [--seconds 8] [--worker ours]

The slow connections send a header byte by byte, a body byte by byte, nothing at all, or ask for a large file and never
read it; one that the server closes is opened again. Meanwhile visitors ask for a page that reads the database, a new
connection each, and give up after 5 seconds. Both workers run with two processes: gunicorn's own threaded worker with
four threads each, and ours (survey/web/web_worker.py, with waitress). Everything runs on this machine, by loopback.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from _servers import ROOT, gunicorn, milliseconds, processor_seconds

WORKERS = {
    "gthread": ["--worker-class", "gthread", "--threads", "4", "--keep-alive", "2"],
    "ours": [],
}
LARGE_FILE = b"/static/drf_spectacular_sidecar/swagger-ui-dist/swagger-ui-bundle.js"
PAGE = "/admin/login/"
GIVES_UP = 5.0  # seconds a visitor waits


def header(number: int) -> bytes:
    return b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: "


def body(number: int) -> bytes:
    return b"POST /admin/login/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n"


def idle(number: int) -> bytes:
    return b""


def never_reads(number: int) -> bytes:
    return b"GET %b HTTP/1.1\r\nHost: localhost\r\n\r\n" % LARGE_FILE * 8  # more than the sockets hold


class Crowd(threading.Thread):
    """So many slow connections of one kind, until `stop` is called."""

    def __init__(self, address: tuple[str, int], count: int, begin: Callable[[int], bytes]) -> None:
        super().__init__(daemon=True)
        self.address, self.count, self.begin = address, count, begin
        self.opened = 0
        self._ends = threading.Event()
        self._sockets: list[socket.socket | None] = [None] * count

    def run(self) -> None:
        while not self._ends.is_set():
            for number in range(self.count):
                self._keep_up(number)
            self._ends.wait(0.5)
        for sock in self._sockets:
            if sock is not None:
                sock.close()

    def _keep_up(self, number: int) -> None:
        """Send another byte; where the server has closed, begin again."""
        sock = self._sockets[number]
        try:
            if sock is None:
                sock = socket.socket()
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                sock.settimeout(1)
                sock.connect(self.address)
                sock.sendall(self.begin(number))
                sock.setblocking(False)
                self._sockets[number] = sock
                self.opened += 1
            elif self.begin in (header, body):
                sock.send(b"a")
            elif self.begin is idle and not sock.recv(1):
                raise ConnectionResetError
        except BlockingIOError:
            pass
        except OSError:
            if sock is not None:
                sock.close()
            self._sockets[number] = None

    def stop(self) -> None:
        self._ends.set()
        self.join()


def visit(address: tuple[str, int]) -> float | None:
    """Seconds until the whole page was there; None where the visitor gave up or got no page."""
    started = time.perf_counter()
    try:
        with socket.create_connection(address, timeout=GIVES_UP) as sock:
            sock.sendall(f"GET {PAGE} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
            data = b""
            while piece := sock.recv(65536):
                data += piece
                sock.settimeout(max(0.001, started + GIVES_UP - time.perf_counter()))
    except OSError:
        return None
    return time.perf_counter() - started if data.startswith(b"HTTP/1.1 200") else None


def measure(
    worker: str, kind: Callable[[int], bytes] | None, environment: dict[str, str], options: argparse.Namespace
) -> dict[str, Any]:
    with gunicorn(*["survey.wsgi", *WORKERS[worker]], environment=environment, ready=PAGE) as (address, process):
        for _ in range(20):
            visit(address)
        crowd = Crowd(address, options.connections, kind) if kind else None
        if crowd:
            crowd.start()
            time.sleep(2)
        before, times = processor_seconds(process), []
        until = time.perf_counter() + options.seconds
        while time.perf_counter() < until:
            times.append(visit(address))
            time.sleep(0.02)
        spent = processor_seconds(process) - before
        if crowd:
            crowd.stop()
    answered = [time for time in times if time is not None]
    return {
        "visits": len(times),
        "unanswered": len(times) - len(answered),
        "p50_ms": milliseconds(answered, 0.5),
        "p95_ms": milliseconds(answered, 0.95),
        "worst_ms": milliseconds(answered, 1.0),
        "server_seconds_per_visit": round(spent / max(1, len(answered)), 4),
        "slow_opened": crowd.opened if crowd else 0,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--connections", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--worker", choices=list(WORKERS), help="only this one")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hunch-slow-") as folder:
        environment = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "survey.settings",
            "HUNCH_VAR": folder,
            "HUNCH_LOG_LEVEL": "ERROR",
        }
        environment.pop("DATABASE_URL", None)
        subprocess.run([sys.executable, "manage.py", "migrate", "-v", "0"], cwd=ROOT, env=environment, check=True)
        print(json.dumps(measure_all(environment, options)))
    return 0


def measure_all(environment: dict[str, str], options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    figures: dict[str, dict[str, Any]] = {}
    for worker in [options.worker] if options.worker else list(WORKERS):
        figures[worker] = {}
        for name, kind in {"none": None, "header": header, "body": body, "idle": idle, "reading": never_reads}.items():
            measured = figures[worker][name] = measure(worker, kind, environment, options)
            print(
                f"{worker:8} {options.connections if kind else 0:4} slow by {name:8} {measured['visits']:4} visits, "
                f"{measured['unanswered']} unanswered; p50 {measured['p50_ms']} ms, p95 {measured['p95_ms']}, "
                f"worst {measured['worst_ms']}",
                flush=True,
            )
    return figures


if __name__ == "__main__":
    sys.exit(main())
