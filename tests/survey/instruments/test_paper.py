"""`paper`: the paper's tables and figures of a study and from files; what is missing says so and harms nothing else."""

import csv
import io
import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from django.core.management import call_command

from survey.exceptions import HunchError
from survey.figures import Figure
from survey.figures.rendering import sheets_of
from survey.instruments.belief_update.management.commands import paper as command
from survey.instruments.belief_update.models import Belief
from survey.instruments.belief_update.reports.alignment import aligning
from survey.instruments.belief_update.reports.paper import pieces as paper
from survey.instruments.belief_update.reports.paper import study as paper_study
from survey.models import Assignment, AuditEntry, CandidateSet, Job, Slot, Stage, Study
from survey.services.answers.counting import frozen_answers
from survey.services.answers.majorities import majorities_of
from survey.services.banks.eligibility import eligible_questions
from survey.services.base import files
from survey.services.base import jobs as base_jobs
from survey.services.results import reports
from survey.services.stages import jobs, lifecycle
from survey.services.stages import runs as runs_of_stage
from survey.services.stages.leaderboard import leaderboard
from survey.services.stages.needed_files import needed_files
from tests import cast
from tests.kept import kept
from tests.survey.answers.test_majorities import TEST, change

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

NAMES = [
    *(f"table{number}" for number in range(1, 6)),
    *("figure2", "figure3_left", "figure3_right", "figure3_held_out", "figure4", "figure5", "figure6", "figure7"),
]
DRAWN = ("figure2", "figure3_left", "figure3_right", "figure5", "figure6")  # Of a study without language models.
WITHOUT_MODELS = {"table2", "table5", "figure4", "figure7"}
STUDY: dict[str, Any] = {
    "stages": [
        {"sittings": 6},
        {"sittings": 6, "design": {"kind": "epsilon_greedy", "epsilon": 0.3}},
        {"sittings": 8, "design": TEST, "train": False},
    ],
    "predictor": {"name": "same_task"},
    "candidates": {"size": 200},
}


@pytest.fixture(autouse=True)
def threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "limit_threads", lambda count: None)


def finished(stage: Stage) -> None:
    """Answers to all slots; those to every second item change."""
    cast.full_of_answers(stage)
    items = sorted({answer.slot.item_id for answer in Assignment.objects.filter(slot__stage=stage)})
    for answer in Assignment.objects.filter(slot__stage=stage):
        change(answer, changes=items.index(answer.slot.item_id) % 2 == 0)
    jobs.run_inline(lifecycle.close_stage(stage))


@kept
def run_two_stages() -> Study:
    """The study's two stages that train are frozen: one uniform, one by the predictor. The test stage is not open."""
    first = cast.open_stage(**STUDY)
    finished(first)
    finished(lifecycle.open_stage(cast.stage_of(first.study, 2)))
    return cast.stage_of(first.study, 3).study


@kept
def run_three_stages() -> Study:
    study = run_two_stages()
    finished(lifecycle.open_stage(cast.stage_of(study, 3)))
    return cast.stage_of(study, 3).study


@pytest.fixture
def study() -> Study:
    """Three frozen stages: uniform, by the predictor, and a test stage."""
    return run_three_stages()


def pieces(study: Study) -> dict[str, paper.Piece]:
    paper_pieces = {piece.name: piece for piece in paper_study.pieces_of(study)}
    assert list(paper_pieces) == NAMES
    assert all(bool(piece.missing) != (piece.table is not None) for piece in paper_pieces.values())
    return paper_pieces


def rows_of(piece: paper.Piece) -> list[dict[str, Any]]:
    assert piece.table is not None
    return piece.table.records()


def test_a_study_has_its_tables_and_figures_and_says_what_it_lacks(study: Study) -> None:
    paper_pieces = pieces(study)
    missing = {name for name, piece in paper_pieces.items() if piece.missing}
    assert missing == {"table3", "table4", "figure3_held_out", *WITHOUT_MODELS}
    assert "no frozen stage has answers to a holdout" in paper_pieces["figure3_held_out"].missing
    assert "no language model has answered" in paper_pieces["table2"].missing
    assert paper_pieces["table3"].missing == "no group has five rows and both labels"
    assert "neither people nor language models have answered" in paper_pieces["figure7"].missing


