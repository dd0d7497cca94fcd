"""Learning whole-number factors that rank pairs as a predictor does. Numpy alone: knows no texts and no networks.

A predictor's logit is modelled as an intercept and an effect of the same task, by outcome, plus a bilinear form in
what is known of the evidence question and of the target question: their embeddings and their tasks. The form is a ridge
regression on products of both sides' features, solved by conjugate gradients without ever forming them; its penalty is
chosen on held-out pairs. The matrix of its values over all questions is then cut to its leading singular directions
and rounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from predictors.errors import PredictorError
from predictors.pairs import Progress, report

# With these no sum of absolute terms reaches 2^24, below which float32 holds every whole number and is exact in any
# order: (512 + 256) * 127^2 + 2 * 2^21 is less.
LARGEST_FACTOR = 127
LARGEST_BIAS = 2**21
LARGEST_RANK = 512
MAX_EXACT_TASKS = 256

_DIRECTIONS = 160
_TASK_SIZE = 1.0
_MAIN_SIZE = 1.0
_CONTRAST = 0.3
_PENALTIES = (3000.0, 1000.0, 300.0, 100.0, 30.0, 10.0, 3.0, 1.0, 0.3)
_HELD_OUT = 0.15
_MIN_SAME_TASK = 5
# Of the length of what is left to solve, over the length of all.
_TOLERANCE = 1e-2
_MAX_STEPS = 200
# Below this share of the logits' variance, what the intercepts and the same task leave over is rounding.
_NOTHING_LEFT = 1e-8
# Rounding next to the scores' own spread; finer steps would only keep noise apart that means nothing.
_FINEST = 1e-4

Floats = NDArray[np.float32]


class IndexedPairs(NamedTuple):
    """n pairs as three int64 arrays (n,): places of evidence and target in the bank, and outcome (1 correct)."""

    evidence: NDArray[np.int64]
    target: NDArray[np.int64]
    outcome: NDArray[np.int64]

    def take(self, rows: NDArray[np.int64]) -> IndexedPairs:
        """Some of the pairs."""
        return IndexedPairs(self.evidence[rows], self.target[rows], self.outcome[rows])


class QuestionEmbeddings(NamedTuple):
    """What is known of N questions: float32 `evidence` (2, N, d), by outcome (0 incorrect), and `target` (N, c)."""

    evidence: Floats
    target: Floats


class Learned(NamedTuple):
    """Whole-number factors, with the meaning of one step of the score (in logits) and how the penalty was chosen.

    evidence, target: int8 (2, N, rank); evidence_bias, target_bias: int32 (2, N); first axis: outcome.
    penalty: the ridge penalty; held_out_r2: its share of the variance explained on held-out pairs, None if nothing was
    left to explain.
    """

    evidence: NDArray[np.int8]
    target: NDArray[np.int8]
    evidence_bias: NDArray[np.int32]
    target_bias: NDArray[np.int32]
    unit: float
    penalty: float | None
    held_out_r2: float | None


def learn(
    *,
    embeddings: QuestionEmbeddings,
    tasks: Sequence[str],
    pairs: IndexedPairs,
    logits: NDArray[np.float64],
    rank: int,
    rng: np.random.Generator,
    progress: Progress | None = None,
) -> Learned:
    """Factors of rank `rank`, and one more for each of up to 256 tasks, from n pairs and their logits (n,).

    Raises:
        PredictorError: lengths that differ, a logit that is not finite, fewer than 20 pairs, a rank out of range.
        Stopped: `progress` returned False.
    """
    n_questions = len(tasks)
    if embeddings.evidence.shape[:2] != (2, n_questions) or len(embeddings.target) != n_questions:
        raise PredictorError(f"embeddings: are not those of {n_questions} questions; embed the same bank.")
    check_rank(rank)
    if len(logits) != len(pairs.evidence) or len(logits) < 20:
        raise PredictorError(f"pairs: {len(pairs.evidence)} with {len(logits)} logits; at least 20, one logit a pair.")
    if not np.isfinite(logits).all():
        raise PredictorError("logits: some are not finite; clip the probabilities before taking logits.")
    task = np.unique(np.asarray(tasks), return_inverse=True)[1]
    fixed = _fixed_effects(pairs, task, logits)
    rest = logits - fixed.of(pairs, task)
    sides = _sides(embeddings, task)
    form, penalty, explained = None, None, None
    if rest.var() > _NOTHING_LEFT * max(logits.var(), np.finfo(np.float32).tiny):
        form, penalty, explained = _fit_form(sides, pairs, rest.astype(np.float32), rng, progress)
    return _rounded(_compressed(fixed, form, sides, rank), fixed, task, penalty, explained)


def check_rank(rank: int) -> None:
    """
    Raises:
        PredictorError: the rank lies outside 1..512.
    """
    if not 1 <= rank <= LARGEST_RANK:
        raise PredictorError(f"rank: {rank} is not between 1 and {LARGEST_RANK}.")


@dataclass(frozen=True)
class _Fixed:
    """An intercept and an effect of the same task, (2,) each, by outcome."""

    intercept: NDArray[np.float64]
    same_task: NDArray[np.float64]

    def of(self, pairs: IndexedPairs, task: NDArray[np.int64]) -> NDArray[np.float64]:
        same = task[pairs.evidence] == task[pairs.target]
        return self.intercept[pairs.outcome] + same * self.same_task[pairs.outcome]


def _fixed_effects(pairs: IndexedPairs, task: NDArray[np.int64], logits: NDArray[np.float64]) -> _Fixed:
    same = task[pairs.evidence] == task[pairs.target]
    intercept, effect = np.full(2, logits.mean()), np.zeros(2)
    for outcome in (0, 1):
        here = pairs.outcome == outcome
        if (here & ~same).any():
            intercept[outcome] = logits[here & ~same].mean()
        # A handful of pairs of one task says too little; the form has the tasks among its features anyway.
        if np.count_nonzero(here & same) >= _MIN_SAME_TASK:
            effect[outcome] = logits[here & same].mean() - intercept[outcome]
    return _Fixed(intercept, effect)


def _sides(embeddings: QuestionEmbeddings, task: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Features of evidence (2, N, p) and target (N, q): a constant, leading directions, and the task."""
    n = len(task)
    hot = np.zeros((n, int(task.max()) + 1), dtype=np.float32)
    hot[np.arange(n), task] = _TASK_SIZE
    constant = np.full((n, 1), _MAIN_SIZE, dtype=np.float32)
    evidence = _directions(embeddings.evidence.reshape(2 * n, -1)).reshape(2, n, -1)
    target = _directions(embeddings.target)
    return (
        np.stack([np.hstack([constant, evidence[outcome], hot]) for outcome in (0, 1)]),
        np.hstack([constant, target, hot]),
    )


