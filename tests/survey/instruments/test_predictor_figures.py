"""Figures of predictors: SVG that says what it shows, the same bytes for the same data."""

from pathlib import Path

import numpy as np
import pytest

from predictors.comparison import Predictions, PredictorComparison, compare
from predictors.datasets import read
from survey.instruments.belief_update import predictor_report
from survey.instruments.belief_update.predictor_report import charts

pytestmark = pytest.mark.slow

FIGURES = ("auc", "roc", "calibration", "rank_curve")


def comparison_of(tmp_path: Path, labels: list[int]) -> PredictorComparison:
    path = tmp_path / "test.csv"
    rows = [f"question {index},other {index},a,b,{index % 2},{label}" for index, label in enumerate(labels)]
    path.write_text("q1,q2,source1,source2,previous_correct,belief_change\n" + "\n".join(rows))
    rng = np.random.default_rng(0)
    made = [Predictions(name, rng.uniform(size=len(labels)), 1.0) for name in ("same_task", "hybrid")]
    return compare(read(path), made, train=None, seed=0, samples=20)


@pytest.mark.thorough
@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_names_its_predictors_and_is_the_same_each_time(tmp_path, name):
    comparison = comparison_of(tmp_path, [0, 1, 1, 0] * 10)
    text = charts(comparison)[name].svg(name)
    assert text == charts(comparison)[name].svg(name)
    assert ">same_task<" in text and ">hybrid<" in text


@pytest.mark.parametrize("name", FIGURES)
def test_rows_of_one_class_still_give_a_figure(tmp_path, name):
    text = charts(comparison_of(tmp_path, [1] * 8))[name].svg(name)
    assert "nan" not in text and len(text) > 500


def test_a_groups_tasks_stand_in_their_columns() -> None:
    areas = {"groups": {("a", "b"): {"n": 5, "auc": 0.5}}}
    own = {"task_pair": areas}
    for grouping in ("evidence_task", "target_task"):
        own[grouping] = {"groups": {"a": {"n": 6, "auc": 0.75}}}  # type: ignore[dict-item]
    rows = [*predictor_report._group_rows({"groups": {"p": own}})]  # type: ignore[arg-type]
    assert rows[1:] == [
        ["p", "task_pair", "a", "b", 5, "0.5"],
        ["p", "evidence_task", "a", "", 6, "0.75"],
        ["p", "target_task", "", "a", 6, "0.75"],
    ]
