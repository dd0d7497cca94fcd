"""The page of estimates: what the service says, also before there are answers, and only to those who may see it."""

from functools import partial

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.urls import reverse

from survey.models import Study
from survey.services.results.estimates import stored_estimates, study_estimates
from tests.admin.conftest import client_of
from tests.cast import begin, open_study, walk
from tests.statements import QueryCounts
from tests.survey.answers.test_majorities import frozen_test_stage
from tests.survey.results.test_interim import look_often, running

pytestmark = [pytest.mark.django_db, pytest.mark.any_database, pytest.mark.slow]


def page_of(study: Study, query: str = "") -> str:
    return reverse("admin:survey_study_estimates", args=[study.pk]) + query


@pytest.mark.thorough
def test_the_page_shows_the_estimates_and_what_is_wrong_with_them(as_superuser: Client, study: Study) -> None:
    report = study_estimates.estimate(study)
    page = as_superuser.get(page_of(study, "?by=outcome&by=framing")).content.decode()
    first = report.figures[0]
    assert first.combined is not None
    assert f"{100 * first.combined.value:.1f} %" in page and first.title in page
    assert f"{report.answers} answers of {report.respondents} respondents" in page
    assert "Provisional" in page and "too few" in page
    assert "<h3>By outcome</h3>" in page and "<h3>By framing</h3>" in page
    assert page.count("<section") == page.count("</section")


def test_the_study_page_leads_to_it(as_superuser: Client, study: Study) -> None:
    assert page_of(study) in as_superuser.get(reverse("admin:survey_study_change", args=[study.pk])).content.decode()


def test_a_study_without_answers_says_so(as_superuser: Client) -> None:
    page = as_superuser.get(page_of(open_study(slug="empty"))).content.decode()
    assert "no answer counts yet" in page and "Read each estimate with its 95 % interval in brackets" in page
    assert page.count("<section") == page.count("</section")


def test_a_division_that_does_not_exist_is_no_error_page(as_superuser: Client, study: Study) -> None:
    assert "weather is not one of outcome" in as_superuser.get(page_of(study, "?by=weather")).content.decode()


@pytest.mark.thorough
def test_answers_under_a_level_are_a_link_away(as_superuser: Client) -> None:
    study = open_study(slug="levels", conditions=[{"factor": "mode", "levels": ["field", "choice"]}])
    for _person in range(4):
        walk(begin(study))
    address = f"/admin/survey/study/{study.pk}/estimates/"
    assert '<a href="?condition=mode%3Dfield">mode=field</a>' in as_superuser.get(address).content.decode()
    body = as_superuser.get(address, {"condition": "mode=field"}).content.decode()
    assert "6 answers of 2 respondents" in body and "Only answers under mode=field." in body
    assert "there are: mode=field, mode=choice" in as_superuser.get(address, {"condition": "odd"}).content.decode()


def test_only_who_may_see_the_study_sees_them(study: Study) -> None:
    staff = get_user_model().objects.create_user("staff", is_staff=True)
    assert client_of(staff).get(page_of(study)).status_code == 404


def test_the_page_reads_the_answers_again_only_once_they_changed(
    as_superuser: Client, study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    estimate = study_estimates.estimate
    monkeypatch.setattr(study_estimates, "estimate", lambda *a, **k: calls.append("read") or estimate(*a, **k))
    for _ in range(2):
        as_superuser.get(page_of(study))
    assert calls == ["read"]
    study.stages.filter(index=2).update(state="paused")
    as_superuser.get(page_of(study))
    assert calls == ["read", "read"]


@pytest.mark.query_counts("estimates page")
def test_the_stored_page_takes_few_statements(as_superuser: Client, study: Study, query_counts: QueryCounts) -> None:
    as_superuser.get(page_of(study))
    query_counts.count("GET estimates", partial(as_superuser.get, page_of(study)))


def test_figures_that_are_out_of_date_are_marked_and_those_that_are_missing_announced(
    as_superuser: Client, study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_estimates, "MAX_ANSWERS_IN_REQUEST", -1)
    assert "being computed" in as_superuser.get(page_of(study)).content.decode()
    for row in stored_estimates.due_estimates():
        stored_estimates.compute(row.pk)
    page = as_superuser.get(page_of(study)).content.decode()
    report = study_estimates.estimate(study)
    assert f"from {report.answers} answers" in page and "Computed at" in page and "Out of date" not in page
    study.stages.filter(index=2).update(state="paused")
    assert "Out of date" in as_superuser.get(page_of(study)).content.decode()


def test_the_pages_show_the_majorities_of_a_test_stage(as_superuser: Client) -> None:
    study = frozen_test_stage(ties="left_out").study
    page = as_superuser.get(page_of(study)).content.decode()
    assert "<h3>Majority labels of the test stage</h3>" in page
    assert "50.0 % [" in page and "2 items with a tie are left out" in page
    assert page.count("<section") == page.count("</section")
    leaderboard = as_superuser.get(reverse("admin:survey_study_leaderboard", args=[study.pk])).content.decode()
    assert "majorities of the test stage" in leaderboard and "none of all items" in leaderboard
    of_study = as_superuser.get(reverse("admin:survey_study_change", args=[study.pk])).content.decode()
    assert "each once, by the label of most of its answers" in of_study


@pytest.mark.thorough
def test_a_study_without_a_test_stage_has_no_table_of_majorities(as_superuser: Client, study: Study) -> None:
    assert "Majority labels" not in as_superuser.get(page_of(study)).content.decode()


def test_the_page_shows_intervals_that_hold_at_any_time_and_the_rule_that_ended_a_stage(as_superuser: Client) -> None:
    stage = running(0.34)
    page = as_superuser.get(page_of(stage.study)).content.decode()
    assert "<h3>While a stage runs: intervals that hold at any time, however often one looks</h3>" in page
    assert "until narrower than 34 points: not reached, 0 looks" in page
    of_study = as_superuser.get(reverse("admin:survey_study_change", args=[stage.study_id])).content.decode()
    assert "ends once its interval is narrower than 0.34, with 30 to 80 people" in of_study
    looks = look_often(stage)
    page = as_superuser.get(page_of(stage.study)).content.decode()
    assert f"until narrower than 34 points: ended the stage, {len(looks)} looks" in page
    assert "Stage 1 was ended by its stopping rule" in page
    assert page.count("<section") == page.count("</section")
