"""The progress of a stage, in counts."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import BooleanField, Count, ExpressionWrapper, Q, QuerySet

from survey.models import Assignment, Booklet, Sitting, Slot, Stage
from survey.services.answers.counting import counting


@dataclass(frozen=True)
class StageProgress:
    """Counts of a stage at this moment.

    `in_time` of the `slots` have an answer that was complete in time; estimates use `counted` of these answers:
    without controls, repeats, what a rule excludes, and pilots.
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
    return stages_progress([stage])[stage.pk]


def stages_progress(stages: Sequence[Stage]) -> dict[int, StageProgress]:
    """The progress of each stage by its primary key, in a fixed number of queries."""
    slots = _counts(Slot.objects.filter(stage__in=stages), "stage")
    complete = Assignment.objects.filter(slot__stage__in=stages, completed_at__isnull=False)
    answer_counts = _counts(complete, "slot__stage", "state")
    counted = _counts(counting(stages), "slot__stage")
    booklets = _counts(Booklet.objects.filter(stage__in=stages), "stage", is_free=Q(claimed_at__isnull=True))
    sittings: dict[int, dict[str, int]] = defaultdict(dict)
    for (stage, state), count in _counts(Sitting.objects.filter(stage__in=stages), "stage", "state").items():
        sittings[stage][state] = count
    return {
        stage.pk: StageProgress(
            slots=slots.get((stage.pk,), 0),
            in_time=answer_counts.get((stage.pk, Assignment.State.COUNTED), 0),
            counted=counted.get((stage.pk,), 0),
            late=answer_counts.get((stage.pk, Assignment.State.LATE), 0),
            sittings=dict(sittings[stage.pk]),
            booklets=booklets.get((stage.pk, True), 0) + booklets.get((stage.pk, False), 0),
            free_booklets=booklets.get((stage.pk, True), 0),
        )
        for stage in stages
    }


def _counts(rows: QuerySet[Any], *names: str, **computed: Q) -> dict[tuple[Any, ...], int]:
    """How many rows there are by these fields, and by whether these conditions hold."""
    rows = rows.order_by().annotate(
        **{name: ExpressionWrapper(condition, BooleanField()) for name, condition in computed.items()}
    )
    groups = rows.values_list(*names, *computed).annotate(count=Count("pk"))
    return {tuple(key): count for *key, count in groups}
