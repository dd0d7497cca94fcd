"""The work after a stage: claimed by lease, written by its holder, safe to do twice, with a clear error if it fails."""

import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from celery import Task
from django.db import OperationalError, connection
from django.utils import timezone

from predictors import training as predictor_training
from predictors.endpoints import EndpointError
from predictors.errors import PredictorError, Stopped
from survey import tasks
from survey.celery import app
from survey.models import CandidateSet, Evaluation, JobStep, PredictorRun, Question, Stage
from survey.models.predictor import TRIES
from survey.services.base import files, leases
from survey.services.plans import planning
from survey.services.stages import jobs, lifecycle, training
from survey.services.stages.verifying import verify_stage
from survey.storage import database
from tests import cast
from tests.survey.filled import run_study

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

GREEDY = {"kind": "epsilon_greedy", "epsilon": 0.25, "top_fraction": 0.2}
TWO: dict[str, Any] = {
    "stages": [{"sittings": 4}, {"sittings": 4, "design": GREEDY, "train": False}],
    "predictor": {"name": "same_task"},
    "candidates": {"size": 200},
}


def states(stage: Stage) -> dict[str, str]:
    return {f"{step.kind}{step.member or ''}": step.state for step in stage.job_steps.order_by("pk")}


def die(step: JobStep) -> None:
    """A worker claims the step and disappears; its lease runs out."""
    assert jobs.claim(step.pk) is not None
    lapse(step)


def lapse(step: JobStep) -> None:
    past = timezone.now() - timedelta(seconds=1)
    JobStep.objects.filter(pk=step.pk).update(lease_until=past, sent_at=past - leases.SEND_AGAIN)


# The whole way


def test_closing_a_stage_leads_to_the_plan_of_the_next() -> None:
    stage = cast.frozen_stage(**TWO)
    assert states(stage) == dict.fromkeys(["freeze", "train", "score", "plan"], "done")
    run = PredictorRun.objects.get(role="main")
    assert run.is_ready and run.example_count == 12 and list(run.members) == ["0"]
    second = cast.stage_of(stage.study, 2)
    assert second.state == "planned"
    assert {stratum.name: stratum.slots for stratum in second.strata.all()} == {"top": 9, "rest": 3}
    assert CandidateSet.objects.get(stage=second).predictor_run == run
    assert lifecycle.pipeline_is_done(stage)


def test_the_predictor_is_judged_on_the_next_stage() -> None:
    stage = cast.frozen_stage(**TWO)
    second = lifecycle.open_stage(cast.stage_of(stage.study, 2))
    cast.full_of_answers(second)
    jobs.run_inline(lifecycle.close_stage(second))
    assert states(second) == {"freeze": "done", "evaluate": "done"}
    evaluation = Evaluation.objects.get(predictor_run__role="main")
    assert (evaluation.predictor_run.stage, evaluation.stage) == (stage, second)
    figures = evaluation.metrics["weighted"]
    assert figures["n"] == 12 and 0 <= figures["auc"]["overall"] <= 1


@pytest.mark.thorough
def test_the_same_answers_lead_to_the_same_plan() -> None:
    def second_plan(slug: str) -> str:
        stage = cast.frozen_stage(slug, **TWO)
        return cast.stage_of(stage.study, 2).plan_sha256

    assert second_plan("first") == second_plan("second")


def test_a_study_without_a_predictor_freezes_and_plans_only() -> None:
    stage = cast.frozen_stage(stages=[{"sittings": 4}, {"sittings": 4}])
    assert states(stage) == {"freeze": "done", "plan": "done"}


def test_the_last_stage_trains_and_plans_nothing_more() -> None:
    stage = cast.frozen_stage(predictor={"name": "same_task"})
    assert states(stage) == {"freeze": "done", "train": "done"}
    assert lifecycle.pipeline_is_done(stage)


