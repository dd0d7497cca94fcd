"""`manage.py alignment`: from files to tables, figures and errors in words."""

import csv
import io

import pytest
from django.core.management import call_command

QUESTIONS = [
    ("m:1", "maths", "<b>1 + 1?</b>"),
    ("m:2", "maths", "2 + 2?"),
    ("m:2b", "maths", "2 + 2?"),
    ("h:1", "history", "nan"),
]
SAMPLE = [
    ("<b>1 + 1?</b>", "2 + 2?", "maths", "maths", "0.2", "0.6"),
    ("2 + 2?", "nan", "maths", "history", "0.1", "0.5"),
    ("nan", "<b>1 + 1?</b>", "history", "maths", "0.3", "0.4"),
]
# The second id of "2 + 2?" is the one that this model has an answer to.
ANSWERS = [("one", "m:1", "1"), ("one", "m:2b", "0"), ("one", "h:1", "1")]


def written(path, header, rows):
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)
    return str(path)


@pytest.fixture
def files(tmp_path):
    return {
        "questions": written(tmp_path / "questions.csv", ["id", "source", "question"], QUESTIONS),
        "sample": written(
            tmp_path / "sample.csv", ["q1", "q2", "source1", "source2", "pred_if_correct", "pred_if_incorrect"], SAMPLE
        ),
        "answers": written(tmp_path / "answers.csv", ["llm", "question_id", "correct"], ANSWERS),
    }


def run(files, *more):
    out, err = io.StringIO(), io.StringIO()
    call_command(
        "alignment",
        *[part for name, path in files.items() for part in (f"--{name}", path)],
        "--samples=200",
        *more,
        stdout=out,
        stderr=err,
    )
    return out.getvalue(), err.getvalue()


def refused(files, *more):
    err = io.StringIO()
    with pytest.raises(SystemExit):
        call_command(
            "alignment",
            *[part for name, path in files.items() for part in (f"--{name}", path)],
            *more,
            stdout=io.StringIO(),
            stderr=err,
        )
    return err.getvalue()


def test_it_scores_a_model_from_files_without_a_database(files, tmp_path):
    run(files, "--alpha=1,3", "--out", str(tmp_path / "out"))
    rows = list(csv.DictReader((tmp_path / "out" / "alignment.csv").open()))
    # Outcomes 1, 0, 1 and targets 0, 1, 1, worked out by hand with the paper's averages.
    beliefs = [0.2 * 0.663 + 0.8 * 0.629, 0.5 * 0.551 + 0.5 * 0.629, 0.3 * 0.663 + 0.7 * 0.629]
    by_hand = ((1 - beliefs[0]) * 3 + beliefs[1] + beliefs[2]) / 5
    assert [row["alpha"] for row in rows] == ["1", "3"]
    assert float(rows[1]["accuracy"]) == pytest.approx(by_hand)
    assert float(rows[1]["threshold"]) == pytest.approx(0.75)
    assert (tmp_path / "out" / "alignment.svg").read_text().lstrip().startswith("<?xml")


def test_the_averages_can_be_set(files, tmp_path):
    run(
        files,
        "--alpha=0",
        "--prior=0.5",
        "--posterior-correct=0.5",
        "--posterior-incorrect=0.5",
        "--out",
        str(tmp_path),
    )
    (row,) = csv.DictReader((tmp_path / "alignment.csv").open())
    assert float(row["accuracy"]) == pytest.approx(0.5)


def test_a_model_with_half_the_answers_is_scored_on_the_rest_and_it_says_so(files, tmp_path):
    files["answers"] = written(
        tmp_path / "half.csv", ["llm", "question_id", "correct"], [*ANSWERS, ("half", "m:1", "1"), ("half", "m:2", "1")]
    )
    out, err = run(files)
    assert "half: no answer to both questions of 2 of 3 pairs (lines 3, 4)" in err
    assert "half" in out


def test_files_say_which_models_dominate_and_what_people_get_from_them(files, tmp_path):
    files["answers"] = written(
        tmp_path / "two.csv",
        ["llm", "question_id", "correct"],
        [*ANSWERS, ("better", "m:1", "1"), ("better", "m:2b", "1"), ("better", "h:1", "1"), ("better", "x:9", "0")],
    )
    out, _err = run(files, "--threshold=0.6", "--out", str(tmp_path / "out"))
    (pair,) = csv.DictReader((tmp_path / "out" / "domination.csv").open())
    assert (pair["better_unreadable"], pair["worse_unreadable"]) == ("", "")  # Nobody knows it of a file.
    # "one" is wrong about m:2b alone; x:9 is no question of the file.
    assert (pair["better"], pair["worse"], pair["questions"]) == ("better", "one", "3")
    assert (pair["more"], pair["exceptions"], pair["dominates"]) == ("1", "0", "1")
    rows = list(csv.DictReader((tmp_path / "out" / "domination_deployed.csv").open()))
    assert {(row["rule"], row["beliefs"]) for row in rows} == {("threshold", "mixture"), ("proportional", "mixture")}
    assert all(float(row["better_performance"]) > float(row["worse_performance"]) for row in rows)
    assert "Is one right wherever the other is?" in out


