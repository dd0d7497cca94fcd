"""What one simulated study of comparisons finds, for budgets. Numpy alone: other processes run it."""

from __future__ import annotations

import math

from survey.services.base.seeds import generator

from .loss import estimate
from .simulation import TokenPlan, TokenWorld, study

SAMPLES = 200


def one_study(name: str, world: TokenWorld, plan: TokenPlan, seed: int, number: int) -> list[float]:
    """Contexts with a figure, answers, L - L_G, its truth, the ends of its 95 % interval; NaN where not known."""
    rng = generator(seed, "token comparison budget", name, number)
    made = study(world, plan, rng=rng)
    study_estimate = estimate(made.comparisons, made.answers, rng=rng, samples=SAMPLES)
    true = float(made.true.mean())
    if study_estimate is None or study_estimate.interval is None:
        return [0.0, float(len(made.answers)), math.nan, true, math.nan, math.nan]
    return [
        float(study_estimate.contexts),
        float(len(made.answers)),
        study_estimate.difference,
        true,
        *study_estimate.interval,
    ]
