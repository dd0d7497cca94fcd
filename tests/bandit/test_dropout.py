"""The test of leaving, weights by the chance of staying, and bounds: by hand, and as laws over simulated studies."""

import math
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

import bandit
from bandit import DesignError, Estimate, GivenItems, StageAnswers
from tests.bandit import leaving_cases
from tests.bandit.leaving_cases import AFTER_A_CHANGE, BY_TRAIT, INSTEAD, NOBODY_MORE, Leaving, Study, three_ways

STUDIES = 200  # The standard error of a coverage of 95 % is then 1.5 points.


@cache
def studies(leaving: Leaving, stream: int) -> tuple[Study, ...]:
    return tuple(
        leaving_cases.study(np.random.default_rng([stream, seed]), leaving, people=60, stages=2)
        for seed in range(STUDIES)
    )


def four_figures(
    leaving: Leaving, stream: int, *, of_task: bool
) -> tuple[list[Estimate], list[Estimate], list[tuple[float, float]], list[tuple[float, float]]]:
    """By study: plain, weighted for leaving, and the intervals of the bounds and of the worst case."""
    figures = [three_ways(study.task if of_task else study.everything) for study in studies(leaving, stream)]
    plain, stayed, bounds, worst = zip(*figures, strict=True)
    return [*plain], [*stayed], [*bounds], [*worst]


def cover(ends: Iterable[tuple[float, float]], *, of_task: bool = False) -> float:
    truth = leaving_cases.truth(of_task=of_task)
    return float(np.mean([low <= truth <= high for low, high in ends]))


# Both figures of the same studies in one test: in two processes these would be made twice.
EVERYTHING_AND_TASK = (False, True)


# The test


def test_the_test_is_mantels_and_haenszels() -> None:
    """Two strata: 6 of 20 changed against 2 of 30, and 4 of 10 against 6 of 30."""
    left, value, stratum = [], [], []
    for place, (a, n, c, m) in enumerate([(6, 20, 2, 30), (4, 10, 6, 30)]):
        left += [1] * a + [0] * (n - a) + [1] * c + [0] * (m - c)
        value += [1] * n + [0] * m
        stratum += [place] * (n + m)
    test_result = bandit.leaving_test(left=left, value=value, stratum=stratum)
    expected = 8 * 20 / 50 + 10 * 10 / 40
    variance = 8 * 42 * 20 * 30 / (50**2 * 49) + 10 * 30 * 10 * 30 / (40**2 * 39)
    z = (10 - expected) / math.sqrt(variance)
    assert test_result.p == pytest.approx(math.erfc(z / math.sqrt(2)))
    assert test_result.odds_ratio == pytest.approx((6 * 28 / 50 + 4 * 24 / 40) / (14 * 2 / 50 + 6 * 6 / 40))
    assert (test_result.at_risk, test_result.left) == (90, 18)
    assert (test_result.share_after, test_result.share_else) == (pytest.approx(10 / 30), pytest.approx(8 / 60))


@pytest.mark.parametrize(
    ("left", "value", "reason"),
    [
        ([1] * 9 + [0] * 40, [1, 0] * 24 + [1], "9 people left, fewer than 10"),
        ([1] * 10 + [0] * 40, [1] * 50, "all answers before leaving are alike"),
    ],
)
def test_p_is_withheld_with_the_reason(left: list[int], value: list[int], reason: str) -> None:
    test_result = bandit.leaving_test(left=left, value=value, stratum=[0] * len(left))
    assert test_result.p is None and test_result.reason == reason


def test_numbers_are_tested_by_their_sum() -> None:
    rng = np.random.default_rng(1)
    value = rng.normal(size=400)
    same = bandit.leaving_test(left=rng.random(400) < 0.2, value=value, stratum=np.arange(400) % 5)
    by_value = bandit.leaving_test(left=rng.random(400) < 0.2 + 0.3 * (value > 0), value=value, stratum=[0] * 400)
    assert same.p is not None and same.p > 0.05 and same.odds_ratio is None
    assert by_value.p is not None and by_value.p < 0.001


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
    chances = bandit.staying_chances(
        value=value, sitting=person, number=number, left=left, known=known, cluster=person, rng=rng
    )
    assert (chances[number == 1] == 1).all() and (chances > 0).all() and (chances <= 1).all()
    assert chances[(number == 4) & (value == 1)].max() < 0.3 < 0.9 < chances[(number == 4) & (value == 0)].min()
    weighted = bandit.stratified_mean(
        values=value, stratum=np.zeros(value.size, dtype=int), sizes=[100], cluster=person, staying=chances
    )
    assert (
        weighted.value == pytest.approx((value / chances).sum() / (1 / chances).sum()) and weighted.value > value.mean()
    )


