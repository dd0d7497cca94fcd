"""Worked numbers of others, to the digits that they print: each with its source. And identities that need no number.

Numbers of R were made again on 2026-11-29 with R 4.2.2 and survey 4.1.1 (Debian's r-base-core and r-cran-survey;
Petersen's need r-cran-sandwich). Raking stands in `test_population.py`, Krippendorff's alpha in
`tests/predictors/test_agreement.py`. `stratified_mean` without its floor is R's

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


# Takahiro Tsuchiya's numbers in the tests of survey 4.1.1, deff.R and twophase.R, made again on 2026-11-29: ten firms'
# sales with the weights of two designs, and twenty units of which eight were asked again.

SALES = np.array([15, 143, 21, 51, 337, 50, 274, 145, 15, 86.0])
OF_SIZE = np.array([20, 200, 11, 25, 550, 30, 250, 100, 10, 55.0])


def test_sales_by_size_have_the_error_of_r_and_fewer_degrees_of_freedom(without_floor: None) -> None:
    """svymean(~uriage, svydesign(ids = ~1, weights = ~pps.w)): 243.914 (48.752); svytotal: 305136 (184965).

    R takes t with 9 degrees of freedom. One firm of the ten has 44 % of the weight, so that Hunch leaves 1: an interval
    several times as wide, which `estimate` prints with its `df`."""
    firms: dict[str, Any] = {"values": SALES, "probability": 1 / OF_SIZE, "cluster": np.arange(10)}
    mean = bandit.hajek(**firms)
    close(mean, 243.9136691, 48.75216105)
    assert mean.degrees_of_freedom == 1
    total = bandit.horvitz_thompson(**firms, universe_size=1)
    assert (round(total.value), round(total.standard_error)) == (305136, 184965)


def test_sales_by_size_with_the_floor_and_with_equal_weights() -> None:
    """With the floor 82.542, as 3.7 answers of equal weight would have. Equal weights: 113.700 (35.626) in R."""
    mean = bandit.hajek(values=SALES, probability=1 / OF_SIZE, cluster=np.arange(10))
    assert (mean.standard_error, mean.effective_sample_size) == pytest.approx((82.542, 3.7247), abs=0.0005)
    close(bandit.hajek(values=SALES, probability=np.full(10, 0.01), cluster=np.arange(10)), 113.7, 35.6261608)


@pytest.mark.parametrize(
    ("floor", "of_total", "of_mean"), [(True, 75240.32, 0.30376350), (False, 67645.80571, 0.30376350)]
)
def test_a_part_of_two_phases(floor: bool, of_total: float, of_mean: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """twophase(id = list(~id, ~id), strata = list(NULL, ~h), fpc = list(~N, NULL)), 20 of 300 and then 5 of 12 and
    3 of 8, subset(y > 3): total 1164, variance 70761.47368; mean 6.0625, variance .3292258079.

    Hunch counts people less 1 over all strata and not in each, and corrects no finite population in the second phase:
    6.3 % more with its floor and 4.4 % less without for the total, 7.7 % less for the mean of the part."""
    if not floor:
        monkeypatch.setattr(estimators, "_least_of_mean", lambda *_arguments: 0.0)
    y = np.arange(1.0, 9)
    units: dict[str, Any] = {"stratum": (y > 5).astype(int), "sizes": (12, 8), "cluster": y, "universe_size": 300}
    total = bandit.stratified_mean(values=np.where(y > 3, y, 0), **units)
    assert (300 * total.value, (300 * total.standard_error) ** 2) == pytest.approx((1164, of_total))
    mean = bandit.stratified_mean(values=y, **units, domain=y > 3)
    assert (mean.value, mean.standard_error**2) == pytest.approx((6.0625, of_mean))


# Data that the R package survey brings

R_DATA = """
suppressPackageStartupMessages(library(survey)); data(api); data(election)
for (name in c("apistrat", "apiclus1", "apiclus2", "election_pps"))
  write.csv(get(name), file.path(commandArgs(TRUE)[1], paste0(name, ".csv")), na = "", row.names = FALSE)
"""
Table = dict[str, np.ndarray]


@pytest.fixture(scope="module")
def r_data(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Table]:
    return _in_r(R_DATA, tmp_path_factory.mktemp("r"), package="survey")


def _in_r(script: str, folder: Path, *, package: str) -> dict[str, Table]:
    """The tables that a script writes."""
    if not r_packages.is_installed(package):
        unavailable(f"the worked numbers of data in R, since R with the package {package} is not installed.")
    (folder / "data.R").write_text(script)
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
    """confseq (Howard and others, Annals of Statistics 49, 2021), test/uniform_boundaries_unittest.cpp as it stood on
    2026-11-29, whose numbers are of a program in R: the two-sided normal mixture that is best at an intrinsic time of
    100 has rho 12.60056 (here 1 / rho^2), and its bound there is 30.35209. The one-sided one (27.66) has no
    counterpart: Hunch's intervals have two sides."""
    rho = mixture_parameter(100)
    assert 1 / rho**2 == pytest.approx(12.60056, abs=0.000005)
    assert 10 * errors_wide(100, rho=rho) == pytest.approx(30.35209, abs=0.000005)


