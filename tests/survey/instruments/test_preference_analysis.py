"""The analysis of preferences on PandaLM's public judgements, and its laws. The data are read by path."""

import csv
import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from django.core.management import call_command

import bandit
from bandit import EpsilonGreedy, Uniform, assist, hajek
from predictors.evaluation.agreement import alphas
from survey.exceptions import HunchError
from survey.input_tables.problems import Problems
from survey.input_tables.rows import TableRow, read_rows
from survey.instruments.preference.analysis import bradley_terry, judging
from survey.instruments.preference.analysis.agreement import of_people
from survey.instruments.preference.analysis.analysing import (
    UNWEIGHTED,
    Analysis,
    AnalysisSettings,
    Material,
    _beside,
    analyse,
    win_shares,
)
from survey.instruments.preference.analysis.by_pair import by_pair
from survey.instruments.preference.analysis.elo import elo
from survey.instruments.preference.analysis.errors import figure, pair_variance, share_figure
from survey.instruments.preference.analysis.information import information
from survey.instruments.preference.analysis.judgements import TIE, UNREADABLE, A, B, JudgedItems, Judgements, majorities
from survey.instruments.preference.analysis.simulation import PreferenceWorld, StagePlan, population, simulate, spaced
from survey.instruments.preference.analysis.style import lengths, style_of
from survey.instruments.preference.estimands import PreferenceEstimates
from survey.instruments.preference.export import files
from survey.instruments.preference.instrument import Preference
from survey.instruments.preference.judgement_rows import ComparisonRow, VerdictRow
from survey.instruments.preference.labels import KNOWN
from survey.instruments.preference.management.commands import preferences
from survey.instruments.preference.models import ReplyJudgement
from survey.instruments.preference.reports.harness import read_results
from survey.instruments.preference.reports.reading_files import read_material
from survey.instruments.preference.rows import judgements_of
from survey.instruments.preference.screens import a_is_first
from survey.instruments.preference.verdicts import names_of

WORDS = {1: "a", 2: "b", 0: "tie"}


@pytest.fixture(scope="module")
def pandalm(human_data: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    published = human_data / "pandalm"
    rows = json.loads((published / "testset-v1.json").read_text())
    judged = json.loads((published / "gpt-3.5-turbo-testset-v1.json").read_text())
    verdicts = {row["idx"]: {"1": "a", "2": "b", "Tie": "tie"}.get(row["gpt_result"], "unreadable") for row in judged}
    folder = tmp_path_factory.mktemp("pandalm")
    comparisons, judgements = folder / "comparisons.csv", folder / "judgements.csv"
    with comparisons.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["prompt", "category", "model_a", "model_b", "annotator", "outcome", "first"])
        for row in rows:
            for number in (1, 2, 3):
                said = WORDS[row[f"annotator{number}"]]
                writer.writerow([row["idx"], row["motivation_app"], *row["cmp_key"].split("_"), number, said, ""])
    with judgements.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["prompt", "model_a", "model_b", "judge", "outcome"])
        writer.writerows([row["idx"], *row["cmp_key"].split("_"), "gpt-3.5", verdicts[row["idx"]]] for row in rows)
    return {"comparisons": comparisons, "judgements": judgements}


@pytest.mark.slow
def test_the_public_comparisons_give_the_figures_of_the_specification(pandalm: dict[str, Path], tmp_path: Path) -> None:
    call_command(
        *("preferences", "--comparisons", str(pandalm["comparisons"]), "--judgements", str(pandalm["judgements"])),
        *("--ridge", "0", "--no-side", "--out", str(tmp_path)),
    )
    figures = json.loads((tmp_path / "preferences.json").read_text())
    assert figures["majority"] == {"a": 422, "b": 472, "tie": 105}
    assert figures["agreement"]["kappas"] == pytest.approx([0.852, 0.879, 0.862], abs=5e-4)
    judge = figures["judges"]["gpt-3.5"]
    assert judge["accuracy"] == pytest.approx(0.698, abs=5e-4)
    assert judge["kappa"] == pytest.approx(0.476, abs=5e-4)
    assert judge["pearson"] == pytest.approx(0.585, abs=5e-4)
    assert (judge["unreadable"], judge["verdicts"], judge["items"]) == (25, 999, 999)
    strengths = {"llama-7b": 0.724, "pythia-6.9b": 0.074, "bloom-7b": -0.018, "opt-7b": -0.243}
    strengths["cerebras-gpt-6.7B"] = -0.537
    assert figures["bradley_terry"]["people"] == pytest.approx(strengths, abs=5e-4)
    assert sum(figures["bradley_terry"]["gpt-3.5"].values()) == pytest.approx(0, abs=1e-9)
    low, value, high = (figures["intervals"]["judges"]["gpt-3.5"]["accuracy"][end] for end in ("low", "value", "high"))
    assert low < value < high


