"""The checked study files that a process keeps, so that a page need neither read nor check a file again.

A file is found by its study and its hash. So what is kept is never out of date: an amended file has another hash.
"""

import json
from collections import OrderedDict
from collections.abc import Mapping
from threading import Lock
from typing import Any, Generic, TypeVar

from .older import read_stored
from .study import StudyConfig

MAX_KEPT = 64  # A file in two languages takes a few hundred kilobytes.
Key = tuple[int, str]
Value = TypeVar("Value")


class _Latest(Generic[Value]):
    """Those that were used last."""

    def __init__(self) -> None:
        self._rows: OrderedDict[Key, Value] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Key) -> Value | None:
        with self._lock:
            row = self._rows.get(key)
            if row is not None:
                self._rows.move_to_end(key)
            return row

    def keep(self, key: Key, value: Value) -> None:
        """And forget the one that was not used for the longest time if there are too many."""
        with self._lock:
            self._rows[key] = value
            if len(self._rows) > MAX_KEPT:
                self._rows.popitem(last=False)

    def clear(self) -> None:
        with self._lock:
            self._rows.clear()


_kept = _Latest[StudyConfig]()
_read = _Latest[tuple[str, StudyConfig]]()


def kept_file(study: int, sha256: str) -> StudyConfig | None:
    """The study's file with that hash; None if this process does not keep it."""
    return _kept.get((study, sha256))


def keep_file(study: int, sha256: str, config: StudyConfig) -> StudyConfig:
    """Keep a file, and forget the one that was not used for the longest time if there are too many."""
    _kept.keep((study, sha256), config)
    return config


def checked_file(study: int | None, sha256: str, stored: Mapping[str, Any]) -> StudyConfig:
    """A stored file that was read from the database, or is to be written there. It is checked once: after that, the
    same text is enough, and quicker to compare than to check."""
    if study is None:
        return read_stored(stored)
    text = json.dumps(stored, default=str)
    cached = _read.get((study, sha256))
    if cached is not None and cached[0] == text:
        return cached[1]
    config = read_stored(stored)
    _read.keep((study, sha256), (text, config))
    return config


def forget_files() -> None:
    """Keep none. For tests: their studies get the same keys again."""
    _kept.clear()
    _read.clear()
