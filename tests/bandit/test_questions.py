"""The interval for such questions: by hand against every pair of answers, and as a law over simulated studies."""

from functools import cache

import numpy as np
import pytest

import bandit
from bandit import DesignError
from tests.bandit import question_cases
from tests.bandit.question_cases import Both

STUDIES = 200  # The standard error of a coverage of 95 % is then 1.5 points.


@cache
def studies(questions: int, people: int) -> tuple[dict[str, Both], ...]:
    return tuple(
        question_cases.study(np.random.default_rng([questions, seed]), questions=questions, people=people, stages=3)
        for seed in range(STUDIES)
    )


def made(rng: np.random.Generator, n: int = 80) -> dict[str, np.ndarray]:
    target = rng.integers(9, size=n)
    subjects = np.column_stack([target, (target + rng.integers(1, 9, size=n)) % 9])
    subjects[:10, 1] = -1
    return {
        "values": (rng.random(n) < 0.4).astype(float),
        "weight": rng.uniform(1, 3, n),
        "cluster": np.arange(n) % 13,
        "subjects": subjects,
    }


def by_pairs(values: np.ndarray, sample: dict[str, np.ndarray], item: np.ndarray | None = None) -> float:
    """Every pair of answers of two people whose items share a question, one by one."""
    total = 0.0
    for i in range(values.size):
        for j in range(values.size):
            common = ({*sample["subjects"][i]} & {*sample["subjects"][j]}) - {-1}
            if sample["cluster"][i] != sample["cluster"][j] and common and (item is None or item[i] != item[j]):
                total += values[i] * values[j]
    return total


@pytest.mark.parametrize("of_items", [False, True])
def test_it_adds_the_products_of_two_people_about_one_question(of_items: bool) -> None:
    rng = np.random.default_rng(1)
    sample = made(rng)
    plain = bandit.hajek(
        values=sample["values"], probability=0.3 / sample["weight"], cluster=sample["cluster"], share=True
    )
    error, share = bandit.error_contributions(values=sample["values"], weight=sample["weight"])
    assert error.sum() == pytest.approx(0) and share.sum() == pytest.approx(1)
    assert error == pytest.approx(share * (sample["values"] - plain.value))
    # Answers to the same questions are then answers to one item.
    item = sample["subjects"].min(axis=1) * 100 + sample["subjects"].max(axis=1) if of_items else None
    estimate = bandit.superpopulation_estimate(
        plain, contributions=error, shares=share, cluster=sample["cluster"], subjects=sample["subjects"], item=item
    )
    missing = by_pairs(share, sample, item)
    added = (by_pairs(error, sample, item) + missing * plain.standard_error**2) / (1 - missing)
    assert estimate.standard_error**2 == pytest.approx(plain.standard_error**2 + max(added, 0))
    assert estimate.value == plain.value and estimate.degrees_of_freedom < 9
    low, high = plain.interval
    assert estimate.interval[0] < low < high < estimate.interval[1]


def test_a_domain_has_the_weights_of_its_answers_alone() -> None:
    sample = made(np.random.default_rng(2))
    inside = sample["values"] > 0.5
    error, share = bandit.error_contributions(values=np.arange(80.0), weight=sample["weight"], domain=inside)
    assert not error[~inside].any() and not share[~inside].any() and share.sum() == pytest.approx(1)


def test_one_question_gives_no_interval() -> None:
    plain = bandit.naive_mean(values=[0, 1, 1, 0], cluster=[1, 2, 3, 4])
    with pytest.raises(DesignError, match="1 questions; an interval for such questions needs at least 2"):
        bandit.superpopulation_estimate(
            plain, contributions=[0.1] * 4, shares=[0.25] * 4, cluster=[1, 2, 3, 4], subjects=[[7, -1]] * 4
        )


@pytest.mark.thorough
@pytest.mark.parametrize(("questions", "people"), [(60, 50), (200, 40)])
def test_such_questions_are_covered_and_these_intervals_alone_would_not(questions: int, people: int) -> None:
    for name, task in (("all", None), ("task", 0)):
        truth = question_cases.truth(0.8, 0.6, task)

        def cover(kind: str, name: str = name, truth: float = truth) -> float:
            ends = [getattr(study[name], kind).interval for study in studies(questions, people)]
            return float(np.mean([low <= truth <= high for low, high in ends]))

        assert 0.93 <= cover("such") <= 0.97, name
        if questions == 60:
            assert cover("these") < 0.9, name


def test_an_item_about_one_question_twice_is_about_one_question_and_few_questions_leave_few_degrees_of_freedom() -> (
    None
):
    sample = made(np.random.default_rng(3))
    plain = bandit.hajek(values=sample["values"], probability=0.3 / sample["weight"], cluster=sample["cluster"])
    error, share = bandit.error_contributions(values=sample["values"], weight=sample["weight"])
    twice = sample["subjects"].copy()
    twice[:10, 1] = twice[:10, 0]
    same, again = (
        bandit.superpopulation_estimate(
            plain, contributions=error, shares=share, cluster=sample["cluster"], subjects=subjects
        )
        for subjects in (sample["subjects"], twice)
    )
    assert again == same
    parts = np.array([share[(sample["subjects"] == number).any(axis=1)].sum() for number in range(9)])
    assert same.degrees_of_freedom == pytest.approx((parts**2).sum() ** 2 / (parts**4).sum() - 1)


def test_the_error_of_a_ratio_is_around_the_ratio_and_shares_are_of_what_is_below() -> None:
    values, below = np.array([3.0, 0, 1]), np.array([2.0, 1, 1])
    error, share = bandit.error_contributions(values=values, weight=[1, 2, 1], per=below)
    ratio = (3 + 1) / (2 + 2 + 1)
    assert error == pytest.approx([(3 - 2 * ratio) / 5, -2 * ratio / 5, (1 - ratio) / 5])
    assert share == pytest.approx([2 / 5, 2 / 5, 1 / 5])
