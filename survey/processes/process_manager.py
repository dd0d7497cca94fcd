"""Runs the services of `hunch up`: starts again what dies or hangs, and leaves nothing behind.

Ours, since no kept library does this. honcho 2.0 ends all when one ends. supervisor 4.3 restarts; but it is a second
process with a file of settings, and the port, the lock, readiness, workers that hang and our own death would still be
ours, which is most of what stands here. Where compose or systemd start the services, they restart what dies.

Imports settings, `survey.health` and modules of this package; no model. One thread starts, watches and ends all
children, so nothing here needs a lock. (It must be one thread also because the kernel's "parent died" means the thread
that started a child.) Each child leads its own process group. It is ended with that, or by our own death: then the
kernel kills it (see `die_with_parent`), and its pool ends with it.
"""

import contextlib
import fcntl
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import IO

from django.conf import settings

from survey import health
from survey.processes import embedded, queues
from survey.processes.embedded import ServicesError

QUICK_DEATH = 10.0  # seconds; a child that lives longer has started well
MAX_QUICK_DEATHS = 5
HANGS_AFTER = 300.0  # seconds without a sign of life; on a busy machine a child imports for long before its first one
GRACE = 8.0  # seconds between TERM and KILL
LARGEST_OLD_LOG = 10 * 1024 * 1024  # bytes
DIE_WITH_PARENT = Path(__file__).with_name("die_with_parent.py")


