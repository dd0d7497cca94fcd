"""While the database or the disk cannot be used: 503 everywhere, nothing typed is lost, and nothing is stored twice."""

import errno
import logging
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
from django.contrib.auth.models import User
from django.db import (
    DatabaseError,
    IntegrityError,
    InterfaceError,
    InternalError,
    OperationalError,
    ProgrammingError,
    connection,
)
from django.test import Client, RequestFactory
from django.urls import resolve

from frontend import outages, views
from survey import health
from survey.models import Consent, Response, Sitting, Study
from survey.storage.outages import is_full_disk, is_outage
from tests import cast
from tests.api.test_respondents import BEGIN, STEP
from tests.frontend.pages import fields_for, go_to, read

pytestmark = pytest.mark.django_db
SITTING = "/s/cast/sitting"
PAGES = ("/s/cast/", "/s/cast/?PROLIFIC_PID=somebody", "/s/cast/consent", SITTING)
ODD = 'so "it" <seemed>\n\n</form><script>alert(1)</script> & é 漢'


def away(_execute: Any, _sql: str, _params: Any, _many: bool, _context: Any) -> None:
    """For `connection.execute_wrapper`: no statement reaches the database."""
    raise OperationalError("the connection is closed")


@pytest.fixture
def study() -> Study:
    return cast.open_study()


def assert_unavailable(response: Any) -> None:
    assert response.status_code == 503, response.content[:300]
    assert response.headers["Retry-After"] == "10"
    assert "no-store" in response.headers["Cache-Control"]


# Respondents


@pytest.mark.parametrize("path", PAGES)
def test_a_page_says_what_happened_and_can_be_loaded_again(client: Client, study: Study, path: str) -> None:
    with connection.execute_wrapper(away):
        response = client.get(path, headers={"Accept-Language": "fr, en"})
    if path == SITTING:  # Without a sitting nothing is asked of the database before the study's own page.
        go_to(client, "item")
        with connection.execute_wrapper(away):
            response = client.get(path)
    assert_unavailable(response)
    page = read(response.content.decode())
    assert "What you have answered is stored." in page.text and "Try again" in page.text
    assert 'href=""' in response.content.decode() and "somebody" not in response.content.decode()
    assert "form" not in page.tags


@pytest.mark.parametrize(
    ("cookie", "header", "language"),
    [("de", "en", "de"), ("", "de-AT, en;q=0.5", "de"), ("", "", "en"), ("xx", "de", "de"), ("en", "de", "en")],
)
def test_it_speaks_the_language_that_is_known_without_a_database(
    client: Client, study: Study, cookie: str, header: str, language: str
) -> None:
    if cookie:
        client.cookies["hunch_language"] = cookie
    with connection.execute_wrapper(away):
        response = client.get("/s/cast/", headers={"Accept-Language": header})
    assert response.headers["Content-Language"] == language
    assert ("Noch einmal versuchen" in response.content.decode()) is (language == "de")


@pytest.mark.parametrize("headers", [{}, {"X-Hunch-Exchange": "1"}])
def test_what_was_typed_stays_and_is_stored_once(client: Client, study: Study, headers: dict[str, str]) -> None:
    page = go_to(client, "item")
    sent = {**fields_for(page), "explanation": ODD}
    with connection.execute_wrapper(away):
        response = client.post(SITTING, sent, headers=headers)
    assert_unavailable(response)
    assert not Response.objects.exists() and b"<script>alert" not in response.content
    shown_page = read(response.content.decode())
    assert shown_page.form == {"method": "post", "action": SITTING}
    again = {name: value for name, value in shown_page.hidden.items() if name != "csrfmiddlewaretoken"}
    assert again == {name: value for name, value in sent.items() if name != "csrfmiddlewaretoken"}
    for _press in range(2):
        assert client.post(SITTING, shown_page.hidden).status_code == 303
    assert Response.objects.count() == 1


