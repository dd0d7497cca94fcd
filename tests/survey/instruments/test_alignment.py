"""Alignment from arrays: the paper's equations computed by hand, and properties of its intervals."""

import numpy as np
import pytest

from survey.instruments.belief_update.reports.alignment.scores import (
    PAPER_AVERAGES,
    AlignmentComparison,
    Averages,
    Trial,
    alpha_of,
    averages_as_row,
    change_for,
    mixture_belief,
    threshold_of,
    weighted_accuracy,
    weighted_cross_entropy,
)


def trial(name, outcome, correct, answered=None):
    n = len(outcome)
    return Trial(
        name=name,
        outcome=np.asarray(outcome, dtype=np.int8),
        correct=np.asarray(correct, dtype=np.int8),
        answered=np.ones(n, dtype=bool) if answered is None else np.asarray(answered, dtype=bool),
    )


def made_up(n=200, seed=3):
    rng = np.random.default_rng(seed)
    return {
        "outcome": rng.integers(0, 2, n),
        "correct": rng.integers(0, 2, n),
        "change_if_correct": rng.uniform(0, 1, n),
        "change_if_incorrect": rng.uniform(0, 1, n),
    }


def compared(*trials, data, seed=1, **settings):
    return AlignmentComparison(
        list(trials),
        change_if_correct=data["change_if_correct"],
        change_if_incorrect=data["change_if_incorrect"],
        rng=np.random.default_rng(seed),
        **{"samples": 2000, **settings},
    )


def test_the_belief_mixes_prior_and_posterior_by_the_predicted_change():
    belief = mixture_belief([0.0, 1.0, 1.0, 0.5], [1, 1, 0, 0], Averages(0.6, 0.7, 0.4))
    assert belief == pytest.approx([0.6, 0.7, 0.4, 0.5])


def test_the_prediction_is_that_of_the_outcome_the_model_really_had():
    assert change_for([1, 0], [0.1, 0.2], [0.8, 0.9]).tolist() == [0.1, 0.9]


def test_accuracy_weighs_wrong_answers_by_alpha():
    # Two pairs: right with belief 0.8, wrong with belief 0.6.
    assert weighted_accuracy([1, 0], [0.8, 0.6], [1, 3]) == pytest.approx([(0.8 + 0.4) / 2, (0.8 + 3 * 0.4) / 4])


def test_cross_entropy_weighs_wrong_answers_by_alpha():
    expected = [(-np.log(0.8) - alpha * np.log(0.4)) / (1 + alpha) for alpha in (1, 3)]
    assert weighted_cross_entropy([1, 0], [0.8, 0.6], [1, 3]) == pytest.approx(expected)


def test_a_threshold_is_alpha_over_one_plus_alpha_and_back():
    assert threshold_of([1, 19, 50, 99]) == pytest.approx([0.5, 0.95, 50 / 51, 0.99])
    assert alpha_of(threshold_of([1, 19, 50])) == pytest.approx([1, 19, 50])


def test_the_closed_form_is_the_mean_of_equation_7_over_its_largest_value():
    data = made_up()
    belief = np.random.default_rng(0).uniform(0.1, 0.9, 200)
    for alpha in (0.0, 0.5, 19.0):
        y = data["correct"]
        each = y * belief + alpha * (1 - y) * (1 - belief)
        assert weighted_accuracy(y, belief, [alpha])[0] == pytest.approx(each.mean() / (y + alpha * (1 - y)).mean())


def test_a_measure_without_denominator_is_not_a_number():
    assert np.isnan(weighted_accuracy([0, 0], [0.2, 0.3], [0.0])).all()


@pytest.mark.parametrize("alpha", [-1, np.nan, np.inf])
def test_it_refuses_an_alpha_that_is_no_weight(alpha):
    with pytest.raises(ValueError, match="alpha"):
        weighted_accuracy([1], [0.5], [alpha])


def test_it_refuses_beliefs_outside_the_unit_interval_and_other_outcomes():
    with pytest.raises(ValueError, match="belief"):
        weighted_accuracy([1], [50])
    with pytest.raises(ValueError, match="correct"):
        weighted_accuracy([2], [0.5])
    with pytest.raises(ValueError, match="prior"):
        Averages(62.9, 0.663, 0.551)


def test_scores_of_a_comparison_are_those_of_the_functions():
    data = made_up()
    comparison = compared(trial("a", data["outcome"], data["correct"]), data=data)
    score = comparison.score("a")
    change = change_for(data["outcome"], data["change_if_correct"], data["change_if_incorrect"])
    belief = mixture_belief(change, data["outcome"], PAPER_AVERAGES)
    assert score.accuracy == pytest.approx(weighted_accuracy(data["correct"], belief), abs=1e-12)
    assert score.cross_entropy == pytest.approx(weighted_cross_entropy(data["correct"], belief), abs=1e-12)
    assert (score.accuracy_interval[:, 0] < score.accuracy).all()
    assert (score.accuracy < score.accuracy_interval[:, 1]).all()


@pytest.mark.thorough
def test_intervals_cover_the_truth_about_as_often_as_they_say():
    rng = np.random.default_rng(7)
    universe = made_up(n=20_000, seed=5)
    change = change_for(universe["outcome"], universe["change_if_correct"], universe["change_if_incorrect"])
    truth = weighted_accuracy(universe["correct"], mixture_belief(change, universe["outcome"], PAPER_AVERAGES), [19])[0]
    covered = 0
    for _ in range(200):
        rows = rng.integers(0, 20_000, 150)
        part = {name: values[rows] for name, values in universe.items()}
        comparison = compared(
            trial("a", part["outcome"], part["correct"]), data=part, samples=400, seed=int(rng.integers(1 << 30))
        )
        low, high = comparison.score("a", [19]).accuracy_interval[0]
        covered += low <= truth <= high
    assert 0.89 <= covered / 200 <= 0.99


