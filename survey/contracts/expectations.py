"""The same items, put to people and to models: what an instrument gives the reports `agreement`, `calibration`, `gaps`.

An event is what both speak about, such as "the next person prefers reply A". There are two kinds. People may forecast
it: they state the chance of something that a model then does or does not do. Or people are the event: what the next
person answers, which a model (a judge, a predictor) forecasts. Plain arrays of numpy, no Django.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    from survey.models import Assignment

Kind = Literal["model", "judge", "predictor"]


@dataclass(frozen=True)
class ComparedEvent:
    """What people and models both speak about.

    `name`: small letters and underscores. `title`: the event in words, such as "the language model is right on the
    target question". `people_forecast`: people state a chance of it, and a model makes it happen or not; else the event
    is what the next person answers. `human` and `machine` say in words which quantity of each is compared.
    """

    name: str
    title: str
    human: str
    machine: str
    people_forecast: bool = False


@dataclass(frozen=True, eq=False)
class Items:
    """k items. `labels`: their names, the same on every machine. `texts`: what a reader recognises each by. `groups`:
    the part of each item by the division's name, such as its task (k,)."""

    labels: Sequence[str]
    texts: Sequence[str] = ()
    groups: Mapping[str, np.ndarray] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True, eq=False)
class ItemReader:
    """One model, judge or predictor on the same k items.

    chance: (k,) fractions. Where people forecast: what it really did, 1 or 0, or the share of several tries. Else: the
        chance that it gives to the event. NaN where it says nothing about an item.
    given: (n,) where an answer is one of more than two: the probability that it gave to what each person answered; NaN
        where it gave none. None: it follows from `chance`.
    counts: (n,) how far each answer is about this reader, from 0 to 1, such as the chance that it shows what the person
        was shown. None: all are.
    trained: the last day of what it may have learnt; None where that is not known.
    """

    name: str
    kind: Kind
    chance: np.ndarray
    given: np.ndarray | None = None
    counts: np.ndarray | None = None
    trained: date | None = None


@dataclass(frozen=True, eq=False)
class Forecast:
    """A further statement of the same people about the same event, such as the belief before the evidence; (n,)."""

    name: str
    chance: np.ndarray


@dataclass(frozen=True, eq=False)
class Expectations:
    """n answers of people to k items, and what readers say of the same items.

    item: (n,) place of the item, from 0. person: (n,) whole numbers, alike for answers of one person.
    weight: (n,) above 0: how much each answer counts by the design, in proportion to 1 / its chance to be asked.
    value: (n,) fractions. Where people forecast: the stated chance. Else: 1 where the event is what this person
        answered, 0 where not, 0.5 for a tie.
    said: (n,) what each answered in words, where there are more than two answers; else empty.
    others: (n,) the probability that the other people's answers give to this one, where the instrument smooths them its
        own way. None: the smoothed share of the others with the same value.
    item_weight: (k,) how much each item counts. None: the sum of its answers' weights.
    written: the day by which the items' texts existed; None where that is not known.
    """

    event: ComparedEvent
    items: Items
    item: np.ndarray
    person: np.ndarray
    weight: np.ndarray
    value: np.ndarray
    readers: Sequence[ItemReader] = ()
    forecasts: Sequence[Forecast] = ()
    said: Sequence[str] = ()
    others: np.ndarray | None = None
    item_weight: np.ndarray | None = None
    written: date | None = None
    notes: Sequence[str] = ()

    def __post_init__(self) -> None:
        n, k = len(self.value), len(self.items)
        columns: list[tuple[str, Any, int]] = [
            ("item", self.item, n),
            ("person", self.person, n),
            ("weight", self.weight, n),
            ("value", self.value, n),
            ("others", self.others, n),
            ("item_weight", self.item_weight, k),
            ("said", np.asarray(self.said) if len(self.said) else None, n),
            ("texts", np.asarray(self.items.texts) if len(self.items.texts) else None, k),
            *((f"groups[{name!r}]", part, k) for name, part in self.items.groups.items()),
            *((f"forecast {forecast.name!r}", forecast.chance, n) for forecast in self.forecasts),
        ]
        for reader in self.readers:
            columns += [
                (f"chance of {reader.name!r}", reader.chance, k),
                (f"given of {reader.name!r}", reader.given, n),
                (f"counts of {reader.name!r}", reader.counts, n),
            ]
        for name, values, length in columns:
            if values is not None and np.shape(values) != (length,):
                raise ValueError(f"{name}: shape {np.shape(values)}; needs ({length},)")
        if n and not ((self.item >= 0) & (self.item < k)).all():
            raise ValueError(f"item: must name one of the {k} items, from 0, everywhere")
        for name, values in (("weight", self.weight), ("item_weight", self.item_weight)):
            if values is not None and not (np.isfinite(values) & (values > 0)).all():
                raise ValueError(f"{name}: must be above 0 and finite everywhere")
        stated = [(f"forecast {forecast.name!r}", forecast.chance) for forecast in self.forecasts]
        for name, values in (("value", self.value), *stated):
            if not ((values >= 0) & (values <= 1)).all():
                raise ValueError(f"{name}: must lie between 0 and 1 everywhere")
        loose = [("others", self.others)]
        for reader in self.readers:
            loose += [(f"{part} of {reader.name!r}", getattr(reader, part)) for part in ("chance", "given", "counts")]
        for name, values in loose:
            if values is not None and not (np.isnan(values) | ((values >= 0) & (values <= 1))).all():
                raise ValueError(f"{name}: must lie between 0 and 1, or be NaN where there is none")
        if len({reader.name for reader in self.readers}) < len(self.readers):
            raise ValueError("readers: two have the same name")


class Expecting(ABC):
    """The capability `expectations` of an instrument: the same items, put to people and to models.

    With it a study has the reports `agreement`, `calibration` and `gaps`.
    """

    @property
    @abstractmethod
    def events(self) -> Sequence[ComparedEvent]:
        """What can be compared, the most important first. Reads no row."""

    def obstacle(self, event: str) -> str:
        """Why nothing can be compared by this event now, in a sentence that says what to do; empty if it seems that it
        can. Asked before answers are read, so it must take only a quick query or two."""
        return ""

    @abstractmethod
    def of(self, answers: "Sequence[Assignment]", weights: np.ndarray, *, event: str) -> Expectations:
        """What people answered and what readers say, for one of `events`.

        Args:
            answers: complete answers that count, with what labels read (`LabelReading.read`).
            weights: (n,) of each answer, by the design and over all stages; the mean with them is the study's figure.

        Raises:
            StateRefused: nobody read these items yet, or nothing can be compared; says what to do.
        """
