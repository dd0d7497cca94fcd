"""Which answers train and which never do; predictors evaluated on later answers; stages with nothing to learn from."""

import json
import re
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from django.utils.html import escape

from predictors import evaluation
from predictors import training as predictor_training
from predictors.errors import PredictorError, Stopped
from survey.console.progress_bars import StepsFailed, wait_for_pipeline
from survey.contracts import instruments
from survey.exceptions import FileErrors, StateRefused
from survey.instruments.belief_update.learning import BeliefLearning
from survey.instruments.belief_update.models import Pair
from survey.models import (
    Assignment,
    AuditEntry,
    CandidateSet,
    Evaluation,
    JobStep,
    LanguageModel,
    ModelAnswer,
    PredictorRun,
    Slot,
    Stage,
    Study,
)
from survey.services.answers.counting import frozen_answers, training_examples
from survey.services.base import files, leases
from survey.services.plans import planning
from survey.services.stages import jobs, lifecycle, training
from survey.services.stages.leaderboard import leaderboard
from survey.services.stages.runs import runs_in_force
from survey.services.studies import amending
from tests import cast
from tests.kept import kept
from tests.waiting import eventually

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

GREEDY = {"kind": "epsilon_greedy", "epsilon": 0.25, "top_fraction": 0.2}
TWO: dict[str, Any] = {
    "stages": [{"sittings": 4}, {"sittings": 4, "design": GREEDY, "train": False}],
    "predictor": {"name": "same_task"},
    "candidates": {"size": 200},
}
THREE = {"responses_per_item": 3}
UNIFORM = {**TWO, "stages": [{"sittings": 4}, {"sittings": 4}]}


def hold_out(slot: Slot, *, like: Slot | None = None) -> None:
    """Make a slot one of the holdout; `like`: on the same two questions as another slot, the other way round."""
    Slot.objects.filter(pk=slot.pk).update(role=Slot.Role.HOLDOUT)
    if like is not None:
        other = Pair.objects.get(item=like.item_id)
        Pair.objects.filter(item=slot.item_id).update(evidence=other.target_id, target=other.evidence_id)


def second_stage(stage: Stage) -> Stage:
    """The stage after a closed one, answered, closed and worked off."""
    jobs.run_inline(stage)
    second = lifecycle.open_stage(cast.stage_of(stage.study, 2))
    cast.full_of_answers(second)
    jobs.run_inline(lifecycle.close_stage(second))
    return second


@kept
def judged_stage() -> Stage:
    return second_stage(cast.closed_stage(**TWO))


def metrics_of(stage: Stage, name: str) -> dict[str, Any]:
    return dict(Evaluation.objects.get(stage=stage, predictor_run__name=name).metrics)


# What trains


def test_answers_of_a_stage_that_trains_nothing_teach_later_ones() -> None:
    first = cast.closed_stage(**{**UNIFORM, "stages": [{"sittings": 2, "train": False}, {"sittings": 2}]})
    second = second_stage(first)
    assert {answer.slot.stage_id for answer in training_examples(second)} == {first.pk, second.pk}


def test_a_holdouts_answers_and_others_on_its_pair_never_train() -> None:
    stage = cast.closed_stage(**TWO)
    first, second, *_others = stage.slots.all()
    hold_out(second, like=first)
    jobs.run_inline(stage)
    trained = {answer.slot_id for answer in training_examples(stage)}
    assert trained == set(stage.slots.values_list("pk", flat=True)) - {first.pk, second.pk}
    run = PredictorRun.objects.get(role="main")
    assert run.example_count == 10
    assert stage.job_steps.get(predictor_run=run).result["held_out"] == 1


def test_what_a_later_plan_holds_out_does_not_train_either() -> None:
    stage = cast.closed_stage(**UNIFORM)
    later = planning.plan_stage(cast.stage_of(stage.study, 2))
    slot, like = later.slots.first(), stage.slots.first()
    assert slot is not None and like is not None
    hold_out(slot, like=like)
    jobs.run_inline(stage)
    assert like.pk not in {answer.slot_id for answer in training_examples(stage)}
    assert {run.example_count for run in PredictorRun.objects.all()} == {11}


