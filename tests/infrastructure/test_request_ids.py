"""A request's id: ours, in the answer, in log lines, in error pages, and in the tasks that follow."""

import contextvars
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from celery import Celery
from celery.contrib.testing.worker import start_worker
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.urls import include, path

from survey.celery import app as hunch
from survey.logs import request_ids
from survey.logs.log_format import JsonFormatter, LineFormatter
from tests.waiting import PATIENCE

GIVEN = "0123456789abcdef" * 2
seen: list[str] = []


def fails(request: HttpRequest) -> HttpResponse:
    seen.append(request_ids.current.get())
    raise RuntimeError("as planned")


urlpatterns = [path("fails", fails), path("api/v1/fails", fails), path("", include("survey.urls"))]
handler404 = "frontend.views.page_not_found"
handler500 = "frontend.views.server_error"


@pytest.fixture(autouse=True)
def nothing_seen() -> None:
    seen.clear()


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("behind_proxy", "given", "is_taken"),
    [
        (True, GIVEN, True),
        (False, GIVEN, False),
        (True, GIVEN.upper(), False),
        (True, GIVEN + "0", False),
        (True, "x\nINFO forged", False),
        (True, "", False),
    ],
)
def test_an_id_is_taken_from_our_proxy_alone_and_only_if_it_looks_like_one(
    client: Client, settings: Any, behind_proxy: bool, given: str, is_taken: bool
) -> None:
    settings.HUNCH_BEHIND_PROXY = behind_proxy
    answered = client.get("/healthz", headers={"X-Request-ID": given})["X-Request-ID"]
    assert request_ids.PATTERN.fullmatch(answered) and (answered == given) == is_taken


@pytest.mark.django_db
@pytest.mark.urls(__name__)
def test_a_page_that_fails_names_the_id_of_its_log_lines(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    client.raise_request_exception = False
    page = client.get("/fails")
    assert page.status_code == 500 and page["X-Request-ID"] == seen[0] in page.content.decode()
    answer = client.get("/api/v1/fails")
    assert answer.json()["error"]["request_id"] == answer["X-Request-ID"] == seen[1] != seen[0]
    record = next(record for record in caplog.records if record.exc_info)
    assert seen[1] in LineFormatter().format(record) and seen[1] in JsonFormatter().format(record)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/api/v1/nothing/", None, 404),
        ("/api/v1/studies/none/sittings/", "{}", 404),
        ("/api/v1/sittings/", "[" * 300_000, 413),
    ],
)
def test_every_error_of_the_api_names_its_request(client: Client, path: str, body: str | None, status: int) -> None:
    answer = client.get(path) if body is None else client.post(path, body, content_type="application/json")
    assert answer.status_code == status
    assert answer.json()["error"]["request_id"] == answer["X-Request-ID"]


def test_a_missing_page_names_its_request(client: Client, db: None) -> None:
    answer = client.get("/nothing/here")
    assert answer.status_code == 404 and answer["X-Request-ID"] in answer.content.decode()


def test_a_line_without_a_request_names_none() -> None:
    record = logging.LogRecord("survey", logging.INFO, __file__, 1, "begun", (), None)
    assert LineFormatter().format(record).endswith(" INFO survey: begun")
    assert "request_id" not in JsonFormatter().format(record)


@pytest.fixture
def our_celery_again() -> Iterator[None]:
    """A worker in this process makes its application the one that every shared task is sent by. Ours is put back."""
    yield
    hunch.set_current()
    hunch.set_default()


@pytest.mark.slow
@pytest.mark.usefixtures("our_celery_again")
def test_a_task_has_the_id_of_who_sent_it_and_gives_it_along() -> None:
    """Through a real worker: Celery's own headers carry it."""
    app = Celery("ids", broker="memory://", backend="cache+memory://", set_as_current=False)
    app.conf.update(worker_hijack_root_logger=False, task_serializer="json")

    @app.task(name="tests.second")
    def second() -> str:
        return request_ids.current.get()

    @app.task(name="tests.first")
    def first() -> Any:
        return [request_ids.current.get(), second.delay().id]

    with start_worker(app, pool="solo", perform_ping_check=False):
        request_ids.current.set(GIVEN)
        mine, other = first.delay().get(timeout=PATIENCE)
        assert [mine, app.AsyncResult(other).get(timeout=PATIENCE)] == [GIVEN, GIVEN]
        unnamed = contextvars.Context().run(second.delay).get(timeout=PATIENCE)
        assert request_ids.PATTERN.fullmatch(unnamed) and unnamed != GIVEN
