"""A belief study's answers as arrays, for the reports on what people expect of language models."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from survey.contracts import instruments
from survey.exceptions import StateRefused
from survey.models import Assignment, Study

from ..instrument import BeliefUpdate
from ..labels import beliefs_of


@dataclass(frozen=True, eq=False)
class BeliefRows:
    """What people expected of a language model on a target question, before and after they saw its outcome on an
    evidence question. Beliefs in percentage points, outcomes 0 or 1, questions and tasks by primary key; n each."""

    prior: np.ndarray
    posterior: np.ndarray
    outcome: np.ndarray
    evidence: np.ndarray
    target: np.ndarray
    target_task: np.ndarray


def belief_rows(assignments: Sequence[Assignment]) -> BeliefRows:
    """Beliefs and questions of n complete answers, all with evidence, in order."""
    beliefs = [beliefs_of(answer) for answer in assignments]
    pairs = [answer.slot.item.pair for answer in assignments]
    return BeliefRows(
        prior=np.array([belief.prior for belief in beliefs], dtype=np.float64),
        posterior=np.array([belief.posterior for belief in beliefs], dtype=np.float64),
        outcome=np.array([bool(pair.outcome) for pair in pairs], dtype=np.int64),
        evidence=np.array([pair.evidence_id for pair in pairs], dtype=np.int64),
        target=np.array([pair.target_id for pair in pairs], dtype=np.int64),
        target_task=np.array([pair.target.task_id for pair in pairs], dtype=np.int64),
    )


def belief_update_of(study: Study) -> BeliefUpdate:
    """The study's instrument, which must be the belief update.

    Raises:
        StateRefused: it is a different one.
    """
    instrument = instruments.of_study(study)
    if not isinstance(instrument, BeliefUpdate):
        raise StateRefused(
            f"{study.slug}: {instrument.name} does not ask what people expect of a language model after "
            "evidence; take a "
            "study of the kind belief_update"
        )
    return instrument
