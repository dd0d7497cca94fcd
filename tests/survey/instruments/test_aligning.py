"""Language models on trial in a study: against plain computations from the rows."""

import csv
import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import pytest
from django.core.management import call_command

from survey.contracts.reports import ReportArguments
from survey.exceptions import HunchError, StateRefused
from survey.instruments.belief_update.reports.alignment import aligning, both_outcomes
from survey.instruments.belief_update.reports.alignment.report import AlignmentReport
from survey.models import Assignment, CandidateSet, LanguageModel, ModelAnswer, Study
from survey.services.banks.eligibility import eligible_questions
from survey.services.base import files
from survey.services.results import reports
from survey.services.results.estimates.study_estimates import estimate
from survey.services.stages import scoring
from survey.services.stages.needed_files import needed_files
from tests import cast
from tests.survey.filled import NO_ROLES, run_study

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

ADAPTIVE: dict[str, Any] = {
    "stages": [{"sittings": 20}, {"sittings": 20, "design": {"kind": "epsilon_greedy", "epsilon": 0.25}}],
    "predictor": {"name": "same_task"},
    "candidates": {"size": 1500},
    **NO_ROLES,
}


@pytest.fixture
def study() -> Study:
    return run_study(**ADAPTIVE)


def answers_of(name: str, study: Study, *, share: float, leave_out: int = 0) -> dict[int, int]:
    """A model that is right on a random share of the questions, with the last `leave_out` unanswered."""
    rng = np.random.default_rng(len(name))
    model = LanguageModel.objects.create(name=name)
    questions = eligible_questions(study)
    answers = {question.pk: int(rng.random() < share) for question in questions[: len(questions) - leave_out]}
    ModelAnswer.objects.bulk_create(
        ModelAnswer(language_model=model, question_id=key, correct=bool(correct)) for key, correct in answers.items()
    )
    return answers


def by_hand(study: Study, answers: dict[int, int], alpha: float) -> tuple[float, int]:
    """Weighted accuracy by plain loops over the stored candidates."""
    stored = CandidateSet.objects.get(stage__study=study, stage__index=2)
    questions = eligible_questions(study)
    figures = {figure.name: figure.combined.value / 100 for figure in estimate(study).figures if figure.combined}
    gained = most = 0.0
    count = 0
    for row in files.load_array(stored.file_sha256):
        first, second = questions[row["evidence"]].pk, questions[row["target"]].pk
        if answers.get(first) != row["outcome"] or second not in answers:
            continue
        after = figures["posterior_correct" if row["outcome"] else "posterior_incorrect"]
        p = float(row["score"])
        belief = p * after + (1 - p) * figures["prior"]
        y = answers[second]
        gained += y * belief + alpha * (1 - y) * (1 - belief)
        most += y + alpha * (1 - y)
        count += 1
    return gained / most, count


@pytest.mark.thorough
def test_a_models_accuracy_is_that_over_the_candidates_with_its_real_outcomes(study: Study) -> None:
    answers = answers_of("good", study, share=0.8)
    alignment = aligning.alignment_of(study, alphas=[1, 19], samples=200)
    (score,) = alignment.scores
    for place, alpha in enumerate((1, 19)):
        value, count = by_hand(study, answers, alpha)
        assert score.accuracy[place] == pytest.approx(value, abs=1e-6)
        assert score.pairs == count
    assert (score.accuracy_interval[:, 0] < score.accuracy).all()


@pytest.mark.thorough
def test_averages_are_the_studys_own_estimates(study: Study) -> None:
    answers_of("good", study, share=0.8)
    figures = {figure.name: figure.combined for figure in estimate(study).figures}
    assert aligning.alignment_of(study, samples=200).averages.prior == pytest.approx(figures["prior"].value / 100)


@pytest.mark.thorough
def test_models_are_compared_each_over_its_own_pairs(study: Study) -> None:
    answers_of("good", study, share=0.9)
    answers_of("poorer", study, share=0.3)
    alignment = aligning.alignment_of(study, samples=400)
    (difference,) = alignment.differences
    first, second = alignment.scores
    assert difference.accuracy == pytest.approx(first.accuracy - second.accuracy)
    assert first.accuracy[0] > second.accuracy[0]


