"""The database knows the keys that it was used with: with others nothing starts, and a message says what to do."""

import os
import subprocess
import sys
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import OperationalError, connection
from django.db.backends.signals import connection_created

from survey.models import KeyFingerprint, PanelIdentity, Restore
from survey.services.base import keys
from tests import cast, databases

OTHER_IDENTITY = "b3RoZXIta2V5LW90aGVyLWtleS1vdGhlci1rZXktMDE="
ROOT = Path(__file__).parents[2]


def run(*arguments: str) -> str:
    out = StringIO()
    call_command(*arguments, stdout=out, stderr=out)
    return out.getvalue()


def refused(*arguments: str) -> str:
    out = StringIO()
    with pytest.raises(SystemExit):
        call_command(*arguments, stdout=out, stderr=out)
    return out.getvalue()


@pytest.mark.django_db
def test_the_first_start_stores_both_and_no_key(settings: Any) -> None:
    keys.check()
    stored = dict(KeyFingerprint.objects.values_list("name", "fingerprint"))
    assert set(stored) == {"HUNCH_IDENTITY_KEY", "SECRET_KEY"}
    assert settings.SECRET_KEY not in stored.values() and settings.HUNCH_IDENTITY_KEY not in stored.values()
    keys.check()
    assert KeyFingerprint.objects.count() == 2


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("name", "value"), [("SECRET_KEY", "another secret key " * 4), ("HUNCH_IDENTITY_KEY", OTHER_IDENTITY)]
)
def test_a_command_refuses_another_key_and_names_it(settings: Any, name: str, value: str) -> None:
    keys.check()
    setattr(settings, name, value)
    said = refused("purge_identities", "--older-than", "1d")
    assert name in said and "Set the old key again" in said and value not in said


@pytest.mark.django_db
def test_a_new_secret_key_is_taken_where_the_old_one_stands_beside_it(settings: Any) -> None:
    keys.check()
    old, settings.SECRET_KEY = settings.SECRET_KEY, "another secret key " * 4
    settings.SECRET_KEY_FALLBACKS = [old]
    keys.check()
    settings.SECRET_KEY_FALLBACKS = []
    keys.check()


@pytest.mark.django_db
def test_a_new_secret_key_can_be_accepted_and_an_identity_key_only_where_it_has_hidden_nothing(settings: Any) -> None:
    cast.Visitor(cast.open_stage().study)
    keys.check()
    settings.SECRET_KEY = "another secret key " * 4
    assert "SECRET_KEY: the one" in run("keys", "--accept-secret-key")
    settings.HUNCH_IDENTITY_KEY = OTHER_IDENTITY
    if not PanelIdentity.objects.exists():
        pytest.fail("the visitor has ids")
    assert "1 panel identities" in refused("keys", "--accept-identity-key")
    PanelIdentity.objects.all().delete()
    assert "HUNCH_IDENTITY_KEY: the one" in run("keys", "--accept-identity-key")


@pytest.mark.django_db
def test_an_older_database_is_not_taken_over_by_a_key_that_cannot_read_its_ids(settings: Any) -> None:
    cast.Visitor(cast.open_stage().study)
    right, settings.HUNCH_IDENTITY_KEY = settings.HUNCH_IDENTITY_KEY, OTHER_IDENTITY
    with pytest.raises(keys.KeysDiffer, match="HUNCH_IDENTITY_KEY"):
        keys.check()
    settings.HUNCH_IDENTITY_KEY = right
    keys.check()


@pytest.mark.django_db
def test_nothing_starts_after_half_a_restore() -> None:
    from django.utils import timezone

    Restore.objects.create(backup_at=timezone.now())
    assert "a restore was not finished" in refused("purge_identities", "--older-than", "1d")


@pytest.fixture
def unreachable(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """At the start the database cannot be asked, and nobody disconnects the test's own connection."""

    def fail() -> None:
        raise OperationalError("connection refused")

    with monkeypatch.context() as patch:
        patch.setattr(keys, "check", fail)
        patch.setattr(keys.connections, "close_all", lambda: None)
        keys.check_at_start()
    yield
    connection_created.disconnect(dispatch_uid="hunch.keys")


@pytest.mark.django_db
def test_where_the_database_comes_later_its_first_connection_is_refused(
    unreachable: None, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys.check()
    closed: list[bool] = []
    monkeypatch.setattr(connection, "close", lambda: closed.append(True))
    right, settings.SECRET_KEY = settings.SECRET_KEY, "another secret key " * 4
    for _again in range(2):
        with pytest.raises(keys.KeysDiffer):
            connection_created.send(sender=type(connection), connection=connection)
    assert closed == [True, True]
    settings.SECRET_KEY = right
    connection_created.send(sender=type(connection), connection=connection)
    settings.SECRET_KEY = "another secret key " * 4
    connection_created.send(sender=type(connection), connection=connection)  # Compared once: nothing more is asked.


@pytest.fixture
def used(django_db_setup: None, tmp_path: Path) -> dict[str, str]:
    """The environment of processes that have another key than the one that their database was used with."""
    folder = tmp_path / "used"
    databases.copy_for_a_process(folder / "hunch.sqlite3")
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "HUNCH_VAR": str(folder),
        "HUNCH_IDENTITY_KEY": OTHER_IDENTITY,
        "DJANGO_SETTINGS_MODULE": "survey.settings",
        "HUNCH_WEB_WORKERS": "1",  # Where two end at the same moment, gunicorn's own status is lost in a traceback.
    }
    manage = [sys.executable, str(ROOT / "manage.py"), "keys"]
    subprocess.run(manage, env=environment, check=True, capture_output=True)
    return environment | {"SECRET_KEY": "another secret key " * 4}


PROCESSES = {
    "web": (["-m", "gunicorn", "-c", "python:survey.gunicorn_config", "--bind", "127.0.0.1:0", "survey.wsgi"], 3),
    "worker": (["-m", "celery", "-A", "survey", "worker", "-P", "solo"], 1),
    "beat": (["-m", "celery", "-A", "survey", "beat", "-s", "schedule"], 1),
    "up": ([str(ROOT / "manage.py"), "up"], 1),
}


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.any_database
@pytest.mark.django_db
def test_no_process_starts_with_another_key(used: dict[str, str], tmp_path: Path) -> None:
    """Side by side, since most of the time each of them loads Hunch."""
    running = {
        name: subprocess.Popen(
            [sys.executable, *arguments],
            env=used,
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for name, (arguments, _status) in PROCESSES.items()
    }
    try:
        for name, process in running.items():
            said, _nothing = process.communicate(timeout=100)
            assert process.returncode == PROCESSES[name][1], f"{name}: {said}"
            assert "SECRET_KEY is not the key" in said, f"{name}: {said}"
    finally:
        for process in running.values():
            process.kill()
            process.wait()
