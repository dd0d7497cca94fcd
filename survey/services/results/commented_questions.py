"""Which questions respondents reported as wrong, and how often."""

from collections import Counter, defaultdict
from dataclasses import dataclass

from django.db.models import Count, QuerySet

from survey.contracts import instruments
from survey.models import Item, Question, Study

MOST = 30


@dataclass(frozen=True)
class ReportedQuestion:
    """A question with the number of reports on items that show it. An item with two questions counts for both."""

    question: Question
    reports: int


def reports_by_question(studies: QuerySet[Study]) -> list[ReportedQuestion]:
    """The questions with the most reports in these studies."""
    items = Item.objects.filter(slots__assignments__question_reports__isnull=False, study__in=studies.order_by())
    counted = list(
        items.order_by()
        .annotate(reports=Count("slots__assignments__question_reports"))
        .select_related("study")
        .defer("study__stored_config", "study__source_text")
    )
    reports = {item.pk: item.reports for item in counted}
    # By instrument, not by study, of which there may be many: an item's own row says which questions it shows.
    by_kind: dict[str, list[Item]] = defaultdict(list)
    for item in counted:
        by_kind[item.study.instrument].append(item)
    counts: Counter[int] = Counter()
    found: dict[int, Question] = {}
    for name, own in by_kind.items():
        if not instruments.is_known(name):  # While the instrument is missing, nobody can read what its items show.
            continue
        for counted_item, questions in zip(own, instruments.kind(name)().questions_of(own), strict=True):
            for question in questions:
                found[question.pk] = question
                counts[question.pk] += reports[counted_item.pk]
    order = sorted(counts, key=lambda key: (-counts[key], found[key].external_id))
    return [ReportedQuestion(found[key], counts[key]) for key in order[:MOST]]
