"""An instrument to come, as small as it can be, goes through whole stages: pairs of replies.

It is a package of its own in tests/packages, found by entry point.
"""

import csv
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from preference_skeleton.models import Comparison, Judgement, Rating

from survey.contracts import instruments
from survey.contracts.reports import Given
from survey.exceptions import FileErrors
from survey.models import Stage, Study
from survey.services.plans.planning import plan_stage
from survey.services.results.estimating import estimate
from survey.services.results.export import files
from survey.services.sittings.answering import advance
from survey.services.sittings.enrolment import begin_sitting, new_open_person
from survey.services.sittings.flow import Step, current_step
from survey.services.stages import jobs, lifecycle
from survey.services.stages.verifying import verify_stage
from tests import cast
from tests.frontend.pages import arrive

pytestmark = pytest.mark.django_db

STUDY: dict[str, Any] = {
    "sitting": {"items": 3},
    "stages": [{"sittings": 6}, {"sittings": 6}],
    "blocks": [
        {"kind": "consent", "text": "Do you agree?", "version": "1"},
        {"kind": "items"},
        {"kind": "end", "text": "Thanks."},
    ],
}
MODELS = ("owl", "parrot", "raven")
PREFERENCE: dict[str, Any] = {
    **STUDY,
    "slug": "preference",
    "bank": "prompts",
    "instrument": {"kind": "preference", "options": {"models": list(MODELS)}},
    "candidates": {"size": 24},
    "roles": {"holdout": 0, "controls": 0.5, "control_kinds": ["repeat", "same"]},
}


@pytest.fixture
def prompts(tmp_path: Path) -> None:
    path = tmp_path / "prompts.csv"
    path.write_text("id,source,text\n" + "".join(f"p{number},code,Write thing {number}.\n" for number in range(10)))
    call_command("import_questions", str(path), bank="prompts", format="prompts")
    rows = [
        f"{model},p{number},{model[0] * (10 + 30 * place)} {number}"
        for place, model in enumerate(MODELS)
        for number in range(10)
        if (model, number) != ("raven", 9)
    ]
    path = tmp_path / "replies.csv"
    path.write_text("\n".join(["llm,question_id,response", *rows]) + "\n")
    call_command("import_replies", str(path), bank="prompts")


def opened(study: Study, index: int = 1) -> Stage:
    stage = Stage.objects.select_related("study__bank").get(study=study, index=index)
    return lifecycle.open_stage(plan_stage(stage) if stage.state == Stage.State.DRAFT else stage)


def texts_of(step: Step) -> dict[str, str]:
    return {name: str(part["value"]) for name, part in step.screen.parts.items()} if step.screen else {}


def play(study: Study) -> None:
    sitting = begin_sitting(study=study, ids=new_open_person())
    person = instruments.of_study(study).simulated_person(seed=sitting.pk)
    while (step := current_step(sitting)).kind != "end":
        data = person.answer(screen=step.screen.name, parts=texts_of(step)) if step.screen else {}
        advance(sitting=sitting, step=step.number, data=data)
        sitting.refresh_from_db()


def exported(study: Study, folder: Path, name: str) -> list[dict[str, str]]:
    files.write_export(study, folder)
    with (folder / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def begun_item(study: Study) -> Any:
    return study.stages.get(index=1).sittings.get().assignments.get(position=1).slot.item_id


# Preference


def test_items_are_pairs_of_replies_to_prompts_that_have_both(prompts: None) -> None:
    study = cast.study(**PREFERENCE)
    instrument = instruments.of_study(study)
    questions = instrument.usable(list(study.bank.questions.order_by("position")))
    assert instrument.universe_size(questions) == 9 * 3 + 1


def test_a_preference_study_goes_through_its_stages(prompts: None, tmp_path: Path) -> None:
    study = cast.study(**PREFERENCE)
    for index in (1, 2):
        stage = opened(study, index)
        for _person in range(6):
            play(study)
        jobs.run_inline(lifecycle.close_stage(stage))
        assert not verify_stage(Stage.objects.select_related("study__bank").get(pk=stage.pk)).differences
    rows = exported(study, tmp_path, "answers.csv")
    assert len(rows) == 36 and {row["model_a"] for row in rows} <= set(MODELS)
    assert {(row["role"], row["control_kind"]) for row in rows} == {
        ("sampled", ""),
        ("control", "same"),
        ("repeat", ""),
    }
    assert all(row["model_a"] == row["model_b"] for row in rows if row["control_kind"] == "same")
    assert {row["first"] for row in rows} == {"a", "b"}
    found = estimate(study).as_json()
    assert "pairs of replies to the bank's 10 prompts" in str(found)
    (entry,) = instruments.of_study(study).reports()
    findings = entry.load().make(study, Given(question=()))
    wins = {(row[0], row[1]): (row[2], row[3]) for row in findings.tables[0].rows}
    assert wins["raven", "owl"][0] > wins["owl", "raven"][0]  # simulated people like longer replies
    assert wins["raven", "owl"][1] == wins["owl", "raven"][1]


def test_sides_are_drawn_and_change_when_an_item_is_asked_again(prompts: None) -> None:
    study = cast.study(**PREFERENCE)
    opened(study)
    for _person in range(6):
        play(study)
    of_slot = {
        (one.response.assignment.sitting_id, one.response.assignment.slot_id): one
        for one in Judgement.objects.select_related("response__assignment__slot")
    }
    repeats = [(key, one) for key, one in of_slot.items() if one.response.assignment.slot.repeat_of_id is not None]
    assert repeats
    for (sitting, _slot), again in repeats:
        assert again.a_first is not of_slot[sitting, again.response.assignment.slot.repeat_of_id].a_first
    for rating in Rating.objects.select_related("judgement"):
        expected = 4.5 - rating.given
        assert rating.towards_a == (expected if rating.judgement.a_first else -expected)


def test_the_page_shows_two_replies_as_text_and_names_no_model(prompts: None, client: Client) -> None:
    study = cast.study(**PREFERENCE)
    opened(study)
    page = arrive(client, slug="preference")
    comparison = Comparison.objects.select_related("a", "b").get(item=begun_item(study))
    assert {page.parts["reply_1"], page.parts["reply_2"]} == {comparison.a.response, comparison.b.response}
    html = client.get("/s/preference/sitting").content.decode()
    assert not any(model in html for model in MODELS)
    assert html.count('type="radio"') == 16 and 'value="8"' in html
    refused = client.post("/s/preference/sitting", {**page.hidden, "helpful": "9"}, follow=True)
    assert refused.content.decode().count("Choose one of the eight places.") >= 2
    client.post("/s/preference/sitting", {**page.hidden, "cannot_judge": "on"})
    judgement = Judgement.objects.get()
    assert judgement.cannot_judge and not judgement.ratings.exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"models": ["owl"]}, "instrument.options.models: "),
        ({"models": ["owl", "owl"]}, "two of them are the same: name each once"),
        ({"models": ["owl", "eagle"]}, "eagle has no reply to this bank: import_replies adds them"),
    ],
)
def test_models_that_cannot_be_compared_are_refused(options: dict[str, Any], said: str, prompts: None) -> None:
    with pytest.raises(FileErrors) as refused:
        cast.study(**{**PREFERENCE, "instrument": {"kind": "preference", "options": options}})
    assert said in str(refused.value)
