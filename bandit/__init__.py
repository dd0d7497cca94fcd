"""Adaptive sampling with known probabilities: candidate sets, designs, draws, booklets, estimates, simulated people.

The library uses numpy and the standard library only. It knows nothing of Django, the survey or predictors: a question
is its index in a bank's fixed order, a score is a number in an array, and the caller passes in a
`numpy.random.Generator` for everything random.
"""

from bandit.anytime import AnytimeInterval, anytime_ends, anytime_interval, cut_to_span, errors_wide, mixture_parameter
from bandit.assistance import Assistance, assist
from bandit.booklets import deal
from bandit.bradley_terry import BradleyTerry, Duels, fit_bradley_terry
from bandit.candidates import Pairs, Pool, pair_from_rank, rank_of, uniform_pool, universe_size
from bandit.clustered import (
    cluster_count,
    cluster_totals,
    clustered_covariance,
    clustered_freedom,
    clustered_variance,
    crossed_covariance,
    crossed_variance,
)
from bandit.combining import Agreement, Combined, agreement_of, combine_stages, kish_size, plan_weight
from bandit.components import RESAMPLES, Components, Share, variance_components
from bandit.correlation import correlation_of_sums, ranks, weighted_correlation
from bandit.designs import Design, EpsilonGreedy, Proportional, Softmax, Strata, TestSet, Uncertainty, Uniform
from bandit.draws import Draw, Stratum, draw, inclusion_probabilities
from bandit.dropout import (
    Bounds,
    GivenItems,
    LeavingTest,
    bounds,
    difference_of_bounds,
    fisher_exact,
    leaving_test,
    staying_chances,
)
from bandit.effective import effective_size
from bandit.errors import DesignError, WorkersDiffer, WorkersLost
from bandit.estimate import Estimate, minus, satterthwaite
from bandit.estimators import (
    Comparison,
    CrossFitFold,
    Majorities,
    StratumShare,
    compare_shares,
    cross_fit_folds,
    cross_fitted_chances,
    hajek,
    hajek_difference,
    horvitz_thompson,
    majority_labels,
    naive_mean,
    share_by_stratum,
    stratified_difference,
    stratified_effect,
    stratified_mean,
)
from bandit.exhaustive import Cut, ExhaustiveDraw, draw_exhaustively, draw_rescored, find_cut, shortlist
from bandit.factored import Block, FactoredScores
from bandit.fragility import (
    Fragile,
    Fragility,
    fragile_bradley_terry,
    fragile_means,
    fragile_sums,
)
from bandit.intervals import effective_answers, student_interval, wilson_interval
from bandit.logistic import fit_logistic, predict_logistic
from bandit.noise import MIN_ITEMS, AucLimit, Retest, auc_limit, false_change_rate, item_variance, retest_correlation
from bandit.offline import OfflineEstimate, compare_policies, evaluate_policy
from bandit.paired import Occasions, paired_change, paired_change_difference
from bandit.pooling import StageAnswers, pooled_difference, pooled_mean
from bandit.population import PopulationWeights, rake, unexplained
from bandit.questions import MAX_SUBJECTS, error_contributions, superpopulation_estimate
from bandit.robust import Evidence, Learned, Robust
from bandit.roles import DealtWithRepeats, RolePart, RolePlan, deal_with_repeats, plan_roles, shares_questions
from bandit.sequences import (
    MAX_STEPS,
    SequencePool,
    Sequences,
    rank_of_sequences,
    sequence_universe,
    sequences_from_rank,
    uniform_sequences,
)
from bandit.simulation import (
    RANDOM_CHANGE,
    Attendance,
    BeliefTruth,
    CrowdAnswers,
    SimulatedRespondent,
    attend,
    average_over_people,
    crowd_answers,
)
from bandit.student import fisher_f_upper_tail, student_t_quantile, student_t_upper_tail
from bandit.tails import widen_for_far_answers

__all__ = [
    "MAX_STEPS",
    "MAX_SUBJECTS",
    "MIN_ITEMS",
    "RANDOM_CHANGE",
    "RESAMPLES",
    "Agreement",
    "AnytimeInterval",
    "Assistance",
    "Attendance",
    "AucLimit",
    "BeliefTruth",
    "Block",
    "Bounds",
    "BradleyTerry",
    "Combined",
    "Comparison",
    "Components",
    "CrossFitFold",
    "CrowdAnswers",
    "Cut",
    "DealtWithRepeats",
    "Design",
    "DesignError",
    "Draw",
    "Duels",
    "EpsilonGreedy",
    "Estimate",
    "Evidence",
    "ExhaustiveDraw",
    "FactoredScores",
    "Fragile",
    "Fragility",
    "GivenItems",
    "Learned",
    "LeavingTest",
    "Majorities",
    "Occasions",
    "OfflineEstimate",
    "Pairs",
    "Pool",
    "PopulationWeights",
    "Proportional",
    "Retest",
    "Robust",
    "RolePart",
    "RolePlan",
    "SequencePool",
    "Sequences",
    "Share",
    "SimulatedRespondent",
    "Softmax",
    "StageAnswers",
    "Strata",
    "Stratum",
    "StratumShare",
    "TestSet",
    "Uncertainty",
    "Uniform",
    "WorkersDiffer",
    "WorkersLost",
    "agreement_of",
    "anytime_ends",
    "anytime_interval",
    "assist",
    "attend",
    "auc_limit",
    "average_over_people",
    "bounds",
    "cluster_count",
    "cluster_totals",
    "clustered_covariance",
    "clustered_freedom",
    "clustered_variance",
    "combine_stages",
    "compare_policies",
    "compare_shares",
    "correlation_of_sums",
    "cross_fit_folds",
    "cross_fitted_chances",
    "crossed_covariance",
    "crossed_variance",
    "crowd_answers",
    "cut_to_span",
    "deal",
    "deal_with_repeats",
    "difference_of_bounds",
    "draw",
    "draw_exhaustively",
    "draw_rescored",
    "effective_answers",
    "effective_size",
    "error_contributions",
    "errors_wide",
    "evaluate_policy",
    "false_change_rate",
    "find_cut",
    "fisher_exact",
    "fisher_f_upper_tail",
    "fit_bradley_terry",
    "fit_logistic",
    "fragile_bradley_terry",
    "fragile_means",
    "fragile_sums",
    "hajek",
    "hajek_difference",
    "horvitz_thompson",
    "inclusion_probabilities",
    "item_variance",
    "kish_size",
    "leaving_test",
    "majority_labels",
    "minus",
    "mixture_parameter",
    "naive_mean",
    "pair_from_rank",
    "paired_change",
    "paired_change_difference",
    "plan_roles",
    "plan_weight",
    "pooled_difference",
    "pooled_mean",
    "predict_logistic",
    "rake",
    "rank_of",
    "rank_of_sequences",
    "ranks",
    "retest_correlation",
    "satterthwaite",
    "sequence_universe",
    "sequences_from_rank",
    "share_by_stratum",
    "shares_questions",
    "shortlist",
    "staying_chances",
    "stratified_difference",
    "stratified_effect",
    "stratified_mean",
    "student_interval",
    "student_t_quantile",
    "student_t_upper_tail",
    "superpopulation_estimate",
    "unexplained",
    "uniform_pool",
    "uniform_sequences",
    "universe_size",
    "variance_components",
    "weighted_correlation",
    "widen_for_far_answers",
    "wilson_interval",
]
