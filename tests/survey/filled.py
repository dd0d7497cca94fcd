"""Stages full of answers, written as rows, with beliefs that depend on person, outcome and task."""

from collections import Counter
from typing import Any

import numpy as np
from django.utils import timezone

from survey.instruments.belief_update.models import Belief
from survey.models import Assignment, Respondent, Response, Sitting, Stage, Study
from survey.services.stages import jobs, lifecycle
from tests import cast
from tests.kept import kept

NO_ROLES: dict[str, Any] = {"roles": {"holdout": 0, "controls": 0}}


def answer(stage: Stage, *, seed: int = 1, lose: int = 0, late: int = 0, people: int | None = None) -> Stage:
    """Fill an open stage: every booklet is taken by a person of its own, who answers all of it. With `people` so many
    people share all booklets, and the others go.

    Of all slots the first `lose` (in an order drawn by the seed) get no answer and the `late` next ones a late one.
    """
    rng = np.random.default_rng(seed)
    now = timezone.now()
    slots = list(stage.slots.select_related("booklet", "item__pair__evidence", "item__pair__target").order_by("number"))
    order = rng.permutation(len(slots)).tolist()
    lost, tardy = set(order[:lose]), set(order[lose : lose + late])
    of_booklet = cast.seated(stage)
    if people is not None:
        staying = list(of_booklet.values())[:people]
        gone = Sitting.objects.filter(stage=stage).exclude(pk__in=[sitting.pk for sitting in staying])
        people_gone = list(gone.values_list("respondent", flat=True))
        gone.delete()
        Respondent.objects.filter(pk__in=people_gone).delete()
        of_booklet = {booklet: staying[place % people] for place, booklet in enumerate(of_booklet)}
    answered: Counter[int] = Counter()
    willing = {sitting.pk: rng.normal(0, 0.2) for sitting in of_booklet.values()}
    assignments = Assignment.objects.bulk_create(
        Assignment(
            sitting=of_booklet[slot.booklet_id],
            slot=slot,
            position=slot.position if people is None else _next(answered, of_booklet[slot.booklet_id].pk),
            state="late" if place in tardy else "counted",
            assigned_at=now,
            completed_at=now,
        )
        for place, slot in enumerate(slots)
        if place not in lost
    )
    beliefs = []
    responses = []
    for assignment in assignments:
        pair = assignment.slot.item.pair
        prior = int(np.clip(60 + rng.integers(-20, 21), 0, 100))
        same = pair.evidence is not None and pair.evidence.task_id == pair.target.task_id
        chance = (
            0.05
            if pair.evidence is None
            else 0.2 + 0.4 * same + 0.15 * (not pair.outcome) + willing[assignment.sitting_id]
        )
        step = int(rng.choice([3, 7, 12])) * (1 if pair.outcome else -1)
        posterior = prior + step if rng.random() < chance else prior
        given_beliefs = [("prior", prior, None), ("posterior", posterior, None)]
        if pair.evidence_2_id is not None:  # Two evidence questions: as many people see either one first.
            first = 1 + assignment.slot.number % 2
            given_beliefs = [("prior", prior, None), ("step_1", posterior, first)]
            given_beliefs += [("posterior", int(np.clip(posterior + rng.integers(-9, 10), 0, 100)), 3 - first)]
        for number, (screen, value, place) in enumerate(given_beliefs, start=1):
            responses.append(
                Response(
                    assignment=assignment,
                    number=number,
                    screen=screen,
                    screen_sha256="0" * 64,
                    answered_at=now,
                    server_ms=900,
                )
            )
            beliefs.append((screen, value, place))
    stored = Response.objects.bulk_create(responses)
    Belief.objects.bulk_create(
        Belief(response=row, kind=kind, value=value, place=place)
        for row, (kind, value, place) in zip(stored, beliefs, strict=True)
    )
    return stage


def _next(answered: Counter[int], sitting: int) -> int:
    answered[sitting] += 1
    return answered[sitting]


@kept
def run_study(
    slug: str = "small", *, seed: int = 1, lose: int = 0, late: int = 0, people: int | None = None, **overrides: Any
) -> Study:
    """A study all of whose stages were answered and closed, with what follows from closing done in this process."""
    study = cast.small_study(slug, **overrides)
    for stage in study.stages.select_related("study__bank").order_by("index"):
        lifecycle.open_stage(stage)
        answer(stage, seed=seed + stage.index, lose=lose, late=late, people=people)
        jobs.run_inline(lifecycle.close_stage(stage))
    return study
