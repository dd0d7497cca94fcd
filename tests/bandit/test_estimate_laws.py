"""A small suite of laws over simulated studies with fixed seeds; `benchmarks/sampling_laws.py` has the whole one."""

import numpy as np
import pytest

import bandit
from tests.bandit import estimate_laws

pytestmark = pytest.mark.slow


@pytest.mark.thorough
@pytest.mark.parametrize("people", [12, 20])
def test_figures_of_all_stages_cover_the_truth_and_stages_that_agree_are_not_said_to_differ(people):
    laws, p = estimate_laws.whole_studies(people=people, studies=300, seed=3)
    for name in ("share", "size"):
        assert 0.93 <= laws[name].cover <= 0.97, (name, laws[name])
        assert abs(laws[name].bias) < 4 * laws[name].error
    if people < 20:
        assert np.isnan(p["share"]).all(), "the effective sample of an adaptive stage is under 30"
    else:
        assert not np.isnan(p["share"]).any() and 0.02 <= (p["share"] < 0.05).mean() <= 0.08


@pytest.mark.thorough
def test_weights_that_know_of_clustering_make_intervals_narrower():
    laws, _p = estimate_laws.whole_studies(people=20, studies=60, seed=2, person_sd=1.6)
    assert laws["share"].width < 0.9 * laws["share by Kish's weights"].width


@pytest.mark.thorough
def test_tasks_are_unbiased_covered_and_not_said_to_differ_by_stage():
    laws, p, estimated_share = estimate_laws.by_task(people=40, studies=150, seed=2)
    assert abs(laws["all stages"].bias) < 0.01 + 2 * laws["all stages"].error
    assert 0.93 <= laws["all stages"].cover <= 0.97
    assert np.isnan(p).all(), "no task has an effective sample of 30 in two stages"
    # A stage in which a stratum has no answers of the task gives none: it would lack that part of the candidates.
    assert 0.5 < estimated_share < 0.98
    assert abs(laws["one stage"].bias) < 0.01 + 3 * laws["one stage"].error


@pytest.mark.thorough
@pytest.mark.parametrize("rest", [5, 10, 20])
def test_means_in_points_with_a_thin_stratum_are_covered_and_their_bounds_claim_less(rest):
    laws = estimate_laws.thin_strata(rest=rest, studies=400, seed=1)
    assert laws["plain"].cover >= 0.9, "95 % but for what chance does to 400 studies, and more"
    assert laws["bounds"].cover >= laws["plain"].cover and laws["bounds"].width > laws["plain"].width


@pytest.mark.thorough
def test_differences_between_policies_are_covered_where_the_effective_sample_is_100():
    laws = estimate_laws.policies(people=40, studies=250, seed=1)
    enough = {name: law for name, (law, size) in laws.items() if size >= 100}
    assert {"epsilon 0.1", "epsilon 0.5"} <= set(enough)
    for name, law in enough.items():
        assert 0.93 <= law.cover <= 0.97, (name, law)
        assert law.se_over_spread == pytest.approx(1, abs=0.1), (name, law)


@pytest.mark.thorough
def test_a_proportional_stage_is_covered_although_a_few_heavy_answers_decide():
    law = estimate_laws.proportional_stages(people=30, studies=400, seed=2, trade_offs=(0.1,))[0.1]
    assert 0.93 <= law.cover <= 0.97, law
    assert abs(law.bias) < 4 * law.error


@pytest.mark.thorough
def test_a_difference_between_levels_of_items_is_no_less_certain_because_of_scores():
    """The heavy answers of a proportional stage lie apart from the light ones by the score, which is no spread."""
    law = estimate_laws.levels_of_items(people=20, studies=400, seed=1)
    assert law.se_over_spread == pytest.approx(1, abs=0.1), law
    assert 0.93 <= law.cover <= 0.97, law


@pytest.mark.thorough
def test_means_of_tasks_hold_where_a_few_large_changes_decide():
    """A tenth of the changes is 60 points, the others 2. Studies of three tasks: 120 intervals, of which .86 held."""
    skewed = estimate_laws.points_by_task(people=88, studies=40, seed=1, steps=estimate_laws.FEW_LARGE)
    assert skewed["plain"].cover >= 0.9 and skewed["bounds"].cover >= skewed["plain"].cover
    assert skewed["plain"].cover > skewed["before"].cover and skewed["plain"].width < 1.5 * skewed["before"].width
    usual = estimate_laws.points_by_task(people=40, studies=20, seed=1)
    assert usual["plain"].cover >= 0.9 and usual["plain"].width < 1.3 * usual["before"].width


def test_a_mean_of_few_effective_answers_says_what_it_may_have_missed():
    values = np.array([0.0, 2.0, 0.0, 2.0] * 10)
    few, enough = (bandit.naive_mean(values=values[:n], cluster=np.arange(n)) for n in (19, 40))
    assert few.too_few == (
        "19 respondents, fewer than 30; an effective sample of 19 answers, fewer than 20, which may have missed seldom "
        "large ones"
    )
    assert enough.too_few == ""


@pytest.mark.thorough
def test_first_items_are_free_of_what_carries_over_and_figures_of_all_stages_are_not():
    """-3 logits after a change on the item before. Without carry-over the comparison with the holdouts is a test at
    .05: of 100 studies 12 and more have a chance under .005."""
    laws, _found = estimate_laws.carry_over(change=-3, studies=60, seed=1)
    assert laws["all stages"].bias < -0.004, "-.011, and 60 studies know it to .0014"
    assert abs(laws["first items"].bias) < 4 * laws["first items"].error and laws["first items"].cover >= 0.85
    laws, rejected = estimate_laws.carry_over(change=0, studies=100, seed=2)
    assert abs(laws["all stages"].bias) < 4 * laws["all stages"].error and laws["all stages"].cover >= 0.88
    assert rejected < 0.12
