"""The log score, bits and perplexity: the figures of the specification, and that infinite stays infinite."""

import json
import math
import warnings

import numpy as np
import pytest

from predictors.errors import PredictorError
from predictors.evaluation.intervals import percentile_interval
from predictors.evaluation.metrics import negative_log_likelihood
from predictors.evaluation.scoring import (
    TextScore,
    TrainTest,
    added,
    in_words,
    log_score,
    log_score_interval,
    log_scores_by_group,
    text_intervals,
)


def test_three_probabilities_cost_the_same_in_either_base():
    q = np.array([0.2, 0.1, 0.3])
    score = log_score(q)
    assert score.bits == pytest.approx(2.4603, abs=5e-5)
    assert score.perplexity == pytest.approx(5.5032, abs=5e-5)
    assert 2**score.bits == pytest.approx(score.perplexity, rel=1e-12)
    assert np.prod(1 / q) ** (1 / 3) == pytest.approx(score.perplexity, rel=1e-12)


@pytest.mark.parametrize(("probability", "bits"), [(0.51, 0.9714), (0.99, 0.0145), (0.5, 1.0), (1.0, 0.0)])
def test_one_probability_in_bits(probability, bits):
    assert log_score([probability]).bits == pytest.approx(bits, abs=5e-5)


@pytest.mark.parametrize("outcomes", [1, 10, 50_000])
def test_a_uniform_belief_is_as_perplexed_as_it_has_outcomes(outcomes):
    assert log_score(np.full(7, 1 / outcomes)).perplexity == pytest.approx(outcomes, rel=1e-12)


def test_perplexity_is_the_geometric_mean_of_the_inverse_with_weights():
    rng = np.random.default_rng(1)
    q, w = rng.uniform(0.01, 1, 500), rng.uniform(0, 3, 500)
    direct = np.exp(np.sum(w * np.log(1 / q)) / w.sum())
    assert log_score(q, w).perplexity == pytest.approx(direct, rel=1e-12)


def test_one_impossible_case_is_infinite_counted_and_null_in_json():
    q = [0.5, 0.5, 0.0, 0.25]
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        score = log_score(q)
    assert math.isinf(score.nats) and math.isinf(score.bits) and math.isinf(score.perplexity)
    assert score.infinite == 1
    assert score.perplexity_of_finite == pytest.approx(log_score([0.5, 0.5, 0.25]).perplexity)
    said = json.loads(json.dumps(score.as_json(), allow_nan=False))
    assert said["nats"] is None and said["perplexity"] is None and said["infinite"] == 1
    assert in_words(score.perplexity) == "∞"


def test_a_case_of_no_weight_may_be_impossible():
    score = log_score([0.0, 0.5], [0.0, 2.0])
    assert (score.n, score.infinite, score.bits) == (1, 0, 1.0)


def test_a_floor_is_said_with_how_many_it_raised():
    score = log_score([0.0, 0.005, 0.5], floor=0.01)
    assert (score.floor, score.below_floor, score.infinite) == (0.01, 2, 0)
    assert score.nats == pytest.approx(-(2 * math.log(0.01) + math.log(0.5)) / 3)


def test_a_case_of_no_weight_is_not_among_those_that_a_floor_raised():
    assert log_score([0.0, 0.005, 0.5], [0.0, 1.0, 1.0], floor=0.01).below_floor == 1


def test_only_impossible_cases_leave_nothing_finite():
    score = log_score([0.0, 0.0])
    assert math.isinf(score.nats) and score.nats_of_finite is None and score.perplexity_of_finite is None


def test_it_agrees_with_the_metric_of_predictors():
    rng = np.random.default_rng(2)
    p, y = rng.uniform(0.05, 0.95, 300), rng.integers(0, 2, 300)
    assert log_score(np.where(y, p, 1 - p)).nats == pytest.approx(negative_log_likelihood(y, p), rel=1e-12)