def test_a_model_with_few_answers_is_left_out_and_named(study: Study) -> None:
    answers_of("good", study, share=0.8)
    answers_of("hardly", study, share=0.8, leave_out=len(eligible_questions(study)) - 2)
    alignment = aligning.alignment_of(study, samples=200)
    assert [score.name for score in alignment.scores] == ["good"]
    assert any(note.startswith("hardly: left out") for note in alignment.notes)


@pytest.mark.thorough
def test_beliefs_by_regression_stand_beside_the_mixture(study: Study) -> None:
    answers_of("good", study, share=0.8)
    alignment = aligning.alignment_of(study, samples=200)
    assert alignment.beliefs is not None
    assert {table.beliefs for table in alignment.deployment} == {"mixture", "regression"}
    assert all(0 <= model.performance <= model.mean <= 1 for table in alignment.deployment for model in table.models)


def test_the_report_is_json(study: Study) -> None:
    answers_of("good", study, share=0.8)
    ModelAnswer.objects.filter(question=eligible_questions(study)[0]).update(unreadable=1)
    row = json.loads(json.dumps(aligning.alignment_of(study, samples=200).as_json()))
    assert row["scores"][0]["name"] == "good"
    assert len(row["scores"][0]["accuracy_interval"]) == 4
    assert "good: 1 of its replies to 40 questions could not be read; they count as not right" in row["notes"]
    assert row["unreadable"] == {"good": 1}
    made = reports.make(study, "alignment", {"samples": ["200"]})
    for name in ("alignment", "deployment"):
        (table,) = (table for table in made.tables if table.name == name)
        assert {row["unreadable"] for row in table.records()} == {1}


def test_it_says_which_pairs_carry_the_ranking_of_models(study: Study) -> None:
    answers_of("good", study, share=0.8)
    answers_of("poor", study, share=0.5)
    alignment = aligning.alignment_of(study, samples=200)
    for table in alignment.deployment:
        ranked = sorted(table.models, key=lambda model: -model.performance)
        (pair,) = table.fragility.neighbours
        assert [table.models[pair.ahead].name, table.models[pair.behind].name] == [model.name for model in ranked]
        assert pair.margin == pytest.approx(ranked[0].performance - ranked[1].performance)
        assert pair.margin_after is not None
        assert pair.margin_after < 0
    nothing = dict.fromkeys(("alpha", "condition", "llm", "task"), ())
    asked = ReportArguments(threshold=("0.5",), samples=("200",), failures=("10",), **nothing)
    report = AlignmentReport().make(study, asked)
    table = next(table for table in report.tables if table.name == "fragility")
    assert {row[1] for row in table.rows} == {"first", "neighbours"}
    row = next(row for row in table.rows if row[1] == "neighbours")
    assert len(row[8].split("; ")) == row[5]


@pytest.fixture
def tried(study: Study) -> Study:
    """With a model of an odd name that is right on two questions of three."""
    model = LanguageModel.objects.create(name="<b>one</b>")
    ModelAnswer.objects.bulk_create(
        ModelAnswer(language_model=model, question=question, correct=place % 3 > 0)
        for place, question in enumerate(eligible_questions(study))
    )
    return study


def command(*options: str) -> str:
    out = io.StringIO()
    call_command("alignment", *options, stdout=out, stderr=out)
    return out.getvalue()


def test_the_command_takes_weights_as_they_are_and_no_seed_for_a_study(tried: Study, tmp_path: Path) -> None:
    arguments = [f"--study={tried.slug}", "--alpha=1234567", "--samples=100", f"--out={tmp_path}"]
    command(*arguments)
    with (tmp_path / "alignment.csv").open(newline="") as file:
        assert {float(row["alpha"]) for row in csv.DictReader(file)} == {1234567.0}
    err = io.StringIO()
    with pytest.raises(SystemExit):
        call_command("alignment", *arguments, "--seed=3", stdout=io.StringIO(), stderr=err)
    assert "--seed: is for files: a study's resamples follow from its own seed" in err.getvalue()


