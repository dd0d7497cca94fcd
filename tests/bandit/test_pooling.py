import math

import numpy as np
import pytest

from bandit import (
    DesignError,
    StageAnswers,
    combine_stages,
    hajek,
    pooled_difference,
    pooled_mean,
    stratified_difference,
    stratified_mean,
)


def answers(seed, *, people=20, each=6, **others):
    rng = np.random.default_rng(seed)
    n = people * each
    cluster = np.arange(n) // each
    values = rng.normal(size=people)[cluster] * 3 + rng.normal(size=n) + 5
    others = {"values": values, **others}
    return {"stratum": np.arange(n) % 2, "sizes": (100, 300), "cluster": cluster, **others}


def test_over_all_candidates_it_is_the_mean_of_the_stages():
    stages = [answers(1, universe_size=2000), answers(2, universe_size=2000)]
    pooled = pooled_mean(stages=[StageAnswers(**stage) for stage in stages], plan_weights=[3, 1])
    combined = combine_stages(estimates=[stratified_mean(**stage) for stage in stages], plan_weights=[3, 1]).estimate
    assert (pooled.value, pooled.standard_error) == pytest.approx((combined.value, combined.standard_error))
    assert pooled.effective_sample_size == pytest.approx(combined.effective_sample_size)
    assert pooled.degrees_of_freedom == pytest.approx(combined.degrees_of_freedom)
    assert pooled.interval == pytest.approx(combined.interval) and (pooled.n, pooled.n_clusters) == (240, 40)


def test_one_stage_gives_its_own_estimate():
    own_answers, domain = answers(3, universe_size=900), np.arange(120) % 5 < 2
    pooled = pooled_mean(stages=[StageAnswers(**own_answers, inside=domain)], plan_weights=[7])
    alone = stratified_mean(**own_answers, domain=domain)
    assert (pooled.value, pooled.standard_error) == pytest.approx((alone.value, alone.standard_error))
    assert pooled.degrees_of_freedom == pytest.approx(alone.degrees_of_freedom)
    pooled = pooled_difference(stages=[StageAnswers(**own_answers, first=domain, inside=~domain)], plan_weights=[7])
    alone = stratified_difference(**own_answers, first=domain, second=~domain)
    assert (pooled.value, pooled.standard_error) == pytest.approx((alone.value, alone.standard_error))
    chance = np.linspace(0.1, 0.9, 120)
    pooled = pooled_mean(stages=[StageAnswers(**own_answers, inside=domain, probability=chance)], plan_weights=[1])
    alone = hajek(values=own_answers["values"], probability=chance, cluster=own_answers["cluster"], domain=domain)
    assert (pooled.value, pooled.standard_error) == pytest.approx((alone.value, alone.standard_error))


def test_sums_are_put_together_before_they_are_divided():
    # Stage 2 has no answer of the part in the stratum that holds most candidates. It still counts, with its weight.
    first, two = answers(4), answers(5)
    inside = [np.arange(120) % 3 == 0, (np.arange(120) % 6 == 0)]
    assert not (inside[1] & (two["stratum"] == 1)).any()
    above = below = 0.0
    for weight, stage, mask in zip((0.6, 0.4), (first, two), inside, strict=True):
        share = np.where(stage["stratum"] == 0, 100, 300) / 60 / 400
        above += weight * np.dot(share[mask], stage["values"][mask])
        below += weight * share[mask].sum()
    stages = [
        StageAnswers(**answers_of_stage, inside=mask)
        for answers_of_stage, mask in zip((first, two), inside, strict=True)
    ]
    pooled = pooled_mean(stages=stages, plan_weights=[6, 4])
    assert pooled.value == pytest.approx(above / below) and pooled.n == 60
    # A stage without any answer there adds nothing to either sum: the weights of the others need no change.
    empty = StageAnswers(**answers(6), inside=np.zeros(120, dtype=bool))
    again = pooled_mean(stages=[*stages, empty], plan_weights=[6, 4, 10])
    assert (again.value, again.standard_error) == pytest.approx((pooled.value, pooled.standard_error))


def test_where_nothing_varies_but_by_rounding_degrees_of_freedom_are_those_of_all_stages():
    stages = []
    for seed, people in ((1, 7), (2, 11)):
        inside = np.arange(6 * people) % 5 < 2
        alike = answers(seed, people=people, values=np.full(6 * people, 12.3), item=np.arange(6 * people) % 20)
        stages.append(StageAnswers(**alike, inside=inside))
    pooled = pooled_mean(stages=stages, plan_weights=[3, 1])
    assert pooled.standard_error == 0 and pooled.degrees_of_freedom == 6 + 7  # people, and items


