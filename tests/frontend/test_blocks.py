"""The pages of attention checks, scales, screening out, the choice about one's data, and reports on questions."""

from types import SimpleNamespace
from typing import Any

import pytest
from django import forms
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from frontend import fields
from survey.instruments.belief_update.models import Belief
from survey.models import AttentionAnswer, DataChoice, FormAnswer, QuestionReport, Response, Sitting, Study, Withdrawal
from survey.simulator.page import Page as SimulatedPage
from tests import cast
from tests.frontend.pages import arrive, fields_for, get, go_to, read, send, shown_again

pytestmark = [pytest.mark.django_db, pytest.mark.any_database, pytest.mark.slow]
SITTING, REPORT = "/s/cast/sitting", "/s/cast/report"
READ = {
    "name": "read",
    "after_item": 1,
    "kind": "instruction",
    "text": 'Choose "I read this" <b>here</b>.',
    "options": ["I read this", "I did not", "<i>Neither</i>"],
}
SCREENER = {
    "kind": "form",
    "name": "screener",
    "fields": [
        {
            "name": "adult",
            "label": "Are you 18 or older?",
            "kind": "choice",
            "options": ["Yes", "No"],
            "screen_out": ["No"],
            "required": True,
        }
    ],
}
ABOUT = {
    "kind": "form",
    "name": "about",
    "fields": [
        {"name": "agree", "label": "How far?", "kind": "likert", "points": 5, "labels": ["not at all", "fully"]},
        {"name": "tone", "label": "Tone?", "kind": "likert", "points": 2, "labels": ["calm", "loud"]},
        {
            "name": "tools",
            "label": "Which tools?",
            "kind": "multiple",
            "options": ["A pen", "<b>Paper</b>", "None"],
            "exclusive": ["None"],
            "prefer_not_to_say": True,
        },
    ],
}
ASKING = {"kind": "debriefing", "text": "It was about expectations.", "asks_to_use": True}


def blocks(**at: dict[str, Any]) -> list[dict[str, Any]]:
    """The cast's blocks with more blocks before or after the items, or instead of the debriefing."""
    consent, instructions, checks, items, form, debriefing, end = cast.BASE["blocks"]
    before, after = [at[name] for name in ("before",) if name in at], [at[name] for name in ("after",) if name in at]
    return [consent, instructions, *before, checks, items, form, *after, at.get("debriefing", debriefing), end]


def post(client: Client, page: Any, address: str = SITTING, **data: Any) -> Any:
    return client.post(address, {**page.hidden, **data})


def test_an_attention_check_looks_like_a_question_and_is_counted_like_one(client: Client) -> None:
    cast.open_study(sitting={"items": 3, "attention_checks": [READ]})
    page = go_to(client, "item", screen="posterior")
    page = send(client, page)
    assert page.main["data-kind"] == "attention"
    assert "Question 2 of 3" in page.text and page.tags.count("h1") == 1
    assert 'Choose "I read this" <b>here</b>.' in page.text and "<i>Neither</i>" in page.text
    response = post(client, page, read=page.value_of("I did not"))
    assert (response.status_code, response.headers["Location"]) == (303, SITTING)
    assert "Question 2 of 3" in get(client, SITTING).text
    assert not AttentionAnswer.objects.get().passed


def test_an_attention_check_without_an_answer_is_shown_again_with_what_to_do(client: Client) -> None:
    cast.open_study(sitting={"items": 3, "attention_checks": [READ]})
    page = go_to(client, "attention")
    response = shown_again(client, post(client, page))
    assert "Choose one of the answers." in response.content.decode()
    assert not AttentionAnswer.objects.exists()


def test_an_attention_checks_page_says_nothing_of_which_answer_is_right(client: Client) -> None:
    cast.open_study(sitting={"items": 3, "attention_checks": [READ]})
    page = go_to(client, "attention")
    assert sorted(field["value"] for field in page.inputs if field["type"] == "radio") == ["1", "2", "3"]


