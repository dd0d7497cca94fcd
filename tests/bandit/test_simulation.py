import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bandit import (
    RANDOM_CHANGE,
    BeliefTruth,
    DesignError,
    EpsilonGreedy,
    SimulatedRespondent,
    attend,
    average_over_people,
    crowd_answers,
    draw,
    pair_from_rank,
    uniform_pool,
    universe_size,
)

TASKS = [f"task {t}" for t in range(12) for _ in range(3 + t)]
DOMAINS = [f"domain {t % 5}" for t in range(12) for _ in range(3 + t)]
IDS = [f"{task}:{number}" for number, task in enumerate(TASKS)]


def truth_of(seed=3, **options):
    return BeliefTruth.for_bank(tasks=TASKS, domains=DOMAINS, seed=seed, **options)


def every_pair():
    return pair_from_rank(np.arange(universe_size(len(TASKS))), len(TASKS))


@pytest.mark.parametrize("options", [{}, {"base_rate": 0.39, "pair_sd": 0.9, "respondent_sd": 1.0}])
@pytest.mark.parametrize("seed", [1, 2])
def test_base_rate_and_variances_hold_over_all_pairs_of_the_bank(seed, options):
    truth = truth_of(seed, **options)
    pairs = every_pair()
    probability = truth.probabilities(pairs, IDS)
    logit = np.log(probability / (1 - probability))
    visible = truth.logits[truth.kind[pairs.evidence], truth.kind[pairs.target], pairs.outcome]
    hidden = logit - visible
    # 23,000 pairs: the hidden part is drawn, so it holds up to sampling error; the visible part is exact.
    assert visible.var() == pytest.approx(truth.pair_sd**2 * 2 / 3, rel=1e-9)
    assert hidden.var() == pytest.approx(truth.pair_sd**2 / 3, rel=0.05)
    assert abs(hidden.mean()) < 4 * truth.pair_sd / math.sqrt(3 * len(pairs))
    assert abs(np.corrcoef(visible, hidden)[0, 1]) < 0.03
    assert average_over_people(probability, truth.respondent_sd).mean() == pytest.approx(truth.base_rate, abs=0.005)


def test_the_rates_by_outcome_can_be_set_within_the_same_variance():
    truth = truth_of(outcome_rates=(0.46, 0.32), pair_sd=0.9, respondent_sd=1.0)
    pairs = every_pair()
    visible = truth.logits[truth.kind[pairs.evidence], truth.kind[pairs.target], pairs.outcome]
    assert visible.std() == pytest.approx(0.9 * math.sqrt(2 / 3))
    # Averaged over hidden effects and people, as in the definition.
    shares = average_over_people(1 / (1 + np.exp(-visible)), math.hypot(0.9 * math.sqrt(1 / 3), 1.0))
    assert [shares[pairs.outcome == outcome].mean() for outcome in (0, 1)] == pytest.approx([0.46, 0.32])
    assert truth.base_rate == pytest.approx(0.39)


@pytest.mark.parametrize("bad", [{"outcome_rates": (0.4, 1)}, {"outcome_rates": (0.4, 0.3), "null": True}])
def test_rates_that_no_truth_has_are_refused(bad):
    with pytest.raises(DesignError, match="outcome_rates: must be 2 shares"):
        truth_of(**bad)
    with pytest.raises(DesignError, match=r"differ by more than the pairs. visible sd of 0\.0816 allows"):
        truth_of(outcome_rates=(0.9, 0.1), pair_sd=0.1)


def test_related_questions_and_incorrect_answers_change_more_beliefs():
    truth = truth_of()
    pairs = every_pair()
    probability = truth.probabilities(pairs, IDS)
    task, domain = np.array(TASKS), np.array(DOMAINS)
    same_task = task[pairs.evidence] == task[pairs.target]
    same_domain = (domain[pairs.evidence] == domain[pairs.target]) & ~same_task
    assert probability[same_task].mean() > probability[same_domain].mean() + 0.1
    assert probability[same_domain].mean() > probability[~same_task & ~same_domain].mean() + 0.1
    assert probability[pairs.outcome == 0].mean() > probability[pairs.outcome == 1].mean() + 0.08


