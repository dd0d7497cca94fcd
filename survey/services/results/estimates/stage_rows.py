"""The rows of a stage that estimates read, each of them once: slots, what became of them, and the answers that count.

A large study has tens of thousands of them, and most of the time of an estimate goes into objects. So nothing is read
twice: answers get the slots, items and sittings that are known already, and what is only counted is read without
objects.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from survey.contracts import instruments
from survey.contracts.instruments import Instrument
from survey.models import Assignment, AssignmentCondition, ConditionLevel, Sitting, Slot, Stage
from survey.services.answers.conditions import has_levels
from survey.services.answers.counting import ALL_ROLES, ESTIMATED, counting
from survey.services.answers.leaving import Leavers, leavers_of

ANSWERED, EXCLUDED, WITHDRAWN, LATE = "answered", "excluded", "withdrawn", "late"
LOST, OPEN = "lost", "open"
ASSIGNED = ("slot", "pk", "state", "position", "sitting")
STATES = (ANSWERED, EXCLUDED, WITHDRAWN, LATE, LOST, OPEN)


@dataclass(frozen=True, eq=False, slots=True)
class SlotRow:
    """A slot that counts in estimates: what became of it, its position, and the part that its item is in by the first
    division of the instrument ("" if it has none)."""

    slot: Slot
    state: str
    position: int | None
    part: str


@dataclass(frozen=True, eq=False, slots=True)
class GivenItem:
    """An item that estimates use, given to a person of whom no rule leaves the answers out, whether or not they
    answered it. `answer` is the answer that counts; `is_over` says that none can come any more."""

    slot: Slot
    sitting: Sitting
    position: int
    answer: Assignment | None
    is_over: bool
    levels: Mapping[str, str]

    @property
    def slot_id(self) -> int:
        return self.slot.pk


@dataclass(frozen=True, eq=False)
class StageRows:
    """`slots` are those with a role that estimates use, `answers` all that count, of every role; both in the plan's
    order. `divisions` has the part of each of the slots. `given` has the items of every sitting in its order, under all
    levels; `excluded` those of sittings that a rule leaves out, none of which has an answer that counts. `leavers` says
    who left, of all sittings."""

    stage: Stage
    slots: list[SlotRow]
    answers: list[Assignment]
    divisions: Mapping[str, np.ndarray]
    given: list[GivenItem] = field(default_factory=list)
    excluded: list[GivenItem] = field(default_factory=list)
    leavers: Leavers = field(default_factory=Leavers)

    def answers_to(self, role: str) -> list[Assignment]:
        return [answer for answer in self.answers if answer.slot.role == role]

    def divisions_of(self, answers: Sequence[Assignment] | Sequence[GivenItem]) -> dict[str, np.ndarray]:
        """The part of each of these answers or given items, which are to slots that estimates use."""
        place = {row.slot.pk: index for index, row in enumerate(self.slots)}
        chosen = np.array([place[answer.slot_id] for answer in answers], dtype=np.int64)
        return {name: labels[chosen] for name, labels in self.divisions.items()}


def read_stage(stage: Stage, instrument: Instrument, levels: Mapping[str, str]) -> StageRows:
    """The rows of one stage.

    Args:
        levels: only the answers under these levels of the study's factors. The slots are all there are.
    """
    slots = _slots(stage)
    counted_answers = sorted(counting([stage], roles=ALL_ROLES).order_by(), key=lambda answer: answer.pk)
    sittings, of_item = _attach(counted_answers, slots, stage)
    answers = sorted(
        (answer for answer in counted_answers if has_levels(answer, levels)), key=lambda answer: answer.slot.number
    )
    estimated = [slot for slot in slots.values() if slot.role in ESTIMATED]
    instrument.label_reading.read([slot.item for slot in slots.values()], answers)
    divisions = instruments.estimates_of(instrument).divisions([slot.item for slot in estimated])
    assigned = list(Assignment.objects.filter(slot__stage=stage).order_by("pk").values_list(*ASSIGNED))
    rows = _outcomes(
        stage, estimated, assigned, {answer.pk for answer in counted_answers}, next(iter(divisions.values()), None)
    )
    given_items, excluded = _given(assigned, slots, sittings, of_item, counted_answers)
    leavers = leavers_of([stage]).get(stage.pk, Leavers())
    return StageRows(stage, rows, answers, divisions, given_items, excluded, leavers)


def _slots(stage: Stage) -> dict[int, Slot]:
    """Every slot of the stage by its key, in the plan's order, with its item and stratum."""
    strata = {stratum.pk: stratum for stratum in stage.strata.all()}
    slots = {slot.pk: slot for slot in stage.slots.select_related("item").order_by("number")}
    for slot in slots.values():
        slot._state.fields_cache["stage"] = stage  # Without the checks of the descriptor, which take longer than this.
        if slot.stratum_id is not None:
            slot._state.fields_cache["stratum"] = strata[slot.stratum_id]
    return slots


