"""PostgreSQL ends what waits too long; pages wait briefly, jobs long; connections are counted at the start."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import connection, transaction

from survey import settings as readers
from survey import system_checks
from survey.settings import DatabaseLimits
from survey.storage import database
from tests.waiting import PATIENCE

ROOT = Path(__file__).parents[2]
LIMITS = DatabaseLimits(statement=30, lock=10, idle_transaction=60)
GUNICORN = [sys.executable, "-m", "gunicorn", "-c", "python:survey.gunicorn_config"]
NAMES = ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout")
on_postgresql = [pytest.mark.postgresql, pytest.mark.slow]


def connected(url: str = "postgresql://hunch@db/hunch", *, reuse: str = "kept") -> dict[str, Any]:
    return readers.connect_as(readers.read_database(url), limits=LIMITS, reuse=reuse)


def test_limits_are_given_when_a_connection_is_made_and_keep_what_the_address_says() -> None:
    options = connected("postgresql://hunch@db/hunch?options=-c%20work_mem=64MB")["OPTIONS"]["options"]
    assert options == (
        "-c work_mem=64MB -c statement_timeout=30000 -c lock_timeout=10000 -c idle_in_transaction_session_timeout=60000"
    )


def test_a_database_that_does_not_answer_fails_soon_and_the_address_may_say_otherwise() -> None:
    assert connected()["OPTIONS"]["connect_timeout"] == "5"
    assert connected("postgresql://hunch@db/hunch?connect_timeout=20")["OPTIONS"]["connect_timeout"] == 20


def test_kept_connections_have_neither_prepared_statements_nor_a_pool() -> None:
    assert not {"pool", "prepare_threshold", "server_side_binding"} & connected()["OPTIONS"].keys()


def test_prepared_statements_and_the_pool_are_never_used_together() -> None:
    prepared, pooled = connected(reuse="prepared"), connected(reuse="pool")
    assert prepared["OPTIONS"]["prepare_threshold"] and "pool" not in prepared["OPTIONS"]
    assert pooled["OPTIONS"]["pool"] and "prepare_threshold" not in pooled["OPTIONS"]
    assert pooled["CONN_MAX_AGE"] == 0


def test_sqlite_has_neither() -> None:
    assert connected("sqlite:////tmp/a.sqlite3")["ENGINE"].endswith("sqlite3")
    with pytest.raises(ImproperlyConfigured, match="HUNCH_DATABASE_REUSE"):
        connected("sqlite:////tmp/a.sqlite3", reuse="pool")


AS_WEB = "import survey.wsgi"
# What survey.wsgi asks of the database, without its pages, which take longer to load than all else.
WITHOUT_PAGES = "import django\ndjango.setup()\nfrom survey.storage import database\ndatabase.serve_pages()"


def run(code: str, environment: dict[str, str], *, start: str = WITHOUT_PAGES, **settings: str) -> Any:
    """What a process that serves pages prints, as JSON."""
    done = subprocess.run(
        [sys.executable, "-c", f"import json\n{start}\nfrom django.db import connection\n{code}"],
        cwd=ROOT,
        env={**environment, **settings},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


SHOW = f"""
def shown():
    found = []
    for name in {NAMES!r}:
        with connection.cursor() as cursor:
            cursor.execute(f"SHOW {{name}}")
            found.append(cursor.fetchone()[0])
    return found
"""


class TestOnPostgreSQL:
    pytestmark = on_postgresql

    def test_pages_wait_briefly_and_an_export_as_long_as_a_job(self, child_environment: dict[str, str]) -> None:
        code = (
            "from survey.storage.database import patiently\nbefore = shown()\nwith patiently():\n    inside = shown()\n"
        )
        pages = ["30s", "10s", "1min"]
        actual = run(f"{SHOW}{code}print(json.dumps([before, inside, shown()]))", child_environment, start=AS_WEB)
        assert actual == [pages, ["1h", "1min", "15min"], pages]

    def test_a_process_that_serves_no_pages_has_the_limits_of_jobs(self, transactional_db: None) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT setting FROM pg_settings WHERE name = 'statement_timeout'")
            assert cursor.fetchone() == ("3600000",)

    def test_a_statement_and_a_wait_for_a_lock_come_to_an_end(self, child_environment: dict[str, str]) -> None:
        code = """
def refused(statement):
    try:
        with connection.cursor() as cursor:
            cursor.execute(statement)
    except Exception as exc:
        return type(exc.__cause__).__name__
print(json.dumps([refused("SELECT pg_sleep(60)"), refused("LOCK TABLE survey_study IN EXCLUSIVE MODE"),
                  refused("DELETE FROM survey_study")]))
"""
        limits = {"HUNCH_PAGE_STATEMENT_TIMEOUT": "2", "HUNCH_PAGE_LOCK_TIMEOUT": "1"}
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("LOCK TABLE survey_study IN ACCESS EXCLUSIVE MODE")
            errors = run(code, child_environment, **limits)
        assert errors == ["QueryCanceled", "NoActiveSqlTransaction", "LockNotAvailable"]

    def test_a_transaction_that_does_nothing_gives_its_locks_back(self, child_environment: dict[str, str]) -> None:
        code = """
import time
from django.db import transaction
try:
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("LOCK TABLE survey_study IN ACCESS EXCLUSIVE MODE")
        time.sleep(3)
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
except Exception as exc:
    print(json.dumps(type(exc.__cause__).__name__))