def forty_people() -> dict[str, np.ndarray]:
    """What `staying_chances` gets of 40 people with up to 6 items, most of whom leave; some are still at it."""
    rng = np.random.default_rng(12)
    rows = []
    for person in range(40):
        for number in range(1, 7):
            value = float(rng.normal(person % 3))
            left = number < 6 and bool(rng.random() < 0.15 + 0.2 * (value > 1))
            rows.append((value, person, number, left, number < 6 and not (person % 7 == 0 and not left)))
            if left:
                break
    names = ("value", "sitting", "number", "left", "known")
    columns = dict(zip(names, map(np.array, zip(*rows, strict=True)), strict=True))
    return {**columns, "cluster": columns["sitting"]}


def staying(rows: dict[str, np.ndarray], **more: object) -> np.ndarray:
    return bandit.staying_chances(**{**rows, **more}, rng=np.random.default_rng(3))


def test_of_whom_nothing_is_known_says_nothing_about_leaving() -> None:
    rows = forty_people()
    assert (~rows["known"]).sum() > 10
    other = staying(rows, left=np.where(rows["known"], rows["left"], ~rows["left"]))
    assert other.tolist() == staying(rows).tolist()


def test_the_order_of_the_answers_changes_no_chance_of_staying() -> None:
    rows = forty_people()
    levels = np.column_stack([rows["sitting"] % 2, rows["sitting"] % 3])
    order = np.random.default_rng(4).permutation(rows["value"].size)
    mixed = {name: column[order] for name, column in rows.items()}
    assert staying(mixed, levels=levels[order]) == pytest.approx(staying(rows, levels=levels)[order], abs=1e-9)


@pytest.mark.parametrize("with_levels", [False, True])
def test_the_chances_are_those_of_a_plain_second_way_to_work_them_out(with_levels: bool) -> None:
    """Person by person, in the order in which the items were given. Only the fit of the regression is the same."""
    rows = forty_people()
    value, person, number = rows["value"], rows["sitting"], rows["number"]
    levels = np.column_stack([person % 2, person % 3])
    mean, deviation = value.mean(), value.std()
    columns = []
    for row in range(value.size):
        before = [value[other] for other in range(row) if person[other] == person[row]]
        past = (sum(before) + mean) / (len(before) + 1)  # One more answer, which is the mean of all.
        place = (number[row] - number.mean()) / number.std()
        own = [1, (value[row] - mean) / deviation, (past - mean) / deviation]
        columns.append([own[0], place, *own[1:]])
        if with_levels:  # Each level but a factor's first: another frequency, and another meaning of the answers.
            under = (levels[row, 0] == 1, levels[row, 1] == 1, levels[row, 1] == 2)
            columns[-1] += [column * is_under for is_under in under for column in own]
    table, fold = np.array(columns), np.random.default_rng(3).permutation(np.arange(40) % 5)
    expected = np.ones(value.size)
    for row in range(value.size):
        own = fold[person] == fold[person[row]]
        train = ~own & rows["known"]
        fitted = bandit.logistic.fit_logistic(
            columns=table[train],
            label=rows["left"][train].astype(float),
            precision=[1e-3, *[0.5] * (table.shape[1] - 1)],
        )
        for other in range(row):
            if person[other] == person[row]:
                expected[row] *= 1 - bandit.logistic.predict_logistic(table[[other]], fitted)[0]
    chances = staying(rows, levels=levels) if with_levels else staying(rows)
    assert chances == pytest.approx(np.maximum(expected, 0.02), abs=1e-9)


