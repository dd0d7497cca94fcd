"""Simulated studies with known shares of variance between people, items and questions."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from bandit.components import PAIRS, PEOPLE, QUESTIONS, REST


@dataclass(frozen=True)
class Case:
    """`of_people` to `rest` are standard deviations; both places of questions have that of questions. `answers`: how
    many people answer an item. `is_binary`: each answer is 0 or 1, with the mean plus all effects as its chance, and
    effects are uniform; `rest` is then what is left of the variance. `is_skewed`: people's effects are exponential.
    `weights`: what an item's weight may be, each as often."""

    people: int = 60
    items: int = 12
    questions: int = 40
    answers: int = 2
    of_people: float = 0.5
    of_pairs: float = 0.4
    of_questions: float = 0.35
    rest: float = 1.0
    is_binary: bool = False
    is_skewed: bool = False
    weights: tuple[float, ...] = (1.0, 3.0, 3.0)


BASE = Case()
ONE_ANSWER = Case(answers=1)
FEW_PEOPLE = Case(people=30)
BINARY = Case(is_binary=True, of_people=0.14, of_pairs=0.05, of_questions=0.05, people=80, questions=60)
SKEWED = Case(is_skewed=True)
SKEWED_FEW = Case(is_skewed=True, people=30)
WEIGHTED = Case(weights=(1.0, 5.0))
BINARY_MEAN = 0.45


def truth(case: Case) -> dict[str, float]:
    """The shares by name; pairs and the rest together where one person answers each item."""
    parts = {PEOPLE: case.of_people**2, PAIRS: case.of_pairs**2, QUESTIONS: 2 * case.of_questions**2}
    if case.is_binary:
        parts[REST] = BINARY_MEAN * (1 - BINARY_MEAN) - sum(parts.values())
    else:
        parts[REST] = case.rest**2
    if case.answers == 1:
        parts[REST] += parts.pop(PAIRS)
    total = sum(parts.values())
    return {name: part / total for name, part in parts.items()}


def study(rng: np.random.Generator, case: Case) -> dict[str, Any]:
    """The arguments of `bandit.variance_components`: a tenth of the answers is lost."""
    n = case.people * case.items
    items = n // case.answers
    target = rng.integers(case.questions, size=items)
    evidence = (target + 1 + rng.integers(case.questions - 1, size=items)) % case.questions
    item = rng.permutation(np.repeat(np.arange(items), case.answers))
    person = np.repeat(np.arange(case.people), case.items)

    def effects(deviation: float, size: int) -> np.ndarray:
        if case.is_binary:
            reach = deviation * 3**0.5
            return rng.uniform(-reach, reach, size)
        return rng.normal(0, deviation, size)

    of_people = effects(case.of_people, case.people)
    if case.is_skewed:
        of_people = case.of_people * (rng.exponential(1, case.people) - 1)
    mean = of_people[person] + effects(case.of_pairs, items)[item]
    for of in (target, evidence):
        mean += effects(case.of_questions, case.questions)[of[item]]
    if case.is_binary:
        values = (rng.random(n) < BINARY_MEAN + mean).astype(np.float64)
    else:
        values = mean + rng.normal(0, case.rest, n)
    answered = rng.random(n) < 0.9
    weight = rng.choice(case.weights, items)[item]
    return {
        "values": values[answered],
        "person": person[answered],
        "item": item[answered],
        "subjects": np.stack([target, evidence], axis=1)[item][answered],
        "weight": weight[answered],
    }
