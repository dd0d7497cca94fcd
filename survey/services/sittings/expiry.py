"""Sittings without activity expire, and the slots they leave unanswered are dealt again.

A beat task runs this, never a respondent's request.
"""

import logging
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Exists, Max, OuterRef, Q, QuerySet
from django.utils import timezone

from bandit.booklets import deal
from bandit.errors import DesignError
from bandit.short_booklets import deal_short
from survey.contracts import instruments, panels
from survey.models import Assignment, Booklet, Sitting, Slot, Stage, Study
from survey.services.base.locks import locked_stage
from survey.services.base.seeds import generator

from .capacity import free_booklets, slots_without_holder

logger = logging.getLogger(__name__)

HOLDOUT = Slot.Role.HOLDOUT


def expire_sittings(now: datetime | None = None) -> int:
    """Expire every live sitting that was inactive for longer than its study allows, and deal the freed slots.

    Where that fails, such as by an instrument of another package, it stops no other sitting and no other stage. The
    stage's row says why.
    """
    now = now or timezone.now()
    collecting = Q(state__in=[Stage.State.OPEN, Stage.State.PAUSED])
    has_live = Exists(Sitting.objects.filter(stage=OuterRef("pk"), state=Sitting.State.LIVE))
    stages = Stage.objects.filter(collecting | has_live | ~Q(upkeep_error=""))
    expired = 0
    for stage in filter(_can_be_asked, stages.select_related("study")):
        silence = longest_silence(stage.study)
        silent = stage.sittings.filter(state=Sitting.State.LIVE, last_seen_at__lt=now - silence)
        errors = []
        for pk in silent.values_list("pk", flat=True):
            try:
                expired += expire_sitting(pk, seen_before=now - silence, now=now)
            except Exception as exc:
                logger.exception("%s: sitting %s could not expire", stage, pk)
                errors.append(exc)
        try:
            deal_make_up_booklets(stage)
        except Exception as exc:
            logger.exception("%s: no make-up booklets could be dealt", stage)
            errors.append(exc)
        # Its words may hold what somebody has typed: they are in the log alone.
        error = f"{type(errors[0]).__name__}; the worker's log says where it was raised" if errors else ""
        if error != stage.upkeep_error:
            Stage.objects.filter(pk=stage.pk).update(upkeep_error=error)
    return expired


def longest_silence(study: Study) -> timedelta:
    """How long a sitting lasts without a page being sent. Where anybody can begin, nobody holds a place for long."""
    sitting = study.config.sitting
    minutes = sitting.expires_after_minutes
    if panels.of_study(study).is_open:
        minutes = min(minutes, sitting.open_place_minutes)
    return timedelta(minutes=minutes)


def _can_be_asked(stage: Stage) -> bool:
    """Whether the study's instrument is there. While it is missing nobody can answer, so nobody is silent either."""
    return instruments.is_known(stage.study.instrument)


@transaction.atomic
def expire_sitting(pk: int, *, now: datetime, seen_before: datetime | None = None) -> bool:
    """Expire one live sitting and release its open assignments, except those whose instrument counts what was given so
    far: they are complete. False where the person was faster."""
    # Lock only the row itself: PostgreSQL refuses to lock the nullable side of a join.
    live = Sitting.objects.select_for_update(of=("self",), no_key=True).filter(pk=pk, state=Sitting.State.LIVE)
    sitting = live.select_related("stage__study__bank").first()
    if sitting is None or (seen_before is not None and sitting.last_seen_at >= seen_before):
        return False
    sitting.state = Sitting.State.EXPIRED
    sitting.expired_at = now
    if instruments.is_known(sitting.stage.study.instrument) and _count_unfinished(sitting, now):
        sitting.step += 1  # A page of what is complete now must not be taken for one of the next item.
    sitting.save(update_fields=["state", "expired_at", "step"])
    sitting.assignments.filter(state=Assignment.State.LIVE).update(state=Assignment.State.RELEASED)
    return True


def _count_unfinished(sitting: Sitting, now: datetime) -> int:
    """Complete the begun assignments that count as they are; how many. Needs the sitting's lock."""
    counted = 0
    instrument = instruments.of_study(sitting.stage.study)
    begun = sitting.assignments.filter(state=Assignment.State.LIVE, responses__isnull=False).distinct()
    for assignment in begun.select_related("slot__item", "slot__stage", "sitting").order_by("position"):
        if instrument.counts_unfinished(assignment):
            assignment.state = Assignment.State.COUNTED
            assignment.completed_at = now
            assignment.save(update_fields=["state", "completed_at"])
            counted += 1
    return counted


@transaction.atomic
def deal_make_up_booklets(stage: Stage) -> int:
    """Deal slots that nobody holds any more into new booklets, under the stage's lock; return how many.

    Holdout slots get separate booklets here too. A booklet is dealt as soon as there are slots to fill it. A shorter
    last one is dealt only if nothing else is free, so that few people get a short sitting.
    """
    if not _left_over(stage).exists():
        return 0
    stage = locked_stage(stage.pk)
    if stage.state not in (Stage.State.OPEN, Stage.State.PAUSED):
        return 0
    size = stage.study.config.sitting.items
    left = list(_left_over(stage).select_related("stratum", "item").order_by("number"))
    dealt = 0
    for slots in ([slot for slot in left if slot.role == HOLDOUT], [slot for slot in left if slot.role != HOLDOUT]):
        # Asked again for the second part: a holdout booklet that was just dealt is free.
        if not slots or (len(slots) < size and free_booklets(stage).exists()):
            continue
        newest = stage.booklets.aggregate(newest=Max("number"))["newest"] or 0
        dealt += _deal(stage, slots, size=size, number=newest)
    return dealt


def _left_over(stage: Stage) -> QuerySet[Slot]:
    """Slots that somebody else can answer. A repeat is not one: it is compared with the same person's first answer."""
    return slots_without_holder(stage).exclude(role=Slot.Role.REPEAT)


def _deal(stage: Stage, slots: list[Slot], *, size: int, number: int) -> int:
    whole = len(slots) // size * size
    if whole and free_booklets(stage).exists():
        slots = slots[:whole]
    instrument = instruments.of_study(stage.study)
    items = [slot.item for slot in slots]
    # As in the plan: an item that conflicts with nothing still conflicts with itself.
    keys = [
        own or (("item", item.pk),)
        for own, item in zip(instrument.booklets.conflict_keys_of(items), items, strict=True)
    ]
    groups = [(slot.role, slot.stratum_id or 0) for slot in slots]
    rng = generator(stage.seed, "make_up", number + 1)
    try:
        dealt = deal(conflict_keys=keys, groups=groups, size=size, rng=rng)
    except DesignError:
        # The same question may be left over more often than there are booklets. Nobody may get it twice, so each slot
        # gets a place in the first booklet that has room for its keys, and there are more, shorter booklets.
        dealt = deal_short(keys, size=size, rng=rng)
    for offset, places in enumerate(dealt, start=1):
        booklet = Booklet.objects.create(stage=stage, number=number + offset, kind=Booklet.Kind.MAKE_UP)
        for position, index in enumerate(places, start=1):
            slots[index].booklet, slots[index].position = booklet, position
    Slot.objects.filter(pk__in=[slot.pk for slot in slots]).update(booklet=None, position=None)
    Slot.objects.bulk_update(slots, ["booklet", "position"], batch_size=500)
    return len(dealt)
