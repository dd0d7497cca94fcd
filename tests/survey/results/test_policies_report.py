"""The report `policies`: what the command compares, on the page and in the API too, and what it refuses."""

import csv
import io
from pathlib import Path

import pytest
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from rest_framework.test import APIClient

from survey.exceptions import HunchError, StateRefused
from survey.figures import Figure
from survey.models import Study
from survey.services.results import comparing, reports
from tests import cast
from tests.survey.filled import NO_ROLES, run_study

pytestmark = [pytest.mark.django_db, pytest.mark.any_database, pytest.mark.slow]


@pytest.fixture
def study() -> Study:
    return run_study(
        stages=[{"sittings": 60}, {"sittings": 60, "design": {"kind": "epsilon_greedy", "epsilon": 0.25}}],
        predictor={"name": "same_task"},
        candidates={"size": 2000},
        **NO_ROLES,
    )


@pytest.mark.thorough
def test_page_api_and_files_say_what_the_command_says(study: Study, tmp_path: Path) -> None:
    asked = {"epsilon": ["0.5"], "design": ["uniform"], "predictor": ["previous_correct"]}
    out = io.StringIO()
    arguments = ["--epsilon", "0.5", "--design", asked["design"][0], "--predictor", "previous_correct"]
    call_command("compare_policies", "small", *arguments, "--out", str(tmp_path / "one"), stdout=out, stderr=out)
    call_command(
        "report", "small", "policies", *(f"{name}={text}" for name, (text,) in asked.items()),
        "--out", str(tmp_path / "other"), stdout=out, stderr=out,
    )  # fmt: skip
    files = [(tmp_path / folder / "policies.csv").read_text().splitlines() for folder in ("one", "other")]
    assert files[0] == files[1]
    rows = list(csv.DictReader(files[0]))
    assert {row["stage"] for row in rows} == {"1", "2"}
    thin = [row for row in rows if row["reason"].startswith("not enough support")]
    assert thin and all(row["difference"] == row["plain"] == "" and row["effective_sample_size"] for row in thin)
    known = next(row for row in rows if row["stage"] == "2" and row["difference"])
    compared = next(
        line
        for line in comparing.compare(study, epsilons=[0.5], predictors=["previous_correct"])[1].policies
        if (line.policy, line.predictor) == (known["policy"], known["predictor"])
    )
    assert compared.difference is not None and float(known["difference"]) == compared.difference.value
    assert (float(known["difference_low"]), float(known["difference_high"])) == compared.difference.interval

    user = get_user_model().objects.create_superuser("root", password="-")
    page, api = Client(), APIClient()
    page.force_login(user)
    api.force_authenticate(user)
    text = page.get(reverse("admin:survey_study_report", args=[study.pk, "policies"]), asked).content.decode()
    assert "more than planned" in text.lower()
    assert str(Figure.of(compared.difference, "share")) in text
    body = api.get("/api/v1/studies/small/reports/policies/", asked).json()
    assert [row["difference"] for row in body["data"]["policies"]] == [
        float(row["difference"]) if row["difference"] else None for row in rows
    ]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"epsilon": ["1"]}, "strictly between 0 and 1"),
        ({"top_fraction": ["no"]}, "is not a number"),
        ({"design": ["nothing"]}, "design: 'nothing' is not one of"),
        ({"predictor": ["bert"]}, "--predictor bert"),
        ({"epsilon": ["0.1"] * 13}, "at most 12"),
    ],
)
def test_what_cannot_be_compared_is_refused(study: Study, asked: dict[str, list[str]], message: str) -> None:
    with pytest.raises(HunchError, match=message):
        reports.make(study, "policies", asked)


def test_without_a_frozen_stage_there_is_none() -> None:
    with pytest.raises(StateRefused, match="no stage is frozen"):
        reports.make(cast.small_study(), "policies")
