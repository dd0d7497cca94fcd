"""Figures 3 (right), 4, 6 and 7 of `paper`: against plain computations, and where something is missing."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from survey.figures import Figure
from survey.figures.rendering import sheets_of
from survey.instruments.belief_update.labels import beliefs_of
from survey.instruments.belief_update.models import Belief
from survey.instruments.belief_update.reports.alignment import aligning
from survey.instruments.belief_update.reports.calibration.figure7 import CalibrationLine, RegionAccuracy
from survey.instruments.belief_update.reports.paper import figures_4_6_7 as paper_figures
from survey.instruments.belief_update.reports.paper import pieces as paper
from survey.instruments.belief_update.reports.paper import study as paper_study
from survey.models import Bank, ModelAnswer, Study
from survey.services.answers.counting import design_weights, study_answers
from survey.services.banks.eligibility import eligible_questions
from survey.services.results import reports
from survey.services.stages import jobs, lifecycle
from tests import cast
from tests.survey.filled import run_study
from tests.survey.foresight import N, belief_study, even, model, people_study
from tests.survey.instruments.test_aligning import ADAPTIVE, answers_of
from tests.survey.instruments.test_paper import SAMPLE, rows_of, run, written

MIXED = paper_figures.Rises(least=((-101, "any"), (5, "5 or more")), unit="points")


def right(*, rise: list[float], wrong: list[float], people: list[int]) -> paper_figures.SeenRight:
    return paper_figures.SeenRight(
        "gull", np.array(rise, dtype=float), np.array(wrong, dtype=float), np.ones(len(rise)), np.array(people)
    )


# Figure 3, right


def test_bands_take_answers_of_one_person_as_dependent() -> None:
    """Twenty people who give the same answer five times each are twenty answers, and not a hundred."""
    rng = np.random.default_rng(1)
    person = np.repeat(np.arange(20), 5)
    labels = np.repeat(rng.integers(0, 2, 20), 5).astype(float)
    scores = np.full(100, 0.5)
    (apart,) = rows_of(paper.figure_3_right([paper.Ranked("line", labels, scores, np.ones(100), np.arange(100))], ""))
    (together,) = rows_of(paper.figure_3_right([paper.Ranked("line", labels, scores, np.ones(100), person)], ""))
    assert together["value"] == apart["value"] == labels.mean()
    wider = (together["high"] - together["low"]) / (apart["high"] - apart["low"])
    assert wider == pytest.approx(5**0.5, rel=0.1)


def test_answers_of_one_person_alone_have_no_band() -> None:
    labels, scores = np.array([0.0, 1, 1, 0]), np.array([0.1, 0.2, 0.8, 0.9])
    ranked = paper.Ranked("line", labels, scores, np.ones(4), np.ones(4, dtype=np.int64))
    rows = rows_of(paper.figure_3_right([ranked], ""))
    assert [(row["low"], row["high"]) for row in rows] == [(None, None)] * 4


# Figure 4


def test_figure_4_is_how_often_a_model_fails_after_a_rise() -> None:
    seen = right(rise=[0, 10, 20, 5], wrong=[0, 1, 0, 1], people=[1, 2, 3, 4])
    pair = paper_figures.MisleadingPair("gull", ("e", "t"), ("a", "b"), 3, Figure(12.0, 10.0, 14.0))
    rows = rows_of(paper_figures.figure_4([seen], [pair], MIXED, "Made up."))
    assert [(row["rise"], row["n"], row["value"]) for row in rows[:2]] == [
        ("any", 4, 0.5),
        ("5 or more", 3, pytest.approx(2 / 3)),
    ]
    assert rows[0]["low"] < 0.5 < rows[0]["high"]
    assert (rows[2]["figure"], rows[2]["n"], rows[2]["value"], rows[2]["low"]) == ("pair", 3, 12.0, 10.0)
    assert (rows[2]["q1"], rows[2]["q2"]) == ("e", "t")


def test_figure_4_without_right_evidence_says_so() -> None:
    with pytest.raises(ValueError, match="no language model was right on an evidence question"):
        paper_figures.figure_4([right(rise=[], wrong=[], people=[])], [], MIXED, "")


def test_figure_4_without_a_misleading_pair_keeps_its_shares() -> None:
    piece = paper_figures.figure_4([right(rise=[0, 0], wrong=[0, 0], people=[1, 2])], [], MIXED, "")
    assert [row["figure"] for row in rows_of(piece)] == ["share"]
    assert piece.table is not None and sheets_of(piece.table)[1].note == "No pair misled people."


def test_figure_4_has_no_axis_where_no_rise_was_so_high(tmp_path: Path) -> None:
    rises = paper_figures.Rises(((-101, "any"), (5, "5 or more"), (50, "50 or more")), MIXED.unit)
    piece = paper_figures.figure_4([right(rise=[0, 10], wrong=[0, 1], people=[1, 2])], [], rises, "")
    assert piece.picture
    piece.picture.draw(tmp_path / "drawn.svg")
    svg = (tmp_path / "drawn.svg").read_text(encoding="utf-8")
    assert ">any<" in svg and ">5 or more<" in svg and "50 or more" not in svg


@pytest.mark.slow
@pytest.mark.django_db
def test_figure_4_of_a_study_is_that_of_its_answers() -> None:
    study = cast_study()
    correctness = answers_of("good", study, share=0.6)
    ModelAnswer.objects.filter(question=eligible_questions(study)[0]).update(unreadable=3)
    paper_pieces = pieces(study)
    for name in ("table2", "figure4", "table5", "figure7"):
        assert {row["unreadable"] for row in rows_of(paper_pieces[name])} == {3}
    rows = rows_of(paper_pieces["figure4"])
    answers = study_answers(study)
    weighted = [
        (answer, weight)
        for answer, weight in zip(answers, design_weights(answers), strict=True)
        if answer.slot.item.pair.outcome
        and correctness.get(answer.slot.item.pair.evidence_id) == 1
        and answer.slot.item.pair.target_id in correctness
    ]
    for words, least in (("any", -101), ("5 or more", 5)):
        among = [(answer, weight) for answer, weight in weighted if (beliefs_of(answer).change or 0) >= least]
        (row,) = [row for row in rows if row["rise"] == words]
        wrong = sum(weight * (1 - correctness[answer.slot.item.pair.target_id]) for answer, weight in among)
        assert (row["n"], row["value"]) == (len(among), pytest.approx(wrong / sum(weight for _one, weight in among)))
        assert row["low"] < row["value"] < row["high"]
    pairs = [row for row in rows if row["figure"] == "pair"]
    failures = aligning.failures_of(study)
    assert [row["value"] for row in pairs] == [line.gain for line in failures]
    assert (pairs[0]["q1"], pairs[0]["q2"]) == (failures[0].evidence.plain, failures[0].target.plain)


def test_figure_4_from_files_goes_by_predictions(tmp_path: Path) -> None:
    sample = [["e1", "t1", "a", "b", 0.9, 0.5], ["e2", "t2", "a", "b", 0.3, 0.7], ["e3", "t3", "a", "b", 0.6, 0.7]]
    written(tmp_path / "sample.csv", SAMPLE, sample)
    ids = {f"{kind}{number}": f"{kind}{number}" for kind in "et" for number in (1, 2, 3)}
    sources = {"e": "a", "t": "b"}
    questions = [[key, sources[key[0]], key] for key in ids]
    correct = {"e1": 1, "t1": 0, "e2": 1, "t2": 1, "e3": 0, "t3": 0}
    answers = [["gull", key, value] for key, value in correct.items()]
    run(
        *("--sample", tmp_path / "sample.csv", "--out", tmp_path / "out"),
        *("--answers", written(tmp_path / "answers.csv", ["llm", "question_id", "correct"], answers)),
        *("--questions", written(tmp_path / "questions.csv", ["id", "source", "question"], questions)),
    )
    with (tmp_path / "out/figure4.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["figure"], row["rise"], row["n"], row["value"]) for row in rows] == [
        ("share", "any", "2", "0.5"),
        ("share", "0.25 or more", "2", "0.5"),
        ("share", "0.5 or more", "1", "1.0"),
        ("share", "0.75 or more", "1", "1.0"),
        ("pair", "", "1", "0.9"),
    ]
    page = (tmp_path / "out/index.html").read_text()
    assert "predicted changes stand in place of stated ones" in page
    assert "Not here: it needs beliefs and answers of people, which no file has" in page
    assert (tmp_path / "out/figure6.csv").exists() and not (tmp_path / "out/figure7.csv").exists()


# Figure 6


def scored(scores: list[float]) -> paper.ScoredPairs:
    return paper.ScoredPairs(np.array(scores), lambda place: (f"e{place}", f"t{place}"))


def test_figure_6_has_both_ends_of_the_predictions_in_order() -> None:
    piece = paper_figures.figure_6({1: scored([0.2, 0.9, 0.5]), 0: scored([0.1])}, "Made up.", most=2)
    rows = [(row["outcome"], row["figure"], row["place"], row["value"], row["q1"]) for row in rows_of(piece)]
    assert rows == [
        (1, "highest", 1, 0.9, "e1"),
        (1, "highest", 2, 0.5, "e2"),
        (1, "lowest", 1, 0.2, "e0"),
        (1, "lowest", 2, 0.5, "e2"),
        (0, "highest", 1, 0.1, "e0"),
        (0, "lowest", 1, 0.1, "e0"),
    ]


def test_figure_6_of_a_predictor_with_one_number_says_that_it_means_nothing() -> None:
    piece = paper_figures.figure_6({1: scored([0.4, 0.4])}, "Made up.")
    assert piece.table is not None and "gives every pair the same number" in piece.table.note


# Figure 7


def test_figure_7_has_intervals_and_no_accuracy_where_nothing_matches() -> None:
    line = CalibrationLine(
        "people",
        (
            RegionAccuracy(0, 30, 5, 3, 4, 2, 9, 12.0, 0.4, 0.1, degrees_of_freedom=4),
            RegionAccuracy(30, 70, 0, 0, 0, 0, 0, float("nan"), float("nan"), float("nan")),
        ),
    )
    low, none = rows_of(paper_figures.figure_7([line], "Made up.", {"language models": 2}))
    assert low["unreadable"] is None
    assert (low["n"], low["value"]) == (5, 0.4)
    assert (low["low"], low["high"]) == pytest.approx((0.4 - 0.1 * 2.776445, 0.4 + 0.1 * 2.776445))
    assert (none["n"], none["value"], none["low"], none["mean_belief"]) == (0, None, None, None)


@pytest.mark.thorough
@pytest.mark.django_db
def test_figure_7_is_of_models_alone_until_the_peoples_study_is_named() -> None:
    bank = cast.small_bank(N, tasks=2)
    study = frozen_beliefs(bank)
    people = people_study(bank, right=even)
    assert "neither people nor language models" in pieces(study)["figure7"].missing
    model(bank)
    alone = pieces(study)["figure7"]
    assert {row["answerers_are"] for row in rows_of(alone)} == {"language models"}
    assert alone.table is not None and "No people: name the study" in alone.table.note
    both = {piece.name: piece for piece in paper_study.pieces_of(study, people_study=people)}["figure7"]
    assert {row["answerers_are"] for row in rows_of(both)} == {"people", "language models"}


@pytest.mark.slow
@pytest.mark.django_db
def test_the_command_takes_the_only_study_of_people_and_the_report_does_not(tmp_path: Path) -> None:
    bank = cast.small_bank(N, tasks=2)
    study = frozen_beliefs(bank)
    people_study(bank, right=even)
    model(bank)
    run(study.slug, "--out", tmp_path)
    with (tmp_path / "figure7.csv").open(newline="") as file:
        assert {row["answerers_are"] for row in csv.DictReader(file)} == {"people", "language models"}
    (table,) = [table for table in reports.make(study, "paper").tables if table.name == "figure7"]
    assert {row[0] for row in table.rows} == {"language models"}


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.django_db
def test_no_change_at_all_leaves_every_other_figure() -> None:
    study = cast_study()
    answers_of("good", study, share=0.6)
    Belief.objects.update(value=50)
    paper_pieces = pieces(study)
    (row,) = [row for row in rows_of(paper_pieces["figure4"]) if row["figure"] == "share"]
    assert row["rise"] == "any"
    assert not any(
        paper_pieces[name].missing for name in ("figure2", "figure3_left", "figure3_right", "figure5", "figure6")
    )


def cast_study() -> Study:
    return run_study(**ADAPTIVE)


def frozen_beliefs(bank: Bank) -> Study:
    study = belief_study(bank, posterior=lambda pair, _sitting: 90 if pair.target.position % 2 == 0 else 10)
    jobs.run_inline(lifecycle.close_stage(cast.stage_of(study)))
    return cast.stage_of(study).study


def pieces(study: Study) -> dict[str, Any]:
    return {piece.name: piece for piece in paper_study.pieces_of(study)}
