"""A priority of the instrument's own: what stages draw by, with and without a predictor."""

from contextlib import nullcontext
from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import pytest
from django.core.management import call_command
from django.utils import timezone

from survey.contracts import instruments
from survey.exceptions import FileErrors, PlanRefused, StateRefused
from survey.models import CandidateSet, JobStep, PredictorRun, Question, Stage, Study
from survey.services.answers.counting import counted_answers
from survey.services.base import files
from survey.services.base.seeds import generator
from survey.services.plans import planning
from survey.services.plans.candidates import PRIORITY, SCORE, drawable_questions
from survey.services.results.estimates import study_estimates
from survey.services.results.estimates.stage_rows import read_stage
from survey.services.results.export import contents
from survey.services.results.policies import comparing
from survey.services.stages import lifecycle, scoring, verifying
from survey.services.studies import creating
from tests import cast
from tests.survey import readings
from tests.survey.readings import length_of

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

GREEDY = {"kind": "epsilon_greedy", "epsilon": 0.25, "top_fraction": 0.5}
ADAPTIVE: dict[str, Any] = {
    "stages": [{"sittings": 8}, {"sittings": 8, "design": GREEDY}],
    "candidates": {"size": 60},
}
PREDICTED: dict[str, Any] = {**ADAPTIVE, "predictor": {"name": "logistic"}}


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    readings.make_known(monkeypatch)


def two_stages(**overrides: Any) -> Stage:
    """The second stage of a study whose first one was answered and closed."""
    study = readings.study(**overrides)
    readings.run_stage(cast.stage_of(study))
    return cast.stage_of(study, 2)


def rows_of(stage: Stage) -> np.ndarray:
    return files.load_array(CandidateSet.objects.get(stage=stage).file_sha256)


def check_top(stage: Stage, priority: np.ndarray) -> None:
    """The top stratum's slots are of the better half by priority, and its scores are priorities."""
    cut = np.sort(priority)[::-1][29]
    for slot in stage.slots.select_related("stratum", "item"):
        assert slot.stratum is not None
        value = dict(zip(rows_of(stage)["question"].tolist(), priority.tolist(), strict=True))[int(slot.item.key)]
        assert value >= cut if slot.stratum.name == "top" else value <= cut
    top = stage.strata.get(name="top")
    assert (top.lowest_score, top.highest_score) == (cut, priority.max())


@pytest.mark.thorough
def test_a_priority_that_needs_no_predictor_plans_a_stage_without_one() -> None:
    stage = two_stages(**ADAPTIVE, options={"priority": "length"})
    assert stage.state == "planned" and not PredictorRun.objects.exists()
    first = cast.stage_of(stage.study)
    assert [step.kind for step in first.job_steps.order_by("pk")] == ["freeze", "score", "plan"]
    rows = rows_of(stage)
    assert PRIORITY in rows.dtype.names and SCORE not in rows.dtype.names
    priority = rows[PRIORITY].astype(float)
    assert priority.tolist() == [length_of(place) for place in rows["question"].tolist()]
    check_top(stage, priority)
    assert set(stage.slots.values_list("score", flat=True)) == {None}
    assert stage.manifest["priority"] == {"name": "length", "version": "3"}
    assert stage.manifest["predictor"] is None
    assert verifying.verify_stage(stage).differences == []


def test_a_step_is_another_one_for_another_version_of_the_priority(monkeypatch: pytest.MonkeyPatch) -> None:
    study = readings.study(**ADAPTIVE, options={"priority": "length"})
    first = lifecycle.open_stage(cast.stage_of(study))
    readings.fill(first)
    lifecycle.close_stage(first)
    score_step = cast.run_until(cast.stage_of(study), "score")
    monkeypatch.setattr(readings.ByLength, "version", "4")
    steps = lifecycle.next_steps(cast.stage_of(study))
    assert [step.kind for step in steps] == ["freeze", "score", "score"] and score_step.pk in {
        step.pk for step in steps
    }


