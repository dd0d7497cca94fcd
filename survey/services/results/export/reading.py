"""The rows of answers.csv, read in chunks in the order of stages, plans and assignments.

Every slot of every plan has rows: one for each assignment that it was given in, or one with `untaken`. Panel ids are
never read here.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import MappingProxyType
from typing import Any

from django.db.models import QuerySet

from survey.contracts import instruments
from survey.models import Assignment, Slot, Stage, Study
from survey.services.answers.blinding import shown_values
from survey.services.answers.conditions import hand_levels, has_levels, relations_of
from survey.services.answers.counting import counting, with_answers
from survey.services.answers.exclusions import excluded_sittings
from survey.services.answers.joining import attach, is_single
from survey.services.answers.sitting_flags import marks_of
from survey.services.results.export.columns import AFTER, BEFORE, ExportRow
from survey.services.results.export.increments import changed_since
from survey.services.results.weights import answer_weights

CHUNK = 1000  # slots
OF_SLOT = "slot__"


NO_LEVELS: Mapping[str, str] = MappingProxyType({})


def chunks(
    study: Study,
    *,
    stage: int | None = None,
    after: tuple[int, int] = (0, 0),
    levels: Mapping[str, str] = NO_LEVELS,
    weighted: bool = True,
    since: datetime | None = None,
) -> Iterator[list[ExportRow]]:
    """The rows of some slots at a time, with everything that a row reads.

    Args:
        stage: only this stage's.
        after: (stage, slot) to continue after.
        levels: only answers under these levels of the study's factors.
        since: only answers of sittings in which anything was stored since, and no slots that nobody has.
        weighted: with the answers' weights, which are over all stages and are read first.
    """
    weights = answer_weights(study, levels) if weighted else {}
    # A draft has no slots.
    stages = study.stages.order_by("index").filter(index__gte=after[0]).exclude(state=Stage.State.DRAFT)
    wanted = _with_items(Slot.objects.select_related("stratum", "item", "booklet", "repeat_of"), study)
    for current in stages.filter(index=stage) if stage is not None else stages:
        last = after[1] if current.index == after[0] else 0
        current.study = study
        excluded, flags = excluded_sittings(current), dict[int, Sequence[str]]()
        while slots := list(wanted.filter(stage=current, number__gt=last).order_by("number")[:CHUNK]):
            last = slots[-1].number
            for slot in slots:
                slot.stage = current
            if rows := _rows(slots, study, levels, since):
                flags |= marks_of(study, _sittings_of(rows) - flags.keys())
                yield [_marked(row, flags, excluded, weights) for row in rows]
            if len(slots) < CHUNK:
                break


def _with_items(slots: QuerySet[Slot], study: Study) -> QuerySet[Slot]:
    """With what the instrument reads of a slot, by joins where there is one row."""
    paths = [path.removeprefix(OF_SLOT) for path in instruments.of_study(study).prefetch() if path.startswith(OF_SLOT)]
    single = [path for path in paths if is_single(Slot, path)]
    return slots.select_related(*single).prefetch_related(*(path for path in paths if path not in single))


def _sittings_of(rows: Iterable[ExportRow]) -> set[int]:
    return {row.assignment.sitting_id for row in rows if row.assignment is not None}


def _marked(
    row: ExportRow,
    flags: Mapping[int, Sequence[str]],
    excluded: Mapping[int, Sequence[str]],
    weights: Mapping[int, float],
) -> ExportRow:
    if row.assignment is None:
        return row
    sitting = row.assignment.sitting_id
    return replace(
        row,
        flags=flags.get(sitting, ()),
        excluded=excluded.get(sitting, ()),
        weight=weights.get(row.assignment.pk),
    )


def _rows(slots: list[Slot], study: Study, levels: Mapping[str, str], since: datetime | None) -> list[ExportRow]:
    found: dict[int, list[Assignment | None]] = {}
    by_key = {slot.pk: slot for slot in slots}
    read = [path for path in instruments.of_study(study).prefetch() if not path.startswith(OF_SLOT)]
    assignments = list(
        Assignment.objects.filter(changed_since(since, "sitting__"), slot__in=by_key)
        .select_related("sitting__respondent", "sitting__booklet", "sitting__consent")
        .order_by("pk")
    )
    attach(assignments, ["responses__score", *read])
    hand_levels(assignments)
    for assignment in assignments:
        assignment.slot = by_key[assignment.slot_id]
        found.setdefault(assignment.slot_id, []).append(assignment)
    nobody: list[Assignment | None] = [None]
    rows = [ExportRow(slot, assignment) for slot in slots for assignment in found.get(slot.pk, nobody)]
    if since is not None:
        rows = [row for row in rows if row.assignment is not None]
    if not levels:
        return rows
    return [row for row in rows if row.assignment is not None and has_levels(row.assignment, levels)]


def values_of(row: ExportRow, study: Study) -> list[Any]:
    """One value for each of `columns_of(study)`; None if there is none (yet)."""
    instrument = instruments.of_study(study)
    own: Sequence[Any] = (
        instrument.export_values(row.assignment) if row.assignment else [None] * len(instrument.columns)
    )
    own = shown_values(study, [column.name for column in instrument.columns], own, instrument.telling_columns)
    return [*(core.value(row) for core in BEFORE), *own, *(core.value(row) for core in AFTER)]


def answer_rows(
    study: Study,
    *,
    stage: int | None = None,
    levels: Mapping[str, str] = NO_LEVELS,
    since: datetime | None = None,
) -> Iterator[list[Any]]:
    for rows in chunks(study, stage=stage, levels=levels, since=since):
        for row in rows:
            yield values_of(row, study)


@dataclass(frozen=True)
class CountedAnswers:
    """The answers that estimates use, read again in chunks each time they are iterated."""

    study: Study
    stage: int | None = None
    levels: Mapping[str, str] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Assignment]:
        for stage in self.study.main_stages():
            if self.stage not in (None, stage.index):
                continue
            stage.study = self.study
            answers = with_answers(counting([stage]), self.study).prefetch_related(*relations_of(self.study))
            for answer in answers.order_by("slot__number").iterator(CHUNK):
                if has_levels(answer, self.levels):
                    yield answer
