"""How many people can still begin in a stage, how many are inside, and which slots nobody holds."""

from typing import Any

from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce

from survey.contracts import panels
from survey.models import Assignment, Booklet, Sitting, Slot, Stage, Study
from survey.services.base.compiled import Expression, run


def admitting_stage(study: Study) -> Stage | None:
    """The stage that a new respondent would join: the newest open stage, even if it is full."""
    stage = study.stages.filter(state=Stage.State.OPEN).defer("manifest").order_by("-index").first()
    if stage is not None:
        stage.study = study
    return stage


def free_booklets(stage: Stage) -> QuerySet[Booklet]:
    return stage.booklets.filter(claimed_at__isnull=True)


def _count_in_stage(rows: QuerySet[Any]) -> Coalesce:
    return Coalesce(Subquery(rows.order_by().values("stage").annotate(n=Count("pk")).values("n")), 0)


def free_capacity(stage: Stage) -> int:
    """How many more people can begin: free booklets minus people who have begun and not yet claimed one.

    In a study that is open to anybody, people can be made up, so that nobody holds a place before the booklet, which
    comes after practice and checks. More people may then begin than there are places.

    One SQL statement: with two, a claim between them could make the page say "full" while a booklet is free.
    """
    free = _count_in_stage(Booklet.objects.filter(stage=OuterRef("pk"), claimed_at__isnull=True))
    if panels.of_study(stage.study).is_open:
        return int(Stage.objects.filter(pk=stage.pk).values_list(free, flat=True).get())
    waiting = _count_in_stage(
        Sitting.objects.filter(stage=OuterRef("pk"), state=Sitting.State.LIVE, booklet__isnull=True)
    )
    return int(Stage.objects.filter(pk=stage.pk).values_list(free - waiting, flat=True).get())


def has_free_place(stage: Stage) -> bool:
    """Whether one more person can begin: `free_capacity` above 0.

    A stage with a million slots has as many free booklets to count as would take longer than the page. So this looks
    for one free booklet, after as many as people wait for, by indexes. One statement, as above.
    """
    sql, values = free_place(stage)
    return bool(run(f"SELECT {sql}", *values)[0][0])


def free_place(stage: Stage) -> Expression:
    """`has_free_place` as a condition inside another statement."""
    # In order, so that the database takes the first by the index of free booklets. It would otherwise read those that
    # were claimed, which lie before the free ones. EXISTS would drop the order.
    free = (
        f"SELECT 1 FROM {Booklet._meta.db_table} WHERE stage_id = %s AND claimed_at IS NULL "  # noqa: S608
        "ORDER BY stage_id, kind, number LIMIT 1"
    )
    if panels.of_study(stage.study).is_open:
        return f"({free}) IS NOT NULL", [stage.pk]
    waiting = (
        f"SELECT count(*) FROM {Sitting._meta.db_table} "  # noqa: S608 - names of tables
        f"WHERE stage_id = %s AND state = '{Sitting.State.LIVE.value}' AND booklet_id IS NULL"
    )
    return f"({free} OFFSET ({waiting})) IS NOT NULL", [stage.pk, stage.pk]


def sittings_inside(*stages: Stage) -> QuerySet[Sitting]:
    """Live sittings that can still give an answer that counts: before their booklet, or with an item open in time.

    Sittings that only answer late, or that are past their items, are left out: freezing need not wait for them.
    """
    in_time = Assignment.objects.filter(sitting=OuterRef("pk"), state=Assignment.State.LIVE)
    inside = Sitting.objects.filter(Q(booklet__isnull=True) | Exists(in_time), stage__in=stages)
    return inside.filter(state=Sitting.State.LIVE)


def slots_without_holder(stage: Stage) -> QuerySet[Slot]:
    """Slots of claimed booklets that nobody holds and nobody has answered in time, and slots in no booklet.

    Anyone who claims a booklet is given all its slots. So only those that were given back are looked at, by an index,
    and not a million slots twice a minute.
    """
    held = Assignment.objects.filter(slot=OuterRef("pk"), state__in=Assignment.HOLDING)
    in_none = Slot.objects.filter(stage=stage, booklet__isnull=True).order_by().values("pk")
    left = Assignment.objects.filter(slot__stage=stage, state__in=Assignment.GIVEN_BACK).order_by()
    in_claimed = left.filter(slot__booklet__claimed_at__isnull=False).values("slot")
    return stage.slots.filter(~Exists(held), pk__in=in_none.union(in_claimed))
