"""Pages sent at the same moment, on PostgreSQL with real threads: each answer is stored once, and none is lost."""

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from survey.exceptions import OutOfOrder
from survey.instruments.belief_update.models import Belief
from survey.models import Assignment, QuestionReport, Response, Sitting
from survey.services.sittings import expiry
from survey.services.sittings.answering import Answered, answer, answer_by_token
from survey.services.sittings.queries import locked_sitting
from survey.services.sittings.withdrawal import withdraw
from tests import cast
from tests.waiting import PATIENCE

from .test_concurrency import no_errors, together, until_somebody_waits

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgresql]


@pytest.fixture
def visitor() -> cast.Visitor:
    return cast.Visitor(cast.open_stage().study).to_items()


def send(visitor: cast.Visitor, step: int, *, with_next: bool = True, **data: Any) -> Answered:
    slug = visitor.sitting.stage.study.slug
    return answer(
        token=visitor.sitting.token, slug=slug, data={"step": str(step), "report": "", **data}, with_next=with_next
    )


def beliefs() -> list[tuple[str, int]]:
    return list(Belief.objects.order_by("response_id").values_list("kind", "value"))


def while_it_waits(visitor: cast.Visitor, waiting: Callable[[], Any], meanwhile: Callable[[Sitting], Any]) -> Any:
    """What `waiting` gives or raises, if it comes to the lock of the sitting while somebody else holds it, who does
    `meanwhile` before letting go."""
    results: list[Any] = []

    def wait() -> None:
        try:
            results.append(waiting())
        except Exception as exc:
            results.append(exc)
        finally:
            connection.close()

    thread = threading.Thread(target=wait)
    with transaction.atomic():
        sitting = locked_sitting(visitor.sitting.pk)
        thread.start()
        until_somebody_waits()
        meanwhile(sitting)
    thread.join(timeout=PATIENCE)
    assert not thread.is_alive()
    return results[0]


@pytest.mark.parametrize("with_next", [True, False])
def test_the_same_page_sent_eight_times_at_once_is_one_answer(visitor: cast.Visitor, with_next: bool) -> None:
    step = visitor.step.number
    calls = [lambda value=value: send(visitor, step, with_next=with_next, value=str(value)) for value in range(8)]
    results = together(*calls)
    no_errors(results)
    assert Response.objects.count() == 1
    if with_next:
        screens = {(result.step.number, result.step.screen.name) for result in results}
        assert screens == {(step + 1, "posterior")}
        assert {result.step.screen.parts["prior"]["value"] for result in results} == {beliefs()[0][1]}
    assert visitor.reload().step == step + 1


def test_two_tabs_walk_through_the_same_item_and_each_of_its_screens_is_stored_once(visitor: cast.Visitor) -> None:
    step = visitor.step.number

    def tab(value: str) -> None:
        for number in (step, step + 1):
            send(visitor, number, value=value)

    results = together(*[lambda value=value: tab(value) for value in ("10", "20", "30")])
    # A tab may come to the second screen only after the first one was stored, by itself or by another.
    no_errors(results)
    assert [kind for kind, _value in beliefs()] == ["prior", "posterior"]
    assert visitor.states() == ["counted", "live", "live"]
    assert visitor.step.position == 2


def test_a_page_that_waited_for_the_lock_sees_what_was_stored_meanwhile(visitor: cast.Visitor) -> None:
    step = visitor.step.number
    late = while_it_waits(
        visitor,
        lambda: send(visitor, step, value="90"),
        lambda _sitting: send(visitor, step, value="40"),
    )
    assert (late.step.screen.name, late.step.screen.parts["prior"]["value"]) == ("posterior", 40)
    assert beliefs() == [("prior", 40)]


def test_an_answer_by_token_alone_waits_for_the_lock_too(visitor: cast.Visitor) -> None:
    """As a front end of one's own sends it to the API."""
    step = visitor.step.number
    _sitting, following = while_it_waits(
        visitor,
        lambda: answer_by_token(visitor.sitting.token, step=step, data={"value": "90"}),
        lambda _sitting: send(visitor, step, value="40"),
    )
    assert following.number == step + 1
    assert beliefs() == [("prior", 40)]


