"""Generated ways through a sitting and through a stage: whatever people and workers do, the rows tell one truth."""

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import hypothesis.strategies as st
import pytest
from django.db import connection, transaction
from django.utils import timezone
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from survey.exceptions import EntryRefused, FieldErrors, OutOfOrder
from survey.models import Assignment, Booklet, JobStep, Response, Sitting, SnapshotAnswer, Stage
from survey.services.base import leases
from survey.services.sittings import expiry, withdrawal
from survey.services.sittings.answering import advance
from survey.services.sittings.capacity import free_capacity
from survey.services.sittings.enrolment import begin_sitting
from survey.services.sittings.flow import Step, current_step
from survey.services.stages import jobs, lifecycle
from survey.services.stages.verifying import verify_stage
from tests import cast

pytestmark = [pytest.mark.django_db, pytest.mark.thorough]
PEOPLE = st.integers(min_value=0, max_value=4)


def run(machine: Callable[[], RuleBasedStateMachine], *, examples: int, steps: int) -> None:
    """Always the same examples, so a failure is found again. It is not made smaller, which would take minutes.

    PostgreSQL takes a third as many, and other ones: all that is above the database is the same there.
    """
    on_postgresql = connection.vendor == "postgresql"
    if on_postgresql:
        examples //= 3
    run_state_machine_as_test(
        seed(1 if on_postgresql else 2)(machine),
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            database=None,
            phases=(Phase.generate,),
            suppress_health_check=list(HealthCheck),
        ),
    )


class InTransaction(RuleBasedStateMachine):
    """What an example writes is taken back at its end."""

    def __init__(self, stage: Stage) -> None:
        super().__init__()
        self.stage = stage
        self.atomic = transaction.atomic()
        self.atomic.__enter__()

    def check_at_end(self) -> None:
        raise NotImplementedError

    def teardown(self) -> None:
        try:
            self.check_at_end()
        finally:
            transaction.set_rollback(True)
            self.atomic.__exit__(None, None, None)


# A sitting

Kept = dict[int, tuple[Any, ...]]