@pytest.mark.torch
def test_two_stages_with_a_real_bert(tmp_path: Path) -> None:
    from tests.predictors.tiny import save_tiny_bert

    params = {
        "checkpoint": str(save_tiny_bert(tmp_path / "tiny")),
        "members": 2,
        "epochs": 1,
        "batch_size": 4,
        "max_length": 64,
        "bfloat16": False,
        "device": "cpu",
    }
    # Wide enough that the plan can be dealt whatever an untrained BERT happens to like.
    wide = {"kind": "epsilon_greedy", "epsilon": 0.25, "top_fraction": 0.5}
    stages = [{"sittings": 4}, {"sittings": 8, "design": wide, "train": False}]
    stage = cast.frozen_stage(**{**TWO, "stages": stages, "predictor": {"name": "bert", "params": params}})
    assert states(stage) == dict.fromkeys(["freeze", "train", "train1", "score", "plan"], "done")
    run = PredictorRun.objects.get(name="bert")
    assert sorted(run.members) == ["0", "1"] and run.members["0"] != run.members["1"]
    scores = files.load_array(CandidateSet.objects.get(stage__index=2).file_sha256)["score"]
    assert len(np.unique(scores)) > 100
    second = lifecycle.open_stage(cast.stage_of(stage.study, 2))
    cast.full_of_answers(second)
    jobs.run_inline(lifecycle.close_stage(second))
    assert Evaluation.objects.get(predictor_run=run).metrics["naive"]["n"] == 24


# Twice, late, and killed


@pytest.mark.parametrize("kind", ["freeze", "train", "score", "plan"])
def test_a_step_that_is_delivered_twice_runs_once(kind: str) -> None:
    stage = cast.closed_stage(**TWO)
    step = cast.run_until(stage, kind)
    assert jobs.run_step(step.pk) is True
    assert jobs.run_step(step.pk) is False
    step.refresh_from_db()
    assert (step.state, step.attempt) == ("done", 1)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["freeze", "train", "score", "plan"])
def test_a_step_whose_worker_died_at_the_end_is_done_again_with_the_same_result(kind: str) -> None:
    stage = cast.closed_stage(**TWO)
    step = cast.run_until(stage, kind)
    assert jobs.run_step(step.pk)
    step.refresh_from_db()
    first = {**step.result, "seconds": None}
    JobStep.objects.filter(pk=step.pk).update(state="running", lease_until=timezone.now(), result={})
    lapse(step)
    assert jobs.run_step(step.pk)
    step.refresh_from_db()
    assert (step.state, step.attempt) == ("done", 2)
    assert {**step.result, "seconds": None} == first
    jobs.run_inline(stage)
    assert (
        PredictorRun.objects.filter(role="main").count() == 1
        and CandidateSet.objects.filter(stage__index=2).count() == 1
    )


def test_a_running_step_is_not_claimed_by_another_worker_until_its_lease_is_over() -> None:
    step = cast.run_until(cast.closed_stage(**TWO), "train")
    assert jobs.claim(step.pk) is not None
    assert jobs.claim(step.pk) is None
    assert jobs.due_steps() == []
    lapse(step)
    assert [due.pk for due in jobs.due_steps()] == [step.pk]
    again = jobs.claim(step.pk)
    assert again is not None and again.attempt == 2


def test_a_stage_that_was_planned_meanwhile_is_not_planned_by_newer_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = cast.closed_stage(stages=[{"sittings": 4}, {"sittings": 4}])
    step = cast.run_until(stage, "plan")
    planned = lifecycle.plan_stage(cast.stage_of(stage.study, 2))
    monkeypatch.setattr(jobs, "scores_are_outdated", lambda _following: True)
    assert jobs.run_step(step.pk)
    step.refresh_from_db()
    assert step.result["plan_sha256"] == planned.plan_sha256


def test_what_a_killed_worker_left_out_after_closing_is_queued() -> None:
    stage = cast.closed_stage()
    stage.job_steps.all().delete()
    assert [step.kind for step in jobs.due_steps()] == ["freeze"]


def test_a_step_that_ends_well_says_no_earlier_error() -> None:
    step = cast.closed_stage().job_steps.get(kind="freeze")
    held = jobs.claim(step.pk)
    assert held is not None
    JobStep.objects.filter(pk=step.pk).update(error="of an earlier try")
    held.finish({"n": 1})
    step.refresh_from_db()
    assert (step.state, step.error, step.result, step.lease_until) == ("done", "", {"n": 1}, None)
    with pytest.raises(Stopped):
        held.finish({})


