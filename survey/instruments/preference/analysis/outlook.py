"""What one simulated preference study finds, for budgets. Numpy and `bandit` alone: other processes run
it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .bradley_terry import NoRanking, fit
from .simulation import PreferenceWorld, StagePlan, simulate


def one_study(
    world: PreferenceWorld,
    plans: Sequence[StagePlan],
    truth: NDArray[np.float64],
    seed: int,
    weighted: bool,
    number: int,
) -> tuple[float, ...]:
    """Of one study: the widest standard error of neighbours, the mean width of their intervals, whether the best model
    is found, how many intervals hold the truth, the mean standard error of neighbours, and that of the side bias."""
    judged = simulate(world, plans, rng=np.random.default_rng([seed, number]))
    try:
        ranking = fit(judged if weighted else judged.unweighted())
    except NoRanking:
        return (math.nan, math.nan, 0.0, math.nan, math.nan, math.nan)
    errors, widths, covered = [], [], []
    for model in range(len(world.theta) - 1):
        gap = ranking.difference(model, model + 1)
        if gap.low is None or gap.high is None or gap.standard_error is None:
            continue
        errors.append(gap.standard_error)
        widths.append(gap.high - gap.low)
        covered.append(float(gap.low <= truth[model] - truth[model + 1] <= gap.high))
    if not errors:
        return (math.nan, math.nan, float(ranking.order[0] == int(np.argmax(world.theta))), *[math.nan] * 3)
    return (
        max(errors),
        float(np.mean(widths)),
        float(ranking.order[0] == int(np.argmax(world.theta))),
        float(np.mean(covered)),
        float(np.mean(errors)),
        ranking.side.standard_error or math.nan,
    )