def test_a_plan_made_after_the_training_began_changes_nothing_for_its_other_members() -> None:
    stage = cast.closed_stage(**UNIFORM)
    cast.run_until(stage, "train")
    run = PredictorRun.objects.get(role="main")
    later = planning.plan_stage(cast.stage_of(stage.study, 2))
    slot = later.slots.first()
    assert slot is not None
    hold_out(slot, like=stage.slots.first())
    jobs.run_inline(stage)
    run.refresh_from_db()
    assert (run.held_out_through, run.example_count) == (1, 12)
    assert PredictorRun.objects.filter(stage=stage, role="main").count() == 1


def test_a_predictor_of_several_members_is_ready_once_all_of_them_are_trained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predictor_training, "members_of", lambda name, params=None: 2)
    stage = cast.closed_stage(**TWO)
    ready = []
    cast.run_until(stage, "train")
    for step in stage.job_steps.filter(kind="train", predictor_run__role="main").order_by("member"):
        jobs.run_step(step.pk)
        run = PredictorRun.objects.get(role="main")
        ready.append((sorted(run.members), run.is_ready))
    assert ready == [(["0"], False), (["0", "1"], True)]


def test_a_stage_is_judged_by_the_newest_predictors_that_are_ready_the_main_one_first() -> None:
    """Of three stages: those of the second one, and of the first one while these are not ready."""
    study = cast.small_study(stages=[{"sittings": 4}] * 4, predictor={"name": "same_task"})
    first, second, third, fourth = study.stages.order_by("index")

    def run(stage: Stage, name: str, role: str) -> PredictorRun:
        return PredictorRun.objects.create(
            stage=stage, name=name, role=role, seed=1, input_sha256=name * 4, example_count=1, ready_at=timezone.now()
        )

    old = run(first, "same_task", "main")
    baseline, newer = run(second, "previous_correct", "baseline"), run(second, "same_task", "main")
    run(third, "same_task", "main")
    assert runs_in_force(third) == [newer, baseline] and runs_in_force(second) == [old] and runs_in_force(first) == []
    PredictorRun.objects.filter(stage=second).update(ready_at=None)
    assert runs_in_force(third) == [old]
    assert [run.stage.index for run in runs_in_force(fourth)] == [3]


def test_a_training_with_a_later_plan_is_another_one_than_without() -> None:
    """Its answers may be others, since what the later plan holds out does not train."""
    stage = cast.closed_stage(**UNIFORM)
    lifecycle.freeze(stage)
    stage = cast.stage_of(stage.study)
    (choice, *_others) = lifecycle._predictors_of(stage)
    before = lifecycle._run(stage, choice)
    digests = {before.input_sha256}
    PredictorRun.objects.all().delete()
    assert lifecycle._run(stage, choice).input_sha256 in digests, "the same inputs"
    PredictorRun.objects.all().delete()
    planning.plan_stage(cast.stage_of(stage.study, 2))
    after = lifecycle._run(cast.stage_of(stage.study), choice)
    assert after.input_sha256 not in digests
    assert (before.held_out_through, after.held_out_through) == (1, 2)


def test_a_test_set_trains_nothing_and_keeps_its_pairs_from_training() -> None:
    stage = cast.closed_stage(**UNIFORM)
    later = planning.plan_stage(cast.stage_of(stage.study, 2))
    slot, like = later.slots.first(), stage.slots.first()
    assert slot is not None and like is not None
    hold_out(slot, like=like)
    Slot.objects.filter(pk=slot.pk).update(role=Slot.Role.SAMPLED)
    lifecycle.freeze(stage)
    assert len(training_examples(stage)) == 12
    study = type(stage.study).objects.get()
    study.stored_config["stages"][1]["design"] = {"kind": "test_set"}
    study.save(update_fields=["stored_config"])
    assert like.pk not in {answer.slot_id for answer in training_examples(cast.stage_of(study))}
    lifecycle.open_stage(later)
    cast.full_of_answers(cast.stage_of(study, 2))
    lifecycle.freeze(lifecycle.close_stage(cast.stage_of(study, 2)))
    assert {answer.slot.stage_id for answer in training_examples(cast.stage_of(study, 2))} == {stage.pk}


# Which predictors


