"""The report `policies`: what the command compares, on the page and in the API too, and what it refuses."""

import csv
import io
from pathlib import Path

import pytest
from django.core.management import call_command

from survey.exceptions import HunchError, StateRefused
from survey.figures import Figure, rendering
from survey.models import Study
from survey.services.results import reports
from survey.services.results.policies import comparing
from tests import cast
from tests.survey.filled import NO_ROLES, run_study
from tests.survey.instruments.test_aligning import ADAPTIVE

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
def test_the_report_says_what_the_command_says(study: Study, tmp_path: Path) -> None:
    asked = {"epsilon": ["0.5"], "design": ["uniform"], "predictor": ["previous_correct"]}
    out = io.StringIO()
    arguments = ["--epsilon", "0.5", "--design", asked["design"][0], "--predictor", "previous_correct"]
    call_command("compare_policies", "small", *arguments, "--out", str(tmp_path / "one"), stdout=out, stderr=out)
    findings = reports.make(study, "policies", asked)
    written = (tmp_path / "one" / "policies.csv").read_text()
    assert written == rendering.csv(findings.tables[0])
    rows = list(csv.DictReader(written.splitlines()))
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

    sheets = rendering.sheets_of(findings.tables[0])
    assert "more than planned" in {title.lower() for sheet in sheets for title in sheet.header}
    cells = {text for sheet in sheets for row in sheet.texts() for text in row}
    assert str(Figure.of(compared.difference, "share")) in cells
    assert [row["difference"] for row in findings.data["policies"]] == [
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
def test_what_cannot_be_compared_is_refused(asked: dict[str, list[str]], message: str) -> None:
    study = run_study(**ADAPTIVE)
    with pytest.raises(HunchError, match=message):
        reports.make(study, "policies", asked)


def test_without_a_frozen_stage_there_is_none() -> None:
    with pytest.raises(StateRefused, match="no stage is frozen"):
        reports.make(cast.small_study(), "policies")
