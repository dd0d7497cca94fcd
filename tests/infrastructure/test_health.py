"""What counts as well: a row that was written, a file that was touched lately by a clock that may have been set."""

import os
import sqlite3
import time
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import redis
from django.contrib.sessions.models import Session
from django.core.cache import cache
from django.db import connection
from django.test import Client

from survey import health
from survey.processes import background


@pytest.mark.django_db
def test_it_writes_a_row_and_reads_what_the_clock_says(client: Client) -> None:
    assert client.get("/healthz").status_code == 200
    row = Session.objects.get(pk="healthz")
    assert row.expire_date <= health.timezone.now()  # Nobody can use it as a session.
    cache.clear()
    assert client.get("/healthz").status_code == 200
    assert Session.objects.count() == 1


@pytest.mark.django_db
def test_it_asks_the_database_once_in_some_seconds(
    client: Client, django_assert_num_queries: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "broker_answers", lambda: True)
    client.get("/healthz")
    with django_assert_num_queries(0):
        assert client.get("/healthz").json() == {"database": "ok", "broker": "ok"}


@pytest.mark.django_db(transaction=True)
def test_it_is_not_well_where_the_database_can_only_be_read(client: Client) -> None:
    read_only, writable = (
        ("PRAGMA query_only = 1", "PRAGMA query_only = 0")
        if connection.vendor == "sqlite"
        else ("SET default_transaction_read_only = on", "SET default_transaction_read_only = off")
    )
    with connection.cursor() as cursor:
        cursor.execute(read_only)
    try:
        assert not health.database_stores()
    finally:
        with connection.cursor() as cursor:
            cursor.execute(writable)
    assert health.database_stores()


@pytest.mark.django_db(transaction=True)
def test_it_does_not_wait_long_for_a_writer() -> None:
    if connection.vendor != "sqlite":
        pytest.skip("says something about SQLite only")
    other = sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        assert not health.database_stores(timeout=0.1)
    finally:
        other.execute("ROLLBACK")
        other.close()
    with connection.cursor() as cursor:
        assert cursor.execute("PRAGMA busy_timeout").fetchone() == (30_000,)


@pytest.mark.parametrize(("age", "is_fresh"), [(1, True), (3600, False), (-1, True), (-3600, False)])
def test_a_heartbeat_from_the_future_is_as_old_as_one_from_the_past(tmp_path: Path, age: int, is_fresh: bool) -> None:
    path = tmp_path / "heartbeat"
    path.touch()
    os.utime(path, (time.time() - age, time.time() - age))
    assert health.heartbeat_is_fresh(path) is is_fresh
    assert not health.heartbeat_is_fresh(tmp_path / "missing")


@pytest.mark.parametrize(("cores", "left"), [({0, 1}, {1}), ({3}, {3}), ({2, 5, 7}, {5, 7})])
def test_training_leaves_one_core_to_the_pages(cores: set[int], left: set[int]) -> None:
    assert background.cores_in_background(cores) == left


@pytest.mark.parametrize("trouble", [redis.ConnectionError, redis.AuthenticationError, OSError])
def test_a_broker_that_refuses_does_not_answer(trouble: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis.Redis, "from_url", mock.Mock(side_effect=trouble))
    assert health.broker_answers() is False
