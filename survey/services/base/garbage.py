"""Python's garbage collector, where many objects are made that stay. Imports nothing of ours.

Reading a hundred thousand rows makes as many objects with circles among them. None of them can go yet, but the
collector looks through all of them again and again: that is a third of the time of a large estimate.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """The collector does not run inside, in no thread of this process. What is inside must end by itself within
    seconds; what nothing refers to goes at once as ever, circles go afterwards."""
    if not gc.isenabled():  # Somebody outside has paused it, and starts it again.
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