def test_every_ranking_says_how_few_judgements_carry_it(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    rows, verdicts = [], []
    for number in range(120):
        a, b = [("owl", "raven"), ("raven", "wren"), ("owl", "wren")][number % 3]
        category = ("code", "talk")[number // 60]
        rows.append(f"p{number},{category},{a},{b},x{number % 7},{rng.choice(['a', 'a', 'b'])}")
        verdicts += [f"p{number},{a},{b},j,{rng.choice(['a', 'b'])},{first}" for first in "ab"]
    # An item that nobody judged, of a model of which nobody judged any.
    rows.append("p0,code,owl,lark,,")
    (tmp_path / "c.csv").write_text("\n".join(["prompt,category,model_a,model_b,annotator,outcome", *rows]) + "\n")
    (tmp_path / "j.csv").write_text("\n".join(["prompt,model_a,model_b,judge,outcome,first", *verdicts]) + "\n")
    files = ("--comparisons", str(tmp_path / "c.csv"), "--judgements", str(tmp_path / "j.csv"))
    call_command("preferences", *files, "--each-answer", "--out", str(tmp_path))
    figures = json.loads((tmp_path / "preferences.json").read_text())
    assert "lark" in figures["models"] and figures["bradley_terry"]["people"]["lark"] is None
    others = figures["fragility_of_others"]
    assert [(other["by"], other["category"]) for other in others] == [("people", "code"), ("people", "talk"), ("j", "")]
    for fragility in (figures["fragility"], *others):
        assert len(fragility["neighbours"]) == 2 and fragility["first"]["lost"] == len(fragility["first"]["rows"]) > 0
        assert fragility["first"]["margin_without"] < 0
    assert all(row.endswith(" first") for row in others[2]["first"]["rows"])
    assert all(" by x" in row for row in figures["fragility"]["first"]["rows"])
    with (tmp_path / "fragility.csv").open(newline="") as file:
        assert {row["ranking"] for row in csv.DictReader(file)} == {"people", "people, code", "people, talk", "j"}


def test_a_table_may_have_further_columns_and_any_usual_form(tmp_path: Path, capsys: Any) -> None:
    rows = [f"p{row};m{row % 2};m2;x{row % 3};{'ab'[row // 2 % 2]};{row}" for row in range(40)]
    path = tmp_path / "comparisons.csv"
    path.write_bytes("\r\n".join(["prompt;model_a;model_b;annotator;outcome;größe", *rows]).encode("cp1252"))
    call_command("preferences", "--comparisons", str(path), "--out", str(tmp_path))
    said = capsys.readouterr().err
    assert "further columns are passed over: größe" in said and "was read as Windows-1252" in said
    assert json.loads((tmp_path / "preferences.json").read_text())["judgements"] == 40


@pytest.mark.slow
def test_pearson_depends_on_which_model_is_called_a_and_the_uncentred_correlation_does_not(
    pandalm: dict[str, Path], tmp_path: Path
) -> None:
    said: dict[str, list[str]] = {}
    with pandalm["comparisons"].open(newline="") as file:
        for row in csv.DictReader(file):
            said.setdefault(row["prompt"], []).append(row["outcome"])
    second = {prompt for prompt, outcomes in said.items() if outcomes.count("b") >= 2}
    turned = {}
    for name, path in pandalm.items():
        turned[name] = tmp_path / path.name
        with path.open(newline="") as file, turned[name].open("w", newline="") as out:
            rows = list(csv.DictReader(file))
            writer = csv.DictWriter(out, list(rows[0]))
            writer.writeheader()
            for row in rows:
                if row["prompt"] in second:
                    row["model_a"], row["model_b"] = row["model_b"], row["model_a"]
                    row["outcome"] = {"a": "b", "b": "a"}.get(row["outcome"], row["outcome"])
                writer.writerow(row)
    call_command(
        *("preferences", "--comparisons", str(turned["comparisons"]), "--judgements", str(turned["judgements"])),
        *("--out", str(tmp_path)),
    )
    judge = json.loads((tmp_path / "preferences.json").read_text())["judges"]["gpt-3.5"]
    assert judge["pearson"] == pytest.approx(0.238, abs=5e-4)
    assert judge["uncentred"] == pytest.approx(0.5849, abs=5e-5)


# Laws


def study(seed: int = 0, *, models: int = 4, adaptive: bool = False) -> Judgements:
    world = PreferenceWorld(theta=spaced(models, 2.0), gamma=0.4, prompts=60)
    stages = [StagePlan(Uniform(), 30, models), StagePlan(EpsilonGreedy(0.2, 0.5), 12, 6)]
    return simulate(world, stages if adaptive else stages[:1], rng=np.random.default_rng(seed))


def test_changed_sides_change_the_sign_of_gamma_and_nothing_else() -> None:
    judged = study(adaptive=True)
    fit, other = bradley_terry.fit(judged), bradley_terry.fit(replace(judged, first=-judged.first))
    assert other.gamma == pytest.approx(-(fit.gamma or 0), abs=1e-9) and fit.gamma
    assert other.theta == pytest.approx(fit.theta, abs=1e-9)


def test_filing_every_comparison_twice_changes_no_strength_and_no_interval() -> None:
    judged = study()
    columns = ("prompt", "a", "b", "category", "person", "outcome", "value", "first", "probability", "chance")
    twice = replace(judged, **{name: np.tile(getattr(judged, name), 2) for name in columns})
    fit, other = bradley_terry.fit(judged, ridge=0), bradley_terry.fit(twice, ridge=0)
    assert other.theta == pytest.approx(fit.theta, abs=1e-8)
    assert other.covariance == pytest.approx(fit.covariance, rel=1e-6, abs=1e-10)


def test_which_reply_is_called_a_changes_nothing() -> None:
    judged = study()
    turned = replace(judged, a=judged.b, b=judged.a, outcome=-judged.outcome, value=-judged.value, first=-judged.first)
    assert bradley_terry.fit(turned).theta == pytest.approx(bradley_terry.fit(judged).theta, abs=1e-9)


def test_a_model_that_never_lost_stays_finite_by_the_ridge_and_is_refused_without_it() -> None:
    judged = study()
    best = np.where(judged.a == 0, 1, judged.outcome)
    judged = replace(judged, outcome=best)
    fit = bradley_terry.fit(judged)
    assert np.isfinite(fit.theta).all() and fit.unbeaten == ("model 1",)
    with pytest.raises(bradley_terry.NoRanking, match="model 1: never lost or never won"):
        bradley_terry.fit(judged, ridge=0)


def test_models_that_were_never_compared_are_refused_together() -> None:
    judged = study()
    apart = judged.where((judged.a < 2) == (judged.b < 2))
    with pytest.raises(bradley_terry.NoRanking, match=r"model 3, model 4: never compared with model 1"):
        bradley_terry.fit(apart)


def test_a_side_that_always_wins_or_goes_with_the_models_is_left_out_and_said() -> None:
    judged = study()
    plain = bradley_terry.fit(judged, side=False)
    always = replace(judged, outcome=judged.first)
    assert bradley_terry.fit(always).gamma is None
    assert "side won in all judgements" in bradley_terry.fit(always).side_lost
    fixed = replace(judged, first=np.where(judged.a < judged.b, 1, -1))
    two = fixed.where((np.minimum(fixed.a, fixed.b) == 0) & (np.maximum(fixed.a, fixed.b) == 1))
    fit = bradley_terry.fit(two)
    assert fit.gamma is None and "nothing tells the side bias from their strengths" in fit.side_lost
    assert fit.theta[0] > fit.theta[1] == pytest.approx(-fit.theta[0])
    assert bradley_terry.fit(judged).side_lost == plain.side_lost == ""
    for odd in (always, two):
        analysis = analyse(Material(odd), AnalysisSettings(each_answer=True), rng=np.random.default_rng(0))
        assert any("the strengths are fitted without it" in note for note in analysis.notes)


@pytest.mark.parametrize("verdict", ["unreadable", "tie", "a", "first"])
def test_a_judge_that_says_nothing_stops_no_report(verdict: str, tmp_path: Path) -> None:
    people = [f"p{number},owl,raven,x{number % 4},{'ab'[number % 3 == 0]}" for number in range(40)]
    (tmp_path / "c.csv").write_text("\n".join(["prompt,model_a,model_b,annotator,outcome", *people]) + "\n")
    said = [
        f"p{number},owl,raven,j,{first if verdict == 'first' else verdict},{first}"
        for number in range(40)
        for first in "ab"
    ]
    (tmp_path / "j.csv").write_text("\n".join(["prompt,model_a,model_b,judge,outcome,first", *said]) + "\n")
    files = ("--comparisons", str(tmp_path / "c.csv"), "--judgements", str(tmp_path / "j.csv"))
    call_command("preferences", *files, "--out", str(tmp_path))
    written = json.loads((tmp_path / "preferences.json").read_text())
    judge = written["judges"]["j"]
    assert ("j" in written["side"]) == (verdict != "unreadable")
    assert judge["items"] == 40 and judge["unreadable"] == (80 if verdict == "unreadable" else 0)


def compared(folder: Path, rows: list[str], *judged: str, header: str = "", out: Path | None = None) -> dict[str, Any]:
    comparisons, judgements = folder / "c.csv", folder / "j.csv"
    comparisons.write_text("\n".join([header or "prompt,model_a,model_b,annotator,outcome", *rows]) + "\n")
    judgements.write_text("\n".join(["prompt,model_a,model_b,judge,outcome", *judged]) + "\n")
    files = ["--comparisons", str(comparisons), *(["--judgements", str(judgements)] if judged else [])]
    call_command("preferences", *files, "--out", str(folder))
    figures: dict[str, Any] = json.loads((folder / "preferences.json").read_text())
    return figures


def places_of(folder: Path, by: str = "people") -> dict[str, str]:
    with (folder / "ranking.csv").open(newline="") as file:
        return {row["model"]: row["place"] for row in csv.DictReader(file) if row["by"] == by and not row["category"]}


def test_equally_strong_models_share_a_place_and_nobody_is_first(tmp_path: Path, capsys: Any) -> None:
    pairs = [("A", "B"), ("B", "C"), ("A", "C")]
    rows = [f"p{k}{a}{b},{a},{b},x{k},tie" for k in range(5) for a, b in pairs]
    compared(tmp_path, rows)
    said = capsys.readouterr().out
    assert "Nobody is first: A, B, C are equally strong." in said and "First is" not in said
    assert places_of(tmp_path) == {"A": "1", "B": "1", "C": "1"}
    compared(tmp_path, [f"p{k}{a}{b},{a},{b},x{k},{'b' if b == 'C' else 'tie'}" for k in range(5) for a, b in pairs])
    assert places_of(tmp_path) == {"C": "1", "A": "2", "B": "2"}
    assert "First is C" in capsys.readouterr().out


def test_verdicts_that_could_not_be_read_rank_nobody(tmp_path: Path, capsys: Any) -> None:
    rows = [f"p{k},A,B,x{k % 3},{'ab'[k % 2]}" for k in range(20)]
    figures = compared(tmp_path, rows, *(f"p{k},A,B,j,unreadable" for k in range(20)))
    judge = figures["judges"]["j"]
    assert (judge["accuracy"], judge["unreadable"]) == (0, 20)
    assert judge["log_score"] is None and judge["reliability"] == judge["assisted"] == []
    assert places_of(tmp_path, "j") == {} and "j: none of its 20 verdicts could be read" in capsys.readouterr().err
    some = [f"p{k},A,B,j,{'a' if k < 12 else 'b' if k < 15 else 'unreadable'}" for k in range(20)]
    with_them = compared(tmp_path, rows, *some)["bradley_terry"]["j"]
    without = compared(tmp_path, rows, *some[:15])["bradley_terry"]["j"]
    assert with_them == without


def test_a_judge_is_introduced_by_the_figure_that_no_name_decides(tmp_path: Path, capsys: Any) -> None:
    # The better reply is always called A, so that neither side varies much; the judge is right in nine of ten.
    rows = [f"p{k},A,B,x{k % 3},{'b' if k % 10 == 9 else 'a'}" for k in range(40)]
    judge = compared(tmp_path, rows, *(f"p{k},A,B,j,{'b' if k % 10 == 8 else 'a'}" for k in range(40)))["judges"]["j"]
    assert judge["pearson"] < 0 < judge["uncentred"]
    (line,) = [
        splitline for splitline in capsys.readouterr().out.splitlines() if splitline.startswith("j: accuracy 0.800")
    ]
    assert f"uncentred correlation {judge['uncentred']:.3f}" in line


def test_lengths_of_prompts_are_those_of_texts_and_never_of_names(tmp_path: Path, capsys: Any) -> None:
    header = "prompt,model_a,model_b,annotator,outcome,reply_a,reply_b"
    rows = [f"17{k},A,B,x{k},a,one two,three" for k in range(12)]
    figures = compared(tmp_path, rows, header=header)
    assert "prompts" not in [entry["what"] for entry in figures["lengths"]]
    assert "give the texts as prompt_text" in capsys.readouterr().err
    texts = compared(tmp_path, [f"{row},one two three" for row in rows], header=f"{header},prompt_text")
    assert texts["lengths"][0] == {**texts["lengths"][0], "what": "prompts", "count": 12, "mean": 3.0}


@pytest.mark.slow
def test_adaptive_studies_with_known_strengths_are_covered() -> None:
    """60 studies with fixed seeds; benchmarks/preference_laws.py has 2,000 of each design."""
    world = PreferenceWorld(theta=spaced(4, 2.0), gamma=0.4, prompts=60)
    stages = [StagePlan(Uniform(), 15, 8), StagePlan(EpsilonGreedy(0.2, 0.5), 15, 8)]
    inside, n = 0, 0
    for seed in range(60):
        fit = bradley_terry.fit(simulate(world, stages, rng=np.random.default_rng([7, seed])))
        gaps = [(fit.difference(index, index + 1), world.theta[index] - world.theta[index + 1]) for index in range(3)]
        for gap, truth in [*gaps, (fit.side, world.gamma)]:
            inside += (gap.low or 0) <= truth <= (gap.high or 0)
            n += 1
    assert 0.90 <= inside / n <= 0.98


def test_the_population_of_a_world_without_differences_is_its_own_truth() -> None:
    world = PreferenceWorld(theta=spaced(5, 3.0), gamma=-0.2, prompts=9)
    theta, gamma = population(world)
    assert theta == pytest.approx(world.theta, abs=1e-9) and gamma == pytest.approx(-0.2, abs=1e-9)
    wider = population(replace(world, prompt_sd=1.0))[0]
    assert 0 < wider[0] < world.theta[0]


def test_a_judge_of_noise_leaves_the_assisted_win_rate_unbiased_and_saves_nothing() -> None:
    rng = np.random.default_rng(5)
    truth = 1 / (1 + np.exp(-2.0))
    errors, saved = [], []
    for seed in range(60):
        judged = simulate(
            PreferenceWorld(theta=np.array([1.0, -1.0]), gamma=0.0, prompts=400),
            [StagePlan(Uniform(), 20, 5)],
            rng=np.random.default_rng([11, seed]),
        )
        chances = rng.random(400)
        keys = {int((prompt * 2 + 0) * 2 + 1): float(chances[prompt]) for prompt in range(400)}
        (win_rate,) = judging.assisted(judged, keys, universe={(0, 1): chances})
        errors.append(win_rate.assisted.value - truth)
        saved.append(win_rate.saved or 0)
    assert abs(np.mean(errors)) < 3 * np.std(errors) / np.sqrt(len(errors))
    assert -2 < np.mean(saved) < 0


def test_information_is_greatest_where_least_is_known() -> None:
    theta, spread = np.zeros(3), np.diag([0.1, 0.1, 2.0])
    gains = information(theta, spread, np.array([0, 0]), np.array([1, 2]))
    assert gains[1] > gains[0] == pytest.approx(0.5 * np.log1p(0.25 * 0.2))


def test_elo_is_a_mean_over_orders_that_keeps_the_sum() -> None:
    ratings = elo(study(), rng=np.random.default_rng(1))
    assert ratings.orders == 500 and ratings.rating.mean() == pytest.approx(1000)
    assert list(np.argsort(-ratings.rating)) == [0, 1, 2, 3] and (ratings.deviation > 0).all()


def test_two_way_errors_of_rows_without_people_are_those_of_prompts() -> None:
    rng = np.random.default_rng(2)
    influence, prompt = rng.normal(size=(200, 1)), np.arange(200) // 4
    clusters = influence.reshape(50, 4).sum(axis=1)
    expected = (clusters**2).sum() * 50 / 49
    assert bandit.clustered_covariance(influence, np.arange(200), prompt)[0, 0] == pytest.approx(expected)


def test_an_interval_of_a_share_is_wilsons_for_answers_that_share_nothing() -> None:
    alone = np.arange(20)
    share = share_figure(np.r_[np.ones(17), np.zeros(3)], np.ones(20), person=alone, prompt=alone)
    assert (share.low, share.high) == pytest.approx((0.6396, 0.9476), abs=1e-4)  # Textbook value for 17 of 20.
    every = share_figure(np.ones(20), np.ones(20), person=alone, prompt=alone)
    assert every.high == 1 and every.low == pytest.approx(20 / (20 + 1.96**2), abs=1e-4)
    people = share_figure(np.r_[np.ones(17), np.zeros(3)], np.ones(20), person=alone // 5, prompt=alone)
    assert (people.low or 0) < (share.low or 0) and (people.high or 0) > (share.high or 0)
    assert share_figure(np.ones(20), np.ones(20), person=alone, prompt=alone % 2).low is None  # Two prompts.


def test_a_share_of_heavy_answers_is_less_certain_and_ties_make_it_more_so() -> None:
    alone, values = np.arange(20), np.tile([1.0, 0.0], 10)
    width = [
        (share.high or 0) - (share.low or 0)
        for share in (
            share_figure(np.full(20, 0.5), np.ones(20), person=alone, prompt=alone),
            share_figure(values, np.ones(20), person=alone, prompt=alone),
            share_figure(values, np.r_[np.full(18, 0.1), 1, 1], person=alone, prompt=alone),
        )
    ]
    assert width[0] <= width[1] + 1e-9 and width[2] > 1.5 * width[1]


def test_what_is_known_of_how_items_differ_is_taken_off_where_all_of_them_were_asked() -> None:
    rng = np.random.default_rng(5)
    own = rng.random(200) < 0.7
    item = np.repeat(np.arange(200), 2)
    values, weight, chance = own[item].astype(float), np.ones(400), np.full(400, 0.6)
    whole = hajek(values=values, probability=weight, cluster=np.arange(400), item=item)
    reduced = judging.of_these_items(whole, values, weight, item, chance, items=200)
    assert reduced.standard_error < 0.2 * whole.standard_error  # People agree on every item: nothing else is uncertain.
    some = judging.of_these_items(whole, values, weight, item, chance, items=20_000)
    assert some.standard_error == pytest.approx(whole.standard_error, rel=0.01)
    noise = (rng.random(400) < 0.7).astype(float)
    estimate = hajek(values=noise, probability=weight, cluster=np.arange(400), item=item)
    assert judging.of_these_items(estimate, noise, weight, item, chance, items=200).standard_error == pytest.approx(
        estimate.standard_error, rel=0.1
    )
    once = judging.of_these_items(estimate, noise, weight, np.arange(400), chance, items=200)
    assert once == estimate  # Nobody answered what another did, and the judge's chance is the same everywhere.


def test_people_who_differ_from_item_to_item_have_one_pooled_kappa() -> None:
    judged = simulate(
        PreferenceWorld(theta=spaced(3, 3.0), gamma=0.0, prompts=40),
        [StagePlan(Uniform(), 30, 8, responses_per_item=3)],
        rng=np.random.default_rng(3),
    )
    agreement = of_people(judged)
    kappa, alpha = agreement.kappas[0].kappa, agreement.alpha
    assert agreement.pooled and agreement.kappas[0].n == 240 and kappa.value is not None and alpha.value is not None
    assert alpha.value == pytest.approx(kappa.value, abs=0.02)
    assert (kappa.low or 0) < kappa.value < (kappa.high or 0) and (alpha.low or 0) < alpha.value < (alpha.high or 0)


def test_alpha_is_that_of_the_units_for_every_number_of_answers_and_weight() -> None:
    rng = np.random.default_rng(8)
    answers = rng.integers(1, 5, 60)
    unit = np.repeat(np.arange(60), answers)
    judged = study(models=2)
    judged = judged.where(np.arange(len(unit)) % judged.n)
    value, weight = rng.integers(0, 8, len(unit)) - 3.5, rng.uniform(0.2, 1, 60)
    judged = replace(
        judged,
        prompt=unit,
        prompts=tuple(map(str, range(60))),
        a=np.zeros(len(unit), dtype=int),
        b=np.ones(len(unit), dtype=int),
        value=value,
        outcome=np.where(value > 0, 1, -1),
        person=np.arange(len(unit)),
        probability=np.ones(len(unit)),
    )
    counts = np.zeros((60, 8))
    np.add.at(counts, (unit, (value + 3.5).astype(int)), 1)
    several = answers >= 2
    (expected,) = alphas(counts[several], np.ones((1, several.sum())), level="ordinal")
    assert of_people(judged).alpha.value == pytest.approx(float(expected), abs=1e-12)
    weighted = of_people(replace(judged, probability=1 / weight[unit] / 10)).alpha.value or 0
    (expected,) = alphas(counts[several], weight[None, several], level="ordinal")
    assert weighted == pytest.approx(float(expected), abs=0.01)  # Apart from the correction for few answers.


def test_pairs_of_answers_that_share_a_person_go_together() -> None:
    rng = np.random.default_rng(3)
    prompt, influence = np.arange(300), rng.normal(size=300)
    others = 1000 + np.arange(300)
    nobody_twice = pair_variance(influence, people=(others, others + 1000), prompt=prompt)
    assert nobody_twice == pytest.approx((influence**2).sum() * 300 / 299, rel=0.01)
    same = pair_variance(np.ones(300), people=(np.arange(300) % 3, others), prompt=prompt)
    assert same > 50 * pair_variance(np.ones(300), people=(others, others + 1000), prompt=prompt)


def test_every_printed_figure_is_in_the_json_and_none_is_infinite(tmp_path: Path) -> None:
    judged = study(models=3)
    judge = replace(judged, person=np.arange(judged.n), chance=np.where(judged.outcome > 0, 1.0, 0.2))
    analysis = analyse(
        Material(people=judged, judges={"j": judge}), AnalysisSettings(each_answer=True), rng=np.random.default_rng(0)
    )
    from survey.instruments.preference.reports.tables import as_json, report_result

    json.dumps(as_json(analysis), allow_nan=False)
    result = report_result(analysis, title="t")
    assert {table.name for table in result.tables} >= {
        "ranking",
        "sides",
        "wins",
        "judges",
        "reliability",
        "assisted",
    }
    for picture in result.pictures:
        picture.draw(tmp_path / "one.svg")
        assert not re.search(r"\bnan\b", (tmp_path / "one.svg").read_text())


# Files


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit):
        call_command("preferences", *arguments)
    return capsys.readouterr().err


def row_of(kind: type[TableRow], folder: Path, **cells: str) -> tuple[Any, set[str]]:
    """The row of a file that has this one alone, and the columns in which something is wrong."""
    file, problems = folder / "rows.csv", Problems()
    file.write_text(f"{','.join(cells)}\n{','.join(cells.values())}\n")
    rows = list(read_rows(kind, file, problems))
    return (rows or [None])[0], {problem.field for problem in problems.found}


VERDICT = {"prompt": "p", "model_a": "x", "model_b": "y", "judge": "j", "outcome": "a"}


@pytest.mark.parametrize(
    ("kind", "column", "right", "wrong"),
    [
        (VerdictRow, "chance_a", ("0", "1", ""), ("-0.01", "1.01", "half")),
        (VerdictRow, "rating_a", ("-3.5", "3.5", ""), ("-3.6", "3.6")),
        (VerdictRow, "judge", ("j" * 120,), ("j" * 121, "")),
        (VerdictRow, "template", ("t" * 40, ""), ("t" * 41,)),
        (VerdictRow, "template_version", ("v" * 20, ""), ("v" * 21,)),
        (VerdictRow, "outcome", ("a", "B", "tie", "unreadable"), ("better",)),
        (VerdictRow, "first", ("a", "b", ""), ("c",)),
        (VerdictRow, "model_b", ("y",), ("x", "")),
        (ComparisonRow, "outcome", ("a", "b", "tie", ""), ("unreadable",)),
        (ComparisonRow, "probability", ("0.001", "1", ""), ("0", "1.01")),
    ],
)
def test_a_cell_is_taken_up_to_its_limits(
    kind: type[TableRow], column: str, right: tuple[str, ...], wrong: tuple[str, ...], tmp_path: Path
) -> None:
    cells = {name: text for name, text in VERDICT.items() if name in kind.columns()}
    for text in right:
        row, columns = row_of(kind, tmp_path, **{**cells, column: text})
        assert row is not None and columns == set(), text
    for text in wrong:
        assert row_of(kind, tmp_path, **{**cells, column: text})[1] == {column}, text


@pytest.mark.parametrize(
    ("outcome", "rating", "code", "value"),
    [
        ("a", "", A, A),
        ("b", "", B, B),
        ("tie", "", TIE, TIE),
        ("unreadable", "", UNREADABLE, 0.0),
        ("", "2.5", A, 2.5),
        ("", "-0.5", B, -0.5),
        ("", "0", TIE, 0.0),
        ("tie", "0.5", TIE, 0.5),
        ("b", "0.5", A, 0.5),  # Where there is a rating, its sign says the outcome.
    ],
)
def test_a_rating_says_the_outcome_but_for_a_tie(
    outcome: str, rating: str, code: int, value: float, tmp_path: Path
) -> None:
    row, _columns = row_of(VerdictRow, tmp_path, **{**VERDICT, "outcome": outcome, "rating_a": rating})
    assert (row.code, row.value, row.chance_a, row.first) == (code, value, None, 0)
    assert row.models == ("x", "y")


def test_problems_of_both_files_are_named_with_their_lines(tmp_path: Path, capsys: Any) -> None:
    comparisons, judgements = tmp_path / "c.csv", tmp_path / "j.csv"
    comparisons.write_text(
        "prompt,model_a,model_b,annotator,outcome,rating_a,first\np,x,y,1,better,,\np,x,x,1,a,,\np,x,y,2,,9,z\n"
    )
    told = refused(capsys, "--comparisons", str(comparisons))
    assert "2: outcome: is 'better': write a, b or tie, or a rating in rating_a" in told
    assert "3: model_b: is 'x', as model_a" in told and "4: rating_a: is '9'" in told and "4: first: is 'z'" in told
    comparisons.write_text("prompt,model_a,model_b,annotator,outcome\np,x,y,1,a\nq,y,x,1,b\n")
    judgements.write_text("prompt,model_a,model_b,judge,outcome\nr,x,y,j,a\np,x,w,j,a\n")
    told = refused(capsys, "--comparisons", str(comparisons), "--judgements", str(judgements))
    assert "2: prompt: the prompt 'r' of this judgement stands in no comparison" in told
    assert "3: prompt: the model 'w' of this judgement stands in no comparison" in told


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "give a study's SLUG or --comparisons FILE"),
        (["s", "--comparisons", "f"], "not both"),
        (["--comparisons", "f", "--ridge", "-1"], "--ridge: '-1' is not a number from 0"),
        (["--comparisons", "f", "--ridge", "1000.5"], "--ridge: '1000.5' is not a number from 0 to 1000"),
        (["--comparisons", "f", "--tie", "5"], "--tie: '5' is neither"),
        (["--comparisons", "f", "--question", "x"], "question: only with a study"),
        (["s", "--judgements", "f"], "only with --comparisons"),
        (["s", "--each-answer"], "only with --comparisons"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(arguments: list[str], said: str, capsys: Any) -> None:
    assert said in refused(capsys, *arguments)


def test_what_the_command_is_asked_is_what_is_fitted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[AnalysisSettings] = []

    def fitted(_material: Material, settings: AnalysisSettings, *, rng: Any) -> Analysis:
        asked.append(settings)
        raise bradley_terry.NoRanking("that is enough")

    monkeypatch.setattr(preferences, "analyse", fitted)
    (tmp_path / "c.csv").write_text("prompt,model_a,model_b,annotator,outcome\np,x,y,1,a\n")
    for options in (["--no-side", "--ridge", "0.3"], ["--each-answer", "--tie", "4-5", "--ridge", "1000"]):
        with pytest.raises(SystemExit):
            call_command("preferences", "--comparisons", str(tmp_path / "c.csv"), *options)
    assert asked == [
        AnalysisSettings(side=False, ridge=0.3),
        AnalysisSettings(each_answer=True, tie="4-5", ridge=1000),
    ]


def people_and_judge() -> tuple[Judgements, Judgements]:
    """People who differ, and a judge that states chances and shows its replies in either order."""
    plans = [StagePlan(Uniform(), people=10, items=6)]
    people = simulate(PreferenceWorld(theta=spaced(2, 1.0), gamma=0.0, prompts=90), plans, rng=np.random.default_rng(1))
    rng = np.random.default_rng(2)
    return people, replace(people, chance=rng.uniform(0.1, 0.9, people.n), person=np.zeros(people.n, dtype=np.int64))


def test_which_reply_a_judge_calls_a_changes_no_figure() -> None:
    people, judge = people_and_judge()
    turned = replace(
        judge,
        a=judge.b,
        b=judge.a,
        outcome=np.where(np.isin(judge.outcome, (1, -1)), -judge.outcome, judge.outcome),
        value=-judge.value,
        first=-judge.first,
        chance=1 - judge.chance,
    )
    comparisons = []
    for own_judge in (judge, turned):
        compared = judging.compare(people, own_judge)
        assert compared is not None
        comparisons.append(judging.figures(compared, judge))
        assert 1 < (comparisons[-1].log_score.value or 0) < 2
        assert comparisons[-1].side.low is not None  # Its verdicts are of one judge, and its prompts vary.
    assert (
        comparisons[1].log_score == pytest.approx(comparisons[0].log_score)
        and comparisons[0].accuracy == comparisons[1].accuracy
    )
    assert comparisons[1].uncentred.value == pytest.approx(comparisons[0].uncentred.value)


def test_nobodys_own_answers_make_the_chance_that_is_fitted_for_their_prompt() -> None:
    rng = np.random.default_rng(7)
    rating, prompt, row_item = rng.normal(size=60), np.repeat(np.arange(20), 3), np.repeat(np.arange(60), 4)
    win = (rng.random(240) < 1 / (1 + np.exp(-rating[row_item]))).astype(float)
    before = judging.cross_fitted(rating, prompt, win, row_item)
    moved = []
    for turned in range(20):
        own = prompt == turned
        after = judging.cross_fitted(rating, prompt, np.where(own[row_item], 1 - win, win), row_item)
        assert after[own] == pytest.approx(before[own], abs=1e-12)
        moved.append(np.abs(after - before).max())
    # Where as many answers are turned one way as the other, nothing moves.
    assert np.median(moved) > 0.01


def test_a_log_score_of_fitted_chances_has_no_interval_where_items_weigh_unequally() -> None:
    """What the fit adds is not known there, and an interval without it holds too seldom."""
    plans = [StagePlan(Uniform(), people=10, items=6)]
    people = simulate(PreferenceWorld(theta=spaced(2, 1.0), gamma=0.0, prompts=90), plans, rng=np.random.default_rng(1))
    plain = replace(people, probability=np.full(people.n, 0.5))
    weighed = replace(people, probability=np.where(people.prompt % 2 == 0, 0.3, 0.9))
    stated = replace(plain, chance=np.full(people.n, 0.6))

    def score(asked: Judgements, judge: Judgements) -> Any:
        compared = judging.compare(asked, judge)
        assert compared is not None
        return judging.figures(compared, judge).log_score

    assert score(plain, plain).low is not None and score(weighed, stated).low is not None
    withheld = score(weighed, plain)
    assert withheld.value is not None and withheld.low is None and withheld.high is None


# By hand


def judgements(rows: list[dict[str, Any]], *, prompts: int = 20, models: int = 2) -> Judgements:
    """One a row, by default of person 0 on the first two models, asked with certainty."""
    values = [{"a": 0, "b": 1, "person": 0, "first": 0, "probability": 1.0, "chance": np.nan, **row} for row in rows]
    for value in values:
        value.setdefault("value", {1: 1.0, -1: -1.0}.get(value["outcome"], 0.0))
    whole = {
        name: np.array([value[name] for value in values]) for name in ("prompt", "a", "b", "person", "outcome", "first")
    }
    parts = {
        name: np.array([value[name] for value in values], dtype=float) for name in ("value", "probability", "chance")
    }
    return Judgements(
        models=tuple(f"m{number}" for number in range(models)),
        prompts=tuple(map(str, range(prompts))),
        category=np.array([""] * len(rows)),
        **whole,
        **parts,
    )


def test_what_an_item_got_is_what_more_than_half_say_with_the_share_for_a() -> None:
    said = [(1, -1), (1, 1, -1), (1, 0), (2, 2, 1), (0, 0, -1)]
    rows = [{"prompt": prompt, "outcome": outcome} for prompt, outcomes in enumerate(said) for outcome in outcomes]
    items = JudgedItems.of(judgements(rows))
    assert items.outcome.tolist() == [0, 1, 0, 2, 0]
    assert items.share == pytest.approx([0.5, 2 / 3, 0.75, 2 / 3, 1 / 3]) and items.n.tolist() == [2, 3, 2, 3, 3]


def test_items_weigh_by_their_chance_and_not_by_their_answers_where_a_judge_is_compared() -> None:
    """Right on the five items that were asked with a chance of a quarter, wrong on the other five, two of which have
    three answers each."""
    rows = [{"prompt": n, "outcome": 1, "probability": 0.25 if n < 5 else 1.0, "person": n} for n in range(10)]
    rows += [{"prompt": n, "outcome": 1, "person": person} for n in (8, 9) for person in (1, 2)]
    judge = judgements(
        [{"prompt": n, "outcome": 1 if n < 5 else -1, "chance": 0.5 if n < 5 else 0.25} for n in range(10)]
    )
    comparison = judging.compare(judgements(rows), judge)
    assert comparison is not None
    figures = judging.figures(comparison, judge)
    assert figures.accuracy.value == pytest.approx(20 / 25)
    assert figures.log_score.value == pytest.approx((20 * 1 + 5 * 2) / 25)
    assert judging.compare(judgements(rows), judge.where(np.arange(9))) is None  # Nine items are too few.


def test_two_orders_that_agree_are_those_with_the_same_sign_and_both_readable() -> None:
    verdicts = [(1, 1), (1, -1), (0, 0), (1, 2), (1, None)]
    rows = [
        {"prompt": prompt, "outcome": outcome, "first": first}
        for prompt, both in enumerate(verdicts)
        for first, outcome in zip((1, -1), both, strict=True)
        if outcome is not None
    ]
    orders = judging._orders(judgements(rows))
    assert orders["both_orders"] == 3 and orders["orders"].value == pytest.approx(2 / 3)


def test_a_verdict_is_the_mean_of_its_orders_and_middle_places_are_ties_where_the_study_says_so() -> None:
    rows = [{"prompt": 0, "outcome": 1, "value": 0.5}, {"prompt": 0, "outcome": 1, "value": 0.5}]
    rows += [{"prompt": 1, "outcome": 1, "value": 0.5}, {"prompt": 1, "outcome": -1, "value": -1.5}]
    rows += [{"prompt": 2, "outcome": 2}, {"prompt": 2, "outcome": -1, "value": -2.5}]
    rows += [{"prompt": 3, "outcome": 2}]
    judge = judgements(rows)
    keys = np.unique(judge.key)
    assert judging._verdicts(judge, keys).tolist() == [1, -1, -1, 2]
    assert judging._verdicts(judge.with_ties("4-5"), keys).tolist() == [0, -1, -1, 2]


def test_a_left_out_person_and_the_judge_are_held_against_the_same_others() -> None:
    rng = np.random.default_rng(3)
    values = rng.integers(-3, 4, (12, 3)) + 0.5
    rows = [
        {
            "prompt": n,
            "outcome": 1 if values[n, who] > 0 else -1,
            "value": values[n, who],
            "person": who,
            "probability": 0.25 if n % 2 else 1.0,
        }
        for n in range(12)
        for who in range(3 if n else 1)  # The first item has one answer, and no others to be held against.
    ]
    ratings = rng.integers(-3, 4, 12) + 0.5
    judge = judgements(
        [{"prompt": n, "outcome": 1 if rating > 0 else -1, "value": rating} for n, rating in enumerate(ratings)]
    )
    comparison = judging.compare(judgements(rows), judge)
    assert comparison is not None
    person, machine = judging._ceiling(comparison)
    others = (values[1:].sum(axis=1, keepdims=True) - values[1:]) / 2
    weight = np.repeat([4.0 if n % 2 else 1.0 for n in range(1, 12)], 3)

    def correlation(x: np.ndarray) -> float:
        both = np.cov(x, others.ravel(), aweights=weight)
        return float(both[0, 1] / np.sqrt(both[0, 0] * both[1, 1]))

    assert person.value == pytest.approx(correlation(values[1:].ravel()))
    assert machine.value == pytest.approx(correlation(np.repeat(ratings[1:], 3)))


def test_an_assisted_win_rate_takes_off_what_the_asked_items_have_too_much_of_the_judge() -> None:
    rng = np.random.default_rng(4)
    pairs = [(0, 1), (0, 2), (1, 2)]
    chance = rng.uniform(0.2, 0.8, (20, 3))
    rows = [
        {
            "prompt": n,
            "a": a,
            "b": b,
            "outcome": int(rng.choice([1, -1])),
            "person": n % 12,
            "probability": 0.2 if n % 3 else 0.8,
        }
        for n in range(15)
        for a, b in pairs
    ]
    # People and the judge agree about the first pair.
    for row in rows:
        if (row["a"], row["b"]) == (0, 1):
            row["outcome"] = 1 if chance[row["prompt"], 0] > 0.5 else -1
    people = judgements(rows, models=3)
    of_pair = [pairs.index((row["a"], row["b"])) for row in rows]
    predictions = {
        key: chance[row["prompt"], pair] for key, row, pair in zip(people.key.tolist(), rows, of_pair, strict=True)
    }
    universe = {pair: chance[:, number] for number, pair in enumerate(pairs)}
    win_rates = judging.assisted(people, predictions, universe=universe)
    assert [(win_rate.model, win_rate.other) for win_rate in win_rates] == [("m0", "m1"), ("m0", "m2"), ("m1", "m2")]
    for pair, win_rate in enumerate(win_rates):
        own = people.where(np.array(of_pair) == pair)
        known, weight, item = chance[:15, pair], 1 / own.probability, np.arange(15)
        assert (win_rate.answers, win_rate.items) == (15, 20)
        assert win_rate.people.value == pytest.approx(np.average(own.win, weights=weight))
        sample = {"cluster": own.person, "predictions": known, "prediction_means": [chance[:, pair].mean()]}
        fitted = assist(values=own.win, stratum=np.zeros(15, dtype=int), weight=weight, **sample)
        assert (win_rate.coefficient, win_rate.withheld) == (pytest.approx(fitted.coefficient[0]), fitted.withheld)
        assert win_rate.coefficient > 0.5 if pair == 0 else win_rate.withheld.startswith("the predictions tell no more")
        added = np.average(own.win - fitted.adjustment, weights=weight)
        assert win_rate.assisted.value == pytest.approx(added)
        # Answers of one person hang together, and the judge is worth so many answers as it makes errors smaller.
        alone = hajek(values=own.win, probability=own.probability, cluster=own.person)
        alone = judging.of_these_items(alone, own.win, weight, item, known, items=20)
        assert win_rate.people.standard_error == pytest.approx(alone.standard_error)
        helped = hajek(values=own.win, probability=own.probability, cluster=own.person, adjustment=fitted.adjustment)
        helped = judging.of_these_items(helped, own.win - fitted.adjustment, weight, item, known, items=20)
        assert win_rate.assisted.standard_error == pytest.approx(helped.standard_error)
        assert win_rate.saved == pytest.approx(15 * (alone.standard_error**2 / helped.standard_error**2 - 1))


def test_what_single_answers_add_stays_however_few_items_there_are() -> None:
    """Three items with two answers each: 1 and 1, 0 and 0, 1 and 0. A third of the variance is between items."""
    values, item, weight = np.array([1.0, 1, 0, 0, 1, 0]), np.repeat(np.arange(3), 2), np.ones(6)
    whole = hajek(values=values, probability=weight, cluster=np.arange(6))
    reduced = judging.of_these_items(whole, values, weight, item, np.full(6, 0.5), items=1)
    assert reduced.standard_error**2 == pytest.approx((0.25 - 0.25 / 3) / 6)


def test_ties_are_half_a_win_each_where_chances_are_fitted() -> None:
    zeros = np.zeros(40)
    assert judging.fitted(zeros, np.full(40, 0.5), np.zeros(1)) == pytest.approx([0.5], abs=0.01)
    mixed = np.where(np.arange(40) < 20, 1.0, 0.5)
    assert judging.fitted(zeros, mixed, np.zeros(1)) == pytest.approx([0.75], abs=0.01)


def test_kappa_and_rank_correlation_weigh_items_by_their_chance() -> None:
    said = [1, 1, 1, 1, -1, -1, -1, -1, 1, -1, 1, -1]
    verdict = [1, 1, -1, 1, -1, -1, 1, -1, -1, -1, 1, 1]
    human = [3.5, 2.5, 1.5, 0.5, -0.5, -1.5, -2.5, -3.5, 0.5, -0.5, 1.5, -1.5]
    rating = [0.5, 3.5, -0.5, 1.5, -0.5, -3.5, 0.5, -0.5, -1.5, -0.5, 2.5, 0.5]
    weight = np.array([4.0] * 4 + [1.0] * 8)
    people = judgements(
        [
            {"prompt": n, "outcome": said[n], "value": human[n], "person": n, "probability": 1 / weight[n]}
            for n in range(12)
        ]
    )
    judge = judgements([{"prompt": n, "outcome": verdict[n], "value": rating[n]} for n in range(12)])
    comparison = judging.compare(people, judge)
    assert comparison is not None
    figures = judging.figures(comparison, judge)
    share = weight / weight.sum()
    agree = float(share @ (np.array(said) == np.array(verdict)))
    a, b = float(share @ (np.array(said) > 0)), float(share @ (np.array(verdict) > 0))
    chance = a * b + (1 - a) * (1 - b)
    assert figures.kappa.value == pytest.approx((agree - chance) / (1 - chance))
    ranked = np.cov(bandit.ranks(human), bandit.ranks(rating), aweights=weight)
    assert figures.spearman.value == pytest.approx(ranked[0, 1] / np.sqrt(ranked[0, 0] * ranked[1, 1]))
    plain = np.cov(human, rating, aweights=weight)
    assert figures.pearson.value == pytest.approx(plain[0, 1] / np.sqrt(plain[0, 0] * plain[1, 1]))


def test_parts_of_a_judges_chances_have_ten_items_or_more_in_their_order() -> None:
    people = judgements([{"prompt": n, "outcome": 1 if n >= 12 else -1, "person": n} for n in range(24)], prompts=24)
    judge = judgements([{"prompt": n, "outcome": 1, "chance": (n + 1) / 25} for n in range(24)], prompts=24)
    comparison = judging.compare(people, judge)
    assert comparison is not None
    low, high = judging.reliability(comparison)
    assert (low.items, high.items, low.share, high.share) == (12, 12, 0, 1)
    assert (low.chance, high.chance) == pytest.approx((6.5 / 25, 18.5 / 25))


def test_elo_ranks_and_bits_are_those_of_the_textbook() -> None:
    ratings = elo(judgements([{"prompt": 0, "outcome": 1}], models=3), rng=np.random.default_rng(1))
    assert ratings.rating[:2].tolist() == [1008, 992] and np.isnan(ratings.rating[2]) and ratings.deviation[0] == 0
    again = elo(judgements([{"prompt": n, "outcome": 1} for n in range(2)]), rng=np.random.default_rng(1))
    assert again.rating[0] == pytest.approx(1008 + 16 * (1 - 1 / (1 + 10 ** (-16 / 400))))
    assert bandit.ranks([3.0, 1.0, 3.0, 9.0]).tolist() == [2.5, 1, 2.5, 4]
    bits = judging.log_scores(np.array([0.25, 0.25, 0.25, 0.0]), np.array([1.0, 0.0, 0.5, 1.0]))
    assert bits == pytest.approx([2, -np.log2(0.75), 1 - np.log2(0.75) / 2, np.inf])


def test_style_is_towards_a_and_counts_words_and_marks() -> None:
    ratio, marked, listed = style_of("One, two.", "**Bold** words here, and\n- a list")
    assert ratio == pytest.approx(np.log(4 / 12)) and (marked, listed) == (-1, -1)
    assert style_of("1) one", "one")[2] == 1 and style_of("a `b`", "<i>c</i>")[1] == 0
    summary = lengths("x", ["a", "a b", "a b c", "a b c d", "a b c d e f"])
    assert summary is not None and (summary.count, summary.mean, summary.median) == (5, 3.2, 3)
    assert (summary.lower, summary.upper, summary.deviation) == (2, 4, pytest.approx(np.std([1, 2, 3, 4, 6], ddof=1)))
    assert lengths("x", []) is None


# Stored rows as arrays


def judged(
    place: int | None, *, a_first: bool = True, same: bool = False, prompt: str = "p1", **more: Any
) -> SimpleNamespace:
    """An answer that was read: the place on two questions, of a person 7 by default."""
    models = ("owl", "owl" if same else "raven")
    replies = [SimpleNamespace(language_model=SimpleNamespace(name=name)) for name in models]
    question = SimpleNamespace(external_id=prompt, task=SimpleNamespace(name=f"task of {prompt}"))
    comparison = SimpleNamespace(question=question, a=replies[0], b=replies[1], a_id=1, b_id=1 if same else 2)
    places = {} if place is None else {"helpful": place, "truthful": 9 - place}
    judgement = ReplyJudgement(a_first=a_first, cannot_judge=place is None, place=place, places=places)
    drawn = {"inclusion_probability": 0.5, "pool_probability": 0.4, "role": "sampled"}
    drawn |= {"design_weight": 5.0, "drawn_probability": 0.2}
    respondent = SimpleNamespace(pseudonym=f"r-{more.get('person', 7)}")
    return SimpleNamespace(
        slot=SimpleNamespace(item=SimpleNamespace(comparison=comparison), stage=SimpleNamespace(index=2), **drawn),
        sitting=SimpleNamespace(respondent_id=more.get("person", 7), respondent=respondent),
        **{KNOWN: judgement},
    )


def test_answers_are_read_towards_the_model_that_the_study_names_first() -> None:
    answers: list[Any] = [
        judged(2, prompt="p2", person=3),
        judged(2, a_first=False),
        judged(None),
        judged(1, same=True),
        judged(5),
    ]
    weights = np.array([4.0, 1.0, 9.0, 9.0, 2.0])
    material = judgements_of(answers, models=("owl", "raven"), weights=weights)
    assert material.prompts == ("p1", "p2") and material.prompt.tolist() == [1, 0, 0]
    assert material.category.tolist() == ["task of p2", "task of p1", "task of p1"]
    assert (material.value.tolist(), material.outcome.tolist()) == ([2.5, -2.5, -0.5], [1, -1, -1])
    assert (material.first.tolist(), material.person.tolist()) == ([1, -1, 1], [3, 7, 7])
    assert (1 / material.probability) / (1 / material.probability).sum() == pytest.approx(np.array([4, 1, 2]) / 7)
    other = judgements_of(answers, models=("raven", "owl"), scale="truthful", prompts=("p0", "p1", "p2"))
    assert (other.value.tolist(), other.prompt.tolist()) == ([-2.5, 2.5, 0.5], [2, 1, 1])
    assert (other.a.tolist(), other.b.tolist()) == ([1, 1, 1], [0, 0, 0]) and other.probability.tolist() == [1, 1, 1]


def test_exported_preferences_have_both_phases_chance_and_nobody_who_could_not_judge() -> None:
    answers: list[Any] = [judged(2, a_first=False, person=3), judged(None)]
    (file, _judgements) = files(None, (), answers)
    (row,) = (dict(zip([column.name for column in file.columns], row, strict=True)) for row in file.rows)
    assert row == {
        "prompt": "p1",
        "category": "task of p1",
        "model_a": "owl",
        "model_b": "raven",
        "annotator": "r-3",
        "rating_a": -2.5,
        "first": "b",
        "probability": pytest.approx(0.5 * 0.4),
        "stage": 2,
        "role": "sampled",
        "reply_a_key": 1,
        "reply_b_key": 2,
    }


def test_all_that_was_said_of_two_replies_is_hashed() -> None:
    answer: Any = judged(2, a_first=False)
    getattr(answer, KNOWN).reason = "clearer"
    said = {"helpful": 2, "truthful": 7}
    assert Preference().answer_values(answer) == [False, False, said, "clearer"]
    assert Preference().answer_values(judged(None)) == [True, True, {}, ""]  # type: ignore[arg-type]


def test_what_judgements_estimate_leaves_out_who_could_not_judge() -> None:
    answers: list[Any] = [judged(1), judged(3, a_first=False), judged(None), judged(8)]
    better, first, strength, could = PreferenceEstimates().estimands(answers).measures
    assert better.values.tolist() == [1, 0, 0, 0] and first.values.tolist() == [1, 1, 0, 0]
    assert strength.values[[0, 1, 3]].tolist() == [3.5, 1.5, 3.5] and strength.span == (0.5, 3.5)
    for measure in (better, first, strength):
        assert measure.where is not None and measure.where.tolist() == [True, True, False, True]
    assert could.values.tolist() == [1, 1, 0, 1] and could.where is None
    assert PreferenceEstimates().outcomes(answers)["a_better"].tolist() == [1, 0, 0, 0]


def test_sides_are_drawn_for_each_person_item_and_stage_and_change_when_an_item_is_asked_again() -> None:
    def side(seed: int, slot: int, sitting: int, *, again: bool = False) -> bool:
        stage = SimpleNamespace(seed=seed)
        first = SimpleNamespace(number=slot)
        asked = SimpleNamespace(stage=stage, number=999, repeat_of_id=1, repeat_of=first)
        plain = SimpleNamespace(stage=stage, number=slot, repeat_of_id=None, repeat_of=None)
        sat = SimpleNamespace(public_id=UUID(int=sitting))
        return a_is_first(SimpleNamespace(slot=asked if again else plain, sitting=sat))  # type: ignore[arg-type]

    for changes in ([(n, 1, 1) for n in range(200)], [(1, n, 1) for n in range(200)], [(1, 1, n) for n in range(200)]):
        assert 70 < sum(side(*change) for change in changes) < 130
        assert all(side(*change, again=True) is not side(*change) for change in changes)


def test_a_judge_has_the_name_of_how_it_was_asked_where_it_was_asked_in_several_ways() -> None:
    def verdict(judge: int, template: str, version: str = "1") -> Any:
        return SimpleNamespace(
            judge_id=judge, judge=SimpleNamespace(name=f"m{judge}"), template=template, template_version=version
        )

    rows = [verdict(1, "alone"), verdict(2, "alone"), verdict(1, ""), verdict(3, "alone"), verdict(3, "alone", "2")]
    assert names_of(rows) == ["m1 (alone)", "m2", "m1 (imported)", "m3 (alone 1)", "m3 (alone 2)"]


def test_people_who_only_said_who_won_count_by_their_majority_and_ratings_by_their_mean() -> None:
    judge = judgements([{"prompt": n, "outcome": 1} for n in range(10)])
    for value, human in ((1.0, 1.0), (2.5, 2.5 / 3)):
        people = judgements(
            [
                {"prompt": n, "outcome": side, "value": side * value, "person": who}
                for n in range(10)
                for who, side in enumerate((1, 1, -1))
            ]
        )
        comparison = judging.compare(people, judge)
        assert comparison is not None and comparison.human == pytest.approx(np.full(10, human))
        assert comparison.mean == pytest.approx(np.full(10, value / 3)) and comparison.share == pytest.approx(
            np.full(10, 2 / 3)
        )


def test_a_judges_chance_is_that_of_its_readable_verdicts() -> None:
    people = judgements([{"prompt": n, "outcome": 1, "person": n} for n in range(10)])
    rows = [{"prompt": n, "outcome": 1, "chance": 0.8} for n in range(10)]
    judge = judgements([*rows, {"prompt": 0, "outcome": 2, "chance": 0.2}, {"prompt": 1, "outcome": -1, "chance": 0.4}])
    comparison = judging.compare(people, judge)
    assert comparison is not None and not comparison.fitted
    assert comparison.chance == pytest.approx([0.8, 0.6, *[0.8] * 8])


def analysed(people: Judgements, judges: Any = None, **settings: Any) -> Analysis:
    return analyse(Material(people, judges or {}), AnalysisSettings(**settings), rng=np.random.default_rng(0))


@pytest.mark.slow
def test_people_are_ranked_by_majorities_or_answers_with_or_without_the_designs_weights() -> None:
    people = simulate(
        PreferenceWorld(theta=spaced(3, 2.0), gamma=0.3, prompts=30),
        [StagePlan(Uniform(), 12, 5, responses_per_item=3)],
        rng=np.random.default_rng(4),
    )
    people = replace(
        people,
        probability=np.where(people.prompt % 2 == 0, 0.2, 0.9),
        value=np.where(people.prompt % 3 == 0, 0.5, 1.5) * people.outcome,
    )
    of_items = majorities(people)
    for settings, counted in (
        ({}, of_items),
        ({"each_answer": True}, people),
        ({"weighted": False}, of_items.unweighted()),
        ({"tie": "4-5"}, majorities(people.with_ties("4-5"))),
    ):
        analysis = analysed(people, **settings)
        assert analysis.ranking is not None
        assert analysis.ranking.theta == pytest.approx(bradley_terry.fit(counted).theta)
        assert (UNWEIGHTED in analysis.rankings) is settings.get("weighted", True)
    tied = analysed(people, {"j": people}, tie="4-5")
    assert tied.ties == {"people": int((people.prompt % 3 == 0).sum()), "j": int((people.prompt % 3 == 0).sum())}
    plain = analysed(people)
    assert plain.rankings[UNWEIGHTED].theta == pytest.approx(bradley_terry.fit(of_items.unweighted()).theta)
    assert plain.other_ranking is not None
    assert plain.other_ranking.theta == pytest.approx(bradley_terry.fit(people).theta)
    assert UNWEIGHTED not in analysed(people.unweighted()).rankings
    assert plain.majority == {
        "a": int((of_items.outcome == 1).sum()),
        "b": int((of_items.outcome == -1).sum()),
        "tie": int((of_items.outcome == 0).sum()),
    }
    assert plain.ties == {"people": int((people.outcome == 0).sum())}
    # What is asked of the ranking is asked of every other one, too.
    divided = replace(people, category=np.where(people.prompt % 2 == 0, "even", "odd"))
    asked: dict[str, Any] = {"ridge": 0.3, "side": False}
    other = analysed(divided, {"j": divided}, **asked)
    of_divided = majorities(divided)
    for ranking, counted in (
        (other.ranking, of_divided),
        (other.rankings[UNWEIGHTED], of_divided.unweighted()),
        (other.rankings["j"], judging.own_person_each(divided)),
        (other.by_category["even"], of_divided.where(of_divided.category == "even")),
        (other.by_category["odd"], of_divided.where(of_divided.category == "odd")),
        (other.other_ranking, divided),
    ):
        assert ranking is not None and ranking.gamma is None
        assert ranking.theta == pytest.approx(bradley_terry.fit(counted, **asked).theta)
    by_answer = analysed(divided, each_answer=True, side=False)
    for category in ("even", "odd"):
        counted = divided.where(divided.category == category)
        assert by_answer.by_category[category].gamma is None and bradley_terry.fit(counted).gamma is not None
    # A model's rating is towards it whether it is A or B, by the design's weights.
    weight, towards = 1 / people.probability, {0: [0.0, 0.0], 1: [0.0, 0.0], 2: [0.0, 0.0]}
    for a, b, value, mass in zip(people.a, people.b, people.value, weight, strict=True):
        for model, sign in ((int(a), 1), (int(b), -1)):
            towards[model][0] += sign * mass * value
            towards[model][1] += mass
    ratings = [row["rating by people"] for row in _beside(Material(people))["beside"]]
    assert ratings == pytest.approx([total / mass for total, mass in towards.values()])


def test_the_fit_is_where_the_weighted_slopes_and_the_ridge_are_in_balance() -> None:
    people = study(adaptive=True)
    people = replace(people, probability=np.where(people.prompt % 2 == 0, 0.2, 0.9))
    fit = bradley_terry.fit(people, ridge=0.5)
    chance = 1 / (1 + np.exp(fit.theta[people.b] - fit.theta[people.a] - (fit.gamma or 0) * people.first))
    off = people.weight * (people.win - chance)
    slopes = np.bincount(people.a, weights=off, minlength=4) - np.bincount(people.b, weights=off, minlength=4)
    assert slopes == pytest.approx(0.5 * fit.theta, abs=1e-6) and fit.theta.mean() == pytest.approx(0, abs=1e-9)
    assert (off * people.first).sum() == pytest.approx(0, abs=1e-6)
    columns = np.column_stack([np.zeros((people.n, 4)), people.first])
    columns[np.arange(people.n), people.a] += 1
    columns[np.arange(people.n), people.b] -= 1
    influence = (columns * off[:, None]) @ fit.inverse
    assert fit.covariance == pytest.approx(bandit.clustered_covariance(influence, people.person, people.prompt))
    gap = fit.difference(0, 1)
    spread = bandit.clustered_variance(influence[:, 0] - influence[:, 1], people.person, people.prompt)
    assert gap.standard_error == pytest.approx(np.sqrt(spread), rel=0.05)
    assert fit.degrees == min(len(np.unique(people.person)), len(np.unique(people.prompt))) - 1
    assert fit.n == people.n and fit.sides == people.n
    # As a prior the ridge holds the side too, and nothing is known of a model that nobody judged.
    theta, spread = bradley_terry.posterior(replace(people, models=(*people.models, "new")), ridge=0.5)
    assert theta[4] == 0 and spread[4, 4] == pytest.approx(2) and spread[0, 0] < 2
    assert np.argsort(-theta[:4]).tolist() == [0, 1, 2, 3]


def test_win_shares_are_of_each_two_models_in_either_direction_by_the_designs_weights() -> None:
    rows = [
        {"prompt": 0, "outcome": 1, "person": 0, "probability": 0.5},
        {"prompt": 1, "a": 1, "b": 0, "outcome": 1, "person": 1},
        {"prompt": 2, "outcome": 0, "person": 2},
        {"prompt": 3, "a": 2, "b": 1, "outcome": -1, "person": 3},
    ]
    shares = win_shares(judgements(rows, models=3))
    actual = [(share.model, share.other, share.n, share.wins, share.ties) for share in shares]
    assert actual == [(0, 1, 3, 1.5, 1), (1, 0, 3, 1.5, 1), (1, 2, 1, 1, 0), (2, 1, 1, 0, 0)]
    first, second = shares[:2]
    assert first.share.value == pytest.approx((2 * 1 + 0.5) / 4) and second.share.value == pytest.approx(1.5 / 4)
    assert first.share.low == pytest.approx(1 - (second.share.high or 0))


@pytest.mark.slow
def test_a_judge_is_compared_in_each_category_and_helps_whichever_way_it_names_the_models() -> None:
    people, judge = people_and_judge()
    category = np.where(people.prompt % 2 == 0, "code", "talk")
    people, judge = replace(people, category=category), replace(judge, category=category)
    people = people.where(people.prompt < 75)  # The judge sat further items.
    category = category[judge.prompt < 75]
    turned = replace(
        judge,
        a=judge.b,
        b=judge.a,
        outcome=np.where(np.isin(judge.outcome, (1, -1)), -judge.outcome, judge.outcome),
        value=-judge.value,
        first=-judge.first,
        chance=1 - judge.chance,
    )
    own_comparison, other = (analysed(people, {"j": own}).judges[0] for own in (judge, turned))
    assert set(own_comparison.by_category) == {"", "code", "talk"}
    code, talk = (own_comparison.by_category[name] for name in ("code", "talk"))
    assert code.items + talk.items == own_comparison.by_category[""].items
    assert code.verdicts == int((judge.category == "code").sum()) > int((category == "code").sum())
    ((straight,), (round_,)) = own_comparison.assisted, other.assisted
    assert straight.items == len(np.unique(judge.key)) > straight.answers / 2
    ranked = analysed(people).by_category
    for name, ranking in ranked.items():
        assert ranking.theta == pytest.approx(bradley_terry.fit(majorities(people.where(category == name))).theta)
    styles = {
        key: (float(ratio), 0.0, 0.0)
        for key, ratio in zip(np.unique(people.key).tolist(), np.linspace(-1, 1, 90), strict=False)
    }
    effects = [
        analyse(Material(people, {"j": own}, styles=styles), AnalysisSettings(), rng=np.random.default_rng(0)).styles[1]
        for own in (judge, turned)
    ]
    assert effects[0].effects[0].value == pytest.approx(effects[1].effects[0].value) != 0
    # The same where people's items name the other model first.
    sides = {"a": people.b, "b": people.a, "outcome": -people.outcome, "value": -people.value, "first": -people.first}
    (turned_people,) = analysed(replace(people, **sides), {"j": judge}).judges[0].assisted
    assert turned_people.assisted.value == pytest.approx(straight.assisted.value)
    assert turned_people.people.value == pytest.approx(straight.people.value)
    assert straight.assisted.value == pytest.approx(round_.assisted.value)
    assert straight.people.value == pytest.approx(np.average(people.win, weights=people.weight))
    # Two judges together: one twice helps as it does alone, over the items that both judged.
    both = analysed(people, {"j": judge, "again": turned})
    (together,) = both.together
    assert together.assisted.value == pytest.approx(straight.assisted.value) and together.coefficient is None
    some = analysed(people, {"j": judge, "fewer": judge.where(judge.prompt < 80)}).together[0]
    assert some.items < together.items and not analysed(people, {"j": judge}).together


def test_rows_of_files_are_towards_the_model_that_an_items_first_row_names(tmp_path: Path) -> None:
    comparisons, judgements_file = tmp_path / "c.csv", tmp_path / "j.csv"
    comparisons.write_text(
        "prompt,category,model_a,model_b,annotator,outcome,rating_a,first,probability,role,reply_a,reply_b\n"
        "p1,code,raven,owl,x,a,,a,0.5,sampled,aa bb,c\n"
        "p1,,owl,raven,y,,2.5,a,0.25,holdout,c,aa bb\n"
        "p2,talk,owl,raven,,tie,0.5,,,sampled,,\n"
        "p2,,owl,raven,,b,,b,,sampled,,\n"
        "p3,talk,owl,raven,x,a,,,,control,,\n"
        "p3,talk,owl,raven,x,a,,,,repeat,,\n"
        "p4,talk,owl,wren,,,,,,sampled,,\n"
    )
    judgements_file.write_text(
        "prompt,model_a,model_b,judge,outcome,rating_a,first,chance_a\n"
        "p1,owl,raven,j,a,,b,0.8\n"
        "p2,owl,raven,j,unreadable,,,\n"
        "p4,wren,owl,k,,-1.5,a,\n"
    )
    material = read_material(comparisons, judgements_file)
    people, names = material.people, material.people.models
    assert names == ("owl", "raven", "wren") and people.prompts == ("p1", "p2", "p4")
    assert [(names[a], names[b]) for a, b in zip(people.a, people.b, strict=True)] == [
        ("raven", "owl"),
        ("raven", "owl"),
        ("owl", "raven"),
        ("owl", "raven"),
    ]
    assert (people.outcome.tolist(), people.value.tolist()) == ([1, -1, 0, -1], [1, -2.5, 0.5, -1])
    assert (people.first.tolist(), people.probability.tolist()) == ([1, -1, 0, -1], [0.5, 0.25, 1, 1])
    assert people.category.tolist() == ["code", "code", "talk", "talk"] and material.names == ("x", "y")
    assert people.person[:2].tolist() == [0, 1] and len(set(people.person.tolist())) == 4
    assert any("2 answers to controls and repeats are left out" in note for note in material.notes)
    j, k = material.judges["j"], material.judges["k"]
    assert (j.outcome.tolist(), j.value.tolist(), j.first.tolist()) == ([-1, 2], [-1, 0], [1, 0])
    assert j.chance[0] == pytest.approx(0.2) and np.isnan(j.chance[1]) and j.category.tolist() == ["code", "talk"]
    assert (k.outcome.tolist(), k.value.tolist(), k.first.tolist()) == ([1], [1.5], [-1])
    (style,) = material.styles.values()
    assert style == style_of("aa bb", "c") and [(length.what, length.count) for length in material.lengths] == [
        ("replies of owl", 1),
        ("replies of raven", 1),
    ]


def test_a_tie_counts_for_both_and_three_of_a_kind_are_the_fewest_with_an_interval() -> None:
    rows = [{"prompt": n, "outcome": int(n < 3), "person": n} for n in range(4)]
    fit = bradley_terry.fit(judgements(rows), ridge=0)
    assert fit.unbeaten == () and fit.theta[0] - fit.theta[1] == pytest.approx(np.log(3.5 / 0.5))
    assert figure(0.5, 0.01, 1).low is None and figure(0.5, 0.01, 2).low is not None
    assert figure(0.5, 0.0, 9).low is None and figure(0.5, 0.0, 9).value == 0.5


def test_a_prior_takes_the_side_off_the_strengths() -> None:
    """Who stood first always won, and the first model stood there three times of four."""
    rows = [{"prompt": n, "outcome": first, "first": first} for n, first in enumerate([1, 1, 1, -1] * 3)]
    judged_rows = judgements(rows)
    with_side, _spread = bradley_terry.posterior(judged_rows)
    without, _spread = bradley_terry.posterior(replace(judged_rows, first=np.zeros(12, dtype=int)))
    assert 0 <= with_side[0] < without[0] / 2


# By pair of models, and ways of judging


def test_position_bias_by_pair_does_not_depend_on_which_model_is_better_or_shown_first_more_often() -> None:
    """The first model wins 9 of 10 either way round and is first in three of four: no bias. Where the first reply
    always wins, the bias is whole."""
    judged = study(models=2)
    n = 40
    first = np.where(np.arange(n) < 30, 1, -1)
    outcome = np.where(np.arange(n) % 10 == 9, -1, 1)
    base = judged.where(np.arange(n) % judged.n)
    base = replace(
        base, a=np.zeros(n, dtype=int), b=np.ones(n, dtype=int), person=np.arange(n), prompt=np.arange(n),
        prompts=tuple(map(str, range(n))), outcome=outcome, value=outcome.astype(float), first=first,
    )  # fmt: skip
    (pair,) = by_pair(base)
    assert pair.first.value == pytest.approx(0.5) and pair.rating.value == pytest.approx(0.8)
    assert pair.n == pair.sides == n and pair.ties.value == 0
    (turned,) = by_pair(replace(base, a=base.b, b=base.a, outcome=-outcome, value=-base.value, first=-first))
    assert turned.first.value == pytest.approx(0.5) and turned.rating.value == pytest.approx(0.8)
    (always,) = by_pair(replace(base, outcome=first))
    assert always.first.value == pytest.approx(1.0)
    (one_order,) = by_pair(replace(base, first=np.ones(n, dtype=int)))
    assert one_order.first.value is None and one_order.sides == n
    tied = np.where(np.arange(n) < 10, 0, outcome)
    unread = np.where(np.arange(n) < 20, 2, tied)
    assert by_pair(replace(base, outcome=tied))[0].ties.value == pytest.approx(0.25)
    assert by_pair(replace(base, outcome=unread))[0].n == 20


def test_two_ways_of_judging_are_compared_on_the_items_that_both_judged(tmp_path: Path, capsys: Any) -> None:
    rows = [f"p{k},A,B,x{k},{'ab'[k % 2]}" for k in range(40)]
    right = [f"p{k},A,B,right,{'ab'[k % 2]}" for k in range(30)]
    half = [f"p{k},A,B,half,{'ab'[k % 2] if k % 4 < 2 else 'ba'[k % 2]}" for k in range(10, 40)]
    compared(tmp_path, rows, *right, *half)
    with (tmp_path / "ways.csv").open(newline="") as file:
        (way,) = csv.DictReader(file)
    assert (way["judge"], way["other"], way["items"]) == ("half", "right", "20")
    assert float(way["accuracy"]) == pytest.approx(-0.5) and float(way["same"]) == pytest.approx(0.5)
    assert float(way["low"]) < -0.5 < float(way["high"]) < 0
    assert (tmp_path / "pairs_rating.svg").exists() and not (tmp_path / "pairs_first.svg").exists()


@pytest.mark.thorough
def test_intervals_by_pair_cover() -> None:
    """400 studies of two models with a side bias: how often the first reply is preferred, both orders alike."""
    world = PreferenceWorld(theta=np.array([0.6, -0.6]), gamma=0.4, prompts=150)
    truth = np.mean([1 / (1 + np.exp(-(0.4 + gap))) for gap in (1.2, -1.2)])
    inside = 0
    for seed in range(400):
        (pair,) = by_pair(simulate(world, [StagePlan(Uniform(), 25, 6)], rng=np.random.default_rng([23, seed])))
        inside += (pair.first.low or 0) <= truth <= (pair.first.high or 1)
    assert 0.93 <= inside / 400 <= 0.98


def harness_file(folder: Path, name: str, **tasks: dict[str, Any]) -> str:
    path = folder / f"{name}.json"
    path.write_text(json.dumps({"results": tasks, "config": {"model": "hf"}}))
    return f"{name}={path}"


def test_results_of_the_harness_stand_beside_with_their_intervals_and_ranks(tmp_path: Path, capsys: Any) -> None:
    pairs = [("A", "B"), ("B", "C"), ("A", "C")]
    rows = [f"p{k}{a}{b},{a},{b},x{k},{'a' if k % 4 else 'b'}" for k in range(12) for a, b in pairs]
    (tmp_path / "c.csv").write_text("\n".join(["prompt,model_a,model_b,annotator,outcome", *rows]) + "\n")
    files = [
        harness_file(
            tmp_path,
            model,
            arc={"alias": "arc", "acc,none": value, "acc_stderr,none": 0.01, "acc_norm,none": True},
            gsm={"exact_match,strict": 0.5, "exact_match_stderr,strict": "N/A"},
        )
        for model, value in (("A", 0.3), ("B", 0.5), ("C", 0.7))
    ]
    options = [argument for file in files for argument in ("--harness", file)]
    call_command("preferences", "--comparisons", str(tmp_path / "c.csv"), *options, "--out", str(tmp_path))
    with (tmp_path / "harness.csv").open(newline="") as file:
        rows_written = list(csv.DictReader(file))
    first = rows_written[0]
    assert [len(rows_written), first["model"], first["task"], first["metric"]] == [6, "A", "arc", "acc"]
    assert [float(first[name]) for name in ("value", "low", "high")] == pytest.approx([0.3, 0.2804, 0.3196], abs=1e-4)
    assert rows_written[1]["metric"] == "exact_match, strict" and rows_written[1]["low"] == ""
    data = json.loads((tmp_path / "preferences.json").read_text())
    assert data["harness_rank_correlations"] == [{"task": "arc", "metric": "acc", "models": 3, "value": -1.0}]
    assert "arc acc −1" in capsys.readouterr().out.replace("-1", "−1")


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("{", "is no results file"),
        ("[]", "is no results file"),
        ('{"results": {"arc": [1]}}', "is no results file"),
        ('{"results": {"arc": {"acc,none": "high"}}}', "no metric with a number"),
    ],
)
def test_a_file_that_is_none_of_the_harness_is_refused(written: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(written)
    with pytest.raises(HunchError, match=message):
        read_results(f"A={tmp_path / 'r.json'}")
    with pytest.raises(HunchError, match="is not MODEL=FILE"):
        read_results("r.json")


def test_a_model_that_nobody_judged_is_refused_beside_the_others(tmp_path: Path, capsys: Any) -> None:
    rows = [f"p{k},A,B,x{k},a" for k in range(12)]
    (tmp_path / "c.csv").write_text("\n".join(["prompt,model_a,model_b,annotator,outcome", *rows]) + "\n")
    named = harness_file(tmp_path, "D", arc={"acc,none": 0.5})
    with pytest.raises(SystemExit):
        call_command("preferences", "--comparisons", str(tmp_path / "c.csv"), "--harness", named)
    assert "--harness: D: the models are A, B" in capsys.readouterr().err


def test_lengths_may_be_counted_in_the_tokens_of_a_model(tmp_path: Path, capsys: Any) -> None:
    """A tokenizer of single letters: two words of three letters and a blank are seven tokens."""
    from tokenizers import Tokenizer, models

    letters = {letter: place for place, letter in enumerate("abc xyz")}
    Tokenizer(models.BPE(vocab=letters, merges=[])).save(str(tmp_path / "tokenizer.json"))
    rows = [f"q{k},A,B,x{k},a,abc xyz,ab" for k in range(12)]
    header = "prompt,model_a,model_b,annotator,outcome,reply_a,reply_b"
    (tmp_path / "c.csv").write_text("\n".join([header, *rows]) + "\n")
    files = ("--comparisons", str(tmp_path / "c.csv"), "--out", str(tmp_path))
    call_command("preferences", *files, "--tokenizer", str(tmp_path))
    longs = {row["what"]: row for row in json.loads((tmp_path / "preferences.json").read_text())["lengths"]}
    assert (longs["replies of A"]["longest"], longs["replies of B"]["shortest"]) == (7, 2)
    with pytest.raises(SystemExit):
        call_command("preferences", *files, "--tokenizer", str(tmp_path / "none"))
    assert "has no tokenizer.json" in capsys.readouterr().err
