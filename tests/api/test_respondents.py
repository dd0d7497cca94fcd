"""The respondents' API: the pages' flow in JSON, with the same refusals."""

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from survey.instruments.belief_update.models import Belief
from survey.models import Assignment, Booklet, PanelIdentity, Respondent, Sitting, Study
from survey.services.sittings.entry import simulated_mark
from survey.services.sittings.flow import current_step
from survey.services.stages.lifecycle import pause_stage
from tests import cast

pytestmark = pytest.mark.django_db
BEGIN = "/api/v1/studies/cast/sittings/"
STEP = "/api/v1/sitting/"
PANEL = {"PROLIFIC_PID": "person1", "STUDY_ID": "study1", "SESSION_ID": "session1"}


class Person:
    """An API client in a sitting, who knows the right options of the cast's checks."""

    def __init__(self, client: Client, **fields: Any) -> None:
        self.client = client
        self.response = client.post(BEGIN, {"consent": True, **fields}, content_type="application/json")
        assert self.response.status_code in (200, 201), self.response.content
        begun = self.response.json()
        self.token, self.person, self.step = begun["token"], begun["person"], begun["step"]

    def post(self, **body: Any) -> Any:
        return self.client.post(STEP, body, content_type="application/json", headers={"X-Sitting-Token": self.token})

    def answers(self) -> dict[str, Any]:
        step = self.step
        if step["kind"] == "checks":
            return {
                check["name"]: next(o["value"] for o in check["options"] if o["text"] in ("right one", "right"))
                for check in step["checks"]
            }
        if step["kind"] == "item":
            screen = step["screen"]
            if screen["name"] == "prior":
                return {"screen": "prior", "value": 60}
            return {"screen": "posterior", "direction": "higher", "value": 70}
        return {"age": 30, "use": "never"} if step["kind"] == "form" else {}

    def answer(self, **changes: Any) -> Any:
        response = self.post(step=self.step["number"], **{**self.answers(), **changes})
        assert response.status_code == 200, response.content
        self.step = response.json()
        return response

    def go_to(self, kind: str, screen: str = "") -> "Person":
        while self.step["kind"] != kind or (screen and self.step["screen"]["name"] != screen):
            self.answer()
        return self


@pytest.fixture
def study() -> Study:
    return cast.open_study()


def error_of(response: Any) -> dict[str, Any]:
    assert set(response.json()) == {"error"}
    return dict(response.json()["error"])


def test_a_whole_sitting_over_the_api(client: Client, study: Study) -> None:
    info = client.get("/api/v1/studies/cast/").json()
    assert (info["open"], info["minutes"], info["consent"]["text"]) == (True, 3, "We ask for your consent.")
    person = Person(client)
    assert person.response.status_code == 201
    person.go_to("end")
    assert person.step["outcome"] == "completed"
    assert person.step["code"] == study.completion_code("completed")
    assert Belief.objects.count() == 6
    assert Sitting.objects.get().state == Sitting.State.COMPLETE


def test_nothing_on_the_way_keeps_a_step(client: Client, study: Study) -> None:
    person = Person(client).go_to("item")
    for response in (client.get(STEP, headers={"X-Sitting-Token": person.token}), client.get("/api/v1/studies/cast/")):
        assert response.status_code == 200 and "no-store" in response.headers["Cache-Control"]


def test_a_step_describes_its_fields(client: Client, study: Study) -> None:
    person = Person(client).go_to("item")
    (field,) = person.step["screen"]["fields"]
    assert (field["name"], field["type"], field["minimum"], field["maximum"]) == ("value", "integer", 0, 100)
    person.go_to("form")
    assert [(f["name"], f["type"], f["required"]) for f in person.step["fields"]] == [
        ("age", "integer", True), ("use", "choice", False), ("remark", "text", False)
    ]  # fmt: skip


def test_no_body_holds_what_a_prior_must_not_know(client: Client, study: Study) -> None:
    person = Person(client)
    response = person.response
    priors = 0
    while True:
        body = response.content.decode() + repr(response.headers)
        assert "KEY-" not in body and "REASON-" not in body and "outcome_" not in body
        screen = person.step["screen"]
        if screen and screen["name"] == "prior":
            priors += 1
            pair = Assignment.objects.get(position=priors).slot.item.pair
            assert pair.evidence is not None
            assert json.dumps(pair.target.text) in json.dumps(json.loads(response.content))
            assert json.dumps(pair.evidence.text)[1:-1] not in json.dumps(json.loads(response.content))
            assert set(screen["parts"]) == {"target", "variant"}
            assert "correct" not in body.replace("answers this question correctly?", "")
            step_response = client.get(STEP, headers={"X-Sitting-Token": person.token})
            assert step_response.json() == person.step
        if person.step["kind"] == "end":
            break
        response = person.answer()
    assert priors == 3


