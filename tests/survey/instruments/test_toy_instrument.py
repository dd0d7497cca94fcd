"""An instrument of somebody else's package goes through a whole stage, and no file of the core names it."""

import csv
import io
from pathlib import Path
from typing import Any

import pytest
from django.core.cache import cache
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from toy_instrument.models import Guess

from survey.contracts import instruments
from survey.contracts.reports import ReportArguments
from survey.exceptions import FieldErrors, HunchError
from survey.live.stage_sections import stage_outcomes
from survey.models import Response, Score, SnapshotAnswer, Stage
from survey.services.results.estimates.outcome_table import outcome_table
from survey.services.results.export import files
from survey.services.sittings.answering import advance
from survey.services.sittings.expiry import deal_make_up_booklets
from survey.services.stages import jobs, lifecycle
from tests import cast

pytestmark = pytest.mark.slow

TOY = {"instrument": {"kind": "toy"}, "candidates": {"size": 40}, "stages": [{"sittings": 4}, {"sittings": 4}]}


def open_toy() -> Stage:
    keyless = cast.small_bank(40, name="keyless", keyless=40)
    return lifecycle.open_stage(cast.stage_of(cast.small_study("toy", on=keyless, **TOY)))


def play(visitor: cast.Visitor) -> cast.Visitor:
    person = cast.simulated_person(visitor.sitting)
    step = visitor.to_items().step
    while step.kind == "item":
        parts = {name: str(part["value"]) for name, part in step.screen.parts.items()}
        step = advance(
            sitting=visitor.sitting, step=step.number, data=person.answer(screen=step.screen.name, parts=parts)
        )
    return visitor


@pytest.mark.thorough
@pytest.mark.django_db
def test_it_needs_no_key_and_no_predictor_and_goes_to_the_plan_of_the_next_stage() -> None:
    stage = open_toy()
    for _person in range(4):
        play(cast.Visitor(stage.study))
    jobs.run_inline(lifecycle.close_stage(stage))
    assert [step.kind for step in stage.job_steps.order_by("pk")] == ["freeze", "plan"]
    assert SnapshotAnswer.objects.filter(stage=stage).count() == 12
    assert Guess.objects.count() == Score.objects.count() == 36
    assert Response.objects.count() == 48  # and a page of feedback an item, which asks nothing
    assert cast.stage_of(stage.study, 2).state == "planned"


@pytest.mark.django_db
def test_an_assignment_has_three_guesses_each_with_its_points_on_the_next_screen() -> None:
    visitor = cast.Visitor(open_toy().study).to_items()
    assert set(visitor.step.screen.parts) == {"opening"}
    seen = []
    for guess in ("what is", "the of nothing", "zebra"):
        step = visitor.post(guess=guess)
        seen.append((step.position, step.screen.name, step.screen.parts["points"]["value"]))
    assert seen == [(1, "guess_2", 2), (1, "guess_3", 2), (1, "feedback", 4)]
    assert visitor.states() == ["live", "live", "live"]
    step = visitor.post()
    assert (step.position, step.screen.name, set(step.screen.parts)) == (2, "guess_1", {"opening"})
    assert visitor.states() == ["counted", "live", "live"]
    assert set(Score.objects.values_list("rule", "version")) == {("words_in_question", "2")}


@pytest.mark.django_db
@pytest.mark.parametrize("guess", ["", " ", "x" * 201, "nul\x00", "\udfff"])
def test_its_own_form_says_what_is_refused(guess: str) -> None:
    visitor = cast.Visitor(open_toy().study).to_items()
    with pytest.raises(FieldErrors):
        visitor.post(guess=guess)
    assert not Response.objects.exists() and not Score.objects.exists()


@pytest.mark.django_db
def test_a_half_answered_item_is_gone_on_with_and_dealt_again() -> None:
    stage = open_toy()
    visitor = cast.Visitor(stage.study).to_items()
    visitor.post(guess="what")
    visitor.expire()
    for _person in range(3):
        play(cast.Visitor(stage.study))
    assert deal_make_up_booklets(stage) == 1
    assert visitor.post(guess="is").screen.name == "guess_3"
    assert visitor.states() == ["live"] * 3


