"""Expiry, returning, and the booklets that are dealt from slots that were left."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from survey.instruments.belief_update.models import Pair
from survey.models import Booklet, Sitting, Slot, SnapshotAnswer, Stage
from survey.services.answers.counting import frozen_answers, training_examples
from survey.services.sittings import expiry
from survey.services.sittings.capacity import free_booklets, free_capacity, slots_without_holder
from survey.services.stages import lifecycle
from survey.services.stages.progress import stage_progress
from tests import cast

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


def silent_for(visitor: cast.Visitor, minutes: int) -> None:
    Sitting.objects.filter(pk=visitor.sitting.pk).update(last_seen_at=timezone.now() - timedelta(minutes=minutes))


def test_a_sitting_expires_after_the_silence_that_the_study_file_allows() -> None:
    stage = cast.open_stage(panel={"kind": "generic"})
    quiet, silent = cast.Visitor(stage.study).to_items(), cast.Visitor(stage.study).to_items()
    silent_for(quiet, 29)
    silent_for(silent, 31)
    assert expiry.expire_sittings() == 1
    assert quiet.reload().state == "live" and silent.reload().state == "expired"
    assert (quiet.states(), silent.states()) == (["live"] * 3, ["released"] * 3)
    assert expiry.expire_sittings() == 0


def test_somebody_who_answers_before_the_lock_is_had_does_not_expire() -> None:
    visitor = cast.Visitor(cast.open_stage().study).to_items()
    limit = timezone.now() - timedelta(minutes=30)
    for seen_before in (limit, visitor.reload().last_seen_at):
        assert not expiry.expire_sitting(visitor.sitting.pk, now=timezone.now(), seen_before=seen_before)
    assert visitor.reload().state == "live"


def test_a_sitting_that_is_over_does_not_expire() -> None:
    """Its person was faster, and is paid for what they gave."""
    stage, now = cast.stage_of(cast.small_study()), timezone.now()
    for state in {*Sitting.State} - {Sitting.State.LIVE}:
        sitting = cast.sitting(stage, state=state, ended_at=now)
        assert not expiry.expire_sitting(sitting.pk, now=now)
        sitting.refresh_from_db()
        assert (sitting.state, sitting.expired_at) == (state, None)


def test_what_was_answered_in_time_stays_counted() -> None:
    visitor = cast.Visitor(cast.open_stage().study).to_items()
    visitor.answer()
    visitor.expire()
    assert visitor.states() == ["counted", "released", "released"]


def test_one_who_comes_back_goes_on_where_they_were_with_all_that_is_free() -> None:
    visitor = cast.Visitor(cast.open_stage().study).to_items()
    visitor.answer()
    visitor.post(value=30)
    visitor.expire()
    step = visitor.step
    assert (step.kind, step.position, step.screen and step.screen.name) == ("item", 2, "posterior")
    visitor.post(value=80)
    assert visitor.reload().state == "live" and visitor.sitting.expired_at is not None
    visitor.finish()
    assert visitor.states() == ["counted"] * 3


def test_one_who_comes_back_to_a_paused_stage_answers_in_time() -> None:
    visitor = cast.Visitor(cast.open_stage().study).to_items()
    visitor.answer()
    visitor.expire()
    lifecycle.pause_stage(visitor.sitting.stage)
    visitor.finish()
    assert visitor.states() == ["counted"] * 3


def test_looking_at_the_page_does_not_bring_a_sitting_back() -> None:
    visitor = cast.Visitor(cast.open_stage().study).to_items().expire()
    assert visitor.step.kind == "item"
    assert visitor.reload().state == "expired"


def test_make_up_booklets_hold_exactly_the_slots_that_nobody_holds() -> None:
    stage = cast.open_stage()
    visitors = [cast.Visitor(stage.study).to_items() for _person in range(4)]
    for visitor in visitors[:3]:
        visitor.answer()
        visitor.expire()
    left = {slot for visitor in visitors[:3] for slot in visitor.slots()[1:]}
    assert set(slots_without_holder(stage).values_list("pk", flat=True)) == left
    assert expiry.deal_make_up_booklets(stage) == 2
    made = stage.booklets.filter(kind=Booklet.Kind.MAKE_UP)
    assert set(Slot.objects.filter(booklet__in=made).values_list("pk", flat=True)) == left
    assert [booklet.slots.count() for booklet in made] == [3, 3]
    assert [booklet.number for booklet in made] == [5, 6]
    assert not slots_without_holder(stage).exists()
    assert expiry.deal_make_up_booklets(stage) == 0


def test_no_question_comes_twice_in_a_make_up_booklet() -> None:
    stage = cast.open_stage(stages=[{"sittings": 8}])
    for _person in range(8):
        cast.Visitor(stage.study).to_items().expire()
    expiry.deal_make_up_booklets(stage)
    for booklet in stage.booklets.filter(kind=Booklet.Kind.MAKE_UP):
        pairs = [slot.item.pair for slot in booklet.slots.select_related("item__pair")]
        questions = [key for pair in pairs for key in (pair.evidence_id, pair.target_id)]
        assert len(set(questions)) == len(questions)


@pytest.mark.thorough
def test_the_same_leftovers_are_dealt_the_same_way() -> None:
    def dealt(slug: str) -> list[tuple[int, int, int | None]]:
        stage = cast.open_stage(slug)
        for _person in range(4):
            cast.Visitor(stage.study).to_items().expire()
        expiry.deal_make_up_booklets(stage)
        return list(stage.slots.order_by("number").values_list("number", "position", "booklet__number"))

    assert dealt("first") == dealt("second")


def test_a_short_booklet_is_dealt_only_when_nothing_else_is_free() -> None:
    stage = cast.open_stage(stages=[{"sittings": 2}])
    first = cast.Visitor(stage.study).to_items()
    first.answer()
    first.expire()
    assert expiry.deal_make_up_booklets(stage) == 0  # Two slots are left, and a whole booklet is free.
    cast.Visitor(stage.study).finish()
    assert expiry.deal_make_up_booklets(stage) == 1
    last = cast.Visitor(stage.study).finish()
    assert last.states() == ["counted"] * 2
    assert last.step.outcome == "completed"
    assert stage_progress(stage).in_time == 6


@pytest.mark.parametrize(("one_is_free", "dealt"), [(False, 5), (True, 3)])
def test_the_rest_waits_while_a_whole_booklet_is_free(one_is_free: bool, dealt: int) -> None:
    stage = cast.open_stage(stages=[{"sittings": 3 if one_is_free else 2}])
    first, second = [cast.Visitor(stage.study).to_items() for _person in range(2)]
    first.answer()
    for visitor in (first, second):
        visitor.expire()
    lifecycle.pause_stage(stage)  # Who comes back after a pause finds them.
    assert expiry.deal_make_up_booklets(stage) > 0
    assert Slot.objects.filter(booklet__kind=Booklet.Kind.MAKE_UP).count() == dealt


def test_leftovers_that_share_a_question_get_booklets_of_their_own() -> None:
    stage = cast.open_stage()
    visitors = [cast.Visitor(stage.study).to_items() for _person in range(4)]
    for visitor in visitors:
        visitor.answer()
        visitor.answer()
        visitor.expire()
    left = Pair.objects.filter(item__slots__in=[visitor.slots()[2] for visitor in visitors])
    evidence = left.values_list("evidence_id", flat=True)
    left.update(target=cast.Question.objects.exclude(pk__in=list(evidence)).first())
    assert expiry.deal_make_up_booklets(stage) == 4
    made = stage.booklets.filter(kind=Booklet.Kind.MAKE_UP)
    assert [booklet.slots.count() for booklet in made] == [1, 1, 1, 1]


def test_one_who_comes_back_takes_slots_out_of_a_booklet_that_nobody_has_claimed() -> None:
    stage = cast.open_stage(stages=[{"sittings": 1}])
    visitor = cast.Visitor(stage.study).to_items()
    visitor.expire()
    expiry.deal_make_up_booklets(stage)
    assert free_booklets(stage).count() == 1
    visitor.post(value=50)
    assert visitor.states() == ["live"] * 3
    assert not free_booklets(stage).exists(), "an empty booklet was left for somebody to claim"
    assert visitor.finish().states() == ["counted"] * 3


def test_a_booklet_that_lost_slots_closes_up_and_can_be_taken_back_in_part() -> None:
    stage = cast.open_stage(stages=[{"sittings": 2}])
    first, second = (cast.Visitor(stage.study).to_items() for _person in range(2))
    first.answer()
    for visitor in (first, second):
        visitor.expire()
    expiry.deal_make_up_booklets(stage)  # Of five slots: a whole booklet and a short one.
    first.post(value=50)  # Takes its two back, from wherever they lie.
    assert first.states() == ["counted", "live", "live"]
    thirds = []
    while free_booklets(stage).exists():
        thirds.append(cast.Visitor(stage.study).to_items())
    for third in thirds:
        positions = [(row.position, row.slot.position) for row in third.sitting.assignments.select_related("slot")]
        assert positions == [(place, place) for place in range(1, len(positions) + 1)]
    assert sum(len(third.slots()) for third in thirds) == 3
    thirds[0].expire()
    thirds[0].post(value=50)
    assert set(thirds[0].states()) == {"live"}


def test_a_make_up_booklet_that_is_claimed_while_a_slot_is_taken_back_keeps_it() -> None:
    """Somebody claims the booklet after the returning person has looked who holds the slot, and before the lock."""
    stage = cast.open_stage(stages=[{"sittings": 1}])
    left = cast.Visitor(stage.study).to_items().expire()
    expiry.deal_make_up_booklets(stage)
    other = cast.Visitor(stage.study)
    claimed = []

    def claim_first(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if not claimed and 'FROM "survey_booklet"' in sql and '"claimed_at" IS NULL' in sql:
            claimed.append(other)
            other.to_items()
        return execute(sql, params, many, context)

    with connection.execute_wrapper(claim_first):
        left.post(value=50)
    assert claimed and other.states() == ["live"] * 3
    assert left.states() == ["late"] * 3
    assert {slot.booklet_id for slot in stage.slots.all()} == {other.reload().booklet_id}


def test_nobody_holds_a_slot_twice_and_nobody_meets_a_pair_twice() -> None:
    stage = cast.open_stage(stages=[{"sittings": 3}])
    visitors = [cast.Visitor(stage.study).to_items() for _person in range(3)]
    for visitor in visitors:
        visitor.post(value=10)
        visitor.expire()
    expiry.deal_make_up_booklets(stage)
    visitors.append(cast.Visitor(stage.study).to_items())
    for visitor in visitors:
        visitor.finish()
        assert len(set(visitor.slots())) == len(visitor.slots())
    counted = cast.Assignment.objects.filter(state="counted").values_list("slot_id", flat=True)
    assert sorted(counted) == sorted(stage.slots.values_list("pk", flat=True))


def test_one_who_left_before_the_items_gives_the_place_away_and_may_find_the_stage_full() -> None:
    stage = cast.open_stage(stages=[{"sittings": 1}])
    early = cast.Visitor(stage.study)
    early.expire()
    assert free_capacity(stage) == 1
    cast.Visitor(stage.study).finish()
    end = early.check()
    assert (end.outcome, end.code) == ("study_full", early.code_for("study_full"))
    assert early.reload().state == "turned_away"


@pytest.mark.parametrize("frozen", [False, True])
def test_one_who_comes_back_after_closing_answers_late_gets_the_code_and_holds_nothing_up(frozen: bool) -> None:
    stage = cast.open_stage()
    visitor = cast.Visitor(stage.study).to_items()
    visitor.answer()
    stage = lifecycle.close_stage(stage, now=True)
    if frozen:
        lifecycle.freeze(stage)
    assert visitor.reload().state == "expired"
    visitor.post(value=50)
    assert visitor.states() == ["counted", "late", "late"]
    assert lifecycle.freeze(stage)["answers"] == 1
    assert visitor.finish().step.code == visitor.code_for("completed")


def test_what_was_answered_late_is_in_no_snapshot_and_trains_nothing() -> None:
    stage = cast.open_stage()
    visitor = cast.Visitor(stage.study).to_items()
    visitor.answer()
    stage = lifecycle.close_stage(stage, now=True)
    visitor.finish()
    assert visitor.states() == ["counted", "late", "late"]
    assert not visitor.sitting.assignments.filter(completed_at__isnull=True).exists(), "all are answered by now"
    assert lifecycle.freeze(stage)["answers"] == 1
    in_time = visitor.sitting.assignments.get(state="counted")
    assert list(SnapshotAnswer.objects.values_list("assignment", flat=True)) == [in_time.pk]
    assert training_examples(cast.stage_of(stage.study)) == frozen_answers(cast.stage_of(stage.study)) == [in_time]


def test_one_who_comes_back_to_a_closed_stage_without_a_booklet_is_turned_away() -> None:
    stage = cast.open_stage()
    visitor = cast.Visitor(stage.study)
    stage = lifecycle.close_stage(stage, now=True)
    assert visitor.check().outcome == "study_full"
    assert lifecycle.freeze(stage)["answers"] == 0


def test_one_who_is_inside_keeps_the_stage_while_it_closes() -> None:
    stage = cast.open_stage()
    visitor = cast.Visitor(stage.study)
    lifecycle.close_stage(stage)
    visitor.finish()
    assert visitor.states() == ["counted"] * 3


def test_nothing_is_dealt_again_once_a_stage_is_closing() -> None:
    stage = cast.open_stage()
    cast.Visitor(stage.study).to_items()
    lifecycle.close_stage(stage, now=True)
    expiry.expire_sittings()
    assert not Booklet.objects.filter(kind="make_up").exists()


def test_where_nothing_can_be_dealt_again_people_expire_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    stages = [cast.open_stage(slug) for slug in ("broken", "fine")]
    visitors = [cast.Visitor(stage.study).to_items() for stage in stages]
    Sitting.objects.update(last_seen_at=timezone.now() - timedelta(hours=2))
    deal = expiry.deal_make_up_booklets

    def sometimes(stage: Stage) -> int:
        if stage == stages[0]:
            raise ValueError("no such key")
        return deal(stage)

    monkeypatch.setattr(expiry, "deal_make_up_booklets", sometimes)
    assert expiry.expire_sittings() == 2
    assert [visitor.reload().state for visitor in visitors] == ["expired"] * 2
    assert list(Booklet.objects.filter(kind="make_up").values_list("stage", flat=True)) == [stages[1].pk]
    # The error goes with its cause, even if the stage is over by then.
    monkeypatch.undo()
    lifecycle.close_stage(stages[0], now=True)
    expiry.expire_sittings()
    assert set(Stage.objects.values_list("upkeep_error", flat=True)) == {""}


def test_one_who_stands_at_the_debriefing_does_not_hold_up_the_freeze() -> None:
    blocks = [*cast.BLOCKS[:3], {"kind": "debriefing", "text": "This was about expectations."}, cast.BLOCKS[3]]
    stage = cast.open_stage(blocks=blocks)
    visitor = cast.Visitor(stage.study).to_items()
    while visitor.step.kind == "item":
        visitor.answer()
    assert visitor.reload().state == "live"
    assert lifecycle.freeze(lifecycle.close_stage(stage))["answers"] == 3
    visitor.finish()
    assert Stage.objects.get().state == "frozen" and visitor.step.outcome == "completed"
