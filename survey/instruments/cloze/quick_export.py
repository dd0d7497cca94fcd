"""The columns of `export`, from tuples: the same values without an object for each answer."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from survey.contracts.exports import QuickExport, QuickPlace

from .models import AskedWord


class ClozeQuickExport(QuickExport):
    """Only while there is one rule: a word that several rules judged would stand in several tuples."""

    response_facts = (
        *("written_word__text", "written_word__several", "written_word__scores__normalised"),
        *("written_word__scores__rule", "written_word__scores__exact", "written_word__scores__lenient"),
    )

    def items(self, keys: Collection[int]) -> Mapping[int, Any]:
        rows = AskedWord.objects.filter(pk__in=keys).select_related("question__task")
        return {
            asked.pk: (asked.question.external_id, asked.question.task.name, asked.position, asked.target)
            for asked in rows
        }

    def values(self, item: Any, responses: Sequence[Sequence[Any]], place: QuickPlace) -> Sequence[Any]:
        written = [response[1:] for response in responses if response[1] is not None]
        if not written:
            return (*item, *[None] * 7)
        text, several, normalised, rule, exact, lenient = written[-1]
        judged = (None,) * 4 if rule is None else (normalised, rule, int(exact), int(lenient))
        return (*item, text, int(len(written) > 1), int(several), *judged)