def test_one_pair_and_many_have_the_same_truth():
    truth = truth_of()
    pairs = every_pair().take(np.arange(0, 3000, 97))
    many = truth.probabilities(pairs, IDS)
    for index, (evidence, target, outcome) in enumerate(
        zip(pairs.evidence.tolist(), pairs.target.tolist(), pairs.outcome.tolist(), strict=True)
    ):
        probability = truth.probability(evidence, target, outcome, IDS[evidence], IDS[target])
        assert probability == pytest.approx(many[index], abs=1e-12)


def test_another_seed_is_another_truth_and_a_new_id_another_hidden_part():
    pairs = every_pair()
    first, second = truth_of(1).probabilities(pairs, IDS), truth_of(2).probabilities(pairs, IDS)
    assert np.abs(first - second).max() > 0.1
    renamed = truth_of(1).probabilities(pairs, [f"{text_id}!" for text_id in IDS])
    assert np.abs(first - renamed).max() > 0.1


def test_the_null_truth_knows_no_pair():
    truth = truth_of(null=True)
    probability = truth.probabilities(every_pair(), IDS)
    assert np.ptp(probability) == 0
    assert average_over_people(probability[:1], truth.respondent_sd)[0] == pytest.approx(0.31)


def test_evidence_and_target_are_not_exchangeable_in_the_hidden_part():
    truth = truth_of(pair_sd=1.0, hidden_share=1.0)
    forth = truth.probability(0, 1, 1, IDS[0], IDS[1])
    back = truth.probability(1, 0, 1, IDS[1], IDS[0])
    other_outcome = truth.probability(0, 1, 0, IDS[0], IDS[1])
    assert len({forth, back, other_outcome}) == 3


@pytest.mark.parametrize(
    "bad",
    [{"base_rate": 0}, {"base_rate": 1}, {"hidden_share": 1.2}, {"pair_sd": -1}, {"respondent_sd": -1}],
)
def test_a_truth_that_cannot_be_is_refused(bad):
    with pytest.raises(DesignError, match=next(iter(bad))):
        truth_of(**bad)


def test_a_truth_needs_task_and_domain_of_two_questions_and_an_id_for_each():
    with pytest.raises(DesignError, match="1 for 2 tasks"):
        BeliefTruth.for_bank(tasks=["a", "b"], domains=["c"], seed=1)
    with pytest.raises(DesignError, match="2 or more"):
        BeliefTruth.for_bank(tasks=["a"], domains=["c"], seed=1)
    with pytest.raises(DesignError, match="1 ids for a bank of"):
        truth_of().probabilities(every_pair(), IDS[:1])


def answer(person, probability=0.5, outcome=0, target_id="t", pair_id="p", **more):
    return person.answer(probability=probability, outcome=outcome, target_id=target_id, pair_id=pair_id, **more)


@pytest.mark.slow
@settings(deadline=None)
@given(
    seed=st.integers(0, 10**6),
    probability=st.floats(0, 1),
    outcome=st.integers(0, 1),
    target_id=st.text(max_size=5),
    pair_id=st.text(max_size=5),
)
def test_answers_are_whole_points_on_the_scale_and_repeat_themselves(seed, probability, outcome, target_id, pair_id):
    arguments = {"probability": probability, "outcome": outcome, "target_id": target_id, "pair_id": pair_id}
    prior, posterior = answer(SimulatedRespondent(seed), **arguments)
    assert (prior, posterior) == answer(SimulatedRespondent(seed), **arguments)
    assert type(prior) is int and type(posterior) is int
    assert 0 <= prior <= 100 and 0 <= posterior <= 100
    assert prior % 5 == 0 and posterior % 5 == 0
    assert prior == SimulatedRespondent(seed).prior(target_id=target_id)