def test_the_report_shows_figures_and_what_is_missing(study: Study) -> None:
    findings = reports.make(study, "paper")
    assert [picture.name for picture in findings.pictures] == list(DRAWN)
    assert any("Table 3: no group has five rows and both labels" in text for text in (*findings.lines, *findings.notes))


def test_table_1_is_the_leaderboards_on_the_majorities_with_the_papers_numbers(study: Study) -> None:
    piece = pieces(study)["table1"]
    lines = {line.predictor: line for line in leaderboard(study) if line.answers == "majorities"}
    for row in rows_of(piece):
        cell = lines[row["predictor"]].figures[row["metric"]][row["part"]]
        assert (row["value"], row["n"]) == (cell.value, 6)
        assert (row["low"], row["high"]) == (cell.low, cell.high) or (row["low"] is None and cell.low == cell.high)
    (same_task,) = [row for row in rows_of(piece) if (row["predictor"], row["metric"], row["part"]) == (
        *("same_task", "auc", "overall"),
    )]  # fmt: skip
    assert same_task["paper"] == 0.688
    assert piece.table is not None and "no figure on them is one of all pairs" in piece.table.note


def test_figures_3_left_and_5_are_weighted_shares_of_the_first_stage_that_sum_to_1(
    study: Study, tmp_path: Path
) -> None:
    paper_pieces = pieces(study)
    answers = frozen_answers(cast.stage_of(study, 1))
    rows = rows_of(paper_pieces["figure3_left"])
    assert sum(row["value"] for row in rows) == pytest.approx(1)
    assert sum(row["n"] for row in rows) == len(answers) == 18
    (none,) = [row for row in rows if row["from"] == row["to"] == 0]
    unchanged = Belief.objects.filter(response__assignment__in=answers, kind="posterior", value=50).count()
    assert none["value"] == pytest.approx(unchanged / 18)  # Uniform: every answer weighs the same.
    assert none["low"] < none["value"] < none["high"]
    for what in ("prior", "posterior", "change"):
        own = [row for row in rows_of(paper_pieces["figure5"]) if row["what"] == what]
        assert sum(row["value"] for row in own) == pytest.approx(1)
    (top,) = [row for row in rows_of(paper_pieces["figure5"]) if (row["what"], row["from"]) == ("posterior", 70)]
    assert top["n"] == 18 - unchanged
    drawing = paper_pieces["figure5"].picture
    assert drawing
    drawing.draw(tmp_path / "figure5.svg")
    svg = (tmp_path / "figure5.svg").read_text(encoding="utf-8")
    # A histogram of each, below each other: a bar for each row.
    tops = [float(y) for y in re.findall(r'<text x="8.0" y="([\d.]+)">(?:prior|posterior|change)', svg)]
    assert len(tops) == 3 == len(set(tops)) and svg.count('Z" fill') == len(rows_of(paper_pieces["figure5"]))


def test_the_last_bins_hold_their_upper_ends() -> None:
    first = paper.FirstStage(
        prior=np.array([0.0, 100.0, 90.0]),
        posterior=np.array([100.0, 0.0, 90.0]),
        respondent=np.array([1, 2, 3]),
        weight=np.ones(3),
    )
    counts = {(row["what"], row["from"], row["to"]): row["n"] for row in rows_of(paper.figure_5(first)) if row["n"]}
    assert counts == {
        ("prior", 0, 10): 1,
        ("prior", 90, 100): 2,
        ("posterior", 0, 10): 1,
        ("posterior", 90, 100): 2,
        ("change", -100, -80): 1,
        ("change", 0, 0): 1,
        ("change", 80, 100): 1,
    }


@pytest.mark.thorough
def test_figure_3_right_has_a_line_for_each_stage_that_a_predictor_drew(study: Study) -> None:
    rows = rows_of(pieces(study)["figure3_right"])
    assert {row["line"] for row in rows} == {"after stage 1, on stage 2"}
    assert sum(row["n"] for row in rows) == 18


@kept
def run_two_stages_with_holdouts() -> Study:
    """Predictors after two stages, the second and third of which have a holdout, and the last of which train too."""
    adaptive = {"sittings": 10, "design": {"kind": "epsilon_greedy", "epsilon": 0.3}}
    stage = cast.open_stage(
        stages=[{"sittings": 8}, adaptive, adaptive],
        predictor={"name": "same_task"},
        candidates={"size": 200},
        roles={"holdout": 0.4, "controls": 0},
    )
    for index in (1, 2, 3):
        finished(stage if index == 1 else lifecycle.open_stage(cast.stage_of(stage.study, index)))
    return cast.stage_of(stage.study, 3).study