@pytest.mark.thorough
def test_with_a_predictor_its_chances_are_stored_beside_and_judge_it(capsys: pytest.CaptureFixture[str]) -> None:
    stage = two_stages(**PREDICTED, options={"priority": "doubt"})
    rows = rows_of(stage)
    assert {SCORE, PRIORITY} <= set(rows.dtype.names)
    asked = {int(slot.item.key) for slot in cast.stage_of(stage.study).slots.select_related("item")}
    seen = np.array([place in asked for place in rows["question"].tolist()])
    priority = rows[PRIORITY].astype(float)
    assert seen.any() and not seen.all()
    assert priority == pytest.approx(-np.abs(rows[SCORE].astype(float) - 0.5) - seen, abs=1e-6)
    check_top(stage, priority)
    chance = dict(zip(rows["question"].tolist(), rows[SCORE].astype(float).tolist(), strict=True))
    for slot in stage.slots.select_related("item"):
        assert slot.score == chance[int(slot.item.key)]
    assert stage.manifest["priority"] == {"name": "doubt", "version": "1"}
    assert verifying.verify_stage(stage).differences == []
    # Judged by the stored chances, which are what its files say too.
    readings.run_stage(stage)
    judged = stage.evaluations.get(predictor_run__role="main").metrics["naive"]
    answers = counted_answers(cast.stage_of(stage.study, 2), roles=["sampled"])
    learning = instruments.learning_of(instruments.of_study(stage.study))
    labels = learning.examples(answers)[1]
    scores = np.array([answer.slot.score for answer in answers])
    assert judged["brier"]["everything"] == pytest.approx(((labels - scores) ** 2).mean())
    # Its own metric, and no other, wherever predictors are compared.
    capsys.readouterr()
    call_command("leaderboard", stage.study.slug, "--sort", "brier", "--part", "long")
    output = capsys.readouterr().out
    assert "BRIER: lower is better, always saying a half has 0.25.\n" in output and "AUC" not in output
    assert f"{judged['brier']['long']:.3f}" in output
    (table,) = [file for file in contents.extra_files(stage.study) if file.name == "leaderboard.csv"]
    names = [column.name for column in table.columns if column.name.startswith(("brier", "auc", "nll"))]
    assert set(names) - {"auc_limit"} == {
        f"brier_{part}{end}" for part in ("everything", "long", "difference") for end in ("", "_low", "_high")
    }


def test_a_plan_by_priority_that_was_touched_is_noticed() -> None:
    stage = two_stages(**ADAPTIVE, options={"priority": "length"})
    stored = CandidateSet.objects.get(stage=stage)
    rows = rows_of(stage).copy()
    rows[PRIORITY] = rows[PRIORITY][::-1]
    manifest = {**stage.manifest, "candidates": {**stage.manifest["candidates"], "sha256": files.store_array(rows)}}
    Stage.objects.filter(pk=stage.pk).update(manifest=manifest)
    assert stored.file_sha256 != manifest["candidates"]["sha256"]
    assert verifying.verify_stage(cast.stage_of(stage.study, 2)).differences


def test_a_uniform_stage_has_no_priority() -> None:
    stage = two_stages(stages=[{"sittings": 8}, {"sittings": 8}], options={"priority": "length"})
    assert stage.state == "planned" and PRIORITY not in (rows_of(stage).dtype.names or ())
    assert "priority" not in stage.manifest


def test_a_uniform_stage_is_scored_by_a_predictor_and_not_by_the_priority() -> None:
    uniform = [{"sittings": 8}, {"sittings": 8}]
    stage = cast.stage_of(readings.study(**{**PREDICTED, "stages": uniform}, options={"priority": "doubt"}), 2)
    held: Any = None  # Nothing is computed that takes long.
    scores = SimpleNamespace(of=lambda rows: np.arange(len(rows)))
    pool, result = scoring._score_pool(held, stage, drawable_questions(stage), scores)  # type: ignore[arg-type]
    assert pool.keys() == {"candidates", "scores", "disagreement"} and result == {"scored": 60}
    assert pool["scores"].tolist() == list(range(60)) and pool["disagreement"] is None


def test_flags_set_since_are_not_drawn_around_without_scores() -> None:
    study = readings.study(**ADAPTIVE, options={"priority": "length"})
    first = lifecycle.open_stage(cast.stage_of(study))
    readings.fill(first)
    lifecycle.close_stage(first)
    step = cast.run_until(cast.stage_of(study), "plan")
    assert step.state == JobStep.State.QUEUED
    question = study.bank.questions.first()
    assert question is not None
    question.flag, question.flag_reason = Question.Flag.SENSITIVE, "Nobody can tell."
    question.save()
    with pytest.raises(StateRefused, match="questions were flagged since the candidates of stage 2 were scored"):
        planning.plan_stage(cast.stage_of(study, 2))


