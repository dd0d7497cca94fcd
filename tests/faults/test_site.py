"""Parts of a running site are killed, stopped and restarted while people answer: PostgreSQL, Redis, web, workers, beat.

After each: no answer is lost, none is doubled, nobody saw an error other than 503, and the stage ends by itself.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from django.db import connection

from survey.models import Assignment, JobStep, Response, Sitting, SnapshotAnswer
from survey.services.stages import lifecycle
from tests import cast, servers
from tests.conftest import unavailable
from tests.faults.site import ROOT, Site, site, wait_for

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.postgresql,
    pytest.mark.redis,
    pytest.mark.slow,
    pytest.mark.thorough,
]
PEOPLE = 4
BEFORE = 12  # answers that were given when the fault comes, and at most 32; there are 44
BETWEEN = 20  # answers that were given when a second fault comes


@pytest.fixture(scope="module")
def running(django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    try:
        servers.redis_server_binary()
    except servers.ServicesError as exc:
        unavailable(f"faults of a running site ({exc})")
    with django_db_blocker.unblock(), site(tmp_path_factory.mktemp("s")) as services:
        yield services


Fault = Callable[[Site], Iterator[None]]


def processes_of_web_and_then_all_of_it_are_killed(running: Site) -> Iterator[None]:
    """First those that answer, which their master starts again; after some more answers the master as well."""
    for process in running.processes("web")[1:]:
        process.kill()
    wait_for("more answers", lambda: running.answers >= BETWEEN)
    running.kill("web")
    yield


def web_is_restarted_with_a_migration(running: Site) -> Iterator[None]:
    """As a release does it: the database first, while the older processes go on; then each process in its turn."""
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE survey_response ADD COLUMN added_by_a_release text NOT NULL DEFAULT ''")
    older = running.processes("web")
    older[0].send_signal(signal.SIGHUP)
    yield
    wait_for("the new processes", lambda: not any(process.is_running() for process in older[1:]))
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE survey_response DROP COLUMN added_by_a_release")


def postgresql_is_away(running: Site, mode: str) -> Iterator[None]:
    running.postgresql.stop(mode)
    running.fault_has_come.set()
    try:
        wait_for("503 for everybody", lambda: running.seen(503))
        wait_for("the truth about it", lambda: running.health().get("database") == "down")
    finally:
        running.postgresql.start()
        connection.close()
    yield
    assert any(person.statuses[503] for person in running.people)


def postgresql_is_restarted(running: Site) -> Iterator[None]:
    yield from postgresql_is_away(running, "fast")


def postgresql_crashes(running: Site) -> Iterator[None]:
    yield from postgresql_is_away(running, "immediate")


def redis_hangs_and_is_empty_after(running: Site) -> Iterator[None]:
    running.redis.freeze()
    try:
        yield
        assert not any(person.statuses[503] or person.broken for person in running.people), "nobody notices"
        wait_for("the truth about it", lambda: running.health() == {"database": "ok", "broker": "down"})
    finally:
        running.redis.kill()
        running.redis.start()


def beat_and_workers_are_killed(running: Site) -> Iterator[None]:
    for part in ("beat", "worker", "worker-ml"):
        running.kill(part)
    yield


def there_are_two_beats(running: Site) -> Iterator[None]:
    with a_second_beat(running):
        yield
        wait_for("a step", JobStep.objects.filter(state="done").exists)


@contextmanager
def a_second_beat(running: Site) -> Iterator[None]:
    schedule = Path(running.redis.socket).with_name("second-schedule")
    command = [sys.executable, "-m", "celery", "-A", "survey", "beat", "--schedule", str(schedule), "--pidfile", ""]
    second = subprocess.Popen(
        [sys.executable, "-I", "-S", str(servers.DIE_WITH_PARENT), str(os.getpid()), *command],
        cwd=ROOT,
        env=running.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        second.kill()
        second.wait()


@pytest.mark.parametrize(
    "fault",
    [
        processes_of_web_and_then_all_of_it_are_killed,
        web_is_restarted_with_a_migration,
        postgresql_is_restarted,
        postgresql_crashes,
        redis_hangs_and_is_empty_after,
        beat_and_workers_are_killed,
        there_are_two_beats,
    ],
    ids=lambda fault: fault.__name__,
)
def test_nothing_is_lost_or_doubled_and_the_stage_ends_when(running: Site, fault: Fault) -> None:
    study = cast.open_study(stages=[{"sittings": PEOPLE}, {"sittings": 2, "opens": "automatically"}])
    stage = cast.stage_of(study)
    running.let_in(PEOPLE, until_answers=BEFORE)
    happening = fault(running)
    next(happening)
    running.fault_has_come.set()
    running.wait_for_people()
    lifecycle.close_stage(stage)
    assert next(happening, None) is None
    wait_for("the end of the stage", lambda: cast.stage_of(study, 2).state == "open")

    assert {person.outcome for person in running.people} == {"completed"}
    assert set().union(*(person.statuses for person in running.people)) <= {200, 503}
    assert Sitting.objects.filter(state="complete").count() == Sitting.objects.count() == PEOPLE
    assert Response.objects.count() == 6 * PEOPLE
    assert Assignment.objects.filter(state="counted").values("slot").distinct().count() == 3 * PEOPLE
    assert SnapshotAnswer.objects.count() == 3 * PEOPLE
    assert set(JobStep.objects.values_list("state", flat=True)) == {"done"}
    wait_for("health", lambda: running.is_well)
    assert psutil.pid_exists(running.manager.pid)
