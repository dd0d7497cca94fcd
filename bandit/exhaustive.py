"""Strata and draws over every pair there is, from factored scores. Numpy alone; never holds all scores.

The cut between strata is found exactly: a fixed sample says roughly where it lies, one pass over all scores counts what
is above that window and every whole score inside it. Pairs are then drawn by rejection: uniform pairs are scored one by
one and kept if they fall into the stratum, which is a uniform draw without replacement from the stratum. The pairs that
share the score at a cut belong to the strata at random, in exact numbers.

Where outcomes really happened (`FactoredScores.happened`), half of the pairs do not exist: blocks have only the rows
that happened, and uniform pairs with other outcomes are rejected.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bandit.candidates import Pairs, checked_ranks, pair_from_rank, rank_of, uniform_pool, universe_size
from bandit.designs import (
    Design,
    Ends,
    EpsilonGreedy,
    Uniform,
    checked_scores,
    fitting,
    items_in,
    replicates_of,
)
from bandit.draws import Stratum
from bandit.errors import DesignError
from bandit.factored import EXACT_BELOW, NO_PAIR, Block, FactoredScores, excluded_ranks

_SAMPLE = 2**16
_BINS = 2**20
_CHUNK = 2**14
_MAX_FOR_NUMPY = 10**9  # its hypergeometric draw takes no more
_RARE = 1e-4
"""Below this share of all pairs, those at a cut are collected in one more pass; above, rejection finds them sooner."""


@dataclass(frozen=True)
class Cut:
    """Where the `count` highest scores end: `above` lie over `score`, and `count` - `above` of `tied` at it count too.

    `total` sums the scores of the `count` highest, `highest` is the best of all, `lowest` the worst of all, and
    `next_lower` the best that is not among the `count` highest.
    """

    score: int
    count: int
    above: int
    tied: int
    total: int
    highest: int
    lowest: int
    next_lower: int


@dataclass(frozen=True, eq=False)
class ExhaustiveDraw:
    """n slots in random order, drawn from all pairs; arrays of shape (n,).

    `stratum` (int8) indexes `strata`, `inclusion_probability` (float64) is n_h / N_h over all pairs that could be drawn
    (there is no first phase), `replicate` (int16) counts a pair's slots from 1, `score` is the pair's whole-number
    factored score, None for a uniform draw, and the strata describe all their pairs by it.
    """

    pairs: Pairs
    stratum: NDArray[np.int8]
    inclusion_probability: NDArray[np.float64]
    strata: tuple[Stratum, ...]
    replicate: NDArray[np.int16]
    score: NDArray[np.int64] | None


def find_cut(
    scores: FactoredScores,
    *,
    count: int,
    exclude: ArrayLike | None = None,
    threads: int = 1,
    executor: Executor | None = None,
) -> Cut:
    """Where the `count` highest of all pairs' scores end, exactly.

    `exclude`: strictly increasing ranks of pairs left out; `threads`: blocks worked on at a time (set the linear
    algebra library to one thread then); `executor`: works instead of threads, see `FactoredScores.map_blocks`, also
    for what it raises. Raises DesignError unless 0 < count < the number of pairs.
    """
    excluded = scores.excluded(exclude)
    pairs = scores.universe_size - excluded.size
    if not 0 < count < pairs:
        raise DesignError(f"count: must be above 0 and below the {pairs} pairs, not {count}")
    low, high = _window(scores, count / (pairs + excluded.size))
    while True:
        shift = max(0, (high - low).bit_length() - (_BINS.bit_length() - 1))
        tally = _count(scores, low=low, high=high, shift=shift, exclude=excluded, threads=threads, executor=executor)
        reach = tally.above + np.cumsum(tally.histogram[::-1])[::-1]
        if tally.above >= count or reach[0] < count:
            low, high = 1 - EXACT_BELOW, EXACT_BELOW - 1  # the sample was misleading: look everywhere
            continue
        # The cut lies in the highest bin that has at least `count` scores in it and above it.
        bin_ = int(np.flatnonzero(reach >= count)[-1])
        if shift == 0:
            break
        low, high = low + (bin_ << shift), min(high, low + ((bin_ + 1) << shift) - 1)
    score = low + bin_
    tied = int(tally.histogram[bin_])
    above = int(reach[bin_]) - tied
    inside = np.arange(bin_ + 1, tally.histogram.size)
    total = tally.above_total + int(np.dot(tally.histogram[inside], low + inside)) + (count - above) * score
    if count - above < tied:
        next_lower = score
    elif tally.histogram[:bin_].any():
        next_lower = low + int(np.flatnonzero(tally.histogram[:bin_])[-1])
    else:
        next_lower = max(
            scores.map_blocks(partial(_highest_below, score), exclude=excluded, threads=threads, executor=executor)
        )
    return Cut(
        score=score,
        count=count,
        above=above,
        tied=tied,
        total=total,
        highest=tally.highest,
        lowest=tally.lowest,
        next_lower=next_lower,
    )


def draw_exhaustively(
    *,
    design: Design,
    n: int,
    scores: FactoredScores,
    rng: np.random.Generator,
    exclude: ArrayLike | None = None,
    threads: int = 1,
    executor: Executor | None = None,
    responses_per_item: int = 1,
) -> ExhaustiveDraw:
    """Draws `n` slots from all pairs by the design, without replacement inside each stratum.

    `design`: Uniform, EpsilonGreedy or TestSet; others need a number for every pair at once and are refused.
    `exclude`: strictly increasing ranks of pairs that may not be drawn, for instance those already answered.
    `responses_per_item`: how many slots each drawn pair has; `n` is a multiple of it.
    `executor`: works instead of threads, see `FactoredScores.map_blocks`, also for what it raises.
    The same factors and Generator state give the same draw on every machine, with any number of threads.
    Raises DesignError, with the sizes, if the design does not fit the pairs.
    """
    if n < 1:
        raise DesignError(f"n: a stage needs at least 1 slot, not {n}")
    if design.needs_list:
        raise DesignError(
            f"design: {type(design).__name__} cannot be drawn from all pairs; use a pool, or Uniform, EpsilonGreedy or "
            "TestSet"
        )
    if isinstance(design, EpsilonGreedy) and design.rest_strata > 1:
        raise DesignError("rest_strata: all pairs are cut in two; use 1, or a pool")
    excluded = scores.excluded(exclude)
    ends = design.ends(scores.universe_size - excluded.size)
    replicates, items = replicates_of(design, responses_per_item), items_in(n, responses_per_item)
    allocation = design.allocate(items, ends.sizes)
    if isinstance(design, Uniform):
        pool = uniform_pool(
            n_questions=scores.n_questions, size=items, rng=rng, exclude=excluded, outcome=scores.happened
        )
        return _mixed(
            ranks=[rank_of(pool.pairs, scores.n_questions)],
            n_questions=scores.n_questions,
            strata=(Stratum("all", ends.size, n, lowest=None, mean=None, highest=None),),
            replicates=replicates,
            rng=rng,
        )
    layers = _Layers.of(scores, ends, exclude=excluded, threads=threads, executor=executor)
    drawn = layers.draw(allocation, rng)
    return _mixed(
        ranks=drawn,
        n_questions=scores.n_questions,
        strata=layers.described(allocation, replicates=replicates),
        replicates=replicates,
        rng=rng,
        scores=scores,
    )


def shortlist(
    scores: FactoredScores,
    *,
    size: int,
    rng: np.random.Generator,
    exclude: ArrayLike | None = None,
    threads: int = 1,
    executor: Executor | None = None,
) -> NDArray[np.int64]:
    """The ranks of the `size` pairs with the highest scores, int64, increasing; ties at the cut broken at random.

    `executor`: works instead of threads, see `FactoredScores.map_blocks`, also for what it raises.
    """
    excluded = scores.excluded(exclude)
    cut = find_cut(scores, count=size, exclude=excluded, threads=threads, executor=executor)
    above = _collect(
        scores, low=cut.score + 1, high=EXACT_BELOW - 1, exclude=excluded, threads=threads, executor=executor
    )
    tied = _draw_tied(
        scores,
        score=cut.score,
        tied=cut.tied,
        n=size - cut.above,
        exclude=excluded,
        rng=rng,
        threads=threads,
        executor=executor,
    )
    return np.sort(np.concatenate([above, tied]))


def draw_rescored(
    *,
    ranks: ArrayLike,
    rescored: ArrayLike,
    chosen: int,
    n: int,
    n_questions: int,
    rng: np.random.Generator,
    epsilon: float = 0.1,
    floor: float = 0.0,
    exclude: ArrayLike | None = None,
    outcome: ArrayLike | None = None,
    responses_per_item: int = 1,
) -> ExhaustiveDraw:
    """Draws `n` slots after a slower predictor has scored a shortlist again.

    `ranks`: the shortlist, strictly increasing; `rescored`: its new scores, shape (K,). The strata are `chosen`, the
    best `chosen` of the shortlist (ties at random) with round((1 - epsilon) * n) slots, and `others`: all other pairs
    that are not excluded, including the rest of the shortlist. Sizes are exact. `outcome`: as in `uniform_pool`, the
    one that each question has as evidence. `responses_per_item`: how many slots each drawn pair has; `n` is a
    multiple of it.
    Raises DesignError, with the sizes, if they do not fit.
    """
    universe = universe_size(n_questions)
    listed = checked_ranks(ranks, universe, "ranks", increasing=True)
    score = checked_scores(rescored, field="rescored")
    excluded = excluded_ranks(exclude, n_questions)
    if outcome is not None:
        possible, excluded = (_that_happened(part, outcome, n_questions) for part in (listed, excluded))
        if possible.size != listed.size:
            raise DesignError("ranks: the shortlist holds pairs whose outcome did not happen; leave them out")
        universe //= 2
    if score.size != listed.size:
        raise DesignError(f"rescored: {score.size} scores for a shortlist of {listed.size}; give one for each pair")
    if not 0 < chosen <= listed.size:
        raise DesignError(f"chosen: must lie in 1..{listed.size}, the length of the shortlist, not {chosen}")
    if np.isin(listed, excluded).any():
        raise DesignError("ranks: the shortlist holds excluded pairs; leave them out of both or of neither")
    best = np.lexsort((rng.random(score.size), -score))[:chosen]
    sizes = (chosen, universe - excluded.size - chosen)
    design = EpsilonGreedy(epsilon=epsilon, floor=floor)
    replicates = replicates_of(design, responses_per_item)
    greedy = design.allocate(items_in(n, responses_per_item), sizes)
    allocation = fitting(greedy, names=("chosen", "others"), sizes=sizes)
    from_chosen = rng.choice(listed[best], size=allocation[0], replace=False)
    from_others = np.empty(0, dtype=np.int64)
    if allocation[1]:
        unavailable = np.union1d(excluded, listed[best])
        pool = uniform_pool(n_questions=n_questions, size=allocation[1], rng=rng, exclude=unavailable, outcome=outcome)
        from_others = rank_of(pool.pairs, n_questions)
    inside = score[best]
    return _mixed(
        ranks=[from_chosen, from_others],
        n_questions=n_questions,
        strata=(
            Stratum(
                "chosen",
                sizes[0],
                allocation[0] * replicates,
                float(inside.min()),
                float(inside.mean()),
                float(inside.max()),
            ),
            Stratum("others", sizes[1], allocation[1] * replicates, lowest=None, mean=None, highest=None),
        ),
        replicates=replicates,
        rng=rng,
    )


def _that_happened(ranks: NDArray[np.int64], outcome: ArrayLike, n_questions: int) -> NDArray[np.int64]:
    happened = np.asarray(outcome)[ranks // 2 // (n_questions - 1)]
    matching: NDArray[np.int64] = ranks[ranks % 2 == happened]
    return matching


@dataclass(frozen=True, eq=False)
class _Layers:
    """All pairs in layers by score: above the first cut, at it, between the cuts, at the second cut, below it.

    `membership` (strata, layers) counts each stratum's pairs in each layer; a layer at a cut is shared out at random.
    """

    scores: FactoredScores
    ends: Ends
    top: Cut
    bottom: Cut | None
    membership: NDArray[np.int64]
    exclude: NDArray[np.int64]
    threads: int
    executor: Executor | None

    @classmethod
    def of(
        cls,
        scores: FactoredScores,
        ends: Ends,
        *,
        exclude: NDArray[np.int64],
        threads: int,
        executor: Executor | None,
    ) -> _Layers:
        top = find_cut(scores, count=ends.highest, exclude=exclude, threads=threads, executor=executor)
        parts = [[top.above, top.count - top.above]]
        between = ends.size - ends.highest - ends.lowest
        if not ends.lowest:
            rows = [[*parts[0], 0], [0, top.tied - parts[0][1], ends.size - top.above - top.tied]]
            return cls(scores, ends, top, None, np.array(rows), exclude, threads, executor)
        bottom = find_cut(scores.negated(), count=ends.lowest, exclude=exclude, threads=threads, executor=executor)
        if -bottom.score >= top.score:
            raise DesignError(
                f"scores: {top.tied} of {ends.size} pairs share the score {top.score}, and both ends reach into them; "
                "this predictor does not tell enough pairs apart for a test set"
            )
        left = [top.tied - parts[0][1], bottom.tied - (bottom.count - bottom.above)]
        rows = [
            [*parts[0], 0, 0, 0],
            [0, 0, 0, bottom.count - bottom.above, bottom.above],
            [0, left[0], between - sum(left), left[1], 0],
        ]
        return cls(scores, ends, top, bottom, np.array(rows), exclude, threads, executor)

    def draw(self, allocation: tuple[int, ...], rng: np.random.Generator) -> list[NDArray[np.int64]]:
        """The ranks of each stratum's drawn pairs, in random order."""
        wanted = np.array([_shared_out(row, n, rng) for row, n in zip(self.membership, allocation, strict=True)])
        by_layer = self._from_layers(wanted.sum(axis=0), rng)
        drawn: list[list[NDArray[np.int64]]] = [[] for _ in allocation]
        for layer, ranks in enumerate(by_layer):
            for stratum, part in enumerate(np.split(ranks, np.cumsum(wanted[:-1, layer]))):
                drawn[stratum].append(part)
        return [np.concatenate(parts) for parts in drawn]

    def described(self, allocation: tuple[int, ...], *, replicates: int) -> tuple[Stratum, ...]:
        total = self.scores.total(exclude=self.exclude)
        spans = [(self.top.score, self.top.total, self.top.highest)]
        if self.bottom is None:
            spans.append((self.top.lowest, total - self.top.total, self.top.next_lower))
        else:
            spans.append((self.top.lowest, -self.bottom.total, -self.bottom.score))
            spans.append((-self.bottom.next_lower, total - self.top.total + self.bottom.total, self.top.next_lower))
        return tuple(
            Stratum(name, size, n * replicates, lowest=float(low), mean=sum_ / size, highest=float(high))
            for name, size, n, (low, sum_, high) in zip(
                self.ends.names, self.ends.sizes, allocation, spans, strict=True
            )
        )

    def _from_layers(self, wanted: NDArray[np.int64], rng: np.random.Generator) -> list[NDArray[np.int64]]:
        """Distinct ranks from each layer, every ordered choice equally likely."""
        cuts = [self.top.score, *([] if self.bottom is None else [-self.bottom.score])]
        tied = [self.top.tied, *([] if self.bottom is None else [self.bottom.tied])]
        drawn: list[NDArray[np.int64]] = [np.empty(0, dtype=np.int64) for _ in wanted]
        for index, (score, count) in enumerate(zip(cuts, tied, strict=True)):
            drawn[2 * index + 1] = _draw_tied(
                self.scores,
                score=score,
                tied=count,
                n=int(wanted[2 * index + 1]),
                exclude=self.exclude,
                rng=rng,
                threads=self.threads,
                executor=self.executor,
            )
        bounds = [EXACT_BELOW, *cuts, -EXACT_BELOW]
        for index in range(len(bounds) - 1):
            drawn[2 * index] = _draw_between(
                self.scores,
                low=bounds[index + 1] + 1,
                high=bounds[index] - 1,
                n=int(wanted[2 * index]),
                exclude=self.exclude,
                rng=rng,
            )
        return drawn


