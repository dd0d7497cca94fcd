"""Long texts in windows of a model's length. Needs numpy alone."""

from __future__ import annotations

from typing import NamedTuple

from predictors.errors import PredictorError


class Window(NamedTuple):
    """Places `start` to `stop` of a sequence are read together; of these, places from `first` on count here."""

    start: int
    stop: int
    first: int


def windows_of(length: int, longest: int) -> list[Window]:
    """Windows that count each place of a sequence once, except the first, which nothing stands before.

    They have at most `longest` places and begin half a window apart. A place counts in the first window that holds it,
    which gives it the most context.

    Raises:
        PredictorError: `longest` is below 2, so that no place has context.
    """
    if longest < 2:
        raise PredictorError(f"longest: {longest!r} places leave no context; a window needs 2 or more.")
    stride = max(1, longest // 2)
    windows: list[Window] = []
    start, first = 0, 1
    while first < length:
        stop = min(start + longest, length)
        windows.append(Window(start, stop, first))
        first = stop
        start += stride
    return windows
