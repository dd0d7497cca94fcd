"""Estimates by what people answered in forms: groups as they are counted by hand, small ones without figures."""

import csv
import io
import json
from html import unescape
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from rest_framework.test import APIClient

from survey.exceptions import HunchError
from survey.models import Assignment, FormAnswer, Sitting, Study
from survey.services.base.groups import ensure_researchers_group
from survey.services.results.estimates import stored_estimates, study_estimates
from survey.services.results.estimates.people_groups import (
    MIN_PEOPLE,
    NO_ANSWER,
    PeopleGroups,
    PeopleQuestion,
    groups_of,
    people_questions,
)
from survey.services.results.estimates.sensitivity import group_sentences
from survey.services.results.estimates.study_figures import (
    DivisionFigures,
    StagePart,
    StudyFigure,
    Unanswered,
)
from survey.study_file import FieldConfig
from tests import cast
from tests.kept import kept
from tests.survey.filled import NO_ROLES, run_study

pytestmark = [pytest.mark.django_db, pytest.mark.any_database, pytest.mark.slow]

BLOCKS: list[dict[str, Any]] = [
    {"kind": "consent", "text": "# Consent\n\nYou may stop at any time."},
    {"kind": "items"},
    {
        "kind": "form",
        "name": "who",
        "version": "1",
        "title": "You",
        "fields": [
            {"name": "use", "label": "How often?", "kind": "choice", "options": ["never", "weekly", "daily"]},
            {"name": "age", "label": "Your age?", "kind": "number", "bands": [30, 50]},
            {"name": "years", "label": "Since when?", "kind": "number"},
            {"name": "tools", "label": "Which?", "kind": "multiple", "options": ["pen", "pencil"]},
        ],
    },
    {"kind": "end"},
]
# Of 48 people: 20 never, 14 weekly, 9 daily (too few), 5 give no answer.
SAID = [*["never"] * 20, *["weekly"] * 14, *["daily"] * 9, None, None, "prefer_not_to_say", "", "-"]


@kept
def asked_study(slug: str = "small") -> Study:
    study = run_study(slug, stages=[{"sittings": 48}], blocks=BLOCKS, **NO_ROLES)
    sittings = Sitting.objects.filter(stage__study=study).order_by("pk")
    form_answers = []
    for place, (sitting, said) in enumerate(zip(sittings, SAID, strict=True)):
        if said == "-":
            continue  # Somebody who never came to the form.
        answers = {"use": said, "age": 20 + place, "years": place % 3, "tools": ["pen"]}
        form_answers.append(FormAnswer(sitting=sitting, block="who", answers=answers, at=timezone.now()))
    FormAnswer.objects.bulk_create(form_answers)
    return study


@pytest.fixture
def study() -> Study:
    return asked_study()


def choice(name: str) -> FieldConfig:
    return FieldConfig(name=name, label="How often?", kind="choice", options=["never", "weekly", "daily"])


def test_a_question_whose_name_is_not_its_own_has_the_forms_name_before_it() -> None:
    forms = {"before": ["use", "age"], "after": ["use", "mood"]}
    blocks = [SimpleNamespace(name=name, fields=[*map(choice, fields)]) for name, fields in forms.items()]
    questions = people_questions(SimpleNamespace(config=SimpleNamespace(blocks=blocks)), ["age"])  # type: ignore[arg-type]
    assert {name: (question.block, question.field.name) for name, question in questions.items()} == {
        "before.use": ("before", "use"),
        "before.age": ("before", "age"),
        "after.use": ("after", "use"),
        "mood": ("after", "mood"),
    }


def test_unanswered_items_are_in_their_persons_group_too() -> None:
    lost = Unanswered(np.zeros(2, int), np.array([6, 7]), np.ones(2), {"arm": np.array(["a", "b"])})
    part = StagePart(
        *(1, "sampled", ("all",), (9,), (4,), None, np.zeros(2, int), np.array([5, 6]), np.ones(2), np.ones(4)),
        unanswered=lost,
    )
    reading = study_estimates._Reading(part, None, [], None, {"arm": np.array(["b", "a"])}, 2.0)  # type: ignore[arg-type]
    groups = {"use": PeopleGroups(("never", "daily", NO_ANSWER), {5: "never", 6: "daily"}, "")}
    divided = study_estimates._with_groups(reading, groups)
    assert {name: group.tolist() for name, group in divided.divisions.items()} == {
        "arm": ["b", "a"],
        "use": ["never", "daily"],
    }
    assert divided.part.unanswered is not None
    assert {name: group.tolist() for name, group in divided.part.unanswered.divisions.items()} == {
        "arm": ["a", "b"],
        "use": ["daily", NO_ANSWER],
    }


