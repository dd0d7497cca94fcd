"""The practice item: its screens, what is stored of it, that it counts for nothing; by services, pages and API."""

import copy
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client

from survey.contracts import instruments
from survey.exceptions import FieldErrors, FileErrors, OutOfOrder
from survey.instruments.belief_update.models import Belief, Explanation, TargetAnswer
from survey.models import Assignment, PracticeAnswer, Response, Sitting, Study
from survey.services.banks.importing import load_starter_bank
from survey.services.results.export import contents
from survey.services.sittings.answering import advance
from survey.services.sittings.flow import Step, current_step
from survey.services.studies import amending
from survey.simulator import Crowd
from survey.simulator.page import Page
from tests import cast
from tests.frontend.pages import arrive, read

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
ROOT = Path(__file__).parents[3]
SITTING, STEP = "/s/cast/sitting", "/api/v1/sitting/"
EXAMPLE = {"target": "<b>Which is heavier?</b>", "evidence": "How many minutes?", "outcome": "correct"}


def blocks(**practice: Any) -> list[dict[str, Any]]:
    made = copy.deepcopy(cast.BASE["blocks"])
    made.insert(2, {"kind": "practice", "text": "Try it.", "example": EXAMPLE, **practice})
    return made


def open_study(**options: Any) -> Study:
    return cast.open_study(blocks=blocks(), instrument={"kind": "belief_update", "options": options})


def at_practice(study: Study) -> Sitting:
    sitting = cast.begin(study)
    cast.walk(sitting, until="practice")
    return sitting


def step_of(sitting: Sitting) -> Step:
    sitting.refresh_from_db()
    return current_step(sitting)


def post(sitting: Sitting, **data: Any) -> Step:
    return advance(sitting=sitting, step=step_of(sitting).number, data=data)


def refusals(**overrides: Any) -> str:
    with pytest.raises(FileErrors) as refusal:
        cast.study(**overrides)
    return "\n".join(refusal.value.lines)


def test_the_instruments_own_screens_show_the_example_and_then_how_they_work() -> None:
    sitting = at_practice(open_study())
    step = step_of(sitting)
    assert step.screen is not None and step.text == "Try it." and step.feedback == ()
    assert step.screen.name == "prior" and step.screen.parts["target"]["value"] == EXAMPLE["target"]
    assert EXAMPLE["evidence"] not in json.dumps(step.screen.content())
    step = post(sitting, value="60")
    assert step.screen is not None and step.screen.name == "posterior"
    assert step.screen.parts["evidence"]["value"] == EXAMPLE["evidence"]
    assert step.screen.parts["outcome"]["value"] == "correct" and step.screen.parts["prior"]["value"] == 60
    step = post(sitting, direction="higher", value="75")
    assert (step.kind, step.screen) == ("practice", None)
    assert step.feedback == ("On the first page you entered 60 %, and on the second page 75 %.",)
    assert post(sitting).kind == "checks"


def test_it_says_what_was_kept_and_never_whether_that_was_right() -> None:
    study = open_study()
    for direction, value in (("same", ""), ("lower", "1")):
        sitting = at_practice(study)
        post(sitting, value="60")
        (sentence,) = post(sitting, direction=direction, value=value).feedback
        assert "60 %" in sentence and not any(word in sentence for word in ("right", "wrong", "correct", "good"))


def test_it_counts_for_nothing_and_stands_apart() -> None:
    sitting = at_practice(open_study())
    post(sitting, value="60", value_by="track", value_first="50", value_changes="2")
    post(sitting, direction="same")
    assert not Assignment.objects.exists() and not Response.objects.exists() and not Belief.objects.exists()
    first, second = PracticeAnswer.objects.all()
    assert (first.number, first.screen, first.data["value"], first.data["entered_by"]) == (1, "prior", 60, "track")
    assert (second.number, second.screen, second.data["direction"]) == (2, "posterior", "same")


