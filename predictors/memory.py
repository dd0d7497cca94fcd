"""Arrays kept in a process for the next call, up to a limit. Needs numpy alone."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Mapping
from threading import Lock
from typing import Any

from numpy.typing import NDArray


class ArrayMemory:
    """Arrays by key, `room` bytes of them at most; those unused for longest are dropped first. Threads may share it."""

    def __init__(self, room: int) -> None:
        self.room, self.used = room, 0
        self.kept: OrderedDict[Hashable, NDArray[Any]] = OrderedDict()
        self.lock = Lock()

    def get_all(self, keys: Iterable[Hashable]) -> dict[Any, NDArray[Any]]:
        """Those of the keys that are kept, with their arrays."""
        with self.lock:
            return {key: self.kept[key] for key in keys if key in self.kept}

    def put_all(self, arrays: Mapping[Any, NDArray[Any]]) -> None:
        """Keep copies of these arrays, as the ones used last."""
        with self.lock:
            for key, array in arrays.items():
                if key not in self.kept:
                    self.kept[key] = array.copy()  # A view would hold its whole block.
                    self.used += array.nbytes
                self.kept.move_to_end(key)
            while self.used > self.room:
                self.used -= self.kept.popitem(last=False)[1].nbytes

    def clear(self) -> None:
        """Drop everything."""
        with self.lock:
            self.kept.clear()
            self.used = 0
