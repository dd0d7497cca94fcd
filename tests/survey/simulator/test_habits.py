"""Simulated people who leave, come back, hurry and click twice: over HTTP, and what the server has counted of them."""

import copy
from collections import Counter
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.db import transaction

from survey.contracts import panels
from survey.exceptions import HunchError
from survey.models import Assignment, Consent, Respondent, Response, Sitting, Study
from survey.services.sittings.enrolment import begin_sitting, new_open_person
from survey.simulator import REALISTIC, Crowd, Rates, SimulationError
from survey.simulator.habits import Habit, habits_of, pages_of, stray_scanners
from survey.simulator.journey import REPEATING, Journey
from survey.simulator.own_site import OwnSite
from survey.simulator.routes import Shown
from survey.simulator.visitors import Person
from tests import cast
from tests.cast import PROLIFIC

pytestmark = pytest.mark.thorough

ALL_KINDS = Rates(dropouts=0.2, returners=0.2, speeders=0.1, double_tabs=0.3, scanners=0.2)


# Who has which habit


@pytest.mark.django_db
def test_as_many_people_have_a_habit_as_the_rates_say() -> None:
    config = cast.study().config
    habits = habits_of(200, rates=ALL_KINDS, config=config, seed=1)
    assert Counter(habit.kind for habit in habits) == {
        "dropout": 40,
        "back_soon": 20,
        "back_late": 20,
        "speeder": 20,
        "double_tabs": 60,
        "ordinary": 40,
    }
    assert sum(habit.scanned for habit in habits) + stray_scanners(200, ALL_KINDS) == 40
    assert {habit.kind for habit in habits if habit.newcomer} == {"ordinary"}


@pytest.mark.django_db
def test_people_leave_at_any_page_and_who_comes_back_has_begun() -> None:
    config = cast.study().config
    habits = habits_of(2000, rates=Rates(dropouts=0.5, returners=0.5), config=config, seed=2)
    left = {habit.leaves_before for habit in habits if habit.kind == "dropout"}
    assert left == set(range(pages_of(config)))
    assert min(habit.leaves_before or 0 for habit in habits if habit.kind != "dropout") == 2


@pytest.mark.django_db
def test_habits_are_a_fixed_function_of_the_seed() -> None:
    config = cast.study().config
    first, second, other = (habits_of(50, rates=REALISTIC, config=config, seed=seed) for seed in (3, 3, 4))
    assert first == second != other


@pytest.mark.django_db
def test_nobody_has_a_habit_unless_asked() -> None:
    crowd = Crowd(study=cast.open_study(), respondents=4, base_url="http://127.0.0.1:1")
    assert [someone.habit for someone in crowd.people] == [Habit()] * 4 and crowd.strays == []


@pytest.mark.parametrize(
    ("rates", "message"),
    [
        ({"dropouts": 1.5}, "--dropouts: 1.5 is not a share between 0 and 1"),
        ({"double_tabs": -0.1}, "--double-tabs: -0.1 is not a share between 0 and 1"),
        ({"dropouts": 0.6, "speeders": 0.6}, "more than all people together"),
    ],
)
def test_rates_that_cannot_be_are_refused(rates: dict[str, float], message: str) -> None:
    with pytest.raises(HunchError, match=message):
        Rates(**rates)


# Over HTTP


@pytest.mark.every_database
@pytest.mark.parametrize(
    ("through", "panel"), [("pages", PROLIFIC), ("api", {"kind": "open"}), ("pages", {"kind": "links"})]
)
def test_the_server_counts_the_same_whatever_people_do(live_server, through: str, panel: dict) -> None:
    study = cast.open_study(stages=[{"sittings": 10}], panel=panel)
    crowd = Crowd(study=study, respondents=10, base_url=live_server.url, through=through, rates=ALL_KINDS)
    outcomes = crowd.run()
    report = crowd.report()
    assert outcomes.total() == 10 and outcomes["left"] == 2
    assert report.differences == ()
    assert len(report.agreed) == 11
    assert [someone.diary.returned for someone in crowd.people if someone.habit.kind.startswith("back")] == [1, 1]
    assert Sitting.objects.filter(state="expired").exists()


# Through the pages of this process: what is said over HTTP is the same


@pytest.fixture
def site(transactional_db: None) -> OwnSite:
    return OwnSite()


def walked(test: Any) -> Any:
    return pytest.mark.slow(pytest.mark.any_database(test))


def crowd_for(site: OwnSite, study, people: int = 2, **options) -> Crowd:
    return Crowd(study=study, respondents=people, site=site, concurrency=1, **options)