@dataclass
class Service:
    """One child: how it is started, and its state so far. It is well while it answers or touches its heartbeat."""

    name: str
    command: list[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    heartbeat: Path | None = None
    answers: Callable[[], bool] = lambda: True
    inherits: tuple[int, ...] = ()  # sockets
    process: "subprocess.Popen[bytes] | None" = None
    # By the monotonic clock: the other one may be set back.
    started: float = 0.0
    seen_alive: float = 0.0
    restart_at: float = 0.0
    quick_deaths: int = 0

    @property
    def log(self) -> Path:
        return Path(settings.HUNCH_VAR) / "log" / f"{self.name}.log"

    def is_well(self) -> bool:
        if self.process is None or self.process.poll() is not None:
            return False
        return health.heartbeat_is_fresh(self.heartbeat) if self.heartbeat else self.answers()

    def kill_group(self) -> None:
        """Kill it and what it has started."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)


def services_of(*, listener: int, base_url: str) -> list[Service]:
    """The services of docker-compose.yml and deploy/systemd; before them Redis, if no other one is named."""
    python = [sys.executable, "-m"]
    celery = [*python, "celery", "-A", "survey"]
    worker = [*celery, "worker", "--without-gossip", "--without-mingle", "--loglevel", settings.HUNCH_LOG_LEVEL]
    ml = ["-Q", f"{queues.TRAIN},{queues.SCORE}", "-c", "1", "-n", "ml@%h", "--pool-start-method", "spawn"]
    computing = {"HUNCH_BACKGROUND": "true"}
    by_celery = [
        Service("worker", [*worker, "-Q", queues.DEFAULT, "-c", "2", "-n", "default@%h"]),
        Service("worker-ml", [*worker, *ml], computing),
        # Two collections at a time, each with many requests. A model on this machine's disk computes here, too.
        Service("worker-collect", [*worker, "-Q", queues.COLLECT, "-c", "2", "-n", "collect@%h"], computing),
        Service("beat", [*celery, "beat", "--loglevel", settings.HUNCH_LOG_LEVEL], {"HUNCH_WATCH_WEB": base_url}),
    ]
    for service in by_celery:
        service.heartbeat = Path(settings.HUNCH_RUN) / f"{service.name}.heartbeat"
        service.environment = {**service.environment, "HUNCH_HEARTBEAT": str(service.heartbeat)}
    gunicorn = [*python, "gunicorn", "-c", "python:survey.gunicorn_config", "--bind", f"fd://{listener}", "survey.wsgi"]
    services = [
        Service("web", gunicorn, answers=lambda: health.web_answers(base_url), inherits=(listener,)),
        *by_celery,
    ]
    if settings.HUNCH_EMBEDDED_REDIS:
        redis_socket = Path(settings.REDIS_URL.removeprefix("unix://"))
        redis = embedded.redis_command(binary=embedded.redis_server_binary(), socket=redis_socket)
        services.insert(0, Service("redis", redis, answers=health.broker_answers))
    return services


class ProcessManager:
    """What runs while the block of `run_services` does."""

    def __init__(self, services: list[Service], *, base_url: str, say: Callable[[str], None], verbose: bool) -> None:
        self.services = services
        self.base_url = base_url
        self.logs = Path(settings.HUNCH_VAR) / "log"
        self._say = say
        self._verbose = verbose
        self._failure = ""
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self._supervise, name="process-manager", daemon=True)

    def wait_healthy(self, timeout: float = 90.0) -> None:
        """Return when every part is well. Raises ServicesError when `timeout` seconds have passed, or before
        that when a part keeps dying."""
        deadline = time.monotonic() + timeout
        while missing := [service for service in self.services if not service.is_well()]:
            self.check()
            if time.monotonic() > deadline:
                names = ", ".join(service.name for service in missing)
                logs = ", ".join(str(service.log) for service in missing)
                raise ServicesError(f"not ready after {timeout:.0f} s: {names}. Read {logs}")
            time.sleep(0.25)

    def wait(self) -> None:
        """Wait for ever; raises ServicesError when a part keeps dying."""
        while True:
            self.check()
            time.sleep(0.5)  # No join: a signal that interrupts one makes Python take the thread for ended.

    def check(self) -> None:
        """Raise ServicesError once a part kept dying, and so all were ended."""
        if self._failure:
            raise ServicesError(self._failure)

    # The one thread

    def _supervise(self) -> None:
        try:
            while not self.stop.wait(0.1):
                for service in self.services:
                    self._look_after(service)
        except (ServicesError, OSError) as exc:
            self._failure = str(exc)
        finally:
            # Redis, the first one, ends last: the workers still talk to it while they end.
            self._end(self.services[1:])
            self._end(self.services[:1])

    def _look_after(self, service: Service) -> None:
        """Start it if it does not run, and end it if it hangs. What hangs of web, gunicorn itself ends."""
        now = time.monotonic()
        if service.process is None:
            if now >= service.restart_at:
                self._spawn(service)
        elif service.process.poll() is not None:
            self._plan_restart(service, service.process.returncode)
        elif service.heartbeat is None or health.heartbeat_is_fresh(service.heartbeat):
            service.seen_alive = now
        elif now - service.seen_alive > HANGS_AFTER:
            service.seen_alive = now
            # Without the broker no worker shows life, and a new one would show none either.
            if health.broker_answers():
                self._say(f"{service.name} has shown no sign of life for too long and is ended.")
                service.kill_group()

    def _spawn(self, service: Service) -> None:
        if service.heartbeat is not None:
            service.heartbeat.unlink(missing_ok=True)  # The one before it says nothing about this process.
        # It finds survey from whatever folder we were called.
        path = os.pathsep.join(filter(None, [str(settings.BASE_DIR), os.environ.get("PYTHONPATH")]))
        if service.log.exists() and service.log.stat().st_size > LARGEST_OLD_LOG:
            service.log.replace(service.log.with_suffix(".log.1"))
        with open(service.log, "ab", opener=_open_private) as log:
            service.process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(DIE_WITH_PARENT), str(os.getpid()), *service.command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE if self._verbose else log,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PYTHONPATH": path, **service.environment},
                pass_fds=service.inherits,
                umask=0o077,
                start_new_session=True,  # a Ctrl-C in our terminal must reach only us
            )
        service.started = service.seen_alive = time.monotonic()
        if service.process.stdout is not None:
            threading.Thread(target=_relay, args=(service.name, service.process.stdout), daemon=True).start()

    def _plan_restart(self, service: Service, status: int) -> None:
        """Soon after the first death, and after each quick one that follows with a longer delay."""
        service.kill_group()  # what it had started
        now = time.monotonic()
        service.quick_deaths = service.quick_deaths + 1 if now - service.started < QUICK_DEATH else 1
        if service.quick_deaths >= MAX_QUICK_DEATHS:
            raise ServicesError(
                f"{service.name} died {service.quick_deaths} times in a row (status {status}). Read {service.log}"
            )
        delay = 0.5 * 2 ** (service.quick_deaths - 1)
        self._say(f"{service.name} ended with status {status}; starting it again in {delay:g} s.")
        service.process, service.restart_at = None, now + delay

    def _end(self, services: list[Service]) -> None:
        running = [(service, service.process) for service in services if service.process is not None]
        for _service, process in running:
            process.terminate()
        deadline = time.monotonic() + GRACE
        for service, process in running:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=max(0.0, deadline - time.monotonic()))
            service.kill_group()
            process.wait()
            if service.heartbeat is not None:
                service.heartbeat.unlink(missing_ok=True)


@contextlib.contextmanager
def run_services(
    *, port: int | None = None, verbose: bool = False, say: Callable[[str], None] = lambda line: None
) -> Iterator[ProcessManager]:
    """Run everything for the length of the block.

    Args:
        port: where web listens on loopback. If it is taken, a free one is used, and `say` is called with a message.
        verbose: what the children write goes to our output, else to `var/log/NAME.log`.

    Raises:
        ServicesError: another manager runs from here, or something is missing.
    """
    with manager_lock() as is_only, _exit_on_signals(), socket.socket() as listener:
        if not is_only:
            raise ServicesError(
                f"Hunch already runs from {settings.HUNCH_VAR}: stop it first, or set HUNCH_VAR to another folder"
            )
        base_url = f"http://127.0.0.1:{_listen(listener, port or settings.HUNCH_PORT, say)}"
        services = services_of(listener=listener.fileno(), base_url=base_url)
        manager = ProcessManager(services, base_url=base_url, say=say, verbose=verbose)
        manager.logs.mkdir(mode=0o700, parents=True, exist_ok=True)
        manager.thread.start()
        try:
            yield manager
        finally:
            manager.stop.set()
            manager.thread.join()


@contextlib.contextmanager
def manager_lock() -> Iterator[bool]:
    """Whether nobody else runs services from this HUNCH_VAR: two would share a socket and a schedule. The kernel drops
    the lock when we die."""
    embedded.make_private_folder(Path(settings.HUNCH_RUN))
    with open(Path(settings.HUNCH_RUN) / "manager.lock", "a", opener=_open_private) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


@contextlib.contextmanager
def _exit_on_signals() -> Iterator[None]:
    """Let TERM and HUP unwind the `with` block as Ctrl-C does. A shell starts a background job with INT ignored, so INT
    is listened to as well."""

    def leave(number: int, frame: FrameType | None) -> None:
        sys.exit(128 + number)

    handlers: dict[signal.Signals, Callable[[int, FrameType | None], object]]
    handlers = {signal.SIGTERM: leave, signal.SIGHUP: leave, signal.SIGINT: signal.default_int_handler}
    earlier = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)


def _listen(listener: socket.socket, port: int, say: Callable[[str], None]) -> int:
    """Listen on loopback, and return the port. Web inherits the socket: so no other program can take the port before it
    starts, and a request that comes while web restarts waits instead of failing."""
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
    except OSError as exc:
        listener.bind(("127.0.0.1", 0))
        say(f"Port {port} cannot be used ({exc.strerror}); using {listener.getsockname()[1]}.")
    listener.listen(1024)
    return int(listener.getsockname()[1])


def _relay(name: str, stream: IO[bytes]) -> None:
    """Show a child's lines with its name before each."""
    for line in stream:
        sys.stdout.write(f"{name:14} | {line.decode(errors='replace').rstrip()}\n")
        sys.stdout.flush()


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