class SittingMachine(InTransaction):
    """Five people at a stage of four places, each with any order of what browsers, panels and clocks do."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self.sittings: dict[int, Sitting] = {}
        self.places: list[int] = []
        self.last: dict[int, tuple[int, dict[str, Any]]] = {}
        self.accepted: Counter[int] = Counter()
        self.steps: dict[int, int] = {}
        self.withdrawn: set[int] = set()

    def reload(self, who: int) -> Sitting:
        return Sitting.objects.select_related("stage__study__bank", "respondent", "booklet").get(
            pk=self.sittings[who].pk
        )

    def step(self, who: int) -> Step:
        return current_step(self.reload(who))

    def rows(self) -> tuple[int, Kept]:
        """How many responses there are, and where each sitting stands."""
        fields = ("pk", "state", "step", "block", "booklet_id", "withdrawn_at")
        return Response.objects.count(), {row[0]: row for row in Sitting.objects.values_list(*fields)}

    @initialize(pages=st.integers(min_value=2, max_value=10))
    def two_are_inside(self, pages: int) -> None:
        """One of them has answered some pages: what is generated from here on is short."""
        for who in (0, 1):
            self.begin(who=who)
        for _page in range(pages):
            self.answer(who=0, value=60, again=False)

    @rule(who=PEOPLE)
    def begin(self, who: int) -> None:
        """Also again, in a second tab or weeks later."""
        before = self.rows()
        with suppress(EntryRefused):
            sitting = begin_sitting(study=self.stage.study, ids=cast.person(f"person {who}"))
            self.places.append(who)
        if who not in self.places:
            assert free_capacity(self.stage) < 1 and self.rows() == before
            return
        if who in self.sittings:
            assert sitting.pk == self.sittings[who].pk and self.rows() == before
        self.sittings[who] = sitting

    @rule(who=PEOPLE, value=st.sampled_from((60, 70)), again=st.booleans())
    def answer(self, who: int, value: int, again: bool) -> None:
        if who not in self.sittings:
            return
        step = self.step(who)
        answers = cast.answers_for(step, **({"value": str(value)} if step.screen else {}))
        before, stood_at = Response.objects.count(), self.reload(who).step
        advance(sitting=self.sittings[who], step=step.number, data=answers)
        self.last[who] = (step.number, answers)
        stored = Response.objects.count() - before
        assert stored in (0, 1)
        # Exactly one response for the screen of an item, unless the person had lost the place meanwhile.
        ended = self.reload(who).state in (Sitting.State.TURNED_AWAY,)
        assert stored == (step.kind == "item" and not ended)
        assert self.reload(who).step == stood_at + (step.kind != "end")
        self.accepted[who] += stored
        if again:
            self.post_again(who=who)

    @rule(who=PEOPLE)
    def post_again(self, who: int) -> None:
        """A double click, the back button, or a page that is sent again after 503."""
        if who not in self.last:
            return
        before = self.rows()
        number, answers = self.last[who]
        advance(sitting=self.sittings[who], step=number, data=answers)
        advance(sitting=self.sittings[who], step=max(1, number - 1), data=answers)
        assert self.rows() == before

    @rule(who=PEOPLE, ahead=st.integers(1, 3))
    def jump_ahead(self, who: int, ahead: int) -> None:
        if who not in self.sittings or self.reload(who).is_over:
            return
        before = self.rows()
        with pytest.raises(OutOfOrder):
            advance(sitting=self.sittings[who], step=self.reload(who).step + ahead, data={"value": "60"})
        assert self.rows() == before

    @rule(who=PEOPLE, value=st.sampled_from(("", "101", "-1", "x", "\x00")))
    def answer_badly(self, who: int, value: str) -> None:
        if who not in self.sittings:
            return
        step = self.step(who)
        if step.kind != "item" or step.screen is None:
            return
        before = self.rows()
        with pytest.raises(FieldErrors):
            advance(sitting=self.sittings[who], step=step.number, data={"value": value})
        assert self.rows() == before

    @rule(who=PEOPLE)
    def fall_silent(self, who: int) -> None:
        if who not in self.sittings:
            return
        long_ago = timezone.now() - timedelta(days=1)
        Sitting.objects.filter(pk=self.sittings[who].pk).update(last_seen_at=long_ago)
        expiry.expire_sittings()
        assert self.reload(who).state != Sitting.State.LIVE

    @rule()
    def beat(self) -> None:
        assert expiry.expire_sittings() == 0
        before = Booklet.objects.count()
        expiry.expire_sittings()
        assert Booklet.objects.count() == before

    @rule(who=PEOPLE)
    def withdraw(self, who: int) -> None:
        if who not in self.sittings:
            return
        for _press in range(2):
            withdrawal.withdraw(respondent=self.reload(who).respondent, now=timezone.now())
        self.withdrawn.add(who)
        self.accepted[who] = 0

    @invariant()
    def each_slot_has_one_holder(self) -> None:
        held = Counter(Assignment.objects.filter(state__in=Assignment.HOLDING).values_list("slot_id", flat=True))
        assert set(held.values()) <= {1}

    @invariant()
    def each_accepted_answer_is_stored_once(self) -> None:
        numbers: dict[int, dict[int, list[int]]] = {sitting.pk: {} for sitting in self.sittings.values()}
        rows = Response.objects.order_by("assignment", "number")
        for sitting, assignment, number in rows.values_list("assignment__sitting", "assignment", "number"):
            numbers[sitting].setdefault(assignment, []).append(number)
        for who, sitting in self.sittings.items():
            of_each = numbers[sitting.pk].values()
            assert sum(map(len, of_each)) == self.accepted[who]
            assert all(numbers == list(range(1, len(numbers) + 1)) for numbers in of_each)

    @invariant()
    def nobody_goes_back_or_sees_an_item_twice(self) -> None:
        steps = dict(Sitting.objects.values_list("pk", "step"))
        for who, sitting in self.sittings.items():
            assert steps[sitting.pk] >= self.steps.get(who, 0)
            self.steps[who] = steps[sitting.pk]
        counts = Counter(Assignment.objects.values_list("sitting", "slot__item"))
        assert set(counts.values()) <= {1}

    def check_at_end(self) -> None:
        """Anyone who is still inside leaves, and the stage ends by itself with what counts."""
        lifecycle.close_stage(self.stage, now=True)
        jobs.run_inline(self.stage)
        assert cast.stage_of(self.stage.study).state == Stage.State.FROZEN
        counted = Assignment.objects.filter(state=Assignment.State.COUNTED, sitting__withdrawn_at__isnull=True)
        frozen = SnapshotAnswer.objects.filter(stage=self.stage, withdrawn_at__isnull=True)
        assert set(frozen.values_list("assignment", flat=True)) == set(counted.values_list("pk", flat=True))


def test_whatever_people_do_in_a_sitting() -> None:
    stage = cast.open_stage()
    run(lambda: SittingMachine(stage), examples=30, steps=30)


# A stage


class StageMachine(InTransaction):
    """A stage full of answers: researchers press every button, workers die, tasks come twice and too late."""

    @initialize()
    def close(self) -> None:
        lifecycle.close_stage(self.stage)

    @rule()
    def close_again(self) -> None:
        lifecycle.close_stage(self.stage, now=True)

    @rule(times=st.integers(1, 2))
    def beat(self, times: int) -> None:
        for _beat in range(times):
            jobs.due_steps()
            jobs.sweep()

    @rule(times=st.integers(1, 2))
    def work(self, times: int) -> None:
        """A task, delivered once or twice."""
        for step in jobs.due_steps()[:1]:
            assert [jobs.run_step(step.pk) for _delivery in range(times)][1:] in ([], [False])

    @rule()
    def deliver_everything_that_was_ever_sent(self) -> None:
        for step in JobStep.objects.filter(state=JobStep.State.DONE):
            assert jobs.run_step(step.pk) is False

    @rule()
    def die(self) -> None:
        """A worker claims a step and is gone; its lease runs out."""
        for step in jobs.due_steps()[:1]:
            assert jobs.claim(step.pk) is not None
            JobStep.objects.filter(pk=step.pk).update(
                lease_until=timezone.now() - timedelta(seconds=1), sent_at=timezone.now() - 2 * leases.SEND_AGAIN
            )

    @rule()
    def retry(self) -> None:
        lifecycle.retry_steps(self.stage)

    @rule()
    def open_the_next(self) -> None:
        following = self.stage.following()
        assert following is not None
        if following.state != Stage.State.DRAFT:
            lifecycle.open_stage(following)

    @invariant()
    def each_step_is_there_once(self) -> None:
        steps = Counter(JobStep.objects.values_list("stage", "kind", "predictor_run", "member"))
        assert set(steps.values()) <= {1}

    @invariant()
    def what_is_frozen_stays(self) -> None:
        answers = SnapshotAnswer.objects.filter(stage=self.stage).count()
        assert answers == (12 if cast.stage_of(self.stage.study).state == Stage.State.FROZEN else 0)

    @invariant()
    def the_next_stage_has_one_whole_plan_or_none(self) -> None:
        following = cast.stage_of(self.stage.study, 2)
        assert following.slots.count() == (0 if following.state == Stage.State.DRAFT else 12)

    def check_at_end(self) -> None:
        lifecycle.retry_steps(self.stage)
        for _step in range(10):
            JobStep.objects.exclude(state=JobStep.State.DONE).update(tries_left=3, state=JobStep.State.QUEUED)
            self.work(times=1)
        assert lifecycle.pipeline_is_done(cast.stage_of(self.stage.study))
        for index in (1, 2):
            assert verify_stage(cast.stage_of(self.stage.study, index)).differences == []


def test_whatever_happens_to_the_work_after_a_stage() -> None:
    stage = cast.full_of_answers(
        cast.open_stage(
            stages=[
                {"sittings": 4},
                {
                    "sittings": 4,
                    "design": {"kind": "epsilon_greedy", "epsilon": 0.25, "top_fraction": 0.2},
                    "train": False,
                },
            ],
            predictor={"name": "same_task"},
            candidates={"size": 200},
        )
    )
    run(lambda: StageMachine(stage), examples=12, steps=12)
