"""Many people at the API at once, on PostgreSQL with real threads: the answer that each gets, and what is stored."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from django.apps import apps
from django.test import Client
from django.utils import timezone

from survey.instruments.belief_update.models import Pair
from survey.models import (
    Assignment,
    Booklet,
    Consent,
    FormAnswer,
    PracticeAnswer,
    Respondent,
    Response,
    ScreenTiming,
    Sitting,
    Stage,
)
from survey.services.sittings import expiry
from survey.services.stages.lifecycle import close_stage, freeze
from tests import cast
from tests.api.everything import STUDY
from tests.api.front_end import values
from tests.api.test_respondents import BEGIN, PANEL, STEP, Person
from tests.survey.sittings.test_concurrency import no_errors, together

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgresql]
HOURS_AGO = "2026-01-01T00:00Z"


def begin(**fields: Any) -> Any:
    return Client().post(BEGIN, {"consent": True, **fields}, content_type="application/json")


def stored() -> dict[str, int]:
    return {model._meta.label: model._default_manager.count() for model in apps.get_models()}


def outcome_of(visit: Callable[[], Person]) -> str:
    """How far somebody comes who answers everything."""
    try:
        return str(visit().go_to("end").step["outcome"])
    except AssertionError as exc:
        return "full" if b'"full"' in str(exc).encode() else f"refused: {exc}"


def test_of_thirty_who_come_at_once_exactly_eight_find_a_place_and_each_can_finish() -> None:
    sitting = {"items": 4, "begins_per_address": 0}
    study = cast.open_study(stages=[{"sittings": 8}], sitting=sitting, panel={"kind": "generic"})
    people = [{"parameters": {"pid": f"p{number}"}} for number in range(30)]
    outcomes = Counter(together(*[lambda who=who: outcome_of(lambda: Person(Client(), **who)) for who in people]))
    assert outcomes == {"completed": 8, "full": 22}
    # People who were refused were refused before anything was stored of them.
    assert Respondent.objects.count() == Consent.objects.count() == Sitting.objects.count() == 8
    stage = study.stages.get(index=1)
    assert stage.slots.count() == Assignment.objects.filter(state="counted").count() == 32
    assert stage.slots.exclude(assignments__state="counted").count() == 0
    for sitting in Sitting.objects.all():
        items = sitting.assignments.values_list("slot__item_id", flat=True)
        pairs = Pair.objects.filter(item_id__in=items)
        questions = [question for pair in pairs for question in (pair.evidence_id, pair.target_id)]
        assert len(items) == 4 and len(set(questions)) == 8


def test_places_are_those_that_finished_and_those_that_still_can() -> None:
    """Some finish, some expire, some are live: people who come then find exactly the places that are left."""
    study = cast.open_study(stages=[{"sittings": 6}])
    people = [Person(Client()).go_to("item") for _ in range(6)]
    for person in people[:2]:
        person.go_to("end")
    Sitting.objects.filter(state="live").update(last_seen_at=HOURS_AGO)
    for sitting in Sitting.objects.filter(state="live").order_by("pk")[:3]:
        assert expiry.expire_sitting(sitting.pk, now=timezone.now())
    expiry.deal_make_up_booklets(study.stages.get(index=1))
    outcomes = Counter(together(*[lambda: outcome_of(lambda: Person(Client()))] * 9))
    # Nobody holds a place of an open study before the checks: some of these had begun when the last one was taken.
    assert (outcomes["completed"], outcomes["full"] + outcomes["study_full"]) == (3, 6)
    assert Sitting.objects.filter(state="live").count() == 1


def test_two_arrivals_of_one_person_are_one_sitting() -> None:
    cast.open_study()
    results = together(*[lambda: begin(person="a" * 32)] * 12)
    no_errors(results)
    assert sorted(result.status_code for result in results) == [200] * 11 + [201]
    assert len({result.json()["token"] for result in results}) == 1
    assert Respondent.objects.count() == Consent.objects.count() == 1


def test_one_person_with_two_submissions_at_once_has_one_sitting() -> None:
    cast.open_study(panel=cast.PROLIFIC)
    results = together(*[lambda number=number: begin(**{**PANEL, "SESSION_ID": f"s{number}"}) for number in range(4)])
    no_errors(results)
    assert sorted(result.status_code for result in results) == [201, 403, 403, 403]
    codes = {result.json()["error"]["code"] for result in results if result.status_code == 403}
    assert codes == {"already_taken_part"}
    assert Sitting.objects.count() == 1


def test_conditions_stay_balanced_when_all_come_at_once() -> None:
    cast.open_study(
        stages=[{"sittings": 8}], conditions=[{"factor": "tone", "levels": ["cool", "warm"], "per": "sitting"}]
    )
    results = together(*[begin] * 8)
    no_errors(results)
    assert Counter(sitting.levels()["tone"] for sitting in Sitting.objects.all()) == {"cool": 4, "warm": 4}


def test_programs_that_only_read_store_nothing() -> None:
    cast.open_study(**STUDY)
    person = Person(Client())
    before, step = stored(), person.step
    reads = [lambda: person.client.get(STEP, headers={"X-Sitting-Token": person.token}).json()] * 6
    infos = [lambda: Client().get("/api/v1/studies/cast/").status_code] * 4
    entries = [lambda: Client().get("/s/cast/", follow=True).status_code] * 4
    results = together(*reads, *infos, *entries)
    assert results == [step] * 6 + [200] * 8
    assert stored() == before


def taken(person: Person, right: dict[str, Any]) -> dict[str, Any]:
    """What a step takes, by its types alone; `right` is for what can be got wrong."""
    step = person.step
    fields = [*step["fields"], *(step["screen"] or {"fields": ()})["fields"]]
    body = {field["name"]: next(value for value in values(field) if value is not None) for field in fields}
    if body.get("direction") or "keep" in body:
        body |= {"direction": "same", "value": None} if "direction" in body else {"value": None}
    checks = {
        check["name"]: next(option["value"] for option in check["options"] if option["text"] in right)
        for check in step["checks"]
    }
    return {"step": step["number"], **checks, **body}


def test_every_kind_of_step_that_is_sent_four_times_at_once_is_taken_once() -> None:
    cast.open_study(**STUDY)
    person = Person(Client())
    kinds = []
    while person.step["kind"] != "end":
        kinds.append(person.step["kind"])
        body = taken(person, {"Language models.": 1, "I read this.": 1})
        results = together(*[lambda body=body: person.post(**body)] * 4)
        no_errors(results)
        assert [result.status_code for result in results] == [200] * 4, (person.step, results[0].content)
        assert len({result.content for result in results}) == 1
        person.step = results[0].json()
        assert person.step["number"] == body["step"] + 1
    assert set(kinds) == {"form", "instructions", "practice", "checks", "item", "attention", "debriefing"}
    assert person.step["outcome"] == "completed"
    counted = Counter(kinds)
    assert PracticeAnswer.objects.count() == counted["practice"] - 1
    assert Response.objects.count() == counted["item"]
    assert FormAnswer.objects.count() == counted["form"] == 3
    assert ScreenTiming.objects.count() == len(kinds) - counted["item"]


def test_an_answer_whose_reply_was_lost_is_sent_again_after_others_and_changes_nothing() -> None:
    cast.open_study()
    person = Person(Client()).go_to("item")
    lost = {"step": person.step["number"], "value": 10}
    person.post(**lost)
    other = {"step": lost["step"] + 1, "direction": "same"}
    results = together(*[lambda: person.post(**lost)] * 3, lambda: person.post(**other))
    no_errors(results)
    assert {result.status_code for result in results} == {200}
    assert {result.json()["number"] for result in results} <= {lost["step"] + 1, lost["step"] + 2}
    assert list(Response.objects.order_by("pk").values_list("screen", flat=True)) == ["prior", "posterior"]


@pytest.mark.parametrize("somebody_else", [False, True])
def test_an_answer_after_expiry_counts_where_its_slot_is_still_free(somebody_else: bool) -> None:
    study = cast.open_study()
    person = Person(Client()).go_to("item")
    Sitting.objects.update(last_seen_at=HOURS_AGO)
    assert expiry.expire_sitting(Sitting.objects.get().pk, now=timezone.now())
    expiry.deal_make_up_booklets(study.stages.get(index=1))
    for _place in range(expiry.free_booklets(study.stages.get(index=1)).count() if somebody_else else 0):
        Person(Client()).go_to("item")
    step = person.step["number"]
    results = together(*[lambda: person.post(step=step, value=60)] * 3)
    no_errors(results)
    assert [result.status_code for result in results] == [200] * 3
    assert Response.objects.count() == 1
    person.step = results[0].json()
    assert person.go_to("end").step["outcome"] == "completed"
    first, *others = Sitting.objects.order_by("pk")
    elsewhere = set(Assignment.objects.filter(sitting__in=others).values_list("slot_id", flat=True))
    states = dict(first.assignments.values_list("slot_id", "state"))
    assert set(states.values()) == ({"late"} if somebody_else else {"counted"})
    assert set(states) <= elsewhere if somebody_else else not elsewhere


@pytest.mark.parametrize("_time", range(2))
def test_a_stage_that_is_closed_at_once_takes_the_answers_in_flight_or_has_them_late(_time: int) -> None:
    study = cast.open_study()
    people = [Person(Client()).go_to("item", screen="posterior") for _ in range(3)]
    stage = study.stages.get(index=1)
    results = together(
        *[
            lambda person=person: person.post(step=person.step["number"], direction="higher", value=90)
            for person in people
        ],
        lambda: close_stage(stage, now=True),
        *[begin] * 2,
    )
    no_errors(results)
    assert [result.status_code for result in results[:3]] == [200] * 3
    for person, result in zip(people, results[:3], strict=True):
        person.step = result.json()
        assert person.go_to("end").step["outcome"] == "completed"
    # People who consented just before the stage closed get no booklet, and expire with the others.
    for sitting in Sitting.objects.filter(state="live"):
        expiry.expire_sitting(sitting.pk, now=timezone.now())
    answers = freeze(Stage.objects.get(pk=stage.pk))["answers"]
    assert answers == Assignment.objects.filter(state="counted").count()
    assert set(Assignment.objects.filter(completed_at__isnull=False).values_list("state", flat=True)) <= {
        "counted",
        "late",
    }
    assert not Assignment.objects.filter(state="live").exists()


def test_a_booklet_is_never_given_twice_while_people_come_and_go() -> None:
    """Half of the people leave at their items, and are expired while others arrive."""
    study = cast.open_study(stages=[{"sittings": 6}])
    leaving = [Person(Client()).go_to("item") for _ in range(3)]
    Sitting.objects.update(last_seen_at=HOURS_AGO)
    gone = [sitting.pk for sitting in Sitting.objects.all()]
    stage = study.stages.get(index=1)
    results = together(
        *[lambda pk=pk: expiry.expire_sitting(pk, now=timezone.now()) for pk in gone],
        *[lambda: outcome_of(lambda: Person(Client()))] * 5,
        lambda: expiry.deal_make_up_booklets(stage),
        *[lambda person=person: outcome_of(lambda: person) for person in leaving[:1]],
    )
    no_errors(results)
    held = Counter(Assignment.objects.filter(state__in=Assignment.HOLDING).values_list("slot_id", flat=True))
    assert set(held.values()) == {1}
    claimed = [pk for pk in Sitting.objects.values_list("booklet", flat=True) if pk]
    assert len(claimed) == len(set(claimed))
    assert Booklet.objects.filter(pk__in=claimed, claimed_at__isnull=True).count() == 0
    assert [result for result in results if isinstance(result, str) and result.startswith("refused")] == []
