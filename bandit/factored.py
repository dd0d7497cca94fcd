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
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from itertools import repeat
from pathlib import Path
from time import monotonic
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bandit.candidates import Pairs, checked_ranks, pair_from_rank, universe_size
from bandit.errors import DesignError, WorkersDiffer, WorkersLost

LARGEST_FACTOR = 127
LARGEST_RANK = 1000
EXACT_BELOW = 2**24
NO_PAIR = np.float32(-EXACT_BELOW)
"""Stands in a block where there is no pair to score; lower than every score."""

# A block's scores, and its columns: of this shape products are fast, and blocks of large banks are no larger.
_BLOCK = 2**20
_COLUMNS = 2**11
_GATHER = 2**14
# Questions on each side of a tile, the part that an executor gets at once: 16 blocks of a large bank. A block alone
# would need as long for its way to another machine as for its products.
_TILE = 2**12
_LOOK_AGAIN = 2.0  # seconds between two looks at an executor that has no result yet
_PATIENCE = 600.0  # seconds without a result after which an executor counts as lost

BlockProgress = Callable[[int, int], object]
"""Called as progress(blocks done, blocks in this pass) in the thread that asked; what it raises ends the pass.

Called again with the same numbers while an executor has no new result.
"""

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
        matches: NDArray[np.bool_] = self.happened[ranks // 2 // (self.n_questions - 1)] == ranks % 2
        return matches

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
        scores = np.empty(len(pairs), dtype=np.int64)
        for start in range(0, len(pairs), _GATHER):
            part = slice(start, start + _GATHER)
            outcome, evidence, target = pairs.outcome[part], pairs.evidence[part], pairs.target[part]
            products = np.einsum(
                "ik,ik->i",
                self.evidence[outcome, evidence].astype(np.float32),
                self.target[outcome, target].astype(np.float32),
            )
            scores[part] = products.astype(np.int64)
            scores[part] += self.evidence_bias[outcome, evidence]
            scores[part] += self.target_bias[outcome, target]
        return scores

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
        both = sum(int(value) * int(other) for value, other in zip(*(side.ravel() for side in sums), strict=True))
        with_itself = int(np.einsum("oik,oki->oi", left, right).sum(where=asked.astype(bool), dtype=np.float64))
        excluded = self.excluded(exclude)
        return both - with_itself - int(self.of(pair_from_rank(excluded, self.n_questions)).sum())

    def map_blocks(
        self,
        work: Callable[[Block], Result],
        *,
        exclude: ArrayLike | None = None,
        threads: int = 1,
        executor: Executor | None = None,
        combine: Callable[[Iterable[Result]], Result] | None = None,
    ) -> Iterator[Result]:
        """`work(block)` for all scores in blocks, results in a fixed order, `NO_PAIR` at the excluded ranks.

        `work` may write into the block's scores and must not keep them. Memory is a few blocks a thread, whatever the
        number of pairs.

        Args:
            exclude: strictly increasing ranks of pairs left out.
            threads: how many blocks are worked on at a time, by threads of this process.
            executor: works instead of these threads, for instance in other processes or on other machines; `threads`
                is then how many tasks it works on at a time. It gets tiles of blocks with all that they need, so
                `work` and its results must be picklable. The results are the same. It is not shut down.
            combine: makes one result of those of a tile where an executor works, so that less is sent back. There is
                then one result a tile.

        Raises:
            DesignError: `threads` is below 1, or ranks do not fit.
            WorkersLost: the executor has lost its workers, or has given no result for ten minutes.
            WorkersDiffer: its workers have other code than this process.
        """
        if threads < 1:
            raise DesignError(f"threads: must be at least 1, not {threads}")
        tiling = _Tiling.of(self)
        excluded = pair_from_rank(self.excluded(exclude), self.n_questions)
        done = 0

        def say() -> None:
            if self.progress is not None:
                self.progress(done, tiling.n_blocks)

        if executor is None:
            outcomes = self._by_threads(work, tiling, excluded, threads)
        else:
            tiles = (self._tile(place, tiling, excluded, work, combine) for place in tiling.tiles())
            outcomes = _by_executor(executor, tiles, threads, say)
        are_tiles = executor is not None and combine is not None
        counts = (sum(1 for _ in tiling.blocks(tile)) for tile in tiling.tiles()) if are_tiles else repeat(1)
        with closing(outcomes) as results:
            for result, count in zip(results, counts, strict=False):
                done += count
                say()
                yield result

    def _by_threads(
        self, work: Callable[[Block], Result], tiling: _Tiling, excluded: Pairs, threads: int
    ) -> Generator[Result, None, None]:
        left, right = self._sides
        # To allocate new memory for every block would take as long as the products.
        own = threading.local()

        def one(place: _Place) -> Result:
            outcome, rows, columns = place
            if not hasattr(own, "scores"):
                own.scores = np.empty(tiling.rows * tiling.columns, dtype=np.float32)
            evidence = tiling.asked[outcome][rows]
            # A slice is a view and copies nothing. Questions with one outcome are scattered and need an index array.
            part = left[outcome, rows] if self.happened is None else left[outcome, evidence]
            return work(
                _block(outcome, evidence, columns.start, part, right[outcome, :, columns], excluded, own.scores)
            )

        return _in_order(one, (block for tile in tiling.tiles() for block in tiling.blocks(tile)), threads)

    def _tile(
        self,
        place: _Place,
        tiling: _Tiling,
        excluded: Pairs,
        work: Callable[[Block], Result],
        combine: Callable[[Iterable[Result]], Result] | None,
    ) -> _Tile[Result]:
        outcome, rows, columns = place
        evidence = tiling.asked[outcome][rows]
        inside = slice(*np.searchsorted(excluded.evidence, (evidence[0], evidence[-1] + 1)))
        target = excluded.target[inside]
        in_tile = (excluded.outcome[inside] == outcome) & (target >= columns.start) & (target < columns.stop)
        return _Tile(
            code=CODE_SHA256,
            outcome=outcome,
            evidence=evidence,
            first_target=columns.start,
            rows=tiling.rows,
            columns=tiling.columns,
            factors=(self.evidence[outcome, evidence], self.target[outcome, columns]),
            biases=(self.evidence_bias[outcome, evidence], self.target_bias[outcome, columns]),
            excluded=Pairs(excluded.evidence[inside][in_tile], target[in_tile], excluded.outcome[inside][in_tile]),
            work=work,
            combine=combine,
        )

    def _largest(self) -> int:
        evidence, target, *biases = (
            np.maximum(part.max(axis=1).astype(np.int64), -part.min(axis=1).astype(np.int64))
            for part in (self.evidence, self.target, self.evidence_bias, self.target_bias)
        )
        return int((np.einsum("ok,ok->o", evidence, target) + biases[0] + biases[1]).max())

    def _with_biases(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Factors (2, N, rank + 2) and (2, rank + 2, N) whose products hold the biases too."""
        return _left(self.evidence, self.evidence_bias), _right(self.target, self.target_bias)


_Place = tuple[int, slice, slice]
"""An outcome, rows (places among the questions with this outcome) and columns (targets)."""


@dataclass(frozen=True, eq=False)
class _Tiling:
    """How the pairs of a bank are cut into tiles, and these into blocks of `rows` x `columns`, in a fixed order."""

    asked: tuple[NDArray[np.integer], NDArray[np.integer]]
    n_questions: int
    rows: int
    columns: int

    @classmethod
    def of(cls, scores: FactoredScores) -> _Tiling:
        n, happened = scores.n_questions, scores.happened
        asked = [np.arange(n) if happened is None else np.flatnonzero(happened == outcome) for outcome in (0, 1)]
        columns = min(n, _COLUMNS)
        return cls((asked[0], asked[1]), n, rows=max(1, _BLOCK // columns), columns=columns)

    @property
    def n_blocks(self) -> int:
        return sum(-(-part.size // self.rows) for part in self.asked) * -(-self.n_questions // self.columns)

    def tiles(self) -> Iterator[_Place]:
        high, wide = (max(step, _TILE // step * step) for step in (self.rows, self.columns))
        for outcome in (0, 1):
            yield from _cut(outcome, slice(0, self.asked[outcome].size), slice(0, self.n_questions), high, wide)

    def blocks(self, tile: _Place) -> Iterator[_Place]:
        return _cut(*tile, self.rows, self.columns)


def _cut(outcome: int, rows: slice, columns: slice, high: int, wide: int) -> Iterator[_Place]:
    for row in range(rows.start, rows.stop, high):
        for column in range(columns.start, columns.stop, wide):
            yield outcome, slice(row, min(row + high, rows.stop)), slice(column, min(column + wide, columns.stop))


@dataclass(frozen=True, eq=False)
class _Tile(Generic[Result]):
    """The factors of some questions with one outcome and of some targets, and what to do with their blocks of scores.

    All of it can be pickled. `factors`: int8, shapes (rows of the tile, rank) and (columns of the tile, rank);
    `biases`: int32; `rows`, `columns`: the shape of a block; `excluded`: the pairs of the tile that are left out.
    """

    code: str
    outcome: int
    evidence: NDArray[np.integer]
    first_target: int
    rows: int
    columns: int
    factors: tuple[NDArray[np.int8], NDArray[np.int8]]
    biases: tuple[NDArray[np.int32], NDArray[np.int32]]
    excluded: Pairs
    work: Callable[[Block], Result]
    combine: Callable[[Iterable[Result]], Result] | None


def worked(tile: _Tile[Result]) -> list[Result]:
    """The results of a tile's blocks, in order, or the one that `combine` makes of them.

    An executor calls this, perhaps on another machine.

    Raises:
        WorkersDiffer: the code here is not that of the process that made the tile.
    """
    if tile.code != CODE_SHA256:
        raise WorkersDiffer(
            "a worker has other code in its package bandit than the process that sends the work; install the same "
            "version of Hunch on both and start the worker again"
        )
    left, right = (
        side(factors, biases) for side, factors, biases in zip((_left, _right), tile.factors, tile.biases, strict=True)
    )
    memory = np.empty(tile.rows * tile.columns, dtype=np.float32)
    results = (
        tile.work(
            _block(
                tile.outcome,
                tile.evidence[rows],
                tile.first_target + columns.start,
                left[rows],
                right[:, columns],
                tile.excluded,
                memory,
            )
        )
        for _outcome, rows, columns in _cut(
            tile.outcome, slice(0, len(left)), slice(0, right.shape[1]), tile.rows, tile.columns
        )
    )
    return list(results) if tile.combine is None else [tile.combine(results)]


def _hash_of_code() -> str:
    known = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        known.update(f"{path.name}\n".encode())
        known.update(hashlib.sha256(path.read_bytes()).digest())
    return known.hexdigest()


# Read when this module is loaded: the files may be replaced while the process goes on with what it has.
CODE_SHA256 = _hash_of_code()
"""A hash of this library's code, which says whether two processes score and count alike."""


def code_sha256() -> str:
    """`CODE_SHA256`, as a function that can be called elsewhere."""
    return CODE_SHA256


def _left(factors: NDArray[np.int8], biases: NDArray[np.int32]) -> NDArray[np.float32]:
    """Factors (..., N, rank) and biases (..., N) of evidence as (..., N, rank + 2), whose products with those of
    targets are scores."""
    side = np.ones((*factors.shape[:-1], factors.shape[-1] + 2), dtype=np.float32)
    side[..., :-2], side[..., -2] = factors, biases
    return side


def _right(factors: NDArray[np.int8], biases: NDArray[np.int32]) -> NDArray[np.float32]:
    """Factors (..., N, rank) and biases (..., N) of targets as (..., rank + 2, N)."""
    side = np.ones((*factors.shape[:-2], factors.shape[-1] + 2, factors.shape[-2]), dtype=np.float32)
    side[..., :-2, :], side[..., -1, :] = factors.swapaxes(-1, -2), biases
    return side


def _block(
    outcome: int,
    evidence: NDArray[np.integer],
    first_target: int,
    left: NDArray[np.float32],
    right: NDArray[np.float32],
    excluded: Pairs,
    memory: NDArray[np.float32],
) -> Block:
    """The scores of these sides, written into `memory`."""
    shape = len(left), right.shape[1]
    scores = np.matmul(left, right, out=memory[: shape[0] * shape[1]].reshape(shape))
    missing = _missing(evidence, first_target, shape[1], excluded, outcome)
    scores[missing] = NO_PAIR
    return Block(outcome, evidence, first_target, scores, missing)


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


def _by_executor(
    executor: Executor, tiles: Iterable[_Tile[Result]], workers: int, waiting: Callable[[], None]
) -> Generator[Result, None, None]:
    """The results of the tiles in their order. Only a few tiles a worker are out at a time, so that neither they nor
    their results pile up.

    Args:
        waiting: called every few seconds without a result; what it raises ends the work.

    Raises:
        WorkersLost: the executor is broken or gives no result.
    """
    ahead: deque[Future[list[Result]]] = deque()
    try:
        for tile in tiles:
            ahead.append(executor.submit(worked, tile))
            if len(ahead) > 2 * workers:
                yield from _waited_for(ahead.popleft(), waiting)
        while ahead:
            yield from _waited_for(ahead.popleft(), waiting)
    except (BrokenExecutor, CancelledError) as exc:
        raise WorkersLost(f"what works on blocks of scores was lost ({type(exc).__name__})") from exc
    finally:
        for future in ahead:
            future.cancel()


def _waited_for(future: Future[list[Result]], waiting: Callable[[], None]) -> list[Result]:
    until = monotonic() + _PATIENCE
    while True:
        try:
            return future.result(timeout=_LOOK_AGAIN)
        except TimeoutError:
            if future.done():  # The work itself raised it, or ended just now.
                return future.result()
            if monotonic() > until:
                future.cancel()
                raise WorkersLost(
                    f"what works on blocks of scores gave no result for {_PATIENCE:.0f} seconds"
                ) from None
        waiting()


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
