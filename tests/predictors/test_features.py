"""Rows of texts and numbers: checks, columns, and pairs seen as features."""

from __future__ import annotations

import numpy as np
import pytest

from predictors.errors import PredictorError
from predictors.features import (
    Features,
    as_rows,
    check_training_data,
    features_of,
    number_columns,
    number_names,
    text_column,
    text_names,
    two_rows,
)
from predictors.pairs import Pair
from tests.predictors.tiny import some_pairs

ONE = Pair("What is a river?", "What is a city?", "rivers", "cities", 1)
GUESS = Features({"fragment": "a long river", "word": "city"}, {"length": 3, "seen": True})


def test_a_pair_reads_as_features():
    seen = features_of(ONE)
    assert seen == Features(
        {"evidence": "What is a river?", "target": "What is a city?"}, {"previous_correct": 1.0, "same_task": 0.0}
    )
    assert text_names([ONE]) == text_names([seen]) == ("evidence", "target")
    assert number_names([ONE]) == number_names([seen]) == ("previous_correct", "same_task")
    pairs = some_pairs(20)
    both = pairs, [features_of(pair) for pair in pairs]
    names = ["same_task", "previous_correct"]
    assert number_columns(both[0], names).tolist() == number_columns(both[1], names).tolist()
    assert text_column(both[0], "target") == text_column(both[1], "target")


def test_columns_have_the_order_of_the_names_and_numbers_are_floats():
    columns = number_columns([GUESS, GUESS], ("seen", "length"))
    assert columns.dtype == np.float64 and columns.tolist() == [[1.0, 3.0]] * 2
    assert text_column([GUESS], "word") == ["city"]


def test_names_in_another_order_are_the_same_names():
    swapped = Features({"word": "city", "fragment": "a"}, {"seen": 0, "length": 1})
    assert text_names(as_rows([GUESS, swapped])) == ("fragment", "word")
    assert number_columns([GUESS, swapped], ["length"]).tolist() == [[3.0], [1.0]]


def test_plain_tuples_are_taken_as_pairs_and_no_rows_are_no_rows():
    assert as_rows([tuple(ONE), ONE]) == [ONE, ONE]
    assert as_rows([]) == []


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (ONE, "row 1 is a pair and row 0 is features; give rows of one kind"),
        (Features({"fragment": "a"}, GUESS.numbers), "texts: row 1 has 'fragment' and row 0 has 'fragment', 'word'"),
        (Features(GUESS.texts, {}), "numbers: row 1 has none and row 0 has 'length', 'seen'"),
    ],
)
def test_rows_that_do_not_fit_together_are_refused_by_name(row, message):
    with pytest.raises(PredictorError, match=message):
        as_rows([GUESS, row])


@pytest.mark.parametrize(
    ("texts", "numbers", "message"),
    [
        ({"fragment": "a", "word": 5}, {}, "texts: 'word' is 5, which is no text"),
        (
            {},
            {"length": float("nan"), "seen": 1},
            "numbers: 'length' is nan, which is no finite number; leave such",
        ),
        ({}, {"length": 1, "seen": "yes"}, "numbers: 'seen' is 'yes', which is no finite number"),
        ({}, {"length": 1, "seen": None}, "numbers: 'seen' is None"),
        ({}, {"length": 10**400}, "numbers: 'length' is 10"),
    ],
)
def test_a_value_that_cannot_be_read_is_refused_when_the_row_is_made(texts, numbers, message):
    with pytest.raises(PredictorError, match=message):
        Features(texts, numbers)


def test_a_column_that_is_not_there_is_refused_with_those_that_are():
    with pytest.raises(PredictorError, match="texts: the rows have no 'target'; they have 'fragment', 'word'"):
        text_column([GUESS], "target")
    with pytest.raises(PredictorError, match="numbers: the rows have no 'age'; they have 'previous_correct', 'same_t"):
        number_columns([ONE], ["age"])


def test_a_fraction_becomes_a_row_of_each_class():
    rows, classes, weights = two_rows(np.array([0.25, 1.0, 0.0]), np.array([2.0, 3.0, 1.0]))
    assert rows.tolist() == [0, 1, 0, 2]
    assert classes.tolist() == [1, 1, 0, 0]
    assert weights.tolist() == [0.5, 3.0, 1.5, 1.0]


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


def test_no_rows_at_all_are_refused():
    with pytest.raises(PredictorError, match="there are none"):
        check_training_data([], [], None)


def test_rows_without_weight_are_left_out_and_the_rest_weigh_one_on_average():
    data = check_training_data(some_pairs(3), [0, 1, 0.5], [2, 0, 6])
    assert data.labels.tolist() == [0, 0.5]
    assert data.weights.tolist() == [0.5, 1.5]


def test_a_single_fraction_holds_both_classes():
    assert check_training_data([ONE], [0.25], None).labels.tolist() == [0.25]
