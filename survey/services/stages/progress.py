"""How far a stage is, in counts."""

from dataclasses import dataclass

from django.db.models import Count, Q

from survey.models import Assignment, Sitting, Stage


@dataclass(frozen=True)
class StageProgress:
    """Counts of a stage as it stands."""

    slots: int
    counted: int
    late: int
    sittings: dict[str, int]
    booklets: int
    free_booklets: int

    @property
    def live(self) -> int:
        return self.sittings.get(Sitting.State.LIVE, 0)


def stage_progress(stage: Stage) -> StageProgress:
    assignments = Assignment.objects.filter(slot__stage=stage).aggregate(
        counted=Count("pk", filter=Q(state=Assignment.State.COUNTED)),
        late=Count("pk", filter=Q(state=Assignment.State.LATE, completed_at__isnull=False)),
    )
    booklets = stage.booklets.aggregate(all=Count("pk"), free=Count("pk", filter=Q(claimed_at__isnull=True)))
    return StageProgress(
        slots=stage.slots.count(),
        counted=assignments["counted"],
        late=assignments["late"],
        sittings=dict(stage.sittings.order_by().values_list("state").annotate(Count("pk"))),
        booklets=booklets["all"],
        free_booklets=booklets["free"],
    )