def test_a_scale_names_its_ends_and_several_boxes_can_be_checked(client: Client) -> None:
    cast.open_study(blocks=blocks(after=ABOUT))
    page = send(client, go_to(client, "form"))
    assert page.labels["id_agree_1"] == "1: not at all" and page.labels["id_agree_5"] == "5: fully"
    assert page.labels["id_agree_3"] == "3"
    assert [page.labels[f"id_tone_{place}"] for place in (1, 2)] == ["calm", "loud"]
    boxes = [field for field in page.inputs if field["type"] == "checkbox"]
    assert [box["value"] for box in boxes] == ["A pen", "<b>Paper</b>", "None", "prefer_not_to_say"]
    assert "Prefer not to say" in page.text
    refused = shown_again(client, post(client, page, agree="4", tools=["A pen", "None"]))
    again = refused.content.decode()
    assert "“None” does not go together" in again
    assert 'href="#id_tools_1"' in again
    checked = [field for field in read(again).inputs if "checked" in field]
    assert [field["value"] for field in checked] == ["4", "A pen", "None"]
    post(client, page, agree="4", tone="1", tools=["<b>Paper</b>", "A pen"])
    assert FormAnswer.objects.get(block="about").answers == {"agree": 4, "tone": 1, "tools": ["A pen", "<b>Paper</b>"]}


@pytest.mark.thorough
@pytest.mark.parametrize(("language", "words"), [("en", "Your pay is unaffected"), ("de", "Ihre Bezahlung ändert")])
def test_a_ready_form_speaks_the_studys_language(client: Client, language: str, words: str) -> None:
    cast.open_study(blocks=blocks(after={"kind": "form", "ready": "looked_up"}), texts={"language": language})
    page = send(client, go_to(client, "form"))
    assert words in page.text
    assert {field["value"] for field in page.inputs if field["type"] == "radio"} == {
        *("no", "looked_up", "asked_ai", "both", "prefer_not_to_say")
    }


def test_who_is_screened_out_reads_why_and_gets_the_code_for_it(client: Client) -> None:
    study = cast.open_study(blocks=blocks(before=SCREENER), panel=cast.PROLIFIC)
    ids = {"PROLIFIC_PID": "p", "STUDY_ID": "s", "SESSION_ID": "x"}
    client.get("/s/cast/", ids)
    page = send(client, arrive(client))
    post(client, page, adult="No")
    page = read(get_body(client))
    assert (page.main["data-kind"], page.main["data-outcome"]) == ("end", "screened_out")
    assert page.code.strip() == study.completion_code("screened_out")
    assert "The study ends here" in page.text and "Please return the study on Prolific" in page.text
    assert study.completion_code("completed") not in page.text
    assert Sitting.objects.get().state == "screened_out"


def get_body(client: Client) -> str:
    return client.get(SITTING).content.decode()


# The choice about one's data


def at_choice(client: Client) -> Any:
    cast.open_study(blocks=blocks(debriefing=ASKING), panel=cast.PROLIFIC)
    client.get("/s/cast/", {"PROLIFIC_PID": "p", "STUDY_ID": "s", "SESSION_ID": "x"})
    return go_to(client, "debriefing")


def test_the_choice_has_two_equal_buttons_and_no_other(client: Client) -> None:
    at_choice(client)
    page = SimulatedPage(get_body(client))
    assert page.buttons == {"my_data": ["use", "withdraw"]}
    buttons = [element for element in page.main.walk() if element.tag == "button"]
    assert [button.text for button in buttons] == ["Use my data", "Withdraw my data"]
    assert len({button.attributes.get("class", "") for button in buttons}) == 1
    assert "Your pay is the same, whichever you choose." in page.main.text


def test_withdrawing_ends_with_the_code_for_finishing_and_says_what_was_done(client: Client) -> None:
    page = at_choice(client)
    assert post(client, page, my_data="withdraw", my_data_confirmed="yes").status_code == 303
    end = read(get_body(client))
    assert end.main["data-outcome"] == "completed"
    assert end.code.strip() == Study.objects.get().completion_code("completed")
    assert "We have deleted your answers" in end.text and "Thanks to the cast." not in end.text
    assert "Your pay is the same as with them." in end.text
    assert not Response.objects.exists()
    assert post(client, page, my_data="use").status_code == 303
    assert not DataChoice.objects.exists() and Withdrawal.objects.count() == 1


