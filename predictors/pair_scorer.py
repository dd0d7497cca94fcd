"""The fast pair scorer: whole-number factors that rank all 2 N (N - 1) pairs of a bank nearly as a predictor does.

It reads pairs of the belief update alone, so the predictor that it follows must have been trained on pairs.

Light at import: needs numpy and safetensors; torch comes with the first predictor that is scored or embedded. Hands
over plain integer arrays and knows nothing of who streams them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence, Sized
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypedDict

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from predictors import training
from predictors.artifacts import file_digest
from predictors.errors import CheckpointError, PredictorError
from predictors.evaluation.intervals import percentile_interval
from predictors.pair_scorer_fit import IndexedPairs, QuestionEmbeddings, check_rank, learn
from predictors.pairs import Pair, Progress

FORMAT = 2
# Beyond these odds a probability in float32 says no more than that it is near 0 or 1.
_MIN_PROBABILITY = 1e-6
_SCORED_AT_ONCE = 2**14
_MAX_IN_A_TABLE = 2**22


ScorePairs = Callable[[IndexedPairs], NDArray[np.float32]]


class Questions(NamedTuple):
    """The N questions of a bank in its fixed order: plain texts, and the task of each."""

    texts: Sequence[str]
    tasks: Sequence[str]


class Fidelity(TypedDict):
    """How well the scorer ranks n pairs as the predictor does; intervals are percentile bootstrap ones over pairs.

    spearman: rank correlation, None where either side is constant. top_decile_recall: the share of the predictor's top
    tenth that lies in the scorer's top two tenths; pairs tied at a cut count as inside it.
    """

    n: int
    spearman: float | None
    spearman_interval: list[float] | None
    top_decile_recall: float
    top_decile_recall_interval: list[float]


@dataclass(frozen=True, eq=False)
class PairScorer:
    """Scores of all pairs in factored form; first axis of every factor: outcome 0 (incorrect), 1 (correct).

    score(e, t, o) = sum over k of evidence[o, e, k] * target[o, t, k] + evidence_bias[o, e] + target_bias[o, t]

    evidence, target: int8 (2, N, rank), |v| <= 127. evidence_bias, target_bias: int32 (2, N). No score reaches 2^24.
    unit: `unit` * score is about the predictor's logit. scored: ranks (int64, increasing) of the pairs it was learnt
    from, each 2 * (evidence * (N - 1) + target - [target > evidence]) + outcome. unseen: the questions (int64,
    increasing) that were in none of them. held_out_r2: see `pair_scorer_fit.Learned`.
    """

    evidence: NDArray[np.int8]
    target: NDArray[np.int8]
    evidence_bias: NDArray[np.int32]
    target_bias: NDArray[np.int32]
    unit: float
    scored: NDArray[np.int64]
    unseen: NDArray[np.int64]
    penalty: float | None = None
    held_out_r2: float | None = None

    @property
    def n_questions(self) -> int:
        return int(self.evidence.shape[1])

    @property
    def rank(self) -> int:
        return int(self.evidence.shape[2])

    def of(self, pairs: IndexedPairs) -> NDArray[np.int64]:
        """The scores of n pairs, int64 (n,)."""
        scores = np.empty(len(pairs.evidence), dtype=np.int64)
        for start in range(0, len(scores), _SCORED_AT_ONCE):
            rows = slice(start, start + _SCORED_AT_ONCE)
            evidence, target, outcome = (column[rows] for column in pairs)
            scores[rows] = np.einsum(
                "ij,ij->i",
                self.evidence[outcome, evidence].astype(np.int64),
                self.target[outcome, target].astype(np.int64),
            )
            scores[rows] += self.evidence_bias[outcome, evidence] + self.target_bias[outcome, target]
        return scores

    def save(self, file: Path | str) -> str:
        """Write everything into one safetensors file; returns its SHA-256, equal for equal content."""
        arrays = {name: np.ascontiguousarray(getattr(self, name)) for name in _ARRAYS}
        numbers = {"unit": self.unit, "penalty": self.penalty, "held_out_r2": self.held_out_r2}
        # One entry: safetensors writes several in no fixed order.
        save_file(arrays, file, metadata={"pair_scorer": json.dumps({"format": FORMAT, **numbers}, sort_keys=True)})
        return file_digest(Path(file))

    @classmethod
    def load(cls, file: Path | str) -> PairScorer:
        """Read back what `save` wrote.

        Raises:
            CheckpointError: the file is missing, damaged or of another kind.
        """
        try:
            with safe_open(file, framework="numpy") as stored:
                numbers = json.loads((stored.metadata() or {})["pair_scorer"])
                if numbers.pop("format") != FORMAT:
                    raise CheckpointError(f"{file}: was written by another version; distil the predictor again.")
                return cls(**{name: stored.get_tensor(name) for name in _ARRAYS}, **numbers)
        except (OSError, SafetensorError, KeyError, ValueError) as exc:
            if isinstance(exc, CheckpointError):
                raise
            raise CheckpointError(f"{file}: is no pair scorer that can be read; distil the predictor again.") from exc


_ARRAYS = ("evidence", "target", "evidence_bias", "target_bias", "scored", "unseen")


def distil(
    *,
    folders: Sequence[Path | str],
    questions: Questions,
    rng: np.random.Generator,
    n_pairs: int = 12_000,
    rank: int = 64,
    unseen_share: float = 0.05,
    embeddings: QuestionEmbeddings | None = None,
    score: ScorePairs | None = None,
    progress: Progress | None = None,
) -> PairScorer:
    """A fast scorer of all pairs that ranks them as the predictor saved in `folders` does.

    Scores `n_pairs` uniform pairs with the predictor (all there are, in a small bank, but for a fifth kept for
    `fidelity`) and learns from them; `unseen_share` of the questions are in none of these pairs, so that fidelity can
    be measured on questions never seen. `rank`: factors of the learnt part; one for each task comes on top.
    `embeddings`: those of `question_embeddings` where they were computed before. `score`: the predictor's chances of
    pairs where somebody else asks it, for instance on several machines. `progress` counts embedded questions,
    then scored pairs, then steps of the fit.

    Raises:
        PredictorError: fewer than 5 questions, texts and tasks of unlike length, or a number out of range.
        CheckpointError: a folder is missing or altered. Stopped: `progress` returned False.
    """
    n = _count(questions)
    if not 0 <= unseen_share <= 0.5:
        raise PredictorError(f"unseen_share: {unseen_share!r} is not a share between 0 and 0.5 of the questions.")
    if n_pairs < 20:
        raise PredictorError(f"n_pairs: {n_pairs} is not 20 or more.")
    check_rank(rank)
    unseen = np.sort(rng.choice(n, size=round(unseen_share * n), replace=False))
    seen = np.setdiff1d(np.arange(n), unseen)
    most = 2 * len(seen) * (len(seen) - 1) * 4 // 5
    pairs = _uniform(seen, min(n_pairs, most), rng, n_questions=n)
    if embeddings is None:
        embeddings = question_embeddings(folders=folders, questions=questions, progress=progress)
    learned = learn(
        embeddings=embeddings,
        tasks=questions.tasks,
        pairs=pairs,
        logits=_logits(_scores(pairs, folders, questions, score, progress)),
        rank=rank,
        rng=rng,
        progress=progress,
    )
    return PairScorer(**learned._asdict(), scored=np.sort(_ranks(pairs, n)), unseen=unseen)


def question_embeddings(
    *, folders: Sequence[Path | str], questions: Questions, progress: Progress | None = None
) -> QuestionEmbeddings:
    """Embeddings of the N questions by the predictor's own networks, or fixed ones; see `embed_questions`."""
    from predictors.pair_scorer_embeddings import embed_questions

    return embed_questions(folders, questions.texts, progress)


