"""Answers as files. One list of columns makes the header, the rows and the codebook, so that these cannot part.

Every slot of every plan has its rows: one for each assignment it was given in, or one that says `untaken`. Panel ids
are never read here. Rows are read in chunks, in the order of stages, plans and assignments.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

from survey.exceptions import HunchError, NotFound
from survey.instruments import registry
from survey.instruments.registry import Column, ExtraFile
from survey.models import Assignment, Slot, Stage, Study
from survey.selectors import leaderboard
from survey.selectors.stages import with_answers

from . import flagging
from .amending import amendments_file
from .conditions import has_levels, in_words
from .flags import left_out, marks_of
from .sitting_files import sitting_files
from .timing_files import timing_files
from .writing import replace_file

CHUNK = 500  # slots
NO_LEVELS: Mapping[str, str] = MappingProxyType({})
COUNTING_ROLES = (Slot.Role.SAMPLED, Slot.Role.HOLDOUT)
UNTAKEN = "untaken"


@dataclass(frozen=True)
class Row:
    """A slot of a stage, in one of its assignments or in none; with its sitting's flags, and those of them for which
    its answers are left out."""

    slot: Slot
    assignment: Assignment | None
    flags: Sequence[str] = ()
    excluded: Sequence[str] = ()


@dataclass(frozen=True)
class CoreColumn:
    """A column that every instrument's export has, and how a row fills it."""

    column: Column
    value: Callable[[Row], Any]


def _core(
    name: str,
    kind: str,
    description: str,
    *,
    slot: Callable[[Slot], Any] | None = None,
    taken: Callable[[Assignment], Any] | None = None,
) -> CoreColumn:
    """`taken` reads the assignment and `slot` the slot; with both, the slot speaks where there is no assignment."""

    def value(row: Row) -> Any:
        if taken is not None and row.assignment is not None:
            return taken(row.assignment)
        return slot(row.slot) if slot is not None else None

    return CoreColumn(Column(name, kind, description), value)


def _levels(assignment: Assignment) -> str | None:
    return _json(assignment.levels())


def _level_probabilities(assignment: Assignment) -> str | None:
    drawn: list[Any] = [*assignment.sitting.conditions.all(), *assignment.conditions.all()]
    return _json({condition.factor: condition.probability for condition in drawn})


def _responses(assignment: Assignment) -> str | None:
    return _json(
        [
            {
                "number": response.number,
                "screen": response.screen,
                "answered_at": _time(response.answered_at),
                "server_ms": response.server_ms,
                "client": response.client,
                **(
                    {"score": str(response.score.value), "rule": response.score.rule, "version": response.score.version}
                    if hasattr(response, "score")
                    else {}
                ),
            }
            for response in assignment.responses.all()
        ]
    )


def _json(value: Any) -> str | None:
    return json.dumps(value, ensure_ascii=False, sort_keys=True) if value else None


def _time(at: datetime | None) -> str | None:
    return at.astimezone(UTC).isoformat() if at else None


