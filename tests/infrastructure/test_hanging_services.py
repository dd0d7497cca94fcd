"""The process manager ends and restarts a child that still runs and does nothing; who computes makes way for pages."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from survey import health
from survey.processes import background, process_manager, queues
from survey.processes.process_manager import Service, run_services, services_of
from tests.infrastructure.test_compose import OURS
from tests.waiting import PATIENCE, eventually

ROOT = Path(__file__).parents[2]
BEATS = "import os, time\nwhile True:\n    open(os.environ['HUNCH_HEARTBEAT'], 'w').close()\n    time.sleep(0.1)"


@pytest.mark.slow
@pytest.mark.parametrize("broker", [True, pytest.param(False, marks=pytest.mark.thorough)])
def test_a_child_that_hangs_is_ended_and_started_again_unless_the_broker_is_away(
    broker: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_manager, "HANGS_AFTER", 1.0)
    monkeypatch.setattr(health, "HEARTBEAT_MAX_AGE", 2.0)
    asked: list[bool] = []

    def broker_answers() -> bool:
        asked.append(broker)
        return broker

    monkeypatch.setattr(health, "broker_answers", broker_answers)
    heartbeat = tmp_path / "heartbeat"
    service = Service("beating", [sys.executable, "-c", BEATS], {"HUNCH_HEARTBEAT": str(heartbeat)}, heartbeat)
    monkeypatch.setattr(process_manager, "services_of", lambda **_options: [service])
    said: list[str] = []
    with run_services(say=said.append) as manager:
        manager.wait_healthy(timeout=PATIENCE)
        hanging = service.process
        assert hanging is not None
        os.kill(hanging.pid, signal.SIGSTOP)
        if not broker:
            assert eventually(lambda: len(asked) > 1)  # The first time did not end it.
            assert service.process is hanging
            return
        assert eventually(lambda: service.process not in (None, hanging))
        manager.wait_healthy(timeout=PATIENCE)
        assert not psutil.pid_exists(hanging.pid)
    assert any("no sign of life" in line for line in said)


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize("in_its_own_session", [True, False])
@pytest.mark.parametrize("nice_already", [0, 15, 17])
def test_a_worker_in_the_background_is_nice_and_leaves_a_core(nice_already: int, in_its_own_session: bool) -> None:
    """To other sessions too, as those of the other services: without its own, the session is nobody's to slow down."""
    code = (
        "import os, survey.celery, survey.processes.background\nfrom celery.signals import celeryd_init\n"
        "print(survey.processes.background.niceness_of_session())\n"
        "for _ in range(2):\n    celeryd_init.send(sender='test')\n"
        "print(os.getpriority(os.PRIO_PROCESS, 0), len(os.sched_getaffinity(0)), "
        "survey.processes.background.niceness_of_session())"
    )
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings", "HUNCH_BACKGROUND": "true"}
    now = os.getpriority(os.PRIO_PROCESS, 0)  # Of the tests.
    before, *after = subprocess.run(
        ["nice", "-n", str(max(0, nice_already - now)), sys.executable, "-c", code],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        start_new_session=in_its_own_session,
    ).stdout.split()
    cores = len(os.sched_getaffinity(0))
    # A new session may have a niceness where that of the tests has none: the kernel gives the first session none.
    of_session = "15" if in_its_own_session and before != "None" else before
    assert after == [str(max(15, nice_already, now)), str(max(1, cores - 1)), of_session]


@pytest.mark.parametrize(
    ("shown", "niceness"), [("/autogroup-12 nice 15\n", 15), ("/autogroup-3 nice -4\n", -4), ("", None)]
)
def test_a_session_has_a_niceness_where_the_kernel_shows_one(
    shown: str, niceness: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some kernels have the file and show nothing in it, and some sandboxes have no such file."""
    monkeypatch.setattr(background, "AUTOGROUP", tmp_path / "autogroup")
    assert background.niceness_of_session() is None
    background.AUTOGROUP.write_text(shown)
    assert background.niceness_of_session() == niceness


def test_the_workers_that_compute_run_in_the_background_and_no_other() -> None:
    services = services_of(listener=0, base_url="")
    behind = [service.name for service in services if service.environment.get("HUNCH_BACKGROUND") == "true"]
    assert behind == ["worker-ml", "worker-collect"]
    of_compose = {name for name, service in OURS.items() if service["environment"].get("HUNCH_BACKGROUND") == "true"}
    assert of_compose == {*behind, "worker-ml-gpu", "worker-collect-gpu"}


def queues_of(command: list[str]) -> list[str]:
    return command[command.index("-Q") + 1].split(",") if "-Q" in command else []


def test_every_queue_is_served_by_one_service_and_a_collection_never_waits_behind_a_training() -> None:
    started = {service.name: queues_of(service.command) for service in services_of(listener=0, base_url="")}
    served = {name: taken for name, taken in started.items() if taken}
    assert served == {"worker": ["default"], "worker-ml": ["train", "score"], "worker-collect": ["collect"]}
    assert {queue for taken in served.values() for queue in taken} == set(queues.ALL)
    assert served == {name: queues_of(service["command"]) for name, service in OURS.items() if name in served}