def test_coming_back_with_the_same_person_gives_the_same_sitting(client: Client, study: Study) -> None:
    first = Person(client)
    first.answer()
    again = Person(client, person=first.person)
    assert again.response.status_code == 200
    assert (again.token, again.step) == (first.token, first.step)
    assert Person(client).token != first.token


@pytest.mark.parametrize("person", ["short", "G" * 32, "A" * 32])
def test_a_person_is_32_hexadecimal_digits(client: Client, study: Study, person: str) -> None:
    response = client.post(BEGIN, {"consent": True, "person": person}, content_type="application/json")
    assert response.status_code == 400
    assert "person" in error_of(response)["fields"]


def test_nobody_begins_without_consent(client: Client, study: Study) -> None:
    refused = client.post(BEGIN, {"consent": False}, content_type="application/json")
    assert (refused.status_code, error_of(refused)["code"]) == (422, "invalid")
    assert client.post(BEGIN, {}, content_type="application/json").status_code == 400
    assert not Respondent.objects.exists()


@pytest.mark.slow
def test_a_panels_study_needs_the_panels_ids(client: Client) -> None:
    study = cast.open_study(panel=cast.PROLIFIC)
    refused = client.post(BEGIN, {"consent": True, "person": "0" * 32}, content_type="application/json")
    assert (refused.status_code, error_of(refused)["code"]) == (403, "no_panel_ids")
    refused = client.post(BEGIN, {"consent": True, "PROLIFIC_PID": "a"}, content_type="application/json")
    assert (refused.status_code, error_of(refused)["code"]) == (400, "bad_panel_ids")
    person = Person(client, **PANEL)
    assert person.person is None and PanelIdentity.objects.count() == 1
    person.go_to("end")
    assert person.step["completion_url"] == f"https://panel.example/complete?cc={study.completion_code('completed')}"


def test_a_second_submission_of_one_person_is_refused(client: Client) -> None:
    cast.open_study(panel=cast.PROLIFIC)
    Person(client, **PANEL)
    refused = client.post(BEGIN, {"consent": True, **PANEL, "SESSION_ID": "session2"}, content_type="application/json")
    assert (refused.status_code, error_of(refused)["code"]) == (403, "already_taken_part")


def test_closed_and_full_are_reported_before_and_at_consent(client: Client, study: Study) -> None:
    stage = study.stages.get(index=1)
    stage.booklets.update(claimed_at="2026-01-01T00:00Z")
    assert client.get("/api/v1/studies/cast/").json()["refusal"] == "full"
    refused = client.post(BEGIN, {"consent": True}, content_type="application/json")
    assert (refused.status_code, error_of(refused)["code"]) == (403, "full")
    pause_stage(stage)
    assert client.get("/api/v1/studies/cast/").json()["refusal"] == "closed"
    refused = client.post(BEGIN, {"consent": True}, content_type="application/json")
    assert (refused.status_code, error_of(refused)["code"]) == (403, "closed")
    assert not Respondent.objects.exists()


@pytest.mark.slow
@pytest.mark.parametrize("value", [-1, 101, "sixty", "", None, 60.5, True, "9" * 5000, [60], {"a": 1}])
def test_an_answer_that_is_no_number_from_0_to_100_is_refused(client: Client, study: Study, value: Any) -> None:
    person = Person(client).go_to("item")
    response = person.post(step=person.step["number"], value=value)
    assert response.status_code == 422
    assert "value" in error_of(response)["fields"]
    assert not Belief.objects.exists()


def test_zero_is_an_answer(client: Client, study: Study) -> None:
    person = Person(client).go_to("item")
    person.answer(value=0)
    assert Belief.objects.get().value == 0


def test_a_posterior_before_its_prior_is_refused(client: Client, study: Study) -> None:
    person = Person(client).go_to("item")
    response = person.post(step=person.step["number"], screen="posterior", value=70)
    assert (response.status_code, error_of(response)["code"]) == (409, "out_of_order")
    assert not Belief.objects.exists()


