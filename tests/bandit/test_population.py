"""Weights to a population: against a table by hand, R's package survey where it is installed, and simulated samples."""

import csv
import subprocess
from pathlib import Path

import numpy as np
import pytest

from bandit import DesignError, clustered_variance, rake, stratified_mean, unexplained
from tests import r_packages
from tests.conftest import unavailable

YOUNG, OLD = 0, 1


def test_one_margin_gives_each_group_its_share() -> None:
    group = np.array([YOUNG] * 3 + [OLD])
    raked = rake([group], [[0.5, 0.5]])
    assert raked.weights == pytest.approx([2 / 3, 2 / 3, 2 / 3, 2])
    # Kish: 4 (3 (2/3)^2 + 2^2) / 4^2.
    assert raked.design_effect == pytest.approx(4 / 3)
    assert (raked.trimmed, raked.furthest) == (0, 0)


def test_two_margins_hold_together_and_keep_the_odds_ratio_of_the_sample() -> None:
    """Of 10 people 4, 1, 2, 3 in the cells; raking keeps the cells' odds ratio, 4 * 3 / (1 * 2) = 6."""
    first = np.array([0] * 5 + [1] * 5)
    second = np.array([0, 0, 0, 0, 1, 0, 0, 1, 1, 1])
    weights = rake([first, second], [[0.3, 0.7], [0.6, 0.4]]).weights
    cell = {(a, b): weights[(first == a) & (second == b)].sum() / 10 for a in (0, 1) for b in (0, 1)}
    assert cell[0, 0] + cell[0, 1] == pytest.approx(0.3) and cell[0, 0] + cell[1, 0] == pytest.approx(0.6)
    assert cell[0, 0] * cell[1, 1] / (cell[0, 1] * cell[1, 0]) == pytest.approx(6)


def test_base_weights_are_where_it_begins() -> None:
    group = np.array([YOUNG, YOUNG, OLD])
    assert rake([group], [[0.5, 0.5]], base=[1, 3, 5]).weights == pytest.approx([0.375, 1.125, 1.5])


def test_no_weight_is_above_the_limit_and_the_share_says_so() -> None:
    group = np.array([YOUNG] * 9 + [OLD])
    raked = rake([group], [[0.5, 0.5]], trim=2)
    assert raked.weights.max() == pytest.approx(2) and raked.weights.mean() == pytest.approx(1)
    assert raked.weights[:9] == pytest.approx([8 / 9] * 9)
    assert (raked.trimmed, raked.furthest) == (1, pytest.approx(0.3))
    assert rake([group], [[0.8, 0.2]], trim=3).trimmed == 0


@pytest.mark.parametrize(
    ("groups", "shares", "trim", "message"),
    [
        ([[0, 0]], [[0.5, 0.5]], None, "nobody is in group 1 of margin 1"),
        ([[0, 1]], [[0.5, 0.4]], None, "margin 1 sum to 0.9"),
        ([[0, 1]], [[1.0, 0.0]], None, "margin 1 needs shares above 0"),
        ([[0, 2]], [[0.5, 0.5]], None, "margin 1 has 2 groups"),
        ([[0, 1], [0, 1]], [[0.5, 0.5], [0.9, 0.1]], None, "no weights give all margins"),
        ([[0, 1]], [[0.5, 0.5]], 1, "leave nobody room"),
        ([[0, 1], [0]], [[0.5, 0.5], [1.0]], None, "a group for every person"),
    ],
)
def test_what_cannot_be_is_refused(groups: list, shares: list, trim: float | None, message: str) -> None:
    with pytest.raises(DesignError, match=message):
        rake(groups, shares, trim=trim)