# Known before the answer: where the row stands and how it came to be there.
BEFORE = (
    _core("study", "text", "The study's short name.", slot=lambda slot: slot.stage.study.slug),
    _core("stage", "number", "The stage, from 1.", slot=lambda slot: slot.stage.index),
    _core(
        "pilot",
        "0 or 1",
        "1: the stage is a pilot, whose answers enter nothing but this file.",
        slot=lambda slot: slot.stage.is_pilot,
    ),
    _core("respondent", "text", "Pseudonym of the respondent.", taken=lambda taken: taken.sitting.respondent.pseudonym),
    _core(
        "simulated",
        "0 or 1",
        "1: the respondent was a simulated one.",
        taken=lambda taken: taken.sitting.respondent.is_simulated,
    ),
    _core(
        "sitting_state",
        "text",
        "live, complete, expired, failed_checks, turned_away or screened_out.",
        taken=lambda taken: taken.sitting.state,
    ),
    _core(
        "study_sha256",
        "text",
        "Of the study file that the sitting began with; amendments.csv says what changed.",
        taken=lambda taken: taken.sitting.study_sha256 or None,
    ),
    _core("language", "text", "Language of the pages.", taken=lambda taken: taken.sitting.language),
    _core(
        "consent_version",
        "text",
        "Version of the consent text that was agreed to.",
        taken=lambda taken: taken.sitting.consent.version if hasattr(taken.sitting, "consent") else None,
    ),
    _core(
        "booklet",
        "number",
        "The booklet of the sitting; for an untaken slot, the one it lies in.",
        slot=lambda slot: slot.booklet and slot.booklet.number,
        taken=lambda taken: taken.sitting.booklet and taken.sitting.booklet.number,
    ),
    _core(
        "booklet_kind",
        "text",
        "main, or make_up: dealt from slots that others left unanswered.",
        slot=lambda slot: slot.booklet and slot.booklet.kind,
        taken=lambda taken: taken.sitting.booklet and taken.sitting.booklet.kind,
    ),
    _core(
        "position",
        "number",
        "Place in the sitting, from 1; for an untaken slot, in its booklet.",
        slot=lambda slot: slot.position,
        taken=lambda taken: taken.position,
    ),
    _core("slot", "number", "Place in the order of the stage's draw, from 1.", slot=lambda slot: slot.number),
    _core("item", "text", "The item's key, the same on every machine.", slot=lambda slot: slot.item.key),
    _core(
        "replicate",
        "number",
        "1 for the first planned showing of the item in the stage.",
        slot=lambda slot: slot.replicate,
    ),
    _core(
        "role",
        "text",
        "sampled, holdout, control, repeat, practice or check. Only sampled and holdout enter estimates.",
        slot=lambda slot: slot.role,
    ),
    _core(
        "control_kind",
        "text",
        "What a control asks, by the instrument's name for it; empty for other roles.",
        slot=lambda slot: slot.control_kind or None,
    ),
    _core(
        "repeat_of",
        "number",
        "For a repeat: the slot whose item is asked again in the same sitting.",
        slot=lambda slot: slot.repeat_of and slot.repeat_of.number,
    ),
    _core(
        "stratum",
        "text",
        "The part of the candidates that the slot was drawn from.",
        slot=lambda slot: slot.stratum and slot.stratum.name,
    ),
    _core(
        "inclusion_probability",
        "0 to 1",
        "Exact chance that the item is in the plan, given the candidates, their cut and all earlier answers.",
        slot=lambda slot: slot.inclusion_probability,
    ),
    _core(
        "pool_probability",
        "0 to 1",
        "Chance that the item is among the candidates. The weight is 1 / (inclusion_probability * pool_probability).",
        slot=lambda slot: slot.pool_probability,
    ),
    _core(
        "score",
        "number",
        "What the stage's predictor gave the item before the draw; empty in a uniform stage.",
        slot=lambda slot: slot.score,
    ),
    _core("condition", "JSON object", "Factor to level, as drawn for the sitting or for this item.", taken=_levels),
    _core(
        "condition_probability", "JSON object", "Factor to the chance of its drawn level.", taken=_level_probabilities
    ),
    _core(
        "status",
        "text",
        "counted: complete in time. late: answered after the slot was given away or the stage frozen; never counted. "
        "live: being answered. released: given back unanswered. withdrawn: taken back by its person, and its content "
        "deleted. untaken: given to nobody.",
        slot=lambda _slot: UNTAKEN,
        taken=lambda taken: taken.state,
    ),
)
# Of the sitting as a whole, as it is by now.
FLAGS = (
    CoreColumn(
        Column("flags", "text", "The sitting's flags by the rules of the study file, with a space between them."),
        lambda row: " ".join(row.flags) or None,
    ),
    CoreColumn(
        Column(
            "excluded",
            "text",
            "The flags for which the sitting's answers count in nothing, decided when its stage is frozen; empty where "
            "they count.",
        ),
        lambda row: " ".join(row.excluded) or None,
    ),
)
# Known after it; the instrument's own columns stand between.
AFTER = (
    *FLAGS,
    _core(
        "assigned_at",
        "time, UTC",
        "When the sitting was given its booklet.",
        taken=lambda taken: _time(taken.assigned_at),
    ),
    _core("completed_at", "time, UTC", "When the item was complete.", taken=lambda taken: _time(taken.completed_at)),
    _core(
        "responses",
        "JSON list",
        "Each stored response: number, screen, answered_at, server_ms (since the sitting's previous accepted page), "
        "client (what the browser measured, as it sent it), and score, rule and version where it was scored.",
        taken=_responses,
    ),
)


def columns_of(study: Study) -> list[Column]:
    """The header of answers.csv."""
    return [*(core.column for core in BEFORE), *registry.get(study.instrument).columns, *(c.column for c in AFTER)]