def test_a_predictor_that_learns_nothing_does_not_hold_up_what_needs_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readings, "read_of", lambda position, person: 1.0)
    stage = two_stages(**PREDICTED, options={"priority": "length"})
    assert stage.state == "planned" and stage.manifest["predictor"] is None
    assert SCORE not in rows_of(stage).dtype.names
    held = two_stages(slug="held", **PREDICTED, options={"priority": "doubt"})
    assert held.state == "draft" and lifecycle.waits_for_a_choice(held)
    with pytest.raises(StateRefused, match="its plan is never changed"):
        lifecycle.choose_uniform(stage)


def test_a_training_under_way_holds_up_even_what_needs_no_predictor() -> None:
    """Its chances are to stand next to the priority. Once it has failed, nothing is waited for."""
    study = readings.study(**PREDICTED, options={"priority": "length"})
    first = lifecycle.open_stage(cast.stage_of(study))
    readings.fill(first)
    lifecycle.close_stage(first)
    training = cast.run_until(first, "train")
    for state, following in (("queued", set()), ("running", set()), ("failed", {"score"})):
        lease = timezone.now() + timedelta(minutes=5) if state == "running" else None
        JobStep.objects.filter(pk=training.pk).update(state=state, lease_until=lease)
        kinds = {step.kind for step in lifecycle.next_steps(cast.stage_of(study))}
        assert kinds & {"score", "plan"} == following, state


def test_what_a_priority_scores_depends_on_the_answers_of_every_stage_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    study = cast.small_study(stages=[{"sittings": 4}, {"sittings": 4}, {"sittings": 4}])
    for stage in study.stages.all():
        Stage.objects.filter(pk=stage.pk).update(snapshot_sha256=str(stage.index) * 64)
    priority = SimpleNamespace(facts=lambda: "facts")
    monkeypatch.setattr(instruments, "of_study", lambda _study: SimpleNamespace(priority=priority))
    monkeypatch.setattr(lifecycle, "question_set_digest", lambda _study: "questions")
    design = SimpleNamespace(kind="epsilon_greedy")
    steps = mock.Mock(**{"queue.return_value.state": JobStep.State.QUEUED})
    following: Any = SimpleNamespace(config=SimpleNamespace(design=design), seed=3)
    lifecycle._queue_plan(cast.stage_of(study, 2), following, None, steps)
    ((kind, inputs),) = [call.args for call in steps.queue.call_args_list]
    assert kind == "score" and inputs[0] == ["facts", "1" * 64, "2" * 64]


def test_a_priority_reads_the_answers_that_the_predictor_learnt_from(monkeypatch: pytest.MonkeyPatch) -> None:
    """And without one those that no plan so far holds out."""
    asked: list[int | None] = []
    monkeypatch.setattr(
        scoring, "training_examples", lambda _stage, *, held_out_through: asked.append(held_out_through) or []
    )
    priority = SimpleNamespace(name="p", of=lambda **_what: [1, 2])
    held: Any = SimpleNamespace(step=SimpleNamespace(stage=None), heartbeat=lambda *_how: None, kept_alive=nullcontext)
    for run in (None, SimpleNamespace(held_out_through=2)):
        monkeypatch.setattr(scoring, "ready_run", lambda _stage, run=run: run)
        instrument: Any = SimpleNamespace(name="i", priority=priority)
        rows = scoring._priority(held, Stage(index=2, seed=1), np.zeros(2), [], None, instrument)
        assert rows.tolist() == [1.0, 2.0]
    assert asked == [None, 2]


def test_no_person_chooses_uniform_for_what_needs_no_predictor() -> None:
    study = readings.study(**ADAPTIVE, options={"priority": "length"})
    with pytest.raises(StateRefused, match="its instrument's priority, which needs no predictor"):
        lifecycle.choose_uniform(cast.stage_of(study, 2))
    assert not lifecycle.waits_for_a_choice(cast.stage_of(study, 2))


@pytest.mark.parametrize(
    "numbers",
    [np.zeros(59), np.full(60, np.nan), np.full(60, 1e300), np.zeros((60, 2))],
    ids=["few", "nan", "big", "2d"],
)
def test_numbers_that_cannot_be_drawn_by_are_refused_in_words(
    numbers: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readings.ByLength, "of", lambda *_args, **_known: numbers)
    study = readings.study(**ADAPTIVE, options={"priority": "length"})
    first = lifecycle.open_stage(cast.stage_of(study))
    readings.fill(first)
    lifecycle.close_stage(first)
    step = cast.run_until(cast.stage_of(study), "score")
    from survey.services.stages import jobs

    assert not jobs.run_step(step.pk)
    step.refresh_from_db()
    assert "the priority length of readings gives shape" in step.error and "60 candidates need one number" in step.error


