"""The doctor names each part, says what to do, and its exit status is 1 where something is broken."""

from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.db import DatabaseError, connection
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone

from survey import health
from survey.models import KeyFingerprint, Restore, WatchRecord
from survey.operation import doctor, site_health
from survey.panels.prolific.fake import FakeProlific
from survey.services.base import keys

pytestmark = pytest.mark.django_db


@pytest.fixture
def running(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    """Redis, workers and beat, which no test here starts."""
    settings.HUNCH_DISK_ALERT_MB = 0
    monkeypatch.setattr(health, "broker_answers", lambda *, timeout: True)
    monkeypatch.setattr(site_health, "queues_with_a_worker", lambda: set(site_health.QUEUES))
    WatchRecord.objects.create(looked_at=timezone.now())


def examined() -> tuple[int, list[str]]:
    out = StringIO()
    try:
        call_command("doctor", stdout=out)
    except SystemExit as exc:
        return int(str(exc)), out.getvalue().splitlines()
    return 0, out.getvalue().splitlines()


def test_every_part_is_named_and_nothing_is_broken(running: None, fake: FakeProlific) -> None:
    status, lines = examined()
    assert status == 0, lines
    assert {line[9:].partition(":")[0] for line in lines if "->" not in line} == set(doctor.LOOKS)
    assert not any(line.startswith("broken") for line in lines)
    assert "ok       panels: prolific takes our token" in lines
    assert all(secret not in "\n".join(lines) for secret in (fake.token, fake.secret))


@pytest.mark.slow
def test_what_is_broken_is_named_with_what_to_do(
    running: None, fake: FakeProlific, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "broker_answers", lambda *, timeout: False)
    monkeypatch.setattr(site_health, "queues_with_a_worker", lambda: {"default"})
    monkeypatch.setattr(health, "database_stores", lambda: False)
    WatchRecord.objects.update(looked_at=timezone.now() - timedelta(hours=1))
    settings.HUNCH_PROLIFIC_TOKEN = "wrong-token"
    settings.IN_PRODUCTION = True
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    status, lines = examined()
    assert status == 1
    broken = [line for line in lines if line.startswith("broken")]
    parts = {line[9:].partition(":")[0] for line in broken}
    assert parts == {"redis", "workers", "beat", "writes", "panels", "TLS and proxy", "alerts"}
    silent = [line.removeprefix("broken   workers: ") for line in broken if " workers: " in line]
    assert silent == [f"no worker takes tasks from the queue {queue}" for queue in ("train", "score", "collect")]
    for number, line in enumerate(lines):
        if line.startswith("broken"):
            assert "->" in lines[number + 1], line
    assert "wrong-token" not in "\n".join(lines)


@pytest.mark.slow
@pytest.mark.parametrize("name", [keys.IDENTITY, keys.SECRET])
def test_a_key_that_is_not_this_databases_is_broken(running: None, settings: Any, name: str) -> None:
    """By the rule by which nothing starts with it; looking changes nothing."""
    keys.check()
    setattr(settings, name, "another-key-another-key-another-key-another-")
    for _again in range(2):
        status, lines = examined()
        assert status == 1
        (broken,) = [line for line in lines if line.startswith("broken   keys and settings")]
        assert f"{name} is not the key that this database was used with" in broken
        assert any("Set the old key again" in line for line in lines)
    Restore.objects.create(backup_at=timezone.now())
    assert any("a restore was not finished" in line for line in examined()[1])


def test_a_database_without_fingerprints_gets_none_from_looking(running: None) -> None:
    KeyFingerprint.objects.all().delete()
    assert any(line.startswith("ok       keys and settings") for line in examined()[1])
    assert not KeyFingerprint.objects.exists()


@pytest.mark.parametrize(
    ("migration", "wrong"),
    [
        (
            "0002_designs_and_roles",
            "a version before 1.0.0 made this database, which cannot be brought up to this one",
        ),
        ("0999_later", "a later version made this database: this one does not know survey.0999_later"),
    ],
)
def test_tables_of_another_version_are_broken(running: None, migration: str, wrong: str) -> None:
    MigrationRecorder(connection).record_applied("survey", migration)
    status, lines = examined()
    assert status == 1 and f"broken   migrations: {wrong}" in lines


def test_a_part_that_cannot_be_looked_at_hides_no_other(running: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_part: str) -> Any:
        raise DatabaseError("postgresql://hunch:password@db")

    monkeypatch.setitem(doctor.LOOKS, "migrations", fail)
    status, lines = examined()
    assert status == 1 and "broken   migrations: could not be looked at (DatabaseError)" in lines
    assert any("redis: answers" in line for line in lines) and "password" not in "\n".join(lines)


def test_clocks_that_disagree_are_broken(running: None, monkeypatch: pytest.MonkeyPatch) -> None:
    if doctor.connection.vendor != "postgresql":
        pytest.skip("says something about PostgreSQL only")
    monkeypatch.setattr(doctor, "CLOCKS_AGREE", timedelta(microseconds=-1))
    status, lines = examined()
    assert status == 1 and any(line.startswith("broken   clock: the database's clock is") for line in lines)
