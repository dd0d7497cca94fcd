"""Budgets: costs by hand, a simulated study against its own answers, and the power that is promised."""

import csv
import dataclasses
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.core.management import call_command

import bandit
from survey.contracts.budgets import PlanOutlook, StudyPlan, detectable
from survey.exceptions import FileErrors, HunchError
from survey.figures import Figure
from survey.instruments.belief_update.reports.budget import simulation as budget
from survey.instruments.belief_update.reports.budget.planner import BeliefBudget
from survey.instruments.belief_update.reports.budget.simulation import BeliefPlan, StudySetting, World
from survey.instruments.belief_update.reports.budget.tables import as_json, per_answer
from survey.services.base.toml_files import read_toml
from survey.services.results import budgets, reports
from tests import cast

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
SMALL = """
title = "A small one"
studies = 2
frontier = [0.2, 0.5]
[bank]
questions = 60
tasks = 6
domains = 3
[study]
sittings = [20, 20]
items = 6
candidates = 900
controls = 0.2
[money]
currency = "EUR"
reward = 3.0
platform_fee = 0.25
tax_on_fee = 0.2
[[policies]]
name = "uniform"
kind = "uniform"
[[policies]]
name = "greedy"
kind = "epsilon_greedy"
epsilon = 0.2
top_fraction = 0.2
"""
WORLD = World(
    tasks=tuple(f"task {number // 10}" for number in range(60)),
    domains=tuple(f"domain {number // 20}" for number in range(60)),
    rates=(0.46, 0.32),
    pair_sd=0.9,
    hidden_share=1 / 3,
    respondent_sd=1.0,
    false_change=0.05,
)
SETTING = StudySetting(sittings=(40, 40), items=10, candidates=2000, holdout=0.1, controls=0.1, dropout=0.1)
GREEDY, UNIFORM = bandit.EpsilonGreedy(epsilon=0.2, top_fraction=0.2), bandit.Uniform()


def read_budget(path: Path) -> Any:
    return budgets.read(BeliefBudget, read_toml(path), path=path)


def simulate(
    *, policies: list[bandit.Design], setting: StudySetting = SETTING, studies: int, seed: int
) -> list[PlanOutlook[BeliefPlan]]:
    plans = [StudyPlan(str(policy), BeliefPlan(WORLD, setting, (policy,))) for policy in policies]
    return budgets.simulate(BeliefBudget, plans, studies=studies, seed=seed, source="a test")


def write(folder: Path, text: str = SMALL) -> Path:
    path = folder / "budget.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_money_and_hours_are_those_of_who_finishes(tmp_path: Path) -> None:
    costs = read_budget(write(tmp_path)).costs
    assert (costs.people, costs.complete) == (40, 36.0)
    assert costs.hours == pytest.approx((36 + 4 / 2) * 12 / 60)
    assert (costs.rewards, costs.fees) == (pytest.approx(108.0), pytest.approx(108 * 0.25 * 1.2))
    assert costs.total == pytest.approx(140.4)


def test_the_same_seed_gives_the_same_figures_and_another_one_others() -> None:
    """In processes of their own too: test_budget_files.py."""
    first, again, other = (simulate(policies=[GREEDY], studies=2, seed=seed)[0] for seed in (3, 3, 4))
    assert as_json(first) == as_json(again)
    assert as_json(other)["found"] != as_json(first)["found"]


@pytest.mark.thorough
def test_greed_finds_more_and_costs_precision() -> None:
    outlooks = simulate(policies=[UNIFORM, GREEDY], studies=6, seed=1)
    uniform, greedy = map(as_json, outlooks)
    assert greedy["found"][0] == uniform["found"][0] and greedy["found"][1] > 1.2 * uniform["found"][1]
    assert greedy["widths"][0] > uniform["widths"][0] and greedy["naive_bias"] > uniform["naive_bias"] + 0.03
    assert greedy["auc"][1] < greedy["best_auc"]
    assert per_answer(outlooks[0]) == pytest.approx(0.39, abs=0.02)
    assert all(size is not None and 0 < size < 1 for size in (*uniform["detectable"], *greedy["detectable"]))


def test_without_controls_nothing_is_said_of_evidence_against_none() -> None:
    bare = StudySetting(sittings=(40,), items=10, candidates=2000, holdout=0.0, controls=0.0, dropout=0.0)
    (outlook,) = simulate(setting=bare, policies=[GREEDY], studies=2, seed=1)
    assert outlook.mean("detectable_evidence") is None and outlook.mean("detectable_outcome") is not None
    assert outlook.mean("answers 1") == outlook.mean("answers") == 400


