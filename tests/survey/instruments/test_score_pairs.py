"""`score_pairs`: uniform pairs of a bank under both outcomes, by a predictor of a study or of a file of labels."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.core.management import call_command

from survey.instruments.belief_update.reports.alignment.files import read_sample
from survey.models import CandidateSet, Question, Study
from survey.services.base import files
from tests import cast
from tests.survey.instruments.test_paper import LABELS, labels_of, run_two_stages, written

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


def run(*arguments: Any) -> str:
    out = io.StringIO()
    call_command("score_pairs", *map(str, arguments), stdout=out)
    return out.getvalue()


def refused(*arguments: Any) -> str:
    err = io.StringIO()
    with pytest.raises(SystemExit):
        call_command("score_pairs", *map(str, arguments), stderr=err, stdout=io.StringIO())
    return err.getvalue()


def rounded(scores: np.ndarray) -> set[float]:
    return set(np.round(scores.astype(np.float64), 5).tolist())


def bank_of(study: Study) -> str:
    bank = study.bank
    return f"{bank.name}@{bank.version}"


def test_pairs_of_a_bank_by_a_studys_predictor_are_a_sample(tmp_path: Path) -> None:
    study = run_two_stages()
    out = tmp_path / "pairs.csv"
    bank = bank_of(study)
    said = run("--bank", bank, "--study", study.slug, "--stage", 1, "--pairs", 50, "--seed", 3, "--out", out)
    sample = read_sample(out)
    texts = {(question.task.name, question.text) for question in Question.objects.select_related("task")}
    assert len(sample) == 50 and {*sample.evidence, *sample.target} <= texts
    assert all(evidence != target for evidence, target in zip(sample.evidence, sample.target, strict=True))
    # It depends on outcome and tasks alone; stage 2's pool, which it scored, says what it expects of each kind.
    rows = files.load_array(CandidateSet.objects.get(stage__study=study, stage__index=2).file_sha256)
    by_outcome = {outcome: rounded(rows["score"][rows["outcome"] == outcome]) for outcome in (0, 1)}
    assert rounded(sample.change_if_correct) <= by_outcome[1]
    assert rounded(sample.change_if_incorrect) <= by_outcome[0]
    assert by_outcome[0] != by_outcome[1]
    assert f"{sample.change_if_correct.mean():.3f} and {sample.change_if_incorrect.mean():.3f}" in said
    before = out.read_bytes()
    run("--bank", bank, "--study", study.slug, "--stage", 1, "--pairs", 50, "--seed", 3, "--out", out)
    assert out.read_bytes() == before
    run("--bank", bank, "--study", study.slug, "--pairs", 50, "--seed", 4, "--out", out)
    assert read_sample(out).evidence != sample.evidence


def test_a_predictor_trained_on_labels_scores_the_questions_of_a_file(tmp_path: Path) -> None:
    labels = written(tmp_path / "labels.csv", LABELS, labels_of(200, 0))
    questions = [[f"q{index}", f"task {index % 2}", f"text {index}, with a comma"] for index in range(6)]
    file = written(tmp_path / "questions.csv", ["id", "source", "question"], questions)
    out = tmp_path / "pairs.csv"
    run("--questions", file, "--train", labels, "--predictor", "same_task", "--out", out)
    sample = read_sample(out)
    assert len(sample) == 6 * 5
    same = np.array([evidence[0] == target[0] for evidence, target in zip(sample.evidence, sample.target, strict=True)])
    for change in (sample.change_if_correct, sample.change_if_incorrect):
        assert change[same].min() > change[~same].max() + 0.2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--study", "nobody"], "no study"),
        (["--study", "unscored"], "unscored: no predictor has been trained yet"),
        (["--study", "unscored", "--predictor", "bert"], "--predictor: is for --train"),
        (["--train", "LABELS", "--stage", "1"], "--stage: is for --study"),
        (["--train", "LABELS", "--predictor", "same_task,previous_correct"], "name one predictor of texts alone"),
        (["--train", "LABELS", "--pairs", "100001"], "--pairs: 100001 is over 100000"),
        (["--train", "LABELS", "--out", "nowhere/pairs.csv"], "the folder nowhere does not exist"),
        (["--train", "ONE CLASS"], "rows of the class 0 are needed too"),
    ],
)
def test_what_cannot_be_scored_says_why_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    study = cast.small_study("unscored")
    written(Path("LABELS"), LABELS, labels_of(40, 0))
    written(Path("ONE CLASS"), LABELS, [[*row[:5], 1] for row in labels_of(40, 0)])
    bank = bank_of(study)
    assert message in refused("--bank", bank, "--out", "pairs.csv", *arguments)
    assert not Path("pairs.csv").exists()
