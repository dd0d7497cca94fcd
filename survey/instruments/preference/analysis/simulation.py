"""Simulated preference studies with a known truth: for budgets, for benchmarks and for the laws of the tests.

People prefer by Bradley and Terry's model. Stages are drawn by the designs of `bandit` from all pairs of replies, with
the exact chances; an adaptive stage draws by the information of a comparison. Numpy and `bandit` alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from bandit import Design, Uniform, draw

from .bradley_terry import posterior
from .information import information
from .judgements import A, B, Judgements

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PreferenceWorld:
    """theta: (m,) strengths in logits. gamma: the side bias. prompts: how many there are. person_sd, prompt_sd: how far
    people, and prompts, differ in what they think of a pair of models, in logits; 0 where all are alike."""

    theta: Floats
    gamma: float
    prompts: int
    person_sd: float = 0.0
    prompt_sd: float = 0.0


@dataclass(frozen=True)
class StagePlan:
    """A stage: its design, its people and the items of each. sampled: how many slots of them are drawn, if not all."""

    design: Design
    people: int
    items: int
    responses_per_item: int = 1
    sampled: int | None = None

    @property
    def slots(self) -> int:
        return self.people * self.items if self.sampled is None else self.sampled


def spaced(models: int, span: float) -> Floats:
    """Strengths evenly spaced over `span` logits with mean 0, the strongest first."""
    return np.linspace(span / 2, -span / 2, models)


def simulate(world: PreferenceWorld, stages: Sequence[StagePlan], *, rng: np.random.Generator) -> Judgements:
    """One study: the judgements of all its stages with the chances with which their items were drawn."""
    m = len(world.theta)
    pairs = np.array(list(combinations(range(m), 2)), dtype=np.int64)
    prompt = np.repeat(np.arange(world.prompts), len(pairs))
    a, b = np.tile(pairs[:, 0], world.prompts), np.tile(pairs[:, 1], world.prompts)
    of_prompt = rng.normal(0, world.prompt_sd, (world.prompts, m)) if world.prompt_sd else None
    parts: list[Judgements] = []
    first_person = 0
    for stage in stages:
        scores = None
        if not isinstance(stage.design, Uniform):
            theta, spread = posterior(joined(parts).unweighted()) if parts else (np.zeros(m), np.eye(m))
            scores = information(theta, spread, a, b) + rng.random(len(a)) * 1e-9
        drawn = draw(
            design=stage.design,
            n=stage.slots,
            scores=scores,
            n_candidates=len(a),
            rng=rng,
            responses_per_item=stage.responses_per_item,
        )
        chosen = drawn.selected
        person = first_person + rng.permutation(stage.slots) % stage.people
        first_person += stage.people
        side = np.where(rng.random(stage.slots) < 0.5, 1, -1)
        leaning = world.theta[a[chosen]] - world.theta[b[chosen]] + world.gamma * side
        if of_prompt is not None:
            leaning += of_prompt[prompt[chosen], a[chosen]] - of_prompt[prompt[chosen], b[chosen]]
        if world.person_sd:
            own = rng.normal(0, world.person_sd, (stage.people, m))[person - person.min()]
            row = np.arange(stage.slots)
            leaning += own[row, a[chosen]] - own[row, b[chosen]]
        win = rng.random(stage.slots) < 1 / (1 + np.exp(-leaning))
        parts.append(
            Judgements(
                models=tuple(f"model {place + 1}" for place in range(m)),
                prompts=tuple(f"prompt {place + 1}" for place in range(world.prompts)),
                prompt=prompt[chosen],
                a=a[chosen],
                b=b[chosen],
                category=np.full(stage.slots, "", dtype=str),
                person=person,
                outcome=np.where(win, A, B).astype(np.int64),
                value=np.where(win, 1.0, -1.0),
                first=side.astype(np.int64),
                probability=drawn.inclusion_probability,
                chance=np.full(stage.slots, np.nan),
            )
        )
    return joined(parts)


def population(world: PreferenceWorld) -> tuple[Floats, float]:
    """The strengths (m,) and the side bias that the model of `bradley_terry` has over all items, people and prompts of
    such a world: `theta` and `gamma` themselves where nobody differs, and less of both where people or prompts do.
    """
    m = len(world.theta)
    spread = np.sqrt(2 * (world.person_sd**2 + world.prompt_sd**2))
    node, weight = np.polynomial.hermite_e.hermegauss(41)
    a, b = np.array([(i, j) for i in range(m) for j in range(m) if i != j]).T
    leaning = world.theta[a] - world.theta[b] + world.gamma
    won = (1 / (1 + np.exp(-(leaning[:, None] + spread * node)))) @ weight / weight.sum()
    design = np.zeros((len(a), m + 1))
    row = np.arange(len(a))
    design[row, a], design[row, b], design[:, m] = 1, -1, 1
    held = np.zeros((m + 1, m + 1))
    held[:m, :m] = 1
    beta = np.zeros(m + 1)
    for _step in range(50):
        chance = 1 / (1 + np.exp(-(design @ beta)))
        hessian = (design * (chance * (1 - chance))[:, None]).T @ design + held
        beta += np.linalg.solve(hessian, design.T @ (won - chance))
    return beta[:m] - beta[:m].mean(), float(beta[m])


def joined(parts: Sequence[Judgements]) -> Judgements:
    """The judgements of several stages, one after another. They have the same models and prompts."""
    names = ("prompt", "a", "b", "category", "person", "outcome", "value", "first", "probability", "chance")
    return Judgements(
        models=parts[0].models,
        prompts=parts[0].prompts,
        **{name: np.concatenate([getattr(part, name) for part in parts]) for name in names},
    )
