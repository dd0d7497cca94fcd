"""The rows of answers.csv, read in chunks in the order of stages, plans and assignments.

Every slot of every plan has rows: one for each assignment that it was given in, or one with `untaken`. Panel ids are
never read here. Rows are made of tuples, since an object for each answer and response would take most of the time.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from json.encoder import encode_basestring as quoted
from operator import attrgetter
from types import MappingProxyType
from typing import Any, NamedTuple

from django.db.models import Max, OuterRef, QuerySet, Subquery, TextField, Value
from django.db.models.functions import Cast, NullIf

from survey.contracts import instruments
from survey.contracts.exports import AnswerColumn, AnswerPlace
from survey.contracts.exports import CountedAnswers as Counted
from survey.models import Assignment, AssignmentCondition, ConditionLevel, Response, Sitting, Slot, Stage, Study
from survey.services.answers.blinding import shown_levels
from survey.services.answers.conditions import has_levels, relations_of
from survey.services.answers.counting import counting, with_answers
from survey.services.answers.exclusions import excluded_sittings
from survey.services.answers.sitting_flags import marks_of
from survey.services.results.estimates.weights import answer_weights
from survey.services.results.export import columns
from survey.services.results.export.answer_values import AnswerValues
from survey.services.results.export.columns import AnswerRow, SittingFacts, SlotFacts, StageFacts
from survey.services.results.export.increments import changed_since
from survey.services.results.export.iso_time import IsoTime

CHUNK = 2000  # slots
PAGE = 1000  # slots of a page of the API
KEPT = 20_000  # items or sittings whose values are kept for the next chunk
UNTAKEN = "untaken"
NO_LEVELS: Mapping[str, str] = MappingProxyType({})
NOTHING: tuple[Any, ...] = ()
Weighing = Callable[[Study, Mapping[str, str], Sequence[Stage]], Mapping[int, float]]

# `SlotFacts`, in their order.
SLOT = (
    *("item", "number", "item__key", "replicate", "role", NullIf("control_kind", Value(""))),
    *("repeat_of__number", "stratum__name", "inclusion_probability", "pool_probability", "score"),
    *("booklet__number", "booklet__kind", "position"),
    *("assignments", "assignments__sitting", "assignments__position", "assignments__state"),
    *(IsoTime("assignments__assigned_at"), IsoTime("assignments__completed_at")),
)
RESPONSE = (
    *("assignment", "number", IsoTime("answered_at"), Cast("client", TextField()), "server_ms"),
    *("score__value", "score__rule", "score__version"),
    "screen",  # The last: what the instrument reads follows.
)
OWN_ALONE = ("assignment", "number", "screen")
SITTING = (
    *("pk", "public_id", "study_sha256", "respondent__pseudonym", "respondent__is_simulated", "state", "language"),
    *("consent__version", "booklet__number", "booklet__kind"),
)

NOTHING_KNOWN: list[Any] = [None] * len(SittingFacts._fields)
NOBODY = SittingFacts(*NOTHING_KNOWN)
read_before, read_after = (
    attrgetter(*(str(column.value) for column in columns)) for columns in (columns.BEFORE, columns.AFTER)
)

in_order = json.JSONEncoder(ensure_ascii=False, sort_keys=True).encode


class Chunk(NamedTuple):
    """Some rows, and the stage and slot after which the next ones come."""

    rows: list[list[Any]]
    last: tuple[int, int]


def chunks(
    study: Study,
    *,
    stage: int | None,
    after: tuple[int, int] = (0, 0),
    levels: Mapping[str, str],
    since: datetime | None = None,
    size: int = 0,
    weighing: Weighing = answer_weights,
) -> Iterator[Chunk]:
    """The rows of some slots at a time: lists with a value for each of `columns_of(study)`, None where there is none
    (yet). No chunk is without rows.

    Args:
        stage: only this stage's.
        after: (stage, slot) to continue after.
        levels: only answers under these levels of the study's factors.
        since: only answers of sittings in which anything was stored since, and no slots that nobody has.
        size: how many slots; without it, as many as an export takes.
        weighing: gives the answers' weights, which are over all stages.
    """
    size = size or CHUNK
    most = Slot.objects.filter(stage=OuterRef("pk")).order_by("-number").values("number")[:1]
    # A draft has no slots.
    stages = list(study.stages.exclude(state=Stage.State.DRAFT).order_by("index").annotate(most=Subquery(most)))
    for current in stages:
        current.study = study
    weights = weighing(study, levels, [stage for stage in stages if not stage.is_pilot])
    for current in stages:
        if current.index < after[0] or stage not in (None, current.index):
            continue
        reader = _Reader(study, current, levels, since, weights)
        for first, last in _parts(after[1] if current.index == after[0] else 0, current.most or 0, size):
            if rows := reader.rows(first, last):
                yield Chunk(rows, (current.index, last))


def _parts(after: int, most: int, size: int) -> Iterator[tuple[int, int]]:
    """The numbers after which some slots come, and up to which: they count from 1 in each stage."""
    for first in range(after, most, size):
        yield first, first + size


def answer_rows(
    study: Study,
    *,
    stage: int | None = None,
    levels: Mapping[str, str] = NO_LEVELS,
    since: datetime | None = None,
) -> Iterator[list[Any]]:
    for chunk in chunks(study, stage=stage, levels=levels, since=since):
        yield from chunk.rows


class _Reader:
    """Reads the rows of one stage. What many rows share is read once and kept for a while."""

    def __init__(
        self,
        study: Study,
        stage: Stage,
        levels: Mapping[str, str],
        since: datetime | None,
        weights: Mapping[int, float],
        *,
        columns: Sequence[AnswerColumn] | None = None,
        facts: Sequence[Any] = RESPONSE,
    ) -> None:
        """`columns`: of the instrument, by default all. `facts`: of responses, with the screen as the last."""
        self.study, self.stage, self.levels, self.since, self.weights = study, stage, levels, since, weights
        export = instruments.of_study(study).export
        self.columns = export.columns if columns is None else columns
        self.response_order = export.response_order
        self.facts = facts
        self.own = AnswerValues(instruments.of_study(study), self.columns, screen_at=len(facts) - 1)
        self.excluded = excluded_sittings(stage)
        self.sittings: dict[int, SittingFacts] = {}
        self.items: dict[int, Any] = {}
        wave = study.config.stages[stage.index - 1].wave
        self.of_stage = StageFacts(study.slug, stage.index, stage.is_pilot, wave)
        self.end = (True,) if study.is_test else ()
        self.hidden = [
            place for place, column in enumerate(self.columns) if study.is_blind and column.reveals_condition
        ]

    def rows(self, after: int, last: int) -> list[list[Any]]:
        """The rows of slots with numbers above `after`, up to `last`."""
        slots = self._slots(after, last)
        taken = {slot.assignment: slot.sitting for slot in slots if slot.assignment is not None}
        self.read_sittings(set(taken.values()))
        own_rows = self._between("assignment__slot__", after, last)
        of_item = self._levels_of_items(own_rows) if taken else {}
        if self.levels:
            slots = [
                slot
                for slot in slots
                if slot.assignment in taken and self._is_wanted(slot.sitting, of_item.get(slot.assignment))
            ]
        self.read_items({slot.item for slot in slots})
        if self.since is not None:
            own_rows = {"assignment__in": list(taken)}
        responses = self._responses(Response.objects.filter(**own_rows)) if taken else {}
        return [self._row(slot, of_item, responses) for slot in slots]

    def _row(
        self,
        slot: SlotFacts,
        of_item: Mapping[int, Sequence[tuple[Any, ...]]],
        responses: Mapping[int, Sequence[Sequence[Any]]],
    ) -> list[Any]:
        key = slot.assignment
        if key is None:
            row = AnswerRow(self.of_stage, NOBODY, slot, slot, slot.place, None, None, UNTAKEN, None, None)
            return [*read_before(row), *[None] * len(self.columns), *read_after(row), *self.end]
        sitting = self.sittings[slot.sitting]
        own_responses = responses.get(key, NOTHING)
        levels, condition, probability = sitting.levels, sitting.condition, sitting.condition_probability
        if key in of_item:
            levels = {**levels, **{factor: level for factor, level, _chance in of_item[key]}}
            chances = {**sitting.chances, **{factor: drawn for factor, _level, drawn in of_item[key]}}
            condition, probability = self._in_order(levels), self._in_order(chances)
        row = AnswerRow(
            stage=self.of_stage,
            sitting=sitting,
            slot=slot,
            dealt=sitting,
            position=slot.position,
            condition=condition,
            condition_probability=probability,
            status=slot.state,
            responses=_in_json(own_responses),
            weight=self.weights.get(key),
        )
        own = self._own_values(slot.item, own_responses, sitting, slot.position, levels)
        return [*read_before(row), *own, *read_after(row), *self.end]

    def _own_values(
        self,
        item: int,
        responses: Sequence[Sequence[Any]],
        sitting: SittingFacts,
        position: int | None,
        levels: Mapping[str, str],
    ) -> list[Any]:
        """The instrument's; empty while the study is blind where they would say the condition."""
        place = AnswerPlace(
            sitting.file, sitting.language or "", sitting.public_id, self.stage.seed, position or 0, levels
        )
        values = self.own.values(self.items.get(item), responses, place)
        for hidden in self.hidden:
            values[hidden] = None
        return values

    def counted(self, after: int, last: int) -> Iterator[list[Any]]:
        """The instrument's values of the answers of these slots that count, in the order of the plan."""
        answers = counting([self.stage]).filter(**self._between("slot__", after, last)).order_by("slot__number")
        return self.of_answers(answers, self._between("assignment__slot__", after, last))

    def of_answers(self, answers: QuerySet[Assignment], own_rows: Mapping[str, Any]) -> Iterator[list[Any]]:
        """The instrument's values of these answers, in their order. `own_rows`: which rows belong to their slots."""
        places = list(answers.values_list("pk", "slot__item", "sitting", "position"))
        self.read_sittings({sitting for _key, _item, sitting, _position in places})
        self.read_items({item for _key, item, _sitting, _position in places})
        of_item = self._levels_of_items(own_rows) if places else {}
        responses = self._responses(Response.objects.filter(**own_rows))
        for key, item, sitting, position in places:
            if not self.levels or self._is_wanted(sitting, of_item.get(key)):
                who = self.sittings[sitting]
                levels = {**who.levels, **{factor: level for factor, level, _chance in of_item.get(key, ())}}
                yield self._own_values(item, responses.get(key, NOTHING), who, position, levels)

    def _slots(self, after: int, last: int) -> list[SlotFacts]:
        """Each slot with each of its assignments, or with none."""
        wanted = Slot.objects.filter(stage=self.stage, number__gt=after, number__lte=last)
        if self.since is not None:
            wanted = wanted.filter(changed_since(self.since, "assignments__sitting__"))
        return [SlotFacts(*row) for row in wanted.order_by("number", "assignments").values_list(*SLOT)]

    def _responses(self, rows: QuerySet[Response]) -> Mapping[int, Sequence[Sequence[Any]]]:
        """The facts of responses, then what the instrument reads of them, by assignment and in their order."""
        responses: dict[int, list[tuple[Any, ...]]] = defaultdict(list)
        ordered = rows.order_by("assignment", "number", *self.response_order)
        for row in ordered.values_list(*self.facts, *self.own.lookups):
            own = responses[row[0]]
            if own and own[-1][1] == row[1]:
                own.pop()  # An earlier row of the same response.
            own.append(row)
        return responses

    def _between(self, path: str, after: int, last: int) -> dict[str, Any]:
        return {f"{path}stage": self.stage, f"{path}number__gt": after, f"{path}number__lte": last}

    # Conditions

    def _levels_of_items(self, own_rows: Mapping[str, Any]) -> Mapping[int, Sequence[tuple[Any, ...]]]:
        drawn: dict[int, list[tuple[Any, ...]]] = defaultdict(list)
        if not self.study.config.conditions:
            return drawn
        rows = AssignmentCondition.objects.filter(**own_rows)
        for key, *level in rows.order_by().values_list("assignment", "factor", "level", "probability"):
            drawn[key].append(tuple(level))
        return drawn

    def _is_wanted(self, sitting: int, of_item: Sequence[tuple[Any, ...]] | None) -> bool:
        had = {**self.sittings[sitting].levels, **{factor: level for factor, level, _chance in of_item or ()}}
        return all(had.get(factor) == level for factor, level in self.levels.items())

    def _in_order(self, by_factor: Mapping[str, Any]) -> str | None:
        visible_levels = shown_levels(self.study, by_factor) if by_factor else None
        return in_order(visible_levels) if visible_levels else None

    # What many rows share

    def read_sittings(self, wanted: Collection[int]) -> None:
        missing = _make_room(self.sittings, wanted)
        if not missing:
            return
        drawn: dict[int, list[tuple[Any, ...]]] = defaultdict(list)
        if self.study.config.conditions:
            rows = ConditionLevel.objects.filter(sitting__in=missing).order_by()
            for key, *level in rows.values_list("sitting", "factor", "level", "probability"):
                drawn[key].append(tuple(level))
        flags = marks_of(self.study, missing)
        for key, public_id, sha256, *facts in Sitting.objects.filter(pk__in=missing).values_list(*SITTING):
            levels = {factor: level for factor, level, _chance in drawn.get(key, ())}
            chances = {factor: chance for factor, _level, chance in drawn.get(key, ())}
            known = [
                *facts,
                self._in_order(levels),
                self._in_order(chances),
                " ".join(flags.get(key, ())) or None,
                " ".join(self.excluded.get(key, ())) or None,
                sha256 or None,
                *(levels, chances, sha256, public_id.hex),
            ]
            self.sittings[key] = SittingFacts._make(known)

    def read_items(self, wanted: Collection[int]) -> None:
        if missing := _make_room(self.items, wanted):
            self.items.update(self.own.items(missing))


