"""The reward of a comparison of two tokens, and the answers that people can give. Standard library and numpy.

A comparison shows a context c, its true next token y, and another token x that was drawn from a generator g. A person
states the chance p that x is the true one. Where G' is what the person believes of both the generator's draws and the
payoff, and h of the text, the expected reward is

    G'(x) G'(y) [h(x) ln p + h(y) ln(1 - p)] + what does not depend on p,

which is greatest at p = h(x) / (h(x) + h(y)). A payoff by another distribution than the draws moves that: so nobody
may see g or an amount before the answer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

SCALE = 1000.0
RATIOS = (1, 10, 20, 30, 40, 50, 60, 70, 80, 90, 99)
"""The chances that people choose from, in percent."""
UNSURE = 50
REWARD_RULE, REWARD_VERSION = "token comparison", "1"


def reward(percent: float, *, other_is_true: bool, g_true: float, g_other: float) -> float:
    """The points of one answer.

    Args:
        percent: the stated chance that the other token x is the true one; between 0 and 100, without them.
        other_is_true: what is paid by: whether x was the true one. In a comparison that is asked it never is; the rule
            that people read names both cases.
        g_true, g_other: the generator's probabilities of y and x given the context.

    Raises:
        ValueError: the percentage is 0 or 100, or beyond them.
    """
    if not 0 < percent < 100:
        raise ValueError(f"percent: {percent!r} is not between 0 and 100")
    p = percent / 100
    if other_is_true:
        return SCALE * g_other * (math.log(p) - math.log(0.5))
    return SCALE * g_true * (math.log(1 - p) - math.log(0.5))


def points(percent_true: float, *, g_true: float) -> float:
    """The points of an answer that gave this chance, in percent, to the token that was true.

    Raises:
        ValueError: as `reward`.
    """
    return reward(100 - percent_true, other_is_true=False, g_true=g_true, g_other=0.0)


def expected_reward(
    p: ArrayLike, *, h_true: float, h_other: float, payoff: tuple[float, float], drawn: tuple[float, float]
) -> NDArray[np.float64]:
    """What a person expects of stating p (a fraction, any shape) for x, when either token may be the true one.

    Args:
        h_true, h_other: how likely the person holds each token to come next.
        payoff: what the person believes of the payoff's distribution: of y and of x.
        drawn: and of the generator's draws: the pair is shown if one is true and the other was drawn.
    """
    stated = np.asarray(p, dtype=np.float64)
    (pay_true, pay_other), (draw_true, draw_other) = payoff, drawn
    other = h_other * draw_true * pay_other * (np.log(stated) - math.log(0.5))
    true = h_true * draw_other * pay_true * (np.log(1 - stated) - math.log(0.5))
    return SCALE * (other + true)


def nearest(chances: ArrayLike, ratios: Sequence[int] = RATIOS) -> NDArray[np.float64]:
    """Chances (n,), fractions, as they would be stated: the nearest of the percentages in `ratios`, as fractions. Of
    two that are equally near the smaller one."""
    wanted = np.asarray(chances, dtype=np.float64)
    allowed = np.sort(np.asarray(ratios, dtype=np.float64)) / 100
    nearest_ratios: NDArray[np.float64] = allowed[np.abs(wanted[..., None] - allowed).argmin(axis=-1)]
    return nearest_ratios