def chunks(
    study: Study, *, stage: int | None = None, after: tuple[int, int] = (0, 0), levels: Mapping[str, str] = NO_LEVELS
) -> Iterator[list[Row]]:
    """The rows of some slots at a time, with everything that a row reads.

    Args:
        stage: only this stage's.
        after: (stage, slot) to go on behind.
        levels: only what was given under these levels of the study's factors.
    """
    stages = study.stages.order_by("index").filter(index__gte=after[0])
    for current in stages.filter(index=stage) if stage is not None else stages:
        last = after[1] if current.index == after[0] else 0
        current.study = study
        excluded, flags = left_out(current), dict[int, Sequence[str]]()
        while slots := list(
            current.slots.filter(number__gt=last)
            .select_related("stratum", "item", "booklet", "repeat_of")
            .order_by("number")[:CHUNK]
        ):
            last = slots[-1].number
            for slot in slots:
                slot.stage = current
            if rows := _rows(slots, study, levels):
                flags |= marks_of(study, _sittings_of(rows) - flags.keys())
                yield [_marked(row, flags, excluded) for row in rows]


def _sittings_of(rows: Iterable[Row]) -> set[int]:
    return {row.assignment.sitting_id for row in rows if row.assignment is not None}


def _marked(row: Row, flags: Mapping[int, Sequence[str]], excluded: Mapping[int, Sequence[str]]) -> Row:
    if row.assignment is None:
        return row
    sitting = row.assignment.sitting_id
    return replace(row, flags=flags.get(sitting, ()), excluded=excluded.get(sitting, ()))


def _rows(slots: list[Slot], study: Study, levels: Mapping[str, str]) -> list[Row]:
    found: dict[int, list[Assignment | None]] = {}
    wanted = Assignment.objects.filter(slot__in=[slot.pk for slot in slots])
    for assignment in (
        with_answers(wanted, study)
        .select_related("sitting__consent")
        .prefetch_related("sitting__conditions", "conditions", "responses__score")
        .order_by("pk")
    ):
        found.setdefault(assignment.slot_id, []).append(assignment)
    nobody: list[Assignment | None] = [None]
    rows = [Row(slot, assignment) for slot in slots for assignment in found.get(slot.pk, nobody)]
    if not levels:
        return rows
    return [row for row in rows if row.assignment is not None and has_levels(row.assignment, levels)]


def values_of(row: Row, study: Study) -> list[Any]:
    """One value for each of `columns_of(study)`; None where there is nothing (yet)."""
    instrument = registry.get(study.instrument)
    own: Sequence[Any] = (
        instrument.export_values(row.assignment, study) if row.assignment else [None] * len(instrument.columns)
    )
    return [*(core.value(row) for core in BEFORE), *own, *(core.value(row) for core in AFTER)]


def answer_rows(
    study: Study, *, stage: int | None = None, levels: Mapping[str, str] = NO_LEVELS
) -> Iterator[list[Any]]:
    for rows in chunks(study, stage=stage, levels=levels):
        for row in rows:
            yield values_of(row, study)


@dataclass(frozen=True)
class CountedAnswers:
    """The answers that enter estimates, read anew and in chunks each time they are walked through."""

    study: Study
    stage: int | None = None
    levels: Mapping[str, str] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Assignment]:
        for rows in chunks(self.study, stage=self.stage, levels=self.levels):
            for row in rows:
                if (
                    row.assignment is not None
                    and not row.slot.stage.is_pilot
                    and row.assignment.state == Assignment.State.COUNTED
                    and not row.excluded
                    and row.slot.role in COUNTING_ROLES
                ):
                    yield row.assignment


def extra_files(
    study: Study, *, stage: int | None = None, levels: Mapping[str, str] = NO_LEVELS
) -> Iterable[ExtraFile]:
    """The instrument's further files, of the answers that count; then how its predictors did, where it has any."""
    instrument = registry.get(study.instrument)
    yield from instrument.extra_files(CountedAnswers(study, stage, levels), study)
    yield from sitting_files(study, stage=stage)
    yield ExtraFile(flagging.FILE, flagging.COLUMNS, flagging.file_rows(study.bank))
    yield from timing_files(study, stage=stage)
    if instrument.predicts:
        yield ExtraFile(leaderboard.FILE, leaderboard.COLUMNS, leaderboard.file_rows(study))
    yield amendments_file(study)


def stage_of(study: Study, index: int | None) -> int | None:
    """The number of a stage that exists, as it was asked for.

    Raises:
        NotFound: the study has no such stage.
    """
    if index is not None and not Stage.objects.filter(study=study, index=index).exists():
        raise NotFound(f"{study.slug} has no stage {index}")
    return index