def test_the_command_of_a_study_gives_the_scores_of_its_report(tried: Study, tmp_path: Path) -> None:
    text = command(f"--study={tried.slug}", "--alpha=1,19", "--samples=100", f"--out={tmp_path}")
    assert "Weighted binary cross-entropy (lower is better), by alpha" in text and "19 (95.0 %)" in text
    assert "deployed as often as believed" in text and "Pairs that led people astray" in text
    with (tmp_path / "alignment.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["llm"], row["alpha"], row["threshold"]) for row in rows] == [
        ("<b>one</b>", "1", "0.5"),
        ("<b>one</b>", "19", "0.95"),
    ]
    scores = json.loads((tmp_path / "alignment.json").read_text())["data"]["scores"]
    assert [float(row["accuracy"]) for row in rows] == scores[0]["accuracy"]


def test_what_cannot_be_asked_is_refused(tried: Study) -> None:
    for name, text, message in (
        ("condition", "mode=odd", "has no"),
        ("alpha", "-1", "alpha: "),
        ("failures", "many", "failures: "),
    ):
        with pytest.raises(HunchError, match=message) as refused:
            reports.make(tried, "alignment", {name: [text], "samples": ["100"]})
        assert refused.value.status == 400


@pytest.mark.thorough
def test_a_task_that_does_not_exist_leaves_no_failures(tried: Study) -> None:
    for asked, some in (({}, True), ({"task": ["weather"]}, False)):
        (table,) = (table for table in reports.make(tried, "alignment", asked).tables if table.name == "failures")
        assert bool(table.rows) is some and ("None." in table.note) is not some


def test_failures_are_pairs_that_led_people_astray(study: Study) -> None:
    answers = answers_of("good", study, share=0.6)
    lines = aligning.failures_of(study)
    assert lines
    assert [line.gain for line in lines] == sorted((line.gain for line in lines), reverse=True)
    for line in lines:
        assert (answers[line.evidence.pk], answers[line.target.pk]) == (1, 0)
        changes = []
        for assignment in Assignment.objects.filter(
            slot__item__pair__evidence=line.evidence,
            slot__item__pair__target=line.target,
            slot__item__pair__outcome=True,
            state="counted",
        ):
            values = {response.screen: response.belief.value for response in assignment.responses.all()}
            changes.append(values["posterior"] - values["prior"])
        assert line.gain == pytest.approx(np.mean(changes))
        assert line.answers == len(changes)
    task = lines[0].target.task.name
    assert all(
        task in (failure.evidence.task.name, failure.target.task.name)
        for failure in aligning.failures_of(study, task=task)
    )
    assert aligning.failures_of(study, llm="nobody") == []


def test_without_models_people_or_scores_it_says_what_is_missing(study: Study) -> None:
    with pytest.raises(StateRefused, match="import_answers"):
        aligning.alignment_of(study)
    fresh = cast.small_study("fresh")
    with pytest.raises(StateRefused, match="uniform pool") as refused:
        aligning.alignment_of(fresh)
    assert refused.value.status == 409
    (line,) = (line for line in reports.lines_of(fresh) if line.entry.name == "alignment")
    assert "uniform pool" in line.obstacle
    with pytest.raises(StateRefused, match="no answer counts"):
        aligning.failures_of(fresh)


# Fractions, and candidates that are all pairs


def in_fractions(study: Study, name: str = "graded") -> dict[int, float]:
    """A model whose answers are right in 0, 1, 2, 3 or 4 of 4 replies."""
    rng = np.random.default_rng(4)
    model = LanguageModel.objects.create(name=name)
    answers = {question.pk: int(rng.integers(0, 5)) / 4 for question in eligible_questions(study)}
    rows = [ModelAnswer(language_model=model, question_id=key) for key in answers]
    for row in rows:
        row.grade(answers[row.question_id])
    ModelAnswer.objects.bulk_create(rows)
    return answers


