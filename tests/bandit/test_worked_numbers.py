"""Worked numbers of others, to the digits that they print: each with its source. And identities that need no number.

Numbers of the R package survey were made again on 2026-11-29 with R 4.2.2 and survey 4.1.1 (Debian's r-base-core and
r-cran-survey). `stratified_mean` without its floor is R's

    svymean(~y, postStratify(svydesign(ids = ~person, weights = ~w), ~stratum, N))

and not `svydesign(strata = ~stratum)`: people answer in several strata, so that Hunch divides by all people less 1.
Where Hunch's number differs by intent, both stand here, with the reason.
"""

import csv
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bandit
from bandit import estimators
from bandit.anytime import errors_wide, mixture_parameter
from bandit.bradley_terry import Duels
from bandit.intervals import wilson_interval
from tests import r_packages
from tests.conftest import unavailable

# survey: data(fpc), from Lehtonen and Pahkinen; two strata of 15 and 12, of which 5 and 3 were drawn.
X = np.array([2.8, 4.1, 6.8, 6.8, 9.2, 3.7, 6.6, 4.2])
STRATUM = np.array([0, 0, 0, 0, 0, 1, 1, 1])
FPC: dict[str, Any] = {"values": X, "stratum": STRATUM, "sizes": (15, 12), "cluster": np.arange(8)}


@pytest.fixture
def without_floor(monkeypatch: pytest.MonkeyPatch) -> None:
    """A variance that may fall below the spread of single answers, as R's may."""
    monkeypatch.setattr(estimators, "_least_of_mean", lambda *_arguments: 0.0)


def close(estimate: bandit.Estimate, value: float, error: float) -> None:
    """To the digits that R prints."""
    assert (estimate.value, estimate.standard_error) == (pytest.approx(value, rel=1e-6), pytest.approx(error, rel=1e-6))


def test_means_of_two_strata_are_those_of_r_and_the_floor_makes_up_for_people(without_floor: None) -> None:
    """svymean(~x, ...): 5.448148, .6915686 post-stratified, .7412678 by svydesign(strata = ~stratid)."""
    close(bandit.stratified_mean(**FPC), 5.448148148, 0.691568575)


def test_with_its_floor_a_mean_of_two_strata_is_wider_than_rs() -> None:
    """.775187 for R's .741268 (.616041 with its finite-population correction, which Hunch makes to no answers: people
    are a sample of more people, however many of the items were drawn)."""
    close(bandit.stratified_mean(**FPC), 5.448148148, 0.775187)
    assert bandit.stratified_mean(**FPC).standard_error > 0.741268


def test_an_unweighted_mean_is_that_of_r() -> None:
    """svymean(~x, svydesign(ids = ~1, data = fpc)): 5.525, .761284."""
    close(bandit.naive_mean(values=X, cluster=np.arange(8)), 5.525, 0.761284)


