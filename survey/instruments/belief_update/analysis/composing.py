"""Ways in which people may put several pieces of evidence together. Simulated people use them, reports compare them.

Every way gives the log-odds of the belief after each step, from the log-odds before any evidence and from the changes
that each evidence question would bring alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

# Of what came before: how far an anchoring person still moves, and how much a forgetful one keeps.
KEPT = 0.5


@dataclass(frozen=True)
class Way:
    """`name`: as study and command lines have it. `says`: in words."""

    name: str
    title: str
    says: str


WAYS = (
    Way("bayes", "Bayes", "changes in log-odds add up, as Bayes’ rule has it for independent evidence"),
    Way("additive", "adding points", "changes in percentage points add up"),
    Way("averaging", "averaging", "the belief moves by the mean of the changes, not by their sum"),
    Way("anchoring", "anchoring", "each further change counts less than the one before"),
    Way("recency", "recency", "each further step loses a part of what came before it"),
)
NAMES = tuple(way.name for way in WAYS)
TITLES: Mapping[str, str] = {way.name: way.title for way in WAYS}


def weights(name: str, steps: int, kept: float = KEPT) -> np.ndarray:
    """What the change of each step counts for after the last one, in log-odds; (steps,). `kept`: of anchoring and
    recency, from 0 to 1.

    Raises:
        ValueError: no way has that name, or it adds points, which has no weights in log-odds.
    """
    place = np.arange(steps)
    values = {
        "bayes": np.ones(steps),
        "averaging": np.full(steps, 1 / steps),
        "anchoring": kept**place,
        "recency": kept ** (steps - 1 - place),
    }
    if name not in values:
        raise ValueError(f"{name!r} has no weights in log-odds; there are {', '.join(values)}")
    return values[name]


def log_odds(points: ArrayLike, *, clip: float) -> np.ndarray:
    """Beliefs in percentage points as log-odds; those nearer than `clip` points to 0 or 100 count as that."""
    share = np.clip(np.asarray(points, dtype=np.float64), clip, 100 - clip) / 100
    logits: np.ndarray = np.log(share / (1 - share))
    return logits


def points(logits: ArrayLike) -> np.ndarray:
    """Log-odds as percentage points."""
    return 100 / (1 + np.exp(-np.asarray(logits, dtype=np.float64)))


def after_each(name: str, start: ArrayLike, changes: Sequence[ArrayLike]) -> list[np.ndarray]:
    """The log-odds after each step.

    Args:
        start: log-odds before any evidence, any shape.
        changes: what each evidence question would change alone, in log-odds, in the order in which they are shown.

    Raises:
        ValueError: no way has that name.
    """
    begin = np.asarray(start, dtype=np.float64)
    each = [np.asarray(change, dtype=np.float64) for change in changes]
    if name != "additive":
        return [
            begin + np.tensordot(weights(name, step), np.stack(np.broadcast_arrays(*each[:step])), axes=1)
            for step in range(1, len(each) + 1)
        ]
    total, totals = points(begin), []
    for change in each:
        total = total + points(begin + change) - points(begin)
        totals.append(log_odds(total, clip=0.5))
    return totals
