"""Shares of variance between people, items and questions: against the analysis of variance, and laws over studies."""

import math
from typing import Any

import numpy as np
import pytest

import bandit
from bandit import DesignError
from bandit.components import PAIRS, PEOPLE, QUESTIONS, REST, plain_shares
from tests.bandit import component_cases


def found(rows: dict[str, Any], *, resamples: int = 2, seed: int = 1) -> bandit.Components:
    return bandit.variance_components(**rows, rng=np.random.default_rng(seed), resamples=resamples)


def variances(rows: dict[str, Any]) -> dict[str, float]:
    return {share.name: share.variance for share in found(rows).shares}


def balanced(rng: np.random.Generator, people: int = 14, items: int = 9) -> np.ndarray:
    effects = rng.normal(0, 2, (people, 1)) + rng.normal(0, 1.5, (1, items))
    table: np.ndarray = effects + rng.normal(0, 1, (people, items))
    return table


def test_a_balanced_design_gives_the_estimates_of_the_analysis_of_variance() -> None:
    """Everybody answers every item once: the closed form is that of the two-way table (Searle, chapter 4)."""
    table = balanced(np.random.default_rng(3))
    people, items = table.shape
    rows, columns, mean = table.mean(axis=1), table.mean(axis=0), table.mean()
    of_rest = ((table - rows[:, None] - columns + mean) ** 2).sum() / ((people - 1) * (items - 1))
    of_people = items * ((rows - mean) ** 2).sum() / (people - 1)
    of_items = people * ((columns - mean) ** 2).sum() / (items - 1)
    person, item = np.indices(table.shape)
    got = variances({"values": table.ravel(), "person": person.ravel(), "item": item.ravel()})
    assert got[REST] == pytest.approx(of_rest)
    assert got[PEOPLE] == pytest.approx((of_people - of_rest) / items)
    assert got[PAIRS] == pytest.approx((of_items - of_rest) / people)


def test_a_persons_effect_is_their_mean_shrunken_as_in_a_balanced_design() -> None:
    table = balanced(np.random.default_rng(4))
    person, item = np.indices(table.shape)
    made = found({"values": table.ravel(), "person": person.ravel(), "item": item.ravel()})
    of = {share.name: share.variance for share in made.shares}
    shrinkage = of[PEOPLE] / (of[PEOPLE] + (of[PAIRS] + of[REST]) / table.shape[1])
    assert 0 < shrinkage < 1
    assert made.effects == pytest.approx(np.sort(shrinkage * (table.mean(axis=1) - table.mean())))


@pytest.mark.slow
def test_shares_are_right_on_average_in_uneven_studies() -> None:
    """400 small studies with people who leave, items of uneven weight, and questions in two places."""
    truth = component_cases.truth(component_cases.BASE)
    made: dict[str, list[float]] = {name: [] for name in truth}
    for number in range(400):
        rows = component_cases.study(np.random.default_rng([1, number]), component_cases.BASE)
        for name, share in plain_shares(**rows).items():
            made[name].append(share)
    for name, share in truth.items():
        assert abs(np.mean(made[name]) - share) < 0.02, name


@pytest.mark.thorough
@pytest.mark.slow
def test_the_share_of_skewed_people_reaches_further_up_than_down() -> None:
    """A few people far from the others: most samples lack them, so that the truth lies above more often than below."""

    def reach(case: component_cases.Case) -> list[float]:
        """How much further, on Fisher's scale, the upper end lies than the lower one, in 8 studies."""
        further = []
        for seed in range(8):
            rows = component_cases.study(np.random.default_rng([3, seed]), case)
            own = found(rows, resamples=40, seed=seed).shares[0]
            answers = len(rows["values"]) / case.people
            low, share, high = (
                math.log((1 + (answers - 1) * value) / (1 - value))
                for value in (own.interval[0], own.share, own.interval[1])
            )
            further.append((high - share) / (share - low))
        return further

    assert np.median(reach(component_cases.SKEWED)) > np.median(reach(component_cases.BASE)) + 0.15


def test_numbers_do_not_hang_on_the_unit_of_weights_or_answers() -> None:
    rows = component_cases.study(np.random.default_rng(2), component_cases.BASE)
    first = found(rows)
    other = found({**rows, "values": 10 * rows["values"] + 3, "weight": 7 * rows["weight"]})
    assert [share.share for share in other.shares] == pytest.approx([share.share for share in first.shares])
    assert other.total == pytest.approx(100 * first.total)


def test_the_same_draws_give_the_same_intervals() -> None:
    rows = component_cases.study(np.random.default_rng(2), component_cases.BASE)
    first, again, other = (found(rows, resamples=20, seed=seed).shares for seed in (5, 5, 6))
    assert first == again and first != other
    for share in first:
        assert 0 <= share.interval[0] <= share.share <= share.interval[1] <= 1
    assert sum(share.share for share in first) == pytest.approx(1)


def test_pairs_that_one_person_each_answers_are_joined_to_the_rest() -> None:
    rows = component_cases.study(np.random.default_rng(2), component_cases.ONE_ANSWER)
    made = found(rows)
    assert made.joined == (PAIRS,)
    assert [share.name for share in made.shares] == [PEOPLE, QUESTIONS, REST]
    del rows["subjects"]
    assert found(rows).joined == (PAIRS,) and [share.name for share in found(rows).shares] == [PEOPLE, REST]


def test_people_who_do_not_differ_have_no_effects() -> None:
    table = np.tile([1.0, 2.0, 3.0, 4.0], (12, 1))
    person, item = np.indices(table.shape)
    made = found({"values": table.ravel(), "person": person.ravel(), "item": item.ravel()})
    assert made.effects.tolist() == [0.0] * 12 and made.shares[0].share == pytest.approx(0, abs=1e-12)


def test_what_cannot_be_shared_out_is_refused_in_words() -> None:
    person, item = np.repeat(np.arange(12), 4), np.tile(np.arange(4), 12)
    values = np.random.default_rng(0).normal(size=48)
    for rows, problem in (
        ({"values": np.ones(48), "person": person, "item": item}, "values: all answers are alike"),
        # Their mean has a last digit of its own.
        (
            {"values": np.full(48, 0.1), "person": person, "item": item, "weight": np.full(48, 0.7)},
            "values: all answers are alike",
        ),
        ({"values": values, "person": person % 5, "item": item}, "person: 5 people; .* needs 10"),
        ({"values": values, "person": np.arange(48), "item": item}, "nobody gave two answers"),
        ({"values": values, "person": person, "item": item[:4]}, "must be of 48 answers"),
        ({"values": values * np.nan, "person": person, "item": item}, "needs a finite number"),
        ({"values": values, "person": person, "item": item, "weight": np.zeros(48)}, "weight: needs a number above 0"),
    ):
        with pytest.raises(DesignError, match=problem):
            found(rows)
