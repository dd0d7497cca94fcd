"""The examples of the OpenAPI document are what the API really takes and gives: one that no longer fits fails here."""

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.utils import timezone
from rest_framework.throttling import AnonRateThrottle

from survey.api.examples import recorded
from survey.api.schema import REFUSALS
from survey.contracts import instruments
from survey.models import Booklet, Job, Study
from survey.services.stages.lifecycle import pause_stage
from tests import cast
from tests.api.documented import call, document
from tests.api.everything import RIGHT, STUDY, Reader
from tests.api.front_end import FrontEnd
from tests.api.test_researchers import token_of
from tests.api.test_respondents import BEGIN, STEP, Person
from tests.frontend.test_outages import away

STEPS, ANSWERS = recorded()["bodies"]["Step"], recorded()["bodies"]["Answer"]
ERRORS = {int(status): by_name for status, by_name in recorded()["errors"].items()}
pytestmark = [pytest.mark.django_db, pytest.mark.any_database, pytest.mark.slow]


def shape(value: Any) -> Any:
    """Names and types. The members of a list are alike in kind or named by what they are."""
    if isinstance(value, Mapping):
        return {name: shape(inner) for name, inner in sorted(value.items())}
    if isinstance(value, list):
        return sorted({json.dumps(shape(inner)) for inner in value})
    return type(value).__name__


def shape_of_step(step: Mapping[str, Any]) -> str:
    """What a step is, with its fields and what they take. Each sitting has its own order of the options."""
    asked = [*step["fields"], *(step["screen"] or {"fields": ()})["fields"]]
    facts = ("name", "type", "required", "minimum", "maximum", "max_length")
    fields = [([question[fact] for fact in facts], sorted(question["options"])) for question in asked]
    checks = [(check["name"], len(check["options"])) for check in step["checks"]]
    name = (step["screen"] or {}).get("name")
    ending = (step["outcome"], bool(step["code"]), step["attempt"], bool(step["hints"]))
    return json.dumps([step["kind"], name, fields, checks, ending, shape(step)])


def walked_steps() -> list[dict[str, Any]]:
    """Every kind of step and of end that there is."""
    steps = []
    for wrong, prefers in ((1, {}), (2, {}), (0, {"adult": "no"})):
        visit = FrontEnd("cast", Reader(wrong=wrong), prefers={"direction": "higher", "value": 62, **prefers})
        visit.take_part()
        steps += visit.seen
    late = FrontEnd("cast", Reader())
    late.take_part(until="checks")
    Booklet.objects.update(claimed_at=timezone.now())
    late.go_on()
    return steps + late.seen


def test_every_step_has_an_example_and_every_example_is_of_a_step() -> None:
    cast.open_study(**STUDY)
    walked = {shape_of_step(step): step for step in walked_steps()}
    examples = {shape_of_step(step): name for name, step in STEPS.items()}
    assert [name for key, name in examples.items() if key not in walked] == []
    assert [step for key, step in walked.items() if key not in examples] == []
    assert len(examples) == len(STEPS)


def words_of(step: Mapping[str, Any]) -> str:
    """The sentences around a question, but for how it went there."""
    return json.dumps({name: words for name, words in step["screen"]["words"].items() if name != "outcome"})


@pytest.mark.thorough
def test_the_words_of_an_example_are_those_of_its_step() -> None:
    cast.open_study(**STUDY)
    said = {words_of(step) for step in walked_steps() if step["screen"]}
    assert {words_of(step) for step in STEPS.values() if step["screen"]} == said


@pytest.mark.thorough
def test_a_sitting_can_be_walked_by_the_examples_alone() -> None:
    cast.open_study(**STUDY)
    begun = call("sitting_begin", path={"slug": "cast"}, body={"consent": True}).json()
    step, sent = begun["step"], set()
    kinds = {shape_of_step(example): name for name, example in STEPS.items()}
    while step["kind"] != "end":
        name = kinds[shape_of_step(step)]
        right = {
            check["name"]: next(option["value"] for option in check["options"] if (option["text"] in RIGHT) == last)
            for check in step["checks"]
            for last in [step["attempt"] != 1]
        }
        assert set(right) <= set(ANSWERS[name])
        body = {**ANSWERS[name], "step": step["number"], **right}
        answered = call("sitting_answer", body=body, headers={"X-Sitting-Token": begun["token"]})
        assert answered.status_code == 200, (name, answered.json())
        sent.add(name)
        step = answered.json()
    assert step["outcome"] == "completed"
    assert sent == set(ANSWERS) == {name for name, example in STEPS.items() if example["kind"] != "end"}


def test_an_answers_number_is_its_steps() -> None:
    assert {name: answer["step"] for name, answer in ANSWERS.items()} == {
        name: STEPS[name]["number"] for name in ANSWERS
    }


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


def test_every_error_is_as_its_example_says(monkeypatch: pytest.MonkeyPatch) -> None:
    responses = refusals(monkeypatch)
    for status, by_name in ERRORS.items():
        for name, body in by_name.items():
            response = responses.pop("no JSON, 415" if status == 415 else name)
            said = response.json()
            assert re.fullmatch("[0-9a-f]{32}", said["error"].pop("request_id", "")), name
            assert (response.status_code, said) == (status, body), name
    assert responses == {}
    assert set(REFUSALS) == set(ERRORS)


def test_the_document_shows_them_all() -> None:
    paths = document()["paths"]
    answer = paths["/api/v1/sitting/"]["post"]
    sent = answer["requestBody"]["content"]["application/json"]["examples"]
    assert [example["value"] for example in sent.values()] == list(ANSWERS.values())
    examples = answer["responses"]["200"]["content"]["application/json"]["examples"]
    assert [example["value"] for example in examples.values()] == list(STEPS.values())
    for operations in paths.values():
        for operation in operations.values():
            for status, response in operation["responses"].items():
                if int(status) >= 400 and "application/json" in response["content"]:  # A range has no example.
                    errors = response["content"]["application/json"]["examples"].values()
                    assert [example["value"] for example in errors] == list(ERRORS[int(status)].values())
                    assert response["description"] == REFUSALS[int(status)]
