"""Waiting for what happens at once on a quiet machine, and much later on one that has other work for each of its cores.

Who waits goes on as soon as it happens, so patience costs time only where a test fails.
"""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE = 240.0  # seconds


def eventually(happens: Callable[[], T]) -> T:
    """What `happens` returns once that is true; and what it returned last, where it never was."""
    deadline = time.monotonic() + PATIENCE
    while not (outcome := happens()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return outcome
