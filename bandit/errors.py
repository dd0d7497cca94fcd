"""The exceptions of this library. Leaf module: imports nothing."""


class DesignError(ValueError):
    """A design, draw, deal or estimate is not possible. The message names the sizes and says what to change."""


class WorkersLost(Exception):
    """An executor has lost what works for it, or gives no result. The same work may succeed later."""


class WorkersDiffer(Exception):
    """What works for an executor has other code than this process. The message says what to change."""
