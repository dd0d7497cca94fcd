"""What a predictor of single pairs expects of items with several evidence questions. Numpy alone."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .composing import log_odds
from .composition import orders_of

CLIP = 0.5
# Before there are answers: a change is this large in log-odds, and people move half as far as adding up would have it.
SIZE = 0.8
SHRUNK = 0.5
WORTH = 20.0  # So many answers count as much as these two assumptions.


@dataclass(frozen=True, eq=False)
class AnsweredSteps:
    """n answers so far: beliefs before and after each step, in points (n, K + 1), and whether the evidence of each step
    was correct, in the order shown (n, K)."""

    belief: NDArray[np.float64]
    correct: NDArray[np.bool_]


def last_change(chances: np.ndarray, *, order: str) -> np.ndarray:
    """The chance that the last evidence question shown changes the belief, by a predictor of single pairs; (M,).

    Args:
        chances: of each evidence question, in the item's own order (M, K).
        order: the study's `evidence_order`; with "shuffled" every one is last equally often.
    """
    change: np.ndarray = np.mean([chances[:, places[-1]] for places in _orders(order, chances.shape[1])], axis=0)
    return change


def departure(chances: np.ndarray, outcome: np.ndarray, answered: AnsweredSteps, *, order: str) -> np.ndarray:
    """How far the belief is expected to end from where adding changes in log-odds would put it; (M,), 0 or more.

    An evidence question is expected to change the log-odds by its chance of a change times the mean size of a change
    after its outcome. What the step at each place counts for comes from a ridge regression of the whole change on those
    of the single steps: answers so far, and the assumptions above as `WORTH` answers.

    Args:
        chances: of each evidence question, in the item's own order (M, K).
        outcome: 1 where it was correct (M, K).
        order: the study's `evidence_order`; with "shuffled" the mean over all orders.
    """
    steps = chances.shape[1]
    sizes = change_sizes(answered)
    single = chances * np.where(outcome == 1, sizes[1], sizes[0])
    gap = step_weights(answered, steps, sizes) - 1
    departures: np.ndarray = np.mean([np.abs(single[:, places] @ gap) for places in _orders(order, steps)], axis=0)
    return departures


def change_sizes(answered: AnsweredSteps) -> tuple[float, float]:
    """The mean change in log-odds of a belief that the first evidence question changed: after an incorrect answer, and
    after a correct one."""
    logits = log_odds(answered.belief, clip=CLIP)
    first = logits[:, 1] - logits[:, 0]
    moved = answered.belief[:, 1] != answered.belief[:, 0]
    sizes = []
    for sign, side in ((-1, False), (1, True)):
        of = moved & (answered.correct[:, 0] == side)
        sizes.append((sign * SIZE * WORTH + float(first[of].sum())) / (WORTH + int(of.sum())))
    return sizes[0], sizes[1]


def step_weights(answered: AnsweredSteps, steps: int, sizes: tuple[float, float]) -> np.ndarray:
    """What the change of each step counts for at the end, first to last; (K,)."""
    logits = log_odds(answered.belief, clip=CLIP)
    # Each step moves as its outcome makes people move on average: no person's own noise is on both sides.
    moves = np.where(answered.correct, sizes[1], sizes[0])
    whole = logits[:, -1] - logits[:, 0]
    changed = float((answered.belief[:, 1] != answered.belief[:, 0]).mean()) if len(whole) else 1.0
    moves = moves * changed
    ridge = WORTH * SIZE**2 * np.eye(steps)
    weights: np.ndarray = np.linalg.solve(moves.T @ moves + ridge, moves.T @ whole + ridge @ np.full(steps, SHRUNK))
    return weights


def _orders(order: str, steps: int) -> np.ndarray:
    """The orders that people may see, as places from 0."""
    if order == "shuffled":
        return orders_of(steps)
    if order == "drawn":
        return np.arange(steps)[None]
    return np.array([[int(place) - 1 for place in order.split("-")]])
