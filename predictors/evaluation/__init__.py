"""How good predictions are, and how sure one can be of it: metrics, intervals, curves. Needs numpy alone.

Everywhere labels may be fractions, and n labels, probabilities, outcomes and weights are given row by row.
"""

from predictors.evaluation.curves import auc_by_group, calibration, rank_curve, roc_curve
from predictors.evaluation.intervals import evaluate_with_intervals, paired_difference
from predictors.evaluation.metrics import (
    METRICS,
    PARTS,
    area_under_curve,
    count_log_likelihood,
    evaluate,
    negative_log_likelihood,
)

__all__ = [
    "METRICS",
    "PARTS",
    "area_under_curve",
    "auc_by_group",
    "calibration",
    "count_log_likelihood",
    "evaluate",
    "evaluate_with_intervals",
    "negative_log_likelihood",
    "paired_difference",
    "rank_curve",
    "roc_curve",
]