def test_every_stages_predictor_is_judged_by_the_same_held_out_answers() -> None:
    study = run_two_stages_with_holdouts()
    assert f"hunch jobs ask held_out_scores {study.slug}" in pieces(study)["figure3_held_out"].missing
    job, _is_new = base_jobs.ask(study, "held_out_scores", {})
    assert base_jobs.run(job.pk)
    job.refresh_from_db()
    assert job.state == Job.State.DONE, job.error
    runs = [runs_of_stage.main_run(cast.stage_of(study, index)) for index in (1, 2, 3)]
    assert job.result["predictors"] == [str(run) for run in runs]

    def answers(role: Slot.Role) -> list[Assignment]:
        return list(Assignment.objects.filter(slot__stage__study=study, slot__role=role))

    def pairs_through(role: Slot.Role, index: int) -> set[frozenset[int]]:
        return {pair_of(answer) for answer in answers(role) if answer.slot.stage.index <= index}

    def pair_of(answer: Assignment) -> frozenset[int]:
        pair = answer.slot.item.pair
        return frozenset((pair.evidence_id, pair.target_id))

    # A stage may hold out a pair that trained before: nobody is judged by that one. One held out before never trains.
    trained: set[frozenset[int]] = set()
    for run in filter(None, runs):
        held_out = pairs_through(Slot.Role.HOLDOUT, run.held_out_through)
        trained |= pairs_through(Slot.Role.SAMPLED, run.stage.index) - held_out
    unseen = [answer for answer in answers(Slot.Role.HOLDOUT) if pair_of(answer) not in trained]
    assert 0 < len(unseen) < len(answers(Slot.Role.HOLDOUT))
    for run in runs:
        assert run is not None and run.held_out_sha256 in needed_files()
        rows = files.load_array(run.held_out_sha256)
        assert set(rows["item"].tolist()) == {answer.slot.item_id for answer in unseen}
    # The predictor of stage 1 planned stage 2: it expects of an outcome and task what that stage's pool has.
    pool = files.load_array(CandidateSet.objects.get(stage__study=study, stage__index=2).file_sha256)
    questions = eligible_questions(study)
    known = {
        (row["outcome"], questions[row["evidence"]].task_id == questions[row["target"]].task_id): row["score"]
        for row in pool
    }
    scored = dict(files.load_array(runs[0].held_out_sha256).tolist())  # type: ignore[union-attr]
    for answer in unseen:
        pair = answer.slot.item.pair
        kind = pair.outcome, pair.evidence.task_id == pair.target.task_id
        assert scored[answer.slot.item_id] == pytest.approx(known[kind], abs=1e-6)
    lines: dict[str, int] = {}
    for row in rows_of(pieces(study)["figure3_held_out"]):
        lines[row["line"]] = lines.get(row["line"], 0) + row["n"]
    assert lines == dict.fromkeys(("after stage 1", "after stage 2", "after stage 3"), len(unseen))
    assert AuditEntry.objects.filter(action="held_out_scores").count() == 3


@pytest.mark.thorough
def test_figure_2_is_about_the_uniform_pool_that_was_scored_last(study: Study) -> None:
    rows = rows_of(pieces(study)["figure2"])
    means = {row["outcome"]: row for row in rows if row["figure"] == "mean"}
    assert sum(row["n"] for row in means.values()) == 200
    assert {outcome: row["paper"] for outcome, row in means.items()} == {1: 0.32, 0: 0.46}
    for outcome, mean in means.items():
        ends = {row["figure"]: row for row in rows if row["outcome"] == outcome}
        assert ends["lowest"]["value"] <= mean["low"] <= mean["value"] <= mean["high"] <= ends["highest"]["value"]
        assert ends["highest"]["q1"] and ends["highest"]["q2"]