@settings(deadline=None)
@given(seed=st.integers(0, 10**6), outcome=st.integers(0, 1), target_id=st.text(max_size=5))
def test_a_sure_change_is_a_change_in_the_right_direction(seed, outcome, target_id):
    person = SimulatedRespondent(seed)
    prior, posterior = answer(person, probability=1.0, outcome=outcome, target_id=target_id)
    assert 5 <= abs(posterior - prior) <= 40
    if 0 < prior < 100:
        assert (posterior > prior) == (outcome == 1)
    stayed = answer(person, probability=0.0, outcome=outcome, target_id=target_id)
    assert stayed == (prior, prior)


def test_a_change_at_the_end_of_the_scale_stays_a_change():
    seen = set()
    for seed in range(3000):
        person = SimulatedRespondent(seed)
        prior = person.prior(target_id="t")
        if prior in (0, 100):
            outcome = int(prior == 100)
            assert answer(person, probability=1.0, outcome=outcome)[1] != prior
            seen.add(prior)
    assert 100 in seen


def test_the_prior_depends_on_person_target_and_task_only():
    person = SimulatedRespondent(7)
    priors = {
        answer(person, probability=p, outcome=outcome, pair_id=pair, target_task="arithmetic")[0]
        for p in (0.1, 0.9)
        for outcome in (0, 1)
        for pair in "abc"
    }
    assert priors == {person.prior(target_id="t", target_task="arithmetic")}
    assert len({person.prior(target_id=str(n)) for n in range(20)}) > 3
    assert len({SimulatedRespondent(seed).prior(target_id="t") for seed in range(20)}) > 3
    assert len({person.prior(target_id="t", target_task=str(n)) for n in range(20)}) > 2


@pytest.mark.slow
def test_priors_average_two_thirds_and_people_round_to_tens_or_fives():
    people = [SimulatedRespondent(seed) for seed in range(400)]
    priors = [[person.prior(target_id=f"q{n}", target_task=f"task {n % 20}") for n in range(40)] for person in people]
    assert np.mean(priors) == pytest.approx(0.63 * 100, abs=3)
    in_tens = np.mean([all(value % 10 == 0 for value in row) for row in priors])
    assert in_tens == pytest.approx(0.6, abs=0.08)


def test_people_change_as_often_as_the_truth_says():
    changes = []
    for seed in range(2000):
        person = SimulatedRespondent(seed, respondent_sd=0.6)
        changes += [[a != b for a, b in [answer(person, probability=0.3, pair_id=str(k)) for k in range(5)]]]
    shares = np.mean(changes, axis=1)
    expected = float(average_over_people(0.3, 0.6))
    assert abs(shares.mean() - expected) < 3 * shares.std() / math.sqrt(2000)
    # People differ: the variance between them is larger than that of their five answers.
    assert shares.var() > 1.2 * expected * (1 - expected) / 5


def test_the_spread_between_people_is_the_stated_one():
    truth = truth_of(respondent_sd=0.6)
    readiness = [truth.person(seed).readiness for seed in range(3000)]
    assert np.std(readiness) == pytest.approx(0.6, rel=0.05)
    assert abs(np.mean(readiness)) < 0.04
    assert truth_of(seed=1).person(5) != truth_of(seed=2).person(5)


def test_bad_news_moves_beliefs_further_than_good_news():
    def mean_size(outcome):
        pairs = [answer(SimulatedRespondent(seed), probability=1.0, outcome=outcome) for seed in range(1500)]
        return np.mean([abs(b - a) for a, b in pairs])

    assert mean_size(0) > mean_size(1) + 4


def test_certain_and_tiny_chances_are_safe():
    assert average_over_people([0.0, 1.0], 0.6).tolist() == [0.0, pytest.approx(1.0)]
    for seed in range(20):
        prior, posterior = answer(SimulatedRespondent(seed), probability=5e-324)
        assert prior == posterior


def test_impossible_answers_are_refused():
    with pytest.raises(DesignError, match="probability"):
        answer(SimulatedRespondent(1), probability=1.1)
    with pytest.raises(DesignError, match="outcome"):
        answer(SimulatedRespondent(1), outcome=2)


