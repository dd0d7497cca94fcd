"""The robust design: exact chances on its path and its frontier, what it learns, and that it does not lose."""

import math
from itertools import combinations, permutations

import numpy as np
import pytest

import bandit
from bandit import DesignError, Evidence, Learned, Robust, draw, inclusion_probabilities
from tests.bandit.laws import p_value_of_largest_z

RNG = np.random.default_rng


def chances(design, scores, n):
    return inclusion_probabilities(design=design, n=n, scores=scores, n_candidates=len(scores), rng=RNG(1))


def evidence(chance_of, *, seed=1, n=1200, scores=None, people=120, draws=1, **more):
    """Answers of 0 or 1 to items of a uniform stage, whose true chance is `chance_of` the prediction."""
    rng = RNG(seed)
    score = rng.random(n) if scores is None else scores(rng, n)
    value = (rng.random(n) < chance_of(score)).astype(float)
    return Evidence.of(
        values={"changed": value, **{name: made(value, score) for name, made in more.items()}},
        scores=score,
        chance=np.full(n, 0.1),
        stage=np.ones(n),
        cluster=np.arange(n) % people,
    )


def rare(score):
    return np.where(score > 0.9, 0.5, 0.01)


# The chances


@pytest.mark.parametrize("find", [0.0, 0.3, 0.9, 1.0])
def test_chances_are_whole_grains_that_sum_to_the_slots_and_leave_nobody_out(find):
    scores = RNG(2).random(300)
    chance = chances(Robust(find=find, learned=Learned(spread=(0.5, 1.0, 2.0), path=0.9, finds=True)), scores, 30)
    grains = chance * 2**40
    assert (grains == np.rint(grains)).all()
    assert int(grains.sum()) == 30 * 2**40
    assert chance.max() <= 1
    assert chance.min() >= 0.02 * 30 / 300 - 2**-40


def test_the_path_runs_from_uniform_to_the_spread():
    scores = np.linspace(0, 1, 5)
    spread = (1.0, 3.0)
    assert chances(Robust(), scores, 2).tolist() == [0.4] * 5
    assert chances(Robust(learned=Learned(spread=spread, path=0.0)), scores, 2).tolist() == [0.4] * 5
    # Places 0.1, 0.3, 0.5, 0.7, 0.9; middles of the bands at 1/4 and 3/4; the mean of the lines is 2.
    at = np.interp([0.1, 0.3, 0.5, 0.7, 0.9], [0.25, 0.75], spread) / 2
    for path in (0.5, 0.9):
        part = 1 - path + path * at
        expected = 2 * part / part.sum()
        assert chances(Robust(learned=Learned(spread=spread, path=path)), scores, 2) == pytest.approx(expected)


def test_equal_scores_have_equal_chances():
    chance = chances(Robust(find=0.5, learned=Learned((1.0, 4.0), 0.8, finds=True)), [0.2, 0.2, 0.2, 0.7, 0.7, 0.9], 2)
    assert np.ptp(chance[:3]) <= 2**-40 and np.ptp(chance[3:5]) <= 2**-40
    assert chance[0] < chance[3] < chance[5]


def test_the_frontier_has_no_chances_that_find_more_with_the_same_variance():
    """Moving a little chance between any two candidates changes what is found and the variance at one exchange rate."""
    score = np.array([0.1, 0.15, 0.3, 0.5, 0.55, 0.9])
    base = np.array([0.5, 1.5, 1.0, 1.2, 0.8, 1.0])
    share = bandit.robust._frontier(base, score, rate=1 / 3, find=0.4) / 3
    assert share.sum() == pytest.approx(2)
    inside = np.flatnonzero(share < 1)
    assert inside.size == 6
    # d found / d chance = score, d variance / d chance = -(base / chance)^2: one line through all of them.
    slope = (base / share) ** 2
    rates = [(slope[a] - slope[b]) / (score[a] - score[b]) for a, b in combinations(inside, 2)]
    assert np.ptp(rates) < 1e-6 * abs(rates[0])
    assert rates[0] < 0


def test_finding_alone_takes_the_highest():
    scores = RNG(3).permutation(np.linspace(0, 1, 100))
    chance = chances(Robust(find=1, learned=Learned(finds=True)), scores, 10)
    highest = np.argsort(-scores)[:10]
    assert chance[highest].min() > 0.98
    assert np.delete(chance, highest).max() == pytest.approx(0.02 * 0.1)


