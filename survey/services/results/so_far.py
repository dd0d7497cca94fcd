"""What live reports of several instruments share: the rows that count so far, and figures of them by stage."""

from typing import Any

from django.db.models import Count, F, Model, QuerySet
from django.db.models.aggregates import Aggregate

from survey.models import Study

from ..answers.counting import counting

ANSWER = "response__assignment"  # of a row that belongs to a response
STAGE, PERSON = f"{ANSWER}__slot__stage__index", f"{ANSWER}__sitting__respondent"


def rows_so_far(study: Study, model: type[Model]) -> QuerySet[Any]:
    """The rows of this model whose answers count; each has a `response`."""
    answers = counting(study.main_stages()).order_by().values("pk")
    return model._default_manager.filter(**{f"{ANSWER}__in": answers}).order_by()


def by_stage(study: Study, model: type[Model], **measures: Aggregate) -> list[dict[str, Any]]:
    """One row per stage that has any: `stage`, `people` and these measures of `rows_so_far`, in one statement."""
    rows = rows_so_far(study, model).values(stage=F(STAGE))
    return list(rows.annotate(people=Count(PERSON, distinct=True), **measures).order_by("stage"))
