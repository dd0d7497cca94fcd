"""Simulated studies with evidence in steps, whose truth is known. Vectorised numpy; laws of cover and power use it."""

from dataclasses import dataclass

import numpy as np

from .composing import after_each, points
from .composition import StepAnswers, orders_of


@dataclass(frozen=True)
class StepPlan:
    """`kind`: how people put evidence together. `noise`: of each stated belief, in log-odds. `step`: to how many points
    they round. `spread`: the sd between items of what an evidence question changes, in log-odds; `own`: that between
    people, as a share of the change."""

    kind: str = "bayes"
    people: int = 120
    items: int = 60
    items_a_person: int = 10
    steps: int = 2
    noise: float = 0.25
    step: int = 1
    spread: float = 0.8
    own: float = 0.3
    prior_sd: float = 0.7


def study(plan: StepPlan, *, rng: np.random.Generator) -> StepAnswers:
    """One simulated study: items and people drawn again, every order equally likely."""
    correct = rng.random((plan.items, plan.steps)) < 0.5
    size = np.abs(rng.normal(0.6, plan.spread, (plan.items, plan.steps)))
    change = np.where(correct, 0.8, -1.0) * size
    level = rng.normal(0.5, plan.prior_sd, plan.items)
    # Everybody gets other items, each item about as often.
    deck = np.concatenate(
        [rng.permutation(plan.items) for _round in range(-(-plan.people * plan.items_a_person // plan.items))]
    )
    item = deck[: plan.people * plan.items_a_person]
    person = np.arange(len(item)) // plan.items_a_person
    _first, where = np.unique(person * plan.items + item, return_index=True)
    item, person = item[where], person[where]
    every = orders_of(plan.steps)
    order = every[rng.integers(len(every), size=len(item))]
    scale = np.exp(plan.own * rng.normal(size=plan.people))[person]
    optimism = rng.normal(0, 0.4, plan.people)[person]
    start = level[item] + optimism + rng.normal(0, 0.3, len(item))
    changes = [scale * change[item, order[:, place]] for place in range(plan.steps)]
    latent = np.stack([start, *after_each(plan.kind, start, changes)], axis=1)
    stated = points(latent + plan.noise * rng.normal(size=latent.shape))
    belief = np.clip(plan.step * np.round(stated / plan.step), 0, 100)
    return StepAnswers(item, person, order, belief, np.ones(plan.items), correct)
