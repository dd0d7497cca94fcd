"""Bodies, headers and queries that no client of ours sends: each is refused in the one shape, and nothing is stored."""

import json
import re
from dataclasses import dataclass
from typing import Any

import pytest
from django.test import Client

from survey.api import researchers
from survey.api.urls import urlpatterns
from survey.models import Respondent, Response
from tests import cast
from tests.api.documented import document
from tests.api.test_researchers import token_of
from tests.api.test_respondents import BEGIN, STEP, Person, error_of
from tests.kept import kept
from tests.survey.instruments import test_aid, test_evidence_in_steps

pytestmark = pytest.mark.django_db
MANY_DIGITS = pytest.param(10**4000, id="many digits")
REPORT, LEFT = "/api/v1/sitting/report/", "/api/v1/sitting/left/"
TAKES_BODIES = (BEGIN, STEP, REPORT, LEFT)
STUDY = "/api/v1/studies/cast/"


@dataclass
class Inside:
    """Somebody in a sitting, as a program knows them."""

    client: Client
    token: str
    step: int


@pytest.fixture
def person(client: Client) -> Inside:
    return Inside(client, *sitting_at_an_item())


@kept
def sitting_at_an_item() -> tuple[str, int]:
    cast.open_study()
    person = Person(Client()).go_to("item")
    return person.token, person.step["number"]


@pytest.fixture
def reader() -> Client:
    cast.open_study()
    return Client(headers={"Authorization": f"Token {token_of('reader', may_export=True)}"})


def send(person: Inside, path: str, body: bytes, **options: Any) -> Any:
    options = {"content_type": "application/json", **options}
    return person.client.generic("POST", path, body, headers={"X-Sitting-Token": person.token}, **options)


UNREADABLE = {
    "deep lists": b'{"step": 1, "value": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "deep objects": b'{"a":' * 2_000 + b"1" + b"}" * 2_000,
    "nine levels": json.dumps({"step": 1, "a": [[[[[[[[1]]]]]]]]}).encode(),
    "half a character in a name": b'{"step": 1, "\\ud800": {"a": 1}}',
    "half a character in an inner name": b'{"step": 1, "parameters": [{"\\ud800": 5}]}',
    "no JSON": b'{"step": 1,',
    "no UTF-8": b'{"step": 1, "value": "\xff"}',
    "a byte order mark": b'\xef\xbb\xbf{"step": 1}',
    "not a number": b'{"step": 1, "value": NaN}',
    "infinity": b'{"step": -Infinity}',
    "5,000 digits": b'{"step": 1, "value": ' + b"9" * 5_000 + b"}",
}


@pytest.mark.slow
@pytest.mark.parametrize("path", TAKES_BODIES)
@pytest.mark.parametrize("name", UNREADABLE)
def test_a_body_that_cannot_be_read_is_a_bad_request(person: Inside, path: str, name: str) -> None:
    response = send(person, path, UNREADABLE[name])
    assert (response.status_code, error_of(response)["code"]) == (400, "parse_error")
    assert "sys." not in error_of(response)["message"]
    assert Respondent.objects.count() == 1 and not Response.objects.exists()


@pytest.mark.slow
@pytest.mark.parametrize("path", TAKES_BODIES)
@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "x", ""])
def test_a_body_that_says_it_is_no_json_is_refused(person: Inside, path: str, kind: str) -> None:
    response = send(person, path, b'{"step": 3, "value": 60}', content_type=kind)
    assert (response.status_code, error_of(response)["code"]) == (415, "unsupported_media_type")
    assert not Response.objects.exists()


@pytest.mark.parametrize("path", TAKES_BODIES)
def test_a_body_that_is_too_large_is_refused(person: Inside, path: str) -> None:
    response = send(person, path, b'{"step": 1, "value": "' + b"x" * 3_000_000 + b'"}')
    assert (response.status_code, error_of(response)["code"]) == (413, "too_large")


