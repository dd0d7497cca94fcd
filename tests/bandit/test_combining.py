import math

import numpy as np
import pytest
from scipy import stats

from bandit import DesignError, agreement_of, combine_stages, hajek, kish_size, naive_mean, plan_weight, stratified_mean


def stage(values, **others):
    return naive_mean(values=values, cluster=np.arange(len(values)), **others)


def test_stages_are_combined_by_their_designs_alone():
    first, two = stage([1.0, 2.0, 3.0, 6.0]), stage([2.0, 2.0, 5.0])
    combined = combine_stages(estimates=[first, two], plan_weights=[30, 10])
    assert combined.weights == (0.75, 0.25)
    assert combined.estimate.value == pytest.approx(0.75 * 3 + 0.25 * 3)
    parts = [(0.75 * first.standard_error) ** 2, (0.25 * two.standard_error) ** 2]
    assert combined.estimate.standard_error == pytest.approx(math.sqrt(sum(parts)))
    assert combined.estimate.degrees_of_freedom == pytest.approx(
        sum(parts) ** 2 / (parts[0] ** 2 / 3 + parts[1] ** 2 / 2)
    )
    assert (combined.estimate.n, combined.estimate.n_clusters) == (7, 7)
    reach = stats.t.ppf(0.975, combined.estimate.degrees_of_freedom) * combined.estimate.standard_error
    assert combined.estimate.interval == pytest.approx((3 - reach, 3 + reach))


def test_a_single_stage_is_left_as_it_is():
    estimate = stage([1, 0, 0, 1, 1, 0], share=True)
    combined = combine_stages(estimates=[estimate], plan_weights=[4])
    assert combined.estimate == estimate
    assert combined.agreement is None


def test_a_stage_that_never_draws_some_pair_is_left_out_and_named():
    weights = [plan_weight(sizes=(100, 900), slots=(90, 10)), plan_weight(sizes=(100, 900), slots=(100, 0))]
    assert weights[1] == 0
    combined = combine_stages(estimates=[stage([1.0, 2.0, 4.0]), None], plan_weights=weights)
    assert (combined.left_out, combined.weights) == ((1,), (1.0, 0.0))
    with pytest.raises(DesignError, match="every stage gives some pair probability 0"):
        combine_stages(estimates=[None], plan_weights=[0])


def test_a_designs_weight_is_its_slots_over_kishs_design_effect():
    chance = np.repeat([90 / 100, 10 / 900], [90, 10])
    assert plan_weight(sizes=(100, 900), slots=(90, 10)) == pytest.approx(kish_size(chance))
    assert plan_weight(sizes=(1000,), slots=(100,)) == pytest.approx(100)
    assert plan_weight(sizes=(100, 900), slots=(10, 90)) == pytest.approx(100)
    for bad in ([], [0, 0.5], [1.2]):
        with pytest.raises(DesignError, match="inclusion_probability"):
            kish_size(bad)
    with pytest.raises(DesignError, match="2 for 1 strata"):
        plan_weight(sizes=(100,), slots=(3, 4))


def test_two_stages_agree_as_welchs_test_says():
    rng = np.random.default_rng(4)
    first, second = rng.normal(0, 1, 30), rng.normal(0.4, 2, 50)
    agreement = combine_stages(estimates=[stage(first), stage(second)], plan_weights=[1, 1]).agreement
    welch = stats.ttest_ind(first, second, equal_var=False)
    assert agreement.f == pytest.approx(welch.statistic**2)
    assert agreement.degrees_of_freedom == (1, pytest.approx(welch.df))
    assert agreement.p == pytest.approx(welch.pvalue)


@pytest.mark.thorough
def test_the_test_of_agreement_keeps_its_level_and_sees_a_stage_that_differs():
    rng = np.random.default_rng(5)
    rejected = sum(
        combine_stages(
            estimates=[stage(rng.normal(0, scale, 35)) for scale in (1, 1, 2, 3, 1)], plan_weights=[1] * 5
        ).agreement.p
        < 0.05
        for _ in range(400)
    )
    assert stats.binomtest(rejected, 400, 0.05).pvalue > 0.001
    apart = [stage(rng.normal(middle, 1, 35)) for middle in (0, 0, 0, 0, 2)]
    assert combine_stages(estimates=apart, plan_weights=[1] * 5).agreement.p < 0.001


