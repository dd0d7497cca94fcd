"""Every call of the contract, with everything that can go wrong with one: what is repeated, what never is, and what the
caller learns."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from survey.contracts import panel_api
from survey.contracts.panels import PanelBusy, PanelError, PanelRefused, PanelUnreachable
from survey.models import Posting
from survey.panels import money, postings
from survey.panels.prolific.client import ProlificClient
from survey.panels.prolific.fake import WORKSPACE, Breakage, FakeProlific
from survey.panels.submissions import read_posting

from .prolific_contract import CALLS, Keeper
from .test_prolific import STUDY
from .world import posted

pytestmark = pytest.mark.slow

REASON = "Every page was answered in less than one second, and all answers are the same. " * 2
AT = "2027-01-31T09:00:00Z"


@dataclass(frozen=True)
class Use:
    """How the client makes one call. `safe`: twice does no harm, so that it is repeated until it is answered. `once`:
    it is not even repeated where it certainly did not arrive. `reads`: the answer's body is read."""

    method: str
    part: str
    make: Callable[["World"], Any]
    safe: bool = False
    once: bool = False
    reads: bool = True

    def __str__(self) -> str:
        return f"{self.method} {self.part}"


class World:
    """A client, and a fresh study with a submission for each call."""

    def __init__(self, fake: FakeProlific) -> None:
        self.fake = fake
        self.client = ProlificClient(url=fake.url, token=fake.token, sleep=lambda seconds: None)
        self.done: list[tuple[str, str]] = []
        answer = fake._answer

        def carried_out(method: str, path: str, *args: Any, **more: Any) -> Any:
            response = answer(method, path, *args, **more)
            self.done.append((method, path))
            return response

        fake._answer = carried_out  # type: ignore[method-assign]

    def study(self, status: str = "UNPUBLISHED") -> str:
        key = self.fake.new_id()
        self.fake.studies[key] = {**STUDY, "id": key, "status": status}
        return key

    def place(self, *, handed_in: bool = False) -> dict[str, Any]:
        place = self.fake.take_place(self.study("ACTIVE"))
        assert place is not None
        if handed_in:
            self.fake.submit(place["id"], "ABC")
        return place

    def group(self) -> str:
        key = self.fake.new_id()
        self.fake.groups[key] = {"id": key, "name": key, "people": set()}
        return key

    def batch(self) -> str:
        place = self.place()
        return str(self.client.set_up_bonuses(place["study_id"], [(place["id"], "1.00")])["id"])


def confirm(world: World) -> Any:
    """The second half of subscribing; the first half goes through."""
    return world.client.subscribe(WORKSPACE, "study.status.change", "https://study.example/hooks/prolific")


def ready(value: Any, call: Callable[[Any], Any]) -> Any:
    """What a call needs is made before anything is broken."""
    return lambda: call(value)


