"""The change within people: by hand, against a paired t interval, and how often its interval holds the truth."""

import math

import numpy as np
import pytest

import bandit
from bandit import DesignError
from bandit.student import student_t_quantile


def change(first, other, **weights):
    people = np.arange(len(first))
    arguments = {"first_weight": np.ones(len(first)), "second_weight": np.ones(len(other)), **weights}
    return bandit.paired_change(first=first, first_person=people, second=other, second_person=people, **arguments)


def test_with_one_answer_each_it_is_the_paired_interval():
    first, other = np.array([1.0, 4, 2, 7, 5]), np.array([2.0, 4, 5, 9, 4])
    estimate = change(first, other)
    differences = other - first
    error = differences.std(ddof=1) / math.sqrt(5)
    assert estimate.value == pytest.approx(differences.mean())
    assert estimate.standard_error == pytest.approx(error)
    assert estimate.interval[1] == pytest.approx(differences.mean() + student_t_quantile(0.975, 4) * error)
    assert (estimate.n, estimate.n_clusters) == (10, 5)


def test_who_answered_once_is_left_out_and_weights_are_taken():
    estimate = bandit.paired_change(
        first=[0, 10, 99], first_weight=[3, 1, 5], first_person=[1, 2, 3],
        second=[4, 8, -50], second_weight=[1, 1, 9], second_person=[1, 2, 4],
    )  # fmt: skip
    assert estimate.value == pytest.approx(6 - 2.5)
    assert estimate.weight_range == pytest.approx((0.5, 1.5)) and estimate.effective_sample_size == pytest.approx(
        16 / 4.5
    )
    assert estimate.n_clusters == 2


def test_a_ratio_divides_the_sums():
    ratio = bandit.paired_change(
        first=[1, 0], first_weight=[1, 1], first_person=[1, 2], first_per=[2, 2],
        second=[1, 1], second_weight=[1, 1], second_person=[1, 2], second_per=[1, 3],
    )  # fmt: skip
    assert ratio.value == pytest.approx(2 / 4 - 1 / 4)


def test_nobody_in_both_gives_nothing_and_bad_input_is_refused():
    arguments = {"first_weight": [1], "first_person": [1], "second": [1], "second_weight": [1]}
    assert bandit.paired_change(first=[1], second_person=[2], **arguments) is None
    assert math.isnan(bandit.paired_change(first=[1], second_person=[1], **arguments).standard_error)
    for wrong in ([1, 2], [math.nan]):
        with pytest.raises(DesignError):
            bandit.paired_change(first=wrong, second_person=[1], **arguments)
    with pytest.raises(DesignError, match="0 or more"):
        bandit.paired_change(first=[1], second_person=[1], **{**arguments, "second_weight": [-1]})


def occasions(first, other, people):
    ones = np.ones(len(first))
    return bandit.Occasions(
        first=first, first_weight=ones, first_person=people, second=other, second_weight=ones, second_person=people
    )


def test_the_difference_of_two_groups_changes_is_welchs_interval():
    low = occasions(np.array([1.0, 4, 2, 7]), np.array([2.0, 4, 5, 9]), np.arange(4))
    high = occasions(np.array([3.0, 5, 1]), np.array([3.0, 9, 6]), np.arange(10, 13))
    difference = bandit.paired_change_difference(low, high)
    low_changes, other = (np.asarray(group.second) - np.asarray(group.first) for group in (low, high))
    parts = [group.var(ddof=1) / group.size for group in (low_changes, other)]
    freedom = sum(parts) ** 2 / (parts[0] ** 2 / 3 + parts[1] ** 2 / 2)
    assert difference.value == pytest.approx(other.mean() - low_changes.mean())
    assert difference.standard_error == pytest.approx(math.sqrt(sum(parts)))
    reach = student_t_quantile(0.975, freedom) * math.sqrt(sum(parts))
    assert difference.interval[1] - difference.value == pytest.approx(reach)
    assert difference.n_clusters == 7


def test_people_in_both_groups_are_compared_with_themselves():
    """What a person's two changes have in common falls out."""
    first, own = np.array([1.0, 4, 2, 7]), np.array([3.0, -1, 0, 2])
    low, high = occasions(first, first + own, np.arange(4)), occasions(first, first + own + [1, 2, 1, 2], np.arange(4))
    difference = bandit.paired_change_difference(low, high)
    assert difference.value == pytest.approx(1.5)
    assert difference.standard_error == pytest.approx(np.std([1, 2, 1, 2], ddof=1) / 2)
    assert difference.degrees_of_freedom == 3 and difference.n_clusters == 4
    alone = occasions([1.0], [2.0], [1])
    assert math.isnan(bandit.paired_change_difference(low, alone).standard_error)
    assert bandit.paired_change_difference(low, occasions([], [], [])) is None


@pytest.mark.slow
def test_its_interval_holds_the_truth_as_often_as_it_says():
    """People differ, each answers several items with unequal weights, change by an amount of their own, and a third of
    them does not come back."""
    rng, held, studies, truth = np.random.default_rng(5), 0, 600, 0.3
    for _ in range(studies):
        level, own = rng.normal(0, 1, 60), rng.normal(truth, 0.4, 60)
        first, second = np.repeat(np.arange(60), 5), np.repeat(np.flatnonzero(rng.random(60) < 0.67), 5)
        estimate = bandit.paired_change(
            first=level[first] + rng.normal(0, 1, first.size),
            first_weight=rng.choice([1.0, 2.0, 4.0], first.size),
            first_person=first,
            second=(level + own)[second] + rng.normal(0, 1, second.size),
            second_weight=rng.choice([1.0, 3.0], second.size),
            second_person=second,
        )
        held += estimate.interval[0] <= truth <= estimate.interval[1]
    assert 0.93 <= held / studies <= 0.97
