"""Who left a stage among its items, and who finished late: by one definition on all pages, in methods and estimates.

Somebody has left who began the items, is gone, did not finish, and has an item without a whole answer. Who left after
the last item, or stopped where that was allowed, has given all answers. Who came back after others got their items may
finish, with answers that came too late: they did not leave.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Exists, OuterRef

from survey.models import Assignment, Sitting, Stage


@dataclass(frozen=True)
class Leavers:
    """People of a stage by the keys of their sittings: who `began` the items, who of them `left` before their last
    one, and who finished with an answer that came too late."""

    began: frozenset[int] = frozenset()
    left: frozenset[int] = frozenset()
    finished_late: frozenset[int] = frozenset()


def leavers_of(stages: Iterable[Stage]) -> dict[int, Leavers]:
    """By the key of each of these stages, in one statement."""
    items = Assignment.objects.filter(sitting=OuterRef("pk")).order_by()
    sittings = Sitting.objects.filter(stage__in=list(stages), booklet__isnull=False).order_by()
    rows = sittings.values_list(
        "stage",
        "pk",
        "state",
        Exists(items.filter(completed_at__isnull=True, state__in=Assignment.OWED)),
        Exists(items.filter(state=Assignment.State.LATE, completed_at__isnull=False)),
    )
    began: dict[int, set[int]] = defaultdict(set)
    left: dict[int, set[int]] = defaultdict(set)
    late: dict[int, set[int]] = defaultdict(set)
    for stage, sitting, state, has_gap, has_late in rows:
        began[stage].add(sitting)
        if state == Sitting.State.EXPIRED and has_gap:
            left[stage].add(sitting)
        elif state == Sitting.State.COMPLETE and has_late:
            late[stage].add(sitting)
    return {
        stage: Leavers(frozenset(began[stage]), frozenset(left[stage]), frozenset(late[stage])) for stage in [*began]
    }


def late_in_words(people: int) -> str:
    """Of people who finished, those with an answer that came too late; empty where there are none."""
    return f"{people} finished, with an answer that came too late" if people else ""