# What is estimated from such a stage


@pytest.mark.thorough
def test_assistance_cuts_the_strata_as_the_plan_did_and_averages_the_chances() -> None:
    """Many candidates are tied at the cut and have other chances, so that the seed must decide them again."""
    stage = two_stages(**PREDICTED, options={"priority": "rough"})
    readings.run_stage(stage)
    stage = cast.stage_of(stage.study, 2)
    assert study_estimates.estimate(stage.study).parts[1].predictions.startswith("logistic")
    rows, instrument = rows_of(stage), instruments.of_study(stage.study)
    cut = stage.config.design.build().strata(rows[PRIORITY].astype(float), generator(stage.seed, "draw"))
    inside = cut.label == cut.names.index("top")
    top = {int(slot.item.key) for slot in stage.slots.filter(stratum__name="top").select_related("item")}
    assert len(top) == 18 and top <= set(rows["question"][inside].tolist())
    read = study_estimates._read(read_stage(stage, instrument, {}), "sampled", instrument, (), {})
    assert read is not None
    means = study_estimates._mean_scores(stage, read.part, rows)
    assert means is not None
    place = read.part.names.index("top")
    assert means[place] == pytest.approx(rows[SCORE][inside].astype(float).mean(), rel=1e-9)


@pytest.mark.thorough
def test_policies_are_judged_by_the_chances_that_the_priority_gave() -> None:
    stage = two_stages(**PREDICTED, options={"priority": "doubt"})
    readings.run_stage(stage)
    second = comparing.compare(stage.study, predictors=())[1]
    assert second.reason == ""
    own = next(line for line in second.policies if line.policy.startswith("epsilon greedy (epsilon 0.25"))
    assert own.found is not None and second.logged is not None
    assert own.found.self_normalised.value == pytest.approx(second.logged.value, abs=1e-9)


# What is refused at creation


def file_of(**changes: str) -> str:
    parts = {
        "options": 'priority = "length"',
        "candidates": "size = 60",
        "predictor": "",
        "design": 'kind = "epsilon_greedy"\ntop_fraction = 0.5',
        **changes,
    }
    return f"""slug = "small"
title = "A small study"
bank = "small"
seed = 11
[candidates]
{parts["candidates"]}
[roles]
holdout = 0
controls = 0
[instrument]
kind = "readings"
[instrument.options]
{parts["options"]}
{parts["predictor"]}
[sitting]
items = 3
[data]
retention_until = 2099-12-31
[[stages]]
sittings = 8
[[stages]]
sittings = 8
[stages.design]
{parts["design"]}
[[blocks]]
kind = "consent"
text = "Do you agree?"
[[blocks]]
kind = "items"
[[blocks]]
kind = "end"
text = "Thank you."
"""


LOGISTIC = '[predictor]\nname = "logistic"'


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"options": 'priority = "doubt"'}, "the priority doubt of readings, which needs a [predictor]"),
        ({"options": ""}, "epsilon_greedy needs a [predictor]"),
        ({"candidates": 'kind = "exhaustive"'}, "the priority length of readings, which is a number for each listed"),
        (
            {"design": 'kind = "uncertainty"', "predictor": LOGISTIC},
            "uncertainty draws by the predictor's chances, and readings has the priority length instead",
        ),
        (
            {"predictor": '[predictor]\nname = "hybrid"'},
            "hybrid reads pairs of questions alone, and readings gives features",
        ),
    ],
)
def test_what_could_not_be_drawn_is_refused_at_its_line(changes: dict[str, str], message: str) -> None:
    cast.small_bank(80)
    with pytest.raises(FileErrors) as refused:
        creating.create_study(text=file_of(**changes), source_name="small.toml")
    (line,) = refused.value.lines
    assert message in line
    assert ("predictor.name" if "hybrid" in message else "stages.2.design") in line
    assert not Study.objects.exists()


def test_a_study_by_priority_is_created_with_and_without_a_predictor() -> None:
    cast.small_bank(80)
    assert creating.create_study(text=file_of(), source_name="x").config.predictor is None
    text = file_of(predictor=LOGISTIC, options='priority = "doubt"').replace('"small"', '"other"', 1)
    assert creating.create_study(text=text, source_name="x").slug == "other"
    study = readings.study("late", **PREDICTED, options={"priority": "doubt"})
    study.config = study.config.model_copy(update={"predictor": None})
    with pytest.raises(PlanRefused, match="which needs a"):
        planning.check_designs(study.config, universe_size=80, instrument=instruments.of_study(study))
