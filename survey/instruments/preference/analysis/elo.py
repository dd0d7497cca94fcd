"""Elo's ratings over many orders of the same judgements. Numpy alone.

Elo, "The Rating of Chessplayers", 1978: base 10, 400 points a factor of ten, K = 16, everybody begins at 1000. The
order of judgements has no meaning here, so ratings are the mean over random orders, with their spread next to it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .judgements import Judgements

Floats = NDArray[np.float64]

K, START, SPREAD = 16.0, 1000.0, 400.0
ORDERS, MIN_ORDERS, MAX_STEPS = 500, 20, 10_000_000


@dataclass(frozen=True, eq=False)
class Elo:
    """rating: (m,) mean over `orders` random orders; deviation: (m,) their standard deviation, which tells how much the
    order alone decides. NaN for models that were not judged."""

    rating: Floats
    deviation: Floats
    orders: int


def elo(judged: Judgements, *, rng: np.random.Generator) -> Elo:
    """Ratings of the models after all judgements, over 500 random orders, fewer where there are more than 20,000."""
    orders = max(MIN_ORDERS, min(ORDERS, MAX_STEPS // max(judged.n, 1)))
    rating = np.full((orders, len(judged.models)), START)
    every = np.arange(orders)
    turn = rng.permuted(np.broadcast_to(np.arange(judged.n, dtype=np.int32), (orders, judged.n)), axis=1)
    for step in range(judged.n):
        now = turn[:, step]
        a, b = judged.a[now], judged.b[now]
        expected = 1 / (1 + 10 ** ((rating[every, b] - rating[every, a]) / SPREAD))
        change = K * (judged.win[now] - expected)
        rating[every, a] += change
        rating[every, b] -= change
    there = np.isin(np.arange(len(judged.models)), np.concatenate([judged.a, judged.b]))
    return Elo(
        rating=np.where(there, rating.mean(axis=0), np.nan),
        deviation=np.where(there, rating.std(axis=0, ddof=1), np.nan),
        orders=orders,
    )
