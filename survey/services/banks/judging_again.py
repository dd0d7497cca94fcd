"""Judging replies by the rules, as they come and again where the rules have changed.

A verdict that items of a study rest on stays as it is: people were shown it, or a draw depended on it. So does a
verdict that was imported, and what people answered themselves.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import models, transaction

from survey.models import Bank, Item, LanguageModel, ModelAnswer, Study
from survey.services.base.auditing import record

from .answer_checking import RULES_VERSION, check_answer

FIELDS = ("correct", "share_correct", "stated", "reason", "unreadable", "rules_version")


def judge(answer: ModelAnswer, responses: Sequence[str], *, key: str, question: str) -> None:
    """Set what the replies state, the share that is right, and how many could not be read."""
    verdicts = [check_answer(response, key, question=question) for response in responses]
    stated = Counter(verdict.stated for verdict in verdicts if verdict.is_readable)
    answer.stated = stated.most_common(1)[0][0] if stated else ""
    answer.reason = next((verdict.reason for verdict in verdicts if verdict.reason), "")
    answer.unreadable = sum(not verdict.is_readable for verdict in verdicts)
    answer.rules_version = RULES_VERSION
    answer.grade(sum(bool(verdict.correct) for verdict in verdicts) / len(verdicts))


@dataclass(frozen=True)
class ChangedVerdict:
    """An answer whose verdict another version of the rules changes; each share right is from 0 to 1."""

    model: str
    question_id: str
    key: str
    reply: str
    before: float
    after: float
    unreadable: int
    is_used: bool


@dataclass
class JudgedAgain:
    """What judging a bank's replies again changes. `used`: answers that keep it, since a study rests on it."""

    judged: int = 0
    used: int = 0
    differences: list[ChangedVerdict] = field(default_factory=list)
    studies: list[str] = field(default_factory=list)


def judge_again(bank: Bank, *, write: bool, by: Any = None, via: str = "command") -> JudgedAgain:
    """Judge the stored replies of a bank that older rules judged; without `write` only say what would change."""
    result = JudgedAgain(studies=[study.slug for study in Study.objects.filter(bank=bank).order_by("slug")])
    with transaction.atomic():
        answers = (
            ModelAnswer.objects.select_for_update(of=("self",))
            .filter(question__bank=bank)
            .exclude(rules_version__in=("", RULES_VERSION))
            .select_related("question", "language_model")
            .order_by("language_model__name", "question__position")
        )
        fixed = _models_that_items_rest_on(bank)
        changed = []
        for answer in answers:
            is_used = answer.language_model_id in fixed
            before = _share_right(answer)
            judge(
                answer, answer.replies or [answer.response], key=answer.question.answer, question=answer.question.text
            )
            after = _share_right(answer)
            result.judged += not is_used
            result.used += is_used
            if before != after:
                own = (answer.question.external_id, answer.question.answer, answer.response)
                result.differences.append(
                    ChangedVerdict(answer.language_model.name, *own, before, after, answer.unreadable, is_used)
                )
            if not is_used:
                changed.append(answer)
        if write and changed:
            ModelAnswer.objects.bulk_update(changed, FIELDS, batch_size=500)
            verdicts = sum(not difference.is_used for difference in result.differences)
            detail = {"rules": RULES_VERSION, "judged": result.judged, "kept": result.used, "changed": verdicts}
            record("judge_again", bank, by=by, via=via, studies=result.studies, **detail)
    return result


def _share_right(answer: ModelAnswer) -> float:
    return float(bool(answer.correct)) if answer.share_correct is None else answer.share_correct


def _models_that_items_rest_on(bank: Bank) -> set[int]:
    """Language models of which an answer stands in an item. All of a model's answers stay then: which items were drawn
    depended on all of them."""
    fixed: set[int] = set()
    for relation in _relations_of_items():
        name = relation.field.name
        pairs = relation.related_model._default_manager.filter(**{f"{name}__question__bank": bank})
        fixed |= set(pairs.values_list(f"{name}__language_model", flat=True).distinct())
    return fixed & set(LanguageModel.objects.values_list("pk", flat=True))


def _relations_of_items() -> Iterator[models.ForeignObjectRel]:
    """Fields through which instruments' rows of items point at answers; instruments are not named here."""
    for relation in ModelAnswer._meta.get_fields(include_hidden=True):
        if isinstance(relation, models.ForeignObjectRel) and any(
            getattr(own, "related_model", None) is Item for own in relation.related_model._meta.concrete_fields
        ):
            yield relation
