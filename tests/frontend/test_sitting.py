"""A respondent's way through the pages, and every way to leave it."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from survey.instruments.belief_update.models import Belief
from survey.models import Assignment, Respondent, Sitting, Study
from survey.services.sittings.expiry import expire_sitting
from survey.services.stages.lifecycle import close_stage
from tests import cast
from tests.frontend.pages import arrive, fields_for, get, go_to, read, send, shown_again

pytestmark = [pytest.mark.django_db, pytest.mark.any_database, pytest.mark.slow]
SITTING = "/s/cast/sitting"


@pytest.fixture
def study() -> Study:
    return cast.open_study(panel=cast.WITH_CODE)


def test_a_respondent_walks_from_the_welcome_to_the_code(client: Client, study: Study) -> None:
    assert "Welcome to the cast." in get(client, "/s/cast/").text
    assert "We ask for your consent." in get(client, "/s/cast/consent").text
    page = arrive(client)
    seen = []
    while page.main["data-kind"] != "end":
        seen.append(page.form.get("data-screen", page.main["data-kind"]))
        page = send(client, page)
    assert seen == ["instructions", "checks", *["prior", "posterior"] * 3, "form", "debriefing"]
    assert page.main["data-outcome"] == "completed"
    assert page.code.strip() == study.completion_code("completed")
    assert Sitting.objects.get().state == Sitting.State.COMPLETE
    assert list(Belief.objects.order_by("pk").values_list("kind", "value")) == [("prior", 60), ("posterior", 70)] * 3
    assert Assignment.objects.filter(state=Assignment.State.COUNTED).count() == 3


def test_the_posterior_shows_evidence_outcome_target_and_prior_in_words(client: Client, study: Study) -> None:
    page = go_to(client, "item", screen="posterior")
    pair = Assignment.objects.get(position=1).slot.item.pair
    assert page.parts["evidence"].split() == pair.evidence.plain.split()
    assert page.parts["target"].split() == pair.target.plain.split()
    assert page.parts["prior"] == "60"
    word = "correctly" if pair.outcome else "incorrectly"
    assert f"answered this question {word}." in page.parts["outcome"]
    assert "Question 1 of 3" in page.text


def test_nothing_that_a_prior_must_not_know_is_on_any_page_before_it(client: Client, study: Study) -> None:
    """No page contains the key, and no evidence or outcome is shown with the prior. Checks bodies and headers."""
    client.get("/s/cast/")
    response = client.post("/s/cast/consent", {"consent": "yes"}, follow=True)
    priors = 0
    while True:
        body = response.content.decode() + repr(response.headers) + repr(client.cookies)
        assert "KEY-" not in body and "REASON-" not in body
        page = read(response.content.decode())
        if page.main["data-kind"] == "end":
            break
        if page.form.get("data-screen") == "prior":
            priors += 1
            pair = Assignment.objects.get(position=priors).slot.item.pair
            assert page.parts["target"].split() == pair.target.plain.split()
            assert pair.evidence.html not in body and pair.evidence.external_id not in body.split('"')
            assert set(page.parts) == {"target"}
            assert 'data-part="outcome"' not in body and "correctly." not in body
        response = client.post(SITTING, fields_for(page), follow=True)
    assert priors == 3


def test_which_check_option_is_right_cannot_be_read_from_the_page(client: Client, study: Study) -> None:
    values = set()
    for _visitor in range(12):
        visitor = Client()
        page = send(visitor, arrive(visitor))
        values.add(page.value_of("right one"))
        Sitting.objects.all().update(state=Sitting.State.TURNED_AWAY)  # make room for the next one
    assert values <= {"1", "2", "3"} and len(values) > 1


def test_a_get_writes_nothing(client: Client, study: Study) -> None:
    go_to(client, "item", screen="posterior")
    with CaptureQueriesContext(connection) as queries:
        for path in ("/s/cast/", "/s/cast/consent", SITTING, "/s/cast/resume", "/s/cast/?PROLIFIC_PID=a", "/"):
            client.get(path)
        Client().get("/s/cast/")
    writing = [
        q["sql"] for q in queries if not q["sql"].upper().startswith(("SELECT", "BEGIN", "SAVEPOINT", "RELEASE"))
    ]
    assert writing == []


def test_reload_and_back_show_where_the_sitting_is(client: Client, study: Study) -> None:
    page = go_to(client, "item", screen="posterior")
    again = get(client, SITTING)
    assert (again.main, again.parts) == (page.main, page.parts)
    assert client.get(SITTING).headers["Cache-Control"].find("no-store") >= 0


def test_a_form_sent_twice_stores_one_answer(client: Client, study: Study) -> None:
    page = go_to(client, "item", screen="prior")
    first = send(client, page)
    second = send(client, page, value="99")
    assert first.main == second.main
    assert list(Belief.objects.values_list("value", flat=True)) == [60]


def test_a_second_tab_ends_where_the_first_one_is(client: Client, study: Study) -> None:
    old_tab = go_to(client, "item", screen="prior")
    posterior = send(client, old_tab)
    nxt = send(client, posterior)
    assert send(client, old_tab, value="1").main == nxt.main
    assert Belief.objects.count() == 2


def test_consenting_in_two_tabs_makes_one_sitting(client: Client, study: Study) -> None:
    client.get("/s/cast/")
    for _tab in range(2):
        assert client.post("/s/cast/consent", {"consent": "yes"}).status_code == 303
    assert Sitting.objects.count() == 1


@pytest.mark.parametrize("value", ["-1", "101", "sixty", "", "60.5", "1e2", "9" * 5000])
def test_a_number_that_is_none_is_refused_and_kept_for_correction(client: Client, study: Study, value: str) -> None:
    page = go_to(client, "item", screen="prior")
    body = shown_again(client, client.post(SITTING, {**fields_for(page), "value": value})).content.decode()
    assert 'class="error-summary"' in body and 'href="#id_value"' in body and 'id="id_value_error"' in body
    assert "There is a problem" in body
    (entered,) = [i for i in read(body).inputs if i["name"] == "value"]
    assert entered.get("value", "") == value
    assert entered["aria-describedby"] == "id_value_error"
    assert not Belief.objects.exists()


def test_what_came_back_survives_a_reload_and_goes_with_the_next_answer(client: Client, study: Study) -> None:
    page = go_to(client, "item", screen="prior")
    first = shown_again(client, client.post(SITTING, {**fields_for(page), "value": "1000001"}))
    again = client.get(SITTING)
    for response in (first, again):
        assert "The highest answer is 100." in response.content.decode()
    held = client.cookies["hunch_returned"]
    assert held["httponly"] and held["path"] == SITTING and "1000001" not in held.value
    accepted = client.post(SITTING, fields_for(read(again.content.decode())))
    assert accepted.cookies["hunch_returned"].value == ""
    assert "There is a problem" not in client.get(SITTING).content.decode()


def test_what_came_back_is_shown_for_its_own_step_and_to_its_own_person_alone(client: Client, study: Study) -> None:
    page = go_to(client, "item", screen="prior")
    client.post(SITTING, {**fields_for(page), "value": "101"})
    held = client.cookies["hunch_returned"].value
    send(client, page)
    client.cookies["hunch_returned"] = held
    assert "There is a problem" not in client.get(SITTING).content.decode()
    other = Client()
    go_to(other, "item", screen="prior")
    for spoilt in (held, held[:-3], "x"):
        other.cookies["hunch_returned"] = spoilt
        assert "There is a problem" not in other.get(SITTING).content.decode()


def test_what_is_too_long_for_a_cookie_comes_back_in_the_reply(client: Client, study: Study) -> None:
    page = go_to(client, "form")
    remark = "".join(chr(0x4E00 + 7 * place) for place in range(1900))  # Text that cannot be packed.
    response = client.post(SITTING, {**page.hidden, "age": "7", "use": "often", "remark": remark})
    assert response.status_code == 422 and "hunch_returned" not in response.cookies
    assert remark in response.content.decode() and "from 18 to" in response.content.decode()


def test_a_check_left_open_is_refused_and_the_other_one_stays_chosen(client: Client, study: Study) -> None:
    page = send(client, arrive(client))
    response = client.post(SITTING, {**page.hidden, "first_check": "2"})
    refused = read(shown_again(client, response).content.decode())
    assert [(i["name"], i["value"]) for i in refused.inputs if "checked" in i] == [("first_check", "2")]
    assert Sitting.objects.get().check_attempts.count() == 0


def test_a_form_field_out_of_range_is_refused_with_what_was_entered(client: Client, study: Study) -> None:
    page = go_to(client, "form")
    response = client.post(SITTING, {**page.hidden, "age": "7", "use": "often", "remark": "<b>hm</b>"})
    response = shown_again(client, response)
    body = response.content.decode()
    assert 'value="7"' in body and "&lt;b&gt;hm&lt;/b&gt;" in body and "from 18 to 99" in body


def test_a_step_that_was_not_reached_gets_a_page_that_leads_on(client: Client, study: Study) -> None:
    page = go_to(client, "item", screen="prior")
    response = client.post(SITTING, {**fields_for(page), "step": int(page.hidden["step"]) + 1})
    assert response.status_code == 409
    assert 'data-refused="out_of_order"' in response.content.decode()
    assert SITTING in response.content.decode()
    assert not Belief.objects.exists()


def test_a_posterior_before_its_prior_is_refused(client: Client, study: Study) -> None:
    page = go_to(client, "item", screen="prior")
    response = client.post(SITTING, {**fields_for(page), "screen": "posterior"})
    assert response.status_code == 409
    assert not Belief.objects.exists()


@pytest.mark.parametrize("step", ["", "-1", "1.5", "x", "１", "9" * 10, "<script>"])
def test_a_step_that_is_no_number_gets_a_page_of_its_own(client: Client, study: Study, step: str) -> None:
    page = go_to(client, "item", screen="prior")
    response = client.post(SITTING, {**fields_for(page), "step": step})
    assert response.status_code == 400
    assert "<h1>" in response.content.decode()
    assert not Belief.objects.exists()


def test_a_sitting_needs_its_cookie(client: Client, study: Study) -> None:
    response = client.get(SITTING)
    assert response.status_code == 403
    assert "/s/cast/" in response.content.decode()


@pytest.mark.parametrize("token", ["", "x", "0" * 32, "0" * 32 + ":forged"])
def test_a_forged_cookie_opens_nothing(client: Client, study: Study, token: str) -> None:
    client.cookies["hunch_sitting"] = token
    assert client.get(SITTING).status_code == 403
    assert client.post(SITTING, {"step": "1"}).status_code == 403


def test_another_studys_sitting_opens_nothing(client: Client, study: Study) -> None:
    foreign = cast.begin(cast.open_study(slug="other"))
    client.cookies["hunch_sitting"] = foreign.token
    assert client.get(SITTING).status_code == 403


def test_two_failed_attempts_end_with_their_own_code_and_no_blame(client: Client, study: Study) -> None:
    page = send(client, arrive(client))
    wrong = {"first_check": page.value_of("wrong one")}
    page = send(client, page, **wrong)
    assert (page.main["data-kind"], "once more" in page.text) == ("checks", True)
    page = send(client, page, **wrong)
    assert page.main["data-outcome"] == "failed_checks"
    assert page.code.strip() == study.completion_code("failed_checks")
    assert study.completion_code("completed") not in page.text
    assert get(client, SITTING).main == page.main
    assert not Assignment.objects.exists()


def test_the_hint_of_a_failed_check_is_shown_at_the_second_attempt(client: Client, study: Study) -> None:
    page = send(client, arrive(client))
    page = send(client, page, second_check=page.value_of("wrong"))
    assert "Think again." in page.text


def test_an_expired_sitting_goes_on_where_it_was(client: Client, study: Study) -> None:
    page = go_to(client, "item", screen="posterior")
    later = timezone.now() + timedelta(days=1)
    expire_sitting(Sitting.objects.get().pk, now=later)
    assert Sitting.objects.get().state == Sitting.State.EXPIRED
    assert get(client, SITTING).main == page.main
    page = send(client, page)
    assert page.form["data-screen"] == "prior"
    assert Sitting.objects.get().state == Sitting.State.LIVE


def test_somebody_inside_finishes_after_the_stage_was_closed(client: Client, study: Study) -> None:
    page = go_to(client, "item", screen="posterior")
    close_stage(study.stages.get(index=1))
    while page.main["data-kind"] != "end":
        page = send(client, page)
    assert page.main["data-outcome"] == "completed"


def test_every_tab_shows_the_end_once_it_is_reached(client: Client, study: Study) -> None:
    old_tab = go_to(client, "item", screen="prior")
    page = old_tab
    while page.main["data-kind"] != "end":
        page = send(client, page)
    assert send(client, old_tab, value="5").code == page.code
    assert get(client, "/s/cast/").form["action"] == "/s/cast/resume"


def test_answers_are_stored_while_the_broker_is_down(client: Client, study: Study, settings: object) -> None:
    settings.CELERY_BROKER_URL = "redis://127.0.0.1:1/0"  # type: ignore[attr-defined]
    page = go_to(client, "item", screen="prior")
    assert send(client, page).form["data-screen"] == "posterior"
    assert Belief.objects.count() == 1


def test_what_the_browser_measured_is_stored_and_nothing_else(client: Client, study: Study) -> None:
    page = go_to(client, "item", screen="prior")
    send(client, page, client_shown_ms="12", client_changes="2", client_first_value="x", client_other="9")
    assert Assignment.objects.get(position=1).responses.get().client == {"shown_ms": 12, "changes": 2}


def test_markup_of_strangers_is_shown_as_text() -> None:
    """In questions, options, and every text of the study file."""
    script = "<script>alert(1)</script>"
    blocks = [dict(block) for block in cast.BASE["blocks"]]
    for block in blocks:
        block["title"] = f"t {script}"
        if "text" in block:
            block["text"] = f"x {script}\n\n- {script}"
    blocks[2]["checks"] = [{"name": "only", "question": script, "options": [f"right {script}", "no"], "hint": script}]
    made = cast.bank(40, name="scripts", texts=tuple(f"<b>{script} {n}</b><br><img src=x>" for n in range(40)))
    study = cast.open_study(
        slug="scripts",
        bank=made.name,
        title=script,
        blocks=blocks,
        texts={"welcome": script, "contact": script},
        candidates={"size": 200},
    )
    client = Client()
    client.get(f"/s/{study.slug}/")
    responses = [client.get("/s/scripts/"), client.get("/s/scripts/consent")]
    responses.append(client.post("/s/scripts/consent", {"consent": "yes"}, follow=True))
    while (page := read(responses[-1].content.decode())).main["data-kind"] != "end":
        fields = fields_for(page) if page.main["data-kind"] != "checks" else dict(page.hidden)
        if page.main["data-kind"] == "checks":
            fields["only"] = page.value_of(f"right {script}")
        responses.append(client.post("/s/scripts/sitting", fields, follow=True))
    assert len(responses) > 8
    for response in responses:
        body = response.content.decode()
        assert script not in body and "<img" not in body
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in body


def test_no_page_weighs_more_than_fifty_kilobytes_all_in(client: Client, study: Study) -> None:
    static = sum(
        len(b"".join(client.get(f"/static/frontend/{name}").streaming_content))  # type: ignore[attr-defined]
        for name in ("hunch.css", "timing.js", "icon.svg")
    )
    go_to(client, "item", screen="posterior")
    assert static + len(client.get(SITTING).content) < 50_000


def test_only_a_signed_header_marks_a_simulated_respondent(study: Study) -> None:
    from survey.services.sittings.entry import simulated_mark

    for mark in (simulated_mark(), "simulator", "simulator:forged"):
        visitor = Client(headers={"X-Hunch-Simulated": mark})
        arrive(visitor)
    assert list(Respondent.objects.order_by("pk").values_list("is_simulated", flat=True)) == [True, False, False]


def test_a_level_of_a_condition_changes_its_texts(client: Client) -> None:
    cast.open_study(
        slug="framed",
        conditions=[
            {
                "factor": "framing",
                "levels": ["ai", "human"],
                "texts": {"ai": {"instructions": "About AI."}, "human": {"instructions": "About people."}},
            }
        ],
    )
    page = arrive(client, "framed")
    level = Sitting.objects.get().levels()["framing"]
    assert {"ai": "About AI.", "human": "About people."}[level] in page.text


def test_the_last_place_taken_meanwhile_is_reported_with_its_own_code(client: Client, study: Study) -> None:
    page = send(client, arrive(client))
    study.stages.get(index=1).booklets.update(claimed_at=timezone.now())
    page = send(client, page)
    assert page.main["data-outcome"] == "study_full"
    assert page.code.strip() == study.completion_code("study_full")


def test_no_code_is_shown_where_nobody_asks_for_one(client: Client) -> None:
    cast.open_study()
    page = go_to(client, "end")
    assert page.main["data-outcome"] == "completed" and page.code == ""
    assert "completion code" not in page.text and "button" not in page.tags


def test_the_code_has_a_button_that_copies_it(client: Client, study: Study) -> None:
    page = go_to(client, "end")
    body = client.get(SITTING).content.decode()
    assert "frontend/copy.js" in body and 'data-copy="Copied" hidden>Copy the code</button>' in body
    assert page.code == study.completion_code("completed")
