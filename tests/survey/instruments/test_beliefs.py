"""Mixture and regression on made-up people whose beliefs are known."""

import numpy as np
import pytest

from survey.instruments.belief_update.reports.beliefs import (
    Answers,
    BeliefRegression,
    TargetPriors,
    averages_of,
    compare_beliefs,
    resampled_averages,
)


def made_up(n=900, *, spread=0.15, seed=4):
    """30 people; priors differ by question by `spread`; posteriors move with the outcome where a change is likely."""
    rng = np.random.default_rng(seed)
    target = rng.integers(0, 40, n)
    level = 0.6 + spread * np.random.default_rng(0).normal(size=40)
    outcome = rng.integers(0, 2, n)
    change = rng.uniform(0.1, 0.9, n)
    prior = np.clip(level[target] + rng.normal(0, 0.05, n), 0, 1)
    move = np.where(outcome == 1, 0.1, -0.2) * change
    return Answers(
        prior=prior,
        posterior=np.clip(prior + move, 0, 1),
        outcome=outcome,
        change=change,
        target=target,
        task=target // 10,
        respondent=np.arange(n) % 30,
        pair=np.arange(n),
        weight=rng.uniform(0.5, 2.0, n),
    )


def test_averages_are_weighted_means_by_outcome():
    answers = made_up()
    found = averages_of(answers)
    rows = answers.outcome == 0
    assert found.prior == pytest.approx(np.average(answers.prior, weights=answers.weight))
    assert found.posterior_incorrect == pytest.approx(np.average(answers.posterior[rows], weights=answers.weight[rows]))


def test_resampled_averages_centre_on_the_averages_and_spread_as_people_do():
    answers = made_up()
    draws = resampled_averages(answers, samples=4000, rng=np.random.default_rng(1))
    found = averages_of(answers)
    assert draws.shape == (4000, 3)
    assert draws.mean(axis=0) == pytest.approx(
        [found.prior, found.posterior_correct, found.posterior_incorrect], abs=2e-3
    )
    people = np.asarray([answers.prior[answers.respondent == one].mean() for one in range(30)])
    assert draws[:, 0].std() == pytest.approx(people.std() / np.sqrt(30), rel=0.3)


def test_priors_of_questions_are_drawn_towards_their_task():
    answers = made_up(spread=0.0)
    priors = TargetPriors.fit(prior=answers.prior, task=answers.task, target=answers.target, weight=answers.weight)
    raw = np.asarray([answers.prior[answers.target == one].mean() for one in range(40)])
    shrunk = priors.predict(task=np.arange(40) // 10, target=np.arange(40))
    assert shrunk.std() < raw.std()
    assert priors.predict(task=np.asarray([2]), target=np.asarray([999]))[0] == priors.by_task[2]
    assert priors.predict(task=np.asarray([77]), target=np.asarray([999]))[0] == priors.overall


def test_the_regression_finds_what_the_people_do():
    answers = made_up(n=4000)
    fitted = BeliefRegression.fit(answers)
    for outcome, slope in ((1, 0.1), (0, -0.2)):
        low, high = (
            fitted.predict(outcome=[outcome], change=[change], target=answers.target[:1], task=answers.task[:1])[0]
            for change in (0.2, 0.8)
        )
        assert (high - low) / 0.6 == pytest.approx(slope, abs=0.03)


def test_out_of_sample_the_regression_wins_where_questions_differ():
    found = compare_beliefs(made_up(), rng=np.random.default_rng(2))
    assert found.improvement == pytest.approx(found.mixture - found.regression)
    assert found.interval[0] > 0
    assert found.n == 900


def test_it_claims_nothing_where_posteriors_cannot_be_predicted():
    answers = made_up(spread=0.0)
    noise = np.random.default_rng(8).uniform(0.35, 0.85, len(answers))  # About the prior, whatever is shown.
    blind = Answers(**{**vars(answers), "posterior": noise})
    found = compare_beliefs(blind, rng=np.random.default_rng(2))
    assert found.interval[0] < 0


def test_no_row_is_predicted_from_its_own_person_or_pair(monkeypatch):
    answers = made_up(n=300)
    seen = []
    fit = BeliefRegression.fit.__func__

    def watched(cls, known):
        seen.append((set(known.respondent.tolist()), set(known.pair.tolist())))
        return fit(cls, known)

    monkeypatch.setattr(BeliefRegression, "fit", classmethod(watched))
    compare_beliefs(answers, rng=np.random.default_rng(3))
    assert len(seen) == 25
    assert all(len(people) <= 24 and len(pairs) < 300 for people, pairs in seen)


def test_it_refuses_what_cannot_be_computed():
    answers = made_up()
    with pytest.raises(ValueError, match="after one of the outcomes"):
        averages_of(answers.take(answers.outcome == 1))
    with pytest.raises(ValueError, match="too few"):
        BeliefRegression.fit(answers.take(np.arange(900) < 10))
    with pytest.raises(ValueError, match="respondents"):
        compare_beliefs(Answers(**{**vars(answers), "respondent": np.zeros(900, int)}), rng=np.random.default_rng(0))
    with pytest.raises(ValueError, match="prior"):
        Answers(**{**vars(answers), "prior": answers.prior * 100})
