"""How far a stage is, and which answers count."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce

from survey.instruments import registry
from survey.models import Assignment, Booklet, Item, PredictorRun, Sitting, Slot, Stage, Study

BATCH = 2000


def free_booklets(stage: Stage) -> QuerySet[Booklet]:
    return stage.booklets.filter(claimed_at__isnull=True)


def _count_in_stage(rows: QuerySet[Any]) -> Coalesce:
    return Coalesce(Subquery(rows.order_by().values("stage").annotate(n=Count("pk")).values("n")), 0)


def free_capacity(stage: Stage) -> int:
    """How many more people can begin: free booklets less those who have begun and not yet claimed one.

    In one statement: between two, somebody's claim could make a person be told "full" while a booklet is free.
    """
    free = _count_in_stage(Booklet.objects.filter(stage=OuterRef("pk"), claimed_at__isnull=True))
    waiting = _count_in_stage(
        Sitting.objects.filter(stage=OuterRef("pk"), state=Sitting.State.LIVE, booklet__isnull=True)
    )
    return int(Stage.objects.filter(pk=stage.pk).values_list(free - waiting, flat=True).get())


def sittings_inside(stage: Stage) -> QuerySet[Sitting]:
    """Live sittings that can still give an answer that counts: before their booklet, or with an item open in time.

    Not those who only answer late, or have answered all and stand at a questionnaire: freezing need not wait for them.
    """
    in_time = Assignment.objects.filter(sitting=OuterRef("pk"), state=Assignment.State.LIVE)
    return stage.sittings.filter(Q(booklet__isnull=True) | Exists(in_time), state=Sitting.State.LIVE)


def slots_without_holder(stage: Stage) -> QuerySet[Slot]:
    """Slots of booklets that were claimed, which nobody holds or has answered in time."""
    held = Assignment.objects.filter(slot=OuterRef("pk"), state__in=Assignment.HOLDING)
    return stage.slots.filter(~Exists(held)).filter(Q(booklet__isnull=True) | Q(booklet__claimed_at__isnull=False))


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


def with_answers(assignments: QuerySet[Assignment], study: Study) -> QuerySet[Assignment]:
    """The queryset with everything that labels and exports read, in a few queries and not one a row."""
    return assignments.select_related(
        "sitting__respondent", "sitting__booklet", "slot__stage", "slot__stratum", "slot__item", "slot__booklet"
    ).prefetch_related("responses__score", *registry.get(study.instrument).prefetch())


def with_labels(assignments: QuerySet[Assignment], study: Study) -> QuerySet[Assignment]:
    """The queryset with what labels and estimates read, which is a third of what an export reads."""
    return assignments.select_related("sitting", "slot__stage", "slot__stratum", "slot__item").prefetch_related(
        *registry.get(study.instrument).label_relations()
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
        if earlier.settings.teaches:
            answers += frozen_answers(earlier)
    if not held_out:
        return answers
    keys = pair_keys([answer.slot.item for answer in answers], study)
    return [answer for answer, key in zip(answers, keys, strict=True) if key not in held_out]


def pair_keys(items: Sequence[Item], study: Study) -> list[frozenset[Any]]:
    """What an item is about, in no order: equal for a pair, its reverse and its other outcome."""
    instrument = registry.get(study.instrument)
    found: list[frozenset[Any]] = []
    for start in range(0, len(items), BATCH):
        found += map(frozenset, instrument.conflict_keys_of(items[start : start + BATCH]))
    return found


def held_out_keys(study: Study, *, through: int | None = None) -> set[frozenset[Any]]:
    """The pairs whose answers never train: those of the holdouts and of a test set, in any stage that is planned."""
    stages = study.main_stages().exclude(state=Stage.State.DRAFT)
    tests = [stage for stage in stages if stage.settings.design.kind == "test_set"]
    slots = Slot.objects.filter(Q(role=Slot.Role.HOLDOUT) | Q(role=Slot.Role.SAMPLED, stage__in=tests))
    if through is not None:
        slots = slots.filter(stage__index__lte=through)
    items = Item.objects.filter(pk__in=slots.filter(stage__in=stages).values("item"))
    return set(pair_keys(list(items), study))


def last_planned(study: Study) -> int:
    """The number of the last stage that has a plan; 0 where none has."""
    planned = study.stages.exclude(state=Stage.State.DRAFT).order_by("index").last()
    return planned.index if planned else 0


def main_run(stage: Stage) -> PredictorRun | None:
    """The training of the study's predictor on the answers up to and with this stage."""
    return stage.predictor_runs.filter(role=PredictorRun.Role.MAIN).order_by("created_at").last()


def runs_in_force(stage: Stage) -> list[PredictorRun]:
    """The predictors that this stage's answers judge: the newest ones trained before it, the main one first."""
    ready = PredictorRun.objects.filter(stage__study=stage.study_id, stage__index__lt=stage.index).exclude(
        ready_at=None
    )
    newest = ready.order_by("-stage__index").values_list("stage__index", flat=True).first()
    runs = list(ready.filter(stage__index=newest).select_related("stage__study").order_by("pk")) if newest else []
    return sorted(runs, key=lambda run: run.role != PredictorRun.Role.MAIN)


@dataclass(frozen=True)
class StratumMean:
    """Mean of an outcome over a stratum's answers: a share where the outcome is 0 or 1, else in the outcome's unit."""

    name: str
    answers: int
    share: float


@dataclass(frozen=True)
class StageTable:
    """One line of the table that demo, admin and commands show."""

    stage: int
    answers: int
    share: float
    by_stratum: dict[str, StratumMean]


def outcome_table(stage: Stage) -> StageTable | None:
    """Mean of the instrument's first outcome, over all answers and by stratum; None where there is nothing to show."""
    study = stage.study
    answers = counted_answers(stage)
    outcomes = registry.get(study.instrument).outcomes(answers, study) if answers else {}
    if not outcomes:
        return None
    values = next(iter(outcomes.values()))
    strata = np.asarray([answer.slot.stratum.name if answer.slot.stratum else "" for answer in answers])
    means = {
        str(name): StratumMean(
            name=str(name), answers=int((strata == name).sum()), share=float(values[strata == name].mean())
        )
        for name in np.unique(strata)
    }
    return StageTable(stage=stage.index, answers=len(answers), share=float(values.mean()), by_stratum=means)
