"""Budgets: how often something may be done within a span of time. Imports models and the keyed hash.

The counts are rows, so that all processes and machines share them, and neither an empty nor a missing cache lets more
people through. A budget is spent by a conditional update: of many requests at once exactly as many succeed as there are
left. Spans follow each other without overlap. So twice the budget can be spent around the moment at which one ends.
"""

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.db.models import F, QuerySet

from survey.models import BudgetCount

from .compiled import run
from .hashing import keyed_digest

_COUNTS = BudgetCount._meta.db_table
# One statement makes the row or counts in it, however many try at once. It returns nothing where none is left.
SPEND = (
    f'INSERT INTO {_COUNTS} (what, who, until, "count") VALUES (%s, %s, %s, 1) '  # noqa: S608 - a table's name
    f'ON CONFLICT (what, who, until) DO UPDATE SET "count" = {_COUNTS}."count" + 1 '
    f'WHERE {_COUNTS}."count" < %s RETURNING "count"'
)


@dataclass(frozen=True)
class Budget:
    """`most` times within `seconds`."""

    what: str
    most: int
    seconds: int


def spend(budget: Budget, *, now: datetime, who: str = "") -> int:
    """Spend one; 0 if there was one left, otherwise after how many seconds there will be.

    Args:
        who: whose budget it is, such as an address. It is stored as a keyed hash. Empty: everybody's together.
    """
    new = _new(budget, now, who)
    if run(SPEND, new.what, new.who, new.until, budget.most):
        return 0
    return seconds_until(_end(budget, now), now)


def give_back(budget: Budget, *, now: datetime, who: str = "") -> None:
    """Take back what was spent at `now`."""
    _row(budget, now, who).filter(count__gt=0).update(count=F("count") - 1)


def close(what: str, name: str, *, until: datetime) -> None:
    """Close something of that name until that time; it opens by itself."""
    BudgetCount.objects.bulk_create([BudgetCount(what=what, who=name, until=until)], ignore_conflicts=True)


def closed_for(what: str, name: str, *, now: datetime) -> int:
    """For how many seconds it stays closed; 0 if it is open."""
    last = BudgetCount.objects.filter(what=what, who=name, until__gt=now).order_by("-until").first()
    return seconds_until(last.until, now) if last is not None else 0


def forget_ended(*, now: datetime) -> int:
    """Delete the counts whose span is over; return how many."""
    deleted, _by_table = BudgetCount.objects.filter(until__lte=now).delete()
    return deleted


def seconds_until(end: datetime, now: datetime) -> int:
    return max(1, math.ceil((end - now).total_seconds()))


def _end(budget: Budget, now: datetime) -> datetime:
    number = math.floor(now.timestamp() / budget.seconds) + 1
    return datetime.fromtimestamp(0, UTC) + timedelta(seconds=number * budget.seconds)


def _new(budget: Budget, now: datetime, who: str) -> BudgetCount:
    end = _end(budget, now)
    hashed = keyed_digest([budget.what, who, end.isoformat()], purpose="door") if who else ""
    return BudgetCount(what=budget.what, who=hashed, until=end)


def _row(budget: Budget, now: datetime, who: str) -> QuerySet[BudgetCount]:
    row = _new(budget, now, who)
    return BudgetCount.objects.filter(what=row.what, who=row.who, until=row.until)