def test_a_refused_answer_and_a_repeated_one_store_nothing() -> None:
    sitting = at_practice(open_study())
    number = step_of(sitting).number
    with pytest.raises(FieldErrors):
        post(sitting, value="101")
    assert not PracticeAnswer.objects.exists()
    for value in ("60", "90"):
        advance(sitting=sitting, step=number, data={"value": value})
    assert [row.data["value"] for row in PracticeAnswer.objects.all()] == [60]
    with pytest.raises(OutOfOrder):
        post(sitting, screen="prior", value="60")


def test_reasons_and_own_answers_are_practised_where_they_are_asked_for() -> None:
    sitting = at_practice(open_study(explanation=0.1, own_answer=True, confidence=True))
    names = []
    while (screen := step_of(sitting).screen) is not None:
        names.append(screen.name)
        post(sitting, **cast.answers_for(step_of(sitting), confidence="50"))
    assert names == ["prior", "posterior", "explanation", "own_answer"]


def test_the_practice_item_is_in_the_mode_and_order_of_the_items() -> None:
    study = open_study()
    for _person in range(3):
        sitting = at_practice(study)
        orders = []
        while step_of(sitting).kind != "form":
            step = step_of(sitting)
            if step.screen is not None and "direction" in step.screen.form().fields:
                orders.append(cast.values_of(step.screen.form().fields["direction"]))
            advance(sitting=sitting, step=step.number, data=cast.answers_for(step))
        assert len(orders) == 4 and orders.count(orders[0]) == 4


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: blocks(example={}), "blocks.3: a block of kind"),
        (lambda: blocks(example={**EXAMPLE, "outcome": "maybe"}), "blocks.3.example.outcome: is 'maybe'"),
        (lambda: blocks(example={"target": "a"}), "blocks.3.example.evidence: is missing"),
        (lambda: blocks(example={**EXAMPLE, "hint": "b"}), "blocks.3.example.hint: unknown; the practice item has"),
        (lambda: [*blocks()[:3], *blocks()[2:]], "blocks.4: blocks.3 is a practice item already"),
        (lambda: [*blocks()[:2], *blocks()[3:5], blocks()[2], *blocks()[5:]], "practice comes before the items"),
        (
            lambda: [{**block, "example": EXAMPLE} if block["kind"] == "end" else block for block in blocks()],
            'only a block of kind "practice" has an example',
        ),
    ],
)
def test_it_refuses_a_practice_block_that_shows_nothing(made: Any, said: str) -> None:
    assert said in refusals(blocks=made())


def test_an_instrument_without_practice_refuses_the_block() -> None:
    said = refusals(blocks=blocks(), instrument={"kind": "own_answers"})
    assert "blocks.3.kind: own_answers has no practice item: remove the block" in said


def test_it_has_a_file_of_its_own() -> None:
    study = open_study()
    sitting = at_practice(study)
    post(sitting, value="60")
    (file,) = [extra for extra in contents.extra_files(study) if extra.name == "practice.csv"]
    ((*who, number, screen, answers, _at),) = file.rows
    assert who == ["cast", 1, sitting.respondent.pseudonym, False]
    assert (number, screen, json.loads(answers)["value"]) == (1, "prior", 60)
    assert len(file.columns) == 8


# Several examples


OTHER = {"target": "<b>Is tin heavy?</b>", "evidence": "How many hours?", "outcome": "incorrect"}


def several() -> list[dict[str, Any]]:
    (made,) = (block for block in blocks() if block["kind"] == "practice")
    made = {**{key: value for key, value in made.items() if key != "example"}, "examples": [EXAMPLE, OTHER, EXAMPLE]}
    return [made if block["kind"] == "practice" else block for block in blocks()]