def test_of_what_a_person_said_in_two_waves_the_first_counts() -> None:
    stage = cast.stage_of(cast.small_study())
    first, stranger = cast.sitting(stage), cast.sitting(stage)
    again = cast.sitting(stage, respondent=first.respondent, wave=2)
    for sitting, block, said in (
        (again, "who", "daily"),
        (first, "another", "weekly"),
        (first, "who", "never"),
        (stranger, "who", "weekly"),
    ):
        FormAnswer.objects.create(sitting=sitting, block=block, answers={"use": said}, at=timezone.now())
    groups = groups_of(stage.study, PeopleQuestion("use", "who", choice("use")), [first.respondent_id])
    assert groups.of_person == {first.respondent_id: "never"}


def test_a_group_without_a_difference_is_named_unless_its_figures_are_withheld() -> None:
    figure = StudyFigure("changed", "share that changes", "share", (), None, None, None)
    without = "no difference to the others, since they are too few people together."

    def sentences(labels: tuple[str, ...], withheld: tuple[str, ...], rest: Any) -> list[str]:
        return [*group_sentences(DivisionFigures("use", labels, ((),) * len(labels), withheld=withheld, rest=rest))]

    three, withheld = ("never", "weekly", "daily"), ("", "", "too few people")
    assert sentences(three, withheld, ((figure,), (), ())) == [f"weekly: {without}"]
    assert sentences(three, withheld, ()) == [f"never: {without}", f"weekly: {without}"]
    assert sentences(("never",), ("",), ()) == sentences(three, (), ((), (), ())) == []


def changed_by_person(study: Study) -> dict[int, list[bool]]:
    by_person: dict[int, list[bool]] = {}
    for assignment in Assignment.objects.filter(slot__stage__study=study, state="counted").select_related("sitting"):
        values = {response.screen: response.belief.value for response in assignment.responses.all()}
        by_person.setdefault(assignment.sitting.respondent_id, []).append(values["posterior"] != values["prior"])
    return by_person


@pytest.mark.thorough
def test_each_group_has_its_people_and_their_figures_and_a_difference_to_the_others(study: Study) -> None:
    (division,) = study_estimates.estimate(study, by=["use"]).divisions
    assert division.labels == ("never", "weekly", "daily", NO_ANSWER)
    assert division.people == (20, 14, 9, 5)
    changed = changed_by_person(study)
    people = [sitting.respondent_id for sitting in Sitting.objects.filter(stage__study=study).order_by("pk")]
    never = [value for person in people[:20] for value in changed[person]]
    others = [value for person in people[20:] for value in changed[person]]
    first = division.figures[0][0].combined
    assert first is not None and first.n_clusters == 20 and first.n == len(never)
    assert first.value == pytest.approx(np.mean(never))
    difference = division.rest[0][0].combined
    assert difference is not None and difference.n_clusters == 48
    assert difference.value == pytest.approx(np.mean(never) - np.mean(others))
    low, high = difference.interval
    assert low < difference.value < high and not division.differences
    assert "How often?" in division.note and "no effect of what people answered" in division.note


@pytest.mark.thorough
def test_a_group_of_too_few_people_has_a_sentence_and_no_figures(study: Study) -> None:
    (division,) = study_estimates.estimate(study, by=["use"]).divisions
    assert division.figures[2:] == ((), ()) and division.rest[2:] == ((), ())
    assert division.withheld[:2] == ("", "")
    assert division.withheld[2].startswith("9 people: figures need at least 10")
    assert division.withheld[3].startswith("5 people: figures need at least 10")