def test_the_smallest_effect_is_found_four_times_out_of_five() -> None:
    rng = np.random.default_rng(2)
    groups, per_group = 4000, 20
    size = detectable(Figure(0.0, standard_error=(2 / per_group) ** 0.5, degrees_of_freedom=2 * per_group - 2))
    first, second = rng.normal(size=(groups, per_group)), rng.normal(size, 1, size=(groups, per_group))
    error = np.sqrt((first.var(axis=1, ddof=1) + second.var(axis=1, ddof=1)) / per_group)
    t = (second.mean(axis=1) - first.mean(axis=1)) / error
    assert (t > bandit.student_t_quantile(0.975, 2 * per_group - 2)).mean() == pytest.approx(0.8, abs=0.025)


def test_evidence_against_none_is_planned_where_the_difference_is_as_small_as_can_be_found() -> None:
    study: Any = budget.one_study(BeliefPlan(WORLD, SETTING, (GREEDY,)), rng=np.random.default_rng(3))
    effect = study["evidence"]
    # Where next to nobody changes without evidence, the controls vary less than where the difference is that small, and
    # the test's error does not depend on how many of them did by chance.
    assert 1.1 * detectable(effect) < study["detectable_evidence"] < effect.value


@pytest.mark.thorough
def test_the_intervals_it_promises_cover_the_truth() -> None:
    (outlook,) = simulate(policies=[GREEDY], studies=40, seed=5)
    assert (outlook.mean("covered") or 0) >= 0.85


@pytest.mark.thorough
def test_speeders_move_what_is_estimated_and_are_not_among_the_changes_found() -> None:
    hurried = dataclasses.replace(SETTING, speeders=0.3)
    truth = 0.7 * 0.39 + 0.3 * bandit.RANDOM_CHANGE
    assert hurried.share_that_changes(WORLD) == pytest.approx(truth)
    how: dict[str, Any] = {"policies": [UNIFORM], "studies": 20, "seed": 5}
    (plain,), (outlook,) = (simulate(setting=setting, **how) for setting in (SETTING, hurried))
    assert (outlook.mean("covered") or 0) >= 0.85 and abs(as_json(outlook)["naive_bias"]) < 0.03
    assert as_json(outlook)["answers"] == pytest.approx(as_json(plain)["answers"], rel=0.02)
    assert outlook.mean("changes_found") == pytest.approx(0.7 * (plain.mean("changes_found") or 0), rel=0.05)


def test_who_comes_back_too_late_gives_fewer_answers_that_count() -> None:
    back = dataclasses.replace(SETTING, dropout=0.0, returners=0.4)
    (outlook,) = simulate(setting=back, policies=[GREEDY], studies=4, seed=5)
    # Half of the 5.5 items of 10 that a random place leaves behind on average are still free.
    whole = 36 * 9 + 36 * 9
    assert outlook.mean("answers") == pytest.approx(whole * (1 - 0.4 * 0.55 * 0.5), rel=0.03)