def test_examples_follow_one_another_with_a_summary_behind_the_last() -> None:
    sitting = at_practice(cast.open_study(blocks=several()))
    seen: list[Any] = []
    percents: list[int] = []
    while (step := step_of(sitting)).kind == "practice":
        target = step.screen.parts["target"]["value"] if step.screen else ""
        seen.append((step.position, step.total, step.screen and step.screen.name, target, len(step.feedback)))
        percents.append(step.progress.percent)
        assert step.text == ("Try it." if len(seen) == 1 else "")
        post(sitting, **cast.answers_for(step))
    assert percents == sorted(percents) and 0 < percents[0] < percents[2] < percents[4] < percents[-1]
    assert seen == [
        *(
            (number, 3, name, example["target"], 0)
            for number, example in enumerate((EXAMPLE, OTHER, EXAMPLE), start=1)
            for name in ("prior", "posterior")
        ),
        (3, 3, None, "", 1),
    ]
    stored = PracticeAnswer.objects.order_by("number").values_list("number", "screen", "data")
    assert [screen for _number, screen, _data in stored] == [
        *("prior", "posterior", "(summary)"),
        *("prior", "posterior", "(summary)"),
        *("prior", "posterior"),
    ]
    assert [number for number, _screen, _data in stored] == list(range(1, 9))


def test_a_repeated_answer_at_the_end_of_an_example_skips_nothing() -> None:
    sitting = at_practice(cast.open_study(blocks=several()))
    post(sitting, value="60")
    last = step_of(sitting)
    for _click in range(2):
        step = advance(sitting=sitting, step=last.number, data=cast.answers_for(last, value="70"))
        assert (step.position, step.screen and step.screen.name) == (2, "prior")
    assert PracticeAnswer.objects.filter(screen="(summary)").count() == 1


@pytest.mark.parametrize(
    ("practice", "said"),
    [
        ({"examples": [EXAMPLE]}, "[blocks.example] and [[blocks.examples]] stand side by side: keep one of them"),
        ({"example": {}, "examples": [EXAMPLE, {"target": "a"}]}, "blocks.3.examples.2.evidence: is missing"),
        ({"example": {}, "examples": [EXAMPLE] * 11}, "blocks.3.examples: "),
    ],
)
def test_bad_examples_are_refused_at_their_place(practice: dict[str, Any], said: str) -> None:
    made = [block | practice if block["kind"] == "practice" else block for block in blocks()]
    for example in made:
        if not example.get("example", True):
            del example["example"]
    assert said in refusals(blocks=made)


def test_pages_and_api_say_which_example_it_is(client: Client) -> None:
    cast.open_study(blocks=several())
    page = arrive(client)
    seen = []
    while page.main["data-kind"] != "checks":
        if page.main["data-kind"] == "practice":
            seen.append((page.parts.get("example"), page.text.count("not count"), "nobody judges" in page.text))
        data = {"value": "60", "direction": "higher"} if "screen" in page.hidden else {}
        if page.hidden.get("screen") == "posterior":
            data["value"] = "70"
        page = read(client.post(SITTING, {**page.hidden, **data}, follow=True).content.decode())
    assert seen == [
        *[("Practice 1 of 3: this does not count.", 1, False)] * 2,
        *[("Practice 2 of 3: this does not count.", 1, False)] * 2,
        *[("Practice 3 of 3: this does not count.", 1, False)] * 2,
        (None, 0, True),
    ]


def test_examples_are_kept_once_a_stage_is_open_and_exported_in_order() -> None:
    study = cast.open_study(blocks=several())
    sitting = at_practice(study)
    changed = [block | {"examples": [OTHER]} if block["kind"] == "practice" else block for block in several()]
    with pytest.raises(FileErrors, match=r"blocks\.3\.examples: it changes what is measured"):
        amending.amend(study, text=cast.study_text(blocks=changed), source_name="cast.toml", reason="shorter")
    while step_of(sitting).kind == "practice":
        post(sitting, **cast.answers_for(step_of(sitting)))
    (file,) = [extra for extra in contents.extra_files(study) if extra.name == "practice.csv"]
    assert [row[5] for row in file.rows] == [*["prior", "posterior", "(summary)"] * 2, "prior", "posterior"]


# Pages and API