@dataclass(frozen=True, eq=False)
class _Counted:
    above: int
    above_total: int
    histogram: NDArray[np.int64]
    highest: int
    lowest: int


@dataclass(frozen=True, eq=False)
class _CountedBlock:
    """What `_Counted` sums up, of one block or of a tile of blocks: the bins of the scores in the window, in no order.

    `counts`: how many scores are in each of the bins, which are then distinct; None if each bin stands for one score.
    """

    above: int
    above_total: int
    bins: NDArray[np.int32]
    highest: int
    lowest: int
    counts: NDArray[np.int32] | None = None


def _window(scores: FactoredScores, fraction: float) -> tuple[int, int]:
    """Two scores between which the cut very probably lies. A fixed sample: it decides about time, never about a cut."""
    pool = uniform_pool(
        n_questions=scores.n_questions, size=_SAMPLE, rng=np.random.default_rng(0), outcome=scores.happened
    )
    sample = np.sort(scores.of(pool.pairs))[::-1]
    least, most = (sample[-1], sample[0]) if pool.probability == 1 else (1 - EXACT_BELOW, EXACT_BELOW - 1)
    reach = 6 * np.sqrt(sample.size * fraction * (1 - fraction)) + 10
    first, last = (round(sample.size * fraction + sign * reach) for sign in (-1, 1))
    low = sample[last] if last < sample.size else least
    high = sample[first] if first >= 0 else most
    return int(low), int(high)