def test_shares_stay_shares_and_counts_of_the_rarer_answer_add_up():
    none = stage(np.zeros(20), share=True)
    few = stage([1, *[0] * 39], share=True)
    combined = combine_stages(estimates=[none, few], plan_weights=[20, 40]).estimate
    assert (combined.method, combined.rarer) == ("wilson", 1)
    assert combined.interval[0] >= 0
    assert combined.effective_sample_size == pytest.approx(60)
    assert combined.too_few == "1 answers of the rarer kind, fewer than 5"


@pytest.mark.parametrize(
    ("estimates", "weights", "message"),
    [
        ([stage([1.0, 2.0])], [1, 2], "2 for 1 stages"),
        ([stage([1.0, 2.0])], [-1], "at least 0"),
        ([stage([1.0, 2.0])], [float("nan")], "at least 0"),
        ([None], [1], "stage 1 of those given has no standard error"),
        ([stage([1.0, 2.0]), stage([1.0])], [1, 1], "stage 2 of those given has no standard error"),
    ],
)
def test_stages_that_cannot_be_combined_are_refused(estimates, weights, message):
    with pytest.raises(DesignError, match=message):
        combine_stages(estimates=estimates, plan_weights=weights)


@pytest.mark.thorough
def test_fixed_weights_are_right_where_one_weight_from_summed_probabilities_is_not():
    """Two stages on two strata; the second goes where the first found more."""
    rng = np.random.default_rng(6)
    truth, sizes, studies = 0.5, (500, 500), 1500
    fixed, pooled = [], []
    for _ in range(studies):
        first = rng.random((2, 4)) < truth
        greedy = int(first[1].mean() > first[0].mean())
        slots = [2, 2]
        slots[greedy] = 14
        second = [rng.random(n) < truth for n in slots]
        stages = []
        for answers in (first, second):
            values = np.concatenate(list(answers)).astype(float)
            label = np.repeat([0, 1], [len(part) for part in answers])
            stages.append(stratified_mean(values=values, stratum=label, sizes=sizes, cluster=np.arange(values.size)))
        weights = [plan_weight(sizes=sizes, slots=(4, 4)), plan_weight(sizes=sizes, slots=slots)]
        fixed.append(combine_stages(estimates=stages, plan_weights=weights).estimate.value)
        values = np.concatenate([*first, *second]).astype(float)
        expected = np.array([4 + slots[0], 4 + slots[1]]) / 500
        label = np.concatenate([np.repeat([0, 1], 4), np.repeat([0, 1], slots)])
        pooled.append(hajek(values=values, probability=expected[label], cluster=np.arange(values.size)).value)
    error = np.std(fixed) / math.sqrt(studies)
    assert abs(np.mean(fixed) - truth) < 3 * error
    assert abs(np.mean(pooled) - truth) > 5 * np.std(pooled) / math.sqrt(studies)


def test_stages_that_are_too_small_are_not_tested_and_the_reason_is_given():
    rng = np.random.default_rng(9)
    large, small = [stage(rng.normal(size=40)) for _ in range(2)], stage(rng.normal(3, 1, size=29))
    agreement, withheld = agreement_of([large[0], None, small, large[1]])
    assert agreement.untested == (2,) and withheld == ""
    alone, _ = agreement_of(large)
    assert (agreement.p, agreement.f) == (alone.p, alone.f)
    agreement, withheld = agreement_of([large[0], small])
    assert agreement is None and withheld == "1 of 2 stages have an effective sample of 30 and 10 people"
    few_people = naive_mean(values=rng.normal(size=90), cluster=np.arange(90) % 9)
    assert agreement_of([large[0], few_people])[0] is None
    assert agreement_of([large[0]]) == (None, "")
    alike = stage(np.ones(50))
    assert agreement_of([large[0], alike]) == (None, "in a stage nothing varies between the answers")
    combined = combine_stages(estimates=[large[0], small], plan_weights=[1, 1])
    assert (
        combined.agreement is None and combined.withheld == "1 of 2 stages have an effective sample of 30 and 10 people"
    )


