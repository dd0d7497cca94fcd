"""Processor seconds by piece of work, for work that several processes share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from functools import partial
from time import process_time
from typing import Any


def timed(work: Callable[..., Any], *args: Any, **options: Any) -> tuple[Any, float]:
    """What the work gives, and its seconds of processor time in this process."""
    started = process_time()
    return work(*args, **options), process_time() - started


class Meter:
    """A pool that adds up the processor seconds of all it is given, by the name of the function and its keywords."""

    def __init__(self, pool: Executor) -> None:
        self.pool = pool
        self.seconds: Counter[str] = Counter()

    def map(self, work: Callable[..., Any], items: Iterable[Any], *, chunksize: int = 1) -> Iterator[Any]:
        for result, seconds in self.pool.map(partial(timed, work), items, chunksize=chunksize):
            self.seconds[name_of(work)] += seconds
            yield result

    def submit(self, work: Callable[..., Any], *args: Any, **options: Any) -> Callable[[], Any]:
        """Begins the work; what comes back waits for its result."""
        waiting: Future[tuple[Any, float]] = self.pool.submit(timed, work, *args, **options)

        def result() -> Any:
            result, seconds = waiting.result()
            self.seconds[name_of(work)] += seconds
            return result

        return result


def name_of(work: Callable[..., Any]) -> str:
    if isinstance(work, partial):
        return " ".join([name_of(work.func), *(f"{key}={value}" for key, value in work.keywords.items())])
    return str(getattr(work, "__name__", work))
