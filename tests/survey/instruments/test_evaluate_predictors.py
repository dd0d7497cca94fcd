"""`manage.py evaluate_predictors`: from files to table 1, predictions, figures and errors in words."""

import csv
import io
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from django.conf import settings
from django.core.management import call_command

from predictors import registry
from predictors.errors import CheckpointError
from predictors.evaluation import area_under_curve, negative_log_likelihood
from survey.figures.words import NOTHING
from survey.instruments.belief_update.management.commands import evaluate_predictors

COLUMNS = ["q1", "q2", "source1", "source2", "previous_correct", "belief_change"]
SOFT = ["q1", "q2", "source1", "source2", "pred_if_correct", "pred_if_incorrect"]
CHEAP = "previous_correct, same_task"
FILES = {
    *("metrics.json", "comparison.json", "predictions.csv", "auc_by_group.csv"),
    *("auc.svg", "roc.svg", "calibration.svg", "rank_curve.svg"),
}


@pytest.fixture(autouse=True)
def threads(monkeypatch):
    """Other tests of this process keep their threads; what was asked for is kept."""
    asked: list[int] = []
    monkeypatch.setattr(evaluate_predictors, "limit_threads", asked.append)
    return asked


def written(path, rows, columns=COLUMNS):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([columns, *rows])
    return str(path)


def rows_of(n, *, start=0, seed=0):
    """Rows whose label depends on the outcome and on whether both tasks are the same."""
    rng = np.random.default_rng(seed)
    made = []
    for index in range(start, start + n):
        tasks = [f"task {rng.integers(3)}", f"task {rng.integers(3)}"]
        outcome = index % 2
        label = int(rng.uniform() < 0.2 + 0.4 * (tasks[0] == tasks[1]) + 0.2 * (1 - outcome))
        made.append([f"<b>question {index}<br></b>(A)", f"target {index}", *tasks, outcome, label])
    return made


@pytest.fixture
def train(tmp_path):
    return written(tmp_path / "train.csv", rows_of(200))


@pytest.fixture
def test_file(tmp_path):
    return written(tmp_path / "test.csv", rows_of(80, start=1000, seed=1))


def run(*arguments):
    out, err = io.StringIO(), io.StringIO()
    call_command("evaluate_predictors", *map(str, arguments), "--samples=50", stdout=out, stderr=err)
    return out.getvalue()


