"""Simulated respondents: what they read off a page, where they may go, and whole sittings over HTTP."""

from collections import Counter

import pytest

from survey.contracts import instruments
from survey.exceptions import HunchError, StateRefused
from survey.models import Assignment, CheckAttempt, FormAnswer, Respondent, Sitting
from survey.services.base.seeds import derive
from survey.services.sittings.capacity import free_capacity
from survey.simulator import Crowd, SimulationError, loopback_url, visitors
from survey.simulator.page import Page
from survey.simulator.visitors import Person
from tests import cast

PAGE = """<!doctype html><html><body><header><form method="post" action="/elsewhere"></form></header>
<main data-kind="item" data-step="4">
 <h1>Question 1 of 3</h1>
 <div data-part="target"><b>Is $a&lt;b$ here?</b><br>A. yes<br>B. no</div>
 <p data-part="outcome" data-value="incorrect">The model answered it <em>incorrectly</em>.</p>
 <form method="post" id="step-form" data-screen="posterior" action="">
  <input type="hidden" name="csrfmiddlewaretoken" value="t&amp;k"><input type="hidden" name="step" value="4">
  <input name="value" inputmode="numeric"><textarea name="why"></textarea>
  <input type="radio" name="use" value="1" id="u1"><label for="u1" data-option>every day</label>
  <label><input type="radio" name="use" value="2" id="u2"> <span data-option>never</span></label>
  <button name="consent" value="no">No</button>
 </form>
</main></body></html>"""


def test_a_page_is_read_as_a_reader_sees_it() -> None:
    page = Page(PAGE)
    assert page.kind == "item"
    assert page.screen == "posterior"
    assert page.parts == {"target": "Is $a<b$ here?\nA. yes\nB. no", "outcome": "incorrect"}


def test_a_form_is_read_with_its_hidden_fields_choices_and_blanks() -> None:
    page = Page(PAGE)
    assert page.hidden == {"csrfmiddlewaretoken": "t&k", "step": "4"}
    assert page.choices == {"use": [("1", "every day"), ("2", "never")]}
    assert page.blanks == ["value", "why"]


def test_a_page_without_a_form_or_main_is_no_error() -> None:
    page = Page("<p>Nothing <b>here")
    assert (page.form, page.kind, page.parts, page.summary) == (None, "", {}, "Nothing here")


@pytest.mark.parametrize("url", ["http://127.0.0.1:8000", "http://localhost:80/", "http://[::1]:9", "http://127.9.9.9"])
def test_loopback_addresses_are_taken(url: str) -> None:
    assert loopback_url(url) == url.rstrip("/")


@pytest.mark.parametrize(
    "url",
    [
        "http://192.0.2.1:8000",
        "http://0.0.0.0:8000",
        "http://10.0.0.1",
        "http://[2001:db8::1]",
        "http://does-not-exist.invalid",
        "ftp://127.0.0.1",
        "127.0.0.1:8000",
        "http://user@127.0.0.1",
        "http://127.0.0.1:99999",
        "",
    ],
)
def test_any_other_address_is_refused(url: str) -> None:
    with pytest.raises(HunchError, match="--base-url: "):
        loopback_url(url)


def test_a_name_is_refused_if_one_of_its_addresses_is_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    addresses = [(None, None, None, "", ("127.0.0.1", 80)), (None, None, None, "", ("192.0.2.7", 80))]
    monkeypatch.setattr("socket.getaddrinfo", lambda *args, **kwargs: addresses)
    with pytest.raises(HunchError, match=r"192\.0\.2\.7, which is not this machine"):
        loopback_url("http://two-faces.example")


def test_a_browser_does_not_follow_a_link_off_this_machine() -> None:
    with visitors.open_client("http://127.0.0.1:1") as client, pytest.raises(SimulationError, match="led away"):
        client.get("http://192.0.2.1/")


def person(seed: int, **overrides) -> Person:
    config = cast.study(**overrides).config
    return Person(config=config, items=instruments.kind("belief_update")(), seed=seed)  # type: ignore[arg-type]


CHECKS = {
    "first_check": [("1", "wrong one"), ("2", "right one"), ("3", "other one")],
    "second_check": [("1", "right"), ("2", "wrong")],
}
RIGHT = {"first_check": "2", "second_check": "1"}


@pytest.mark.django_db
def test_a_few_people_misread_a_check_and_then_get_it_right() -> None:
    config = cast.study().config
    people = [Person(config=config, items=None, seed=seed) for seed in range(400)]  # type: ignore[arg-type]
    first = [someone.answer_checks(CHECKS) == RIGHT for someone in people]
    assert 0.03 < first.count(False) / len(first) < 0.15
    assert all(someone.answer_checks(CHECKS) == RIGHT for someone in people)


@pytest.mark.django_db
def test_people_give_form_answers_that_are_allowed() -> None:
    config = cast.study().config
    for seed in range(20):
        someone = Person(config=config, items=None, seed=seed)  # type: ignore[arg-type]
        answers = someone.answer_fields(["age", "use", "remark"])
        assert 18 <= int(answers["age"]) <= 99
        assert answers["use"] in ("often", "never")
        assert "simulated" in answers["remark"]


@pytest.mark.django_db
def test_a_check_whose_right_option_is_missing_is_an_error_and_no_guess() -> None:
    config = cast.study().config
    with pytest.raises(SimulationError, match="'first_check' does not show its right option"):
        Person(config=config, items=None, seed=1).answer_checks({"first_check": [("1", "wrong one")]})  # type: ignore[arg-type]


