"""A pilot is a trial with real people: its answers are in the answers' file, and nowhere else."""

from typing import Any

import pytest

from survey import study_file
from survey.exceptions import StateRefused
from survey.models import PredictorRun, Sitting, Slot, Stage, Study
from survey.services.answers.counting import counted_answers, held_out_keys, training_examples
from survey.services.plans import planning
from survey.services.plans.candidates import planned_before
from survey.services.results.estimates.study_estimates import estimate
from survey.services.results.export.answers_file import CountedAnswers, answer_rows
from survey.services.results.export.columns import columns_of
from survey.services.results.policies.comparing import compare
from survey.services.sittings.enrolment import begin_sitting
from survey.services.stages import jobs, lifecycle
from survey.study_file import StudyFileError
from tests import cast

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

PILOT: dict[str, Any] = {"sittings": 4, "pilot": True}
THREE: dict[str, Any] = {
    "stages": [PILOT, {"sittings": 4}, {"sittings": 4, "design": {"kind": "epsilon_greedy", "epsilon": 0.25}}],
    "predictor": {"name": "same_task"},
}


def stage(study: Study, index: int) -> Stage:
    return cast.stage_of(study, index)


def frozen_pilot(**overrides: Any) -> Study:
    """A study whose pilot is over, with nothing opened since."""
    first = cast.frozen_stage(on=cast.small_bank(300, name="wide"), **{**THREE, **overrides})
    return first.study


def main_stage_over(study: Study) -> Stage:
    opened = lifecycle.open_stage(stage(study, 2))
    cast.full_of_answers(opened)
    lifecycle.close_stage(opened)
    jobs.run_inline(stage(study, 2))
    return stage(study, 2)


def test_closing_it_trains_and_plans_nothing_and_is_done() -> None:
    study = frozen_pilot()
    assert stage(study, 1).state == "frozen"
    assert not PredictorRun.objects.exists()
    assert stage(study, 2).state == "draft"
    assert lifecycle.pipeline_is_done(stage(study, 1))


def test_the_first_main_stage_is_planned_when_it_is_opened_and_not_before_the_pilot_is_over() -> None:
    study = cast.open_stage(on=cast.small_bank(300, name="wide"), **THREE).study
    with pytest.raises(StateRefused, match="stage 1 is still open"):
        lifecycle.open_stage(stage(study, 2))
    assert stage(study, 2).state == "draft"
    lifecycle.close_stage(stage(study, 1), now=True)
    jobs.run_inline(stage(study, 1))
    assert lifecycle.open_stage(stage(study, 2)).state == "open"


@pytest.mark.thorough
def test_predictors_learn_from_the_main_stages_alone() -> None:
    study = frozen_pilot()
    second = main_stage_over(study)
    assert {answer.slot.stage_id for answer in training_examples(second)} == {second.pk}
    run = PredictorRun.objects.get(role="main")
    assert run.stage_id == second.pk and run.example_count == 12
    step = second.job_steps.get(kind="train", predictor_run=run)
    assert step.result["held_out"] == 0
    assert stage(study, 3).state == "planned" and stage(study, 3).manifest["predictor"]["name"] == "same_task"


def test_main_stages_follow_and_precede_main_stages() -> None:
    study = frozen_pilot()
    assert [stage(study, index).is_pilot for index in (1, 2, 3)] == [True, False, False]
    assert stage(study, 1).preceding() is None and stage(study, 2).preceding() is None
    third = stage(study, 3).preceding()
    assert third is not None and third.index == 2


def test_what_it_held_out_or_planned_binds_no_main_stage() -> None:
    study = frozen_pilot(
        roles={"holdout": 0.34, "controls": 0},
        stages=[
            PILOT,
            {"sittings": 4},
            {"sittings": 2, "design": {"kind": "test_set", "pairs": 2, "responses_per_pair": 3}},
        ],
    )
    assert stage(study, 1).slots.filter(role=Slot.Role.HOLDOUT).exists()
    assert held_out_keys(study, through=None) == set()
    lifecycle.open_stage(stage(study, 2))
    held_out = stage(study, 2).slots.filter(role=Slot.Role.HOLDOUT)
    assert len(held_out_keys(study, through=None)) == held_out.count() > 0
    keys = set(stage(study, 2).slots.values_list("item__key", flat=True))
    assert planned_before(stage(study, 3)) == keys


@pytest.mark.thorough
def test_estimates_figures_and_comparisons_leave_it_out() -> None:
    study = frozen_pilot()
    with pytest.raises(StateRefused, match="no answer counts yet"):
        estimate(study)
    with pytest.raises(StateRefused, match="no stage is frozen yet"):
        compare(study)
    second = main_stage_over(study)
    report = estimate(study)
    assert report.answers == 12 and {part.stage for part in report.parts} == {2}
    assert {answer.slot.stage_id for answer in CountedAnswers(study)} == {second.pk}
    assert counted_answers(stage(study, 1)) == [] and len(counted_answers(stage(study, 1), pilots=True)) == 12


def test_the_export_has_its_answers_and_says_so() -> None:
    study = frozen_pilot()
    names = [column.name for column in columns_of(study)]
    rows = [dict(zip(names, row, strict=True)) for row in answer_rows(study)]
    assert [row["pilot"] for row in rows if row["stage"] == 1] == [True] * 12
    assert {row["status"] for row in rows} == {"counted"}


def test_who_was_in_the_pilot_is_not_let_into_the_main_study() -> None:
    study = cast.open_stage(on=cast.small_bank(300, name="wide"), **THREE).study
    first = cast.Visitor(study).finish()
    lifecycle.close_stage(stage(study, 1))
    jobs.run_inline(stage(study, 1))
    lifecycle.open_stage(stage(study, 2))
    again = begin_sitting(study=study, ids=first.ids)
    assert again.pk == first.sitting.pk and again.is_over
    assert Sitting.objects.filter(stage__index=2).count() == 0
    assert cast.Visitor(study).sitting.stage.index == 2


def test_it_can_be_planned_beforehand_as_any_uniform_stage() -> None:
    study = cast.small_study(on=cast.small_bank(300, name="wide"), **THREE)
    assert planning.plan_stage(stage(study, 1)).state == "planned"


REFUSED = {
    "last": ([PILOT], "stages.1.pilot: no main stage follows"),
    "after a main stage": ([{"sittings": 2}, PILOT, {"sittings": 2}], "stages.2.pilot: a pilot comes before"),
    "with a design": (
        [{**PILOT, "design": {"kind": "epsilon_greedy"}}, {"sittings": 2}],
        "stages.1.design: a pilot draws uniformly",
    ),
    "what follows opens by itself": (
        [PILOT, {"sittings": 2, "opens": "automatically"}],
        "stages.2.opens: a person looks at the pilot",
    ),
    "a first main stage that is drawn by a predictor": (
        [PILOT, {"sittings": 2, "design": {"kind": "epsilon_greedy"}}],
        "stages.2.design: the first stage has no predictor",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_the_study_file_refuses_a_pilot(name: str) -> None:
    stages, message = REFUSED[name]
    with pytest.raises(StudyFileError, match=message):
        study_file.parse(cast.study_text(stages=stages, predictor={"name": "same_task"}))


def test_two_pilots_may_follow_each_other() -> None:
    config = study_file.parse(cast.study_text(stages=[PILOT, PILOT, {"sittings": 2}]))
    assert config.pilots == 2
