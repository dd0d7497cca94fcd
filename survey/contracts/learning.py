"""A label, what predictors learn it from, and how they are judged. A part of the contract of an instrument."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from predictors.errors import PredictorError

if TYPE_CHECKING:
    from survey.models import Assignment, Question


@dataclass(frozen=True)
class Metric:
    """A figure that judges predictors. `name` is its key in `Learning.evaluate`'s result.

    `head` stands over a column of it, the name in capitals unless another is given. `chance` says what a predictor that
    knows nothing has, such as "a coin toss has 0.5". `is_log_score`: it is in nats, and people see it in bits too.
    """

    name: str
    title: str
    highest_first: bool
    head: str = ""
    chance: str = ""
    is_log_score: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "head", self.head or self.name.upper())

    @property
    def hint(self) -> str:
        """How to read it, as a sentence."""
        better = f"{self.head}: {'higher' if self.highest_first else 'lower'} is better"
        return f"{better}, {self.chance}." if self.chance else f"{better}."


@dataclass(frozen=True)
class AnswerPart:
    """A part of the answers on which predictors are also judged separately, such as those after a correct answer. The
    first part of a list is all answers. `head` is the title where there is little room."""

    name: str
    title: str
    head: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "head", self.head or self.title)


@dataclass(frozen=True)
class Baseline:
    """A cheap predictor that is always trained in addition to the study's own. `name` is its name in `predictors`."""

    name: str
    params: Mapping[str, Any]


class AnswersRead(NamedTuple):
    """What a column next to the inputs was made of, where that can change between training and prediction: so many
    answers of so many models, and the SHA-256 of them."""

    answers: int
    models: int
    sha256: str


class Learning(ABC):
    """A label, what predictors learn it from, and how they are judged."""

    metrics: ClassVar[Sequence[Metric]]
    parts: ClassVar[Sequence[AnswerPart]]
    baselines: ClassVar[Sequence[Baseline]] = ()
    # What `inputs` and `examples` give: "pairs" (predictors.pairs.Pair) or "features" (predictors.features.Features).
    reads: ClassVar[str] = "features"
    # What `columns_of` knows in addition to them, for predictors that name columns (`predictors.hardness`).
    columns: ClassVar[Sequence[str]] = ()

    @abstractmethod
    def inputs(self, *, rows: np.ndarray, questions: Sequence["Question"]) -> Sequence[Any]:
        """Candidates as the plain data that predictors take."""

    @abstractmethod
    def examples(self, assignments: Sequence["Assignment"]) -> tuple[Sequence[Any], np.ndarray]:
        """Inputs for a predictor and their labels (n,), one for each complete assignment that is learnable."""

    def learnable(self, assignments: Sequence["Assignment"]) -> np.ndarray:
        """Which of the complete assignments `examples` can use: bool (n,)."""
        return np.ones(len(assignments), dtype=bool)

    def columns_of(self, assignments: Sequence["Assignment"], names: Collection[str]) -> Mapping[str, np.ndarray]:
        """The named columns next to `examples`, (n,) each: for each learnable assignment a number from 0 to 1, NaN
        where it is not known. `names` are of `columns`."""
        return {}

    def columns_and_sources(
        self, assignments: Sequence["Assignment"], names: Collection[str]
    ) -> tuple[Mapping[str, np.ndarray], Mapping[str, AnswersRead]]:
        """`columns_of`, and by column what it was made of, as it was in the same moment; columns that cannot change
        have no source."""
        return self.columns_of(assignments, names), {}

    def checked_inputs(self, *, rows: np.ndarray, questions: Sequence["Question"]) -> Sequence[Any]:
        """`inputs`, as the core takes them.

        Raises:
            PredictorError: they are not one for each row.
        """
        inputs = self.inputs(rows=rows, questions=questions)
        if len(inputs) != len(rows):
            raise PredictorError(f"{_place(self)}.inputs gives {len(inputs)} inputs for {len(rows)} rows; one a row.")
        return inputs

    def checked_examples(self, assignments: Sequence["Assignment"]) -> tuple[Sequence[Any], np.ndarray]:
        """`examples`, as the core takes them.

        Raises:
            PredictorError: they are not one input and one label, from 0 to 1, for each learnable assignment.
        """
        examples, labels = self.examples(assignments)
        count = int(np.count_nonzero(self.learnable(assignments)))
        if len(examples) != count or np.shape(labels) != (count,):
            raise PredictorError(
                f"{_place(self)}.examples gives {len(examples)} inputs and labels of the shape {np.shape(labels)} for "
                f"{count} assignments that are learnable; one input and one label for each."
            )
        if count and not ((labels >= 0) & (labels <= 1)).all():
            raise PredictorError(f"{_place(self)}.examples gives a label that is not from 0 to 1.")
        return examples, labels

    @abstractmethod
    def evaluate(
        self,
        assignments: Sequence["Assignment"],
        scores: np.ndarray,
        *,
        weights: np.ndarray | None,
        clusters: Sequence[np.ndarray],
        rng: np.random.Generator,
    ) -> dict[str, Any]:
        """Metrics of the scores (n,) that a predictor which has not seen them gives these n learnable assignments.

        Args:
            weights: the weight of each (n,); None counts each once.
            clusters: what makes answers depend on each other, each (n,): the respondents, and the items where an item
                has several answers. `rng` resamples whole clusters for the intervals.

        Returns:
            `n`; by metric and part the value, None where it is not defined; under `intervals` the same as [low, high].
        """

    @abstractmethod
    def compare(
        self,
        assignments: Sequence["Assignment"],
        scores: np.ndarray,
        others: np.ndarray,
        *,
        weights: np.ndarray | None,
        clusters: Sequence[np.ndarray],
        rng: np.random.Generator,
    ) -> dict[str, Any]:
        """The differences of those metrics between two predictors: those of `scores` minus those of `others`. By metric
        and part: `difference` and `interval`."""

    def evaluate_majorities(
        self, assignments: Sequence["Assignment"], labels: np.ndarray, scores: np.ndarray, *, rng: np.random.Generator
    ) -> dict[str, Any]:
        """As `evaluate`, on the majority labels of a test stage: one assignment of each item, and the item's label, 0
        or 1 (n,), instead of the assignment's own. The items are the clusters. Empty where the instrument has none."""
        return {}

    def compare_majorities(
        self,
        assignments: Sequence["Assignment"],
        labels: np.ndarray,
        scores: np.ndarray,
        others: np.ndarray,
        *,
        rng: np.random.Generator,
    ) -> dict[str, Any]:
        """As `compare`, on the majority labels of a test stage."""
        return {}


def _place(part: object) -> str:
    """The module and class of a part of an instrument, for the person who repairs it."""
    return f"{type(part).__module__}.{type(part).__qualname__}"
