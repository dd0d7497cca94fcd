"""The clock is set back an hour in the middle: nothing is done twice, nothing waits for ever, nothing fails."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client
from django.utils import timezone

from survey.models import Response, SnapshotAnswer, Stage
from survey.services.base import leases, rate_limits
from survey.services.base.rate_limits import Budget
from survey.services.sittings import expiry
from survey.services.stages import jobs, lifecycle
from survey.services.stages.verifying import verify_stage
from tests import cast
from tests.frontend.pages import arrive, send

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
HOUR = timedelta(hours=1)


@pytest.fixture
def moves(time_machine: Any) -> Callable[[timedelta], None]:
    """Sets the clock, which stands still in between."""
    at = timezone.now()
    time_machine.move_to(at, tick=False)

    def move(by: timedelta) -> None:
        nonlocal at
        at += by
        time_machine.move_to(at, tick=False)

    return move


def test_a_person_goes_on_to_the_end_and_nothing_took_negative_time(
    client: Client, moves: Callable[[timedelta], None]
) -> None:
    cast.open_study()
    page, pages = arrive(client), 0
    while page.main["data-kind"] != "end":
        moves(timedelta(seconds=5) if pages != 4 else -HOUR)
        page = send(client, page)
        pages += 1
    assert page.main["data-outcome"] == "completed"
    times = list(Response.objects.order_by("pk").values_list("server_ms", flat=True))
    assert len(times) == 6 and min(times) == 0 and times.count(5000) == 5


def test_a_silent_person_expires_later_and_not_at_once_and_not_never(moves: Callable[[timedelta], None]) -> None:
    stage = cast.open_stage()
    person = cast.Visitor(stage.study).to_items()
    silence = expiry.longest_silence(stage.study) + timedelta(seconds=1)
    moves(-HOUR)
    moves(silence)
    assert expiry.expire_sittings() == 0 and person.reload().state == "live"
    moves(HOUR)
    assert expiry.expire_sittings() == 1 and person.reload().state == "expired"


def test_a_stage_ends_though_the_clock_goes_back_between_its_steps(moves: Callable[[timedelta], None]) -> None:
    stage = cast.closed_stage(stages=[{"sittings": 4}, {"sittings": 4, "opens": "automatically"}])
    for _step in range(10):
        for step in jobs.due_steps():
            assert leases.mark_sent(step) and not leases.mark_sent(step)
            jobs.run_step(step.pk)
        moves(-HOUR)
    assert cast.stage_of(stage.study, 2).state == Stage.State.OPEN
    assert SnapshotAnswer.objects.count() == 12
    assert verify_stage(cast.stage_of(stage.study)).differences == []


def test_a_task_that_was_lost_before_the_clock_went_back_is_sent_again(moves: Callable[[timedelta], None]) -> None:
    cast.closed_stage()
    (step,) = jobs.due_steps()
    assert leases.mark_sent(step)
    assert jobs.due_steps() == []
    moves(-HOUR)
    assert [due_step.pk for due_step in jobs.due_steps()] == [step.pk]


def test_a_running_step_is_nobody_elses_and_a_dead_workers_lease_ends(moves: Callable[[timedelta], None]) -> None:
    cast.closed_stage()
    (step,) = jobs.due_steps()
    held = jobs.claim(step.pk)
    assert held is not None
    moves(-HOUR)
    assert jobs.claim(step.pk) is None
    assert held.renew()
    moves(leases.LEASE + timedelta(seconds=1))  # Renewed by the new clock, it ends by the new clock.
    assert jobs.claim(step.pk) is not None
    assert not held.renew()


def test_a_budget_holds_in_every_span_whichever_way_the_clock_goes(moves: Callable[[timedelta], None]) -> None:
    budget = Budget("test", most=3, seconds=600)

    def spent() -> int:
        return sum(rate_limits.spend(budget, now=timezone.now()) == 0 for _try in range(5))

    assert spent() == 3
    moves(-HOUR)
    assert spent() == 3
    moves(HOUR)
    assert spent() == 0
    moves(timedelta(seconds=600))
    rate_limits.forget_ended(now=timezone.now())
    assert spent() == 3


def test_health_is_asked_anew(client: Client, moves: Callable[[timedelta], None]) -> None:
    for _look in range(2):
        assert client.get("/healthz").status_code == 200
        moves(-HOUR)
    cache.clear()
    assert client.get("/healthz").status_code == 200


def test_a_stage_that_closes_before_it_opened_is_frozen_all_the_same(moves: Callable[[timedelta], None]) -> None:
    stage = cast.open_stage()
    moves(-HOUR)
    people = cast.fill(stage)
    jobs.run_inline(lifecycle.close_stage(stage))
    assert cast.stage_of(stage.study).state == Stage.State.FROZEN
    assert SnapshotAnswer.objects.count() == 3 * len(people) == 12