def fidelity(
    scorer: PairScorer,
    *,
    folders: Sequence[Path | str],
    questions: Questions,
    rng: np.random.Generator,
    n_pairs: int = 10_000,
    n_unseen: int = 4_000,
    samples: int = 1000,
    outcome: NDArray[np.integer] | None = None,
    score: ScorePairs | None = None,
    progress: Progress | None = None,
) -> dict[str, Fidelity | None]:
    """How well the scorer ranks pairs as the predictor saved in `folders` does.

    `uniform`: on `n_pairs` fresh pairs, uniform over all that it was not learnt from. `unseen_questions`: on `n_unseen`
    pairs of two questions that were in no scored pair; None where fewer than two questions were left out. Small banks
    give all they have. Intervals hold for these questions: pairs are what is drawn again, `samples` times. `outcome`:
    the one that each question has as evidence (N,), where only such pairs can be drawn; fidelity is then that of these.
    `score`: as in `distil`.

    Raises:
        PredictorError: another bank than the scorer's, or no fresh pair is left. CheckpointError, Stopped: as in
            `distil`.
    """
    n = _count(questions)
    if n != scorer.n_questions:
        raise PredictorError(f"questions: there are {n}; the scorer was learnt on {scorer.n_questions}.")
    fidelities: dict[str, Fidelity | None] = {"uniform": None, "unseen_questions": None}
    sets = {"uniform": (np.arange(n), n_pairs), "unseen_questions": (scorer.unseen, n_unseen)}
    for name, (among, size) in sets.items():
        if len(among) < 2 or size < 1:
            continue
        pairs = _uniform(among, size, rng, exclude=scorer.scored, n_questions=n, outcome=outcome)
        predicted = _scores(pairs, folders, questions, score, progress)
        fidelities[name] = agreement(predicted, scorer.of(pairs), rng=rng, samples=samples)
    return fidelities


