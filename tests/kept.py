"""Rows that many tests begin with: the services make them once, and for later tests they are put back as they were.

A study is planned and opened in fifty queries, and its rows can be written in twenty-five. So what is kept is real, no
test sees another one's rows, and the order of the tests does not matter. It lies in the folder of the run, for all its
processes.
"""

import functools
import hashlib
import json
import os
import pickle
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from io import BytesIO
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import time_machine
from django.apps import apps
from django.conf import settings
from django.core.files.base import File
from django.core.files.storage import default_storage
from django.db import connection, transaction
from django.utils import timezone

P = ParamSpec("P")
T = TypeVar("T")

# Sittings expire after half an hour: what is put back was made a moment ago, as far as a test can tell.
FRESH = 300.0
REAL_NOW = timezone.now
SHA256 = re.compile(r"\b[0-9a-f]{64}\b")


@dataclass
class Table:
    name: str
    columns: list[str]
    rows: list[tuple[Any, ...]]

    def insert(self) -> None:
        quoted = connection.ops.quote_name
        names, marks = ", ".join(map(quoted, self.columns)), ", ".join(["%s"] * len(self.columns))
        with connection.cursor() as cursor:
            cursor.executemany(f"INSERT INTO {quoted(self.name)} ({names}) VALUES ({marks})", self.rows)  # noqa: S608


@dataclass
class Kept:
    """What a function wrote into an empty database and its storage, and what it returned."""

    tables: list[Table]
    files: dict[str, bytes]
    result: bytes
    made: float = field(default_factory=time.monotonic)

    def is_fresh(self) -> bool:
        return time.monotonic() - self.made < FRESH

    def put_back(self) -> Any:
        with transaction.atomic():
            for table in self.tables:
                table.insert()
            if connection.vendor == "postgresql":
                self._pass_over_keys()
        for name, content in self.files.items():
            if not default_storage.exists(name):  # A test may lose them.
                default_storage.save(name, File(BytesIO(content)))
        return pickle.loads(self.result)  # noqa: S301

    def _pass_over_keys(self) -> None:
        """Let new rows have larger keys. A test that restored a database has set the sequences back."""
        largest = {
            table.name: max(row[table.columns.index("id")] for row in table.rows)
            for table in self.tables
            if "id" in table.columns and isinstance(table.rows[0][table.columns.index("id")], int)
        }
        sequence = "pg_get_serial_sequence(%s, 'id')"
        calls = ", ".join([f"setval({sequence}, GREATEST(%s, nextval({sequence})))"] * len(largest))
        values = [value for name, key in largest.items() for value in (f'"{name}"', key, f'"{name}"')]
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT {calls}", values)


def kept(make: Callable[P, T]) -> Callable[P, T]:
    """A function that writes rows and returns an object that pickle can copy, such as a model's instance.

    It is called as before where the database is not empty, and where a test has set a clock that runs on. Its arguments
    are plain data and say all that its rows depend on, next to the settings and a clock that stands still.
    """
    known: dict[str, Kept] = {}

    def find(key: str, *, stopped: bool) -> Kept | None:
        for look_up in (known.get, read):
            stored = look_up(key)
            if stored is not None and (stopped or stored.is_fresh()):
                known[key] = stored
                return stored
        return None

    @functools.wraps(make)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        stopped = time_machine.escape_hatch.is_travelling()
        moment = timezone.now() if stopped else None
        if timezone.now is not REAL_NOW or (stopped and timezone.now() != moment) or not is_empty():
            return make(*args, **kwargs)
        depends_on = [make.__module__, make.__qualname__, args, kwargs, str(moment), connection.vendor]
        key = json.dumps([*depends_on, settings_in_force()], default=date.isoformat, sort_keys=True)
        if (stored := find(key, stopped=stopped)) is not None:
            result: T = stored.put_back()
            return result
        counts = count_migrated()
        made = make(*args, **kwargs)
        if count_migrated() == counts:
            tables = [table for name in our_tables() if (table := read_table(name)).rows]
            known[key] = Kept(tables, files_of(tables), pickle.dumps(made))
            write(key, known[key])
        return made

    return call


