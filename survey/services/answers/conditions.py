"""Levels of a study's factors: drawing them in permuted blocks for sittings and items, and filtering answers by them.

A block is as many sittings of a stage (by arrival) or items of a sitting (by position) as there are levels. In each
block every level comes once, so all have the same probability.
"""

import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import NamedTuple

from django.db.models import Value
from pydantic import ValidationError

from survey.contracts.instruments import Instrument
from survey.exceptions import HunchError
from survey.models import Assignment, AssignmentCondition, ChosenLevels, ConditionLevel, Sitting, Stage, Study
from survey.services.answers import blinding
from survey.services.answers.joining import KnownRows, hand_rows
from survey.services.base.seeds import derive
from survey.study_file import ConditionConfig, StudyConfig


def _drawn(condition: ConditionConfig, place: int, root: int, *names: str | int) -> tuple[str, int]:
    """The level at a position in the sequence of blocks, and the seed of its block."""
    block, inside = divmod(place, len(condition.levels))
    seed = derive(root, *names, condition.factor, block)
    order = list(condition.levels)
    random.Random(seed).shuffle(order)  # noqa: S311 - reproducible on purpose, nothing secret
    return order[inside], seed


def draw_for_sitting(sitting: Sitting, stage: Stage) -> None:
    """Draw a sitting's levels. Needs the stage's lock: its arrivals give the sitting's position in the blocks.

    In a later wave a person keeps the levels of the wave before, with the chances and seeds of their draw, unless the
    study file has the wave's levels drawn again.
    """
    drawn = []
    conditions = _of(sitting.config, "sitting")
    chosen = _chosen(sitting, conditions)
    kept_levels = _kept(sitting) if conditions else {}
    for condition in conditions:
        before = kept_levels.get(condition.factor)
        if before is not None and before.level in condition.levels and condition.factor not in chosen:
            values = {"level": before.level, "probability": before.probability, "seed": before.seed}
            drawn.append(ConditionLevel(sitting=sitting, factor=condition.factor, **values))
            continue
        level, seed = _drawn(condition, stage.arrivals, stage.seed, "condition")
        drawn.append(
            ConditionLevel(
                sitting=sitting,
                factor=condition.factor,
                level=chosen.get(condition.factor, level),
                probability=1.0 if condition.factor in chosen else 1 / len(condition.levels),
                seed=seed,
            )
        )
    ConditionLevel.objects.bulk_create(drawn)


def _kept(sitting: Sitting) -> dict[str, ConditionLevel]:
    """By factor: what a person was given in the wave before, where they keep it."""
    if sitting.wave == 1 or sitting.config.waves[sitting.wave - 2].levels == "drawn":
        return {}
    before = {"sitting__respondent": sitting.respondent_id, "sitting__wave": sitting.wave - 1}
    return {row.factor: row for row in ConditionLevel.objects.filter(**before)}


class GivenSlot(NamedTuple):
    """A slot that a sitting has just been given: its position there, the keys of assignment and slot, the slot's number
    in the plan, its position in the booklet, and the key of the slot that it repeats."""

    position: int
    assignment: int
    slot: int
    number: int
    in_booklet: int
    repeat_of: int | None


def draw_for_items(slots: Sequence[GivenSlot], sitting: Sitting, *, booklet: int) -> None:
    """Levels of the items of a booklet that this sitting has just been given, in their order.

    A repeat gets the level of the item that it asks again, if that item is in the same booklet: both must be alike.

    Args:
        booklet: its number in the stage.
    """
    conditions = _of(sitting.config, "item")
    if not conditions:
        return
    chosen = _chosen(sitting, conditions)
    inside = {slot.slot for slot in slots}
    drawn = []
    for condition in conditions:
        levels: dict[int, tuple[str, int]] = {}
        for slot in slots:
            if slot.repeat_of not in inside:
                levels[slot.slot] = _drawn(condition, len(levels), sitting.stage.seed, "item condition", booklet)
        for slot in slots:
            level, seed = levels.get(slot.slot) or levels[slot.repeat_of or 0]
            drawn.append(
                AssignmentCondition(
                    assignment_id=slot.assignment,
                    factor=condition.factor,
                    level=chosen.get(condition.factor, level),
                    probability=1.0 if condition.factor in chosen else 1 / len(condition.levels),
                    seed=seed,
                )
            )
    AssignmentCondition.objects.bulk_create(drawn)


def _chosen(sitting: Sitting, conditions: Sequence[ConditionConfig]) -> Mapping[str, str]:
    """The levels that the person who walks through a test copy has chosen; nothing elsewhere."""
    if not conditions or not sitting.stage.study.is_test:
        return {}
    chosen_levels = ChosenLevels.objects.filter(sitting=sitting).values_list("levels", flat=True).first() or {}
    return {
        condition.factor: chosen_levels[condition.factor]
        for condition in conditions
        if chosen_levels.get(condition.factor) in condition.levels
    }


