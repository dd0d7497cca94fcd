"""Budget files of instruments: what they say, what is refused, and whose planner reads them."""

import io
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.core.management import call_command

from bandit import EpsilonGreedy
from survey.contracts.budgets import detectable
from survey.exceptions import FileErrors
from survey.instruments.cloze.reports.budget import ClozeBudget
from survey.instruments.next_token.reports.budget import NextTokenBudget
from survey.instruments.preference.analysis import bradley_terry
from survey.instruments.preference.analysis.simulation import PreferenceWorld, simulate
from survey.instruments.preference.reports.budget import PreferenceBudget
from survey.instruments.self_paced_reading.reports.budget import ReadingBudget
from survey.instruments.token_comparison.analysis.simulation import TokenPlan, TokenWorld, study
from survey.instruments.token_comparison.reports.budget import ComparisonBudget
from survey.services.base.toml_files import read_toml
from survey.services.results import budgets

STUDIES = Path(__file__).parents[3] / "studies"
FILES = {
    "preference": PreferenceBudget,
    "cloze": ClozeBudget,
    "next-token": NextTokenBudget,
    "token-comparison": ComparisonBudget,
    "reading": ReadingBudget,
}
SMALLER = {
    "preference": (("[12, 12, 12, 12, 12]", "[12, 12]"), ("prompts = 100", "prompts = 30")),
    "cloze": (("[100, 100]", "[30, 30]"), ("responses_per_item = 20", "responses_per_item = 10")),
    "next-token": (("[80, 80]", "[20, 20]"), ("run = 12", "run = 6")),
    "token-comparison": (("[40, 40]", "[10, 10]"), ("texts = 80", "texts = 20")),
    "reading": (("sittings = [60]", "sittings = [10, 10]"), ("words = 30 ", "words = 12 ")),
}


def changed(name: str, tmp_path: Path, *changes: tuple[str, str]) -> Path:
    text = (STUDIES / f"example-budget-{name}.toml").read_text()
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    path = tmp_path / "budget.toml"
    path.write_text(text)
    return path


def budget_of(path: Path, *, studies: int) -> Any:
    raw = read_toml(path)
    kind = raw.pop("instrument").replace("_", "-")
    planner: Any = FILES["reading" if kind == "self-paced-reading" else kind]
    return budgets.read(planner, raw, path=path, studies=studies)


def test_every_policy_of_the_examples_is_simulated() -> None:
    """Adaptive ones of preferences twice: by the design's weights, and with each answer once."""
    simulated = {
        name: budgets.simulated_studies(budget_of(STUDIES / f"example-budget-{name}.toml", studies=3)) for name in FILES
    }
    assert simulated == {"preference": 9, "cloze": 6, "next-token": 6, "token-comparison": 9, "reading": 6}


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_the_command_asks_the_planner_of_the_files_instrument(name: str, tmp_path: Path) -> None:
    path, out = changed(name, tmp_path, *SMALLER[name]), io.StringIO()
    options = {"studies": 2, "jobs": 1, "out": tmp_path / "out"}
    call_command("plan_budget", str(path), **options, stdout=out)
    assert "2 simulated studies of each p" in out.getvalue() and " USD." in out.getvalue()
    assert any(written.suffix == ".csv" for written in (tmp_path / "out").iterdir())