def test_more_find_finds_more_and_estimates_worse():
    scores = RNG(4).beta(2, 4, 2000)
    learned = Learned(spread=(0.7, 1.0, 1.3), path=0.5, finds=True)
    several = [chances(Robust(find=find, learned=learned), scores, 100) for find in (0, 0.2, 0.5, 0.8, 0.95, 1)]
    means = [float(chance @ scores) for chance in several]
    assert means == sorted(means)
    kish = [float((1 / chance).sum()) for chance in several]
    assert kish == sorted(kish)


def test_find_has_no_effect_where_higher_predictions_do_not_find_more():
    scores = RNG(5).random(50)
    assert set(chances(Robust(find=0.9, learned=Learned(finds=False)), scores, 5)) == {0.1}
    assert set(chances(Robust(find=0.9, learned=Learned(finds=True)), np.full(50, 0.3), 5)) == {0.1}


@pytest.mark.parametrize(
    ("bad", "field"),
    [({"find": -0.1}, "find"), ({"find": 1.1}, "find"), ({"find": math.nan}, "find"), ({"figures": ["a", "a"]}, "for")],
)
def test_bad_parameters_are_refused(bad, field):
    with pytest.raises(DesignError, match=field):
        Robust(**bad)


class OneStart:
    """A generator that gives one order of the candidates and one start, and leaves a draw's order alone."""

    def __init__(self, order, start):
        self.orders, self.start = [np.array(order)], start

    def permutation(self, values):
        return self.orders.pop() if self.orders else values

    def integers(self, _end):
        return self.start


def test_over_all_orders_and_starts_each_candidate_is_drawn_as_often_as_its_chance_says(monkeypatch):
    monkeypatch.setattr(bandit.unequal, "GRAIN", 16)  # 2^40 starts are too many to count.
    design = Robust(find=0.3, learned=Learned(spread=(1.0, 3.0), path=0.9, finds=True))
    chance = chances(design, np.array([0.1, 0.2, 0.6, 0.8]), 2)
    counts = np.zeros(4)
    for order in permutations(range(4)):
        for start in range(16):
            drawn = bandit.unequal.systematic(chance, OneStart(order, start))
            assert len(set(drawn.tolist())) == 2
            counts[drawn] += 1
    assert (counts / (24 * 16)).tolist() == chance.tolist()
    assert len(set(chance.tolist())) > 2


@pytest.mark.thorough
@pytest.mark.parametrize("find", [0.0, 0.6])
def test_frequencies_match_the_stored_probabilities(find):
    design = Robust(find=find, learned=Learned(spread=(0.5, 1.0, 2.5), path=0.8, finds=True))
    rng = RNG(7)
    scores = rng.random(40)
    chance = chances(design, scores, 8)
    counts = np.zeros(40)
    for _ in range(4000):
        drawn = draw(design=design, n=8, scores=scores, n_candidates=40, rng=rng)
        assert len(set(drawn.selected.tolist())) == 8
        assert drawn.inclusion_probability.tolist() == chance[drawn.selected].tolist()
        counts[drawn.selected] += 1
    assert p_value_of_largest_z(counts, draws=4000, probability=chance) > 0.001


# What it learns


def test_it_learns_where_answers_lie_far_from_their_predictions():
    learned = Robust().learn(evidence(rare)).learned
    assert learned.path >= 0.5 and learned.reason == ""
    assert learned.spread[-1] > 3 * learned.spread[0]
    ((name, saving, error),) = learned.savings
    assert name == "changed" and saving > 2 * error > 0
    assert learned.finds and learned.answers == 1200


def test_the_point_is_the_best_for_the_figure_that_it_serves_worst():
    """A second figure that is as uncertain everywhere holds the first one back; one that varies elsewhere, entirely."""
    noise = {"noise": lambda value, score: RNG(8).normal(size=score.size)}
    against = {"against": lambda value, score: np.where(score < 0.9, RNG(8).normal(size=score.size), 0.0)}
    alone = Robust().learn(evidence(rare)).learned
    both = Robust().learn(evidence(rare, **noise)).learned
    opposed = Robust().learn(evidence(rare, **against)).learned
    assert [name for name, _saving, _error in both.savings or (("changed",) * 3, ("noise",) * 3)]
    assert both.path < alone.path
    assert opposed.path <= both.path


