"""Draws with unequal chances and without replacement. Numpy alone; a leaf next to `bandit.errors`.

Chances are whole multiples of 2^-40, so that their sums are exact integers, every first-order inclusion probability is
exactly what is stored, and no rounding can draw a candidate twice.

Source: randomised systematic sampling (Goodman and Kish 1950; Hartley and Rao, Annals of Mathematical Statistics 33,
1962); capping as in Särndal, Swensson and Wretman, Model Assisted Survey Sampling, 1992, section 3.6.2.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from bandit.errors import DesignError

GRAIN = 2**40
MAX_SLOTS = 2**22  # the running sums of chances stay far inside int64


def softmax_shares(score: NDArray[np.float64], *, temperature: float, n: int, floor: float) -> NDArray[np.float64]:
    """Chances floor * n / M + c * exp(score / temperature), capped at 1, that sum to `n` exactly; shape (M,).

    Whole multiples of 2^-40: the floor is held to within that.
    Raises DesignError for more slots than the sums can hold.
    """
    return _capped(
        # Relative to the best that is left, so that a low temperature cannot make all of them 0.
        lambda free: np.exp((score[free] - score[free].max()) / temperature),
        size=score.size,
        n=n,
        floor=floor,
    )


def shares(part: NDArray[np.float64], *, n: int, floor: float) -> NDArray[np.float64]:
    """Chances floor * n / M + c * part, capped at 1, that sum to `n` exactly; `part` at least 0, shape (M,). Otherwise
    as `softmax_shares`; parts that are all alike give n / M, to the last bit."""
    if part.min() == part.max():
        return np.full(part.size, n / part.size)
    return _capped(lambda free: part[free], size=part.size, n=n, floor=floor)


def power_shares(score: NDArray[np.float64], *, power: float, n: int, floor: float) -> NDArray[np.float64]:
    """Chances floor * n / M + c * score^power, capped at 1, that sum to `n` exactly; shape (M,).

    `score`: at least 0. Otherwise as `softmax_shares`, of which this is the case of logarithms.
    """
    # A score of 0 has no logarithm. So small a one gets nothing next to any other, and all of them get the same.
    logarithm = np.log(np.maximum(score, np.finfo(np.float64).tiny))
    return softmax_shares(logarithm, temperature=1 / power, n=n, floor=floor)


def systematic(chance: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Indices drawn with these chances, in random order: equal steps through the candidates in random order.

    `chance`: shape (M,), multiples of 2^-40 in 0..1 that sum to a whole number, the size of the draw.
    """
    order = rng.permutation(chance.size)
    reach = np.cumsum((chance[order] * GRAIN).astype(np.int64))
    n = int(reach[-1]) // GRAIN
    points = rng.integers(GRAIN) + GRAIN * np.arange(n, dtype=np.int64)
    # A candidate is drawn if a point lies in [reach before it, its reach): at most one, since its chance is at most 1.
    return rng.permutation(order[np.searchsorted(reach, points, side="right")]).astype(np.int64)


def _capped(
    part_of: Callable[[NDArray[np.bool_]], NDArray[np.float64]], *, size: int, n: int, floor: float
) -> NDArray[np.float64]:
    """The floor and a multiple of what `part_of` gives those below the cap, until none is above it."""
    if n > MAX_SLOTS:
        raise DesignError(f"n: a draw with unequal chances has at most {MAX_SLOTS} slots, not {n}")
    least = floor * n / size
    share = np.ones(size)
    free = np.ones(size, dtype=bool)
    while free.any():
        left = n - np.count_nonzero(~free) - least * np.count_nonzero(free)
        part = part_of(free)
        share[free] = least + part * (max(left, 0.0) / part.sum())
        above = free & (share > 1)
        if not above.any():
            break
        share[above] = 1.0
        free &= ~above
    return _grained(share, n) / GRAIN


def _grained(share: NDArray[np.float64], n: int) -> NDArray[np.int64]:
    """The shares in grains of 2^-40, corrected by single grains until they sum to `n` exactly."""
    grains = np.rint(share * GRAIN).astype(np.int64)
    gap = n * GRAIN - int(grains.sum())
    step = 1 if gap > 0 else -1
    while gap:
        movable = np.flatnonzero((grains > 0) & (grains < GRAIN))[: abs(gap)]
        if not movable.size:
            raise DesignError(f"n: {n} slots cannot be shared out over {share.size} candidates by these scores")
        grains[movable] += step
        gap -= step * movable.size
    return grains
