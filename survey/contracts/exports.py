"""What an instrument gives to exports: columns, their values, and further files. Imports tables alone."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from .tables import Column, ExtraFile

if TYPE_CHECKING:
    from survey.models import Assignment


class QuickPlace(NamedTuple):
    """Where an answer was given: what an assignment and its sitting would say.

    `study_sha256`: of the study file that the sitting began with. `sitting`: its public id, as 32 hexadecimal digits.
    `stage_seed`: the seed of its stage. `position`: of the item in the sitting, from 1. `levels`: factor to level.
    """

    study_sha256: str
    language: str
    sitting: str
    stage_seed: int
    position: int
    levels: Mapping[str, str]


class QuickAnswer(NamedTuple):
    """An answer that counts: what `QuickExport.values` is given."""

    item: Any
    responses: Sequence[Sequence[Any]]
    place: QuickPlace


class QuickExport(ABC):
    """The columns of one study's instrument, from tuples.

    An export of a hundred thousand answers takes a quarter of the time with it. The values must be those of
    `AnswerExport.values`: a test compares both for every instrument that has this.
    """

    # Lookups from a response to the typed rows that belong to it, such as "belief__value".
    response_facts: ClassVar[Sequence[str]] = ()

    @abstractmethod
    def items(self, keys: Collection[int]) -> Mapping[int, Any]:
        """Whatever `values` needs of these items, by the items' primary keys. Asked once for some hundred items."""

    @abstractmethod
    def values(self, item: Any, responses: Sequence[Sequence[Any]], place: QuickPlace) -> Sequence[Any]:
        """One value for each of the instrument's columns; None if there is none (yet).

        Args:
            item: what `items` gave for the answer's item.
            responses: for each stored response, in their order: the screen's name, then the `response_facts`.
        """

    def extra_files(self, answers: Iterable[QuickAnswer]) -> Iterable[ExtraFile] | None:
        """The files of `AnswerExport.extra_files`, from tuples; None: it has no quicker way. `answers` are read while
        they are iterated."""
        return None


class AnswerExport(ABC):
    """An instrument's columns of `answers.csv`, and its files beside it."""

    columns: ClassVar[Sequence[Column]] = ()
    # The columns that say most to a person who looks at answers one by one, by name, and what stands above each; all of
    # them where it is empty. The questions stand before them.
    first_look: ClassVar[Mapping[str, str]] = MappingProxyType({})
    # Columns that say under which condition an answer was given. They are empty while a study is blind.
    columns_revealing_condition: ClassVar[frozenset[str]] = frozenset()
    # A sentence of the codebook on how this instrument's values are written, such as their unit; empty where there is
    # nothing to say.
    codebook_note: ClassVar[str] = ""

    @abstractmethod
    def values(self, assignment: "Assignment") -> Sequence[Any]:
        """One value for each of `columns`; None if there is none (yet)."""

    def extra_files(self, assignments: "Iterable[Assignment]") -> Iterable[ExtraFile]:
        """Further files about the answers that count.

        Their names and columns must not depend on the answers: lists of files and codebooks ask for them without any.
        Read the answers while the rows are iterated, as they may be many.
        """
        return ()

    @property
    def quick(self) -> QuickExport | None:
        """The same values without an object per answer; None where there is no quicker way."""
        return None