@pytest.mark.thorough
def test_ten_people_are_enough(study: Study) -> None:
    """Of the group, and of all the others together."""
    said = [*["never"] * 38, *["daily"] * 10]
    for sitting, use in zip(Sitting.objects.order_by("pk"), said, strict=True):
        FormAnswer.objects.update_or_create(
            sitting=sitting, block="who", defaults={"answers": {"use": use}, "at": timezone.now()}
        )
    (division,) = study_estimates.estimate(study, by=["use"]).divisions
    assert division.people == (38, 10) and division.withheld == ("", "")
    assert all(division.figures) and all(division.rest)


def test_what_somebody_said_first_in_this_form_of_this_study_counts(study: Study) -> None:
    question = people_questions(study)["use"]
    first, second, *_others = Sitting.objects.filter(stage__study=study).order_by("pk")
    people = [first.respondent_id, second.respondent_id]
    assert groups_of(study, question, people).of_person == dict.fromkeys(people, "never")
    # A second sitting of the first person, another form with a question of that name, and a stranger.
    Sitting.objects.filter(pk=second.pk).update(respondent=first.respondent, wave=2)
    FormAnswer.objects.filter(sitting=second).update(answers={"use": "daily"})
    FormAnswer.objects.create(sitting=first, block="before", answers={"use": "weekly"}, at=timezone.now())
    assert groups_of(study, question, people[:1]).of_person == {people[0]: "never"}
    FormAnswer.objects.filter(sitting=first, block="who").update(answers={"use": "prefer_not_to_say"})
    assert groups_of(study, question, people[:1]).of_person == {people[0]: "daily"}, "the first that says something"
    assert groups_of(study, question, []).of_person == {}
    FormAnswer.objects.filter(sitting=second).delete()
    assert groups_of(study, question, people[:1]).of_person == {}, (
        "what was said in another form is no answer to this one"
    )
    other = run_study("another", stages=[{"sittings": 2}], blocks=BLOCKS, **NO_ROLES)
    assert groups_of(other, question, people).of_person == {}


@pytest.mark.thorough
def test_the_others_must_be_enough_too(study: Study) -> None:
    FormAnswer.objects.filter(sitting__in=Sitting.objects.order_by("pk")[:39]).update(
        answers={"use": "never", "age": 40, "years": 1}
    )
    (division,) = study_estimates.estimate(study, by=["use"]).divisions
    assert division.people == (39, 4, 5)
    assert division.labels == ("never", "daily", NO_ANSWER)
    assert division.note.endswith("Nobody whose answers count said: weekly.")
    assert all(count < MIN_PEOPLE for count in (48 - 39, 4, 5))
    assert division.rest == () and division.figures[0] and division.figures[1:] == ((), ())


def test_numbers_are_cut_by_the_bands_of_the_study_file_or_into_quartiles(study: Study) -> None:
    age, years = study_estimates.estimate(study, by=["age", "years"]).divisions
    assert age.labels == ("under 30", "30 to 49", "50 or more", NO_ANSWER)
    assert age.people == (10, 20, 17, 1) and "bands of the study file" in age.note
    assert age.withheld[3].startswith("1 person: ")
    assert years.labels == ("under 1", "1", "2 or more", NO_ANSWER)
    assert "quartiles of these people's numbers" in years.note and "fewer than four" in years.note


def test_quartiles_hold_a_quarter_each(study: Study) -> None:
    field = FieldConfig(name="age", label="Age?", kind="number")
    question = people_questions(study)["age"]
    people = [sitting.respondent_id for sitting in Sitting.objects.filter(stage__study=study)]
    groups = groups_of(study, type(question)("age", "who", field), people)
    assert groups.labels == ("under 32", "32 to 43", "44 to 54", "55 or more", NO_ANSWER)
    counts = [list(groups.of_person.values()).count(label) for label in groups.labels]
    assert counts == [12, 12, 11, 12, 0]


def test_only_questions_with_one_answer_can_be_asked_for(study: Study) -> None:
    assert [*people_questions(study)] == ["use", "age", "years"]
    assert [*people_questions(study, ["age"])] == ["use", "who.age", "years"]
    with pytest.raises(HunchError, match=r"tools is not one of outcome.*use, age, years"):
        study_estimates.estimate(study, by=["tools"])