def test_what_the_margins_explain_is_no_error() -> None:
    group = np.array([0, 0, 1, 1, 1])
    weights = np.array([1.0, 2, 1, 1, 3])
    assert unexplained(np.array([4.0, 4, 9, 9, 9]), [group], weights) == pytest.approx(np.zeros(5))
    left = unexplained(np.array([1.0, 4, 0, 0, 5]), [group], weights)  # Means 3 and 3.
    assert left == pytest.approx([-2, 1, -3, -3, 2])


def test_intervals_hold_where_the_sample_is_not_made_up_like_the_population() -> None:
    rng = np.random.default_rng(20261129)
    inside, values, errors = 0, [], []
    for _study in range(400):
        old = rng.random(60) < 0.25  # of the people; the population has one half
        usual = rng.random(60) < 0.5
        chance = 0.15 + 0.35 * old + 0.1 * usual + rng.normal(0, 0.05, 60)
        person = np.repeat(np.arange(60), 8)
        answers = (rng.random(480) < chance[person]).astype(float)
        raked = rake([old, usual], [[0.5, 0.5], [0.5, 0.5]])
        weight = raked.weights[person]
        value = float(np.average(answers, weights=weight))
        left = unexplained(answers - value, [old[person], usual[person]], np.ones(480))
        estimate = stratified_mean(
            values=value + left - np.average(left, weights=weight),
            stratum=np.zeros(480, int),
            sizes=[1000],
            cluster=person,
            staying=weight.min() / weight,
        )
        assert estimate.value == pytest.approx(value)
        low, high = estimate.interval
        inside += low <= 0.375 <= high
        values.append(value)
        errors.append(estimate.standard_error)
    assert abs(np.mean(values) - 0.375) < 3 * np.std(values) / 20
    assert 0.91 <= inside / 400 <= 0.98
    assert np.mean(errors) == pytest.approx(np.std(values), rel=0.12)


# R 4.2.2, package survey 4.1-1, November 2026: `rake` and `postStratify` of the design dclus1 in its examples.
IN_R = {
    "raked": ((641.23, 23.704), (3647300, 400603)),
    "post-stratified": ((642.31, 23.921), (3680893, 406293)),
}
POPULATION = 6194
SCRIPT = """
data(api, package = "survey")
write.csv(apiclus1[, c("dnum", "stype", "sch.wide", "api00", "enroll")], commandArgs(TRUE)[1], row.names = FALSE)
"""


@pytest.mark.parametrize("how", IN_R)
def test_schools_of_california_are_weighted_as_in_r(how: str, tmp_path: Path) -> None:
    if not r_packages.is_installed("survey"):
        unavailable("weights as in R, since R with the package survey is not installed.")
    (tmp_path / "data.R").write_text(SCRIPT)
    subprocess.run(["Rscript", "data.R", "schools.csv"], cwd=tmp_path, check=True)
    with (tmp_path / "schools.csv").open() as file:
        schools = list(csv.DictReader(file))
    kind = np.array(["EHM".index(school["stype"]) for school in schools])
    wide = np.array([school["sch.wide"] == "Yes" for school in schools], int)
    margins = [(kind, [4421, 755, 1018]), (wide, [1072, 5122])][: 2 if how == "raked" else 1]
    groups = [group for group, _counts in margins]
    weight = rake(groups, [np.array(counts) / POPULATION for _group, counts in margins]).weights / len(schools)
    district = np.array([school["dnum"] for school in schools])
    rest = 1 - len(set(district)) / 757  # of the districts were not drawn
    score, pupils = (np.array([float(school[name]) for school in schools]) for name in ("api00", "enroll"))
    mean, total = float(weight @ score), POPULATION * float(weight @ pupils)
    ours = []
    for value, values in ((mean, score - mean), (total, POPULATION * pupils)):
        left = unexplained(values, groups, np.ones(len(schools)))
        ours.append((value, (rest * clustered_variance(weight * left, district)) ** 0.5))
    for own, (value, error) in zip(ours, IN_R[how], strict=True):
        assert own == (pytest.approx(value, rel=1e-5), pytest.approx(error, rel=3e-5))
