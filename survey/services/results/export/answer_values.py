"""The values of an instrument's columns, made of tuples: an object per answer and response would take four times as
long. Imports models and below."""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from operator import itemgetter
from typing import Any

from survey.contracts.exports import SETTING, AnswerColumn, Answered, AnswerPlace
from survey.contracts.instruments import Instrument
from survey.models import Item

LONG = 100  # characters: of a longer text of items there is one copy, as many items may have it
TEXTS = 20_000  # of these are known at once

Facts = Sequence[Any]


class AnswerValues:
    """Makes the values of some columns of one study's instrument. What follows from the item alone is made once per
    item.

    `lookups`: what is read of each response, after its screen's name. `screen_at`: where that stands in what was read.
    """

    def __init__(self, instrument: Instrument, columns: Sequence[AnswerColumn], *, screen_at: int = 0) -> None:
        self._export, self._relation = instrument.export, instrument.rows.item
        self._texts: dict[str, str] = {}
        of_item = [column for column in columns if all(isinstance(fact, str) for fact in column.facts)]
        facts = list(dict.fromkeys(fact for column in columns if column not in of_item for fact in column.facts))

        groups: dict[Answered, list[Answered]] = defaultdict(list)
        for fact in facts:
            if isinstance(fact, Answered):
                groups[fact.source].append(fact)
        wanted = [fact.lookup for source, group in groups.items() for fact in (source, *group)]
        self.lookups = list(dict.fromkeys(filter(None, wanted)))
        in_response = {lookup: place for place, lookup in enumerate(self.lookups, screen_at + 1)}
        self._sources = [
            _Source(source, in_response.get(source.lookup, screen_at), [in_response[fact.lookup] for fact in group])
            for source, group in groups.items()
        ]

        lasting = [fact for fact in facts if isinstance(fact, str)]
        of_columns = [fact for column in of_item for fact in column.facts]
        self._item_lookups = list(dict.fromkeys([*of_columns, *lasting]))
        in_item = {lookup: place for place, lookup in enumerate(self._item_lookups)}
        self._of_item: list[Callable[[Facts], Any]] = [
            *(_maker(column, in_item) for column in of_item),
            *(itemgetter(in_item[lookup]) for lookup in lasting),
        ]
        self._no_item = [None] * len(self._of_item)

        # In the order in which `values` gathers them.
        gathered: list[Any] = [*of_item, *lasting, *(fact for group in groups.values() for fact in group), SETTING]
        places = {fact: place for place, fact in enumerate(gathered)}
        self._pick_all = _picker([places[column if column in places else column.facts[0]] for column in columns])
        self._makers = [
            (place, _maker(column, places))
            for place, column in enumerate(columns)
            if column not in places and column.value is not None
        ]

    def items(self, keys: Collection[int]) -> Mapping[int, Facts]:
        """What `values` needs of these items, by the items' primary keys."""
        if not self._item_lookups or not keys:
            return {}
        related: Any = Item._meta.get_field(self._relation)
        rows = related.related_model._default_manager.filter(pk__in=keys).values_list("pk", *self._item_lookups)
        return {key: [self._single(make(facts)) for make in self._of_item] for key, *facts in rows}

    def values(self, item: Facts | None, responses: Sequence[Facts], place: AnswerPlace) -> list[Any]:
        """One value for each column; None where there is none (yet).

        Args:
            item: what `items` gave for the answer's item.
            responses: for each stored response, in their order: what was read of it.
        """
        facts = [*(self._no_item if item is None else item)]
        for source in self._sources:
            facts += source.facts(responses)
        facts.append(self._export.setting(place))
        values = [*self._pick_all(facts)]
        for column, make in self._makers:
            values[column] = make(facts)
        return values

    def _single(self, value: Any) -> Any:
        """The one copy of a long text."""
        if type(value) is not str or len(value) < LONG:
            return value
        if len(self._texts) > TEXTS:
            self._texts.clear()
        return self._texts.setdefault(value, value)


class _Source:
    """The responses that some facts are taken from. `decisive`: where that stands which decides which they are."""

    def __init__(self, fact: Answered, decisive: int, places: Sequence[int]) -> None:
        self.screens, self.every, self.decisive = fact.screens, fact.every, decisive
        self.pick, self.nothing = _picker(places), (None,) * len(places)

    def facts(self, responses: Sequence[Facts]) -> Facts:
        decisive, screens = self.decisive, self.screens
        chosen = [
            self.pick(response)
            for response in responses
            if (response[decisive] in screens if screens else response[decisive] is not None)
        ]
        if self.every:
            return [list(facts) for facts in zip(*chosen, strict=True)] or self.nothing
        return chosen[-1] if chosen else self.nothing


def _picker(places: Sequence[int]) -> Callable[[Facts], Facts]:
    """Takes what stands at these places."""
    if len(places) == 1:
        (place,) = places
        return lambda facts: (facts[place],)
    return itemgetter(*places) if places else lambda _facts: ()


def _maker(column: AnswerColumn, places: Mapping[Any, int]) -> Callable[[Facts], Any]:
    """Makes the column's value of all facts, which stand at these places."""
    make = column.value
    if len(column.facts) == 1:
        (place,) = (places[fact] for fact in column.facts)

        def of_one(facts: Facts) -> Any:
            fact = facts[place]
            return fact if fact is None or make is None else make(fact)

        return of_one
    pick = itemgetter(*(places[fact] for fact in column.facts))

    def of_several(facts: Facts) -> Any:
        picked = pick(facts)
        return None if make is None or None in picked else make(*picked)

    return of_several
