"""Scores of all pairs in factored form: whole numbers, so that they are the same on every machine. Numpy alone.

The score of a pair is a dot product of its two questions' factors plus a bias of each, by outcome. All entries are
integers and every sum of absolute terms stays under 2^24, so float32 arithmetic is exact in any order, whatever the
linear algebra library does, and a plan rebuilds from the factors alone.
"""

from __future__ import annotations

import hashlib
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bandit.candidates import Pairs, checked_ranks, pair_from_rank, universe_size
from bandit.errors import DesignError

LARGEST_FACTOR = 127
LARGEST_RANK = 1000
EXACT_BELOW = 2**24
NO_PAIR = np.float32(-EXACT_BELOW)
"""Stands in a block where there is no pair to score; lower than every score."""

# A block's scores, and its columns: of this shape products are fast, and blocks of large banks are no larger.
_BLOCK = 2**20
_COLUMNS = 2**11
_GATHER = 2**14

BlockProgress = Callable[[int, int], object]
"""Called as progress(blocks done, blocks in this pass) in the thread that asked; what it raises ends the pass."""

Place = TypeVar("Place")
Result = TypeVar("Result")


@dataclass(frozen=True, eq=False)
class Block:
    """Scores of some evidence questions against some targets, for one outcome.

    `evidence`: the questions of the rows, increasing. The columns are the targets from `first_target` on. `scores`:
    float32, shape (rows, columns), `NO_PAIR` at the places `missing` (rows, columns): where both questions are one, and
    at excluded pairs.
    """

    outcome: int
    evidence: NDArray[np.integer]
    first_target: int
    scores: NDArray[np.float32]
    missing: tuple[NDArray[np.integer], NDArray[np.integer]]