@pytest.mark.parametrize(
    ("above", "value", "post_stratified", "with_floor"),
    [(True, 6.195, 0.7012063, 0.763717), (False, 3.314285714, 0.28535754, 0.334805)],
)
def test_domains_are_those_of_r(
    above: bool, value: float, post_stratified: float, with_floor: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """subset(design, x > 4) and x <= 4: .755513 and .311704 by strata."""
    close(bandit.stratified_mean(**FPC, domain=(X > 4) == above), value, with_floor)
    monkeypatch.setattr(estimators, "_least_of_mean", lambda *_arguments: 0.0)
    close(bandit.stratified_mean(**FPC, domain=(X > 4) == above), value, post_stratified)


def test_a_total_of_two_stages_is_rs_with_replacement() -> None:
    """survey: data(mu284), 5 of 50 clusters and 3 units of each. svytotal(~y1): 15080 (2388.6) with weights alone, and
    2274.3 with both finite-population corrections, which Hunch does not make."""
    total = np.array([41, 49, 31, 39, 49, 49, 49, 31, 41, 51, 49, 45, 35, 61, 33], dtype=float)
    sizes = np.array([5, 8, 5, 9, 7] * 3)
    chance = 5 / 50 * 3 / sizes
    estimate = bandit.horvitz_thompson(
        values=total, probability=chance, universe_size=1, cluster=np.array([19, 45, 47, 50, 31] * 3)
    )
    assert estimate.value == pytest.approx(15080) and estimate.standard_error == pytest.approx(2388.61, abs=0.005)


# Data that the R package survey brings

R_DATA = """
data(api, package = "survey"); data(election, package = "survey")
for (name in c("apistrat", "apiclus1", "apiclus2", "election_pps"))
  write.csv(get(name), file.path(commandArgs(TRUE)[1], paste0(name, ".csv")), na = "", row.names = FALSE)
"""
Table = dict[str, np.ndarray]


@pytest.fixture(scope="module")
def r_data(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Table]:
    if not r_packages.is_installed("survey"):
        unavailable("the worked numbers of data in R, since R with the package survey is not installed.")
    folder = tmp_path_factory.mktemp("r")
    (folder / "data.R").write_text(R_DATA)
    subprocess.run(["Rscript", str(folder / "data.R"), str(folder)], check=True)
    return {path.stem: _table(path) for path in folder.glob("*.csv")}


def _table(path: Path) -> Table:
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    columns = zip(header, zip(*rows, strict=True), strict=True)
    return {name: np.array(values) for name, values in columns}


def numbers(table: Table, name: str) -> np.ndarray:
    return np.array([float(value) if value else np.nan for value in table[name]])


def test_schools_by_strata_are_those_of_r(r_data: dict[str, Table], monkeypatch: pytest.MonkeyPatch) -> None:
    """data(api), apistrat: 662.2874, 9.506319 post-stratified; 9.536132 by svydesign(strata = ~stype). Domains and the
    total: 12.4934, 15.3408, 16.5024; 3687178 (116664)."""
    table = r_data["apistrat"]
    kinds = ("E", "H", "M")
    data: dict[str, Any] = {
        "stratum": np.array([kinds.index(kind) for kind in table["stype"]]),
        "sizes": (4421, 755, 1018),
        "cluster": np.arange(200),
    }
    schools = numbers(table, "api00")
    close(bandit.stratified_mean(values=schools, **data), 662.287364, 9.518061)
    monkeypatch.setattr(estimators, "_least_of_mean", lambda *_arguments: 0.0)
    close(bandit.stratified_mean(values=schools, **data), 662.287364, 9.506319)
    for place, (value, error) in enumerate(((674.43, 12.49343349), (625.82, 15.34078389), (636.60, 16.50238905))):
        estimate = bandit.stratified_mean(values=schools, **data, domain=data["stratum"] == place)
        assert estimate.value == pytest.approx(value) and estimate.standard_error == pytest.approx(error)
    total = bandit.stratified_mean(values=numbers(table, "enroll"), **data)
    assert (round(6194 * total.value), round(6194 * total.standard_error)) == (3687178, 116664)


def test_schools_in_districts_are_those_of_r(r_data: dict[str, Table]) -> None:
    """apiclus1, clusters = districts, without fpc: 644.1694 (23.77901), t on 14 degrees of freedom 593.168 to 695.170;
    svyratio(~api.stu, ~enroll): .8497087 (.00847064). apiclus2 with replacement: 670.8118 (30.71158)."""
    table = r_data["apiclus1"]
    weight = numbers(table, "pw")
    data: dict[str, Any] = {"probability": weight.min() / weight / 2, "cluster": table["dnum"]}
    mean = bandit.hajek(values=numbers(table, "api00"), **data)
    close(mean, 644.169399, 23.779011)
    assert mean.degrees_of_freedom == 14 and mean.interval == pytest.approx((593.16849, 695.1703), abs=0.0005)
    ratio = bandit.hajek(values=numbers(table, "api.stu"), per=numbers(table, "enroll"), **data)
    close(ratio, 0.8497087, 0.00847064)
    table = r_data["apiclus2"]
    weight = numbers(table, "pw")
    mean = bandit.hajek(values=numbers(table, "api00"), probability=1 / weight, cluster=table["dnum"])
    close(mean, 670.8118, 30.71158)
    # R counts clusters less 1. A few districts weigh most, so that here few degrees of freedom are left.
    assert len(set(table["dnum"])) - 1 == 39 and mean.degrees_of_freedom < 2


def test_totals_by_size_with_replacement_are_those_of_r(r_data: dict[str, Table]) -> None:
    """data(election), election_pps: Bush 64518472 (2671455), Kerry 51202102 (2679433). The variances without
    replacement need joint chances, which no plan stores."""
    table = r_data["election_pps"]
    for name, value, error in (("Bush", 64518472, 2671455), ("Kerry", 51202102, 2679433)):
        chance = numbers(table, "p")
        total = bandit.horvitz_thompson(
            values=numbers(table, name), probability=chance, universe_size=1, cluster=np.arange(chance.size)
        )
        assert (round(total.value), round(total.standard_error)) == (value, error)


# Comparisons of two


BASEBALL = """
Milwaukee Detroit 4 3 Toronto 4 2 New_York 4 3 Boston 6 1 Cleveland 4 2 Baltimore 6 0
Detroit Milwaukee 3 3 Toronto 4 2 New_York 4 3 Boston 6 0 Cleveland 6 1 Baltimore 4 3
Toronto Milwaukee 2 5 Detroit 4 3 New_York 2 4 Boston 4 3 Cleveland 4 2 Baltimore 6 0
New_York Milwaukee 3 3 Detroit 5 1 Toronto 2 5 Boston 4 3 Cleveland 4 2 Baltimore 6 1
Boston Milwaukee 5 1 Detroit 2 5 Toronto 3 3 New_York 4 2 Cleveland 5 2 Baltimore 6 0
Cleveland Milwaukee 2 5 Detroit 3 3 Toronto 3 4 New_York 4 3 Boston 4 2 Baltimore 2 4
Baltimore Milwaukee 2 5 Detroit 1 5 Toronto 1 6 New_York 2 4 Boston 1 6 Cleveland 3 4
"""


def games() -> tuple[list[str], dict[str, np.ndarray]]:
    """Home, away, and whether home won, one row for each game."""
    rows = []
    for line in BASEBALL.split("\n")[1:-1]:
        home, *others = line.split()
        for place in range(0, len(others), 3):
            away, won, lost = others[place], int(others[place + 1]), int(others[place + 2])
            rows += [(home, away, 1.0)] * won + [(home, away, 0.0)] * lost
    names = sorted({home for home, _away, _won in rows})
    columns = list(zip(*rows, strict=True))
    return names, {
        "first": np.array([names.index(name) for name in columns[0]]),
        "second": np.array([names.index(name) for name in columns[1]]),
        "outcome": np.array(columns[2]),
    }


def test_baseball_is_ranked_as_published() -> None:
    """Agresti, Categorical Data Analysis, 2nd edition (2002), page 438: the American League of 1987. Strengths against
    Baltimore by BradleyTerry2 1.1.2 (its vignette, `baseballModel1` and `2`): without and with the advantage at home.
    What `preference` prints has a ridge of 0.1 and a sandwich: 1.6092 (.3409) for Milwaukee, .3018 (.1312) at home."""
    names, rows = games()
    baltimore = names.index("Baltimore")
    published = {
        False: {"Milwaukee": 1.5814, "Detroit": 1.4364, "Toronto": 1.2945, "New_York": 1.2476, "Boston": 1.1077},
        True: {"Milwaukee": 1.6196, "Detroit": 1.4754, "Toronto": 1.3271, "New_York": 1.2813, "Boston": 1.1438},
    }
    for side, cleveland in ((False, 0.6839), (True, 0.7047)):
        duels = Duels.of(**rows, names=len(names), ridge=0, side=side)
        fitted = duels.fit()
        for name, strength in {**published[side], "Cleveland": cleveland}.items():
            assert fitted[names.index(name)] - fitted[baltimore] == pytest.approx(strength, abs=0.00005), (side, name)
    assert fitted[-1] == pytest.approx(0.3023, abs=0.00005)
    inverse = duels.inverse(fitted)
    best = names.index("Milwaukee")
    apart = inverse[best, best] + inverse[baltimore, baltimore] - 2 * inverse[best, baltimore]
    assert [np.sqrt(inverse[-1, -1]), np.sqrt(apart)] == pytest.approx([0.1309, 0.3474], abs=0.00005)


# Intervals


@pytest.mark.parametrize(
    ("positive", "answers", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilsons_interval_is_the_published_one(positive: int, answers: int, low: float, high: float) -> None:
    """Newcombe, Statistics in Medicine 17 (1998), 857-872, table I, method 3. `estimate` takes Student's t for the
    normal quantile, since the spread between few people is not known."""
    assert wilson_interval(positive / answers, answers) == pytest.approx((low, high), abs=0.00005)
    share = bandit.naive_mean(
        values=np.arange(answers) < positive if positive else np.zeros(answers), cluster=np.arange(answers), share=True
    )
    assert share.interval[1] - share.interval[0] > high - low - 0.0002 or positive >= 10


def test_an_interval_at_any_time_is_that_of_confseq() -> None:
    """confseq (Howard and others, Annals of Statistics 49, 2021), tests/test_uniform_boundaries: the two-sided normal
    mixture that is best at an intrinsic time of 100 has rho 12.60056 (here 1 / rho^2), and its bound there is 30.35209.
    The one-sided one (27.66) has no counterpart: Hunch's intervals have two sides."""
    rho = mixture_parameter(100)
    assert 1 / rho**2 == pytest.approx(12.60056, abs=0.000005)
    assert 10 * errors_wide(100, rho=rho) == pytest.approx(30.35209, abs=0.000005)


def test_clusters_of_two_kinds_are_the_sum_less_both() -> None:
    """Cameron, Gelbach and Miller (2011), equation 2.11, by hand: Petersen's data, for which R's sandwich 3.0.2 gives
    .0742507 by firm and year (.0759026 and .0276930 alone), are not ours to bring; this is the same sum on a table of
    four firms and three years."""
    rng = np.random.default_rng(4)
    firm, year = np.repeat(np.arange(4), 3), np.tile(np.arange(3), 4)
    share = rng.normal(size=12) + rng.normal(size=4)[firm]
    share -= share.mean()
    firms, years = np.bincount(firm, weights=share), np.bincount(year, weights=share)
    by_hand = 4 / 3 * (firms**2).sum() + 3 / 2 * (years**2).sum() - 12 / 11 * (share**2).sum()
    assert by_hand > 3 / 2 * (years**2).sum(), "no least value decides"
    assert bandit.clustered_variance(share, firm, year) == pytest.approx(by_hand)


# Identities, without a number


@pytest.fixture
def answers() -> dict[str, Any]:
    rng = np.random.default_rng(11)
    person = np.repeat(np.arange(20), 4)
    return {"values": rng.normal(size=80) + rng.normal(size=20)[person], "cluster": person}


def same(estimate: bandit.Estimate, other: bandit.Estimate) -> None:
    assert (estimate.value, estimate.standard_error) == pytest.approx((other.value, other.standard_error))
    assert estimate.interval == pytest.approx(other.interval) and estimate.n_clusters == other.n_clusters


def test_equal_chances_are_the_plain_mean(answers: dict[str, Any]) -> None:
    same(bandit.hajek(**answers, probability=np.full(80, 0.03)), bandit.naive_mean(**answers))


def test_one_stratum_is_none(answers: dict[str, Any]) -> None:
    same(bandit.stratified_mean(**answers, stratum=np.zeros(80, int), sizes=(900,)), bandit.naive_mean(**answers))


def test_clusters_of_one_are_no_clusters(answers: dict[str, Any]) -> None:
    values = answers["values"]
    estimate = bandit.naive_mean(values=values, cluster=np.arange(80))
    assert estimate.standard_error == pytest.approx(values.std(ddof=1) / np.sqrt(80))
    assert bandit.clustered_variance((values - values.mean()) / 80, np.arange(80), np.arange(80)) == pytest.approx(
        estimate.standard_error**2
    )


def test_a_whole_that_is_two_equal_halves_has_the_error_over_root_2(answers: dict[str, Any]) -> None:
    half = bandit.naive_mean(**answers)
    both = bandit.combine_stages(estimates=[half, half], plan_weights=[1.0, 1.0]).estimate
    assert both.value == pytest.approx(half.value)
    assert both.standard_error == pytest.approx(half.standard_error / np.sqrt(2))
    assert both.degrees_of_freedom == pytest.approx(2 * half.degrees_of_freedom)


def test_a_figure_of_stages_put_together_is_the_mean_of_the_stages(answers: dict[str, Any]) -> None:
    """Over all candidates the combined ratio is the mean of the stages' means."""
    stage = {**answers, "stratum": np.arange(80) % 2, "sizes": (300, 700)}
    other = {**stage, "values": -2 * answers["values"]}
    means = [bandit.stratified_mean(**part) for part in (stage, other)]
    together = bandit.pooled_mean(
        stages=[bandit.StageAnswers(**stage), bandit.StageAnswers(**other)], plan_weights=[3, 1]
    )
    assert together.value == pytest.approx(0.75 * means[0].value + 0.25 * means[1].value)


def test_everybody_stays_is_the_plain_mean(answers: dict[str, Any]) -> None:
    plain = {**answers, "stratum": np.arange(80) % 2, "sizes": (300, 700)}
    same(bandit.stratified_mean(**plain, staying=np.full(80, 0.4)), bandit.stratified_mean(**plain))


def test_bounds_for_an_odds_ratio_of_1_are_the_plain_mean(answers: dict[str, Any]) -> None:
    plain = {**answers, "stratum": np.zeros(80, int), "sizes": (900,)}
    estimate = bandit.stratified_mean(**plain)
    items = bandit.GivenItems(**plain, missing_stratum=np.zeros(5, int), missing_cluster=np.arange(5))
    bounds = bandit.bounds(stages=[items], plain=estimate, odds_ratio=1.0)
    assert (bounds.lower.value, bounds.upper.value) == pytest.approx((estimate.value, estimate.value))
    assert bounds.interval[0] <= estimate.interval[0] and estimate.interval[1] <= bounds.interval[1]
