"""People answer questions themselves: what they are asked, how it is judged, and whom a plan asks what."""

import csv
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client

from survey.contracts import instruments
from survey.exceptions import FieldErrors, HunchError, StateRefused
from survey.instruments.belief_update.reports.calibration.calibrating import _people, human_calibration
from survey.instruments.own_answers import estimands
from survey.instruments.own_answers.forms import answer_field
from survey.instruments.own_answers.instrument import AnswerEstimates
from survey.instruments.own_answers.models import AskedQuestion, OwnAnswer
from survey.models import Assignment, Bank, Question, Score, Slot, Study, Task
from survey.services.banks.answer_checking import RULES_VERSION
from survey.services.banks.eligibility import eligible_questions
from survey.services.results.estimates.study_estimates import estimate
from survey.services.results.export import files
from survey.services.sittings.answering import advance
from survey.services.stages import jobs, lifecycle
from survey.services.studies.creating import create_study, read_study_file
from tests import cast
from tests.frontend.pages import arrive

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
SECRET = "KEYWORD"


def bank(tasks: int = 2, each: int = 6) -> Bank:
    """Questions with three options, and every third one without; the keys of those are words found nowhere else."""
    made = Bank.objects.create(name="quiz", version=1, sha256="0" * 64, question_count=tasks * each)
    rows = [Task.objects.create(bank=made, name=f"task_{number}", domain="quiz") for number in range(tasks)]
    Question.objects.bulk_create(
        Question(
            bank=made,
            task=rows[number % tasks],
            position=number,
            external_id=f"q{number}",
            text=f"<b>What is thing {number}, a < b?</b>"
            if number % 3 == 0
            else f"<b>Which is {number}?<br></b>(A) tin<br>(B) lead & <i>gold</i><br>(C) zinc",
            answer=f"{SECRET}{number}" if number % 3 == 0 else "B",
            reason=f"because {SECRET}",
        )
        for number in range(tasks * each)
    )
    return made


def quiz(**options: Any) -> Study:
    items = options.pop("items", 6)
    sittings = options.pop("sittings", 4)
    stages = options.pop("stages", [{"sittings": sittings}])
    return cast.small_study(
        "quiz",
        on=bank(tasks=options.pop("tasks", 2)),
        instrument={"kind": "own_answers", "options": {"answers_per_question": 4, **options}},
        sitting={"items": items},
        stages=stages,
    )


def open_quiz(**options: Any) -> Study:
    study = quiz(**options)
    lifecycle.open_stage(cast.stage_of(study))
    return study


def to_question(study: Study, *, options: bool) -> cast.Visitor:
    """A person who stands at a question that lists options, or at one that does not."""
    visitor = cast.Visitor(study).to_items()
    while ("(A)" in visitor.step.screen.parts["question"]["value"]) != options:
        visitor.post(answer="B" if "(A)" in visitor.step.screen.parts["question"]["value"] else "something")
    return visitor


def given() -> OwnAnswer:
    return OwnAnswer.objects.order_by("response_id").last()


# What is asked


@pytest.mark.django_db
def test_options_are_radio_buttons_with_their_words_and_none_is_chosen() -> None:
    visitor = to_question(open_quiz(), options=True)
    field = visitor.step.screen.form().fields["answer"]
    assert list(field.choices) == [("A", "(A) tin"), ("B", "(B) lead & <i>gold</i>"), ("C", "(C) zinc")]
    assert visitor.step.screen.form()["answer"].value() is None


@pytest.mark.parametrize(
    ("key", "label"),
    [("12", "Your answer, a number"), ("Yes", "Your answer, yes or no"), ("Paris", "Your answer")],
)
def test_without_options_a_text_is_asked_for_and_only_its_kind_is_reported(key: str, label: str) -> None:
    field = answer_field("<b>What is it?</b>", key)
    assert str(field.label) == label
    assert not hasattr(field, "choices")