@pytest.mark.parametrize(
    ("of", "reason"),
    [
        (None, "no earlier answer counts"),
        (evidence(rare, people=5), "of 5 people, fewer than 10"),
        (evidence(rare, n=30, people=10), "30 earlier answers with predictions, fewer than 40"),
        (evidence(rare, scores=lambda rng, n: np.full(n, np.nan)), "none of 1200 earlier answers had a prediction"),
        (evidence(rare, scores=lambda rng, n: np.full(n, 0.4)), "predictions of the earlier answers are all alike"),
        (evidence(lambda score: 0 * score), "the earlier answers do not differ"),
        (evidence(lambda score: 0 * score + 0.4), "no other chances are sure to save answers"),
    ],
)
def test_where_nothing_is_learnt_chances_are_uniform_and_the_reason_stands_in_the_plan(of, reason):
    design = Robust().learn(of)
    assert set(chances(design, RNG(9).random(50), 5)) == {0.1}
    assert reason in design.facts()["reason"]
    assert f"chances uniform; {design.learned.reason}" == design.learned_in_words


def test_candidates_that_are_all_alike_are_uniform_and_said():
    design = Robust().learn(evidence(rare), np.full(60, 0.2))
    assert "predictions of the candidates are all alike" in design.learned.reason


def test_missing_predictions_and_figures_without_answers_are_said_beside_what_is_learnt():
    some = evidence(rare)
    scores = some.score.copy()
    scores[:7] = np.nan
    value = some.value
    part = Evidence.of(
        values={"changed": value, "never": value, "alike": 0 * value},
        where={"never": np.zeros(value.size, dtype=bool)},
        scores=scores,
        chance=np.full(value.size, 0.1),
        stage=np.ones(value.size),
        cluster=np.arange(value.size) % 120,
    )
    learned = Robust().learn(part).learned
    assert learned.path > 0
    assert learned.reason == (
        "no earlier answer is about never; answers do not differ in alike; 7 earlier answers had no prediction"
    )


def test_reversed_predictions_do_not_find_and_that_is_said():
    design = Robust(find=0.5).learn(evidence(lambda score: rare(1 - score)))
    assert not design.learned.finds and design.learned.path > 0
    assert design.learned.spread[0] > design.learned.spread[-1]
    assert "find has no effect" in design.learned_in_words


def test_what_it_learnt_is_kept_and_read_back_to_the_bit():
    import json

    design = Robust(find=0.4).learn(evidence(rare, change=lambda value, score: 20 * value))
    again = Robust(find=0.4).with_facts(json.loads(json.dumps(design.facts())))
    assert again == design
    assert "0.9 of the way" in design.learned_in_words and "moved towards finding by 0.4" in design.learned_in_words


def test_parts_and_ratios_have_their_own_residuals():
    value, score = np.array([1.0, 0.0, 3.0, 2.0]), np.array([0.1, 0.2, 0.3, 0.4])
    parts = Evidence.of(
        values={"part": value, "ratio": value},
        where={"part": np.array([True, True, False, False])},
        per={"ratio": np.array([1.0, 1.0, 2.0, 2.0])},
        scores=np.full(4, 0.5) + 0 * score,
        chance=np.full(4, 0.5),
        stage=np.ones(4),
        cluster=np.arange(4),
    )
    # Without a slope the residual is the value less the figure: means 0.5 and 1.
    assert parts.residual[:, 0].tolist() == [0.5, -0.5, 0.0, 0.0]
    assert parts.residual[:, 1].tolist() == [0.0, -1.0, 1.0, 0.0]


