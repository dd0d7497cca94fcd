"""Quotas: who belongs where by the answers before the items, and whether there is a place. Imports models and base.

People are placed one at a time under the stage's lock, so that no cell ever takes one person too many. A place counts
as taken while its sitting is live or complete: anyone who expires, fails the checks or withdraws gives it back.
Somebody who comes back after expiry gets it again if it is still free. Anyone who left after the last item, or had
stopped, has given all answers, and keeps the place.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db.models import Count, Exists, OuterRef, Q, QuerySet

from survey.models import Assignment, FormAnswer, QuotaPlace, Sitting, Stage
from survey.services.base.locks import locked_stage
from survey.study_file import QuotaConfig, decided_in

TAKING = (Sitting.State.LIVE, Sitting.State.COMPLETE)
ENDS: Mapping[str, Sitting.State] = {
    "study_full": Sitting.State.TURNED_AWAY,
    "screened_out": Sitting.State.SCREENED_OUT,
}
Cell = tuple[str, str]  # The names of a quota and of its cell.


def taking(places: QuerySet[QuotaPlace]) -> QuerySet[QuotaPlace]:
    """Those that count as taken now."""
    owed = Assignment.objects.filter(sitting=OuterRef("sitting"), state__in=Assignment.OWED).order_by()
    gave_all = Q(sitting__state=Sitting.State.EXPIRED, sitting__booklet__isnull=False) & ~Exists(owed)
    return places.filter(Q(sitting__state__in=TAKING) | gave_all, state=QuotaPlace.State.HELD)


def taken_in(stage: Stage, *, besides: Sitting | None = None) -> dict[Cell, int]:
    """How many places of each cell are taken, by others than this sitting; cells without anybody are left out."""
    places = QuotaPlace.objects.filter(stage=stage)
    others = places.exclude(sitting=besides) if besides is not None else places
    rows = taking(others).order_by().values_list("quota", "cell")
    return {(quota, cell): n for quota, cell, n in rows.annotate(n=Count("pk"))}


def place(sitting: Sitting, answers: Mapping[str, Any], now: datetime) -> Sitting.State | None:
    """Place somebody in the quotas that the form they have just answered decides. Returns the state in which their
    sitting ends; None if it goes on. Needs the sitting's lock; takes the stage's.

    Args:
        answers: to this form, by question. It is stored already.
    """
    config = sitting.config
    due = [quota for quota in config.quotas if decided_in(quota, config.blocks) == sitting.block]
    if not due:
        return None
    known_answers = _given(sitting, due, answers)
    stage = locked_stage(sitting.stage_id)
    taken = taken_in(stage)
    places = [_placed(sitting, quota, known_answers, taken, stage, now) for quota in due]
    QuotaPlace.objects.bulk_create(places)
    for quota, quota_place in zip(due, places, strict=True):
        if quota_place.state == QuotaPlace.State.FULL:
            return ENDS[quota.when_full]
        if quota_place.state == QuotaPlace.State.OUTSIDE and quota.otherwise != "admit":
            return ENDS[quota.otherwise]
    return None


def _given(sitting: Sitting, due: Sequence[QuotaConfig], answers: Mapping[str, Any]) -> dict[str, Any]:
    """The answers to the quotas' questions. Forms before this one are read only where a quota asks of them too."""
    wanted = {name for quota in due for name in quota.fields}
    known_answers: dict[str, Any] = {}
    if wanted - set(answers):
        for earlier in FormAnswer.objects.filter(sitting=sitting).order_by("pk").values_list("answers", flat=True):
            known_answers |= earlier
    known_answers |= answers
    return {name: known_answers.get(name) for name in sorted(wanted)}


def _placed(
    sitting: Sitting,
    quota: QuotaConfig,
    known_answers: Mapping[str, Any],
    taken: Mapping[Cell, int],
    stage: Stage,
    now: datetime,
) -> QuotaPlace:
    cell = quota.cell_of(known_answers)
    if cell is None:
        state = QuotaPlace.State.OUTSIDE
    elif taken.get((quota.name, cell.name), 0) < places_of(quota, cell.name, stage):
        state = QuotaPlace.State.HELD
    else:
        state = QuotaPlace.State.FULL
    return QuotaPlace(
        sitting=sitting,
        stage=stage,
        quota=quota.name,
        cell=cell.name if cell is not None else "",
        state=state,
        answers={name: known_answers[name] for name in sorted(quota.fields)},
        at=now,
    )


def places_of(quota: QuotaConfig, cell: str, stage: Stage) -> int:
    """A cell's places in a stage by the file in force; by the sitting's own file where that has no such cell."""
    in_force = next((other for other in stage.study.config.quotas if other.name == quota.name), quota)
    sittings = stage.config.sittings
    return in_force.places(sittings).get(cell, quota.places(sittings).get(cell, 0))


def nobody_fits(stage: Stage) -> bool:
    """Whether some quota has no place left for anybody. Asked before somebody begins, without a lock: nobody should
    agree and answer questions for nothing."""
    limited = [quota for quota in stage.study.config.quotas if quota.otherwise != "admit"]
    if not limited:
        return False
    taken, sittings = taken_in(stage), stage.config.sittings
    return any(
        all(taken.get((quota.name, cell), 0) >= number for cell, number in quota.places(sittings).items())
        for quota in limited
    )


def take_back(sitting: Sitting, stage: Stage) -> Sitting.State | None:
    """Take the places of an expired sitting whose person comes back. Returns how a sitting ends that has lost one; None
    if it has all its places. Needs the locks of sitting and stage, and is called while the sitting is still expired."""
    held = list(sitting.quota_places.filter(state=QuotaPlace.State.HELD)) if sitting.config.quotas else []
    if not held:
        return None
    taken = taken_in(stage, besides=sitting)
    quotas = {quota.name: quota for quota in sitting.config.quotas}
    lost = [
        quota_place
        for quota_place in held
        if taken.get((quota_place.quota, quota_place.cell), 0) >= _limit(quota_place, quotas, stage)
    ]
    QuotaPlace.objects.filter(pk__in=[quota_place.pk for quota_place in lost]).update(state=QuotaPlace.State.LOST)
    return ENDS[quotas[lost[0].quota].when_full] if lost else None


def _limit(quota_place: QuotaPlace, quotas: Mapping[str, QuotaConfig], stage: Stage) -> int:
    return places_of(quotas[quota_place.quota], quota_place.cell, stage)