def _count(
    scores: FactoredScores,
    *,
    low: int,
    high: int,
    shift: int,
    exclude: NDArray[np.int64],
    threads: int,
    executor: Executor | None,
) -> _Counted:
    """What lies above `high`, and how many scores are in each bin of 2^shift whole numbers from `low` to `high`."""
    n_bins = ((high - low) >> shift) + 1
    blocks = scores.map_blocks(
        partial(_count_block, low, high, shift),
        exclude=exclude,
        threads=threads,
        executor=executor,
        # Where all scores are in the window, their bins one by one would be as much as the scores.
        combine=partial(_count_tile, n_bins),
    )
    return _summed_up(n_bins, blocks)


def _summed_up(n_bins: int, parts: Iterable[_CountedBlock]) -> _Counted:
    histogram = np.zeros(n_bins, dtype=np.int64)
    above, above_total, highest, lowest = 0, 0, -EXACT_BELOW, EXACT_BELOW
    waiting: list[NDArray[np.int32]] = []
    for part in parts:
        above += part.above
        above_total += part.above_total
        highest = max(highest, part.highest)
        # A block without any pair has no lowest score.
        lowest = min(lowest, part.lowest) if part.highest > -EXACT_BELOW else lowest
        if part.counts is not None:
            histogram[part.bins] += part.counts
            continue
        waiting.append(part.bins)
        # Few scores of a block are in the window. To count them block by block would cost a pass over all bins each.
        if sum(map(len, waiting)) > _BINS:
            histogram += np.bincount(np.concatenate(waiting), minlength=histogram.size)
            waiting = []
    if waiting:
        histogram += np.bincount(np.concatenate(waiting), minlength=histogram.size)
    return _Counted(above=above, above_total=above_total, histogram=histogram, highest=highest, lowest=lowest)