def _directions(rows: Floats) -> Floats:
    """The leading principal components of the rows, scaled together so that a row's mean square norm is 1."""
    centred = rows - rows.mean(axis=0)
    values, vectors = np.linalg.eigh((centred.T @ centred).astype(np.float64))
    largest = np.argsort(-values, kind="stable")[:_DIRECTIONS]
    scores = centred @ vectors[:, largest].astype(np.float32)
    norm = float(np.sqrt(np.square(scores, dtype=np.float64).sum() / len(rows)))
    return scores / np.float32(norm) if norm > 0 else scores


@dataclass(frozen=True)
class _Form:
    """The bilinear form for outcome o: shared + sign(o) * contrast, (p, q) each."""

    shared: Floats
    contrast: Floats

    def matrix(self, outcome: int) -> NDArray[np.float64]:
        return (self.shared + (2 * outcome - 1) * self.contrast).astype(np.float64)


class _Rows:
    """n pairs' features, and the products of the ridge regression with their kernel, never formed.

    k(i, j) = <evidence i, evidence j> <target i, target j> (1 + contrast * sign(outcome i) * sign(outcome j))
    """

    def __init__(self, sides: tuple[Floats, Floats], pairs: IndexedPairs) -> None:
        self.evidence = sides[0][pairs.outcome, pairs.evidence]
        self.target = sides[1][pairs.target]
        self.sign = (2 * pairs.outcome - 1).astype(np.float32)

    def form(self, weights: Floats) -> _Form:
        """The primal solution that these dual weights (n,) stand for."""
        return _Form(
            self.evidence.T @ (weights[:, None] * self.target),
            np.float32(_CONTRAST) * (self.evidence.T @ ((weights * self.sign)[:, None] * self.target)),
        )

    def values(self, form: _Form) -> Floats:
        shared = np.einsum("ij,ij->i", self.evidence @ form.shared, self.target)
        return shared + self.sign * np.einsum("ij,ij->i", self.evidence @ form.contrast, self.target)

    def solve(self, values: Floats, penalty: float, start: Floats) -> Floats:
        """Dual weights (n,) of the ridge regression on `values`, by conjugate gradients from `start`."""
        from scipy.sparse.linalg import LinearOperator, cg

        def penalised(weights: Floats) -> Floats:
            return self.values(self.form(weights)) + np.float32(penalty) * weights

        operator = LinearOperator((len(values), len(values)), matvec=penalised, dtype=np.float32)
        weights, _steps_missing = cg(operator, values, x0=start, rtol=_TOLERANCE, maxiter=_MAX_STEPS)
        return np.asarray(weights, dtype=np.float32)


