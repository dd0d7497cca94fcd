"""`manage.py up` on real processes: children that die are restarted, and at the end none is left."""

import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from survey.processes import process_manager
from survey.processes.process_manager import Service, ServicesError, run_services
from tests import databases
from tests.waiting import PATIENCE, eventually

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.redis, pytest.mark.slow]


@dataclass
class Running:
    """A `manage.py up` in a separate process."""

    process: "subprocess.Popen[str]"
    output: str
    base_url: str
    environment: dict[str, str]

    def descendants(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)

    def ml_worker(self) -> psutil.Process | None:
        """The child that our process started itself, not a child of its pool."""
        for child in psutil.Process(self.process.pid).children():
            with suppress(psutil.Error):
                if "ml@%h" in child.cmdline():
                    return child
        return None


def alive(processes: list[psutil.Process]) -> list[psutil.Process]:
    running = []
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            if process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
                running.append(process)
    return running


@contextmanager
def up(folder: Path, *program: str) -> Iterator[Running]:
    environment = {**os.environ, "HUNCH_VAR": str(folder), "DJANGO_SETTINGS_MODULE": "survey.settings"}
    for name in ("REDIS_URL", "DATABASE_URL", "HUNCH_HEARTBEAT"):
        environment.pop(name, None)
    process = subprocess.Popen(
        [sys.executable, "-u", *program],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    output = ""
    for line in process.stdout:
        output += line
        if "Ctrl-C" in line:
            break
    match = re.search(r"Admin +(http://[\d.:]+)/admin/", output)
    assert match, output
    try:
        yield Running(process, output, match.group(1), environment)
    finally:
        with suppress(psutil.NoSuchProcess):
            for child in psutil.Process(process.pid).children(recursive=True):
                child.kill()
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def test_all_services_run_are_restarted_and_end_with_the_manager(
    django_db_setup: None, tmp_path: Path, taken_port: int
) -> None:
    """One test, since all services together take several seconds to start. A kill at the end is seen by no handler."""
    folder = tmp_path / "var"
    # To migrate a database takes longer than to start all services.
    databases.copy_for_a_process(folder / "hunch.sqlite3")
    with up(folder, "manage.py", "up", "--port", str(taken_port)) as running:
        # The port is taken: it takes another one, and says so.
        assert f"Port {taken_port} cannot be used" in running.output
        assert not running.base_url.endswith(f":{taken_port}")
        with urllib.request.urlopen(f"{running.base_url}/healthz", timeout=PATIENCE) as response:
            assert response.status == 200
        # A second manager from the same folder is refused.
        second = subprocess.run(
            [sys.executable, "manage.py", "up"], cwd=ROOT, env=running.environment, capture_output=True, text=True
        )
        assert second.returncode == 1
        assert "already runs" in second.stderr and "Traceback" not in second.stderr
        # A killed ml worker is started again, and nothing is left of its old pool.
        children = running.descendants()
        worker = running.ml_worker()
        assert worker is not None
        assert eventually(worker.children)
        pool = worker.children(recursive=True)
        worker.kill()
        assert eventually(lambda: running.ml_worker() not in (None, worker))
        assert eventually(lambda: not alive(pool)), alive(pool)
        # What they write is ours alone.
        paths = [folder, *folder.glob("log/*.log"), *folder.glob("run/*")]
        assert len(paths) > 8
        assert [path for path in paths if path.stat().st_mode & 0o077] == []
        # Every process ends when the manager is killed. They are nice to others, so it may take them long.
        children += [child for child in running.descendants() if child not in children]
        assert len(children) >= 8  # redis, web and its two, two workers and their pools, beat
        running.process.kill()
        gone = eventually(lambda: not alive(children))
        left = alive(children)
        for child in left:
            child.kill()
        assert gone, left


# Two services that are there at once, each with a child of its own. One does not end when it is asked to.
SMALL = """
import sys
import django
django.setup()
from django.core.management import call_command
from survey.processes import process_manager
from survey.processes.process_manager import ProcessManager, Service
process_manager.GRACE = 1.0
process_manager.services_of = lambda **_options: [
    Service("parent", ["sh", "-c", "sleep 600 & wait"]),
    Service("stubborn", ["sh", "-c", "trap '' TERM; sleep 600 & wait; wait"]),
]
ProcessManager.wait_healthy = lambda self: None
call_command("up")
"""


@pytest.mark.thorough
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 0), (signal.SIGTERM, 128 + signal.SIGTERM)])
def test_a_signal_ends_every_process(
    number: signal.Signals, status: int, tmp_path: Path, django_db_setup: None
) -> None:
    """The services of Hunch end in this way in tests/documents/test_tutorial.py."""
    databases.copy_for_a_process(tmp_path / "var" / "hunch.sqlite3")
    with up(tmp_path / "var", "-c", SMALL) as services:
        assert eventually(lambda: len(services.descendants()) == 4)
        children = services.descendants()
        services.process.send_signal(number)
        assert services.process.wait(timeout=PATIENCE) == status
        assert alive(children) == []


@pytest.mark.thorough
def test_a_service_that_keeps_dying_stops_the_others_and_names_its_log(monkeypatch: pytest.MonkeyPatch) -> None:
    services = [Service("steady", ["sleep", "600"]), Service("broken", ["sh", "-c", "echo no; exit 3"])]
    monkeypatch.setattr(process_manager, "MAX_QUICK_DEATHS", 2)
    monkeypatch.setattr(process_manager, "services_of", lambda **_options: services)
    with run_services() as manager:
        assert eventually(lambda: services[0].is_well())
        with pytest.raises(ServicesError, match=r"broken died 2 times in a row \(status 3\). Read .*broken.log"):
            manager.wait()
        assert eventually(lambda: not any(service.is_well() for service in services))
    assert "no" in (manager.logs / "broken.log").read_text()


@pytest.mark.thorough
def test_what_is_not_ready_in_time_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    services = [Service("idle", ["sleep", "600"], answers=lambda: False)]
    monkeypatch.setattr(process_manager, "services_of", lambda **_options: services)
    with run_services() as manager, pytest.raises(ServicesError, match=r"not ready after 0 s: idle. Read "):
        manager.wait_healthy(timeout=0.2)