def test_a_worker_that_lost_its_lease_writes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = cast.closed_stage(**TWO)
    step = cast.run_until(stage, "train")
    train = predictor_training.train_member

    def slowly(*args: Any, **kwargs: Any) -> Any:
        trained = train(*args, **kwargs)
        lapse(step)
        assert jobs.claim(step.pk) is not None  # Another worker takes over just before the result is written.
        return trained

    monkeypatch.setattr(predictor_training, "train_member", slowly)
    assert jobs.run_step(step.pk) is False
    step.refresh_from_db()
    assert (step.state, step.attempt, step.result) == ("running", 2, {})
    assert PredictorRun.objects.get().members == {}


def test_a_heartbeat_after_the_claim_was_lost_stops_the_work() -> None:
    step = cast.run_until(cast.closed_stage(**TWO), "train")
    first = jobs.claim(step.pk)
    assert first is not None and first.heartbeat(3, 10, "step 3") is True
    step.refresh_from_db()
    assert (step.progress_done, step.progress_total, step.progress_text) == (3, 10, "step 3")
    lapse(step)
    assert jobs.claim(step.pk) is not None
    assert first.heartbeat(10, 10, "step 10") is False
    step.refresh_from_db()
    assert step.progress_done == 0


def test_a_heartbeat_renews_the_lease() -> None:
    step = cast.run_until(cast.closed_stage(**TWO), "train")
    held = jobs.claim(step.pk)
    lapse(step)
    assert held is not None and held.heartbeat(1, 10, "")
    step.refresh_from_db()
    assert step.lease_until is not None and step.lease_until > timezone.now() + timedelta(seconds=60)


def test_the_end_of_a_part_is_written_at_once_and_only_once() -> None:
    step = cast.run_until(cast.closed_stage(**TWO), "train")
    held = jobs.claim(step.pk)
    assert held is not None
    beats = [
        (1, 10, "begun"),
        (2, 10, "too soon"),
        (10, 10, "ended"),
        (10, 10, "again"),
        (0, 0, "next"),
        (5, 5, "all"),
    ]
    texts = []
    for done, total, text in beats:
        assert held.heartbeat(done, total, text)
        step.refresh_from_db()
        texts.append(step.progress_text)
    assert texts == ["begun", "begun", "ended", "ended", "next", "all"]


def test_a_step_that_kills_its_worker_every_time_is_given_up() -> None:
    stage = cast.closed_stage(**TWO)
    step = cast.run_until(stage, "train")
    for _try in range(TRIES):
        assert jobs.sweep() == 0
        die(step)
    assert jobs.claim(step.pk) is None and jobs.due_steps() == []
    assert jobs.sweep() == 1
    step.refresh_from_db()
    assert step.state == "failed" and "its worker died" in step.error
    assert lifecycle.failed_steps(stage) == [step]


def test_a_step_that_runs_on_its_last_try_is_left_to_its_worker() -> None:
    step = cast.run_until(cast.closed_stage(**TWO), "train")
    JobStep.objects.filter(pk=step.pk).update(tries_left=1)
    assert jobs.claim(step.pk) is not None
    assert jobs.sweep() == 0
    lapse(step)
    assert jobs.sweep() == 1


def test_retrying_queues_a_failed_step_again() -> None:
    stage = cast.closed_stage(**TWO)
    step = cast.run_until(stage, "train")
    JobStep.objects.filter(pk=step.pk).update(state="failed", tries_left=0, error="out of memory")
    with pytest.raises(RuntimeError, match="out of memory"):
        jobs.run_inline(stage)
    assert lifecycle.retry_steps(stage) == 1
    assert lifecycle.retry_steps(stage) == 0
    jobs.run_inline(stage)
    assert states(stage)["plan"] == "done"


def test_a_worker_that_comes_back_after_a_retry_writes_nothing() -> None:
    stage = cast.closed_stage(**TWO)
    step = cast.run_until(stage, "train")
    zombie = jobs.claim(step.pk)
    JobStep.objects.filter(pk=step.pk).update(state="failed", lease_until=None)
    lifecycle.retry_steps(stage)
    assert zombie is not None and zombie.heartbeat(1, 1, "") is False
    zombie.fail("too late")
    step.refresh_from_db()
    assert (step.state, step.error) == ("queued", "")