def test_withdrawing_is_asked_again_and_nothing_is_deleted_before(client: Client) -> None:
    page = at_choice(client)
    response = shown_again(client, post(client, page, my_data="withdraw"))
    again = read(response.content.decode())
    assert Response.objects.exists() and not DataChoice.objects.exists()
    assert (
        "Do you want us to delete all your answers?" in again.text
        and "<title>Please confirm" in response.content.decode()
    )
    assert SimulatedPage(response.content.decode()).buttons == {"my_data_confirmed": ["yes"]}
    assert again.hidden["my_data"] == "withdraw"
    assert "Use my data" not in get(client, SITTING).text, "a reload asks the same"
    assert "Use my data" in get(client, f"{SITTING}?anew=1").text, "the way back leads to the choice"
    assert "Use my data" in get(client, SITTING).text
    shown_again(client, post(client, again, my_data_confirmed="no"))
    assert post(client, again, my_data_confirmed="yes").status_code == 303
    assert not Response.objects.exists() and not DataChoice.objects.exists()


def test_a_choice_that_was_not_made_is_asked_for_again(client: Client) -> None:
    page = at_choice(client)
    response = shown_again(client, post(client, page))
    assert "Choose one of the two answers below." in response.content.decode()
    assert 'href="#id_my_data_1"' in response.content.decode()


# Reports


@pytest.fixture
def at_prior(client: Client) -> Any:
    cast.open_study()
    return go_to(client, "item")


def test_every_screen_of_an_item_and_nothing_else_offers_to_report_the_question(client: Client) -> None:
    cast.open_study(sitting={"items": 1, "attention_checks": [{**READ, "after_item": 1}]})
    page = arrive(client)
    while page.main["data-kind"] != "end":
        offered = "Something is wrong with this question" in page.text
        assert offered == (page.main["data-kind"] == "item"), page.main
        page = send(client, page, **({"read": "1"} if page.main["data-kind"] == "attention" else {}))


def test_a_report_is_noted_and_what_was_entered_stays(client: Client, at_prior: Any) -> None:
    sent = post(client, at_prior, REPORT, value="37", position="1", report="Two <b>options</b> are the same")
    response = shown_again(client, sent)
    page = read(response.content.decode())
    assert "we have noted what you wrote" in page.text
    assert [field["value"] for field in page.inputs if field.get("name") == "value"] == ["37"]
    assert page.hidden["step"] == at_prior.hidden["step"] and page.form["action"] == SITTING
    assert "Two <b>options</b>" not in response.content.decode() + get_body(client)
    assert QuestionReport.objects.get().text == "Two <b>options</b> are the same"
    assert not Belief.objects.exists()
    assert send(client, page, value="37").form["data-screen"] == "posterior"


def test_a_double_click_is_one_report(client: Client, at_prior: Any) -> None:
    for _ in range(2):
        shown_again(client, post(client, at_prior, REPORT, position="1", report="odd"))
    assert QuestionReport.objects.count() == 1


def test_a_remark_that_is_sent_with_continue_is_kept_and_the_answer_too(client: Client, at_prior: Any) -> None:
    send(client, at_prior, value="", report="Two options are the same")  # refused: a number is missing
    page = send(client, at_prior, value="37", report="Two options are the same")
    assert page.form["data-screen"] == "posterior"
    send(client, at_prior, value="37", report="Two options are the same")  # a second click
    stored = QuestionReport.objects.get()
    assert (stored.text, stored.screen, Belief.objects.get().value) == ("Two options are the same", "prior", 37)


def test_spaces_in_the_field_for_a_remark_hold_up_no_answer(client: Client, at_prior: Any) -> None:
    assert send(client, at_prior, value="37", report=" \r\n ").form["data-screen"] == "posterior"
    assert Belief.objects.get().value == 37 and not QuestionReport.objects.exists()


def test_a_remark_that_is_too_long_keeps_what_was_entered(client: Client, at_prior: Any) -> None:
    response = shown_again(client, post(client, at_prior, SITTING, value="37", report="x" * 3000))
    body = response.content.decode()
    assert 'href="#id_report"' in body
    assert [field["value"] for field in read(body).inputs if field.get("name") == "value"] == ["37"]
    assert not QuestionReport.objects.exists() and not Belief.objects.exists()


def test_a_report_without_words_is_asked_for_again_with_the_field_open(client: Client, at_prior: Any) -> None:
    response = shown_again(client, post(client, at_prior, REPORT, value="37", position="1", report=" "))
    body = response.content.decode()
    assert 'class="report" open' in body and 'href="#id_report"' in body
    assert "Please say in a few words what is wrong." in body
    assert [field["value"] for field in read(body).inputs if field.get("name") == "value"] == ["37"]


