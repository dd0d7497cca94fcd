from __future__ import annotations

import numpy as np
import pytest

from predictors.errors import PredictorError, Stopped
from predictors.pairs import Pair, as_columns, as_pairs, check_training_data, report
from tests.predictors.tiny import some_pairs

ONE = Pair("What is a river?", "What is a city?", "rivers", "cities", 1)


def test_pairs_turn_into_columns_in_order():
    columns = as_columns([ONE, ONE._replace(target_task="rivers", outcome=0)])
    assert columns.target_task == ["cities", "rivers"]
    assert columns.outcome.tolist() == [1, 0] and columns.outcome.dtype == np.int64


def test_plain_tuples_are_taken_as_pairs():
    assert as_pairs([tuple(ONE)]) == [ONE]


@pytest.mark.parametrize("row", [ONE[:4], (*ONE, 1)])
def test_it_refuses_a_row_with_too_few_or_too_many_fields(row):
    with pytest.raises(PredictorError, match=r"row 0 has \d fields"):
        as_columns([row])


def test_it_refuses_an_outcome_that_is_neither_correct_nor_incorrect():
    with pytest.raises(PredictorError, match="row 1 has outcome 2"):
        as_columns([ONE, ONE._replace(outcome=2)])


@pytest.mark.parametrize(
    ("labels", "weights", "message"),
    [
        ([1, 1, 1], None, "all 3 are 1; training needs rows of the class 0"),
        ([0, 0, 0], None, "all 3 are 0; training needs rows of the class 1"),
        ([0, 1], None, "labels: shape"),
        ([0, 1, float("nan")], None, "labels: row 2 is nan"),
        ([0, 1, 1.5], None, "between 0"),
        ([0, 1, 1], [1, 1], "sample_weight: shape"),
        ([0, 1, 1], [1, -1, 1], "not be negative"),
        ([0, 1, 1], [1, float("inf"), 1], "sample_weight: row 1 is inf"),
        ([0, 1, 1], [0, 0, 0], "every weight is 0"),
        ([0, 1, 1], [0, 1, 1], "all 2 are 1"),
    ],
)
def test_training_data_that_teaches_nothing_is_refused_with_the_reason(labels, weights, message):
    with pytest.raises(PredictorError, match=message):
        check_training_data([ONE] * 3, labels, weights)


def test_no_pairs_at_all_are_refused():
    with pytest.raises(PredictorError, match="there are none"):
        check_training_data([], [], None)


def test_rows_without_weight_are_left_out_and_the_rest_weigh_one_on_average():
    data = check_training_data(some_pairs(3), [0, 1, 0.5], [2, 0, 6])
    assert data.labels.tolist() == [0, 0.5]
    assert data.weights.tolist() == [0.5, 1.5]


def test_a_single_fraction_holds_both_classes():
    assert check_training_data([ONE], [0.25], None).labels.tolist() == [0.25]


def test_work_stops_when_progress_says_so():
    with pytest.raises(Stopped, match="1 of 2"):
        report(lambda done, total, text: False, 1, 2, "half way")


def test_work_goes_on_when_progress_says_nothing():
    report(lambda done, total, text: None, 1, 2, "half way")
    report(None, 1, 2, "half way")