@pytest.mark.thorough
def test_another_process_gives_the_same_answers():
    code = (
        "from bandit import BeliefTruth; t = BeliefTruth.for_bank(tasks=['a','a','b'], domains=['x','x','y'], seed=4);"
        "print(t.probability(0, 2, 1, 'q0', 'q2'),"
        "t.person(9).answer(probability=0.9, outcome=1, target_id='q2', pair_id='p'))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": seed}
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1
    truth = BeliefTruth.for_bank(tasks=["a", "a", "b"], domains=["x", "x", "y"], seed=4)
    assert outputs.pop().startswith(str(truth.probability(0, 2, 1, "q0", "q2")))


def test_sampling_by_the_truth_finds_half_again_as_many_changes():
    truth = truth_of()
    rng = np.random.default_rng(1)
    pairs = uniform_pool(n_questions=len(IDS), size=3000, rng=rng).pairs
    share = average_over_people(truth.probabilities(pairs, IDS), truth.respondent_sd)
    scores = truth.logits[truth.kind[pairs.evidence], truth.kind[pairs.target], pairs.outcome]
    drawn = draw(design=EpsilonGreedy(), n=300, scores=scores, n_candidates=3000, rng=rng)
    assert share[drawn.selected].mean() > 1.5 * share.mean()


def test_a_crowd_answers_as_its_people_would_one_by_one() -> None:
    rng = np.random.default_rng(4)
    person, outcome = np.repeat(np.arange(2000), 15), rng.integers(2, size=30_000)
    crowd = crowd_answers(probability=np.full(30_000, 0.4), outcome=outcome, person=person, rng=rng, respondent_sd=1.0)
    assert crowd.changed.mean() == pytest.approx(float(average_over_people([0.4], 1.0)[0]), abs=0.02)
    moves = crowd.posterior - crowd.prior
    alone = [
        np.diff(SimulatedRespondent(seed=who).answer(probability=1.0, outcome=shown, target_id=str(who), pair_id="p"))[
            0
        ]
        for shown in (0, 1)
        for who in range(1500)
    ]
    for shown_outcome, one_by_one in ((0, alone[:1500]), (1, alone[1500:])):
        assert moves[crowd.changed & (outcome == shown_outcome)].mean() == pytest.approx(np.mean(one_by_one), abs=1.0)
    steps = [set((crowd.prior[person == who] % 10).tolist()) for who in range(200)]
    assert 0.5 < sum(step == {0} for step in steps) / 200 < 0.7
    assert {crowd.prior.min(), crowd.posterior.min()} == {0} and crowd.posterior.max() <= 100
    shares = np.bincount(person, weights=crowd.changed) / 15
    assert shares.var() > 1.5 * 0.42 * 0.58 / 15  # people differ by more than chance


def test_who_leaves_does_so_at_any_place_and_answers_nothing_more() -> None:
    came = attend(people=4000, items=5, dropout=0.25, rng=np.random.default_rng(3))
    answered = came.in_time.sum(axis=1)
    assert (np.sort(came.in_time, axis=1)[:, ::-1] == came.in_time).all()
    assert (answered < 5).mean() == pytest.approx(0.25, abs=0.03)
    assert set(answered.tolist()) == {0, 1, 2, 3, 4, 5}
    assert not came.late.any()


def test_who_comes_back_answers_all_and_what_somebody_else_has_by_then_is_late() -> None:
    came = attend(people=20_000, items=5, dropout=0.1, returners=0.2, still_free=0.25, rng=np.random.default_rng(3))
    assert not (came.in_time & came.late).any()
    whole = (came.in_time | came.late).all(axis=1)
    assert whole.mean() == pytest.approx(0.9, abs=0.01), "only people who leave for good leave items unanswered"
    # A fifth of the people come back. On average they left before 3 of their 5 items; a quarter of these are still
    # free.
    assert came.late.mean() == pytest.approx(0.2 * 0.6 * 0.75, abs=0.005)
    assert came.in_time.mean() == pytest.approx(1 - 0.1 * 0.6 - 0.2 * 0.6 * 0.75, abs=0.005)


