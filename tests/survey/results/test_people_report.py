"""The report `people`: shares of variance and people's effects, in all its places, with nobody's own value."""

import csv
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import bandit
from survey.exceptions import HunchError, StateRefused
from survey.models import Assignment, Study
from survey.services.base.seeds import generator
from survey.services.results import reports
from survey.services.results.estimates import study_estimates
from survey.services.results.estimates.weights import answer_weights
from survey.services.results.people_and_models.people_report import PERCENTILES
from tests import cast
from tests.survey.filled import NO_ROLES, run_study

pytestmark = [pytest.mark.django_db, pytest.mark.any_database, pytest.mark.slow]


@pytest.fixture
def study() -> Study:
    return run_study(
        stages=[{"sittings": 36}, {"sittings": 36, "design": {"kind": "epsilon_greedy", "epsilon": 0.25}}],
        predictor={"name": "same_task"},
        candidates={"size": 1500},
        **NO_ROLES,
    )


def test_it_is_the_closed_form_on_the_answers_that_count_with_their_weights(study: Study) -> None:
    findings = reports.make(study, "people", {"resamples": ["20"]})
    weights = answer_weights(study, {})
    values, person, item, weight, subjects = [], [], [], [], []
    for assignment in Assignment.objects.filter(slot__stage__study=study, state="counted").order_by(
        "slot__stage", "slot"
    ):
        beliefs = {response.screen: response.belief.value for response in assignment.responses.all()}
        values.append(float(beliefs["posterior"] != beliefs["prior"]))
        person.append(assignment.sitting.respondent_id)
        item.append(assignment.slot.item_id)
        weight.append(weights[assignment.pk])
        subjects.append(
            [question.pk for question in (assignment.slot.item.pair.evidence, assignment.slot.item.pair.target)]
        )
    made = bandit.variance_components(
        values=values,
        person=person,
        item=item,
        subjects=np.array(subjects),
        weight=weight,
        rng=generator(study.config.seed, "people"),
        resamples=20,
    )
    (shares, effects) = findings.tables
    by_part = {row["part"]: row["share"] for row in shares.records()}
    # Which of an item's questions comes first does not matter to a share.
    assert by_part == pytest.approx({share.name: share.share for share in made.shares})
    assert findings.data["people"] == 72 and findings.data["answers"] == len(values)
    assert [row[0] for row in effects.rows] == list(PERCENTILES)
    assert [row[1] for row in effects.rows] == pytest.approx(np.percentile(made.effects, PERCENTILES).tolist())


def test_lines_files_and_figure_show_it_and_nobody_in_it(study: Study, tmp_path: Path) -> None:
    findings = reports.make(study, "people", {"resamples": ["20"]})
    said = "\n".join([findings.headline, *findings.lines, *findings.notes])
    assert "of the variance of single answers lies between people" in said
    assert "pairs cannot be separated from the rest" in said
    written = {path.name: path.read_text() for path in reports.write(study, "people", findings, tmp_path)}
    parts = [row["part"] for row in csv.DictReader(written["variance_shares.csv"].splitlines())]
    assert parts[0] == "people" and parts[-1] == "rest" and "pairs" not in parts
    assert [row["part"] for row in findings.data["shares"]] == parts
    figure = written["people_effects.svg"]
    ElementTree.fromstring(figure)  # noqa: S314 - our own file
    assert "people, shrunken" in figure and "normal, not shrunken" in figure
    names = set(study.respondents.values_list("pseudonym", flat=True))
    assert len(names) == 72 and not any(name in "".join(written.values()) for name in names)


@pytest.mark.thorough
def test_another_figure_is_chosen_by_its_name_and_an_unknown_one_refused(study: Study) -> None:
    findings = reports.make(study, "people", {"figure": ["posterior_correct"], "resamples": ["20"]})
    named = {figure.name: figure for figure in study_estimates.estimate(study).figures}
    assert findings.data["figure"] == named["posterior_correct"].title
    assert 0 < findings.data["answers"] < study_estimates.estimate(study).answers
    with pytest.raises(HunchError, match="figure: weather is not one of changed_over_0"):
        reports.make(study, "people", {"figure": ["weather"]})


@pytest.mark.thorough
def test_few_people_are_refused_or_have_no_distribution() -> None:
    few = run_study("few", stages=[{"sittings": 12}], **NO_ROLES)
    findings = reports.make(few, "people", {"resamples": ["20"]})
    assert [table.name for table in findings.tables] == ["variance_shares"] and not findings.pictures
    assert any("12 people, and their distribution needs 30" in note for note in findings.notes)
    empty = cast.open_study(slug="empty")
    with pytest.raises(StateRefused, match="no answer counts yet"):
        reports.make(empty, "people", {})
    for _person in range(2):
        cast.walk(cast.begin(empty))
    with pytest.raises(StateRefused, match="2 people; the variance between people needs 10"):
        reports.make(empty, "people", {})