def test_the_baselines_and_the_compared_are_trained_on_the_same_answers_once_the_next_stage_is_planned() -> None:
    tuned = {"name": "same_task", "compared": [{"name": "previous_correct"}]}
    stage = cast.frozen_stage(**{**TWO, "predictor": tuned})
    roles = dict(PredictorRun.objects.values_list("name", "role"))
    assert roles == {"same_task": "main", "previous_correct": "compared"}
    assert {(run.is_ready, run.example_count) for run in PredictorRun.objects.all()} == {(True, 12)}
    order = [step.predictor_run.name if step.predictor_run else step.kind for step in stage.job_steps.order_by("pk")]
    assert order == ["freeze", "same_task", "score", "plan", "previous_correct"]


def test_one_predictor_may_be_compared_under_several_settings() -> None:
    numbers = [["same_task"], ["previous_correct"]]
    compared = [{"name": "logistic", "params": {"numbers": own}} for own in numbers]
    cast.frozen_stage(**{**TWO, "predictor": {"name": "same_task", "compared": compared}})
    runs = PredictorRun.objects.filter(role="compared").order_by("pk")
    assert [run.params for run in runs] == [{"numbers": own} for own in numbers]
    assert all(run.is_ready for run in runs) and len({run.members["0"]["logistic.json"] for run in runs}) == 2


