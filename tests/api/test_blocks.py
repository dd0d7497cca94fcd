"""Another front end can be put on attention checks, scales, the choice about one's data, and reports."""

from typing import Any

import pytest
from django.test import Client

from survey.instruments.belief_update.models import Belief
from survey.models import AttentionAnswer, DataChoice, FormAnswer, QuestionReport, Response, Sitting, Withdrawal
from tests import cast
from tests.api.test_respondents import Person, error_of
from tests.frontend.test_blocks import ABOUT, ASKING, READ, SCREENER, blocks

pytestmark = [pytest.mark.django_db, pytest.mark.any_database, pytest.mark.slow]
REPORT = "/api/v1/sitting/report/"


@pytest.mark.thorough
def test_an_attention_check_comes_as_a_check_of_its_own_kind_of_step(client: Client) -> None:
    cast.open_study(sitting={"items": 3, "attention_checks": [READ]})
    person = Person(client).go_to("attention")
    step = person.step
    assert (step["position"], step["total"], step["screen"], step["fields"]) == (0, 0, None, [])
    (check,) = step["checks"]
    assert (check["name"], check["question"]) == ("read", READ["text"])
    assert [option["value"] for option in check["options"]] == ["1", "2", "3"]
    assert set(check) == {"name", "question", "options"} and set(check["options"][0]) == {"value", "text"}
    wrong = next(option["value"] for option in check["options"] if option["text"] == "I did not")
    person.answer(read=wrong)
    assert (person.step["kind"], person.step["position"]) == ("item", 2)
    assert not AttentionAnswer.objects.get().passed


def test_scales_and_multiple_choices_say_what_may_be_sent(client: Client) -> None:
    cast.open_study(blocks=blocks(after=ABOUT))
    person = Person(client).go_to("form")
    person.answer()
    agree, tone, tools = person.step["fields"]
    assert (agree["type"], agree["options"]) == ("likert", ["1", "2", "3", "4", "5"])
    assert agree["labels"] == ["not at all", "", "", "", "fully"]
    assert tone["labels"] == ["calm", "loud"]
    assert (tools["type"], tools["exclusive"]) == ("multiple", ["None", "prefer_not_to_say"])
    assert tools["labels"][-1] == "Prefer not to say"
    for wrong in (["None", "A pen"], [["A pen"]], [{"a": 1}], {"a": 1}):
        refused = person.post(step=person.step["number"], agree="3", tools=wrong)
        assert (refused.status_code, set(error_of(refused)["fields"])) == (422, {"tools"})
    assert set(error_of(person.post(step=person.step["number"], agree=["3"]))["fields"]) == {"agree"}
    assert person.post(step=person.step["number"], agree=3, tools=["A pen"]).status_code == 200
    assert FormAnswer.objects.get(block="about").answers == {"agree": 3, "tone": None, "tools": ["A pen"]}


def test_the_choice_about_ones_data_is_a_field(client: Client) -> None:
    study = cast.open_study(blocks=blocks(debriefing=ASKING))
    person = Person(client).go_to("debriefing")
    field, again = person.step["fields"]
    assert (field["name"], field["type"], field["options"]) == ("my_data", "choice", ["use", "withdraw"])
    assert (again["name"], again["required"], again["options"]) == ("my_data_confirmed", False, ["yes"])
    assert field["labels"] == ["Use my data", "Withdraw my data"] and "cannot bring them back" in field["hint"]
    assert "pay" not in field["hint"]  # of a study that pays nobody
    number = person.step["number"]
    assert person.post(step=number).status_code == 422
    unsure = person.post(step=number, my_data="withdraw")
    assert (unsure.status_code, set(error_of(unsure)["fields"])) == (422, {"my_data_confirmed"})
    assert not Withdrawal.objects.exists()
    person.answer(my_data="withdraw", my_data_confirmed="yes")
    assert (person.step["kind"], person.step["outcome"]) == ("end", "completed")
    assert person.step["code"] == study.completion_code("completed")
    assert person.step["text"].startswith("We have deleted your answers")
    assert person.post(step=number, my_data="use").json() == person.step
    assert Withdrawal.objects.count() == 1 and not DataChoice.objects.exists()


def test_who_is_screened_out_reads_why(client: Client) -> None:
    study = cast.open_study(blocks=blocks(before=SCREENER))
    person = Person(client).go_to("form")
    person.answer(adult="No")
    assert (person.step["outcome"], person.step["code"]) == ("screened_out", study.completion_code("screened_out"))
    assert person.step["text"].startswith("Thank you for your answers.")
    assert Sitting.objects.get().state == "screened_out"


def report(person: Person, **body: Any) -> Any:
    fields = {"position": 1, "screen": "prior", "report": "odd", **body}
    return person.client.post(
        REPORT, fields, content_type="application/json", headers={"X-Sitting-Token": person.token}
    )


def test_a_question_is_reported_and_no_step_is_taken(client: Client) -> None:
    cast.open_study()
    person = Person(client).go_to("item")
    for _ in range(2):
        response = report(person)
        assert (response.status_code, response.json()) == (200, {"noted": True})
    assert QuestionReport.objects.get().text == "odd"
    assert not Response.objects.exists()
    person.answer()
    assert Belief.objects.get().value == 60


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"position": 2}, 409),
        ({"screen": "posterior"}, 409),
        ({"report": ""}, 400),
        ({"report": " \n"}, 422),
        ({"report": "x" * 501}, 422),
        ({"position": "first"}, 400),
        ({"screen": "x" * 41}, 400),
        ({"report": "half a \ud83d"}, 400),
        ({"report": 0.5}, 400),
        ({"screen": 1}, 400),
    ],
)
def test_a_report_that_cannot_be_stored_is_refused(client: Client, body: dict[str, Any], status: int) -> None:
    cast.open_study()
    person = Person(client).go_to("item")
    assert report(person, **body).status_code == status
    assert not QuestionReport.objects.exists()


def test_nobody_reports_without_a_sitting(client: Client) -> None:
    cast.open_study()
    body = {"position": 1, "screen": "prior", "report": "odd"}
    assert client.post(REPORT, body, content_type="application/json").status_code == 403
