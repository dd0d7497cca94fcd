"""What can be estimated from answers. Imports nothing of survey."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Measure:
    """A figure that can be estimated: one value an answer, whose mean over all candidates is meant.

    `where`, where given, is true for the answers to the part of the candidates that the mean is over. `per`, where
    given, makes the figure a ratio: the sum of `values` over the sum of `per`, each one number an answer, such as right
    guesses over guesses. A share has values 0 and 1. `unit` is "share" or the unit in words.
    """

    name: str
    title: str
    unit: str
    values: np.ndarray
    where: np.ndarray | None = None
    per: np.ndarray | None = None

    @property
    def is_share(self) -> bool:
        return self.unit == "share" and self.per is None


@dataclass(frozen=True)
class Check:
    """A difference that only chance should make: the mean of `values` where `second` less that where `first`."""

    name: str
    title: str
    unit: str
    values: np.ndarray
    first: np.ndarray
    second: np.ndarray


@dataclass(frozen=True)
class Estimands:
    """What a study's answers are estimates of; arrays of one entry an answer.

    The first of `measures` is the one that a predictor predicts, where the instrument has one. `retested` names those
    that are compared between an item and its repeat.
    """

    measures: Sequence[Measure]
    checks: Sequence[Check] = ()
    retested: Sequence[str] = ()
