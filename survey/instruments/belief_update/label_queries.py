"""What labels read of many answers, with few objects: a large study would spend most of an estimate on making them."""

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from django.db.models import Max, Q, QuerySet

from survey.contracts.instruments import OutcomeRow
from survey.models import Assignment, Item, Question

from .labels import KNOWN, Beliefs, beliefs_from
from .models import Belief, Pair

BATCH_SIZE = 5000  # rows: databases limit the number of values in one statement


def read_pairs(items: Sequence[Item]) -> None:
    """Give each item its pair, and the pairs their questions with their tasks, without any text."""
    pairs: dict[int, Pair] = {}
    for start in range(0, len(items), BATCH_SIZE):
        keys = [item.pk for item in items[start : start + BATCH_SIZE]]
        pairs |= {pair.pk: pair for pair in Pair.objects.filter(pk__in=keys).order_by()}
    questions = _questions(
        {
            key
            for pair in pairs.values()
            for key in (pair.target_id, pair.evidence_id, pair.evidence_2_id, pair.evidence_3_id)
            if key
        }
    )
    for item in items:
        if (pair := pairs.get(item.pk)) is None:
            continue
        # Into the cache, as `prefetch_related` does. Its way, by the descriptors, takes as long as the reading.
        known = pair._state.fields_cache
        known["item"], known["target"] = item, questions[pair.target_id]
        known["evidence"] = None if pair.evidence_id is None else questions[pair.evidence_id]
        if pair.evidence_2_id is not None:
            known["evidence_2"] = questions[pair.evidence_2_id]
            known["evidence_3"] = None if pair.evidence_3_id is None else questions[pair.evidence_3_id]
        item._state.fields_cache["pair"] = pair


def _questions(keys: Collection[int]) -> dict[int, Question]:
    wanted = list(keys)
    by_key: dict[int, Question] = {}
    for start in range(0, len(wanted), BATCH_SIZE):
        rows = Question.objects.filter(pk__in=wanted[start : start + BATCH_SIZE]).select_related("task")
        by_key |= {row.pk: row for row in rows.only("task__name", "task__domain").order_by()}
    return by_key


def read_beliefs(answers: Sequence[Assignment]) -> None:
    """Give each answer its beliefs, without its responses."""
    for start in range(0, len(answers), BATCH_SIZE):
        part = answers[start : start + BATCH_SIZE]
        values: dict[int, list[Any]] = {answer.pk: [] for answer in part}
        stated = Belief.objects.filter(response__assignment__in=[*values]).order_by()
        for answer, *belief in stated.values_list("response__assignment", "kind", "value", "place"):
            values[answer].append(tuple(belief))
        for assignment in part:
            assignment.__dict__[KNOWN] = beliefs_from(values[assignment.pk])


def changes(answers: QuerySet[Assignment], *, threshold: int) -> Iterator[OutcomeRow]:
    """1 for each answer whose belief changed by more than the threshold, and 0 for the others, in one statement."""

    def stated(kind: Belief.Kind) -> Max:
        return Max("responses__belief__value", filter=Q(responses__belief__kind=kind))

    rows = answers.order_by().values_list("pk", "slot__stage", "slot__stratum")
    both = rows.annotate(prior=stated(Belief.Kind.PRIOR), posterior=stated(Belief.Kind.POSTERIOR))
    for _answer, stage, stratum, prior, posterior in both.iterator(chunk_size=BATCH_SIZE):
        yield OutcomeRow(stage, stratum, float(bool(Beliefs(prior, posterior).changed(threshold))))
