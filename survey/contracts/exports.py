"""What an instrument gives to exports: columns with their values, and further files. Imports tables alone."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from .tables import Column, ExtraFile

if TYPE_CHECKING:
    from survey.models import Assignment

# A fact of an `AnswerColumn`: what `AnswerExport.setting` says of the answer's place.
SETTING: Final = object()


@dataclass(frozen=True)
class Answered:
    """A fact of the stored responses: by default of the last one that has the row of the lookup's first part.

    Args:
        lookup: from a response, such as "belief__value".
        screens: of the last response on one of these screens.
        every: a list of the fact in every such response, in their order; None in place of an empty one.
    """

    lookup: str
    screens: tuple[str, ...] = ()
    every: bool = False

    @property
    def source(self) -> "Answered":
        """What it has in common with other facts of the same responses: the lookup's first part, where that decides
        which they are."""
        return replace(self, lookup="" if self.screens else self.lookup.partition("__")[0])


@dataclass(frozen=True)
class AnswerColumn(Column):
    """A column of answers, and the facts that its value is made of.

    `of`: a lookup from the item's row, such as "question__text"; a fact of the responses; or `SETTING`. Several for
    several. `value` makes the value of the facts, in their order; without it, it is the fact. A value is empty where
    one of its facts is. `reveals_condition`: it says under which condition an answer was given, and is empty while a
    study is blind.
    """

    of: Any = field(kw_only=True)
    value: Callable[..., Any] | None = field(default=None, kw_only=True)
    reveals_condition: bool = field(default=False, kw_only=True)

    @property
    def facts(self) -> tuple[Any, ...]:
        return self.of if isinstance(self.of, tuple) else (self.of,)

    def of_row(self, row: Any) -> Any:
        """The value of a column that is about the item alone, from the item's row. Its facts must not be empty."""
        facts = [attrgetter(lookup.replace("__", "."))(row) for lookup in self.facts]
        return facts[0] if self.value is None else self.value(*facts)


class AnswerPlace(NamedTuple):
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


class CountedAnswers(ABC):
    """The answers that count. They are read while they are iterated, as they may be many."""

    @abstractmethod
    def __iter__(self) -> "Iterator[Assignment]": ...

    @abstractmethod
    def values(self, columns: Sequence[AnswerColumn]) -> Iterator[Sequence[Any]]:
        """The values of these columns for each answer, without an object per answer."""


class NoAnswers(CountedAnswers):
    """For those who need no more than the names and columns of files."""

    def __iter__(self) -> "Iterator[Assignment]":
        return iter(())

    def values(self, columns: Sequence[AnswerColumn]) -> Iterator[Sequence[Any]]:
        return iter(())


class AnswerExport:
    """An instrument's columns of `answers.csv`, and its files beside it."""

    columns: ClassVar[Sequence[AnswerColumn]] = ()
    # Lookups from a response. Where a fact has several rows of one response, the last in this order is taken.
    response_order: ClassVar[Sequence[str]] = ()
    # The columns that say most to a person who looks at answers one by one, by name, and what stands above each; all of
    # them where it is empty. The questions stand before them.
    first_look: ClassVar[Mapping[str, str]] = MappingProxyType({})
    # A sentence of the codebook on how this instrument's values are written, such as their unit; empty where there is
    # nothing to say.
    codebook_note: ClassVar[str] = ""

    def setting(self, place: AnswerPlace) -> Any:
        """What `SETTING` is in the columns: for example the options under an answer's conditions."""
        return place

    def extra_files(self, answers: CountedAnswers) -> Iterable[ExtraFile]:
        """Further files about the answers that count.

        Their names and columns must not depend on the answers: lists of files and codebooks ask for them without any.
        Read the answers while the rows are iterated.
        """
        return ()
