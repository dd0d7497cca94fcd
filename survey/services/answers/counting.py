"""Which answers count: in estimates, in training, in judging predictors."""

from collections.abc import Sequence
from typing import Any

from django.db.models import Q, QuerySet

from survey.contracts import instruments
from survey.models import Assignment, Item, Slot, Stage, Study

BATCH = 2000


def with_answers(assignments: QuerySet[Assignment], study: Study) -> QuerySet[Assignment]:
    """The queryset with everything that labels and exports read, in a few queries and not one a row."""
    return assignments.select_related(
        "sitting__respondent", "sitting__booklet", "slot__stage", "slot__stratum", "slot__item", "slot__booklet"
    ).prefetch_related("responses__score", *instruments.of_study(study).prefetch())


def with_labels(assignments: QuerySet[Assignment], study: Study) -> QuerySet[Assignment]:
    """The queryset with what labels and estimates read, which is a third of what an export reads."""
    return assignments.select_related("sitting", "slot__stage", "slot__stratum", "slot__item").prefetch_related(
        *instruments.of_study(study).label_relations()
    )


def counted_answers(stage: Stage, *, roles: Sequence[str] = (Slot.Role.SAMPLED,)) -> list[Assignment]:
    """Complete answers given in time, in the order of the plan, without those that the frozen stage leaves out. Only
    sampled slots train."""
    rows = Assignment.objects.filter(
        slot__stage=stage, state=Assignment.State.COUNTED, slot__role__in=roles, sitting__exclusion__isnull=True
    )
    return list(with_labels(rows, stage.study).order_by("slot__number"))


def frozen_answers(stage: Stage, *, roles: Sequence[str] = (Slot.Role.SAMPLED,)) -> list[Assignment]:
    """The snapshot's answers that no rule leaves out and that have not been withdrawn since."""
    rows = Assignment.objects.filter(
        snapshots__stage=stage,
        snapshots__withdrawn_at__isnull=True,
        slot__role__in=roles,
        sitting__exclusion__isnull=True,
    )
    return list(with_labels(rows, stage.study).order_by("slot__number"))


def training_examples(stage: Stage, *, kept_back_through: int | None = None) -> list[Assignment]:
    """Every frozen answer up to and with this stage that may train, in the order of stages and plans.

    Only sampled slots train. An answer on the same pair as one that is held out never does, whichever way round the
    pair was shown and whenever it was answered: a predictor that has seen it would be judged on what it knows.

    Args:
        kept_back_through: the last stage whose plan says what is held out; by default the last one that is planned.
    """
    study = stage.study
    held_out = held_out_keys(study, through=kept_back_through)
    answers: list[Assignment] = []
    for earlier in study.main_stages().filter(index__lte=stage.index, state=Stage.State.FROZEN).order_by("index"):
        earlier.study = study
        if earlier.config.teaches:
            answers += frozen_answers(earlier)
    if not held_out:
        return answers
    keys = pair_keys([answer.slot.item for answer in answers], study)
    return [answer for answer, key in zip(answers, keys, strict=True) if key not in held_out]


def pair_keys(items: Sequence[Item], study: Study) -> list[frozenset[Any]]:
    """What an item is about, in no order: equal for a pair, its reverse and its other outcome."""
    instrument = instruments.of_study(study)
    found: list[frozenset[Any]] = []
    for start in range(0, len(items), BATCH):
        found += map(frozenset, instrument.conflict_keys_of(items[start : start + BATCH]))
    return found


def held_out_keys(study: Study, *, through: int | None = None) -> set[frozenset[Any]]:
    """The pairs whose answers never train: those of the holdouts and of a test set, in any stage that is planned."""
    stages = study.main_stages().exclude(state=Stage.State.DRAFT)
    tests = [stage for stage in stages if stage.config.design.kind == "test_set"]
    slots = Slot.objects.filter(Q(role=Slot.Role.HOLDOUT) | Q(role=Slot.Role.SAMPLED, stage__in=tests))
    if through is not None:
        slots = slots.filter(stage__index__lte=through)
    items = Item.objects.filter(pk__in=slots.filter(stage__in=stages).values("item"))
    return set(pair_keys(list(items), study))