@pytest.mark.django_db
def test_an_imported_bank_lends_its_tasks_and_an_unknown_one_is_refused(tmp_path: Path) -> None:
    cast.small_bank(40)
    named = SMALL.replace("questions = 60\ntasks = 6\ndomains = 3", 'name = "small"')
    world = read_budget(write(tmp_path, named)).plans[0].setting.world
    assert (len(world.tasks), set(world.tasks)) == (40, set(cast.TASKS))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("epsilon = 0.2", "epsilon = 2", "policies.2.epsilon: Input should be less than or equal to 1"),
        ('name = "greedy"', 'name = "uniform"', "policies: two have the same name"),
        ("tasks = 6", "tasks = 600", "bank: there must be at least as many questions as tasks"),
        ("domains = 3", "", "bank: give either a name or all of questions, tasks and domains"),
        ("sittings = [20, 20]", "sittings = [20, 1]", "each stage needs from 2"),
        ("sittings = [20, 20]", "sittings = [20, 20]\nreturners = 0.95", "dropout and returners: nobody would stay"),
        ('kind = "uniform"', 'kind = "test_set"', "policies.1: a test set, or a design by disagreement"),
        (
            'kind = "uniform"',
            'kind = "uncertainty"\nby = "disagreement"',
            "policies.1: a test set, or a design by disagreement",
        ),
        (
            'kind = "uniform"',
            'kind = "robust"\nfor = ["mean change", "speed"]',
            'policies.1: for: "speed" is not simulated: choose from changed, change, size',
        ),
        ("frontier = [0.2, 0.5]", "frontier = [0.2, 0.2]", "frontier: a number is there twice"),
        ("frontier = [0.2, 0.5]", "frontier = [0.0]", "frontier.1: Input should be greater than or equal to 0.02"),
        ("[money]", "[honey]", "honey: Extra inputs are not permitted"),
        ("[money]", "[money", "not TOML"),
    ],
)
def test_a_wrong_file_is_refused_field_by_field(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in SMALL
    with pytest.raises(FileErrors) as caught:
        read_budget(write(tmp_path, SMALL.replace(old, new)))
    assert message in caught.value.message


def test_a_policy_that_cannot_be_drawn_is_refused_with_the_sizes(tmp_path: Path) -> None:
    planner = read_budget(write(tmp_path, SMALL.replace("candidates = 900", "candidates = 50")))
    with pytest.raises(FileErrors, match=r"budget\.toml: policies\.uniform: n: .* 50"):
        budgets.report(planner, source="budget.toml")


def test_the_command_prints_tables_a_sentence_and_writes_figures(tmp_path: Path) -> None:
    out = io.StringIO()
    call_command("plan_budget", str(write(tmp_path)), "--jobs", "1", "--out", str(tmp_path / "out"), stdout=out)
    page = out.getvalue()
    assert "40 people begin, 36 finish" in page and "= 140.40 EUR" in page
    assert 'the policy "greedy" is expected to find' in page
    assert "points between two conditions" in page and "points between evidence and none" in page
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "policies.csv",
        "stages.csv",
        "frontier.csv",
        "frontier.svg",
        "sentences.txt",
        "found.svg",
        "auc.svg",
        "report.md",
    }
    first = (tmp_path / "out/found.svg").read_bytes()
    assert b"Changes of belief found" in first and b"greedy" in first
    frontier = (tmp_path / "out/frontier.svg").read_bytes()
    assert b"epsilon_greedy (0.2, 0.5)" in frontier and b"proportional (0.2, 0.5)" in frontier
    with (tmp_path / "out/frontier.csv").open(encoding="utf-8", newline="") as file:
        rows = [(row["design"], row["value"]) for row in csv.DictReader(file)]
    assert [(design, float(value)) for design, value in rows] == [
        ("epsilon_greedy", 0.2),
        ("epsilon_greedy", 0.5),
        ("proportional", 0.2),
        ("proportional", 0.5),
        ("robust", 0.5),
        ("robust", 0.8),
    ]
    assert b"robust (0.8, 0.5)" in frontier or b"robust (0.5, 0.8)" in frontier


@pytest.mark.thorough
def test_the_frontier_gives_up_findings_for_precision_and_leaves_out_what_cannot_be_drawn(tmp_path: Path) -> None:
    text = SMALL.replace("frontier = [0.2, 0.5]", "frontier = [0.05, 0.6]").replace("[20, 20]", "[40, 40]")
    text = text.replace("studies = 2", "studies = 8").replace("candidates = 900", "candidates = 1500")
    planner = read_budget(write(tmp_path, text))
    seen: list[int] = []
    result = budgets.report(planner, source="budget.toml", progress=lambda: seen.append(1))
    # 171 of 180 slots from the top 150 of 1,500 candidates: epsilon 0.05 leaves too few.
    points = result.data["frontier"]
    assert [(point["kind"], point["value"]) for point in points] == [
        ("epsilon_greedy", 0.6),
        ("proportional", 0.05),
        ("proportional", 0.6),
        ("robust", 0.4),
        ("robust", 0.95),
    ]
    assert len(result.notes) == 1 and "epsilon_greedy 0.05 is not on the frontier" in result.notes[0]
    assert len(seen) == budgets.simulated_studies(planner) == 8 * 7
    fewer = BeliefBudget(planner.config.model_copy(update={"frontier_studies": 2}))
    assert budgets.simulated_studies(fewer) == 8 * 2 + 2 * 5
    finding, estimating = points[1:3]
    assert finding["found"] > estimating["found"] and finding["width"] > estimating["width"]
    assert [policy["name"] for policy in result.data["policies"]] == ["uniform", "greedy"]


def test_a_study_of_one_stage_has_no_frontier(tmp_path: Path) -> None:
    planner = read_budget(write(tmp_path, SMALL.replace("[20, 20]", "[20]")))
    assert (planner.frontier, planner.left_out) == ([], ())
    result = budgets.report(planner, source="budget.toml")
    assert result.data["frontier"] == [] and [table.name for table in result.tables] == ["policies", "stages"]


def test_a_first_stage_that_teaches_a_robust_design_nothing_is_said(tmp_path: Path) -> None:
    few = SMALL.replace('kind = "uniform"', 'kind = "robust"').replace("frontier = [0.2, 0.5]", "frontier = []")
    (note,) = budgets.report(
        read_budget(write(tmp_path, few.replace("[20, 20]", "[5, 20]"))), source="budget.toml"
    ).notes
    assert note.startswith("uniform: stage 1 has 4 people without a holdout's, and 10 are needed to learn from")
    assert budgets.report(read_budget(write(tmp_path, few)), source="budget.toml").notes == ()


