"""Which questions respondents reported as wrong, and how often."""

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, F, QuerySet

from survey.contracts import instruments
from survey.models import Item, Question, Study

MAX_QUESTIONS = 30


@dataclass(frozen=True)
class ReportedQuestion:
    """A question with the number of reports that were sent from a page which showed it, or from a later page of the
    same item. A report on an item with two questions counts for both once both were shown."""

    question: Question
    reports: int


def reports_by_question(studies: QuerySet[Study]) -> list[ReportedQuestion]:
    """The questions with the most reports in these studies."""
    items = Item.objects.filter(slots__assignments__question_reports__isnull=False, study__in=studies.order_by())
    counted = list(
        items.order_by()
        .annotate(screen=F("slots__assignments__question_reports__screen"))
        .annotate(reports=Count("slots__assignments__question_reports"))
        .select_related("study")
        .defer("study__stored_config", "study__source_text")
    )
    # By instrument, not by study, of which there may be many: an item's own row says which questions it shows.
    by_kind: dict[str, list[Any]] = defaultdict(list)
    for item in counted:
        by_kind[item.study.instrument].append(item)
    counts: Counter[int] = Counter()
    questions_by_key: dict[int, Question] = {}
    for name, own in by_kind.items():
        if not instruments.is_known(name):  # While the instrument is missing, nobody can read what its items show.
            continue
        seen = instruments.kind(name).rows.questions_seen(own, [item.screen for item in own])
        for item, questions in zip(own, seen, strict=True):
            for question in questions:
                questions_by_key[question.pk] = question
                counts[question.pk] += item.reports
    order = sorted(counts, key=lambda key: (-counts[key], questions_by_key[key].external_id))
    return [ReportedQuestion(questions_by_key[key], counts[key]) for key in order[:MAX_QUESTIONS]]