def _of(config: StudyConfig, per: str) -> list[ConditionConfig]:
    return [condition for condition in config.conditions if condition.per == per]


def combinations(config: StudyConfig) -> list[dict[str, str]]:
    """Every combination of levels of all factors; without factors, one empty combination."""
    factors = [condition.factor for condition in config.conditions]
    levels = [condition.levels for condition in config.conditions]
    return [dict(zip(factors, chosen, strict=True)) for chosen in product(*levels)]


def option_problems(study: Study, instrument: Instrument) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Problems with the options that levels change: the place in the study file, and what to do."""
    conditions = study.config.conditions
    allowed = ", ".join(sorted(instrument.options_model.by_condition)) or "none"
    has_problems = False
    for index, condition in enumerate(conditions):
        for level, options in condition.options.items():
            place = ("conditions", index, "options", level)
            if strange := sorted(set(options) - instrument.options_model.by_condition):
                has_problems = True
                for name in strange:
                    yield (*place, name), f"{instrument.name} lets conditions change these options: {allowed}"
                continue
            try:
                instrument.options_under(study.config, {condition.factor: level})
            except ValidationError as exc:
                has_problems = True
                for error in exc.errors(include_url=False):
                    yield (*place, *error["loc"]), f"{error['msg']} (it is {error['input']!r})"
    if has_problems or sum(bool(condition.options) for condition in conditions) < 2:
        return
    for levels in combinations(study.config):
        try:
            instrument.options_under(study.config, levels)
        except ValidationError as exc:
            yield ("conditions",), f"{in_words(levels)} together: {exc.errors(include_url=False)[0]['msg']}"
            return


# Which answers


def pairs_of(study: Study) -> list[str]:
    """FACTOR=LEVEL for every level of every factor, in the file's order; none while the study is blind."""
    return [
        f"{shown_condition.factor}={level}"
        for shown_condition in blinding.shown_conditions(study)
        for level in shown_condition.levels
    ]


def read_condition(study: Study, pairs: Sequence[str]) -> dict[str, str]:
    """FACTOR=LEVEL, any number of times, as a mapping of factor to level. An answer must have all of them.

    Raises:
        HunchError: the study has no such factor or level; lists those it has.
    """
    known = pairs_of(study)
    chosen: dict[str, str] = {}
    for pair in pairs:
        if pair not in known:
            there_are = ", ".join(known) or (blinding.HIDDEN if study.is_blind else "none")
            raise HunchError(f"condition: {study.slug} has no {pair!r}; there are: {there_are}", code="invalid")
        factor, _equals, level = pair.partition("=")
        if chosen.setdefault(factor, level) != level:
            raise HunchError(f"condition: an answer has one level of {factor}; name one", code="invalid")
    return chosen


def relations_of(study: Study) -> tuple[str, ...]:
    """Relations of Assignment that hold its levels, for prefetching; none if the study has no factors."""
    return ("sitting__conditions", "conditions") if study.config.conditions else ()


def hand_levels(assignments: Sequence[Assignment]) -> None:
    """Give assignments and their sittings the rows of their levels, read by one statement for both."""
    of_sitting: dict[int, list[ConditionLevel | AssignmentCondition]] = defaultdict(list)
    of_item: dict[int, list[ConditionLevel | AssignmentCondition]] = defaultdict(list)
    columns = ("factor", "level", "probability", "seed")
    per_item = AssignmentCondition.objects.filter(assignment__in=[assignment.pk for assignment in assignments])
    per_sitting = ConditionLevel.objects.filter(sitting__in={assignment.sitting_id for assignment in assignments})
    rows = per_item.order_by().values_list(Value(True), "assignment", *columns)
    for is_of_item, key, *values in rows.union(per_sitting.order_by().values_list(Value(False), "sitting", *columns)):
        fields = dict(zip(columns, values, strict=True))
        if is_of_item:
            of_item[key].append(AssignmentCondition(assignment_id=key, **fields))
        else:
            of_sitting[key].append(ConditionLevel(sitting_id=key, **fields))
    for assignment in assignments:
        hand_rows(assignment, "conditions", KnownRows(of_item.get(assignment.pk, ())))
        hand_rows(assignment.sitting, "conditions", KnownRows(of_sitting.get(assignment.sitting_id, ())))


def has_levels(assignment: Assignment, wanted: Mapping[str, str] | None) -> bool:
    """Whether the answer was given under all of these levels, if there are any. Reads prefetched conditions."""
    if not wanted:
        return True
    levels = assignment.levels()
    return all(levels.get(factor) == level for factor, level in wanted.items())


def in_words(wanted: Mapping[str, str]) -> str:
    return ", ".join(f"{factor}={level}" for factor, level in wanted.items())