# Failing


def test_a_failed_step_says_why_in_the_words_of_who_refused_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **kwargs: Any) -> None:
        raise PredictorError("batch_size: 0 is not 1 or more.")

    step = cast.run_until(cast.closed_stage(**TWO), "train")
    monkeypatch.setattr(predictor_training, "train_member", refuse)
    assert jobs.run_step(step.pk) is False
    step.refresh_from_db()
    assert (step.state, step.error) == ("failed", "batch_size: 0 is not 1 or more.")
    assert jobs.due_steps() == []


def test_an_unforeseen_error_names_its_kind_and_stops_no_other_study(monkeypatch: pytest.MonkeyPatch) -> None:
    step = cast.run_until(cast.closed_stage(**TWO), "train")
    monkeypatch.setattr(predictor_training, "train_member", lambda *args, **kwargs: 1 / 0)
    assert jobs.run_step(step.pk) is False
    step.refresh_from_db()
    assert (step.state, step.error) == ("failed", "ZeroDivisionError: division by zero")


def test_a_changed_byte_in_a_predictor_fails_the_scoring_in_words(settings: Any) -> None:
    stage = cast.closed_stage(**TWO)
    step = cast.run_until(stage, "score")
    run = PredictorRun.objects.get()
    sha256 = next(iter(run.members["0"].values()))
    name = f"{sha256[:2]}/{sha256}"
    whole = files.default_storage.open(name).read()
    Path(files.default_storage.path(name)).write_bytes(whole + b" ")
    shutil.rmtree(Path(settings.HUNCH_VAR) / "cache", ignore_errors=True)  # Another machine fetches it afresh.
    try:
        assert jobs.run_step(step.pk) is False
    finally:
        Path(files.default_storage.path(name)).write_bytes(whole)
    step.refresh_from_db()
    assert step.state == "failed" and f"{sha256} has changed: restore it" in step.error


@pytest.mark.parametrize(("tries_left", "permanent", "fails"), [(1, False, False), (0, False, True), (1, True, True)])
def test_a_server_that_did_not_answer_is_asked_again_while_tries_are_left(
    tries_left: int, permanent: bool, fails: bool
) -> None:
    held = mock.Mock(step=mock.Mock(tries_left=tries_left))
    jobs._end_with(held, EndpointError("busy", permanent=permanent))
    assert (held.fail.called, held.give_back.called) == (fails, not fails)


def test_a_database_that_did_not_answer_costs_a_try_and_not_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    def locked(*args: Any, **kwargs: Any) -> None:
        raise OperationalError("database is locked")

    step = cast.run_until(cast.closed_stage(**TWO), "train")
    monkeypatch.setattr(training, "training_examples", locked)
    assert jobs.run_step(step.pk) is False
    step.refresh_from_db()
    assert (step.state, step.tries_left) == ("queued", TRIES - 1)
    assert jobs.due_steps() == []  # Not at once: the database may be away for a while.


@pytest.mark.parametrize(("permanent", "states"), [(False, ["queued", "queued", "failed"]), (True, ["failed"] * 3)])
def test_a_server_that_did_not_answer_is_asked_again_and_not_for_ever(
    monkeypatch: pytest.MonkeyPatch, permanent: bool, states: list[str]
) -> None:
    def silent(*args: Any, **kwargs: Any) -> None:
        raise EndpointError("http://localhost/v1: status 429.", permanent=permanent)

    step = cast.run_until(cast.closed_stage(**TWO), "train")
    monkeypatch.setattr(training, "training_examples", silent)
    for state in states:
        jobs.run_step(step.pk)
        step.refresh_from_db()
        assert step.state == state
    assert "429" in step.error


def test_waiting_for_people_costs_no_try() -> None:
    stage = cast.open_stage()
    cast.Visitor(stage.study).to_items()
    lifecycle.close_stage(stage)
    step = cast.step_of(stage, "freeze")
    for _look in range(TRIES + 2):
        assert jobs.run_step(step.pk) is False
    step.refresh_from_db()
    assert (step.state, step.tries_left) == ("queued", TRIES)
    with pytest.raises(RuntimeError, match="people are still inside"):
        jobs.run_inline(stage)


