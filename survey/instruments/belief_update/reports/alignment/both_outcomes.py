"""Uniform pairs that the last predictor scores under both outcomes, as a job: what the paper's figures 2 and 6 show.

A stage's pool shows each pair under one outcome. Scoring other pairs under both takes as long as a pool, so it is done
when somebody asks.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from django.db import transaction

from bandit.candidates import Pairs, uniform_pool
from survey.contracts import instruments
from survey.contracts.reports import Argument, ArgumentErrors, ReportArguments
from survey.exceptions import StateRefused
from survey.figures.words import integer
from survey.models import CandidateSet, Study
from survey.processes import queues
from survey.services.base import files
from survey.services.base.auditing import record
from survey.services.base.job_kinds import JobKind, Progress, Work
from survey.services.base.rights import Right
from survey.services.base.seeds import generator
from survey.services.plans.candidates import SCORE, candidate_questions, with_column
from survey.services.stages.scoring_parts import RowScorer
from survey.services.stages.training import folders_of

from ..rows import belief_update_of
from .aligning import scored_pool

NAME = "both_outcomes"
PAIRS, MAX_PAIRS = 10_000, 100_000  # The paper has 10,000.


def uniform_pairs(questions: int, size: int, rng: np.random.Generator) -> Pairs:
    """Uniform ordered pairs of this many questions, all of them if there are no more than `size`; each has outcome 1.

    Raises:
        DesignError: there is no pair, or `size` is under 1.
    """
    return uniform_pool(n_questions=questions, size=size, rng=rng, outcome=np.ones(questions, dtype=np.int64)).pairs


def score_both_outcomes(
    study: Study, pairs: int = PAIRS, *, progress: Progress, by: Any = None, via: str = "command"
) -> Mapping[str, Any]:
    """Draw uniform pairs of the study's questions, all of them where there are no more, and score each under both
    outcomes by the predictor that scored last. They are stored in addition to what it scored. Safe to call again: the
    same seed draws the same pairs.

    Raises:
        StateRefused: no predictor has scored a stage yet, its items show one real outcome or have several evidence
            questions, or questions were flagged since.
        Stopped: raised by `progress`.
    """
    instrument = belief_update_of(study)
    if instrument.pairing is None:
        raise StateRefused(f"{study.slug}: its items have several evidence questions; this is about items with one")
    if instrument.real is not None:
        raise StateRefused(
            f"{study.slug}: shows what language models really answered, so that each pair has one outcome and no other"
        )
    stored = scored_pool(study)
    run, stage = stored.predictor_run, stored.stage
    questions = candidate_questions(stored)
    if run is None or questions is None:
        raise StateRefused(f"{study.slug}: questions were flagged since stage {stage.index} was scored")
    drawn = uniform_pairs(len(questions), pairs, generator(stage.seed, "both outcomes"))
    right = instrument.pairing.rows_of_pairs(drawn)
    wrong = right.copy()
    wrong["outcome"] = 0
    rows = np.concatenate([right, wrong])
    scorer = RowScorer(run, folders_of(run), questions, instruments.of_study(stage.study))

    def report(done: int, total: int, text: str) -> bool:
        progress(done, total, text)
        return True

    scored = with_column(rows, SCORE, scorer.of(rows, None, report))
    sha256 = files.store_array(scored)
    with transaction.atomic():
        changed = CandidateSet.objects.filter(pk=stored.pk, predictor_run=run).update(both_outcomes_sha256=sha256)
        if not changed:
            raise StateRefused(f"{study.slug}: stage {stage.index} was scored again meanwhile; ask again")
        record(NAME, stage, by=by, via=via, pairs=len(drawn), both_outcomes_sha256=sha256)
    return {"stage": stage.index, "pairs": len(drawn), "predictor": str(run)}


def _make(work: Work) -> Mapping[str, Any]:
    return score_both_outcomes(
        work.study, int(work.arguments.one("pairs")), progress=work.progress, by=work.asked_by, via="worker"
    )


def _check(study: Study, arguments: ReportArguments) -> None:
    text = arguments.one("pairs")
    if not (text.isascii() and text.isdecimal() and 1 <= int(text) <= MAX_PAIRS):
        raise ArgumentErrors({"pairs": [f"{text!r} is not a whole number from 1 to {integer(MAX_PAIRS)}"]})


KIND = JobKind(
    name=NAME,
    title="Pairs under both outcomes",
    summary=(
        "Uniform pairs are scored under both outcomes by the predictor that scored last, as in the paper's figures 2 "
        "and 6; the report paper then shows them. It asks nobody and changes no plan."
    ),
    right=Right.RUN,
    make=_make,
    arguments=(Argument("pairs", "how many are scored; the paper has 10,000", default=str(PAIRS), label="Pairs"),),
    suits=lambda study: study.instrument == "belief_update",
    check=_check,
    queue=queues.SCORE,
)
