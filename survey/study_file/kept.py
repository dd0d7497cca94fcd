"""The checked study files that a process keeps, so that a page need neither read nor check a file again.

A file is found by its study and its hash. So what is kept is never out of date: an amended file has another hash.
"""

from collections import OrderedDict
from threading import Lock

from .study import StudyConfig

MOST_KEPT = 64  # A file in two languages takes a few hundred kilobytes.

_kept: OrderedDict[tuple[int, str], StudyConfig] = OrderedDict()
_lock = Lock()


def kept_file(study: int, sha256: str) -> StudyConfig | None:
    """The study's file with that hash; None if this process does not keep it."""
    with _lock:
        found = _kept.get((study, sha256))
        if found is not None:
            _kept.move_to_end((study, sha256))
        return found


def keep_file(study: int, sha256: str, config: StudyConfig) -> StudyConfig:
    """Keep a file, and forget the one that was not used for the longest time if there are too many."""
    with _lock:
        _kept[study, sha256] = config
        if len(_kept) > MOST_KEPT:
            _kept.popitem(last=False)
    return config


def forget_files() -> None:
    """Keep none. For tests: their studies get the same keys again."""
    with _lock:
        _kept.clear()
