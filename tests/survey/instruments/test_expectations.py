"""The perplexity of people's expectations: 1 is certain and right, 2 a coin toss, and certain and wrong is infinite."""

import json
import math

import numpy as np
import pytest

from survey.figures.rendering import plain
from survey.instruments.belief_update.reports.calibration.expectations import FLOOR, expectations, perplexity_table
from survey.instruments.belief_update.reports.calibration.figure7 import RealAnswers

from .test_figure7 import answers, beliefs


def found(stated, real_answers):
    return expectations("models", stated, real_answers, rng=np.random.default_rng(0), samples=200)


def test_certain_and_right_has_perplexity_one() -> None:
    line = found(beliefs((100, 1, 10, 1, 20), (0, 2, 10, 1, 21)), answers((1, 10, 1), (1, 20, 1), (1, 21, 0)))
    assert line.as_stated.perplexity == 1.0 and line.certain_and_wrong == 0.0
    assert line.interval == (1.0, 1.0)


def test_a_coin_toss_has_perplexity_two() -> None:
    line = found(beliefs((50, 1, 10, 1, 20), (50, 2, 10, 1, 21)), answers((1, 10, 1), (1, 20, 1), (1, 21, 0)))
    assert line.as_stated.perplexity == pytest.approx(2.0) and line.floored.bits == pytest.approx(1.0)


def test_certain_and_wrong_is_infinite_with_its_share_and_a_figure_at_the_floor() -> None:
    stated = beliefs((100, 1, 10, 1, 20), (80, 2, 10, 1, 20), weight=[1.0, 3.0])
    line = found(stated, answers((1, 10, 1), (1, 20, 0)))
    assert math.isinf(line.as_stated.perplexity) and line.certain_and_wrong == pytest.approx(0.25)
    assert line.floored.nats == pytest.approx(-(math.log(FLOOR) + 3 * math.log(0.2)) / 4)
    said = json.loads(json.dumps(plain(perplexity_table([line]).records()[0]), allow_nan=False))
    assert said["perplexity"] is None and said["certain_and_wrong"] == 0.25


def test_answerers_share_a_beliefs_weight_and_a_reply_may_be_right_in_part() -> None:
    real_answers = RealAnswers(
        answerer=np.array([1, 1, 2, 2]),
        question=np.array([10, 20, 10, 20]),
        correct=np.array([1.0, 0.5, 1.0, 1.0]),
    )
    line = found(beliefs((80, 1, 10, 1, 20)), real_answers)
    assert (line.beliefs, line.answerers) == (1, 2)
    assert line.as_stated.nats == pytest.approx(-(0.75 * math.log(0.8) + 0.25 * math.log(0.2)))


def test_the_interval_holds_the_figure() -> None:
    rng = np.random.default_rng(1)
    rows = [(float(rng.integers(1, 100)), person, 10, 1, 20 + item) for person in range(12) for item in range(8)]
    real_answers = answers((1, 10, 1), *[(1, 20 + item, int(item % 2)) for item in range(8)])
    line = found(beliefs(*rows), real_answers)
    assert line.interval[0] < line.floored.perplexity < line.interval[1]


def test_without_a_match_there_is_nothing() -> None:
    with pytest.raises(ValueError, match="nobody answered both"):
        found(beliefs((80, 1, 10, 1, 20)), answers((1, 10, 0), (1, 20, 1)))