# Clusters of two kinds

PETERSEN = """
suppressPackageStartupMessages(library(sandwich)); data(PetersenCL)
write.csv(PetersenCL, file.path(commandArgs(TRUE)[1], "petersen.csv"), row.names = FALSE)
"""


@pytest.mark.slow
def test_petersens_firms_and_years_are_clustered_both_ways(tmp_path: Path) -> None:
    """Petersen's test data (Review of Financial Studies 22, 2009), 500 firms in ten years; PetersenCL of
    sandwich 3.0.2, 2026-11-29.

    He prints for the regression of y on x, by firm, year and both: x .0506, .0334, .0536; constant .0670, .0234, .0651.
    vcovCL(lm(y ~ 1), ~ firm) and so on give .075902567, .027693013, .074250707 for the mean. Of the slope it has
    .053558023, which is (n - 1) / (n - 2) of our variance: Hunch makes no allowance for the number of columns."""
    made = _in_r(PETERSEN, tmp_path, package="sandwich")
    firm, year = made["petersen"]["firm"], made["petersen"]["year"]
    x, y = numbers(made["petersen"], "x"), numbers(made["petersen"], "y")
    mean = [np.sqrt(bandit.clustered_variance((y - y.mean()) / y.size, *kinds)) for kinds in ((firm,), (year,))]
    assert mean == pytest.approx([0.075902567, 0.027693013], abs=5e-9)
    both = bandit.hajek(values=y, probability=np.full(y.size, 0.5), cluster=firm, item=year)
    assert both.standard_error == pytest.approx(0.074250707, abs=5e-9)
    columns = np.stack([x, np.ones(x.size)], axis=1)
    inverse = np.linalg.inv(columns.T @ columns)
    left = y - columns @ (inverse @ (columns.T @ y))
    added = columns * left[:, None] @ inverse
    for kinds, printed in (((firm,), [0.0506, 0.0670]), ((year,), [0.0334, 0.0234]), ((firm, year), [0.0536, 0.0651])):
        errors = np.sqrt(np.diag(bandit.clustered_covariance(added, *kinds)))
        assert errors == pytest.approx(printed, abs=0.00005), kinds
    assert errors[0] == pytest.approx(0.053558023 * np.sqrt(4998 / 4999), abs=5e-9)


# With predictions


def test_a_mean_with_predictions_is_that_of_ppi() -> None:
    """ppi_mean_pointestimate and ppi_mean_ci of ppi-python 0.2.3, on these 40 answers and 400 predictions, 2026-11-29:
    lam = 0: .4500000 (.0786607); lam = 1: .5000000 (.0648153); lam tuned, which is .857625: .4928813 (.0652111).

    Its variance of answers divides by n, ours by n - 1; its variance of the predictions is that of all 400, ours in a
    pool is the answered ones' (n = 40). Our coefficient is another by intent, 1.046: it is the slope over the answers
    alone, fitted without each answer's person and item, and shrunk. The interval then counts that it is uncertain."""
    place, of_all = np.arange(40), (np.arange(400) * 61 % 400 + 0.5) / 400
    predicted = (place * 37 % 40 + 0.5) / 40 * 0.9
    answers = (((place * 23 % 40) + 0.5) / 40 < predicted).astype(float)
    answered: dict[str, Any] = {"values": answers, "probability": np.full(40, 0.1), "cluster": place}
    off = predicted - of_all.mean()
    for lam, value, error in ((0, 0.45, 0.0786607), (1, 0.5, 0.0648153), (0.857625, 0.4928813, 0.0652111)):
        estimate = bandit.hajek(**answered, adjustment=lam * off)
        assert estimate.value == pytest.approx(value, abs=5e-8)
        of_answers, of_predictions = estimate.standard_error**2 * 39 / 40, lam**2 * of_all.var() / 400
        assert np.sqrt(of_answers + of_predictions) == pytest.approx(error, abs=5e-8)
        pool = bandit.hajek(**answered, adjustment=lam * off, candidates=400, universe_size=10**12)
        assert pool.standard_error == pytest.approx(error, rel=0.013)
    fitted = bandit.assist(
        values=answers,
        predictions=predicted,
        prediction_means=[of_all.mean()],
        stratum=np.zeros(40, dtype=int),
        weight=np.ones(40),
        cluster=place,
    )
    assert fitted.coefficient == pytest.approx([1.046], abs=0.0005)
    helped = bandit.hajek(**answered, adjustment=fitted.adjustment)
    assert (helped.value, helped.standard_error) == pytest.approx((0.502779, 0.0644985), abs=5e-7)


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