@pytest.mark.django_db
def test_no_page_and_no_api_answer_holds_a_key(client: Client) -> None:
    study = open_quiz(items=12)
    pages = []
    arrive(client, study.slug)
    for _step in range(20):
        response = client.get(f"/s/{study.slug}/sitting")
        pages.append(response.content.decode())
        if 'data-kind="end"' in pages[-1]:
            break
        step = cast.current_step(cast.Sitting.objects.get())
        if step.kind == "checks":
            given_now = cast_checks(step)
        elif step.kind == "item":
            given_now = {"answer": "B", "confidence": "40"} if "(A)" in pages[-1] else {"answer": "who knows"}
        else:
            given_now = {}
        client.post(f"/s/{study.slug}/sitting", {"step": step.number, **given_now})
    assert sum('type="radio" id="id_answer_1"' in page for page in pages) == 8
    asking = [page for page in pages if 'name="confidence"' in page]
    # The number has the belief item's slider, may be left out, and says what its ends mean.
    assert len(asking) == 12
    assert all('type="range"' in page and "completely sure" in page and "(optional)" in page for page in asking)
    assert sum("a &lt; b?" in page and "<i>gold" not in page for page in pages) == 4
    assert not any(SECRET in page for page in pages)


def cast_checks(step: Any) -> dict[str, str]:
    return {check.name: str([index for index, _text in check.options].index(0) + 1) for check in step.checks}


@pytest.mark.django_db
def test_an_answer_that_was_refused_stays_chosen(client: Client) -> None:
    study = open_quiz()
    arrive(client, study.slug)
    sitting = cast.Sitting.objects.get()
    client.post(f"/s/{study.slug}/sitting", {"step": sitting.step, **cast_checks(cast.current_step(sitting))})
    for _item in range(6):
        sitting.refresh_from_db()
        page = client.get(f"/s/{study.slug}/sitting").content.decode()
        if 'type="radio"' in page:
            break
        client.post(f"/s/{study.slug}/sitting", {"step": sitting.step, "answer": "x"})
    sent = {"step": sitting.step, "answer": "C", "confidence": "140"}
    response = client.post(f"/s/{study.slug}/sitting", sent, follow=True)
    page = response.content.decode()
    assert 'value="C" checked' in page
    assert "The highest number is 100" in page


# How it is judged


@pytest.mark.django_db
def test_a_letter_is_right_where_it_is_the_key_and_earns_a_point() -> None:
    visitor = to_question(open_quiz(), options=True)
    visitor.post(answer="B", confidence="80 %")
    assert (given().text, given().stated, given().correct, given().confidence) == ("B", "B", True, 80)
    assert Score.objects.get(response=given().response).value == 1


@pytest.mark.django_db
def test_another_letter_is_wrong_and_earns_none() -> None:
    visitor = to_question(open_quiz(), options=True)
    visitor.post(answer="A")
    assert (given().correct, given().confidence) == (False, None)
    assert Score.objects.get(response=given().response).value == 0


@pytest.mark.django_db
def test_a_text_is_judged_as_a_models_reply_is() -> None:
    visitor = to_question(open_quiz(), options=False)
    position = AskedQuestion.objects.get(item=visitor.step.assignment.slot.item).question.position
    visitor.post(answer=f"It is the {SECRET.lower()}{position}.")
    assert given().correct


@pytest.mark.thorough
@pytest.mark.django_db
@pytest.mark.parametrize(
    ("data", "field", "message"),
    [
        ({}, "answer", "Choose one of the answers."),
        ({"answer": "D"}, "answer", "Choose one of the answers."),
        ({"answer": "A", "confidence": "-1"}, "confidence", "The lowest number is 0."),
        ({"answer": "A", "confidence": "sure"}, "confidence", "Enter a whole number from 0 to 100, or nothing."),
    ],
)
def test_it_refuses_what_is_no_answer_and_stores_nothing(data: dict[str, str], field: str, message: str) -> None:
    visitor = to_question(open_quiz(), options=True)
    before = OwnAnswer.objects.count()
    with pytest.raises(FieldErrors) as refused:
        visitor.post(**data)
    assert refused.value.errors[field][0].startswith(message)
    assert OwnAnswer.objects.count() == before


@pytest.mark.django_db
def test_it_refuses_a_text_longer_than_an_answer() -> None:
    visitor = to_question(open_quiz(), options=False)
    with pytest.raises(FieldErrors) as refused:
        visitor.post(answer="x" * 201)
    assert refused.value.errors["answer"] == ["Please keep it short: one word or number is enough."]


@pytest.mark.django_db
def test_confidence_is_not_asked_where_the_study_does_not_want_it() -> None:
    visitor = to_question(open_quiz(confidence=False), options=True)
    assert list(visitor.step.screen.form().fields) == ["answer"]
    visitor.post(answer="B", confidence="80")
    assert given().confidence is None