USES = (
    Use("GET", "/.well-known/", lambda w: w.client.study_keys, safe=True),
    Use("GET", "/studies/", lambda w: lambda: list(w.client.studies()), safe=True),
    Use("POST", "/studies/", lambda w: lambda: w.client.create_study(STUDY)),
    Use("GET", "/studies/", lambda w: ready(w.study(), w.client.study), safe=True),
    Use("PATCH", "/studies/", lambda w: ready(w.study(), lambda s: w.client.set_places(s, 12)), safe=True),
    Use("POST", "/transition/", lambda w: ready(w.study(), lambda s: w.client.transition(s, "PUBLISH"))),
    Use(
        "POST",
        "/transition/",
        lambda w: ready(w.study(), lambda s: w.client.transition(s, "SCHEDULE_PUBLISH", publish_at=AT)),
    ),
    Use("POST", "/test-study/", lambda w: ready(w.study(), w.client.test_study)),
    Use("GET", "/cost/", lambda w: ready(w.study(), w.client.study_cost), safe=True),
    Use("GET", "/predicted-recruitment-time/", lambda w: ready(w.study(), w.client.recruitment_time), safe=True),
    Use("POST", "/demographic-export/", lambda w: ready(w.study(), w.client.demographics), safe=True),
    Use("POST", "/study-cost-calculator/", lambda w: lambda: w.client.cost_of(100, 10), safe=True),
    Use("GET", "/balance/", lambda w: lambda: w.client.balance(WORKSPACE), safe=True),
    Use(
        "GET", "/reward-recommendations/", lambda w: lambda: w.client.reward_recommendations(WORKSPACE, "USD"),
        safe=True,
    ),
    Use("GET", "/participant-groups/", lambda w: lambda: list(w.client.groups({"workspace_id": WORKSPACE})), safe=True),
    Use("POST", "/participant-groups/", lambda w: lambda: w.client.create_group("all", {"project_id": "p"})),
    Use(
        "POST", "/participants/", lambda w: ready(w.group(), lambda g: w.client.add_to_group(g, ["x"])),
        safe=True, reads=False,
    ),
    Use(
        "DELETE", "/participants/", lambda w: ready(w.group(), lambda g: w.client.remove_from_group(g, ["x"])),
        safe=True, reads=False,
    ),
    Use("GET", "/submissions/", lambda w: ready(w.study(), lambda s: list(w.client.submissions(s))), safe=True),
    Use("GET", "/submissions/", lambda w: ready(w.place()["id"], w.client.submission), safe=True),
    Use("POST", "/transition/", lambda w: ready(w.place(handed_in=True)["id"], w.client.approve), safe=True),
    Use(
        "POST", "/transition/",
        lambda w: ready(
            w.place(handed_in=True)["id"], lambda s: w.client.reject(s, category="LOW_EFFORT", message=REASON)
        ),
    ),
    Use("POST", "/request-return/", lambda w: ready(w.place()["id"], lambda s: w.client.request_return(s, ["Why."]))),
    Use(
        "POST", "/bulk-approve/", lambda w: ready([w.place(handed_in=True)["id"]], w.client.approve_all),
        safe=True, reads=False,
    ),
    Use(
        "POST", "/bonus-payments/",
        lambda w: ready(w.place(), lambda p: w.client.set_up_bonuses(p["study_id"], [(p["id"], "1.50")])),
    ),
    Use("POST", "/pay/", lambda w: ready(w.batch(), w.client.pay_bonuses), once=True, reads=False),
    Use("GET", "/hooks/secrets/", lambda w: lambda: w.client.webhook_secret(WORKSPACE), safe=True),
    Use("POST", "/hooks/secrets/", lambda w: lambda: w.client.new_webhook_secret(WORKSPACE), once=True),
    Use("GET", "/hooks/subscriptions/", lambda w: lambda: list(w.client.subscriptions(WORKSPACE)), safe=True),
    Use("POST", "/hooks/subscriptions/", lambda w: lambda: confirm(w), once=True),
)  # fmt: skip


