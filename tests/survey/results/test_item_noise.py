"""Items that are asked of another person: how they are planned, and the upper limit of the AUC that they give."""

import csv
import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.test import Client
from rest_framework.test import APIClient

import bandit
from bandit import Retest, false_change_rate
from survey.models import Assignment, Slot, Study
from survey.services.results.estimates import sensitivity, stored_estimates, study_estimates
from survey.services.results.estimates.estimate_tables import noise_rows
from survey.services.results.estimates.study_estimates import Noise
from survey.services.stages.verifying import verify_stage
from tests import cast
from tests.survey.filled import run_study

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

ROLES = {"holdout": 0.2, "controls": 0.25, "control_kinds": ["another_person", "unrelated_evidence"]}


@pytest.fixture
def asked_twice() -> Study:
    return run_study(stages=[{"sittings": 40}], sitting={"items": 6}, candidates={"size": 1500}, roles=ROLES, lose=0)


def test_each_is_an_item_of_the_same_part_in_another_booklet(asked_twice: Study) -> None:
    again = list(Slot.objects.filter(control_kind="another_person").select_related("booklet"))
    assert len(again) > 20
    assert len({slot.item_id for slot in again}) == len(again)
    for slot in again:
        (asked,) = Slot.objects.filter(item=slot.item, role__in=["sampled", "holdout"])
        assert asked.booklet_id != slot.booklet_id and slot.inclusion_probability is None
        here, there = (set(own_slot.booklet.slots.values_list("role", flat=True)) for own_slot in (slot, asked))
        assert ("holdout" in here) == ("holdout" in there)


def test_the_plan_can_be_drawn_again(asked_twice: Study) -> None:
    assert not verify_stage(cast.stage_of(asked_twice)).differences


@pytest.mark.thorough
def test_the_limit_is_that_of_two_peoples_answers(asked_twice: Study) -> None:
    report = study_estimates.estimate(asked_twice)
    figure = report.figures[0]
    assert figure.combined is not None
    by_part = []
    for role in ("sampled", "holdout"):
        rows = []
        slots = Slot.objects.filter(role=role).values_list("item", "stratum__size")
        sizes = dict(slots)
        answers = Assignment.objects.filter(state="counted", slot__item__in=[*sizes]).exclude(slot__role="repeat")
        for answer in answers.select_related("slot", "sitting"):
            values = {response.screen: response.belief.value for response in answer.responses.all()}
            rows.append((values["prior"] != values["posterior"], answer.slot.item_id, answer.sitting.respondent_id))
        value, item, person = zip(*rows, strict=True)
        by_part.append(
            bandit.item_variance(
                values=value,
                item=item,
                cluster=person,
                stratum=[0] * len(rows),
                sizes=[next(iter(sizes.values()))],
                mean=figure.combined.value,
            )
        )
    between = bandit.combine_stages(estimates=by_part, plan_weights=[part.weight for part in report.parts]).estimate
    limit = report.noise.auc_limit
    assert limit is not None and report.noise.no_limit == ""
    assert limit.limit == pytest.approx(bandit.auc_limit(between_items=between, base_rate=figure.combined).limit)
    assert limit.items == Slot.objects.filter(control_kind="another_person").count()
    assert set(report.noise.false_changes) == {"unrelated_evidence"}  # Their changes are not false.


def test_several_people_an_item_give_it_too() -> None:
    study = run_study(
        stages=[{"sittings": 30, "responses_per_item": 3}],
        candidates={"size": 1500},
        roles={"holdout": 0.0, "controls": 0.0},
        lose=0,
    )
    limit = study_estimates.estimate(study).noise.auc_limit
    assert limit is not None and limit.items == Slot.objects.values("item").distinct().count()


def test_command_files_page_and_api_show_it(asked_twice: Study, tmp_path: Path) -> None:
    out = io.StringIO()
    call_command("estimate", "small", "--out", str(tmp_path), stdout=out)
    noise = study_estimates.estimate(asked_twice).noise
    assert noise.auc_limit is not None
    (sentence,) = sensitivity.auc_sentences(noise)
    assert sentence in out.getvalue() and "no predictor can" not in out.getvalue().lower()
    with (tmp_path / "noise.csv").open(newline="") as file:
        rows = {row["kind"]: row for row in csv.DictReader(file)}
    assert float(rows["auc_limit"]["value"]) == noise.auc_limit.limit
    assert float(rows["item_variance"]["highest"]) == noise.auc_limit.highest_variance
    with (tmp_path / "codebook.csv").open(newline="") as file:
        assert {row["column"] for row in csv.DictReader(file) if row["file"] == "noise.csv"} == {*rows["auc_limit"]}
    stored = json.loads((tmp_path / "estimates.json").read_text())
    assert stored["noise"]["auc_limit"]["limit"] == noise.auc_limit.limit
    assert stored_estimates.shown_estimates(asked_twice).report.noise == noise
    user = get_user_model().objects.create_superuser("root", password="-")
    page, api = Client(), APIClient()
    page.force_login(user)
    api.force_authenticate(user)
    assert sentence in page.get(f"/admin/survey/study/{asked_twice.pk}/estimates/").content.decode()
    assert np.isclose(
        api.get("/api/v1/studies/small/estimates/").json()["noise"]["auc_limit"]["limit"], noise.auc_limit.limit
    )


def test_each_figure_of_noise_has_its_answers_and_people_in_their_columns() -> None:
    rate = false_change_rate(changed=[0, 1, 0, 0, 0, 0], cluster=list("aabbcc"))
    retest = Retest(n=7, n_clusters=4, correlation=0.5, interval=(0.25, 0.75), same=0.125)
    between: Any = SimpleNamespace(value=0.04, interval=(0.01, 0.09), n_clusters=5)
    limit: Any = SimpleNamespace(limit=0.875, items=9, between_items=between, highest_variance=0.0625)
    rows = [*noise_rows(Noise({"mock": rate}, {"belief": retest}, limit), {"belief": "mean belief"})]
    assert [row[2:4] for row in rows] == [
        ["false change", "mock"],
        *[["retest", "mean belief"], ["same again", "mean belief"]],
        *[["upper limit of the AUC", ""], ["variance between items of their chances", ""]],
    ]
    assert [(row[0], row[1], row[4].value, *row[5:]) for row in rows] == [
        ("false change", "mock", pytest.approx(1 / 6), None, 6, 3, rate.too_few),
        ("retest", "belief", 0.5, None, 7, 4, ""),
        ("same again", "belief", 0.125, None, 7, 4, ""),
        ("auc_limit", "", 0.875, None, 9, 5, ""),
        ("item_variance", "", 0.04, 0.0625, 9, 5, ""),
    ]
    assert (rows[1][4].low, rows[1][4].high, rows[4][4].low, rows[4][4].high) == (0.25, 0.75, 0.01, 0.09)
    (nothing,) = noise_rows(Noise({}, {}, None, "too few items"))
    assert nothing[0] == "auc_limit" and nothing[4].value is None and nothing[-1] == "too few items"
