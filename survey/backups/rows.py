"""Rows as lines of text that SQLite and PostgreSQL read alike, and back. Imports Django and the audit's triggers alone.

Tables are found by their models. For an older backup these are the models of the migrations of its time.
"""

import base64
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import date, time
from itertools import islice
from typing import Any

from django.apps.registry import Apps
from django.core.management.color import no_style
from django.db import connection, transaction
from django.db.models import Field, Model

from survey.models import audit_triggers

# Log-ins of the pages, files between two steps of a page, and the way in to an empty server. They end with the machine.
LEFT_OUT = {"django_session", "survey_upload", "survey_firstaccountlink"}
# Django keeps these itself, or makes them again.
WITHOUT_MODEL = {"django_migrations"}
PART = 2000  # rows

Row = list[Any]


@contextmanager
def one_moment() -> Iterator[None]:
    """All that is read inside is as it was at one moment, while others go on writing."""
    if connection.vendor == "postgresql":
        with transaction.atomic(durable=True), connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield
        return
    # Not `atomic`, which takes SQLite's lock for writing. The first statement that reads fixes the moment.
    with connection.cursor() as cursor:
        cursor.execute("BEGIN DEFERRED")
        try:
            yield
        finally:
            cursor.execute("ROLLBACK")


def tables_of(apps: Apps) -> dict[str, type[Model]]:
    """The tables of all models, those between two models too."""
    models = apps.get_models(include_auto_created=True)
    ours = {model._meta.db_table: model for model in models if model._meta.managed and not model._meta.proxy}
    return {name: ours[name] for name in sorted(ours) if name not in LEFT_OUT}


def unknown_tables(apps: Apps) -> list[str]:
    """Tables of this database that no installed app has: perhaps those of an instrument that cannot be loaded."""
    known = {*tables_of(apps), *LEFT_OUT, *WITHOUT_MODEL}
    return sorted(set(connection.introspection.table_names()) - known)


def fields_of(model: type[Model]) -> list["Field[Any, Any]"]:
    return [field for field in model._meta.concrete_fields if not getattr(field, "generated", False)]


def columns_of(model: type[Model]) -> list[str]:
    return [str(field.column) for field in fields_of(model)]


def parts_of(model: type[Model]) -> Iterator[list[str]]:
    """The table's rows by key, each a line of JSON, some thousand at a time."""
    names = [field.attname for field in fields_of(model)]
    rows = model._base_manager.order_by("pk").values_list(*names).iterator(chunk_size=PART)
    while part := [json.dumps(row, default=_as_text, separators=(",", ":")) for row in islice(rows, PART)]:
        yield part


def _as_text(value: Any) -> str:
    if isinstance(value, bytes | memoryview):
        return base64.b64encode(value).decode()
    # `isoformat` keeps microseconds. Decimals, spans of time and UUIDs are read back from what `str` writes.
    return value.isoformat() if isinstance(value, date | time) else str(value)


def empty_tables(names: Iterable[str]) -> None:
    """Delete every row of these tables. The triggers of the audit refuse that, so they are made again afterwards."""
    emptied = connection.ops.sql_flush(no_style(), list(names))
    dropped = audit_triggers.statements_to_drop(connection.vendor)
    created = audit_triggers.statements_to_create(connection.vendor)
    with connection.cursor() as cursor:
        for statement in (*dropped, *emptied, *created):
            cursor.execute(statement)


def insert(model: type[Model], columns: list[str], lines: list[str]) -> None:
    """Write rows as they are, with their keys and times."""
    fields = {field.column: field for field in fields_of(model)}
    chosen = [fields[column] for column in columns]
    quoted = connection.ops.quote_name
    marks = ", ".join(["%s"] * len(columns))
    statement = f"INSERT INTO {quoted(model._meta.db_table)} ({', '.join(map(quoted, columns))}) VALUES ({marks})"  # noqa: S608
    with connection.cursor() as cursor:
        cursor.executemany(statement, [_for_database(chosen, json.loads(line)) for line in lines])


def _for_database(fields: list["Field[Any, Any]"], row: Row) -> Row:
    return [
        field.get_db_prep_save(field.to_python(value), connection) for field, value in zip(fields, row, strict=True)
    ]


def go_on_counting(models: Iterable[type[Model]]) -> None:
    """The next keys come after those that were inserted."""
    with connection.cursor() as cursor:
        for statement in connection.ops.sequence_reset_sql(no_style(), list(models)):
            cursor.execute(statement)


def filled(names: Iterable[str]) -> list[str]:
    """Which of these tables have rows."""
    with connection.cursor() as cursor:
        filled = []
        for name in names:
            cursor.execute(f"SELECT 1 FROM {connection.ops.quote_name(name)} LIMIT 1")  # noqa: S608
            if cursor.fetchone():
                filled.append(name)
        return filled


def drop_tables(names: list[str]) -> None:
    """Remove tables that hold nothing."""
    quoted = [connection.ops.quote_name(name) for name in names]
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(f"DROP TABLE {', '.join(quoted)} CASCADE")
        return
    with connection.constraint_checks_disabled(), connection.cursor() as cursor:
        for name in quoted:
            cursor.execute(f"DROP TABLE {name}")