def test_no_answer_counts_more_than_50_times() -> None:
    """Of 400 people who leave after half of their answers, hardly anybody reaches the ninth item."""
    rng = np.random.default_rng(4)
    last = np.minimum(rng.geometric(0.5, 400), 9)
    person = np.repeat(np.arange(400), last)
    number = np.concatenate([np.arange(1, count + 1) for count in last])
    chances = bandit.staying_chances(
        value=np.ones(person.size),
        sitting=person,
        number=number,
        left=(number == last[person]) & (number < 9),
        known=number < 9,
        cluster=person,
        rng=rng,
    )
    assert 1 / chances.min() == pytest.approx(50) and 1 / chances[number == 5].max() < 20


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


@pytest.mark.thorough
@pytest.mark.slow
def test_weights_undo_what_leaving_after_a_change_does() -> None:
    for of_task in EVERYTHING_AND_TASK:
        plain, stayed, _bounds, _worst = four_figures(AFTER_A_CHANGE, 2, of_task=of_task)
        truth = leaving_cases.truth(of_task=of_task)
        values = np.array([estimate.value for estimate in stayed])
        assert np.mean([estimate.value for estimate in plain]) - truth < -0.015
        assert abs(values.mean() - truth) < 0.005 + 2 * values.std() / STUDIES**0.5 * of_task
        assert 0.93 <= cover([estimate.interval for estimate in stayed], of_task=of_task) <= 0.97


def test_leaving_may_depend_on_answers_under_one_level_alone() -> None:
    """Under level 1 everybody who answered 1 leaves; under level 0 as many leave, whatever they answered."""
    rng = np.random.default_rng(5)
    rows = []
    for person in range(300):
        level = person % 2
        for number in range(1, 5):
            value = float(rng.random() < 0.5)
            left = number < 4 and bool(rng.random() < (0.8 * value if level else 0.4))
            rows.append((value, person, number, left, number < 4, level))
            if left:
                break
    value, person, number, left, known, level = map(np.array, zip(*rows, strict=True))
    common = {"value": value, "sitting": person, "number": number, "left": left, "known": known, "cluster": person}
    chances = bandit.staying_chances(**common, rng=np.random.default_rng(1), levels=level[:, None])
    second, before = number == 2, np.roll(value, 1)
    means = {
        (level_value, said): chances[second & (level == level_value) & (before == said)].mean()
        for level_value in (0, 1)
        for said in (0, 1)
    }
    assert means[1, 0] > 0.9 and means[1, 1] < 0.35
    assert means[0, 0] == pytest.approx(0.6, abs=0.1) and means[0, 1] == pytest.approx(0.6, abs=0.1)
    everybody = bandit.staying_chances(**common, rng=np.random.default_rng(1))
    assert everybody[second & (level == 0) & (before == 0)].mean() > 0.7, "without levels it is a mean of both"
    with pytest.raises(DesignError, match="levels: need one of each factor"):
        bandit.staying_chances(**common, rng=rng, levels=level)


def test_an_effect_weighs_answers_by_the_chance_of_staying() -> None:
    rng = np.random.default_rng(4)
    values, staying = rng.random(80), rng.uniform(0.3, 1, 80)
    person, stratum = np.arange(80) // 4, np.arange(80) % 2
    first = person % 2 == 0
    common = {"values": values, "stratum": stratum, "sizes": [10, 30], "cluster": person}

    def mean(inside: np.ndarray) -> float:
        parts = [inside & (stratum == place) for place in (0, 1)]
        return float(np.dot([0.25, 0.75], [np.average(values[part], weights=1 / staying[part]) for part in parts]))

    effect = bandit.stratified_effect(**common, first=first, second=~first, staying=staying)
    assert effect.value == pytest.approx(mean(~first) - mean(first))
    same = bandit.stratified_effect(**common, first=first, second=~first, staying=np.full(80, 0.5))
    plain = bandit.stratified_effect(**common, first=first, second=~first)
    assert same.value == pytest.approx(plain.value) and same.standard_error == pytest.approx(plain.standard_error)


@cache
def of_two_levels() -> np.ndarray:
    """Studies in which nothing differs between two levels, but people leave one of them after a change: by study the
    plain difference, the one weighted for leaving, and the ends of the bounds."""
    rows = []
    for seed in range(300):
        rng = np.random.default_rng([17, seed])
        difference = leaving_cases.difference_of_levels(rng, Leaving(0.3, 0.02), NOBODY_MORE, people=60)
        assert difference.combined and difference.stayed and difference.bounds and difference.worst_case
        rows.append(
            [
                *(
                    difference.combined.value,
                    *difference.combined.interval,
                    difference.stayed.value,
                    *difference.stayed.interval,
                ),
                *(*difference.bounds.interval, *difference.worst_case.interval),
            ]
        )
    return np.array(rows)