"""
        error = run(code, child_environment, HUNCH_PAGE_IDLE_TIMEOUT="1")
        assert error == "IdleInTransactionSessionTimeout"
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM survey_study")

    def test_pages_ask_whether_the_database_is_there_only_where_it_may_be_gone(
        self, child_environment: dict[str, str]
    ) -> None:
        code = """
import select, psycopg
from django.core.signals import request_started
from survey.storage import database
from django.db import connections
connection.settings_dict.update(CONN_MAX_AGE=60, CONN_HEALTH_CHECKS=True)  # As outside of tests.
Wrapper = type(connections["default"])
asked, is_usable = [], Wrapper.is_usable
def counted(self):
    asked.append(1)
    return is_usable(self)
Wrapper.is_usable = counted
def request():
    request_started.send(sender=None)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return cursor.fetchone()[0]
found = [[request() - request(), len(asked)], [request() - request(), len(asked)]]
database.KNOWN_FOR = 0
request()
found.append(len(asked))
database.KNOWN_FOR = 1000
before = request()
server = connection.connection
with psycopg.connect(**{k: v for k, v in connection.get_connection_params().items()
                        if k not in ("cursor_factory", "context")}) as other:
    other.execute("SELECT pg_terminate_backend(%s)", [before])
select.select([server], [], [], 60)
print(json.dumps([*found, before != request(), len(asked)]))
"""
        assert run(code, child_environment) == [[0, 1], [0, 1], 2, True, 3]

    def test_statements_of_pages_are_prepared_unless_one_asks_for_less(self, child_environment: dict[str, str]) -> None:
        code = """
from django.conf import settings
from survey.models import Study
from survey.services.base.compiled import CompiledQuery
studies = CompiledQuery(lambda number: Study.objects.filter(pk=number), number=int)
for number in (1, 2, 70_000, 2**40, 3, 4):
    assert studies.rows(number=number) == []
    Study.objects.filter(pk=number).exists()
with connection.cursor() as cursor:
    cursor.execute("SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%survey_study%$1%'")
    print(json.dumps([settings.HUNCH_DATABASE_REUSE, cursor.fetchone()[0] > 0]))
"""
        assert run(code, child_environment) == ["prepared", True]
        assert run(code, child_environment, HUNCH_DATABASE_REUSE="kept") == ["kept", False]

    def test_the_pool_shares_its_connections(self, child_environment: dict[str, str]) -> None:
        pytest.importorskip("psycopg_pool")
        code = """
from survey.models import Study
found = []
for _ in range(8):
    Study.objects.exists()
    found.append(connection.connection.info.backend_pid)
    connection.close()
print(json.dumps([len(set(found)) <= 3, connection.pool.max_size]))
connection.close_pool()
"""
        assert run(code, child_environment, HUNCH_DATABASE_REUSE="pool", HUNCH_WEB_THREADS="2") == [True, 3]


class TestConnections:
    pytestmark = on_postgresql

    @pytest.fixture(autouse=True)
    def _database(self, transactional_db: None) -> None:
        pass

    def test_what_we_need_is_counted(self, settings: Any) -> None:
        settings.HUNCH_WEB_WORKERS, settings.HUNCH_WEB_THREADS = 3, 2
        assert database.connections_needed() == 6 + 13

    def test_all_is_well_with_few_processes(self) -> None:
        assert system_checks.connections_suffice(databases=["default"]) == []
        assert system_checks.connections_suffice(databases=None) == []

    def test_more_than_the_server_allows_is_an_error(self, settings: Any) -> None:
        settings.HUNCH_WEB_WORKERS, settings.HUNCH_WEB_THREADS = 64, 16
        (message,) = system_checks.connections_suffice(databases=["default"])
        assert message.id == "hunch.E004"
        assert "needs up to 1037" in message.msg and "HUNCH_WEB_WORKERS=64" in message.msg

    def test_what_other_programs_hold_is_a_warning(self, settings: Any) -> None:
        room = database.room()
        assert room is not None
        settings.HUNCH_WEB_WORKERS, settings.HUNCH_WEB_THREADS = room.allowed - 13, 1
        params = {**connection.get_connection_params(), "application_name": "somebody else"}
        with psycopg.connect(**{k: v for k, v in params.items() if k not in ("cursor_factory", "context")}):
            (message,) = system_checks.connections_suffice(databases=["default"])
        assert message.id == "hunch.W002" and "other programs hold" in message.msg

    def test_web_refuses_to_start_with_too_few(self, child_environment: dict[str, str]) -> None:
        run = subprocess.run(
            [
                sys.executable,
                "-m",
                "gunicorn",
                "-c",
                "python:survey.gunicorn_config",
                "-b",
                "127.0.0.1:0",
                "survey.wsgi",
            ],
            cwd=ROOT,
            env={**child_environment, "HUNCH_WEB_WORKERS": "64", "HUNCH_WEB_THREADS": "16"},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert run.returncode != 0
        assert "Raise max_connections" in run.stdout + run.stderr


def test_without_a_server_there_is_nothing_to_count(db: None) -> None:
    if connection.vendor == "sqlite":
        assert database.room() is None
        assert system_checks.connections_suffice(databases=["default"]) == []
