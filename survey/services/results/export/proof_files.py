"""The files of an export that let others check it: how each stage was planned, what by, and the audit's chain.

`tools/verify_study.py` reads them with numpy and the standard library alone. Imports models and below.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from survey.contracts import instruments
from survey.contracts.tables import Column, ExtraFile
from survey.models import AuditEntry, AuditSeal, CandidateSet, Look, Study
from survey.services.base import audit_chain, files
from survey.services.plans.candidates import DISAGREEMENT, PRIORITY, SCORE, planned_questions

CHUNK = 500
# Addresses and costs at a panel: nothing of a plan follows from them.
LEFT_OUT = ("postings",)
STAGES = (
    Column("study", "text", "The study's short name."),
    Column("stage", "number", "The stage, from 1.", whole=True),
    Column("pilot", "0 or 1", "1: the stage is a pilot."),
    Column("state", "text", "draft, planned, open, paused, closing or frozen."),
    Column("plan_sha256", "text", "Hash of the stage's plan."),
    Column("snapshot_sha256", "text", "Hash of its frozen answers, made of keyed hashes."),
    Column("strata", "JSON list", "Each stratum: its name, its size, and how many of its items were drawn."),
    Column("manifest", "JSON object", "Everything that the plan follows from."),
)
CANDIDATES = (
    Column("study", "text", "The study's short name."),
    Column(
        "stage", "number", "The stage, from 1. Only stages that draw by scores from a listed pool are here.", whole=True
    ),
    Column("item", "text", "The item's key, as in answers.csv."),
    Column("score", "number", "What the stage's predictor gave it."),
    Column("disagreement", "number", "How much the members of an ensemble disagreed about it."),
    Column("priority", "number", "The instrument's number to draw by, in place of the score."),
)
LOOKS = (
    Column("study", "text", "The study's short name."),
    Column("stage", "number", "The stage, from 1. Only stages with a stopping rule are here.", whole=True),
    Column("look", "number", "The look at the running stage, from 1.", whole=True),
    Column("at", "time, UTC", "When it was made."),
    Column("answers_until", "time, UTC", "Answers that were complete before this were looked at."),
    Column("people", "number", "Whose answers they were.", whole=True),
    Column("answers", "number", "How many answers, to sampled slots.", whole=True),
    Column("value", "number", "The figure that the rule is about."),
    Column("standard_error", "number", "Its standard error, between people."),
    Column("low", "number", "The lower end of its 95 % interval that holds at any time."),
    Column("high", "number", "The upper end."),
    Column("reached", "0 or 1", "1: it was narrow enough, and ended the stage."),
)
AUDIT = (
    Column("number", "number", "Place of the seal in the chain; empty: not sealed yet.", whole=True),
    Column("entry", "number", "The entry's id.", whole=True),
    Column("previous", "text", "Hash of the seal before."),
    Column("entry_sha256", "text", "Hash of the entry."),
    Column("sealed_at", "time, UTC", "When it was sealed."),
    Column("sha256", "text", "Hash of the seal. The last one is the head."),
    Column("at", "time, UTC", "When it was done. From here on empty for entries of others than this study."),
    Column("actor", "text", "The user's audit name; empty for nobody or a worker."),
    Column("via", "text", "admin, api, web, command or worker."),
    Column("action", "text", "What was done."),
    Column("subject", "text", "To what."),
    Column("detail", "JSON object", "What else is known of it."),
    Column("salt", "text", "Random; in the hash of the entry."),
)


def proof_files(study: Study) -> Iterator[ExtraFile]:
    yield ExtraFile("stages.csv", STAGES, _stages(study))
    yield ExtraFile("candidates.csv", CANDIDATES, _candidates(study))
    yield ExtraFile("looks.csv", LOOKS, _looks(study))
    yield ExtraFile("audit.csv", AUDIT, _audit(study))


def _stages(study: Study) -> Iterator[Sequence[Any]]:
    for stage in study.stages.prefetch_related("strata").order_by("index"):
        strata = [
            {"name": stratum.name, "size": stratum.size, "drawn": stratum.slots} for stratum in stage.strata.all()
        ]
        manifest = {name: value for name, value in stage.manifest.items() if name not in LEFT_OUT}
        yield [
            *(study.slug, stage.index, stage.is_pilot, stage.state),
            *(stage.plan_sha256 or None, stage.snapshot_sha256 or None),
            *(json.dumps(value, ensure_ascii=False, sort_keys=True) if value else None for value in (strata, manifest)),
        ]


def _candidates(study: Study) -> Iterator[Sequence[Any]]:
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
            numbers = (_number(row, name) for name in (SCORE, DISAGREEMENT, PRIORITY))
            yield [study.slug, stage.index, instrument.item_key(row, questions), *numbers]


def _looks(study: Study) -> Iterator[Sequence[Any]]:
    for look in Look.objects.filter(stage__study=study).select_related("stage").order_by("stage__index", "number"):
        yield [
            *(study.slug, look.stage.index, look.number, look.at.isoformat(), look.answers_until.isoformat()),
            *(look.people, look.answers, look.value, look.standard_error, look.low, look.high, int(look.reached)),
        ]


def _number(row: np.void, name: str) -> float | None:
    return float(row[name]) if name in (row.dtype.names or ()) else None


def _audit(study: Study) -> Iterator[Sequence[Any]]:
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
        content: Sequence[Any] = [None] * 7
        if following is not None and following.pk == seal.entry_id:
            content, following = _content(following), next(own, None)
        yield [
            *(seal.number, seal.entry_id, previous, seal.entry_sha256),
            *(audit_chain.written(seal.sealed_at), seal.sha256, *content),
        ]
        previous, last = seal.sha256, seal.entry_id
    while following is not None:
        if following.pk > last:
            yield [None, following.pk, None, audit_chain.entry_digest(following), None, None, *_content(following)]
        following = next(own, None)


def _content(entry: AuditEntry) -> list[Any]:
    detail = json.dumps(entry.detail, sort_keys=True)
    at = audit_chain.written(entry.at)
    return [at, entry.actor or None, entry.via, entry.action, entry.subject, detail, entry.salt or None]