@pytest.mark.django_db
def test_nobody_sets_out_for_a_study_that_is_not_open() -> None:
    with pytest.raises(StateRefused, match="no stage of cast is open"):
        Crowd(study=cast.study(), respondents=1, base_url="http://127.0.0.1:1")


@pytest.mark.django_db
def test_nobody_sets_out_for_another_machine() -> None:
    with pytest.raises(HunchError, match="which is not this machine"):
        Crowd(study=cast.open_study(), respondents=1, base_url="http://192.0.2.1")


@pytest.mark.django_db
def test_people_differ_between_stages_unless_set_otherwise() -> None:
    study = cast.open_study()

    def readiness(**options) -> list[float]:
        crowd = Crowd(study=study, respondents=3, base_url="http://127.0.0.1:1", **options)
        return [someone.items.person.readiness for someone in crowd.people]

    assert readiness() == readiness() != readiness(seed=1)
    assert readiness(same_in_every_stage=True) != readiness()
    stage = study.stages.get(index=1)
    seed = derive(study.seed, "respondent", stage.index, 0)
    assert readiness()[0] == instruments.of_study(study).simulated_person(seed=seed).person.readiness


@pytest.mark.django_db
def test_a_server_that_does_not_answer_is_reported_in_words() -> None:
    crowd = Crowd(study=cast.open_study(), respondents=2, base_url="http://127.0.0.1:1")
    with pytest.raises(SimulationError, match="does not answer"):
        crowd.run()


@pytest.mark.thorough
@pytest.mark.every_database
@pytest.mark.parametrize("through", ["pages", "api"])
def test_a_whole_stage_is_answered_over_http(live_server, through: str) -> None:
    study = cast.open_study()
    stage = study.stages.get(index=1)
    crowd = Crowd(study=study, respondents=4, base_url=live_server.url, through=through, concurrency=2)
    visits = []
    assert crowd.run(visits.append) == Counter(completed=4)
    # Nobody needs a code at the end of an open study, and the pages show none.
    code = "" if through == "pages" else study.completion_code("completed")
    assert {visit.code for visit in visits} == {code}
    assert Sitting.objects.filter(stage=stage, state="complete").count() == 4
    assert Assignment.objects.filter(slot__stage=stage, state="counted").count() == 12
    assert FormAnswer.objects.count() == 4
    assert CheckAttempt.objects.filter(passed=True).count() == 4
    assert free_capacity(stage) == 0


@pytest.mark.thorough
def test_simulated_people_are_known_as_such(live_server) -> None:
    Crowd(study=cast.open_study(), respondents=1, base_url=live_server.url).run()
    assert Respondent.objects.get().is_simulated


def test_people_for_whom_there_is_no_place_say_so(live_server) -> None:
    study = cast.open_study(stages=[{"sittings": 2}])
    crowd = Crowd(study=study, respondents=3, base_url=live_server.url, concurrency=1)
    assert crowd.run() == Counter(completed=2, full=1)


@pytest.mark.thorough
def test_people_from_a_panel_bring_made_up_ids_of_their_own(live_server) -> None:
    study = cast.open_study(panel=cast.PROLIFIC)
    assert Crowd(study=study, respondents=2, base_url=live_server.url).run() == Counter(completed=2)
    assert study.respondents.filter(panel_identity__panel="prolific").count() == 2


@pytest.mark.thorough
@pytest.mark.parametrize("through", ["pages", "api"])
def test_people_answer_holdouts_controls_and_repeats_like_all_else(live_server, through: str) -> None:
    roles = {"holdout": 0.25, "controls": 0.34}
    study = cast.open_study(roles=roles, stages=[{"sittings": 4}], sitting={"items": 4})
    crowd = Crowd(study=study, respondents=4, base_url=live_server.url, through=through)
    assert crowd.run() == Counter(completed=4)
    answered = Assignment.objects.filter(state="counted").order_by().values_list("slot__role", flat=True)
    assert set(answered) == {"sampled", "holdout", "control", "repeat"}
    assert answered.count() == 16


@pytest.mark.thorough
def test_answers_are_a_fixed_function_of_person_and_pair(live_server) -> None:
    """The pages lose nothing that an answer depends on: each one stored is what its person gives in this process."""
    study = cast.open_study()
    crowd = Crowd(study=study, respondents=4, base_url=live_server.url, concurrency=1)
    crowd.run()
    for sitting, someone in zip(study.stages.get(index=1).sittings.order_by("pk"), crowd.people, strict=True):
        # Made again: a person who is asked the same a second time is not sure to say the same.
        seed = someone.items.person.seed
        again = instruments.of_study(study).simulated_person(seed=seed)
        for assignment in sitting.assignments.select_related("slot__item__pair__target", "slot__item__pair__evidence"):
            pair = assignment.slot.item.pair
            parts = {
                "target": pair.target.plain,
                "evidence": pair.evidence.plain,
                "outcome": "correct" if pair.outcome else "incorrect",
            }
            stored = list(assignment.responses.order_by("number").values_list("belief__value", flat=True))
            parts["prior"] = again.answer(screen="prior", parts=parts)["value"]
            posterior = again.answer(screen="posterior", parts=parts)["value"]
            assert stored == [int(parts["prior"]), int(posterior)]
