"""The draw of a stage: which candidates, from which stratum, with which inclusion probability. Numpy alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bandit.designs import Design, checked_scores
from bandit.errors import DesignError


@dataclass(frozen=True)
class Stratum:
    """One stratum of a draw: its candidates, its slots, and its candidates' scores (None without)."""

    name: str
    size: int
    n: int
    lowest: float | None
    mean: float | None
    highest: float | None


@dataclass(frozen=True, eq=False)
class Draw:
    """n drawn candidates in random order, arrays of shape (n,).

    `selected` (int64) indexes the candidates, `stratum` (int8) indexes `strata`, `inclusion_probability` (float64) is
    n_h / N_h: the exact chance that the candidate is in the draw, given the candidates and their cut.
    """

    selected: NDArray[np.int64]
    stratum: NDArray[np.int8]
    inclusion_probability: NDArray[np.float64]
    strata: tuple[Stratum, ...]


def draw(*, design: Design, n: int, scores: ArrayLike | None, n_candidates: int, rng: np.random.Generator) -> Draw:
    """Draws `n` of `n_candidates` by the design, without replacement inside each stratum.

    `scores`: one a candidate, higher is better, shape (n_candidates,), or None for a design that needs none.
    Raises DesignError, with the sizes, if the design does not fit the candidates.
    """
    if n < 1:
        raise DesignError(f"n: a stage needs at least 1 slot, not {n}")
    score = None if scores is None else checked_scores(scores)
    if score is not None and score.size != n_candidates:
        raise DesignError(f"scores: {score.size} scores for {n_candidates} candidates; give one score a candidate")
    cut = design.strata(score, rng, n_candidates=n_candidates)
    allocation = design.allocate(n, cut.sizes)
    drawn, described = [], []
    for index, (name, size, slots) in enumerate(zip(cut.names, cut.sizes, allocation, strict=True)):
        members = np.flatnonzero(cut.label == index)
        drawn.append(rng.choice(members, size=slots, replace=False))
        described.append(_described(name=name, size=size, n=slots, score=None if score is None else score[members]))
    selected = rng.permutation(np.concatenate(drawn)).astype(np.int64)
    stratum = cut.label[selected]
    rate = np.array([slots / size for slots, size in zip(allocation, cut.sizes, strict=True)])
    return Draw(selected=selected, stratum=stratum, inclusion_probability=rate[stratum], strata=tuple(described))


def _described(*, name: str, size: int, n: int, score: NDArray[np.float64] | None) -> Stratum:
    if score is None:
        return Stratum(name=name, size=size, n=n, lowest=None, mean=None, highest=None)
    return Stratum(
        name=name, size=size, n=n, lowest=float(score.min()), mean=float(score.mean()), highest=float(score.max())
    )
