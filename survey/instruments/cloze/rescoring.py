"""Words judged by a later version of the rule: new rows, and the old ones stay."""

from django.db import transaction

from survey.models import Study

from .analysis.normalising import RULE
from .labels import judged
from .models import WordScore, WrittenWord

PART = 1000


def rescore(study: Study) -> int:
    """Judge the study's words that the newest rule has not judged; how many there were."""
    rule, made = int(RULE), 0
    words = WrittenWord.objects.filter(response__assignment__sitting__stage__study=study)
    missing = words.exclude(scores__rule=rule).select_related("response__assignment__slot__item__asked_word__question")
    rows: list[WordScore] = []
    for word in missing.order_by("pk").iterator(chunk_size=PART):
        asked = word.response.assignment.slot.item.asked_word
        normalised, match = judged(word.text, asked.question, asked.target, rule)
        rows.append(WordScore(word=word, rule=rule, normalised=normalised, exact=match.exact, lenient=match.lenient))
        if len(rows) >= PART:
            made += _store(rows)
            rows = []
    return made + _store(rows)


def _store(rows: list[WordScore]) -> int:
    with transaction.atomic():
        WordScore.objects.bulk_create(rows, ignore_conflicts=True)
    return len(rows)
