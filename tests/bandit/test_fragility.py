"""A small set of rows whose loss changes a ranking: found by influence, confirmed by fitting again."""

from itertools import combinations

import numpy as np
import pytest

from bandit.bradley_terry import fit_bradley_terry
from bandit.errors import DesignError
from bandit.fragility import fragile_bradley_terry, fragile_means, fragile_sums, in_words


def duels(n, strengths, *, seed=1, side=0.0, ties=0.0):
    rng = np.random.default_rng(seed)
    k = len(strengths)
    first = rng.integers(k, size=n)
    second = (first + 1 + rng.integers(k - 1, size=n)) % k
    chance = 1 / (1 + np.exp(-(strengths[first] - strengths[second] + side)))
    outcome = (rng.random(n) < chance).astype(float)
    outcome[rng.random(n) < ties] = 0.5
    return {"first": first, "second": second, "outcome": outcome, "names": k}


def without(data, rows, **more):
    """The fit where rows do not count. The others keep their scale, which without weights needs a smaller ridge."""
    rest = np.setdiff1d(np.arange(len(data["outcome"])), rows)
    part = {name: value[rest] if np.ndim(value) else value for name, value in data.items()}
    return fit_bradley_terry(**part, **more)


def test_two_names_have_the_log_odds_of_their_wins():
    fit = fit_bradley_terry(
        first=[0, 0, 0, 1], second=[1, 1, 1, 0], outcome=[1, 1, 0, 0], names=2, ridge=0.0, side=False
    )
    assert fit.theta[0] - fit.theta[1] == pytest.approx(np.log(3))
    assert fit.side == 0


def test_swapping_all_sides_turns_the_side_and_keeps_the_strengths():
    data = duels(3000, np.array([0.6, 0.1, -0.7]), side=0.4, ties=0.1)
    swapped = {**data, "first": data["second"], "second": data["first"], "outcome": 1 - data["outcome"]}
    fit, other = fit_bradley_terry(**data), fit_bradley_terry(**swapped)
    assert other.theta == pytest.approx(fit.theta, abs=1e-8)
    assert other.side == pytest.approx(-fit.side, abs=1e-8)
    assert fit.side == pytest.approx(0.4, abs=0.15)


def test_a_row_counts_as_often_as_its_weight_says():
    data = duels(200, np.array([0.3, 0.0, -0.3]))
    weight = np.tile([1, 3], 100)
    repeated = {name: np.repeat(value, weight) if np.ndim(value) else value for name, value in data.items()}
    # Weights are scaled to mean 1, and so is the ridge next to them.
    fit = fit_bradley_terry(**data, weight=weight, ridge=0.1)
    other = fit_bradley_terry(**repeated, ridge=0.2)
    assert fit.theta == pytest.approx(other.theta, abs=1e-8)


@pytest.mark.parametrize("ties", [0.0, 0.2])
def test_the_rows_it_names_turn_each_pair_of_neighbours_and_one_less_does_not(ties):
    data = duels(2000, np.array([0.3, 0.25, 0.0, -0.4]), ties=ties)
    fragility = fragile_bradley_terry(**data, ridge=0.1)
    assert [fragility.order[0], fragility.order[-1]] == [fragility.neighbours[0].ahead, fragility.neighbours[-1].behind]
    for pair in fragility.neighbours:
        after = without(data, pair.rows)
        assert after.theta[pair.ahead] < after.theta[pair.behind]
        assert after.theta[pair.ahead] - after.theta[pair.behind] == pytest.approx(pair.margin_after, abs=1e-6)
        before = without(data, pair.rows[:-1])
        assert before.theta[pair.ahead] >= before.theta[pair.behind]
        assert pair.share == pair.count / 2000


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_in_small_sets_it_is_as_short_as_the_best_of_all_sets(seed):
    data = duels(14, np.array([0.4, 0.0, -0.2]), seed=seed)
    fragility = fragile_bradley_terry(**data, side=False, ridge=0.5)
    pair = fragility.neighbours[0]
    shortest = next(
        size
        for size in range(1, 15)
        for lost in combinations(range(14), size)
        if (after := strengths_without(data, lost))[pair.ahead] < after[pair.behind] - 1e-12
    )
    assert pair.count is not None
    assert pair.count >= shortest
    assert pair.count <= shortest + 1


def strengths_without(data, lost):
    weight = np.ones(14)
    weight[list(lost)] = 0
    if not weight.any():
        return np.zeros(3)
    try:
        return fit_bradley_terry(**data, weight=weight, side=False, ridge=0.5).theta
    except DesignError:
        return np.zeros(3)  # Not connected any more.


def test_the_first_place_is_what_turns_soonest_whoever_comes_next():
    # The second is just behind by many rows, the third far behind but by few rows of great weight.
    values = np.full((1000, 3), np.nan)
    values[:, 0] = 0.6
    values[:, 1] = np.r_[np.full(900, 0.59), np.full(100, 0.6)]
    values[:40, 2] = np.r_[np.full(38, 0.61), 0.0, 0.0]
    fragility = fragile_means(values=values)
    assert fragility.order.tolist() == [0, 1, 2]
    assert (fragility.first.behind, fragility.first.count) == (2, 2)


