"""A scoring in parts that several workers take: the same scores no matter who takes what, and who dies."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from celery import Task
from django.utils import timezone

from bandit import Uncertainty
from predictors import registry
from predictors.errors import PredictorError
from survey import tasks
from survey.contracts import instruments
from survey.models import CandidateSet, JobStep, PredictorRun, Question, ScoringPart, Stage
from survey.models.predictor import TRIES
from survey.operation import site_health
from survey.services.base import leases
from survey.services.stages import jobs, scoring, scoring_parts
from tests import cast

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

GREEDY = {"kind": "epsilon_greedy", "epsilon": 0.25, "top_fraction": 0.2}
TWO: dict[str, Any] = {
    "stages": [{"sittings": 4}, {"sittings": 4, "design": GREEDY, "train": False}],
    "predictor": {"name": "same_task"},
    "candidates": {"size": 500},
}
SIZES = [120, 120, 120, 120, 20]


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scoring_parts, "PART", SIZES[0])
    monkeypatch.setattr(registry, "is_heavy", lambda _name: True)


@pytest.fixture
def step(monkeypatch: pytest.MonkeyPatch) -> JobStep:
    """A queued scoring of 500 candidates."""
    return cast.run_until(cast.closed_stage(**TWO), "score")


def scores_of(step: JobStep) -> str:
    """The hash of the scored candidates, and that no part is left."""
    assert JobStep.objects.get(pk=step.pk).state == "done"
    assert not ScoringPart.objects.exists()
    return CandidateSet.objects.get(stage=step.stage.following()).file_sha256


def alone(step: JobStep) -> str:
    """The hash that one worker gets which scores all at once; the step is then as before."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(scoring_parts, "PART", 10_000)
        assert jobs.run_step(step.pk)
    scores = scores_of(step)
    CandidateSet.objects.all().delete()
    JobStep.objects.filter(pk=step.pk).update(state="queued", tries_left=TRIES, result={}, sent_at=None)
    return scores


Event = Callable[[scoring_parts.PartHold], None]


def before_each_part(monkeypatch: pytest.MonkeyPatch, events: dict[int, Event]) -> list[int]:
    """Let something happen while the worker that has the step scores its n-th part; returns the parts' sizes."""
    seen: list[int] = []
    score = scoring_parts._score

    def watched(hold: scoring_parts.PartHold, scorer: Any) -> None:
        if hold._also.__name__ != "beat":  # A helper's.
            return score(hold, scorer)
        seen.append(hold.row.count)
        event = events.pop(len(seen), None)
        if event is not None:
            event(hold)
        return score(hold, scorer)

    monkeypatch.setattr(scoring_parts, "_score", watched)
    return seen


