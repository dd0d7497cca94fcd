"""Why people changed their beliefs or kept them, in their own words (appendix E of the paper)."""

from collections.abc import Sequence
from dataclasses import dataclass

from survey.exceptions import StateRefused
from survey.models import Assignment, Study
from survey.services.answers.conditions import has_levels, read_condition, relations_of
from survey.services.answers.counting import counting, with_answers

from ...labels import beliefs_of
from ..rows import belief_update_of

OUTCOMES = ("correct", "incorrect")
CHANGES = ("raised", "lowered", "kept")
NO_EVIDENCE = "no evidence"


@dataclass(frozen=True)
class Reason:
    """What somebody wrote after the posterior; empty if the field was left empty. `answer` names it without saying who
    wrote it: the stage and the slot, of which one answer counts."""

    answer: str
    outcome: str
    change: str
    prior: int
    posterior: int
    evidence: str
    target: str
    evidence_task: str
    target_task: str
    text: str
    explanation: int
    """The key of the row that holds it."""


def obstacle(study: Study) -> str:
    """Why this study has no reasons, as far as its file says it; empty if it may have some."""
    config = study.config
    asked = {str(belief_update_of(study).options.explanation)}
    for condition in config.conditions:
        asked |= {str(options["explanation"]) for options in condition.options.values() if "explanation" in options}
    if asked - {"none"}:
        return ""
    return f'{study.slug}: it does not ask for reasons; set explanation = "all" or a share in [instrument.options]'


def reasons_of(study: Study, *, condition: Sequence[str] = ()) -> list[Reason]:
    """Of every counted answer whose person was asked for reasons, in the order of stages and plans.

    Raises:
        StateRefused: nobody was asked yet.
        HunchError: no such condition.
    """
    levels = read_condition(study, condition)
    threshold = belief_update_of(study).options.threshold
    reasons = []
    for stage in study.main_stages():
        stage.study = study
        rows = with_answers(counting([stage]).filter(responses__explanation__isnull=False), study)
        rows = rows.prefetch_related(*relations_of(study)).order_by("slot__number").distinct()
        reasons += [_reason(row, threshold) for row in rows.iterator(500) if has_levels(row, levels)]
    if not reasons:
        raise StateRefused(f"{study.slug}: nobody has been asked for reasons yet")
    return reasons


def _reason(answer: Assignment, threshold: int) -> Reason:
    pair, beliefs = answer.slot.item.pair, beliefs_of(answer)
    change = (beliefs.posterior or 0) - (beliefs.prior or 0)
    (own,) = [response.explanation for response in answer.responses.all() if hasattr(response, "explanation")]
    return Reason(
        answer=f"s{answer.slot.stage.index}n{answer.slot.number}",
        outcome=NO_EVIDENCE if pair.evidence is None else OUTCOMES[0] if pair.outcome else OUTCOMES[1],
        change="kept" if abs(change) <= threshold else "raised" if change > 0 else "lowered",
        prior=beliefs.prior or 0,
        posterior=beliefs.posterior or 0,
        evidence=pair.evidence.plain if pair.evidence else "",
        target=pair.target.plain,
        evidence_task=pair.evidence.task.name if pair.evidence else "",
        target_task=pair.target.task.name,
        text=own.text.strip(),
        explanation=own.pk,
    )