def test_several_answers_to_an_item_are_one_row():
    n = 400
    rng = RNG(10)
    of_items = Evidence.of(
        values={"changed": rng.integers(2, size=n).astype(float)},
        scores=np.repeat(rng.random(n // 4), 4),
        chance=np.full(n, 0.2),
        stage=np.repeat([1, 2], n // 2),
        cluster=np.arange(n) % 50,
        item=np.repeat(np.arange(n // 4), 4),
    )
    assert of_items.score.size == n // 4 == np.unique(of_items.cluster).size
    assert of_items.people == 50


# That it does not lose


def saved(chance_of, predicted, seed, *, answers=600, people=60):
    """What a draw by what one scouting stage taught saves of a uniform one's variance, with the true spread."""
    rng = RNG(seed)
    truth = rng.random(3000)
    score = np.clip(predicted(truth, rng), 0, 1)
    chance = chance_of(truth)
    at = rng.choice(3000, answers, replace=False)
    value = (rng.random(answers) < chance[at]).astype(float)
    scouting = Evidence.of(
        values={"changed": value},
        scores=score[at],
        chance=np.full(answers, answers / 3000),
        stage=np.ones(answers),
        cluster=np.arange(answers) % people,
    )
    share = chances(Robust().learn(scouting, score), score, 300)
    slope, start = np.polyfit(score, chance, 1) if np.ptp(score) else (0.0, chance.mean())
    square = chance * (1 - chance) + (chance - start - slope * score) ** 2
    return 1 - float((square / share).mean() / (square * 3000 / 300).mean())


WORLDS = {
    "rare changes": (rare, lambda truth, rng: truth),
    "rare changes, noisy": (rare, lambda truth, rng: truth + rng.normal(0, 0.2, truth.size)),
    "unequal variance": (lambda truth: truth, lambda truth, rng: truth),
    "useless": (lambda truth: 0.1 + 0.8 * truth, lambda truth, rng: rng.random(truth.size)),
    "reversed": (rare, lambda truth, rng: 1 - truth),
    "alike": (lambda truth: 0 * truth + 0.3, lambda truth, rng: truth),
    "few answers": (rare, lambda truth, rng: truth),
}


@pytest.mark.parametrize("name", ["useless", "reversed"])
def test_bad_predictions_cost_nothing(name):
    assert np.mean([saved(*WORLDS[name], seed) for seed in range(8)]) > -0.02


@pytest.mark.thorough
@pytest.mark.parametrize("name", WORLDS)
def test_it_loses_at_most_two_in_a_hundred_answers_to_uniform_in_any_world(name):
    answers = 60 if name == "few answers" else 600
    every = np.array([saved(*WORLDS[name], seed, answers=answers) for seed in range(100)])
    assert every.mean() > -0.02
    assert np.quantile(every, 0.05) > -0.05
    if name in ("rare changes", "reversed"):
        assert every.mean() > 0.15


def one_study(chance_of, predicted, seed):
    """A scouting stage and three robust ones of 20 people with 12 items, who differ: does the interval of all hold the
    share over all items?"""
    rng = RNG(seed)
    truth = rng.random(3000)
    score, chance = np.clip(predicted(truth, rng), 0, 1), chance_of(truth)
    person_of = np.repeat(np.arange(20), 12)
    values, probabilities, scores, estimates, weights = [], [], [], [], []
    for stage in range(4):
        design = bandit.Uniform()
        if stage:
            of_stage = np.repeat(np.arange(stage), 240)
            design = Robust().learn(
                Evidence.of(
                    values={"changed": np.concatenate(values)},
                    scores=np.concatenate(scores),
                    chance=np.concatenate(probabilities),
                    stage=of_stage,
                    cluster=np.tile(person_of, stage) + 20 * of_stage,
                ),
                score,
            )
        drawn = draw(design=design, n=240, scores=score, n_candidates=3000, rng=rng)
        at = chance[drawn.selected]
        odds = at / (1 - at) * np.exp(rng.normal(0, 0.5, 20))[person_of]
        values.append((rng.random(240) < odds / (1 + odds)).astype(float))
        probabilities.append(drawn.inclusion_probability)
        scores.append(score[drawn.selected])
        estimates.append(bandit.hajek(values=values[-1], probability=probabilities[-1], cluster=person_of, share=True))
        weights.append(bandit.kish_size(probabilities[-1], people=20))
    low, high = bandit.combine_stages(estimates=estimates, plan_weights=weights).estimate.interval
    nodes, shares = np.polynomial.hermite_e.hermegauss(20)
    odds = chance / (1 - chance)
    over_people = sum(
        s * odds * np.exp(0.5 * z) / (1 + odds * np.exp(0.5 * z)) for z, s in zip(nodes, shares, strict=True)
    )
    return low <= float(over_people.mean()) / shares.sum() <= high


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["rare changes", "unequal variance", "useless", "reversed"])
def test_intervals_hold_the_truth_after_robust_stages(name):
    chance_of, predicted = WORLDS[name]
    held = np.mean(
        [one_study(lambda truth: np.clip(chance_of(truth), 0.01, 0.99), predicted, seed) for seed in range(400)]
    )
    assert 0.92 < held < 0.985, held
