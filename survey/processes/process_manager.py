"""Starts Redis, web, the three workers and beat, restarts what dies or hangs, and leaves nothing behind.

Imports settings, `survey.health` and modules of this package; no model. One thread starts, watches and stops all
children, so nothing here needs a lock. (It must be one thread also because the kernel's "parent died" means the thread
that started a child.)
Each child leads its own process group. There are two ways to end: `stop` (TERM, some seconds, then KILL to the group),
or our own death; then the kernel kills the children (see `die_with_parent`), and their pools end with them.
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
from types import FrameType, TracebackType
from typing import IO

from django.conf import settings

from survey import health
from survey.processes import background, embedded, queues

QUICK_DEATH = 10.0  # seconds; a child that lives longer has started well
MAX_QUICK_DEATHS = 5
LOOK_EVERY = 5.0  # seconds between two looks at whether a child hangs
HANGS_AFTER = 60.0  # seconds without a sign of life
HANGS_AT_START = 300.0  # the same for a child that has never shown one: on a busy machine it imports for long
GRACE = 8.0  # seconds between TERM and KILL
LARGEST_OLD_LOG = 10 * 1024 * 1024  # bytes
DIE_WITH_PARENT = Path(__file__).with_name("die_with_parent.py")


class ProcessManagerError(Exception):
    """The services cannot run. The message names the log to read or says what to do."""


@dataclass
class Service:
    """One child: how it is started, how its health is checked, and its state so far."""

    name: str
    command: list[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    heartbeat: Path | None = None
    process: "subprocess.Popen[bytes] | None" = None
    # By the monotonic clock: the other one may be set back.
    started: float = 0.0
    seen_alive: float = 0.0
    looked_at: float = 0.0
    restart_at: float = 0.0
    was_well: bool = False
    quick_deaths: int = 0


class ProcessManager:
    """`with ProcessManager() as services:` runs everything for the length of the block.

    `port`: where web listens on loopback. If it is taken, a free one is used, and `say` is called with a message.
    `environment` is added to the children's. `verbose`: their output goes to ours, else to `var/log/NAME.log`.
    """

    def __init__(
        self,
        *,
        port: int | None = None,
        verbose: bool = False,
        environment: Mapping[str, str] | None = None,
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.port = port or settings.HUNCH_PORT
        self.verbose = verbose
        self.environment = dict(environment or {})
        self.say = say
        self.logs = Path(settings.HUNCH_VAR) / "log"
        self.run = Path(settings.HUNCH_RUN)
        self._listener: socket.socket | None = None
        self._lock_file: int | None = None
        self._stop = threading.Event()
        self._failure: str | None = None
        self._services: list[Service] = []
        self._thread: threading.Thread | None = None
        self._old_handlers: dict[int, object] = {}

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> "ProcessManager":
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start everything and return at once. Raises ProcessManagerError if another manager runs from here."""
        try:
            embedded.make_private_folder(self.run)
            self.logs.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._take_lock()
            self._listener = self._listen()
            self._services = self._describe_services(self._listener.fileno())
        except embedded.EmbeddedServerError as exc:
            self._release()
            raise ProcessManagerError(str(exc)) from exc
        except BaseException:
            self._release()
            raise
        self._turn_signals_into_exits()
        self._thread = threading.Thread(target=self._supervise, name="process-manager", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End every child and wait until all are gone."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        for number, handler in self._old_handlers.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        self._old_handlers.clear()
        self._release()

    def wait_healthy(self, timeout: float = 90.0) -> None:
        """Return when every part is well. Raises ProcessManagerError when `timeout` seconds have passed, or before
        that when a part keeps dying."""
        deadline = time.monotonic() + timeout
        while missing := [service.name for service in self._services if not self._is_well(service)]:
            if time.monotonic() > deadline:
                logs = ", ".join(str(self._log_path(name)) for name in missing)
                raise ProcessManagerError(f"not ready after {timeout:.0f} s: {', '.join(missing)}. Read {logs}")
            self._raise_failure()
            time.sleep(0.25)
        self._raise_failure()

    def wait(self) -> None:
        """Return when `stop` is called. Raises ProcessManagerError when a part keeps dying."""
        while not self._stop.wait(0.5):
            self._raise_failure()
        self._raise_failure()

    def process_ids(self) -> dict[str, int]:
        """The ids of the children that run now, by name."""
        return {
            service.name: service.process.pid
            for service in self._services
            if service.process is not None and service.process.poll() is None
        }

    # What is started

    def _describe_services(self, listener: int) -> list[Service]:
        python = [sys.executable, "-m"]
        celery = [*python, "celery", "-A", "survey"]
        worker = [*celery, "worker", "--without-gossip", "--without-mingle", "--loglevel", settings.HUNCH_LOG_LEVEL]
        threads = str(max(1, background.cores() - 1))
        computing = {
            **dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), threads),
            "HUNCH_BACKGROUND": "true",
            "TOKENIZERS_PARALLELISM": "false",
            # A waiting thread leaves its core to the web server. If it spun, a shared machine would be half as fast.
            "OMP_WAIT_POLICY": "PASSIVE",
        }
        computed = f"{queues.TRAIN},{queues.SCORE}"
        gunicorn = [*python, "gunicorn", "-c", "python:survey.gunicorn_config"]
        services = [
            Service("web", [*gunicorn, "--bind", f"fd://{listener}", "survey.wsgi"]),
            Service("worker", [*worker, "-Q", queues.DEFAULT, "-c", "2", "-n", "default@%h"]),
            Service(
                "worker-ml",
                [*worker, "-Q", computed, "-c", "1", "-n", "ml@%h", "--pool-start-method", "spawn"],
                computing,
            ),
            # Two collections at a time, each with many requests. A model on this machine's disk computes here, too.
            Service("worker-collect", [*worker, "-Q", queues.COLLECT, "-c", "2", "-n", "collect@%h"], computing),
            Service(
                "beat",
                [*celery, "beat", "--loglevel", settings.HUNCH_LOG_LEVEL],
                {"HUNCH_WATCH_WEB": self.base_url},
            ),
        ]
        for service in services[1:]:
            service.heartbeat = self.run / f"{service.name}.heartbeat"
        if settings.HUNCH_EMBEDDED_REDIS:
            socket_path = Path(settings.REDIS_URL.removeprefix("unix://"))
            command = embedded.redis_command(binary=embedded.redis_server_binary(), socket=socket_path)
            services.insert(0, Service("redis", command))
        return services

    def _listen(self) -> socket.socket:
        """A listening loopback socket that web inherits. So no other program can take the port before web starts, and a
        request that comes while web restarts waits instead of failing."""
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", self.port))
        except OSError as exc:
            listener.bind(("127.0.0.1", 0))
            taken, self.port = self.port, listener.getsockname()[1]
            self.say(f"Port {taken} cannot be used ({exc.strerror}); using {self.port}.")
        listener.listen(1024)
        return listener

    def _take_lock(self) -> None:
        """Allow one manager per HUNCH_VAR: two would share a socket and a schedule. The kernel drops the lock when we
        die."""
        self._lock_file = os.open(self.run / "manager.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ProcessManagerError(
                f"Hunch already runs from {settings.HUNCH_VAR}: stop it first, or set HUNCH_VAR to another folder"
            ) from None

    def _release(self) -> None:
        if self._listener is not None:
            self._listener.close()
        if self._lock_file is not None:
            os.close(self._lock_file)
            self._lock_file = None

    def _turn_signals_into_exits(self) -> None:
        """Let TERM and HUP unwind the `with` block as Ctrl-C does. Only the main thread may set signal handlers."""
        if threading.current_thread() is not threading.main_thread():
            return

        def leave(number: int, frame: FrameType | None) -> None:
            sys.exit(128 + number)

        for number in (signal.SIGTERM, signal.SIGHUP):
            self._old_handlers[number] = signal.signal(number, leave)
        # A shell starts a background job with INT ignored; `kill -INT` would then have no effect.
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
            self._old_handlers[signal.SIGINT] = signal.signal(signal.SIGINT, signal.default_int_handler)

    # The one thread

    def _supervise(self) -> None:
        try:
            for service in self._services:
                self._spawn(service)
                if service.name == "redis":
                    self._wait_for_broker(service)
            while not self._stop.wait(0.1):
                for service in self._services:
                    self._look_after(service)
        except _KeepsDyingError as exc:
            self._failure = str(exc)
        except OSError as exc:
            self._failure = f"a service cannot be started: {exc}"
        finally:
            self._end_all()

    def _spawn(self, service: Service) -> None:
        environment = {**os.environ, "PYTHONPATH": self._python_path(), **service.environment, **self.environment}
        if service.heartbeat is not None:
            environment["HUNCH_HEARTBEAT"] = str(service.heartbeat)
            service.heartbeat.unlink(missing_ok=True)  # The one before it says nothing about this process.
        keep = (self._listener.fileno(),) if service.name == "web" and self._listener is not None else ()
        with self._output(service) as output:
            service.process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(DIE_WITH_PARENT), str(os.getpid()), *service.command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
                pass_fds=keep,
                umask=0o077,
                start_new_session=True,  # a Ctrl-C in our terminal must reach only us
            )
        service.started = service.seen_alive = service.looked_at = time.monotonic()
        service.was_well = False
        if self.verbose:
            self._relay(service)

    @contextlib.contextmanager
    def _output(self, service: Service) -> Iterator[int | IO[bytes]]:
        if self.verbose:
            yield subprocess.PIPE
            return
        path = self._log_path(service.name)
        if path.exists() and path.stat().st_size > LARGEST_OLD_LOG:
            path.replace(path.with_suffix(".log.1"))
        with open(path, "ab", opener=_open_private) as file:
            yield file

    def _relay(self, service: Service) -> None:
        """Show a child's lines with its name before each."""
        stream = service.process.stdout if service.process is not None else None

        def relay() -> None:
            for line in stream or ():
                sys.stdout.write(f"{service.name:14} | {line.decode(errors='replace').rstrip()}\n")
                sys.stdout.flush()

        threading.Thread(target=relay, name=f"output-{service.name}", daemon=True).start()

    def _wait_for_broker(self, service: Service) -> None:
        while not (health.broker_answers() or self._stop.wait(0.05)):
            self._look_after(service)

    def _look_after(self, service: Service) -> None:
        """Restart a child that died: at once the first time, and after each quick death with a longer delay."""
        process = service.process
        if process is not None and process.poll() is not None:
            _signal_group(process.pid, signal.SIGKILL)  # the processes that it had started
            lived = time.monotonic() - service.started
            service.quick_deaths = service.quick_deaths + 1 if lived < QUICK_DEATH else 1
            if service.quick_deaths >= MAX_QUICK_DEATHS:
                raise _KeepsDyingError(
                    f"{service.name} died {service.quick_deaths} times in a row (status {process.returncode}). "
                    f"Read {self._log_path(service.name)}"
                )
            delay = 0.5 * 2 ** (service.quick_deaths - 1)
            self.say(f"{service.name} ended with status {process.returncode}; starting it again in {delay:g} s.")
            service.restart_at = time.monotonic() + delay
            service.process = None
        elif process is None and time.monotonic() >= service.restart_at:
            self._spawn(service)
        elif process is not None and time.monotonic() - service.looked_at > LOOK_EVERY:
            self._end_if_it_hangs(service, process)

    def _end_if_it_hangs(self, service: Service, process: "subprocess.Popen[bytes]") -> None:
        """Kill a child that has shown no life for long; then it is restarted as one that died."""
        service.looked_at = time.monotonic()
        if self._shows_life(service):
            service.seen_alive = time.monotonic()
            service.was_well = True
        # Without the broker no worker shows life, and a new one would show none either.
        elif service.heartbeat is not None and not health.broker_answers():
            service.seen_alive = time.monotonic()
        elif time.monotonic() - service.seen_alive > (HANGS_AFTER if service.was_well else HANGS_AT_START):
            self.say(f"{service.name} has shown no sign of life for too long and is ended.")
            _signal_group(process.pid, signal.SIGKILL)

    def _shows_life(self, service: Service) -> bool:
        return health.web_lives(self.base_url) if service.name == "web" else self._is_well(service)

    def _end_all(self) -> None:
        """End Redis last: the workers still talk to it while they end."""
        others = [service for service in self._services if service.name != "redis"]
        redis = [service for service in self._services if service.name == "redis"]
        for group in (others, redis):
            processes = [service.process for service in group if service.process is not None]
            for process in processes:
                if process.poll() is None:
                    process.terminate()
            deadline = time.monotonic() + GRACE
            for process in processes:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(timeout=max(0.0, deadline - time.monotonic()))
                _signal_group(process.pid, signal.SIGKILL)
                process.wait()
        for service in self._services:
            if service.heartbeat is not None:
                service.heartbeat.unlink(missing_ok=True)

    # Small questions

    def _is_well(self, service: Service) -> bool:
        if service.process is None or service.process.poll() is not None:
            return False
        if service.name == "web":
            return health.web_answers(self.base_url)
        if service.name == "redis":
            return health.broker_answers()
        return service.heartbeat is not None and health.heartbeat_is_fresh(service.heartbeat)

    def _log_path(self, name: str) -> Path:
        return self.logs / f"{name}.log"

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise ProcessManagerError(self._failure)

    @staticmethod
    def _python_path() -> str:
        """The path on which children find survey, from whatever folder we were called."""
        return os.pathsep.join(filter(None, [str(settings.BASE_DIR), os.environ.get("PYTHONPATH", "")]))


class _KeepsDyingError(Exception):
    """A child died too often in a row."""


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _signal_group(leader: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)