@dataclass(frozen=True, eq=False)
class FactoredScores:
    """Integer factors of all 2 N (N - 1) pairs' scores; first axis: outcome 0 (incorrect), 1 (correct).

    score(e, t, o) = sum over k of evidence[o, e, k] * target[o, t, k] + evidence_bias[o, e] + target_bias[o, t]

    `evidence`, `target`: int8, shape (2, N, rank), |v| <= 127, rank <= 1000. The biases: int32, shape (2, N).
    `happened`: int8, shape (N,), the one outcome that each question has as evidence, where outcomes really happened;
    the pairs are then the N (N - 1) with these outcomes, known by the same ranks.
    `progress`: called after each block of every pass over all pairs.
    Raises DesignError for other shapes, and for factors whose scores might pass 2^24, where float32 is not exact.
    """

    evidence: NDArray[np.int8]
    target: NDArray[np.int8]
    evidence_bias: NDArray[np.int32]
    target_bias: NDArray[np.int32]
    happened: NDArray[np.int8] | None = None
    progress: BlockProgress | None = field(default=None, repr=False)
    _sides: tuple[NDArray[np.float32], NDArray[np.float32]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("evidence", "target"):
            object.__setattr__(self, name, _whole(getattr(self, name), np.int8, LARGEST_FACTOR, 3, name))
        for name in ("evidence_bias", "target_bias"):
            object.__setattr__(self, name, _whole(getattr(self, name), np.int32, EXACT_BELOW, 2, name))
        outcomes, questions, rank = self.evidence.shape
        if outcomes != 2 or questions < 2 or not 1 <= rank <= LARGEST_RANK:
            raise DesignError(
                f"evidence: needs 2 outcomes, at least 2 questions and a rank of 1..{LARGEST_RANK}, not the shape "
                f"{self.evidence.shape}"
            )
        for name in ("target", "evidence_bias", "target_bias"):
            expected = self.evidence.shape if name == "target" else (2, questions)
            if getattr(self, name).shape != expected:
                raise DesignError(f"{name}: must have the shape {expected}, not {getattr(self, name).shape}")
        if self.happened is not None:
            object.__setattr__(self, "happened", _whole(self.happened, np.int8, 1, 1, "happened"))
            if self.happened.shape != (questions,) or self.happened.min() < 0:
                raise DesignError(f"happened: give 0 or 1 for each of the {questions} questions")
        largest = self._largest()
        if largest >= EXACT_BELOW:
            raise DesignError(
                f"evidence, target: scores may reach {largest}, and must stay under {EXACT_BELOW} to be exact; "
                "round to smaller factors or biases"
            )
        object.__setattr__(self, "_sides", self._with_biases())

    @property
    def n_questions(self) -> int:
        return int(self.evidence.shape[1])

    @property
    def rank(self) -> int:
        return int(self.evidence.shape[2])

    @property
    def universe_size(self) -> int:
        """How many pairs have a score."""
        return universe_size(self.n_questions) // (1 if self.happened is None else 2)

    def holds(self, ranks: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of these ranks are pairs whose outcome happened: all of them if `happened` is not given."""
        if self.happened is None:
            return np.ones(ranks.shape, dtype=bool)
        found: NDArray[np.bool_] = self.happened[ranks // 2 // (self.n_questions - 1)] == ranks % 2
        return found

    def excluded(self, exclude: ArrayLike | None) -> NDArray[np.int64]:
        """The ranks that are left out, without those that are not a pair here anyway.

        Raises:
            DesignError: ranks outside the bank, or not strictly increasing.
        """
        ranks = excluded_ranks(exclude, self.n_questions)
        return ranks[self.holds(ranks)]

    @cached_property
    def sha256(self) -> str:
        """A hash of shapes and factors, for a stage's manifest."""
        known = hashlib.sha256(f"{self.evidence.shape}".encode())
        for part, kind in (
            (self.evidence, "<i1"),
            (self.target, "<i1"),
            (self.evidence_bias, "<i4"),
            (self.target_bias, "<i4"),
        ):
            known.update(np.ascontiguousarray(part, dtype=kind).tobytes())
        if self.happened is not None:
            known.update(self.happened.astype("<i1").tobytes())
        return known.hexdigest()

    def of(self, pairs: Pairs) -> NDArray[np.int64]:
        """The scores of these pairs, shape (M,)."""
        if len(pairs) and max(int(pairs.evidence.max()), int(pairs.target.max())) >= self.n_questions:
            raise DesignError(
                f"pairs: name a question outside the bank of {self.n_questions}; use indices 0..{self.n_questions - 1}"
            )
        found = np.empty(len(pairs), dtype=np.int64)
        for start in range(0, len(pairs), _GATHER):
            part = slice(start, start + _GATHER)
            outcome, evidence, target = pairs.outcome[part], pairs.evidence[part], pairs.target[part]
            products = np.einsum(
                "ik,ik->i",
                self.evidence[outcome, evidence].astype(np.float32),
                self.target[outcome, target].astype(np.float32),
            )
            found[part] = products.astype(np.int64)
            found[part] += self.evidence_bias[outcome, evidence]
            found[part] += self.target_bias[outcome, target]
        return found

    def negated(self) -> FactoredScores:
        """The scores with the opposite sign."""
        return FactoredScores(
            evidence=-self.evidence,
            target=self.target,
            evidence_bias=-self.evidence_bias,
            target_bias=-self.target_bias,
            happened=self.happened,
            progress=self.progress,
        )

    def total(self, *, exclude: ArrayLike | None = None) -> int:
        """The exact sum of all pairs' scores, without those of the excluded ranks."""
        left, right = self._sides
        asked = np.ones((2, self.n_questions)) if self.happened is None else self.happened == np.arange(2)[:, None]
        # Sums of whole numbers in float64, exact below 2^53. What may pass that is multiplied in Python's integers.
        sums = np.einsum("oik,oi->ok", left, asked, dtype=np.float64), right.sum(axis=2, dtype=np.float64)
        both = sum(int(one) * int(other) for one, other in zip(*(side.ravel() for side in sums), strict=True))
        with_itself = int(np.einsum("oik,oki->oi", left, right).sum(where=asked.astype(bool), dtype=np.float64))
        excluded = self.excluded(exclude)
        return both - with_itself - int(self.of(pair_from_rank(excluded, self.n_questions)).sum())

    def map_blocks(
        self,
        work: Callable[[Block], Result],
        *,
        exclude: ArrayLike | None = None,
        threads: int = 1,
    ) -> Iterator[Result]:
        """`work(block)` for all scores in blocks, results in a fixed order, `NO_PAIR` at the excluded ranks.

        `work` may write into the block's scores and must not keep them. Memory is a few blocks a thread, whatever the
        number of pairs.
        """
        if threads < 1:
            raise DesignError(f"threads: must be at least 1, not {threads}")
        n = self.n_questions
        left, right = self._sides
        excluded = pair_from_rank(self.excluded(exclude), n)
        asked = [np.arange(n) if self.happened is None else np.flatnonzero(self.happened == o) for o in (0, 1)]
        columns = min(n, _COLUMNS)
        rows = max(1, _BLOCK // columns)

        # To allocate new memory for every block would take as long as the products.
        own = threading.local()

        def one(place: tuple[int, int, int]) -> Result:
            outcome, first, first_target = place
            if not hasattr(own, "scores"):
                own.scores = np.empty(rows * columns, dtype=np.float32)
            evidence = asked[outcome][first : first + rows]
            targets = right[outcome, :, first_target : first_target + columns]
            # A slice is a view and copies nothing. Questions with one outcome are scattered and need an index array.
            part = left[outcome, first : first + rows] if self.happened is None else left[outcome, evidence]
            shape = evidence.size, targets.shape[1]
            scores = np.matmul(part, targets, out=own.scores[: shape[0] * shape[1]].reshape(shape))
            missing = _missing(evidence, first_target, shape[1], excluded, outcome)
            scores[missing] = NO_PAIR
            return work(Block(outcome, evidence, first_target, scores, missing))

        places = [
            (outcome, first, first_target)
            for outcome in (0, 1)
            for first in range(0, asked[outcome].size, rows)
            for first_target in range(0, n, columns)
        ]
        with closing(_in_order(one, places, threads)) as results:
            for done, result in enumerate(results, start=1):
                if self.progress is not None:
                    self.progress(done, len(places))
                yield result

    def _largest(self) -> int:
        evidence, target, *biases = (
            np.maximum(part.max(axis=1).astype(np.int64), -part.min(axis=1).astype(np.int64))
            for part in (self.evidence, self.target, self.evidence_bias, self.target_bias)
        )
        return int((np.einsum("ok,ok->o", evidence, target) + biases[0] + biases[1]).max())

    def _with_biases(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Factors (2, N, rank + 2) and (2, rank + 2, N) whose products hold the biases too."""
        left = np.ones((2, self.n_questions, self.rank + 2), dtype=np.float32)
        right = np.ones((2, self.rank + 2, self.n_questions), dtype=np.float32)
        left[:, :, : self.rank], left[:, :, self.rank] = self.evidence, self.evidence_bias
        right[:, : self.rank], right[:, self.rank + 1] = self.target.transpose(0, 2, 1), self.target_bias
        return left, right


def _missing(
    evidence: NDArray[np.integer], first_target: int, columns: int, excluded: Pairs, outcome: int
) -> tuple[NDArray[np.integer], NDArray[np.integer]]:
    """Rows and columns of a block that are no pair: a question with itself, and the excluded pairs, which are in the
    order of their ranks."""
    own = slice(*np.searchsorted(evidence, (first_target, first_target + columns)))
    here = slice(*np.searchsorted(excluded.evidence, (evidence[0], evidence[-1] + 1)))
    target = excluded.target[here] - first_target
    inside = (excluded.outcome[here] == outcome) & (target >= 0) & (target < columns)
    return (
        np.concatenate([np.arange(evidence.size)[own], np.searchsorted(evidence, excluded.evidence[here][inside])]),
        np.concatenate([evidence[own] - first_target, target[inside]]),
    )


def _in_order(work: Callable[[Place], Result], places: Iterable[Place], threads: int) -> Generator[Result, None, None]:
    """`work` at every place, in `threads` threads, results in the order of the places. No thread runs far ahead of who
    reads the results, so that they do not pile up."""
    if threads == 1:
        yield from map(work, places)
        return
    with ThreadPoolExecutor(threads) as pool:
        ahead: deque[Future[Result]] = deque()
        for place in places:
            ahead.append(pool.submit(work, place))
            if len(ahead) > 4 * threads:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()


def excluded_ranks(exclude: ArrayLike | None, n_questions: int) -> NDArray[np.int64]:
    """
    Raises:
        DesignError: ranks outside the bank, or not strictly increasing.
    """
    return checked_ranks([] if exclude is None else exclude, universe_size(n_questions), "exclude", increasing=True)


def _whole(values: ArrayLike, kind: type[np.signedinteger], largest: int, axes: int, field: str) -> NDArray[np.integer]:
    array = np.asarray(values)
    if array.dtype.kind not in "iu" or array.ndim != axes:
        raise DesignError(f"{field}: must be whole numbers on {axes} axes, not {array.dtype} of shape {array.shape}")
    if array.size and (array.min() < -largest or array.max() > largest):
        raise DesignError(f"{field}: must lie in {-largest}..{largest}, not {array.min()}..{array.max()}")
    whole = array.astype(kind)
    whole.setflags(write=False)
    return whole