@pytest.mark.parametrize(
    ("threshold", "share", "said"),
    [("0.5", "1.0", "deploys every model everywhere"), ("0.7", "0.0", "deploys nothing")],
)
def test_where_beliefs_decide_nothing_no_order_is_said_to_be_kept(files, tmp_path, threshold, share, said):
    files["answers"] = written(
        tmp_path / "two.csv",
        ["llm", "question_id", "correct"],
        [*ANSWERS, ("better", "m:1", "1"), ("better", "m:2b", "1"), ("better", "h:1", "1")],
    )
    out, _err = run(files, f"--threshold={threshold}", "--out", str(tmp_path / "out"))
    rows = list(csv.DictReader((tmp_path / "out" / "domination_deployed.csv").open()))
    (row,) = [row for row in rows if row["rule"] == "threshold"]
    assert row["verdict"] == "undecided"
    assert (row["better_deployed"], row["worse_deployed"]) == (share, share)
    assert {row["verdict"] for row in rows if row["rule"] == "proportional"} == {"kept"}
    assert said in out


def test_a_question_that_is_not_there_is_named_with_its_row(files, tmp_path):
    files["questions"] = written(tmp_path / "fewer.csv", ["id", "source", "question"], QUESTIONS[:3])
    assert "sample.csv:3: q2: no question of source 'history' has this text: 'nan'" in refused(files)


def test_answers_for_another_bank_are_refused(files, tmp_path):
    files["answers"] = written(tmp_path / "other.csv", ["llm", "question_id", "correct"], [("one", "zz:1", "1")])
    assert "these are answers for another bank" in refused(files)


def test_a_pair_without_prediction_is_named(files, tmp_path):
    rows = [*SAMPLE[:1], (*SAMPLE[1][:4], "", "0.5")]
    header = ["q1", "q2", "source1", "source2", "pred_if_correct", "pred_if_incorrect"]
    files["sample"] = written(tmp_path / "unpredicted.csv", header, rows)
    assert "unpredicted.csv:3: pred_if_correct: '' is not a probability" in refused(files)


@pytest.mark.parametrize("value", ["nan", "2", "maybe"])
def test_an_answer_that_is_neither_right_nor_wrong_is_named(files, tmp_path, value):
    files["answers"] = written(tmp_path / "odd.csv", ["llm", "question_id", "correct"], [("one", "m:1", value)])
    assert f"odd.csv:2: correct: '{value}' is neither 0 nor 1" in refused(files)


def test_contradicting_answers_are_refused(files, tmp_path):
    rows = [*ANSWERS, ("one", "m:1", "0")]
    files["answers"] = written(tmp_path / "twice.csv", ["llm", "question_id", "correct"], rows)
    assert "twice.csv:5: correct: one has two answers to m:1 that differ" in refused(files)


def test_an_alpha_below_0_and_averages_in_percent_are_refused(files):
    assert "alpha: '-1' is not a number from 0 to" in refused(files, "--alpha=1,-1")
    assert "prior: 62.9 is not a belief" in refused(files, "--prior=62.9")


def test_missing_columns_and_an_unwritable_folder_are_reported(files, tmp_path):
    (tmp_path / "file").write_text("")
    assert "--out" in refused(files, "--out", str(tmp_path / "file"))
    files["sample"] = written(tmp_path / "columns.csv", ["q1", "q2"], [])
    assert "has no column 'source1': add it" in refused(files)


@pytest.mark.django_db
def test_the_questions_can_come_from_a_bank(files, tmp_path):
    from survey.services.banks.importing import import_questions

    path = tmp_path / "bank.csv"
    written(path, ["id", "source", "question", "answer"], [(*row, "key") for row in QUESTIONS])
    import_questions(path, "tiny")
    by_file, _ = run(files)
    del files["questions"]
    by_bank, _ = run({**files, "bank": "tiny"})
    assert by_bank == by_file
    assert "there is no bank 'other'" in refused({**files, "bank": "other"})


@pytest.mark.thorough
def test_the_papers_tables_come_out_on_its_own_data(study_data, tmp_path):
    run(
        {
            "questions": str(study_data / "questions.csv"),
            "sample": str(study_data / "alignment_sample.csv"),
            "answers": str(study_data / "llm_correctness.csv"),
        },
        "--out",
        str(tmp_path),
    )
    rows_by_llm = {}
    for row in csv.DictReader((tmp_path / "alignment.csv").open()):
        rows_by_llm.setdefault(row["llm"], []).append(
            (round(float(row["accuracy"]), 3), round(float(row["cross_entropy"]), 3))
        )
    # Tables 2 and 5 of the paper.
    expected = {
        "alpaca-7b": [(0.466, 0.788), (0.397, 0.929), (0.393, 0.936), (0.392, 0.938)],
        "llama-2-7b-chat": [(0.494, 0.733), (0.396, 0.933), (0.390, 0.945), (0.388, 0.950)],
        "StripedHyena-Nous-7B": [(0.495, 0.733), (0.393, 0.942), (0.386, 0.956), (0.384, 0.960)],
        "llama-2-13b-chat": [(0.499, 0.725), (0.395, 0.937), (0.388, 0.951), (0.386, 0.956)],
        "llama-2-70b-chat": [(0.512, 0.701), (0.393, 0.945), (0.384, 0.963), (0.381, 0.969)],
        "gpt-3.5-turbo": [(0.528, 0.668), (0.397, 0.935), (0.386, 0.958), (0.382, 0.965)],
    }
    assert {name: rows_by_llm[name] for name in expected} == expected
