from __future__ import annotations

import numpy as np
import pytest

from predictors.errors import PredictorError, Stopped
from predictors.features import Features
from predictors.pairs import Pair, as_pairs, report

ONE = Pair("What is a river?", "What is a city?", "rivers", "cities", 1)


def test_plain_tuples_are_taken_as_pairs_in_order():
    other = ONE._replace(target_task="rivers", outcome=0)
    pairs = as_pairs([tuple(ONE), other, (*ONE[:4], np.int64(1)), (*ONE[:4], True)])
    assert pairs == [ONE, other, ONE, ONE]
    assert all(type(pair.outcome) is int for pair in pairs)


@pytest.mark.parametrize("row", [ONE[:4], (*ONE, 1)])
def test_it_refuses_a_row_with_too_few_or_too_many_fields(row):
    with pytest.raises(PredictorError, match=r"row 0 has \d fields"):
        as_pairs([row])


def test_it_refuses_an_outcome_that_is_neither_correct_nor_incorrect():
    with pytest.raises(PredictorError, match="row 1 has outcome 2"):
        as_pairs([ONE, ONE._replace(outcome=2)])


def test_it_refuses_a_row_that_is_no_sequence():
    with pytest.raises(PredictorError, match="row 1 is of the type Features; give the five fields of Pair"):
        as_pairs([ONE, Features({"text": "a"})])


def test_work_stops_when_progress_says_so():
    with pytest.raises(Stopped, match="1 of 2"):
        report(lambda done, total, text: False, 1, 2, "half way")


def test_work_goes_on_when_progress_says_nothing():
    report(lambda done, total, text: None, 1, 2, "half way")
    report(None, 1, 2, "half way")