@pytest.mark.thorough
def test_a_difference_between_levels_is_mended_where_people_leave_one_of_them() -> None:
    made = of_two_levels()
    error = made.std(axis=0) / len(made) ** 0.5
    assert made[:, 0].mean() > 0.02, "anyone who changed left, under the first level"
    assert abs(made[:, 3].mean()) < 0.005 + 2 * error[3]
    weighted, bounds, worst = (float(((made[:, at] <= 0) & (made[:, at + 1] >= 0)).mean()) for at in (4, 6, 8))
    assert 0.93 <= weighted <= 0.97 and bounds >= 0.93 and worst >= 0.93


def test_bounds_of_a_difference_let_the_sides_go_apart() -> None:
    def side(values: list[float], missing: int, first: int) -> bandit.Bounds:
        items = GivenItems(
            values=values,
            stratum=[0] * len(values),
            sizes=[100],
            cluster=np.arange(len(values)) // 2 + first,
            missing_stratum=[0] * missing,
            missing_cluster=np.arange(missing) + first,
        )
        return leaving_cases.bounds(stages=[items], odds_ratio=math.inf, share=True)

    first_side, other = side([0, 1, 0, 0, 1, 1], 2, 0), side([1, 1, 0, 1], 4, 10)
    narrow = other.lower.with_error(1e-3, 5.0)
    apart = bandit.difference_of_bounds(first_side, other, same_people=False, plain=narrow)
    together = bandit.difference_of_bounds(first_side, other, same_people=True, plain=narrow)
    assert (apart.lower.value, apart.upper.value) == pytest.approx((3 / 8 - 5 / 8, 7 / 8 - 3 / 8))
    assert apart.unanswered == 6 and apart.odds_ratio == math.inf
    errors = other.lower.standard_error, first_side.upper.standard_error
    assert apart.lower.standard_error == pytest.approx(math.hypot(*errors))
    assert together.lower.standard_error == pytest.approx(sum(errors))
    assert together.lower.degrees_of_freedom == 1 < apart.lower.degrees_of_freedom
    assert (apart.lower.n, apart.lower.n_clusters, together.lower.n_clusters) == (10, 5, 3)
    assert together.interval[0] < apart.interval[0] and apart.interval[1] < together.interval[1]


# Bounds


def test_bounds_of_a_share_are_those_of_the_odds_ratio() -> None:
    items = GivenItems(
        values=[1.0] * 30 + [0.0] * 70,
        stratum=[0] * 100,
        sizes=[1000],
        cluster=np.arange(100) % 20,
        missing_stratum=[0] * 50,
        missing_cluster=np.arange(50) % 20,
    )
    bounds = leaving_cases.bounds(stages=[items], share=True, odds_ratio=3)
    odds = 0.3 / 0.7
    assert bounds.upper.value == pytest.approx((30 + 50 * 3 * odds / (1 + 3 * odds)) / 150)
    assert bounds.lower.value == pytest.approx((30 + 50 * odds / (3 + odds)) / 150)
    assert bounds.interval[0] < bounds.lower.value < 0.3 < bounds.upper.value < bounds.interval[1]
    assert bounds.unanswered == 50
    worst = leaving_cases.bounds(stages=[items], share=True, odds_ratio=math.inf)
    assert (worst.lower.value, worst.upper.value) == (pytest.approx(0.2), pytest.approx(80 / 150))


def test_bounds_of_a_mean_are_the_farthest_of_all_cuts() -> None:
    rng = np.random.default_rng(4)
    value = rng.normal(size=60)
    items = GivenItems(
        values=value,
        stratum=[0] * 60,
        sizes=[500],
        cluster=np.arange(60),
        missing_stratum=[0] * 40,
        missing_cluster=np.arange(40),
    )
    bounds = leaving_cases.bounds(stages=[items], odds_ratio=2)
    tilted = [np.average(value, weights=np.where(value > cut, 2.0, 1.0)) for cut in value]
    assert bounds.upper.value == pytest.approx((60 * value.mean() + 40 * max(tilted)) / 100)
    assert bounds.lower.value < value.mean() < bounds.upper.value


