"""The belief update's priority `gap`: how far people's stated belief will lie from what language models really do.

People's belief after the evidence is predicted from earlier answers, for each candidate. What models do is their share
that is right on the target, each model counted by how far it shows the outcome that the person would see.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from survey.contracts.instruments import Priority
from survey.exceptions import StateRefused
from survey.models import LanguageModel, ModelAnswer, Study

from .labels import beliefs_of
from .pairing import ROW

if TYPE_CHECKING:
    from survey.models import Assignment, Question

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

PENALTY = 1.0  # of the ridge regression, on standardised columns
DRAWN_IN = 5.0  # answers to a target, or in a task, that count as much as the prediction without them
ANY = 0.5  # a belief of which nothing is known


class GapPriority(Priority):
    """`only`: the language model that items are about; empty where outcomes are hypothetical."""

    name = "gap"
    needs_predictor = False

    def __init__(self, study: Study, *, only: str) -> None:
        self._study, self._only = study, only

    def of(
        self,
        *,
        rows: np.ndarray,
        questions: "Sequence[Question]",
        chances: np.ndarray | None,
        answers: "Sequence[Assignment]",
        rng: np.random.Generator,
    ) -> np.ndarray:
        """As in the contract; fractions from 0 to 1, and 0 where no model's answers bear on a candidate.

        Raises:
            StateRefused: no language model has answered the questions.
        """
        right = rights_of(self._study, questions, only=self._only)
        if not np.isfinite(right).any():
            raise StateRefused(f"{self._study.slug}: {missing(self._study, self._only)}")
        place = {question.pk: index for index, question in enumerate(questions)}
        tasks = np.unique([question.task_id for question in questions], return_inverse=True)[1].reshape(-1)
        lengths = np.array([len(question.plain.split()) for question in questions], dtype=np.float64)
        asked, stated = _answered(answers, place)
        expected = expected_belief(rows, asked, stated, right=right, tasks=tasks, lengths=lengths)
        doing = models_share(rows, right)
        gaps: Floats = np.where(np.isfinite(doing), np.abs(expected - np.nan_to_num(doing)), 0.0)
        return gaps


def missing(study: Study, only: str) -> str:
    """What to do where no language model has answered the study's questions."""
    return (
        f"{only or 'no language model'} has {'not ' if only else ''}answered questions of {study.bank}, and the "
        "priority is the distance to what models really do; `hunch collect_answers` and `hunch import_answers` bring "
        "answers"
    )


def rights_of(study: Study, questions: "Sequence[Question]", *, only: str = "") -> Floats:
    """(L, N) how right each of L language models is on each of N questions; NaN where it has no graded answer."""
    place = {question.pk: index for index, question in enumerate(questions)}
    known = LanguageModel.objects.filter(answers__question__bank=study.bank_id).distinct().order_by("name")
    models = [model for model in known if not only or model.name == only]
    rights = np.full((len(models), len(questions)), np.nan)
    for row, model in enumerate(models):
        answers = ModelAnswer.objects.filter(language_model=model, question__bank=study.bank_id)
        for key, share in answers.by_question().items():
            if key in place:
                rights[row, place[key]] = share
    return rights


def models_share(rows: np.ndarray, right: Floats) -> Floats:
    """What language models really do on the target of each of M candidates, (M,): the mean of (L, N) `right` there,
    each model counted by how far it shows the candidate's outcome on the evidence. NaN where no answer bears on it.
    """
    above, below = np.zeros(len(rows)), np.zeros(len(rows))
    for own in right:
        seen = np.where(rows["outcome"] == 1, own[rows["evidence"]], 1 - own[rows["evidence"]])
        counts = np.where(rows["evidence"] < 0, 1.0, np.nan_to_num(seen))
        target = own[rows["target"]]
        counts = np.where(np.isfinite(target), counts, 0.0)
        above += counts * np.nan_to_num(target)
        below += counts
    return np.divide(above, below, out=np.full(len(rows), np.nan), where=below > 0)


def expected_belief(
    rows: np.ndarray, asked: np.ndarray, stated: Floats, *, right: Floats, tasks: Ints, lengths: Floats
) -> Floats:
    """The belief after the evidence that people will state, for M candidates, from n answers; fractions (M,).

    A ridge regression on the outcome seen, models' share right on target and evidence, the target's length and whether
    both are of one task; to it are added the mean residuals by the target's task and by the target, drawn in by count.

    Args:
        rows: (M,), asked: (n,) candidates and what was asked, as `ROW`. stated: (n,) fractions.
        right: (L, N). tasks: (N,) numbers. lengths: (N,) words.
    """
    if not len(asked):
        return np.full(len(rows), ANY)
    hard = _mean_right(right)
    own, all_of = (_columns(part, hard, tasks, lengths) for part in (asked, rows))
    middle, sd = own.mean(axis=0), own.std(axis=0)
    sd = np.where(sd > 0, sd, 1.0)
    own, all_of = (own - middle) / sd, (all_of - middle) / sd
    mean = float(stated.mean())
    slopes = np.linalg.solve(own.T @ own + PENALTY * np.eye(own.shape[1]), own.T @ (stated - mean))
    residual = stated - mean - own @ slopes
    belief = mean + all_of @ slopes
    for group in (tasks, np.arange(len(tasks))):
        k = int(group.max()) + 1
        count = np.bincount(group[asked["target"]], minlength=k)
        effect = np.bincount(group[asked["target"]], weights=residual, minlength=k) / (count + DRAWN_IN)
        residual = residual - effect[group[asked["target"]]]
        belief += effect[group[rows["target"]]]
    return np.clip(belief, 0.0, 1.0)


def _answered(answers: "Sequence[Assignment]", place: dict[int, int]) -> tuple[np.ndarray, Floats]:
    """What was asked and the belief stated then, of those answers whose questions are still among the study's."""
    asked, stated = [], []
    for answer in answers:
        pair, belief = answer.slot.item.pair, beliefs_of(answer).posterior
        evidence = -1 if pair.evidence_id is None else place.get(pair.evidence_id)
        target = place.get(pair.target_id)
        if belief is None or evidence is None or target is None:
            continue
        asked.append((evidence, target, -1 if pair.outcome is None else int(pair.outcome)))
        stated.append(belief / 100)
    return np.array(asked, dtype=[(name, ROW[name]) for name in ("evidence", "target", "outcome")]), np.array(stated)


def _mean_right(right: Floats) -> Floats:
    """(N,) over models; where none is known, the mean of the others."""
    known = np.isfinite(right)
    count = known.sum(axis=0)
    sums = np.where(known, right, 0.0).sum(axis=0)
    middle = float(sums.sum() / count.sum()) if count.any() else ANY
    return np.divide(sums, count, out=np.full(right.shape[1], middle), where=count > 0)


def _columns(rows: np.ndarray, hard: Floats, tasks: Ints, lengths: Floats) -> Floats:
    has_evidence = rows["evidence"] >= 0
    seen = np.where(has_evidence, np.where(rows["outcome"] == 1, 1.0, -1.0), 0.0)
    evidence = np.where(has_evidence, hard[rows["evidence"]] - 0.5, 0.0)
    alike = has_evidence & (tasks[rows["evidence"]] == tasks[rows["target"]])
    columns = (
        seen,
        hard[rows["target"]],
        evidence,
        seen * evidence,
        seen * alike,
        np.log(np.maximum(lengths[rows["target"]], 1.0)),
    )
    return np.stack(columns, axis=1)
