"""Stored verdicts of judges on the replies of some models, and the names under which judges stand in tables."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from predictors.prompts import names, shipped
from survey.contracts.instruments import ScoresAgain
from survey.models import Bank

from .judging_calls import SCORE_RULES_VERSION, towards_first
from .models import JudgeVerdict

if TYPE_CHECKING:
    from django.db.models import QuerySet


def verdicts_of(bank_id: int, models: Iterable[str]) -> "QuerySet[JudgeVerdict]":
    """Every verdict on two replies of these models to prompts of a bank, in the order of judges and items."""
    names = list(models)
    return _in_order(
        JudgeVerdict.objects.filter(
            a__question__bank=bank_id, a__language_model__name__in=names, b__language_model__name__in=names
        )
    )


def _in_order(verdicts: "QuerySet[JudgeVerdict]") -> "QuerySet[JudgeVerdict]":
    return verdicts.select_related("judge", "a__question", "a__language_model", "b__language_model").order_by(
        "judge__name", "template", "a__question__position", "a", "b", "first"
    )


def names_of(verdicts: Sequence[JudgeVerdict]) -> list[str]:
    """The name of each verdict's judge: the model's, with how it was asked where it was asked in several ways. What was
    asked under one version of a template is never mixed with another's."""
    ways: dict[int, set[tuple[str, str]]] = {}
    for verdict in verdicts:
        ways.setdefault(verdict.judge_id, set()).add((verdict.template, verdict.template_version))

    def name(verdict: JudgeVerdict) -> str:
        own = ways[verdict.judge_id]
        if len(own) == 1:
            return verdict.judge.name
        version = (
            f" {verdict.template_version}"
            if sum(template == verdict.template for template, _version in own) > 1
            else ""
        )
        return f"{verdict.judge.name} ({verdict.template or 'imported'}{version})"

    return [name(verdict) for verdict in verdicts]


# Reading scores again


def read_again(bank: Bank, *, write: bool) -> ScoresAgain:
    """Read the scores on replies to a bank's prompts again that older rules read; store them with `write`. An imported
    score has no reply, and one by probabilities was not read from it: both stay and are not counted."""
    verdicts = _in_order(JudgeVerdict.objects.filter(a__question__bank=bank, chance_a__isnull=True)).exclude(
        rules_version__in=("", SCORE_RULES_VERSION)
    )
    changed, differences, left = [], [], 0
    for verdict in verdicts.select_for_update(of=("self",)) if write else verdicts:
        readings = _readings(verdict)
        if len(readings) != 1:
            left += 1
            continue
        (towards,) = readings
        before, verdict.rules_version = verdict.towards_a, SCORE_RULES_VERSION
        verdict.towards_a = towards
        changed.append(verdict)
        if before != towards:
            differences.append(
                f"{verdict.judge.name} ({verdict.template}) on {verdict.a.question.external_id}, "
                f"{verdict.a.language_model.name} and {verdict.b.language_model.name}: {_in_words(before)} to "
                f"{_in_words(towards)} (reply {verdict.reply[:60]!r})"
            )
    if write:
        JudgeVerdict.objects.bulk_update(changed, ["towards_a", "rules_version"], batch_size=500)
    return ScoresAgain(SCORE_RULES_VERSION, len(changed), left, differences)


def _readings(verdict: JudgeVerdict) -> set[float | None]:
    """What the stored reply may say towards A. Replies rated alone are stored one below the other, and where a line
    break could part them in several places, there may be several readings. None at all for a template that this
    version does not have."""
    if verdict.template not in names("judge", "rate"):
        return set()
    template = shipped(verdict.template)
    if template.version != verdict.template_version:
        return set()
    lines = verdict.reply.split("\n")
    parts = [["\n".join(lines[:cut]), "\n".join(lines[cut:])] for cut in range(1, len(lines))]
    ratings = {towards_first(template, replies) for replies in (parts if template.use == "rate" else [[verdict.reply]])}
    return {-rating if rating is not None and verdict.first == "b" else rating for rating in ratings}


def _in_words(towards: float | None) -> str:
    return "unreadable" if towards is None else f"{towards:+g} towards A" if towards else "a tie"