@pytest.mark.django_db
def test_its_columns_and_points_are_exported(tmp_path: Path) -> None:
    stage = open_toy()
    text = 'commas, "quotes" and ünïcode'
    first = cast.Visitor(stage.study).to_items()
    for guess in (text, "second", "third"):
        first.post(guess=guess)
    first.post()
    play(first)
    files.write_export(stage.study, tmp_path)
    assert not (tmp_path / "belief_changes.csv").exists()
    with (tmp_path / "answers.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 12
    assert [column for column in rows[0] if "guess" in column] == ["guess_1", "guess_2", "guess_3"]
    assert not {"prior", "posterior", "outcome"} & set(rows[0])
    answered = [row for row in rows if row["guess_1"]]
    assert len(answered) == 3 and text in {row["guess_1"] for row in answered}
    assert "words_in_question" in answered[0]["responses"]


@pytest.mark.django_db
def test_its_outcome_is_shown_by_stratum() -> None:
    stage = open_toy()
    play(cast.Visitor(stage.study))
    table = outcome_table(stage)
    assert table is not None and table.answers == 3 and table.share is not None


@pytest.mark.django_db
def test_more_answers_take_no_more_queries_where_outcomes_read_points() -> None:
    stage, counts = open_toy(), []
    for _person in range(2):
        play(cast.Visitor(stage.study))
        for read in (outcome_table, lambda stage: stage_outcomes(stage.study, [stage])):
            cache.clear()
            with CaptureQueriesContext(connection) as captured:
                read(stage)
            counts.append(len(captured))
    assert counts[:2] == counts[2:]


@pytest.mark.django_db
def test_its_report_leaves_excluded_sittings_out_and_says_so_by_one_row() -> None:
    keyless = cast.small_bank(40, name="keyless", keyless=40)
    rules = {"flags": {"speeder": {"seconds_per_item": 1}}, "exclusions": {"flags": ["speeder"]}}
    study = cast.small_study("toy", on=keyless, **TOY, **rules)
    lifecycle.open_stage(cast.stage_of(study))
    (entry,) = instruments.of_study(study).reports()
    play(cast.Visitor(study))
    Response.objects.update(server_ms=10)
    assert "no guess yet" in entry.load().obstacle(study), "who answers within a second is excluded"
    Response.objects.update(server_ms=9000)
    assert entry.load().obstacle(study) == ""
    with CaptureQueriesContext(connection) as captured:
        entry.load().obstacle(study)
    guesses = [query for query in captured if Guess._meta.db_table in query["sql"]]
    assert guesses and all("LIMIT 1" in query["sql"] for query in guesses)
    assert entry.load().make(study, ReportArguments({"least": ("1",)})).data["guesses"] == 9


@pytest.mark.django_db
def test_its_report_counts_what_was_guessed(capsys: pytest.CaptureFixture[str]) -> None:
    stage = open_toy()
    (entry,) = instruments.of_study(stage.study).reports()
    assert "no guess yet" in entry.load().obstacle(stage.study)
    visitor = cast.Visitor(stage.study).to_items()
    for guess in ("the river", "The sum", "zebra"):
        visitor.post(guess=guess)
    visitor.post()
    assert entry.load().obstacle(stage.study) == ""
    findings = entry.load().make(stage.study, ReportArguments({"least": ("2",)}))
    (table,) = findings.tables
    assert table.rows == [("the", 2)] and findings.data == {"guesses": 3, "words": {"the": 2}}
    with pytest.raises(HunchError, match="least: 'two'"):
        entry.load().make(stage.study, ReportArguments({"least": ("two",)}))
    call_command("report", "toy", "guessed_words", "least=2")
    assert "4 different words in 3 guesses" in capsys.readouterr().out


BUDGET = """
instrument = "toy"
title = "Forty guessers"
[study]
sittings = [20, 20]
items = 4
minutes = 6
[money]
reward = 1.0
[[policies]]
name = "uniform"
[[policies]]
name = "easy words"
kind = "epsilon_greedy"
epsilon = 0.2
"""


def test_an_instrument_of_somebody_else_plans_a_budget_by_its_simulation_alone(tmp_path: Path) -> None:
    """Its figure has columns for the value, the width and what is found; costs are as for everybody."""
    path, out = tmp_path / "budget.toml", io.StringIO()
    path.write_text(BUDGET)
    call_command("plan_budget", str(path), studies=3, jobs=1, out=tmp_path / "out", stdout=out)
    assert "3 simulated studies of each policy; 40 people answer 4 items each." in out.getvalue()
    assert "44 people begin, 40 finish; 4 hours; 40.00 rewards + 13.32 fees = 53.32 USD." in out.getvalue()
    with (tmp_path / "out" / "policies.csv").open(newline="") as file:
        uniform, easy = csv.DictReader(file)
    assert list(uniform) == ["policy", "right", "right_width", "right_detectable", "studies"]
    assert float(easy["right"]) > float(uniform["right"]) + 0.1 and uniform["studies"] == "3"
    # With 39 degrees of freedom: t_0.975 is 2.023 and t_0.8 is 0.851.
    assert float(uniform["right_detectable"]) == pytest.approx(
        float(uniform["right_width"]) / 2 * (1 + 0.851 / 2.023), rel=1e-3
    )


def test_a_plan_of_somebody_elses_instrument_that_does_not_fit_is_refused(tmp_path: Path, capsys: Any) -> None:
    (path := tmp_path / "budget.toml").write_text(BUDGET.replace("[20, 20]", "[20, 120]"))
    with pytest.raises(SystemExit):
        call_command("plan_budget", str(path), studies=2, jobs=1)
    assert "budget.toml: policies.easy words: n: " in capsys.readouterr().err
