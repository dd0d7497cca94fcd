"""The test of leaving, weights by the chance of staying, and bounds: by hand, and as laws over simulated studies."""

import math
from functools import cache

import numpy as np
import pytest

import bandit
from bandit import DesignError
from tests.bandit import leaving_cases
from tests.bandit.leaving_cases import AFTER_A_CHANGE, INSTEAD, NOBODY_MORE, Leaving, Study

STUDIES = 400


@cache
def studies(leaving: Leaving, stream: int) -> tuple[Study, ...]:
    return tuple(
        leaving_cases.study(np.random.default_rng([stream, seed]), leaving, people=60, stages=2)
        for seed in range(STUDIES)
    )


def cover(ends: list[tuple[float, float]]) -> float:
    truth = leaving_cases.truth()
    return float(np.mean([low <= truth <= high for low, high in ends]))


# The test


def test_the_test_is_mantels_and_haenszels() -> None:
    """Two strata: 6 of 20 changed against 2 of 30, and 4 of 10 against 6 of 30."""
    left, value, stratum = [], [], []
    for place, (a, n, c, m) in enumerate([(6, 20, 2, 30), (4, 10, 6, 30)]):
        left += [1] * a + [0] * (n - a) + [1] * c + [0] * (m - c)
        value += [1] * n + [0] * m
        stratum += [place] * (n + m)
    found = bandit.leaving_test(left=left, value=value, stratum=stratum)
    expected = 8 * 20 / 50 + 10 * 10 / 40
    variance = 8 * 42 * 20 * 30 / (50**2 * 49) + 10 * 30 * 10 * 30 / (40**2 * 39)
    z = (10 - expected) / math.sqrt(variance)
    assert found.p == pytest.approx(math.erfc(z / math.sqrt(2)))
    assert found.odds_ratio == pytest.approx((6 * 28 / 50 + 4 * 24 / 40) / (14 * 2 / 50 + 6 * 6 / 40))
    assert (found.at_risk, found.left) == (90, 18)
    assert (found.share_after, found.share_else) == (pytest.approx(10 / 30), pytest.approx(8 / 60))


@pytest.mark.parametrize(
    ("left", "value", "reason"),
    [
        ([1] * 9 + [0] * 40, [1, 0] * 24 + [1], "9 people left, fewer than 10"),
        ([1] * 10 + [0] * 40, [1] * 50, "all answers before leaving are alike"),
    ],
)
def test_p_is_withheld_with_the_reason(left: list[int], value: list[int], reason: str) -> None:
    found = bandit.leaving_test(left=left, value=value, stratum=[0] * len(left))
    assert found.p is None and found.reason == reason


def test_numbers_are_tested_by_their_sum() -> None:
    rng = np.random.default_rng(1)
    value = rng.normal(size=400)
    same = bandit.leaving_test(left=rng.random(400) < 0.2, value=value, stratum=np.arange(400) % 5)
    by_value = bandit.leaving_test(left=rng.random(400) < 0.2 + 0.3 * (value > 0), value=value, stratum=[0] * 400)
    assert same.p is not None and same.p > 0.05 and same.odds_ratio is None
    assert by_value.p is not None and by_value.p < 0.001


def test_the_test_is_as_large_as_it_says() -> None:
    p = [one.test for one in studies(NOBODY_MORE, 1)]
    assert 0.03 <= np.mean([value is not None and value < 0.05 for value in p]) <= 0.07


# Weights


def test_who_was_sure_to_stay_weighs_less_than_who_was_not() -> None:
    """20 people of 60 answer 1 every time and leave half as often as not after each; the others stay."""
    rng = np.random.default_rng(2)
    rows = []
    for person in range(60):
        changes = person < 20
        for number in range(1, 6):
            left = number < 5 and changes and bool(rng.random() < 0.5)
            rows.append((float(changes), person, number, left, number < 5))
            if left:
                break
    value, person, number, left, known = map(np.array, zip(*rows, strict=True))
    found = bandit.staying_chances(
        value=value, sitting=person, number=number, left=left, known=known, cluster=person, rng=rng
    )
    assert (found[number == 1] == 1).all() and (found > 0).all() and (found <= 1).all()
    assert found[(number == 4) & (value == 1)].max() < 0.3 < 0.9 < found[(number == 4) & (value == 0)].min()
    weighted = bandit.stratified_mean(
        values=value, stratum=np.zeros(value.size, dtype=int), sizes=[100], cluster=person, staying=found
    )
    assert weighted.value == pytest.approx((value / found).sum() / (1 / found).sum()) and weighted.value > value.mean()


def test_equal_chances_of_staying_change_nothing() -> None:
    rng = np.random.default_rng(3)
    stratum = np.repeat([0, 1], [40, 60])
    common = {"values": rng.random(100), "stratum": stratum, "sizes": [10, 90], "cluster": np.arange(100) % 12}
    plain = bandit.stratified_mean(**common)
    same = bandit.stratified_mean(**common, staying=np.full(100, 0.4))
    assert same.value == pytest.approx(plain.value) and same.standard_error == pytest.approx(plain.standard_error)


