"""Every stage's predictor on the same held-out answers: the paper's figure 3, right, whose lines can be compared.

The leaderboard judges a predictor by the answers of the next stage, so that each has other answers. Here all of them
are judged by the answers of all holdouts, which train none of them. Scoring them again takes a predictor's files and
torch, so it is a job, done when somebody asks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from survey.contracts import instruments
from survey.exceptions import StateRefused
from survey.models import Assignment, PredictorRun, Slot, Study
from survey.processes import queues
from survey.services.answers.counting import (
    design_weights,
    frozen_answers,
    frozen_stages,
    subject_keys,
    trained_subjects,
)
from survey.services.base import files
from survey.services.base.auditing import record
from survey.services.base.job_kinds import JobKind, Work
from survey.services.base.rights import Right
from survey.services.plans.candidates import SCORE
from survey.services.stages.runs import ready_run
from survey.services.stages.training import scores_of

from ..rows import belief_update_of

NAME = "held_out_scores"
ROW = np.dtype([("item", np.int64), (SCORE, np.float64)])


@dataclass(frozen=True, eq=False)
class HeldOut:
    """The answers to held-out items that no predictor of the study has learnt from, and the predictors, by stage.

    Attributes:
        answers: n answers that a predictor could learn from.
        weights: float64 (n,), by each stage's design, so that every answer counts once on average.
        runs: the trained predictors, one for each stage after which one was trained.
    """

    answers: Sequence[Assignment]
    weights: NDArray[np.float64]
    runs: Sequence[PredictorRun]


def held_out_of(study: Study) -> HeldOut:
    """
    Raises:
        StateRefused: no predictor is trained, no frozen stage has a holdout, or nothing is left of the holdouts.
    """
    stages = frozen_stages(study)
    runs = [run for run in map(ready_run, stages) if run is not None and run.members]
    if not runs:
        raise StateRefused(f"{study.slug}: no predictor has been trained yet")
    learning = instruments.learning_of(instruments.of_study(study))
    parts = [frozen_answers(stage, roles=[Slot.Role.HOLDOUT]) for stage in stages]
    if not any(parts):
        raise StateRefused(
            f"{study.slug}: no frozen stage has answers to a holdout; give a stage one in the study file (`holdout`)"
        )
    seen: set[frozenset[Any]] = set()
    for run in runs:
        seen |= trained_subjects(run.stage, held_out_through=run.held_out_through)
    answers: list[Assignment] = []
    weights: list[NDArray[np.float64]] = []
    for part in parts:
        keys = subject_keys([answer.slot.item for answer in part], study)
        fit = learning.learnable(part).tolist()
        unseen = [answer for answer, key, is_fit in zip(part, keys, fit, strict=True) if is_fit and key not in seen]
        if unseen:
            answers += unseen
            of_design = design_weights(unseen)
            weights.append(of_design / of_design.mean())
    if not answers:
        raise StateRefused(f"{study.slug}: predictors have learnt from the pair of every held-out answer")
    return HeldOut(answers, np.concatenate(weights), runs)


def score_held_out(work: Work) -> Mapping[str, Any]:
    """Score the held-out items by every stage's predictor, and keep the scores with each. Safe to do again.

    Raises:
        StateRefused: as `held_out_of`. Stopped: raised by the job's progress.
    """
    study = work.study
    belief_update_of(study)
    held_out = held_out_of(study)
    first_answers = {answer.slot.item_id: answer for answer in reversed(held_out.answers)}
    examples = list(first_answers.values())
    total = len(held_out.runs) * len(examples)
    for place, run in enumerate(held_out.runs):

        def report(done: int, _of: int, text: str, place: int = place) -> bool:
            work.progress(place * len(examples) + done, total, text)
            return True

        rows = np.zeros(len(examples), dtype=ROW)
        rows["item"] = list(first_answers)
        rows[SCORE], _sources = scores_of(run, examples, study, report)
        run.held_out_sha256 = files.store_array(rows)
        run.save(update_fields=["held_out_sha256"])
        record(NAME, run.stage, by=work.asked_by, via="worker", items=len(rows), held_out_sha256=run.held_out_sha256)
    return {"predictors": [str(run) for run in held_out.runs], "items": len(examples)}


def scored_by_all(held_out: HeldOut) -> tuple[NDArray[np.bool_], list[NDArray[np.float64]]]:
    """Which answers' items every predictor has scored, (n,), and the scores of these by each predictor. Answers that
    were frozen after the job are not among them.

    Raises:
        StateRefused: a predictor has no scores yet.
    """
    if missing := [run for run in held_out.runs if not run.held_out_sha256]:
        slug = missing[0].stage.study.slug
        raise StateRefused(
            f"{missing[0]} has not scored the held-out items; the job held_out_scores does it for every stage's "
            f"predictor (`hunch jobs ask held_out_scores {slug}`)"
        )
    scores = [
        dict(zip(rows["item"].tolist(), rows[SCORE].tolist(), strict=True))
        for rows in (files.load_array(run.held_out_sha256) for run in held_out.runs)
    ]
    items = [answer.slot.item_id for answer in held_out.answers]
    inside = np.array([all(item in by_item for by_item in scores) for item in items], dtype=bool)
    scored = [item for item, is_in in zip(items, inside.tolist(), strict=True) if is_in]
    return inside, [np.array([by_item[item] for item in scored], dtype=np.float64) for by_item in scores]


KIND = JobKind(
    name=NAME,
    title="Every predictor on the held-out answers",
    summary=(
        "The predictor of every stage scores the items of all holdouts, which none of them has learnt from; the report "
        "paper then shows them on the same answers. It asks nobody and changes no plan."
    ),
    right=Right.RUN,
    make=score_held_out,
    suits=lambda study: study.instrument == "belief_update",
    queue=queues.SCORE,
)