def test_a_page_that_waited_sees_the_item_that_was_completed_meanwhile(visitor: cast.Visitor) -> None:
    step = visitor.step.number
    send(visitor, step, value="40")

    def finish_it(_sitting: Sitting) -> None:
        send(visitor, step + 1, value="50")
        send(visitor, step + 2, value="60")

    late = while_it_waits(visitor, lambda: send(visitor, step + 3, value="70"), finish_it)
    assert late.step.position == 3
    assert beliefs() == [("prior", 40), ("posterior", 50), ("prior", 60), ("posterior", 70)]
    assert visitor.states() == ["counted", "counted", "live"]


def test_a_page_that_waited_for_an_expiry_brings_the_sitting_back(visitor: cast.Visitor) -> None:
    step = visitor.step.number

    def expire(sitting: Sitting) -> None:
        Sitting.objects.filter(pk=sitting.pk).update(last_seen_at=timezone.now() - timedelta(hours=2))
        assert expiry.expire_sitting(sitting.pk, now=timezone.now())

    late = while_it_waits(visitor, lambda: send(visitor, step, value="40"), expire)
    assert late.step.screen.name == "posterior"
    assert visitor.reload().state == "live" and visitor.states() == ["live"] * 3
    assert beliefs() == [("prior", 40)]


def test_a_page_that_waited_for_an_expiry_in_a_closed_stage_is_late(visitor: cast.Visitor) -> None:
    step = visitor.step.number
    send(visitor, step, value="40")

    def expire_and_close(sitting: Sitting) -> None:
        Sitting.objects.filter(pk=sitting.pk).update(last_seen_at=timezone.now() - timedelta(hours=2))
        assert expiry.expire_sitting(sitting.pk, now=timezone.now())
        type(sitting.stage).objects.filter(pk=sitting.stage_id).update(state="closing", closing_at=timezone.now())

    late = while_it_waits(visitor, lambda: send(visitor, step + 1, value="50"), expire_and_close)
    assert late.step.position == 2
    assert visitor.states() == ["late"] * 3
    assert Assignment.objects.get(sitting=visitor.sitting, position=1).completed_at is not None


@pytest.mark.parametrize("_time", range(3))
def test_an_answer_with_a_remark_and_a_withdrawal_leave_nothing_of_either(visitor: cast.Visitor, _time: int) -> None:
    step = visitor.step.number
    results = together(
        lambda: send(visitor, step, value="40", report="It is cut off."),
        lambda: withdraw(respondent=visitor.sitting.respondent, now=timezone.now()),
    )
    no_errors(results)
    assert Response.objects.count() == QuestionReport.objects.count() == 0
    assert visitor.reload().is_over and set(visitor.states()) == {"withdrawn"}


def test_a_page_that_waited_for_a_withdrawal_stores_nothing_and_shows_the_end(visitor: cast.Visitor) -> None:
    step = visitor.step.number
    late = while_it_waits(
        visitor,
        lambda: send(visitor, step, value="40", report="It is cut off."),
        lambda sitting: withdraw(respondent=sitting.respondent, now=timezone.now()),
    )
    assert late.step.kind == "end"
    assert Response.objects.count() == QuestionReport.objects.count() == 0


def test_a_page_ahead_of_the_one_that_is_being_stored_is_refused_or_follows_it(visitor: cast.Visitor) -> None:
    step = visitor.step.number
    first, ahead = together(
        lambda: send(visitor, step, value="40"), lambda: send(visitor, step + 1, value="50", with_next=False)
    )
    assert not isinstance(first, Exception)
    assert beliefs() == ([("prior", 40)] if isinstance(ahead, OutOfOrder) else [("prior", 40), ("posterior", 50)])


def test_the_same_remark_sent_with_many_pages_at_once_is_stored_once(visitor: cast.Visitor) -> None:
    step = visitor.step.number
    results = together(*[lambda: send(visitor, step, value="40", report="It is cut off.")] * 6)
    no_errors(results)
    assert QuestionReport.objects.count() == Response.objects.count() == 1
