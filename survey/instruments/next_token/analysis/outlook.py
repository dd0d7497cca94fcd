"""What one simulated next-token study finds, for budgets. Numpy alone: other processes run it."""

from __future__ import annotations

import math

from survey.figures import Figure
from survey.services.base.seeds import generator

from .simulation import GuessPlan, GuessWorld, study


def one_study(name: str, plan: GuessPlan, seed: int, number: int) -> list[float]:
    """People's share and the widths of the intervals of it, of people less the model, and of the most frequent guess;
    NaN where not known."""
    figures = study(GuessWorld(), plan, rng=generator(seed, "next-token budget", name, number))
    return [
        figures.people.number,
        *(_width(figure) for figure in (figures.people, figures.difference, figures.together)),
    ]


def _width(figure: Figure) -> float:
    return math.nan if figure.low is None or figure.high is None else figure.high - figure.low