def test_too_few_people_who_left_give_no_weights() -> None:
    with pytest.raises(DesignError, match="0 of 3 people left; weights need at least 10 of 10"):
        bandit.staying_chances(
            value=[1, 0, 1],
            sitting=[1, 2, 3],
            number=[1, 1, 1],
            left=[False] * 3,
            known=[True] * 3,
            cluster=[1, 2, 3],
            rng=np.random.default_rng(1),
        )


def test_weights_undo_what_leaving_after_a_change_does() -> None:
    found, truth = studies(AFTER_A_CHANGE, 2), leaving_cases.truth()
    assert np.mean([one.plain.value for one in found]) - truth < -0.015
    assert abs(np.mean([one.stayed.value for one in found]) - truth) < 0.005
    assert 0.93 <= cover([one.stayed.interval for one in found]) <= 0.97


# Bounds


def test_bounds_of_a_share_are_those_of_the_odds_ratio() -> None:
    arguments = {
        "values": [1.0] * 30 + [0.0] * 70,
        "stratum": [0] * 100,
        "sizes": [1000],
        "cluster": np.arange(100) % 20,
        "missing_stratum": [0] * 50,
        "missing_cluster": np.arange(50) % 20,
        "share": True,
    }
    found = bandit.bounds(**arguments, odds_ratio=3)
    odds = 0.3 / 0.7
    assert found.upper.value == pytest.approx((30 + 50 * 3 * odds / (1 + 3 * odds)) / 150)
    assert found.lower.value == pytest.approx((30 + 50 * odds / (3 + odds)) / 150)
    assert found.interval[0] < found.lower.value < 0.3 < found.upper.value < found.interval[1]
    assert found.unanswered == 50
    worst = bandit.bounds(**arguments, odds_ratio=math.inf)
    assert (worst.lower.value, worst.upper.value) == (pytest.approx(0.2), pytest.approx(80 / 150))


def test_bounds_of_a_mean_are_the_farthest_of_all_cuts() -> None:
    rng = np.random.default_rng(4)
    value = rng.normal(size=60)
    found = bandit.bounds(
        values=value,
        stratum=[0] * 60,
        sizes=[500],
        cluster=np.arange(60),
        missing_stratum=[0] * 40,
        missing_cluster=np.arange(40),
        odds_ratio=2,
    )
    tilted = [np.average(value, weights=np.where(value > cut, 2.0, 1.0)) for cut in value]
    assert found.upper.value == pytest.approx((60 * value.mean() + 40 * max(tilted)) / 100)
    assert found.lower.value < value.mean() < found.upper.value


def test_with_nothing_lost_the_bounds_are_the_plain_estimate() -> None:
    rng = np.random.default_rng(5)
    stratum = np.repeat([0, 1], [80, 40])
    common = {
        # People differ, so that the least variance of a mean does not matter.
        "values": (rng.random(120) < np.where(np.arange(120) % 15 < 7, 0.1, 0.9)).astype(float),
        "stratum": stratum,
        "sizes": [30, 270],
        "cluster": np.arange(120) % 15,
        "domain": rng.random(120) < 0.6,
        "universe_size": 900,
        "share": True,
    }
    plain = bandit.stratified_mean(**common)
    found = bandit.bounds(**common, missing_stratum=[], missing_cluster=[])
    for end in (found.lower, found.upper):
        assert end.value == pytest.approx(plain.value) and end.standard_error == pytest.approx(plain.standard_error)
        assert end.interval == pytest.approx(plain.interval)


def test_unequal_chances_are_weighted_in_bounds_too() -> None:
    rng = np.random.default_rng(6)
    chance = rng.uniform(0.05, 0.9, 90)
    common = {"values": rng.normal(size=90) + 3 * (np.arange(90) % 18 % 3), "cluster": np.arange(90) % 18}
    plain = bandit.hajek(**common, probability=chance)
    found = bandit.bounds(
        **common, stratum=[0] * 90, sizes=[400], weight=1 / chance, missing_stratum=[], missing_cluster=[]
    )
    assert found.upper.value == pytest.approx(plain.value)
    assert found.upper.standard_error == pytest.approx(plain.standard_error)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"odds_ratio": 0.5}, "odds_ratio: must be at least 1"),
        ({"odds_ratio": math.inf}, "span: worst-case bounds need"),
    ],
)
def test_bounds_refuse_what_is_no_assumption(changes: dict[str, float], message: str) -> None:
    with pytest.raises(DesignError, match=message):
        bandit.bounds(
            values=[0.5, 2],
            stratum=[0, 0],
            sizes=[5],
            cluster=[1, 2],
            missing_stratum=[0],
            missing_cluster=[1],
            **changes,
        )


def test_bounds_hold_where_people_leave_instead_of_answering() -> None:
    """Neither the plain figure nor the weights can know: only the bounds hold."""
    found = studies(INSTEAD, 3)
    assert cover([one.plain.interval for one in found]) < 0.7
    assert cover([one.stayed.interval for one in found]) < 0.85
    assert cover([one.bounds for one in found]) >= 0.93
    assert cover([one.worst for one in found]) >= 0.93


def test_without_dependence_all_of_them_hold() -> None:
    found = studies(NOBODY_MORE, 1)
    assert 0.93 <= cover([one.plain.interval for one in found]) <= 0.97
    assert 0.93 <= cover([one.stayed.interval for one in found]) <= 0.97
    assert cover([one.bounds for one in found]) >= 0.93