@pytest.mark.thorough
def test_what_was_answered_by_chance_does_not_decide_the_weights():
    """Two stages, a small one with few answers of the part. A mean of the ratios that there are leaves out the small
    stage where its part has none, and so gives it a weight by chance."""
    rng = np.random.default_rng(8)
    values, truth = [], 0.9 * 0.2 + 0.1 * 0.8
    for _ in range(1500):
        stages = []
        for n in (60, 20):
            label = (np.arange(n) < n // 2).astype(int)  # The half of the slots on nine tenths of the candidates.
            inside = rng.random(n) < 0.2
            changed = (rng.random(n) < np.where(label == 1, 0.2, 0.8)).astype(float)
            stages.append(StageAnswers(changed, label, (100, 900), np.arange(n), inside=inside))
        values.append(pooled_mean(stages=stages, plan_weights=[60, 20], share=True).value)
    assert abs(np.mean(values) - truth) < 0.01


def test_unequal_chances_are_weighted_for_leaving_too():
    own_answers, rng = answers(9), np.random.default_rng(9)
    chance, staying = rng.uniform(0.1, 0.9, 120), rng.uniform(0.2, 1.0, 120)
    pooled = pooled_mean(stages=[StageAnswers(**own_answers, probability=chance, staying=staying)], plan_weights=[1])
    assert pooled.value == pytest.approx(np.average(own_answers["values"], weights=1 / (chance * staying)))
    assert pooled.value != pytest.approx(np.average(own_answers["values"], weights=1 / chance), abs=1e-3)


def test_a_number_in_two_stages_is_two_people():
    """Each person answers alike on both sides, so that a difference between people says less than chance would: the
    least error decides, which asks who is on both sides."""
    stages, others = [], []
    for seed in (1, 2):
        rng = np.random.default_rng(seed)
        # In one stage a number is on the one side, in the next one on the other.
        cluster = np.arange(120) // 3
        side = np.where(np.isin(cluster % 4, (0, 1)), cluster % 2 == 0, rng.random(120) < 0.5)
        side = side if seed == 1 else ~side
        values = np.tile([0.0, 1.0, 2.0], 40) + np.where(side, 0.5, 0)
        stage = {"values": values, "stratum": np.zeros(120, dtype=int), "sizes": (100,), "inside": side, "first": ~side}
        stages.append(StageAnswers(**stage, cluster=cluster))
        others.append(StageAnswers(**stage, cluster=(cluster * (2 * seed - 1) + seed) % 40 + 1000 * seed))
    same = pooled_difference(stages=stages, plan_weights=[1, 1])
    other = pooled_difference(stages=others, plan_weights=[1, 1])
    assert (same.value, same.standard_error) == pytest.approx((other.value, other.standard_error))
    assert same.n_clusters == other.n_clusters == 80
    # Where the least error decides, the stages' degrees of freedom add up.
    alone = [pooled_difference(stages=[stage], plan_weights=[1]).degrees_of_freedom for stage in stages]
    assert same.degrees_of_freedom == pytest.approx(sum(alone)) and min(alone) > 1


def test_answers_that_do_not_fit_are_refused():
    own_answers = answers(1)
    with pytest.raises(DesignError, match="1 for 2 stages"):
        pooled_mean(stages=[StageAnswers(**own_answers)] * 2, plan_weights=[1])
    for weights in ([0], [math.nan], [-1]):
        with pytest.raises(DesignError, match="plan_weights: must be"):
            pooled_mean(stages=[StageAnswers(**own_answers)], plan_weights=weights)
    with pytest.raises(DesignError, match="no answer of any stage lies in it"):
        pooled_mean(stages=[StageAnswers(**own_answers, inside=np.zeros(120, dtype=bool))], plan_weights=[1])
    with pytest.raises(DesignError, match="true or false for each of 120"):
        pooled_mean(stages=[StageAnswers(**own_answers, inside=[1, 0])], plan_weights=[1])
    alone = {**own_answers, "cluster": np.zeros(120)}
    with pytest.raises(DesignError, match="at least 2 respondents"):
        pooled_mean(stages=[StageAnswers(**alone)], plan_weights=[1])