def _count_tile(n_bins: int, parts: Iterable[_CountedBlock]) -> _CountedBlock:
    tally = _summed_up(n_bins, parts)
    bins = np.flatnonzero(tally.histogram)
    return _CountedBlock(
        above=tally.above,
        above_total=tally.above_total,
        bins=bins.astype(np.int32),
        highest=tally.highest,
        lowest=tally.lowest,
        counts=tally.histogram[bins].astype(np.int32),
    )


def _count_block(low: int, high: int, shift: int, block: Block) -> _CountedBlock:
    scores = block.scores
    highest = scores.max()
    scores[block.missing] = highest
    lowest = scores.min()
    scores[block.missing] = NO_PAIR
    flat = scores.ravel()
    # By their places: a mask as the index would take three times as long.
    high_scores = flat.take(np.flatnonzero(flat >= low))
    over = high_scores > high
    # Whole numbers in float64: exact, and in any order.
    total = int(high_scores.sum(dtype=np.float64, where=over))
    return _CountedBlock(
        above=int(np.count_nonzero(over)),
        above_total=total,
        bins=(high_scores[~over].astype(np.int32) - np.int32(low)) >> shift,
        highest=int(highest),
        lowest=int(lowest),
    )


def _highest_below(score: int, block: Block) -> int:
    return int(block.scores.max(where=block.scores < score, initial=-EXACT_BELOW))


