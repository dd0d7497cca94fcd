"""Test databases: migrated once a run, then copied for every worker."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings
from django.db import connection


@contextmanager
def database_of_our_own() -> Iterator[None]:
    """The default connection leads to a copy of the migrated database, which is removed at the end."""
    real, ours = connection.settings_dict["NAME"], connection.creation._get_test_db_name()
    template = migrated_template(real)
    if connection.vendor == "sqlite":
        Path(ours).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(template, ours)
    else:
        _drop_and_create(ours, template)
    _lead_to(ours)
    try:
        yield
    finally:
        connection.creation.destroy_test_db(real, verbosity=0)


def migrated_template(real: str) -> str:
    """The name of the migrated database of this run. The first worker that asks makes it, the others wait for it."""
    name = _template_name()
    with _made().with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _made().exists():
            return name
        test_settings = connection.settings_dict["TEST"]
        ours = test_settings["NAME"]
        test_settings["NAME"] = name
        try:
            connection.creation.create_test_db(verbosity=0, autoclobber=True, serialize=False)
        finally:
            test_settings["NAME"] = ours
            connection.close()  # Nobody may be connected to what is copied, and SQLite writes its log into the file.
            _lead_to(real)
        _made().touch()
    return name


def drop_template() -> None:
    """On PostgreSQL, which may be somebody's own server. A file goes with its folder."""
    if connection.vendor == "postgresql" and _made().exists():
        # Not by Django's connection: outside tests pytest-django lets nobody use it.
        with connection.get_new_connection(connection.get_connection_params()) as postgresql:
            postgresql.autocommit = True
            postgresql.execute(f"DROP DATABASE IF EXISTS {connection.ops.quote_name(_template_name())}")
        _made().unlink()


def _made() -> Path:
    """A file that says that this run has its migrated database."""
    return Path(os.environ["HUNCH_TEST_FOLDER"], f"migrated-{connection.vendor}")


def _template_name() -> str:
    if connection.vendor == "sqlite":
        return str(_made().with_suffix(".sqlite3"))
    return f"template_{connection.settings_dict['NAME']}_{Path(os.environ['HUNCH_TEST_FOLDER']).name}"[:63]


def _lead_to(name: str) -> None:
    connection.close()
    settings.DATABASES[connection.alias]["NAME"] = connection.settings_dict["NAME"] = name


def _drop_and_create(name: str, template: str) -> None:
    quoted = connection.ops.quote_name
    with connection.creation._nodb_cursor() as cursor:
        cursor.execute(f"DROP DATABASE IF EXISTS {quoted(name)}")
        cursor.execute(f"CREATE DATABASE {quoted(name)} TEMPLATE {quoted(template)}")
