"""What is read of answers: estimates, signs of careless answering, stored verdicts, and how to read many at once.

A part of the contract of an instrument.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from .item_rows import SLOT_ITEM, ItemRows, read_relations
from .measures import Estimands, Measure

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from survey.models import Assignment, Bank, Item, Question


class Estimates(ABC):
    """What a study's answers estimate."""

    # The unit of each outcome by its name: "share" if its values are 0 or 1, else words such as "points". It cannot be
    # read off the values: counts may be 0 and 1 by chance. An outcome without a unit is shown as a plain mean.
    units: ClassVar[Mapping[str, str]] = {}

    @abstractmethod
    def outcomes(self, assignments: Sequence["Assignment"]) -> dict[str, np.ndarray]:
        """Named 0/1 or numeric results, one for each complete assignment (n,), that tables by stratum show. The first
        one is what a predictor predicts."""

    def unit_of(self, outcome: str) -> str:
        return self.units.get(outcome, "mean")

    def estimand(self, *, universe_size: int, n_questions: int) -> str:
        """What an estimate is the mean over, in words."""
        return f"all {universe_size:,} items of the bank's {n_questions:,} questions"

    def estimands(self, assignments: Sequence["Assignment"], *, thresholds: Sequence[int] = ()) -> Estimands:
        """What is estimated from these n complete assignments. `thresholds`: how small a change counts as none, for an
        instrument that has changes; the first is the study's own."""
        return Estimands(
            measures=[
                Measure(name, name.replace("_", " "), self.unit_of(name), values)
                for name, values in self.outcomes(assignments).items()
            ]
        )

    def in_words(self, figure: str, title: str) -> str:
        """How a sentence names a figure, of its name and its title."""
        return title

    def default_thresholds(self) -> tuple[int, ...]:
        """The thresholds that are used unless others are asked for; the first is the study's own."""
        return ()

    def divisions(self, items: Sequence["Item"]) -> dict[str, np.ndarray]:
        """How tables can divide items, by the division's name: the part of each of the n items, as text (n,)."""
        return {}

    def item_features(self, items: Sequence["Item"]) -> np.ndarray:
        """A few numbers that are known about each item before it is answered (n, k). The model that assists the first
        stage's estimate uses them; k is 0 if there are none."""
        return np.empty((len(items), 0))

    def candidate_features(self, *, rows: np.ndarray, questions: Sequence["Question"]) -> np.ndarray:
        """The same for candidates (M, k)."""
        return np.empty((len(rows), 0))


class OutcomeRow(NamedTuple):
    """An outcome of one answer, with the keys of its stage and of its stratum (None: outside of all)."""

    stage: int
    stratum: int | None
    value: float


class LabelReading:
    """How labels, estimands and divisions get what they read of many answers: by default the rows of `ItemRows`.

    An instrument that needs less than these rows can read that, and be faster in large studies.
    """

    def __init__(self, rows: ItemRows) -> None:
        self.rows = rows

    def read(self, items: Sequence["Item"], answers: Sequence["Assignment"]) -> None:
        """Give many items, and complete answers to some of them, all that labels, estimands and divisions read."""
        paths = self.rows.label_paths
        of_items = [path.removeprefix(SLOT_ITEM) for path in paths if path.startswith(SLOT_ITEM)]
        read_relations(items, of_items)
        read_relations(answers, [path for path in paths if not path.startswith(SLOT_ITEM)])

    def read_outcomes(self, answers: Sequence["Assignment"]) -> None:
        """Give answers all that `Estimates.outcomes` reads."""
        read_relations(answers, ["responses", *self.rows.outcome_paths])

    def first_outcome(self, answers: "QuerySet[Assignment]") -> tuple[str, Iterable[OutcomeRow]] | None:
        """The name of the first of `Estimates.outcomes`, and its value for each of these answers, read by one statement
        without the answers' own rows. None where that cannot be: then `read_outcomes` reads them, which takes ten times
        as long. Both give the same numbers."""
        return None


class Signals:
    """What flags of careless sittings are computed from. The base class knows nothing."""

    # Answers that people give without thinking: the pilot report says how often each was given.
    round_values: ClassVar[Sequence[Hashable]] = ()

    def word_counts(self, items: Collection[int]) -> Mapping[int, int]:
        """How many words of the bank a person reads to answer an item, by the items' primary keys; empty if not
        known."""
        return {}

    def stated_values(self, sittings: Collection[int]) -> Iterable[tuple[int, str, Hashable]]:
        """(sitting, kind of question, answer) for each answer that is one of a few, of the sittings with these primary
        keys. A person who always gives the same one may not be reading."""
        return ()


@dataclass(frozen=True)
class ScoresAgain:
    """What reading stored scores again by the present rules, of the version `rules`, changes. `read`: scores that are
    read again. `left`: those that stay, since what is stored does not say them for certain. `differences`: a line for
    each score that changes."""

    rules: str
    read: int
    left: int
    differences: Sequence[str]


class StoredVerdicts:
    """What an instrument has to do with verdicts on language models' answers, which newer rules judge again."""

    def rests_on(self, language_model: str) -> bool:
        """Whether stored verdicts on this model's answers decide what the study draws, or are read by its predictors.
        Once a stage is planned, they are not judged again."""
        return False

    def read_scores_again(self, bank: "Bank", *, write: bool) -> ScoresAgain | None:
        """Read what language models said as scores of replies to this bank's questions again, where older rules read
        it, and store that with `write`; None if the instrument stores no such scores. Called in a transaction."""
        return None