def _make_room(cache: dict[int, Any], wanted: Collection[int]) -> list[int]:
    """The keys that are not there yet. Where too much is kept, all of it goes but what is wanted now."""
    missing = [key for key in wanted if key not in cache]
    if missing and len(cache) + len(missing) > KEPT:
        for key in [key for key in cache if key not in wanted]:
            del cache[key]
    return sorted(missing)


def _in_json(responses: Sequence[Sequence[Any]]) -> str | None:
    """The stored responses as the column `responses` has them: objects with their keys in order."""
    if not responses:
        return None
    parts = []
    for _key, number, at, client, server_ms, points, rule, version, screen, *_own in responses:
        measured = "{}" if client == "{}" else in_order(json.loads(client))
        scored = "" if points is None else f'"rule": {quoted(rule)}, "score": {quoted(str(points))}, '
        by = "" if points is None else f', "version": {quoted(version)}'
        parts.append(
            f'{{"answered_at": "{at}", "client": {measured}, "number": {number}, {scored}"screen": {quoted(screen)}, '
            f'"server_ms": {server_ms}{by}}}'
        )
    return f"[{', '.join(parts)}]"


def instrument_values(assignment: Assignment) -> list[Any]:
    """The values of the instrument's columns for one assignment, as answers.csv has them."""
    stage = assignment.slot.stage
    reader = _Reader(stage.study, stage, {}, None, {}, facts=OWN_ALONE)
    (values,) = reader.of_answers(Assignment.objects.filter(pk=assignment.pk), {"assignment": assignment.pk})
    return values


@dataclass(frozen=True)
class CountedAnswers(Counted):
    """The answers that estimates use, read again in chunks each time they are iterated."""

    study: Study
    levels: Mapping[str, str] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Assignment]:
        for stage in self._stages():
            answers = with_answers(counting([stage]), self.study).prefetch_related(*relations_of(self.study))
            for answer in answers.order_by("slot__number").iterator(CHUNK):
                if has_levels(answer, self.levels):
                    yield answer

    def values(self, columns: Sequence[AnswerColumn]) -> Iterator[Sequence[Any]]:
        for stage in self._stages():
            reader = _Reader(self.study, stage, self.levels, None, {}, columns=columns, facts=OWN_ALONE)
            most = stage.slots.aggregate(most=Max("number"))["most"] or 0
            for after, last in _parts(0, most, CHUNK):
                yield from reader.counted(after, last)

    def _stages(self) -> Iterator[Stage]:
        for stage in self.study.main_stages():
            stage.study = self.study
            yield stage
