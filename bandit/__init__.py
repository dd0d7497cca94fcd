"""Adaptive sampling with known probabilities: candidate sets, designs, draws, booklets, estimates, simulated people.

The library knows numpy and the standard library, and nothing of Django, of the survey or of predictors: a question is
its index in a bank's fixed order, a score is a number in an array, and chance is a `numpy.random.Generator` handed in.
"""

from bandit.booklets import deal
from bandit.candidates import Pairs, Pool, pair_from_rank, rank_of, uniform_pool, universe_size
from bandit.designs import Design, EpsilonGreedy, Softmax, Strata, TestSet, Uncertainty, Uniform
from bandit.draws import Draw, Stratum, draw, inclusion_probabilities
from bandit.errors import DesignError
from bandit.estimators import (
    Comparison,
    Estimate,
    StratumShare,
    compare_shares,
    hajek,
    horvitz_thompson,
    share_by_stratum,
    stratified_mean,
)
from bandit.roles import DealtWithRepeats, RolePart, RolePlan, deal_with_repeats, plan_roles, shares_questions
from bandit.simulation import BeliefTruth, SimulatedPerson, average_over_people
from bandit.student import student_t_quantile, student_t_upper_tail

__all__ = [
    "BeliefTruth",
    "Comparison",
    "DealtWithRepeats",
    "Design",
    "DesignError",
    "Draw",
    "EpsilonGreedy",
    "Estimate",
    "Pairs",
    "Pool",
    "RolePart",
    "RolePlan",
    "SimulatedPerson",
    "Softmax",
    "Strata",
    "Stratum",
    "StratumShare",
    "TestSet",
    "Uncertainty",
    "Uniform",
    "average_over_people",
    "compare_shares",
    "deal",
    "deal_with_repeats",
    "draw",
    "hajek",
    "horvitz_thompson",
    "inclusion_probabilities",
    "pair_from_rank",
    "plan_roles",
    "rank_of",
    "share_by_stratum",
    "shares_questions",
    "stratified_mean",
    "student_t_quantile",
    "student_t_upper_tail",
    "uniform_pool",
    "universe_size",
]
