"""`release`: a study in the paper's columns, in a folder, on a page and by API, and what predictors make of it."""

import csv
import hashlib
import io
import json
import re
from pathlib import Path

import pytest
from django.core.management import call_command

from predictors.datasets import read
from survey.instruments.belief_update.export import PAPER_COLUMNS
from survey.instruments.belief_update.labels import beliefs_of
from survey.instruments.belief_update.management.commands import evaluate_predictors
from survey.instruments.belief_update.reports.release import releasing
from survey.models import (
    Assignment,
    AuditEntry,
    LanguageModel,
    ModelAnswer,
    Respondent,
    Slot,
    Stage,
    Study,
)
from survey.services.answers.counting import training_examples
from survey.services.answers.majorities import majorities_of
from survey.services.results import reports
from survey.services.stages import jobs, lifecycle
from tests import cast
from tests.survey.answers.test_majorities import answered_test_stage, change, frozen_test_stage, study_with

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

NAMES = [column.name for column in PAPER_COLUMNS]


@pytest.fixture(autouse=True)
def threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluate_predictors, "limit_threads", lambda count: None)


def released(study: Study, folder: Path) -> str:
    out = io.StringIO()
    call_command("release", study.slug, "--out", str(folder), stdout=out, stderr=io.StringIO())
    return out.getvalue()


def refused(*arguments: str) -> str:
    err = io.StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command(*arguments, stdout=io.StringIO(), stderr=err)
    assert ended.value.code == 1
    return err.getvalue()


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        rows = list(reader)
    assert reader.fieldnames == NAMES
    return rows


def test_it_writes_training_answers_majorities_and_counts(tmp_path: Path) -> None:
    stage = frozen_test_stage(ties="left_out")
    printed = released(stage.study, tmp_path)
    assert printed.splitlines()[1] == "12 training rows, 4 test rows"
    assert {path.name for path in tmp_path.iterdir()} == {
        *("train.csv", "test.csv", "README.md", "counts.csv", "release.json", "report.md")
    }
    train, test = rows_of(tmp_path / "train.csv"), rows_of(tmp_path / "test.csv")
    assert (len(train), len(test)) == (12, 4)
    labelled = [majority_row for majority_row in majorities_of(stage) if majority_row.label is not None]
    for row, majority in zip(test, labelled, strict=True):
        pair = majority.answer.slot.item.pair
        assert (row["q1"], row["q2"]) == (pair.evidence.text, pair.target.text)
        assert (row["source1"], row["source2"]) == (pair.evidence.task.name, pair.target.task.name)
        assert (row["previous_correct"], row["belief_change"]) == (str(int(pair.outcome)), str(majority.label))
    page = (tmp_path / "README.md").read_text(encoding="utf-8")
    for name, rows in (("train.csv", train), ("test.csv", test)):
        changed, correct = (sum(int(row[column]) for row in rows) for column in ("belief_change", "previous_correct"))
        sha256 = hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()
        assert f"| {name} | {len(rows)} | {changed} | {correct} | {sha256} |" in page
    assert "Stage 2: 6 items, 4 to 4 answers each, 2 with the label 1, 2 with the label 0, 2 ties" in page
    assert "items with a tie have no label" in page
    assert "- 36 frozen answers count; 12 of them are in `train.csv`." in page


@pytest.mark.thorough
def test_the_rows_say_nothing_about_people(tmp_path: Path) -> None:
    study = frozen_test_stage().study
    released(study, tmp_path)
    for path in tmp_path.iterdir():
        text = path.read_text(encoding="utf-8")
        for person in Respondent.objects.filter(study=study):
            assert person.pseudonym not in text


def test_answers_about_a_held_out_pair_are_no_training_rows(tmp_path: Path) -> None:
    """The pair of a test stage, asked the other way round in the first stage."""
    stage = answered_test_stage()
    seen = Slot.objects.filter(stage__study=stage.study, stage__index=1).order_by("number").first()
    assert seen is not None
    tested = stage.slots.order_by("number").first().item.pair
    type(tested).objects.filter(item=seen.item_id).update(
        evidence=tested.target_id, target=tested.evidence_id, outcome=not tested.outcome
    )
    jobs.run_inline(lifecycle.close_stage(stage))
    released(stage.study, tmp_path)
    pairs = {frozenset((row["q1"], row["q2"])) for row in rows_of(tmp_path / "train.csv")}
    assert len(rows_of(tmp_path / "train.csv")) == 11
    assert not pairs & {frozenset((row["q1"], row["q2"])) for row in rows_of(tmp_path / "test.csv")}


