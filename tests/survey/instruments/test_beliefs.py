"""Mixture and regression on made-up people whose beliefs are known; and what answers estimate, by hand."""

from types import SimpleNamespace

import numpy as np
import pytest

from survey.instruments.belief_update import estimands, expecting, priorities
from survey.instruments.belief_update.capabilities import BeliefEstimates
from survey.instruments.belief_update.labels import KNOWN, Beliefs, beliefs_from, further_values
from survey.instruments.belief_update.learning import BeliefLearning
from survey.instruments.belief_update.reports.alignment.beliefs import (
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
    averages = averages_of(answers)
    rows = answers.outcome == 0
    assert averages.prior == pytest.approx(np.average(answers.prior, weights=answers.weight))
    assert averages.posterior_incorrect == pytest.approx(
        np.average(answers.posterior[rows], weights=answers.weight[rows])
    )


def test_resampled_averages_centre_on_the_averages_and_spread_as_people_do():
    answers = made_up()
    draws = resampled_averages(answers, samples=4000, rng=np.random.default_rng(1))
    averages = averages_of(answers)
    assert draws.shape == (4000, 3)
    assert draws.mean(axis=0) == pytest.approx(
        [averages.prior, averages.posterior_correct, averages.posterior_incorrect], abs=2e-3
    )
    people = np.asarray([answers.prior[answers.respondent == respondent].mean() for respondent in range(30)])
    assert draws[:, 0].std() == pytest.approx(people.std() / np.sqrt(30), rel=0.3)


def test_priors_of_questions_are_drawn_towards_their_task():
    answers = made_up(spread=0.0)
    priors = TargetPriors.fit(prior=answers.prior, task=answers.task, target=answers.target, weight=answers.weight)
    raw = np.asarray([answers.prior[answers.target == target].mean() for target in range(40)])
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
    comparison = compare_beliefs(made_up(), rng=np.random.default_rng(2))
    assert comparison.improvement == pytest.approx(comparison.mixture - comparison.regression)
    assert comparison.interval[0] > 0
    assert comparison.n == 900


def test_it_claims_nothing_where_posteriors_cannot_be_predicted():
    answers = made_up(spread=0.0)
    noise = np.random.default_rng(8).uniform(0.35, 0.85, len(answers))  # About the prior, whatever is shown.
    blind = Answers(**{**vars(answers), "posterior": noise})
    comparison = compare_beliefs(blind, rng=np.random.default_rng(2))
    assert comparison.interval[0] < 0


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


# What answers estimate, by hand


def task(name, domain=""):
    return SimpleNamespace(name=name, domain=domain)


def pair_of(target, *evidence):
    """A pair with the tasks of its target and of each evidence question, and whether that was right."""
    questions = [SimpleNamespace(plain=f"Q {number}", task=own) for number, (own, _right) in enumerate(evidence)]
    steps = [
        SimpleNamespace(question=question, question_id=number, correct=right)
        for number, (question, (_own, right)) in enumerate(zip(questions, evidence, strict=True))
    ]
    return SimpleNamespace(
        target=SimpleNamespace(plain="T", task=target),
        evidence=questions[0] if questions else None,
        evidence_id=1 if questions else None,
        evidence_2_id=2 if len(questions) > 1 else None,
        outcome=evidence[0][1] if evidence else None,
        steps=steps,
    )


def stated(pair, prior, posterior, steps=()):
    answer = SimpleNamespace(slot=SimpleNamespace(item=SimpleNamespace(pair=pair)))
    answer.__dict__[KNOWN] = Beliefs(prior, posterior, steps)
    return answer


SUMS, PLANTS, WORDS = task("sums", "maths"), task("plants", "nature"), task("words")
PAIRS = (pair_of(SUMS, (task("shapes", "maths"), True)), pair_of(PLANTS, (SUMS, False)), pair_of(WORDS))


def test_changes_up_to_the_threshold_count_as_none():
    answers = [stated(pair, *both) for pair, both in zip(PAIRS, [(50, 55), (60, 50), (40, 40)], strict=True)]
    measured = estimands.of_answers(answers, (5, 0))
    values = {measure.name: measure.values.tolist() for measure in measured.measures}
    assert values == {
        "changed_over_5": [0, 1, 0],
        "changed_over_0": [1, 1, 0],
        "change_over_5": [0, -10, 0],
        "change_over_0": [5, -10, 0],
        "size_over_5": [0, 10, 0],
        "size_over_0": [5, 10, 0],
        "prior": [50, 60, 40],
        "posterior_incorrect": [55, 50, 40],
        "posterior_correct": [55, 50, 40],
    }
    by_name = {measure.name: measure for measure in measured.measures}
    assert by_name["posterior_incorrect"].where.tolist() == [False, True, False]
    assert by_name["posterior_correct"].where.tolist() == [True, False, False]
    assert (by_name["change_over_5"].span, by_name["size_over_5"].span) == ((-100, 100), (0, 100))
    (check,) = measured.checks
    assert (check.first.tolist(), check.second.tolist()) == ([False, True, False], [True, False, False])
    assert measured.retested == ("prior", "changed_over_5")
    several = [pair_of(SUMS, (PLANTS, True), (WORDS, True)), pair_of(SUMS, (PLANTS, True), (WORDS, False))]
    several = estimands.of_answers([stated(pair, 50, 60) for pair in several], (0,))
    assert {measure.name: measure for measure in several.measures}["posterior_correct"].where.tolist() == [True, False]


def test_pairs_divide_by_outcome_task_and_domain_and_features_say_the_same_of_candidates():
    items = [SimpleNamespace(pair=pair) for pair in PAIRS]
    divisions = {name: part.tolist() for name, part in estimands.divisions(items).items()}
    assert divisions["outcome"] == ["correct", "incorrect", "no evidence"]
    assert divisions["task_pair"] == ["shapes > sums", "sums > plants", "no evidence > words"]
    assert divisions["target_domain"] == ["maths", "nature", "words"]
    assert divisions["evidence_domain"] == ["maths", "maths", "no evidence"]
    assert divisions["same_task"] == ["other task"] * 3
    alike = [SimpleNamespace(pair=pair_of(SUMS, (SUMS, False))), SimpleNamespace(pair=pair_of(WORDS, (WORDS, True)))]
    assert estimands.divisions(alike)["same_task"].tolist() == ["same task"] * 2
    assert estimands.item_features([*items, *alike]).tolist() == [[1, 0, 1], [0, 0, 0], [0, 0, 0], [0, 1, 1], [1, 1, 1]]
    questions = [
        SimpleNamespace(task=question_task) for question_task in (SUMS, task("shapes", "maths"), PLANTS, WORDS)
    ]
    rows = np.array([(1, 0, 1), (0, 2, 0), (3, 3, 1)], dtype=[("evidence", "i4"), ("target", "i4"), ("outcome", "i1")])
    assert estimands.candidate_features(rows, questions).tolist() == [[1, 0, 1], [0, 0, 0], [1, 1, 1]]
    steps = [SimpleNamespace(pair=pair_of(SUMS, (PLANTS, True), (WORDS, False))), SimpleNamespace(pair=pair_of(WORDS))]
    assert estimands.divisions(steps)["outcome"].tolist() == ["1 of 2 correct", "no evidence"]


def test_steps_are_in_the_order_in_which_beliefs_are_given_each_with_its_place():
    beliefs = beliefs_from([("posterior", 70, 1), ("prior", 40, None), ("step_1", 45, 2)])
    assert beliefs == Beliefs(40, 70, ((2, 45), (1, 70)))
    assert (beliefs.change, beliefs.changed(30), beliefs.changed(29)) == (30, False, True)
    assert beliefs.after_first == Beliefs(40, 45) and beliefs_from([("prior", 40, None)]).changed(0) is None


def test_a_predictor_learns_from_the_evidence_that_was_seen_first():
    two = pair_of(SUMS, (PLANTS, True), (WORDS, False))
    answers = [
        stated(two, 50, 90, ((2, 50), (1, 90))),  # The second question was shown first, and changed nothing.
        stated(two, 50, 50, ((1, 56), (2, 50))),
        stated(pair_of(SUMS), 50, 90),
        stated(PAIRS[1], 50, None),
        stated(PAIRS[1], 50, 45),
    ]
    pairs, labels = BeliefLearning(5).examples(answers)
    assert labels.tolist() == [0, 1, 0]
    assert [(pair.evidence_task, pair.target_task, pair.outcome) for pair in pairs] == [
        ("words", "sums", 0),
        ("plants", "sums", 1),
        ("sums", "plants", 0),
    ]
    assert BeliefLearning(5).learnable(answers).tolist() == [True, True, False, False, True]
    steps = priorities.answered(answers, 2)
    assert steps.belief.tolist() == [[50, 50, 90], [50, 56, 50]]
    assert steps.correct.tolist() == [[False, True], [True, False]]


def test_a_models_part_is_the_chance_of_all_that_a_person_saw():
    right = {0: 0.75, 1: 0.5}
    two = pair_of(SUMS, (PLANTS, True), (WORDS, False))
    assert expecting._shows(right, two) == 0.375 and expecting._shows({0: 0.75}, two) == 0
    assert expecting._shows(right, pair_of(SUMS)) == 0 and expecting._shows(right, PAIRS[1]) == 0.25


def test_what_else_was_given_is_hashed_with_the_beliefs():
    answer = stated(PAIRS[0], 50, 60, ((1, 60),))
    own = SimpleNamespace(target_answer=SimpleNamespace(text="B", correct=True, confidence=70))
    responses = [SimpleNamespace(explanation=SimpleNamespace(text="since")), own, SimpleNamespace()]
    answer.responses = SimpleNamespace(all=lambda: responses)
    assert further_values(answer) == [["step", 1, 60], ["explanation", "since"], ["own_answer", "B", True, 70]]


def test_the_studys_threshold_comes_first_and_none_twice():
    options = SimpleNamespace(threshold=5, evidence_questions=1)
    assert BeliefEstimates(options, None).default_thresholds() == (5, 0, 10)
    answers = [stated(PAIRS[0], 50, 55), stated(PAIRS[0], 50, 56)]
    assert BeliefEstimates(options, None).outcomes(answers)["changed"].tolist() == [0, 1]