def test_a_file_of_an_instrument_without_a_planner_is_refused(tmp_path: Path, capsys: Any) -> None:
    path = changed("cloze", tmp_path, ('instrument = "cloze"', 'instrument = "own_answers"'))
    with pytest.raises(SystemExit):
        call_command("plan_budget", str(path))
    assert "instrument: 'own_answers' plans no budgets; these instruments do: belief_update" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        ("preference", "models = 8", "models = 1", "bank.models: Input should be greater than or equal to 2"),
        ("preference", "responses_per_item = 1", "responses_per_item = 7", "must be a multiple of it in every stage"),
        ("preference", "sittings = [12, 12,", "sittings = [1, 12,", "each stage needs from 2 to 100,000"),
        ("preference", 'name = "by information"', 'name = "uniform"', "two have the same name"),
        ("preference", "[money]", "[honey]", "honey: Extra inputs are not permitted"),
        (
            "preference",
            'kind = "epsilon_greedy"\nepsilon = 0.2\ntop_fraction = 0.25',
            'kind = "robust"',
            "policies.2: robust learns from earlier answers, which is not simulated here: choose another",
        ),
        ("cloze", "sentences = 200", "sentences = 20000", "at most 20,000 are simulated"),
        ("cloze", "sentences = 200", "sentences = 10", "a stage asks for 100 positions and the bank has 60"),
        ("next-token", "passages = 80", "passages = 30", "a stage draws 80 runs and the bank has 60"),
        ("next-token", "passages = 80", "passages = 4", "add passages"),
        ("next-token", "passages = 80", "passages = 20000", "at most 100,000 are simulated"),
        ("next-token", "responses_per_item = 5", "responses_per_item = 7", "must be a multiple of it in every stage"),
        ("next-token", "responses_per_item = 5", "responses_per_item = 200", "a stage draws fewer than 4 runs"),
        ("next-token", 'priority = "gap"', "", 'needs "uncertainty" or "gap"'),
        ("token-comparison", "texts = 80", "texts = 15", "items is 16 and the bank has 15 texts"),
        ("token-comparison", "texts = 80", "texts = 3000", "texts x contexts_per_text x draws is 120,000"),
        ("token-comparison", "texts = 80", "texts = 20", "and only 800 are drawn"),
        ("token-comparison", '"fewer draws"', '"one context a text"', "two have the same name"),
        ("token-comparison", "responses_per_item = 1", "responses_per_item = 3", "must be a multiple of it"),
        ("cloze", 'priority = "uncertainty"', "", 'needs "uncertainty" or "gap"'),
        ("cloze", "sittings = [100, 100]", "sittings = [3, 100]", "fewer than 4 positions"),
        ("reading", "passages = 12 ", "passages = 9 ", "12 passages.passages: each person reads 10 different ones"),
        ("reading", "passages = 12 ", "passages = 61 ", "61 are more than the bank's 60"),
        ("reading", "[60]", "[3, 4]", "fewer than 8 people in all"),
        ("reading", "[60]", "[9000]", "at most 2,000,000 are simulated"),
        ("reading", 'name = "all passages"', 'name = "12 passages"', "two have the same name"),
    ],
)
def test_wrong_values_are_refused_with_their_field(tmp_path: Path, name: str, old: str, new: str, said: str) -> None:
    with pytest.raises(FileErrors) as caught:
        budget_of(changed(name, tmp_path, (old, new)), studies=2)
    assert said in caught.value.message


def test_nobody_meets_a_passage_twice_however_many_runs_it_has(tmp_path: Path) -> None:
    path = changed("next-token", tmp_path, ("passages = 80", "passages = 4"), ("runs = 2 ", "runs = 30 "))
    with pytest.raises(FileErrors, match="items is 5 and the bank has 4 passages"):
        budget_of(path, studies=2)


def test_a_design_that_does_not_fit_is_refused_by_its_name(tmp_path: Path) -> None:
    path = changed("preference", tmp_path, ("prompts = 100", "prompts = 5"))
    with pytest.raises(FileErrors, match=r"policies\.by information"):
        budgets.report(budget_of(path, studies=2), source="budget.toml")


def test_runs_are_simulated_as_the_file_plans_them(tmp_path: Path) -> None:
    changes = (("passages = 80", "passages = 70"), ("runs = 2 ", "runs = 3 "), ("run = 12", "run = 9"))
    path = changed("next-token", tmp_path, *changes, ("responses_per_item = 5", "responses_per_item = 4"))
    assert [vars(plan.setting) for plan in budget_of(path, studies=1).plans] == [
        {"passages": 70, "runs": 3, "tokens": 9, "drawn": (100, 100), "responses": 4, "items": 5, **own}
        for own in (
            {"design": None, "priority": ""},
            {"design": EpsilonGreedy(epsilon=0.4, top_fraction=0.3), "priority": "gap"},
        )
    ]


@pytest.mark.parametrize("randomness", ["", "things"])
def test_every_simulated_study_draws_anew(randomness: str) -> None:
    """By the file's seed and the study's number; where random numbers have a name, by it and the plan's too."""

    class Drawing:
        @staticmethod
        def of_study(setting: Any, number: int) -> Any:
            return setting

        @staticmethod
        def simulate(_setting: Any, rng: np.random.Generator) -> float:
            return rng.random()

    def first_draw(plan: str, seed: int, number: int, name: str = randomness) -> Any:
        planner: Any = type("Named", (Drawing,), {"randomness": name})
        return budgets._one_study(planner, budgets.StudyPlan(plan, None), seed, number)

    assert len({first_draw(*case) for case in (("a", 1, 1), ("a", 1, 2), ("a", 2, 1))}) == 3
    assert (first_draw("a", 1, 1) == first_draw("b", 1, 1)) is not bool(randomness)
    assert first_draw("a", 1, 1) == first_draw("a", 1, 1)
    assert first_draw("a", 1, 1, "things") != first_draw("a", 1, 1, "others")


