"""Estimates by API: the same report as the command's, for people who may export."""

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from survey.models import ApiToken, Study
from survey.services.results.estimates import stored_estimates, study_estimates
from tests import cast
from tests.survey.answers.test_majorities import frozen_test_stage
from tests.survey.results.test_interim import look_often, running

pytestmark = [pytest.mark.django_db, pytest.mark.any_database, pytest.mark.slow]
PATH = "/api/v1/studies/cast/estimates/"


@pytest.fixture
def study() -> Study:
    study = cast.open_study()
    for _person in range(2):
        cast.walk(cast.begin(study))
    return study


def client_of(name: str, *, may_export: bool) -> Client:
    user = User.objects.create_user(name)
    if may_export:
        user.user_permissions.add(Permission.objects.get(codename="export_study"))
    cast.join_all(user)
    return Client(headers={"Authorization": f"Token {ApiToken.issue(user=user)[1]}"})


def test_only_who_may_export_reads_them(client: Client, study: Study) -> None:
    assert client.get(PATH).status_code == 401
    assert client_of("other", may_export=False).get(PATH).status_code == 403


@pytest.mark.thorough
def test_they_are_the_reports(study: Study) -> None:
    actual = client_of("reader", may_export=True).get(PATH, {"by": ["outcome", "same_task"]}).json()
    report = study_estimates.estimate(study, by=["outcome", "same_task"]).as_json()
    assert actual.pop("is_current") is True and actual.pop("computed_at")
    assert actual == report
    assert actual["figures"][0]["combined"]["n"] == actual["answers"] > 0
    assert [division["name"] for division in actual["divisions"]] == ["outcome", "same_task"]


def test_a_study_without_answers_and_an_unknown_division_are_errors_in_words(study: Study) -> None:
    cast.open_study(slug="empty")
    reader = client_of("reader", may_export=True)
    refused = reader.get(PATH, {"by": "weather"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "invalid")
    empty = reader.get("/api/v1/studies/empty/estimates/")
    assert (empty.status_code, empty.json()["error"]["code"]) == (409, "state_refused")


@pytest.mark.thorough
def test_figures_that_a_worker_computes_are_announced(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_estimates, "MAX_ANSWERS_IN_REQUEST", -1)
    reader = client_of("reader", may_export=True)
    refused = reader.get(PATH)
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "being_computed")
    assert refused.headers["Retry-After"] == "30"
    for row in stored_estimates.due_estimates():
        stored_estimates.compute(row.pk)
    assert reader.get(PATH).json()["is_current"] is True
    cast.walk(cast.begin(study))
    assert reader.get(PATH).json()["is_current"] is False


@pytest.mark.thorough
def test_majorities_of_a_test_stage_are_in_estimates_and_leaderboard() -> None:
    stage = frozen_test_stage()
    reader = client_of("reader", may_export=True)
    majorities = reader.get("/api/v1/studies/small/estimates/").json()["majorities"]
    assert majorities == study_estimates.estimate(stage.study).as_json()["majorities"]
    assert (majorities[-1]["stratum"], majorities[-1]["items"]) == ("", 6)
    lines = reader.get("/api/v1/studies/small/leaderboard/").json()
    assert {line["n"] for line in lines if line["answers"] == "majorities"} == {6}


@pytest.mark.thorough
def test_intervals_that_hold_at_any_time_are_in_the_estimates() -> None:
    stage = running(0.34)
    last = look_often(stage)[-1]
    reader = client_of("reader", may_export=True)
    (interval,) = reader.get("/api/v1/studies/small/estimates/").json()["anytime"]
    assert interval == study_estimates.estimate(stage.study).as_json()["anytime"][0]
    assert (interval["stopped"], interval["looks"], interval["rule_width"]) == (True, last.number, 0.34)
    assert interval["low"] < interval["value"] < interval["high"]
