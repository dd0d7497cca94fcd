"""The report `estimates`: all figures in every export, on a page and in the API, as the command writes them."""

import csv
import io
from pathlib import Path

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from survey.exceptions import HunchError
from survey.figures import plain_columns, rendering
from survey.models import StoredEstimate, Study
from survey.services.results import reports
from survey.services.results.estimates import estimate_tables, stored_estimates, study_estimates
from survey.services.results.export import codebook
from tests import cast
from tests.survey.filled import NO_ROLES, run_study

pytestmark = [pytest.mark.django_db, pytest.mark.any_database, pytest.mark.slow]

FILES = ("estimates.csv", "slots.csv", "leaving.csv", "noise.csv")


@pytest.fixture
def study() -> Study:
    return run_study(
        stages=[{"sittings": 20}, {"sittings": 20, "design": {"kind": "epsilon_greedy", "epsilon": 0.25}}],
        predictor={"name": "same_task"},
        candidates={"size": 500},
        lose=6,
        **NO_ROLES,
    )


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_an_export_has_the_figures_that_the_command_writes(study: Study, tmp_path: Path) -> None:
    out = io.StringIO()
    call_command("estimate", "small", "--out", str(tmp_path / "estimate"), stdout=out)
    call_command("export", "small", "--out", str(tmp_path / "export"), stdout=out)
    for name in FILES:
        assert rows_of(tmp_path / "export" / name) == rows_of(tmp_path / "estimate" / name), name
    kinds = {row["kind"] for row in rows_of(tmp_path / "export/estimates.csv")}
    assert {"combined", "combined, one stage", "naive", "such questions", "at any time"} <= kinds
    assisted = [row for row in rows_of(tmp_path / "export/estimates.csv") if row["kind"] == "assisted, one stage"]
    assert {row["stage"] for row in assisted} == {"1", "2"}
    assert all(bool(row["coefficient"]) != row["notes"].startswith("not assisted: ") for row in assisted)
    assert "With the help of predictions" in out.getvalue() and "Stage 2: same_task, trained on" in out.getvalue()
    meaning = next(
        plain_column.description
        for plain_column in plain_columns(estimate_tables.ESTIMATES)
        if plain_column.name == "kind"
    )
    plain = {kind.removesuffix(", one stage") for kind in kinds}
    assert all(kind in meaning for kind in plain), "the codebook says what every kind of row is"
    described = {(file, column.name) for file, column in codebook.codebook(study)}
    written = {(row["file"], row["column"]) for row in rows_of(tmp_path / "estimate/codebook.csv") if row["meaning"]}
    for name in FILES:
        with (tmp_path / "export" / name).open(newline="") as file:
            columns = {(name, column) for column in next(csv.reader(file))}
        assert columns <= described and columns <= written


@pytest.mark.thorough
def test_bounds_have_their_ends_beside_the_interval(study: Study) -> None:
    rows = estimate_tables.tables_of(study_estimates.estimate(study))[0].records()
    for row in rows:
        assert (row["lowest"] is None) == (row["kind"] not in ("bounds", "worst case"))
        if row["lowest"] is not None:
            assert row["low"] <= row["lowest"] <= row["highest"] <= row["high"]


def test_it_shows_stages_and_parts_and_the_page_of_estimates_leads_to_it(study: Study, admin_client: Client) -> None:
    estimates = admin_client.get(reverse("admin:survey_study_estimates", args=[study.pk]), {"by": "outcome"})
    address = reverse("admin:survey_study_report", args=[study.pk, "estimates"])
    assert f'href="{address}?by=outcome"' in estimates.content.decode()
    findings = reports.make(study, "estimates", {"by": ["outcome"]})
    titles = {sheet.title for table in findings.tables for sheet in rendering.sheets_of(table)}
    assert {"Each stage by itself", "By outcome"} <= titles
    assert [table.name for table in findings.tables] == ["estimates", "leaving", "noise", "slots"]
    assert findings.data["figures"][0]["name"] == "changed_over_0"


@pytest.mark.thorough
def test_stored_figures_are_taken_while_they_are_current(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    first = stored_estimates.shown_estimates(study).report
    monkeypatch.setattr(study_estimates, "estimate", lambda *_args, **_options: pytest.fail("computed anew"))
    assert stored_estimates.current_estimates(study, by=(), condition=()) == first
    monkeypatch.undo()
    StoredEstimate.objects.update(basis_sha256="0" * 64)
    assert stored_estimates.current_estimates(study, by=(), condition=()) == first


def test_groups_of_people_are_refused_and_a_study_without_answers_has_empty_files(tmp_path: Path) -> None:
    study = cast.small_study()
    with pytest.raises(HunchError, match="by: age is not one of outcome"):
        reports.make(study, "estimates", {"by": ["age"]})
    call_command("export", "small", "--out", str(tmp_path), stdout=io.StringIO())
    assert [rows_of(tmp_path / name) for name in FILES] == [[], [], [], []]
