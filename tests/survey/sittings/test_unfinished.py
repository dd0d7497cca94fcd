"""Assignments that count though their person left, pages that only show something, and both at once.

The instrument is the toy of tests/packages: three guesses, of which two are enough, then a page of feedback.
"""

import csv
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.utils import timezone
from toy_instrument.instrument import Toy
from toy_instrument.models import Guess

from survey.models import Assignment, Booklet, Response, Sitting, SnapshotAnswer, Stage, Study
from survey.services.results.estimates.outcome_table import outcome_table
from survey.services.results.export import files
from survey.services.sittings import expiry
from survey.services.sittings.answering import advance
from survey.services.sittings.capacity import slots_without_holder
from survey.services.sittings.withdrawal import withdraw
from survey.services.stages import jobs, lifecycle
from survey.services.stages.verifying import verify_stage
from survey.simulator import Crowd
from tests import cast
from tests.frontend.pages import arrive, read

from .test_concurrency import no_errors, together

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
SITTING, STEP = "/s/toy/sitting", "/api/v1/sitting/"
BLOCKS = [block for block in cast.BLOCKS if block["kind"] != "checks"]


def open_toy(**overrides: Any) -> Stage:
    config = {"instrument": {"kind": "toy"}, "candidates": {"size": 40}, "blocks": BLOCKS, **overrides}
    return cast.open_stage("toy", **config)


def guess(visitor: cast.Visitor, *texts: str) -> cast.Visitor:
    for text in texts:
        visitor.post(guess=text)
    return visitor


