"""What a study file with several evidence questions is checked for, and the remarks that its author gets."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from survey.models import Study
from survey.study_file import FieldPath, Note

if TYPE_CHECKING:
    from .options import BeliefUpdateOptions

OPTIONS: FieldPath = ("instrument", "options")
FEW = 6  # answers of an item


def problems(study: Study, options: "BeliefUpdateOptions") -> Iterator[tuple[FieldPath, str]]:
    """What makes such a study impossible."""
    if study.config.candidates.kind == "exhaustive":
        yield (
            ("candidates", "kind"),
            f'items with {options.evidence_questions} evidence questions are too many to score all: use kind = "pool"',
        )
    adaptive = any(stage.design.kind != "uniform" for stage in study.config.stages)
    if options.priority != "none" and not adaptive:
        yield (
            (*OPTIONS, "priority"),
            "no stage draws by it: give a later stage a design such as epsilon_greedy, or remove it",
        )
    if options.priority == "none" and adaptive:
        yield (
            (*OPTIONS, "priority"),
            "a stage draws by scores, and a predictor knows single pairs: set priority to additivity or last_change, "
            'or use kind = "uniform" for every stage',
        )


def remarks(study: Study, options: "BeliefUpdateOptions") -> list[Note]:
    """What its author should know."""
    orders = {options.evidence_order}
    for condition in study.config.conditions:
        orders |= {changes["evidence_order"] for changes in condition.options.values() if "evidence_order" in changes}
    notes = []
    firsts = {order.split("-")[0] for order in orders}
    steps = options.evidence_questions
    if "shuffled" not in orders and len({"1" if first == "drawn" else first for first in firsts}) < steps:
        notes.append(
            Note(
                "",
                "some evidence questions never come first, so that nobody shows what they change alone, and the report "
                "composition cannot say how evidence adds up: let evidence_order be shuffled, or name orders that "
                "begin with each of them",
            )
        )
    few = [stage for stage in study.config.stages if stage.responses_per_item < FEW and not stage.pilot]
    if few:
        notes.append(
            Note(
                "",
                f"the report composition needs several people for each item: with responses_per_item = {FEW} or more "
                "every evidence question comes first for two of them or more, most of the time",
            )
        )
    return notes
