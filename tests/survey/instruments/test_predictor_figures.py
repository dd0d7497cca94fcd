"""Figures of predictors: SVG that says what it shows, the same bytes for the same data."""

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from predictors.comparison import Predictions, PredictorComparison, compare
from predictors.datasets import read
from survey.instruments.belief_update.figures import predictors as figures

pytestmark = pytest.mark.slow

FIGURES = {
    "auc": (figures.auc_figure, "metrics"),
    "roc": (figures.roc_figure, "curves"),
    "calibration": (figures.calibration_figure, "curves"),
    "rank": (figures.rank_figure, "curves"),
}


def comparison_of(tmp_path: Path, labels: list[int]) -> PredictorComparison:
    path = tmp_path / "test.csv"
    rows = [f"question {index},other {index},a,b,{index % 2},{label}" for index, label in enumerate(labels)]
    path.write_text("q1,q2,source1,source2,previous_correct,belief_change\n" + "\n".join(rows))
    rng = np.random.default_rng(0)
    made = [Predictions(name, rng.uniform(size=len(labels)), 1.0) for name in ("same_task", "hybrid")]
    return compare(read(path), made, train=None, seed=0, samples=20)


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_names_its_predictors_and_is_the_same_each_time(tmp_path, name):
    found = comparison_of(tmp_path, [0, 1, 1, 0] * 10)
    draw, part = FIGURES[name]
    paths = [tmp_path / "one.svg", tmp_path / "two.svg"]
    for path in paths:
        draw(found[part], path)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    texts = {element.text for element in ElementTree.parse(paths[0]).iter("{http://www.w3.org/2000/svg}text")}  # noqa: S314
    assert {"same_task", "hybrid"} <= texts


@pytest.mark.parametrize("name", FIGURES)
def test_rows_of_one_class_still_give_a_figure(tmp_path, name):
    draw, part = FIGURES[name]
    draw(comparison_of(tmp_path, [1] * 8)[part], tmp_path / "figure.svg")
    assert (tmp_path / "figure.svg").stat().st_size > 1000