def accuracy_in_fractions(study: Study, answers: dict[int, float], alpha: float) -> float:
    stored = aligning.scored_pool(study)
    questions = eligible_questions(study)
    figures = {figure.name: figure.combined.value / 100 for figure in estimate(study).figures if figure.combined}
    gained = most = 0.0
    for row in aligning.pool_rows(stored):
        t = answers[questions[row["evidence"]].pk]
        chance = t if row["outcome"] else 1 - t
        after = figures["posterior_correct" if row["outcome"] else "posterior_incorrect"]
        belief = float(row["score"]) * after + (1 - float(row["score"])) * figures["prior"]
        y = answers[questions[row["target"]].pk]
        gained += chance * (y * belief + alpha * (1 - y) * (1 - belief))
        most += chance * (y + alpha * (1 - y))
    return gained / most


@pytest.mark.thorough
def test_a_model_that_answers_in_fractions_is_scored_by_the_chance_of_its_outcomes(study: Study) -> None:
    answers = in_fractions(study)
    alignment = aligning.alignment_of(study, alphas=[1, 19], samples=200)
    (score,) = alignment.scores
    for place, alpha in enumerate((1, 19)):
        assert score.accuracy[place] == pytest.approx(accuracy_in_fractions(study, answers, alpha), abs=1e-6)
    assert score.accuracy_interval[0, 0] < score.accuracy[0] < score.accuracy_interval[0, 1]
    deployed = alignment.deployment[1].models[0]
    assert 0 < deployed.performance < deployed.mean < 1
    assert all(answers[line.evidence.pk] > 0.5 > answers[line.target.pk] for line in aligning.failures_of(study))


@pytest.mark.thorough
@pytest.mark.torch
def test_candidates_that_are_all_pairs_have_uniform_pairs_beside_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scoring, "UNIFORM", 200)
    study = run_study(**{**ADAPTIVE, "candidates": {"kind": "exhaustive"}})
    stored = aligning.scored_pool(study)
    assert stored.kind == CandidateSet.Kind.EXHAUSTIVE and stored.uniform_sha256 in needed_files()
    rows = aligning.pool_rows(stored)
    assert len(rows) == len(np.unique(rows[["evidence", "target", "outcome"]])) == 200
    answers = answers_of("good", study, share=0.8)
    (score,) = aligning.alignment_of(study, alphas=[19], samples=200).scores
    exact = {key: float(value) for key, value in answers.items()}
    assert score.accuracy[0] == pytest.approx(accuracy_in_fractions(study, exact, 19), abs=1e-6)


def test_a_flag_changes_no_figure_of_a_pool_that_was_planned_before_and_is_said(study: Study) -> None:
    answers_of("parrot", study, share=0.6)
    before = aligning.alignment_of(study, samples=100)
    study.bank.questions.filter(position__in=(3, 5)).update(flag="broken", flag_reason="a typing error")
    after = aligning.alignment_of(study, samples=100)
    assert after.as_json()["scores"] == before.as_json()["scores"]
    assert [note for note in after.notes if note not in before.notes] == [
        "2 questions were flagged since stage 2 was planned with them, and still count: q3, q5"
    ]
    # Scored and not planned yet: the workers score it again, and until then nobody knows what its rows mean.
    study.stages.filter(index=2).update(state="draft")
    with pytest.raises(StateRefused, match="questions were flagged since stage 2 was scored"):
        aligning.alignment_of(study, samples=100)


def test_pairs_of_both_outcomes_are_drawn_by_the_seed_of_the_stage_that_was_scored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scored = SimpleNamespace(predictor_run=object(), stage=SimpleNamespace(seed=5, index=2))
    one_outcome = SimpleNamespace(pairing=object(), real=None)
    seeds: list[tuple[Any, ...]] = []
    monkeypatch.setattr(both_outcomes, "belief_update_of", lambda _study: one_outcome)
    monkeypatch.setattr(both_outcomes, "scored_pool", lambda _study: scored)
    monkeypatch.setattr(both_outcomes, "candidate_questions", lambda _pool: [1, 2, 3])
    monkeypatch.setattr(both_outcomes, "generator", lambda *facts: seeds.append(facts))
    monkeypatch.setattr(both_outcomes, "uniform_pool", mock.Mock(side_effect=LookupError))
    with pytest.raises(LookupError):
        both_outcomes.score_both_outcomes(Study(slug="s", seed=7), progress=lambda *_done: None)
    assert seeds == [(5, "both outcomes")]