def test_scoring_does_not_replace_the_candidates_of_a_stage_that_was_planned_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = cast.closed_stage(**{**TWO, "stages": [{"sittings": 4}, {"sittings": 4}]})
    step = cast.run_until(stage, "score")
    score = predictor_training.score

    def slowly(*args: Any, **kwargs: Any) -> Any:
        planning.plan_stage(cast.stage_of(stage.study, 2))
        return score(*args, **kwargs)

    monkeypatch.setattr(predictor_training, "score", slowly)
    assert jobs.run_step(step.pk)
    second = cast.stage_of(stage.study, 2)
    candidate_set = CandidateSet.objects.get(stage=second)
    assert second.manifest["candidates"]["sha256"] == candidate_set.file_sha256


# Beat


def test_beat_queues_what_a_dead_worker_left_between_two_steps() -> None:
    stage = cast.closed_stage(**TWO)
    lifecycle.freeze(stage)
    JobStep.objects.update(state="done")  # The worker died before it queued the training.
    assert [step.kind for step in jobs.due_steps()] == ["train"]


def test_beat_opens_the_stage_that_a_dead_worker_left_planned() -> None:
    stage = cast.closed_stage(stages=[{"sittings": 4}, {"sittings": 4, "opens": "automatically"}])
    step = cast.run_until(stage, "plan")
    planning.plan_stage(cast.stage_of(stage.study, 2))
    JobStep.objects.filter(pk=step.pk).update(state="done")
    assert jobs.due_steps() == []
    assert cast.stage_of(stage.study, 2).state == "open"


def test_a_study_that_cannot_go_on_does_not_stop_the_others() -> None:
    broken, fine = cast.closed_stage("broken", **TWO), cast.closed_stage("fine", **TWO)
    for stage in (broken, fine):
        lifecycle.freeze(stage)
    type(broken.study).objects.filter(slug="broken").update(instrument="removed")
    due = jobs.due_steps()
    assert ("fine", "train") in {(step.stage.study.slug, step.kind) for step in due}
    assert ("broken", "train") not in {(step.stage.study.slug, step.kind) for step in due}


def test_a_flag_set_between_scoring_and_planning_leads_to_a_new_scoring() -> None:
    stage = cast.closed_stage(**TWO)
    while True:
        stage.refresh_from_db()
        waiting = [step for step in lifecycle.next_steps(stage) if step.state != JobStep.State.DONE]
        if waiting[0].kind == JobStep.Kind.PLAN:
            break
        jobs.run_step(waiting[0].pk)
    unwanted = Question.objects.get(position=0)
    Question.objects.filter(pk=unwanted.pk).update(flag="sensitive", flag_reason="a complaint")
    jobs.run_inline(stage)
    following = cast.stage_of(stage.study, 2)
    assert following.state == Stage.State.PLANNED
    assert stage.job_steps.filter(kind=JobStep.Kind.SCORE).count() == 2
    assert not following.slots.filter(item__pair__target=unwanted).exists()


def flag_while_planning(monkeypatch: pytest.MonkeyPatch) -> Question:
    """The first plan finds that the first question was flagged after it had read the questions."""
    unwanted = Question.objects.get(position=0)
    read = planning.drawable_questions

    def read_and_flag(stage: Stage) -> list[Question]:
        questions = read(stage)
        Question.objects.filter(pk=unwanted.pk).update(flag="sensitive", flag_reason="a complaint")
        return questions

    monkeypatch.setattr(planning, "drawable_questions", read_and_flag)
    return unwanted


def test_a_flag_set_while_a_stage_is_planned_is_seen_before_anything_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = cast.stage_of(cast.small_study())
    unwanted = flag_while_planning(monkeypatch)
    with pytest.raises(planning.QuestionsChanged, match="plan stage 1 again"):
        planning.plan_stage(stage)
    assert not stage.slots.exists() and cast.stage_of(stage.study).state == Stage.State.DRAFT
    planned = planning.plan_stage(cast.stage_of(stage.study))
    assert planned.slots.exists() and not planned.slots.filter(item__pair__target=unwanted).exists()
    assert verify_stage(planned).differences == []


