"""Who has only the export gets the figures of `estimate`: plain means of the answers with the column `weight`."""

import csv
import math
from collections.abc import Callable, Mapping
from io import StringIO
from typing import Any

import pytest

from survey.services.answers.conditions import pairs_of, read_condition
from survey.services.results.estimates import study_estimates
from survey.services.results.export import files
from tests.golden.test_golden import golden, loaded, study_of

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
__all__ = ["golden", "loaded"]

Row = Mapping[str, str]
# What a measure is, in columns of answers.csv; None: the answer is not about it.
VALUES: dict[str, Callable[[Row, int], float | None]] = {
    "changed": lambda row, over: float(abs(number(row, "change")) > over),
    "change": lambda row, over: number(row, "change") if abs(number(row, "change")) > over else 0.0,
    "size": lambda row, over: abs(number(row, "change")) if abs(number(row, "change")) > over else 0.0,
    "prior": lambda row, _over: number(row, "prior"),
    "posterior_incorrect": lambda row, _over: number(row, "posterior") if row["outcome"] == "0" else None,
    "posterior_correct": lambda row, _over: number(row, "posterior") if row["outcome"] == "1" else None,
    "correct": lambda row, _over: number(row, "correct"),
    "confidence": lambda row, _over: number(row, "confidence") if row["confidence"] else None,
    "overconfidence": lambda row, _over: (
        number(row, "confidence") - 100 * number(row, "correct") if row["confidence"] else None
    ),
}


def number(row: Row, column: str) -> float:
    return float(row[column])


def rows_of(slug: str, levels: Mapping[str, str]) -> list[Row]:
    return list(csv.DictReader(StringIO("".join(files.answers_csv(study_of(slug), levels=levels)), newline="")))


def weighted_mean(rows: list[Row], measure: str) -> float:
    name, _over, threshold = measure.partition("_over_")
    value = VALUES[name]
    pairs = [(float(row["weight"]), value(row, int(threshold or 0))) for row in rows if row["weight"]]
    about = [(weight, value) for weight, value in pairs if value is not None]
    return math.fsum(weight * value for weight, value in about) / math.fsum(weight for weight, _found in about)


def all_pooled_figures(slug: str, condition: list[str]) -> list[Any]:
    return [*study_estimates.estimate(study_of(slug), condition=condition).figures]


@pytest.mark.thorough
@pytest.mark.parametrize("slug", ["answers", "beliefs", "real"])
def test_a_weighted_mean_of_the_export_is_the_figure_of_estimate(golden: None, slug: str) -> None:
    rows, compared = rows_of(slug, {}), 0
    for figure in all_pooled_figures(slug, []):
        if figure.combined is not None:
            assert weighted_mean(rows, figure.name) == pytest.approx(figure.combined.value, rel=1e-12, abs=1e-12)
            compared += 1
    assert compared >= 2
    weights = [float(row["weight"]) for row in rows if row["weight"]]
    assert math.fsum(weights) / len(weights) == pytest.approx(1)


@pytest.mark.thorough
def test_the_weights_under_a_level_are_those_of_its_own_answers(golden: None) -> None:
    study = study_of("beliefs")
    for pair in pairs_of(study):
        rows, compared = rows_of("beliefs", read_condition(study, [pair])), 0
        for figure in all_pooled_figures("beliefs", [pair]):
            if figure.combined is not None:
                assert weighted_mean(rows, figure.name) == pytest.approx(figure.combined.value, rel=1e-12, abs=1e-12)
                compared += 1
        assert compared >= 2, pair


@pytest.mark.thorough
def test_only_answers_that_count_have_a_weight(golden: None) -> None:
    """Pilots, controls, repeats, and what a rule excludes have none; and there are some of these."""
    rows = rows_of("beliefs", {})
    left_out = [row for row in rows if row["pilot"] == "1" or row["excluded"] or row["role"] in ("control", "repeat")]
    assert left_out and not any(row["weight"] for row in left_out)
    for row in rows:
        if row["weight"]:
            assert row["status"] == "counted" and row["role"] in ("sampled", "holdout")
    stages = {row["stage"] for row in rows if row["weight"]}
    assert len(stages) >= 2  # So that the weights of stages matter.