@pytest.mark.every_database
@pytest.mark.parametrize(
    "value", ["a\x00", "\ud800", "\udc00x", 1e400, -1e400, MANY_DIGITS, [[1]], {"a": 1}, True, 1e-9]
)
def test_a_value_that_is_no_answer_is_named(person: Inside, value: Any) -> None:
    body = json.dumps({"step": person.step, "value": value}).replace("Infinity", "1e400").encode()
    response = send(person, STEP, body)
    assert response.status_code == 422
    assert list(error_of(response)["fields"]) == ["value"]
    assert not Response.objects.exists()


@pytest.mark.every_database
@pytest.mark.parametrize("step", [1e400, MANY_DIGITS, "\ud800", "\x00", [[1]], {"a": 1}, True])
def test_a_step_that_is_no_number_is_named(person: Inside, step: Any) -> None:
    response = send(person, STEP, json.dumps({"step": step}).replace("Infinity", "1e400").encode())
    assert response.status_code == 400
    assert list(error_of(response)["fields"]) == ["step"]


def test_what_is_wrong_inside_a_field_is_reported_by_its_place(client: Client) -> None:
    cast.open_study()
    body = {"consent": True, "parameters": {"pid": "x" * 201, "sid": [1], "other": 12}}
    response = client.post(BEGIN, body, content_type="application/json")
    assert response.status_code == 400
    assert set(error_of(response)["fields"]) == {"parameters.pid", "parameters.sid", "parameters.other"}
    assert error_of(response)["message"].startswith("parameters.pid: ")


@pytest.mark.every_database
@pytest.mark.parametrize("token", ["\x00", "é:é", "x" * 5_000, ":", "a:b:c", "\ufeff"])
def test_a_token_of_any_bytes_is_unknown(client: Client, token: str) -> None:
    for response in (client.get(STEP, headers={"X-Sitting-Token": token}), client.get(STEP)):
        assert (response.status_code, error_of(response)["code"]) == (403, "sitting_unknown")


@pytest.mark.slow
def test_every_method_that_is_not_documented_is_refused_and_the_others_are_named(reader: Client) -> None:
    for path, operations in document()["paths"].items():
        for method in ("get", "post", "put", "patch", "delete", "trace", "head", "query"):
            if method in operations or (method == "head" and "get" in operations):
                continue
            response = reader.generic(method.upper(), named(path))
            assert response.status_code == 405, (method, path)
            allowed = {name.strip().lower() for name in response.headers["Allow"].split(",")}
            assert allowed - {"head", "options"} == set(operations), (method, path)
            if method != "head":
                assert error_of(response)["code"] == "method_not_allowed"


def test_answers_come_as_json_alone(person: Inside) -> None:
    for accept in ("text/html", "application/xml", "nonsense"):
        response = person.client.get(STEP, headers={"X-Sitting-Token": person.token, "Accept": accept})
        assert (response.status_code, error_of(response)["code"]) == (406, "not_acceptable")
    assert person.client.get(f"{STUDY}?format=xml").headers["Content-Type"] == "application/json"


# Researchers


def named(path: str) -> str:
    """The address about the cast's study, and of a report that it has."""
    for name, value in {
        "slug": "cast",
        "name": "budget",
        "index": "1",
        "action": "pause",
        "number": "1",
        "wave": "2",
        "receiver": "1",
    }.items():
        path = path.replace(f"{{{name}}}", value)
    return path


def researchers_views() -> dict[str, Any]:
    views: dict[str, Any] = {
        f"/api/v1/{pattern.pattern}": vars(pattern.callback)["view_class"] for pattern in urlpatterns
    }
    return {
        re.sub(r"<\w+:(\w+)>", r"{\1}", path): view
        for path, view in views.items()
        # An address that only takes files has no filters.
        if issubclass(view, researchers.ResearcherView) and hasattr(view, "get")
    }