def test_means_are_turned_by_the_rows_that_carry_them():
    values = np.array([[1.0, 0.0]] * 3 + [[0.0, 0.0]] * 50 + [[0.0, 1.0]])
    fragility = fragile_means(values=values)
    pair = fragility.neighbours[0]
    assert (pair.ahead, pair.behind, pair.count) == (0, 1, 3)
    assert sorted(pair.rows.tolist()) == [0, 1, 2]
    assert pair.margin == pytest.approx(2 / 54)
    assert pair.margin_after == pytest.approx(-1 / 51)


def test_weights_count_by_name():
    values = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    assert fragile_means(values=values, weight=[1.0, 5.0, 2.0]).neighbours[0].rows.tolist() == [1]
    both = np.array([[0.0, 1.0], [1.0, 1.0], [1.0, 0.0]])
    with pytest.raises(DesignError, match="name 1 has none"):
        fragile_means(values=values, weight=both * [1.0, 0.0])


def test_rows_that_count_for_nothing_are_no_part_of_the_share():
    values = np.array([[1.0, 0.0]] * 3 + [[0.0, 1.0]] * 2)
    pair = fragile_means(values=values).neighbours[0]
    padded = np.concatenate([values, [[0.5, 0.5]] * 5])
    for weight in (np.repeat([1.0, 0.0], 5), np.repeat([[1.0, 1.0], [0.0, 0.0]], 5, axis=0)):
        padded_pair = fragile_means(values=padded, weight=weight).neighbours[0]
        assert (padded_pair.count, padded_pair.share) == (pair.count, pair.share) == (2, 0.4)


def test_what_nothing_can_turn_has_no_set():
    pair = fragile_means(values=np.array([[1.0, 0.0]] * 5)).neighbours[0]
    assert pair.rows is None
    assert pair.count is None
    assert "No set of answers" in next(in_words(fragile_means(values=[[1.0, 0.0]] * 5), "ab", unit="answers"))


def test_one_name_has_no_neighbours():
    fragility = fragile_means(values=[[1.0], [0.0]])
    assert fragility.first is None
    assert not fragility.neighbours
    assert list(in_words(fragility, ["alone"])) == []


def test_it_says_that_it_is_an_upper_bound():
    fragility = fragile_means(values=np.array([[1.0, 0.0]] * 3 + [[0.0, 1.0]] * 2))
    (sentence,) = in_words(fragility, ["A", "B"], unit="pairs")
    assert sentence.startswith("Without 2 of the pairs (40 %) B would be ahead of A")
    assert "upper bound" in sentence


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"second": np.array([0, 2, 0])}, "second: row 0"),
        ({"first": np.array([0, 1, 5])}, "first: must be whole numbers from 0 to 2"),
        ({"outcome": np.array([0.0, 1.0, 2.0])}, "outcome: must lie"),
        ({"outcome": np.array([0.0, 1.0])}, "shapes"),
        ({"weight": np.array([0.0, 0.0, 0.0])}, "weight: must be"),
        ({"ridge": -1.0}, "ridge: -1.0 is below 0"),
        ({"second": np.array([1, 0, 1])}, "no judgements connect the names 2"),
        ({"outcome": np.array([1.0, 1.0, 0.0]), "ridge": 0.0}, "give a ridge"),
    ],
)
def test_it_names_what_does_not_fit(changed, message):
    data = {
        "first": np.array([0, 1, 2]),
        "second": np.array([1, 2, 0]),
        "outcome": np.array([1.0, 1.0, 1.0]),
        "names": 3,
        "side": False,
    }
    if changed.get("second") is not None and message.startswith("no judgements"):
        data["first"] = np.array([0, 1, 0])
    with pytest.raises(DesignError, match=message):
        fit_bradley_terry(**{**data, **changed})


def test_sums_give_the_same_sets_as_means_of_them() -> None:
    rng = np.random.default_rng(6)
    values, weight = rng.normal(size=(60, 3)) + np.array([0.3, 0.1, 0.0]), rng.uniform(0.5, 2, 60)
    parts = np.stack([values * weight[:, None], np.repeat(weight[:, None], 3, axis=1)], axis=2)
    of_sums = fragile_sums(parts=parts, score=lambda sums: sums[..., 0] / sums[..., 1])
    of_means = fragile_means(values=values, weight=weight)
    assert of_sums.order.tolist() == of_means.order.tolist()
    assert of_sums.scores == pytest.approx(of_means.scores)
    for pair, other in zip(of_sums.neighbours, of_means.neighbours, strict=True):
        assert (pair.ahead, pair.behind) == (other.ahead, other.behind) and pair.margin == pytest.approx(other.margin)
        assert pair.count is not None and other.count is not None and abs(pair.count - other.count) <= 1
        assert pair.margin_after is not None and pair.margin_after < 0
    with pytest.raises(DesignError, match="name 1 has no score"):
        fragile_sums(parts=np.ones((3, 2, 1)), score=lambda sums: np.where([True, False], sums[..., 0], np.nan))


def test_sums_go_on_where_the_first_order_promises_too_much() -> None:
    """Ten rows of 2 for the first name and ten of 1 for the second, by the cube of the sum: 8000 to 1000. Each of the
    first rows seems to take 2168, so that four would do; it takes six until 8 is less than 10."""
    parts = np.zeros((20, 2, 1))
    parts[:10, 0], parts[10:, 1] = 2.0, 1.0
    (pair,) = fragile_sums(parts=parts, score=lambda sums: sums[..., 0] ** 3).neighbours
    assert pair.count == 6 and pair.rows is not None and set(pair.rows.tolist()) <= set(range(10))
    assert pair.margin_after == 8.0**3 - 10.0**3