def test_bounds_of_several_stages_put_sums_together_before_they_are_divided() -> None:
    """Two stages with half of the weight each. In the first one tenth of the items is of the task, in the second one
    half, so that the second decides more of the task's figure."""
    first = GivenItems(
        values=[1.0] * 6 + [0.0] * 74,
        domain=[True] * 8 + [False] * 72,
        stratum=[0] * 80,
        sizes=[1000],
        cluster=np.arange(80) % 10,
        missing_stratum=[0] * 20,
        missing_cluster=np.arange(20) % 10,
        missing_domain=[True] * 2 + [False] * 18,
    )
    second = GivenItems(
        values=[1.0] * 10 + [0.0] * 70,
        domain=[True] * 40 + [False] * 40,
        stratum=[0] * 80,
        sizes=[1000],
        cluster=np.arange(80) % 10,
        missing_stratum=[0] * 20,
        missing_cluster=np.arange(20) % 10,
        missing_domain=[True] * 10 + [False] * 10,
    )
    bounds = leaving_cases.bounds(stages=[first, second], plan_weights=[3, 3], share=True, odds_ratio=math.inf)
    assert bounds.lower.value == pytest.approx((0.5 * 0.06 + 0.5 * 0.10) / (0.5 * 0.1 + 0.5 * 0.5))
    assert bounds.upper.value == pytest.approx((0.5 * 0.08 + 0.5 * 0.20) / (0.5 * 0.1 + 0.5 * 0.5))
    assert (bounds.unanswered, bounds.upper.n, bounds.upper.n_clusters) == (12, 48, 18)
    pooled = [
        StageAnswers(
            values=stage.values, stratum=stage.stratum, sizes=stage.sizes, cluster=stage.cluster, inside=stage.domain
        )
        for stage in (replace(first, domain=np.array(first.domain)), replace(second, domain=np.array(second.domain)))
    ]
    plain = bandit.pooled_mean(stages=pooled, plan_weights=[3, 3], share=True)
    none_lost = [replace(stage, missing_stratum=[], missing_cluster=[], missing_domain=[]) for stage in (first, second)]
    same = leaving_cases.bounds(stages=none_lost, plan_weights=[3, 3], share=True)
    assert same.lower.value == same.upper.value == pytest.approx(plain.value)


def test_nothing_answered_in_a_stratum_leaves_its_unanswered_items_the_whole_range() -> None:
    common = {
        "values": [1.0, 0.0, 1.0, 0.0],
        "domain": [True, True, True, False],
        "stratum": [0, 0, 0, 1],
        "sizes": [10, 30],
        "cluster": [1, 2, 3, 4],
        "missing_stratum": [1],
        "missing_cluster": [4],
        "missing_domain": [True],
    }
    bounds = leaving_cases.bounds(stages=[GivenItems(**common)], share=True, odds_ratio=2)
    # All of the top and half of the rest are inside: 10 and 15 candidates.
    assert bounds.lower.value == pytest.approx(10 * (2 / 3) / 25)
    assert bounds.upper.value == pytest.approx((10 * (2 / 3) + 15) / 25)
    # Without a range nothing can be said of them.
    points = leaving_cases.bounds(stages=[GivenItems(**common)], odds_ratio=2)
    assert points.lower.value == points.upper.value == pytest.approx(2 / 3)


def test_bounds_of_nothing_are_refused() -> None:
    items = GivenItems(values=[], stratum=[], sizes=[9], cluster=[], missing_stratum=[0], missing_cluster=[1])
    plain = bandit.naive_mean(values=[0.0, 1.0], cluster=[1, 2], share=True)
    with pytest.raises(DesignError, match="no answer lies in it"):
        bandit.bounds(stages=[items], plain=plain, share=True)


