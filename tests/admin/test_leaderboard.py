"""The leaderboard's page: who sees it, what it shows, and that it sorts by its addresses."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from survey.admin.leaderboard import context
from survey.models import Evaluation, PredictorRun, Study
from survey.services.stages.leaderboard import learning_of, sorts_of
from tests import cast

from .conftest import client_of

pytestmark = pytest.mark.slow


@pytest.fixture
def judged(db: None) -> Study:
    """Two predictors on a stage's answers."""
    study = cast.study(slug="judged")
    first, second = study.stages.order_by("index")
    for name, role, auc in (("bert", "main", 0.7), ("same_task", "baseline", 0.9)):
        run = PredictorRun.objects.create(
            stage=first, name=name, role=role, seed=1, input_sha256=name, example_count=12
        )
        figures = {"n": 6, "auc": {"overall": auc}, "nll": {"overall": 1 - auc}}
        figures["intervals"] = {"auc": {"overall": [auc - 0.1, auc + 0.1]}}
        Evaluation.objects.create(predictor_run=run, stage=second, metrics={"weighted": figures})
    return study


def address(study: Study, query: str = "") -> str:
    return f"/admin/survey/study/{study.pk}/leaderboard/{query}"


def rows(client: Client, study: Study, query: str = "") -> list[str]:
    body = client.get(address(study, query)).content.decode()
    return re.findall(r'<th scope="row"><a [^>]*>([^<]+)</a>', body)


def test_it_shows_each_predictor_with_its_figures_and_intervals(judged: Study, as_researcher: Client) -> None:
    body = as_researcher.get(address(judged)).content.decode()
    assert rows(as_researcher, judged) == ["bert", "same_task"]
    # The log score stands in bits beside: 1 - 0.7 nats.
    assert "0.433 bits" in body and body.count("bits</small>") == 2
    assert "0.900" in body and "0.800 to 1.000" in body and "sampled, weighted" in body and "(baseline)" in body


def test_it_sorts_by_the_links_in_its_head(judged: Study, as_researcher: Client) -> None:
    assert rows(as_researcher, judged, "?sort=auc") == ["same_task", "bert"]
    assert rows(as_researcher, judged, "?sort=auc&reverse=1") == ["bert", "same_task"]
    body = as_researcher.get(address(judged, "?sort=auc")).content.decode()
    assert body.count("aria-sort=") == 1 and 'aria-sort="descending"><a href="?sort=auc&amp;reverse=1">AUC' in body
    page: Any = context(judged, {})
    sortable = [*page["heads"], *(metric.head.title.lower() for metric in page["metrics"])]
    assert sorted(sortable) == sorted(sorts_of(learning_of(judged)))
    assert [re.sub(r"<[^>]+>", "", head) for head in re.findall(r'<th scope="col".*?</th>', body)] == [
        *("Predictor", "Trained after", "Judged by", "Counted", "Answers"),
        *("AUC", "AUC after correct", "AUC after incorrect", "AUC less the main one's"),
        *("NLL", "NLL after correct", "NLL after incorrect", "NLL less the main one's"),
    ]
    assert "AUC: higher is better, a coin toss has 0.5. NLL: lower is better, a coin toss has 0.693. The" in body


@pytest.mark.parametrize("query", [{"sort": "secrets"}, {"sort": ""}, {"reverse": "x"}])
def test_an_address_that_means_nothing_sorts_by_stage(judged: Study, query: dict[str, str]) -> None:
    heads: Any = context(judged, query)["heads"]
    assert {name: head.order for name, head in heads.items() if head.order} == {"evaluated": "ascending"}


def test_it_judges_by_the_answers_under_a_level_and_keeps_it_when_sorting(as_researcher: Client) -> None:
    study = cast.study(slug="levels", conditions=[{"factor": "mode", "levels": ["field", "choice"]}])
    first, second = study.stages.order_by("index")
    run = PredictorRun.objects.create(stage=first, name="bert", role="main", seed=1, input_sha256="x", example_count=12)
    figures: dict[str, Any] = {"n": 6, "auc": {"overall": 0.71}, "nll": {"overall": 0.5}}
    under = {"mode=field": {"weighted": {**figures, "n": 3, "auc": {"overall": 0.83}}}}
    Evaluation.objects.create(predictor_run=run, stage=second, metrics={"weighted": figures, "levels": under})
    body = as_researcher.get(address(study, "?condition=mode%3Dfield")).content.decode()
    assert "0.830" in body and "0.710" not in body and 'href="?sort=auc&amp;condition=mode%3Dfield"' in body
    assert '<a href="?condition=mode%3Dfield" aria-current="true">mode=field</a>' in body
    body = as_researcher.get(address(study, "?condition=mode%3Dodd")).content.decode()
    assert "0.710" in body and "0.830" not in body


def test_it_needs_the_permission_to_look_at_studies(judged: Study, onlooker: User) -> None:
    assert client_of(onlooker).get(address(judged)).status_code == 404
    assert Client().get(address(judged)).status_code == 302


def test_a_study_that_has_trained_nothing_or_does_not_exist_is_said_plainly(
    judged: Study, as_researcher: Client
) -> None:
    fresh = cast.study(slug="fresh")
    assert "No predictor has been trained yet" in as_researcher.get(address(fresh)).content.decode()
    assert as_researcher.get("/admin/survey/study/999/leaderboard/").status_code == 404


def test_it_has_one_main_heading_named_regions_and_no_inline_style(judged: Study, as_researcher: Client) -> None:
    body = as_researcher.get(address(judged)).content.decode()
    assert body.count("<h1") == 1 and 'role="group" aria-labelledby="leaderboard" tabindex="0"' in body
    assert " style=" not in body and "<style" not in body
