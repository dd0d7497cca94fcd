"""The draw of a stage: which candidates, from which stratum, with which inclusion probability. Numpy alone."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bandit.designs import Design, Strata, checked_scores, items_in, replicates_of
from bandit.errors import DesignError
from bandit.unequal import systematic


@dataclass(frozen=True)
class Stratum:
    """One stratum of a draw: its candidates, its slots, and its candidates' scores (None if there are none).

    `n` counts slots: as many as drawn candidates, or that many times the design's replicates.
    """

    name: str
    size: int
    n: int
    lowest: float | None
    mean: float | None
    highest: float | None


@dataclass(frozen=True, eq=False)
class Draw:
    """n slots in random order, arrays of shape (n,).

    `selected` (int64) indexes the candidates, `stratum` (int8) indexes `strata`, `inclusion_probability` (float64) is
    the exact chance that the candidate is in the draw, given the candidates and their cut: n_h / N_h, unless the design
    gives each its own. `replicate` (int16) counts a candidate's slots from 1: always 1, unless it has several.
    """

    selected: NDArray[np.int64]
    stratum: NDArray[np.int8]
    inclusion_probability: NDArray[np.float64]
    strata: tuple[Stratum, ...]
    replicate: NDArray[np.int16] = field(repr=False)


def draw(
    *,
    design: Design,
    n: int,
    scores: ArrayLike | None,
    n_candidates: int,
    rng: np.random.Generator,
    disagreement: ArrayLike | None = None,
    responses_per_item: int = 1,
) -> Draw:
    """Draws `n` slots from `n_candidates` by the design, without replacement inside each stratum.

    `scores`: one per candidate, higher is better, shape (n_candidates,), or None for a design that needs none;
    `disagreement`: how much the ensemble disagrees about each candidate, same shape, for the design that needs it.
    `responses_per_item`: how many slots each drawn candidate has, its replicates; `n` is a multiple of it.
    Raises DesignError, with the sizes, if the design does not fit the candidates.
    """
    replicates = replicates_of(design, responses_per_item)
    score, cut, allocation, chance = _planned(
        design=design,
        n=items_in(n, responses_per_item),
        scores=scores,
        n_candidates=n_candidates,
        rng=rng,
        disagreement=disagreement,
    )
    drawn, described = [], []
    for index, (name, size, count) in enumerate(zip(cut.names, cut.sizes, allocation, strict=True)):
        members = np.flatnonzero(cut.label == index)
        inside = chance[members]
        if inside.min() == inside.max():
            drawn.append(rng.choice(members, size=count, replace=False))
        else:
            drawn.append(members[systematic(inside, rng)])
        described.append(
            _described(name=name, size=size, n=count * replicates, score=None if score is None else score[members])
        )
    once = np.concatenate(drawn).astype(np.int64)
    order = rng.permutation(once.size * replicates)
    selected = np.repeat(once, replicates)[order]
    return Draw(
        selected=selected,
        stratum=cut.label[selected],
        inclusion_probability=chance[selected],
        strata=tuple(described),
        replicate=(order % replicates + 1).astype(np.int16),
    )


def inclusion_probabilities(
    *,
    design: Design,
    n: int,
    scores: ArrayLike | None,
    n_candidates: int,
    rng: np.random.Generator,
    disagreement: ArrayLike | None = None,
) -> NDArray[np.float64]:
    """The chance of every candidate, float64 of shape (n_candidates,), without making the draw.

    Arguments and errors as for `draw`; ties at a cut are broken at random. They sum to the number of drawn candidates.
    """
    _score, _cut, _allocation, chance = _planned(
        design=design, n=n, scores=scores, n_candidates=n_candidates, rng=rng, disagreement=disagreement
    )
    return chance


def _planned(
    *,
    design: Design,
    n: int,
    scores: ArrayLike | None,
    n_candidates: int,
    rng: np.random.Generator,
    disagreement: ArrayLike | None,
) -> tuple[NDArray[np.float64] | None, Strata, tuple[int, ...], NDArray[np.float64]]:
    """The checked scores, the cut, the number to draw from each stratum, and each candidate's chance."""
    if n < 1:
        raise DesignError(f"n: a stage needs at least 1 slot, not {n}")
    score = None if scores is None else checked_scores(scores)
    if score is not None and score.size != n_candidates:
        raise DesignError(f"scores: {score.size} scores for {n_candidates} candidates; give one score a candidate")
    if disagreement is not None and np.size(disagreement) != n_candidates:
        raise DesignError(
            f"disagreement: {np.size(disagreement)} numbers for {n_candidates} candidates; give one for each candidate"
        )
    cut = design.strata(score, rng, n_candidates=n_candidates, disagreement=disagreement)
    allocation = design.allocate(n, cut.sizes)
    return score, cut, allocation, design.inclusion_probabilities(scores=score, strata=cut, allocation=allocation)


def _described(*, name: str, size: int, n: int, score: NDArray[np.float64] | None) -> Stratum:
    if score is None:
        return Stratum(name=name, size=size, n=n, lowest=None, mean=None, highest=None)
    return Stratum(
        name=name, size=size, n=n, lowest=float(score.min()), mean=float(score.mean()), highest=float(score.max())
    )