@pytest.mark.parametrize("rest", [40, 3])
@pytest.mark.parametrize("odds_ratio", [2.0, math.inf])
def test_with_nothing_lost_the_bounds_are_the_plain_estimate(rest: int, odds_ratio: float) -> None:
    """Where people differ, and where the least variance of a mean decides: few answers in nine tenths of the items."""
    rng = np.random.default_rng(5)
    n = 80 + rest
    common = {
        "values": (rng.random(n) < np.where(np.arange(n) % 15 < 7, 0.1, 0.9)).astype(float),
        "stratum": np.repeat([0, 1], [80, rest]),
        "sizes": [30, 270],
        "cluster": np.arange(n) % 15,
        "domain": rng.random(n) < 0.8,
        "universe_size": 900,
    }
    for share in (True, False):
        plain = bandit.stratified_mean(**common, share=share)
        items = GivenItems(**common, missing_stratum=[], missing_cluster=[])
        ends = bandit.bounds(stages=[items], plain=plain, share=share, odds_ratio=odds_ratio, span=(0, 1))
        for end in (ends.lower, ends.upper):
            assert end.value == pytest.approx(plain.value) and end.standard_error == pytest.approx(plain.standard_error)
            assert end.interval == pytest.approx(plain.interval)


@pytest.mark.thorough
@pytest.mark.parametrize("odds_ratio", [1.0, 2.0, math.inf])
def test_bounds_contain_the_plain_interval(odds_ratio: float) -> None:
    """Anyone who allows for missing answers claims less: with few answers in nine tenths of the items, with chances of
    their own, and inside a part; of shares and of means that a few answers decide."""
    for seed in range(40):
        rng = np.random.default_rng([23, seed])
        n, m = 90, 12
        common = {
            "stratum": np.repeat([0, 1], [n - 4, 4]),
            "sizes": [120, 1080],
            "cluster": rng.permutation(n) % 18,
            "missing_stratum": rng.integers(0, 2, m),
            "missing_cluster": rng.integers(0, 18, m),
        }
        changed = (rng.random(n) < 0.4).astype(float)
        chances = {
            "stratum": np.zeros(n, dtype=int),
            "sizes": [1200],
            "missing_stratum": np.zeros(m, dtype=int),
            "weight": rng.uniform(1, 20, n),
            "missing_weight": rng.uniform(1, 20, m),
        }
        inside = {"domain": rng.random(n) < 0.5, "missing_domain": rng.random(m)}
        for values, share in ((changed, True), (changed * rng.choice([2.0, 60.0], n, p=[0.9, 0.1]), False)):
            for more in ({}, inside, chances, {**chances, **inside}):
                items = GivenItems(values=values, **{**common, **more})
                plain = leaving_cases.plain_of([items], share=share)
                ends = bandit.bounds(
                    stages=[items],
                    plain=plain,
                    share=share,
                    odds_ratio=odds_ratio,
                    span=(0, 1) if share else (0, 100),
                )
                (low, high), (plain_low, plain_high) = ends.interval, plain.interval
                assert low <= plain_low and plain_high <= high, (seed, share, more.keys())


def test_a_mean_in_which_nothing_varies_has_no_bounds() -> None:
    items = GivenItems(
        values=[2.0] * 6,
        stratum=[0] * 6,
        sizes=[90],
        cluster=np.arange(6) // 2,
        missing_stratum=[0] * 2,
        missing_cluster=[0, 1],
    )
    assert all(map(math.isnan, leaving_cases.bounds(stages=[items], odds_ratio=math.inf, span=(0, 9)).interval))


def test_two_stages_alike_have_the_error_of_one_by_the_root_of_2() -> None:
    """Of both sources of error: the people, and a pool that is small next to all candidates."""
    rng = np.random.default_rng(15)
    given_items = GivenItems(
        values=np.where(np.arange(90) % 3 == 0, 6.0, 0.0) + rng.normal(size=90),
        stratum=np.arange(90) % 3,
        sizes=[5, 5, 5],
        cluster=np.arange(90) // 3,
        missing_stratum=[0, 1, 2],
        missing_cluster=[1, 2, 3],
        universe_size=900,
    )
    alone = leaving_cases.bounds(stages=[given_items], odds_ratio=2)
    both = leaving_cases.bounds(stages=[given_items, given_items], plan_weights=[1, 1], odds_ratio=2)
    without_pool = leaving_cases.bounds(stages=[replace(given_items, universe_size=None)], odds_ratio=2)
    for end in ("lower", "upper"):
        whole, half, people = (getattr(bounds, end) for bounds in (alone, both, without_pool))
        assert half.value == pytest.approx(whole.value)
        assert half.standard_error == pytest.approx(whole.standard_error / math.sqrt(2))
        assert whole.standard_error > 2 * people.standard_error