def test_pages_lead_through_it_and_tell_how_they_work(client: Client) -> None:
    open_study()
    page = arrive(client)
    while page.main["data-kind"] != "practice":
        page = read(client.post(SITTING, page.hidden, follow=True).content.decode())
    assert page.parts["example"] == "Practice: this does not count." and "Question 1 of" not in page.text
    assert page.parts["target"] == "Which is heavier?"
    refused = client.post(SITTING, {**page.hidden, "value": ""}, follow=True)
    assert "Enter a number from 0 to 100." in refused.content.decode()
    page = read(client.post(SITTING, {**page.hidden, "value": "60"}, follow=True).content.decode())
    assert page.form["data-screen"] == "posterior"
    page = read(client.post(SITTING, {**page.hidden, "direction": "same"}, follow=True).content.decode())
    assert "you kept it" in page.parts["feedback"]
    assert "cannot be changed later" in page.text and "Continue stores your answer" in page.text
    page = read(client.post(SITTING, page.hidden, follow=True).content.decode())
    assert page.main["data-kind"] == "checks"


def test_the_api_carries_what_the_pages_show(client: Client) -> None:
    open_study()
    begun = client.post("/api/v1/studies/cast/sittings/", {"consent": True}, content_type="application/json").json()
    step = begun["step"]

    def answer(**data: Any) -> Any:
        body = {"step": step["number"], **data}
        response = client.post(STEP, body, content_type="application/json", headers={"X-Sitting-Token": begun["token"]})
        assert response.status_code == 200, response.content
        return response.json()

    while step["kind"] != "practice":
        step = answer()
    assert step["screen"]["title"] == "How likely is it that the model answers this question correctly?"
    assert EXAMPLE["evidence"] not in json.dumps(step)
    step = answer(value=60)
    (direction, value) = step["screen"]["fields"]
    assert direction["type"] == "choice" and sorted(direction["options"]) == ["higher", "lower", "same"]
    assert value["type"] == "integer" and value["required"] is False
    step = answer(direction="lower", value=10)
    assert step["screen"] is None and "10 %" in step["feedback"][0]
    assert answer()["kind"] == "checks"


def test_simulated_people_get_through_it_by_the_pages_simulators_eyes(client: Client) -> None:
    study = open_study(answer_mode="keep_button", explanation="all", own_answer=True, confidence=True)
    person = instruments.of_study(study).simulated_person(seed=5)
    arrive(client)
    screens = []
    for _step in range(12):
        page = Page(client.get(SITTING).content.decode())
        if page.kind == "practice" and page.screen:
            screens.append(page.screen)
            client.post(SITTING, {**page.hidden, **person.answer(screen=page.screen, parts=page.parts)})
        elif page.kind in ("instructions", "practice"):
            client.post(SITTING, page.hidden)
    assert screens == ["prior", "posterior", "explanation", "own_answer"]
    assert Sitting.objects.get().current_block.kind == "checks"


# The example study file


@pytest.mark.thorough
@pytest.mark.parametrize("through", ["pages", "api"])
def test_people_get_through_the_example_study(through: str, live_server: Any) -> None:
    load_starter_bank()
    call_command("create_study", str(ROOT / "studies/example-belief.toml"))
    study = Study.objects.get(slug="example-belief")
    cast.open_first_stage(study)
    crowd = Crowd(study=study, respondents=2, base_url=live_server.url, through=through)
    assert crowd.run() == Counter(completed=2)
    assert PracticeAnswer.objects.filter(screen="posterior").count() == 2
    posteriors = Belief.objects.filter(kind="posterior")
    assert posteriors.count() == TargetAnswer.objects.count() == 20
    for mode in ("direction", "keep_button"):
        assert posteriors.filter(variant__startswith=f"answer_mode={mode};").count() == 10
    instrument = instruments.of_study(study)
    answered = [assignment for assignment in Assignment.objects.all() if assignment.is_complete]
    asked = sum(instrument.setting(assignment).explained for assignment in answered)  # type: ignore[attr-defined]
    assert len(answered) == 20 and Explanation.objects.count() == asked
