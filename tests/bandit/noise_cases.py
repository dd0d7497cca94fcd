"""Studies with items that two people answer, people with habits, and the AUC of the best predictor of items next to
it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

import bandit

ITEMS, POOL = 15, 12_000


@dataclass(frozen=True)
class Habits:
    """`person`: the sd of people's readiness, in logits. `after_a_change`: what is added once somebody has changed.
    `extremity`: the effect of a trait of the person, how extreme their priors are."""

    person: float = 0.0
    after_a_change: float = 0.0
    extremity: float = 0.0


PERSON, CARRY_OVER, EXTREMITY = Habits(1.0), Habits(1.0, after_a_change=-1.0), Habits(0.7, extremity=2.0)
ALL = Habits(1.0, after_a_change=-0.5, extremity=1.0)


def answers(rng: np.random.Generator, logit: NDArray[np.float64], habits: Habits) -> NDArray[np.float64]:
    """Changed or not, for people (rows) who answer their items (columns) in order."""
    people, size = logit.shape
    own = habits.person * rng.normal(size=people) + habits.extremity * (rng.random(people) - 0.5)
    changed, before = np.zeros((people, size)), np.zeros(people)
    for place in range(size):
        chance = 1 / (1 + np.exp(-(logit[:, place] + own + habits.after_a_change * before)))
        changed[:, place] = rng.random(people) < chance
        before = np.maximum(before, changed[:, place])
    return changed


@dataclass(frozen=True, eq=False)
class World:
    logit: NDArray[np.float64]
    chance: NDArray[np.float64]
    best_auc: float


@cache
def world(habits: Habits, spread: float, uneven: bool) -> World:
    """A pool of items. Their chances are those over people and places in a sitting, at random."""
    rng = np.random.default_rng(11)
    middle = rng.normal(-0.4, spread, POOL)
    if uneven:  # Most alike, and some that change nearly everybody.
        middle = np.where(rng.random(POOL) < 0.15, 2.5, -1.0 + 0.2 * rng.normal(size=POOL))
    crowd = 4000
    own = habits.person * rng.normal(size=crowd) + habits.extremity * (rng.random(crowd) - 0.5)
    offsets = np.zeros((crowd, ITEMS))
    before = np.zeros(crowd)
    for place in range(ITEMS):
        offsets[:, place] = own + habits.after_a_change * before
        chance = 1 / (1 + np.exp(-(rng.choice(middle, crowd) + offsets[:, place])))
        before = np.maximum(before, rng.random(crowd) < chance)
    grid = np.linspace(middle.min(), middle.max(), 200)
    flat = offsets.ravel()[:: ITEMS - 1]
    chance = np.interp(middle, grid, [float((1 / (1 + np.exp(-(at + flat)))).mean()) for at in grid])
    order = np.sort(chance)
    share = order.mean()
    # E|p - p'| of two items, by their order.
    apart = 2 * float(np.dot(2 * np.arange(1, POOL + 1) - POOL - 1, order)) / POOL**2
    return World(middle, chance, 0.5 + apart / (4 * share * (1 - share)))


def limit(
    rng: np.random.Generator,
    habits: Habits,
    *,
    spread: float = 1.0,
    uneven: bool = False,
    people: int = 88,
    stages: int = 4,
) -> tuple[float, float]:
    """A study's limit and the best AUC. A fifteenth of the slots ask an item of the stage of another person."""
    there = world(habits, spread, uneven)
    score = there.logit + rng.normal(size=POOL)
    repeats = people
    shares, variances, weights = [], [], []
    drawn_stages = []
    for number in range(stages):
        design = bandit.EpsilonGreedy(epsilon=0.1, top_fraction=0.1) if number else bandit.Uniform()
        n = people * ITEMS - repeats
        drawn = bandit.draw(design=design, n=n, scores=score if number else None, n_candidates=POOL, rng=rng)
        again = rng.choice(n, repeats, replace=False)
        # Everybody has one slot that asks a random other person's item.
        slot = np.concatenate([np.arange(n).reshape(people, ITEMS - 1), again[:, None]], axis=1)
        slot = np.take_along_axis(slot, rng.permuted(np.tile(np.arange(ITEMS), (people, 1)), axis=1), axis=1)
        person = np.repeat(np.arange(people), ITEMS)
        item, label = drawn.selected[slot].ravel(), drawn.stratum[slot].ravel()
        changed = answers(rng, there.logit[drawn.selected[slot]], habits).ravel()
        sizes = [stratum.size for stratum in drawn.strata]
        _, first = np.unique(slot.ravel(), return_index=True)
        shares.append(
            bandit.stratified_mean(
                values=changed[first], stratum=label[first], sizes=sizes, cluster=person[first], share=True
            )
        )
        weights.append(bandit.plan_weight(sizes=sizes, slots=[stratum.n for stratum in drawn.strata]))
        drawn_stages.append((changed, item, person, label, sizes))
    share = bandit.combine_stages(estimates=shares, plan_weights=weights).estimate
    for changed, item, person, label, sizes in drawn_stages:
        try:
            variances.append(
                bandit.item_variance(
                    values=changed, item=item, cluster=person, stratum=label, sizes=sizes, mean=share.value
                )
            )
        except bandit.DesignError:
            variances.append(None)
    own = [weight if variance is not None else 0.0 for weight, variance in zip(weights, variances, strict=True)]
    between = bandit.combine_stages(estimates=variances, plan_weights=own).estimate
    return bandit.auc_limit(between_items=between, base_rate=share).limit, there.best_auc