def agreement(
    predicted: NDArray[np.floating], scores: NDArray[np.integer], *, rng: np.random.Generator, samples: int = 1000
) -> Fidelity:
    """Rank agreement of the predictor's n values with the scorer's n scores, with 95 % bootstrap intervals."""
    if len(predicted) < 2 or len(predicted) != len(scores):
        raise PredictorError(f"scores: {len(scores)} for {len(predicted)} predictions; two and more, one a pair.")
    correlations, recalls = [], []
    for _ in range(samples):
        rows = rng.integers(len(scores), size=len(scores))
        value = _spearman(predicted[rows], scores[rows])
        correlations.append(np.nan if value is None else value)
        recalls.append(_recall(predicted[rows], scores[rows]))
    ends = percentile_interval(correlations)
    return Fidelity(
        n=len(scores),
        spearman=_spearman(predicted, scores),
        spearman_interval=None if ends is None else list(ends),
        top_decile_recall=_recall(predicted, scores),
        top_decile_recall_interval=list(percentile_interval(recalls) or ()),
    )


def _scores(
    pairs: IndexedPairs,
    folders: Sequence[Path | str],
    questions: Questions,
    score: ScorePairs | None,
    progress: Progress | None,
) -> NDArray[np.float32]:
    return training.score(folders, _Texts(questions, pairs), progress) if score is None else score(pairs)


class _Texts(Sized):
    """Indexed pairs as the pairs of texts that a predictor reads, made when asked for."""

    def __init__(self, questions: Questions, pairs: IndexedPairs) -> None:
        self.questions, self.pairs = questions, pairs

    def __len__(self) -> int:
        return len(self.pairs.evidence)

    def __iter__(self) -> Iterator[Pair]:
        texts, tasks = self.questions
        for evidence, target, outcome in zip(*(column.tolist() for column in self.pairs), strict=True):
            yield Pair(texts[evidence], texts[target], tasks[evidence], tasks[target], outcome)