@walked
@pytest.mark.parametrize("through", ["pages", "api"])
@pytest.mark.parametrize("panel", [PROLIFIC, {"kind": "open"}], ids=["panel", "open"])
def test_who_comes_back_by_the_same_link_goes_on_where_they_were(site, through: str, panel: dict) -> None:
    crowd = crowd_for(site, cast.open_study(panel=panel), people=1, through=through)
    crowd.people[0].habit = Habit(kind="back_soon", leaves_before=6)
    assert crowd.run() == {"completed": 1}
    sitting = Sitting.objects.get()
    assert sitting.expired_at is None and sitting.assignments.filter(state="counted").count() == 3
    assert crowd.people[0].diary.returned == 1


@walked
def test_who_comes_back_after_expiry_answers_late_what_somebody_else_was_given(site) -> None:
    study = cast.open_study(stages=[{"sittings": 1}], sitting={"items": 2}, panel=PROLIFIC)
    crowd = crowd_for(site, study)
    crowd.people[0].habit = Habit(kind="back_late", leaves_before=6)  # with one item answered
    crowd.people[1].habit = Habit(newcomer=True)
    assert crowd.run() == {"completed": 2}
    states = Assignment.objects.order_by("sitting", "position").values_list("state", flat=True)
    assert list(states) == ["counted", "late", "counted"]
    assert crowd.given_up == 1
    report = crowd.report()
    assert report.differences == ()
    assert any("answers that came late and do not count: 1" in line for line in report.lines)


@walked
@pytest.mark.parametrize("page", [0, 1, 4])
def test_who_leaves_for_good_leaves_what_they_had_answered(site, page: int) -> None:
    crowd = crowd_for(site, cast.open_study(), people=1)
    crowd.people[0].habit = Habit(kind="dropout", leaves_before=page)
    assert crowd.run() == {"left": 1}
    begun = page > 1  # The first page and the consent form store nothing.
    assert list(Sitting.objects.values_list("state", flat=True)) == ["expired"] * begun
    assert crowd.report().differences == ()


@walked
@pytest.mark.parametrize("through", ["pages", "api"])
def test_pages_that_are_sent_twice_count_once(site, monkeypatch, through: str) -> None:
    monkeypatch.setattr("survey.simulator.journey.REPEATS", 1.0)
    crowd = crowd_for(site, cast.open_study(), through=through)
    for someone in crowd.people:
        someone.habit = Habit(kind="double_tabs")
    assert crowd.run() == {"completed": 2}
    assert Response.objects.count() == 12 and Respondent.objects.count() == 2
    repeats = sum((someone.diary.repeats for someone in crowd.people), Counter())
    assert set(repeats) == set(REPEATING)
    pages = sum(Sitting.objects.values_list("step", flat=True)) + 2  # Each person's page of consent is one, too.
    assert sum(repeats.values()) <= pages
    assert crowd.report().differences == ()


@walked
@pytest.mark.parametrize("through", ["pages", "api"])
def test_speeders_get_through_with_answers_of_chance(site, through: str) -> None:
    crowd = crowd_for(site, cast.open_study(stages=[{"sittings": 4}]), people=4, through=through)
    for someone in crowd.people:
        someone.habit = Habit(kind="speeder")
    assert crowd.run() == {"completed": 4}
    values = set(Response.objects.values_list("belief__value", flat=True))
    assert len(values) > 6 and all(value % 5 == 0 for value in values)
    times = Response.objects.values_list("client__submitted_ms", flat=True)
    assert sum(times) / len(times) < 3000


@walked
def test_programs_that_only_read_begin_nothing_and_take_nobodys_link(site) -> None:
    study = cast.open_study(panel={"kind": "links"})
    crowd = crowd_for(site, study, rates=Rates(scanners=1.0))
    assert [someone.habit.scanned for someone in crowd.people] == [True, False] or crowd.people[1].habit.scanned
    assert len(crowd.strays) == 1
    assert crowd.run() == {"completed": 2}
    assert Consent.objects.count() == Respondent.objects.count() == 2
    assert study.entry_links.filter(used_at__isnull=True).count() == 1
    assert crowd.read > 20
    assert crowd.report().differences == ()


@walked
def test_people_tell_the_times_that_a_browser_would(site) -> None:
    crowd_for(site, cast.open_study(), people=1).run()
    for client in Response.objects.values_list("client", flat=True):
        assert 0 < client["shown_ms"] < client["first_touch_ms"] < client["submitted_ms"]


# Differences are reported


def begin_unseen(study) -> None:
    begin_sitting(study=study, ids=new_open_person(), simulated=True)


SPOILT = [
    (lambda crowd: begin_unseen(crowd.stage.study), "people who began: 2 seen, 3 stored"),
    (
        lambda crowd: Sitting.objects.filter(pk=Sitting.objects.latest("pk").pk).update(state="expired"),
        "people who reached the last page: 2 seen, 1 stored",
    ),
    (
        lambda crowd: setattr(crowd.people[0].diary, "item_answers", 7),
        "answers to items that were taken: 13 seen, 12 stored",
    ),
    (
        lambda crowd: crowd.people[0].diary.tokens.add(Sitting().token),
        "sittings that they were let into: 3 seen, 2 stored",
    ),
    (
        lambda crowd: setattr(crowd.people[0].diary, "code", "ANOTHER"),
        "codes that they were shown: False seen, True stored",
    ),
    (
        lambda crowd: crowd.stage.booklets.filter(sitting__isnull=False).update(claimed_at=None),
        "booklets taken: 0 seen, 2 stored",
    ),
]