def test_parts_have_the_same_scores_as_the_whole(step: JobStep, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = alone(step)
    seen = before_each_part(monkeypatch, {})
    assert jobs.run_step(step.pk)
    assert scores_of(step) == whole and seen == SIZES


def test_a_free_worker_takes_parts_and_the_scores_are_the_same(step: JobStep, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = alone(step)
    helped: list[int] = []
    seen = before_each_part(monkeypatch, {2: lambda _hold: helped.append(tasks.help_with_scoring(step.pk))})
    assert jobs.run_step(step.pk)
    assert helped == [3] and seen == SIZES[:2]
    assert scores_of(step) == whole


def test_the_part_of_a_worker_that_died_is_taken_when_its_lease_is_over(
    step: JobStep, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = alone(step)
    waited: list[float] = []

    def dies(_hold: scoring_parts.PartHold) -> None:
        """A helper claims the last part and is killed."""
        assert scoring_parts._claimed_by_helper(step.pk) is not None

    def wait(seconds: float) -> None:
        assert ScoringPart.objects.exclude(state="done").get().state == "running"
        assert scoring_parts.steps_to_help() == []
        waited.append(seconds)
        if len(waited) == 3:
            ScoringPart.objects.filter(state="running").update(lease_until=timezone.now() - timedelta(seconds=1))

    monkeypatch.setattr(scoring_parts.time, "sleep", wait)
    seen = before_each_part(monkeypatch, {1: dies})
    assert jobs.run_step(step.pk)
    assert len(waited) == 3 and seen == SIZES
    assert scores_of(step) == whole


def test_after_the_death_of_the_steps_own_worker_another_goes_on_with_what_is_scored(
    step: JobStep, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = alone(step)

    def dies(_hold: scoring_parts.PartHold) -> None:
        raise KeyboardInterrupt

    seen = before_each_part(monkeypatch, {3: dies})
    with pytest.raises(KeyboardInterrupt):
        jobs.run_step(step.pk)
    past = timezone.now() - timedelta(seconds=1)
    for rows in (JobStep.objects.filter(state="running"), ScoringPart.objects.filter(state="running")):
        rows.update(lease_until=past)
    assert tasks.help_with_scoring(step.pk) == 3  # The dead worker's part, too.
    assert jobs.run_step(step.pk)
    assert seen == SIZES[:3] and scores_of(step) == whole
    assert JobStep.objects.get(pk=step.pk).attempt == 3  # `alone` was the first.


def test_a_worker_that_was_away_too_long_goes_on_though_its_part_was_taken(
    step: JobStep, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = alone(step)

    def is_away(hold: scoring_parts.PartHold) -> None:
        ScoringPart.objects.filter(pk=hold.row.pk).update(lease_until=timezone.now() - timedelta(seconds=1))
        assert scoring_parts.help_with(step.pk) == 5

    seen = before_each_part(monkeypatch, {1: is_away})
    assert jobs.run_step(step.pk)
    assert seen == SIZES[:1] and scores_of(step) == whole


def test_a_part_that_another_worker_claimed_meanwhile_is_not_scored_here(
    step: JobStep, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = alone(step)
    of = scoring_parts.RowScorer.of
    past = timezone.now() - timedelta(seconds=1)
    lost: list[int] = []

    def slow(self: Any, rows: np.ndarray, member: int | None, progress: Any) -> np.ndarray:
        """Until it is done, the lease of its part is over and somebody else has claimed it."""
        parts = ScoringPart.objects.exclude(pk__in=lost).filter(state="running").order_by("-pk")
        lost.append(parts[0].pk)
        ScoringPart.objects.filter(pk=lost[-1]).update(lease_until=past)
        assert leases.claim(ScoringPart.objects, lost[-1]) is not None
        return of(self, rows, member, progress)

    def helped(_hold: scoring_parts.PartHold) -> None:
        with monkeypatch.context() as patched:
            patched.setattr(scoring_parts.RowScorer, "of", slow)
            assert scoring_parts.help_with(step.pk) == 0
        assert len(lost) == 4 and not ScoringPart.objects.filter(state="done").exists()
        ScoringPart.objects.filter(pk__in=lost).update(lease_until=past)

    before_each_part(monkeypatch, {1: helped})
    assert jobs.run_step(step.pk)
    assert scores_of(step) == whole


def test_a_worker_that_lost_the_step_ends_and_writes_nothing(step: JobStep, monkeypatch: pytest.MonkeyPatch) -> None:
    def loses(_hold: scoring_parts.PartHold) -> None:
        JobStep.objects.filter(pk=step.pk).update(attempt=7)

    monkeypatch.setattr("survey.services.base.leases.WRITE_EVERY", 0.0)
    seen = before_each_part(monkeypatch, {2: loses})
    assert jobs.run_step(step.pk) is False
    assert len(seen) == 2 and not CandidateSet.objects.filter(stage=step.stage.following()).exists()
    assert set(ScoringPart.objects.values_list("state", flat=True)) == {"done", "queued"}


def test_what_a_helper_cannot_score_is_given_back_and_not_offered_for_ever(
    step: JobStep, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = alone(step)
    tried: list[int] = []

    def cannot(part: ScoringPart) -> Any:
        tried.append(part.pk)
        raise PredictorError("no room for the network")

    def invited_again_and_again(_hold: scoring_parts.PartHold) -> None:
        for _invitation in range(4 * TRIES + 1):
            assert tasks.help_with_scoring(step.pk) == 0
        assert scoring_parts.steps_to_help() == []
        assert ScoringPart.objects.filter(error="PredictorError: no room for the network").count() == 4

    monkeypatch.setattr(scoring_parts, "_scorer_of", cannot)
    seen = before_each_part(monkeypatch, {1: invited_again_and_again})
    assert jobs.run_step(step.pk)
    assert len(tried) == 4 * TRIES and seen == SIZES
    assert scores_of(step) == whole


def test_a_helper_does_not_score_rows_that_mean_other_questions_now(
    step: JobStep, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flagged(_hold: scoring_parts.PartHold) -> None:
        Question.objects.filter(position=0).update(flag="broken", flag_reason="a typing error")
        assert scoring_parts.help_with(step.pk) == 0

    seen = before_each_part(monkeypatch, {1: flagged})
    assert jobs.run_step(step.pk)
    assert seen == SIZES


def test_an_error_fails_the_step_and_its_retry_keeps_what_is_scored(
    step: JobStep, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = alone(step)
    of = scoring_parts.RowScorer.of

    def broken(self: Any, rows: np.ndarray, member: int | None, progress: Any) -> np.ndarray:
        if len(seen) == 3:
            raise PredictorError("rows: cannot be read")
        return of(self, rows, member, progress)

    monkeypatch.setattr(scoring_parts.RowScorer, "of", broken)
    seen = before_each_part(monkeypatch, {})
    assert jobs.run_step(step.pk) is False
    failed = JobStep.objects.get(pk=step.pk)
    assert (failed.state, failed.error) == ("failed", "rows: cannot be read")
    assert scoring_parts.steps_to_help() == []  # Nobody works for a failed step.
    JobStep.objects.filter(pk=step.pk).update(state="queued")
    assert jobs.run_step(step.pk)
    assert seen == [*SIZES[:3], *SIZES[2:]] and scores_of(step) == whole


def test_each_member_is_scored_in_parts_where_their_disagreement_counts(
    step: JobStep, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[int, int | None]] = []

    def of(self: Any, rows: np.ndarray, member: int | None, progress: Any) -> np.ndarray:
        asked.append((len(rows), member))
        return np.full(len(rows), 0.25 + 0.5 * (member or 0), dtype=np.float32)

    monkeypatch.setattr(scoring_parts.RowScorer, "of", of)
    held = jobs.claim(step.pk)
    assert held is not None
    run, instrument = PredictorRun.objects.get(role="main"), instruments.of_study(step.stage.study)
    scorer = scoring_parts.RowScorer(run, [Path("one"), Path("two")], [], instrument)
    shared = scoring_parts.SharedScoring(held, scorer, "0" * 64)
    chances = scoring._chances(np.zeros(sum(SIZES), dtype=[("place", "<i4")]), shared, Uncertainty(by="disagreement"))
    assert asked == [(size, member) for member in (0, 1) for size in SIZES]
    assert set(chances["scores"]) == {0.5} and set(chances["disagreement"]) == {0.25}


def test_beat_asks_for_help_once_while_nobody_is_free(step: JobStep, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[str, Any, str]] = []
    lengths = {"score": 0}
    monkeypatch.setattr(site_health, "queue_lengths", lambda: lengths)
    monkeypatch.setattr(Task, "apply_async", lambda self, args, queue, expires: sent.append((self.name, args, queue)))

    def beats(_hold: scoring_parts.PartHold) -> None:
        assert tasks.run_due_steps() == 1
        lengths["score"] = 1
        assert tasks.run_due_steps() == 0
        lengths.clear()  # Redis is away.
        assert tasks.run_due_steps() == 0

    leases.mark_sent(step)
    before_each_part(monkeypatch, {1: beats})
    assert tasks.run_due_steps() == 0
    assert jobs.run_step(step.pk)
    assert sent == [(tasks.help_with_scoring.name, (step.pk,), "score")]


def test_two_helpers_never_have_the_same_part(step: JobStep, monkeypatch: pytest.MonkeyPatch) -> None:
    claimed: list[int] = []

    def both(_hold: scoring_parts.PartHold) -> None:
        while (part := scoring_parts._claimed_by_helper(step.pk)) is not None:
            claimed.append(part.row.pk)
        ScoringPart.objects.filter(pk__in=claimed).update(state="queued", lease_until=None)

    before_each_part(monkeypatch, {1: both})
    assert jobs.run_step(step.pk)
    assert len(claimed) == len(set(claimed)) == 4


def test_a_light_predictor_and_a_short_list_are_scored_without_parts(
    step: JobStep, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = before_each_part(monkeypatch, {})
    monkeypatch.setattr(registry, "is_heavy", lambda _name: False)
    assert jobs.run_step(step.pk)
    assert seen == [] and cast.stage_of(step.stage.study, 2).state == Stage.State.DRAFT
