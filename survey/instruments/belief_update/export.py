"""The belief update's columns, and the layout of the paper's released data."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from survey.instruments.registry import Column, ExtraFile

from .labels import beliefs_of

if TYPE_CHECKING:
    from survey.models import Assignment

COLUMNS = (
    Column("evidence_id", "text", "Id of the question whose answer was shown; empty for a re-asking control."),
    Column("target_id", "text", "Id of the question whose answer was to be predicted."),
    Column("evidence_task", "text", "Task of the evidence question."),
    Column("target_task", "text", "Task of the target question."),
    Column("evidence_text", "text", "The evidence question as in the bank, markup included."),
    Column("target_text", "text", "The target question as in the bank, markup included."),
    Column("outcome", "0 or 1", "1: the evidence was answered correctly; 0: incorrectly."),
    Column("evidence_model", "text", "The language model that had this outcome; empty where it is hypothetical."),
    Column("evidence_answer", "text", "What it really answered to the evidence, as stored."),
    Column("prior", "percentage points", "Stated probability of a correct answer before the evidence, 0 to 100."),
    Column("posterior", "percentage points", "The same after the evidence, 0 to 100."),
    Column("change", "percentage points", "posterior - prior."),
    Column("belief_change", "0 or 1", "1 where the absolute change exceeds the study's threshold."),
)

PAPER_COLUMNS = (
    Column("q1", "text", "The evidence question."),
    Column("q2", "text", "The target question."),
    Column("source1", "text", "Task of q1."),
    Column("source2", "text", "Task of q2."),
    Column("previous_correct", "0 or 1", "1: q1 was answered correctly."),
    Column("belief_change", "0 or 1", "1 where the absolute change exceeds the study's threshold."),
)


def values(assignment: "Assignment", threshold: int) -> list[Any]:
    pair = assignment.slot.item.pair
    beliefs = beliefs_of(assignment)
    changed = beliefs.changed(threshold)
    evidence = pair.evidence
    return [
        evidence.external_id if evidence else None,
        pair.target.external_id,
        evidence.task.name if evidence else None,
        pair.target.task.name,
        evidence.text if evidence else None,
        pair.target.text,
        None if pair.outcome is None else int(pair.outcome),
        pair.answer.language_model.name if pair.answer else None,
        (pair.answer.response or pair.answer.stated) if pair.answer else None,
        beliefs.prior,
        beliefs.posterior,
        beliefs.change,
        None if changed is None else int(changed),
    ]


def _paper_rows(assignments: "Iterable[Assignment]", threshold: int) -> Iterable[Sequence[Any]]:
    for assignment in assignments:
        pair = assignment.slot.item.pair
        changed = beliefs_of(assignment).changed(threshold)
        if pair.evidence is None or changed is None or assignment.state != assignment.State.COUNTED:
            continue
        yield (
            pair.evidence.text,
            pair.target.text,
            pair.evidence.task.name,
            pair.target.task.name,
            int(bool(pair.outcome)),
            int(changed),
        )


def paper_file(assignments: "Iterable[Assignment]", threshold: int) -> ExtraFile:
    return ExtraFile("belief_changes.csv", PAPER_COLUMNS, _paper_rows(assignments, threshold))
