"""Dealing a stage's slots into booklets, one booklet a sitting. Numpy alone: a slot is its place in the input.

A booklet holds a conflict key (for belief pairs: a question) at most once, since a respondent who has seen a question
would answer it differently the second time. Groups (stratum and role) are spread over the booklets as evenly as whole
slots allow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise

import numpy as np
from numpy.typing import NDArray

from bandit.errors import DesignError

EVEN_TRIES = 3
UNEVEN_TRIES = 3


def deal(
    *,
    conflict_keys: Sequence[tuple[Hashable, ...]],
    groups: Sequence[Hashable],
    size: int,
    rng: np.random.Generator,
    allow_short_last: bool = True,
) -> list[list[int]]:
    """Deals slots 0..n-1 into ceil(n / size) booklets of `size` slots, each in random order; the last may be shorter.

    `conflict_keys`: each slot's keys; `groups`: each slot's group. Per group, the counts of two booklets of equal size
    differ by at most 1, unless the conflict keys make that impossible. The same Generator state gives the same
    booklets.
    Raises DesignError if a key is in more slots than there are booklets, or if no way to deal was found.
    """
    n = len(conflict_keys)
    if len(groups) != n:
        raise DesignError(f"groups: {len(groups)} groups for {n} slots; give one group a slot")
    if size < 1:
        raise DesignError(f"size: a booklet needs at least 1 slot, not {size}")
    if n == 0:
        return []
    if n % size and not allow_short_last:
        raise DesignError(f"size: {n} slots do not fill booklets of {size}; {n % size} are left over")
    room = np.full(-(-n // size), size)
    room[-1] = n - size * (room.size - 1)
    problem = _Problem.of(conflict_keys=conflict_keys, groups=groups, room=room)
    by_booklet = np.argsort(_dealt(problem, rng), kind="stable")
    ends = np.cumsum(room).tolist()
    return [rng.permutation(by_booklet[start:end]).tolist() for start, end in pairwise([0, *ends])]


@dataclass(frozen=True, eq=False)
class _Problem:
    """The slots as numbers: `keys[i]` holds the keys of slot i. So does row i of `padded` (n, most keys of a slot),
    where the number of keys fills empty places. `group` (n,); `room` (booklets,) is the number of places in each
    booklet."""

    keys: list[list[int]]
    padded: NDArray[np.int64]
    group: NDArray[np.int64]
    room: NDArray[np.int64]
    key_counts: NDArray[np.int64]

    @classmethod
    def of(
        cls, *, conflict_keys: Sequence[tuple[Hashable, ...]], groups: Sequence[Hashable], room: NDArray[np.int64]
    ) -> _Problem:
        distinct = [list(dict.fromkeys(keys)) for keys in conflict_keys]
        counts = Counter(chain.from_iterable(distinct))
        for key, count in counts.most_common(1):
            if count > room.size:
                raise DesignError(
                    f"conflict_keys: {key!r} is in {count} slots, but {len(conflict_keys)} slots make only {room.size} "
                    "booklets and each may hold it once; plan smaller booklets or draw from more questions"
                )
        number = {key: index for index, key in enumerate(counts)}
        group_number = {group: index for index, group in enumerate(dict.fromkeys(groups))}
        numbered = [[number[key] for key in keys] for keys in distinct]
        empty = [len(number)] * max(map(len, numbered))
        return cls(
            keys=numbered,
            padded=np.array([row + empty[len(row) :] for row in numbered], dtype=np.int64),
            group=np.array([group_number[group] for group in groups], dtype=np.int64),
            room=room,
            key_counts=np.array(list(counts.values()), dtype=np.int64),
        )


def _dealt(problem: _Problem, rng: np.random.Generator) -> NDArray[np.int64]:
    """The booklet of each slot, shape (n,): evenly mixed if such a deal is found, else as even as swaps make it."""
    n = problem.group.size
    for _ in range(EVEN_TRIES):
        table = _Table.empty(problem, problem.group, _quotas(problem.group, problem.room, rng))
        if table.fill(rng, evictions=n + 200):
            return table.booklet_of
    for _ in range(UNEVEN_TRIES):
        table = _Table.empty(problem, np.zeros(n, dtype=np.int64), problem.room[:, None].copy())
        if table.fill(rng, evictions=4 * n + 1000):
            _even_out(problem, table, rng)
            return table.booklet_of
    worst = int(problem.key_counts.max())
    raise DesignError(
        f"conflict_keys: found no way to deal {n} slots into {problem.room.size} booklets with each key once in a "
        f"booklet (the most frequent key is in {worst} slots); plan smaller booklets or draw from more questions"
    )


def _quotas(group: NDArray[np.int64], room: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """How many slots of each group each booklet gets, shape (booklets, groups); rows sum to `room`.

    The slots, sorted by group, go round the booklets like cards, so that a group's counts differ by at most 1. A short
    last booklet takes its cards at equal steps through the pack, which gives it its share of every group.
    """
    n, booklets, groups = group.size, room.size, int(group.max()) + 1
    pack = rng.permutation(groups)
    pack = np.repeat(pack, np.bincount(group, minlength=groups)[pack])
    quotas = np.zeros((booklets, groups), dtype=np.int64)
    full = booklets
    if room[-1] < room[0]:
        taken = ((np.arange(room[-1]) + rng.random()) * n / room[-1]).astype(np.int64)
        np.add.at(quotas, (booklets - 1, pack[taken]), 1)
        pack = np.delete(pack, taken)
        full = booklets - 1
    if full:
        np.add.at(quotas, (rng.permutation(full)[np.arange(pack.size) % full], pack), 1)
    return quotas


@dataclass(eq=False)
class _Table:
    """A deal under way. `open_places` (booklets, groups) counts free places, `held_by` (keys + 1, booklets) is the slot
    that holds a key in a booklet or -1 (the last row is for the padding), `booklet_of` (n,) is -1 for a slot that has
    no booklet yet."""

    problem: _Problem
    group: NDArray[np.int64]
    open_places: NDArray[np.int64]
    held_by: NDArray[np.int32]
    booklet_of: NDArray[np.int64]
    in_hand: list[int] = field(default_factory=list)

    @classmethod
    def empty(cls, problem: _Problem, group: NDArray[np.int64], quotas: NDArray[np.int64]) -> _Table:
        return cls(
            problem=problem,
            group=group,
            open_places=quotas,
            held_by=np.full((problem.key_counts.size + 1, problem.room.size), -1, dtype=np.int32),
            booklet_of=np.full(group.size, -1, dtype=np.int64),
        )

    def fill(self, rng: np.random.Generator, *, evictions: int) -> bool:
        """Places every slot, the most constrained first; True if it succeeds with at most `evictions`."""
        hardness = np.append(self.problem.key_counts, 0)[self.problem.padded].sum(axis=1)
        for slot in np.lexsort((rng.random(hardness.size), -hardness)).tolist():
            if not self._place_freely(slot, rng):
                self.in_hand.append(slot)
        left = evictions
        while self.in_hand:
            slot = self.in_hand.pop(int(rng.integers(len(self.in_hand))))
            if self._place_freely(slot, rng) or self._place_by_swap(slot, rng):
                continue
            left -= self._place_by_eviction(slot, rng)
            if left < 0:
                return False
        return True

    def swap(self, slot: int, other: int) -> None:
        """Exchanges the booklets of two placed slots, whatever their groups."""
        first, second = int(self.booklet_of[slot]), int(self.booklet_of[other])
        self._take(slot)
        self._take(other)
        self._put(slot, second)
        self._put(other, first)

    def exchangeable(self, slot: int, others: NDArray[np.int64], booklet: int) -> NDArray[np.bool_]:
        """For each of `others`: could `slot` take its place while it moves to `booklet` (which `slot` may leave)?"""
        left_behind = self.held_by[self.problem.keys[slot]][:, self.booklet_of[others]]
        ahead = self.held_by[self.problem.padded[others], booklet]
        return ((left_behind < 0) | (left_behind == others)).all(axis=0) & ((ahead < 0) | (ahead == slot)).all(axis=1)

    # These three run for every slot, on a few keys: single elements of an array are faster than indices of several.

    def _put(self, slot: int, booklet: int) -> None:
        for key in self.problem.keys[slot]:
            self.held_by[key, booklet] = slot
        self.open_places[booklet, self.group[slot]] -= 1
        self.booklet_of[slot] = booklet

    def _take(self, slot: int) -> None:
        booklet = int(self.booklet_of[slot])
        for key in self.problem.keys[slot]:
            self.held_by[key, booklet] = -1
        self.open_places[booklet, self.group[slot]] += 1
        self.booklet_of[slot] = -1

    def _place_freely(self, slot: int, rng: np.random.Generator) -> bool:
        free = self.open_places[:, self.group[slot]] > 0
        for key in self.problem.keys[slot]:
            free &= self.held_by[key] < 0
        (booklets,) = free.nonzero()
        if booklets.size == 0:
            return False
        self._put(slot, int(booklets[rng.integers(booklets.size)]))
        return True

    def _place_by_swap(self, slot: int, rng: np.random.Generator) -> bool:
        """Moves one slot of the same group into an open place and takes the place it leaves."""
        group = self.group[slot]
        movable = rng.permutation(np.flatnonzero((self.group == group) & (self.booklet_of >= 0)))
        for booklet in rng.permutation(np.flatnonzero(self.open_places[:, group] > 0)):
            possible = movable[self.exchangeable(slot, movable, int(booklet))]
            if possible.size:
                other = int(possible[0])
                left = int(self.booklet_of[other])
                self._take(other)
                self._put(other, int(booklet))
                self._put(slot, left)
                return True
        return False

    def _place_by_eviction(self, slot: int, rng: np.random.Generator) -> int:
        """Puts the slot where the fewest others must be taken out again, and returns how many were taken out."""
        group, keys = self.group[slot], self.problem.keys[slot]
        holders = self.held_by[keys]
        cost = (holders >= 0).sum(axis=0) + (self.open_places[:, group] <= 0)
        members = np.bincount(
            self.booklet_of[(self.group == group) & (self.booklet_of >= 0)], minlength=self.problem.room.size
        )
        # A booklet with neither a place nor a slot of this group can never take one.
        possible = (members + self.open_places[:, group]) > 0
        cheapest = np.flatnonzero(possible & (cost == cost[possible].min()))
        booklet = int(cheapest[rng.integers(cheapest.size)])
        leaving = {int(holder) for holder in holders[:, booklet] if holder >= 0}
        for holder in leaving:
            self._take(holder)
        if self.open_places[booklet, group] <= 0:
            same = np.flatnonzero((self.booklet_of == booklet) & (self.group == group))
            unlucky = int(same[rng.integers(same.size)])
            self._take(unlucky)
            leaving.add(unlucky)
        self._put(slot, booklet)
        self.in_hand.extend(sorted(leaving))
        return len(leaving)


def _even_out(problem: _Problem, table: _Table, rng: np.random.Generator) -> None:
    """Swaps slots between booklets while that brings the groups nearer to their shares."""
    n, group, groups = problem.group.size, problem.group, int(problem.group.max()) + 1
    share = problem.room[:, None] * np.bincount(group, minlength=groups)[None, :]
    least, most = share // n, -(-share // n)

    def off(counts: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.maximum(counts - most, 0) + np.maximum(least - counts, 0)

    def counted() -> NDArray[np.int64]:
        counts = np.zeros_like(share)
        np.add.at(counts, (table.booklet_of, group), 1)
        return counts

    swapped = True
    while swapped:
        swapped = False
        for slot in rng.permutation(n):
            counts = counted()
            now, fewer, more = off(counts), off(counts - 1), off(counts + 1)
            here, there = int(table.booklet_of[slot]), table.booklet_of
            if not now[here].any():
                continue
            change = (fewer - now)[here, group[slot]] + (more - now)[here, group]
            change = change + (more - now)[there, group[slot]] + (fewer - now)[there, group]
            better = np.flatnonzero((change < 0) & (there != here) & (group != group[slot]))
            better = better[table.exchangeable(int(slot), better, here)]
            if better.size:
                table.swap(int(slot), int(better[rng.integers(better.size)]))
                swapped = True