def refused(*arguments):
    """What the command writes to stderr when it ends with status 1, and what it printed before."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("evaluate_predictors", *map(str, arguments), "--samples=20", stdout=out, stderr=err)
    assert ended.value.code == 1
    return err.getvalue(), out.getvalue()


def test_it_prints_table_1_with_intervals(train, test_file):
    printed = run("--train", train, "--test", test_file, "--predictors", CHEAP)
    lines = printed.splitlines()
    assert lines[0] == "200 training rows, 80 test rows"
    header = next(line for line in lines if "NLL correct" in line)
    assert header.split() == [
        "predictor",
        "NLL",
        "NLL",
        "correct",
        "NLL",
        "incorrect",
        "AUC",
        "AUC",
        "correct",
        "AUC",
        "incorrect",
    ]
    row = next(index for index, line in enumerate(lines) if line.split()[:1] == ["previous_correct"])
    assert lines[row].split()[-2:] == ["0.500", "0.500"]
    assert lines[row + 1].count("[") == 6
    assert "Difference from same_task" in printed
    assert "the 80 test rows none of whose questions is in a training row" in printed
    assert "tables 3 and 4" in printed


@pytest.mark.thorough
def test_it_writes_metrics_predictions_groups_and_figures(tmp_path, train, test_file):
    out = tmp_path / "new" / "out"
    run("--train", train, "--test", test_file, "--predictors", CHEAP, "--out", out, "--png")
    pictures = {name.replace(".svg", ".png") for name in FILES if name.endswith(".svg")}
    assert {path.name for path in out.iterdir()} == FILES | pictures
    metrics = json.loads((out / "metrics.json").read_text())
    assert list(metrics) == ["previous_correct", "same_task"]
    parts = {"overall", "previous_correct", "previous_incorrect"}
    for predictor_metrics in metrics.values():
        assert set(predictor_metrics) == {"nll", "auc", "intervals"}
        for metric in ("nll", "auc"):
            assert set(predictor_metrics[metric]) == set(predictor_metrics["intervals"][metric]) == parts
    assert metrics["previous_correct"]["auc"]["previous_correct"] == 0.5
    bits = json.loads((out / "comparison.json").read_text())["bits"]
    for name, predictor_metrics in metrics.items():
        assert set(bits[name]) == parts
        assert bits[name]["overall"] == pytest.approx(predictor_metrics["nll"]["overall"] / math.log(2))


def test_log_scores_are_printed_in_bits_too(train, test_file):
    lines = run("--train", train, "--test", test_file, "--predictors", CHEAP).splitlines()
    start = next(place for place, line in enumerate(lines) if "log scores in bits" in line)
    assert lines[start + 1].split() == ["predictor", "bits", "bits", "correct", "bits", "incorrect"]
    nats = next(line for line in lines if line.split()[:1] == ["previous_correct"]).split()[1:4]
    bits = next(line for line in lines[start:] if line.split()[:1] == ["previous_correct"]).split()[1:4]
    for in_nats, other in zip(nats, bits, strict=True):
        assert float(other) == pytest.approx(float(in_nats) / math.log(2), abs=2e-3)


@pytest.mark.slow
def test_the_written_predictions_give_the_written_metrics_row_by_row(tmp_path, train, test_file):
    run("--train", train, "--test", test_file, "--predictors", CHEAP, "--out", tmp_path / "out")
    metrics = json.loads((tmp_path / "out/metrics.json").read_text())
    with (tmp_path / "out/predictions.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    assert header == [*COLUMNS, "previous_correct", "same_task"]
    with Path(test_file).open(newline="") as file:
        assert [row[:6] for row in rows] == list(csv.reader(file))[1:]
    labels, column = (np.array([float(row[place]) for row in rows]) for place in (5, 7))
    assert metrics["same_task"]["auc"]["overall"] == area_under_curve(labels, column)
    assert metrics["same_task"]["nll"]["overall"] == negative_log_likelihood(labels, column)


@pytest.mark.thorough
def test_the_same_seed_gives_the_same_files(tmp_path, train, test_file):
    for name in ("one", "two"):
        run("--train", train, "--test", test_file, "--predictors", CHEAP, "--out", tmp_path / name, "--seed", 3)
    for name in FILES - {"comparison.json"}:  # That one holds the seconds it took.
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_pairs_with_soft_labels_are_training_rows_too(tmp_path, train, test_file):
    soft = written(tmp_path / "soft.csv", [["a", "b", "x", "y", "0.2", "0.6"]], SOFT)
    printed = run("--train", train, "--train", soft, "--test", test_file, "--predictors", CHEAP)
    assert "202 training rows" in printed


def test_training_rows_that_are_test_pairs_are_left_out_and_counted(tmp_path, train):
    row = rows_of(1)[0]
    turned = [row[1], row[0], row[3], row[2], row[4], row[5]]
    test = written(tmp_path / "test.csv", [turned, *rows_of(40, start=1000)])
    printed = run("--train", train, "--test", test, "--predictors", CHEAP)
    assert "1 training rows are left out" in printed
    assert "199 training rows, 41 test rows" in printed


def test_where_no_training_row_is_left_it_says_so(test_file):
    said, _ = refused("--train", test_file, "--test", test_file, "--predictors", CHEAP)
    assert "no row is left to train on" in said


@pytest.mark.slow
def test_without_a_test_file_it_cross_validates_the_first_training_file(tmp_path, train):
    soft = written(tmp_path / "soft.csv", [["a", "b", "x", "y", "0.2", "0.6"]], SOFT)
    out = tmp_path / "out"
    printed = run("--train", train, "--train", soft, "--folds", 4, "--predictors", CHEAP, "--out", out)
    assert "200 of 200 rows are tested" in printed
    with (out / "predictions.csv").open(newline="") as file:
        assert len(list(csv.DictReader(file))) == 200
    assert json.loads((out / "comparison.json").read_text())["folds"] == 4


def test_cross_validation_may_keep_questions_apart(tmp_path):
    rows = rows_of(60)
    for index, row in enumerate(rows):
        row[0] = f"evidence {index % 30}"
    path = written(tmp_path / "train.csv", rows)
    apart = run("--train", path, "--folds", 3, "--predictors", "previous_correct", "--question-disjoint")
    assert "60 of 60 rows are tested" in apart
    assert apart != run("--train", path, "--folds", 3, "--predictors", "previous_correct")


@pytest.mark.slow
def test_shares_of_known_answers_are_measured_by_their_counts_too(tmp_path, train):
    rows = [[*row[:5], share, 4] for row, share in zip(rows_of(8, start=1000), [0, 0.25, 0.5, 1] * 2, strict=True)]
    test = written(tmp_path / "test.csv", rows, [*COLUMNS, "responses"])
    printed = run("--train", train, "--test", test, "--predictors", CHEAP, "--out", tmp_path / "out")
    assert "NLL per single answer" in printed
    assert json.loads((tmp_path / "out/comparison.json").read_text())["counts"]["same_task"]["answers"] == 32


class Broken:
    """Fails like an estimator whose checkpoint cannot be loaded."""

    error: Exception = CheckpointError("checkpoint: no/such is neither a folder nor on the hub; check the name.")

    def fit(self, *args):
        raise self.error


@pytest.fixture
def broken(monkeypatch):
    create = registry.create
    monkeypatch.setattr(
        registry, "create", lambda name, *rest: Broken() if name == "same_task" else create(name, *rest)
    )


@pytest.mark.slow
def test_a_predictor_that_fails_does_not_cost_the_others(tmp_path, train, test_file, broken):
    said, printed = refused(
        "--train", train, "--test", test_file, "--predictors", "same_task,previous_correct", "--out", tmp_path / "out"
    )
    assert "same_task: checkpoint: no/such is neither a folder nor on the hub" in said
    assert "Table 1" in printed
    assert list(json.loads((tmp_path / "out/metrics.json").read_text())) == ["previous_correct"]
    assert "same_task" in json.loads((tmp_path / "out/comparison.json").read_text())["failures"]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ZeroDivisionError("division by zero"), "same_task: failed unexpectedly (ZeroDivisionError: division by zero)"),
        (ModuleNotFoundError("No module named 'xgboost'", name="xgboost"), "xgboost is not installed; install"),
    ],
)
def test_an_unexpected_failure_does_not_cost_the_others_either(train, test_file, broken, monkeypatch, error, said):
    monkeypatch.setattr(Broken, "error", error)
    message, printed = refused("--train", train, "--test", test_file, "--predictors", CHEAP)
    assert said in message
    assert "Table 1" in printed


@pytest.mark.torch
def test_an_unreadable_checkpoint_is_reported_in_one_sentence(tmp_path, train, test_file):
    empty = tmp_path / "empty"
    empty.mkdir()
    said, printed = refused(
        *("--train", train, "--test", test_file, "--predictors", "previous_correct,bert"),
        *("--seeds", 1, "--set", f"bert.checkpoint={empty}"),
    )
    assert "bert: checkpoint:" in said and "Traceback" not in said
    assert "Table 1" in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--predictors", "sam_task"], "'sam_task' is not known; choose one of"),
        (["--predictors", "same_task,same_task"], "a name is there twice"),
        (["--set", "bert.epoch=3", "--predictors", "bert"], "bert does not know 'epoch'"),
        (["--set", "bert.epochs=0", "--predictors", "bert"], "epochs: must be 1 or more, not 0"),
        (["--set", "bert.epochs=2", "--predictors", CHEAP], "'bert' is not among the predictors"),
        (["--test", "missing.csv"], "missing.csv:1: file: cannot be read"),
    ],
)
def test_a_mistake_is_reported_before_anything_is_trained(train, test_file, arguments, message):
    said, printed = refused("--train", train, "--test", test_file, "--seeds", 2, *arguments)
    assert message in said
    assert printed == ""


@pytest.mark.torch
def test_a_file_without_the_columns_or_of_one_class_is_refused(tmp_path, train, test_file):
    wrong = written(tmp_path / "wrong.csv", [["a"]], ["q1"])
    assert "wrong.csv:1: the columns q2," in refused("--train", wrong, "--test", test_file)[0]
    one_class = written(tmp_path / "kept.csv", [[*row[:5], 0] for row in rows_of(5, start=2000)])
    for files in (("--train", one_class, "--test", test_file), ("--train", train, "--test", one_class)):
        said, _ = refused(*files, "--predictors", CHEAP)
        assert "kept.csv: belief_change: all 5 rows with weight are 0" in said


def test_a_folder_that_cannot_be_made_is_reported_before_anything_is_trained(tmp_path, train, test_file):
    (tmp_path / "taken").write_text("")
    said, printed = refused("--train", train, "--test", test_file, "--predictors", CHEAP, "--out", tmp_path / "taken")
    assert "taken: cannot be made or written (File exists)" in said
    assert "Table 1" not in printed


@pytest.mark.parametrize(
    ("arguments", "members"),
    [(["--seeds", "3"], 3), (["--paper"], 5), (["--set", "bert.members=4"], 4), (["--paper", "--seeds", "1"], 1)],
)
def test_bert_averages_as_many_networks_as_asked(train, test_file, monkeypatch, arguments, members):
    asked = {}

    def create(name, params, seed):
        asked[name] = params
        raise CheckpointError("enough")

    monkeypatch.setattr(registry, "create", create)
    refused("--train", train, "--test", test_file, "--predictors", "bert", *arguments)
    assert asked["bert"]["members"] == members


PAPERS_BERT = {
    "checkpoint": "google-bert/bert-base-uncased",
    "head": "paper",
    "members": 5,
    "epochs": 2,
    "batch_size": 32,
    "learning_rate": 5e-5,
    "calibration_share": 0.0,
}


@pytest.fixture
def asked(monkeypatch):
    """Which estimators are asked for, with their settings; none is made."""
    calls = []

    def create(name, params, seed):
        calls.append((name, dict(params)))
        raise CheckpointError("checkpoint: it has no weights here.")

    monkeypatch.setattr(registry, "create", create)
    return calls


def test_paper_sets_the_papers_checkpoint_epochs_batch_rate_and_five_networks(train, test_file, asked):
    refused("--train", train, "--test", test_file, "--predictors", "bert", "--paper")
    assert asked == [("bert", PAPERS_BERT)]


def test_what_is_set_by_hand_stays_with_paper(train, test_file, asked):
    small = "small=bert:checkpoint=bundled:minilm-l6:members=2"
    refused(
        *("--train", train, "--test", test_file, "--paper", "--predictors", f"bert,{small}"),
        *("--set", "bert.epochs=3", "--set", "small.batch_size=8"),
    )
    assert asked == [
        ("bert", {**PAPERS_BERT, "epochs": 3}),
        ("bert", {**PAPERS_BERT, "checkpoint": "bundled:minilm-l6", "members": 2, "batch_size": 8}),
    ]


def test_paper_alone_runs_the_rows_of_table_1_and_says_of_each_why_it_has_no_figures(tmp_path, train, test_file, asked):
    out = tmp_path / "out"
    said, printed = refused("--train", train, "--test", test_file, "--paper")
    assert [name for name, _params in asked] == [
        *("previous_correct", "same_task", "embedding_xgboost", "bert"),
        *("causal_lm", "causal_lm", "llm_prompt", "llm_prompt"),
    ]
    assert [params.get("checkpoint") for name, params in asked if name == "causal_lm"] == [
        "meta-llama/Llama-2-7b-hf",
        "meta-llama/Llama-2-13b-hf",
    ]
    assert "llama2_7b: checkpoint: it has no weights here." in said
    assert "Table 1" not in printed and not out.exists()


@pytest.mark.torch
def test_rows_of_the_papers_table_without_key_or_weights_say_so_and_the_others_stand(
    tmp_path, train, test_file, monkeypatch
):
    from predictors.networks import checkpoints

    def unreachable(name):
        raise CheckpointError(f"checkpoint: {name} could not be fetched from the Hugging Face hub.")

    monkeypatch.setattr(checkpoints, "_downloaded_folder", unreachable)
    for variable in ("VOYAGE_API_KEY", "HUNCH_LLM_URL", "HUNCH_LLM_KEY", "HUNCH_LLM_MODEL"):
        monkeypatch.delenv(variable, raising=False)
    out = tmp_path / "out"
    printed = run("--train", train, "--test", test_file, "--paper", "--out", out)
    rows = {line.split()[0]: line.split()[1:] for line in printed.splitlines() if line.split()}
    missing = ("embedding_xgboost", "bert", "llama2_7b", "llama2_13b", "gpt35_turbo", "gpt4")
    assert all(rows[name] == [NOTHING] * 6 for name in missing)
    assert rows["same_task"][0] != NOTHING
    for said in (
        "not measured: embedding_xgboost: ",
        "VOYAGE_API_KEY",
        "not measured: bert: checkpoint: google-bert/bert-base-uncased could not be fetched",
        "not measured: llama2_13b: checkpoint: meta-llama/Llama-2-13b-hf could not be fetched",
        "not measured: gpt4: ",
        "HUNCH_LLM_URL",
    ):
        assert said in printed
    assert set(json.loads((out / "comparison.json").read_text())["failures"]) == set(missing)
    assert list(json.loads((out / "metrics.json").read_text())) == ["previous_correct", "same_task"]


@pytest.mark.slow
def test_one_predictor_stands_several_times_under_names_of_its_own(tmp_path, train, test_file):
    out = tmp_path / "out"
    named = 'outcome=logistic:numbers=["previous_correct"],both=logistic,same_task'
    run("--train", train, "--test", test_file, "--predictors", named, "--out", out)
    metrics = json.loads((out / "metrics.json").read_text())
    assert list(metrics) == ["outcome", "both", "same_task"]
    assert metrics["outcome"]["auc"] != metrics["both"]["auc"]
    assert metrics["both"] == metrics["same_task"]
    facts = json.loads((out / "comparison.json").read_text())
    assert facts["predictors"] == {"outcome": "logistic", "both": "logistic", "same_task": "same_task"}
    assert facts["settings"]["outcome"] == {"numbers": ["previous_correct"]}
    with (out / "predictions.csv").open(newline="") as file:
        assert next(csv.reader(file))[6:] == ["outcome", "both", "same_task"]


def test_a_failing_row_is_named_by_its_own_name(train, test_file, broken):
    said, printed = refused("--train", train, "--test", test_file, "--predictors", "mine=same_task,previous_correct")
    assert "mine: checkpoint: no/such is neither a folder nor on the hub" in said
    assert "not measured: mine: checkpoint" in printed


@pytest.mark.torch
def test_a_checkpoint_that_is_a_folder_needs_no_network(tmp_path, train, test_file, monkeypatch):
    """The folder holds what a hub's repository does; anyone who tries to connect is refused."""
    import socket

    import torch

    from predictors.networks import checkpoints
    from tests.predictors import tiny

    torch.set_num_threads(1)
    folder = tiny.save_tiny_bert(tmp_path / "checkpoint")
    monkeypatch.setattr(checkpoints, "_downloaded_folder", lambda name: pytest.fail(f"{name} is to be downloaded"))
    monkeypatch.setattr(socket.socket, "connect", lambda *args: pytest.fail("a connection"))
    settings = f"checkpoint={folder}:members=1:epochs=1:learning_rate=0.001"
    printed = run("--train", train, "--test", test_file, "--predictors", f"tiny=bert:{settings},same_task")
    assert printed.count("tiny") >= 1 and "not measured" not in printed


