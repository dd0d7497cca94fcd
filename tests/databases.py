"""Test databases: migrated once, then copied for every worker, and emptied after a test that commits.

Migrating takes seconds. So the migrated SQLite file stays in pytest's cache until a migration or a model changes.
"""

import fcntl
import hashlib
import os
import shutil
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partialmethod
from itertools import chain
from pathlib import Path
from typing import Any
from unittest import mock

import django
from django.apps import apps
from django.conf import settings
from django.db import connection, transaction
from django.test import TransactionTestCase

from survey.models import audit_triggers
from tests import kept

STORED = Path(__file__).parents[1] / ".pytest_cache" / "migrated"
# So many tests of one process come between two times that PostgreSQL's files are swept.
TESTS_A_SWEEP = 20
_known: dict[str, Any] = {"tests": 0}


@contextmanager
def database_of_our_own() -> Iterator[None]:
    """The default connection leads to a copy of the migrated database, which is removed at the end."""
    real, ours = connection.settings_dict["NAME"], connection.creation._get_test_db_name()
    _known["real"] = real
    _known["template"] = once("template", _migrated)
    copy_template(ours)
    lead_to(ours)
    migrated = kept.migrated_rows()
    try:
        # In place of `flush`, which truncates every table and writes all permissions again.
        with mock.patch.object(TransactionTestCase, "_fixture_teardown", partialmethod(_empty, migrated)):
            yield
    finally:
        connection.creation.destroy_test_db(real, verbosity=0)


def copy_template(name: str) -> None:
    """Another database with all tables and no rows."""
    if connection.vendor == "sqlite":
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(_known["template"], name)
    else:
        _drop_and_create(name, _known["template"])


def _empty(_test: TransactionTestCase, migrated: list[kept.Table]) -> None:
    """Delete the rows that a test has committed, and bring those of the migrations back if it has changed them.

    What is there is read under the same lock: a process or thread that outlives its test may write until then, and a
    row that was left over would name rows that are gone.
    """
    with connection.constraint_checks_disabled(), transaction.atomic(), unguarded(), connection.cursor() as cursor:
        tables = kept.filled_tables()
        changed = [table for table in migrated if kept.read_table(table.name) != table]
        for name in [*tables, *(table.name for table in changed)]:
            cursor.execute(f"DELETE FROM {connection.ops.quote_name(name)}")  # noqa: S608
        for table in changed:
            table.insert()


@contextmanager
def unguarded() -> Iterator[None]:
    """Without the triggers that refuse changes of the audit: what somebody who rules the database can do."""
    with connection.cursor() as cursor:
        for statement in audit_triggers.statements_to_drop(connection.vendor):
            cursor.execute(statement)
        yield
        for statement in audit_triggers.statements_to_create(connection.vendor):
            cursor.execute(statement)


def once(kind: str, make: Callable[[str], None]) -> str:
    """The name of a database of this run. The first worker that asks makes it, by that name; the others wait for it."""
    name = _template_name(kind)
    with _made(kind).with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _made(kind).exists():
            make(name)
            _made(kind).touch()
    return name


def _migrated(name: str) -> None:
    if connection.vendor != "sqlite":
        _migrate(name)
        return
    stored = STORED / f"{schema_digest()}.sqlite3"
    try:
        shutil.copyfile(stored, name)
    except FileNotFoundError:
        _migrate(name)
        _store(Path(name), stored)


def schema_digest() -> str:
    """Of all that a migrated file follows from: the migrations and models of every app, and who runs them."""
    digest = hashlib.sha256(f"{sys.version} {sqlite3.sqlite_version} {django.__version__}".encode())
    for config in apps.get_app_configs():
        folder = Path(config.path)
        patterns = ("migrations/*.py", "models.py", "models/*.py")
        for path in sorted(chain.from_iterable(map(folder.glob, patterns))):
            digest.update(f"\0{config.label} {path.name}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def _migrate(name: str) -> None:
    test_settings = connection.settings_dict["TEST"]
    ours = test_settings["NAME"]
    test_settings["NAME"] = name
    try:
        connection.creation.create_test_db(verbosity=0, autoclobber=True, serialize=False)
    finally:
        test_settings["NAME"] = ours
        connection.close()  # Nobody may be connected to what is copied, and SQLite writes its log into the file.
        lead_to(_known["real"])


def _store(made: Path, stored: Path) -> None:
    """For the next runs, in place of what was stored before. Whole or not at all: another run may read it."""
    with suppress(OSError):  # The next run migrates again, where nothing can be written here.
        STORED.mkdir(parents=True, exist_ok=True)
        partial = stored.with_suffix(f".{os.getpid()}")
        shutil.copyfile(made, partial)
        for older in STORED.glob("*.sqlite3"):
            older.unlink(missing_ok=True)
        partial.replace(stored)


def copy_for_a_process(path: Path) -> None:
    """A migrated SQLite file for a process that a test starts; on PostgreSQL none, so the process migrates its own."""
    if connection.vendor == "sqlite":
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        shutil.copyfile(_template_name("template"), path)


def drop_templates() -> None:
    """On PostgreSQL, which may be somebody's own server. A file goes with its folder."""
    made = sorted(_folder().glob(f"*-{connection.vendor}")) if connection.vendor == "postgresql" else []
    for file in made:
        with _postgresql() as postgresql:
            name = connection.ops.quote_name(_template_name(file.name.partition("-")[0]))
            postgresql.execute(f"DROP DATABASE IF EXISTS {name}")
        file.unlink()


def _folder() -> Path:
    return Path(os.environ["HUNCH_TEST_FOLDER"])


def _made(kind: str) -> Path:
    """A file that says that this run has that database."""
    return _folder() / f"{kind}-{connection.vendor}"


def _template_name(kind: str) -> str:
    if connection.vendor == "sqlite":
        return str(_made(kind).with_suffix(".sqlite3"))
    real = _known.get("real") or connection.settings_dict["NAME"]
    return f"{kind}_{real}_{_folder().name}"[:63]


def sweep() -> None:
    """Take what rows of earlier tests have left in PostgreSQL's files out of them, after every few tests. It would do
    so by itself, but also in the middle of a test (see servers.py).
    """
    if connection.vendor != "postgresql" or "template" not in _known:
        return
    _known["tests"] += 1
    if _known["tests"] % TESTS_A_SWEEP == 0:
        with _postgresql() as postgresql:
            postgresql.execute("VACUUM (INDEX_CLEANUP ON)")


@contextmanager
def _postgresql() -> Iterator[Any]:
    """Not Django's connection: outside tests pytest-django lets nobody use it."""
    with connection.get_new_connection(connection.get_connection_params()) as postgresql:
        postgresql.autocommit = True
        yield postgresql


def lead_to(name: str) -> None:
    connection.close()
    settings.DATABASES[connection.alias]["NAME"] = connection.settings_dict["NAME"] = name


def _drop_and_create(name: str, template: str) -> None:
    quoted = connection.ops.quote_name
    with connection.creation._nodb_cursor() as cursor:
        cursor.execute(f"DROP DATABASE IF EXISTS {quoted(name)}")
        cursor.execute(f"CREATE DATABASE {quoted(name)} TEMPLATE {quoted(template)}")
