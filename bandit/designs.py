"""How a stage's slots are shared out over its candidates. Numpy alone: scores come in as an array.

Epsilon-greedy over a finite candidate set is stratified sampling with two strata, so every inclusion probability is
known exactly: n_h / N_h.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Decimal
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bandit.errors import DesignError


@dataclass(frozen=True, eq=False)
class Strata:
    """A cut of M candidates: stratum names, the stratum of each candidate (int8, shape (M,)), the strata's sizes."""

    names: tuple[str, ...]
    label: NDArray[np.int8]
    sizes: tuple[int, ...]


class Design(Protocol):
    """What `draw` asks of a design."""

    def strata(
        self, scores: ArrayLike | None, rng: np.random.Generator, *, n_candidates: int | None = None
    ) -> Strata: ...

    def allocate(self, n: int, sizes: Sequence[int]) -> tuple[int, ...]: ...


@dataclass(frozen=True)
class Uniform:
    """Every candidate has the same chance: one stratum, `all`."""

    def strata(self, scores: ArrayLike | None, rng: np.random.Generator, *, n_candidates: int | None = None) -> Strata:
        """One stratum of all candidates; their number is `n_candidates`, or the length of the scores."""
        if scores is not None:
            n_candidates = checked_scores(scores).size
        if n_candidates is None or n_candidates < 1:
            raise DesignError(f"n_candidates: a draw needs at least 1 candidate, not {n_candidates}")
        return Strata(names=("all",), label=np.zeros(n_candidates, dtype=np.int8), sizes=(n_candidates,))

    def allocate(self, n: int, sizes: Sequence[int]) -> tuple[int, ...]:
        """All `n` slots to the one stratum; refused if it holds fewer candidates."""
        return fitting((n,), names=("all",), sizes=sizes)


@dataclass(frozen=True)
class EpsilonGreedy:
    """Stratified epsilon-greedy: `top`, the best `top_fraction` by score, gets a share 1 - epsilon of the slots.

    The paper's adaptive stages (section 3): most pairs from the top tenth of predicted change, the rest from elsewhere.
    With epsilon 0 or 1 one stratum gets no slot, and no estimate for all candidates is possible from that stage.
    """

    epsilon: float = 0.1
    top_fraction: float = 0.1

    def __post_init__(self) -> None:
        if not 0 <= self.epsilon <= 1:
            raise DesignError(f"epsilon: must lie in 0..1, not {self.epsilon}")
        if not 0 < self.top_fraction < 1:
            raise DesignError(f"top_fraction: must lie between 0 and 1, both left out, not {self.top_fraction}")

    def strata(self, scores: ArrayLike | None, rng: np.random.Generator, *, n_candidates: int | None = None) -> Strata:
        """`top` holds the ceil(top_fraction * M) best scores, ties at the cut broken at random; `rest` the others."""
        if scores is None:
            raise DesignError("scores: epsilon-greedy needs a score for each candidate; or use Uniform")
        score = checked_scores(scores)
        # Decimal, since 0.07 * 100 is 7.000000000000001 in floats and would move the cut.
        n_top = int((_decimal(self.top_fraction) * score.size).to_integral_value(ROUND_CEILING))
        if n_top >= score.size:
            raise DesignError(
                f"top_fraction: {self.top_fraction} of {score.size} candidates leaves nobody in rest; add candidates"
            )
        cut = np.partition(score, score.size - n_top)[score.size - n_top]
        top = score > cut
        tied = np.flatnonzero(score == cut)
        top[rng.choice(tied, size=n_top - int(np.count_nonzero(top)), replace=False)] = True
        return Strata(names=("top", "rest"), label=(~top).astype(np.int8), sizes=(n_top, score.size - n_top))

    def allocate(self, n: int, sizes: Sequence[int]) -> tuple[int, ...]:
        """round((1 - epsilon) * n) slots to top, halves to the even number, the others to rest; refused if too many."""
        n_top = int(((1 - _decimal(self.epsilon)) * int(n)).to_integral_value(ROUND_HALF_EVEN))
        return fitting((n_top, n - n_top), names=("top", "rest"), sizes=sizes)


def checked_scores(scores: ArrayLike) -> NDArray[np.float64]:
    """The scores as float64 of shape (M,); NaN and infinity are refused, since they have no place in an order."""
    score = np.asarray(scores, dtype=np.float64)
    if score.ndim != 1 or score.size == 0:
        raise DesignError(f"scores: must be a flat array with one score a candidate, not of shape {score.shape}")
    bad = int(np.count_nonzero(~np.isfinite(score)))
    if bad:
        raise DesignError(f"scores: {bad} of {score.size} are NaN or infinite; score these candidates again")
    return score


def fitting(allocation: tuple[int, ...], *, names: Sequence[str], sizes: Sequence[int]) -> tuple[int, ...]:
    """The allocation itself, if each stratum holds at least one candidate and no fewer than its slots."""
    if len(sizes) != len(names):
        raise DesignError(f"sizes: this design has the strata {', '.join(names)}, not {len(sizes)} of them")
    for name, n, size in zip(names, allocation, sizes, strict=True):
        if n < 0:
            raise DesignError(f"n: cannot plan {n} slots in stratum {name}")
        if size < 1:
            raise DesignError(f"sizes: stratum {name} is empty; add candidates or change top_fraction")
        if n > size:
            raise DesignError(
                f"n: stratum {name} gets {n} of {sum(allocation)} slots but holds {size} of {sum(sizes)} candidates; "
                "add candidates or plan fewer slots"
            )
    return allocation


def _decimal(value: float) -> Decimal:
    return Decimal(repr(float(value)))
