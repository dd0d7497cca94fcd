"""The columns of answers.csv. One list makes the header, the rows and the codebook, so that they always agree."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from survey.contracts import instruments
from survey.contracts.tables import Column
from survey.models import Assignment, Slot, Study
from survey.services.answers.blinding import shown_levels

UNTAKEN = "untaken"


@dataclass(frozen=True)
class ExportRow:
    """A slot of a stage, in one of its assignments or in none; with its sitting's flags, the flags for which its
    answers are left out, and the answer's weight in the figures of all stages."""

    slot: Slot
    assignment: Assignment | None
    flags: Sequence[str] = ()
    excluded: Sequence[str] = ()
    weight: float | None = None


@dataclass(frozen=True)
class CoreColumn:
    """A column that every instrument's export has, and how a row fills it."""

    column: Column
    value: Callable[[ExportRow], Any]


def _core(
    name: str,
    kind: str,
    description: str,
    *,
    slot: Callable[[Slot], Any] | None = None,
    taken: Callable[[Assignment], Any] | None = None,
) -> CoreColumn:
    """`taken` reads the assignment and `slot` the slot; with both, the slot is used if there is no assignment."""

    def value(row: ExportRow) -> Any:
        if taken is not None and row.assignment is not None:
            return taken(row.assignment)
        return slot(row.slot) if slot is not None else None

    # The score is the only number of a slot or an assignment that is not whole.
    return CoreColumn(Column(name, kind, description, whole=kind == "number" and name != "score"), value)


def _levels(assignment: Assignment) -> str | None:
    return _json(shown_levels(assignment.slot.stage.study, assignment.levels()))


def _level_probabilities(assignment: Assignment) -> str | None:
    drawn: list[Any] = [*assignment.sitting.conditions.all(), *assignment.conditions.all()]
    chances = {condition.factor: condition.probability for condition in drawn}
    return _json(shown_levels(assignment.slot.stage.study, chances))


def _responses(assignment: Assignment) -> str | None:
    return _json(
        [
            {
                "number": response.number,
                "screen": response.screen,
                "answered_at": in_utc(response.answered_at),
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


def in_utc(at: datetime | None) -> str | None:
    """A time as exports write it; None if there is none."""
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
        "sampled, holdout, control or repeat. Only sampled and holdout enter estimates.",
        slot=lambda slot: slot.role,
    ),
    _core(
        "control_kind",
        "text",
        "What a control asks, by the instrument's name for it; another_person: a sampled or holdout item of the stage, "
        "asked of one more person. Empty for other roles.",
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


# About the whole sitting, as it is now.
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


WEIGHT = CoreColumn(
    Column(
        "weight",
        "number",
        "The answer's weight in the figures of all stages, 1 on average: a mean of answers with these weights is the "
        "plain figure of `estimate`. Empty where the answer enters none. While a stage is open it changes with every "
        "answer.",
    ),
    lambda row: row.weight,
)


# Known after it; the instrument's own columns stand between.
AFTER = (
    *FLAGS,
    _core(
        "assigned_at",
        "time, UTC",
        "When the sitting was given its booklet.",
        taken=lambda taken: in_utc(taken.assigned_at),
    ),
    _core("completed_at", "time, UTC", "When the item was complete.", taken=lambda taken: in_utc(taken.completed_at)),
    _core(
        "responses",
        "JSON list",
        "Each stored response: number, screen, answered_at, server_ms (since the sitting's previous accepted page), "
        "client (what the browser measured, as it sent it), and score, rule and version where it was scored.",
        taken=_responses,
    ),
    WEIGHT,
    _core("wave", "number", "1 for the person's first pass; the stage's wave.", slot=lambda slot: slot.stage.wave),
)


# The last column of every table of a test copy's export. The study's own export has no such column.
IS_TEST = Column("is_test", "0 or 1", "1: the row comes from the test copy of a study. Nothing in it was measured.")


def columns_of(study: Study) -> list[Column]:
    """The header of answers.csv."""
    columns = [*(core.column for core in BEFORE), *instruments.of_study(study).columns, *(c.column for c in AFTER)]
    return [*columns, IS_TEST] if study.is_test else columns
