"""The second interval, for questions like the bank's: in every place that shows figures, and against plain rows."""

import csv
import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.test import Client
from rest_framework.test import APIClient

import bandit
from survey.contracts import instruments
from survey.figures import Figure
from survey.models import Assignment, Item, Study
from survey.services.results.estimates import stored_estimates, study_estimates
from survey.services.results.estimates.stage_rows import read_stage
from tests import cast
from tests.survey.filled import NO_ROLES, run_study

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


@pytest.fixture
def answered() -> Study:
    return run_study(
        stages=[{"sittings": 30}, {"sittings": 30, "design": {"kind": "epsilon_greedy", "epsilon": 0.25}}],
        predictor={"name": "same_task"},
        candidates={"size": 1500},
        lose=0,
        **NO_ROLES,
    )


@pytest.mark.thorough
def test_it_is_that_of_all_stages_answers_by_their_questions(answered: Study) -> None:
    report = study_estimates.estimate(answered)
    figure = report.figures[0]
    assert figure.combined is not None and figure.superpopulation is not None
    errors, shares, people, subjects = [], [], [], []
    for stage in figure.stages:
        answers = Assignment.objects.filter(
            slot__stage__study=answered, slot__stage__index=stage.stage, state="counted"
        )
        rows = list(answers.select_related("slot__stratum", "slot__item__pair", "sitting").order_by("slot__number"))
        counts: dict[int, int] = {}
        for row in rows:
            counts[row.slot.stratum_id] = counts.get(row.slot.stratum_id, 0) + 1
        beliefs = [{response.screen: response.belief.value for response in row.responses.all()} for row in rows]
        error, share = bandit.error_contributions(
            values=[float(belief["posterior"] != belief["prior"]) for belief in beliefs],
            weight=[row.slot.stratum.size / counts[row.slot.stratum_id] for row in rows],
        )
        errors.append(stage.weight * error)
        shares.append(stage.weight * share)
        people += [row.sitting.respondent_id for row in rows]
        subjects += [(row.slot.item.pair.target_id, row.slot.item.pair.evidence_id) for row in rows]
    expected = bandit.superpopulation_estimate(
        figure.combined,
        contributions=np.concatenate(errors),
        shares=np.concatenate(shares),
        cluster=people,
        subjects=subjects,
    )
    assert figure.superpopulation.interval == pytest.approx(expected.interval)
    assert figure.superpopulation.degrees_of_freedom == pytest.approx(expected.degrees_of_freedom)
    low, high = figure.combined.interval
    assert figure.superpopulation.interval[0] <= low < high <= figure.superpopulation.interval[1]


@pytest.mark.thorough
def test_every_part_of_a_division_has_its_own(answered: Study) -> None:
    (division,) = study_estimates.estimate(answered, by=["target_task"]).divisions
    assert len(division.labels) > 1
    for figures in division.figures:
        assert figures[0].superpopulation is not None and figures[0].combined is not None
        assert figures[0].superpopulation.standard_error >= figures[0].combined.standard_error


@pytest.mark.thorough
def test_items_about_no_question_have_none(answered: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = type(instruments.of_study(answered))
    monkeypatch.setattr(kind, "rows", replace(kind.rows, questions=()))
    figure = study_estimates.estimate(answered).figures[0]
    assert figure.superpopulation is None and figure.combined is not None


@pytest.mark.parametrize("name", ["belief_update", "own_answers"])
def test_an_instrument_names_the_questions_that_items_are_about(name: str) -> None:
    study = cast.small_study(instrument={"kind": name}, stages=[{"sittings": 3}], **NO_ROLES)
    stage = cast.open_first_stage(study)
    instrument = instruments.of_study(study)
    read_stage(stage, instrument, {})
    items = list(Item.objects.filter(slots__stage=stage).distinct().order_by("pk"))
    expected = [tuple(question.pk for question in own) for own in instrument.rows.questions_of(items)]
    assert instrument.rows.question_keys_of(items) == expected and all(expected)


@pytest.mark.thorough
def test_command_files_page_and_api_show_it(answered: Study, tmp_path: Path) -> None:
    out = io.StringIO()
    call_command("estimate", "small", "--out", str(tmp_path), stdout=out)
    figure = study_estimates.estimate(answered).figures[0]
    assert figure.superpopulation is not None
    words = str(Figure.of(figure.superpopulation, figure.unit))
    assert "such questions" in out.getvalue() and words in out.getvalue()
    with (tmp_path / "estimates.csv").open(newline="") as file:
        (row,) = (
            line for line in csv.DictReader(file) if (line["figure"], line["kind"]) == (figure.name, "such questions")
        )
    assert (float(row["low"]), float(row["high"])) == figure.superpopulation.interval
    assert stored_estimates.shown_estimates(answered).report.figures[0] == figure
    user = get_user_model().objects.create_superuser("root", password="-")
    page, api = Client(), APIClient()
    page.force_login(user)
    api.force_authenticate(user)
    assert words in page.get(f"/admin/survey/study/{answered.pk}/estimates/").content.decode()
    body = api.get("/api/v1/studies/small/estimates/").json()
    assert body["figures"][0]["superpopulation"]["interval"] == [*figure.superpopulation.interval]