def _collect(
    scores: FactoredScores,
    *,
    low: int,
    high: int,
    exclude: NDArray[np.int64],
    threads: int,
    executor: Executor | None,
) -> NDArray[np.int64]:
    """The ranks of all pairs with scores in low..high, increasing."""
    work = partial(_ranks_between, low, high, scores.n_questions)
    parts = scores.map_blocks(work, exclude=exclude, threads=threads, executor=executor)
    return np.sort(np.concatenate([part for part in parts if part.size] or [np.empty(0, dtype=np.int64)]))


def _ranks_between(low: int, high: int, n_questions: int, block: Block) -> NDArray[np.int64]:
    evidence, target = np.nonzero((block.scores >= low) & (block.scores <= high))
    return rank_of(
        Pairs(
            evidence=block.evidence[evidence].astype(np.int32),
            target=(block.first_target + target).astype(np.int32),
            outcome=np.full(evidence.size, block.outcome, dtype=np.int8),
        ),
        n_questions,
    )


def _draw_tied(
    scores: FactoredScores,
    *,
    score: int,
    tied: int,
    n: int,
    exclude: NDArray[np.int64],
    rng: np.random.Generator,
    threads: int,
    executor: Executor | None,
) -> NDArray[np.int64]:
    """`n` of the `tied` pairs with exactly this score, in random order."""
    if n and tied < _RARE * scores.universe_size:
        everyone = _collect(scores, low=score, high=score, exclude=exclude, threads=threads, executor=executor)
        return rng.choice(everyone, size=n, replace=False)
    return _draw_between(scores, low=score, high=score, n=n, exclude=exclude, rng=rng)


