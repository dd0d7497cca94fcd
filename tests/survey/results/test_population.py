"""Figures weighted to a population: as computed by hand, next to the plain ones, and refused with the group named."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.core.management import call_command

from survey.exceptions import FileErrors
from survey.models import Assignment, Study
from survey.services.results.estimates import stored_estimates, study_estimates
from survey.services.results.estimates.design_rows import design_files
from survey.services.results.estimates.estimate_tables import estimate_rows
from survey.services.results.estimates.population import read_weighting
from survey.services.results.estimates.sensitivity import POPULATION
from survey.services.results.package.coarsening import Coarse
from survey.study_file import StudyFileError, WeightingConfig, parse
from tests import cast
from tests.survey.results.test_people_groups import BLOCKS, SAID, asked_study

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]

USE = {"by": ["use"], "shares": {"never": 0.2, "weekly": 0.2, "daily": 0.6}}
AGE = {"by": ["age"], "shares": {"under 30": 0.15, "30 to 49": 0.15, "50 or more": 0.7}}


def weighting(*margins: dict[str, Any], **keys: Any) -> WeightingConfig:
    return WeightingConfig.model_validate({"margins": list(margins), **keys})


def changed_by_person(study: Study) -> dict[int, tuple[float, int]]:
    """By respondent in the order of sittings: the share of their answers that changed, and how many they gave."""
    shares = {}
    for person in study.respondents.order_by("pk"):
        beliefs = [
            {response.screen: response.belief.value for response in answer.responses.all()}
            for answer in Assignment.objects.filter(sitting__respondent=person, slot__role="sampled")
        ]
        changes = [belief["prior"] != belief["posterior"] for belief in beliefs]
        shares[person.pk] = (float(np.mean(changes)), len(changes))
    return shares


def test_a_figure_is_the_weighted_mean_of_those_who_can_be_placed() -> None:
    study = asked_study()
    estimates = study_estimates.estimate(study, weighting=weighting(USE))
    plain = study_estimates.estimate(study)
    assert [figure.combined for figure in estimates.figures] == [figure.combined for figure in plain.figures]
    assert all(figure.population is None for figure in plain.figures) and plain.weighting is None
    groups = {"never": (20, 0.2), "weekly": (14, 0.2), "daily": (9, 0.6)}
    above = below = 0.0
    for said, (share, answers) in zip(SAID, changed_by_person(study).values(), strict=True):
        if said in groups:
            people, wanted = groups[said]
            above += wanted / people * share * answers
            below += wanted / people * answers
    figure = estimates.figures[0]
    assert figure.population is not None and figure.combined is not None
    assert figure.population.value == pytest.approx(above / below)
    assert figure.population.n_clusters == 43 and figure.combined.n_clusters == 48
    assert estimates.weighting is not None
    assert (estimates.weighting.people, estimates.weighting.unplaced, estimates.weighting.reason) == (43, 5, "")
    assert [(group.group, group.people, group.in_population) for group in estimates.weighting.groups] == [
        (name, *entry) for name, entry in groups.items()
    ]
    assert [group.weighted for group in estimates.weighting.groups] == pytest.approx([0.2, 0.2, 0.6])
    assert estimates.weighting.design_effect == pytest.approx(43 * (0.04 / 20 + 0.04 / 14 + 0.36 / 9))
    row = next(row for row in estimate_rows(estimates) if row["kind"] == POPULATION)
    assert row["value"].value == figure.population.value


def test_margins_and_cells_are_raked_and_heavy_weights_are_cut() -> None:
    study = asked_study()
    raked = study_estimates.estimate(study, weighting=weighting(USE, AGE)).weighting
    assert raked is not None and raked.highest > 2 and raked.trimmed == 0
    assert [group.weighted for group in raked.groups] == pytest.approx([0.2, 0.2, 0.6, 0.15, 0.15, 0.7], abs=1e-6)
    cut = study_estimates.estimate(study, weighting=weighting(USE, AGE, trim=2)).weighting
    assert cut is not None and cut.highest == pytest.approx(2) and cut.trimmed > 0
    assert any("cut to it (trim)" in note for note in cut.notes)
    cells = {"by": ["use", "age"], "shares": {"never | under 30": 0.6, "never | 30 to 49": 0.4}}
    by_cell = study_estimates.estimate(study, weighting=weighting(cells)).weighting
    assert by_cell is not None and (by_cell.people, by_cell.unplaced) == (20, 28)
    assert [group.people for group in by_cell.groups] == [10, 10]


def test_margins_that_contradict_each_other_give_no_figures() -> None:
    """All who say daily are 50 or older: they cannot be 60 % of people of whom 20 % are that old."""
    old = {"by": ["age"], "shares": {"under 30": 0.5, "30 to 49": 0.3, "50 or more": 0.2}}
    estimates = study_estimates.estimate(asked_study(), weighting=weighting(USE, old))
    assert estimates.weighting is not None and "no weights give all margins their shares" in estimates.weighting.reason
    assert all(figure.population is None for figure in estimates.figures)


def test_a_group_of_the_population_with_nobody_in_it_is_named_in_place_of_figures() -> None:
    cells = {"by": ["use", "age"], "shares": {"never | under 30": 0.6, "daily | under 30": 0.4}}
    estimates = study_estimates.estimate(asked_study(), weighting=weighting(cells))
    assert estimates.weighting is not None
    assert estimates.weighting.notes == (
        "No figures are weighted to the population: nobody is in the group daily | under 30 of use and age, which is "
        "40.0 % of the population; put it together with another.",
    )
    assert all(figure.population is None for figure in estimates.figures)


def test_the_study_file_has_it_for_every_page(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    study = asked_study()
    file = tmp_path / "population.toml"
    file.write_text('[[margins]]\nby = ["use"]\nshares = { never = 0.2, weekly = 0.2, daily = 0.6 }\n')
    call_command("estimate", study.slug, "--weighting", str(file), "--out", str(tmp_path / "out"))
    said = capsys.readouterr().out
    assert "43 people weighted to the population" in said and "5 people in no weighted figure" in said
    assert (tmp_path / "out" / "population.csv").read_text().splitlines()[1].startswith("use,never,20,")
    assert POPULATION in (tmp_path / "out" / "estimates.csv").read_text()
    by_command = study_estimates.estimate(study, weighting=read_weighting(file, study))
    config = study.config.model_copy(update={"weighting": weighting(USE)})
    study.__dict__["config"] = config
    stored = stored_estimates.current_estimates(study, by=(), condition=())
    assert stored.weighting == by_command.weighting and stored.figures == by_command.figures


def test_groups_of_people_are_in_an_export_and_stay_out_of_a_public_package() -> None:
    study = asked_study()
    design, figures, margins = design_files(study, levels={}, weighting=weighting(USE, AGE))
    assert [list(row)[1:3] for row in margins.rows][2:4] == [["daily", 0.6], ["under 30", 0.15]]
    assert [column.name for column in design.columns if column.name.startswith("margin")] == ["margin__1", "margin__2"]
    places = {column.name: place for place, column in enumerate(design.columns)}
    said = {row[places["respondent"]]: row[places["margin__1"]] for row in design.rows}
    assert [*said.values()].count("never") == SAID.count("never") and [*said.values()].count("daily") == 9
    coarse = Coarse(study, reviewed=True)
    public = coarse.table(design)
    assert public is not None and not any(column.name.startswith("margin") for column in public.columns)
    assert coarse.table(margins) is None and coarse.table(figures) is not None


@pytest.mark.parametrize(
    ("margin", "message"),
    [
        ({"by": ["use"], "shares": {"never": 0.5, "weekly": 0.4}}, "together they make 0.9 and not 1"),
        ({"by": ["use"], "shares": {"never": 1.0, "weekly": 0.0}}, "shares: never has 1"),
        ({"by": ["use"], "shares": {"never": 0.5, "often": 0.5}}, "'often' is no group of use; there are: never"),
        ({"by": ["tools"], "shares": {"pen": 0.5, "pencil": 0.5}}, "no form asks tools with one answer"),
        ({"by": ["years"], "shares": {"1": 0.5, "2": 0.5}}, "years is a number without bands"),
        ({"by": ["use", "use"], "shares": {"never": 0.5, "weekly": 0.5}}, "name each question once"),
    ],
)
def test_a_margin_that_does_not_fit_is_refused_with_its_place(margin: dict[str, Any], message: str) -> None:
    with pytest.raises(StudyFileError) as refusal:
        parse(cast.study_text(blocks=BLOCKS, weighting={"margins": [margin]}))
    assert message in str(refusal.value) and "weighting.margins" in str(refusal.value)


def test_a_file_of_its_own_is_refused_alike(tmp_path: Path) -> None:
    file = tmp_path / "population.toml"
    file.write_text('[[margins]]\nby = ["use"]\nshares = { never = 0.5, often = 0.5 }\n')
    with pytest.raises(FileErrors, match="'often' is no group of use"):
        read_weighting(file, asked_study())
