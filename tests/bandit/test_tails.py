"""Intervals of figures that a few answers decide."""

import numpy as np
import pytest

import bandit
from bandit import DesignError, Estimate


def found(sums: np.ndarray, shares: np.ndarray | None = None, times: int = 1) -> tuple[Estimate, Estimate]:
    """The plain estimate of a mean of people's numbers, each given in so many answers, and the one for far answers."""
    values, cluster = np.repeat(sums, times), np.repeat(np.arange(sums.size), times)
    plain = bandit.naive_mean(values=values, cluster=cluster)
    error, share = bandit.error_contributions(values=values, weight=np.ones(values.size))
    answer_shares = share if shares is None else np.repeat(shares / times, times)
    return plain, bandit.widen_for_far_answers(plain, contributions=error, shares=answer_shares, cluster=cluster)


def test_one_person_far_out_leaves_few_degrees_of_freedom() -> None:
    near = np.where(np.arange(40) % 2, 1.0, -1.0)
    far = near.copy()
    far[0] = 30.0
    plain, wider = found(near)
    assert wider.value == plain.value and wider.degrees_of_freedom == plain.degrees_of_freedom == 39
    plain, wider = found(far)
    assert wider.degrees_of_freedom == 3 < plain.degrees_of_freedom
    assert wider.interval[0] < plain.interval[0] < plain.interval[1] < wider.interval[1]


def test_degrees_of_freedom_follow_the_fourth_moments() -> None:
    sums = np.random.default_rng(3).standard_t(5, size=60)
    own = (sums - sums.mean()) / 60
    second, fourth = (own**2).sum(), (own**4).sum()
    plain, wider = found(sums)
    assert wider.degrees_of_freedom == pytest.approx(2 * second**2 / (fourth - second**2 / 60))
    # Equal shares of 60 people stretch every sum alike.
    assert wider.standard_error == pytest.approx(plain.standard_error * 60 / 59)
    again = found(sums, times=3)[1]
    assert again.standard_error == pytest.approx(wider.standard_error)
    assert again.degrees_of_freedom == pytest.approx(wider.degrees_of_freedom)


def test_a_person_with_a_large_share_widens_the_interval() -> None:
    sums = np.linspace(-1, 1, 20)
    shares = np.full(20, 0.5 / 19)
    shares[0] = 0.5
    plain, wider = found(sums, shares)
    own = (sums - sums.mean()) / 20
    grown = np.sqrt(((own / (1 - shares)) ** 2).sum() / (own**2).sum())
    assert wider.standard_error == pytest.approx(plain.standard_error * grown) and grown > 1.2


def test_nothing_changes_where_nothing_varies() -> None:
    plain, wider = found(np.ones(10))
    assert wider is plain


def test_arrays_of_different_lengths_and_one_person_are_refused() -> None:
    plain = bandit.naive_mean(values=[0.0, 1.0, 2.0], cluster=[1, 2, 3])
    with pytest.raises(DesignError, match="need one number of each for every answer"):
        bandit.widen_for_far_answers(plain, contributions=[0.1, 0.2], shares=[0.5], cluster=[1, 2])
    with pytest.raises(DesignError, match="answers of 1 people; an interval needs at least 2"):
        bandit.widen_for_far_answers(plain, contributions=[0.1, 0.2], shares=[0.5, 0.0], cluster=[1, 2])


@pytest.mark.slow
def test_it_holds_a_mean_of_losses_more_often_than_the_plain_interval() -> None:
    """Of 40 people's losses a few are large; the mean is known."""
    rng, hits = np.random.default_rng(8), np.zeros(2)
    for _study in range(400):
        losses = np.where(rng.random(160) < 0.06, 5.0, 0.3)
        plain, wider = (estimate.interval for estimate in found(losses.reshape(40, 4).mean(axis=1)))
        truth = 0.06 * 5.0 + 0.94 * 0.3
        hits += [low <= truth <= high for low, high in (plain, wider)]
    assert hits[0] < hits[1] and 0.92 <= hits[1] / 400 <= 0.98
