"""Files in the paper's columns: what is read from them, and what is refused with file, line and column."""

from __future__ import annotations

import csv
import random
from pathlib import Path

import numpy as np
import pytest

from predictors.datasets import LABEL_COLUMNS, SOFT_COLUMNS, fit_on, join, plain_text, read
from predictors.errors import PredictorError
from predictors.pairs import Pair
from survey.models.question import plain_text as text_of_the_survey

ROW = {
    "q1": "<b>What is 2 + 2?<br></b>(A) 4<br>(B) nan",
    "q2": "Is a < b?",
    "source1": "sums",
    "source2": "logic",
    "previous_correct": "1",
    "belief_change": "0",
}
PAIR = Pair("What is 2 + 2?\n(A) 4\n(B) nan", "Is a < b?", "sums", "logic", 1)


def write(path: Path, rows: list[dict], columns=None) -> Path:
    columns = columns or list(rows[0])
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)
    return path


@pytest.fixture
def file(tmp_path):
    def made(*rows: dict) -> Path:
        return write(tmp_path / "pairs.csv", [{**ROW, **row} for row in rows])

    return made


def test_a_row_becomes_a_pair_of_plain_texts(file):
    table = read(file({}, {"previous_correct": "0", "belief_change": "1"}))
    assert table.pairs == [PAIR, PAIR._replace(outcome=0)]
    assert table.labels.tolist() == [0.0, 1.0]
    assert table.weights.tolist() == [1.0, 1.0]
    assert table.outcomes.tolist() == [1, 0]
    assert table.questions[0] == (ROW["q1"], ROW["q2"])
    assert table.respondents is None
    assert not table.says_responses


@pytest.mark.parametrize("text", ["nan", "NA", "None", "null", "1"])
def test_text_that_looks_like_a_missing_value_is_text(file, text):
    assert read(file({"q2": text, "source2": text})).pairs[0][1:4:2] == (text, text)


def test_plain_text_is_what_the_survey_gives_predictors():
    rng = random.Random(0)
    pieces = ["<b>", "</b>", "<br>", "<BR>", "<b >", "a", " ", "\n", "&lt;", "< 5 >", "<i>"]
    for _ in range(300):
        text = "".join(rng.choices(pieces, k=12))
        assert plain_text(text) == text_of_the_survey(text)


def test_fractions_and_weights_are_read(file):
    table = read(file({"belief_change": "0.25", "weight": "2"}, {"belief_change": "1", "weight": "0"}))
    assert table.labels.tolist() == [0.25, 1.0]
    assert table.weights.tolist() == [2.0, 0.0]


def test_outcomes_and_labels_may_be_spelt_as_pandas_writes_them(file):
    table = read(file({"previous_correct": "True", "belief_change": "1.0"}, {"previous_correct": "0.0"}))
    assert table.outcomes.tolist() == [1, 0]
    assert table.labels.tolist() == [1.0, 0.0]


def test_a_share_of_known_answers_is_a_count_rounding_undone(file):
    table = read(file({"belief_change": "0.33", "responses": "9"}, {"belief_change": "1", "responses": "1"}))
    assert table.labels.tolist() == [3 / 9, 1.0]
    assert table.responses.tolist() == [9, 1]
    assert table.counted.all() and not table.majority.any()


def test_labels_that_are_all_whole_although_they_sum_up_answers_are_majorities(file):
    table = read(file({"belief_change": "1", "responses": "9"}, {"belief_change": "0", "responses": "1"}))
    assert table.majority.tolist() == [True, False]
    assert table.counted.tolist() == [False, True]


def test_pairs_with_two_predictions_become_two_soft_rows(tmp_path):
    row = {name: ROW.get(name, "") for name in SOFT_COLUMNS[:4]}
    path = write(
        tmp_path / "soft.csv", [{**row, "pred_if_correct": "0.25", "pred_if_incorrect": "0.5", "answer1": "A"}]
    )
    table = read(path)
    assert table.pairs == [PAIR, PAIR._replace(outcome=0)]
    assert table.labels.tolist() == [0.25, 0.5]
    assert not table.says_responses