def test_pairs_under_both_outcomes_take_the_place_of_the_pool(study: Study) -> None:
    """Every pair once under each outcome, uniform over the pairs, scored by the predictor that planned the stage."""
    job, _is_new = base_jobs.ask(study, "both_outcomes", {"pairs": ["40"]})
    assert base_jobs.run(job.pk)
    job.refresh_from_db()
    assert (job.state, job.result["pairs"]) == (Job.State.DONE, 40)
    stored = aligning.scored_pool(study)
    rows = files.load_array(stored.both_outcomes_sha256)
    first, second = rows[:40], rows[40:]
    assert (first[["evidence", "target"]] == second[["evidence", "target"]]).all()
    assert len(np.unique(first[["evidence", "target"]])) == 40 and (first["evidence"] != first["target"]).all()
    assert set(first["outcome"]) == {1} and set(second["outcome"]) == {0}
    # A predictor of outcome and task gives a pair what the pool's pairs of its kind have.
    pool = files.load_array(stored.file_sha256)
    questions = eligible_questions(study)

    def kind(row: Any) -> tuple[int, bool]:
        return int(row["outcome"]), questions[row["evidence"]].task_id == questions[row["target"]].task_id

    known = {kind(row): row["score"] for row in pool}
    assert all(row["score"] == pytest.approx(known[kind(row)], abs=1e-6) for row in rows)
    paper_pieces = pieces(study)
    for name in ("figure2", "figure6"):
        table = paper_pieces[name].table
        assert table is not None and "40 uniform pairs, each under both outcomes" in table.note
    by_figure = {(row["outcome"], row["figure"]): row for row in rows_of(paper_pieces["figure2"])}
    farthest = np.abs(first["score"] - second["score"]).max()
    unlike = [by_figure[outcome, "most unlike"] for outcome in (1, 0)]
    assert abs(unlike[0]["value"] - unlike[1]["value"]) == pytest.approx(farthest)
    assert unlike[0]["q1"] == unlike[1]["q1"] and unlike[0]["q2"] == unlike[1]["q2"] != ""
    means = [row for row in rows_of(paper_pieces["figure2"]) if row["figure"] == "mean"]
    assert [(row["outcome"], row["n"]) for row in means] == [(1, 40), (0, 40)]
    assert [row["value"] for row in means] == pytest.approx([first["score"].mean(), second["score"].mean()])
    assert stored.both_outcomes_sha256 in needed_files()
    assert AuditEntry.objects.filter(action="both_outcomes", detail__pairs=40).exists()
    out = io.StringIO()
    call_command("jobs", "ask", "both_outcomes", study.slug, "pairs=40", "--now", stdout=out)
    again = aligning.scored_pool(study)
    assert again.both_outcomes_sha256 == stored.both_outcomes_sha256, "the same seed and predictor give the same rows"


def test_pairs_under_both_outcomes_that_cannot_be_scored_say_why(study: Study) -> None:
    for wrong in ("0", "many", "100001"):
        with pytest.raises(HunchError, match="is not a whole number from 1 to 100,000"):
            base_jobs.ask(study, "both_outcomes", {"pairs": [wrong]})
    note = pieces(study)["figure2"].table
    assert note is not None and f"hunch jobs ask both_outcomes {study.slug}" in note.note
    job, _is_new = base_jobs.ask(cast.small_study("unscored"), "both_outcomes", {})
    base_jobs.run(job.pk)
    job.refresh_from_db()
    assert job.state == Job.State.FAILED and "no stage has a uniform pool that a predictor has scored" in job.error


def test_groups_have_the_areas_of_their_rows() -> None:
    labels = np.array([0, 1, 0, 1, 1, 0, 1.0])
    scores = np.array([0.1, 0.9, 0.4, 0.3, 0.8, 0.2, 0.5])
    groups = [[("a", "b")] * 6 + [("c", "d")]]
    (row,) = rows_of(paper.group_table("table4", "Table 4", labels, scores, groups, note="Made up."))
    assert (row["evidence_task"], row["target_task"], row["n"]) == ("a", "b", 6)
    assert row["value"] == pytest.approx(8 / 9)
    assert row["low"] <= row["value"] <= row["high"]


def test_an_interval_of_no_width_is_none() -> None:
    assert paper.as_figure(1.0, (1.0, 1.0)).interval is None
    assert paper.as_figure(0.5, (0.25, 0.75), 5) == Figure(0.5, 0.25, 0.75, answers=5)
    assert paper.as_figure(0.5, (0.25, np.inf)).interval is None


# What is missing


@pytest.mark.thorough
def test_a_study_without_a_test_stage_keeps_its_other_figures() -> None:
    stages = STUDY["stages"][:2]
    first = cast.open_stage(**{**STUDY, "stages": stages})
    finished(first)
    paper_pieces = pieces(cast.stage_of(first.study, 1).study)
    for name in ("table1", "table3", "table4"):
        assert "no test stage is frozen" in paper_pieces[name].missing
    assert "no frozen stage was drawn by a predictor" in paper_pieces["figure3_right"].missing
    assert not any(paper_pieces[name].missing for name in ("figure2", "figure3_left", "figure5", "figure6"))