def _count(questions: Questions) -> int:
    n = len(questions.texts)
    if n != len(questions.tasks):
        raise PredictorError(f"questions: {n} texts and {len(questions.tasks)} tasks; give one task a question.")
    if n < 5:
        raise PredictorError(f"questions: a bank of {n} has too few pairs to learn from; score them all.")
    return n


def _logits(probabilities: NDArray[np.float32]) -> NDArray[np.float64]:
    p = np.clip(probabilities.astype(np.float64), _MIN_PROBABILITY, 1 - _MIN_PROBABILITY)
    return np.log(p / (1 - p))


def _ranks(pairs: IndexedPairs, n_questions: int) -> NDArray[np.int64]:
    evidence, target, outcome = pairs
    return (evidence * (n_questions - 1) + target - (target > evidence)) * 2 + outcome


def _from_ranks(ranks: NDArray[np.int64], n_questions: int) -> IndexedPairs:
    ordered, outcome = np.divmod(ranks, 2)
    evidence, others = np.divmod(ordered, n_questions - 1)
    return IndexedPairs(evidence, others + (others >= evidence), outcome)


def _uniform(
    among: NDArray[np.int64],
    size: int,
    rng: np.random.Generator,
    *,
    n_questions: int,
    exclude: NDArray[np.int64] | None = None,
    outcome: NDArray[np.integer] | None = None,
) -> IndexedPairs:
    """Up to `size` different pairs of questions in `among`, uniform without replacement, in random order.

    `exclude`: ranks, in the bank of `n_questions`, of pairs that may not be drawn. `outcome` (n_questions,): of each
    question as evidence, where pairs with the other one may not be drawn either.
    """
    universe = 2 * len(among) * (len(among) - 1)
    barred = np.empty(0, dtype=np.int64) if exclude is None else exclude

    def allowed(local: NDArray[np.int64]) -> NDArray[np.int64]:
        pairs = _from_ranks(local, len(among))
        if outcome is not None:
            happened = outcome[among[pairs.evidence]] == pairs.outcome
            pairs = IndexedPairs(*(column[happened] for column in pairs))
        ranks = _ranks(IndexedPairs(among[pairs.evidence], among[pairs.target], pairs.outcome), n_questions)
        return ranks[~np.isin(ranks, barred)]

    if universe <= _MAX_IN_A_TABLE:
        ranks = rng.permutation(allowed(np.arange(universe)))[:size]
    else:
        # The first distinct ones of an endless sequence of independent draws are a sample without replacement.
        ranks = np.empty(0, dtype=np.int64)
        while len(ranks) < size:
            ranks = np.concatenate([ranks, allowed(rng.integers(universe, size=size))])
            _, first = np.unique(ranks, return_index=True)
            ranks = ranks[np.sort(first)][:size]
    if not len(ranks):
        raise PredictorError("questions: every pair of them was scored already, so none is left to measure on.")
    return _from_ranks(ranks, n_questions)


def _spearman(first: NDArray[np.number], second: NDArray[np.number]) -> float | None:
    from scipy.stats import rankdata

    ranks = [rankdata(values) for values in (first, second)]  # Equal values share the mean of their ranks.
    centred = [values - values.mean() for values in ranks]
    size = float(np.sqrt((centred[0] @ centred[0]) * (centred[1] @ centred[1])))
    return float(centred[0] @ centred[1]) / size if size > 0 else None


def _recall(predicted: NDArray[np.floating], scores: NDArray[np.integer]) -> float:
    """The share of the highest tenth of `predicted` that lies in the highest two tenths of `scores`."""
    n = len(scores)
    tenth, two_tenths = max(1, n // 10), max(1, n // 5)
    top = predicted >= np.partition(predicted, n - tenth)[n - tenth]
    chosen = scores >= np.partition(scores, n - two_tenths)[n - two_tenths]
    return float(chosen[top].mean())
