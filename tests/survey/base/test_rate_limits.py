"""Budgets by span of time, and what closes for a while."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import transaction
from django.utils import timezone

from survey import tasks
from survey.models import BudgetCount
from survey.services.base.rate_limits import Budget, close, closed_for, forget_ended, give_back, spend
from tests.survey.sittings.test_concurrency import together

pytestmark = pytest.mark.django_db
THREE = Budget("visits", most=3, seconds=600)
NOON = datetime(2026, 1, 1, 12, 4, tzinfo=UTC)


def test_a_budget_is_spent_and_full_again_in_the_next_span() -> None:
    assert [spend(THREE, who="a", now=NOON) for _time in range(5)] == [0, 0, 0, 360, 360]
    assert spend(THREE, who="a", now=NOON + timedelta(seconds=359.5)) == 1
    assert spend(THREE, who="a", now=NOON + timedelta(seconds=360)) == 0


def test_each_has_a_budget_of_their_own_and_everybody_one_together() -> None:
    budget = Budget("visits", most=1, seconds=600)
    assert [spend(budget, who=who, now=NOON) for who in ("a", "b", "a", "")] == [0, 0, 360, 0]
    assert spend(Budget("calls", most=1, seconds=600), who="a", now=NOON) == 0
    assert spend(budget, now=NOON) == 360


def test_what_is_given_back_can_be_spent_again() -> None:
    budget = Budget("visits", most=1, seconds=600)
    give_back(budget, who="a", now=NOON)
    assert spend(budget, who="a", now=NOON) == 0
    give_back(budget, who="a", now=NOON)
    give_back(budget, who="a", now=NOON)
    assert [spend(budget, who="a", now=NOON) for _time in range(2)] == [0, 360]


def test_nothing_stored_says_who_it_was_and_two_spans_cannot_be_linked() -> None:
    for hours in range(2):
        spend(THREE, who="198.51.100.7", now=NOON + timedelta(hours=hours))
    first, second = BudgetCount.objects.order_by("until").values_list("who", flat=True)
    assert len(first) == 64 and first != second and "198.51" not in first + second


def test_what_is_closed_opens_by_itself() -> None:
    close("panel", "toys", until=NOON + timedelta(seconds=30))
    close("panel", "toys", until=NOON + timedelta(seconds=30))
    assert (closed_for("panel", "toys", now=NOON), closed_for("panel", "others", now=NOON)) == (30, 0)
    close("panel", "toys", until=NOON + timedelta(seconds=90))
    assert closed_for("panel", "toys", now=NOON) == 90
    assert closed_for("panel", "toys", now=NOON + timedelta(seconds=90)) == 0


def test_beat_deletes_what_is_over() -> None:
    now = timezone.now()
    spend(THREE, who="a", now=now - timedelta(hours=1))
    spend(THREE, who="a", now=now)
    assert forget_ended(now=now - timedelta(days=1)) == 0
    tasks.expire_sittings()
    assert BudgetCount.objects.get().until > now


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_new", [True, False])
def test_of_many_at_once_exactly_as_many_spend_as_there_is(is_new: bool) -> None:
    ten = Budget("visits", most=10, seconds=600)
    if not is_new:
        spend(ten, who="a", now=NOON)

    def visit() -> int:
        with transaction.atomic():
            return spend(ten, who="a", now=NOON)

    results = together(*[visit] * 16, *[lambda: spend(ten, who="a", now=NOON)] * 16)
    assert not [result for result in results if isinstance(result, BaseException)], results
    assert sorted(results) == [0] * (10 if is_new else 9) + [360] * (22 if is_new else 23)
    assert BudgetCount.objects.get().count == 10
