"""What instruments share whose items are ordered pairs of questions with an outcome: scores of all pairs in factored
form, and draws from them. A subclass says how its rows and keys name a pair.
"""

from abc import abstractmethod
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import bandit
from bandit.candidates import Pairs, rank_of
from bandit.designs import Design, EpsilonGreedy
from bandit.factored import FactoredScores
from survey.contracts.instruments import BlockProgress, Pairing, StreamedDraw
from survey.models import Question
from survey.services.base import compute


class QuestionPairs(Pairing):
    """The pairs are those of `bandit.candidates`, with the same ranks. Scores are `FactoredScores` in one array."""

    @abstractmethod
    def rows_of_pairs(self, pairs: Pairs) -> np.ndarray:
        """Pairs over the questions as candidate rows, in order."""

    @abstractmethod
    def pairs_of_keys(self, keys: Collection[str], questions: Sequence[Question]) -> Pairs:
        """The pairs over these questions that the keys name, in any order. Keys of other items are ignored."""

    def outcome_of_evidence(self, questions: Sequence[Question]) -> np.ndarray | None:
        """The real outcome of each question as evidence, int8 (N,), if only pairs with real outcomes are candidates;
        None if pairs with either outcome are."""
        return None

    def ranks_of(self, keys: Collection[str], questions: Sequence[Question]) -> np.ndarray:
        ranks = np.unique(rank_of(self.pairs_of_keys(keys, questions), len(questions)))
        happened = self.outcome_of_evidence(questions)
        return ranks if happened is None else ranks[happened[ranks // 2 // (len(questions) - 1)] == ranks % 2]

    def rows_at(self, ranks: np.ndarray, questions: Sequence[Question]) -> np.ndarray:
        return self.rows_of_pairs(bandit.pair_from_rank(ranks, len(questions)))

    def score_all(
        self,
        *,
        folders: Sequence[Path],
        score: Callable[[np.ndarray], np.ndarray],
        questions: Sequence[Question],
        n_scored: int,
        rank: int,
        rng: np.random.Generator,
        fidelity_rng: np.random.Generator,
        progress: Callable[[int, int, str], bool | None],
    ) -> tuple[np.ndarray, dict[str, Any]]:
        # Imported here: only workers that compute have it, and the web side imports this module.
        from predictors import pair_scorer

        bank = pair_scorer.Questions(
            texts=[question.plain for question in questions], tasks=[question.task.name for question in questions]
        )
        happened = self.outcome_of_evidence(questions)

        def score_pairs(pairs: pair_scorer.IndexedPairs) -> np.ndarray:
            evidence, target = pairs.evidence.astype(np.int32), pairs.target.astype(np.int32)
            return score(self.rows_of_pairs(Pairs(evidence, target, pairs.outcome.astype(np.int8))))

        how: dict[str, Any] = {"folders": folders, "questions": bank, "score": score_pairs, "progress": progress}
        scorer = pair_scorer.distil(n_pairs=n_scored, rank=rank, rng=rng, **how)
        fidelity = pair_scorer.fidelity(scorer, rng=fidelity_rng, outcome=happened, **how)
        factors = FactoredScores(
            evidence=scorer.evidence,
            target=scorer.target,
            evidence_bias=scorer.evidence_bias,
            target_bias=scorer.target_bias,
            happened=happened,
        )
        return packed(factors), {"scored_pairs": len(scorer.scored), "rank": scorer.rank, **fidelity}

    def scores_at(self, scores: np.ndarray, ranks: np.ndarray) -> np.ndarray:
        factors = unpacked(scores)
        return factors.of(bandit.pair_from_rank(ranks, factors.n_questions))

    def shortlist(
        self,
        scores: np.ndarray,
        *,
        size: int,
        rng: np.random.Generator,
        progress: BlockProgress | None = None,
    ) -> np.ndarray:
        with compute.workers() as workers:
            return bandit.shortlist(unpacked(scores, progress), size=size, rng=rng, **workers)

    def draw(
        self,
        scores: np.ndarray,
        *,
        design: Design,
        n: int,
        questions: Sequence[Question],
        rng: np.random.Generator,
        exclude: Collection[str] = (),
        shortlist: tuple[np.ndarray, np.ndarray] | None = None,
        responses_per_item: int = 1,
        progress: BlockProgress | None = None,
    ) -> StreamedDraw:
        factors, excluded = unpacked(scores, progress), self.ranks_of(exclude, questions)
        if shortlist is not None and isinstance(design, EpsilonGreedy):
            ranks, rescored = shortlist
            drawn = bandit.draw_rescored(
                ranks=ranks,
                rescored=rescored,
                # The design says how many of a list are its top, for a full list and for a shortlist.
                chosen=design.ends(len(ranks)).highest,
                n=n,
                n_questions=factors.n_questions,
                rng=rng,
                epsilon=design.epsilon,
                floor=design.floor,
                exclude=excluded,
                outcome=factors.happened,
                responses_per_item=responses_per_item,
            )
        else:
            with compute.workers() as workers:
                drawn = bandit.draw_exhaustively(
                    design=design,
                    n=n,
                    scores=factors,
                    rng=rng,
                    exclude=excluded,
                    **workers,
                    responses_per_item=responses_per_item,
                )
        return StreamedDraw(
            rows=self.rows_of_pairs(drawn.pairs),
            stratum=drawn.stratum,
            inclusion_probability=drawn.inclusion_probability,
            strata=drawn.strata,
            replicate=drawn.replicate,
        )


def packed(factors: FactoredScores) -> np.ndarray:
    """Factors as one int32 array (2, N, 2 rank + 2): evidence, target, and the two biases; and, where outcomes really
    happened, one column more with the outcome of each question."""
    biases = np.stack([factors.evidence_bias, factors.target_bias], axis=2)
    parts: list[np.ndarray] = [factors.evidence, factors.target, biases]
    if factors.happened is not None:
        parts.append(np.broadcast_to(factors.happened[None, :, None], (2, factors.n_questions, 1)))
    return np.concatenate(parts, axis=2, dtype="<i4")


def unpacked(array: np.ndarray, progress: BlockProgress | None = None) -> FactoredScores:
    """The factors of an array that `packed` made. `progress`: called after each block of a pass over all pairs."""
    rank = (array.shape[2] - 2) // 2
    return FactoredScores(
        evidence=array[:, :, :rank],
        target=array[:, :, rank : 2 * rank],
        evidence_bias=array[:, :, 2 * rank],
        target_bias=array[:, :, 2 * rank + 1],
        happened=array[0, :, -1] if array.shape[2] % 2 else None,
        progress=progress,
    )
