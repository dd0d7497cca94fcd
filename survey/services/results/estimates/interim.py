"""Looking at a stage while it runs: a stopping rule ends it as soon as its interval is narrow enough.

The interval holds at any time (`bandit.anytime`), so that looking often costs nothing. Each look is a row. The look
that finds the interval narrow enough closes the stage in the same transaction: nobody else is admitted, people inside
finish, and all that follows a closed stage follows.
"""

import math
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

import bandit
from survey.contracts import instruments
from survey.models import Assignment, Look, Slot, Stage
from survey.services.answers.counting import counting
from survey.services.base.auditing import record
from survey.services.base.locks import locked_stage
from survey.services.results.estimates import study_estimates
from survey.services.results.estimates.study_estimates import InterimLook, take_interim_look
from survey.services.stages.lifecycle import close_stage

RUNNING = (Stage.State.OPEN, Stage.State.PAUSED)
# An answer stands in the database some time after the moment that it bears. Looks leave out the last minute, so that
# the same answers can be found again later.
SETTLED = timedelta(minutes=1)
# So many looks a stage, at most. A look reads all its answers.
MAX_LOOKS = 50
MIN_MORE = 5  # A look has so many people more than the one before: two looks must not give one person's answers.
TOLERANCE = 1e-9


def running_stages() -> Iterator[Stage]:
    """Stages with a stopping rule that people may be in."""
    for stage in Stage.objects.filter(state__in=RUNNING).select_related("study__bank"):
        if "stop" in stage.manifest and instruments.is_known(stage.study.instrument):
            yield stage


def look(stage: Stage, *, now: datetime | None = None) -> Look | None:
    """Look at a running stage if enough people have answered since the last look, and close it if its rule is reached.

    None where it is not time to look, or there is no estimate yet.
    """
    now = now or timezone.now()
    rule, until = stage.manifest.get("stop"), now - SETTLED
    if rule is None or stage.state not in RUNNING:
        return None
    last = stage.looks.last()
    due = rule["after"] if last is None else last.people + max(MIN_MORE, rule["at_most"] // MAX_LOOKS)
    if _people(stage, until) < due:
        return None
    interim_look = take_interim_look(stage, factor=rule["factor"] or "", until=until)
    estimate = interim_look.estimate
    if estimate is None or estimate.n_clusters < due or not math.isfinite(estimate.standard_error):
        return None
    return _store(stage, rule, interim_look, estimate, now=now, until=until, after=last)


def _people(stage: Stage, until: datetime) -> int:
    answers = counting([stage], roles=(Slot.Role.SAMPLED,)).filter(completed_at__lt=until)
    return answers.order_by().values("sitting").distinct().count()


@transaction.atomic
def _store(
    stage: Stage,
    rule: dict[str, Any],
    interim_look: InterimLook,
    estimate: bandit.Estimate,
    *,
    now: datetime,
    until: datetime,
    after: Look | None,
) -> Look | None:
    """Store a look, and close the stage if it reaches the rule; None if somebody else was faster or closed it."""
    stage = locked_stage(stage.pk)
    newest = stage.looks.last()
    if stage.state not in RUNNING or (newest.pk if newest else None) != (after.pk if after else None):
        return None
    interval = bandit.anytime_interval(estimate, **study_estimates.interval_by(rule))
    low, high = interval.interval
    # Too few answers of one kind make an interval narrow by chance.
    reached = 0 < interval.width < rule["width"] and not estimate.too_few
    made = Look.objects.create(
        stage=stage,
        number=(newest.number if newest else 0) + 1,
        at=now,
        answers_until=until,
        people=estimate.n_clusters,
        answers=interim_look.answers,
        value=estimate.value,
        standard_error=estimate.standard_error,
        low=low,
        high=high,
        reached=reached,
    )
    if reached:
        stage.record(stopped=facts_of(made))
        stage.save(update_fields=["manifest"])
        record("reach_stop", stage, via="worker", **facts_of(made))
        close_stage(stage, via="worker")
    return made


def facts_of(made: Look) -> dict[str, Any]:
    """What the manifest and the audit say of the look that ended a stage."""
    return {
        "look": made.number,
        "answers_until": made.answers_until.isoformat(),
        "people": made.people,
        "answers": made.answers,
        "value": made.value,
        "standard_error": made.standard_error,
        "low": made.low,
        "high": made.high,
    }


def verify_looks(stage: Stage) -> list[str]:
    """What is wrong with a stage's looks: by their own numbers, and the last one by its answers as well. Empty if they
    agree, or there are none. Writes nothing.

    Where answers of the stage were withdrawn, or rules leave other sittings out than at the time, the last look cannot
    be made again, and only its own numbers are compared.
    """
    rule, looks = stage.manifest.get("stop"), list(stage.looks.all())
    if rule is None:
        return [f"looks: {len(looks)} of a stage without a stopping rule"] if looks else []
    wrong = []
    for number, look in enumerate(looks, start=1):
        low, high = bandit.anytime_ends(
            look.value, look.standard_error, look.people, **study_estimates.interval_by(rule)
        )
        if look.number != number:
            wrong.append(f"looks: number {number} is missing")
        if not (_same(look.low, low) and _same(look.high, high)):
            wrong.append(f"looks: the interval of look {look.number} is not that of its estimate")
        if look.reached and (look.width >= rule["width"] or look is not looks[-1]):
            wrong.append(f"looks: look {look.number} cannot have ended the stage")
    stopped = stage.manifest.get("stopped")
    ended = looks[-1] if looks and looks[-1].reached else None
    if stopped != (facts_of(ended) if ended else None):
        wrong.append("looks: the manifest says something else of the look that ended the stage")
    if looks:
        wrong += _made_again(stage, rule, looks[-1])
    return wrong


def _made_again(stage: Stage, rule: dict[str, Any], look: Look) -> Iterator[str]:
    assignments = Assignment.objects.filter(slot__stage=stage, slot__role=Slot.Role.SAMPLED)
    if assignments.filter(state=Assignment.State.WITHDRAWN).exists():
        return
    interim_look = take_interim_look(stage, factor=rule["factor"] or "", until=look.answers_until)
    estimate = interim_look.estimate
    if estimate is None or (estimate.n_clusters, interim_look.answers) != (look.people, look.answers):
        if not stage.study.config.exclusions.flags:
            now = interim_look.answers
            yield f"looks: look {look.number} had {look.answers} answers, and there are {now} from before it"
    elif not (_same(estimate.value, look.value) and _same(estimate.standard_error, look.standard_error)):
        yield f"looks: look {look.number} found {look.value}, and its answers make {estimate.value}"


def _same(value: float, other: float) -> bool:
    return abs(value - other) <= TOLERANCE * max(1.0, abs(value))