def test_rows_of_one_pair_and_outcome_share_a_number_across_files(file, tmp_path):
    first = read(file({}, {"previous_correct": "0"}))
    second = read(write(tmp_path / "more.csv", [{**ROW, "q2": "other"}, ROW]))
    joined = join([first, second])
    assert joined.pair_ids.tolist() == [0, 1, 2, 0]
    assert len(joined) == 4 and joined.source == f"{first.source}, {second.source}"


def test_respondents_are_known_only_where_every_file_names_them(file, tmp_path):
    named = read(file({"respondent": "p1"}, {"respondent": "p2"}))
    assert named.respondents == ["p1", "p2"]
    assert join([named, named]).respondents == ["p1", "p2", "p1", "p2"]
    assert join([named, read(write(tmp_path / "more.csv", [ROW]))]).respondents is None
    assert named.take(np.array([1])).respondents == ["p2"]


def test_rows_are_taken_by_index_and_by_mask(file):
    table = read(file({"belief_change": "0.5"}, {"q2": "second"}, {"q2": "third"}))
    for rows in (np.array([0, 2]), np.array([True, False, True])):
        taken = table.take(rows)
        assert [pair.target_text for pair in taken.pairs] == [PAIR.target_text, "third"]
        assert taken.labels.tolist() == [0.5, 0.0]


def test_every_column_is_taken_with_its_row(file):
    table = read(
        file(
            {
                "belief_change": "0.5",
                "weight": "1",
                "responses": "2",
                "respondent": "a",
                "prior": "10",
                "models_right": "0.1",
            },
            {
                "belief_change": "1",
                "weight": "2",
                "responses": "1",
                "respondent": "b",
                "prior": "20",
                "models_right": "0.2",
            },
            {
                "belief_change": "0",
                "weight": "3",
                "responses": "3",
                "respondent": "c",
                "prior": "30",
                "models_right": "0.3",
            },
        )
    )
    taken = table.take(np.array([2, 0]))
    assert taken.priors.tolist() == [0.3, 0.1] and taken.models_right.tolist() == [0.3, 0.1]
    assert taken.weights.tolist() == [3, 1] and taken.responses.tolist() == [3, 2]
    assert taken.pair_ids.tolist() == table.pair_ids[[2, 0]].tolist() and taken.respondents == ["c", "a"]
    assert taken.counted.tolist() == [True, True] and len(taken.questions) == 2


def test_a_byte_order_mark_and_a_blank_last_line_do_no_harm(file):
    path = file({})
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes() + b"\r\n")
    assert len(read(path)) == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"belief_change": "x"}, r"pairs.csv:3: belief_change: 'x' is not a number between 0 .* and 1"),
        ({"belief_change": "1.5"}, r"pairs.csv:3: belief_change: '1.5'"),
        ({"belief_change": "nan"}, r"pairs.csv:3: belief_change: 'nan'"),
        ({"belief_change": ""}, r"pairs.csv:3: belief_change: ''"),
        ({"previous_correct": "2"}, r"pairs.csv:3: previous_correct: '2' is neither 1 nor 0"),
        ({"q1": "<b></b>"}, r"pairs.csv:3: q1: is empty"),
        ({"source2": " "}, r"pairs.csv:3: source2: is empty"),
        ({"weight": "-1"}, r"pairs.csv:3: weight: '-1' is not a number of 0 or more"),
        ({"weight": "inf"}, r"pairs.csv:3: weight: 'inf'"),
        ({"responses": "0"}, r"pairs.csv:3: responses: '0' is not a whole number of 1 or more"),
        ({"responses": "2.5"}, r"pairs.csv:3: responses: '2.5'"),
        ({"responses": "4", "belief_change": "0.3"}, r"pairs.csv:3: belief_change: 0.3 is not a share of 4 answers"),
        ({"respondent": ""}, r"pairs.csv:3: respondent: is empty"),
    ],
)
def test_a_bad_cell_is_named_by_file_line_and_column(file, change, message):
    good = {"weight": "1", "responses": "4", "respondent": "p", "q1": "one line"}
    keep = {name: good[name] for name in change if name in good}
    with pytest.raises(PredictorError, match=message):
        read(file({**keep, "q1": "one line"}, {"q1": "one line", **keep, **change}))