def test_a_step_out_of_order_is_refused_and_a_repeated_one_is_not(client: Client, study: Study) -> None:
    person = Person(client).go_to("item")
    number = person.step["number"]
    ahead = person.post(step=number + 1, value=60)
    assert (ahead.status_code, error_of(ahead)["code"]) == (409, "out_of_order")
    first = person.post(step=number, value=60).json()
    assert person.post(step=number, value=99).json() == first
    assert Belief.objects.get().value == 60


@pytest.mark.parametrize("step", ["x", -1, 1.5, None, 10**12, [1]])
def test_a_step_that_is_no_number_is_a_bad_request(client: Client, study: Study, step: Any) -> None:
    response = Person(client).post(step=step)
    assert (response.status_code, error_of(response)["code"]) == (400, "invalid")


@pytest.mark.parametrize("token", [None, "", "x", "0" * 32 + ":forged"])
def test_a_missing_or_forged_token_is_refused(client: Client, study: Study, token: str | None) -> None:
    headers = {} if token is None else {"X-Sitting-Token": token}
    for response in (
        client.get(STEP, headers=headers),
        client.post(STEP, {"step": 1}, content_type="application/json", headers=headers),
    ):
        assert (response.status_code, error_of(response)["code"]) == (403, "sitting_unknown")


@pytest.mark.parametrize("body", ["", "{", "[]", "3", '"x"', "null"])
def test_a_body_that_is_no_object_is_a_bad_request(client: Client, study: Study, body: str) -> None:
    person = Person(client)
    for path in (BEGIN, STEP):
        response = client.post(path, body, content_type="application/json", headers={"X-Sitting-Token": person.token})
        assert response.status_code == 400, (path, response.content)
        assert error_of(response)["message"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "status"), [("/api/v1/studies/nobody/", 404), ("/api/v1/nothing", 404), ("/api/v1/sitting", 301)]
)
def test_an_unknown_address_is_reported_in_the_same_shape(client: Client, path: str, status: int) -> None:
    response = client.get(path)
    assert response.status_code == status
    if status == 404:
        assert error_of(response)["code"] == "not_found"


def test_a_wrong_method_is_reported_in_the_same_shape(client: Client, study: Study) -> None:
    response = client.delete(STEP)
    assert (response.status_code, error_of(response)["code"]) == (405, "method_not_allowed")


def test_failed_checks_end_with_their_own_code(client: Client, study: Study) -> None:
    person = Person(client).go_to("checks")
    for _attempt in range(2):
        sitting = Sitting.objects.get()
        person.answer(**cast.wrong_answers_for(current_step(sitting)))
    assert (person.step["outcome"], person.step["code"]) == ("failed_checks", study.completion_code("failed_checks"))
    assert study.completion_code("completed") not in json.dumps(person.step)


def test_a_simulated_person_is_marked(client: Client, study: Study) -> None:
    client.post(
        BEGIN, {"consent": True}, content_type="application/json", headers={"X-Hunch-Simulated": simulated_mark()}
    )
    assert Respondent.objects.get().is_simulated


@pytest.mark.slow
def test_a_logged_in_researchers_browser_may_take_part_too(admin_user: User, study: Study) -> None:
    """Their session counts for nothing here, so it asks for no CSRF token either."""
    client = Client(enforce_csrf_checks=True)
    client.force_login(admin_user)
    assert Person(client).go_to("end").step["outcome"] == "completed"


def test_answering_is_not_throttled(client: Client, study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    from rest_framework.throttling import AnonRateThrottle

    person = Person(client)
    monkeypatch.setattr(AnonRateThrottle, "allow_request", lambda *_: False)
    monkeypatch.setattr(AnonRateThrottle, "wait", lambda _: 1.0)
    assert client.get("/api/v1/studies/cast/").status_code == 429
    assert client.get(STEP, headers={"X-Sitting-Token": person.token}).status_code == 200


def test_who_does_not_agree_or_finds_all_places_taken_is_given_the_panels_code(client: Client) -> None:
    study = cast.open_study(panel=cast.PROLIFIC)
    refused = client.post(BEGIN, {"consent": False, **PANEL}, content_type="application/json")
    assert refused.status_code == 422
    assert refused.json()["error"]["completion_code"] == study.completion_code("no_consent")
    Booklet.objects.update(claimed_at=timezone.now())
    full = client.post(BEGIN, {"consent": True, **PANEL}, content_type="application/json").json()["error"]
    assert (full["code"], full["completion_code"]) == ("full", study.completion_code("study_full"))
    nobody = client.post(BEGIN, {"consent": False}, content_type="application/json").json()["error"]
    assert "completion_code" not in nobody
    assert not Sitting.objects.exists() and not PanelIdentity.objects.exists()
