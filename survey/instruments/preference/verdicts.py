"""Stored verdicts of judges on the replies of some models, and the names under which judges stand in tables."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from .models import JudgeVerdict

if TYPE_CHECKING:
    from django.db.models import QuerySet


def verdicts_of(bank_id: int, models: Iterable[str]) -> "QuerySet[JudgeVerdict]":
    """Every verdict on two replies of these models to prompts of a bank, in the order of judges and items."""
    names = list(models)
    found = JudgeVerdict.objects.filter(
        a__question__bank=bank_id, a__language_model__name__in=names, b__language_model__name__in=names
    )
    return found.select_related("judge", "a__question", "a__language_model", "b__language_model").order_by(
        "judge__name", "template", "a__question__position", "a", "b", "first"
    )


def names_of(verdicts: Sequence[JudgeVerdict]) -> list[str]:
    """The name of each verdict's judge: the model's, with how it was asked where it was asked in several ways."""
    ways: dict[int, set[tuple[str, str]]] = {}
    for one in verdicts:
        ways.setdefault(one.judge_id, set()).add((one.template, one.template_version))
    return [
        one.judge.name if len(ways[one.judge_id]) == 1 else f"{one.judge.name} ({one.template or 'imported'})"
        for one in verdicts
    ]
