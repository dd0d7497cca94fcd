"""The columns of answers.csv, each with its value, for header, rows and codebook."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from survey.contracts import instruments
from survey.contracts.tables import Column, ValueColumn
from survey.models import Study


class StageFacts(NamedTuple):
    """What all rows of a stage share."""

    study: str
    stage: int
    pilot: bool
    wave: int


class SittingFacts(NamedTuple):
    """What all rows of a sitting share. `condition`: levels as JSON; `file`: the hash of its study file as stored."""

    respondent: str | None
    simulated: bool | None
    state: str | None
    language: str | None
    consent_version: str | None
    booklet: int | None
    booklet_kind: str | None
    condition: str | None
    condition_probability: str | None
    flags: str | None
    excluded: str | None
    study_sha256: str | None
    levels: Mapping[str, str]
    chances: Mapping[str, float]
    file: str
    public_id: str


class SlotFacts(NamedTuple):
    """A slot with one of its assignments: what `answers_file.SLOT` reads, in its order. Without an assignment, what
    follows `place` is None."""

    item: int
    slot: int
    key: str
    replicate: int
    role: str
    control_kind: str | None
    repeat_of: int | None
    stratum: str | None
    inclusion_probability: float | None
    pool_probability: float | None
    score: float | None
    booklet: int | None
    booklet_kind: str | None
    place: int | None
    assignment: Any
    sitting: int
    position: int | None
    state: str | None
    assigned_at: str | None
    completed_at: str | None


class AnswerRow(NamedTuple):
    """A row of answers.csv. `dealt`: what its booklet is read from: the sitting, or the slot where nobody has it."""

    stage: StageFacts
    sitting: SittingFacts
    slot: SlotFacts
    dealt: Any
    position: int | None
    condition: str | None
    condition_probability: str | None
    status: str | None
    responses: str | None
    weight: float | None


def _column(name: str, kind: str, description: str, value: str = "") -> ValueColumn:
    # The score is the only number of a slot or an assignment that is not whole.
    whole = kind == "number" and name not in ("score", "weight")
    return ValueColumn(name, kind, description, whole=whole, value=value or name)


# Known before the answer: where the row stands and how it came to be there.
BEFORE = (
    _column("study", "text", "The study's short name.", "stage.study"),
    _column("stage", "number", "The stage, from 1.", "stage.stage"),
    _column("pilot", "0 or 1", "1: the stage is a pilot, whose answers enter nothing but this file.", "stage.pilot"),
    _column("respondent", "text", "Pseudonym of the respondent.", "sitting.respondent"),
    _column("simulated", "0 or 1", "1: the respondent was a simulated one.", "sitting.simulated"),
    _column(
        "sitting_state", "text", "live, complete, expired, failed_checks, turned_away or screened_out.", "sitting.state"
    ),
    _column(
        "study_sha256",
        "text",
        "Of the study file that the sitting began with; amendments.csv says what changed.",
        "sitting.study_sha256",
    ),
    _column("language", "text", "Language of the pages.", "sitting.language"),
    _column("consent_version", "text", "Version of the consent text that was agreed to.", "sitting.consent_version"),
    _column(
        "booklet", "number", "The booklet of the sitting; for an untaken slot, the one it lies in.", "dealt.booklet"
    ),
    _column(
        "booklet_kind", "text", "main, or make_up: dealt from slots that others left unanswered.", "dealt.booklet_kind"
    ),
    _column("position", "number", "Place in the sitting, from 1; for an untaken slot, in its booklet."),
    _column("slot", "number", "Place in the order of the stage's draw, from 1.", "slot.slot"),
    _column("item", "text", "The item's key, the same on every machine.", "slot.key"),
    _column("replicate", "number", "1 for the first planned showing of the item in the stage.", "slot.replicate"),
    _column(
        "role", "text", "sampled, holdout, control or repeat. Only sampled and holdout enter estimates.", "slot.role"
    ),
    _column(
        "control_kind",
        "text",
        "What a control asks, by the instrument's name for it; another_person: a sampled or holdout item of the stage, "
        "asked of one more person. Empty for other roles.",
        "slot.control_kind",
    ),
    _column(
        "repeat_of", "number", "For a repeat: the slot whose item is asked again in the same sitting.", "slot.repeat_of"
    ),
    _column("stratum", "text", "The part of the candidates that the slot was drawn from.", "slot.stratum"),
    _column(
        "inclusion_probability",
        "0 to 1",
        "Exact chance that the item is in the plan, given the candidates, their cut and all earlier answers.",
        "slot.inclusion_probability",
    ),
    _column(
        "pool_probability",
        "0 to 1",
        "Chance that the item is among the candidates. The weight is 1 / (inclusion_probability * pool_probability).",
        "slot.pool_probability",
    ),
    _column(
        "score",
        "number",
        "What the stage's predictor gave the item before the draw; empty in a uniform stage.",
        "slot.score",
    ),
    _column("condition", "JSON object", "Factor to level, as drawn for the sitting or for this item."),
    _column("condition_probability", "JSON object", "Factor to the chance of its drawn level."),
    _column(
        "status",
        "text",
        "counted: complete in time. late: answered after the slot was given away or the stage frozen; never counted. "
        "live: being answered. released: given back unanswered. declined: left out by a person who was free to stop. "
        "withdrawn: taken back by its person, and its content deleted. untaken: given to nobody.",
    ),
)


# Known after it; the instrument's own columns stand between. The flags are of the whole sitting, as it is now.
AFTER = (
    _column(
        "flags",
        "text",
        "The sitting's flags by the rules of the study file, with a space between them.",
        "sitting.flags",
    ),
    _column(
        "excluded",
        "text",
        "The flags for which the sitting's answers count in nothing, decided when its stage is frozen; empty where "
        "they count.",
        "sitting.excluded",
    ),
    _column("assigned_at", "time, UTC", "When the sitting was given its booklet.", "slot.assigned_at"),
    _column("completed_at", "time, UTC", "When the item was complete.", "slot.completed_at"),
    _column(
        "responses",
        "JSON list",
        "Each stored response: number, screen, answered_at, server_ms (since the sitting's previous accepted page), "
        "client (what the browser measured, as it sent it), and score, rule and version where it was scored.",
    ),
    _column(
        "weight",
        "number",
        "The answer's weight in the figures of all stages, 1 on average: a mean of answers with these weights is the "
        "plain figure of `estimate`. Empty where the answer enters none. While a stage is open it changes with every "
        "answer.",
    ),
    _column("wave", "number", "1 for the person's first pass; the stage's wave.", "stage.wave"),
)


# The last column of every table of a test copy's export. The study's own export has no such column.
IS_TEST = Column("is_test", "0 or 1", "1: the row comes from the test copy of a study. Nothing in it was measured.")


def columns_of(study: Study) -> list[Column]:
    """The header of answers.csv."""
    columns = [*BEFORE, *instruments.of_study(study).export.columns, *AFTER]
    return [*columns, IS_TEST] if study.is_test else columns