def test_what_was_stored_before_the_connection_broke_is_stored_once(
    client: Client, study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit arrived, and its acknowledgement was lost."""
    page = go_to(client, "item")
    stored = views.answer

    def stores_and_breaks(**arguments: Any) -> None:
        stored(**arguments)
        raise OperationalError("server closed the connection unexpectedly")

    with monkeypatch.context() as breaking:
        breaking.setattr(views, "answer", stores_and_breaks)
        response = client.post(SITTING, fields_for(page))
    assert_unavailable(response)
    assert Response.objects.count() == 1
    following = read(client.post(SITTING, read(response.content.decode()).hidden, follow=True).content.decode())
    assert following.form["data-screen"] == "posterior"
    assert Response.objects.count() == 1


def test_consent_that_could_not_be_stored_is_sent_again_and_begins_one_sitting(client: Client, study: Study) -> None:
    client.get("/s/cast/")
    with connection.execute_wrapper(away):
        response = client.post("/s/cast/consent", {"consent": "yes"})
    assert_unavailable(response)
    shown_page = read(response.content.decode())
    for _press in range(2):
        assert client.post(shown_page.form["action"], shown_page.hidden).status_code == 303
    assert Sitting.objects.count() == Consent.objects.count() == 1


def test_fields_of_a_form_that_the_csrf_check_refuses_are_not_shown_again(study: Study) -> None:
    stranger = Client(enforce_csrf_checks=True)
    with connection.execute_wrapper(away):
        response = stranger.post(SITTING, {"value": "61", "explanation": "from elsewhere"})
    assert response.status_code == 403
    assert b"from elsewhere" not in response.content


def test_fields_are_not_shown_again_where_nobody_knows_whether_they_were_checked(client: Client) -> None:
    """Django calls the page of an error from wherever it came, also from before the CSRF check."""
    request = RequestFactory().post("/s/cast/sitting", {"value": "what was typed"})
    request.resolver_match = resolve("/s/cast/sitting")
    for unseen in (True, False):
        try:
            raise OperationalError("the database is away")
        except OperationalError as exc:
            response = views.server_error(request) if unseen else outages.unavailable(request, exc, is_checked=True)
        assert response.status_code == 503 and ("what was typed" in response.content.decode()) is not unseen


def test_the_new_page_has_a_token_of_its_own(study: Study) -> None:
    client = Client(enforce_csrf_checks=True)
    client.get("/s/cast/")
    page = read(client.get("/s/cast/consent").content.decode())
    with connection.execute_wrapper(away):
        response = client.post("/s/cast/consent", {**page.hidden, "consent": "yes"})
    assert_unavailable(response)
    shown_page = read(response.content.decode())
    assert shown_page.hidden["csrfmiddlewaretoken"] != page.hidden["csrfmiddlewaretoken"]
    assert client.post("/s/cast/consent", shown_page.hidden).status_code == 303


# Others


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/api/v1/studies/cast/"), ("POST", BEGIN), ("GET", "/api/v1/studies/")]
)
def test_the_api_says_it_in_its_own_shape(client: Client, study: Study, method: str, path: str) -> None:
    client.force_login(User.objects.create_superuser("reader"))
    with connection.execute_wrapper(away):
        response = client.generic(method, path, '{"consent": true}', content_type="application/json")
    assert_unavailable(response)
    assert response.json()["error"]["code"] == "unavailable"


def test_a_step_sent_again_by_a_program_is_stored_once(client: Client, study: Study) -> None:
    begun = client.post(BEGIN, {"consent": True}, content_type="application/json").json()
    body, token = {"step": begun["step"]["number"]}, {"X-Sitting-Token": begun["token"]}
    with connection.execute_wrapper(away):
        assert_unavailable(client.post(STEP, body, content_type="application/json", headers=token))
    steps = [client.post(STEP, body, content_type="application/json", headers=token).json() for _press in range(2)]
    assert steps[0]["number"] == steps[1]["number"] == body["step"] + 1


@pytest.mark.parametrize("method", ["get", "post"])
def test_the_admin_says_it_too_and_repeats_nothing_by_itself(client: Client, study: Study, method: str) -> None:
    client.force_login(User.objects.create_superuser("researcher"))
    with connection.execute_wrapper(away):
        response = getattr(client, method)("/admin/survey/study/", {"action": "delete"})
    assert_unavailable(response)
    assert "look first whether it was stored" in response.content.decode()
    assert "form" not in read(response.content.decode()).tags


def test_a_panel_delivers_its_event_again(client: Client, settings: Any) -> None:
    settings.HUNCH_PROLIFIC_WEBHOOK_SECRET = "s" * 40
    from survey.panels.prolific.fake import FakeProlific

    event = FakeProlific(seed=1, secret="s" * 40).sign_webhook(b'{"event_type": "x", "resource_id": "a"}', event_id="1")
    headers = {name: value for name, value in event.headers.items() if name != "Content-Type"}
    with connection.execute_wrapper(away):
        response = client.post("/hooks/prolific", event.body, content_type="application/json", headers=headers)
    assert_unavailable(response)
    assert response.headers["Content-Type"].startswith("text/plain")


def test_what_fails_before_a_view_is_unavailable_too(client: Client, study: Study) -> None:
    """A large body in the admin: the middleware asks who sends it, before the CSRF check."""
    client.force_login(User.objects.create_superuser("researcher"))
    client.raise_request_exception = False
    with connection.execute_wrapper(away):
        response = client.post("/admin/survey/study/", {"text": "x" * 300_000})
    assert_unavailable(response)
    assert b"xxxx" not in response.content


def test_it_is_one_line_in_the_log_and_no_traceback(
    client: Client, study: Study, caplog: pytest.LogCaptureFixture
) -> None:
    logger = logging.getLogger("django")
    logger.addHandler(caplog.handler)
    try:
        with connection.execute_wrapper(away):
            client.get("/s/cast/?PROLIFIC_PID=somebody")
    finally:
        logger.removeHandler(caplog.handler)
    (record,) = caplog.records
    assert record.levelname == "WARNING" and record.exc_info is None
    assert record.getMessage() == "GET /s/cast/: not possible for now: OperationalError: the connection is closed"


def test_a_mistake_of_ours_is_still_an_error(client: Client, study: Study) -> None:
    def wrong(*_given: Any) -> None:
        raise ProgrammingError("no such column")

    client.raise_request_exception = False
    with connection.execute_wrapper(wrong):
        assert client.get("/s/cast/").status_code == 500


@pytest.mark.parametrize("error", [OperationalError, InterfaceError, DatabaseError])
def test_health_says_so(client: Client, error: type[Exception]) -> None:
    def fails(*_given: Any) -> None:
        raise error("gone")

    with connection.execute_wrapper(fails):
        response = client.get("/healthz")
    assert (response.status_code, response.json()["database"]) == (503, "down")
    assert "no-store" in response.headers["Cache-Control"]


def test_health_asks_a_silent_broker_once_in_some_seconds(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(health, "broker_answers", lambda: bool(asked.append(1)))
    assert [client.get("/healthz").json()["broker"] for _look in range(3)] == ["down"] * 3
    assert len(asked) == 1


# Which errors are meant


def of(kind: type[Exception], cause: Exception) -> Exception:
    error = kind("x")
    error.__cause__ = cause
    return error


def of_sqlite(code: int) -> Exception:
    cause = sqlite3.OperationalError("x")
    cause.sqlite_errorcode = code
    return of(OperationalError, cause)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (of(OperationalError, psycopg.OperationalError("connection refused")), True),
        (of(InterfaceError, psycopg.InterfaceError("the connection is closed")), True),
        (of(OperationalError, psycopg.errors.AdminShutdown()), True),
        (of(OperationalError, psycopg.errors.TooManyConnections()), True),
        (of(OperationalError, psycopg.errors.QueryCanceled()), True),
        (of(OperationalError, psycopg.errors.LockNotAvailable()), True),
        (of(OperationalError, psycopg.errors.DiskFull()), True),
        (of(OperationalError, psycopg.errors.DeadlockDetected()), True),
        (of(InternalError, psycopg.errors.ReadOnlySqlTransaction()), True),
        (of(InternalError, psycopg.errors.IdleInTransactionSessionTimeout()), True),
        (of(InternalError, psycopg.errors.InFailedSqlTransaction()), False),
        (of(OperationalError, psycopg.errors.ProgramLimitExceeded()), False),
        (of(ProgrammingError, psycopg.errors.UndefinedColumn()), False),
        (of(IntegrityError, psycopg.errors.UniqueViolation()), False),
        (of_sqlite(sqlite3.SQLITE_BUSY), True),
        (of_sqlite(sqlite3.SQLITE_FULL), True),
        (of_sqlite(sqlite3.SQLITE_IOERR_WRITE), True),
        (of_sqlite(sqlite3.SQLITE_READONLY_DBMOVED), True),
        (of_sqlite(sqlite3.SQLITE_ERROR), False),
        (OSError(errno.ENOSPC, "No space left on device"), True),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), True),
        (OSError(errno.ENOENT, "No such file"), False),
        (RuntimeError("Error while serializing: I/O error: No space left on device (os error 28)"), True),
        (ValueError("x"), False),
    ],
)
def test_an_outage_is_nobodys_mistake(error: Exception, expected: bool) -> None:
    assert is_outage(error) is expected


def test_what_writes_files_says_that_a_disk_is_full() -> None:
    with Path("/dev/full").open("wb", buffering=0) as full, pytest.raises(OSError) as written:
        full.write(b"x")
    assert is_full_disk(written.value)
    with Path("/dev/full").open("wb") as full:
        with pytest.raises(OSError) as saved:
            np.save(full, np.zeros(100_000))
        full.raw.close()
    assert is_full_disk(saved.value)


# Really done


@pytest.mark.django_db(transaction=True)
def test_a_row_that_somebody_locks_is_waited_for_and_then_said(client: Client, study: Study) -> None:
    page = go_to(client, "item")
    if connection.vendor == "sqlite":
        other: Any = sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None)
        lock, limit, usual = "BEGIN IMMEDIATE", "PRAGMA busy_timeout = 50", "PRAGMA busy_timeout = 30000"
    else:
        params = {k: v for k, v in connection.get_connection_params().items() if k not in ("cursor_factory", "context")}
        other = psycopg.connect(**params)
        lock, limit, usual = "LOCK survey_sitting", "SET lock_timeout = 50", "RESET lock_timeout"
    with connection.cursor() as cursor:
        cursor.execute(limit)
    try:
        other.execute(lock)
        response = client.post(SITTING, fields_for(page))
    finally:
        other.close()
        with connection.cursor() as cursor:
            cursor.execute(usual)
    assert_unavailable(response)
    assert client.post(SITTING, read(response.content.decode()).hidden).status_code == 303
    assert Response.objects.count() == 1


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_full_database_takes_whole_people_and_no_half_one(db: None) -> None:
    cast.open_study(sitting={"items": 3, "begins_per_address": 0})
    full, empty = (
        ("PRAGMA max_page_count = 1", "PRAGMA max_page_count = 1073741823")
        if connection.vendor == "sqlite"
        else (
            "CREATE FUNCTION full_disk() RETURNS trigger AS $$ BEGIN RAISE EXCEPTION USING ERRCODE = '53100'; END $$ "
            "LANGUAGE plpgsql; CREATE TRIGGER full_disk BEFORE INSERT ON survey_consent EXECUTE FUNCTION full_disk()",
            "DROP FUNCTION IF EXISTS full_disk() CASCADE",
        )
    )
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("VACUUM")  # Other tests leave free pages, into which hundreds of people would fit.
        cursor.execute(full)  # SQLite takes the present size at least: people fit into the pages that are there.
    begun = 0
    try:
        for _person in range(400):
            client = Client()
            client.get("/s/cast/")
            response = client.post("/s/cast/consent", {"consent": "yes"})
            if response.status_code == 503:
                break
            begun += response.headers.get("Location") == SITTING
    finally:
        with connection.cursor() as cursor:
            cursor.execute(empty)
    assert_unavailable(response)
    assert Sitting.objects.count() == Consent.objects.count() == begun
    assert client.post("/s/cast/consent", read(response.content.decode()).hidden).status_code in (303, 403)