@pytest.mark.parametrize("left", [0, 2])
def test_items_of_a_test_stage_whose_pair_trained_judge_nothing(left: int) -> None:
    study = run_two_stages()
    first = cast.stage_of(study, 1)
    third = lifecycle.open_stage(cast.stage_of(study, 3))
    tested = sorted({slot.item_id for slot in third.slots.all()})
    earlier = Slot.objects.filter(stage=first).order_by("number")
    for slot, item in zip(earlier.exclude(item__in=tested), tested[left:], strict=False):
        Slot.objects.filter(pk=slot.pk).update(item=item)
    finished(third)
    paper_pieces = pieces(cast.stage_of(study, 3).study)
    if left:
        assert paper_pieces["table1"].table is not None
        assert f"on the {left} items of test stage 3" in paper_pieces["table1"].table.note
        assert (
            f"{len(tested) - left} more items are left out: answers to their pair trained."
            in paper_pieces["table1"].table.note
        )
    else:
        assert all(
            "nothing is left to judge them by" in paper_pieces[name].missing for name in ("table1", "table3", "table4")
        )
    assert not any(paper_pieces[name].missing for name in DRAWN)


def test_a_test_stage_in_which_all_agree_has_no_area_and_no_group(study: Study) -> None:
    stage = cast.stage_of(study, 3)
    Belief.objects.filter(response__assignment__slot__stage=stage).update(value=50)
    assert {majority.label for majority in majorities_of(stage)} == {0}
    paper_pieces = pieces(study)
    assert "no group has five rows and both labels" in paper_pieces["table3"].missing
    assert not paper_pieces["figure5"].missing


def test_one_person_and_no_change_at_all_give_shares_without_intervals() -> None:
    stage = cast.full_of_answers(cast.open_stage(stages=[{"sittings": 1}], predictor={"name": "same_task"}))
    Belief.objects.update(value=50)
    jobs.run_inline(lifecycle.close_stage(stage))
    paper_pieces = pieces(cast.stage_of(stage.study).study)
    rows = rows_of(paper_pieces["figure3_left"])
    assert [row["value"] for row in rows if row["from"] == row["to"] == 0] == [1]
    assert all(row["low"] is None and row["high"] is None for row in rows)
    table = paper_pieces["figure3_left"].table
    assert table is not None and "1 people are too few" in table.note
    assert "no stage has a uniform pool that a predictor has scored" in paper_pieces["figure2"].missing


def test_a_stage_that_nobody_answered_says_so() -> None:
    stage = cast.open_stage(predictor={"name": "same_task"})
    jobs.run_inline(lifecycle.close_stage(stage))
    paper_pieces = pieces(cast.stage_of(stage.study).study)
    assert "the first stage has no answers that count" in paper_pieces["figure5"].missing
    assert all(piece.missing for piece in paper_pieces.values())


def test_a_study_that_has_not_begun_says_so_in_lists_and_one_without_frozen_stages_when_it_is_asked(
    tmp_path: Path,
) -> None:
    study = cast.small_study()
    obstacles = {line.entry.name: line.obstacle for line in reports.lines_of(study)}
    assert obstacles["paper"] == obstacles["release"] == "small: no main stage has been opened yet"
    assert refused("small", "--out", tmp_path).strip() == obstacles["paper"]
    lifecycle.open_stage(cast.stage_of(study))
    assert refused("small", "--out", tmp_path).startswith("small: no stage is frozen yet; close one and wait")


# Command, page and files


def run(*arguments: Any) -> str:
    out = io.StringIO()
    call_command("paper", *map(str, arguments), stdout=out, stderr=io.StringIO())
    return out.getvalue()


def refused(*arguments: Any) -> str:
    err = io.StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("paper", *map(str, arguments), stdout=io.StringIO(), stderr=err)
    assert ended.value.code == 1
    return err.getvalue()