# Whom a plan asks what


@pytest.mark.django_db
def test_everybody_answers_an_even_share_of_every_task_and_no_question_twice() -> None:
    stage = cast.stage_of(open_quiz(tasks=4, sittings=12, items=8))
    slots = Slot.objects.filter(stage=stage).select_related("item__asked_question__question")
    asked: dict[int, list[Question]] = defaultdict(list)
    for slot in slots:
        asked[slot.booklet_id].append(slot.item.asked_question.question)
    assert len(asked) == 12
    assert all(len({question.pk for question in questions}) == 8 for questions in asked.values())
    for task in Task.objects.all():
        shares = [sum(question.task_id == task.pk for question in questions) for questions in asked.values()]
        assert min(shares) > 0 and max(shares) - min(shares) <= 1


@pytest.mark.django_db
def test_several_people_answer_the_same_question_each_with_its_exact_chance() -> None:
    stage = cast.stage_of(open_quiz())
    slots = list(Slot.objects.filter(stage=stage).select_related("item__asked_question"))
    assert len(slots) == 24
    assert {slot.inclusion_probability for slot in slots} == {24 / 48}  # 12 questions, 4 answers each
    assert len({slot.item.asked_question.question_id for slot in slots}) < 24


@pytest.mark.django_db
def test_one_answer_a_question_is_all_there_is_by_default() -> None:
    study = cast.stored_study("once", on=bank(), instrument={"kind": "own_answers"}, sitting={"items": 6})
    instrument = instruments.of_study(study)
    questions = eligible_questions(study)
    assert instrument.universe_size(questions) == len(questions) == 12
    assert instruments.kind("own_answers")().universe_size(questions) == 12


@pytest.mark.thorough
@pytest.mark.django_db
@pytest.mark.parametrize("name", ["example-own-answers", "example-humans"])
def test_the_shipped_study_can_be_planned(name: str) -> None:
    call_command("import_questions", str(ROOT / "survey/services/banks/starter.csv"), "--bank=starter")
    study = create_study(text=read_study_file(ROOT / f"studies/{name}.toml"), source_name=name)
    stage = lifecycle.open_stage(cast.stage_of(study))
    assert stage.booklets.count() == stage.config.sittings


# What is estimated


def answered(*said: tuple[bool, int | None]) -> list[Any]:
    """Stored answers: right or wrong, with a confidence or none."""
    rows = [
        [SimpleNamespace(own_answer=SimpleNamespace(correct=is_correct, confidence=sure))] for is_correct, sure in said
    ]
    return [SimpleNamespace(responses=SimpleNamespace(all=lambda own=own: own)) for own in rows]


def test_confidence_is_of_those_who_said_it_and_overconfidence_what_it_has_too_much() -> None:
    measures = estimands.of_answers(answered((True, 80), (False, 60), (True, None), (True, 0))).measures
    correct, confidence, over = measures
    assert correct.values.tolist() == [1, 0, 1, 1] and correct.where is None
    assert (confidence.values[[0, 1, 3]].tolist(), over.values[[0, 1, 3]].tolist()) == ([80, 60, 0], [-20, 60, -100])
    assert confidence.where.tolist() == over.where.tolist() == [True, True, False, True]


def test_a_task_without_a_domain_is_a_domain_of_its_own() -> None:
    tasks = [SimpleNamespace(name="a", domain="maths"), SimpleNamespace(name="b", domain="")]
    items = [SimpleNamespace(asked_question=SimpleNamespace(question=SimpleNamespace(task=task))) for task in tasks]
    divisions = estimands.divisions(items)  # type: ignore[arg-type]
    assert (divisions["task"].tolist(), divisions["domain"].tolist()) == (["a", "b"], ["maths", "b"])


@pytest.mark.django_db
def test_what_is_stored_with_an_answer_is_hashed_and_looked_at() -> None:
    study = open_quiz()
    visitor = to_question(study, options=True)
    assignment = visitor.step.assignment
    instrument, earlier = instruments.of_study(study), OwnAnswer.objects.count()
    assert instrument.answer_values(assignment) == []
    visitor.post(answer="B", confidence="80")
    again = Assignment.objects.get(pk=assignment.pk)
    assert instrument.answer_values(again) == ["B", True, 80] and given().rules_version == RULES_VERSION
    asked = AskedQuestion.objects.select_related("question").get(item=assignment.slot.item_id)
    assert instrument.signals.word_counts([asked.pk]) == {asked.pk: asked.question.word_count}
    stated = list(instrument.signals.stated_values([again.sitting_id]))
    assert stated[-1] == (again.sitting_id, "answer", "B") and len(stated) == earlier + 1
    assert not list(instrument.signals.stated_values([]))