def test_a_stage_in_which_all_answers_are_alike_has_the_spread_of_the_others():
    varied, alike = stage(np.arange(40.0)), stage(np.full(20, 7.0))
    combined = combine_stages(estimates=[varied, alike], plan_weights=[1, 1]).estimate
    expected = (varied.standard_error**2 + varied.standard_error**2 * 40 / 20) / 4
    assert combined.standard_error == pytest.approx(math.sqrt(expected))


def test_a_plans_weight_knows_that_a_persons_answers_hang_together():
    # 40 people with 10 slots each: 400 slots are worth 400 / (1 + 9 * 0.2).
    assert plan_weight(sizes=(1000,), slots=(400,), people=40) == pytest.approx(400 / 2.8)
    assert kish_size(np.full(400, 0.4), people=400, clustering=0) == pytest.approx(400)
    assert plan_weight(sizes=(1000,), slots=(400,), people=40, clustering=1) == pytest.approx(40)
    # One slot in the rest for every second person: those who have one carry more of the weight.
    even = plan_weight(sizes=(100, 900), slots=(360, 40), people=40)
    uneven = plan_weight(sizes=(100, 900), slots=(380, 20), people=40)
    share = np.array([0.1 / 380 * 9.5 + 0.9 / 20, 0.1 / 380 * 9.5] * 20)
    alone = 0.01 / 380 + 0.81 / 20
    assert uneven == pytest.approx(1 / (0.8 * alone + 0.2 * (share**2).sum()), rel=0.01) and uneven < even
    for wrong in ({"people": 0}, {"people": 4, "clustering": 2}):
        with pytest.raises(DesignError, match="people, clustering"):
            plan_weight(sizes=(10,), slots=(5,), **wrong)


def test_a_stage_of_30_effective_answers_and_one_of_10_people_are_just_large_enough_to_be_compared():
    rng = np.random.default_rng(10)
    thirty = stage(rng.normal(size=30))
    ten_people = naive_mean(values=rng.normal(size=90), cluster=np.arange(90) % 10)
    agreement, withheld = agreement_of([thirty, ten_people])
    assert agreement is not None and agreement.untested == () and withheld == ""


def test_a_stage_without_weight_is_not_compared_either():
    rng = np.random.default_rng(11)
    first, two, far = stage(rng.normal(size=40)), stage(rng.normal(size=40)), stage(rng.normal(9, 1, size=40))
    combined = combine_stages(estimates=[first, two, far], plan_weights=[1, 1, 0])
    assert combined.agreement == agreement_of([first, two])[0] and combined.estimate.value < 2


def test_the_figure_of_all_stages_has_their_extreme_weights_and_no_rarer_kind_of_points():
    even, uneven = (
        hajek(values=np.arange(12.0), probability=np.repeat([1 / first, 1 / second], 6), cluster=np.arange(12))
        for first, second in ((2, 4), (2, 6))
    )
    combined = combine_stages(estimates=[uneven, even], plan_weights=[1, 1]).estimate
    assert combined.weight_range == pytest.approx((0.5, 1.5)) and combined.rarer is None
    assert "rarer" not in combined.too_few


def test_where_all_answers_are_alike_the_least_spread_of_the_other_stages_counts():
    narrow, wide, alike = stage(np.arange(40.0)), stage(3 * np.arange(40.0)), stage(np.full(20, 7.0))
    combined = combine_stages(estimates=[wide, narrow, alike], plan_weights=[1, 1, 1]).estimate
    expected = wide.standard_error**2 + narrow.standard_error**2 * (1 + 40 / 20)
    assert combined.standard_error == pytest.approx(math.sqrt(expected) / 3)


def test_slots_that_are_dealt_at_random_share_a_person_once_in_so_many():
    alone = 1 / 400
    shared = alone + (1 - alone) / 40
    assert kish_size(np.full(400, 0.4), people=40, clustering=1) == pytest.approx(1 / shared)
    assert kish_size(np.full(400, 0.4), people=40) == pytest.approx(1 / (0.8 * alone + 0.2 * shared))