def test_a_difference_is_paired_and_so_narrower_than_of_two_separate_models():
    data = made_up()
    nearly = data["correct"].copy()
    nearly[:10] = 1 - nearly[:10]
    comparison = compared(trial("a", data["outcome"], data["correct"]), trial("b", data["outcome"], nearly), data=data)
    difference = comparison.difference("a", "b", [1])
    assert difference.accuracy == pytest.approx(
        comparison.score("a", [1]).accuracy - comparison.score("b", [1]).accuracy
    )
    own = comparison.score("a", [1]).accuracy_interval[0]
    assert np.ptp(difference.accuracy_interval[0]) < np.ptp(own)


def test_a_model_against_itself_differs_by_nothing():
    data = made_up()
    same = [trial(name, data["outcome"], data["correct"]) for name in ("a", "b")]
    difference = compared(*same, data=data).difference("a", "b")
    assert (difference.accuracy == 0).all()
    assert (difference.accuracy_p == 1).all()


def test_unanswered_pairs_count_nowhere():
    data = made_up()
    answered = np.arange(200) < 120
    whole = compared(trial("a", data["outcome"], data["correct"], answered), data=data)
    part = {name: values[:120] for name, values in data.items()}
    alone = compared(trial("a", part["outcome"], part["correct"]), data=part)
    assert whole.score("a").pairs == 120
    assert whole.score("a").accuracy == pytest.approx(alone.score("a").accuracy)


def test_averages_that_vary_make_intervals_wider_and_constant_ones_leave_them():
    data = made_up()
    own_trial = trial("a", data["outcome"], data["correct"])
    fixed = compared(own_trial, data=data).score("a")
    constant = np.tile(averages_as_row(PAPER_AVERAGES), (2000, 1))
    assert compared(own_trial, data=data, averages_draws=constant).score("a").accuracy_interval == pytest.approx(
        fixed.accuracy_interval, abs=1e-6
    )
    moving = np.clip(constant + np.random.default_rng(2).normal(0, 0.05, (2000, 1)), 0.01, 0.99)
    wider = compared(own_trial, data=data, averages_draws=moving).score("a", [19])
    assert np.ptp(wider.accuracy_interval) > np.ptp(compared(own_trial, data=data).score("a", [19]).accuracy_interval)


def test_it_refuses_a_model_without_answers_and_two_of_one_name():
    data = made_up(n=5)
    with pytest.raises(ValueError, match="answered no pair"):
        compared(trial("a", data["outcome"], data["correct"], np.zeros(5)), data=data)
    with pytest.raises(ValueError, match="same name"):
        compared(*[trial("a", data["outcome"], data["correct"])] * 2, data=data)


def test_a_model_in_fractions_is_the_mean_over_its_replies():
    """A fraction t on the evidence counts as t pairs with a right answer and 1 - t with a wrong one; on the target as
    t right answers."""
    data = made_up(n=40)
    rng = np.random.default_rng(3)
    outcome, correct = rng.integers(0, 5, 40) / 4, rng.integers(0, 5, 40) / 4
    score = compared(Trial("a", outcome, correct, np.ones(40, bool)), data=data).score("a", [1, 19])
    gained, lost, right, wrong = np.zeros(2), np.zeros(2), 0.0, 0.0
    alphas = np.array([1, 19])
    for row in range(40):
        for shown_outcome, chance in ((1, outcome[row]), (0, 1 - outcome[row])):
            change = data["change_if_correct" if shown_outcome else "change_if_incorrect"][row]
            (belief,) = mixture_belief([change], [shown_outcome], PAPER_AVERAGES)
            y = correct[row]
            gained += chance * (y * belief + alphas * (1 - y) * (1 - belief))
            lost -= chance * (y * np.log(belief) + alphas * (1 - y) * np.log(1 - belief))
            right, wrong = right + chance * y, wrong + chance * (1 - y)
    assert score.accuracy == pytest.approx(gained / (right + alphas * wrong))
    assert score.cross_entropy == pytest.approx(lost / (right + alphas * wrong))
    assert (score.accuracy_interval[:, 0] < score.accuracy).all()
    moving = np.tile(averages_as_row(PAPER_AVERAGES), (2000, 1))
    trial_in_fractions = Trial("a", outcome, correct, np.ones(40, bool))
    again = compared(trial_in_fractions, data=data, averages_draws=moving).score("a", [1, 19])
    assert again.accuracy_interval == pytest.approx(score.accuracy_interval, abs=1e-5)


def test_weights_and_fractions_that_are_whole_change_nothing():
    data = made_up()
    whole = compared(trial("a", data["outcome"], data["correct"]), data=data).score("a")
    weighted = Trial("a", data["outcome"] / 1.0, data["correct"] / 1.0, np.ones(200, bool), np.full(200, 2.0))
    assert compared(weighted, data=data).score("a").accuracy == pytest.approx(whole.accuracy)


def test_it_refuses_what_is_no_fraction():
    data = made_up(n=5)
    with pytest.raises(ValueError, match="a: outcome"):
        compared(trial("a", [2, 0, 1, 1, 0], data["correct"]), data=data)
    with pytest.raises(ValueError, match="a: weight"):
        compared(Trial("a", data["outcome"], data["correct"], np.ones(5, bool), np.full(5, -1.0)), data=data)
