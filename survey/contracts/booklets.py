"""What a booklet holds next to its items (practice, controls), and what may not be in one together.

A part of the contract of an instrument.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from .item_rows import ItemRows
from .screens import Screen

if TYPE_CHECKING:
    from survey.models import Item, Question, Sitting


# The control that asks an earlier item of the same booklet again. The core plans it.
REPEAT = "repeat"


# The control that asks an item of another booklet of the same stage of one more person. The core plans it, for every
# instrument, where the study file names it.
ANOTHER_PERSON = "another_person"


class Practice(ABC):
    """The practice item: the instrument's usual screens with a researcher's example."""

    @abstractmethod
    def problems(self, example: Mapping[str, str]) -> Iterable[tuple[str, str]]:
        """What is wrong with the texts of an example: the text's name, and what to do."""

    @abstractmethod
    def screen(
        self, *, sitting: "Sitting", example: Mapping[str, str], given: Sequence[Mapping[str, Any]]
    ) -> Screen | None:
        """Its screen for the example after these accepted answers; None when the example is finished.

        Args:
            given: `{"screen": name, **fields}` of each answer so far to this example.
        """

    @abstractmethod
    def summary(self, given: Sequence[Mapping[str, Any]]) -> Sequence[str]:
        """What was entered, in sentences, without saying whether it was right."""


class Controls(ABC):
    """Control slots, which measure how noisy answers are."""

    # The instrument's own kinds, which `draw` draws, and REPEAT, which the core plans itself. ANOTHER_PERSON is not one
    # of them: a study asks for it by name.
    kinds: ClassVar[tuple[str, ...]]

    def draw(self, *, kind: str, count: int, questions: Sequence["Question"], rng: np.random.Generator) -> np.ndarray:
        """`count` different rows for control slots of one of its own kinds; DesignError if there are fewer."""
        raise LookupError(f"no control of the kind {kind!r} is drawn here")


class Booklets:
    """What items may not be in one booklet, and how booklets share them out."""

    # Whether the candidates stay the same under every renaming of the conflict keys, as all pairs of questions do. Only
    # then may a holdout that cannot be dealt be drawn again; elsewhere that would change the chances of its items.
    keys_are_exchangeable: ClassVar[bool] = False

    def __init__(self, rows: ItemRows) -> None:
        self.rows = rows

    def conflict_keys(self, row: np.void) -> tuple[Any, ...]:
        """Keys of which each may appear only once in a booklet: by default the places of the candidate's questions."""
        return self.rows.conflict_keys(row)

    def conflict_keys_of(self, items: Sequence["Item"]) -> list[tuple[Any, ...]]:
        """The same for stored items, in order, where questions have other keys than among candidates."""
        return list(self.rows.conflict_keys_of(items))

    def balance_keys(self, row: np.void, questions: Sequence["Question"]) -> tuple[Hashable, ...]:
        """What booklets share out evenly, in addition to strata and roles; nothing by default."""
        return ()

    def latin_square_list(self, row: np.void, questions: Sequence["Question"]) -> Hashable | None:
        """The list that an item is on, where every booklet is to hold items of one list, as in a Latin square; None
        where booklets may mix all items. Sampled slots alone follow it."""
        return None


class BookletsByTask(Booklets):
    """Every booklet gets its share of each task of the bank, by the question that an item asks about."""

    def balance_keys(self, row: np.void, questions: Sequence["Question"]) -> tuple[Hashable, ...]:
        return (questions[row[self.rows.questions[0]]].task_id,)
