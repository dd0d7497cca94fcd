"""How many people can still begin in a stage, how many are inside, and which slots nobody holds."""

from typing import Any

from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce

from survey.models import Assignment, Booklet, Sitting, Slot, Stage


def free_booklets(stage: Stage) -> QuerySet[Booklet]:
    return stage.booklets.filter(claimed_at__isnull=True)


def _count_in_stage(rows: QuerySet[Any]) -> Coalesce:
    return Coalesce(Subquery(rows.order_by().values("stage").annotate(n=Count("pk")).values("n")), 0)


def free_capacity(stage: Stage) -> int:
    """How many more people can begin: free booklets minus people who have begun and not yet claimed one.

    One SQL statement: with two, a claim between them could make the page say "full" while a booklet is free.
    """
    free = _count_in_stage(Booklet.objects.filter(stage=OuterRef("pk"), claimed_at__isnull=True))
    waiting = _count_in_stage(
        Sitting.objects.filter(stage=OuterRef("pk"), state=Sitting.State.LIVE, booklet__isnull=True)
    )
    return int(Stage.objects.filter(pk=stage.pk).values_list(free - waiting, flat=True).get())


def sittings_inside(stage: Stage) -> QuerySet[Sitting]:
    """Live sittings that can still give an answer that counts: before their booklet, or with an item open in time.

    Sittings that only answer late, or that are past their items, are left out: freezing need not wait for them.
    """
    in_time = Assignment.objects.filter(sitting=OuterRef("pk"), state=Assignment.State.LIVE)
    return stage.sittings.filter(Q(booklet__isnull=True) | Exists(in_time), state=Sitting.State.LIVE)


def slots_without_holder(stage: Stage) -> QuerySet[Slot]:
    """Slots of claimed booklets that nobody holds and nobody has answered in time."""
    held = Assignment.objects.filter(slot=OuterRef("pk"), state__in=Assignment.HOLDING)
    return stage.slots.filter(~Exists(held)).filter(Q(booklet__isnull=True) | Q(booklet__claimed_at__isnull=False))
