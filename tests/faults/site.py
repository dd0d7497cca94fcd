"""A whole site on a PostgreSQL and a Redis of its own, which a test may break: `manage.py up` starts what is killed."""

import os
import signal
import ssl
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil
from django.conf import settings
from django.core.management import call_command
from django.db import connection

from survey import settings as readers
from tests import servers
from tests.frontend.pages import Page, fields_for, read
from tests.waiting import PATIENCE

ROOT = Path(__file__).parents[2]
# Each client would read the certificates of all authorities, for pages that come without any.
NO_CERTIFICATES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
CONNECTION = ("NAME", "USER", "PASSWORD", "HOST", "PORT", "OPTIONS")


def wait_for(what: str, look: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not look():
        assert time.monotonic() < deadline, f"{what} did not happen in {PATIENCE} s"
        time.sleep(0.1)


@contextmanager
def led_to(url: str) -> Iterator[None]:
    """The tests' own connection leads to that database, which gets its tables."""
    limits = readers.HUNCH_JOB_LIMITS
    other = readers.connect_as(readers.read_database(url), limits=limits, reuse="kept")
    ours = {name: connection.settings_dict[name] for name in CONNECTION}
    connection.close()
    connection.settings_dict.update({name: other.get(name, "") for name in CONNECTION})
    try:
        call_command("migrate", verbosity=0, interactive=False)
        yield
    finally:
        connection.close()
        connection.settings_dict.update(ours)


@dataclass
class BreakableRedis:
    """A Redis that keeps nothing: what is started after it was killed is empty."""

    socket: Path
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def url(self) -> str:
        return f"unix://{self.socket}"

    def start(self) -> None:
        self.socket.unlink(missing_ok=True)
        command = servers.redis_command(binary=servers.redis_server_binary(), socket=self.socket)
        die_with_parent = [sys.executable, "-I", "-S", str(servers.DIE_WITH_PARENT), str(os.getpid())]
        self.process = subprocess.Popen([*die_with_parent, *command], stdout=subprocess.DEVNULL)
        wait_for("Redis", self.socket.exists)

    def freeze(self) -> None:
        """From now on it takes connections and answers nothing."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()


class Participant(threading.Thread):
    """A person on the pages, without their script: who presses "Send again" where a page offers it."""

    # Nobody gives more answers before the fault has come, or it might find nobody there.
    BEFORE_THE_FAULT = 8

    def __init__(self, base_url: str, fault_has_come: threading.Event) -> None:
        super().__init__(daemon=True)
        self.fault_has_come = fault_has_come
        self.client = httpx.Client(base_url=base_url, follow_redirects=True, timeout=60, verify=NO_CERTIFICATES)
        self.statuses: Counter[int] = Counter()
        self.broken = 0
        self.answered = 0
        self.outcome = ""
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            with self.client:
                self._load("/s/cast/")
                page = self._load("/s/cast/consent")
                page = self._send("/s/cast/consent", {**page.hidden, "consent": "yes"})
                while page.main["data-kind"] != "end":
                    page = self._send("/s/cast/sitting", fields_for(page))
                    self.answered += 1
                    if self.answered == self.BEFORE_THE_FAULT:
                        assert self.fault_has_come.wait(PATIENCE)
                self.outcome = page.main["data-outcome"]
        except BaseException as exc:
            self.error = exc

    def _load(self, path: str) -> Page:
        return self._until_taken("GET", path, {})

    def _send(self, path: str, data: dict[str, Any]) -> Page:
        return self._until_taken("POST", path, data)

    def _until_taken(self, method: str, path: str, data: dict[str, Any]) -> Page:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            try:
                response = self.client.request(method, path, data=data or None)
            except httpx.TransportError:  # The browser says that it cannot be reached; the person presses reload.
                self.broken += 1
                time.sleep(0.1)
                continue
            self.statuses[response.status_code] += 1
            page = read(response.text)
            if response.status_code == 200:
                return page
            if response.status_code != 503:
                raise AssertionError(f"{method} {path}: {response.status_code} {response.text[:2000]}")
            if response.request.method == "POST":
                typed = {name: value for name, value in data.items() if name != "csrfmiddlewaretoken"}
                hidden_fields = {name: value for name, value in page.hidden.items() if name != "csrfmiddlewaretoken"}
                if hidden_fields != typed:
                    raise AssertionError(f"{typed} became {hidden_fields}")
                data = page.hidden
            time.sleep(0.1)
        raise AssertionError(f"{method} {path} was not taken in {PATIENCE} s")


@dataclass
class Site:
    base_url: str
    manager: "subprocess.Popen[str]"
    postgresql: servers.BreakablePostgresql
    redis: BreakableRedis
    environment: dict[str, str]
    people: list[Participant] = field(default_factory=list)
    fault_has_come: threading.Event = field(default_factory=threading.Event)

    def processes(self, part: str) -> list[psutil.Process]:
        """Those of a service and what they have started, the oldest first: web, default@%h, ml@%h or beat."""
        wanted = {"web": "survey.wsgi", "worker": "default@%h", "worker-ml": "ml@%h", "beat": "beat"}[part]
        for child in psutil.Process(self.manager.pid).children():
            with suppress(psutil.Error):
                if wanted in child.cmdline():
                    return [child, *child.children(recursive=True)]
        return []

    def kill(self, part: str) -> None:
        victims = self.processes(part)
        assert victims, f"{part} does not run"
        for victim in victims:
            with suppress(psutil.NoSuchProcess):
                victim.kill()

    def seen(self, status: int) -> bool:
        """Whether everybody who is still inside has seen this status."""
        return all(person.statuses[status] or not person.is_alive() for person in self.people)

    def let_in(self, people: int, *, until_answers: int) -> None:
        """People begin; returns when they have sent as many answers together."""
        self.fault_has_come.clear()
        self.people = [Participant(self.base_url, self.fault_has_come) for _person in range(people)]
        for person in self.people:
            person.start()
        wait_for("answers", lambda: self.answers >= until_answers)

    @property
    def answers(self) -> int:
        """How many those inside have sent together."""
        return sum(person.answered for person in self.people)

    def wait_for_people(self) -> None:
        for person in self.people:
            person.join(timeout=2 * PATIENCE)
            assert not person.is_alive()
            assert person.error is None, person.error

    def health(self) -> dict[str, str]:
        try:
            return dict(httpx.get(f"{self.base_url}/healthz", timeout=10, verify=NO_CERTIFICATES).json())
        except httpx.TransportError:
            return {}

    @property
    def is_well(self) -> bool:
        return self.health() == {"database": "ok", "broker": "ok"}


@contextmanager
def site(folder: Path) -> Iterator[Site]:
    """A running site. Its files are those of this process, and so are its keys."""
    with ExitStack() as stack:
        postgresql = stack.enter_context(servers.breakable_postgresql())
        redis = BreakableRedis(folder / "r")
        stack.callback(redis.kill)
        redis.start()
        stack.enter_context(led_to(postgresql.url))
        environment = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "survey.settings",
            "HUNCH_VAR": str(settings.HUNCH_VAR),
            "DATABASE_URL": postgresql.url,
            "REDIS_URL": redis.url,
        }
        command = [sys.executable, "-u", "manage.py", "up", "--port", "0"]
        log = (folder / "up.log").open("w+")
        stack.callback(log.close)
        manager = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=log, stderr=subprocess.STDOUT, text=True, start_new_session=True
        )
        stack.callback(_end, manager)
        wait_for("the start", lambda: "Ctrl-C" in (folder / "up.log").read_text() or manager.poll() is not None)
        lines = (folder / "up.log").read_text()
        base_url = next((part for part in lines.split() if part.endswith("/admin/")), "").removesuffix("/admin/")
        assert base_url, lines
        yield Site(base_url, manager, postgresql, redis, environment)


def _end(manager: "subprocess.Popen[str]") -> None:
    """End it, and what it has started: the kernel kills them with it."""
    children = psutil.Process(manager.pid).children(recursive=True) if manager.poll() is None else []
    manager.terminate()
    try:
        manager.wait(timeout=30)
    except subprocess.TimeoutExpired:
        manager.kill()
        manager.wait()
    for child in children:
        with suppress(psutil.NoSuchProcess):
            child.kill()