def test_the_command_writes_tables_in_three_formats_figures_and_a_page(study: Study, tmp_path: Path) -> None:
    run("small", "--out", tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {
        *("table1.csv", "table1.md", "table1.tex", "index.html", "paper.json", "report.md"),
        *(f"{name}.{ending}" for name in DRAWN for ending in ("csv", "svg")),
    }
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    for name in NAMES:
        assert f'<section id="{name}">' in page
    assert page.count('<img src="figure') == len(DRAWN)
    assert "Not here: small: no language model has answered enough" in page
    tex = (tmp_path / "table1.tex").read_text(encoding="utf-8")
    assert r"previous\_correct" in tex and tex.count(r"\begin{") == tex.count(r"\end{")
    assert (tmp_path / "table1.md").read_text(encoding="utf-8").count("\n| ") == 8  # Two heads, two predictors, twice.
    said = json.loads((tmp_path / "paper.json").read_text(encoding="utf-8"))["data"]["pieces"]
    assert [entry["name"] for entry in said] == NAMES


LABELS = ["q1", "q2", "source1", "source2", "previous_correct", "belief_change"]
SAMPLE = ["q1", "q2", "source1", "source2", "pred_if_correct", "pred_if_incorrect"]


def written(path: Path, header: list[str], rows: list[list[Any]]) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def table_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def width(row: dict[str, str]) -> float:
    return float(row["high"]) - float(row["low"])


def labels_of(n: int, start: int) -> list[list[Any]]:
    rng = np.random.default_rng(start)
    rows = []
    for index in range(start, start + n):
        tasks = [f"task {rng.integers(2)}", f"task {rng.integers(2)}"]
        chance = 0.2 + 0.5 * (tasks[0] == tasks[1])
        rows.append([f"e{index}", f"t{index}", *tasks, index % 2, int(rng.uniform() < chance)])
    return rows


@pytest.fixture
def label_files(tmp_path: Path) -> tuple[Any, ...]:
    train, test = (written(tmp_path / f"{name}.csv", LABELS, labels_of(120, start)) for name, start in (
        *(("train", 0), ("test", 1000)),
    ))  # fmt: skip
    return ("--train", train, "--test", test, "--predictors", "previous_correct,same_task", "--samples", 100)


@pytest.mark.thorough
def test_from_files_table_1_is_what_evaluate_predictors_finds(label_files: tuple[Any, ...], tmp_path: Path) -> None:
    run(*label_files, "--out", tmp_path / "paper")
    call_command("evaluate_predictors", *map(str, label_files), "--out", str(tmp_path / "own"), stdout=io.StringIO())
    metrics = json.loads((tmp_path / "own/metrics.json").read_text())
    with (tmp_path / "paper/table1.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 12
    for row in rows:
        assert float(row["value"]) == metrics[row["predictor"]][row["metric"]][row["part"]]
    page = (tmp_path / "paper/index.html").read_text()
    assert "Not here: it needs pairs with two predictions (--sample FILE) and answers of language models" in page
    assert "Not here: files of labels hold no beliefs, which a study has: hunch paper SLUG." in page
    with (tmp_path / "paper/table3.csv").open(newline="") as file:
        assert {row["evidence_task"] for row in csv.DictReader(file)} == {"", "task 0", "task 1"}


def test_a_sample_alone_gives_figure_2(tmp_path: Path) -> None:
    rows = [["e1", "t1", "a", "b", 0.1, 0.5], ["e2", "t2", "a", "b", 0.3, 0.7]]
    run("--sample", written(tmp_path / "sample.csv", SAMPLE, rows), "--out", tmp_path / "out")
    with (tmp_path / "out/figure2.csv").open(newline="") as file:
        figures = {(row["outcome"], row["figure"]): row for row in csv.DictReader(file)}
    assert float(figures["1", "mean"]["value"]) == pytest.approx(0.2)
    assert (figures["0", "highest"]["value"], figures["0", "highest"]["q1"]) == ("0.7", "e2")
    assert "no training and test rows are given" in (tmp_path / "out/index.html").read_text()


def test_from_files_a_test_set_in_which_all_agree_keeps_what_needs_one_label(
    label_files: tuple[Any, ...], tmp_path: Path
) -> None:
    of_class = [[*row[:5], 1] for row in labels_of(20, 2000)]
    test = written(tmp_path / "one_class.csv", LABELS, of_class)
    run(*label_files[:3], test, "--predictors", "same_task", "--out", tmp_path / "out")
    page = (tmp_path / "out/index.html").read_text()
    assert page.count("Not here: no group has five rows and both labels.") == 2
    for row in table_of(tmp_path / "out/table1.csv"):
        assert (row["metric"] == "nll") == (row["value"] != "")
    assert {row["value"] for row in table_of(tmp_path / "out/figure3_right.csv")} == {"1.0"}


def test_rows_that_repeat_a_pair_are_said_and_make_no_interval_narrower(
    label_files: tuple[Any, ...], tmp_path: Path
) -> None:
    rows = labels_of(120, 1000)
    run(*label_files, "--out", tmp_path / "once")
    twice = written(tmp_path / "twice.csv", LABELS, [*rows, *rows])
    run(*label_files[:3], twice, *label_files[4:], "--out", tmp_path / "twice")
    for name in ("table3", "figure3_right"):
        first, second = (table_of(tmp_path / folder / f"{name}.csv") for folder in ("once", "twice"))
        for row, other in zip(first, second, strict=True):
            assert int(other["n"]) == 2 * int(row["n"])
            assert width(other) > 0.85 * width(row)
    note = "120 test rows repeat the pair and outcome of another one"
    assert (tmp_path / "twice/index.html").read_text().count(note) == 4
    assert note not in (tmp_path / "once/index.html").read_text()


def test_a_sample_that_repeats_a_pair_counts_it_once(tmp_path: Path) -> None:
    pairs = [["e1", "t1", "a", "b", 0.1, 0.5], ["e2", "t2", "a", "b", 0.3, 0.7]]
    for name, rows in (("once", pairs), ("twice", [*pairs, *pairs])):
        run("--sample", written(tmp_path / f"{name}.csv", SAMPLE, rows), "--out", tmp_path / name)
    figures = [(tmp_path / name / "figure2.csv").read_bytes() for name in ("once", "twice")]
    assert figures[0] == figures[1]
    assert (
        "2 rows repeat the pair of a row before them and are left out (lines 4, 5)."
        in (tmp_path / "twice/index.html").read_text()
    )
    other = [*pairs, ["e1", "t1", "a", "b", 0.2, 0.5]]
    said = refused("--sample", written(tmp_path / "two.csv", SAMPLE, other), "--out", tmp_path / "two")
    assert "two.csv:4: q1, q2: is the pair of line 2 with another prediction; keep one of them" in said


def test_answers_that_cannot_be_used_are_named_beside_the_tables(tmp_path: Path) -> None:
    """Texts are compared as a reader sees them: a bank keeps white space and markup in a way of its own."""
    rows = [
        ["<b> e1<br></b>(A)  x", "<b>t1", "a", "b", 0.1, 0.5],
        ["e2", "t2", "a", "b", 0.3, 0.7],
        ["e3", "t3", "a", "b", 0.3, 0.7],
    ]
    texts = {"q1": ("a", "<b>e1<br></b>(A) x"), "q2": ("b", "t1"), "q3": ("a", "e2"), "q4": ("b", "t2")}
    texts |= {"q5": ("a", "e3"), "q6": ("b", "t3")}
    answers = [["oak", "q1", 1], ["oak", "q2", 0], ["oak", "q3", 1], ["oak", "q4", 1], ["oak", "q9", 1]]
    run(
        *("--sample", written(tmp_path / "sample.csv", SAMPLE, rows)),
        *("--answers", written(tmp_path / "answers.csv", ["llm", "question_id", "correct"], answers)),
        *(
            "--questions",
            written(tmp_path / "q.csv", ["id", "source", "question"], [[key, *text] for key, text in texts.items()]),
        ),
        *("--samples", 100, "--out", tmp_path / "out"),
    )
    page = (tmp_path / "out/index.html").read_text()
    for note in (
        "oak: 1 of its 5 answers are to questions that are not among those given",
        "oak: no answer to both questions of 1 of 3 pairs (lines 4); it is scored on the other 2.",
    ):
        assert page.count(note) == 3
    assert {row["n"] for row in table_of(tmp_path / "out/table2.csv")} == {"2"}


def test_a_test_file_that_is_the_training_file_leaves_nothing_to_train_on(
    label_files: tuple[Any, ...], tmp_path: Path
) -> None:
    run("--train", label_files[1], "--test", label_files[1], "--predictors", "same_task", "--out", tmp_path / "out")
    assert "no row is left to train on" in (tmp_path / "out/index.html").read_text()


def test_a_test_file_that_overlaps_training_says_how_many_rows_were_left_out(
    label_files: tuple[Any, ...], tmp_path: Path
) -> None:
    rows = labels_of(120, 1000)
    turned = [[row[1], row[0], row[3], row[2], 1 - row[4], row[5]] for row in rows[:30]]
    both = written(tmp_path / "both.csv", LABELS, [*labels_of(120, 0), *turned])
    run("--train", both, *label_files[2:], "--out", tmp_path / "overlapping")
    run(*label_files, "--out", tmp_path / "apart")
    note = "30 training rows are left out: each is a test pair, its reverse or other outcome."
    assert note in (tmp_path / "overlapping/index.html").read_text()
    tables = [(tmp_path / folder / "table1.csv").read_bytes() for folder in ("overlapping", "apart")]
    assert tables[0] == tables[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "name a study, or files"),
        (("small", "--test", "x.csv"), "--test: is for files: a study has its own"),
        (("--predictors", "same_task"), "name a study, or files"),
        (("--train", "x.csv"), "--train, --test: table 1 needs both"),
        (("--sample", "missing.csv"), "missing.csv:1: file: cannot be read"),
        (("other",), "no study"),
        (("--train", "x.csv", "--test", "y.csv", "--predictors", "berd"), "'berd' is not known"),
    ],
)
def test_what_cannot_be_asked_is_refused(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    assert message in refused(*arguments, "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_papers_own_files_give_the_papers_tables_2_and_5(study_data: Path, tmp_path: Path) -> None:
    run(
        *("--sample", study_data / "alignment_sample.csv", "--answers", study_data / "llm_correctness.csv"),
        *("--questions", study_data / "questions.csv", "--samples", 100, "--out", tmp_path),
    )
    for name in ("table2", "table5"):
        with (tmp_path / f"{name}.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        assert len(rows) == 24
        for row in rows:
            assert float(row["value"]) == pytest.approx(float(row["paper"]), abs=6e-4), (name, row["llm"])
    with (tmp_path / "figure2.csv").open(newline="") as file:
        means = {row["outcome"]: row for row in csv.DictReader(file) if row["figure"] == "mean"}
    for row in means.values():
        assert row["n"] == "500" and float(row["value"]) == pytest.approx(float(row["paper"]), abs=0.02)


def test_the_papers_own_numbers_stand_beside_tables_3_and_4() -> None:
    """All 22 areas, each at its tasks, and none at others."""
    pairs = [*paper.PAPER_TABLE_4, ("other", "task")]
    tasks = [pair for pair in pairs for _row in range(6)]
    single = list(paper.PAPER_TABLE_3)
    tasks += [(first or "any", second or "any") for first, second in single for _row in range(6)]
    labels = np.tile([0.0, 1.0], len(tasks) // 2)
    scores = np.linspace(0, 1, len(tasks))
    groupings = {
        "table3": [[(first, "") for first, _second in tasks], [("", second) for _first, second in tasks]],
        "table4": [tasks],
    }
    for name, known in (("table3", paper.PAPER_TABLE_3), ("table4", paper.PAPER_TABLE_4)):
        table = paper.group_table(name, name, labels, scores, groupings[name], note="").table
        assert table is not None
        assert {(row[0], row[1]): row[-1] for row in table.rows if row[-1] is not None} == known
        assert table.columns[-1].name == "paper" and "1.000" in [row[-1] for row in sheets_of(table)[0].texts()]
    assert len(paper.PAPER_TABLE_3) + len(paper.PAPER_TABLE_4) == 22


@pytest.mark.parametrize("name", ["Mistral-7B-Instruct", "mistralai/Mistral-7B-Instruct-v0.1"])
def test_the_papers_own_numbers_stand_beside_mistral(name: str) -> None:
    alphas, ends = np.array(paper.PAPER_ALPHAS), np.full((4, 2), np.nan)
    score = SimpleNamespace(name=name, pairs=500, alphas=alphas, accuracy=alphas, cross_entropy=alphas)
    score.accuracy_interval = score.cross_entropy_interval = ends
    tables = {name: piece.table for name, piece in paper.model_tables([score])}  # type: ignore[list-item]
    assert [row[-2] for row in tables["table2"].rows] == [0.517, 0.393, 0.387, 0.384]
    assert [row[-2] for row in tables["table5"].rows] == [0.689, 0.935, 0.954, 0.960]
    assert {row[-1] for table in tables.values() if table is not None for row in table.rows} == {None}
