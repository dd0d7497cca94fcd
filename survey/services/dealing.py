"""Dealing where `bandit.booklets.deal` cannot: more booklets, shorter ones, and still no conflict key twice in one."""

from collections.abc import Hashable, Sequence

import numpy as np


def deal_short(keys: Sequence[tuple[Hashable, ...]], *, size: int, rng: np.random.Generator) -> list[list[int]]:
    """Each slot, in random order, into the first booklet that has room for it and none of its keys.

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