def test_a_report_from_a_tab_that_was_left_behind_shows_the_step_one_is_at(client: Client, at_prior: Any) -> None:
    send(client, at_prior)
    response = shown_again(client, post(client, at_prior, REPORT, value="99", position="1", report="odd"))
    page = read(response.content.decode())
    assert page.form["data-screen"] == "posterior" and "we have noted" in page.text
    assert "99" not in [field.get("value") for field in page.inputs]
    assert (QuestionReport.objects.get().screen, Belief.objects.get().value) == ("prior", 60)


def test_a_report_on_what_was_not_shown_is_refused(client: Client, at_prior: Any) -> None:
    assert post(client, at_prior, REPORT, position="2", report="odd").status_code == 409
    assert Client().post(REPORT, {"position": "1", "report": "odd"}).status_code == 403
    assert not QuestionReport.objects.exists()


def test_a_get_of_the_reports_address_leads_to_the_question_and_writes_nothing(client: Client, at_prior: Any) -> None:
    with CaptureQueriesContext(connection) as queries:
        response = client.get(REPORT)
    assert (response.status_code, response.headers["Location"]) == (303, SITTING)
    assert not [query for query in queries if not query["sql"].startswith("SELECT")]


# Nothing given after the evidence changes a prior


def test_no_way_back_changes_a_prior(client: Client, at_prior: Any) -> None:
    """By the old page, its back button, a made-up step, another screen's name, a report, and after the next item."""
    token = Sitting.objects.get().token
    posterior = send(client, at_prior, value="20")
    assert get(client, SITTING).form["data-screen"] == "posterior"  # what the back button fetches
    headers = {"X-Sitting-Token": token}

    def tries() -> None:
        client.post(SITTING, {**fields_for(at_prior), "value": "90"})
        client.post(SITTING, {**fields_for(at_prior), "step": posterior.hidden["step"], "value": "90"})
        client.post(SITTING, {**fields_for(at_prior), "step": "999", "value": "90"})
        client.post(REPORT, {**fields_for(at_prior), "value": "90", "position": "1", "report": "odd"})
        for step in (int(at_prior.hidden["step"]), int(posterior.hidden["step"]), 999):
            body = {"step": step, "screen": "prior", "value": 90}
            client.post("/api/v1/sitting/", body, content_type="application/json", headers=headers)
        assert Belief.objects.get(kind="prior", response__assignment__position=1).value == 20

    tries()
    assert not Belief.objects.filter(kind="posterior").exists()
    send(client, posterior)
    tries()
    assert Belief.objects.count() == 2


def test_a_field_that_is_needed_at_times_is_not_marked_as_optional() -> None:
    class Asked(forms.Form):
        optional = forms.CharField(required=False)
        at_times = forms.CharField(required=False)
        always = forms.CharField()
        agreed = forms.BooleanField(required=False)
        point = forms.ChoiceField(choices=[("1", "1"), ("2", "often")], widget=forms.RadioSelect)

    form = Asked({"agreed": "on", "point": "2"})
    form.fields["at_times"].needed_at_times = True  # type: ignore[attr-defined]
    of_form = {bound.name: fields._of_instrument(bound, ["why"]) for bound in form}
    assert [name for name, field in of_form.items() if field.required] == ["at_times", "always", "point"]
    assert {name: field.kind for name, field in of_form.items()} == {
        "optional": "widget", "at_times": "widget", "always": "widget", "agreed": "tick", "point": "radio",
    }  # fmt: skip
    assert [(option.value, option.text, option.chosen) for option in of_form["point"].options] == [
        ("1", "1", False), ("2", "often", True),
    ]  # fmt: skip
    form.fields["point"].widget.is_scale = True  # type: ignore[attr-defined]
    scale = fields._of_instrument(form["point"], [])
    assert (scale.kind, [option.text for option in scale.options]) == ("scale", ["", "often"])
    assert of_form["agreed"].options[0].chosen and of_form["always"].errors == ["why"]


@pytest.mark.parametrize("paid", [True, False])
def test_who_is_sure_about_withdrawing_reads_of_pay_where_they_are_paid(paid: bool) -> None:
    step: Any = SimpleNamespace(paid=paid)
    again = fields._use_or_withdraw(step, {"my_data_confirmed": ["why"]})
    first = fields._use_or_withdraw(step, {"my_data": ["why"]})
    assert ("We also keep what you are owed" in again.hint) is paid and again.errors == ()
    assert ("Your pay is the same" in first.hint) is paid
    assert [option.chosen for option in (*first.options, *again.options)] == [False] * 3