def _shared_out(layers: NDArray[np.int64], n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """How many of `n` pairs, drawn without replacement from layers of these sizes, come from each."""
    size = int(layers.sum())
    if size < _MAX_FOR_NUMPY:
        counts: NDArray[np.int64] = rng.multivariate_hypergeometric(layers, n)
        return counts
    places = rng.choice(size, size=n, replace=False, shuffle=False)
    return np.bincount(np.searchsorted(np.cumsum(layers), places, side="right"), minlength=layers.size)


def _draw_between(
    scores: FactoredScores, *, low: int, high: int, n: int, exclude: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """`n` distinct pairs with scores in low..high, in random order; there must be at least `n`.

    They are the first distinct ones of an endless sequence of uniform pairs.
    """
    universe = universe_size(scores.n_questions)
    drawn = np.empty(0, dtype=np.int64)
    while drawn.size < n:
        ranks = rng.integers(universe, size=_CHUNK, dtype=np.int64)
        drawn_scores = scores.of(pair_from_rank(ranks, scores.n_questions))
        fits = (drawn_scores >= low) & (drawn_scores <= high) & scores.holds(ranks) & ~np.isin(ranks, exclude)
        drawn = np.concatenate([drawn, ranks[fits]])
        _, first = np.unique(drawn, return_index=True)
        drawn = drawn[np.sort(first)][:n]
    return drawn


def _mixed(
    *,
    ranks: list[NDArray[np.int64]],
    n_questions: int,
    strata: tuple[Stratum, ...],
    replicates: int,
    rng: np.random.Generator,
    scores: FactoredScores | None = None,
) -> ExhaustiveDraw:
    """The drawn pairs of all strata in random order, each repeated for its replicates."""
    label = np.repeat(np.arange(len(ranks)), [part.size for part in ranks]).astype(np.int8)
    rate = np.array([part.size / stratum.size for part, stratum in zip(ranks, strata, strict=True)])
    order = rng.permutation(label.size * replicates)
    at = order // replicates
    pairs = pair_from_rank(np.concatenate(ranks)[at], n_questions)
    return ExhaustiveDraw(
        pairs=pairs,
        stratum=label[at],
        inclusion_probability=rate[label[at]],
        strata=strata,
        replicate=(order % replicates + 1).astype(np.int16),
        score=None if scores is None else scores.of(pairs),
    )
