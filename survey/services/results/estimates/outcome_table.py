"""A stage's first outcome by stratum, for commands and pages."""

from dataclasses import dataclass

import numpy as np

from survey.contracts import instruments
from survey.contracts.measures import SHARE
from survey.models import Stage
from survey.services.answers.counting import TRAINED, counted_answers


@dataclass(frozen=True)
class StratumMean:
    """Mean of an outcome over a stratum's answers: a share if the outcome is 0 or 1, else in the outcome's unit."""

    name: str
    answers: int
    share: float


@dataclass(frozen=True)
class StageTable:
    """One line of the table that demo, admin and commands show."""

    stage: int
    answers: int
    share: float
    by_stratum: dict[str, StratumMean]
    is_share: bool
    outcome: str


def outcome_table(stage: Stage) -> StageTable | None:
    """Mean of the instrument's first outcome, over all sampled answers and by stratum; None where there is nothing to
    show. A pilot has a table of its own answers."""
    study = stage.study
    answers = counted_answers(stage, roles=TRAINED, pilots=True)
    estimates = instruments.of_study(study).estimates
    outcomes = estimates.outcomes(answers) if answers and estimates is not None else {}
    if not outcomes:
        return None
    name, values = next(iter(outcomes.items()))
    strata = np.asarray([answer.slot.stratum.name if answer.slot.stratum else "" for answer in answers])
    means = {
        str(own): StratumMean(
            name=str(own), answers=int((strata == own).sum()), share=float(values[strata == own].mean())
        )
        for own in np.unique(strata)
    }
    is_share = estimates is not None and estimates.unit_of(name) == SHARE
    return StageTable(
        stage=stage.index,
        answers=len(answers),
        share=float(values.mean()),
        by_stratum=means,
        is_share=is_share,
        outcome=name,
    )
