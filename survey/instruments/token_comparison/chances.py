"""The chance of a context, and of a comparison, to be asked in a study: every stage draws comparisons uniformly."""

from collections.abc import Sequence

import numpy as np

from survey.models import Stage, Study
from survey.services.answers.counting import ESTIMATED


def drawn_of(study: Study) -> list[int]:
    """How many different comparisons each stage drew."""
    stages = study.main_stages().exclude(state=Stage.State.DRAFT).order_by("index")
    return [stage.slots.filter(role__in=ESTIMATED).values("item").distinct().count() for stage in stages]


def chance_of_one(universe: int, drawn: Sequence[int]) -> float:
    """That a comparison is in one stage or more, of so many different ones drawn by each stage from all."""
    missed = 1.0
    for count in drawn:
        missed *= 1 - min(count, universe) / universe
    return 1 - missed


def chance_of_any(universe: int, drawn: Sequence[int], own: np.ndarray) -> np.ndarray:
    """That one comparison or more of a context is in one stage or more, by how many comparisons each has (C,):
    1 less the product over stages of C(universe - own, n) / C(universe, n)."""
    missed = np.ones(len(own))
    for place, count in enumerate(own.tolist()):
        for n in drawn:
            left = universe - n
            for number in range(count):
                missed[place] *= max(left - number, 0) / (universe - number)
    return 1 - missed