@pytest.fixture
def world(fake: FakeProlific, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(panel_api, "FIRST_WAIT", 0.0)
    fake.test_people.append("5f00000000000000000000ee")
    return World(fake)


def broken(world: World, use: Use, how: Breakage, *, times: int = 1) -> tuple[PanelError | None, int]:
    """What the call raised, and how often it was carried out."""
    make = use.make(world)
    world.done.clear()
    world.fake.break_next(use.part, how, method=use.method, times=times)
    error: PanelError | None = None
    try:
        make()
    except PanelError as exc:
        error = exc
    world.fake._broken.clear()
    return error, sum(method == use.method and use.part in path for method, path in world.done)


def test_these_are_all_calls_of_the_contract(world: World) -> None:
    for use in USES:
        use.make(world)()
    keeper: Keeper = world.fake.keeper  # type: ignore[attr-defined]
    assert keeper.seen == set(CALLS)


@pytest.mark.parametrize("how", [Breakage.LOST, Breakage.ANSWER_LOST, Breakage.FAILS])
def test_a_call_whose_answer_is_lost_is_repeated_only_where_that_does_no_harm(world: World, how: Breakage) -> None:
    for use in USES:
        error, done = broken(world, use, how)
        first = int(how == Breakage.ANSWER_LOST)
        if use.safe:
            assert error is None and done == 1 + first, use
        else:
            assert isinstance(error, PanelUnreachable) and not error.outcome_is_known, use
            assert done == first, use


def test_a_call_that_is_never_answered_ends(world: World) -> None:
    for use in USES:
        error, done = broken(world, use, Breakage.LOST, times=4)
        assert isinstance(error, PanelUnreachable) and not error.outcome_is_known and done == 0, use


def test_a_busy_panel_is_asked_again_and_has_done_nothing(world: World) -> None:
    for use in USES:
        error, done = broken(world, use, Breakage.BUSY)
        if use.once:
            assert isinstance(error, PanelBusy) and error.outcome_is_known and done == 0, use
        else:
            assert error is None and done == 1, use


@pytest.mark.parametrize("how", [Breakage.REFUSED, Breakage.REFUSED_BY_LIST])
def test_a_refusal_is_final_whatever_its_shape(world: World, how: Breakage) -> None:
    for use in USES:
        error, done = broken(world, use, how)
        assert isinstance(error, PanelRefused) and error.outcome_is_known and done == 0, use
        assert "it answered 400" in error.message, use


def test_an_answer_that_cannot_be_read_says_nothing_of_what_was_done(world: World) -> None:
    world.fake.keeper.faults = []  # type: ignore[attr-defined]
    for use in USES:
        error, done = broken(world, use, Breakage.GARBAGE)
        assert done == 1, use
        if use.reads:
            assert isinstance(error, PanelUnreachable) and not error.outcome_is_known, use
        else:
            assert error is None, use
    world.fake.keeper.faults.clear()  # type: ignore[attr-defined] - Prolific never answers so.


def test_a_call_that_comes_twice_ends_as_one_or_is_refused(world: World) -> None:
    for use in USES:
        error, done = broken(world, use, Breakage.TWICE)
        assert error is None or isinstance(error, PanelRefused), use
        assert done >= 1, use


def test_calls_over_the_limit_wait_until_it_is_over(fake: FakeProlific) -> None:
    now, waits = [0.0], []
    fake.clock, fake.a_minute = lambda: now[0], 2

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        now[0] += seconds

    client = ProlificClient(url=fake.url, token=fake.token, sleep=sleep)
    client.balance(WORKSPACE)
    now[0] = 40.0
    client.balance(WORKSPACE)
    client.balance(WORKSPACE)
    assert [round(seconds) for seconds in waits] == [20]
    fake._asked = [now[0]] * 2
    with pytest.raises(PanelBusy) as caught:
        client.balance(WORKSPACE)
    assert caught.value.retry_after == 60, "longer than a call waits"


@pytest.mark.django_db
def test_a_study_whose_publishing_came_twice_counts_as_published(fake: FakeProlific) -> None:
    """The panel refuses the second request, and has carried out the first."""
    posting = posted(publish=False)
    fake.break_next("/transition/", Breakage.TWICE)
    with pytest.raises(PanelRefused):
        postings.publish(posting)
    assert money.committed(posting.study) == 600
    read_posting(posting)
    row = Posting.objects.get()
    assert (row.state, row.pending, row.committed) == ("ACTIVE", "", 600)


def test_who_reserves_a_place_and_never_enters_loses_it(fake: FakeProlific) -> None:
    world = World(fake)
    study = world.study("ACTIVE")
    fake.studies[study]["total_available_places"] = 1
    place = fake.take_place(study, reserve=True)
    assert place is not None and world.client.submission(place["id"])["status"] == "RESERVED"
    assert fake.take_place(study) is None
    fake.time_out(place["id"])
    second = fake.take_place(study, reserve=True)
    assert second is not None
    fake.enter(second["id"])
    assert world.client.submission(second["id"])["status"] == "ACTIVE"


@pytest.mark.parametrize(("option", "filled"), [("url_parameters", True), ("question", False), ("not_required", False)])
def test_ids_are_filled_in_only_where_the_study_asks_for_parameters(
    fake: FakeProlific, option: str, filled: bool
) -> None:
    world = World(fake)
    place = world.place()
    fake.studies[place["study_id"]]["prolific_id_option"] = option
    assert (place["participant_id"] in fake.entry_address(place["id"])) is filled
