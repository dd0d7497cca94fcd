"""The progress of a stage, in counts."""

from dataclasses import dataclass

from django.db.models import Count, Q

from survey.models import Assignment, Sitting, Stage
from survey.services.answers.counting import counting, in_time


@dataclass(frozen=True)
class StageProgress:
    """Counts of a stage at this moment.

    `in_time` of the `slots` have an answer that was complete in time; estimates use `counted` of these answers:
    without controls, repeats, what a rule leaves out, and pilots.
    """

    slots: int
    in_time: int
    counted: int
    late: int
    sittings: dict[str, int]
    booklets: int
    free_booklets: int

    @property
    def live(self) -> int:
        return self.sittings.get(Sitting.State.LIVE, 0)


def stage_progress(stage: Stage) -> StageProgress:
    late = Assignment.objects.filter(slot__stage=stage, state=Assignment.State.LATE, completed_at__isnull=False)
    booklets = stage.booklets.aggregate(all=Count("pk"), free=Count("pk", filter=Q(claimed_at__isnull=True)))
    return StageProgress(
        slots=stage.slots.count(),
        in_time=in_time([stage]).count(),
        counted=counting([stage]).count(),
        late=late.count(),
        sittings=dict(stage.sittings.order_by().values_list("state").annotate(Count("pk"))),
        booklets=booklets["all"],
        free_booklets=booklets["free"],
    )
