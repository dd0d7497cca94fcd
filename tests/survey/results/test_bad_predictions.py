"""Predictions that are no good, from a stage's plan to its figures: said, never a traceback, never silently plain."""

import io
from typing import Any

import numpy as np
import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from predictors import training
from survey.models import Stage, Study
from survey.services.results.estimates import study_estimates
from survey.services.stages import jobs, lifecycle
from tests import cast
from tests.survey.filled import NO_ROLES, answer

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

BAD = {
    "nan": lambda scores: np.where(np.arange(scores.size) % 3 == 0, np.nan, scores),
    "-2.2": lambda scores: 8 * scores - 3,
}


def study_of(kind: str, *, sittings: int = 14, **design: Any) -> Study:
    stages = [{"sittings": sittings}, {"sittings": sittings, "design": {"kind": kind, **design}}]
    return cast.small_study(stages=stages, predictor={"name": "same_task"}, candidates={"size": 300}, **NO_ROLES)


def close_first(study: Study) -> Stage:
    first = lifecycle.open_stage(cast.stage_of(study))
    answer(first)
    return lifecycle.close_stage(first)


@pytest.mark.parametrize(("bad", "kind"), [("nan", "robust"), ("-2.2", "robust"), ("-2.2", "uniform")])
def test_scores_that_are_no_chances_are_refused_before_a_stage_is_planned(
    bad: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    study, whole = study_of(kind), training._scored
    first = close_first(study)
    monkeypatch.setattr(training, "_scored", lambda *arguments: BAD[bad](whole(*arguments)))
    with pytest.raises(
        RuntimeError, match=r"scores: the predictor gave \d+ of \d+ rows no probability between 0 and 1"
    ):
        jobs.run_inline(first)
    assert cast.stage_of(study, 2).state == "draft"


@pytest.mark.parametrize(
    ("bad", "sittings", "in_plan", "in_figures"),
    [
        (
            lambda scores: np.full(scores.size, 0.4),
            14,
            "the predictions of the candidates are all alike",
            "not assisted: the predictions are all alike",
        ),
        (
            lambda scores: scores,
            5,
            "the earlier answers are of 5 people, fewer than 10",
            "not assisted: 5 people, and a coefficient needs 10",
        ),
    ],
    ids=["all alike", "five people"],
)
def test_what_predictions_cannot_do_is_said_by_the_plan_the_command_and_the_page(
    bad: Any, sittings: int, in_plan: str, in_figures: str, monkeypatch: pytest.MonkeyPatch, admin_client: Client
) -> None:
    study, whole = study_of("robust", sittings=sittings, find=0.5), training._scored
    monkeypatch.setattr(training, "_scored", lambda *arguments: bad(whole(*arguments)))
    jobs.run_inline(close_first(study))
    second = cast.stage_of(study, 2)
    assert in_plan in second.manifest["learned"]["reason"]
    assert len(set(second.slots.values_list("inclusion_probability", flat=True))) == 1, "uniform"
    answer(lifecycle.open_stage(second), seed=2)
    lifecycle.close_stage(second)
    report = study_estimates.estimate(study)
    assert report.assisted is not None and report.assisted.stages[1].reason == in_figures
    out = io.StringIO()
    call_command("estimate", study.slug, stdout=out)
    assert in_figures in " ".join(out.getvalue().split())
    page = admin_client.get(reverse("admin:survey_study_estimates", args=[study.pk]))
    assert page.status_code == 200 and in_figures in page.content.decode()


def test_where_some_answers_have_no_prediction_the_others_are_assisted_and_that_is_said() -> None:
    study = study_of("uniform")
    jobs.run_inline(close_first(study))
    second = cast.stage_of(study, 2)
    without = list(second.slots.order_by("pk").values_list("pk", flat=True)[:5])
    second.slots.filter(pk__in=without).update(score=None)
    answer(lifecycle.open_stage(second), seed=2)
    lifecycle.close_stage(second)
    report = study_estimates.estimate(study)
    assert report.parts[1].predictions == (
        "same_task, trained on earlier answers; 5 of 42 answers have none, and nothing is taken off these"
    )
    assert report.assisted is not None
    assisted = report.assisted.stages[1]
    assert assisted.coefficient is not None or assisted.reason.startswith("not assisted: ")
    assert assisted.estimate is not None and assisted.estimate.n == 42
    second.slots.update(score=None)
    report = study_estimates.estimate(study)
    assert report.assisted is not None
    assert report.assisted.stages[1].reason == "not assisted: none of these answers has a prediction"