@pytest.mark.parametrize(
    ("predictors", "message"),
    [
        ("Mine=bert", "'Mine' is no name for a row"),
        ("hybrid=bert", "hybrid=bert: hybrid is another predictor; choose another name"),
        ("a=same_task,a=previous_correct", "a: a name is there twice"),
        ("a=berd", "'berd' is not known; choose one of"),
        ("a=bert:epochs=2:epochs=3", "a: epochs is there twice"),
        ("a=bert:epoch=2", "bert does not know 'epoch'"),
        ("a=bert:epochs=0", "epochs: must be 1 or more, not 0"),
        ("=bert", "'' is no name for a row"),
        ("a=", "'' is not known"),
    ],
)
def test_a_row_that_cannot_be_read_is_refused(train, test_file, predictors, message):
    said, printed = refused("--train", train, "--test", test_file, "--predictors", predictors)
    assert message in said
    assert printed == ""


def test_a_predictor_that_gives_the_same_number_everywhere_has_figures(train, test_file, monkeypatch):
    class Same:
        def fit(self, *args):
            return self

        def predict_proba(self, pairs, progress=None):
            return np.full((len(pairs), 2), 0.5)

    create = registry.create
    monkeypatch.setattr(registry, "create", lambda name, *rest: Same() if name == "same_task" else create(name, *rest))
    printed = run("--train", train, "--test", test_file, "--predictors", CHEAP)
    row = next(line for line in printed.splitlines() if line.split()[:1] == ["same_task"])
    assert row.split()[1:] == ["0.693"] * 3 + ["0.500"] * 3


