"""The slots of a stage that never train a predictor: a uniform holdout, and controls. Numpy alone.

A holdout has separate sittings and its answers never train, so that predictors can be judged on pairs that no policy
chose. Controls measure the noise of the answers: a pair without evidence, with evidence that has nothing to do with the
target, or an item asked again later in the same sitting.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal

import numpy as np
from numpy.typing import NDArray

from bandit.booklets import deal
from bandit.candidates import Pairs
from bandit.errors import DesignError

NO_EVIDENCE = "no_evidence"
UNRELATED_EVIDENCE = "unrelated_evidence"
REPEAT = "repeat"
CONTROL_KINDS = (NO_EVIDENCE, UNRELATED_EVIDENCE, REPEAT)

HOLDOUT_SHARE = 0.1
CONTROL_SHARE = 1 / 15
REPEAT_GAP = 5


@dataclass(frozen=True)
class RolePart:
    """The sittings of one kind: `booklets` full booklets with `items` slots for sampled or holdout items, and controls.

    `controls` counts the control slots of each kind, in the order asked for.
    """

    booklets: int
    items: int
    controls: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class RolePlan:
    """How many of a stage's slots have which role. Both parts hold controls; no booklet mixes sampled and holdout."""

    sampled: RolePart
    holdout: RolePart
    size: int


@dataclass(frozen=True)
class DealtWithRepeats:
    """Booklets of slot numbers, and which earlier slot of its booklet each repeat asks again.

    Slots 0..n-1 are those handed in, n..n+repeats-1 the repeats, the keys of `repeat_of`.
    """

    booklets: list[list[int]]
    repeat_of: dict[int, int]


def plan_roles(
    *,
    booklets: int,
    size: int,
    holdout: float = HOLDOUT_SHARE,
    controls: float = CONTROL_SHARE,
    kinds: Sequence[str] = CONTROL_KINDS,
) -> RolePlan:
    """Shares `booklets` * `size` slots out to the roles.

    `holdout`: the share of the booklets that are the holdout's, to the nearest whole booklet but at least one if it is
    above 0. `controls`: the share of each part's slots that are controls, to the nearest whole slot, spread over the
    `kinds` as evenly as whole slots allow, the first ones first.
    Raises DesignError, with the sizes, if a part would be left without booklets or items.
    """
    for name, share in (("holdout", holdout), ("controls", controls)):
        if not 0 <= share < 1:
            raise DesignError(f"{name}: must be a share of at least 0 and below 1, not {share}")
    if booklets < 1 or size < 1:
        raise DesignError(f"booklets, size: must be at least 1, not {booklets} and {size}")
    if controls > 0 and not kinds:
        raise DesignError(f"kinds: a control share of {controls} needs at least one kind of control")
    held = max(1, _nearest(holdout, booklets)) if holdout > 0 else 0
    if held >= booklets:
        raise DesignError(
            f"holdout: takes {held} of {booklets} booklets and leaves none to sample; plan more sittings or holdout = 0"
        )
    return RolePlan(
        sampled=_part(booklets - held, size, controls, kinds), holdout=_part(held, size, controls, kinds), size=size
    )


def deal_with_repeats(
    *,
    conflict_keys: Sequence[tuple[Hashable, ...]],
    groups: Sequence[Hashable],
    repeatable: Sequence[bool],
    repeats: int,
    size: int,
    rng: np.random.Generator,
    gap: int = REPEAT_GAP,
) -> DealtWithRepeats:
    """Deals the slots as `deal` does, with `repeats` more that ask an earlier item of the same booklet again.

    `repeatable`: for each slot, whether it may be asked again (a control may not). A repeat stands at least `gap`
    places after its item, or as far as a short booklet allows. The item and the place are random. No item is asked a
    third time. Raises DesignError as `deal` does, and if a booklet with a repeat has no item to repeat.
    """
    n = len(conflict_keys)
    if len(repeatable) != n:
        raise DesignError(f"repeatable: {len(repeatable)} entries for {n} slots; give one for each slot")
    if repeats < 0 or gap < 1:
        raise DesignError(f"repeats, gap: must be at least 0 and 1, not {repeats} and {gap}")
    dealt = deal(
        conflict_keys=[*conflict_keys, *[()] * repeats],
        groups=[*groups, *[(REPEAT,)] * repeats],
        size=size,
        rng=rng,
    )
    booklets, repeat_of = [], {}
    for slots in dealt:
        items = [slot for slot in slots if slot < n]
        after: dict[int, list[int]] = {}
        asked: set[int] = set()
        for repeat in (slot for slot in slots if slot >= n):
            place = int(rng.integers(min(gap, len(items)), len(items) + 1))
            early = [slot for slot in items[: max(place - gap + 1, 1)] if repeatable[slot] and slot not in asked]
            early = early or [slot for slot in items[:place] if repeatable[slot] and slot not in asked][:1]
            if not early:
                raise DesignError(
                    f"repeats: {repeats} repeats for {sum(map(bool, repeatable))} repeatable slots leave a booklet of "
                    f"{len(slots)} without an item to ask again; plan fewer controls or larger booklets"
                )
            repeat_of[repeat] = early[int(rng.integers(len(early)))]
            asked.add(repeat_of[repeat])
            after.setdefault(place, []).append(repeat)
        booklets.append(
            [slot for place in range(len(items) + 1) for slot in (*after.get(place, ()), *items[place : place + 1])]
        )
    return DealtWithRepeats(booklets=booklets, repeat_of=repeat_of)


def shares_questions(*, pairs: Pairs, held_out: Pairs, n_questions: int) -> NDArray[np.bool_]:
    """Which of the M pairs have the two questions of a held-out pair, in either order and with either outcome; (M,).

    These answers must not train: a predictor that has seen them has seen the holdout.
    """
    return np.isin(_unordered(pairs, n_questions), _unordered(held_out, n_questions))


def _part(booklets: int, size: int, controls: float, kinds: Sequence[str]) -> RolePart:
    slots = booklets * size
    count = _nearest(controls, slots)
    items = slots - count
    if booklets and items < 1:
        raise DesignError(f"controls: {count} of {slots} slots leave no item; lower the share or plan larger booklets")
    each = tuple(
        (kind, count // len(kinds) + (index < count % len(kinds))) for index, kind in enumerate(kinds if count else ())
    )
    return RolePart(booklets=booklets, items=items, controls=each)


def _unordered(pairs: Pairs, n_questions: int) -> NDArray[np.int64]:
    first, second = pairs.evidence.astype(np.int64), pairs.target.astype(np.int64)
    if len(pairs) and max(int(first.max()), int(second.max())) >= n_questions:
        raise DesignError(f"pairs: name a question outside the bank of {n_questions}; use indices 0..{n_questions - 1}")
    return np.minimum(first, second) * n_questions + np.maximum(first, second)


def _nearest(share: float, whole: int) -> int:
    return int((Decimal(repr(float(share))) * whole).to_integral_value(ROUND_HALF_EVEN))
