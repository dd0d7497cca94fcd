import math
from dataclasses import replace

import numpy as np
import pytest

import bandit
from bandit import DesignError, EpsilonGreedy, Softmax, Uniform, draw, evaluate_policy, inclusion_probabilities


def evaluated(**change):
    arguments = {
        "values": [1, 0, 1, 1],
        "selected": [0, 1, 4, 5],
        "logged": [0.5, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.25],
        "other": [0.25, 0.25, 0.25, 0.25, 0.75, 0.75, 0.75, 0.75],
        "stratum": [0, 0, 1, 1],
        "planned": (2, 2),
        "cluster": list("abcd"),
    }
    return evaluate_policy(**(arguments | change))


def test_answers_are_weighted_by_the_ratio_of_the_policies():
    evaluation = evaluated()
    assert evaluation.plain.value == pytest.approx((0.5 * 1 + 0 + 3 + 3) / 4)
    assert evaluation.self_normalised.value == pytest.approx(6.5 / 7)
    assert evaluation.effective_sample_size == pytest.approx(7**2 / (2 * 0.25 + 2 * 9))
    assert evaluation.plain.effective_sample_size == evaluation.effective_sample_size
    assert evaluation.reason == "not enough support: effective sample size 3, under 100"


def test_the_same_policy_finds_what_was_found():
    evaluation = evaluated(
        other=[0.5] * 4 + [0.25] * 4,
        planned=(2, 1),
        selected=[0, 1, 4],
        values=[1, 0, 1],
        stratum=[0, 0, 1],
        cluster=list("abc"),
    )
    assert evaluation.plain.value == pytest.approx(evaluation.self_normalised.value) == pytest.approx(2 / 3)


def test_slots_that_nobody_answered_are_made_up_within_their_stratum():
    evaluation = evaluated(planned=(2, 4))
    # Six slots were planned for a policy of four: the two answers of stratum 1 represent its four slots.
    assert evaluation.plain.value == pytest.approx((0.5 * 1 + 2 * 3 + 2 * 3) / 4)
    assert evaluation.self_normalised.value == pytest.approx((0.5 + 6 + 6) / (1 + 12))


def test_what_the_stage_could_never_draw_is_said():
    evaluation = evaluated(logged=[0.5, 0.5, 0.5, 0.5, 0.25, 0.25, 0, 0])
    assert evaluation.unsupported == pytest.approx(1.5 / 4)
    assert "37.5% of the policy's slots are on candidates with probability 0" in evaluation.reason


def test_the_difference_between_policies_allows_for_how_far_a_person_pulls_a_mean():
    """By hand: one stratum, three people of whom the last one decides what the other policy finds."""
    values, person = np.array([1.0, 0, 1, 0, 1, 1]), np.array([0, 0, 1, 1, 2, 2])
    second = np.array([0.1, 0.1, 0.1, 0.1, 0.8, 0.8])
    comparison = bandit.compare_policies(
        values=values,
        selected=np.arange(6),
        logged=np.full(6, 0.5),
        first=np.full(6, 0.5),
        second=second,
        stratum=np.zeros(6, dtype=int),
        planned=[6],
        cluster=person,
    )
    share = second / second.sum()
    mean = float(share @ values)
    single = share * (values - mean) - (values - values.mean()) / 6
    single -= single.mean()
    pull = [1 / 3, 1 / 3, 0.8]
    totals = [single[person == number].sum() / (1 - min(pull[number], 0.5)) for number in range(3)]
    assert comparison.value == pytest.approx(mean - values.mean())
    assert comparison.standard_error == pytest.approx(math.sqrt(3 / 2 * np.dot(totals, totals)))
    assert comparison.degrees_of_freedom == 2