def test_columns_come_from_training_answers_and_make_a_leaderboard_of_their_own(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    compared = {"name": "logistic", "params": {"columns": ["people"]}}
    stage = cast.closed_stage(**{**TWO, "predictor": {"name": "same_task", "compared": [compared]}})
    told: list[tuple[str, Any]] = []
    columns_of = BeliefLearning.columns_and_sources

    def noted(self: Any, answers: Any, names: Any) -> Any:
        told.append((",".join(names), len(answers)))
        return columns_of(self, answers, names)

    monkeypatch.setattr(BeliefLearning, "columns_and_sources", noted)
    second_stage(stage)
    assert told == [("people", 12), ("", 12)], "a prior is told where it trains and never where it is predicted"
    (beside,) = {line.run.pk: line for line in leaderboard(stage.study) if line.columns}.values()
    assert beside.columns == ("people",) and beside.predictor == "logistic (columns people)"
    call_command("leaderboard", stage.study.slug)
    alone, apart = capsys.readouterr().out.split("With columns next to the texts")
    assert "same_task" in alone and "logistic" not in alone
    assert "logistic (columns people)" in apart and "same_task" not in apart.split("That is another task")[0]


def test_what_language_models_answered_at_training_and_at_prediction_is_noted(
    admin_client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    compared = {"name": "logistic", "params": {"columns": ["models"]}}
    stage = cast.closed_stage(**{**TWO, "predictor": {"name": "same_task", "compared": [compared]}})
    questions = list(stage.study.bank.questions.all())

    def answered(name: str) -> None:
        model = LanguageModel.objects.create(name=name)
        ModelAnswer.objects.bulk_create(
            ModelAnswer(language_model=model, question=question, correct=bool(question.position % 2))
            for question in questions
        )

    answered("first")
    second = second_stage(stage)
    (line,) = {line.columns_read for line in leaderboard(stage.study) if line.columns}
    (source,) = metrics_of(second, "logistic")["sources"]["prediction"]["models"]
    assert (source["answers"], source["models"]) == (len(questions), 1)
    said = f"{len(questions)} graded answers of 1 language models (SHA-256 {source['sha256'][:12]})"
    assert line == f"learnt from and predicted with {said}"
    assert "sources" not in metrics_of(second, "same_task")
    answered("imported later")
    # What evaluates is told of answers that came between training and now.
    Evaluation.objects.all().delete()
    second.job_steps.filter(kind="evaluate").update(state="queued", result={}, tries_left=3)
    jobs.run_inline(second)
    (changed,) = {line.columns_read for line in leaderboard(stage.study) if line.columns}
    assert changed.startswith(f"learnt from {said}, predicted with {2 * len(questions)} graded answers of 2 language")
    call_command("leaderboard", stage.study.slug)
    assert changed in capsys.readouterr().out
    page = admin_client.get(reverse("admin:survey_study_leaderboard", args=[stage.study.pk])).content.decode()
    assert escape(changed) in page
    lines = admin_client.get(f"/api/v1/studies/{stage.study.slug}/leaderboard/").json()
    assert changed in {line["columns_read"] for line in lines}


def test_a_study_with_one_baseline_as_its_predictor_gets_the_other() -> None:
    cast.frozen_stage(predictor={"name": "previous_correct"})
    assert dict(PredictorRun.objects.values_list("name", "role")) == {
        "previous_correct": "main",
        "same_task": "baseline",
    }


def test_a_compared_predictor_that_fails_holds_nobody_up_and_is_judged_once_it_is_mended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = cast.closed_stage(**TWO)
    train = predictor_training.train_member

    def failing(name: str, *args: Any) -> Any:
        if name == "previous_correct":
            raise PredictorError("checkpoint: out of reach.")
        return train(name, *args)

    monkeypatch.setattr(predictor_training, "train_member", failing)
    with pytest.raises(RuntimeError, match="out of reach"):
        jobs.run_inline(stage)
    second = lifecycle.open_stage(cast.stage_of(stage.study, 2))
    cast.full_of_answers(second)
    jobs.run_inline(lifecycle.close_stage(second))
    assert [stored_evaluation.predictor_run.name for stored_evaluation in Evaluation.objects.all()] == ["same_task"]

    monkeypatch.setattr(predictor_training, "train_member", train)
    lifecycle.retry_steps(stage)
    jobs.run_inline(stage)
    # The worker that trained it asked for it at once, before beat looks.
    assert [step.kind for step in second.job_steps.filter(state="queued")] == ["evaluate"]
    assert [step.kind for step in jobs.due_steps()] == ["evaluate"]
    jobs.run_inline(second)
    assert sorted(stored_evaluation.predictor_run.name for stored_evaluation in Evaluation.objects.all()) == [
        "previous_correct",
        "same_task",
    ]


def test_judging_waits_for_a_predictor_that_still_trains() -> None:
    stage = cast.frozen_stage(**TWO)
    second = lifecycle.open_stage(cast.stage_of(stage.study, 2))
    cast.full_of_answers(second)
    slow = JobStep.objects.get(predictor_run__name="previous_correct")
    JobStep.objects.filter(pk=slow.pk).update(state="queued")
    lifecycle.freeze(lifecycle.close_stage(second))
    second.refresh_from_db()
    assert [step.kind for step in lifecycle.next_steps(second)] == ["freeze"]
    assert jobs.run_step(slow.pk)
    assert [step.kind for step in second.job_steps.order_by("pk")] == ["freeze", "evaluate"]


# Judging


def expected(answers: list[Assignment], scores: np.ndarray, weights: np.ndarray | None) -> Any:
    pairs, labels = instruments.of_study(answers[0].slot.stage.study).learning.examples(answers)
    parts = evaluation.parts_by_outcome([pair.outcome for pair in pairs])
    return evaluation.evaluate(labels, scores, parts, weights)


def test_every_predictor_is_judged_by_the_designs_weights_with_the_naive_figure_beside() -> None:
    second = judged_stage()
    answers = frozen_answers(second)
    weights = np.asarray([1 / (a.slot.inclusion_probability or 0) / (a.slot.pool_probability or 0) for a in answers])
    assert len(set(weights.round(6).tolist())) == 2  # top and rest
    for run in runs_in_force(second):
        inputs, _labels = instruments.of_study(second.study).learning.examples(answers)
        scores = predictor_training.score(training.folders_of(run), inputs).astype(np.float64)
        figures = metrics_of(second, run.name)
        for weighting, used in (("weighted", weights), ("naive", None)):
            by_hand = expected(answers, scores, used)
            assert figures[weighting]["n"] == 12
            assert figures[weighting]["nll"]["overall"] == pytest.approx(by_hand["nll"]["overall"], abs=1e-6)
            assert figures[weighting]["auc"] == pytest.approx(by_hand["auc"])
        low, high = figures["weighted"]["intervals"]["nll"]["overall"]
        assert low < figures["weighted"]["nll"]["overall"] < high
    weighted, naive = metrics_of(second, "same_task")["weighted"], metrics_of(second, "same_task")["naive"]
    assert weighted["nll"] != naive["nll"]


def test_the_predictor_that_planned_is_judged_by_what_it_said_before_the_answers() -> None:
    stage = cast.frozen_stage(**TWO)
    second = lifecycle.open_stage(cast.stage_of(stage.study, 2))
    cast.full_of_answers(second)
    second.slots.update(score=0.5)
    jobs.run_inline(lifecycle.close_stage(second))
    assert metrics_of(second, "same_task")["naive"]["nll"]["overall"] == pytest.approx(np.log(2))
    assert metrics_of(second, "previous_correct")["naive"]["nll"]["overall"] != pytest.approx(np.log(2), abs=1e-9)


def test_the_others_are_compared_with_the_main_one_on_the_same_answers() -> None:
    second = judged_stage()
    main, other = metrics_of(second, "same_task"), metrics_of(second, "previous_correct")
    assert main["difference"] == {}
    for weighting in ("weighted", "naive"):
        cell = other["difference"][weighting]["nll"]["overall"]
        assert cell["difference"] == pytest.approx(
            other[weighting]["nll"]["overall"] - main[weighting]["nll"]["overall"]
        )
        assert cell["interval"][0] <= cell["difference"] <= cell["interval"][1]


def test_intervals_are_of_respondents_and_come_out_the_same_again() -> None:
    second = judged_stage()
    first = metrics_of(second, "same_task")
    step = second.job_steps.get(kind="evaluate")
    JobStep.objects.filter(pk=step.pk).update(state="queued")
    assert jobs.run_step(step.pk)
    assert metrics_of(second, "same_task") == first
    answers = frozen_answers(second)
    one_each = expected_interval(second, answers, [answer.pk for answer in answers])
    by_person = expected_interval(second, answers, [answer.sitting.respondent_id for answer in answers])
    assert first["naive"]["intervals"]["nll"]["overall"] == pytest.approx(by_person)
    assert one_each != pytest.approx(by_person)


def test_where_items_have_several_answers_intervals_are_of_items_too() -> None:
    second = second_stage(cast.closed_stage(**{**TWO, "stages": [TWO["stages"][0], {**TWO["stages"][1], **THREE}]}))
    answers = frozen_answers(second)
    people, items = [answer.sitting.respondent_id for answer in answers], [answer.slot.item_id for answer in answers]
    assert len(set(items)) == len(items) / 3
    both = expected_interval(second, answers, (people, items))
    assert metrics_of(second, "same_task")["naive"]["intervals"]["nll"]["overall"] == pytest.approx(both)
    assert both != pytest.approx(expected_interval(second, answers, people))


def expected_interval(stage: Stage, answers: list[Assignment], clusters: Any) -> Any:
    pairs, labels = instruments.of_study(stage.study).learning.examples(answers)
    scores = np.asarray([answer.slot.score for answer in answers], dtype=np.float64)
    rng = training.generator(stage.seed, "evaluation", "naive")
    parts = evaluation.parts_by_outcome([pair.outcome for pair in pairs])
    metrics = evaluation.evaluate_with_intervals(labels, scores, parts, cluster=clusters, rng=rng)
    return metrics["intervals"]["nll"]["overall"]


def test_a_holdout_is_judged_by_itself_without_the_pairs_that_trained() -> None:
    stage = cast.frozen_stage(**TWO)
    second = lifecycle.open_stage(cast.stage_of(stage.study, 2))
    fresh, seen, *_others = second.slots.order_by("number")
    hold_out(fresh)
    hold_out(seen, like=stage.slots.first())
    cast.full_of_answers(second)
    jobs.run_inline(lifecycle.close_stage(second))
    for stored_evaluation in Evaluation.objects.filter(stage=second):
        assert (stored_evaluation.metrics["holdout"]["n"], stored_evaluation.metrics["naive"]["n"]) == (1, 10)
    assert second.job_steps.get(kind="evaluate").result["answers"] == {"sampled": 10, "holdout": 1}


def test_a_test_set_is_judged_without_the_pairs_that_trained() -> None:
    stage = cast.frozen_stage(**UNIFORM)
    second = lifecycle.open_stage(cast.stage_of(stage.study, 2))
    reverse = second.slots.order_by("number")[0]
    hold_out(reverse, like=stage.slots.first())
    Slot.objects.filter(pk=reverse.pk).update(role=Slot.Role.SAMPLED)
    study = second.study
    study.stored_config["stages"][1]["design"] = {"kind": "test_set"}
    study.save(update_fields=["stored_config"])
    second = cast.stage_of(study, 2)
    cast.full_of_answers(second)
    lifecycle.freeze(lifecycle.close_stage(second))
    parts = training._parts(cast.stage_of(study, 2), runs_in_force(cast.stage_of(study, 2)))
    assert set(parts) == {"sampled", "majorities"}
    judged = {answer.slot_id for answer in parts["sampled"].answers}
    assert judged == set(second.slots.values_list("pk", flat=True)) - {reverse.pk}


def test_every_level_of_a_factor_is_judged_by_its_own_answers() -> None:
    factor = {"factor": "mode", "levels": ["field", "choice", "slider"], "per": "item"}
    stage = cast.frozen_stage(**{**TWO, "conditions": [factor]})
    second = lifecycle.open_stage(cast.stage_of(stage.study, 2))
    cast.fill(second)
    answers = list(Assignment.objects.filter(slot__stage=second))
    jobs.run_inline(lifecycle.close_stage(second))
    whole, *others = (metrics_of(second, name) for name in ("same_task", "previous_correct"))
    under = whole["levels"]
    assert set(under) == {"mode=field", "mode=choice", "mode=slider"}
    for level, figures in under.items():
        own = [answer for answer in answers if answer.levels()["mode"] == level.removeprefix("mode=")]
        assert figures["naive"]["n"] == figures["weighted"]["n"] == len(own) > 0
    assert sum(figures["naive"]["n"] for figures in under.values()) == whole["naive"]["n"]
    assert "levels" not in whole["difference"]
    assert set(others[0]["levels"]["mode=field"]["difference"]) == {"weighted", "naive"}
    lines = leaderboard(stage.study, level="mode=field")
    assert {line.n for line in lines if line.evaluated_on} == {under["mode=field"]["naive"]["n"]}
    assert leaderboard(stage.study, level="mode=gone")[0].evaluated_on is None


def test_the_progress_of_every_step_ends_at_its_total() -> None:
    second = judged_stage()
    step = second.job_steps.get(kind="evaluate")
    runs, answers = step.result["predictors"], step.result["answers"]
    assert step.progress_total == len(runs) * sum(answers.values()) > 0
    for step in JobStep.objects.filter(stage__study=second.study):
        assert (step.state, step.progress_done) == ("done", step.progress_total), step


def test_a_stage_that_nobody_answered_judges_nobody() -> None:
    stage = cast.frozen_stage(**TWO)
    second = lifecycle.open_stage(cast.stage_of(stage.study, 2))
    jobs.run_inline(lifecycle.close_stage(second))
    assert not Evaluation.objects.exists()
    assert second.job_steps.get(kind="evaluate").state == "done"


def test_a_worker_that_lost_its_claim_judges_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = cast.frozen_stage(**TWO)
    second = lifecycle.open_stage(cast.stage_of(stage.study, 2))
    cast.full_of_answers(second)
    step = cast.run_until(lifecycle.close_stage(second), "evaluate")
    score = predictor_training.score

    def slowly(*args: Any) -> Any:
        JobStep.objects.filter(pk=step.pk).update(lease_until=timezone.now() - timedelta(seconds=1))
        assert jobs.claim(step.pk) is not None
        return score(*args)

    monkeypatch.setattr(predictor_training, "score", slowly)
    assert jobs.run_step(step.pk) is False
    assert not Evaluation.objects.exists()


# Files


@pytest.mark.thorough
def test_a_saved_predictor_says_the_same_in_a_fresh_process_bit_for_bit(tmp_path: Path) -> None:
    stage = cast.frozen_stage(**TWO)
    (folder,) = training.folders_of(PredictorRun.objects.get(role="main"))
    slots = cast.stage_of(stage.study, 2).slots.order_by("number")
    pairs = []
    for slot in slots:
        pair = Pair.objects.select_related("evidence__task", "target__task").get(item=slot.item_id)
        assert pair.evidence is not None
        texts = (pair.evidence.plain, pair.target.plain, pair.evidence.task.name, pair.target.task.name)
        pairs.append([*texts, int(bool(pair.outcome))])
    (tmp_path / "pairs.json").write_text(json.dumps(pairs))
    script = (
        "import json, sys; from predictors.training import score; "
        "print(json.dumps(score([sys.argv[1]], json.load(open(sys.argv[2]))).tolist()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(folder), str(tmp_path / "pairs.json")],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[3],
    )
    assert json.loads(done.stdout) == [slot.score for slot in slots]


def test_a_changed_byte_in_a_predictor_fails_the_judging_in_words() -> None:
    stage = cast.frozen_stage(**TWO)
    second = lifecycle.open_stage(cast.stage_of(stage.study, 2))
    cast.full_of_answers(second)
    run = PredictorRun.objects.get(name="previous_correct")
    (folder,) = training.folders_of(run)
    sha256 = run.members["0"]["logistic.json"]
    stored = Path(files.default_storage.path(f"{sha256[:2]}/{sha256}"))
    whole = stored.read_bytes()
    for path in (stored, folder / "logistic.json"):
        path.write_bytes(whole.replace(b"0", b"1", 1))
    try:
        with pytest.raises(RuntimeError, match=f"{sha256} has changed: restore it from a backup"):
            jobs.run_inline(lifecycle.close_stage(second))
    finally:
        stored.write_bytes(whole)
    assert not Evaluation.objects.exists()


# Nothing to learn from


def close_with(answers: bool | None, **overrides: Any) -> Stage:
    """A closed first stage whose answers all change the belief, or none does; None: nobody came."""
    stage = cast.open_stage(**{**TWO, **overrides})
    for _person in range(0 if answers is None else 4):
        cast.Visitor(stage.study).finish(changes=answers)
    stage = lifecycle.close_stage(stage)
    jobs.run_inline(stage)
    return stage


@pytest.mark.parametrize(
    ("answers", "reason"),
    [(True, "the label of all 12 answers is 1"), (False, "the label of all 12 answers is 0"), (None, "no answers")],
)
def test_answers_of_one_class_or_none_are_a_plain_result_and_no_failure(answers: bool | None, reason: str) -> None:
    stage = close_with(answers)
    step = cast.step_of(stage, "train")
    assert step.state == "done" and step.result["nothing_to_learn"].startswith("nothing to learn from: ")
    assert reason in step.result["nothing_to_learn"] and reason in step.progress_text
    assert [step.kind for step in stage.job_steps.order_by("pk")] == ["freeze", "train"]
    second = cast.stage_of(stage.study, 2)
    assert second.state == "draft" and lifecycle.waits_for_a_choice(second)
    assert not lifecycle.pipeline_is_done(stage)


def test_a_person_may_then_have_the_stage_drawn_uniformly(capsys: pytest.CaptureFixture[str]) -> None:
    stage = close_with(False)
    call_command("study_status", "small")
    assert "plan_stage small 2 --uniform" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        call_command("plan_stage", "small", "2")
    call_command("plan_stage", "small", "2", "--uniform")
    second = cast.stage_of(stage.study, 2)
    assert second.state == "planned"
    assert [(stratum.name, stratum.slots) for stratum in second.strata.all()] == [("all", 12)]
    assert second.manifest["design"]["kind"] == "uniform"
    assert "label of all 12 answers is 0" in second.manifest["uniform_by_choice"]
    written = AuditEntry.objects.get(action="choose_uniform")
    assert "label of all 12 answers is 0" in written.detail["reason"]
    assert lifecycle.pipeline_is_done(stage)
    lifecycle.open_stage(second)


def test_a_person_may_stop_a_training_and_have_the_stage_drawn_uniformly() -> None:
    stage = cast.closed_stage(**TWO)
    cast.run_until(stage, "train")
    step, second = cast.step_of(stage, "train"), cast.stage_of(stage.study, 2)
    assert lifecycle.waits_for_training(second) and not lifecycle.waits_for_a_choice(second)
    held = jobs.claim(step.pk)
    assert held is not None
    lifecycle.choose_uniform(second)
    assert not held.heartbeat(1, 1, "an epoch"), "the worker that trains notices"
    with pytest.raises(Stopped):
        held.finish({"n_examples": 12})
    step.refresh_from_db()
    assert (step.state, step.result) == ("done", {"stopped": "stage 2 is drawn uniformly"})
    assert not lifecycle.waits_for_training(cast.stage_of(stage.study, 2))
    jobs.run_inline(stage)
    planning.plan_stage(cast.stage_of(stage.study, 2))
    second = cast.stage_of(stage.study, 2)
    assert second.manifest["design"]["kind"] == "uniform"
    assert second.manifest["uniform_by_choice"] == "its training was stopped before it had ended"
    assert lifecycle.pipeline_is_done(stage)


def test_another_predictor_may_be_named_until_one_has_learnt() -> None:
    stage = cast.closed_stage(**TWO)
    cast.run_until(stage, "train")
    study, slow = stage.study, cast.step_of(stage, "train")

    def named(name: str) -> str:
        return re.sub(r'(\[predictor\]\nname = )"\w+"', rf'\1"{name}"', Study.objects.get(pk=study.pk).source_text)

    amending.amend(study, text=named("previous_correct"), source_name="s.toml", reason="It takes too long.")
    slow.refresh_from_db()
    assert (slow.state, slow.result) == ("done", {"stopped": "the study file names another predictor"})
    jobs.run_inline(cast.stage_of(study, 1))
    run = CandidateSet.objects.get(stage=cast.stage_of(study, 2)).predictor_run
    assert run is not None and run.name == "previous_correct" and run.is_ready
    with pytest.raises(FileErrors, match=r"predictor.*stage 1 has trained it"):
        amending.amend(study, text=named("same_task"), source_name="s.toml", reason="Back again.")


def test_a_uniform_stage_follows_by_itself() -> None:
    stage = close_with(False, stages=UNIFORM["stages"])
    second = cast.stage_of(stage.study, 2)
    assert second.state == "planned" and CandidateSet.objects.get(stage=second).predictor_run is None


def test_a_uniform_stage_follows_a_training_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_args: Any) -> Any:
        raise PredictorError("checkpoint: out of reach.")

    monkeypatch.setattr(predictor_training, "train_member", failing)
    stage = cast.closed_stage(**UNIFORM)
    with pytest.raises(RuntimeError, match="out of reach"):
        jobs.run_inline(stage)
    due = jobs.due_steps()
    assert [step.kind for step in due] == ["plan"] and jobs.run_step(due[0].pk)
    assert cast.stage_of(stage.study, 2).state == "planned"
    assert [step.kind for step in lifecycle.failed_steps(stage)] == ["train"]


def test_a_stage_that_needs_the_predictor_waits_until_its_training_is_repaired(monkeypatch: pytest.MonkeyPatch) -> None:
    train = predictor_training.train_member

    def failing(*_args: Any) -> Any:
        raise PredictorError("checkpoint: out of reach.")

    monkeypatch.setattr(predictor_training, "train_member", failing)
    stage = cast.closed_stage(**TWO)
    with pytest.raises(RuntimeError, match="out of reach"):
        jobs.run_inline(stage)
    assert cast.stage_of(stage.study, 2).state == "draft"
    monkeypatch.setattr(predictor_training, "train_member", train)
    lifecycle.retry_steps(stage)
    jobs.run_inline(stage)
    assert cast.stage_of(stage.study, 2).state == "planned"


def test_uniform_is_no_way_around_a_predictor_that_learnt() -> None:
    stage = cast.closed_stage(**TWO)
    second = cast.stage_of(stage.study, 2)
    with pytest.raises(StateRefused, match="stage 1 is not frozen yet"):
        lifecycle.choose_uniform(second)
    cast.run_until(stage, "score")
    with pytest.raises(StateRefused, match="has its predictor"):
        lifecycle.choose_uniform(second)
    jobs.run_inline(stage)
    with pytest.raises(StateRefused, match="never changed"):
        lifecycle.choose_uniform(second)
    assert not AuditEntry.objects.filter(action="choose_uniform").exists()


def test_who_watches_the_work_reads_that_a_choice_is_to_be_made() -> None:
    stage = close_with(True)
    with pytest.raises(StepsFailed, match="plan_stage small 2 --uniform"):
        wait_for_pipeline(stage, say=lambda _text: None)


# Heartbeats


@pytest.mark.django_db(transaction=True)
def test_a_plan_that_takes_long_keeps_its_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = cast.closed_stage(stages=UNIFORM["stages"])
    step = cast.run_until(stage, "plan")
    plan = lifecycle.plan_stage
    seen: list[Any] = []

    def slowly(*args: Any, **kwargs: Any) -> Stage:
        lapsed = timezone.now() - timedelta(seconds=1)
        JobStep.objects.filter(pk=step.pk).update(lease_until=lapsed)

        def is_renewed() -> bool:
            seen.append(JobStep.objects.get(pk=step.pk).lease_until)
            return bool(seen[-1] > timezone.now())

        assert eventually(is_renewed)
        return plan(*args, **kwargs)

    monkeypatch.setattr(leases, "RENEW_EVERY", 0.05)
    monkeypatch.setattr(lifecycle, "plan_stage", slowly)
    assert jobs.run_step(step.pk)
    assert seen[-1] > timezone.now()
