"""How good predictions are, and how sure one can be of it: metrics, intervals, curves. Light at import.

Everywhere labels may be fractions, and n labels, probabilities and weights are given row by row. The parts in which
rows are measured come from the caller; `parts_by_outcome` makes those of the belief update.
"""

from predictors.evaluation.curves import auc_by_group, calibration, rank_curve, roc_curve, rows_by_rank
from predictors.evaluation.intervals import bootstrap_p, evaluate_with_intervals, paired_difference, percentile_interval
from predictors.evaluation.metrics import (
    METRIC_TITLES,
    METRICS,
    OVERALL,
    PARTS_BY_OUTCOME,
    area_under_curve,
    count_log_likelihood,
    evaluate,
    negative_log_likelihood,
    parts_by_outcome,
)
from predictors.evaluation.scoring import LogScore, TextScore, TrainTest, log_score, text_intervals

__all__ = [
    "METRICS",
    "METRIC_TITLES",
    "OVERALL",
    "PARTS_BY_OUTCOME",
    "LogScore",
    "TextScore",
    "TrainTest",
    "area_under_curve",
    "auc_by_group",
    "bootstrap_p",
    "calibration",
    "count_log_likelihood",
    "evaluate",
    "evaluate_with_intervals",
    "log_score",
    "negative_log_likelihood",
    "paired_difference",
    "parts_by_outcome",
    "percentile_interval",
    "rank_curve",
    "roc_curve",
    "rows_by_rank",
    "text_intervals",
]
