"""The examples of the OpenAPI document are what the API really takes and gives: one that no longer fits fails here.

python -m tests.renew examples
"""

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.utils import timezone
from rest_framework.throttling import AnonRateThrottle

from survey.api.examples import FILE, recorded
from survey.api.schema import REFUSALS
from survey.contracts import instruments
from survey.models import Booklet, Job, Study
from survey.services.stages.lifecycle import pause_stage
from tests import cast
from tests.api import recording
from tests.api.documented import document
from tests.api.test_researchers import token_of
from tests.api.test_respondents import BEGIN, STEP, Person
from tests.frontend.test_outages import away

pytestmark = [pytest.mark.django_db, pytest.mark.any_database, pytest.mark.slow]


@pytest.fixture
def compare(request: pytest.FixtureRequest) -> Callable[[str, recording.Bodies], None]:
    """Compares what was recorded just now with the file; with --renew, stores it first."""

    def same(part: str, bodies: recording.Bodies) -> None:
        if request.config.getoption("--renew"):
            recorded.cache_clear()
            stored = {**recorded(), part: {**recorded()[part], **bodies}}
            FILE.write_text(recording.as_text(stored), encoding="utf-8")
            recorded.cache_clear()
        for name, by_name in bodies.items():
            assert recorded()[part][name] == by_name, f"{name}: run python -m tests.renew examples"

    return same


def test_what_people_who_take_part_send_and_get_is_as_recorded(compare: Any) -> None:
    bodies = recording.of_respondents()
    compare("bodies", bodies)
    steps, answers = bodies["Step"], bodies["Answer"]
    assert set(answers) == {name for name, step in steps.items() if step["kind"] != "end"}
    assert all(answer["step"] == steps[name]["number"] for name, answer in answers.items())
    assert {step["outcome"] for step in steps.values()} == {"", *recording.CODES}


def test_what_researchers_send_and_get_is_as_recorded(compare: Any, settings: Any) -> None:
    compare("bodies", recording.of_researchers(settings))


def of_a_panel_that_rests() -> Any:
    """Somebody arrives whose panel has the feature of signed links, and nobody can check one for a minute."""
    cast.open_study(slug="signed", panel={"kind": "generic", "signed_entry": True})
    body = {"consent": True, "parameters": {"pid": "anna", "ts": "1", "sig": "x"}}
    return Client().post("/api/v1/studies/signed/sittings/", body, content_type="application/json")


def forgotten_job(study: Study) -> Job:
    """A job of the reader whose files are no longer kept."""
    reader = User.objects.get(username="reader")
    now = timezone.now()
    return Job.objects.create(
        pk=7,
        study=study,
        kind="export",
        asked_by=reader,
        asked_sha256="0" * 64,
        state=Job.State.EXPIRED,
        finished_at=now,
    )


def refusals(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What happens at each of the errors that stand in the examples."""
    study = cast.open_study()
    client = Client()
    reader = Client(headers={"Authorization": f"Token {token_of('reader', may_export=True)}"})
    other = Client(headers={"Authorization": f"Token {token_of('other', may_export=False)}"})
    person = Person(client).go_to("item")
    number = person.step["number"]

    def begin() -> Any:
        return client.post(BEGIN, {"consent": True}, content_type="application/json")

    def raw(body: bytes, kind: str = "application/json") -> Any:
        return client.generic("POST", STEP, body, content_type=kind, headers={"X-Sitting-Token": person.token})

    responses = {
        "no JSON": raw(b"{"),
        "a field that is missing": raw(b"{}"),
        "a filter that does not exist (researchers)": reader.get("/api/v1/studies/cast/answers.csv?stge=1"),
        "no token (researchers)": client.get("/api/v1/studies/"),
        "an unknown sitting": client.get(STEP),
        "no permission (researchers)": other.get("/api/v1/studies/"),
        "no such study": client.get("/api/v1/studies/nobody/"),
        "a step that has not been reached": person.post(step=number + 1),
        "files that are gone": reader.get(f"/api/v1/jobs/{forgotten_job(study).pk}/files/answers.csv"),
        "too large": raw(b'"' + b"x" * 300_000 + b'"'),
        "no JSON, 415": raw(b"x", "text/plain"),
        "an answer outside 0 to 100": person.post(step=number, value=101),
    }
    with monkeypatch.context() as gone:
        gone.setattr(instruments, "_kinds", {})
        responses["the study's items are missing"] = client.get(STEP, headers={"X-Sitting-Token": person.token})
    with monkeypatch.context() as busy:
        busy.setattr("survey.services.sittings.enrolment.spend", lambda *_given, **_named: 42 * 60)
        responses["too many people of one address"] = begin()
    with connection.execute_wrapper(away):
        responses["the database is away"] = client.get("/api/v1/studies/cast/")
    responses["the panel cannot be asked"] = of_a_panel_that_rests()
    Booklet.objects.update(claimed_at=timezone.now())
    responses["all places taken"] = begin()
    pause_stage(study.stages.get(index=1))
    responses["not open"] = begin()
    monkeypatch.setattr(AnonRateThrottle, "allow_request", lambda *_: False)
    monkeypatch.setattr(AnonRateThrottle, "wait", lambda _: 12.0)
    responses["too many requests"] = begin()
    return responses


def test_every_error_is_as_its_example_says(monkeypatch: pytest.MonkeyPatch, compare: Any) -> None:
    errors: recording.Bodies = {}
    for name, response in refusals(monkeypatch).items():
        error = response.json()
        assert re.fullmatch("[0-9a-f]{32}", error["error"].pop("request_id", "")), name
        errors.setdefault(str(response.status_code), {})[name.removesuffix(", 415")] = error
    compare("errors", errors)
    assert set(errors) == {str(status) for status in REFUSALS}


def test_the_document_shows_them_all() -> None:
    bodies, errors = recorded()["bodies"], recorded()["errors"]
    paths = document()["paths"]
    answer = paths["/api/v1/sitting/"]["post"]
    sent = answer["requestBody"]["content"]["application/json"]["examples"]
    assert [example["value"] for example in sent.values()] == list(bodies["Answer"].values())
    examples = answer["responses"]["200"]["content"]["application/json"]["examples"]
    assert [example["value"] for example in examples.values()] == list(bodies["Step"].values())
    for operations in paths.values():
        for operation in operations.values():
            for status, response in operation["responses"].items():
                if int(status) >= 400 and "application/json" in response["content"]:  # A range has no example.
                    error_examples = response["content"]["application/json"]["examples"].values()
                    assert [example["value"] for example in error_examples] == list(errors[status].values())
                    assert response["description"] == REFUSALS[int(status)]
