"""`belief_steps.csv`: a row for each step of each answer that counts, in studies with several evidence questions."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from survey.contracts.tables import Column, ExtraFile

from .labels import beliefs_of

if TYPE_CHECKING:
    from survey.models import Assignment, Study

FILE = "belief_steps.csv"  # steps.csv has the pages of every study.
COLUMNS = (
    Column("stage", "number", "The stage, from 1.", whole=True),
    Column("slot", "number", "Place in the order of the stage's draw; with the stage it names the answer.", whole=True),
    Column("respondent", "text", "Pseudonym of the respondent."),
    Column("item", "text", "The item's key, the same on every machine."),
    Column("role", "text", "sampled or holdout."),
    Column("step", "number", "Which evidence question it was in the order shown, from 1.", whole=True),
    Column("place", "number", "Which it is in the item's own order, from 1.", whole=True),
    Column("target_id", "text", "Id of the question whose answer was to be predicted."),
    Column("evidence_id", "text", "Id of the question whose answer was shown at this step."),
    Column("evidence_task", "text", "Its task."),
    Column("target_task", "text", "Task of the target question."),
    Column("outcome", "0 or 1", "1: it was answered correctly; 0: incorrectly."),
    Column("evidence_model", "text", "The language model that had this outcome; empty where it is hypothetical."),
    Column("before", "percentage points", "The belief right before this step; before the first step, the prior."),
    Column("after", "percentage points", "The belief right after it; after the last step, the posterior."),
    Column("change", "percentage points", "after - before."),
)


def steps_file(assignments: "Iterable[Assignment]", study: "Study") -> ExtraFile:
    return ExtraFile(FILE, COLUMNS, () if order_is_hidden(study) else _rows(assignments))


def order_is_hidden(study: "Study") -> bool:
    """Whether the order of the evidence would reveal a condition of a blind study."""
    return study.is_blind and any(
        "evidence_order" in changes for condition in study.config.conditions for changes in condition.options.values()
    )


def _rows(assignments: "Iterable[Assignment]") -> "Iterator[list[Any]]":
    for assignment in assignments:
        slot, beliefs = assignment.slot, beliefs_of(assignment)
        pair, before = slot.item.pair, beliefs.prior
        steps = {step.place: step for step in pair.steps}
        for number, (place, after) in enumerate(beliefs.steps, 1):
            step = steps[place]
            answer = step.answer
            yield [
                *(slot.stage.index, slot.number, assignment.sitting.respondent.pseudonym, slot.item.key, slot.role),
                *(number, place, pair.target.external_id, step.question.external_id),
                *(step.question.task.name, pair.target.task.name, int(step.correct)),
                None if answer is None else answer.language_model.name,
                *(before, after, None if before is None else after - before),
            ]
            before = after