def _fit_form(
    sides: tuple[Floats, Floats],
    pairs: IndexedPairs,
    values: Floats,
    rng: np.random.Generator,
    progress: Progress | None,
) -> tuple[_Form, float, float]:
    """The form, its penalty, and the share of the held-out pairs' variance that this penalty explained."""
    order = rng.permutation(len(values))
    held = max(1, round(_HELD_OUT * len(values)))
    inside, outside = _Rows(sides, pairs.take(order[held:])), _Rows(sides, pairs.take(order[:held]))
    weights = np.zeros(len(values) - held, dtype=np.float32)
    best, loss = _PENALTIES[0], np.inf
    for number, penalty in enumerate(_PENALTIES):
        report(progress, number, len(_PENALTIES) + 1, "fitting the pair scorer")
        weights = inside.solve(values[order[held:]], penalty, weights)
        errors = values[order[:held]] - outside.values(inside.form(weights))
        new_loss = float(np.mean(np.square(errors, dtype=np.float64)))
        if new_loss >= loss:
            break
        best, loss = penalty, new_loss
    everything = _Rows(sides, pairs)
    form = everything.form(everything.solve(values, best, np.zeros(len(values), dtype=np.float32)))
    report(progress, len(_PENALTIES) + 1, len(_PENALTIES) + 1, "fitted the pair scorer")
    return form, best, 1 - loss / max(float(values[order[:held]].var()), np.finfo(np.float64).tiny)


class _Cut(NamedTuple):
    """Low-rank values of the form: `left` and `right` (2, N, rank), and the biases (2, N) with the intercepts."""

    left: NDArray[np.float64]
    right: NDArray[np.float64]
    evidence_bias: NDArray[np.float64]
    target_bias: NDArray[np.float64]


def _compressed(fixed: _Fixed, form: _Form | None, sides: tuple[Floats, Floats], rank: int) -> _Cut:
    """The form over all questions: what one side says alone goes into the biases, the rest into leading directions."""
    n = sides[1].shape[0]
    left, right = np.zeros((2, n, rank)), np.zeros((2, n, rank))
    evidence_bias, target_bias = np.repeat(fixed.intercept[:, None], n, axis=1), np.zeros((2, n))
    if form is None:
        return _Cut(left, right, evidence_bias, target_bias)
    target = sides[1].astype(np.float64)
    target_mean = target.mean(axis=0)
    basis_target, triangle_target = np.linalg.qr(target - target_mean)
    for outcome in (0, 1):
        evidence = sides[0][outcome].astype(np.float64)
        evidence_mean = evidence.mean(axis=0)
        basis, triangle = np.linalg.qr(evidence - evidence_mean)
        matrix = form.matrix(outcome)
        evidence_bias[outcome] += evidence @ (matrix @ target_mean)
        target_bias[outcome] = (evidence_mean @ matrix) @ (target - target_mean).T
        u, size, v = np.linalg.svd(triangle @ matrix @ triangle_target.T, full_matrices=False)
        count = min(rank, len(size))
        left[outcome, :, :count] = basis @ (u[:, :count] * np.sqrt(size[:count]))
        right[outcome, :, :count] = basis_target @ (v[:count].T * np.sqrt(size[:count]))
    return _Cut(left, right, evidence_bias, target_bias)