@pytest.mark.parametrize("turned", [False, True])
def test_a_comparison_says_what_the_policy_that_is_farther_from_the_design_leaves(turned):
    even, far = np.full(6, 0.5), np.array([0.1, 0.1, 0.1, 0.1, 0.8, 0.8])
    comparison = bandit.compare_policies(
        values=[1, 0, 1, 0, 1, 1],
        selected=np.arange(6),
        logged=even,
        first=far if turned else even,
        second=even if turned else far,
        stratum=np.zeros(6, dtype=int),
        planned=[6],
        cluster=np.arange(6),
    )
    assert comparison.effective_sample_size == pytest.approx(2.0**2 / (4 * 0.01 + 2 * 0.64))


@pytest.mark.thorough
@pytest.mark.slow
def test_other_policies_are_evaluated_without_bias_and_with_intervals_that_cover():
    rng = np.random.default_rng(31)
    logit = rng.normal(-0.5, 1, size=600)
    scores = 1 / (1 + np.exp(-(logit + rng.normal(0, 0.7, size=600))))
    chance = 1 / (1 + np.exp(-logit))
    logged_design = EpsilonGreedy(epsilon=0.4, top_fraction=0.3)
    logged = inclusion_probabilities(design=logged_design, n=200, scores=scores, n_candidates=600, rng=rng)
    for other_design in (Uniform(), Softmax(temperature=0.3, floor=0.2)):
        other = inclusion_probabilities(design=other_design, n=100, scores=scores, n_candidates=600, rng=rng)
        truth = float((other * chance).sum() / 100)
        plain, normalised, covered = [], [], []
        for _ in range(500):
            drawn = draw(design=logged_design, n=200, scores=scores, n_candidates=600, rng=rng)
            answered = rng.random(200) > 0.1
            evaluation = evaluate_policy(
                values=(rng.random(200) < chance[drawn.selected])[answered],
                selected=drawn.selected[answered],
                logged=logged,
                other=other,
                stratum=drawn.stratum[answered],
                planned=[stratum.n for stratum in drawn.strata],
                cluster=np.arange(200)[answered],
            )
            plain.append(evaluation.plain.value)
            normalised.append(evaluation.self_normalised.value)
            covered.append(evaluation.plain.interval[0] <= truth <= evaluation.plain.interval[1])
        assert abs(np.mean(plain) - truth) < 3 * np.std(plain) / math.sqrt(500)
        assert abs(np.mean(normalised) - truth) < 0.1 * np.std(normalised)
        assert np.mean(covered) > 0.92


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"other": [0.5]}, "1 probabilities for 8 candidates"),
        ({"other": [0.0] * 8}, "gives no candidate a chance"),
        ({"other": [0, 0, 1, 1, 0, 0, 1, 1]}, "none of its candidates was answered"),
        ({"logged": [0, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.25]}, "some answered candidate has probability 0"),
        ({"logged": [1.5] * 8}, r"probabilities in 0\.\.1"),
        ({"selected": [0, 1, 4, 8]}, r"of a candidate 0\.\.7"),
        ({"selected": [0, 1]}, "equally long"),
        ({"stratum": [0, 0, 1, 2]}, r"integers 0\.\.1"),
        ({"planned": (2, 1)}, "stratum 1 has 1 slots and 2 answers"),
        ({"planned": (2, 2, 5)}, "stratum 2 has 5 slots and 0 answers"),
    ],
)
def test_logs_that_do_not_fit_are_refused(change, message):
    with pytest.raises(DesignError, match=message):
        evaluated(**change)


def test_an_effective_sample_of_100_is_enough_and_the_weights_are_said():
    n = 100
    same = evaluated(
        values=np.arange(n) % 2,
        selected=np.arange(n),
        logged=np.full(2 * n, 0.5),
        other=np.full(2 * n, 0.25),
        stratum=np.zeros(n, dtype=int),
        planned=(n,),
        cluster=np.arange(n),
    )
    assert same.effective_sample_size == pytest.approx(100)
    assert replace(same, effective_sample_size=100.0).reason == ""
    assert replace(same, effective_sample_size=99.9).reason.endswith("effective sample size 100, under 100")
    evaluation = evaluated()
    assert (
        evaluation.plain.weight_range
        == evaluation.self_normalised.weight_range
        == pytest.approx((0.5 / 1.75, 3 / 1.75))
    )
