"""Many at once, on PostgreSQL with real threads: what locks and conditional updates are there for."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from predictors import training as predictor_training
from survey.contracts.panels import PanelIds
from survey.exceptions import EntryRefused
from survey.models import Assignment, Booklet, JobStep, PredictorRun, Respondent, Response, Sitting, Slot, Stage
from survey.services.base import files, leases
from survey.services.plans import planning
from survey.services.sittings import expiry
from survey.services.sittings.answering import advance
from survey.services.sittings.enrolment import begin_sitting
from survey.services.stages import jobs, lifecycle
from tests import cast
from tests.waiting import PATIENCE

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgresql]


def together(*calls: Callable[[], Any]) -> list[Any]:
    """Run the calls at once, each in a thread with a connection of its own; their results, or what they raised."""
    results: list[Any] = [None] * len(calls)
    gate = threading.Barrier(len(calls))

    def run(index: int) -> None:
        try:
            connection.ensure_connection()
            gate.wait(timeout=PATIENCE)
            results[index] = calls[index]()
        except Exception as exc:
            results[index] = exc
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(index,)) for index in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=PATIENCE)
    assert not any(thread.is_alive() for thread in threads), "threads wait for each other"
    return results


def no_errors(results: list[Any]) -> None:
    assert [result for result in results if isinstance(result, BaseException)] == []


@pytest.fixture(autouse=True)
def _no_held_slot_is_held_twice() -> Iterator[None]:
    """What must hold after every test here."""
    yield
    held = Counter(Assignment.objects.filter(state__in=Assignment.HOLDING).values_list("slot_id", flat=True))
    assert not held or max(held.values()) == 1
    lying = Slot.objects.filter(booklet__isnull=True, role="sampled")
    assert not lying.exists()


def test_forty_people_at_the_door_take_exactly_twenty_places() -> None:
    stage = cast.open_stage(panel={"kind": "generic"}, stages=[{"sittings": 20}])

    def come() -> str:
        try:
            visitor = cast.Visitor(stage.study)
        except EntryRefused as exc:
            return exc.code
        return visitor.check().kind

    results = Counter(together(*[come] * 40))
    assert results == {"item": 20, "full": 20}
    assert Booklet.objects.filter(claimed_at__isnull=True).count() == 0
    assert Assignment.objects.count() == 60
    assert Respondent.objects.count() == 20


def test_twenty_people_claim_the_last_twenty_booklets_at_once_and_nobody_reads_full() -> None:
    stage = cast.open_stage(stages=[{"sittings": 20}])
    waiting = [cast.Visitor(stage.study) for _person in range(20)]
    results = together(*[visitor.check for visitor in waiting])
    no_errors(results)
    assert {step.kind for step in results} == {"item"}
    assert Sitting.objects.values("booklet").distinct().count() == 20


def until_somebody_waits() -> None:
    """Wait until another connection to this database waits for a lock."""
    asked = (
        "SELECT EXISTS (SELECT 1 FROM pg_locks JOIN pg_stat_activity USING (pid) "
        "WHERE NOT granted AND datname = current_database())"
    )
    end = time.monotonic() + PATIENCE
    with connection.cursor() as cursor:
        while time.monotonic() < end:
            cursor.execute("SELECT pg_stat_clear_snapshot()")
            cursor.execute(asked)
            if cursor.fetchone()[0]:
                return
            time.sleep(0.01)
    raise AssertionError("nobody waits")


def meanwhile(change: Callable[[], Any], call: Callable[[], Any], *, commit: bool = True) -> list[Any]:
    """The results of both, where the call begins when the change is made, and waits until the change is stored."""
    made = threading.Event()

    def first() -> Any:
        with transaction.atomic():
            result = change()
            made.set()
            until_somebody_waits()
            transaction.set_rollback(not commit)
        return result

    def second() -> Any:
        assert made.wait(timeout=PATIENCE)
        return call()

    return together(first, second)


@pytest.mark.parametrize("state", ["paused", "closing"])
def test_a_stage_that_stops_admitting_while_somebody_waits_at_the_door_admits_nobody(state: str) -> None:
    stage = cast.open_stage()
    _stopped, refusal = meanwhile(
        lambda: Stage.objects.filter(pk=stage.pk).update(state=state),
        lambda: begin_sitting(study=stage.study, ids=cast.person()),
    )
    assert isinstance(refusal, EntryRefused) and refusal.code == "closed"
    assert not Respondent.objects.exists()
    assert Stage.objects.get().arrivals == 0


def test_a_stage_that_fills_up_while_somebody_waits_at_the_door_admits_nobody() -> None:
    stage = cast.open_stage()

    def fill_up() -> None:
        Stage.objects.filter(pk=stage.pk).update(arrivals=4)
        Booklet.objects.filter(stage=stage).update(claimed_at=timezone.now())

    _filled, refusal = meanwhile(fill_up, lambda: begin_sitting(study=stage.study, ids=cast.person()))
    assert isinstance(refusal, EntryRefused) and refusal.code == "full"
    assert not Respondent.objects.exists()
    assert Stage.objects.get().arrivals == 4


def test_of_two_tabs_the_one_that_waits_gets_the_sitting_of_the_other() -> None:
    stage, ids = cast.open_stage(), cast.person()
    first, second = meanwhile(*[lambda: begin_sitting(study=stage.study, ids=ids)] * 2)
    assert first == second and (first.is_new, second.is_new) == (True, False)
    assert Stage.objects.get().arrivals == 1


def test_of_two_tabs_of_a_later_wave_the_one_that_waits_gets_the_sitting_of_the_other() -> None:
    overrides = {"stages": [{"sittings": 2}, {"sittings": 2, "wave": 2}], "waves": [{"after_days": 0, "open_days": 7}]}
    stage, ids = cast.open_stage(panel={"kind": "generic"}, **overrides), PanelIds("generic", "anna")
    cast.Visitor(stage.study, ids=ids).finish()
    jobs.run_inline(lifecycle.close_stage(stage, now=True))
    lifecycle.open_stage(cast.stage_of(stage.study, 2))
    first, second = meanwhile(*[lambda: begin_sitting(study=stage.study, ids=ids)] * 2)
    assert first == second and (first.is_new, second.is_new) == (True, False)
    assert Sitting.objects.filter(wave=2).count() == 1 and Stage.objects.get(index=2).arrivals == 1


@pytest.mark.parametrize(("commit", "kind"), [(False, "item"), (True, "end")])
def test_who_finds_the_last_booklet_being_claimed_waits_for_what_becomes_of_it(commit: bool, kind: str) -> None:
    stage = cast.open_stage(stages=[{"sittings": 1}])
    visitor = cast.Visitor(stage.study)
    _claimed, step = meanwhile(lambda: Booklet.objects.update(claimed_at=timezone.now()), visitor.check, commit=commit)
    assert step.kind == kind
    assert visitor.reload().state == ("live" if kind == "item" else "turned_away")


def test_two_tabs_begin_one_sitting() -> None:
    stage = cast.open_stage()
    ids = cast.person()
    results = together(*[lambda: begin_sitting(study=stage.study, ids=ids)] * 6)
    no_errors(results)
    assert len({sitting.pk for sitting in results}) == 1
    assert Respondent.objects.count() == Sitting.objects.count() == 1


def test_the_same_post_from_eight_threads_is_one_answer() -> None:
    visitor = cast.Visitor(cast.open_stage().study).to_items()
    step = visitor.step.number
    calls = [
        lambda value=value: advance(sitting=visitor.sitting, step=step, data={"value": value}) for value in range(8)
    ]
    results = together(*calls)
    no_errors(results)
    assert {result.number for result in results} == {step + 1}
    assert Response.objects.count() == 1


def test_a_wrong_check_posted_twice_is_one_attempt() -> None:
    visitor = cast.Visitor(cast.open_stage().study)
    step = visitor.step
    wrong = next(place for place, (index, _text) in enumerate(step.checks[0].options, 1) if index != 0)
    results = together(
        *[lambda: advance(sitting=visitor.sitting, step=step.number, data={"ready": wrong})] * 4,
    )
    no_errors(results)
    assert visitor.sitting.check_attempts.count() == 1
    assert visitor.reload().state == "live"


@pytest.mark.parametrize("_time", range(2))
def test_an_answer_in_flight_and_expiry_leave_one_truth(_time: int) -> None:
    stage = cast.open_stage()
    visitor = cast.Visitor(stage.study).to_items()
    Sitting.objects.update(last_seen_at=timezone.now() - timedelta(hours=2))
    step = visitor.step.number
    limit = timezone.now() - timedelta(minutes=30)
    results = together(
        lambda: advance(sitting=visitor.sitting, step=step, data={"value": 50}),
        lambda: expiry.expire_sitting(visitor.sitting.pk, now=timezone.now(), seen_before=limit),
    )
    no_errors(results)
    # Whichever was first: the answer is stored, and it brought the sitting back or kept it alive.
    assert Response.objects.count() == 1
    assert visitor.reload().state == "live"
    assert visitor.states() == ["live"] * 3
    assert (visitor.sitting.expired_at is not None) == results[1]


@pytest.mark.parametrize("_time", range(2))
def test_a_person_who_comes_back_and_one_who_claims_the_make_up_booklet_share_no_slot(_time: int) -> None:
    stage = cast.open_stage(stages=[{"sittings": 2}])
    back = [cast.Visitor(stage.study).to_items() for _person in range(2)]
    for visitor in back:
        visitor.answer()
        visitor.expire()
    expiry.deal_make_up_booklets(stage)
    new = [cast.Visitor(stage.study) for _booklet in range(expiry.free_booklets(stage).count())]
    results = together(
        *[lambda visitor=visitor: visitor.post(value=50) for visitor in back], *[visitor.check for visitor in new]
    )
    no_errors(results)
    for visitor in [*back, *new]:
        visitor.finish()
    counted = Assignment.objects.filter(state="counted").values_list("slot_id", flat=True)
    assert sorted(counted) == sorted(stage.slots.values_list("pk", flat=True))


@pytest.mark.parametrize("_time", range(2))
def test_the_last_answer_and_the_freeze_leave_no_counted_answer_outside_the_snapshot(_time: int) -> None:
    stage = cast.open_stage()
    visitor = cast.Visitor(stage.study).to_items()
    visitor.answer()
    visitor.answer()
    visitor.post(value=50)
    stage = lifecycle.close_stage(stage)
    results = together(
        lambda: visitor.post(value=60),
        *[lambda: lifecycle.freeze(stage)] * 3,
    )
    unexpected = [error for error in results if isinstance(error, Exception) and type(error) is not lifecycle.StillLive]
    assert unexpected == []
    answers = lifecycle.freeze(stage)["answers"]
    assert answers == Assignment.objects.filter(state="counted").count() == 3


@pytest.mark.parametrize("_time", range(2))
def test_coming_back_while_the_stage_freezes_counts_in_the_snapshot_or_is_late(_time: int) -> None:
    stage = cast.open_stage()
    visitor = cast.Visitor(stage.study).to_items()
    visitor.answer()
    visitor.expire()
    results = together(
        lambda: visitor.post(value=50),
        lambda: lifecycle.freeze(lifecycle.close_stage(stage)),
    )
    assert not isinstance(results[0], Exception)
    visitor.finish()
    answers = lifecycle.freeze(stage)["answers"]
    assert answers == Assignment.objects.filter(state="counted").count()
    assert set(visitor.states()) <= {"counted", "late"}


def test_nobody_begins_in_a_stage_that_closes_at_that_moment_and_is_forgotten() -> None:
    stage = cast.open_stage(stages=[{"sittings": 8}])

    def come() -> str:
        try:
            return cast.Visitor(stage.study).sitting.state
        except EntryRefused as exc:
            return exc.code

    together(*[come] * 6, lambda: lifecycle.close_stage(stage, now=True))
    stage.refresh_from_db()
    assert stage.state == "closing"
    if not Sitting.objects.filter(state="live").exists():
        assert lifecycle.freeze(stage)["answers"] == 0


def test_make_up_booklets_are_dealt_once_by_many_beats() -> None:
    stage = cast.open_stage()
    for _person in range(4):
        cast.Visitor(stage.study).to_items().expire()
    results = together(*[lambda: expiry.deal_make_up_booklets(stage)] * 4)
    no_errors(results)
    assert sorted(results) == [0, 0, 0, 4]


def test_a_stage_planned_by_many_at_once_is_planned_once() -> None:
    stage = cast.stage_of(cast.small_study())
    results = together(*[lambda: planning.plan_stage(stage)] * 4)
    no_errors(results)
    assert len({planned.plan_sha256 for planned in results}) == 1
    assert Slot.objects.count() == 12 and Booklet.objects.count() == 4


def test_two_stages_are_never_open_at_once() -> None:
    study = cast.small_study(stages=[{"sittings": 4}, {"sittings": 4}])
    stages = [planning.plan_stage(cast.stage_of(study, index)) for index in (1, 2)]
    together(*[lambda stage=stage: lifecycle.open_stage(stage) for stage in stages])
    assert list(Stage.objects.filter(state="open").values_list("index", flat=True)) == [1]


def test_one_of_many_workers_claims_a_step_whose_lease_is_over() -> None:
    stage = cast.closed_stage()
    step = cast.step_of(stage, "freeze")
    assert jobs.claim(step.pk) is not None
    JobStep.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    results = together(*[lambda: jobs.claim(step.pk)] * 6)
    no_errors(results)
    assert len([held for held in results if held]) == 1


def test_one_of_many_beats_sends_a_step() -> None:
    stage = cast.closed_stage()
    step = cast.step_of(stage, "freeze")
    assert sorted(together(*[lambda: leases.mark_sent(step)] * 6)) == [False] * 5 + [True]


def test_many_beats_queue_each_step_once() -> None:
    stage = cast.closed_stage(stages=[{"sittings": 4}, {"sittings": 4}], predictor={"name": "same_task"})
    lifecycle.freeze(stage)
    no_errors(together(*[jobs.due_steps] * 6))
    assert Counter(JobStep.objects.values_list("kind", flat=True)) == {"freeze": 1, "train": 1}


def test_two_members_that_finish_at_once_both_stand_in_their_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predictor_training, "members_of", lambda name, params=None: 2)
    stage = cast.closed_stage(stages=[{"sittings": 4}, {"sittings": 4}], predictor={"name": "same_task"})
    cast.run_until(stage, "train")
    steps = list(stage.job_steps.filter(kind="train").order_by("member"))
    assert [step.member for step in steps] == [0, 1]
    both_are_trained, store = threading.Barrier(2), files.store_folder

    def store_together(folder: Path) -> str:
        stored = store(folder)
        both_are_trained.wait(timeout=PATIENCE)
        return stored

    monkeypatch.setattr(files, "store_folder", store_together)
    assert together(*[lambda step=step: jobs.run_step(step.pk) for step in steps]) == [True, True]
    run = PredictorRun.objects.get(role="main")
    assert set(run.members) == {"0", "1"} and run.is_ready
    assert run.seconds == pytest.approx(
        sum(step.result["seconds"] for step in stage.job_steps.filter(kind="train", predictor_run=run))
    )


def test_a_result_is_not_written_while_another_worker_takes_the_step_over() -> None:
    stage = cast.closed_stage()
    step = cast.step_of(stage, "freeze")
    held = jobs.claim(step.pk)
    JobStep.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    assert held is not None

    def write() -> None:
        with transaction.atomic():
            held.lock()
            held.finish({"by": "the first"})

    results = together(write, lambda: jobs.claim(step.pk))
    step.refresh_from_db()
    if results[1]:
        assert (step.state, step.result) == ("running", {}) and isinstance(results[0], Exception)
    else:
        assert (step.state, step.result) == ("done", {"by": "the first"})