# A whole stage


def play(study: Study, *, sure: bool = True) -> None:
    """A simulated person, from the texts of the screens alone; one not `sure` leaves the optional field empty."""
    visitor = cast.Visitor(study)
    person = cast.simulated_person(visitor.sitting)
    step = visitor.to_items().step
    while step.kind == "item":
        texts = {name: Question(text=part["value"]).plain for name, part in step.screen.parts.items()}
        data = person.answer(screen=step.screen.name, parts=texts)
        if not sure:
            del data["confidence"]
        step = advance(sitting=visitor.sitting, step=step.number, data=data)


@pytest.mark.django_db
def test_a_stage_goes_from_its_plan_to_export_and_estimate(tmp_path: Path) -> None:
    study = open_quiz()
    for _person in range(4):
        play(study)
    jobs.run_inline(lifecycle.close_stage(cast.stage_of(study)))
    assert cast.stage_of(study).state == "frozen"
    files.write_export(study, tmp_path)
    with (tmp_path / "answers.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 24
    assert {row["key"][:1] for row in rows} == {"B", SECRET[0]}
    right = [row["correct"] == "1" for row in rows]
    assert 0 < sum(right) < 24
    for row in rows:
        assert (row["answer"].strip() == row["key"]) == (row["correct"] == "1")
        assert row["confidence"].isdigit()
    figure = estimate(study).figures[0]
    assert (figure.name, figure.combined.value) == ("correct", pytest.approx(sum(right) / 24))


@pytest.mark.thorough
@pytest.mark.django_db
def test_a_stage_in_which_nobody_says_how_sure_they_are_can_be_estimated() -> None:
    """The field is optional: the first answers of a stage may all leave it empty."""
    study = quiz(stages=[{"sittings": 4}, {"sittings": 4, "design": {"kind": "uniform"}}])
    for index, sure in ((1, True), (2, False)):
        stage = lifecycle.open_stage(cast.stage_of(study, index))
        for _person in range(4):
            play(study, sure=sure)
        jobs.run_inline(lifecycle.close_stage(stage))
    figures = {figure.name: figure for figure in estimate(study).figures}
    assert [*figures] == ["correct", "confidence", "overconfidence"]
    first, second = figures["confidence"].stages
    assert (second.estimate, second.reason) == (None, "no answers there")
    # The plans alone decide the weights: nothing is added to the sums by the second stage.
    assert (first.weight, second.weight) == (0.5, 0.5)
    assert figures["confidence"].combined.value == pytest.approx(first.estimate.value)
    assert figures["correct"].combined.n == 48


@pytest.mark.django_db
def test_measures_that_depend_on_the_answers_are_refused_with_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    study = quiz(stages=[{"sittings": 4}, {"sittings": 4, "design": {"kind": "uniform"}}])
    for index in (1, 2):
        stage = lifecycle.open_stage(cast.stage_of(study, index))
        for _person in range(4):
            play(study)
        jobs.run_inline(lifecycle.close_stage(stage))
    whole = AnswerEstimates.estimands

    def fewer(self: AnswerEstimates, assignments: Any, **options: Any) -> Any:
        estimands = whole(self, assignments, **options)
        return replace(estimands, measures=estimands.measures[: 1 if assignments[0].slot.stage.index == 2 else 3])

    monkeypatch.setattr(AnswerEstimates, "estimands", fewer)
    with pytest.raises(
        HunchError, match="measures are correct, confidence, overconfidence for stage 1 and correct for"
    ):
        estimate(study)


@pytest.mark.django_db
def test_it_says_what_it_does_not_ask() -> None:
    study = quiz()
    beliefs = cast.small_study("beliefs", on=study.bank)
    with pytest.raises(StateRefused, match="own_answers does not ask what people expect"):
        human_calibration(study, people_study=beliefs)
    with pytest.raises(StateRefused, match="belief_update does not have people answer questions themselves"):
        _people(beliefs)
