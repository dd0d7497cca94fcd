"""The slope that people who follow Bayes' rule would have in a study with these very beliefs.

Stated beliefs end at 0 and 100, are clipped and rounded, so that the slope of such people is not quite 1: further
evidence cannot move a belief that is at the end of the scale. Testing against 1 would find too often what is not there.
So the test is against this number. It rests on the answers of the study: everybody begins where they began, moves by
the single changes of the item, times how strongly the person moves, and states it on the same scale.
"""

from typing import NamedTuple

import numpy as np

from .composing import log_odds, points
from .composition import CLIPS, StepAnswers

DRAWS = 20
GRIDS = (10, 5, 1)
SMALLEST = 1e-9


class _Parts(NamedTuple):
    """Estimates shrunken towards a mean, and the variance that remains of each."""

    mean: np.ndarray
    variance: np.ndarray


def bayes_slope(
    answers: StepAnswers, *, rng: np.random.Generator, clip: float = CLIPS[0], draws: int = DRAWS
) -> float | None:
    """The slope of the whole change on the sum of single changes, for people who add up in log-odds.

    Single changes and how strongly people move are drawn from what the answers say of them (empirical Bayes), since
    noisy estimates would spread too far and shrunken ones too little.

    Args:
        answers: n answers to G items.
        clip: in percentage points, as the slope that is tested has it.
        draws: how many times both are drawn.

    Returns:
        None where nobody's belief would change.
    """
    logits = log_odds(answers.belief, clip=clip)
    start, single, whole = logits[:, 0], logits[:, 1] - logits[:, 0], logits[:, -1] - logits[:, 0]
    changes = _single_changes(answers, single)
    strength = _strengths(answers, whole, changes.mean.sum(axis=1)[answers.item])
    grid, items = _grid(answers.belief), len(answers.weight)
    person = np.unique(answers.person, return_inverse=True)[1].reshape(-1)

    def stated(moved: np.ndarray) -> np.ndarray:
        percent = points(start + moved)
        rounded = grid * np.round(percent / grid) if grid else percent
        return log_odds(rounded, clip=clip) - start

    count = np.maximum(np.bincount(answers.item, minlength=items), 1)
    above, below = 0.0, 0.0
    for _draw in range(draws):
        change = changes.mean + np.sqrt(changes.variance) * rng.normal(size=changes.mean.shape)
        moves = strength.mean + np.sqrt(strength.variance) * rng.normal(size=strength.mean.shape)
        moves = np.maximum(moves, 0.05)
        each = (moves / moves.mean())[person][:, None] * change[answers.item]
        total = sum(stated(each[:, place]) for place in range(answers.steps))
        sums = np.bincount(answers.item, weights=total, minlength=items) / count
        ends = np.bincount(answers.item, weights=stated(each.sum(axis=1)), minlength=items) / count
        above += float(answers.weight @ (ends * sums))
        below += float(answers.weight @ sums**2)
    return above / below if below > 0 else None


def _single_changes(answers: StepAnswers, single: np.ndarray) -> _Parts:
    """Of each item and evidence question (G, K): its mean, shrunken to that of the answers with the same outcome."""
    shape = answers.correct.shape
    cell = answers.item * answers.steps + answers.order[:, 0]
    count = np.bincount(cell, minlength=answers.correct.size)
    total = np.bincount(cell, weights=single, minlength=answers.correct.size)
    mean = total / np.maximum(count, 1)
    noise = float(((single - mean[cell]) ** 2).sum()) / max(int((count[count > 0] - 1).sum()), 1)
    middles, left = np.zeros(len(mean)), np.zeros(len(mean))
    for outcome in (True, False):
        of = answers.correct.reshape(-1) == outcome
        seen = of & (count > 0)
        if not seen.any():
            continue
        middle = float(total[seen].sum() / count[seen].sum())
        spread = max(float(np.var(mean[seen]) - noise * np.mean(1 / count[seen])), SMALLEST)
        share = np.where(count > 0, spread / (spread + noise / np.maximum(count, 1)), 0.0)[of]
        middles[of] = middle + share * (mean[of] - middle)
        left[of] = spread * (1 - share)
    return _Parts(middles.reshape(shape), left.reshape(shape))


def _strengths(answers: StepAnswers, whole: np.ndarray, total: np.ndarray) -> _Parts:
    """Of each person (P,): how strongly they move, as a multiple of what everybody does."""
    person = np.unique(answers.person, return_inverse=True)[1].reshape(-1)
    people = int(person.max()) + 1
    size = np.maximum(np.bincount(person, weights=total**2, minlength=people), SMALLEST)
    own = np.bincount(person, weights=total * whole, minlength=people) / size
    noise = float(((whole - own[person] * total) ** 2).sum()) / max(len(whole) - people, 1)
    middle = float(size @ own / size.sum())
    if noise <= 0 or abs(middle) < SMALLEST:
        return _Parts(np.ones(people), np.zeros(people))
    # The variance between people by moments (DerSimonian and Laird 1986).
    weight = size / noise
    excess = float(weight @ (own - middle) ** 2) - (people - 1)
    spread = max(excess / max(float(weight.sum() - (weight**2).sum() / weight.sum()), SMALLEST), 0.0)
    share = spread / (spread + noise / size)
    return _Parts(1 + share * (own - middle) / middle, spread * (1 - share) / middle**2)


def _grid(belief: np.ndarray) -> int:
    """To how many points nearly all beliefs are rounded; 0 where they are not."""
    for step in GRIDS:
        if np.isclose(belief, step * np.round(belief / step)).mean() >= 0.9:
            return step
    return 0
