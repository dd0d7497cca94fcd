"""How items are drawn where a candidate set is not listed, or not ordered by the chance of a label.

A part of the contract of an instrument; `survey.contracts.instruments` names all of it.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

    from bandit.designs import Design
    from bandit.draws import Stratum
    from survey.models import Assignment, Question


# Called as progress(parts done, parts).
BlockProgress = Callable[[int, int], object]


@dataclass(frozen=True)
class Candidates:
    """A drawn candidate set: a structured array, one row per candidate. Only the instrument knows the fields."""

    rows: np.ndarray
    universe_size: int
    probability: float


@dataclass(frozen=True, eq=False)
class StreamedDraw:
    """n slots in random order, drawn from all candidates without listing them; one entry a slot in every array.

    `rows`: candidate rows. `stratum` indexes `strata`. `replicate` counts the slots of a candidate from 1.
    """

    rows: np.ndarray
    stratum: np.ndarray
    inclusion_probability: np.ndarray
    strata: "tuple[Stratum, ...]"
    replicate: np.ndarray


class Pairing(ABC):
    """Candidates are pairs of questions, too many to list: all of them are scored, and drawn without a list.

    Every candidate has a rank, a number from 0. `scores` below is the array that `score_all` makes; the core stores it
    as a file and does not look inside. `survey.instruments.question_pairs` does all of this for ordered pairs with an
    outcome.
    """

    @abstractmethod
    def ranks_of(self, keys: Collection[str], questions: Sequence["Question"]) -> np.ndarray:
        """The ranks of the candidates with these keys, int64, increasing. Keys of other items are ignored."""

    @abstractmethod
    def rows_at(self, ranks: np.ndarray, questions: Sequence["Question"]) -> np.ndarray:
        """The candidate rows with these ranks, in order."""

    @abstractmethod
    def score_all(
        self,
        *,
        folders: Sequence["Path"],
        score: Callable[[np.ndarray], np.ndarray],
        questions: Sequence["Question"],
        n_scored: int,
        rank: int,
        rng: np.random.Generator,
        fidelity_rng: np.random.Generator,
        progress: Callable[[int, int, str], bool | None],
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Scores of all candidates that rank them nearly as the predictor saved in `folders` does, and how nearly.

        Args:
            score: gives candidate rows (M,) the predictor's own chances (M,), with the help of other workers.
            n_scored: how many candidates the predictor itself scores, to learn from.
            rank: how many factors the scores have.
            fidelity_rng: draws the fresh candidates on which the ranking is compared.
        """

    @abstractmethod
    def scores_at(self, scores: np.ndarray, ranks: np.ndarray) -> np.ndarray:
        """The scores of the candidates with these ranks, in order."""

    @abstractmethod
    def shortlist(
        self,
        scores: np.ndarray,
        *,
        size: int,
        rng: np.random.Generator,
        progress: BlockProgress | None = None,
    ) -> np.ndarray:
        """The ranks of the `size` candidates with the highest scores, int64, increasing. `progress`: as in `draw`."""

    @abstractmethod
    def draw(
        self,
        scores: np.ndarray,
        *,
        design: "Design",
        n: int,
        questions: Sequence["Question"],
        rng: np.random.Generator,
        exclude: Collection[str] = (),
        shortlist: tuple[np.ndarray, np.ndarray] | None = None,
        responses_per_item: int = 1,
        progress: BlockProgress | None = None,
    ) -> StreamedDraw:
        """Draw n slots. The same arguments give the same slots on every machine, with any number of threads.

        Args:
            exclude: keys of items that may not be drawn.
            shortlist: ranks, and the predictor's own scores of them, which then decide what is at the top.
            progress: called every few seconds at least, in this thread; what it raises ends the draw.

        Raises:
            DesignError: the design does not fit the candidates.
        """


class Priority(ABC):
    """What a stage samples by instead of the predicted chance of a label: a number a candidate, higher ones first.

    Only the order counts, and its ties; `softmax` takes the numbers themselves. It may rest on the predictor's chances,
    on the answers so far, or on neither. It counts for pools, under every design but `uniform`; `uncertainty` is
    refused next to it, since that design draws by the chances.
    """

    name: ClassVar[str]
    # Stored with the candidates: raise it when equal inputs give different numbers.
    version: ClassVar[str] = "1"
    needs_predictor: ClassVar[bool] = False

    @abstractmethod
    def of(
        self,
        *,
        rows: np.ndarray,
        questions: Sequence["Question"],
        chances: np.ndarray | None,
        answers: Sequence["Assignment"],
        rng: np.random.Generator,
    ) -> np.ndarray:
        """float64 (M,), finite.

        Args:
            chances: the predictor's chance of the label for each row (M,), then for each of `further_rows`; None if the
                study has no predictor.
            answers: every frozen answer before the stage that may train, in order.
        """

    def further_rows(self, rows: np.ndarray) -> np.ndarray:
        """More rows that the predictor is to score for `of`, such as the parts of each item; none by default."""
        return rows[:0]

    def facts(self) -> dict[str, str]:
        """For manifests and hashes."""
        return {"name": self.name, "version": self.version}