def test_who_comes_back_changes_nothing_for_the_others() -> None:
    alone = attend(people=500, items=5, dropout=0.1, rng=np.random.default_rng(3)).in_time
    with_others = attend(people=500, items=5, dropout=0.1, returners=0.3, rng=np.random.default_rng(3))
    back = ~with_others.in_time.all(axis=1) & (with_others.in_time | with_others.late).all(axis=1)
    same = (alone == with_others.in_time).all(axis=1)
    assert same[~back].mean() > 0.9 and back.any()


def test_speeders_answer_at_random_and_the_others_as_ever() -> None:
    person = np.repeat(np.arange(4000), 10)
    speeder = np.arange(4000) % 4 == 0
    asked = {"probability": np.full(40_000, 0.3), "outcome": np.zeros(40_000, dtype=int), "person": person}
    crowd = crowd_answers(**asked, rng=np.random.default_rng(5), speeder=speeder)
    plain = crowd_answers(**asked, rng=np.random.default_rng(5))
    hurried = speeder[person]
    assert (crowd.posterior[~hurried] == plain.posterior[~hurried]).all()
    assert crowd.changed[hurried].mean() == pytest.approx(RANDOM_CHANGE, abs=0.01)
    assert crowd.prior[hurried].mean() == pytest.approx(50, abs=1)
    assert np.corrcoef(crowd.prior[hurried], crowd.posterior[hurried])[0, 1] == pytest.approx(0, abs=0.03)
    assert {0, 100} <= set(crowd.posterior[hurried].tolist()) and not (crowd.posterior % 5).any()


def test_speeders_must_be_given_for_all_people() -> None:
    with pytest.raises(DesignError, match="speeder: must be flat and name all 3 people"):
        crowd_answers(probability=[0.5], outcome=[0], person=[2], rng=np.random.default_rng(1), speeder=[True])


def test_beliefs_have_the_averages_and_the_shape_that_were_found() -> None:
    """Prior 0.629, posterior 0.663 and 0.551. Most beliefs stay; others move in fives, further after "incorrect"."""
    truth = truth_of()
    rng = np.random.default_rng(6)
    pairs = uniform_pool(n_questions=len(IDS), size=20_000, rng=rng).pairs
    crowd = crowd_answers(
        probability=truth.probabilities(pairs, IDS),
        outcome=pairs.outcome,
        person=np.arange(20_000) // 15,
        rng=rng,
        respondent_sd=truth.respondent_sd,
    )
    change, correct = crowd.posterior - crowd.prior, pairs.outcome == 1
    assert crowd.prior.mean() == pytest.approx(62.9, abs=1.0)
    assert crowd.posterior[correct].mean() == pytest.approx(66.3, abs=1.0)
    assert crowd.posterior[~correct].mean() == pytest.approx(55.1, abs=1.2)
    assert (change == 0).mean() > 0.6 and not (change % 5).any()
    assert (change[correct] < 0).mean() < 0.02 and (change[~correct] > 0).mean() < 0.02
    assert (change < -20).mean() > 2 * (change > 20).mean() > 0
    # One hump, round numbers above their neighbours, and people at the very top but hardly any at the bottom.
    tens = np.array([(crowd.prior == value).mean() for value in range(0, 101, 10)])
    assert tens.argmax() in (6, 7)
    assert (np.diff(tens[:7]) > 0).all() and (np.diff(tens[7:]) < 0).all()
    fives = np.array([(crowd.prior == value).mean() for value in range(5, 100, 10)])
    assert (np.minimum(tens[4:9], tens[5:10]) > fives[4:9]).all()
    assert tens[10] > 0.02 > tens[0]


def test_a_crowd_refuses_what_is_no_probability() -> None:
    with pytest.raises(DesignError, match=r"probability: must lie in 0\.\.1"):
        crowd_answers(probability=[1.2], outcome=[0], person=[0], rng=np.random.default_rng(1))
    with pytest.raises(DesignError, match="dropout"):
        attend(people=1, items=1, dropout=0.5, returners=0.5, rng=np.random.default_rng(1))
    with pytest.raises(DesignError, match="still_free"):
        attend(people=1, items=1, dropout=0.1, still_free=2, rng=np.random.default_rng(1))