def test_people_who_leave_are_paid_nothing_and_cost_half_the_time() -> None:
    costs = budget_of(STUDIES / "example-budget-cloze.toml", studies=2).costs
    assert (costs.people, costs.complete) == (222, 200) and costs.hours == pytest.approx((200 + 11) / 6)
    assert costs.total == pytest.approx(400 * 1.333)
    assert str(costs) == "222 people begin, 200 finish; 35 hours; 400.00 rewards + 133.20 fees = 533.20 USD."
    assert str(replace(costs, rewards=0.0, fees=0.0)).endswith("; 35 hours; nobody is paid.")


@pytest.mark.slow
def test_a_study_finds_the_side_bias_that_it_is_said_to_find_in_four_of_five_cases() -> None:
    budget = budget_of(STUDIES / "example-budget-preference.toml", studies=2)
    stages = budget.plans[0].setting.stages
    quiet = PreferenceWorld(theta=np.zeros(8), gamma=0.0, prompts=100)
    sides = [bradley_terry.fit(simulate(quiet, stages, rng=np.random.default_rng(n))).side for n in range(5)]
    world = PreferenceWorld(theta=np.zeros(8), gamma=float(np.mean([*map(detectable, sides)])), prompts=100)
    detected = [
        (bradley_terry.fit(simulate(world, stages, rng=np.random.default_rng([1, n]))).side.low or 0) > 0
        for n in range(60)
    ]
    assert 0.65 <= np.mean(detected) <= 0.93  # 0.8, three Monte Carlo errors either way; the seeds are fixed.


def test_comparisons_that_a_stage_draws_have_the_weights_of_their_chances() -> None:
    """Drawn with each one's weight, comparisons and contexts are again as many as there are."""
    plan = TokenPlan(texts=10, contexts=1, draws=8, people=20, asked=16, responses=2)
    made = [study(TokenWorld(vocabulary=12), plan, rng=np.random.default_rng(seed)) for seed in range(60)]
    assert all(len(simulated.answers) == 32 and np.unique(simulated.answers.item).size == 16 for simulated in made)
    contexts, comparisons = [], []
    for token_study in made:
        c, asked = token_study.comparisons, np.unique(token_study.answers.item)
        others = np.bincount(c.context, minlength=10) > 0
        there = np.isin(np.arange(10), c.context[asked])
        contexts.append(c.weight[there].sum() - others.sum())
        comparisons.append(c.item_weight[asked].sum() - len(c))
    assert np.mean(comparisons) == pytest.approx(0, abs=1e-9)
    assert abs(np.mean(contexts)) < 4 * np.std(contexts) / np.sqrt(len(made))


@pytest.mark.slow
def test_more_passages_make_the_slope_of_reading_times_more_precise(tmp_path: Path) -> None:
    path = changed(
        "reading", tmp_path, ("words = 30 ", "words = 12 "), ("passages_differ = 2.0", "passages_differ = 9")
    )
    few, many = budgets.report(budget_of(path, studies=6), source="budget.toml").data.values()
    assert (few["readers"], many["readers"]) == (50, 10)
    for width in ("slope_width", "detectable", "total_width"):
        assert few[width] > 1.3 * many[width] > 0
    assert many["detectable"] > many["slope_width"] / 2


@pytest.mark.slow
@pytest.mark.any_database
def test_processes_of_their_own_find_the_same(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """All planners one after the other in the same two processes, which take seconds to start."""
    started: list[ProcessPoolExecutor] = []

    @contextmanager
    def started_once(jobs: int, **options: Any) -> Iterator[ProcessPoolExecutor]:
        if not started:
            started.append(ProcessPoolExecutor(jobs, **options))
        yield started[0]

    monkeypatch.setattr(budgets, "ProcessPoolExecutor", started_once)
    for name in FILES:
        budget, seen = budget_of(changed(name, tmp_path, *SMALLER[name]), studies=2), []
        alone = budgets.report(budget, source=name, progress=lambda seen=seen: seen.append(1))
        assert budgets.report(budget, source=name, jobs=2, progress=lambda seen=seen: seen.append(1)).data == alone.data
        assert len(seen) == 2 * budgets.simulated_studies(budget)
    (pool,) = started
    pool.shutdown()