def _outcomes(
    stage: Stage,
    slots: Sequence[Slot],
    assigned: Sequence[tuple[int, int, str, int, int]],
    counted: Collection[int],
    parts: np.ndarray | None,
) -> list[SlotRow]:
    rows = Assignment.objects.filter(slot__stage=stage)
    complete = set(
        rows.filter(state=Assignment.State.LATE, completed_at__isnull=False).order_by().values_list("pk", flat=True)
    )
    by_slot: dict[int, list[tuple[int, str, int]]] = defaultdict(list)
    for of, key, state, position, _sitting in assigned:
        by_slot[of].append((key, state, position))
    is_frozen = stage.state == Stage.State.FROZEN
    labels = [""] * len(slots) if parts is None else [str(part) for part in parts]
    slot_rows = []
    for slot, part in zip(slots, labels, strict=True):
        of_slot = by_slot.get(slot.pk, [])
        holding = [assignment for assignment in of_slot if assignment[1] == Assignment.State.COUNTED]
        late = [assignment for assignment in of_slot if assignment[0] in complete]
        if holding:
            state = ANSWERED if holding[0][0] in counted else EXCLUDED
        elif late:
            state = LATE
        elif is_frozen and any(assignment[1] == Assignment.State.WITHDRAWN for assignment in of_slot):
            state = WITHDRAWN
        else:
            state = LOST if is_frozen else OPEN
        taken = holding or late or of_slot
        slot_rows.append(SlotRow(slot, state, taken[-1][2] if taken else slot.position, part))
    return slot_rows


def _given(
    assigned: Sequence[tuple[int, int, str, int, int]],
    slots: Mapping[int, Slot],
    sittings: Mapping[int, Sitting],
    of_item: Mapping[int, Mapping[str, str]],
    counting: Sequence[Assignment],
) -> tuple[list[GivenItem], list[GivenItem]]:
    """The items that were given to people, and those of sittings whose complete answers are left out by a rule: they
    are left out whole."""
    answers = {answer.pk: answer for answer in counting}
    held = Assignment.State.COUNTED
    left_out = {sitting for _slot, key, state, _at, sitting in assigned if state == held and key not in answers}
    of_sitting: dict[int, Mapping[str, str]] = {
        key: sitting.levels() for key, sitting in sittings.items()
    }  # Few next to the items.
    given_items: list[GivenItem] = []
    excluded: list[GivenItem] = []
    for slot, key, state, position, sitting in sorted(assigned, key=lambda row: (row[4], row[3])):
        if slots[slot].role in ESTIMATED:
            (excluded if sitting in left_out else given_items).append(
                GivenItem(
                    slot=slots[slot],
                    sitting=sittings[sitting],
                    position=position,
                    answer=answers.get(key),
                    is_over=state != Assignment.State.LIVE,
                    levels={**of_sitting[sitting], **of_item[key]} if key in of_item else of_sitting[sitting],
                )
            )
    return given_items, excluded


def _attach(
    answers: Sequence[Assignment], slots: Mapping[int, Slot], stage: Stage
) -> tuple[dict[int, Sitting], Mapping[int, dict[str, str]]]:
    """Give the answers their slots, sittings and levels. Many answers share a sitting. The sittings, and the levels of
    single assignments, by their keys."""
    sittings = {sitting.pk: sitting for sitting in Sitting.objects.filter(stage=stage).order_by()}
    of_sitting, of_item = levels_in([stage]) if stage.study.config.conditions else ({}, {})
    for pk, sitting in sittings.items():
        sitting.known_levels = of_sitting.get(pk, {})
    for answer in answers:
        known = answer._state.fields_cache
        known["slot"], known["sitting"] = slots[answer.slot_id], sittings[answer.sitting_id]
        answer.known_levels = of_item.get(answer.pk, {})
    return sittings, of_item


def levels_in(stages: Collection[Stage]) -> tuple[dict[int, dict[str, str]], dict[int, dict[str, str]]]:
    """Factor to level, by sitting and by assignment."""
    of_sitting: dict[int, dict[str, str]] = defaultdict(dict)
    of_item: dict[int, dict[str, str]] = defaultdict(dict)
    for by_key, rows, owner in (
        (of_sitting, ConditionLevel.objects.filter(sitting__stage__in=stages), "sitting"),
        (of_item, AssignmentCondition.objects.filter(assignment__sitting__stage__in=stages), "assignment"),
    ):
        for key, factor, level in rows.order_by().values_list(owner, "factor", "level"):
            by_key[key][factor] = level
    return of_sitting, of_item