def test_bands_that_cut_nothing_are_refused() -> None:
    for bands, problem in (([50, 30], "each above the one before"), ([18, 30], "inside minimum and maximum")):
        with pytest.raises(ValueError, match=problem):
            FieldConfig(name="age", label="Age?", kind="number", minimum=18, bands=bands)
    with pytest.raises(ValueError, match="only kind = 'number' has bands"):
        FieldConfig(name="use", label="Use?", kind="choice", options=["a", "b"], bands=[1])


def test_command_files_page_and_api_show_the_same(study: Study, tmp_path: Path) -> None:
    out = io.StringIO()
    call_command("estimate", "small", "--by", "use", "--out", str(tmp_path), stdout=out)
    report = study_estimates.estimate(study, by=["use"])
    (division,) = report.divisions
    assert "Each group minus all the others together." in out.getvalue()
    assert f"daily: {division.withheld[2]}" in out.getvalue() and "No estimate: daily" not in out.getvalue()
    with (tmp_path / "estimates.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["division"] == "use"]
    name, rest = division.rest[0][0].name, division.rest[0][0].combined
    (difference_row,) = [
        row for row in rows if (row["figure"], row["label"], row["kind"]) == (name, "never", "difference to the rest")
    ]
    assert rest is not None and (float(difference_row["value"]), float(difference_row["low"])) == (
        rest.value,
        rest.interval[0],
    )
    # Predictions help groups of people, and what sets them apart from the others.
    assert {(row["label"], row["kind"]) for row in rows if row["kind"].startswith("assisted")} == {
        (label, f"{kind}{stage}")
        for label in ("never", "weekly")
        for kind in ("assisted", "assisted difference")
        for stage in ("", ", one stage")
    }
    assert all(
        row["coefficient"] or "not assisted: " in row["notes"] for row in rows if row["kind"] == "assisted, one stage"
    )
    withheld = {row["label"]: (row["respondents"], row["notes"]) for row in rows if row["kind"] == "withheld"}
    assert withheld == {"daily": ("9", division.withheld[2]), NO_ANSWER: ("5", division.withheld[3])}
    assert {row["kind"] for row in rows if row["label"] == "daily"} == {"withheld"}

    assert stored_estimates.shown_estimates(study, by=["use"]).report == report
    page, api = Client(), APIClient()
    user = get_user_model().objects.create_superuser("root", password="-")
    page.force_login(user)
    api.force_authenticate(user)
    address = reverse("admin:survey_study_estimates", args=[study.pk])
    text = unescape(page.get(address, {"by": "use"}).content.decode())
    assert '<option value="use" selected>use: How often?</option>' in text
    assert "Differences by use" in text and f"daily: {division.withheld[2]}" in text
    (body,) = api.get("/api/v1/studies/small/estimates/", {"by": "use"}).json()["divisions"]
    assert body == json.loads(json.dumps(report.as_json()["divisions"][0]))


def test_a_later_answer_to_a_form_makes_stored_figures_out_of_date(study: Study) -> None:
    before = stored_estimates.basis_of(study).sha256
    last = Sitting.objects.filter(stage__study=study).order_by("pk").last()
    assert last is not None
    FormAnswer.objects.create(sitting=last, block="who", answers={"use": "never"}, at=timezone.now())
    assert stored_estimates.basis_of(study).sha256 != before


def test_members_who_may_not_export_see_no_groups_of_people(study: Study) -> None:
    viewer = User.objects.create_user("viewer", is_staff=True)
    viewer.groups.add(ensure_researchers_group())
    cast.join(viewer, study, "viewer")
    page = Client()
    page.force_login(viewer)
    address = reverse("admin:survey_study_estimates", args=[study.pk])
    assert 'value="use"' not in page.get(address).content.decode()
    text = page.get(address, {"by": "use"}).content.decode()
    assert "for members who may export" in text and "9 people" not in text


def test_a_blind_study_is_divided_by_answers_and_not_by_conditions(study: Study) -> None:
    Study.objects.filter(pk=study.pk).update(is_blind=True)
    study.refresh_from_db()
    assert "use" in study_estimates.division_names(study)
    assert set(study_estimates.division_names(study)).isdisjoint(
        {condition.factor for condition in study.config.conditions}
    )
