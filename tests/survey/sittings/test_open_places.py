"""Studies that are open to anybody: made-up people cannot hold all places, and one address begins a limited number."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from survey.exceptions import EntryRefused
from survey.models import Assignment, BudgetCount, Respondent, Sitting, Stage
from survey.services.sittings import expiry
from survey.services.sittings.capacity import free_booklets, free_capacity, has_free_place
from survey.services.sittings.enrolment import BEGUN_SECONDS, begin_sitting
from survey.services.sittings.entry import SIMULATED_HEADER, simulated_mark
from survey.services.sittings.links import make_links
from survey.services.studies.amending import amend
from tests import cast
from tests.frontend.pages import arrive, read
from tests.survey.sittings.test_concurrency import together

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
BEGIN = "/api/v1/studies/cast/sittings/"
GENERIC = {"kind": "generic"}


@pytest.fixture(autouse=True)
def _one_second_into_a_span(time_machine: Any) -> None:
    time_machine.move_to("2026-03-01T12:00:01Z", tick=False)


def expire_after(minutes: float) -> int:
    return expiry.expire_sittings(timezone.now() + timedelta(minutes=minutes))


# Places


def test_forty_made_up_people_hold_no_place_of_an_open_study() -> None:
    stage = cast.open_stage()
    for _person in range(40):
        begin_sitting(study=stage.study, ids=cast.person())
    assert free_capacity(stage) == 4
    assert cast.Visitor(stage.study).finish().step.outcome == "completed"


def test_at_a_panel_whoever_began_holds_a_place() -> None:
    stage = cast.open_stage(panel=GENERIC)
    for taken in range(4):
        assert free_capacity(stage) == 4 - taken and has_free_place(stage)
        begin_sitting(study=stage.study, ids=cast.person())
    assert free_capacity(stage) == 0 and not has_free_place(stage)


def test_who_has_a_booklet_holds_no_place_beside_it() -> None:
    stage = cast.open_stage(panel=GENERIC)
    cast.Visitor(stage.study).to_items()
    cast.Visitor(stage.study)
    assert free_capacity(stage) == 2 and has_free_place(stage)
    cast.Visitor(stage.study).to_items()
    cast.Visitor(stage.study)
    assert free_capacity(stage) == 0 and not has_free_place(stage)


def test_whoever_began_at_another_stage_holds_no_place_of_this_one() -> None:
    full, stage = cast.open_stage(panel=GENERIC), cast.open_stage("other", panel=GENERIC)
    for _place in range(4):
        begin_sitting(study=full.study, ids=cast.person())
    assert has_free_place(stage) and not has_free_place(full)


def test_who_passes_the_checks_after_the_last_place_was_taken_is_turned_away() -> None:
    stage = cast.open_stage(stages=[{"sittings": 1}])
    first, second = cast.Visitor(stage.study), cast.Visitor(stage.study)
    assert first.check().kind == "item"
    assert second.check().outcome == "study_full"
    with pytest.raises(EntryRefused):
        cast.Visitor(stage.study)


def test_an_open_place_is_free_again_after_a_quarter_of_an_hour_of_silence() -> None:
    stage = cast.open_stage()
    visitor = cast.Visitor(stage.study).to_items()
    assert (expire_after(14), expire_after(16)) == (0, 1)
    assert free_booklets(stage).count() == 4, "what it left was dealt again"
    assert visitor.finish().step.outcome == "completed", "who comes back goes on"


def test_a_place_at_a_panel_is_held_as_long_as_the_file_says() -> None:
    stage = cast.open_stage(panel=GENERIC)
    cast.Visitor(stage.study).to_items()
    assert (expire_after(16), expire_after(29), expire_after(31)) == (0, 0, 1)


@pytest.mark.parametrize(("minutes", "expires", "held"), [(5, 30, 5), (20, 30, 20), (15, 10, 10)])
def test_the_file_says_how_long_an_open_place_is_held(minutes: int, expires: int, held: int) -> None:
    stage = cast.open_stage(sitting={"items": 3, "expires_after_minutes": expires, "open_place_minutes": minutes})
    cast.Visitor(stage.study).to_items()
    assert (expire_after(held - 0.5), expire_after(held + 0.5)) == (0, 1)


def test_who_answers_keeps_the_place(time_machine: Any) -> None:
    stage = cast.open_stage()
    visitor = cast.Visitor(stage.study).to_items()
    for _page in range(4):
        time_machine.shift(timedelta(minutes=14))
        assert expiry.expire_sittings() == 0
        visitor.post(value=50)
    assert set(visitor.states()) == {"live", "counted"}


# Begins by address


def begins(number: int, *, at: str = "198.51.100.7", to: str = BEGIN, **fields: Any) -> list[int]:
    statuses = []
    for _person in range(number):
        response = Client().post(to, {"consent": True, **fields}, content_type="application/json", REMOTE_ADDR=at)
        statuses.append(response.status_code)
    return statuses


@pytest.mark.thorough
def test_one_address_begins_twenty_sittings_an_hour(time_machine: Any) -> None:
    cast.open_study(stages=[{"sittings": 40}], sitting={"items": 1})
    assert begins(23) == [201] * 20 + [429] * 3
    assert begins(2, at="203.0.113.9") == [201] * 2
    assert Respondent.objects.count() == Sitting.objects.count() == 22, "nothing is stored of those refused"
    time_machine.shift(BEGUN_SECONDS)
    assert begins(1) == [201]


def test_by_pages_too_and_the_page_says_when_to_come_back() -> None:
    cast.open_study(sitting={"items": 3, "begins_per_address": 2})
    for _person in range(2):
        arrive(Client())
    late = Client()
    late.get("/s/cast/")
    response = late.post("/s/cast/consent", {"consent": "yes"})
    assert (response.status_code, response.headers["Retry-After"]) == (429, "3599")
    page = read(response.content.decode())
    assert page.main["data-refused"] == "too_many_from_here"
    assert "Too many people have come from your network" in page.text and "in 60 minutes" in page.text
    assert Sitting.objects.count() == 2


def test_an_invented_forwarding_header_buys_nothing(settings: Any) -> None:
    settings.HUNCH_BEHIND_PROXY = False
    cast.open_study(sitting={"items": 3, "begins_per_address": 2})
    codes = [
        Client()
        .post(
            BEGIN,
            {"consent": True},
            content_type="application/json",
            headers={"X-Forwarded-For": f"203.0.113.{number}"},
        )
        .status_code
        for number in range(4)
    ]
    assert codes == [201, 201, 429, 429]


def test_beginning_again_counts_once() -> None:
    cast.open_study(sitting={"items": 3, "begins_per_address": 1})
    assert begins(4, person="a" * 32) == [201, 200, 200, 200]


@pytest.mark.thorough
def test_a_study_may_let_a_classroom_in_and_an_amendment_may_say_so_later() -> None:
    study = cast.open_study(stages=[{"sittings": 40}], sitting={"items": 1, "begins_per_address": 1})
    assert begins(2) == [201, 429]
    text = cast.study_text(stages=[{"sittings": 40}], sitting={"items": 1, "begins_per_address": 0})
    amend(study, text=text, source_name="cast.toml", reason="a class comes")
    assert begins(25) == [201] * 25


def test_ids_of_a_panel_that_cannot_be_asked_are_counted_and_those_it_confirms_are_not() -> None:
    sitting = {"items": 3, "begins_per_address": 1}
    cast.open_study(panel=GENERIC, sitting=sitting)
    codes = [begins(1, parameters={"pid": name})[0] for name in ("anna", "berta")]
    assert codes == [201, 429]


def test_two_studies_count_an_address_apart() -> None:
    sitting = {"items": 3, "begins_per_address": 1}
    cast.open_study(sitting=sitting)
    cast.open_study(slug="second", sitting=sitting)
    assert begins(2) == [201, 429]
    address = "/api/v1/studies/second/sittings/"
    assert begins(2, to=address) == [201, 429]


def test_links_and_simulated_people_are_not_counted() -> None:
    sitting = {"items": 3, "begins_per_address": 1}
    study = cast.open_study(panel={"kind": "links"}, sitting=sitting)
    tokens = [link.address.partition("=")[2] for link in make_links(study, count=3, root="http://testserver")]
    assert [begins(1, parameters={"link": token})[0] for token in tokens] == [201] * 3
    cast.open_study(slug="open-one", sitting=sitting)
    mark = {SIMULATED_HEADER: simulated_mark()}
    address = "/api/v1/studies/open-one/sittings/"
    codes = [
        Client().post(address, {"consent": True}, content_type="application/json", headers=mark).status_code
        for _person in range(3)
    ]
    assert codes == [201] * 3 and not BudgetCount.objects.exists()


def test_who_finds_it_closed_has_not_begun() -> None:
    study = cast.open_study(sitting={"items": 3, "begins_per_address": 1})
    Stage.objects.filter(study=study, index=1).update(state="paused")
    assert begins(2) == [403, 403]
    Stage.objects.filter(study=study, index=1).update(state="open")
    assert begins(2) == [201, 429]


# At once


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_of_thirty_at_once_of_one_address_exactly_twenty_begin() -> None:
    cast.open_study(stages=[{"sittings": 40}], sitting={"items": 1})
    results = together(*[lambda: begins(1)[0]] * 30)
    assert sorted(results) == [201] * 20 + [429] * 10
    assert Sitting.objects.count() == BudgetCount.objects.get().count == 20


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_of_thirty_who_pass_the_checks_at_once_exactly_eight_get_a_place() -> None:
    stage = cast.open_stage(stages=[{"sittings": 8}])
    people = [cast.Visitor(stage.study) for _person in range(30)]
    kinds = sorted(step.kind for step in together(*[person.check for person in people]))
    assert kinds == ["end"] * 22 + ["item"] * 8
    assert Assignment.objects.filter(state="live").count() == 24


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("panel", ["open", "generic"])
def test_of_twelve_begins_at_once_of_one_person_one_is_the_first(panel: str) -> None:
    cast.open_study(panel={"kind": panel})
    fields = {"person": "a" * 32} if panel == "open" else {"parameters": {"pid": "anna"}}
    results = together(*[lambda: begins(1, **fields)[0]] * 12)
    assert sorted(results) == [200] * 11 + [201]
    assert Sitting.objects.count() == 1
