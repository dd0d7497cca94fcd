"""What one simulated study of reading times finds, for budgets. Numpy alone: other processes run it."""

from __future__ import annotations

import math

from survey.figures import Figure
from survey.services.base.seeds import generator

from .simulation import ReadingPlan, ReadingWorld, study

FIGURES = ("mean time", "slope of this word", "slope of all together")


def one_study(name: str, world: ReadingWorld, plan: ReadingPlan, seed: int, number: int) -> list[float]:
    """For each of FIGURES its value, half the width of its interval and its standard error, one after the other; NaN
    where there is none."""
    figures = study(world, plan, rng=generator(seed, "reading budget", name, number))
    return [part for figure in FIGURES for part in _parts(figures[figure])]


def _parts(figure: Figure) -> tuple[float, float, float]:
    if figure.low is None or figure.high is None:
        return figure.number, math.nan, math.nan
    error = math.nan if figure.standard_error is None else figure.standard_error
    return figure.number, (figure.high - figure.low) / 2, error