def test_groups_are_scored_by_label():
    scores = log_scores_by_group([0.5, 0.25, 0.5, 0.1], ["a", "b", "a", "c"], [1, 1, 1, 0])
    assert {name: score.bits for name, score in scores.items()} == {"a": 1.0, "b": 2.0}


@pytest.mark.parametrize(
    ("probabilities", "weights", "floor", "named"),
    [
        ([0.5, 1.2], None, None, "case 1 is .*1.2"),
        ([-0.1], None, None, "probabilities"),
        ([math.nan], None, None, "probabilities"),
        ([0.5, 0.5], [0, 0], None, "sums to 0"),
        ([0.5], [-1], None, "sample_weight"),
        ([0.5], [1, 2], None, "shapes"),
        ([0.5], None, 0.0, "floor"),
    ],
)
def test_it_names_what_is_wrong(probabilities, weights, floor, named):
    with pytest.raises(PredictorError, match=named):
        log_score(probabilities, weights, floor=floor)


def test_no_case_has_no_score():
    assert log_score([]) is None
    assert log_score_interval([], rng=np.random.default_rng(0)) is None


def test_the_interval_holds_the_score_and_goes_to_infinity_with_it():
    rng = np.random.default_rng(3)
    q = rng.uniform(0.2, 0.9, 200)
    low, high = log_score_interval(q, rng=np.random.default_rng(0))
    assert low < log_score(q).nats < high
    wide = log_score_interval(q, cluster=np.arange(200) // 20, rng=np.random.default_rng(0))
    assert wide[0] < log_score(q).nats < wide[1]
    assert math.isinf(log_score_interval(np.append(q, 0.0), rng=np.random.default_rng(0))[1])


def test_a_text_is_scored_by_token_word_and_character():
    score = TextScore.of(np.log([0.2, 0.1, 0.3]), words=2, characters=12)
    assert score.perplexity_per_token == pytest.approx(5.5032, abs=5e-5)
    assert score.perplexity_per_word == pytest.approx(math.exp(score.nats / 2))
    assert score.bits_per_character == pytest.approx(3 * 2.4603 / 12, abs=5e-5)
    assert score.normalised(10) == pytest.approx(0.55032, abs=5e-6)


def test_a_token_that_was_not_read_counts_nowhere_but_in_the_text():
    score = TextScore.of([math.nan, -1.0], words=2, characters=9)
    assert (score.tokens, score.nats, score.characters) == (1, 1.0, 9)


def test_an_impossible_token_is_infinite_and_counted():
    score = TextScore.of([-1.0, -math.inf], words=1, characters=4)
    both = added([score, TextScore.of([-3.0], words=1, characters=4)])
    assert math.isinf(both.nats) and both.infinite == 1 and both.perplexity_of_finite == pytest.approx(math.exp(2))
    assert json.loads(json.dumps(both.as_json(), allow_nan=False))["bits_per_character"] is None


def test_an_empty_text_has_no_figure():
    score = TextScore.of([], words=0, characters=0)
    assert score.perplexity_per_token is None and score.bits_per_character is None


def test_a_log_probability_above_0_is_refused():
    with pytest.raises(PredictorError, match="above 0"):
        TextScore.of([0.1], words=1, characters=1)


def test_train_far_below_test_is_flagged():
    train = TextScore.of([-1.0] * 10, words=5, characters=20)
    near, far, endless = (TextScore.of([-x] * 10, words=5, characters=20) for x in (1.2, 2.0, math.inf))
    assert not TrainTest(train, near).is_overfitted
    assert TrainTest(train, far).is_overfitted and TrainTest(train, far).ratio == pytest.approx(math.exp(-1))
    assert TrainTest(train, endless).ratio == 0 and TrainTest(train, endless).is_overfitted
    assert TrainTest(endless, far).ratio is None


def test_models_are_resampled_together():
    rng = np.random.default_rng(4)
    hard = rng.uniform(1, 5, 40)
    first = [TextScore.of([-x], words=1, characters=5) for x in hard]
    second = [TextScore.of([-x - 0.5], words=1, characters=5) for x in hard]
    intervals = text_intervals({"a": first, "b": second}, rng=np.random.default_rng(0))
    low, high = intervals.differences["b"]
    # What makes a text hard for both cancels out: the difference is the same in each.
    assert low == pytest.approx(high) and low == pytest.approx(-0.1 / math.log(2))
    assert intervals.bits_per_character["a"][0] < added(first).bits_per_character < intervals.bits_per_character["a"][1]


def test_one_impossible_text_in_three_makes_the_upper_end_infinite():
    texts = [TextScore.of([-x], words=1, characters=5) for x in (1.0, math.inf, 2.0)]
    intervals = text_intervals({"a": texts, "b": texts[:1] * 3}, rng=np.random.default_rng(0))
    low, high = intervals.bits_per_character["a"]
    assert math.isfinite(low) and math.isinf(high)
    assert intervals.bits_per_character["b"] == pytest.approx((0.2 / math.log(2),) * 2)
    # In most resamples one is infinite and the other is not, so that there is no difference.
    assert intervals.differences == {"b": None}


def test_one_text_has_no_interval_and_other_texts_no_comparison():
    scores = [TextScore.of([-1.0], words=1, characters=5)]
    assert text_intervals({"a": scores}, rng=np.random.default_rng(0)).bits_per_character == {"a": None}
    with pytest.raises(PredictorError, match="same texts"):
        text_intervals({"a": scores, "b": scores * 2}, rng=np.random.default_rng(0))


def test_infinite_resamples_are_the_largest():
    assert percentile_interval([1.0, 2.0, np.inf, np.inf], 0.9, method="nearest") == (1.0, math.inf)
    assert percentile_interval(np.array([np.nan, np.nan, np.nan, 1.0]), 0.9) is None


def test_groups_have_the_floor_that_the_whole_has():
    scores = log_scores_by_group([0.0, 0.5, 0.001], ["a", "b", "b"], floor=0.01)
    assert scores["a"].nats == pytest.approx(-math.log(0.01)) and (scores["a"].floor, scores["a"].below_floor) == (
        0.01,
        1,
    )
    assert scores["b"].below_floor == 1


def test_intervals_take_weights_floors_and_clusters_as_the_score_does():
    q = np.random.default_rng(5).uniform(0.2, 0.9, 60)

    def interval(probabilities, weights=None, **how):
        return log_score_interval(probabilities, weights, rng=np.random.default_rng(6), samples=200, **how)

    # By hand: half of the resamples of two cases hold both.
    both = (-math.log(0.5) - 3 * math.log(0.25)) / 4
    assert interval([0.5, 0.25], [1, 3], level=0.3) == pytest.approx((both, both))
    assert interval([*q, 0.0], floor=0.1) == interval([*q, 0.1]) == interval([*q, 0.05], floor=0.1)
    # Five copies of a case are one, where they are said to hang together.
    copies, unit = np.repeat(q, 5), np.repeat(np.arange(60), 5)
    assert interval(copies, cluster=unit) == pytest.approx(interval(q))
    assert interval(np.append(q, 0.0), np.append(np.ones(60), 0.0), cluster=np.arange(61)) == interval(q)
    assert interval(copies, cluster=(unit, np.arange(300)))[1] > interval(copies)[1]


def test_a_text_with_an_impossible_token_is_endless_by_word_too():
    score = TextScore.of([-1.0, -math.inf], words=2, characters=4)
    assert math.isinf(score.perplexity_per_word) and math.isinf(score.bits_per_character)
    assert percentile_interval([np.nan, np.nan, 1.0, 3.0], 0.9, method="nearest") == (1.0, 3.0), (
        "half of them are enough"
    )


def test_half_the_perplexity_of_the_test_is_not_yet_overfitted():
    train, test = (TextScore.of([math.log(p)] * 4, words=4, characters=9) for p in (1.0, 0.5))
    both = TrainTest(train, test)
    assert both.ratio == 0.5 and not both.is_overfitted