def test_the_filters_that_are_taken_are_the_documented_ones() -> None:
    assert len(researchers_views()) == 21
    for path, view in researchers_views().items():
        parameters = document()["paths"][path]["get"].get("parameters", ())
        # The list of reports shows each report's arguments; here they are one parameter together.
        filters = ["arguments"] if view.filters is None else view.filters
        assert sorted(filters) == sorted(parameter["name"] for parameter in parameters if parameter["in"] == "query"), (
            path
        )


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(researchers_views()))
def test_a_filter_that_does_not_exist_is_refused_and_the_others_are_named(reader: Client, path: str) -> None:
    view = researchers_views()[path]
    response = reader.get(named(path), {"stge": "1"})
    error = error_of(response)
    assert (response.status_code, error["code"], list(error["fields"])) == (400, "invalid", ["stge"])
    asked = ["studies", "dropout"] if view.filters is None else view.filters
    for name in asked or ["none here"]:
        assert name in error["message"]


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(set(researchers_views()) - {"/api/v1/studies/", "/api/v1/readings/"}))
def test_a_study_that_does_not_exist_is_reported(reader: Client, path: str) -> None:
    response = reader.get(named(path.replace("{slug}", "nobody")))
    assert (response.status_code, error_of(response)["code"]) == (404, "not_found")


@pytest.mark.every_database
@pytest.mark.slow
@pytest.mark.parametrize(
    ("header", "status", "code"),
    [
        (None, 401, "not_authenticated"),
        ("Token", 401, "authentication_failed"),
        ("Token a b", 401, "authentication_failed"),
        ("Token \x00", 401, "authentication_failed"),
        ("Token é", 401, "authentication_failed"),
        ("Bearer x", 401, "not_authenticated"),
        ("Basic eDp5", 401, "not_authenticated"),
    ],
)
def test_a_wrong_token_is_reported(client: Client, header: str | None, status: int, code: str) -> None:
    for path in researchers_views():
        response = client.get(named(path), headers={"Authorization": header} if header else {})
        assert (response.status_code, error_of(response)["code"]) == (status, code), path
        assert response.headers["WWW-Authenticate"] == "Token", path


@pytest.mark.every_database
@pytest.mark.slow
@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("answers/?stage=999999", 404),
        ("answers/?stage=0", 404),
        ("answers/?stage=%00", 400),
        ("answers/?cursor=999999-999999999", 400),
        ("answers/?condition=%00=%00", 400),
        ("answers/?condition=", 400),
        ("leaderboard/?condition=%00", 400),
        ("estimates/?by=%00", 400),
        ("reports/human_calibration/", 409),
        ("reports/human_calibration/?people_study=%00", 409),
        ("reports/human_calibration/?people_study=nobody", 409),
        ("reports/human_calibration/?people_study=cast&model=%00", 409),
    ],
)
def test_a_filter_that_means_nothing_is_reported_in_words(reader: Client, query: str, status: int) -> None:
    response = reader.get(STUDY + query)
    assert response.status_code == status, response.content
    if status >= 400:
        assert error_of(response)["message"]


# Reports about arms and steps


def complaints(slug: str, report: str, asked: dict[str, str]) -> dict[str, tuple[int, str]]:
    """By query: the status, and what the message and the names of its fields say."""
    client = Client(headers={"Authorization": f"Token {token_of('reader', may_export=True)}"})
    problems = {}
    for query in asked:
        response = client.get(f"/api/v1/studies/{slug}/reports/{report}/?{query}")
        error = error_of(response)
        problems[query] = (response.status_code, " ".join((error["message"], *error.get("fields", ()))))
    return problems


@pytest.mark.every_database
@pytest.mark.slow
def test_what_arms_cannot_be_asked_is_named() -> None:
    asked = {
        **dict.fromkeys(("alpha=nan", "alpha=-1", "alpha=1e999", "alpha=%00"), "alpha"),
        **dict.fromkeys(("threshold=1", "threshold=inf"), "threshold"),
        **dict.fromkeys(("by=%00", "by=nobody"), "by"),
        **dict.fromkeys(("llm=gull", "llm=%00"), "llm"),
        **dict.fromkeys(("condition=help%3Daided", "condition=%00"), "condition"),
        "colour=red": "colour",
    }
    for query, (status, said) in complaints(test_aid.answered_arms().slug, "arms", asked).items():
        assert status == 400 and asked[query] in said, (query, said)


@pytest.mark.slow
def test_what_the_composition_of_steps_cannot_be_asked_is_named() -> None:
    asked = {"condition=%00": "condition", "condition=order%3Dfirst": "condition", "clip=1": "clip"}
    for query, (status, said) in complaints(test_evidence_in_steps.answered_steps().slug, "composition", asked).items():
        assert status == 400 and asked[query] in said, (query, said)