def read(key: str) -> Kept | None:
    """What any process of this run has kept."""
    try:
        stored: Kept = pickle.loads(_path(key).read_bytes())  # noqa: S301
    except FileNotFoundError:
        return None
    return stored


def write(key: str, stored: Kept) -> None:
    path = _path(key)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    partial = path.with_suffix(f".{os.getpid()}")
    partial.write_bytes(pickle.dumps(stored))
    partial.replace(path)


def _path(key: str) -> Path:
    return Path(os.environ["HUNCH_TEST_FOLDER"], "kept", hashlib.sha256(key.encode()).hexdigest())


# What is written


@functools.cache
def every_table() -> tuple[tuple[str, bool], ...]:
    """The tables of all models, and whether migrations write rows into them."""
    filled = {"auth_permission", "django_content_type", "auth_group", "auth_group_permissions"}
    models = apps.get_models(include_auto_created=True)
    names = {model._meta.db_table for model in models if model._meta.managed and not model._meta.proxy}
    return tuple((name, name in filled) for name in sorted(names))


def our_tables() -> list[str]:
    return [name for name, migrated in every_table() if not migrated]


def filled_tables(limit: int = 1000) -> list[str]:
    """Those of our tables that hold rows, up to so many."""
    quoted = connection.ops.quote_name
    with connection.cursor() as cursor:
        some = " UNION ALL ".join(
            f"SELECT '{name}' WHERE EXISTS (SELECT 1 FROM {quoted(name)})"  # noqa: S608
            for name in _with_pages(cursor)
        )
        if not some:
            return []
        cursor.execute(f"{some} LIMIT {limit}")
        return [name for (name,) in cursor.fetchall()]


def _with_pages(cursor: Any) -> list[str]:
    """Our tables, less those whose file is empty: PostgreSQL takes long to plan a statement about all of them."""
    if connection.vendor != "postgresql":
        return our_tables()
    of_schema = "relkind = 'r' AND relnamespace = 'public'::regnamespace"
    cursor.execute(f"SELECT relname FROM pg_class WHERE {of_schema} AND pg_relation_size(oid) > 0")  # noqa: S608
    return sorted({name for (name,) in cursor.fetchall()}.intersection(our_tables()))


def is_empty() -> bool:
    return not filled_tables(limit=1)


def migrated_rows() -> list[Table]:
    return [read_table(name) for name, migrated in every_table() if migrated]


def count_migrated() -> list[int]:
    with connection.cursor() as cursor:
        counts = []
        for name, migrated in every_table():
            if migrated:
                cursor.execute(f"SELECT COUNT(*) FROM {connection.ops.quote_name(name)}")  # noqa: S608
                counts.append(cursor.fetchone()[0])
        return counts


def read_table(name: str) -> Table:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {connection.ops.quote_name(name)}")  # noqa: S608
        return Table(name, [column[0] for column in cursor.description], cursor.fetchall())


def files_of(tables: list[Table]) -> dict[str, bytes]:
    """The stored files that the rows name by their hashes."""
    hashes = {digest for table in tables for row in table.rows for digest in SHA256.findall(repr(row))}
    names = [f"{sha256[:2]}/{sha256}" for sha256 in sorted(hashes)]
    return {name: default_storage.open(name, "rb").read() for name in names if default_storage.exists(name)}


def settings_in_force() -> list[str]:
    """Those of ours, which a test may have changed. No row says where the panel is, and each fake one is elsewhere; nor
    where the process keeps its files."""
    names = (name for name in dir(settings) if name.startswith("HUNCH_") and name != "HUNCH_PROLIFIC_URL")
    own = os.environ["HUNCH_VAR"]
    return [f"{name}={getattr(settings, name)!r}".replace(own, "") for name in names]
