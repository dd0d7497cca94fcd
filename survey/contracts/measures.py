"""What can be estimated from answers. Imports nothing from survey."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

SHARE = "share"  # The unit of values that are 0 or 1.


@dataclass(frozen=True)
class Measure:
    """A figure that can be estimated: one value for each answer. The figure is their mean over all candidates.

    `where`, if given, restricts the mean to a part of the candidates: it is true for answers to that part. `per`, if
    given, makes the figure a ratio: the sum of `values` over the sum of `per`, with one number of each per answer, such
    as right guesses over guesses. A share has values 0 and 1. `unit` is "share" or the unit in words. `span`, if given,
    has the lowest and the highest value that an answer can have, for worst-case bounds; that of a share is known.
    `has_far_answers`: a few answers may decide the figure, as those far from the truth do in a log loss; its interval
    then rests on how many people really say something about the variance. `sentence` says the figure to a reader, with
    {} where the number and its unit stand, such as "{} of beliefs changed at all"; the first three measures with one
    are what estimates begin with.
    """

    name: str
    title: str
    unit: str
    values: np.ndarray
    where: np.ndarray | None = None
    per: np.ndarray | None = None
    span: tuple[float, float] | None = None
    has_far_answers: bool = False
    sentence: str = ""

    @property
    def is_share(self) -> bool:
        return self.unit == SHARE and self.per is None

    @property
    def scale(self) -> Literal["plain", "logit"]:
        """The scale on which an interval that holds at any time is laid around the figure."""
        return "logit" if self.is_share else "plain"

    @property
    def range(self) -> tuple[float, float] | None:
        """The lowest and the highest value that the figure can have; None where that is not known."""
        if self.per is not None:
            return None
        return (0.0, 1.0) if self.is_share else self.span

    @property
    def range_of_difference(self) -> tuple[float, float] | None:
        """The same for a difference between two such figures."""
        if self.range is None:
            return None
        width = self.range[1] - self.range[0]
        return -width, width


@dataclass(frozen=True)
class Check:
    """A difference that should be due to chance only: the mean of `values` where `second`, minus that where `first`."""

    name: str
    title: str
    unit: str
    values: np.ndarray
    first: np.ndarray
    second: np.ndarray


@dataclass(frozen=True)
class Estimands:
    """What a study's answers estimate; arrays with one entry per answer.

    Which measures and checks there are, and their order, must not depend on the answers: each part of a study is read
    separately, and the parts are combined. A measure that no answer is about has a `where` without a true entry.

    The first of `measures` is the one that a predictor predicts, if there is a predictor. `retested` names those that
    are compared between an item and its repeat.
    """

    measures: Sequence[Measure]
    checks: Sequence[Check] = ()
    retested: Sequence[str] = ()
