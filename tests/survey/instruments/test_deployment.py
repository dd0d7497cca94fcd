"""Human-deployed performance: equation 2 by hand, and appendix B's reversal on a built example."""

import numpy as np
import pytest

from survey.instruments.belief_update.reports.alignment.deployment import (
    ModelRows,
    Rule,
    compare_deployment,
    failures_of_generalization,
    why_beliefs_decide_nothing,
)


def rows(name, belief, correct):
    n = len(belief)
    return ModelRows(name, np.asarray(belief, float), np.asarray(correct, np.int8), np.ones(n, bool))


def performance(belief, correct, rule):
    ((figure,), _none) = compare_deployment([rows("a", belief, correct)], rule, rng=np.random.default_rng(0), samples=9)
    return figure.performance


def test_performance_is_the_mean_of_deployed_times_correct():
    belief, correct = [0.9, 0.6, 0.4, 0.8], [1, 1, 1, 0]
    assert performance(belief, correct, Rule("threshold", 0.5)) == 0.5
    assert performance(belief, correct, Rule("proportional")) == pytest.approx((0.9 + 0.6 + 0.4) / 4)


def test_a_threshold_is_not_reached_by_being_equal():
    assert performance([0.5], [1], Rule("threshold", 0.5)) == 0


def test_a_threshold_above_every_belief_deploys_nothing_and_says_so():
    assert "deploys nothing" in why_beliefs_decide_nothing([0.55, 0.66], Rule("threshold", 0.9))
    assert why_beliefs_decide_nothing([0.55, 0.95], Rule("threshold", 0.9)) == ""
    assert why_beliefs_decide_nothing([0.5], Rule("proportional")) == ""
    assert "plain accuracy" in why_beliefs_decide_nothing([0.55, 0.66], Rule("threshold", 0.5))
    assert why_beliefs_decide_nothing([0.5, 0.66], Rule("threshold", 0.5)) == ""


def test_a_better_model_can_do_worse_when_people_deploy_it():
    # The better one answers everything that it is tested on wrong, and the rest right: people trust it nowhere.
    # The worse one is right where people look, and they deploy it where it is right.
    n = 400
    better_correct = np.tile([1, 1, 1, 0], n // 4)
    worse_correct = np.tile([1, 1, 0, 0], n // 4)
    better = rows("better", np.full(n, 0.3), better_correct)
    worse = rows("worse", np.where(worse_correct == 1, 0.9, 0.2), worse_correct)
    figures, reversals = compare_deployment([better, worse], Rule("threshold", 0.5), rng=np.random.default_rng(0))
    assert [figure.mean for figure in figures] == [0.75, 0.5]
    assert [figure.performance for figure in figures] == [0.0, 0.5]
    (reversal,) = reversals
    assert (reversal.better, reversal.worse) == ("better", "worse")
    assert reversal.mean_interval[0] > 0 > reversal.performance_interval[1]


def test_no_reversal_is_claimed_between_models_that_are_alike():
    rng = np.random.default_rng(5)
    models = [rows(name, rng.uniform(size=200), rng.integers(0, 2, 200)) for name in ("a", "b")]
    assert compare_deployment(models, Rule("proportional"), rng=rng)[1] == []


def test_pairs_without_a_row_count_for_nobody():
    model = ModelRows("a", np.asarray([0.9, 0.9]), np.asarray([1, 0], np.int8), np.asarray([True, False]))
    ((figure,), _none) = compare_deployment([model], Rule(), rng=np.random.default_rng(0), samples=200)
    assert (figure.pairs, figure.mean, figure.performance) == (1, 1.0, 1.0)


def test_failures_are_ranked_by_how_much_more_confident_people_became():
    failures = failures_of_generalization(
        outcome=[1, 1, 0, 1, 1, 1],
        correct=[0, 0, 0, 1, 0, 0],
        gain=[0.1, 0.3, 0.9, 0.9, -0.2, np.nan],
        answers=[3, 2, 5, 5, 4, 0],
        known=[1, 1, 1, 1, 1, 1],
    )
    assert [(failure.row, failure.gain) for failure in failures] == [(1, 0.3), (0, 0.1)]


def test_it_refuses_rules_and_rows_that_make_no_sense():
    for kind, threshold in (("always", 0.5), ("threshold", 1.0), ("threshold", -0.1)):
        with pytest.raises(ValueError, match=r"rule|threshold"):
            Rule(kind, threshold)
    with pytest.raises(ValueError, match="belief"):
        Rule().deployed([62.9])
    with pytest.raises(ValueError, match="no pair"):
        compare_deployment(
            [ModelRows("a", np.zeros(2), np.zeros(2, np.int8), np.zeros(2, bool))], Rule(), rng=np.random.default_rng(0)
        )


def test_fractions_deploy_after_both_outcomes_by_their_chances():
    """Right on the evidence with a chance of 0.25, and on the target in half of the replies."""
    belief, seen = np.array([[0.4], [0.8]]), np.array([[0.75], [0.25]])
    model_rows = ModelRows("a", belief, np.array([0.5]), np.ones(1, bool), seen)
    ((figure,), _none) = compare_deployment(
        [model_rows], Rule("threshold", 0.5), rng=np.random.default_rng(0), samples=9
    )
    assert (figure.mean, figure.share, figure.performance) == (0.5, 0.25, 0.125)


def test_a_fraction_misleads_where_it_is_mostly_right_and_then_mostly_wrong():
    failures = failures_of_generalization(
        outcome=[0.6, 0.5, 0.9], correct=[0.4, 0.0, 0.5], gain=[5.0, 5.0, 5.0], answers=[1, 1, 1], known=[True] * 3
    )
    assert [failure.row for failure in failures] == [0]