# CSV


def csv_line(values: Iterable[Any]) -> str:
    """One line of CSV (RFC 4180, but with a bare newline at its end), in which every text keeps its bytes.

    Nothing guards against spreadsheets that run a cell which begins with "=": a guard would change the text.
    """
    return ",".join(_cell(value) for value in values) + "\n"


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float):
        return repr(value)
    text = str(value)
    # The csv module leaves a lone carriage return unquoted, which its own reader then takes for the end of the row.
    return '"' + text.replace('"', '""') + '"' if any(mark in text for mark in ',"\n\r') else text


def csv_lines(columns: Iterable[Column], rows: Iterable[Iterable[Any]]) -> Iterator[str]:
    yield csv_line(column.name for column in columns)
    for row in rows:
        yield csv_line(row)


def answers_csv(study: Study, *, stage: int | None = None, levels: Mapping[str, str] = NO_LEVELS) -> Iterator[str]:
    """answers.csv, line by line, for streaming."""
    return csv_lines(columns_of(study), answer_rows(study, stage=stage, levels=levels))


# Codebook


def codebook(study: Study) -> list[tuple[str, Column]]:
    """Every column of every file of an export, with its file."""
    entries = [("answers.csv", column) for column in columns_of(study)]
    for extra in extra_files(study):
        entries += [(extra.name, column) for column in extra.columns]
    return entries


CODEBOOK_HEADER = (
    Column("file", "text", "The file the column stands in."),
    Column("column", "text", "The column's name."),
    Column("kind", "text", "What its values are."),
    Column("description", "text", "What they mean."),
)
CODEBOOK_PREFACE = """# Codebook

What `manage.py export` writes for a study of the kind `{instrument}`; the export itself brings this page along.

All files are UTF-8 with a header line, lines end in a newline, and an empty cell means that there is nothing (yet).
Texts equal the bank's byte for byte: read them with missing-value detection off (a text may be "nan"), and do not open
the file in a spreadsheet without care (a text may begin with "="). Times are ISO 8601 in UTC. Beliefs are whole
percentage points.

`answers.csv` has a row for every slot of every plan and each assignment that it was given in: one slot can have several
rows (given back by one person, answered by another) and at most one of them is `counted`. Estimates use the rows whose
status is `counted` and whose role is `sampled` or `holdout`, without those of a pilot and those with something in
`excluded`, each weighted inside its stage by 1 / (inclusion_probability * pool_probability).
"""


def codebook_page(study: Study, levels: Mapping[str, str] = NO_LEVELS) -> str:
    """The codebook as Markdown."""
    lines = [CODEBOOK_PREFACE.format(instrument=study.instrument)]
    if levels:
        lines.append(f"Only answers under {in_words(levels)} are in answers.csv and in the instrument's own files.\n")
    current = ""
    for name, column in codebook(study):
        if name != current:
            lines += [f"## {name}", "", "| column | kind | meaning |", "| --- | --- | --- |"]
            current = name
        lines.append(f"| {column.name} | {column.kind} | {column.description} |")
    return "\n".join(lines) + "\n"


# Files


@dataclass(frozen=True)
class Written:
    """A file of an export. `rows` without the header; None where it is not a table."""

    path: Path
    rows: int | None = None


def write_export(study: Study, folder: Path, *, levels: Mapping[str, str] = NO_LEVELS) -> list[Written]:
    """Write every file of the study's export. Each appears whole or not at all; an older one is replaced.

    Raises:
        HunchError: the folder cannot be made or written.
    """
    entries = ((name, column.name, column.kind, column.description) for name, column in codebook(study))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        written = [_write(folder / "answers.csv", answers_csv(study, levels=levels))]
        for extra in extra_files(study, levels=levels):
            written.append(_write(folder / extra.name, csv_lines(extra.columns, extra.rows)))
        written.append(_write(folder / "codebook.csv", csv_lines(CODEBOOK_HEADER, entries)))
        written.append(Written(_write(folder / "codebook.md", [codebook_page(study, levels)]).path))
    except OSError as exc:
        raise HunchError(f"{folder}: cannot be written: {exc.strerror}") from exc
    return written


def _write(path: Path, lines: Iterable[str]) -> Written:
    """Nobody may take half an export for a whole one."""
    count = 0
    with replace_file(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        for count, line in enumerate(lines):  # noqa: B007 - the header is line 0, so the last number counts the rows
            file.write(line)
        file.flush()
        os.fsync(file.fileno())
    return Written(path, count)
