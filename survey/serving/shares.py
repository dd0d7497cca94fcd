"""How many connections each worker of a site has, in memory that they share. Imports the standard library.

Workers that accept from one listener do not share its connections evenly by themselves: who wakes first takes most, and
people who share a worker with many others wait longer than the rest.
"""

import mmap

PLACES = 256
FRESH = 2.0  # seconds; a worker notes its number every half second


class Shares:
    """A number of connections and a time for each worker. Made before workers are forked, so that all have the same.

    Two workers share a place only where one has lived while PLACES others were started. Then arrivals are less even,
    and nothing else happens.
    """

    def __init__(self) -> None:
        memory = memoryview(mmap.mmap(-1, PLACES * 2 * 8)).cast("d")
        self._connections, self._noted_at = memory[:PLACES], memory[PLACES:]

    def note(self, worker: int, connections: int, now: float) -> None:
        """`now` is of the monotonic clock, which is one for all processes. 0: this worker takes no new connection."""
        self._connections[worker % PLACES] = connections
        self._noted_at[worker % PLACES] = now

    def fewest_of_others(self, worker: int, now: float) -> float | None:
        """The least number of another worker that takes connections. None: there is no such worker."""
        others = (
            self._connections[place]
            for place in range(PLACES)
            if place != worker % PLACES and now - self._noted_at[place] < FRESH
        )
        return min(others, default=None)