def test_all_problems_are_reported_at_once_up_to_ten(file):
    with pytest.raises(PredictorError) as caught:
        read(file(*[{"belief_change": "x"}] * 14))
    lines = str(caught.value).splitlines()
    assert len(lines) == 11
    assert lines[-1].endswith("and 4 more problems.")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty; its first line names the columns q1"),
        (b"q1,q2\na,b\n", "the columns source1, source2, previous_correct, belief_change are missing"),
        (",".join(LABEL_COLUMNS).encode() + b"\n", "has a header and no rows"),
        (b"q1,q1\n", "the column q1 is there twice"),
        (",".join(LABEL_COLUMNS).encode() + b"\na,b,c\n", ":2: has 3 cells and the header 6"),
        (b"\xff\xfe", "is not UTF-8"),
    ],
)
def test_a_file_that_is_no_table_of_pairs_is_refused(tmp_path, content, message):
    path = tmp_path / "bad.csv"
    path.write_bytes(content)
    with pytest.raises(PredictorError, match=message) as caught:
        read(path)
    assert str(path) in str(caught.value)


def test_a_missing_file_is_refused_by_name(tmp_path):
    with pytest.raises(PredictorError, match=r"none\.csv: cannot be read \(No such file"):
        read(tmp_path / "none.csv")


def test_weights_that_are_all_0_are_refused(file):
    with pytest.raises(PredictorError, match="weight: every weight is 0"):
        read(file({"weight": "0"}, {"weight": "0"}))


def test_one_class_is_refused_where_two_are_needed_rows_without_weight_aside(file):
    table = read(file({"belief_change": "1", "weight": "1"}, {"belief_change": "0", "weight": "0"}))
    with pytest.raises(PredictorError, match=r"pairs\.csv: belief_change: all 1 rows with weight are 1"):
        table.require_both_classes()
    read(file({"belief_change": "0.5"})).require_both_classes()


class Spy:
    """Keeps what it was fitted with."""

    def __init__(self, *, uses_responses: bool) -> None:
        self.uses_responses = uses_responses

    def fit(self, pairs, labels, sample_weight=None, progress=None, **others):
        self.weights, self.others = sample_weight, others
        return self


def test_a_share_of_answers_counts_as_so_many_answers(file):
    table = read(file({"belief_change": "0.25", "responses": "8"}, {"belief_change": "1", "responses": "1"}))
    assert fit_on(Spy(uses_responses=False), table).weights.tolist() == [8.0, 1.0]
    training = fit_on(Spy(uses_responses=True), table)
    assert training.weights.tolist() == [1.0, 1.0]
    assert training.others["responses"].tolist() == [8, 1]


def test_a_majority_counts_once_and_silence_about_answers_is_passed_on(file):
    table = read(file({"belief_change": "0", "responses": "8"}, {"belief_change": "1", "responses": "8"}))
    assert fit_on(Spy(uses_responses=False), table).weights.tolist() == [1.0, 1.0]
    assert fit_on(Spy(uses_responses=True), read(file({}))).others == {"responses": None}


def test_the_papers_files_are_read_whole(study_data):
    labelled = read(study_data / "belief_changes_labelled.csv")
    assert (len(labelled), labelled.labels.sum(), labelled.outcomes.sum()) == (192, 83, 89)
    soft = read(study_data / "alignment_sample.csv")
    assert len(soft) == 1000
    assert ((soft.labels > 0) & (soft.labels < 1)).all()
