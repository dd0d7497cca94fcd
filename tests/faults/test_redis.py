"""Redis cannot be reached, or takes connections and answers nothing: no page asks it but health, which is brief."""

import socket
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import Client
from redis.connection import AbstractConnection

from survey import health, tasks
from survey.models import Response, Stage
from survey.services.stages import lifecycle
from tests import cast
from tests.api.test_respondents import Person
from tests.frontend.pages import arrive, send

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """It takes connections and never reads from them."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        yield silent


@pytest.fixture(params=["closed", "silent"])
def lost_redis(request: pytest.FixtureRequest, settings: Any, listener: socket.socket) -> None:
    port = listener.getsockname()[1]
    if request.param == "closed":
        listener.close()
    settings.REDIS_URL = f"redis://127.0.0.1:{port}/0"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Each connection to Redis that somebody in this process opens, no matter who opens it."""
    connections: list[str] = []
    connect = AbstractConnection.connect

    def count(self: Any, *args: Any, **kwargs: Any) -> None:
        connections.append(repr(self))
        connect(self, *args, **kwargs)

    monkeypatch.setattr(AbstractConnection, "connect", count)
    return connections


def test_people_take_part_and_researchers_close_the_stage_without_asking_it(
    client: Client, lost_redis: None, asked: list[str]
) -> None:
    study = cast.open_study()
    page = arrive(client)
    while page.main["data-kind"] != "end":
        page = send(client, page)
    Person(Client()).go_to("end")
    assert Response.objects.count() == 12
    researcher = Client()
    researcher.force_login(User.objects.create_superuser("researcher"))
    for path in ("/admin/", "/admin/survey/study/", f"/admin/survey/study/{study.pk}/change/", "/api/v1/studies/"):
        assert researcher.get(path, follow=True).status_code == 200
    lifecycle.close_stage(cast.stage_of(study))
    assert cast.stage_of(study).state == Stage.State.CLOSING
    assert asked == []


def test_health_says_that_it_is_down_and_respondents_are_well(
    client: Client, lost_redis: None, asked: list[str]
) -> None:
    for _look in range(3):
        response = client.get("/healthz")
        assert (response.status_code, response.json()) == (200, {"database": "ok", "broker": "down"})
    assert len(asked) == 1
    cache.clear()
    assert not health.broker_answers(timeout=0.1)


def test_what_could_not_be_sent_is_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The task of a step that was marked as sent, and never arrived."""
    stage = cast.closed_stage()
    lost: list[Any] = []
    monkeypatch.setattr(tasks.run_step, "apply_async", lambda *args, **_options: lost.append(args))
    assert tasks.run_due_steps() == 1
    assert tasks.run_due_steps() == 0
    stage.job_steps.update(sent_at=stage.job_steps.get().sent_at - 2 * tasks.leases.SEND_AGAIN)
    assert tasks.run_due_steps() == 1
    assert len(lost) == 2
