"""A short memory next to the database, in Django's cache. Imports Django alone.

Nothing depends on it: a cache that is empty, or that cannot be reached, remembers nothing, and the caller finds out
again. What must be counted exactly is a row (see `rate_limits`).
"""

import logging
from typing import Any

from django.core.cache import cache

logger = logging.getLogger(__name__)


def recall(key: str) -> Any:
    """What was remembered under the key; None if nothing was."""
    try:
        return cache.get(key)
    except Exception as exc:
        _warn(exc)
        return None


def remember(key: str, value: Any, *, seconds: int) -> None:
    try:
        cache.set(key, value, timeout=seconds)
    except Exception as exc:
        _warn(exc)


def is_first(key: str, *, seconds: int) -> bool:
    """Whether nobody has asked this within so many seconds. True as well if that cannot be known."""
    try:
        return cache.add(key, True, timeout=seconds)
    except Exception as exc:
        _warn(exc)
        return True


def _warn(exc: Exception) -> None:
    logger.warning("the cache cannot be used (%s): what it held is found out anew", type(exc).__name__)
