"""The page of language models on trial, and the same by REST."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from survey.models import ApiToken, LanguageModel, ModelAnswer, Study
from survey.services.banks.eligibility import eligible_questions
from tests.admin.conftest import client_of
from tests.cast import open_study
from tests.survey.filled import NO_ROLES, run_study

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


def page_of(study: Study) -> str:
    return reverse("admin:survey_study_report", args=[study.pk, "alignment"])


@pytest.fixture
def tried() -> Study:
    """A study with a scored stage, and a model that is right on two questions of three."""
    settings: dict[str, Any] = {
        "stages": [{"sittings": 12}, {"sittings": 12, "design": {"kind": "epsilon_greedy", "epsilon": 0.25}}],
        "predictor": {"name": "same_task"},
        "candidates": {"size": 600},
        **NO_ROLES,
    }
    study = run_study(**settings)
    model = LanguageModel.objects.create(name="<b>one</b>")
    ModelAnswer.objects.bulk_create(
        ModelAnswer(language_model=model, question=question, correct=place % 3 > 0)
        for place, question in enumerate(eligible_questions(study))
    )
    return study


def test_page_and_api_show_the_models_scores(tried: Study, as_superuser: Client, superuser: Any) -> None:
    page = as_superuser.get(page_of(tried)).content.decode()
    assert "Weighted generalized accuracy" in page and "&lt;b&gt;one&lt;/b&gt;" in page and "<b>one</b>" not in page
    assert "Human-deployed performance" in page and "Pairs that led people astray" in page
    assert page.count("<section") == page.count("</section")
    assert page.count('<div class="hunch-figure">') == 1 and "Alignment with what people expect" in page
    _token, secret = ApiToken.issue(user=superuser)
    address = f"/api/v1/studies/{tried.slug}/reports/alignment/"
    row = Client().get(address, headers={"Authorization": f"Token {secret}"}).json()["data"]
    assert row["scores"][0]["name"] == "<b>one</b>"
    assert len(row["scores"][0]["accuracy"]) == 4
    assert f"{row['scores'][0]['accuracy'][0]:.3f}" in page
    for asked, what in (("condition=mode=odd", "has no"), ("alpha=-1", "alpha: "), ("failures=many", "failures: ")):
        refused = Client().get(f"{address}?{asked}", headers={"Authorization": f"Token {secret}"})
        assert refused.status_code == 400 and what in refused.json()["error"]["message"]


def test_the_command_takes_weights_as_they_are_and_no_seed_for_a_study(tried: Study, tmp_path: Path) -> None:
    arguments = [f"--study={tried.slug}", "--alpha=1234567", "--samples=100", f"--out={tmp_path}"]
    call_command("alignment", *arguments, stdout=io.StringIO())
    with (tmp_path / "alignment.csv").open(newline="") as file:
        assert {float(row["alpha"]) for row in csv.DictReader(file)} == {1234567.0}
    err = io.StringIO()
    with pytest.raises(SystemExit):
        call_command("alignment", *arguments, "--seed=3", stdout=io.StringIO(), stderr=err)
    assert "--seed: is for files: a study's resamples follow from its own seed" in err.getvalue()


def test_the_command_of_a_study_prints_the_same_and_writes_every_table(tried: Study, tmp_path: Path) -> None:
    out = io.StringIO()
    call_command("alignment", f"--study={tried.slug}", "--alpha=1,19", "--samples=100", f"--out={tmp_path}", stdout=out)
    text = out.getvalue()
    assert "Weighted binary cross-entropy (lower is better), by alpha" in text and "19 (95.0 %)" in text
    assert "deployed as often as believed" in text and "Pairs that led people astray" in text
    assert {path.name for path in tmp_path.iterdir()} == {
        *("alignment.csv", "differences.csv", "deployment.csv", "failures.csv", "fragility.csv"),
        *("alignment.svg", "alignment.json"),
    }
    with (tmp_path / "alignment.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["llm"], row["alpha"], row["threshold"]) for row in rows] == [
        ("<b>one</b>", "1", "0.5"),
        ("<b>one</b>", "19", "0.95"),
    ]
    scores = json.loads((tmp_path / "alignment.json").read_text())["data"]["scores"]
    assert [float(row["accuracy"]) for row in rows] == scores[0]["accuracy"]


@pytest.mark.thorough
def test_a_task_that_does_not_exist_leaves_no_failures(tried: Study, as_superuser: Client) -> None:
    failures = as_superuser.get(page_of(tried)).content.decode()
    assert "None." not in failures and "/admin/survey/question/" in failures
    assert "None." in as_superuser.get(f"{page_of(tried)}?task=weather").content.decode()


def test_without_models_it_says_what_to_do_and_the_api_too(as_superuser: Client, superuser: Any) -> None:
    study = open_study(slug="empty")
    assert "uniform pool" in as_superuser.get(page_of(study)).content.decode()
    _token, secret = ApiToken.issue(user=superuser)
    refused = Client().get("/api/v1/studies/empty/reports/alignment/", headers={"Authorization": f"Token {secret}"})
    assert refused.status_code == 409
    assert "uniform pool" in refused.json()["error"]["message"]


def test_only_who_may_see_the_study_sees_it(django_user_model: Any) -> None:
    study = open_study(slug="empty")
    staff = django_user_model.objects.create_user("staff", is_staff=True)
    assert client_of(staff).get(page_of(study)).status_code == 404