def exported(study: Study, folder: Path) -> list[dict[str, str]]:
    files.write_export(study, folder)
    with (folder / "answers.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def whole_item(visitor: cast.Visitor) -> cast.Visitor:
    guess(visitor, "what", "is", "the")
    visitor.post()
    return visitor


# What counts unfinished


def test_a_begun_item_counts_where_the_instrument_says_so_and_is_not_dealt_again() -> None:
    stage = open_toy()
    visitor = guess(cast.Visitor(stage.study).to_items(), "what", "is").expire()
    assert visitor.states() == ["counted", "released", "released"]
    counted = Assignment.objects.get(state="counted")
    assert counted.completed_at == visitor.sitting.expired_at and counted.responses.count() == 2
    assert counted.slot_id not in set(slots_without_holder(stage).values_list("pk", flat=True))
    assert len(slots_without_holder(stage)) == 2


def test_one_guess_is_too_little_and_is_released() -> None:
    visitor = guess(cast.Visitor(open_toy().study).to_items(), "what").expire()
    assert visitor.states() == ["released"] * 3
    assert guess(visitor, "is").step.screen.name == "guess_3"


def test_who_comes_back_goes_on_with_the_next_item() -> None:
    visitor = guess(cast.Visitor(open_toy().study).to_items(), "what", "is").expire()
    step = visitor.step
    assert (step.position, step.screen.name) == (2, "guess_1")
    whole_item(visitor)
    assert visitor.states() == ["counted", "counted", "live"]
    assert Guess.objects.count() == 5


def test_a_page_of_what_counted_unfinished_is_not_taken_for_one_of_the_next_item() -> None:
    """The next item's screen has the same name; the page of before was open in another tab."""
    visitor = guess(cast.Visitor(open_toy().study).to_items(), "what", "is")
    number = visitor.step.number
    visitor.expire()
    after = advance(sitting=visitor.sitting, step=number, data={"guess": "late"})
    assert (after.position, after.screen.name, after.number) == (2, "guess_1", number + 1)
    assert Guess.objects.count() == 2


def test_who_left_in_the_last_item_comes_back_to_what_is_behind_the_items() -> None:
    visitor = cast.Visitor(open_toy().study).to_items()
    whole_item(whole_item(visitor))
    guess(visitor, "what", "is").expire()
    assert (visitor.states(), visitor.sitting.state) == (["counted"] * 3, "expired")
    step = visitor.step
    assert (step.kind, step.block.title) == ("instructions", "Welcome back")
    assert visitor.post().kind == "end" and visitor.reload().state == "complete"


def test_who_withdraws_after_the_last_item_counted_unfinished_has_given_all_and_is_paid() -> None:
    visitor = cast.Visitor(open_toy().study).to_items()
    whole_item(whole_item(visitor))
    guess(visitor, "what", "is").expire()
    assert visitor.step.block.title == "Welcome back"
    done = withdraw(respondent=visitor.sitting.respondent, now=timezone.now())
    assert (visitor.reload().state, visitor.states()) == ("complete", ["withdrawn"] * 3)
    assert visitor.sitting.ended_at == done.at
    assert visitor.step.code == visitor.code_for("completed")


def test_who_withdraws_with_an_item_still_to_answer_has_not() -> None:
    visitor = cast.Visitor(open_toy().study).to_items()
    guess(whole_item(visitor), "what", "is").expire()
    assert visitor.states() == ["counted", "counted", "released"]
    withdraw(respondent=visitor.sitting.respondent, now=timezone.now())
    assert visitor.reload().state == "expired" and visitor.step.code == visitor.code_for("no_consent")


def test_where_one_stage_cannot_be_looked_after_the_others_are(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, admin_client: Any
) -> None:
    broken, fine = open_toy(), cast.open_stage("fine")
    visitors = [cast.Visitor(stage.study).to_items() for stage in (broken, broken, fine)]
    for visitor in visitors[:2]:
        visitor.post(guess="what")
    Sitting.objects.update(last_seen_at=timezone.now() - timedelta(hours=2))
    counts = Toy.counts_unfinished

    def sometimes(self: Toy, assignment: Any) -> bool:
        if assignment.sitting_id == visitors[0].sitting.pk:
            raise KeyError("what somebody typed")
        return counts(self, assignment)

    monkeypatch.setattr(Toy, "counts_unfinished", sometimes)
    assert expiry.expire_sittings() == 2
    assert [visitor.reload().state for visitor in visitors] == ["live", "expired", "expired"]
    assert Booklet.objects.filter(kind="make_up", stage=broken).exists()
    assert Booklet.objects.filter(kind="make_up", stage=fine).exists()
    broken.refresh_from_db()
    assert broken.upkeep_error == "KeyError; the worker's log says where it was raised"
    assert f"sitting {visitors[0].sitting.pk} could not expire" in caplog.text
    body = admin_client.get(f"/admin/survey/study/{broken.study_id}/change/").content.decode()
    assert "Stage 1: silent people could not all expire" in body
    monkeypatch.undo()
    assert expiry.expire_sittings() == 1
    broken.refresh_from_db()
    assert broken.upkeep_error == ""


def test_it_is_in_the_snapshot_the_export_and_the_check_like_any_other(tmp_path: Path) -> None:
    stage = open_toy(stages=[{"sittings": 1}])
    visitor = cast.Visitor(stage.study).to_items()
    whole_item(whole_item(visitor))
    guess(visitor, "what", "is").expire()
    estimated = outcome_table(stage)
    assert estimated is not None and estimated.answers == 3
    jobs.run_inline(lifecycle.close_stage(stage))
    assert SnapshotAnswer.objects.filter(stage=stage).count() == 3
    assert not verify_stage(Stage.objects.select_related("study__bank").get(pk=stage.pk)).differences
    assert [row["guess_3"] for row in exported(stage.study, tmp_path)].count("") == 1


def test_closing_at_once_counts_it_too() -> None:
    stage = open_toy()
    visitor = guess(cast.Visitor(stage.study).to_items(), "what", "is")
    lifecycle.close_stage(stage, now=True)
    assert visitor.states() == ["counted", "released", "released"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.postgresql
@pytest.mark.parametrize("_time", range(4))
def test_an_answer_in_flight_and_an_expiry_that_counts_leave_one_truth(_time: int) -> None:
    stage = open_toy()
    visitor = guess(cast.Visitor(stage.study).to_items(), "what", "is")
    Sitting.objects.update(last_seen_at=timezone.now() - timedelta(hours=2))
    step, limit = visitor.step.number, timezone.now() - timedelta(minutes=30)
    results = together(
        lambda: advance(sitting=visitor.sitting, step=step, data={"guess": "late"}),
        lambda: expiry.expire_sitting(visitor.sitting.pk, now=timezone.now(), seen_before=limit),
    )
    first = visitor.sitting.assignments.get(position=1)
    no_errors(results)
    if results[1]:  # The expiry was first: the page that was sent is of an item that is over.
        assert (results[0].position, results[0].screen.name) == (2, "guess_1")
        assert (first.state, first.responses.count()) == ("counted", 2)
        assert visitor.reload().state == "expired"
    else:
        assert (first.state, first.responses.count()) == ("live", 3)
        assert visitor.reload().state == "live"
    held = Assignment.objects.filter(state__in=Assignment.HOLDING).values_list("slot_id", flat=True)
    assert len(set(held)) == len(held)
    expiry.deal_make_up_booklets(stage)
    dealt = Booklet.objects.filter(kind=Booklet.Kind.MAKE_UP, slots=first.slot_id)
    assert not dealt.exists()


# Pages that ask nothing


def test_a_page_of_feedback_has_a_button_and_no_field(client: Client) -> None:
    open_toy()
    page = arrive(client, slug="toy")
    for text in ("what", "is", "zebra"):
        page = read(client.post(SITTING, {**page.hidden, "guess": text}, follow=True).content.decode())
    assert page.form["data-screen"] == "feedback" and page.parts["points"] == "2"
    html = client.get(SITTING).content.decode()
    assert 'name="guess"' not in html and ">Continue<" in html
    sent = dict(page.hidden)
    for _click in range(2):
        page = read(client.post(SITTING, sent, follow=True).content.decode())
        assert page.form["data-screen"] == "guess_1"
    assert Response.objects.filter(screen="feedback").count() == 1
    assert Assignment.objects.filter(state="counted").count() == 1


def test_the_api_gives_it_no_fields_and_takes_it_without_any(client: Client) -> None:
    open_toy()
    begun = client.post("/api/v1/studies/toy/sittings/", {"consent": True}, content_type="application/json").json()
    step = begun["step"]

    def answer(**data: Any) -> Any:
        body = {"step": step["number"], **data}
        response = client.post(STEP, body, content_type="application/json", headers={"X-Sitting-Token": begun["token"]})
        assert response.status_code == 200, response.content
        return response.json()

    for text in ("what", "is", "zebra"):
        assert [field["name"] for field in step["screen"]["fields"]] == ["guess"]
        step = answer(guess=text)
    assert (step["screen"]["name"], step["screen"]["fields"]) == ("feedback", [])
    assert set(step["screen"]["parts"]) == {"question", "points"}
    step = answer(guess="ignored")
    assert (step["position"], step["screen"]["name"]) == (2, "guess_1")
    assert Guess.objects.count() == 3


def test_who_leaves_at_the_feedback_comes_back_to_it_or_the_item_counts() -> None:
    visitor = guess(cast.Visitor(open_toy().study).to_items(), "what", "is", "the").expire()
    assert visitor.states() == ["counted", "released", "released"]
    assert visitor.step.position == 2


def test_the_export_lists_the_page_that_was_read(tmp_path: Path) -> None:
    stage = open_toy()
    whole_item(cast.Visitor(stage.study).to_items())
    (row,) = [row for row in exported(stage.study, tmp_path) if row["guess_1"]]
    screens = [response["screen"] for response in json.loads(row["responses"])]
    assert screens == ["guess_1", "guess_2", "guess_3", "feedback"]


@pytest.mark.parametrize("through", ["pages", "api"])
def test_simulated_people_press_continue(through: str, live_server: Any) -> None:
    stage = open_toy(stages=[{"sittings": 2}])
    crowd = Crowd(study=stage.study, respondents=2, base_url=live_server.url, through=through)
    assert crowd.run() == {"completed": 2}
    assert Response.objects.filter(screen="feedback").count() == 6


@pytest.mark.thorough
@pytest.mark.any_database
def test_it_is_among_the_printed_screens(tmp_path: Path) -> None:
    cast.small_study("toy", instrument={"kind": "toy"}, candidates={"size": 40}, blocks=BLOCKS)
    call_command("screens", "toy", out=tmp_path)
    assert [path.name for path in tmp_path.rglob("*feedback*.html")]
