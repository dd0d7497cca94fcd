"""A withdrawal and what happens at the same moment, on PostgreSQL with real threads."""

import threading
from typing import Any

import pytest
from django.utils import timezone

from survey.models import Assignment, Response, Sitting, SnapshotAnswer, Withdrawal
from survey.services.sittings.answering import advance
from survey.services.sittings.withdrawal import withdraw
from survey.services.stages import lifecycle
from survey.services.stages.verifying import verify_stage
from tests import cast
from tests.waiting import PATIENCE

from .test_concurrency import no_errors, together

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgresql]


def take_back(sitting: Sitting) -> Withdrawal:
    return withdraw(respondent=sitting.respondent, now=timezone.now())


@pytest.mark.parametrize("_time", range(3))
def test_an_answer_in_flight_is_deleted_or_not_taken(_time: int) -> None:
    visitor = cast.Visitor(cast.open_stage().study).to_items()
    visitor.answer()
    step = visitor.step.number
    results = together(
        lambda: advance(sitting=visitor.sitting, step=step, data={"value": 50}),
        lambda: take_back(visitor.sitting),
    )
    no_errors(results)
    assert Response.objects.count() == 0
    assert visitor.reload().is_over and set(visitor.states()) == {"withdrawn"}


def test_many_withdrawals_of_one_person_are_one() -> None:
    visitor = cast.Visitor(cast.open_stage().study).finish()
    results = together(*[lambda: take_back(visitor.sitting)] * 4)
    no_errors(results)
    assert len({done.pk for done in results}) == 1
    assert Withdrawal.objects.get().answers == 3


def test_a_withdrawal_waits_for_the_snapshot_that_is_being_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = cast.closed_stage()
    gone = stage.sittings.select_related("respondent").order_by("pk").first()
    assert gone is not None
    taken, withdrawn = threading.Event(), threading.Event()
    as_it_is = lifecycle.answer_digest

    def slow_digest(*arguments: Any) -> str:
        taken.set()
        withdrawn.wait(timeout=0.5)  # Which it must not be: the rows were read, and are not marked yet.
        return as_it_is(*arguments)

    def take_back_meanwhile() -> Withdrawal:
        assert taken.wait(timeout=PATIENCE)
        done = take_back(gone)
        withdrawn.set()
        return done

    monkeypatch.setattr(lifecycle, "answer_digest", slow_digest)
    no_errors(together(lambda: lifecycle.freeze(stage), take_back_meanwhile))
    assert SnapshotAnswer.objects.filter(assignment__sitting=gone, withdrawn_at__isnull=False).count() == 3
    assert SnapshotAnswer.objects.filter(assignment__state="withdrawn", withdrawn_at__isnull=True).count() == 0


@pytest.mark.parametrize("_time", range(3))
def test_a_freeze_at_that_moment_has_the_answers_as_tombstones_or_not_at_all(_time: int) -> None:
    stage = cast.closed_stage()
    gone = stage.sittings.select_related("respondent").order_by("pk").first()
    assert gone is not None
    results = together(lambda: lifecycle.freeze(stage), lambda: take_back(gone))
    no_errors(results)
    assert Assignment.objects.filter(sitting=gone, state="withdrawn").count() == 3
    marked = SnapshotAnswer.objects.filter(assignment__sitting=gone)
    assert marked.filter(withdrawn_at__isnull=True).count() == 0
    stage.refresh_from_db()
    verification = verify_stage(stage)
    assert verification.differences == [] and verification.withdrawn == marked.count()
    assert verification.answers == 9 + marked.count()
