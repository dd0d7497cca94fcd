"""What one simulated cloze study finds, for budgets. Numpy alone: other processes run it."""

from __future__ import annotations

import math

from survey.services.base.seeds import generator

from .simulation import ClozePlan, ClozeWorld, study

SPLITS = 4
SAMPLES = 200


def one_study(name: str, plan: ClozePlan, seed: int, number: int) -> list[float]:
    rng = generator(seed, "cloze budget", name, number)
    figures = study(ClozeWorld(), plan, rng=rng, splits=SPLITS, samples=SAMPLES)
    near, mean = figures.pnc["near"], figures.mean
    (difference,) = figures.differences.values()
    return [
        figures.positions,
        math.nan if near.value is None else near.value,
        *(_width(figure.interval) for figure in (near, difference, mean)),
        math.nan if figures.reliability is None else math.sqrt(min(figures.reliability, 1.0)),
    ]


def _width(interval: tuple[float, float] | None) -> float:
    return math.nan if interval is None else interval[1] - interval[0]