def test_unequal_chances_are_weighted_in_bounds_too() -> None:
    rng = np.random.default_rng(6)
    chance = rng.uniform(0.05, 0.9, 90)
    common = {"values": rng.normal(size=90) + 3 * (np.arange(90) % 18 % 3), "cluster": np.arange(90) % 18}
    plain = bandit.hajek(**common, probability=chance)
    items = GivenItems(
        **common, stratum=[0] * 90, sizes=[400], weight=1 / chance, missing_stratum=[], missing_cluster=[]
    )
    bounds = leaving_cases.bounds(stages=[items])
    assert bounds.upper.value == pytest.approx(plain.value)
    assert bounds.upper.standard_error == pytest.approx(plain.standard_error)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"odds_ratio": 0.5}, "odds_ratio: must be at least 1"),
        ({"odds_ratio": math.inf}, "span: worst-case bounds need"),
        ({"plan_weights": [1, 1]}, "plan_weights: need a number of at least 0 for each of 1 stages"),
    ],
)
def test_bounds_refuse_what_is_no_assumption(changes: dict[str, float], message: str) -> None:
    items = GivenItems(
        values=[0.5, 2], stratum=[0, 0], sizes=[5], cluster=[1, 2], missing_stratum=[0], missing_cluster=[1]
    )
    plain = leaving_cases.plain_of([items])
    with pytest.raises(DesignError, match=message):
        bandit.bounds(stages=[items], plain=plain, **changes)


@pytest.mark.thorough
def test_bounds_hold_where_people_leave_instead_of_answering() -> None:
    """Neither the plain figure nor the weights can know: only the bounds hold."""
    for of_task in EVERYTHING_AND_TASK:
        plain, stayed, bounds, worst = four_figures(INSTEAD, 3, of_task=of_task)
        assert cover([estimate.interval for estimate in plain], of_task=of_task) < 0.85
        assert cover([estimate.interval for estimate in stayed], of_task=of_task) < 0.9
        assert cover(bounds, of_task=of_task) >= 0.93
        assert cover(worst, of_task=of_task) >= 0.93


@pytest.mark.thorough
@pytest.mark.slow
def test_weights_do_little_where_people_leave_by_a_trait_and_bounds_hold() -> None:
    """Who changes easily leaves more often whatever they have just answered. The documents say so."""
    made = [
        three_ways(leaving_cases.study(np.random.default_rng([4, seed]), BY_TRAIT, people=60, stages=2).everything)
        for seed in range(60)
    ]
    truth = leaving_cases.truth()
    plain, stayed = (float(np.mean([study_figures[place].value for study_figures in made])) - truth for place in (0, 1))
    assert plain < stayed < -0.02
    assert cover([study_figures[2] for study_figures in made]) >= 0.9


@pytest.mark.thorough
def test_without_dependence_all_of_them_hold_and_the_test_is_as_large_as_it_says() -> None:
    p = [study.test for study in studies(NOBODY_MORE, 1)]
    assert 0.03 <= np.mean([value is not None and value < 0.05 for value in p]) <= 0.07
    for of_task in EVERYTHING_AND_TASK:
        plain, stayed, bounds, _worst = four_figures(NOBODY_MORE, 1, of_task=of_task)
        for figures in (plain, stayed):
            assert 0.93 <= cover([figure.interval for figure in figures], of_task=of_task) <= 0.97
        assert cover(bounds, of_task=of_task) >= 0.93
        # All three are about the same figure.
        for name, own in (
            ("weighted", [estimate.value for estimate in stayed]),
            ("bounds", [np.mean(ends) for ends in bounds]),
        ):
            assert np.mean(own) == pytest.approx(np.mean([estimate.value for estimate in plain]), abs=0.01), name


def test_fewer_than_10_people_give_no_weights_however_many_of_them_left() -> None:
    """Nine people, who left twelve times: in several sittings each."""
    sitting = np.arange(18)
    known = {"sitting": sitting, "number": np.ones(18), "known": np.ones(18, dtype=bool)}
    rows = {**known, "value": sitting % 2, "left": sitting < 12, "rng": np.random.default_rng(1)}
    with pytest.raises(DesignError, match="12 of 9 people left"):
        bandit.staying_chances(**rows, cluster=sitting % 9)
    assert bandit.staying_chances(**rows, cluster=sitting % 10).size == 18