def evaluated(*arguments: str) -> str:
    out = io.StringIO()
    call_command("evaluate_predictors", *arguments, "--samples=50", stdout=out, stderr=io.StringIO())
    return out.getvalue()


@pytest.mark.thorough
def test_predictors_have_the_same_table_on_the_files_and_on_the_study(tmp_path: Path) -> None:
    study = frozen_test_stage().study
    released(study, tmp_path / "files")
    common = ("--predictors", "previous_correct,same_task", "--seed", "3")
    files = ("--train", str(tmp_path / "files/train.csv"), "--test", str(tmp_path / "files/test.csv"))
    from_files = evaluated(*files, *common, "--out", str(tmp_path / "one"))
    from_study = evaluated("--study", study.slug, *common, "--out", str(tmp_path / "two"))
    for name in ("metrics.json", "predictions.csv", "auc_by_group.csv"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    table = from_files.index("Table 1"), from_files.index("Expected calibration error")
    assert from_files[slice(*table)] == from_study[slice(*table)]
    assert from_study.startswith("12 training rows, 6 test rows\n")
    facts = json.loads((tmp_path / "two/comparison.json").read_text())
    assert (facts["study"], facts["train"], facts["folds"]) == ("small", [], None)


def test_the_files_are_read_back_as_they_are_in_the_database(tmp_path: Path) -> None:
    stage = frozen_test_stage()
    released(stage.study, tmp_path)
    table = read(tmp_path / "test.csv")
    majorities = majorities_of(stage)
    assert table.labels.tolist() == [majority.label for majority in majorities]
    assert [pair.target_text for pair in table.pairs] == [
        majority.answer.slot.item.pair.target.plain for majority in majorities
    ]


# What is missing


def test_a_study_without_a_test_stage_has_training_rows_and_a_sentence(tmp_path: Path) -> None:
    stage = cast.closed_stage(predictor={"name": "same_task"})
    jobs.run_inline(stage)
    study = cast.stage_of(stage.study, 1).study
    released(study, tmp_path)
    assert not (tmp_path / "test.csv").exists()
    page = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert 'There is no `test.csv`: the study has no test stage (a stage with the design "test_set").' in page
    assert len(rows_of(tmp_path / "train.csv")) == 12
    said = refused("evaluate_predictors", "--study", "small", "--predictors", "same_task")
    assert said.startswith("--study small: there are no labels to test on: the study has no test stage")


def test_a_test_stage_that_is_open_is_named(tmp_path: Path) -> None:
    stage = answered_test_stage()
    released(stage.study, tmp_path)
    assert "There is no `test.csv`: test stage 2 is not frozen yet." in (tmp_path / "README.md").read_text()


def test_a_test_stage_without_labels_is_named(tmp_path: Path) -> None:
    first = cast.closed_stage(**study_with())
    jobs.run_inline(first)
    second = lifecycle.open_stage(cast.stage_of(first.study, 2))
    jobs.run_inline(lifecycle.close_stage(second))
    released(second.study, tmp_path)
    assert "no item of test stage 2 has a majority label" in (tmp_path / "README.md").read_text()


def test_an_older_test_file_is_never_left_beside_a_release_that_has_none(tmp_path: Path) -> None:
    stage = cast.closed_stage(predictor={"name": "same_task"})
    jobs.run_inline(stage)
    (tmp_path / "test.csv").write_text("of another study")
    said = refused("release", "small", "--out", str(tmp_path))
    assert "holds a test.csv of another release, and this one has none" in said
    assert [path.name for path in tmp_path.iterdir()] == ["test.csv"]


def test_a_study_in_which_nothing_is_frozen_says_so(tmp_path: Path) -> None:
    cast.open_stage()
    said = refused("release", "small", "--out", str(tmp_path / "new"))
    assert said.startswith("small: no stage whose answers train is frozen yet")
    assert not (tmp_path / "new").exists()
    assert said == refused("evaluate_predictors", "--study", "small", "--predictors", "same_task")
    assert "no study" in refused("evaluate_predictors", "--study", "other", "--predictors", "same_task")


def test_a_stage_that_nobody_answered_says_so(tmp_path: Path) -> None:
    stage = cast.open_stage(predictor={"name": "same_task"})
    jobs.run_inline(lifecycle.close_stage(stage))
    assert "none of the frozen answers may train" in refused("release", "small", "--out", str(tmp_path))


def test_a_test_stage_in_which_all_agree_is_released_and_no_predictor_is_measured(tmp_path: Path) -> None:
    stage = answered_test_stage()
    for answer in Assignment.objects.filter(slot__stage=stage):
        change(answer, changes=True)
    jobs.run_inline(lifecycle.close_stage(stage))
    released(stage.study, tmp_path)
    assert {row["belief_change"] for row in rows_of(tmp_path / "test.csv")} == {"1"}
    said = refused("evaluate_predictors", "--study", "small", "--predictors", "same_task")
    assert said.startswith("small test.csv: belief_change: all 6 rows with weight are 1")


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    frozen_test_stage()
    assert "taken: cannot be written" in refused("release", "small", "--out", str(tmp_path / "taken"))


def test_other_instruments_have_no_release(tmp_path: Path) -> None:
    study = cast.study(slug="own", instrument={"kind": "own_answers"}, stages=[{"sittings": 4}], sitting={"items": 3})
    assert "own has no report 'release'" in refused("release", study.slug, "--out", str(tmp_path))
    said = refused("evaluate_predictors", "--study", "own", "--predictors", "same_task")
    assert "is of the kind own_answers; only belief studies have such rows" in said


# Page, API and audit


def test_the_report_gives_the_files_of_the_command(tmp_path: Path) -> None:
    study = frozen_test_stage().study
    released(study, tmp_path)
    findings = reports.make(study, "release", {})
    assert any("12 training rows, 6 test rows" in line for line in findings.lines)
    assert [file.name for file in findings.files] == ["train.csv", "test.csv", "README.md"]
    for file in findings.files:
        assert (tmp_path / file.name).read_bytes() == file.content()
    assert (findings.data["train_rows"], findings.data["test_rows"]) == (12, 6)
    assert findings.data["tests"][0]["sha256"] == cast.stage_of(study, 2).manifest["majorities"]["sha256"]


def test_every_release_is_in_the_audit(tmp_path: Path) -> None:
    study = frozen_test_stage().study
    released(study, tmp_path)
    evaluated("--study", study.slug, "--predictors", "same_task")
    entries = AuditEntry.objects.filter(action="export_report", study=study.slug)
    assert [entry.detail["report"] for entry in entries] == ["release", "release"]


def test_simulated_respondents_are_named(tmp_path: Path) -> None:
    stage = frozen_test_stage()
    assert releasing.release_of(stage.study).simulated == 0
    Respondent.objects.filter(study=stage.study).update(is_simulated=True)
    assert releasing.release_of(stage.study).simulated == 36
    released(stage.study, tmp_path)
    assert "36 of the frozen answers were given by simulated respondents" in (tmp_path / "README.md").read_text()


def test_a_stage_counts_its_rows(tmp_path: Path) -> None:
    stage = frozen_test_stage(ties="left_out")
    release = releasing.release_of(stage.study)
    assert [(stage.stage, stage.state, stage.frozen, stage.train, stage.test) for stage in release.stages] == [
        (1, Stage.State.FROZEN, 12, 12, 0),
        (2, Stage.State.FROZEN, 24, 0, 4),
    ]


def test_columns_of_how_hard_targets_are_follow_the_papers_and_give_the_study_the_same_table(tmp_path: Path) -> None:
    study = frozen_test_stage(ties="label_1").study
    target = training_examples(cast.stage_of(study))[0].slot.item.pair.target
    for name, correct in (("one", True), ("two", False)):
        model = LanguageModel.objects.create(name=name)
        ModelAnswer.objects.create(language_model=model, question=target, correct=correct)
    call_command("release", study.slug, "--out", str(tmp_path), "--columns", "people,models", stdout=io.StringIO())
    train, test = (list(csv.DictReader((tmp_path / name).open(newline=""))) for name in ("train.csv", "test.csv"))
    assert list(train[0]) == [*NAMES, "prior", "models_right"]
    answers = training_examples(cast.stage_of(study))
    assert [row["prior"] for row in train] == [str(beliefs_of(answer).prior) for answer in answers]
    assert train[0]["models_right"] == "0.5"
    assert {row["prior"] for row in test} == {""}, "a prior of a row kept back is in no file"
    assert "| prior | percentage points |" in (tmp_path / "README.md").read_text(encoding="utf-8")
    files = ("--train", str(tmp_path / "train.csv"), "--test", str(tmp_path / "test.csv"))
    shared = ("--predictors", "same_task", "--columns", "people,models", "--samples", "20")
    # All but the seconds that it took.
    of_files, of_study = (
        re.sub(r" +\d+\.\d$", "", evaluated(*arguments, *shared), flags=re.MULTILINE)
        for arguments in (files, ("--study", study.slug))
    )
    assert "same_task_people_models" in of_study
    assert of_files == of_study
    assert "columns: 'texts' is not one of people, models" in refused(
        "release", study.slug, "--out", str(tmp_path), "--columns", "texts"
    )
