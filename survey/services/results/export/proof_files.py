"""The files of an export that let others check it: how each stage was planned, what by, and the audit's chain.

`tools/verify_study.py` reads them with numpy and the standard library alone. Imports models and below.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from survey.contracts import instruments
from survey.contracts.tables import ExtraFile, ValueColumn
from survey.models import AuditEntry, AuditSeal, CandidateSet, Look, Stage, Study
from survey.services.base import audit_chain, files
from survey.services.plans.candidates import DISAGREEMENT, PRIORITY, SCORE, planned_questions

from .common_columns import CHUNK, file_of_study, in_json, text

# Addresses and costs at a panel: nothing of a plan follows from them.
LEFT_OUT = ("postings",)


class Candidate(NamedTuple):
    """A candidate of a stage that draws by scores."""

    stage: Stage
    key: str
    row: np.void

    def number(self, name: str) -> float | None:
        return float(self.row[name]) if name in (self.row.dtype.names or ()) else None


class AuditRow(NamedTuple):
    """An entry of the chain. `seal`: None while it is not sealed yet. `entry`: None where it is not of this study."""

    key: int
    seal: AuditSeal | None
    previous: str | None
    entry: AuditEntry | None

    @property
    def entry_sha256(self) -> str:
        if self.seal is not None:
            return self.seal.entry_sha256
        assert self.entry is not None  # noqa: S101 - a row has one of both
        return audit_chain.entry_digest(self.entry)


def _of_seal(read: Callable[[AuditSeal], Any]) -> Callable[[AuditRow], Any]:
    return lambda row: None if row.seal is None else read(row.seal)


def _of_entry(read: Callable[[AuditEntry], Any]) -> Callable[[AuditRow], Any]:
    return lambda row: None if row.entry is None else read(row.entry)


STAGES = (
    ValueColumn("stage", "number", "The stage, from 1.", whole=True, value="index"),
    ValueColumn("pilot", "0 or 1", "1: the stage is a pilot.", value="is_pilot"),
    ValueColumn("state", "text", "draft, planned, open, paused, closing or frozen."),
    ValueColumn("plan_sha256", "text", "Hash of the stage's plan.", value=text("plan_sha256")),
    ValueColumn(
        "snapshot_sha256", "text", "Hash of its frozen answers, made of keyed hashes.", value=text("snapshot_sha256")
    ),
    ValueColumn(
        "strata",
        "JSON list",
        "Each stratum: its name, its size, and how many of its items were drawn.",
        value=lambda stage: in_json(
            [{"name": stratum.name, "size": stratum.size, "drawn": stratum.slots} for stratum in stage.strata.all()]
        ),
    ),
    ValueColumn(
        "manifest",
        "JSON object",
        "Everything that the plan follows from.",
        value=lambda stage: in_json({name: fact for name, fact in stage.manifest.items() if name not in LEFT_OUT}),
    ),
)
CANDIDATES = (
    ValueColumn(
        "stage",
        "number",
        "The stage, from 1. Only stages that draw by scores from a listed pool are here.",
        whole=True,
        value="stage.index",
    ),
    ValueColumn("item", "text", "The item's key, as in answers.csv.", value="key"),
    ValueColumn(
        "score", "number", "What the stage's predictor gave it.", value=lambda candidate: candidate.number(SCORE)
    ),
    ValueColumn(
        "disagreement",
        "number",
        "How much the members of an ensemble disagreed about it.",
        value=lambda candidate: candidate.number(DISAGREEMENT),
    ),
    ValueColumn(
        "priority",
        "number",
        "The instrument's number to draw by, in place of the score.",
        value=lambda candidate: candidate.number(PRIORITY),
    ),
)
LOOKS = (
    ValueColumn(
        "stage",
        "number",
        "The stage, from 1. Only stages with a stopping rule are here.",
        whole=True,
        value="stage.index",
    ),
    ValueColumn("look", "number", "The look at the running stage, from 1.", whole=True, value="number"),
    ValueColumn("at", "time, UTC", "When it was made.", value=lambda look: look.at.isoformat()),
    ValueColumn(
        "answers_until",
        "time, UTC",
        "Answers that were complete before this were looked at.",
        value=lambda look: look.answers_until.isoformat(),
    ),
    ValueColumn("people", "number", "Whose answers they were.", whole=True),
    ValueColumn("answers", "number", "How many answers, to sampled slots.", whole=True),
    ValueColumn("value", "number", "The figure that the rule is about."),
    ValueColumn("standard_error", "number", "Its standard error, between people."),
    ValueColumn("low", "number", "The lower end of its 95 % interval that holds at any time."),
    ValueColumn("high", "number", "The upper end."),
    ValueColumn(
        "reached", "0 or 1", "1: it was narrow enough, and ended the stage.", value=lambda look: int(look.reached)
    ),
)
AUDIT = (
    ValueColumn(
        "number",
        "number",
        "Place of the seal in the chain; empty: not sealed yet.",
        whole=True,
        value=_of_seal(lambda seal: seal.number),
    ),
    ValueColumn("entry", "number", "The entry's id.", whole=True, value="key"),
    ValueColumn("previous", "text", "Hash of the seal before."),
    ValueColumn("entry_sha256", "text", "Hash of the entry."),
    ValueColumn(
        "sealed_at",
        "time, UTC",
        "When it was sealed.",
        value=_of_seal(lambda seal: audit_chain.written(seal.sealed_at)),
    ),
    ValueColumn(
        "sha256", "text", "Hash of the seal. The last one is the head.", value=_of_seal(lambda seal: seal.sha256)
    ),
    ValueColumn(
        "at",
        "time, UTC",
        "When it was done. From here on empty for entries of others than this study.",
        value=_of_entry(lambda entry: audit_chain.written(entry.at)),
    ),
    ValueColumn(
        "actor",
        "text",
        "The user's audit name; empty for nobody or a worker.",
        value=_of_entry(lambda entry: entry.actor or None),
    ),
    ValueColumn("via", "text", "admin, api, web, command or worker.", value=_of_entry(lambda entry: entry.via)),
    ValueColumn("action", "text", "What was done.", value=_of_entry(lambda entry: entry.action)),
    ValueColumn("subject", "text", "To what.", value=_of_entry(lambda entry: entry.subject)),
    ValueColumn(
        "detail",
        "JSON object",
        "What else is known of it.",
        value=_of_entry(lambda entry: json.dumps(entry.detail, sort_keys=True)),
    ),
    ValueColumn("salt", "text", "Random; in the hash of the entry.", value=_of_entry(lambda entry: entry.salt or None)),
)


def proof_files(study: Study) -> Iterator[ExtraFile]:
    stages = study.stages.prefetch_related("strata").order_by("index")
    looks = Look.objects.filter(stage__study=study).select_related("stage").order_by("stage__index", "number")
    yield file_of_study(study, "stages.csv", STAGES, stages)
    yield file_of_study(study, "candidates.csv", CANDIDATES, _candidates(study))
    yield file_of_study(study, "looks.csv", LOOKS, looks)
    yield ExtraFile.of("audit.csv", AUDIT, _audit(study))


def _candidates(study: Study) -> Iterator[Candidate]:
    """A file that is gone from the storage stops no export: the check then says what it lacks."""
    instrument = instruments.of_study(study)
    for stage in study.stages.order_by("index"):
        drawn = stage.manifest.get("candidates", {})
        if stage.manifest.get("design", {}).get("kind", "uniform") == "uniform" or not drawn.get("sha256"):
            continue
        if drawn.get("kind", CandidateSet.Kind.POOL) != CandidateSet.Kind.POOL:
            continue
        try:
            rows, questions = files.load_array(drawn["sha256"]), planned_questions(stage)
        except (FileNotFoundError, ValueError, KeyError):
            continue
        for row in rows:
            yield Candidate(stage, instrument.item_key(row, questions), row)


def _audit(study: Study) -> Iterator[AuditRow]:
    """The chain from the study's first entry to the head, and the study's entries that are not sealed yet."""
    entries = AuditEntry.objects.filter(study=study.slug).order_by("pk")
    first = entries.first()
    if first is None:
        return
    before = AuditSeal.objects.filter(entry_id__lt=first.pk).order_by("-number").first()
    previous, last = before.sha256 if before else audit_chain.START, before.entry_id if before else 0
    head = audit_chain.head().number
    own = entries.iterator(CHUNK)
    following = next(own, None)
    sealed = AuditSeal.objects.filter(number__gt=before.number if before else 0, number__lte=head).order_by("number")
    for seal in sealed.iterator(CHUNK):
        entry = None
        if following is not None and following.pk == seal.entry_id:
            entry, following = following, next(own, None)
        yield AuditRow(seal.entry_id, seal, previous, entry)
        previous, last = seal.sha256, seal.entry_id
    while following is not None:
        if following.pk > last:
            yield AuditRow(following.pk, None, None, following)
        following = next(own, None)
