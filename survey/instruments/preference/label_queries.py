"""What labels read of many answers, with few objects."""

from collections.abc import Sequence

from survey.models import Assignment

from .labels import KNOWN
from .models import ReplyJudgement

BATCH_SIZE = 5000  # rows: databases limit the number of values in one statement


def read_judgements(answers: Sequence[Assignment]) -> None:
    """Give each answer its judgement, without its responses."""
    for start in range(0, len(answers), BATCH_SIZE):
        part = answers[start : start + BATCH_SIZE]
        rows = (
            ReplyJudgement.objects.filter(response__assignment__in=[answer.pk for answer in part])
            .order_by("-response__number")
            .values_list("response__assignment", "response", "a_first", "cannot_judge", "place", "places", "reason")
        )
        judgements = {
            answer: ReplyJudgement(
                response_id=response,
                a_first=a_first,
                cannot_judge=cannot_judge,
                place=place,
                places=places,
                reason=reason,
            )
            for answer, response, a_first, cannot_judge, place, places, reason in rows
        }
        for assignment in part:
            assignment.__dict__[KNOWN] = judgements.get(assignment.pk)
