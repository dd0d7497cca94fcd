"""Which answers count: on every page, in estimates, in exports, in training and in judging predictors.

There are three sets, each a part of the one before. `in_time`: complete while the person still had the slot.
`counting`: of these, answers of the main stages, from sittings that no rule excludes. `frozen`: of these, the ones in
a stage's snapshot. Everything else is derived from these sets.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from django.db.models import Max, Q, QuerySet

from survey.contracts import instruments
from survey.exceptions import StateRefused
from survey.models import Assignment, Item, Slot, Stage, Study
from survey.services.answers.conditions import has_levels, in_words, relations_of
from survey.services.answers.exclusions import flagged_sittings
from survey.services.answers.joining import joined

BATCH = 2000
# Answers whose relations are read together. SQLite takes no more than some hundred keys of questions in one statement.
BATCH_SIZE = 500

TRAINED = (Slot.Role.SAMPLED,)  # The roles that predictors learn from.
ESTIMATED = (Slot.Role.SAMPLED, Slot.Role.HOLDOUT)  # The roles that estimates use: "answers that count".
ALL_ROLES = tuple(Slot.Role)


def with_answers(assignments: QuerySet[Assignment], study: Study) -> QuerySet[Assignment]:
    """The queryset with everything that labels and exports read, in a few queries instead of one per row."""
    return assignments.select_related(
        "sitting__respondent", "sitting__booklet", "slot__stage", "slot__stratum", "slot__item", "slot__booklet"
    ).prefetch_related(*joined(Assignment, ["responses__score", *instruments.of_study(study).rows.export_paths]))


def with_labels(assignments: QuerySet[Assignment], study: Study) -> QuerySet[Assignment]:
    """The queryset with what labels and estimates read, which is a third of what an export reads."""
    return assignments.select_related("sitting", "slot__stage", "slot__stratum", "slot__item").prefetch_related(
        *joined(Assignment, instruments.of_study(study).rows.label_paths)
    )


def in_time(stages: Iterable[Stage], *, roles: Sequence[str] = ALL_ROLES) -> QuerySet[Assignment]:
    """Answers that were complete while the person still had the slot, whether or not a rule excludes them."""
    return Assignment.objects.filter(slot__stage__in=list(stages), slot__role__in=roles, state=Assignment.State.COUNTED)


def counting(
    stages: Iterable[Stage], *, roles: Sequence[str] = ESTIMATED, pilots: bool = False
) -> QuerySet[Assignment]:
    """The answers of these stages that count: given in time, to slots with one of these roles, of sittings that no rule
    excludes, and not withdrawn.

    Freezing a stage decides whom the rules exclude; before that, the present flags decide. A pilot's answers count
    nowhere. With `pilots` they are included, by the same rules, for pages about the pilot itself.
    """
    wanted = [stage for stage in stages if pilots or not stage.is_pilot]
    flagged = flagged_sittings(stage for stage in wanted if stage.state != Stage.State.FROZEN)
    rows = in_time(wanted, roles=roles).filter(sitting__exclusion__isnull=True)
    rows = rows.exclude(snapshots__withdrawn_at__isnull=False)
    return rows.exclude(sitting__in=flagged) if flagged else rows


def frozen(stages: Iterable[Stage], *, roles: Sequence[str] = TRAINED) -> QuerySet[Assignment]:
    """The answers of these stages that count and are in their snapshots."""
    return counting(stages, roles=roles).filter(snapshots__isnull=False)


def counted_answers(
    stage: Stage,
    *,
    roles: Sequence[str] = ESTIMATED,
    levels: Mapping[str, str] | None = None,
    pilots: bool = False,
) -> list[Assignment]:
    """`counting` of one stage, in the order of its plan, with what labels and estimates read.

    Args:
        levels: only the answers under these levels of the study's factors.
    """
    rows = counting([stage], roles=roles, pilots=pilots)
    answers = with_labels(rows, stage.study).prefetch_related(*relations_of(stage.study)).order_by("slot__number")
    return [answer for answer in answers.iterator(BATCH_SIZE) if has_levels(answer, levels)]


def study_answers(study: Study, *, levels: Mapping[str, str] | None = None) -> list[Assignment]:
    """The counted answers of all main stages, in the order of stages and plans.

    Raises:
        StateRefused: there are none.
    """
    answers: list[Assignment] = []
    for stage in study.main_stages():
        stage.study = study
        answers += counted_answers(stage, levels=levels)
    if not answers:
        under = f" under {in_words(levels)}" if levels else ""
        raise StateRefused(f"{study.slug}: no answer{under} counts yet")
    return answers


def labelled_answers(study: Study, *, levels: Mapping[str, str] | None = None) -> list[Assignment]:
    """`study_answers` with what `LabelReading.read` gives, which an instrument can make quick: answers to the same
    item share one object of it.

    Raises:
        StateRefused: there are none.
    """
    answers: list[Assignment] = []
    items: dict[int, Item] = {}
    for stage in study.main_stages():
        stage.study = study
        strata = {stratum.pk: stratum for stratum in stage.strata.all()}
        rows = counting([stage]).select_related("sitting", "slot__item").prefetch_related(*relations_of(study))
        for answer in rows.order_by("slot__number").iterator(BATCH):
            if not has_levels(answer, levels):
                continue
            # Into the caches, without the checks of the descriptors.
            known = answer.slot._state.fields_cache
            known["stage"] = stage
            known["item"] = items.setdefault(answer.slot.item_id, answer.slot.item)
            if answer.slot.stratum_id is not None:
                known["stratum"] = strata[answer.slot.stratum_id]
            answers.append(answer)
    if not answers:
        under = f" under {in_words(levels)}" if levels else ""
        raise StateRefused(f"{study.slug}: no answer{under} counts yet")
    instruments.of_study(study).label_reading.read(list(items.values()), answers)
    return answers


def frozen_answers(stage: Stage, *, roles: Sequence[str] = TRAINED) -> list[Assignment]:
    """`frozen` of one stage, in the order of its plan, with what labels and estimates read."""
    return list(with_labels(frozen([stage], roles=roles), stage.study).order_by("slot__number").iterator(BATCH_SIZE))


def design_weights(answers: Sequence[Assignment]) -> np.ndarray:
    """How many items each answer represents by the design, shape (n,): what its item stands for (`Slot.design_weight`),
    shared among the people who are to answer the item in this stage. The answers of a stage without losses stand for
    all items together once, however many people answer each."""
    stages = {answer.slot.stage_id for answer in answers}
    planned = Slot.objects.filter(stage__in=stages).order_by().values_list("stage", "role")
    replicates = {(stage, role): several for stage, role, several in planned.annotate(several=Max("replicate"))}
    return np.array(
        [answer.slot.design_weight / replicates[answer.slot.stage_id, answer.slot.role] for answer in answers],
        dtype=np.float64,
    )


# Training


def frozen_stages(study: Study, *, through: int | None = None) -> list[Stage]:
    """The frozen main stages of the study up to and including number `through`, in order; all of them without it."""
    stages = study.main_stages().filter(state=Stage.State.FROZEN)
    frozen = list(stages if through is None else stages.filter(index__lte=through))
    for stage in frozen:
        stage.study = study
    return frozen


def training_examples(stage: Stage, *, held_out_through: int | None = None) -> list[Assignment]:
    """Every frozen answer up to and including this stage that may train, in the order of stages and plans.

    Only sampled slots train. An answer about the same as a held-out one never trains, such as on the same pair in
    whichever order, and whenever it was given: otherwise a predictor would be judged on what it has seen.

    Args:
        held_out_through: the last stage whose plan says what is held out; by default the last planned one.
    """
    study = stage.study
    held_out = held_out_keys(study, through=held_out_through)
    answers: list[Assignment] = []
    for earlier in frozen_stages(study, through=stage.index):
        if earlier.config.teaches:
            answers += frozen_answers(earlier)
    if not held_out:
        return answers
    keys = subject_keys([answer.slot.item for answer in answers], study)
    return [answer for answer, key in zip(answers, keys, strict=True) if key not in held_out]


def trained_subjects(stage: Stage, *, held_out_through: int | None) -> set[frozenset[Any]]:
    """What `training_examples` is about. It reads no answer, only the items."""
    study = stage.study
    teaching = [earlier for earlier in frozen_stages(study, through=stage.index) if earlier.config.teaches]
    seen: set[frozenset[Any]] = set()
    for earlier in teaching:
        items = Item.objects.filter(pk__in=frozen([earlier]).values("slot__item"))
        seen.update(subject_keys(list(items), study))
    return seen - held_out_keys(study, through=held_out_through)


def subject_keys(items: Sequence[Item], study: Study) -> list[frozenset[Any]]:
    """What each item is about, in order. A predictor is never judged on a subject that it has learnt from.

    These are its conflict keys, whatever their order, or itself if it has none: a pair, its reverse and its other
    outcome are about the same.
    """
    booklets = instruments.of_study(study).booklets
    subjects: list[frozenset[Any]] = []
    for start in range(0, len(items), BATCH):
        part = items[start : start + BATCH]
        keys = zip(booklets.conflict_keys_of(part), part, strict=True)
        subjects += [frozenset(own or (("item", item.pk),)) for own, item in keys]
    return subjects


def held_out_keys(study: Study, *, through: int | None) -> set[frozenset[Any]]:
    """The pairs whose answers never train: those of holdouts and test sets, in all planned stages."""
    stages = study.main_stages().exclude(state=Stage.State.DRAFT)
    tests = [stage for stage in stages if stage.config.design.kind == "test_set"]
    slots = Slot.objects.filter(Q(role=Slot.Role.HOLDOUT) | Q(role=Slot.Role.SAMPLED, stage__in=tests))
    if through is not None:
        slots = slots.filter(stage__index__lte=through)
    items = Item.objects.filter(pk__in=slots.filter(stage__in=stages).values("item"))
    return set(subject_keys(list(items), study))
