"""What live reports of several instruments share: figures by stage of what counts so far, in one statement."""

from typing import Any

from django.db.models import Count, F, Model
from django.db.models.aggregates import Aggregate

from survey.exceptions import StateRefused
from survey.models import Study

from ..answers.counting import counting

ANSWER = "response__assignment"  # of a row that belongs to a response


def by_stage(study: Study, model: type[Model], what: str, **measures: Aggregate) -> list[dict[str, Any]]:
    """One row per stage: `stage`, `people` and the measures, over the rows of this model whose answers count.

    Args:
        model: its rows have a `response`. what: one of them in a word, such as guess.

    Raises:
        StateRefused: none counts yet.
    """
    answers = counting(study.main_stages()).order_by().values("pk")
    rows = list(
        model._default_manager.filter(**{f"{ANSWER}__in": answers})
        .values(stage=F(f"{ANSWER}__slot__stage__index"))
        .annotate(people=Count(f"{ANSWER}__sitting__respondent", distinct=True), **measures)
        .order_by("stage")
    )
    if not rows:
        raise StateRefused(f"{study.slug}: no {what} counts yet")
    return rows