@walked
def test_a_difference_between_people_and_server_is_reported(site) -> None:
    """Each one by itself, and none once it is taken back."""
    crowd = crowd_for(site, cast.open_study())
    crowd.run()
    for spoil, expected in SPOILT:
        assert crowd.report().differences == ()
        diaries = [copy.deepcopy(someone.diary) for someone in crowd.people]
        with transaction.atomic():
            spoil(crowd)
            assert expected in crowd.report().differences
            transaction.set_rollback(True)
        for someone, diary in zip(crowd.people, diaries, strict=True):
            someone.diary = diary
    assert crowd.report().differences == ()


@walked
def test_a_program_that_began_something_is_reported(site) -> None:
    study = cast.open_study(panel=PROLIFIC, stages=[{"sittings": 6}])
    crowd = crowd_for(site, study, rates=Rates(scanners=1.0))
    crowd.run()
    cast.begin(study, panels.of_study(study).recognise(study, crowd.strays[0]))
    assert "programs that began anything: 0 seen, 1 stored" in crowd.report().differences


# Journeys on a route that does not keep its promises


class Corridor:
    """Four steps; a page that is sent twice leads wherever `second` says."""

    def __init__(self, second: str = "same", refuses: bool = False) -> None:
        self.ids, self.token, self.at, self.second, self.refuses = {}, "t", 0, second, refuses

    def arrive(self) -> Shown:
        return Shown(kind="instructions", number=0)

    def go_in(self) -> Shown:
        return self.arrive()

    def send(self, step: Shown, answers) -> Shown:
        if self.refuses:
            return Shown(kind="instructions", number=step.number, errors="Enter a number.")
        repeated = step.number < self.at
        if not repeated or self.second == "counted twice":
            self.at += 1
        return Shown(kind="end" if self.at == 4 else "instructions", number=self.at, outcome="done" * (self.at == 4))

    def open(self, step: Shown, person) -> None:
        """Nothing of these steps begins when it is shown."""

    def answers(self, step: Shown, person) -> dict:
        return {}

    careless = answers

    def leave(self, step: Shown, seen) -> None:
        self.left = step.number


def journey(route: Corridor, **habit) -> Journey:
    config = (Study.objects.first() or cast.study()).config
    person = Person(config=config, items=None, seed=5, habit=Habit(**habit))  # type: ignore[arg-type]
    return Journey(route=route, person=person, go_on=lambda: True)


@pytest.mark.django_db
def test_a_page_that_counts_twice_is_an_error(monkeypatch) -> None:
    monkeypatch.setattr("survey.simulator.journey.REPEATS", 1.0)
    assert journey(Corridor(), kind="double_tabs").run() == "done"
    with pytest.raises(SimulationError, match=r"the first led to .* the second to"):
        journey(Corridor("counted twice"), kind="double_tabs").run()


@pytest.mark.django_db
def test_an_answer_that_is_refused_is_an_error_for_who_has_read_the_question() -> None:
    with pytest.raises(SimulationError, match="a right answer is refused: Enter a number"):
        journey(Corridor(refuses=True)).run()


@pytest.mark.django_db
def test_a_way_without_end_is_given_up(monkeypatch) -> None:
    monkeypatch.setattr("survey.simulator.journey.MAX_STEPS", 3)
    with pytest.raises(SimulationError, match="no end after 3 steps"):
        journey(Corridor()).run()


@pytest.mark.django_db
def test_who_leaves_has_seen_so_many_pages() -> None:
    route = Corridor()
    assert journey(route, kind="dropout").run(leaves_before=2) == "left"
    assert route.left == 2


# The command


def test_simulate_says_what_was_done_and_that_the_counts_agree(live_server) -> None:
    cast.open_study(stages=[{"sittings": 6}])
    out = StringIO()
    call_command(
        "simulate", "cast", "--respondents=6", f"--base-url={live_server.url}", "--double-tabs=0.5", stdout=out
    )
    first, *lines = out.getvalue().splitlines()
    assert first.startswith("6 simulated people visited cast: ")
    assert any("sent more than once" in line for line in lines)
    assert lines[-1].startswith("The server has counted the same: people who began")


def test_simulate_ends_with_an_error_where_the_counts_differ(live_server, monkeypatch) -> None:
    cast.open_study()
    monkeypatch.setattr("survey.simulator.crowd_report._began", lambda study, ids: True)
    with pytest.raises(SystemExit):
        call_command(
            "simulate", "cast", "--respondents=2", f"--base-url={live_server.url}", "--scanners=1", stdout=StringIO()
        )