def test_rows_come_from_files_or_from_a_study(train, test_file):
    assert "--train: name a file to learn from, or --study SLUG" in refused()[0]
    assert "--study: takes its rows from the study" in refused("--study", "small", "--train", train)[0]
    assert "--study: takes its rows from the study" in refused("--study", "small", "--test", test_file)[0]


def test_settings_are_read_as_json_where_they_are_json():
    assert evaluate_predictors.setting("bert.epochs=3") == ("bert", "epochs", 3)
    assert evaluate_predictors.setting("bert.checkpoint=a/b=c") == ("bert", "checkpoint", "a/b=c")
    with pytest.raises(evaluate_predictors.ArgumentTypeError, match=r"is not PREDICTOR\.SETTING=VALUE"):
        evaluate_predictors.setting("epochs=3")


def test_all_processors_are_used_once_or_as_many_as_the_environment_says(train, test_file, threads, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    run("--train", train, "--test", test_file, "--predictors", CHEAP)
    assert threads == [3]
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert evaluate_predictors.processors() >= 1


@pytest.mark.thorough
@pytest.mark.slow
def test_it_runs_without_a_database_and_its_bars_are_on_stderr(tmp_path, train, test_file):
    """In a process of its own, whose database does not exist; only there torch is not imported yet."""
    done = subprocess.run(
        [
            *(sys.executable, "manage.py", "evaluate_predictors", "--train", train, "--test", test_file),
            *("--predictors", CHEAP, "--samples", "20"),
        ],
        cwd=settings.BASE_DIR,
        env={**os.environ, "HUNCH_VAR": str(tmp_path / "var"), "DATABASE_URL": ""},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "Table 1" in done.stdout
    assert "same_task" in done.stderr and "100%" in done.stderr


@pytest.mark.slow
def test_the_baselines_come_out_as_in_the_paper_where_they_depend_on_the_test_rows_alone(study_data, tmp_path):
    """The published rows are a part of the paper's test set, so figures agree within what 192 rows allow."""
    run(
        *("--train", study_data / "alignment_sample.csv", "--test", study_data / "belief_changes_labelled.csv"),
        *("--predictors", CHEAP, "--out", tmp_path / "out"),
    )
    metrics = json.loads((tmp_path / "out/metrics.json").read_text())
    assert metrics["previous_correct"]["auc"]["previous_correct"] == pytest.approx(0.5, abs=1e-12)
    assert metrics["previous_correct"]["auc"]["previous_incorrect"] == pytest.approx(0.5, abs=1e-12)
    for name, paper in (("previous_correct", 0.599), ("same_task", 0.688)):
        low, high = metrics[name]["intervals"]["auc"]["overall"]
        assert low < paper < high


@pytest.mark.slow
def test_columns_beside_the_texts_make_a_table_of_their_own(tmp_path):
    """The label follows the target's prior, which only the training file says."""
    rng = np.random.default_rng(3)
    easy = rng.uniform(size=30)

    def rows(n, start):
        return [
            [*row[:1], f"target {index % 30}", *row[2:5], int(rng.uniform() < easy[index % 30])]
            for index, row in enumerate(rows_of(n, start=start))
        ]

    train_rows = [[*row, round(100 * easy[index % 30])] for index, row in enumerate(rows(240, 0))]
    train = written(tmp_path / "train.csv", train_rows, [*COLUMNS, "prior"])
    test = written(tmp_path / "test.csv", rows(120, 1000))
    files = ("--train", train, "--test", test)
    out = tmp_path / "out"
    printed = run(*files, "--predictors", CHEAP, "--columns", "people", "--out", out)
    alone, beside = printed.split("With columns next to the texts")
    assert "same_task_people" not in alone.split("in bits")[0]
    assert "same_task_people" in beside
    figures = json.loads((out / "metrics.json").read_text())
    assert figures["same_task_people"]["nll"]["overall"] < figures["same_task"]["nll"]["overall"] - 0.05
    facts = json.loads((out / "comparison.json").read_text())
    assert facts["columns"] == {"same_task_people": ["people"]}
    assert facts["reference"] in ("previous_correct", "same_task")
    said, _printed = refused(*files, "--predictors", CHEAP, "--columns", "people,models")
    assert "no row says models_right, which the column models is read from" in said
    said, _printed = refused(*files, "--predictors", "previous_correct", "--columns", "people")
    assert "none of the predictors reads columns; add one of hybrid, logistic or same_task" in said
