"""The columns of `export`, from tuples: the same values without an object for each answer."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from survey.contracts.exports import QuickExport, QuickPlace

from .models import MIDDLE, ReplyComparison


class PreferenceQuickExport(QuickExport):
    response_facts = tuple(f"judgement__{name}" for name in ("a_first", "cannot_judge", "place", "places", "reason"))

    def items(self, keys: Collection[int]) -> Mapping[int, Any]:
        rows = ReplyComparison.objects.filter(pk__in=keys).values_list(
            *("pk", "question__external_id", "question__task__name"),
            *("a__language_model__name", "b__language_model__name"),
        )
        return {row[0]: row[1:] for row in rows}

    def values(self, item: Any, responses: Sequence[Sequence[Any]], place: QuickPlace) -> Sequence[Any]:
        judgement = next((response[1:] for response in responses if response[1] is not None), None)
        if judgement is None:
            return (*item, *[None] * 7)
        a_first, cannot_judge, first, places, reason = judgement
        sign = 1 if a_first else -1
        return (
            *item,
            "a" if a_first else "b",
            int(cannot_judge),
            first,
            None if first is None else sign * (MIDDLE - first),
            places or None,
            {name: sign * (MIDDLE - place) for name, place in places.items()} or None,
            reason or None,
        )