@pytest.mark.parametrize("design", ["uniform", "epsilon_greedy"])
def test_a_worker_plans_again_what_was_flagged_while_it_planned(design: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stages = [{"sittings": 4}, {"sittings": 4} if design == "uniform" else TWO["stages"][1]]
    stage = cast.closed_stage(**{**TWO, "stages": stages})
    unwanted = flag_while_planning(monkeypatch)
    jobs.run_inline(stage)
    following = cast.stage_of(stage.study, 2)
    assert following.state == Stage.State.PLANNED
    assert not following.slots.filter(item__pair__target=unwanted).exists()
    assert verify_stage(following).differences == []


def test_a_step_is_sent_by_one_beat_and_again_only_after_a_while() -> None:
    cast.closed_stage(**TWO)
    (step,) = jobs.due_steps()
    now = timezone.now()
    assert leases.mark_sent(step, now=now) is True
    assert leases.mark_sent(step, now=now) is False
    assert jobs.due_steps(now=now) == []
    assert jobs.due_steps(now=now + leases.SEND_AGAIN + timedelta(seconds=1)) == [step]


EXHAUSTIVE = {**TWO, "stages": [{"sittings": 4}, {"sittings": 4}], "candidates": {"kind": "exhaustive"}}


@pytest.mark.parametrize(
    ("study", "kind", "task", "queue"),
    [
        (TWO, "freeze", tasks.run_step, "default"),
        (TWO, "train", tasks.run_ml_step, "train"),
        (TWO, "score", tasks.run_ml_step, "score"),
        (TWO, "plan", tasks.run_step, "default"),
        (EXHAUSTIVE, "freeze", tasks.run_step, "default"),
        (EXHAUSTIVE, "plan", tasks.run_ml_step, "score"),
    ],
)
def test_each_step_goes_to_the_queue_of_its_kind(
    study: dict[str, Any], kind: str, task: Any, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = cast.run_until(cast.closed_stage(**study), kind)
    sent: list[tuple[str, Any, Any, str]] = []

    def send(self: Any, args: Any, expires: float, queue: str) -> None:
        sent.append((self.name, args, expires, queue))

    monkeypatch.setattr(Task, "apply_async", send)
    assert tasks.run_due_steps() == 1
    assert tasks.run_due_steps() == 0
    assert sent == [(task.name, (step.pk,), 30.0, queue)]


def test_tasks_that_are_sent_without_a_queue_go_to_one_that_has_a_worker() -> None:
    routed = {name: app.amqp.router.route({}, name)["queue"].name for name in app.tasks if name.startswith("survey.")}
    assert {name: queue for name, queue in routed.items() if queue != "default"} == {
        tasks.run_ml_step.name: "train",
        tasks.help_with_scoring.name: "score",
        tasks.run_collection.name: "collect",
    }


def test_a_broker_that_is_down_loses_no_step(monkeypatch: pytest.MonkeyPatch) -> None:
    def down(self: Any, *args: Any, **kwargs: Any) -> None:
        raise ConnectionError("no broker")

    cast.closed_stage(**TWO)
    monkeypatch.setattr(Task, "apply_async", down)
    with pytest.raises(ConnectionError):
        tasks.run_due_steps()
    later = timezone.now() + leases.SEND_AGAIN + timedelta(seconds=1)
    assert [step.kind for step in jobs.due_steps(now=later)] == ["freeze"]


@pytest.mark.postgresql
def test_after_many_answers_postgresql_knows_how_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise it joins full tables row by row, as if they were empty: a minute for what takes a tenth of a second."""
    monkeypatch.setattr(jobs, "MANY_ANSWERS", 1)
    run_study("counted")
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname, reltuples FROM pg_class WHERE relname IN "
            "('survey_assignment', 'survey_snapshotanswer', 'survey_response', 'belief_update_belief')"
        )
        known = dict(cursor.fetchall())
    assert len(known) == 4 and min(known.values()) > 0


def test_a_freeze_holds_where_the_statistics_cannot_be_refreshed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(database, "is_postgresql", lambda: True)
    monkeypatch.setattr(database.connection, "cursor", mock.Mock(side_effect=OperationalError("gone")))
    database.refresh_statistics(Stage)
    assert "the statistics of" in caplog.text and "gone" in caplog.text