def test_each_stage_has_its_own_design_and_the_first_is_uniform() -> None:
    wide, narrow = bandit.EpsilonGreedy(epsilon=0.5, top_fraction=0.1), bandit.EpsilonGreedy(0.2, top_fraction=0.1)
    plan = BeliefPlan(WORLD, SETTING, (narrow, wide, narrow))
    assert [plan.design(index) for index in range(3)] == [UNIFORM, wide, narrow]
    assert [BeliefPlan(WORLD, SETTING, (GREEDY,)).design(index) for index in range(3)] == [UNIFORM, GREEDY, GREEDY]


def of_study(**settings: Any) -> Any:
    cast.small_bank(40)
    stages = [
        {"sittings": 2, "pilot": True},
        {"sittings": 10},
        {"sittings": 12, "design": {"kind": "epsilon_greedy", "epsilon": 0.2, "top_fraction": 0.2}},
    ]
    panel = {**cast.PROLIFIC, "reward": 150, "expected_minutes": 10}
    common = {"slug": "planned", "bank": "small", "predictor": {"name": "same_task"}, "candidates": {"size": 500}}
    return cast.study(**{**common, "stages": stages, "panel": panel, **settings})


@pytest.mark.thorough
@pytest.mark.django_db
def test_a_study_is_simulated_as_its_own_file_plans_it() -> None:
    study = of_study()
    findings = reports.make(study, "budget", {"studies": ["2"], "dropout": ["0"], "fee": ["0.5"]})
    assert findings.data["config"]["study"]["sittings"] == [10, 12], "without the pilot"
    assert findings.data["config"]["study"]["items"] == study.config.sitting.items
    assert findings.data["costs"]["rewards"] == pytest.approx(22 * 1.5)
    assert findings.data["costs"]["total"] == pytest.approx(22 * 1.5 * 1.5)
    assert findings.data["costs"]["hours"] == pytest.approx(22 * 10 / 60)
    policies, stages, frontier = findings.tables
    assert [row[:2] for row in frontier.rows] == [
        ["epsilon_greedy", 0.1],
        ["epsilon_greedy", 0.3],
        ["proportional", 0.1],
        ["proportional", 0.3],
        ["robust", 0.7],
        ["robust", 0.9],
    ]
    assert [row[0] for row in policies.rows] == ["as planned", "uniform"]
    assert [row[:2] for row in stages.rows] == [["as planned", 1], ["as planned", 2], ["uniform", 1], ["uniform", 2]]
    planned, uniform = stages.rows[1], stages.rows[3]
    assert planned[2] == uniform[2] and planned[3] > uniform[3], "the greedy stage finds more with as many answers"
    assert 'the policy "as planned" is expected to find' in findings.lines[-2]
    assert any("assumed" in note for note in findings.notes)
    again = reports.make(study, "budget", {"studies": ["2"], "dropout": ["0"], "fee": ["0.5"]})
    assert again.data == findings.data
    assert [picture.name for picture in findings.pictures] == ["frontier", "found", "auc"]
    with pytest.raises(HunchError, match="take at most 10; for more: `hunch report planned budget studies=1000`"):
        reports.make_for_web(study, "budget", {"studies": ["1000"]}, reader=None)


@pytest.mark.django_db
def test_a_uniform_study_stands_alone_and_what_is_rough_is_said() -> None:
    study = of_study(
        stages=[{"sittings": 10}, {"sittings": 10, "roles": {"holdout": 0.2}}],
        panel={"kind": "open"},
    )
    findings = reports.make(study, "budget", {"studies": ["2"]})
    assert [row[0] for row in findings.tables[0].rows] == ["as planned"]
    assert {"no reward" in note or "roles of their own" in note for note in findings.notes[1:]} == {True}
    assert len(findings.notes) == 3 and findings.data["costs"]["total"] == 0
    assert not any("platform fee" in line for line in findings.lines), "nobody is paid"


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("stages", "message"),
    [
        ([{"sittings": 1}], "stage 1 has one sitting"),
        ([{"sittings": 9}, {"sittings": 9, "design": {"kind": "test_set", "pairs": 3}}], "stage 2 is a test set"),
    ],
)
def test_what_cannot_be_simulated_is_said_in_the_list_of_reports(stages: list[Any], message: str) -> None:
    study = of_study(stages=stages, roles={"holdout": 0.0, "controls": 0.0})
    (line,) = [line for line in reports.lines_of(study) if line.entry.name == "budget"]
    assert message in line.obstacle and "plan_budget" in line.obstacle


def test_the_example_is_a_budget() -> None:
    assert len(read_budget(ROOT / "studies/example-budget.toml").policies) == 4
