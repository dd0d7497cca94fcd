"""Pay for being right: one belief of a sitting is drawn, and two drawn numbers decide whether it wins a point.

A binarized scoring rule (Hossain and Okui, Review of Economic Studies 80, 2013) by paired draws (Wilson and Vespa,
2018). A belief counts as it is where the model was right, and as 100 less it where the model was wrong. It wins where
that is at least the lower of two whole numbers from 1 to 100. A person who believes q percent and says p wins with the
chance

    q (1 - (1 - p)^2) + (1 - q) (1 - p^2)    (as shares)

which is largest at p = q, however people feel about risks. The draws depend on seeds and places alone, so that no
answer changes them and anyone can draw again.
"""

from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

from survey.contracts.screens import Points
from survey.services.base.seeds import derive

VERSION = "1"
HIGHEST = 100


class PayDraw(NamedTuple):
    """What is drawn for a sitting. `position`: of the item. `belief`: a number whose remainder by how many beliefs the
    item asks for says which of them. `numbers`: it has to reach the lower one."""

    position: int
    belief: int
    numbers: tuple[int, int]

    def screen_among(self, screens: Sequence[str]) -> str:
        """The screen of the belief that is drawn, of those on which the item asks for one."""
        return screens[self.belief % len(screens)]


def draw_for(sitting: str, *, seed: int, items: int) -> PayDraw:
    """
    Args:
        sitting: its public id, as 32 hexadecimal digits.
        seed: of its stage.
        items: how many the sitting was given.
    """
    first, second = (1 + derive(seed, "pay number", sitting, number) % HIGHEST for number in (1, 2))
    return PayDraw(
        position=1 + derive(seed, "pay item", sitting) % items,
        belief=derive(seed, "pay belief", sitting),
        numbers=(first, second),
    )


def wins(belief: int, numbers: tuple[int, int], *, correct: bool) -> bool:
    """
    Args:
        belief: in percentage points, 0 to 100.
        correct: whether the model really answered the question correctly.
    """
    return (belief if correct else HIGHEST - belief) >= min(numbers)


def points_of(belief: int, numbers: tuple[int, int], *, correct: bool | None) -> Points:
    """`correct`: None where the model's answer is not known any more; the point was promised and is given."""
    is_won = correct is None or wins(belief, numbers, correct=correct)
    was = {True: "right", False: "wrong", None: "not known any more"}[correct]
    low, high = sorted(numbers)
    return Points(Decimal(int(is_won)), f"drawn {low} and {high}; the model was {was}", VERSION)
