"""Claiming work by lease: the same for every kind of row."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.apps import apps
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from predictors.errors import Stopped
from survey.models import (
    AnswerCollection,
    Delivery,
    Job,
    JobStep,
    LanguageModel,
    Leased,
    PredictorRun,
    Receiver,
    ScoringPart,
    StoredEstimate,
)
from survey.services.base import leases
from tests import cast

pytestmark = pytest.mark.django_db


def a_step() -> JobStep:
    stage = cast.closed_stage()
    JobStep.objects.all().delete()
    return JobStep.objects.create(stage=stage, kind="plan", input_sha256="0" * 64)


def a_collection() -> Leased:
    model = LanguageModel.objects.create(name="parrot")
    return AnswerCollection.objects.create(language_model=model, bank=cast.small_bank(), model="m")


def a_part() -> Leased:
    step = a_step()
    run = PredictorRun.objects.create(stage=step.stage, name="bert", seed=1, input_sha256="0" * 64, example_count=1)
    return ScoringPart.objects.create(step=step, predictor_run=run, rows=b"", count=1, scores=b"")


def an_estimate() -> Leased:
    return StoredEstimate.objects.create(study=cast.small_study(), asked={}, asked_sha256="0" * 64)


def a_job() -> Leased:
    return Job.objects.create(study=cast.small_study(), kind="export", expires_at=timezone.now())


def a_delivery() -> Leased:
    now = timezone.now()
    receiver = Receiver.objects.create(
        study=cast.small_study(), kind="email", shown="a@b.example", sealed=b"", since=now
    )
    return Delivery.objects.create(receiver=receiver, event_id="1", event="test", body={}, due_at=now)


MAKERS: dict[type[Leased], Callable[[], Leased]] = {
    JobStep: a_step,
    Job: a_job,
    AnswerCollection: a_collection,
    ScoringPart: a_part,
    StoredEstimate: an_estimate,
    Delivery: a_delivery,
}


def said(row: Leased, text: str) -> dict[str, str]:
    """What a worker writes about a row, in the field of its kind."""
    return {{StoredEstimate: "problem", Delivery: "answer"}.get(type(row), "error"): text}


@pytest.fixture(params=list(MAKERS), ids=lambda kind: kind.__name__)
def row(request: pytest.FixtureRequest) -> Leased:
    return MAKERS[request.param]()


def claimed(row: Leased) -> leases.Hold[Leased] | None:
    claimed_row = leases.claim(type(row)._default_manager.all(), row.pk)
    return None if claimed_row is None else leases.Hold(claimed_row)


def lapse(row: Leased) -> None:
    type(row)._default_manager.filter(pk=row.pk).update(lease_until=timezone.now() - timedelta(seconds=1))


def state_of(row: Leased) -> tuple[str, int]:
    row.refresh_from_db()
    return row.state, row.attempt


def test_every_kind_of_leased_row_is_tested_here() -> None:
    assert set(MAKERS) == {model for model in apps.get_models() if issubclass(model, Leased)}


@pytest.mark.slow
def test_one_worker_claims_a_row_until_its_lease_is_over(row: Leased) -> None:
    held = claimed(row)
    assert held is not None and state_of(row) == ("running", 1)
    assert row.lease_until is not None and timezone.now() + timedelta(seconds=60) < row.lease_until
    assert claimed(row) is None
    lapse(row)
    again = claimed(row)
    assert again is not None and (again.attempt, state_of(row)) == (2, ("running", 2))


def test_a_row_that_is_gone_or_over_is_not_claimed(row: Leased) -> None:
    held = claimed(row)
    assert held is not None and held.end("done")
    assert state_of(row) == ("done", 1) and row.lease_until is None and row.finished_at is not None
    assert claimed(row) is None
    row.delete()
    row.pk = 0
    assert claimed(row) is None


def test_only_rows_that_may_be_claimed_are(row: Leased) -> None:
    assert leases.claim(type(row)._default_manager.filter(attempt__gt=0), row.pk) is None
    assert state_of(row) == ("queued", 0)


@pytest.mark.slow
def test_a_worker_that_lost_its_claim_writes_nothing(row: Leased) -> None:
    lost = claimed(row)
    assert lost is not None and lost.renew(**said(row, "mine"))
    lapse(row)
    held = claimed(row)
    assert held is not None
    lost.row.refresh_from_db()  # Reading the row again does not make the other's claim ours.
    for write in (
        lambda: lost.renew(**said(row, "x")),
        lambda: lost.end("failed", **said(row, "x")),
        lost.give_back,
        lost.let_lapse,
    ):
        assert write() is False
    with pytest.raises(Stopped), transaction.atomic():
        lost.lock()
    assert state_of(row) == ("running", 2) and held.renew()
    with transaction.atomic():
        held.lock()


def test_what_is_given_back_or_left_goes_to_the_next_worker(row: Leased) -> None:
    held = claimed(row)
    assert held is not None and leases.mark_sent(row) is False, "the claim came after the row was read"
    assert held.give_back(attempt=F("attempt") + 5)
    assert state_of(row) == ("queued", 6) and row.sent_at is None and row.lease_until is None
    held = claimed(row)
    assert held is not None and held.let_lapse()
    assert state_of(row) == ("running", 7)
    assert claimed(row) is not None


def test_a_task_is_sent_once_and_again_only_after_a_while(row: Leased) -> None:
    rows = type(row)._default_manager.all()
    now = timezone.now()
    assert leases.due(rows, now=now) == [row]
    assert leases.mark_sent(row, now=now) is True
    assert leases.mark_sent(row, now=now) is False
    assert leases.due(rows, now=now) == []
    later = now + leases.SEND_AGAIN + timedelta(seconds=1)
    assert leases.due(rows, now=later) == [row]
    assert claimed(row) is not None
    assert leases.due(rows, now=later) == []
    assert leases.due(rows, now=later + leases.LEASE) == [row]