def error_by_hand(items: GivenItems, side: str, **options: Any) -> float:
    """The standard error of an end of the bounds, by what a person more or less of each kind would change."""

    def value(person: int | None, change: float) -> float:
        weights = [
            np.where(np.asarray(who) == person, 1 + change, 1.0) * (1.0 if own is None else np.asarray(own))
            for who, own in ((items.cluster, items.weight), (items.missing_cluster, items.missing_weight))
        ]
        changed = replace(items, weight=weights[0], missing_weight=weights[1])
        return float(getattr(bandit.bounds(stages=[changed], **options), side).value)

    people = np.unique(items.cluster)
    step = 1e-5
    slopes = [(value(person, step) - value(person, -step)) / (2 * step) for person in people.tolist()]
    return math.sqrt(people.size / (people.size - 1) * np.dot(slopes, slopes))


@pytest.mark.parametrize("odds_ratio", [2.0, math.inf])
def test_the_error_of_bounds_is_what_the_people_change(odds_ratio: float) -> None:
    rng = np.random.default_rng(8)
    items = GivenItems(
        values=rng.normal(size=90) + np.arange(90) % 15 / 3,
        stratum=np.repeat([0, 1], [50, 40]),
        sizes=[300, 700],
        cluster=np.arange(90) % 15,
        domain=rng.random(90) < 0.7,
        missing_stratum=np.arange(40) % 2,
        missing_cluster=np.arange(40) % 7,
        missing_domain=rng.random(40),
    )
    # Of a plain figure that no least variance made wider.
    plain = leaving_cases.plain_of([items]).with_error(1e-6, 14)
    bounds = bandit.bounds(stages=[items], plain=plain, odds_ratio=odds_ratio, span=(-9, 9))
    for side in ("lower", "upper"):
        by_hand = error_by_hand(items, side, plain=plain, odds_ratio=odds_ratio, span=(-9, 9))
        assert getattr(bounds, side).standard_error == pytest.approx(by_hand, rel=1e-4), side
        assert getattr(bounds, side).degrees_of_freedom == 14


def test_a_stage_without_weight_is_in_no_bounds() -> None:
    def given(value: float) -> GivenItems:
        return GivenItems(
            values=[value, value + 1, value, value + 2],
            stratum=[0] * 4,
            sizes=[9],
            cluster=[1, 2, 3, 4],
            missing_stratum=[0],
            missing_cluster=[1],
        )

    plain = leaving_cases.plain_of([given(3.0)])
    alone = bandit.bounds(stages=[given(3.0)], plain=plain)
    both = bandit.bounds(stages=[given(3.0), given(90.0)], plan_weights=[2, 0], plain=plain)
    assert (both.lower, both.upper, both.unanswered) == (alone.lower, alone.upper, 1)
    assert alone.upper.value > alone.lower.value > 1


def test_people_who_answer_one_item_make_the_bounds_as_wide_as_the_figure() -> None:
    """Few items that many answered: then they decide the error and its degrees of freedom."""
    rng = np.random.default_rng(13)
    item = np.arange(120) % 5
    common = {
        "values": rng.normal(size=120) + 3.0 * item,
        "stratum": np.zeros(120, dtype=int),
        "sizes": [10_000],
        "cluster": np.arange(120) // 5,
        "item": item,
    }
    items = GivenItems(**common, missing_stratum=[], missing_cluster=[])
    plain = bandit.stratified_mean(**common).with_error(1e-6, 99)
    bounds = bandit.bounds(stages=[items], plain=plain)
    own = (common["values"] - common["values"].mean()) / 120
    by_person, by_item = (
        size / (size - 1) * sum(own[who == number].sum() ** 2 for number in range(size))
        for who, size in ((common["cluster"], 24), (item, 5))
    )
    expected = by_person + by_item - 120 / 119 * np.dot(own, own)
    assert bounds.upper.standard_error == pytest.approx(math.sqrt(expected))
    assert bounds.upper.degrees_of_freedom == 4