def _rounded(
    cut: _Cut, fixed: _Fixed, task: NDArray[np.int64], penalty: float | None, explained: float | None
) -> Learned:
    """Whole numbers in the smallest common unit that the bounds on factors and biases allow."""
    largest = [np.abs(side).max(axis=1, keepdims=True) for side in (cut.left, cut.right)]
    # Either side of a direction may be scaled if the other is scaled back: both then use the same range.
    balance = np.sqrt(np.divide(largest[1], largest[0], out=np.ones_like(largest[0]), where=largest[0] > 0))
    left = cut.left * balance
    right = np.divide(cut.right, balance, out=np.zeros_like(cut.right), where=balance > 0)
    biases = (cut.evidence_bias, cut.target_bias)
    spread = sum(float(bias.var()) for bias in biases) + float(np.square(fixed.same_task).max())
    unit = max(
        float((largest[0] * largest[1]).max()) / LARGEST_FACTOR**2,
        float(np.abs(fixed.same_task).max()) / LARGEST_FACTOR**2,
        max(float(np.abs(bias).max()) for bias in biases) / LARGEST_BIAS,
        _FINEST * np.sqrt(spread),
        np.finfo(np.float32).tiny,
    )
    tasks = _largest_tasks(task)
    hot = _same_task_columns(fixed.same_task / unit, task, tasks)
    evidence = np.concatenate([_whole(left / np.sqrt(unit)), hot[0]], axis=2)
    target = np.concatenate([_whole(right / np.sqrt(unit)), hot[1]], axis=2)
    evidence_bias, target_bias = (np.rint(bias / unit).astype(np.int32) for bias in biases)
    used = np.flatnonzero(np.logical_and(evidence.any(axis=(0, 1)), target.any(axis=(0, 1))))
    directions = used if used.size else np.arange(1)
    return Learned(
        np.ascontiguousarray(evidence[:, :, directions]),
        np.ascontiguousarray(target[:, :, directions]),
        evidence_bias,
        target_bias,
        unit,
        penalty,
        explained,
    )


def _whole(values: NDArray[np.float64]) -> NDArray[np.int8]:
    return np.clip(np.rint(values), -LARGEST_FACTOR, LARGEST_FACTOR).astype(np.int8)


def _largest_tasks(task: NDArray[np.int64]) -> NDArray[np.int64]:
    """The tasks of two questions and more, the largest first, as many as get a term of their own."""
    counts = np.bincount(task)
    order = np.argsort(-counts, kind="stable")
    return order[counts[order] > 1][:MAX_EXACT_TASKS]


def _same_task_columns(
    effect: NDArray[np.float64], task: NDArray[np.int64], tasks: NDArray[np.int64]
) -> list[NDArray[np.int8]]:
    """Columns for evidence and target, (2, N, tasks) each, whose product is the effect (2,) of the same task."""
    mine = task[:, None] == tasks
    factors = np.arange(1, LARGEST_FACTOR + 1)
    sides = []
    for side in (0, 1):
        columns = np.zeros((2, *mine.shape), dtype=np.int8)
        for outcome in (0, 1):
            others = np.clip(np.rint(effect[outcome] / factors), -LARGEST_FACTOR, LARGEST_FACTOR)
            best = int(np.argmin(np.abs(others * factors - effect[outcome])))
            columns[outcome, mine] = int(others[best]) if side else int(factors[best])
        sides.append(columns)
    return sides
