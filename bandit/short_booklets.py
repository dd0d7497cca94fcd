"""For slots that `bandit.booklets` cannot deal: more and shorter booklets, still with no conflict key twice in one."""

from collections.abc import Hashable, Sequence

import numpy as np

from bandit.roles import DealtWithRepeats


def deal_short(keys: Sequence[tuple[Hashable, ...]], *, size: int, rng: np.random.Generator) -> list[list[int]]:
    """Puts each slot, in random order, into the first booklet that has room for it and none of its keys.

    Returns the slots of each booklet, at most `size`, in random order.
    """
    booklets: list[list[int]] = []
    taken: list[set[Hashable]] = []
    for index in rng.permutation(len(keys)).tolist():
        own = keys[index]
        for slots, used in zip(booklets, taken, strict=True):
            if len(slots) < size and used.isdisjoint(own):
                slots.append(index)
                used.update(own)
                break
        else:
            booklets.append([index])
            taken.append(set(own))
    return [rng.permutation(slots).tolist() for slots in booklets]


def deal_short_with_repeats(
    keys: Sequence[tuple[Hashable, ...]],
    *,
    repeatable: Sequence[bool],
    repeats: int,
    size: int,
    rng: np.random.Generator,
) -> DealtWithRepeats:
    """The same, with `repeats` more slots that ask an earlier item of their booklet again, at its end.

    Repeats for which no booklet has room are left out: a shorter sitting has fewer controls.
    """
    booklets = deal_short(keys, size=size, rng=rng)
    repeat_of: dict[int, int] = {}
    for number in rng.permutation(len(booklets)).tolist():
        slots = booklets[number]
        early = [slot for slot in slots if repeatable[slot]]
        if len(repeat_of) < repeats and len(slots) < size and early:
            repeat = len(keys) + len(repeat_of)
            repeat_of[repeat] = early[int(rng.integers(len(early)))]
            slots.append(repeat)
    return DealtWithRepeats(booklets=booklets, repeat_of=repeat_of)
